"""Many hooks at once, and a worker that dies: nothing is lost, nothing is doubled, nothing is printed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Semaphore
from typing import Any

import pytest

from foreword.config import load
from foreword.hook import build
from foreword.paths import Home, worker_command
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import HookRunner, end_worker, wait_for
from tests.scratch import processes_in

KILL_EVERY = 15  # hooks
# Sessions at once, and hooks of each.
STORMS = [(4, 25), pytest.param((16, 50), marks=pytest.mark.long), pytest.param((32, 200), marks=pytest.mark.prove)]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("storm", STORMS, ids=str)
def test_every_event_whose_hook_returned_is_stored_once_while_workers_are_killed(
    home: Home, host: HookRunner, start, project, storm
):
    many, events = storm
    host.write_hook(worker=worker_command())
    start()
    hooks = Semaphore(0)  # released when one has returned
    killing = ThreadPoolExecutor(1)
    killed = killing.submit(_kill_now_and_then, home, hooks, times=many * events // KILL_EVERY)
    with ThreadPoolExecutor(many) as sessions:
        outcomes = list(sessions.map(lambda number: _session(host, number, project, events, hooks), range(many)))
    assert all(outcome == (0, b"", b"") for session in outcomes for outcome in session)
    start()
    wait_for(lambda: host.spooled() == 0)
    times = Counter(payload["tool_use_id"] for payload in host.stored())
    assert times == {f"toolu_{session}_{number}": 1 for session in range(many) for number in range(events)}
    assert killed.result() > 1


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("races", [1, pytest.param(50, marks=pytest.mark.prove)])
def test_fifty_hooks_at_once_leave_exactly_one_worker(home: Home, host: HookRunner, start, project, races):
    payload = {"session_id": "s", "cwd": project, "hook_event_name": "Stop"}
    for race in range(races):
        host.write_hook(worker=worker_command())
        with ThreadPoolExecutor(50) as pool:
            ended = list(
                pool.map(lambda n, race=race: host.tell("Stop", {**payload, "prompt_id": f"{race} {n}"}), range(50))
            )
        assert {(each.returncode, each.stdout, each.stderr) for each in ended} == {(0, b"", b"")}
        wait_for(lambda: lifecycle.pid_of(home) and home.socket.exists())
        wait_for(lambda race=race: Client(home).get("/api/health")["counts"]["events"] == 50 * (race + 1))
        wait_for(lambda: _workers(home) == [lifecycle.pid_of(home)])  # who came second has left
        if race + 1 < races:
            end_worker(home)


def test_fifty_hooks_at_once_on_a_busy_machine_without_a_worker_keep_every_event(
    home: Home, host: HookRunner, start, project
):
    build.refresh(home, load(home, {}).settings)  # with the deadlines that agents get
    busy = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    hogs = [subprocess.Popen(busy) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        with ThreadPoolExecutor(50) as pool:
            ended = list(pool.map(lambda number: host.tell("PostToolUse", _tool_use("s", number, project)), range(50)))
        assert {(each.returncode, each.stdout, each.stderr) for each in ended} == {(0, b"", b"")}
        wait_for(lambda: not [each for each in processes_in(home.root) if "--late" in each.command])
    finally:
        for each in hogs:
            each.kill()
            each.wait()
    start()
    assert {payload["tool_use_id"] for payload in host.stored()} == {f"toolu_s_{number}" for number in range(50)}


def test_whoever_starts_it_there_is_one_worker(home: Home, start):
    command = worker_command()
    environ = {**os.environ, "FOREWORD_HOME": str(home.root)}
    started = [subprocess.Popen(command, env=environ) for _ in range(8)]
    wait_for(lambda: sum(each.poll() is None for each in started) == 1)
    assert [each.returncode for each in started if each.poll() is not None] == [0] * 7
    assert [each.pid for each in started if each.poll() is None] == [lifecycle.pid_of(home)]
    lifecycle.stop(home)
    assert all(each.wait(60) == 0 for each in started)


def _session(
    host: HookRunner, session: int, project: str, events: int, hooks: Semaphore
) -> list[tuple[int, bytes, bytes]]:
    outcomes = []
    for number in range(events):
        ended = host.tell("PostToolUse", _tool_use(session, number, project))
        outcomes.append((ended.returncode, ended.stdout, ended.stderr))
        hooks.release()
    return outcomes


def _tool_use(session: object, number: int, project: str) -> dict[str, Any]:
    return {
        "session_id": f"s{session}",
        "cwd": project,
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": f"echo {number}"},
        "tool_response": {"stdout": "x" * 500, "stderr": ""},
        "tool_use_id": f"toolu_{session}_{number}",
    }


def _kill_now_and_then(home: Home, hooks: Semaphore, *, times: int) -> int:
    """Kill the worker whenever some more hooks have returned, and start another now and then; how many were killed."""
    chance, killed = random.Random(7), 0
    for _ in range(times):
        for _ in range(KILL_EVERY):
            hooks.acquire()
        if pid := lifecycle.pid_of(home):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
            wait_for(lambda pid=pid: lifecycle.pid_of(home) != pid)
        if chance.random() < 0.7:
            lifecycle.start(home)
    return killed


def _workers(home: Home) -> list[int]:
    """The processes that run a worker in this home, as the system sees them."""
    return [each.pid for each in processes_in(home.root) if "foreword.worker" in each.command]
