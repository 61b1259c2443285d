"""Mark memories of code that is gone as stale, and bring them back with the code.

Code is gone only after days of absence: a branch that is checked out for an hour and a disk that is not mounted change
nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from foreword.audit import MemoryChange, PlanContext, still_wanted
from foreword.models import Memory, Project

STALE_KINDS = ("change", "observation", "learning")  # worth as much as their code, unless the user wrote them
CODE_GONE = "code_gone"  # in a detail: since when
DAY = 86_400.0
GONE = 3 * DAY  # code that two checks so far apart did not find is gone
FEW = 10  # files of which all may be gone
LARGEST = 1 << 18  # bytes of a file that is searched for a function
MOST_MISSING = 10_000  # names that are remembered as absent


def plan(memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]:
    """Mark memories that lost all of their code, and restore those whose code is back."""
    planned: list[MemoryChange] = []
    for memory in memories:
        if not memory.files or memory.pinned:
            continue
        if memory.status == "stale" and CODE_GONE in memory.detail:
            if any(about.exists(file, name) for file in memory.files for name in memory.functions or ("",)):
                detail = {name: value for name, value in memory.detail.items() if name != CODE_GONE}
                after = replace(memory, status="active", detail=detail)
                planned.append(MemoryChange("restore", "its code is back", changed=((memory, after),)))
        elif reason := _gone(memory, about):
            after = replace(memory, status="stale", detail={**memory.detail, CODE_GONE: about.now})
            planned.append(MemoryChange("stale", reason, changed=((memory, after),)))
    return still_wanted(planned, about=about)


def _gone(memory: Memory, about: PlanContext) -> str:
    """Return what is gone, in words; empty where some of it is there, or nobody can tell."""
    if memory.status != "active" or memory.kind not in STALE_KINDS or memory.trust == "user":
        return ""
    if memory.detail.get("what") == "DELETED":
        return ""  # a deletion is true because the code is gone
    if all(about.exists(file, "") is False for file in memory.files):
        return f"{', '.join(memory.files)} gone"
    places = [(file, name) for file in memory.files for name in memory.functions]
    if places and all(about.exists(file, name) is False for file, name in places):
        return f"{', '.join(f'{name}()' for name in memory.functions)} gone from {', '.join(memory.files)}"
    return ""


class Present:
    """The code that is there now; `missing` is since when the rest was not found, for the next look."""

    def __init__(self, roots: Sequence[str], files: Iterable[str], *, missing: Mapping[str, float], now: float) -> None:
        self.missing: dict[str, float] = {}
        self._roots, self._before, self._now = roots, missing, now
        self._read = lru_cache(maxsize=64)(_text)
        known = {file for file in files if _is_inside(file)}
        absent = [file for file in known if not self._places(file)]
        # Where more than half is absent, another branch or a sparse checkout is likelier than a rewrite.
        self._blind = not roots or (len(absent) >= FEW and len(absent) > len(known) / 2)

    def exists(self, file: str, function: str) -> bool | None:
        """Return whether a file is there, or a function in it; None where nobody can tell, or not for long enough."""
        if self._blind or not _is_inside(file):
            return None
        places = self._places(file)
        if not places:
            return None if function else self._is_missing(file)
        if not function:
            return True
        texts = [self._read(place) for place in places]
        name = re.compile(rf"(?<!\w){re.escape(function.rpartition('.')[2])}(?!\w)")
        if any(text and name.search(text) for text in texts):
            return True
        return None if None in texts else self._is_missing(f"{file}\0{function}")

    def _is_missing(self, name: str) -> bool | None:
        since = min(self._before.get(name, self._now), self._now)  # a clock that jumped makes nothing older
        if name in self.missing or len(self.missing) < MOST_MISSING:
            self.missing[name] = since
        return False if self._now - since >= GONE else None

    def _places(self, file: str) -> list[str]:
        return [path for root in self._roots if os.path.lexists(path := os.path.join(root, file))]


def roots_of(project: Project, folders: Iterable[str], *, project_of: Callable[[str], Project]) -> tuple[str, ...]:
    """Return the roots of those folders that are there and still belong to the project."""
    found = [project_of(folder) for folder in dict.fromkeys(folders) if os.path.isdir(folder)]
    return tuple(dict.fromkeys(each.root for each in found if each.key == project.key and os.path.isdir(each.root)))


def _is_inside(file: str) -> bool:
    return bool(file) and not os.path.isabs(file) and "\0" not in file and ".." not in file.split("/")


def _text(path: str) -> str | None:
    """Read an ordinary file of a bounded size."""
    try:
        readable = os.path.isfile(path) and os.path.getsize(path) <= LARGEST
        return Path(path).read_text(encoding="utf-8", errors="replace") if readable else None
    except (OSError, ValueError):
        return None
