"""A real worker: what hooks told becomes memory by itself, once, and the next session begins with it."""

from __future__ import annotations

import itertools
import time

import pytest

from foreword.errors import NotFound
from foreword.worker.client import Client
from tests.flow.conftest import until


@pytest.fixture
def client(start) -> Client:
    return start()


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "rooms"
    folder.mkdir()
    return folder


clock = itertools.count()  # of all tests: what is told later happened later


def tell(client: Client, project, session: str, *events: tuple[str, dict]) -> None:
    client.post(
        "/api/events",
        {
            "events": [
                {
                    "host": "claude-code",
                    "event": name,
                    "at": time.time() - 1000 + next(clock),
                    "payload": {"session_id": session, "cwd": str(project), "hook_event_name": name, **payload},
                }
                for name, payload in events
            ]
        },
    )


def worked(client: Client, session: str) -> dict:
    """The session's story once it is distilled to its last event."""
    for _ in until(20):
        story = client.get(f"/api/sessions/{session}")
        if story["session"]["extracted"] == story["session"]["newest"]:
            return story
    raise AssertionError("it was not distilled")


WORK = (
    ("SessionStart", {"source": "startup"}),
    ("UserPromptSubmit", {"prompt": "make the waiting list send its offers by mail", "prompt_id": "p1"}),
    ("PostToolUse", {"tool_name": "TodoWrite", "tool_use_id": "t1", "tool_response": {}, "tool_input": {"todos": [
        {"content": "Verify the sender's domain", "status": "pending"}]}}),
    ("PostToolUseFailure", {"tool_name": "Bash", "tool_use_id": "t2", "tool_input": {"command": "pytest -q"},
                            "error": "Exit code 1\nE   KeyError: 'sender'\nFAILED tests/test_mail.py::test_offer - KeyError"}),
    ("UserPromptSubmit", {"prompt": "no, use the queue instead of sending it directly", "prompt_id": "p2"}),
    ("Stop", {"last_assistant_message": "Offers go through the queue now, and worker.py sends them at the full hour."}),
)  # fmt: skip


def test_a_session_becomes_memory_and_the_next_begins_with_it(client, project):
    tell(client, project, "one", *WORK)
    story = worked(client, "one")
    kinds = {memory["kind"]: memory["title"] for memory in story["memories"]}
    assert kinds == {
        "summary": "Make the waiting list send its offers by mail",
        "handoff": "Verify the sender's domain",
        "turn": "Offers go through the queue now, and worker.py sends them at the full hour.",
        "correction": "use the queue instead of sending it directly",
        "failure": "`pytest` fails: KeyError: 'sender'",
    }
    start = client.get("/api/context", project_path=str(project), session_id="two", source="startup")["context"]
    for line in (
        "- Open: Verify the sender's domain",
        "Make the waiting list send its offers by mail: Offers go through the queue now",
    ):
        assert line in start
    question = {"prompt": "when does worker.py send the offers of the waiting list?", "session_id": "three"}
    found = client.get("/api/context", project_path=str(project), **question)["context"]
    assert "Offers go through the queue now, and worker.py sends them at the full hour" in found


def test_the_same_session_told_twice_and_distilled_again_is_the_same(client, project):
    tell(client, project, "one", *WORK)
    before = worked(client, "one")["memories"]
    tell(client, project, "one", *WORK)
    tell(client, project, "one", ("Stop", {**WORK[-1][1], "again": 1}))
    after = worked(client, "one")["memories"]
    context = [{**memory, "created": 0, "confirmed": 0} for memory in before]
    assert [{**memory, "created": 0, "confirmed": 0} for memory in after] == context


def test_links_name_memories_by_their_ids_however_often_a_session_is_distilled(client, project):
    text = ("UserPromptSubmit", {"prompt": "Let's use UTC because venues lie in two zones", "prompt_id": "p"})
    for turn in range(3):
        tell(
            client,
            project,
            "one",
            text,
            ("Stop", {"last_assistant_message": f"All times are kept in UTC, turn {turn}."}),
        )
        story = worked(client, "one")
    ids = {memory["id"] for memory in story["memories"]}
    for id in ids:
        links = client.get(f"/api/memories/{id}")["links"]
        assert links
        assert {end for link in links for end in (link["source"], link["target"])} <= ids


def test_a_handoff_that_somebody_wrote_is_not_written_over(client, project):
    client.post(
        "/api/memories", {"kind": "handoff", "title": "Ask Ana first", "session": "one", "project_path": str(project)}
    )
    tell(client, project, "one", *WORK)
    handoffs = [memory["title"] for memory in worked(client, "one")["memories"] if memory["kind"] == "handoff"]
    assert handoffs == ["Ask Ana first"]


def test_what_the_next_session_did_is_no_longer_handed_over(client, project):
    tell(client, project, "one", *WORK)
    worked(client, "one")
    done = {"todos": [{"content": "Verify the sender's domain", "status": "completed"}]}
    plan = {"tool_name": "TodoWrite", "tool_use_id": "t9", "tool_response": {}, "tool_input": done}
    tell(
        client,
        project,
        "two",
        ("UserPromptSubmit", {"prompt": "go on with the mail, please", "prompt_id": "p3"}),
        ("PostToolUse", plan),
        ("Stop", {"last_assistant_message": "The domain is verified."}),
    )
    worked(client, "two")
    start = client.get("/api/context", project_path=str(project), session_id="three", source="startup")["context"]
    assert "Verify" not in start


def test_what_a_session_does_in_another_project_stays_there(client, project, tmp_path):
    other = tmp_path / "mail"
    other.mkdir()
    tell(client, project, "one", ("UserPromptSubmit", {"prompt": "look at both of the projects", "prompt_id": "p1"}))
    tell(
        client,
        other,
        "one",
        ("UserPromptSubmit", {"prompt": "never log an address in the mail service", "prompt_id": "p2"}),
        ("Stop", {"last_assistant_message": "Addresses are no longer logged there."}),
    )
    worked(client, "one")
    here, there = (
        client.get("/api/context", project_path=str(each), session_id="two", source="startup")["context"]
        for each in (project, other)
    )
    assert "address" not in here.lower()
    assert "- never log an address in the mail service (you, " in there


def test_payloads_that_make_no_sense_keep_no_session_from_being_distilled(client, project):
    strange = [
        ("PostToolUse", {"tool_name": None, "tool_input": ["x"], "tool_response": 3, "tool_use_id": str(n)})
        for n in range(3)
    ]
    tell(
        client,
        project,
        "odd",
        ("UserPromptSubmit", {"prompt": "say something sensible here", "prompt_id": "p"}),
        *strange,
        ("Stop", {"last_assistant_message": 7}),
        ("Stop", {"last_assistant_message": "The sensible thing is said now."}),
    )
    (summary,) = (each for each in worked(client, "odd")["memories"] if each["kind"] == "summary")
    assert summary["title"] == "Say something sensible here"


def test_a_story_of_no_session_tells_the_way_out(client):
    with pytest.raises(NotFound) as missing:
        client.get("/api/sessions/nobody")
    assert "foreword sessions" in missing.value.hint
