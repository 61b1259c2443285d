"""A real worker, real hooks and the viewer's own door: what a session was given is told as it happens."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from foreword.models import Memory
from foreword.paths import Home
from foreword.projects import resolve
from foreword.store import Store
from foreword.worker.client import Client
from tests.flow.conftest import HookRunner, add_files, wait_for
from tests.flow.viewing import Page
from tests.scratch import asking, fact

PROMPT = "why does the checkout transport retry a timeout twice?"
KNOWN = "The checkout HTTPTransport retries every timeout twice, then it asks the second bank"
DECIDED = fact("otter")
FACTORS = {"match", "recency", "importance", "reinforcement", "scope", "task"}


class Listening:
    """One open stream; its events as they come."""

    def __init__(self, page: Page) -> None:
        self.line = socket.create_connection((page.at.hostname, page.at.port), timeout=20)
        head = "".join(f"{name}: {text}\r\n" for name, text in {"Host": page.at.netloc, **page.fields}.items())
        self.line.sendall(f"GET /api/changes HTTP/1.1\r\n{head}\r\n".encode())
        self.stream = self.line.makefile("rb")
        self.status = int(self.stream.readline().split()[1])
        while self.stream.readline().strip():
            pass

    def event(self) -> tuple[str, dict[str, Any]] | None:
        """The next event; None where the stream has ended."""
        name, data = "", {}
        for raw in self.stream:
            text = raw.decode().strip()
            if text.startswith("event: "):
                name = text.removeprefix("event: ")
            elif text.startswith("data: "):
                data = json.loads(text.removeprefix("data: "))
            elif not text and name:
                return name, data
        return None

    def close(self) -> None:
        self.stream.close()
        self.line.close()


@pytest.fixture
def filled(home: Home, project: str) -> Home:
    """A store that knows something for a start and for a prompt; closed."""
    add_files(project, "shop/bank.py")
    store = Store(home.database, backups=home.backups)
    owner = resolve(project)
    about: dict[str, Any] = {"project": owner.key, "scope": owner.scope, "created": time.time() - 60}
    store.memories.put(
        [
            Memory(
                "decision",
                KNOWN,
                files=("shop/bank.py",),
                trust="user",
                **about,
            ),
            Memory("preference", "Run the tests with make test", trust="user", **about),
        ]
    )
    store.close()
    return home


@pytest.fixture
def page(filled: Home, start: Callable[[], Client]) -> Iterator[Page]:
    opened = Page(start())
    yield opened
    opened.server.close("the test ended")


def asks(host: HookRunner, project: str, prompt: str, *, session: str = "s1") -> str:
    return host.context("UserPromptSubmit", {"session_id": session, "cwd": project, "prompt": prompt})


def starts(host: HookRunner, project: str, *, session: str = "s1", source: str = "startup") -> str:
    return host.context("SessionStart", {"session_id": session, "cwd": project, "source": source})


# -- live -------------------------------------------------------------------------------------------------------------


def test_a_hooks_prompt_makes_a_line_arrive_and_then_what_it_was_given_is_there(page, host, project):
    listening = Listening(page)
    assert listening.status == 200
    name, ready = listening.event()
    assert name == "ready"
    seen = asks(host, project, PROMPT)
    assert seen
    before = ready["number"]
    while True:
        name, answer = listening.event()
        assert (name, answer["number"] != before) == ("changed", True)
        before = answer["number"]
        triggers = page.get("/api/live")["triggers"]
        if triggers and triggers[0]["tokens"]:  # the event may come first, what it was given a moment later
            break
    assert triggers[0]["text"] == seen
    listening.close()


# -- now --------------------------------------------------------------------------------------------------------------


def test_a_session_is_told_with_everything_it_was_given_as_the_agent_saw_it(page, host, project):
    began = starts(host, project)
    assert asks(host, project, "is there tea in the kitchen of the office?") == ""  # nobody knows
    page.client.post("/api/memories", {"kind": "decision", "title": DECIDED, "project_path": project})
    request = asks(host, project, asking("otter"))
    answer = page.get("/api/live")
    session, (prompt, _, start) = answer["session"], answer["triggers"]
    assert (session["id"], session["host"], session["running"]) == ("s1", "claude-code", True)
    assert (session["project_name"], session["title"]) == (
        Path(project).name,
        "is there tea in the kitchen of the office?",
    )
    assert (start["text"], prompt["text"]) == (began, request)
    assert (start["trigger"], prompt["trigger"], prompt["prompt"]) == ("session_start", "prompt", asking("otter"))
    assert 0 < prompt["tokens"] <= prompt["budget"] == 500
    assert {"otter", "cellar"} <= set(prompt["terms"])
    (item,) = prompt["items"]
    assert (item["title"], item["kind"]) == (DECIDED, "decision")
    assert set(item["why"]) == FACTORS
    assert (item["used"], item["status"]) == (None, "active")
    assert set(start["skipped"].values()) <= {"empty", "does not fit"}
    assert session["totals"]["tokens"] == start["tokens"] + prompt["tokens"]
    assert session["totals"]["unjudged"] == len(start["items"]) + 1
    spent = {each["trigger"]: (each["spent"], each["of"]) for each in session["window"]}
    assert spent["prompt"] == (prompt["tokens"], 3000)
    assert spent["session_start"] == (start["tokens"], 2000)


def test_what_is_silent_says_why_and_what_was_among_it(page, host, project, filled):
    assert starts(host, project)
    assert asks(host, project, PROMPT)
    assert asks(host, project, "so the checkout transport retries a timeout twice, at the second bank?") == ""
    assert starts(host, project, source="resume") == ""
    assert asks(host, project, "paint the ferry, its second bank of oars and the harbour lantern") == ""
    near, resumed, answer, _, start = page.get("/api/live")["triggers"]
    assert (start["tokens"] > 0, answer["why"]) == (True, "repeated")
    assert answer["says"] == "everything that fits was shown already in this context window"
    assert answer["title"] == KNOWN
    assert (resumed["source"], resumed["why"]) == ("resume", "repeated")
    assert near["why"] == "below"
    (left,) = near["rejected"]
    assert left["title"] == KNOWN
    assert left["why"]
    filled.config.write_text("inject = false\n")
    wait_for(lambda: page.get("/api/live")["session"]["off"] == "inject")
    assert asks(host, project, "and the wombats?") == ""
    assert page.get("/api/live")["session"]["off"] == "inject"


def test_the_newest_session_is_shown_and_others_can_be_switched_to(page, host, project, tmp_path):
    other = tmp_path / "bars"
    other.mkdir()
    (other / "pyproject.toml").write_text("")
    asks(host, project, PROMPT, session="first")
    host.tell("UserPromptSubmit", {"session_id": "second", "cwd": str(other), "prompt": "count the bars again"})
    answer = page.get("/api/live")
    assert (answer["session"]["id"], answer["live"]) == ("second", "second")
    assert [(each["id"], each["title"]) for each in answer["sessions"]] == [
        ("second", "count the bars again"),
        ("first", PROMPT),
    ]
    past = page.get("/api/live", session="first")
    assert (past["session"]["id"], past["live"]) == ("first", "second")
    assert past["triggers"][0]["prompt"] == PROMPT
    page.ask("/api/live", session="nobody", status=404)


def test_what_is_used_is_told_with_how_it_was_known(page, host, project):
    asks(host, project, PROMPT)
    about = {"session_id": "s1", "cwd": project}
    read = {"tool_input": {"file_path": f"{project}/shop/bank.py"}, "tool_response": {"file": {"content": "pass"}}}
    host.tell("PostToolUse", {**about, "tool_name": "Read", "tool_use_id": "t1", **read})
    host.tell("Stop", {**about, "last_assistant_message": "Done."})
    host.tell("SessionEnd", {**about, "reason": "exit"})
    wait_for(lambda: page.get("/api/live")["session"]["totals"]["used"])
    answer = page.get("/api/live")
    (item,) = answer["triggers"][0]["items"]
    assert (item["used"], item["how"]) == (True, "file")
    assert answer["session"]["running"] is False
