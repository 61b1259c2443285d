"""Processes that are killed at the n-th call of a kind: what was acknowledged is kept, once, and nothing is damaged."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from foreword.errors import ForewordError
from foreword.hook import build
from foreword.paths import Home
from foreword.store import SCHEMA
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.contract.test_migrations import opened, state
from tests.fixtures.make_store import FIXTURES
from tests.flow.conftest import CLEAN, HookRunner, end_worker, wait_for
from tests.prove.conftest import counts, fault, needs_strace

# What is called while events come, and how often about.
OF_WORKER = {"pwrite64": 400, "fdatasync": 25, "fcntl": 150, "pread64": 60, "sendto": 4, "close": 5}
OF_HOOK = {"openat": 120, "read": 60, "lseek": 40, "write": 4, "fdatasync": 2, "fsync": 2, "rename": 2, "flock": 2}
OF_MIGRATION = {"pwrite64": 120, "fdatasync": 12, "unlink": 3, "ftruncate": 2, "openat": 300}
LINES = 4  # that tell a worker something at the same time
EVENTS = 12  # that each tells while the worker is about to be killed

pytestmark = [needs_strace, pytest.mark.timeout(1800)]


@counts(3, 250)
def test_a_worker_killed_at_any_call_keeps_what_it_acknowledged(
    home: Home, start: Callable[[], Client], project: str, chance: random.Random, figure: Any, count: int
) -> None:
    calls: list[tuple[str, bool]] = []
    notes: dict[str, str] = {}
    killed = 0
    for point in range(count):
        client = start()
        call, when = _point(chance, OF_WORKER)
        with fault(lifecycle.pid_of(home), call, f"signal=SIGKILL:when={when}"), ThreadPoolExecutor(LINES) as pool:
            telling = [pool.submit(_tell, client, project, f"{point}-{line}") for line in range(LINES)]
            calls += [each for line in telling for each in line.result()]
            with suppress(ForewordError):
                title = f"walrus {point}"
                kept = client.post("/api/memories", {"kind": "note", "title": title, "project_path": project})
                notes[kept["memories"][0]["id"]] = title
        killed += not lifecycle.pid_of(home)
        end_worker(home, how=signal.SIGKILL)
        assert _integrity(home) == "ok", (call, when)
    with closing(sqlite3.connect(home.database)) as db:
        stored = Counter(key for (key,) in db.execute("SELECT json_extract(payload, '$.tool_use_id') FROM events"))
        titles = dict(db.execute("SELECT id, title FROM memories WHERE kind = 'note'"))
    acknowledged = {name for name, ended in calls if ended}
    assert not acknowledged - stored.keys(), "lost"
    assert not [name for name, times in stored.items() if times > 1], "doubled"
    assert notes.items() <= titles.items()
    client = start()  # those that were not acknowledged are told again, as hooks do from the spool
    for name, _ in calls:
        if name not in acknowledged:
            client.post("/api/events", _event(project, name))
    assert client.get("/api/health")["counts"]["events"] == len(calls)
    figure(
        "workers killed at a system call",
        f"{killed} of {count}; {len(acknowledged):,} events acknowledged, 0 lost, 0 doubled",
    )


@counts(4, 150)
def test_a_hook_killed_at_any_call_harms_nothing_that_others_told(
    home: Home,
    host: HookRunner,
    start: Callable[[], Client],
    project: str,
    chance: random.Random,
    figure: Any,
    count: int,
) -> None:
    host.write_hook()
    whole, killed = set(), 0
    for point in range(count):
        call, when = _point(chance, OF_HOOK)
        payload = json.dumps(_event(project, f"h{point}")["payload"]).encode()
        strace = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}"]
        inject = [*strace, "-e", f"inject={call}:signal=SIGKILL:when={when}"]
        command = build.command(home, host="claude-code", event="PostToolUse")
        ended = subprocess.run([*inject, *command], input=payload, capture_output=True, env=CLEAN, check=False)
        killed += ended.returncode != 0
        if not ended.returncode:
            whole.add(f"h{point}")
        assert (ended.stdout, host.tell("PostToolUse", _event(project, f"w{point}")["payload"]).returncode) == (b"", 0)
        whole.add(f"w{point}")
    start()
    wait_for(lambda: host.spooled() == 0)
    stored = Counter(payload["tool_use_id"] for payload in host.stored())
    assert whole <= stored.keys()
    assert set(stored.values()) == {1}
    figure("hooks killed at a system call", f"{killed} of {count}; {len(whole)} others kept, 0 lost, 0 doubled")


MIGRATE = "import sys; from pathlib import Path; from foreword.store import Store; p = Path(sys.argv[1]); "
MIGRATE += "Store(p, backups=p.parent / 'backups').close()"


@counts(2, 60)
def test_a_migration_killed_at_any_call_leaves_every_row(
    tmp_path: Path, chance: random.Random, figure: Any, count: int
) -> None:
    image, path = gzip.decompress(FIXTURES[0].read_bytes()), tmp_path / "memory.db"
    path.write_bytes(image)
    before = state(path)
    opened(path).close()
    done, killed = state(path), 0
    assert done[0] == SCHEMA
    for _ in range(count):
        shutil.rmtree(tmp_path / "backups", ignore_errors=True)
        for log in tmp_path.glob("memory.db-*"):
            log.unlink()
        path.write_bytes(image)
        call, when = _point(chance, OF_MIGRATION)
        strace = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}"]
        inject = [*strace, "-e", f"inject={call}:signal=SIGKILL:when={when}", sys.executable, "-c", MIGRATE, str(path)]
        killed += subprocess.run(inject, capture_output=True, check=False).returncode != 0
        assert state(path) in (before, done) or state(path)[0] not in (before[0], SCHEMA), (call, when)
        opened(path).close()
        assert state(path) == done, (call, when)
    figure("migrations killed at a system call", f"{killed} of {count}; every row as before")


def _point(chance: random.Random, calls: dict[str, int]) -> tuple[str, int]:
    call = chance.choice([*calls])
    return call, chance.randint(1, calls[call])


def _tell(client: Client, project: str, line: str) -> list[tuple[str, bool]]:
    """Tell some events one after another -> their names, and whether each was acknowledged."""
    outcomes = []
    for number in range(EVENTS):
        name = f"{line}-{number}"
        try:
            client.post("/api/events", _event(project, name))
        except ForewordError:
            outcomes.append((name, False))
        else:
            outcomes.append((name, True))
    return outcomes


def _event(project: str, name: str) -> dict[str, Any]:
    payload = {"session_id": f"s{name[0]}", "cwd": project, "hook_event_name": "PostToolUse", "tool_name": "Bash"}
    payload |= {"tool_use_id": name, "tool_input": {"command": f"echo {name}"}, "tool_response": {"stdout": "x" * 900}}
    return {"host": "claude-code", "event": "PostToolUse", "payload": payload}


def _integrity(home: Home) -> str:
    with closing(sqlite3.connect(home.database)) as db:
        return str(db.execute("PRAGMA integrity_check").fetchone()[0])
