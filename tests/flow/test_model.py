"""A real worker asks a model only where the user turned it on, tells what it cost, and takes nothing along."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from foreword.config import change
from foreword.problems import noted
from foreword.worker import lifecycle
from tests import endpoint
from tests.endpoint import silent, status
from tests.flow.conftest import end_worker, wait_for
from tests.flow.forked import foreword
from tests.talking import data, sent_texts

KEY = "k-" + "walrus-1"


@pytest.fixture
def server():
    with endpoint.listening() as here:
        here.answer = data({"word": "walrus"}, usage=(30, 10))
        yield here


@pytest.fixture
def run(home):
    def says(*words: str, code: int = 0) -> str:
        environ = {**os.environ, "FOREWORD_HOME": str(home.root), "NO_COLOR": "1"}
        ended = foreword(*words, cwd=home.root, env=environ)
        assert ended.returncode == code, ended
        return ended.stdout + ended.stderr

    return says


def turn_on(home, server, **more: str) -> None:
    for name, text in {"name": "m-1", "url": server.url, "provider": "openai", **more}.items():
        change(home, f"model_{name}", text)


def test_nothing_is_sent_until_the_user_turns_it_on(home, start, server, run):
    client = start()
    assert client.get("/api/model")["provider"] == "off"
    assert "no model is configured" in run("model", "try", code=1)
    assert "off" in run("model")
    turn_on(home, server, provider="off")
    client.get("/api/health")
    assert server.requests == []
    turn_on(home, server)
    wait_for(lambda: client.get("/api/model")["provider"] == "openai")  # a worker that runs follows
    assert server.requests == []
    assert "answers: 30 tokens in, 10 out" in run("model", "try")
    assert len(server.requests) == 1


def test_the_ledger_and_the_cap_survive_the_worker(home, start, server, run, monkeypatch):
    monkeypatch.setenv("WALRUS_KEY", KEY)
    turn_on(home, server, key_env="WALRUS_KEY", daily_tokens="300")
    client = start()
    assert client.post("/api/model", {})["ok"]
    end_worker(home)
    assert start().get("/api/model")["spent_tokens"] == 40
    server.answer = data({"word": "walrus"}, usage=(250, 10))
    assert "answers: 250 tokens in, 10 out" in run("model", "try")
    assert "is used up" in run("model", "try", code=1)
    kept = start().get("/api/model")
    assert (kept["spent_tokens"], kept["daily_tokens"], len(server.requests)) == (300, 300, 2)
    assert {headers["Authorization"] for _, headers, _ in server.requests} == {f"Bearer {KEY}"}
    end_worker(home)
    assert KEY not in "".join(path.read_text(errors="replace") for path in home.root.rglob("*") if path.is_file())
    assert "walrus" in sent_texts(server)


def test_what_is_wrong_is_told_with_the_way_out(home, start, server, run):
    turn_on(home, server, provider="anthropic")
    start()
    assert "needs a key" in run("doctor", code=1)
    assert "model_key_env" in run("model", "try", code=1)
    assert "not usable" in run("model")
    assert "needs a key" in run("status")
    change(home, "model_provider", "openai")
    server.answer = status(401)
    wait_for(lambda: "401" in run("model", "try", code=1))
    assert "usable" in run("model")


def test_a_worker_leaves_at_once_while_it_asks_and_capture_goes_on(home, start, server, project, monkeypatch):
    server.answer = silent
    turn_on(home, server, seconds="600")
    client = start()
    asking = subprocess.Popen(
        [sys.executable, "-m", "foreword", "model", "try"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "FOREWORD_HOME": str(home.root), "FOREWORD_WORKER_AUTOSTART": "0"},
    )
    wait_for(lambda: server.requests)
    reported = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": project, "prompt": "walrus"}
    event = {"host": "claude-code", "event": "UserPromptSubmit", "payload": reported}
    assert client.post("/api/events", event)["stored"] == 1
    lifecycle.stop(home)
    asking.wait(timeout=60)
    assert not noted(str(home.trouble))


def ended_session(client, project: str) -> None:
    for name, payload in (
        ("UserPromptSubmit", {"prompt": "add a waiting list for full evenings in rooms/waiting.py", "prompt_id": "p"}),
        ("Stop", {"last_assistant_message": "Added the table and offer_slot() in rooms/waiting.py, kept in SQLite."}),
        ("SessionEnd", {"reason": "other"}),
    ):
        reported = {"hook_event_name": name, "session_id": "s", "cwd": project, **payload}
        client.post("/api/events", {"host": "claude-code", "event": name, "payload": reported})


def summary(client) -> dict:
    found = [each for each in client.get("/api/sessions/s")["memories"] if each["kind"] == "summary"]
    return found[0] if found else {"title": "", "detail": {}}


def test_a_session_that_is_over_is_told_in_better_words_and_the_plain_ones_stay_beside(home, start, server, project):
    better = {"title": "Waiting list for full evenings", "done": "Added offer_slot() in rooms/waiting.py"}
    server.answer = data({**better, "learned": [], "next": []})
    turn_on(home, server)
    client = start()
    ended_session(client, project)
    wait_for(lambda: summary(client)["title"] == "Waiting list for full evenings")
    reported = summary(client)
    assert reported["detail"]["done"] == ["Added offer_slot() in rooms/waiting.py"]
    assert reported["detail"]["without_model"]["title"] == "Add a waiting list for full evenings in rooms/waiting.py"
    assert (reported["source"], reported["trust"]) == ("model:m-1", "agent")


def test_a_model_that_fails_leaves_what_came_without_it(home, start, server, project):
    server.answer = status(500)
    turn_on(home, server)
    client = start()
    ended_session(client, project)
    wait_for(lambda: server.requests)
    wait_for(lambda: summary(client)["title"] == "Add a waiting list for full evenings in rooms/waiting.py")
    assert "without_model" not in summary(client)["detail"]
