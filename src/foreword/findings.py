"""Something that was looked at -> a finding: how it stands and, where it does not stand well, the way out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foreword.trouble import Trouble

OK, NOTE, WRONG = "ok", "note", "wrong"
LATELY = 7 * 86_400.0  # seconds; what was untold before last week is history
SETTLE = 10.0  # seconds; a worker takes the spool in within its first second, a big one needs a few
BACKLOG = 60.0  # seconds; what waits longer beside a running worker is stuck
# What is told of a host that never told anything.
UNHEARD: Mapping[str, Any] = {"last_event": None, "last_injection": None, "sessions": 0, "events": 0}


@dataclass(frozen=True)
class Finding:
    """One check: its state is OK, NOTE or WRONG, and `way_out` tells what to do."""

    check: str
    state: str
    says: str
    way_out: str = ""


@dataclass(frozen=True)
class Group:
    """The same trouble in the same place, as often as it came."""

    where: str
    what: str
    count: int
    last: float


@dataclass(frozen=True)
class Spooled:
    """What hooks told and no worker has taken in: its bytes, and when the oldest of them came; 0 for nothing."""

    bytes: int
    oldest: float


def grouped(troubles: Sequence[Trouble]) -> tuple[Group, ...]:
    """One entry for the same trouble in the same place, the latest last."""
    groups: dict[tuple[str, str], Group] = {}
    for each in troubles:
        key = each.where, each.what
        before = groups.pop(key, None)
        groups[key] = Group(
            where=each.where,
            what=each.what,
            count=before.count + 1 if before else 1,
            last=max(each.at, before.last) if before else each.at,
        )
    return tuple(groups.values())


def spooled(folder: Path) -> Spooled:
    """What waits in a spool, or OSError where nobody may look into it."""
    total, oldest = 0, 0.0
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # the worker has just taken it in
                if (here := entry.stat()).st_size:
                    total, oldest = total + here.st_size, min(oldest or here.st_mtime, here.st_mtime)
    return Spooled(total, oldest)
