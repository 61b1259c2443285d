"""The specification's scenarios through a real worker and real hooks: which memories come, in order, at what cost."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foreword.models import Memory
from foreword.paths import Home
from foreword.problems import noted
from foreword.projects import resolve
from foreword.recall.tokens import count, family_of
from foreword.store import Store
from foreword.worker.client import Client
from tests.flow.conftest import HookRunner

HOUR = 3_600.0


@pytest.fixture
def payload(shared: Path, project: str):
    """A recorded payload, of this project and a session of ours."""

    def read(name: str, **more: Any) -> dict[str, Any]:
        stdin = json.loads((shared / "payloads" / f"{name}.json").read_text(encoding="utf-8"))["stdin"]
        return {**stdin, "session_id": "s1", "cwd": project, **more}

    return read


def filled(home: Home, folder: str, *memories: Memory) -> None:
    """Keep *memories* of the project at *folder*, each an hour old, before any worker is there."""
    store = Store(home.database, backups=home.backups)
    owner = resolve(folder)
    store.memories.put([replace(each, project=owner.key, created=time.time() - HOUR) for each in memories])
    store.close()


def last(client: Client, *, limit: int = 0, model: str = "") -> tuple[list[str], dict[str, Any]]:
    """The titles of the last injection in their order, and all of it; what it says to cost is what it costs."""
    newest = client.get("/api/injections", limit=1)["injections"][0]["id"]
    injection = client.get(f"/api/injections/{newest}")["injection"]
    assert (
        count(injection["text"], family=family_of(model))
        == injection["tokens"]
        <= (limit or injection["budget"]) * 95 // 100
    )
    return [item["title"] for item in injection["items"]], injection


@pytest.mark.parametrize("worker", ["up", "away"])
def test_over_an_empty_store_no_hook_prints_anything(home: Home, host: HookRunner, start, project, worker):
    filled(home, project)
    host.write_hook()
    client = start() if worker == "up" else None
    payload = {"session_id": "s1", "cwd": project, "prompt": "why does the checkout time out?", "source": "startup"}
    for event in ("SessionStart", "UserPromptSubmit", "PreCompact"):
        ended = host.tell(event, payload)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b""), event
    if client:
        for trigger in ("session_start", "prompt", "compaction", "question"):
            got = client.get("/api/context", project_path=project, trigger=trigger, prompt="checkout", session_id="s1")
            assert (got["context"], got["tokens"], got["layers"], got["injection"]) == ("", 0, {}, "")
            assert set(got["skipped"].values()) <= {"empty"}
            assert got["why"]
        assert client.get("/api/injections")["injections"] == []


def test_a_go_project_gets_project_go_and_universal_rules_in_this_order(
    home: Home, host: HookRunner, start, tmp_path: Path
):
    folder = tmp_path / "hydra"
    folder.mkdir()
    (folder / "go.mod").write_text("module example.org/hydra\n")
    client = start()
    for title, scope in {
        "Say what you do before you do it": "universal",
        "Wrap errors with what was tried": "language:go",
        "Use type hints everywhere": "language:python",
        "Handlers stay thin": "project",
    }.items():
        client.post(
            "/api/memories", {"kind": "preference", "title": title, "scope": scope, "project_path": str(folder)}
        )
    seen = host.context("SessionStart", {"session_id": "s1", "cwd": str(folder), "source": "startup"})
    titles, injection = last(client)
    assert titles == ["Handlers stay thin", "Wrap errors with what was tried", "Say what you do before you do it"]
    assert injection["text"] == seen
    assert list(injection["layers"]) == ["rules"]
    assert "type hints" not in seen


def test_a_layer_that_cannot_be_read_costs_only_itself_and_the_user_is_told(
    home: Home, host: HookRunner, start, project
):
    filled(
        home,
        project,
        Memory("handoff", "Half done"),
        Memory("summary", "Retries added", "checkout() asks the bank twice"),
        Memory("failure", "`make unit` fails"),
        Memory("preference", "Answer in German", trust="user"),
    )
    connection = sqlite3.connect(home.database)
    connection.execute("UPDATE memories SET detail = '{' WHERE kind = 'failure'")
    connection.commit()
    connection.close()
    client = start()
    seen = host.context("SessionStart", {"session_id": "s1", "cwd": project, "source": "startup"})
    titles, injection = last(client)
    assert titles == ["Half done", "Retries added", "Answer in German"]
    assert injection["text"] == seen
    assert injection["skipped"]["failures"] != "empty"
    (trouble,) = [each.what for each in noted(str(home.trouble)) if "failures" in each.what]
    assert injection["skipped"]["failures"] in trouble


def test_a_window_of_claude_gets_each_memory_once_and_a_new_window_all_of_them(
    home: Home, host: HookRunner, start, project, payload
):
    printer = "The label printer of the warehouse speaks ZPL and needs a cold start"
    known = Memory("decision", printer, trust="user", source="user")
    filled(home, project, Memory("handoff", "Half done"), known)
    client = start()
    model = payload("claude.SessionStart.startup").get("model", "")
    prompt = payload("claude.UserPromptSubmit", prompt="why does the label printer of the warehouse garble umlauts?")

    host.context("SessionStart", payload("claude.SessionStart.startup"))
    assert last(client, model=model)[0] == ["Half done", printer]
    assert host.context("UserPromptSubmit", prompt) == "", "it was given at the start"
    assert host.context("SessionStart", payload("claude.SessionStart.resume")) == "", "ages alone are not new"

    scanner = "The belt scanner drops digits at dawn until somebody wipes its lens with warm water"
    client.post("/api/memories", {"kind": "learning", "title": scanner, "project_path": project, "files": ["belt.py"]})
    prompt["prompt"] = "why does the belt scanner drop digits at dawn?"
    host.context("UserPromptSubmit", {**prompt, "prompt_id": "2"})
    titles, injection = last(client)
    assert titles == [scanner]
    assert injection["tokens"] <= 475
    client.post("/api/memories", {"kind": "preference", "title": "Answer in German", "project_path": project})
    host.context("SessionStart", payload("claude.SessionStart.resume", context_tokens=1))
    assert last(client)[0] == ["Answer in German"]
    assert host.context("SessionStart", payload("claude.SessionStart.resume", context_tokens=2)) == ""

    for source in ("compact", "clear"):
        host.context("SessionStart", payload(f"claude.SessionStart.{source}"))
        titles, injection = last(client, limit=2000)
        assert titles == ["Half done", "Answer in German", printer], source
        assert injection["source"] == source
        host.context("UserPromptSubmit", {**prompt, "prompt_id": source})
        assert last(client)[0] == [scanner], "a new window has not seen it"


def test_claudes_own_compaction_is_told_nothing_and_opencodes_what_this_session_established(
    home: Home, host: HookRunner, start, project, payload
):
    filled(
        home,
        project,
        Memory("summary", "Refund dialog for support", session="older"),
        Memory("decision", "Cents are integers", session="s1", trust="user", detail={"why": "floats lost one"}),
    )
    client = start()
    assert host.context("PreCompact", payload("claude.PreCompact.auto")) == ""
    got = client.get("/api/context", project_path=project, session_id="s1", trigger="compaction", host="opencode")
    titles, injection = last(client, limit=1000)
    assert titles == ["Cents are integers", "Refund dialog for support"]
    assert (got["context"], got["budget"]) == (injection["text"], 1000)
    assert got["context"].splitlines()[1] == "- you, 1h ago: Cents are integers, because floats lost one"
    assert "##" not in got["context"]


def test_two_projects_with_the_same_prompt_each_get_their_own(home: Home, host: HookRunner, start, tmp_path: Path):
    folders = {name: tmp_path / name / "app" for name in ("one", "two")}  # the bare name is the same
    for name, folder in folders.items():
        folder.mkdir(parents=True)
        (folder / "pyproject.toml").write_text("")
        says = f"The label printer in the warehouse of {name} speaks ZPL, garbles umlauts and jams on wet paper"
        filled(home, str(folder), Memory("decision", says, trust="user", source="user"))
    client = start()
    for event in ("UserPromptSubmit", "SessionStart"):
        for name, folder in folders.items():
            fields = {"session_id": f"{event} {name}", "cwd": str(folder), "source": "startup"}
            seen = host.context(event, {**fields, "prompt": "does the label printer in the warehouse speak ZPL?"})
            assert f"of {name} speaks" in seen
            assert "of two" not in seen or name == "two"
            assert len(last(client)[0]) == 1
