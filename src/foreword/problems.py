"""Log swallowed failures where `status` and `doctor` find them, and define the findings of both."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from foreword.encoding import dumps, loads, storable
from foreword.errors import ForewordError

MOST_BYTES = 256 * 1024  # then the file becomes `.1`, and a new one begins


@dataclass(frozen=True)
class Problem:
    """One thing that went wrong: when, where in the product, and what."""

    at: float
    where: str
    what: str


def note(path: str, problem: Problem) -> bool:
    """Append *problem* to the log; return False where it could not be written, which is no further failure."""
    line = dumps({"at": problem.at, "where": problem.where, "what": problem.what[:2000]})
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        try:
            written = os.write(fd, f"\n{line}\n".encode())  # the newline in front: the last one may have been torn
            full = os.fstat(fd).st_size > MOST_BYTES
        finally:
            os.close(fd)
        if full:
            os.rename(path, f"{path}.1")
    except OSError:
        return False
    return written > 0


def noted(path: str) -> tuple[Problem, ...]:
    """Return every logged problem, oldest first; lines that cannot be read are skipped."""
    found = []
    for name in (f"{path}.1", path):
        try:
            with open(name, encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            try:
                entry = loads(line)
                found.append(Problem(float(entry["at"]), where=storable(entry["where"]), what=storable(entry["what"])))
            except Exception:  # noqa: BLE001, S112 - a torn line of a log is no problem of its own
                continue
    return tuple(found)


@dataclass(frozen=True)
class Loss:
    """Data that is gone, shown until somebody acknowledges it.

    Of `events` that were acknowledged and are lost, `newest` is the number of the last one; 0 where it is not known.
    `copy` is the last copy from before it, until something is restored.
    """

    at: float
    what: str
    events: int = 0
    newest: int = 0
    copy: str = ""


def losses(path: Path) -> tuple[Loss, ...]:
    """Return every loss that nobody has acknowledged, oldest first."""
    try:
        return tuple(Loss(**each) for each in loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return ()
    except (ForewordError, OSError, TypeError, ValueError) as exc:  # of a newer version, or damaged
        return (Loss(0.0, f"{path} cannot be read ({exc}), so losses before today are not known"),)


OK, NOTE, WRONG = "ok", "note", "wrong"
LATELY = 7 * 86_400.0  # seconds; what is older than a week is history
SETTLE = 10.0  # seconds; a worker reads the spool within its first second, a big one takes a few
BACKLOG = 60.0  # seconds; what waits longer beside a running worker is stuck
# The counts of an agent that never sent an event.
NEVER_SEEN: Mapping[str, Any] = {"last_event": None, "last_injection": None, "sessions": 0}


@dataclass(frozen=True)
class Finding:
    """One check: its state is OK, NOTE or WRONG, and `way_out` says what to do."""

    check: str
    state: str
    says: str
    way_out: str = ""


@dataclass(frozen=True)
class Group:
    """The same problem in the same place, as often as it came."""

    where: str
    what: str
    count: int
    last: float


class Spooled(NamedTuple):
    """Events in the spool that no worker has read: their bytes, and the time of the oldest; 0 for none."""

    bytes: int
    oldest: float


def grouped(problems: Sequence[Problem]) -> tuple[Group, ...]:
    """Return one entry for the same problem in the same place, the latest last."""
    groups: dict[tuple[str, str], Group] = {}
    for each in problems:
        before = groups.pop((each.where, each.what), None)
        count, last = (before.count + 1, max(each.at, before.last)) if before else (1, each.at)
        groups[each.where, each.what] = Group(each.where, each.what, count, last)
    return tuple(groups.values())


def spooled(folder: Path) -> Spooled:
    """Return what waits in a spool; OSError where its folder cannot be read."""
    total, oldest = 0, 0.0
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # the worker has just read it
                if (here := entry.stat()).st_size:
                    total, oldest = total + here.st_size, min(oldest or here.st_mtime, here.st_mtime)
    return Spooled(total, oldest)
