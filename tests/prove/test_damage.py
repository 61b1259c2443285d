"""Every file of a database, lost or damaged in every way, with the worker away, at rest and while it writes.

What was acknowledged is there afterwards, or reported with its number; `restore` mends it; the notice stays until it is
acknowledged, and then goes.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest

from foreword.errors import ForewordError
from foreword.paths import Home
from foreword.problems import losses
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import end_worker, wait_for
from tests.flow.test_backup import TITLE, add_events, lost, prompts, titles

PARTS = {"main": "", "log": "-wal", "index": "-shm"}
PAGE = 4096


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // PAGE * PAGE)


def overwrite(path: Path, *, page: int | None = None, noise: bool = False) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(0 if page is None else page * PAGE)
        file.write(random.Random(1).randbytes(size) if noise else bytes(min(size, PAGE)))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "emptied": lambda path: os.truncate(path, 0),
    "cut": cut,
    "first page zeroed": overwrite,
    "middle zeroed": lambda path: overwrite(path, page=path.stat().st_size // 2 // PAGE),
    "noise": lambda path: overwrite(path, noise=True),
    "read-only": lambda path: path.chmod(0o400),
    "older": lambda path: shutil.copyfile(f"{path}.old", f"{path}.new") and os.rename(f"{path}.new", path),
}
STATES = ("stopped", "killed", "running", "writing")
# Of all combinations, those that once went wrong in a way of their own.
OFTEN = {
    ("main", "deleted", "killed", False),
    ("main", "cut", "running", True),
    ("main", "noise", "running", True),
    ("main", "older", "running", True),
    ("log", "emptied", "writing", True),
    ("log", "noise", "running", True),
    ("index", "cut", "running", False),
    ("index", "noise", "running", False),
}


def cases() -> Iterator[object]:
    for case in product(PARTS, DAMAGE, STATES, (False, True)):
        if case[0] == "main" or case[2] != "stopped":  # a worker that is stopped leaves nothing but the main file
            yield pytest.param(*case, marks=() if case in OFTEN else pytest.mark.prove)


@pytest.mark.parametrize(("part", "how", "state", "checkpointed"), list(cases()))
def test_whatever_happens_to_a_file_nothing_is_lost_without_a_report(
    home: Home, start: Callable[[], Client], project: str, part: str, how: str, state: str, checkpointed: bool
) -> None:
    client, acknowledged = start(), set[int]()

    def add(*numbers: int) -> None:
        add_events(client, project, numbers)
        acknowledged.update(numbers)

    client.post("/api/memories", {"kind": "decision", "title": TITLE, "project_path": project})
    add(*range(20))
    copy = client.post("/api/backup", {})["file"]
    path = Path(f"{home.database}{PARTS[part]}")
    shutil.copyfile(path if PARTS[part] else copy, f"{path}.old")
    if checkpointed:
        end_worker(home, how=signal.SIGTERM)
        client = start()
    add(*range(20, 25))

    def write(stop: threading.Event) -> None:
        for number in range(100, 1000):
            if stop.is_set():
                return
            with suppress(ForewordError):
                add(number)

    def damage() -> None:
        DAMAGE[how](path)

    if state == "writing":
        stop = threading.Event()
        writing = threading.Thread(target=write, args=(stop,))
        writing.start()
        wait_for(lambda: len(acknowledged) > 40)
        damage()
        time.sleep(1.2)  # the worker looks at its files every second
        stop.set()
        writing.join()
    elif state == "running":
        damage()
        time.sleep(1.2)
    else:
        end_worker(home, how=signal.SIGTERM if state == "stopped" else signal.SIGKILL)
        damage()
    with suppress(ForewordError):  # an index that is cut ends the process that has mapped it, when it is read
        Client(home, seconds=20).get("/api/health", full=1)
        Client(home, seconds=20).post("/api/verify", {})
    lifecycle.start(home)
    client = Client(home, seconds=20)
    damaged = client.post("/api/verify", {})["damage"]
    health = client.get("/api/health", full=1)["findings"]
    if any("is closed" in each["says"] for each in health):  # it is being opened again just now
        time.sleep(1.2)
        health = client.get("/api/health", full=1)["findings"]
    noted = sum(each.events for each in losses(home.losses))
    wrong = [each["says"] for each in health if each["check"] in ("store", "lost")]
    if damaged or wrong:
        assert wrong, "whatever `verify` finds, `status` and `doctor` say"
        assert damaged or noted, wrong
        client.post("/api/restore", {})
    end_worker(home, how=signal.SIGTERM)  # what is only in its memory does not count
    client = start()
    noted = sum(each.events for each in losses(home.losses))
    seen = {int(prompt.split()[1]) for prompt in prompts(home)}
    assert len(acknowledged - seen) == noted
    assert set(range(20)) <= seen
    assert titles(client, project) == [TITLE]
    assert len(lost(client)) == (noted > 0)
    client.post("/api/verify", {"acknowledge": True})
    assert (client.post("/api/verify", {})["damage"], lost(client)) == ([], [])
