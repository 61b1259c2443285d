"""What each host accepts, to the byte, for every recorded payload; for every piece of one, nothing worse than silence.

Every payload goes through a real hook process with the worker up, and one of each event with the worker away (all in
`make test-all`). Every payload cut at every 50th byte, and at a few random ones, goes through the worker's socket and
through the hook's own answer in this process; real hook processes get a spread sample of them (SAMPLES).
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from foreword.agents import AGENTS, find
from foreword.config import load
from foreword.hook import build, offline
from foreword.models import Cap, Memory
from foreword.paths import Home
from foreword.problems import noted
from foreword.projects import resolve
from foreword.store import Store
from tests.flow.conftest import CLEAN, PATIENT, HookRunner
from tests.recorded import PAYLOADS, Recorded, recorded

RECORDED = recorded()
EVERY = 50  # bytes
SAMPLES = [50, pytest.param(1000, marks=pytest.mark.long)]  # pieces of 2,800, for real processes
AT_ONCE = 4
pytestmark = pytest.mark.timeout(600)  # hundreds of processes, and a machine that has more to do
ROOT = Path(__file__).resolve().parents[2]

# The whole object that a host accepts, key by key: Codex fails on one more, the others drop what is not theirs.
NESTED = lambda event, text: {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}  # noqa: E731
SHAPES: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "claude-code": NESTED,
    "codex": NESTED,
    "gemini": NESTED,
    "copilot": lambda _, text: {"additionalContext": text},
    "cursor": lambda event, text: {  # a prompt goes on only if that is said
        **({"continue": True} if event == "beforeSubmitPrompt" else {}),
        "additional_context": text,
    },
    "opencode": lambda _, text: {"context": text},  # to our own plugin
}
# What one answer may hold at most.
CAPS = {
    "claude-code": Cap(10_000, "utf-16"),
    "codex": Cap(10_000, "utf-8"),
    "gemini": None,
    "copilot": None,
    "cursor": Cap(10_000),
    "opencode": None,
}


@pytest.fixture
def known(home: Home, project: str) -> Home:
    """A store with something to say at every start and to every prompt about the checkout transport, none to a tool."""
    store = Store(home.database, backups=home.backups)
    owner = resolve(project)
    now = time.time()
    about = {"project": owner.key, "scope": owner.scope, "created": now, "confirmed": now}
    titles = {
        "decision": 'The checkout transport retries twice (#4107), "naïve" or not: 日本語 👍 <b>',
        "failure": "checkout transport timeout after 5 s",
        "preference": "Run the tests with make test",
    }
    why = {"why": "the bank's gateway drops the first call"}
    store.memories.put([Memory(kind=kind, title=title, detail=why, **about) for kind, title in titles.items()])
    store.close()
    return home


Call = tuple[Recorded, bytes]
Answered = tuple[int, bytes, bytes]  # exit code, stdout, stderr


def processes(home: Home, calls: Sequence[Call]) -> list[Answered]:
    """Each call by a hook process of its own, as its host starts it."""

    def one(call: Call) -> Answered:
        command = build.command(home, host=call[0].host, event=call[0].event)
        ended = subprocess.run(command, input=call[1], capture_output=True, check=False, timeout=60, env=CLEAN)
        return ended.returncode, ended.stdout, ended.stderr

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, calls))


def over_the_socket(home: Home, calls: Sequence[Call]) -> list[Answered]:
    """Each call as the hook sends it to the worker."""

    def one(call: Call) -> Answered:
        request = f"host={call[0].host}&event={call[0].event}&at={time.time():.6f}&head=-1&total=-1"
        top = f"POST /api/hook?{request} HTTP/1.1\r\nHost: foreword\r\nContent-Length: {len(call[1])}\r\n"
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(home.socket))
            line.sendall(f"{top}Connection: close\r\n\r\n".encode() + call[1])
            got = b"".join(iter(lambda: line.recv(1 << 18), b""))
        return 0 if got.startswith(b"HTTP/1.1 200") else 1, got.partition(b"\r\n\r\n")[2], b""

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, calls))


def without_a_worker(home: Home, calls: Sequence[Call]) -> list[Answered]:
    """Each call by the hook's own answer, in this process."""
    config = build.config(home, load(home, PATIENT).settings, worker=[])
    answers = []
    for number, (call, raw) in enumerate(calls):
        if number % 100 == 0:  # what waits is read at every call
            (home.spool / "current").unlink(missing_ok=True)
        request = (call.host, call.event, round(time.time(), 6), raw, -1, len(raw))
        answers.append((0, offline.answer(config, request, until=time.monotonic() + 5, why=""), b""))
    return answers


def complaints(home: Home) -> list[str]:
    """What went wrong, but for a worker that a busy machine kept from answering in time."""
    return [each.what for each in noted(str(home.trouble)) if not each.where.endswith(": worker")]


def placed(project: str, *, tag: str) -> list[Recorded]:
    return [each.placed(folder=project, session=f"{tag}-{at}") for at, each in enumerate(RECORDED)]


def parse_answer(host: str, answer: bytes) -> tuple[dict[str, Any], str]:
    """The one object on stdout, no key of it twice, and the text in it."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({name for name, _ in pairs}) == len(pairs)
        return dict(pairs)

    found = json.loads(answer, object_pairs_hook=once)
    inside = found.get("hookSpecificOutput", found)
    text = next((inside[name] for name in ("additionalContext", "additional_context", "context") if name in inside), "")
    assert isinstance(text, str), host
    return found, text


def assert_accepted(call: Recorded, answered: Answered, *, expected: bool | None) -> None:
    """Exit 0, nothing on stderr, and exactly what this host accepts, where anything is said."""
    code, answer, errors = answered
    assert (code, errors) == (0, b""), call.name
    if call.event == "statusLine":  # no hook, and no JSON: a line
        assert answer in (b"", b"foreword: quiet")
        return
    if expected is not None:
        assert bool(answer) is expected, (call.name, answer)
    if answer:
        found, text = parse_answer(call.host, answer)
        assert found == SHAPES[call.host](call.event, text), call.name
        assert "foreword" in text.partition("\n")[0]
        assert call.trigger, call.name


@pytest.mark.parametrize("worker", ["up", "away", pytest.param("away, each by a process", marks=pytest.mark.long)])
def test_every_recorded_call_is_answered_with_what_its_host_accepts(known, host: HookRunner, start, project, worker):
    """A process without a worker takes 0.1 s of a core: one for each event of a host, the others in this process."""
    host.write_hook()
    if worker == "up":
        start()
    calls = placed(project, tag=worker[:4])
    alone = {(each.host, each.event): each for each in calls}.values() if worker == "away" else calls
    rest = [each for each in calls if each not in alone]
    answers = processes(known, [(each, each.raw) for each in alone])
    answers += without_a_worker(known, [(each, each.raw) for each in rest])
    calls = [*alone, *rest]
    for call, answered in zip(calls, answers, strict=True):
        assert_accepted(call, answered, expected=call.trigger not in ("", "tool"))
    spoken = {call.host for call, (_, answer, _) in zip(calls, answers, strict=True) if answer}
    assert spoken == set(AGENTS)
    assert complaints(known) == []


def pieces(calls: Iterable[Recorded]) -> list[Call]:
    """Every call cut at every 50th byte and at three random ones; none of them whole."""
    rand = random.Random(50)
    cut = []
    for call in calls:
        raw = call.raw
        at = {*range(0, len(raw), EVERY), *(rand.randrange(len(raw)) for _ in range(3))}
        cut += [(call, raw[:length]) for length in sorted(at)]
    return cut


@pytest.mark.parametrize("worker", ["up", "away"])
def test_a_piece_of_a_payload_is_never_worse_than_silence(known, host: HookRunner, start, project, worker):
    """Inside the worker, and by the hook's own answer in this process: all pieces."""
    host.write_hook()
    calls = pieces(placed(project, tag=worker))
    if worker == "up":
        client = start()
        answers = over_the_socket(known, calls)
        assert client.get("/api/health")["ok"]
    else:
        answers = without_a_worker(known, calls)
    for (call, _), answered in zip(calls, answers, strict=True):
        assert_accepted(call, answered, expected=False)
    assert complaints(known) == []


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("worker", ["up", "away"])
def test_a_hook_that_is_sent_a_piece_of_a_payload_ends_well(known, host: HookRunner, start, project, worker, sample):
    host.write_hook()
    calls = random.Random(300).sample(pieces(placed(project, tag=worker)), sample)
    if worker == "up":
        start()
    many = 200 if worker == "away" else len(calls)  # without a worker, what waits is read at every call
    for begin in range(0, len(calls), many):
        some = calls[begin : begin + many]
        for (call, _), answered in zip(some, processes(known, some), strict=True):
            assert_accepted(call, answered, expected=False)
        if worker == "away":
            for path in known.spool.iterdir():
                path.unlink()


@pytest.mark.parametrize("worker", ["up", "away"])
def test_no_host_is_given_more_than_it_takes_however_high_the_budgets(home, host: HookRunner, start, project, worker):
    home.config.write_text(
        "[layout.session_start]\nbudget = 10000\nknowledge.limit = 200\nsessions.limit = 200\nrules.limit = 200\n"
    )
    store, owner, now = Store(home.database, backups=home.backups), resolve(project), time.time()
    rand = random.Random(9)
    letters = "abcdefgh ijkl mnop é日👍"
    memories = [
        Memory(
            kind=rand.choice(("decision", "preference", "failure", "summary", "learning", "change")),
            title="".join(rand.choices(letters, k=150)),
            project=owner.key,
            scope=owner.scope,
            created=now - number,
            confirmed=now,
        )
        for number in range(600)
    ]
    store.memories.put(memories)
    store.close()
    host.write_hook()
    if worker == "up":
        start()
    starts = [each for each in placed(project, tag="c") if each.trigger == "session_start"]
    sizes = {}
    for call, (_, answer, _) in zip(starts, processes(home, [(each, each.raw) for each in starts]), strict=True):
        _, text = parse_answer(call.host, answer)
        sizes[call.host] = len(text)
        cap = CAPS[call.host]
        assert text.startswith(("--- foreword", "<foreword_context")), call.name
        assert text.rstrip().endswith(("--- end foreword ---", "</foreword_context>")), call.name
        assert cap is None or 0.8 * cap.most < cap.size(text) <= cap.most, call.name
    assert sizes["gemini"] > 10_000  # where nothing is cut, all of the budget is used


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_a_host_is_one_file_one_folder_of_payloads_and_one_page(name):
    """What to add for a new host: src/foreword/agents/NAME.py, and what this test names."""
    host = find(name)
    assert host.name == name
    assert name in SHAPES, f"SHAPES in {Path(__file__).name} must say what {name} accepts"
    assert name in CAPS, f"CAPS in {Path(__file__).name} must say what {name} takes in one answer"
    assert host.cap == CAPS[name]
    assert host.answer("Event", "text") == SHAPES[name]("Event", "text")
    page = ROOT / "docs" / "agents" / f"{name}.md"
    assert page.is_file(), f"{page.relative_to(ROOT)} must tell what {name} tells us"
    recorded_here = [each for each in RECORDED if each.name.startswith(f"{name}/")]
    assert recorded_here, f"{(PAYLOADS / name).relative_to(ROOT)} must hold payloads, each {{client, event, payload}}"
    shown = {each.event for each in recorded_here}
    assert set(host.triggers) - shown <= PASCAL.get(name, set()), "every event that is answered must have a payload"
    for path in (PAYLOADS / name).glob("*.json"):
        assert json.loads(path.read_text(encoding="utf-8"))["client"], f"{path.name} must say whose it is"


# The same events by other names, which the shared payloads have.
PASCAL = {"copilot": {"SessionStart", "UserPromptSubmit", "PostToolUse"}}
