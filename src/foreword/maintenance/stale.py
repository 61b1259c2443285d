"""Mark memories of files that are gone as stale, and bring them back with the files.

A file is gone only after days of absence: a branch that is checked out for an hour and a disk that is not mounted
change nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from foreword.audit import MemoryChange, PlanContext, still_wanted
from foreword.models import Memory, Project

STALE_KINDS = ("change", "observation", "learning")  # worth as much as their code, unless the user wrote them
CODE_GONE = "code_gone"  # in a detail: since when
GONE = 3 * 86_400.0  # seconds; a file that two checks so far apart did not find is gone
FEW = 10  # files of which all may be gone
MOST_MISSING = 10_000  # names that are remembered as absent


def plan(memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]:
    """Mark memories that lost all of their files, and restore those of which one is back."""
    planned: list[MemoryChange] = []
    for memory in memories:
        if not memory.files or memory.pinned:
            continue
        if memory.status == "stale" and CODE_GONE in memory.detail:
            if any(about.exists(file) for file in memory.files):
                detail = {name: value for name, value in memory.detail.items() if name != CODE_GONE}
                after = replace(memory, status="active", detail=detail)
                planned.append(MemoryChange("restore", "its code is back", changed=((memory, after),)))
            continue
        is_code = memory.status == "active" and memory.kind in STALE_KINDS and memory.trust != "user"
        is_deletion = memory.detail.get("what") == "DELETED"  # which is true because the code is gone
        if is_code and not is_deletion and all(about.exists(file) is False for file in memory.files):
            after = replace(memory, status="stale", detail={**memory.detail, CODE_GONE: about.now})
            planned.append(MemoryChange("stale", f"{', '.join(memory.files)} gone", changed=((memory, after),)))
    return still_wanted(planned, about=about)


class Present:
    """The files that are there now; `missing` is since when the others were not found, for the next check."""

    def __init__(self, roots: Sequence[str], files: Iterable[str], *, missing: Mapping[str, float], now: float) -> None:
        self.missing: dict[str, float] = {}
        self._roots, self._before, self._now = roots, missing, now
        known = {file for file in files if _is_inside(file)}
        absent = [file for file in known if not self._is_there(file)]
        # Where more than half is absent, another branch or a sparse checkout is likelier than a rewrite.
        self._blind = not roots or (len(absent) >= FEW and len(absent) > len(known) / 2)

    def exists(self, file: str) -> bool | None:
        """Return whether a file is there; None where nobody can tell, or not for long enough."""
        if self._blind or not _is_inside(file):
            return None
        if self._is_there(file):
            return True
        since = min(self._before.get(file, self._now), self._now)  # a clock that jumped makes nothing older
        if file in self.missing or len(self.missing) < MOST_MISSING:
            self.missing[file] = since
        return False if self._now - since >= GONE else None

    def _is_there(self, file: str) -> bool:
        return any(os.path.lexists(os.path.join(root, file)) for root in self._roots)


def roots_of(project: Project, folders: Iterable[str], *, project_of: Callable[[str], Project]) -> tuple[str, ...]:
    """Return the roots of those folders that are there and still belong to the project."""
    projects = [project_of(folder) for folder in dict.fromkeys(folders) if os.path.isdir(folder)]
    return tuple(dict.fromkeys(each.root for each in projects if each.key == project.key and os.path.isdir(each.root)))


def _is_inside(file: str) -> bool:
    return bool(file) and not os.path.isabs(file) and "\0" not in file and ".." not in file.split("/")
