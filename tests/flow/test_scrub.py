"""What older rules let through goes, from every file of the home, and nothing else changes."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from foreword.capture.payload import HookCall
from foreword.hook.spool import append
from foreword.maintenance.rescan import Cleaner, rewrite_files
from foreword.models import Change, Event, Injection, Memory, Vector
from foreword.paths import Home
from foreword.projects import resolve
from foreword.store import Store
from tests.flow.conftest import CLEAN, end_worker
from tests.planted import ALNUM, chars

RNG = random.Random(5)
TOKEN = "gh" + "p_" + chars(RNG, ALNUM, 36)
PASSWORD = "Wombat-" + chars(RNG, ALNUM, 12)
VALUE = chars(RNG, ALNUM, 24)  # of a variable


@pytest.fixture
def leaky(home: Home, project: str) -> Home:
    """A home as an older Foreword left it: written by the store itself, which knows no secrets."""
    key = resolve(project).key
    store = Store(home.database, backups=home.backups)
    now = time.time()
    memories = [Memory("note", f"walrus {number}", project=key, created=now) for number in range(250)]
    leaks = [
        Memory("decision", f"use {TOKEN} for the walrus", f"password: {PASSWORD}", project=key, created=now, uid=TOKEN),
        Memory("failure", "login", detail={"error": f"denied for {TOKEN}"}, files=(f"a/{TOKEN}.py",), project=key),
        Memory("note", "x", tags=(TOKEN,), functions=(f"f_{TOKEN}",), session=TOKEN, source=TOKEN, project=key),
    ]
    vectors = [Vector("m", 1.0, b"\x01\x02")] * len(leaks)
    kept = store.memories.put([*memories, *leaks])
    store.memories.add_vectors(kept[-len(leaks) :], vectors)
    payload = {
        "prompt": f"why is {TOKEN} refused?",
        "tool_input": {"file_path": ".env", "content": "HIDDEN"},
    }
    store.events.append(
        [Event("k1", "claude-code", "UserPromptSubmit", "prompt", TOKEN, key, f"/x/{TOKEN}", now, payload)]
    )
    store.events.append(
        [Event("k2", "claude-code", "Stop", "stop", "s2", f"/p/{TOKEN}", "/x", now, {"x": f"with {VALUE}!"})]
    )
    store.save(changes=[Change(key, "a.py", "f", "NEW", f"f(token='{TOKEN}')", 1, 2, "s", now)])
    injection = Injection(
        "inj-1",
        *("prompt", TOKEN, key, "claude-code", now, 1, 2, 0.1, {}, {}, ()),
        terms=(TOKEN.lower(), "refused"),
        text=f"- {TOKEN}",
    )
    store.injections.record(injection, at_once=True)
    store.close()
    copy = apsw.Connection(str(home.backups / "memory-schema-3.db"))
    db = apsw.Connection(str(home.database))
    with copy.backup("main", db, "main") as backup:
        backup.step(-1)
    copy.close()
    db.close()
    home.trouble.write_text(json.dumps({"at": now, "where": "hook", "what": f"bad {TOKEN}"}) + "\n")
    home.log.write_text(f"2026-01-01 INFO saw {TOKEN}\nsecond line\n")
    append(str(home.spool / "aside"), HookCall("x", "y", now, json.dumps({"t": TOKEN}).encode()), most=1 << 20)
    return home


def holding(home: Home, *secrets: str) -> list[str]:
    """The files that hold six bytes of a secret, however SQLite put them there."""
    windows = [secret[at : at + 6].encode() for secret in secrets for at in range(4, len(secret) - 5)]
    windows += [window.lower() for window in windows if not window.isdigit()]
    found = []
    for path in home.root.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found += [f"{path.name}: {window!r}" for window in windows if window in data]
    return found


def rows(path: Path) -> dict[str, int]:
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return {
            name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("memories", "events", "changes")
        }
    finally:
        db.close()


def scrub(home: Home, *options: str, **environ: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "foreword", "scrub", "--json", *options],
        env={**CLEAN, "FOREWORD_HOME": str(home.root), "PYTHONPATH": ":".join(sys.path), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert TOKEN not in done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_scrub_leaves_no_byte_and_loses_no_row(leaky: Home, project: str) -> None:
    before = rows(leaky.database)
    assert holding(leaky, TOKEN, PASSWORD)
    try:
        would = scrub(leaky, "--dry-run")
        assert holding(leaky, TOKEN, PASSWORD)
        did = scrub(leaky, DEPLOY_TOKEN=VALUE)
        assert would["tables"]["memories"] == did["tables"]["memories"]
        assert did["tables"]["memories"]["changed"] == 3
        assert did["kinds"]["github-token"] >= 10
        assert did["kinds"]["password"] >= 2
        assert did["kinds"]["env"] >= 2
        assert did["kinds"]["path"] >= 2
        assert scrub(leaky, DEPLOY_TOKEN=VALUE)["kinds"] == {}
        found = json.loads(search(leaky, project, "walrus"))
        assert any("[redacted:github-token] for the walrus" in each["title"] for each in found["results"])
    finally:
        end_worker(leaky)
    assert holding(leaky, TOKEN, PASSWORD, VALUE) == []
    assert b"HIDDEN" not in leaky.database.read_bytes()
    assert rows(leaky.database) == before
    assert rows(leaky.backups / "memory-schema-3.db") == before
    assert "second line" in leaky.log.read_text()


def search(home: Home, project: str, *words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "foreword", "search", "--json", "--kind", "decision", "--project", project, *words],
        env={**CLEAN, "FOREWORD_HOME": str(home.root), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout


def test_a_scrub_that_was_stopped_is_finished_by_the_next(leaky: Home) -> None:
    store = Store(leaky.database, backups=leaky.backups)
    left = iter(range(150))

    def stopped(*cell):
        next(left)
        return Cleaner().cell(*cell)

    with pytest.raises(StopIteration):
        store.maintenance.rewrite(stopped)
    assert store.maintenance.rewrite(Cleaner().cell).changed.total() > 0
    assert store.memories.without_vectors("m", limit=10_000)
    assert store.maintenance.rewrite(Cleaner().cell).changed.total() == 0
    store.close()


def test_a_look_that_changes_nothing_leaves_alone_what_another_is_writing(home: Home) -> None:
    append(str(home.spool / "aside"), HookCall("x", "y", 5.0, json.dumps({"t": TOKEN}).encode()), most=1 << 20)
    half = home.spool / "aside.new" / "current"
    half.parent.mkdir()
    half.write_bytes(b"half")
    home.log.write_text(f"saw {TOKEN}\n")
    assert rewrite_files(home, Cleaner().text, dry_run=True).changed.total() == 2
    assert half.read_bytes() == b"half"
    assert TOKEN in home.log.read_text()
