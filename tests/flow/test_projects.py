"""Goals, projects, links and aliases, as a person types them, with a real worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foreword.config import load
from foreword.errors import NotFound
from foreword.paths import Home
from foreword.worker.client import Client
from tests.flow.conftest import CLEAN, HookRunner, end_worker, wait_for
from tests.flow.forked import foreword


@pytest.fixture
def worker(start) -> Client:
    return start()


@pytest.fixture
def other(tmp_path: Path) -> str:
    return a_project(tmp_path / "depot")


def a_project(folder: Path) -> str:
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    return str(folder)


def run(home: Home, folder: str, *words: str, fails: bool = False) -> str:
    ended = foreword(*words, cwd=folder, env={**CLEAN, "FOREWORD_HOME": str(home.root), "HOME": str(home.root)})
    assert (ended.returncode != 0) == fails, ended.stderr
    return ended.stderr if fails else ended.stdout


def run_json(home: Home, folder: str, *words: str) -> Any:
    return json.loads(run(home, folder, *words, "--json"))


def context_of(worker: Client, folder: str, prompt: str = "", **more: Any) -> str:
    return str(worker.get("/api/context", project_path=folder, prompt=prompt, preview=1, **more)["context"])


def keep(worker: Client, folder: str, title: str, kind: str = "decision", **more: Any) -> str:
    memory = {"kind": kind, "title": title, "project_path": folder, **more}
    return str(worker.post("/api/memories", memory)["memories"][0]["id"])


# ---- goals


def test_open_goals_are_listed_and_those_that_are_done_on_request(home: Home, worker: Client, project: str, other: str):
    run(home, other, "goal", "add", "Theirs")
    first = run(home, project, "goal", "add", "Ship the shop").split()[0]
    second = run(home, project, "goal", "add", "Pay by card").split()[0]
    run(home, project, "goal", "done", first, "--outcome", "since 2.1")
    assert run(home, project, "goal", "list") == f"[ ] {second}  Pay by card\n"
    assert run(home, project, "goal", "list", "--all") == (
        f"[ ] {second}  Pay by card\n[x] {first}  Ship the shop\n      = since 2.1\n"
    )
    run(home, project, "undo")
    assert [goal["id"] for goal in run_json(home, project, "goal", "list")["goals"]] == [first, second]


def test_a_prompt_about_goals_is_told_the_open_ones(worker: Client, project: str):
    def add(title: str) -> str:
        return keep(worker, project, title, kind="goal", detail={"status": "open"})

    still_open, reached = add("Ship the shop"), add("Choose a name")
    worker.post(f"/api/goals/{reached}", {})
    text = context_of(worker, project, "which milestone is next?")
    assert still_open in text
    assert reached not in text
    assert still_open not in context_of(worker, project, "why does the shop not ship?")


# ---- links


def test_links_are_walked_both_ways(home: Home, worker: Client, project: str):
    first, second, third = (keep(worker, project, f"zebra {name}") for name in ("one", "two", "three"))
    keep(worker, project, "unrelated")
    for old, new in ((first, second), (second, third)):
        worker.post("/api/supersede", {"old": old, "new": new})
    head, *linked = run(home, project, "graph", second).splitlines()
    assert head == f"[decision] {second}  zebra two (superseded)"
    assert set(linked) == {
        f"  supersedes -> [decision] {first}  zebra one (superseded)",
        f"  <- supersedes [decision] {third}  zebra three",
    }
    assert "give either the id" in run(home, project, "graph", fails=True)


# ---- what a project is


def test_facts_of_a_project_stand_at_the_start_and_not_before_prompts(home: Home, worker: Client, project: str):
    words = ("--role", "sells things", "--contract", "GET /cart stays", "--depends-on", "payments")
    run(home, project, "project", "set", *words)
    facts = run_json(home, project, "project", "show")["facts"]
    assert facts == {"role": "sells things", "contracts": ["GET /cart stays"], "depends_on": ["payments"]}
    assert "- Project: sells things; contracts: GET /cart stays; depends on: payments" in context_of(worker, project)
    assert "sells things" not in context_of(worker, project, "why is the button green?")
    run(home, project, "project", "set", "--contract", "")
    assert "contracts" not in run_json(home, project, "project", "show")["facts"]
    assert "no value to set" in run(home, project, "project", "set", fails=True)


def test_a_project_shows_where_it_was_seen_and_what_it_holds(home: Home, worker: Client, project: str):
    keep(worker, project, "zebra")
    shown = run_json(home, project, "project", "show")
    assert (shown["name"], shown["roots"], shown["kinds"]) == ("shop", [project], {"decision": 1})
    assert "shop" in run(home, project, "project", "list")
    assert run_json(home, project, "project", "show", "shop")["key"] == shown["key"]
    assert "unknown project" in run(home, project, "project", "show", "nowhere", fails=True)


def test_a_project_is_switched_off_and_on_with_its_aliases(home: Home, worker: Client, project: str, other: str):
    run(home, project, "project", "merge", other, "--yes")
    keep(worker, project, "zebra", kind="preference")
    assert "off" in run(home, project, "project", "off")
    assert set(load(home, {}).settings.off_projects) == {f"dir:{project}", f"dir:{other}"}
    wait_for(lambda: not context_of(worker, other))
    assert "on" in run(home, project, "project", "on")
    assert load(home, {}).settings.off_projects == ()


# ---- which counts as which


def test_an_alias_is_this_project_for_whoever_reads_or_writes(
    home: Home, worker: Client, project: str, other: str, host: HookRunner
):
    ours = keep(worker, project, "zebra of ours", kind="preference")
    run(home, project, "project", "merge", other, "--yes")
    theirs = keep(worker, other, "zebra of theirs", kind="preference")
    for folder in (project, other):
        assert all(rule in context_of(worker, folder) for rule in ("zebra of ours", "zebra of theirs"))
        found = worker.get("/api/search", q="zebra", project_path=folder)["results"]
        assert {each["id"] for each in found} == {ours, theirs}
        assert "foreword: notes from earlier sessions in shop" in context_of(worker, folder)
    end_worker(home)
    host.write_hook()
    start = {"session_id": "s1", "cwd": other, "hook_event_name": "SessionStart", "source": "startup"}
    assert "zebra of ours" in host.context("SessionStart", start)


def test_aliases_never_chain(home: Home, worker: Client, project: str, other: str, tmp_path: Path):
    third = a_project(tmp_path / "third")
    run(home, project, "project", "merge", other, "--yes")
    assert "is merged into" in run(home, third, "project", "merge", other, "--yes", fails=True)
    assert "this project already" in run(home, project, "project", "merge", other, "--yes", fails=True)
    keep(worker, other, "zebra of the first alias")
    run(home, third, "project", "merge", project, "--yes")
    for folder in (project, other, third):
        assert len(worker.get("/api/search", q="zebra", project_path=folder)["results"]) == 1


def test_what_hooks_spooled_under_the_old_key_lands_in_the_project_it_counts_as(
    home: Home, worker: Client, start, host: HookRunner, project: str, other: str
):
    end_worker(home)
    host.write_hook()
    prompt = {"session_id": "s9", "cwd": other, "hook_event_name": "UserPromptSubmit", "prompt": "zebra"}
    host.tell("UserPromptSubmit", prompt)
    assert host.spooled()
    # A merge by hand, as if it had been made before the worker saw the spool.
    from foreword.store import Store

    store = Store(home.database, backups=home.backups)
    store.projects.merge(f"dir:{other}", into=f"dir:{project}", who="user", at=1.0)
    store.close()
    client = start()
    wait_for(lambda: client.get("/api/sessions", project_path=project)["sessions"])
    assert client.get("/api/sessions", project_path=project)["sessions"][0]["id"] == "s9"


def test_a_folder_whose_remote_came_later_finds_its_memory_again(home: Home, worker: Client, tmp_path: Path):
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    session = {"session_id": "s1", "cwd": str(folder), "hook_event_name": "UserPromptSubmit"}
    printed = {**session, "prompt": "let's use zebra stripes because they are easy to see"}
    worker.post("/api/events", {"host": "claude-code", "event": "UserPromptSubmit", "payload": printed})
    over = {**session, "hook_event_name": "SessionEnd"}
    worker.post("/api/events", {"host": "claude-code", "event": "SessionEnd", "payload": over})
    old = run_json(home, str(folder), "project", "show")["key"]
    wait_for(lambda: worker.get("/api/search", q="zebra stripes", project_path=str(folder))["results"])
    before = worker.get("/api/search", q="zebra stripes", project_path=str(folder))["results"]

    (folder / ".git" / "config").write_text('[remote "origin"]\n\turl = https://example.com/a/repo.git\n')
    wait_for(lambda: worker.get("/api/search", q="zebra", project_path=str(folder))["project"] != old)
    keep(worker, str(folder), "elsewhere")
    shown = run_json(home, str(folder), "project", "show")
    assert shown["hints"] == [
        f"this folder was known as {old} ({len(before)} memories): `foreword project merge {old}`"
    ]
    assert "1 sessions" in run(home, str(folder), "project", "merge", old, "--yes")
    after = worker.get("/api/search", q="zebra stripes", project_path=str(folder))["results"]
    assert {each["id"] for each in after} == {each["id"] for each in before}
    assert run_json(home, str(folder), "project", "show")["hints"] == []

    # The same session goes on: what it said is the same memory, and seen where it is now.
    worker.post("/api/events", {"host": "claude-code", "event": "UserPromptSubmit", "payload": {**printed, "id": 2}})
    worker.post(
        "/api/events", {"host": "claude-code", "event": "Stop", "payload": {**session, "hook_event_name": "Stop"}}
    )
    story = worker.get("/api/sessions/s1")
    assert {each["id"] for each in story["memories"]} == {each["id"] for each in before}
    assert story["session"]["project"] == shown["key"]


def test_what_is_switched_differently_is_not_made_one(home: Home, worker: Client, project: str, other: str):
    keep(worker, other, "zebra")
    home.config.write_text(f'off_projects = ["{other}"]\n')
    wait_for(lambda: run_json(home, other, "project", "show")["switches"]["off_projects"])
    assert "switched alike" in run(home, project, "project", "merge", other, "--yes", fails=True)


def test_an_unknown_memory_is_told(worker: Client):
    for ask in (lambda: worker.get("/api/memories/dec-00000000", full=1), lambda: worker.post("/api/goals/x", {})):
        with pytest.raises(NotFound):
            ask()


def test_a_merge_says_before_it_asks_that_it_cannot_be_undone(worker, home, project, other):
    keep(worker, project, "Walrus of the shop")
    keep(worker, other, "Walrus of the depot")
    assert "cannot be undone" in run(home, project, "project", "merge", "--help")
    assert "not a terminal" in run(home, project, "project", "merge", other, fails=True)
    run(home, project, "project", "merge", other, "--yes")
    assert "stay one" in run(home, project, "undo", fails=True)
    found = [each["title"] for each in run_json(home, other, "search", "walrus")["results"]]
    assert sorted(found) == ["Walrus of the depot", "Walrus of the shop"]
