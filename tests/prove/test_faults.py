"""Disks that fail or are full, databases that are locked, clocks that jump, homes that are not ours to write.

The hook ends with 0, nothing acknowledged is lost, and the user is told why.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from foreword.errors import ForewordError
from foreword.hook import build
from foreword.paths import Home
from foreword.problems import noted
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import CLEAN, PATIENT, HookRunner, end_worker, wait_for
from tests.prove.conftest import counts, fault, needs_root, needs_strace
from tests.scratch import asking, fact

pytestmark = pytest.mark.timeout(900)
YEARS = 365 * 86_400.0


def tool_use(project: str, name: str) -> dict[str, Any]:
    payload = {"session_id": "s", "cwd": project, "hook_event_name": "PostToolUse", "tool_name": "Bash"}
    return {**payload, "tool_use_id": name, "tool_input": {"command": "make"}, "tool_response": {"stdout": name}}


def tell_hook(host: HookRunner, project: str, names: list[str]) -> None:
    for name in names:
        ended = host.tell("PostToolUse", tool_use(project, name))
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def kept(host: HookRunner) -> Counter[str]:
    return Counter(payload.get("tool_use_id", "") for payload in host.stored())


FAULTS = ["fdatasync:error=EIO", "pwrite64:error=EIO", "pwrite64:error=ENOSPC", "fdatasync:error=ENOSPC"]


@needs_strace
@counts(1, 25)
def test_what_is_acknowledged_while_the_disk_fails_is_kept_and_the_rest_waits(
    home: Home,
    host: HookRunner,
    start: Callable[[], Client],
    project: str,
    chance: random.Random,
    figure: Any,
    count: int,
) -> None:
    host.write_hook()
    names, slowest = [], 0.0
    for point in range(count):
        client = start()
        call, _, error = chance.choice(FAULTS).partition(":")
        acknowledged: set[str] = set()
        with fault(lifecycle.pid_of(home), call, f"{error}:when={chance.randint(1, 9)}+"):
            for number in range(6):
                name = f"api-{point}-{number}"
                with suppress(ForewordError):
                    event = {"host": "claude-code", "event": "PostToolUse", "payload": tool_use(project, name)}
                    client.post("/api/events", event)
                    acknowledged.add(name)
            mine = [f"hook-{point}-{number}" for number in range(4)]
            tell_hook(host, project, mine)
        began = time.monotonic()
        if chance.random() < 0.5:
            end_worker(home, how=signal.SIGKILL)
            start()
        wait_for(lambda: host.spooled() == 0)
        slowest = max(slowest, time.monotonic() - began)
        names += mine
        assert acknowledged <= kept(host).keys(), (call, error)
    times = kept(host)
    assert {name: times[name] for name in names} == dict.fromkeys(names, 1)
    assert set(times.values()) == {1}
    assert any("disk" in each.what or "full" in each.what or "I/O" in each.what for each in noted(str(home.trouble)))
    figure("disks that failed (EIO, ENOSPC)", f"{count}; 0 acknowledged lost, all caught up within {slowest:.1f} s")


@pytest.mark.parametrize("seconds", [0, pytest.param(60, marks=pytest.mark.prove)])
def test_a_locked_database_holds_up_no_hook(
    home: Home, host: HookRunner, start: Callable[[], Client], project: str, figure: Any, seconds: int
) -> None:
    start()
    host.write_hook(**({"FOREWORD_DEADLINE_PROMPT_MS": "300"} if seconds else {}))
    names, spent = [], []
    with closing(sqlite3.connect(home.database, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        until = time.monotonic() + seconds
        while not names or time.monotonic() < until:
            names.append(f"l{len(names)}")
            began = time.monotonic()
            tell_hook(host, project, names[-1:])
            spent.append(time.monotonic() - began)
        db.execute("ROLLBACK")
    wait_for(lambda: host.spooled() == 0)
    wait_for(lambda: kept(host) == dict.fromkeys(names, 1))
    if seconds:
        figure(f"database locked for {seconds} s", f"{len(names)} hooks, 0 lost, slowest {max(spent) * 1000:.0f} ms")


CLOCK = """
import sys, time
real, jump = time.time, float(sys.argv[1])
time.time = lambda: real() + jump
from foreword.worker.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "jumps", [[10 * YEARS], pytest.param([50 * YEARS, -30 * YEARS, 0, 3 * YEARS], marks=pytest.mark.prove)]
)
def test_a_clock_that_jumps_purges_nothing(
    home: Home, host: HookRunner, start: Callable[[], Client], project: str, jumps: list[float]
) -> None:
    client = start()
    client.post("/api/memories", {"kind": "note", "title": fact("canary"), "project_path": project})
    host.write_hook()
    tell_hook(host, project, ["t0"])
    before = client.get("/api/health")["counts"]
    for number, jump in enumerate(jumps, 1):
        end_worker(home, how=signal.SIGTERM)
        environ = {**CLEAN, **PATIENT, "FOREWORD_HOME": str(home.root)}
        jumped = subprocess.Popen([sys.executable, "-c", CLOCK, str(jump)], env=environ)
        try:
            wait_for(lambda pid=jumped.pid: lifecycle.pid_of(home) == pid and home.socket.exists())
            tell_hook(host, project, [f"t{number}"])
            client.post("/api/prune", {})
            seen = host.context(
                "UserPromptSubmit", {"session_id": f"n{number}", "cwd": project, "prompt": asking("canary")}
            )
            assert "the canary sings" in seen
            counted = client.get("/api/health")["counts"]
        finally:
            jumped.terminate()
            jumped.wait()
        assert counted["memories"] >= before["memories"]
        assert counted["events"] == before["events"] + 2 * number


READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


@needs_root
def test_a_read_only_home_still_answers_and_says_so(
    home: Home, host: HookRunner, start: Callable[[], Client], project: str
) -> None:
    client = start()
    client.post("/api/memories", {"kind": "note", "title": fact("canary"), "project_path": project})
    end_worker(home, how=signal.SIGTERM)
    host.write_hook()
    mounted = ["unshare", "-m", "sh", "-c", READ_ONLY, str(home.root)]
    if subprocess.run([*mounted, "true"], check=False, capture_output=True).returncode:
        pytest.skip("cannot mount a folder read-only here")
    for event, payload in (("UserPromptSubmit", {"prompt": asking("canary")}), ("SessionStart", {"source": "startup"})):
        raw = json.dumps({"session_id": "s", "cwd": project, **payload}).encode()
        command = [*mounted, *build.command(home, host="claude-code", event=event)]
        ended = subprocess.run(command, input=raw, capture_output=True, check=False, env=CLEAN, timeout=60)
        assert (ended.returncode, ended.stderr) == (0, b""), event
        assert event != "UserPromptSubmit" or b"the canary sings" in ended.stdout
    for words in (["status"], ["doctor"]):
        environ = {**CLEAN, "FOREWORD_HOME": str(home.root), "HOME": str(home.root.parent)}
        command = [*mounted, sys.executable, "-m", "foreword", *words]
        ended = subprocess.run(command, capture_output=True, check=False, env=environ, text=True, timeout=60)
        assert "Traceback" not in ended.stdout + ended.stderr
        assert "read-only" in (ended.stdout + ended.stderr).lower(), ended


def test_a_home_behind_a_link_is_one_home(
    home: Home, host: HookRunner, start: Callable[[], Client], project: str
) -> None:
    start()
    link = home.root.parent / "link"
    link.symlink_to(home.root)
    linked = HookRunner(Home(link))
    host.write_hook()
    tell_hook(linked, project, ["linked"])
    tell_hook(host, project, ["straight"])
    assert lifecycle.pid_of(Home(link)) == lifecycle.pid_of(home)
    wait_for(lambda: kept(host) == {"linked": 1, "straight": 1})


@needs_root
@pytest.mark.prove
def test_a_small_disk_that_fills_up_under_a_storm_loses_nothing_that_was_acknowledged(
    tmp_path_factory: pytest.TempPathFactory, project: str, monkeypatch: pytest.MonkeyPatch, figure: Any
) -> None:
    disk = Path(os.path.realpath(tmp_path_factory.mktemp("d", numbered=True)))
    home = Home(disk / "h")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("cannot mount a tmpfs here")
    try:
        home.prepare()
        monkeypatch.setenv("FOREWORD_HOME", str(home.root))
        lifecycle.start(home)
        host, client, acknowledged = HookRunner(home), Client(home, seconds=20), 0
        host.write_hook()
        wait_for(lambda: Path(f"{home.spool}.reserve").exists())
        while True:
            payload = tool_use(project, f"e{acknowledged}") | {"tool_input": {"command": os.urandom(4000).hex()}}
            try:
                client.post("/api/events", {"host": "claude-code", "event": "PostToolUse", "payload": payload})
            except ForewordError:
                break  # it is full
            acknowledged += 1
        tell_hook(host, project, [f"hook-{number}" for number in range(5)])
        subprocess.run(["mount", "-o", "remount,size=60m", str(disk)], check=True)
        began = time.monotonic()
        wait_for(lambda: host.spooled() == 0 and client.get("/api/health")["counts"]["events"] >= acknowledged + 5)
        took = time.monotonic() - began
        names = [f"e{number}" for number in range(acknowledged)] + [f"hook-{number}" for number in range(5)]
        times = kept(host)
        assert {name: times[name] for name in names} == dict.fromkeys(names, 1)
        assert any("full" in each.what for each in noted(str(home.trouble)))
        figure("disk full under load", f"{acknowledged:,} acknowledged, 0 lost, resumed {took:.1f} s after space")
    finally:
        end_worker(home)
        subprocess.run(["umount", str(disk)], check=True)
