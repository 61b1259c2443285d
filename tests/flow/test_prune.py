"""`foreword prune`, through a real worker: shown, asked, done, told in the log, and by itself when it is quiet."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from foreword.config import change
from foreword.models import Event, Memory
from foreword.paths import Home
from foreword.problems import noted
from foreword.store import Store
from tests.flow.conftest import CLEAN, wait_for
from tests.flow.forked import foreword

DAY = 86_400
OLD = 30  # days of history
TEXT = "lorem ipsum dolor sit amet " * 200


def day(back: int) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(time.time() - back * DAY))


@pytest.fixture
def filled(home: Home) -> Home:
    """A month of sessions, each distilled."""
    store = Store(home.database, backups=home.backups)
    for back in range(OLD, 0, -1):
        store.stats.start_day(day(back))
        at, session = time.time() - back * DAY, f"s{back}"
        store.events.append(
            [Event(f"k{back}-{n}", "codex", "P", "prompt", session, "p", "/p", at, {"prompt": TEXT}) for n in range(9)]
        )
        known = store.sessions.get(session)
        made = Memory("observation", f"of {back}", project="p", created=at, confirmed=at, session=session)
        store.save(known, upto=known.newest, memories=[made])
    store.stats.start_day(day(0))
    store.close()
    change(home, "events_keep_days", "20")
    return home


def run(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    return foreword(*words, cwd=home.root, env={**CLEAN, "FOREWORD_HOME": str(home.root), "COLUMNS": "200"})


def test_it_is_shown_asked_done_and_told(filled, start):
    client = start()
    preview = client.post("/api/prune", {"dry_run": True})
    (events,) = [each for each in preview["classes"] if each["name"] == "events"]
    assert (events["rows"], preview["rows"]) == (99, 99)
    result = run(filled, "prune", "--dry-run")
    assert result.returncode == 0, result.stderr
    assert "events  99" in result.stdout
    refused = run(filled, "prune")
    assert refused.returncode == 1
    assert "not a terminal" in refused.stderr
    assert client.get("/api/health")["counts"]["events"] == 9 * OLD
    done = json.loads(run(filled, "prune", "--yes", "--json").stdout)
    assert done["pruned"] == {"events": 99}
    assert client.get("/api/health")["counts"]["events"] == 9 * OLD - 99
    assert client.get("/api/health")["counts"]["memories"] == OLD
    again = run(filled, "prune", "--yes")
    assert "deleted: nothing" in again.stdout


def test_the_idle_worker_does_it_by_itself_once_a_day(filled, start, monkeypatch):
    monkeypatch.setenv("FOREWORD_WORKER_IDLE_MINUTES", "0.05")
    client = start()
    database = filled.database

    def gone() -> bool:
        import sqlite3

        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
            return connection.execute("SELECT count(*) FROM events").fetchone()[0] == 9 * OLD - 99

    del client
    wait_for(gone)


def test_a_store_past_its_cap_is_brought_below_and_what_cannot_is_told_once(filled, start):
    change(filled, "events_keep_days", "0")
    change(filled, "store_max_mb", "1")
    client = start()
    done = client.post("/api/prune", {})
    assert done["size"]["used"] <= 1 << 20
    assert client.get("/api/health")["counts"]["events"] > 0
    assert client.get("/api/health")["counts"]["memories"] == OLD
    notes = [{"kind": "decision", "title": f"{n}", "body": TEXT * 4, "project_path": "/"} for n in range(100)]
    client.post("/api/memories", {"memories": notes})
    for _ in range(3):
        done = client.post("/api/prune", {})
    assert done["size"]["used"] > done["size"]["most"]
    assert "that `store_max_mb` allows" in run(filled, "status").stdout
    assert client.get("/api/health")["counts"]["memories"] >= 100
    troubles = [each.what for each in noted(str(filled.trouble)) if "store_max_mb" in each.what]
    assert len(troubles) == 1
