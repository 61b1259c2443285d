"""A real worker with its viewer open: the sessions of a project day by day, and the whole story of each."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from foreword.worker.client import Client
from tests.flow.conftest import wait_for
from tests.flow.viewing import Page

clock = itertools.count()  # of all tests: what is told later happened later
Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def client(start) -> Client:
    return start()


@pytest.fixture
def ask(client: Client) -> Ask:
    """Asks as the page's scripts do: `ask(path, status=404, name=value)`."""
    return Page(client).ask


def tell(client: Client, project: str, session: str, *events: tuple[str, dict[str, Any]]) -> None:
    client.post(
        "/api/events",
        {
            "events": [
                {
                    "host": "claude-code",
                    "event": name,
                    "at": time.time() - 1000 + next(clock),
                    "payload": {"session_id": session, "cwd": project, "hook_event_name": name, **payload},
                }
                for name, payload in events
            ]
        },
    )


def run(id: str, command: str, *, error: str = "", output: str = "") -> tuple[str, dict[str, Any]]:
    answer = {"tool_name": "Bash", "tool_use_id": id, "tool_input": {"command": command}}
    if error:
        return "PostToolUseFailure", {**answer, "error": error}
    return "PostToolUse", {**answer, "tool_response": {"stdout": output, "stderr": ""}}


def work(project: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    error = "Exit code 1\nmail.py:2: KeyError\nE   KeyError: 'sender'\nFAILED tests/test_mail.py::test_offer - KeyError"
    write = {"file_path": f"{project}/mail.py", "content": "def send_offer(guest):\n    return guest\n"}
    return (
        ("SessionStart", {"source": "startup"}),
        ("UserPromptSubmit", {"prompt": "make the waiting list send its offers by mail", "prompt_id": "p1"}),
        ("PostToolUse", {"tool_name": "TodoWrite", "tool_use_id": "t1", "tool_response": {}, "tool_input": {"todos": [
            {"content": "Verify the sender's domain", "status": "pending"}]}}),
        run("t2", "pytest -q", error=error),
        ("PostToolUse", {"tool_name": "Write", "tool_use_id": "t3", "tool_input": write, "tool_response": {
            "type": "create", "filePath": write["file_path"], "content": write["content"], "structuredPatch": []}}),
        run("t4", "pytest -q", output="1 passed"),
        ("UserPromptSubmit", {"prompt": "Let's use UTC because venues lie in two zones", "prompt_id": "p2"}),
        ("Stop", {"last_assistant_message": "Offers go through the queue now, and mail.py sends them each full hour."}),
        ("SessionEnd", {"reason": "exit"}),
    )  # fmt: skip


def distilled(client: Client, session: str) -> None:
    def done() -> bool:
        answer = client.get(f"/api/sessions/{session}")["session"]
        return bool(answer["events"]) and answer["extracted"] == answer["newest"]

    wait_for(done)


def test_a_session_stands_in_the_timeline_with_all_that_came_of_it(client, ask, project):
    tell(client, project, "one", *work(project))
    distilled(client, "one")
    (answer,) = ask("/api/timeline")["sessions"]
    assert (answer["id"], answer["host"], answer["project_name"]) == ("one", "claude-code", "shop")
    assert answer["title"] == "Make the waiting list send its offers by mail"
    assert not answer["running"]
    assert [(each["file"], each["function"], each["what"]) for each in answer["changed"]] == [
        ("mail.py", "send_offer", "NEW")
    ]
    (failure,) = answer["failures"]
    assert failure["title"] == "`pytest` fails: KeyError: 'sender'"
    assert "mail.py" in failure["fix"]
    assert not failure["open"]
    assert [each["title"] for each in answer["decisions"]] == ["Let's use UTC because venues lie in two zones"]
    assert answer["next"] == ["Verify the sender's domain", "Change not committed: mail.py"]
    assert answer["work"] == ""
    assert set(answer["injected"]) == {"shown", "used", "ignored", "memories", "tokens"}


def test_older_sessions_follow_page_by_page_and_a_project_shows_its_own_alone(client, ask, project, tmp_path):
    other = tmp_path / "harbour"
    other.mkdir()
    for number in range(5):
        at = str(other) if number % 2 else project
        tell(
            client, at, f"s{number}", ("UserPromptSubmit", {"prompt": f"question {number}", "prompt_id": f"p{number}"})
        )
    first = ask("/api/timeline", limit=2)
    second = ask("/api/timeline", limit=2, before=first["next"])
    third = ask("/api/timeline", limit=2, before=second["next"])
    found = [each["id"] for page in (first, second, third) for each in page["sessions"]]
    assert found == ["s4", "s3", "s2", "s1", "s0"]
    assert third["next"] == ""
    key = first["sessions"][0]["project"]
    assert [each["id"] for each in ask("/api/timeline", project=key)["sessions"]] == ["s4", "s2", "s0"]


def test_what_makes_no_place_in_the_list_is_refused_with_the_way_out(ask):
    for before in ("yesterday", "nan/a", "-1/a"):
        assert "earlier answer" in ask("/api/timeline", before=before, status=400)["hint"]
    assert ask("/api/timeline", project="nobody's") | {"ms": 0} == {"sessions": [], "next": "", "ms": 0}


def test_a_story_tells_in_order_what_was_said_given_run_changed_and_decided(client, ask, project):
    client.post("/api/memories", {"kind": "preference", "title": "offers are sent by mail", "project_path": project})
    client.get("/api/context", project_path=project, session_id="one", source="startup")
    tell(client, project, "one", *work(project))
    distilled(client, "one")
    answer = ask("/api/sessions/one")
    triggers = [each for each in answer["steps"] if each["what"] != "injected"]
    assert [each["what"] for each in triggers] == [
        "start", "prompt", "run", "failure", "edit", "run", "prompt", "kept", "answer", "kept", "kept", "end",
    ]  # fmt: skip
    assert [each["at"] for each in answer["steps"]] == sorted(each["at"] for each in answer["steps"])
    assert [each["memory"]["kind"] for each in triggers if each["what"] == "kept"] == [
        "decision",
        "learning",
        "handoff",
    ]
    _, request, failed, failure, edit, passed, *_rest = triggers
    assert request["text"] == "make the waiting list send its offers by mail"
    assert (failed["command"], failed["failed"], passed["failed"]) == ("pytest -q", True, False)
    assert "KeyError" in failed["output"]
    assert (failure["memory"]["open"], "mail.py" in failure["memory"]["fix"]) == (False, True)
    assert edit["files"] == ["mail.py"]
    assert answer["session"]["changed"][0] | {"signature": ""} == {
        "file": "mail.py", "function": "send_offer", "what": "NEW", "signature": ""
    }  # fmt: skip
    (injected,) = (each for each in answer["steps"] if each["what"] == "injected")
    assert (injected["memories"], injected["trigger"]) == (1, "session_start")
    assert answer["session"]["next"][0] == "Verify the sender's domain"
    assert [each["title"] for each in answer["session"]["decisions"]] == [
        "Let's use UTC because venues lie in two zones"
    ]
    second = next(each for each in triggers if each["what"] == "prompt" and each["text"].startswith("Let's"))
    assert (second["author"], bool(second["author_why"])) == ("typed", True)
    assert second["outcome"].startswith("Offers go through the queue now")
    assert second["turn"].startswith("trn-")
    assert (answer["left_out"], answer["without_events"]) == (0, False)


def test_a_story_is_found_by_the_beginning_of_its_id_and_an_unknown_one_tells_the_way_out(client, ask, project):
    tell(client, project, "abcdef-1", *work(project))
    assert ask("/api/sessions/abcd")["session"]["id"] == "abcdef-1"
    assert "foreword sessions" in ask("/api/sessions/nobody", status=404)["hint"]
    assert ask(f"/api/sessions/{quote('no/body')}", status=404)["hint"]
    assert ask("/api/sessions/", status=404)["hint"]


def test_of_a_very_long_session_the_last_moments_are_told_and_texts_are_cut(client, ask, project):
    steps = [("UserPromptSubmit", {"prompt": f"step {number}", "prompt_id": f"p{number}"}) for number in range(600)]
    tell(client, project, "long", *steps)
    tell(client, project, "long", ("UserPromptSubmit", {"prompt": "the last " + "x" * 5_000, "prompt_id": "last"}))
    answer = ask("/api/sessions/long")
    assert len(answer["steps"]) == 500
    assert answer["left_out"] == 101
    assert answer["steps"][-1]["text"].startswith("the last ")
    assert answer["steps"][-1]["more"] > 3_000
    assert len(json.dumps(answer)) < 1_000_000


def broke(id: str) -> tuple[str, dict[str, Any]]:
    return run(
        id,
        "pytest -q",
        error="Exit code 1\nmail.py:2: KeyError\nE   KeyError: 'sender'\nFAILED tests/test_mail.py::t - KeyError",
    )


def test_every_session_tells_a_failure_that_several_saw_and_whether_it_is_fixed(client, ask, project):
    mend = {"file_path": f"{project}/mail.py", "content": "def send_offer(guest):\n    return guest\n"}
    done = {"type": "create", "filePath": mend["file_path"], "content": mend["content"], "structuredPatch": []}
    edited = {"tool_name": "Write", "tool_use_id": "e", "tool_input": mend, "tool_response": done}
    request = ("UserPromptSubmit", {"prompt": "send the offers of the waiting list by mail", "prompt_id": "p"})
    sessions = {
        "first": (request, broke("a"), broke("b"), ("SessionEnd", {"reason": "exit"})),
        "fixer": (request, broke("c"), ("PostToolUse", edited), run("d", "pytest -q", output="1 passed")),
        "again": (request, broke("e"), ("SessionEnd", {"reason": "exit"})),
    }
    for id in ("first", "fixer"):
        tell(client, project, id, *sessions[id])
        distilled(client, id)
    answer = {each["id"]: each["failures"][0] for each in ask("/api/timeline")["sessions"]}
    assert answer["first"] == answer["fixer"]
    assert (answer["first"]["seen"], answer["first"]["open"]) == (3, False)
    assert "mail.py" in answer["first"]["fix"]

    tell(client, project, "again", *sessions["again"])
    distilled(client, "again")
    assert [each["failures"][0]["open"] for each in ask("/api/timeline")["sessions"]] == [True, True, True]
