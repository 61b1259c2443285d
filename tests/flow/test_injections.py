"""What agents were given: kept word for word, once in a window, within its ledger, and told again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from foreword.errors import BadRequest, NotFound
from foreword.models import Memory
from foreword.paths import Home
from foreword.problems import noted
from foreword.projects import resolve
from foreword.store import Store
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import HookRunner, end_worker, wait_for
from tests.scratch import asking, fact, suspend

PROMPT = "why does the checkout transport retry a timeout twice?"
FACT = "The checkout HTTPTransport retries every timeout twice, then it asks the second bank"
FACTORS = {"match", "recency", "importance", "reinforcement", "scope", "task"}


@pytest.fixture
def filled(home: Home, project: str) -> Home:
    """A store that knows something for every moment; closed."""
    store = Store(home.database, backups=home.backups)
    owner = resolve(project)
    about: dict[str, Any] = {"project": owner.key, "scope": owner.scope, "created": time.time() - 60}
    store.memories.put(
        [
            Memory("decision", FACT, trust="user", source="user", **about),
            Memory("preference", "Run the tests with make test", trust="user", **about),
            Memory("handoff", "Half done", detail={"next": ["ask for a sandbox"], "block": ["no key"]}, **about),
            Memory("summary", "Retries added", detail={"done": "tested"}, **about),
        ]
    )
    store.close()
    return home


@pytest.fixture
def payload(shared: Path, project: str):
    """A recorded payload, of this project and a session of ours."""

    def read(name: str, *, session: str = "s1", **more: Any) -> dict[str, Any]:
        stdin = json.loads((shared / "payloads" / f"{name}.json").read_text(encoding="utf-8"))["stdin"]
        own = {field: session for field in ("session_id", "sessionId") if field in stdin}
        return {**stdin, **own, "cwd": project, **more}

    return read


def remember(client: Client, project: str, title: str, **more: Any) -> str:
    fields = {"kind": "decision", "title": title, "project_path": project, **more}
    return str(client.post("/api/memories", fields)["memories"][0]["id"])


def list_injections(client: Client, **query: Any) -> list[dict[str, Any]]:
    return list(client.get("/api/injections", text=1, **query)["injections"])


# -- every injection is recorded --------------------------------------------------------------------------------------


def test_everything_about_an_injection_is_kept_and_its_text_word_for_word(
    filled: Home, host: HookRunner, start, project
):
    client = start()
    seen = host.context("UserPromptSubmit", {"session_id": "s1", "cwd": project, "prompt": PROMPT})
    (listed,) = client.get("/api/injections", session_id="s1")["injections"]
    assert "text" not in listed
    injection = client.get(f"/api/injections/{listed['id']}")["injection"]
    assert injection["text"] == seen != ""
    assert (injection["trigger"], injection["form"], injection["host"], injection["session"]) == (
        "prompt",
        "markdown",
        "claude-code",
        "s1",
    )
    assert injection["project"] == resolve(project).key
    assert 0 < injection["tokens"] <= injection["budget"] == 500
    assert {"checkout", "transport"} <= set(injection["terms"])
    assert PROMPT not in json.dumps(injection)
    (item,) = injection["items"]
    assert set(item["why"]) == FACTORS
    assert item["title"] == FACT
    assert injection["build_ms"] > 0
    assert injection["away"] is False
    with pytest.raises(NotFound) as unknown:
        client.get("/api/injections/inj-0000000000")
    assert "foreword explain" in unknown.value.hint


def test_lists_are_of_a_session_a_project_or_a_memory_and_have_texts_only_when_asked(filled: Home, start, project):
    client = start()
    id = remember(client, project, fact("wombat"))
    for session in ("a", "b"):
        client.get("/api/context", project_path=project, session_id=session, prompt=asking("wombat"))
    client.get("/api/context", project_path=project, session_id="b", trigger="session_start")
    assert len(list_injections(client)) == len(list_injections(client, project_path=project)) == 3
    assert [each["session"] for each in list_injections(client, session_id="a")] == ["a"]
    assert {each["session"] for each in list_injections(client, memory=id)} == {"a", "b"}
    assert list_injections(client, project_path="/") == []
    assert len(list_injections(client, limit=1)) == 1
    assert all("wombat sings" in each["text"] for each in list_injections(client, memory=id))


def test_a_secret_in_a_prompt_is_not_among_its_terms(filled: Home, start, project):
    client = start()
    secret = "ghp_" + "Zq7" * 12
    client.get("/api/context", project_path=project, session_id="a", prompt=f"{PROMPT} {secret}")
    (injection,) = list_injections(client)
    assert "transport" in injection["terms"]
    assert not any("zq7" in term.lower() for term in injection["terms"])


@pytest.mark.parametrize("capture", ["true", "false"])
def test_what_the_hook_gives_without_a_worker_is_recorded_when_one_is_there(
    filled: Home, host: HookRunner, start, project, capture
):
    filled.config.write_text(f"capture = {capture}")
    host.write_hook()
    seen = host.context("UserPromptSubmit", {"session_id": "s1", "cwd": project, "prompt": PROMPT})
    opened = host.context("SessionStart", {"session_id": "s2", "cwd": project, "source": "startup"})
    assert "HTTPTransport" in seen
    assert "make test" in opened
    client = start()
    wait_for(lambda: host.spooled() == 0)
    newest, oldest = list_injections(client)
    assert (newest["text"], oldest["text"]) == (opened, seen)
    assert (newest["source"], newest["session"]) == ("startup", "s2")
    assert (oldest["away"], oldest["host"], oldest["trigger"]) == (True, "claude-code", "prompt")
    assert {"checkout", "transport"} <= set(oldest["terms"])
    assert set(oldest["items"][0]["why"]) == FACTORS
    assert bool(host.stored()) is (capture == "true")
    assert noted(str(filled.trouble)) == ()


def test_a_spool_that_is_read_twice_records_once(filled: Home, host: HookRunner, start, project, tmp_path: Path):
    host.write_hook()
    host.context("UserPromptSubmit", {"session_id": "s1", "cwd": project, "prompt": PROMPT})
    copy = tmp_path / "copy"
    shutil.copy(filled.spool / "current", copy)
    client = start()
    wait_for(lambda: host.spooled() == 0)
    shutil.copy(copy, filled.spool / "taken-1")  # as after a crash between the commit and the end of the file
    wait_for(lambda: host.spooled() == 0)
    assert len(list_injections(client)) == 1
    assert len(host.stored()) == 1


def test_what_waits_in_the_spool_holds_no_secret_and_a_torn_record_costs_only_itself(
    filled: Home, host: HookRunner, start, project
):
    secret = "ghp_" + "Zq7" * 12
    host.write_hook()
    payload = {"session_id": "s1", "cwd": project, "prompt": f"{PROMPT} {secret} <private>the salary</private>"}
    assert host.context("UserPromptSubmit", payload)
    waiting = (filled.spool / "current").read_bytes()
    assert b"HTTPTransport" in waiting
    assert b"Zq7" not in waiting
    assert b"zq7" not in waiting
    assert b"salary" not in waiting
    (filled.spool / "current").write_bytes(waiting[:-40])
    client = start()
    wait_for(lambda: host.spooled() == 0)
    assert len(host.stored()) == 1
    assert list_injections(client) == []


def test_a_record_that_makes_no_sense_is_set_aside_and_the_rest_goes_on(filled: Home, host: HookRunner, start, project):
    host.write_hook()
    host.context("UserPromptSubmit", {"session_id": "s1", "cwd": project, "prompt": PROMPT})
    waiting = filled.spool / "current"
    broken = waiting.read_bytes().replace(b'"items":[', b'"itemz":[')
    waiting.write_bytes(broken)
    start()
    wait_for(lambda: len(host.stored()) == 1 and not (filled.spool / "current").exists())
    wait_for(lambda: any("set aside" in trouble.what for trouble in noted(str(filled.trouble))))


def test_of_a_worker_that_was_late_only_what_the_agent_saw_is_recorded(filled: Home, host: HookRunner, start, project):
    client = start()
    host.write_hook()
    pid = lifecycle.pid_of(filled)
    suspend(pid)
    try:
        seen = host.context("UserPromptSubmit", {"session_id": "s1", "cwd": project, "prompt": PROMPT})
        payload = {"session_id": "s2", "cwd": project, "prompt": "an unheard thing"}
        assert host.context("UserPromptSubmit", payload) == ""
    finally:
        os.kill(pid, signal.SIGCONT)
    assert "HTTPTransport" in seen
    wait_for(lambda: host.spooled() == 0 and len(host.stored()) == 2)
    client.get("/api/health")
    (injection,) = list_injections(client)
    assert (injection["text"], injection["away"]) == (seen, True)


# -- once in a window -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("worker", ["up", "away", "back"])
def test_a_window_of_claude_from_start_to_clear(filled: Home, host: HookRunner, start, monkeypatch, payload, worker):
    """startup, prompt, resume, compaction, clear: each memory once in each window."""
    monkeypatch.setenv("FOREWORD_WORKER_AUTOSTART", "0")

    def back() -> None:
        if worker == "back":  # what a hook gave alone must count for the worker that comes next, and the other way
            if lifecycle.pid_of(filled):
                end_worker(filled)
            else:
                start()

    host.write_hook()
    if worker == "up":
        start()
    first = host.context("SessionStart", payload("claude.SessionStart.startup"))
    assert "HTTPTransport" in first
    back()
    prompt = payload("claude.UserPromptSubmit", prompt=PROMPT)
    assert host.context("UserPromptSubmit", prompt) == ""
    back()
    assert host.context("SessionStart", payload("claude.SessionStart.resume")) == ""
    back()
    assert host.context("UserPromptSubmit", {**prompt, "prompt_id": "2"}) == ""
    assert host.context("PreCompact", payload("claude.PreCompact.auto")) == ""
    back()
    again = host.context("SessionStart", payload("claude.SessionStart.compact"))
    assert "HTTPTransport" in again
    back()
    assert host.context("UserPromptSubmit", {**prompt, "prompt_id": "3"}) == ""
    back()
    cleared = host.context("SessionStart", payload("claude.SessionStart.clear"))
    assert "HTTPTransport" in cleared
    assert host.context("UserPromptSubmit", {**prompt, "prompt_id": "4"}) == ""
    client = start()
    wait_for(lambda: host.spooled() == 0)
    assert [each["source"] for each in list_injections(client)] == ["clear", "compact", "startup"]
    assert noted(str(filled.trouble)) == ()


@pytest.mark.parametrize("source", ["resume", "fork"])
def test_on_resume_only_what_is_new_is_sent(filled: Home, host: HookRunner, start, project, payload, source):
    client = start()
    host.context("SessionStart", payload("claude.SessionStart.startup"))
    remember(client, project, "the wombat is new")
    again = host.context("SessionStart", payload(f"claude.SessionStart.{source}"))
    assert "the wombat is new" in again
    assert "HTTPTransport" not in again
    assert host.context("SessionStart", payload(f"claude.SessionStart.{source}", context_tokens=7)) == ""


def test_a_compaction_of_codex_brings_everything_back(filled: Home, host: HookRunner, start, payload):
    start()
    assert "HTTPTransport" in host.context("SessionStart", payload("codex.SessionStart.startup"), host="codex")
    host.context("PreCompact", payload("codex.PreCompact.auto"), host="codex")
    assert "HTTPTransport" in host.context("SessionStart", payload("codex.SessionStart.compact"), host="codex")


@pytest.mark.parametrize("worker", ["up", "away"])
def test_a_compaction_without_a_start_behind_it_empties_the_window(
    filled: Home, host: HookRunner, start, payload, worker
):
    """Copilot tells its compaction and starts nothing afterwards."""
    host.write_hook()
    if worker == "up":
        start()
    prompt_payload = payload("copilot.userPromptSubmitted", prompt=PROMPT)

    def prompted(stamp: int) -> bytes:
        return host.tell("userPromptSubmitted", {**prompt_payload, "timestamp": stamp}, host="copilot").stdout

    assert b"HTTPTransport" in prompted(1)
    assert prompted(2) == b""
    compacted = {
        "sessionId": prompt_payload["sessionId"],
        "timestamp": 3,
        "cwd": prompt_payload["cwd"],
        "trigger": "auto",
    }
    host.tell("preCompact", compacted, host="copilot")
    assert b"HTTPTransport" in prompted(4)
    assert prompted(5) == b""


# -- the ledger -------------------------------------------------------------------------------------------------------


def test_questions_have_a_thousand_tokens_in_a_window_and_searching_is_free(filled: Home, start, project):
    client = start()
    for number in range(60):
        remember(client, project, f"wombat {number} digs {'deep ' * 9}", body="a burrow " * 30)
    query = {"project_path": project, "session_id": "s1", "trigger": "question", "prompt": "wombat"}
    costs = []
    while answer := client.get("/api/context", **query):
        if not answer["context"]:
            break
        costs.append(answer["tokens"])
    assert sum(costs) <= 1000
    assert "budget for questions is used up" in answer["why"]
    assert len(client.get("/api/search", q="wombat", project_path=project)["results"]) == 20
    assert client.get("/api/context", **{**query, "session_id": ""})["context"], "without a session there is no ledger"
    prompt_query = {**query, "trigger": "prompt", "prompt": PROMPT}
    assert client.get("/api/context", **prompt_query)["context"], "prompts have their own allowance"
    event = {"host": "opencode", "event": "session.compacted", "payload": {"sessionID": "s1", "directory": project}}
    client.post("/api/events", event)
    assert client.get("/api/context", **query)["context"], "a compaction begins a new window"


def test_questions_asked_at_once_share_one_ledger_and_repeat_nothing(filled: Home, start, project):
    client = start()
    for number in range(80):
        remember(client, project, f"wombat {number} digs {'deep ' * 9}", body="a burrow " * 30)

    def ask() -> None:
        query = {"project_path": project, "session_id": "s1", "trigger": "question", "prompt": "wombat"}
        Client(filled).get("/api/context", **query)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    injections = list_injections(client, session_id="s1")
    shown = [item["memory"] for each in injections for item in each["items"]]
    assert injections
    assert sum(each["tokens"] for each in injections) <= 1000
    assert len(shown) == len(set(shown))


def test_the_totals_of_the_ledger_are_settings(filled: Home, start, project):
    filled.config.write_text("[layout.window]\nquestion = 0\n")
    client = start()
    query = {"project_path": project, "session_id": "s1", "prompt": PROMPT}
    assert "budget for questions is used up" in client.get("/api/context", trigger="question", **query)["why"]
    assert client.get("/api/context", trigger="prompt", **query)["context"]


def test_a_question_without_words_gives_the_start_once_where_no_hook_gave_it(
    filled: Home, host: HookRunner, start, payload
):
    client = start()
    project = payload("claude.SessionStart.startup")["cwd"]
    query = {"project_path": project, "trigger": "question"}
    assert "HTTPTransport" in client.get("/api/context", session_id="bare", **query)["context"]
    again = client.get("/api/context", session_id="bare", **query)
    assert again["context"] == ""
    assert "given already" in again["why"]
    host.context("SessionStart", payload("claude.SessionStart.startup"))
    assert "given already" in client.get("/api/context", session_id="s1", **query)["why"]
    assert [each["source"] for each in list_injections(client)] == ["startup", "question"]


# -- what cannot be asked ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"form": "html"}, {"host": "emacs"}, {"budget": 0.5}])
def test_a_wrong_form_host_or_budget_is_told(filled: Home, start, project, wrong):
    with pytest.raises(BadRequest) as refused:
        start().get("/api/context", project_path=project, prompt="x", **wrong)
    assert refused.value.hint
