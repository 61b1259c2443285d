"""OpenCode's plugin in a real JavaScript engine, against real workers: what it adds, tells and survives."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from foreword.hook import build, client
from foreword.hook.spool import hook_calls
from foreword.models import Memory
from foreword.paths import Home
from foreword.problems import noted
from foreword.projects import resolve
from foreword.store import Store
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import CLEAN, PATIENT, HookRunner, end_worker, wait_for
from tests.flow.test_hook_hints import NO_RULE, Session, fail_and_work
from tests.scratch import suspend

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="OPENCODE'S PLUGIN IS NOT TESTED: there is no `node` here")

DRIVER = Path(__file__).with_name("opencode_driver.mjs")
PLUGIN = Path(client.__file__).parents[1] / "agents" / "opencode.js"
PROMPT = "why does the checkout transport time out?"
DIGS = "the wombat digs under the harbour wall at night"
MAIN = "You are opencode.\n<env>\n  Working directory: /x\n</env>"
TITLE = "You are a title generator. You output ONLY a thread title."
SECRET = "Zq7x-Wombat-91-burrow"
PART = "prt_1e2b2bcf5001"


class OpenCode:
    """What OpenCode does with a plugin: calls its hooks with an input and an output that they may change."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.last: dict[str, Any] = {}

    def call(self, hook: str, hook_input: Any, output: Any = None, **more: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"hook": hook, "input": hook_input, "output": output, **more}) + "\n")
        self._process.stdin.flush()
        self.last = json.loads(self._process.stdout.readline())
        return self.last.get("output")

    def event(self, kind: str, **properties: Any) -> None:
        self.call("event", {"event": {"id": f"evt_{time.time_ns()}", "type": kind, "properties": properties}})

    def created(self, session: str = "s1", **more: Any) -> None:
        self.event("session.created", sessionID=session, info={"id": session, **more})

    def prompt(self, text: str, session: str = "s1", *, id: str = "msg_1") -> list[dict[str, Any]]:
        part = {"type": "text", "text": text, "id": f"{PART}ROy7qkHrNJNMTe", "messageID": id, "sessionID": session}
        message = {"id": id, "role": "user", "sessionID": session, "model": {"providerID": "f", "modelID": "gpt-5"}}
        output = self.call("chat.message", {"sessionID": session}, {"message": message, "parts": [part]})
        return list(output["parts"])

    def system(self, session: str | None = "s1", text: str = MAIN, *more: str) -> list[str]:
        hook_input = {"model": {"id": "gpt-5"}, **({"sessionID": session} if session else {})}
        return list(self.call("experimental.chat.system.transform", hook_input, {"system": [text, *more]})["system"])

    def compacting(self, session: str = "s1") -> list[str]:
        output = self.call("experimental.session.compacting", {"sessionID": session}, {"context": []})
        return list(output["context"])

    def used(
        self,
        session: str = "s1",
        *,
        call: str = "call_1",
        output: str = "hi\n",
        tool: str = "bash",
        command: str = "echo hi",
        exit: int = 0,
    ) -> str:
        """Use a tool; return what the model is shown of its result."""
        hook_input = {"tool": tool, "sessionID": session, "callID": call, "args": {"command": command}}
        left = self.call("tool.execute.after", hook_input, {"title": "", "metadata": {"exit": exit}, "output": output})
        return str(left["output"])

    def leave(self, *, hook: str = "leave") -> None:
        """OpenCode ends; nothing was ever written where a terminal would show it."""
        assert self._process.stdin
        if self._process.poll() is None:
            self._process.stdin.write(json.dumps({"hook": hook}) + "\n")
        out, err = self._process.communicate(timeout=30)
        assert (self._process.returncode, out, err) == (0, "", "")


@pytest.fixture
def opencode(home: Home, project: str, tmp_path: Path) -> Iterator[Callable[..., OpenCode]]:
    """Starts an engine with the plugin in it, as `install` writes it."""
    running: list[OpenCode] = []

    def started(**environ: str) -> OpenCode:
        text = PLUGIN.read_text().replace("__SOCKET__", json.dumps(str(home.socket)))
        (tmp_path / "foreword.mjs").write_text(text.replace("__HOOK__", json.dumps(str(home.launcher))))
        process = subprocess.Popen(
            [str(NODE), str(DRIVER), str(tmp_path / "foreword.mjs"), project],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**CLEAN, **PATIENT, "FOREWORD_HOME": str(home.root), **environ},
        )
        running.append(OpenCode(process))
        return running[-1]

    yield started
    for each in running:
        each.leave()


@pytest.fixture
def filled(home: Home, project: str) -> Home:
    store = Store(home.database, backups=home.backups)
    owner = resolve(project)
    about: dict[str, Any] = {"project": owner.key, "scope": owner.scope, "created": time.time() - 60}
    store.memories.put(
        [
            Memory("decision", "The checkout <HTTPTransport> retries twice", body="because of the bank", **about),
            Memory("preference", "Run the tests with make test", **about),
            Memory("summary", "Retries added", detail={"done": "tested"}, **about),
        ]
    )
    store.close()
    return home


@pytest.fixture
def away(filled: Home, host: HookRunner) -> Home:
    """A home whose hook starts no worker, with its launcher."""
    host.write_hook()
    for path, text in build.launchers(filled).items():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(text)
        path.chmod(0o700)
    return filled


def kinds(client: Client, host: HookRunner, many: int) -> list[str]:
    """What was captured, once there is that much."""
    wait_for(lambda: client.get("/api/health")["counts"]["events"] >= many)
    return [
        ("properties" in payload.get("input", {}) and payload["input"]["type"]) or "hook" for payload in host.stored()
    ]


def list_injections(client: Client, **query: Any) -> list[dict[str, Any]]:
    return list(client.get("/api/injections", text=1, **query)["injections"])


def remember(client: Client, project: str, title: str) -> None:
    client.post("/api/memories", {"kind": "decision", "title": title, "project_path": project})


# -- what it adds -----------------------------------------------------------------------------------------------------


def test_a_session_begins_with_one_block_that_is_the_same_in_every_request(filled: Home, start, opencode, project):
    client = start()
    agent = opencode()
    agent.created()
    first = agent.system()
    assert first[0] == MAIN
    assert first[1].startswith("<foreword_context ")
    assert first[1].endswith("</foreword_context>")
    assert "make test" in first[1]
    remember(client, project, "the wombat is new")
    agent.event("session.compacted", sessionID="s1")
    assert agent.system() == first
    agent.leave()
    again = opencode()  # restarted: the worker still knows
    assert again.system() == first
    (injection,) = list_injections(client, session_id="s1")
    assert (injection["form"], injection["host"], injection["trigger"], injection["source"]) == (
        "xml",
        "opencode",
        "session_start",
        "startup",
    )
    assert injection["text"] == first[1]
    assert agent.last["exports"] == ["Foreword"]  # every export would be taken for a plugin


def test_a_session_that_nobody_saw_begin_is_resumed(filled: Home, start, opencode, host: HookRunner):
    client = start()
    agent = opencode()
    assert "make test" in agent.system()[1]
    assert [each["source"] for each in list_injections(client)] == ["resume"]
    wait_for(host.stored)
    assert [payload["source"] for payload in host.stored()] == ["resume"]


@pytest.mark.parametrize(
    ("text", "agents"),
    [
        (TITLE, []),
        ("You are a context summarization agent. You", []),
        ("Name it, in verse.\nNo prose.", [{"name": "title", "hidden": True, "prompt": "Name it, in verse."}]),
    ],
)
def test_hidden_agents_are_told_nothing(filled: Home, start, opencode, text, agents):
    start()
    agent = opencode()
    agent.created()
    agent.call("none", None, client={"agents": agents})
    assert agent.system("s1", text) == [text]
    assert len(agent.system("s1", "You are a poet, and no hidden agent.")) == 2
    assert agent.system(None, MAIN) == [MAIN]  # no session: OpenCode makes an agent's description


def test_sub_agents_are_told_nothing_and_nothing_of_theirs_is_kept(filled: Home, start, opencode, host: HookRunner):
    client = start()
    agent = opencode()
    agent.created("child", parentID="s1")
    agent.call("none", None, client={"sessions": {"older": {"id": "older", "parentID": "s1"}}})
    for session in ("child", "older"):  # the second began before OpenCode was started again
        assert agent.system(session) == [MAIN]
        assert len(agent.prompt(PROMPT, session)) == 1
        assert agent.compacting(session) == []
        agent.used(session)
        agent.event("session.idle", sessionID=session)
    agent.created("s1")
    agent.call("dispose", None)
    assert list_injections(client, session_id="child") == list_injections(client, session_id="older") == []
    assert kinds(client, host, 1) == ["session.created"]


def test_a_prompt_gets_a_part_of_its_own_behind_what_the_user_wrote(
    filled: Home, start, opencode, host: HookRunner, project
):
    client = start()
    agent = opencode()
    agent.created()
    agent.system()
    remember(client, project, DIGS)
    typed, ours = agent.prompt("why does the wombat dig?")
    assert typed["text"] == "why does the wombat dig?"
    assert (ours["type"], ours["synthetic"], ours["messageID"], ours["sessionID"]) == ("text", True, "msg_1", "s1")
    assert ours["id"] > typed["id"]
    assert len(ours["id"]) == len(typed["id"])
    assert ours["text"].startswith("<foreword_context ")
    assert DIGS in ours["text"]
    assert "make test" not in ours["text"]  # the session began with it
    prompt = next(payload for payload in host.stored() if "output" in payload)
    assert "foreword_context" not in json.dumps(prompt)
    assert len(agent.prompt("why does the wombat dig?", id="msg_2")) == 1  # once in a window
    agent.event("session.compacted", sessionID="s1")
    agent.call("dispose", None)
    again = agent.prompt("why does the wombat dig?", id="msg_3")
    assert DIGS in again[1]["text"]
    silent = agent.prompt(PROMPT, id="msg_4")  # it stands in the block of every request, compacted or not
    assert len(silent) == 1


def test_a_command_that_failed_before_is_told_of_behind_its_output(home, start, opencode, host: HookRunner, project):
    client = start()
    for _ in range(2):
        fail_and_work(Session(host, client, project))
    agent = opencode()
    agent.created("s9")
    failing = {"session": "s9", "command": "make unit", "output": f"{NO_RULE}\n", "exit": 2}
    assert agent.used("s9", call="call_0") == "hi\n"
    shown = agent.used(**failing, call="call_1")
    output, _, hint = shown.partition("\n\n")
    assert output == NO_RULE
    assert hint.startswith("[foreword, history] just now the same with `make unit` in the project's root: ")
    assert "`make test` worked in 2" in hint
    assert agent.used(**failing, call="call_2") == f"{NO_RULE}\n"  # once in a window
    # Another copy of the plugin finds it there, and tells nothing that was not a tool's.
    assert agent.used("s9", call="call_1", command="make unit", output=shown, exit=2) == shown
    agent.call("dispose", None)
    kept = [payload for payload in host.stored() if payload.get("input", {}).get("sessionID") == "s9"]
    assert [payload["input"]["callID"] for payload in kept] == ["call_0", "call_1", "call_2"]
    assert "[foreword, history]" not in json.dumps(kept)


def test_without_a_worker_no_tool_waits_for_the_hook(away: Home, opencode):
    agent = opencode(FOREWORD_DEADLINE_PROMPT_MS="60000")
    assert agent.used() == "hi\n"
    assert agent.last["ms"] < 10_000
    wait_for(lambda: len(spooled(away)) == 1)


def test_a_compaction_is_told_in_plain_text_within_half_the_budget(filled: Home, start, opencode, host: HookRunner):
    client = start()
    agent = opencode()
    agent.created()
    agent.system()
    (text,) = agent.compacting()
    assert text.startswith("[foreword] ")
    assert text.endswith("[end foreword]")
    assert "HTTPTransport" in text
    injection = list_injections(client)[0]
    assert (injection["trigger"], injection["form"], injection["budget"]) == ("compaction", "plain", 1000)


def test_two_copies_of_the_plugin_say_it_once(filled: Home, start, opencode):
    start()
    one, two = opencode(), opencode()
    one.created()
    blocks = one.system()
    assert two.system("s1", *blocks) == blocks
    one.created("s2")
    parts = one.prompt("is there a checkout <HTTPTransport>?", "s3")
    output = two.call("chat.message", {"sessionID": "s3"}, {"message": {"id": "m"}, "parts": parts})
    assert output["parts"] == parts


def test_nothing_is_added_where_nothing_is_known(home: Home, start, opencode):
    start()
    agent = opencode()
    agent.created()
    assert agent.system() == [MAIN]
    assert len(agent.prompt(PROMPT)) == 1
    assert agent.compacting() == []


# -- what it is switched off by ---------------------------------------------------------------------------------------


def test_switched_off_it_has_no_hooks(filled: Home, start, opencode, host: HookRunner):
    client = start()
    agent = opencode(FOREWORD_OFF="1")
    assert agent.system() == [MAIN]
    assert agent.last["hooks"] == []
    assert client.get("/api/health")["counts"]["events"] == 0


@pytest.mark.parametrize("setting", ["inject = false", "off_projects = ['PROJECT']"])
def test_settings_switch_it_off(filled: Home, start, opencode, project, setting):
    filled.config.write_text(setting.replace("PROJECT", project))
    client = start()
    agent = opencode()
    agent.created()
    assert agent.system() == [MAIN]
    assert len(agent.prompt(PROMPT)) == 1
    assert agent.compacting() == []
    assert bool(client.get("/api/health")["counts"]["events"]) is ("inject" in setting)


# -- what it tells ----------------------------------------------------------------------------------------------------


def test_what_happens_is_captured_in_order(filled: Home, start, opencode, host: HookRunner):
    client = start()
    agent = opencode()
    agent.created()
    agent.system()
    agent.prompt(PROMPT)
    agent.used()
    part = {"type": "tool", "tool": "read", "callID": "call_2", "sessionID": "s1", "state": {"status": "error"}}
    agent.event("message.part.updated", sessionID="s1", part=part)
    agent.event("message.part.updated", sessionID="s1", part=part)  # told twice
    agent.event("message.part.updated", sessionID="s1", part={**part, "state": {"status": "running"}})
    agent.call("experimental.text.complete", {"sessionID": "s1", "messageID": "m", "partID": "p"}, {"text": "done"})
    agent.event("message.updated", sessionID="s1", info={"id": "sum", "summary": True, "mode": "compaction"})
    agent.call("experimental.text.complete", {"sessionID": "s1", "messageID": "sum"}, {"text": "a summary"})
    agent.event("session.idle", sessionID="s1")
    agent.event("session.deleted", sessionID="s1", info={"id": "s1"})
    agent.call("dispose", None)
    names = [event.name for event in SqliteReading(filled).events("s1")]
    assert names == [
        "session.created",
        "chat.message",
        "tool.execute.after",
        "tool.execute.error",
        "experimental.text.complete",
        "session.idle",
        "session.deleted",
    ]
    assert client.get("/api/sessions/s1")["session"]["ended"] > 0


class SqliteReading:
    """The events of a session, as the database on the disk has them."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def events(self, session: str) -> Any:
        store = Store(self.home.database, backups=self.home.backups)
        try:
            return store.events.list(session, limit=100)
        finally:
            store.close()


def test_pictures_are_left_out(filled: Home, start, opencode, host: HookRunner):
    start()
    agent = opencode()
    agent.used(output="data:image/png;base64," + "A" * 5000)
    agent.call("dispose", None)
    assert "data:[left out]" in json.dumps(host.stored())


@pytest.mark.parametrize("worker", [True, False])
def test_values_of_secret_variables_are_never_written(away: Home, start, opencode, host: HookRunner, worker):
    if worker:
        start()
    agent = opencode(SHOP_TOKEN=SECRET, NOT_TELLING="plain-words-91-stay")
    agent.used(output=f"token={SECRET} plain-words-91-stay")
    agent.used(call="call_2", output=json.dumps({"it's": [SECRET]}))
    agent.prompt(f"why is {SECRET} refused?")
    agent.call("dispose", None)
    held = b"".join(path.read_bytes() for path in away.root.rglob("*") if path.is_file())
    assert SECRET.encode() not in held
    assert b"[redacted:env]" in held
    assert b"plain-words-91-stay" in held


ENVIRONMENTS = [
    {"A_TOKEN": "abc"},
    {"A_TOKEN": "12345678901234"},
    {"A_TOKEN": "wordwordword"},
    {"A_TOKEN": "wordwordwordwordwordword"},
    {"A_TOKEN": "word-word-word-word.x"},
    {"A_TOKEN": "abc123def456"},
    {"A_TOKEN": "abc123def45"},
    {"A_TOKEN": "/home/x/abc123def456"},
    {"A_TOKEN": "https://x.org/abc123def456"},
    {"A_TOKEN": "two words 123456"},
    {"A_TOKEN": " abc123def456 "},
    {"A_TOKEN": "ä1ö2ü3ß4é5"},
    {"MY_PASSWORD": "hunter22"},
    {"MY_PASSWORD": "p@ss-w_rd"},
    {"MY_PASSWORD": "+-*/+-*/"},
    {"DATABASE": "postgres://user:s3cr3t-x9@host/db"},
    {"DATABASE": "postgres://user@host/db"},
    {"DATABASE": "postgres://host/db:x@y"},
    {"SOME": "abc123def456"},
    {"API_KEY": "x" * 5000 + "1"},
    {"AUTH_DIR": "h/abc123def456", "HOME": "/h/abc123def456"},
]


def test_the_plugin_and_the_hook_hold_the_same_values_secret(tmp_path, monkeypatch):
    text = PLUGIN.read_text().replace("__SOCKET__", '""').replace("__HOOK__", '""')
    each = f"for (const each of {json.dumps(ENVIRONMENTS)}) {{ process.env = each; found.push(secretValues()) }}"
    (tmp_path / "p.mjs").write_text(f"{text}\nconst found = []; {each} console.log(JSON.stringify(found))")
    result = subprocess.run([str(NODE), str(tmp_path / "p.mjs")], capture_output=True, check=True)
    for environ, found in zip(ENVIRONMENTS, json.loads(result.stdout), strict=True):
        encoded = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
        monkeypatch.setattr(client.posix, "environ", encoded)
        assert found == [each.decode() for each in client.secret_values()], environ


# -- what it survives -------------------------------------------------------------------------------------------------


def spooled(home: Home) -> list[Any]:
    data = b""
    for path in home.spool.iterdir():
        with suppress(FileNotFoundError):  # a worker takes it meanwhile
            data += path.read_bytes()
    return [each for each in hook_calls(data) if not isinstance(each, bytes)]


def test_without_a_worker_the_hook_stands_in(away: Home, opencode, start, project):
    agent = opencode()
    agent.created()
    first = agent.system()
    assert "make test" in first[1]
    agent.used()
    agent.event("session.compacted", sessionID="s1")
    agent.call("dispose", None)
    wait_for(lambda: len(spooled(away)) >= 4)
    assert [each.event for each in spooled(away)] == [
        "session.created",
        "injection",
        "tool.execute.after",
        "session.compacted",
    ]
    assert len(agent.prompt(PROMPT)) == 1  # what stands in every request is not said again, compacted or not
    agent.leave()
    again = opencode()
    assert again.system() == first  # from the spool
    client = start()
    wait_for(lambda: list_injections(client))
    assert [each["text"] for each in list_injections(client)] == [first[1]]
    end_worker(away)
    later = opencode()
    remembered = later.system()
    assert remembered == first  # from the database
    assert noted(str(away.trouble)) == ()  # nobody there is no trouble


@contextmanager
def listening(home: Home, answer: bytes) -> Iterator[None]:
    """Something on the worker's socket that answers everything so."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(home.socket))
    server.listen(16)

    def serve() -> None:
        while True:
            try:
                line, _ = server.accept()
            except OSError:
                return
            with line:
                line.recv(1 << 16)
                line.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield
    finally:
        server.close()
        home.socket.unlink(missing_ok=True)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"garbage\r\n\r\n",
        b"HTTP/1.1 500 Error\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{oops",
        b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nnot json ...",
    ],
)
def test_a_worker_that_talks_nonsense_counts_as_away_and_is_told_once(away: Home, opencode, answer):
    with listening(away, answer):
        agent = opencode()
        agent.created()
        assert "make test" in agent.system()[1]
        agent.used()
        agent.call("dispose", None)
    wait_for(lambda: len(spooled(away)) >= 3)
    assert [each.event for each in spooled(away)] == ["session.created", "injection", "tool.execute.after"]
    assert noted(str(away.trouble)) != ()


def test_a_hung_worker_counts_as_away(away: Home, host: HookRunner, start, opencode):
    start()
    host.write_hook()
    pid = lifecycle.pid_of(away)
    suspend(pid)
    try:
        agent = opencode(FOREWORD_DEADLINE_PROMPT_MS="500", FOREWORD_DEADLINE_START_MS="8000")
        agent.created()
        assert "make test" in agent.system()[1]
        agent.used()
        agent.call("dispose", None)
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: any("late" in trouble.what for trouble in noted(str(away.trouble))))


def test_what_the_hook_gave_for_a_late_worker_is_the_same_call(away: Home, host: HookRunner, start, opencode, project):
    client = start()
    host.write_hook()
    pid = lifecycle.pid_of(away)
    suspend(pid)
    try:
        agent = opencode(FOREWORD_DEADLINE_START_MS="8000")
        agent.created()
        block = agent.system()[1]
        agent.call("dispose", None)
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: list_injections(client))
    (injection,) = list_injections(client)
    assert injection["text"] == block


def test_the_end_of_opencode_loses_nothing_that_waited(away: Home, opencode):
    agent = opencode(FOREWORD_DEADLINE_PROMPT_MS="60000")
    with listening_silently(away):
        for number in range(3):
            agent.used(call=f"call_{number}", tool="read")
        agent.leave()
    names = [json.loads(each.raw)["input"]["callID"] for each in spooled(away)]
    assert names  # as many as are begun within a second, which on a busy machine may be one
    assert names == ["call_0", "call_1", "call_2"][: len(names)]


@contextmanager
def listening_silently(home: Home) -> Iterator[None]:
    """Something on the worker's socket that never answers."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(home.socket))
    server.listen(64)
    try:
        yield
    finally:
        server.close()
        home.socket.unlink(missing_ok=True)


def test_whatever_it_is_given_it_never_throws(away: Home, opencode):
    agent = opencode()
    for hook in ("chat.message", "experimental.chat.system.transform", "tool.execute.after", "event"):
        for hook_input in ({}, {"sessionID": 7}, {"sessionID": "s1", "event": None}, None):
            for output in ({}, {"parts": [], "message": {}}, {"system": []}, {"system": [7]}, None):
                agent.call(hook, hook_input, output)


def test_without_hook_and_worker_opencode_goes_on(filled: Home, opencode):
    agent = opencode()
    agent.created()
    assert agent.system() == [MAIN]
    assert len(agent.prompt(PROMPT)) == 1
    agent.used()
