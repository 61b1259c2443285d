"""Many hooks at once, and a worker that dies: nothing is lost, nothing is doubled, nothing is printed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from foreword.client import Client
from foreword.paths import Home, worker_command
from foreword.worker import life
from tests.flow.conftest import Host, end_worker, wait_for

PROCESSES, EVENTS = 16, 50


def test_every_event_whose_hook_returned_is_stored_once_while_workers_are_killed(
    home: Home, host: Host, start, project
):
    host.write_hook(worker=worker_command())
    start()
    over = threading.Event()
    killed = Counter[str]()
    killer = threading.Thread(target=_kill_now_and_then, args=(home, over, killed))
    killer.start()
    try:
        with ThreadPoolExecutor(PROCESSES) as sessions:
            told = list(sessions.map(lambda number: _session(host, number, project), range(PROCESSES)))
    finally:
        over.set()
        killer.join()
    assert all(outcome == (0, b"", b"") for session in told for outcome in session)
    life.start(home)
    wait_for(lambda: host.spooled() == 0)
    times = Counter(payload["tool_use_id"] for payload in host.stored())
    assert times == {f"toolu_{session}_{number}": 1 for session in range(PROCESSES) for number in range(EVENTS)}
    assert killed["times"] > 3


def test_fifty_hooks_at_once_leave_exactly_one_worker(home: Home, host: Host, start, project):
    host.write_hook(worker=worker_command())
    payload = {"session_id": "s", "cwd": project, "hook_event_name": "Stop"}
    with ThreadPoolExecutor(50) as pool:
        ended = list(pool.map(lambda n: host.tell("Stop", {**payload, "prompt_id": str(n)}), range(50)))
    assert {(each.returncode, each.stdout, each.stderr) for each in ended} == {(0, b"", b"")}
    wait_for(lambda: life.pid_of(home) and home.socket.exists())
    client = Client(home)
    wait_for(lambda: client.get("/api/health")["counts"]["events"] == 50)
    assert _workers(home) == [life.pid_of(home)]


def test_whoever_starts_it_there_is_one_worker(home: Home, start):
    command = worker_command()
    environ = {**os.environ, "FOREWORD_HOME": str(home.root)}
    started = [subprocess.Popen(command, env=environ) for _ in range(8)]
    wait_for(lambda: sum(each.poll() is None for each in started) == 1)
    assert [each.returncode for each in started if each.poll() is not None] == [0] * 7
    assert [each.pid for each in started if each.poll() is None] == [life.pid_of(home)]
    Client(home).post("/api/stop", {})
    assert all(each.wait(10) == 0 for each in started)


def _session(host: Host, session: int, project: str) -> list[tuple[int, bytes, bytes]]:
    outcomes = []
    for number in range(EVENTS):
        ended = host.tell(
            "PostToolUse",
            {
                "session_id": f"s{session}",
                "cwd": project,
                "hook_event_name": "PostToolUse",
                "tool_name": "Bash",
                "tool_input": {"command": f"echo {number}"},
                "tool_response": {"stdout": "x" * 500, "stderr": ""},
                "tool_use_id": f"toolu_{session}_{number}",
            },
        )
        outcomes.append((ended.returncode, ended.stdout, ended.stderr))
    return outcomes


def _kill_now_and_then(home: Home, over: threading.Event, killed: Counter[str]) -> None:
    chance = random.Random(7)
    while not over.wait(chance.uniform(0.05, 1.0)):
        pid = life.pid_of(home)
        if pid:
            end_worker(home, how=signal.SIGKILL)
            killed["times"] += 1
        if chance.random() < 0.7:
            life.start(home)


def _workers(home: Home) -> list[int]:
    """The processes that run a worker in this home, as the system sees them."""
    time.sleep(0.3)
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as command, open(f"/proc/{pid}/environ", "rb") as environ:
                if b"foreword.worker" in command.read() and str(home.root).encode() + b"\0" in environ.read() + b"\0":
                    found.append(int(pid))
        except OSError:
            continue
    return found
