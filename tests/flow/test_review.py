"""A real worker and real commands: notes wait for the user, who says what becomes of each."""

from __future__ import annotations

import itertools
import json
import time

import pytest

from foreword.errors import BadRequest, NotFound
from foreword.paths import Home
from foreword.worker.client import Client
from tests.flow import forked
from tests.flow.conftest import CLEAN, wait_for

clock = itertools.count()


@pytest.fixture
def client(start) -> Client:
    return start()


def tell(client: Client, project: str, session: str, *prompts: str, ago: float = 1000.0) -> None:
    """A session that says something, and ends."""
    events = [
        ("SessionStart", {"source": "startup"}),
        ("UserPromptSubmit", {"prompt": f"add the {session} to the booking page", "prompt_id": f"{session}-first"}),
        *(("UserPromptSubmit", {"prompt": text, "prompt_id": f"{session}-{text}"}) for text in prompts),
        ("Stop", {"last_assistant_message": "Done as you said."}),
        ("SessionEnd", {"reason": "other"}),
    ]
    hook_events = [
        {
            "host": "claude-code",
            "event": name,
            "at": time.time() - ago + next(clock),
            "payload": {"session_id": session, "cwd": project, "hook_event_name": name, **payload},
        }
        for name, payload in events
    ]
    client.post("/api/events", {"events": hook_events})


def agent_sees(client: Client, project: str) -> str:
    start = client.get("/api/context", project_path=project, source="startup", preview=1)["context"]
    request = client.get("/api/context", project_path=project, prompt="npm or pnpm for the packages?", preview=1)[
        "context"
    ]
    found = client.get("/api/search", q="pnpm npm", project_path=project, kinds="preference")["results"]
    return f"{start}\n{request}\n{json.dumps(found)}"


SAYS = "don't use npm for packages, ever"


def foreword(home: Home, folder: str, *words: str, code: int = 0) -> str:
    ended = forked.foreword(*words, cwd=folder, env={**CLEAN, "FOREWORD_HOME": str(home.root)})
    assert "Traceback" not in ended.stderr
    assert ended.returncode == code, (ended.stdout, ended.stderr)
    return ended.stdout if not code else ended.stderr


def test_a_correction_made_again_is_one_rule(client, project):
    for session in ("price", "calendar"):
        tell(client, project, session, SAYS)
        wait_for(lambda session=session: client.get(f"/api/sessions/{session}")["session"]["summary_id"])
    found = client.get("/api/memories", kind="correction")["memories"]
    [rule] = [client.get(f"/api/memories/{each['id']}")["memory"] for each in found]
    assert (rule["seen"], rule["trust"], rule["status"]) == (2, "user", "active")
    assert "use npm for packages, ever (you, 2 times" in agent_sees(client, project)


def test_a_note_becomes_what_it_is_or_goes(client, home, project):
    for text in ("Slots are kept in UTC", "buy milk"):
        foreword(home, project, "note", text)
    listed = foreword(home, project, "review")
    milk, slots = (line.split()[0] for line in listed.splitlines() if "[note]" in line)
    made = foreword(home, project, "review", "promote", slots, "decision").split()[0]
    foreword(home, project, "review", "discard", milk)
    assert json.loads(foreword(home, project, "review", "--json"))["waiting"] == 0
    decision = client.get(f"/api/memories/{made}")
    assert (decision["memory"]["kind"], decision["memory"]["trust"]) == ("decision", "user")
    assert decision["links"] == [{"source": made, "relation": "supersedes", "target": slots}]
    note = client.get(f"/api/memories/{slots}")["memory"]
    assert (note["status"], note["superseded_by"]) == ("superseded", made)
    assert client.get(f"/api/memories/{milk}")["memory"]["status"] == "discarded"


def test_status_says_how_much_waits_and_the_agent_is_not_told(client, home, project):
    foreword(home, project, "note", "ask about the mail sandbox")
    assert "1 item to decide" in foreword(home, project, "status")
    assert "waits for you" not in agent_sees(client, project)


def test_a_learning_that_sleeps_says_so(client, home, project):
    unsure = {"kind": "learning", "title": "The sandbox drops mail at night", "confidence": 0.3}
    client.post("/api/memories", {**unsure, "project_path": project})
    found = foreword(home, project, "search", "sandbox", "mail")
    assert "dormant" in found
    [result] = json.loads(foreword(home, project, "search", "sandbox", "mail", "--json"))["results"]
    assert result["asleep"]
    assert "dormant" in foreword(home, project, "show", result["id"])
    assert "sandbox" not in client.get("/api/context", project_path=project, source="startup", preview=1)["context"]


def test_what_makes_no_sense_is_told_and_changes_nothing(client, project):
    [note] = client.post("/api/memories", {"kind": "note", "title": "milk", "project_path": project})["memories"]
    for wrong in (
        {"do": "discard", "id": "pre-00000000"},
        {"do": "wave"},
        {"do": "accept"},
        {"do": "promote"},
        {"do": "promote", "as": "summary"},
        {"do": "promote", "as": "goal", "scope": "galaxy"},
        {"do": "discard", "id": 7},
    ):
        with pytest.raises((BadRequest, NotFound)):
            client.post("/api/review", {"id": note["id"], **wrong})
    [waiting] = client.get("/api/review")["notes"]
    assert {**waiting, **note} == waiting


def test_what_the_user_writes_there_is_redacted(client, project):
    [note] = client.post("/api/memories", {"kind": "note", "title": "milk", "project_path": project})["memories"]
    secret = "ghp_" + "a1B2" * 9
    change = {"do": "promote", "id": note["id"], "as": "goal", "title": f"Rotate {secret}"}
    assert secret not in json.dumps(client.post("/api/review", change))
