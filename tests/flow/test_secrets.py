"""A thousand made-up secrets through every door, with a worker and without: no file of the home holds any of them.

Not tried, because not promised: a secret that somebody encoded (base64, hex, gzip) before we saw it.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from foreword.paths import Home
from tests.flow.conftest import HookRunner, end_worker, wait_for
from tests.planted import ALNUM, FORMATS, chars
from tests.unit.test_private import HIDDEN

RNG = random.Random(23)
SECRETS = [(known + make(RNG)) for _ in range(5) for known, make in FORMATS.values()]
# By their place alone; {} stands for the secret.
PLACED = [
    "password = '{}'",
    "export DB_PASSWORD={}",
    '"client_secret": "{}"',
    "Authorization: Bearer {}",
    "postgres://ada:{}@db/shop",
    "mysql -u root -p{} shop",
    "aws_secret_access_key = {}",
    "AccountKey={};EndpointSuffix=x",
]
VALUES = [chars(RNG, ALNUM, 24) for _ in range(240)]
IN_ENV = [chars(RNG, ALNUM, 20) for _ in range(12)]
FOLDER = "gh" + "p_" + chars(RNG, ALNUM, 36)


def carriers(project: str) -> list[tuple[str, dict[str, object]]]:
    """Payloads as Claude Code sends them, with all secrets in them: each carrier has its share."""
    texts = [*SECRETS, *(PLACED[number % len(PLACED)].format(value) for number, value in enumerate(VALUES))]
    shares = [texts[number::12] for number in range(12)]

    def lines(number: int) -> str:
        return "\n".join(f"{place} {text} and" for place, text in enumerate(shares[number]))

    escaped = json.dumps({"inner": json.dumps({"text": lines(0)})})
    about = {"session_id": "s1", "cwd": project}

    def tool(number: int, **sent: object) -> tuple[str, dict[str, object]]:
        return "PostToolUse", {**about, "tool_use_id": f"t{number}", "tool_name": "Bash", **sent}

    return [
        ("UserPromptSubmit", {**about, "prompt": lines(1)}),
        tool(2, tool_input={"command": f"run <<X\n{lines(2)}\nX"}, tool_response={"stdout": "ok"}),
        tool(3, tool_input={"command": "make"}, tool_response={"stdout": lines(3), "stderr": escaped}),
        tool(4, tool_input={"file_path": "a.py"}, tool_response={"structuredPatch": [{"lines": _diff(shares[4])}]}),
        tool(5, tool_input={"file_path": f"{project}/{shares[5][0]}"}, tool_response={"x": shares[5]}),
        tool(6, tool_input={"env": {f"V{n}": text for n, text in enumerate(shares[6])}}),
        tool(7, tool_input={"url": f"https://example.com/?q={'&x='.join(shares[7])}"}),
        tool(8, tool_input={"headers": [f"X-Thing: {text}" for text in shares[8]]}),
        tool(9, tool_input={text: number for number, text in enumerate(shares[9])}),
        tool(10, tool_input={"nested": {"json": json.dumps({"a": [shares[10]]})}}),
        tool(11, tool_response="\r\n".join(shares[11]), error="; ".join(shares[0])),
        ("SessionStart", {"session_id": SECRETS[0], "cwd": f"{project}/{FOLDER}", "source": "startup"}),
        tool(12, tool_input={"command": "run"}, tool_response={"stdout": "".join(f"<{v}> x={v};" for v in IN_ENV)}),
        tool(
            13, tool_input={"file_path": ".env", "content": f"ANY={VALUES[0]}x"}, tool_response={"content": VALUES[1]}
        ),
        tool(14, tool_response={f"p{n}": form.replace("H", "canary-h") for n, form in enumerate(HIDDEN)}),
        ("an/odd event", {"what": lines(0)}),
    ]


def _diff(texts: list[str]) -> list[str]:
    return ["@@ -1 +1 @@", *(f"{'+-'[number % 2]}{text}" for number, text in enumerate(texts))]


ENVIRON = {f"THING_{number}_TOKEN": value for number, value in enumerate(IN_ENV)}
ALL = [*SECRETS, *VALUES, *IN_ENV, FOLDER]


def left_in(home: Home) -> list[str]:
    """Every secret of which eight bytes in its middle are in some file."""
    data = b"\n".join(path.read_bytes() for path in home.root.rglob("*") if path.is_file())
    assert b"canary-h" not in data
    return [secret for secret in ALL if _middle(secret) in data]


def _middle(secret: str) -> bytes:
    half = len(secret) // 2 + 4
    return secret[half - 6 : half + 6].encode()


def test_there_are_enough_of_them() -> None:
    assert len(SECRETS) >= 1000
    assert len(FORMATS) >= 100


@pytest.mark.parametrize("worker", ["up", "away"])
def test_no_planted_secret_reaches_a_file_by_the_hook(
    home: Home, host: HookRunner, start, project: str, worker: str
) -> None:
    (Path(project) / FOLDER).mkdir()
    host.write_hook()
    if worker == "up":
        start()
    sent = carriers(project)
    for event, payload in sent:
        ended = host.tell(event.replace("/", "").replace(" ", ""), payload, **ENVIRON)
        assert (ended.returncode, ended.stderr) == (0, b"")
        assert not [secret for secret in ALL if _middle(secret) in ended.stdout]
    if worker == "away":
        assert host.spooled() > 10_000
        assert left_in(home) == []
        start()
        wait_for(lambda: host.spooled() == 0)
    end_worker(home)
    assert left_in(home) == []
    assert len(host.stored()) == len(sent)
    texts = json.dumps(host.stored())
    for kind in ("github-token", "password", "secret", "authorization", "url-password", "env", "path", "private"):
        assert f"[redacted:{kind}]" in texts, kind


def test_no_planted_secret_reaches_a_file_by_the_api(home: Home, host: HookRunner, start, project: str) -> None:
    client = start()
    for event, payload in carriers(project):
        if payload.get("tool_use_id") != "t12":  # only a hook knows an environment
            client.post("/api/events", {"host": "claude-code", "event": event, "payload": payload})
    notes = [
        {"kind": "note", "title": f"commit: {text}", "body": text, "tags": [text], "files": [text], "functions": [text]}
        for text in SECRETS[:300]
    ]
    placed = [PLACED[number % len(PLACED)].format(value) for number, value in enumerate(VALUES)]
    notes += [
        {"kind": "decision", "title": text, "detail": {"why": text, "more": [text]}, "session": text} for text in placed
    ]
    notes += [{"kind": "note", "title": "x", "uid": text, "source": text, "session": text} for text in SECRETS[300:400]]
    client.post("/api/memories", {"memories": [{**note, "project_path": project} for note in notes]})
    for text in SECRETS[:20]:
        client.get("/api/context", project_path=project, session_id=text, prompt=f"what of {text}?")
        client.get("/api/search", project_path=project, q=f"x {text}")
    end_worker(home)
    assert [each for each in left_in(home) if each not in IN_ENV] == []
