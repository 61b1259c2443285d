"""How long a hook takes at most, whatever it is sent: every content and size, with the worker up, hung and away.

Processor time is what fails a test, because a busy machine adds to everything else; the slowest call by the clock is a
figure of the run.
"""

from __future__ import annotations

import base64
import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foreword.config import load
from foreword.hook import build
from foreword.paths import Home
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import CLEAN, HookRunner, end_worker
from tests.scratch import suspend

pytestmark = [pytest.mark.prove, pytest.mark.timeout(1800)]
PROMPT, START, HUGE = 0.3, 1.0, 1.5  # seconds; huge is what does not fit into one read of 256 KB
SIZES = (3_000, 30_000, 250_000, 3_000_000, 20_000_000)
TIMES = 3  # the fastest counts for the processor time, the slowest for the figure


def contents(chance: random.Random, size: int) -> dict[str, str]:
    """Texts that are hard to read, each of about *size* characters."""
    lines = {
        "login lines": lambda: f"user=ada password={chance.randrange(1 << 40):x}!\n",
        "tokens": lambda: f"{'gh' + 'p_'}{chance.randrange(1 << 180):036x} ",
        "keys": lambda: f"API_KEY={chance.randrange(1 << 128):032x}\n",
        "URLs": lambda: f"https://ada:{chance.randrange(1 << 32):x}@db/shop ",
        "log": lambda: f"2026-11-18T10:00:00Z INFO app.{chance.randrange(99)}: took {chance.random():.4f} s, key=a\n",
        "minified": lambda: f"function a{chance.randrange(999)}(b,c){{return b.password=c,d(b)}}",
    }
    found = {}
    for name, line in lines.items():
        piece = "".join(line() for _ in range(400))
        found[name] = (piece * (size // len(piece) + 1))[:size]
    found["base64"] = base64.b64encode(chance.randbytes(size * 3 // 4)).decode()
    for unit in ("password = ", "<private>", "curl -u a:", "\\u003c", "{[", "\n", "-----BEGIN "):
        found[repr(unit)] = (unit * (size // len(unit) + 1))[:size]
    found["JSON in a line"] = json.dumps([{"path": f"a{n}", "token": "x" * 20} for n in range(size // 45)])
    return found


@pytest.mark.parametrize("worker", ["up", "hung", "away"])
def test_no_content_takes_a_hook_beyond_its_deadline(
    home: Home,
    host: HookRunner,
    start: Callable[[], Client],
    project: str,
    chance: random.Random,
    figure: Any,
    worker: str,
) -> None:
    client = start()
    for number in range(200):
        client.post("/api/memories", {"kind": "note", "title": f"the walrus sings {number}", "project_path": project})
    settings = load(home, {}).settings  # the deadlines that users have
    if worker == "away":
        end_worker(home)
    for path, text in build.files(home, settings, worker=[]).items():
        path.write_text(text)
    if worker == "hung":
        suspend(lifecycle.pid_of(home))
    slowest: dict[str, tuple[float, float, str]] = {}
    over = 0
    calls = 0
    for size in SIZES:
        for name, text in contents(chance, size).items():
            for event, payload in _payloads(text, project):
                if event != "PostToolUse" and size > 3_000_000:
                    continue
                spent = [_timed(home, event, payload) for _ in range(TIMES if size < 20_000_000 else 1)]
                cpu, wall = min(each[0] for each in spent), max(each[1] for each in spent)
                limit = HUGE if len(payload) > 262_144 else START if event == "SessionStart" else PROMPT
                over += sum(each[1] > limit for each in spent)
                calls += len(spent)
                kind = "huge" if limit == HUGE else event
                slowest[kind] = max(slowest.get(kind, (0.0, 0.0, "")), (wall, cpu, f"{name}, {size:,}"))
                assert cpu <= limit, (worker, event, name, size, cpu)
    for kind, (wall, cpu, what) in slowest.items():
        figure(f"slowest hook, worker {worker}, {kind}", f"{wall * 1000:.0f} ms (processor {cpu * 1000:.0f}): {what}")
    figure(f"hooks over their deadline by the clock, worker {worker}", f"{over} of {calls}")


def _payloads(text: str, project: str) -> list[tuple[str, bytes]]:
    about = {"session_id": "s", "cwd": project}
    used = {**about, "tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": {"stdout": text}}
    return [
        ("PostToolUse", json.dumps(used).encode()),
        ("UserPromptSubmit", json.dumps({**about, "prompt": text}).encode()),
        ("SessionStart", json.dumps({**about, "source": "startup", "note": text}).encode()),
    ]


def _timed(home: Home, event: str, payload: bytes) -> tuple[float, float]:
    """Run a hook, which must end well -> the seconds of processor time, and by the clock."""
    command = build.command(home, host="claude-code", event=event)
    sent, got = Path(home.root, "sent"), Path(home.root, "got")
    sent.write_bytes(payload.replace(b'"session_id": "s"', b'"session_id": "s%d"' % time.monotonic_ns(), 1))
    files = [
        (os.POSIX_SPAWN_OPEN, 0, str(sent), os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(got), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ]
    began = time.monotonic()
    _, status, used = os.wait4(os.posix_spawn(command[0], command, CLEAN, file_actions=files), 0)
    wall = time.monotonic() - began
    assert status == 0
    assert not (printed := got.read_bytes()) or json.loads(printed)
    return used.ru_utime + used.ru_stime, wall
