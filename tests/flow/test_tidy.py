"""A real worker keeps its memory clean: when it is asked, when it is idle, however often it is killed; and at once."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from foreword.errors import ForewordError
from foreword.models import Memory, Session
from foreword.paths import Home
from foreword.projects import resolve
from foreword.store import Store
from foreword.worker import lifecycle
from foreword.worker.client import Client
from foreword.worker.jobs import JobRunner
from foreword.worker.jobs.imports import ImportJob
from foreword.worker.jobs.maintenance import TidyJob
from foreword.worker.projects import ProjectRegistry
from tests.flow.conftest import CLEAN, end_worker, until, wait_for
from tests.flow.forked import foreword
from tests.services import Reports


def filled(home: Home, project: str, *, things: int = 60) -> None:
    """A store of things that were each chosen three times, and then otherwise; as sessions leave it over the months."""
    found = resolve(project)
    memories = []
    for thing in range(things):
        name = "".join("bcdfghkl"[int(digit)] for digit in f"{thing:04o}")
        titles = (f"Use {name} for the {name}work", f"use {name} for {name}work.", f"Use the {name} for {name}work",
                f"Use {name}x instead of {name}")  # fmt: skip
        for turn, title in enumerate(titles):
            id = f"dec-{thing:04}000{turn}"
            seen = {"session": f"s{turn}", "seen": 1 + turn, "detail": {"seen_in": {f"s{turn}": 1 + turn}}}
            of = {"project": found.key, "scope": found.scope, "created": float(turn), "confirmed": float(turn)}
            memories.append(Memory("decision", title, id=id, uid=id, **of, **seen))
    with closing(Store(home.database, backups=home.backups)) as store:
        store.memories.put(memories)
        store.save(Session("s0", "codex", found.key, project, 1.0, 2.0, ended=2.0))


def as_it_is(home: Home, project: str) -> tuple[dict, set]:
    scope = resolve(project).scope
    with closing(Store(home.database, backups=home.backups)) as store:
        memories = {memory.id: vars(memory) for _, memory in store.memories.page(scopes=(scope,), limit=5000)}
        links = {tuple(vars(link).values()) for id in memories for link in store.memories.links(id)}
    return memories, links


def cli(home: Home, project: str, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {**CLEAN, "HOME": str(home.root), "FOREWORD_HOME": str(home.root)}
    return foreword("tidy", *words, cwd=project, env=environ)


def test_the_plan_is_shown_first_and_nothing_is_done_without_a_yes(home, project, start):
    filled(home, project, things=3)
    before = as_it_is(home, project)
    for words, code in ((("--dry-run",), 0), ((), 1)):  # without a terminal nobody can be asked
        shown = cli(home, project, *words)
        assert shown.returncode == code, shown.stderr
        assert "merge" in shown.stdout
        assert "6 would be merged" in shown.stdout
        assert "3 would be superseded" in shown.stdout
    end_worker(home)
    assert as_it_is(home, project) == before
    done = cli(home, project, "--yes")
    assert "6 merged into another" in done.stdout
    assert "foreword undo tidy-" in done.stdout
    again = cli(home, project, "--yes")
    assert again.stdout == "Nothing to tidy.\n"
    plan = json.loads(cli(home, project, "--dry-run", "--json", "--all").stdout)
    assert plan["by"] == {}
    assert [each["project"] for each in plan["projects"]] == [resolve(project).key]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.long)])
def test_killed_at_any_point_it_ends_as_if_it_had_not_been(home, project, start, kills):
    filled(home, project)
    undisturbed = Home(root=home.root.parent / "u")
    shutil.copytree(home.root, undisturbed.root)
    rng = random.Random(3)
    killed, longest = 0, 0.15
    for _ in range(5 * kills):
        _up(start)
        asking = threading.Thread(target=_request_tidy, args=(home, project), daemon=True)
        asking.start()
        time.sleep(rng.uniform(0.0, longest))
        in_time = asking.is_alive()
        end_worker(home)
        asking.join(10)
        killed += in_time
        if killed == kills:
            break
        if not in_time:  # it was quicker, and there is nothing left to do: from the beginning
            longest *= 0.8
            shutil.rmtree(home.root)
            shutil.copytree(undisturbed.root, home.root)
    assert killed == kills
    _up(start).post("/api/tidy", {"project_path": project, "dry_run": False})
    end_worker(home)
    wanted = _tidied(undisturbed, project)
    assert as_it_is(home, project) == wanted
    assert sum(memory["status"] == "active" for memory in wanted[0].values()) == 60


def _up(start) -> Client:
    """A worker that answers; the socket of one that was killed is there until the next one has put its own there."""
    for _ in until(20):
        with suppress(ForewordError):
            return start()
    raise AssertionError("no worker answers")


def _request_tidy(home: Home, project: str) -> None:
    with suppress(ForewordError, OSError):
        Client(home, seconds=20).post("/api/tidy", {"project_path": project, "dry_run": False})


def _tidied(home: Home, project: str) -> tuple[dict, set]:
    lifecycle.start(home)
    try:
        Client(home, seconds=60).post("/api/tidy", {"project_path": project, "dry_run": False})
    finally:
        end_worker(home)
    return as_it_is(home, project)


def test_an_idle_worker_tidies_by_itself(home, project, start, monkeypatch):
    filled(home, project, things=2)
    monkeypatch.setenv("FOREWORD_TIDY_IDLE_MINUTES", "0.01")
    start()
    wait_for(lambda: _active(home) == 2)


@pytest.mark.parametrize("tidy", [True, False])
def test_switched_off_it_does_not(home, store, tidy):
    services = Reports(store, home, environ={"FOREWORD_TIDY": str(tidy).lower()})
    services.last_request = -1e9
    runner = JobRunner(services)
    ImportJob(services, runner, ProjectRegistry(services))
    job = TidyJob(services, runner, ProjectRegistry(services))
    assert job._is_time() is tidy


def _active(home: Home) -> int:
    import sqlite3

    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as db:
        return db.execute("SELECT count(*) FROM memories WHERE status = 'active'").fetchone()[0]


@pytest.mark.parametrize("trigger", ["session", "add"])
def test_what_was_taken_back_is_not_told_at_the_next_start(project, start, trigger):
    client = start()
    _says(client, project, "one", "Let's use Redis for the cache because it runs here already", at=100.0)
    assert "Redis" in _begins(client, project)
    if trigger == "session":
        _says(
            client, project, "two", "Let's use Valkey for the cache instead of Redis because of the licence", at=200.0
        )
    else:
        fields = {"kind": "decision", "title": "Use Valkey for the cache instead of Redis", "project_path": project}
        client.post("/api/memories", fields)
    shown = _begins(client, project)
    assert "use Valkey for the cache instead of Redis" in shown.replace("Use", "use")
    assert "use Redis for the cache" not in shown


def _says(client: Client, project: str, session: str, prompt: str, *, at: float) -> None:
    now = time.time() - 1000 + at
    common = {"session_id": session, "cwd": project}
    events = [
        {
            "event": "UserPromptSubmit",
            "payload": {**common, "prompt": "make the shop faster", "prompt_id": "p"},
            "at": now,
        },
        {"event": "UserPromptSubmit", "payload": {**common, "prompt": prompt, "prompt_id": "q"}, "at": now + 0.5},
        {
            "event": "PostToolUse",
            "payload": {
                **common,
                "tool_name": "Write",
                "tool_use_id": session,
                "tool_input": {"file_path": f"{project}/cache.py", "content": "cache = 1"},
                "tool_response": {"type": "create", "filePath": f"{project}/cache.py", "content": "cache = 1"},
            },
            "at": now + 0.7,
        },
        {"event": "Stop", "payload": {**common, "last_assistant_message": "Done."}, "at": now + 1},
    ]
    Path(project, "cache.py").write_text("cache = 1")  # decisions come at a start with the files in play
    client.post("/api/events", {"events": [{"host": "claude-code", **each} for each in events]})

    def distilled() -> bool:
        row = client.get(f"/api/sessions/{session}")["session"]
        return row["extracted"] == row["newest"]

    wait_for(distilled)


def _begins(client: Client, project: str) -> str:
    query = {"project_path": project, "session_id": f"next{os.urandom(3).hex()}", "source": "startup"}
    return client.get("/api/context", **query)["context"]
