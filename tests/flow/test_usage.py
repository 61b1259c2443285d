"""Usage with a real worker: told by what a session did, once, whoever was away meanwhile; credited to who follows."""

from __future__ import annotations

import json
import random
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest
from typer.testing import CliRunner

from foreword.cli.main import app
from foreword.models import Memory
from foreword.paths import Home
from foreword.projects import resolve
from foreword.store import Store
from foreword.worker.client import Client
from tests.flow.conftest import HookRunner, add_files, end_worker, wait_for

PROMPT = "why does the checkout transport time out for guests?"
NAMES = ("used", "ignored", "rule", "worded")


@pytest.fixture
def ids(home: Home, project: str) -> dict[str, str]:
    """A store with four memories about one thing; closed."""
    add_files(project, "shop/bank.py", "shop/mail.py")
    store = Store(home.database, backups=home.backups)
    owner = resolve(project)
    about: dict[str, Any] = {"project": owner.key, "scope": owner.scope, "created": time.time() - 60}
    kept = store.memories.put(
        [
            Memory("failure", "Checkout transport timed out for guests", files=("shop/bank.py",), **about),
            Memory("failure", "Guests saw the checkout transport time out", files=("shop/mail.py",), **about),
            Memory("preference", "Checkout transport of guests is tested with `make sandbox-bank`", **about),
            Memory(
                "decision",
                "Guests share one checkout transport: pooling sockets exhausted the acquirer's quota",
                **about,
            ),
        ]
    )
    store.close()
    return dict(zip(NAMES, (each.id for each in kept), strict=True))


class Agent:
    """A session of Claude Code: what its hooks are told, in their order."""

    def __init__(self, host: HookRunner, project: str, *, session: str = "s1") -> None:
        self.host, self.project, self.session = host, project, session
        self.turn = 0

    def tell(self, event: str, **more: Any) -> str:
        self.turn += 1
        payload = {"session_id": self.session, "cwd": self.project, "hook_event_name": event, **more}
        return self.host.context(event, payload)

    def asks(self, prompt: str = PROMPT) -> str:
        return self.tell("UserPromptSubmit", prompt=prompt, prompt_id=f"p{self.turn}")

    def reads(self, file: str) -> None:
        self.tell(
            "PostToolUse",
            tool_name="Read",
            tool_use_id=f"t{self.turn}",
            tool_input={"file_path": f"{self.project}/{file}"},
            tool_response={"type": "text", "file": {"content": "pass"}},
        )

    def answers(self, text: str = "Done.") -> None:
        self.tell("Stop", last_assistant_message=text)

    def ends(self) -> None:
        self.tell("SessionEnd", reason="exit")


@pytest.fixture
def agent(host: HookRunner, project: str) -> Agent:
    return Agent(host, project)


def usage(client: Client, ids: dict[str, str], *, session: str = "s1") -> dict[str, tuple[Any, str]]:
    names = {id: name for name, id in ids.items()}
    found = client.get("/api/injections", session_id=session)["injections"]
    return {names[item["memory"]]: (item["used"], item["how"]) for each in found for item in each["items"]}


def counts(client: Client, ids: dict[str, str]) -> dict[str, tuple[int, int]]:
    got = {name: client.get(f"/api/memories/{id}", full=1)["memory"] for name, id in ids.items()}
    return {name: (memory["used"], memory["ignored"]) for name, memory in got.items()}


EXPECTED = {"used": (True, "file"), "ignored": (False, ""), "rule": (None, "untold"), "worded": (True, "words")}
ANSWER = "In December the acquirer blocked us: too many sockets were pooled, and the quota was gone."


def test_what_a_session_did_tells_what_it_used_and_what_it_did_not(ids, agent, start, home, project, monkeypatch):
    client = start()
    shown = agent.asks()
    assert all(id in shown for id in ids.values())
    assert set(usage(client, ids).values()) == {(None, "")}
    agent.reads("shop/bank.py")
    agent.answers(ANSWER)
    wait_for(lambda: usage(client, ids)["used"] == (True, "file"))
    assert usage(client, ids) == {
        "used": (True, "file"),
        "worded": (True, "words"),
        "ignored": (None, ""),
        "rule": (None, ""),
    }
    agent.ends()
    wait_for(lambda: usage(client, ids) == EXPECTED)
    assert counts(client, ids) == {"used": (1, 0), "ignored": (0, 1), "rule": (0, 0), "worded": (1, 0)}

    about = client.get(f"/api/memories/{ids['used']}", full=1)
    assert about["use"] == {"shown": 1, "used": 1, "ignored": 0, "memories": 1}
    assert (about["shown"][0]["used"], about["shown"][0]["how"]) == (True, "file")
    assert about["why"]["reinforcement"] > 1

    monkeypatch.chdir(project)

    def says(*words: str) -> str:
        ended = CliRunner().invoke(app, list(words))
        assert ended.exit_code == 0, ended.output
        return ended.output

    explained = says("explain")
    for line in ("used: a file of it was read or edited", "not used", "cannot tell whether it was used", "other words"):
        assert line in explained
    assert "shown 1x: used 0x, not used 1x, unknown 0x" in says("explain", ids["ignored"])


def test_the_used_one_comes_before_an_equal_one_that_was_ignored(ids, agent, host, start, project):
    client = start()
    before = [each["id"] for each in client.get("/api/search", q=PROMPT, project_path=project)["results"]]
    agent.asks()
    agent.reads("shop/mail.py" if before.index(ids["used"]) < before.index(ids["ignored"]) else "shop/bank.py")
    agent.answers()
    agent.ends()
    wait_for(lambda: {used for used, _ in usage(client, ids).values()} >= {True, False})
    after = [each["id"] for each in client.get("/api/search", q=PROMPT, project_path=project)["results"]]
    pair = {ids["used"], ids["ignored"]}
    assert [id for id in after if id in pair] == [id for id in before if id in pair][::-1]
    shown = Agent(host, project, session="s2").asks()
    assert sorted(pair, key=shown.index) == [id for id in after if id in pair]


def test_a_worker_that_dies_in_the_middle_costs_no_verdict_and_counts_nothing_twice(ids, agent, start, home):
    start()
    agent.asks()
    agent.reads("shop/bank.py")
    agent.answers()
    end_worker(home)
    client = start()
    client.get("/api/sessions/s1")  # whoever asks for a session does not wait until it fell silent
    wait_for(lambda: usage(client, ids)["used"] == (True, "file"))
    end_worker(home)
    client = start()
    agent.answers(ANSWER)
    agent.ends()
    wait_for(lambda: usage(client, ids) == EXPECTED)
    end_worker(home)
    client = start()
    agent.tell("SessionStart", source="resume")
    agent.answers("And on it goes.")
    wait_for(lambda: client.get("/api/sessions/s1")["session"]["events"] >= 7)
    assert counts(client, ids) == {"used": (1, 0), "ignored": (0, 1), "rule": (0, 0), "worded": (1, 0)}


def test_what_a_hook_gave_itself_is_judged_when_the_spool_was_taken_in(ids, agent, host, start):
    host.write_hook()
    shown = agent.asks()
    assert all(id in shown for id in ids.values())
    agent.reads("shop/bank.py")
    agent.answers(ANSWER)
    agent.ends()
    client = start()
    wait_for(lambda: usage(client, ids) == EXPECTED)
    assert client.get("/api/injections", session_id="s1")["injections"][0]["away"] is True
    assert counts(client, ids) == {"used": (1, 0), "ignored": (0, 1), "rule": (0, 0), "worded": (1, 0)}


def test_a_hook_without_worker_ranks_by_use_too(ids, agent, host, start, home, project):
    client = start()
    agent.asks()
    agent.reads("shop/mail.py")
    agent.answers()
    agent.ends()
    wait_for(lambda: counts(client, ids)["ignored"] == (1, 0))
    with_worker = Agent(host, project, session="s2").asks()
    end_worker(home)
    host.write_hook()
    alone = Agent(host, project, session="s3").asks()
    pair = {ids["used"], ids["ignored"]}
    assert sorted(pair, key=alone.index) == sorted(pair, key=with_worker.index) == [ids["ignored"], ids["used"]]


# ---- an agent that follows a note is credited, one that works on something else is not

CASES = 24  # of each sort
SHOWN = 18  # at least; the session start says up to five in full, and these do not come again with the prompt
CREDITED = 0.8


@dataclass(frozen=True)
class Case:
    """A note, a prompt that brings it up, and what an agent does that follows it."""

    memory: Memory
    prompt: str
    follow: Callable[[Scripted, str], None]  # with the memory's id
    attempt: str = ""  # a command that brings a hint


class Scripted:
    """A session whose events go straight to the worker, as a hook would hand them over."""

    def __init__(self, client: Client, project: str, session: str) -> None:
        self.client, self.project, self.session, self.turn = client, project, session, 0

    def tell(self, event: str, **more: Any) -> str:
        self.turn += 1
        payload = {"session_id": self.session, "cwd": self.project, "hook_event_name": event, **more}
        query = urlencode({"host": "claude-code", "event": event, "at": time.time()})
        status, answer = self.client.send("POST", f"/api/hook?{query}", json.dumps(payload).encode())
        assert status == 200, answer
        return answer.decode()

    def read(self, file: str) -> None:
        path = {"file_path": f"{self.project}/{file}"}
        self._used("Read", path, {"type": "text", "file": {"content": "pass"}})

    def run(self, command: str, output: str = "ok") -> None:
        self._used("Bash", {"command": command}, {"stdout": output, "stderr": "", "interrupted": False})

    def stop(self, text: str) -> None:
        self.tell("Stop", last_assistant_message=text)

    def _used(self, tool: str, tool_input: dict[str, str], response: dict[str, Any]) -> None:
        id = f"t{self.turn}"
        self.tell("PostToolUse", tool_name=tool, tool_use_id=id, tool_input=tool_input, tool_response=response)


def made_up_words(seed: int) -> list[str]:
    """Return words that nobody else uses."""
    chosen = random.Random(seed)
    return ["".join(chosen.choice("bdfgklmnprtv") + chosen.choice("aiou") for _ in range(4)) for _ in range(6)]


def case_of(sort: str, number: int, about: dict[str, Any]) -> Case:
    """Return one generated case of a sort."""
    one, two, three, four, five, six = made_up_words(hash_of(sort, number))
    prompt = f"why does the {one} of the {two} overflow?"
    title = f"The {one} of the {two} overflows when the {three} {four} was not {five}"
    if sort == "file":
        memory = Memory("learning", title, files=(f"src/{five}/{six}.py",), trust="user", **about)
        return Case(memory, prompt, lambda agent, _: agent.read(f"src/{five}/{six}.py"))
    if sort == "command":
        memory = Memory("learning", f"{title}; `./tools/{six}.sh --{five}` sets it right", trust="user", **about)
        return Case(memory, prompt, lambda agent, _: agent.run(f"./tools/{six}.sh --{five} --loud 2>&1 | tail -3"))
    if sort == "words":
        memory = Memory("learning", title, trust="user", **about)
        return Case(memory, prompt, lambda agent, _: agent.stop(f"Before a {three} is {five}, its {four} has to be."))
    if sort == "fetch":
        memory = Memory("learning", title, trust="user", **about)
        return Case(memory, prompt, lambda agent, id: agent.run(f"foreword show {id}"))
    command, instead = f"yarn {one}", f"yarn check:{one}"
    detail = {
        "command": command,
        "text": command,
        "error": f"Couldn't find a script named {one}",
        "cause": "usage",
        "worked": {instead: ["e1", "e2"]},
        "used_in": {},
        "seen_in": {"e1": 1, "e2": 1},
        "last": time.time() - 90_000,
    }
    memory = Memory("failure", f"`{command}` fails", detail=detail, session="e1", **about)
    return Case(memory, "is everything fine?", lambda agent, _: agent.run(instead), attempt=command)


def hash_of(sort: str, number: int) -> int:
    return zlib.crc32(f"{sort} {number}".encode())


def play(client: Client, project: str, case: Case, id: str, *, follows: bool) -> tuple[bool | None, str] | None:
    """Play one session and return what is said of the memory; None where it was not shown."""
    agent = Scripted(client, project, f"{id}-{follows}")
    agent.tell("SessionStart", source="startup")
    shown = agent.tell("UserPromptSubmit", prompt=case.prompt, prompt_id="p1")
    if case.attempt:
        shown = agent.tell("PreToolUse", tool_name="Bash", tool_use_id="t0", tool_input={"command": case.attempt})
    if id not in shown:
        return None
    agent.read("src/other.py")
    if follows:
        case.follow(agent, id)
    agent.stop("Done.")
    agent.tell("SessionEnd", reason="exit")

    def found() -> list[tuple[bool | None, str]]:
        injections = client.get("/api/injections", session_id=agent.session)["injections"]
        items = [item for each in injections if each["trigger"] != "session_start" for item in each["items"]]
        return [(item["used"], item["how"]) for item in items if item["memory"] == id]

    wait_for(lambda: (None, "") not in found())
    (usage,) = found()
    return usage


SORTS = {"file": "file", "command": "command", "hint": "command", "words": "words", "fetch": "fetched"}


def test_an_agent_that_follows_a_note_is_credited_and_one_that_does_not_is_not(home, project, start):
    owner = resolve(project)
    about: dict[str, Any] = {"project": owner.key, "scope": owner.scope, "created": time.time() - 90_000}
    cases = {sort: [case_of(sort, number, about) for number in range(CASES)] for sort in SORTS}
    add_files(project, *(file for some in cases.values() for case in some for file in case.memory.files))
    store = Store(home.database, backups=home.backups)
    ids = {
        sort: [each.id for each in store.memories.put([case.memory for case in some])] for sort, some in cases.items()
    }
    store.close()
    client = start()
    for sort, how in SORTS.items():
        pairs = list(zip(cases[sort], ids[sort], strict=True))
        bystanders = [play(client, project, case, id, follows=False) for case, id in pairs]
        assert not any(each and each[0] for each in bystanders), (sort, bystanders)
        if sort in {"file", "command", "hint"}:  # silence about a note that names nothing to open or run says nothing
            assert bystanders.count((False, "")) >= SHOWN, (sort, bystanders)
        followers = [play(client, project, case, id, follows=True) for case, id in pairs]
        shown = [each for each in followers if each is not None]
        assert len(shown) >= SHOWN, (sort, len(shown))
        assert shown.count((True, how)) >= CREDITED * len(shown), (sort, shown)
