"""Real workers and real hook processes in scratch homes."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from foreword.config import load
from foreword.hook import build
from foreword.paths import Home
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.forked import start_worker
from tests.scratch import end_worker, scratch_home, until, wait_for

__all__ = ["CLEAN", "PATIENT", "PYTHON", "HookRunner", "end_worker", "until", "wait_for"]

# What is tested here is what happens, not how fast: the machine may be busy.
PATIENT = {
    "FOREWORD_DEADLINE_PROMPT_MS": "4500",
    "FOREWORD_DEADLINE_START_MS": "4500",
    "FOREWORD_DEADLINE_HUGE_MS": "4500",
}
# What a hook that a test writes is given of each limit, in seconds: more than a user may choose.
UNHURRIED = {
    "deadline_prompt": 30.0, "deadline_start": 30.0, "deadline_huge": 30.0, "deadline_all": 60.0
}  # fmt: skip
CLEAN = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


class HookRunner:
    """What a coding agent does with hooks: starts them with JSON on stdin, and reads what they print."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.environ: dict[str, str] = {}

    def write_hook(self, *, worker: list[str] | None = None, deadline_stdin: float = 20.0, **environ: str) -> None:
        """Write the hook as the worker does, by default one that starts no worker, and call it with *environ*.

        It has all the time it needs, unless *environ* sets a deadline.
        """
        self.environ = environ
        settings = load(self.home, {**PATIENT, **environ}).settings
        self.home.hook_client.parent.mkdir(mode=0o700, exist_ok=True)
        for path, text in build.files(self.home, settings, worker=worker or []).items():
            path.write_text(text)
        if not any(name.startswith("FOREWORD_DEADLINE") for name in environ):
            config = (
                build.config(self.home, settings, worker=worker or []) | UNHURRIED | {"deadline_stdin": deadline_stdin}
            )
            self.home.hook.write_text(build.hook_text(self.home, config))

    def tell(
        self, event: str, payload: object, *, host: str = "claude-code", **environ: str
    ) -> subprocess.CompletedProcess[bytes]:
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        return subprocess.run(
            build.command(self.home, host=host, event=event),
            check=False,
            input=raw,
            capture_output=True,
            timeout=100,
            env={**CLEAN, **self.environ, **environ},
        )

    def context(self, event: str, payload: object, **more: Any) -> str:
        """What the agent would see; the hook must end well and print one JSON object or nothing."""
        ended = self.tell(event, payload, **more)
        assert (ended.returncode, ended.stderr) == (0, b"")
        return json.loads(ended.stdout)["hookSpecificOutput"]["additionalContext"] if ended.stdout else ""

    def stored(self) -> list[dict[str, Any]]:
        """The payloads of all events in the database, read by the standard library.

        Where a worker runs, what waits for it is waited for: one that was slow once is no failure of anything.
        """
        if lifecycle.pid_of(self.home):
            wait_for(lambda: self.spooled() == 0)
        connection = sqlite3.connect(f"file:{self.home.database}?mode=ro", uri=True)
        try:
            return [
                json.loads(payload) for (payload,) in connection.execute("SELECT payload FROM events ORDER BY number")
            ]
        finally:
            connection.close()

    def spooled(self) -> int:
        """Bytes that wait, counted until two counts agree: a listing may miss a file that a worker renames."""
        before = -1
        for _ in range(100):
            with suppress(FileNotFoundError):
                now = sum(path.stat().st_size for path in self.home.spool.iterdir() if path.is_file())
                if now == before:
                    return now
                before = now
        raise AssertionError("the spool is never at rest")


@pytest.fixture
def host(home: Home) -> HookRunner:
    return HookRunner(home)


@pytest.fixture
def start(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Client]]:
    """Starts this home's worker; whatever lives there at the end is ended, by its id."""
    monkeypatch.setenv("FOREWORD_HOME", str(home.root))
    for name, text in PATIENT.items():
        monkeypatch.setenv(name, text)

    def started() -> Client:
        start_worker(home, os.environ)
        client = Client(home, seconds=20)
        client.get("/api/health")  # it has read its settings and written its hook
        return client

    yield started
    end_worker(home)


@pytest.fixture(scope="module")
def shared_home() -> Iterator[Home]:
    """One home with a worker for all tests of a module that have projects and sessions of their own."""
    with scratch_home() as home:
        start_worker(home, {**os.environ, **PATIENT})
        yield home
        end_worker(home)


@pytest.fixture(scope="module")
def worker(shared_home: Home) -> Client:
    """The worker of the shared home."""
    return Client(shared_home, seconds=20)


@pytest.fixture
def project(tmp_path: Path) -> str:
    """A folder that is a project of its own."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    return str(folder)


def add_files(project: str, *files: str) -> None:
    """Make empty files of a project: notes name only what is there."""
    for file in files:
        path = Path(project, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


PYTHON = sys.executable
