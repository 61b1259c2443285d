"""Why a real hook was answered with silence: kept by the worker, told by its API and by the command line."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest
from typer.testing import CliRunner

from foreword.cli.main import app
from foreword.models import Memory
from foreword.paths import Home
from foreword.projects import resolve
from foreword.store import Store
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import HookRunner, wait_for
from tests.scratch import asking, fact, suspend

FACT = "The checkout HTTPTransport retries every timeout twice, then it asks the second bank"
PROMPT = "why does the checkout transport retry a timeout twice?"
AGAIN = "so the checkout transport retries a timeout twice?"
UNHEARD = "Translate Ozymandias into Esperanto verses please"
NEAR = "paint the Ozymandias ferry, its second bank of oars and the harbour lantern"


@pytest.fixture
def filled(home: Home, project: str) -> Home:
    """A store that knows one decision; closed."""
    store = Store(home.database, backups=home.backups)
    owner = resolve(project)
    about: dict[str, Any] = {"project": owner.key, "scope": owner.scope, "created": time.time() - 60}
    store.memories.put([Memory("decision", FACT, trust="user", source="user", **about)])
    store.close()
    return home


def prompted(host: HookRunner, project: str, prompt: str, *, session: str = "s1") -> str:
    return host.context("UserPromptSubmit", {"session_id": session, "cwd": project, "prompt": prompt})


def silences(client: Client, **query: Any) -> list[dict[str, Any]]:
    return list(client.get("/api/injections", empty=1, **query)["injections"])


def test_each_silence_of_a_hook_is_kept_with_its_reason_and_none_of_its_words(
    filled: Home, host: HookRunner, start, project
):
    client = start()
    assert prompted(host, project, UNHEARD) == ""
    assert prompted(host, project, NEAR) == ""
    assert prompted(host, project, PROMPT)
    for prompt in ("ok, go on", AGAIN):
        assert prompted(host, project, prompt) == ""
    again, reply, below, nothing = silences(client, session_id="s1")
    assert [each["why"] for each in (nothing, below, reply)] == ["nothing", "below", "reply"]
    assert again["why"] in ("repeated", "topic")
    assert reply["says"] == "it answers or continues the running conversation"
    assert below["title"] == FACT
    (left,) = below["rejected"]
    assert (left["memory"], left["title"]) == (below["nearest"], FACT)
    assert left["why"]
    assert (below["trigger"], below["host"], below["project"]) == ("prompt", "claude-code", resolve(project).key)
    assert below["build_ms"] > 0
    assert [each["id"] for each in silences(client, project_path=project, limit=1)] == [again["id"]]
    assert silences(client, project_path="/") == []
    story = client.get("/api/sessions/s1")
    assert len(story["no_context"]) == 4
    assert [each["what"] for each in story["steps"]].count("injected") == 1
    lifecycle.stop(filled)
    kept = Store(filled.database, backups=filled.backups)
    try:
        rows = kept.injections.list(empty=True)
    finally:
        kept.close()
    assert len(rows) == 4
    assert "zymandias" not in repr(rows).lower()
    assert "HTTPTransport" not in repr(rows)


def test_a_budget_that_is_used_up_and_a_start_that_was_given_are_told(filled: Home, host: HookRunner, start, project):
    filled.config.write_text("[layout.window]\nprompt = 80\n")
    client = start()
    client.post("/api/memories", {"kind": "decision", "title": fact("otter"), "project_path": project})
    query = {"project_path": project, "session_id": "s1"}
    assert client.get("/api/context", prompt=asking("otter"), **query)["context"]
    assert not client.get("/api/context", prompt=PROMPT, **query)["context"]
    (used,) = silences(client, session_id="s1")
    assert used["why"] == "used"
    assert 0 < used["spent"] <= used["allowed"] == 80
    assert f"({used['spent']} of 80 tokens)" in used["says"]
    start_of = {**query, "trigger": "question", "prompt": ""}
    assert client.get("/api/context", **start_of)["context"]
    assert not client.get("/api/context", **start_of)["context"]
    assert [each["why"] for each in silences(client, session_id="s1")] == ["given", "used"]


def test_what_nobody_asked_for_is_not_kept(filled: Home, start, project):
    client = start()
    query = {"project_path": project, "session_id": "s1", "prompt": UNHEARD}
    client.get("/api/context", **query, preview=1)
    assert silences(client) == []
    client.get("/api/context", **query)
    assert len(silences(client)) == 1


@pytest.mark.parametrize("what", ["capture", "inject"])
def test_nothing_is_kept_where_it_is_switched_off(filled: Home, host: HookRunner, start, project, what):
    filled.config.write_text(f"{what} = false\n")
    client = start()
    assert prompted(host, project, UNHEARD) == ""
    assert silences(client) == []


def test_a_silence_of_a_hook_whose_worker_was_late_is_told_once_as_its_own(
    filled: Home, host: HookRunner, start, project
):
    client = start()
    host.write_hook()
    pid = lifecycle.pid_of(filled)
    suspend(pid)
    try:
        assert prompted(host, project, PROMPT)  # which the worker will take for one that it answers
        assert prompted(host, project, UNHEARD) == ""
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: host.spooled() == 0 and len(host.stored()) == 2)
    wait_for(lambda: [each["away"] for each in silences(client)] == [True])
    assert silences(client)[0]["why"] in ("nothing", "late")  # a busy machine has no time to look


def test_the_command_line_tells_a_silence_that_is_newer_than_what_was_given(
    filled: Home, host: HookRunner, start, project, monkeypatch
):
    client = start()
    monkeypatch.chdir(project)

    def output_of(*words: str) -> str:
        ended = CliRunner().invoke(app, list(words))
        assert ended.exit_code == 0, ended.output
        return ended.output

    assert prompted(host, project, UNHEARD) == ""
    assert "nothing was injected: nothing that is remembered here has to do with it" in output_of("explain")
    assert json.loads(output_of("explain", "--json"))["injection"] is None
    assert prompted(host, project, PROMPT)
    assert "nothing was injected" not in output_of("explain")
    assert json.loads(output_of("explain", "--json"))["silence"] is None
    assert prompted(host, project, NEAR) == ""
    output = output_of("explain")
    assert "nothing was injected: nothing that is remembered here is close enough to it" in output
    assert f"left out: {silences(client, session_id='s1', limit=1)[0]['nearest']}  [decision] {FACT}" in output
    answer = json.loads(output_of("explain", "--json"))
    assert answer["silence"]["why"] == "below"
    assert answer["silence"]["rejected"]
    assert answer["injection"]["text"]
    assert "left out" in output_of("explain", answer["silence"]["id"])
    assert output_of("sessions", "s1").count("1 × nothing") == 2
