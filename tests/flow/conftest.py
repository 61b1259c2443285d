"""Real workers and real hook processes in scratch homes."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from foreword.client import Client
from foreword.config import load
from foreword.hook import build
from foreword.paths import Home
from foreword.worker import life

# What is tested here is what happens, not how fast: the machine may be busy.
PATIENT = {
    "FOREWORD_DEADLINE_PROMPT_MS": "3000",
    "FOREWORD_DEADLINE_START_MS": "3000",
    "FOREWORD_DEADLINE_HUGE_MS": "4000",
}
CLEAN = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


class Host:
    """What a coding agent does with hooks: starts them with JSON on stdin, and reads what they print."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.environ: dict[str, str] = {}

    def write_hook(self, *, worker: list[str] | None = None, **environ: str) -> None:
        """Write the hook as the worker does, by default one that starts no worker, and call it with *environ*."""
        self.environ = environ
        settings = load(self.home, {**PATIENT, **environ}).settings
        self.home.hook_client.parent.mkdir(mode=0o700, exist_ok=True)
        for path, text in build.files(self.home, settings, worker=worker or []).items():
            path.write_text(text)

    def tell(
        self, event: str, payload: object, *, host: str = "claude-code", **environ: str
    ) -> subprocess.CompletedProcess[bytes]:
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        return subprocess.run(
            build.command(self.home, host=host, event=event),
            check=False,
            input=raw,
            capture_output=True,
            timeout=30,
            env={**CLEAN, **self.environ, **environ},
        )

    def context(self, event: str, payload: object, **more: Any) -> str:
        """What the agent would see; the hook must end well and print one JSON object or nothing."""
        ended = self.tell(event, payload, **more)
        assert (ended.returncode, ended.stderr) == (0, b"")
        return json.loads(ended.stdout)["hookSpecificOutput"]["additionalContext"] if ended.stdout else ""

    def stored(self) -> list[dict[str, Any]]:
        """The payloads of all events in the database, read by the standard library."""
        connection = sqlite3.connect(f"file:{self.home.database}?mode=ro", uri=True)
        try:
            return [
                json.loads(payload) for (payload,) in connection.execute("SELECT payload FROM events ORDER BY number")
            ]
        finally:
            connection.close()

    def spooled(self) -> int:
        """Bytes that wait; where a worker takes a file under another name meanwhile, it is looked again."""
        for _ in range(100):
            with suppress(FileNotFoundError):
                return sum(path.stat().st_size for path in self.home.spool.iterdir())
        raise AssertionError("the spool is never at rest")


@pytest.fixture
def host(home: Home) -> Host:
    return Host(home)


@pytest.fixture
def start(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Client]]:
    """Starts this home's worker; whatever worker sits there at the end is ended."""
    monkeypatch.setenv("FOREWORD_HOME", str(home.root))
    for name, text in PATIENT.items():
        monkeypatch.setenv(name, text)

    def started() -> Client:
        life.start(home)
        client = Client(home, seconds=20)
        client.get("/api/health")  # it has read its settings and written its hook
        return client

    yield started
    end_worker(home)


def end_worker(home: Home, *, how: int = signal.SIGKILL) -> None:
    """End the worker of this home, by its id, and wait until it is gone."""
    for _ in until(10):
        pid = life.pid_of(home)
        if not pid:
            return
        try:
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, how)
        except ProcessLookupError:
            return
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            time.sleep(0.02)


def until(seconds: float) -> Iterator[None]:
    """Tries until the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.02)


def wait_for(what: Callable[[], object], *, seconds: float = 20) -> None:
    for _ in until(seconds):
        if what():
            return
    raise AssertionError("it did not happen in time")


@pytest.fixture
def project(tmp_path: Path) -> str:
    """A folder that is a project of its own."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    return str(folder)


PYTHON = sys.executable
