"""Where the play meets the user: the real commands, asked of the same keeper over its socket, at simulated times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer.testing import CliRunner

from foreword.cli.main import app
from foreword.models import Memory
from foreword.worker.app import App
from foreword.worker.http import Server
from foreword.worker.lifecycle import WorkerLock
from foreword.worker.routes import handler


class User:
    """Somebody at the command line of the product's folder."""

    def __init__(self, app: App, root: Path, clock: Callable[[], float]) -> None:
        self.app, self.root, self.clock = app, root, clock
        self._goals: dict[str, str] = {}

    def says(self, *words: str) -> str:
        """What a command prints; whatever it dates by itself, it dates by the clock of the month."""
        with patch("time.time", self.clock):
            got = CliRunner().invoke(app, list(words), catch_exceptions=False)
        assert got.exit_code == 0, (words, got.output)
        return got.stdout

    def asks(self, *words: str) -> Any:
        return json.loads(self.says(*words, "--json"))

    # -- what users of the story do -----------------------------------------------------------------------------
    def note(self, text: str) -> None:
        self.says("note", text, "--project", str(self.root))

    def goal(self, title: str) -> None:
        self._goals[title] = self.says("goal", "add", title, "--project", str(self.root)).split()[0]

    def reached(self, title: str) -> None:
        self.says("goal", "done", self._goals[title])

    def review(self, answers: dict[str, bool]) -> list[str]:
        """Say yes or no to the notes that wait, by the words in it; the ids of those that were thrown away."""
        refused = []
        for memory in self.asks("review", "--project", str(self.root))["notes"]:
            decisions = [answer for words, answer in answers.items() if words in memory["title"].lower()]
            if decisions and decisions[0]:
                self.says("review", "promote", memory["id"], "learning")
            elif decisions:
                self.says("review", "discard", memory["id"])
                refused.append(memory["id"])
        return refused

    def tidies(self) -> int:
        """What an idle worker does at night; how many changes it made."""
        answer = self.asks("tidy", "--yes", "--project", str(self.root))
        return sum(answer["by"].values())

    def reads(self) -> dict[str, str]:
        """What `foreword review`, `goal list` and `stats` tell."""
        commands = (("review",), ("goal", "list", "--all"), ("stats",))
        return {f"foreword {' '.join(words)}": self.says(*words, "--project", str(self.root)) for words in commands}


@contextmanager
def at_home(root: Path) -> Iterator[None]:
    """The environment of a user whose home it is, in UTC."""
    folder, mask = Path.cwd(), os.umask(0o077)
    try:
        with patch.dict(os.environ, {"FOREWORD_HOME": str(root), "TZ": "UTC", "NO_COLOR": "1", "COLUMNS": "120"}):
            time.tzset()
            yield
    finally:
        os.umask(mask)
        os.chdir(folder)
        time.tzset()


@contextmanager
def served(app: App) -> Iterator[None]:
    """The keeper behind its socket, as a worker of its home."""
    with WorkerLock.taken() as worker_lock:
        server = Server(worker_lock.listener, handler(app), threads=2)
        try:
            yield
        finally:
            server.close()


def quiet(app: App, project: str, *, seconds: float) -> None:
    """Wait until everything that was told has become memory."""
    app.extraction.settle(project, seconds=seconds)


def everything(app: App) -> list[Memory]:
    """Every memory there is, whatever its status, oldest first."""
    found: list[Memory] = []
    after = 0
    while rows := app.store.memories.page(after=after):
        found += [memory for _, memory in rows]
        after = rows[-1][0]
    return found


def size(app: App) -> int:
    """The bytes that the database has in use, asked by another process: ours must not open its file a second time."""
    ask = "import sqlite3, sys; db = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True)"
    ask += "; one = lambda of: db.execute(f'PRAGMA {of}').fetchone()[0]"
    ask += "; print((one('page_count') - one('freelist_count')) * one('page_size'))"
    words = [sys.executable, "-I", "-S", "-c", ask, str(app.home.database)]
    return int(subprocess.run(words, check=True, capture_output=True).stdout)
