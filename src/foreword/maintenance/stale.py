"""Mark memories of code that is gone as stale, or less certain, and bring them back with the code.

Code is gone only after days of absence: a branch that is checked out for an hour, a disk that is not mounted and a
sparse checkout change nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from foreword.audit import MemoryChange, PlanContext, standing
from foreword.maintenance.dedupe import CODE_GONE, confidence_before
from foreword.models import Change, Memory, Project

STALE_KINDS = ("change", "observation", "learning")  # worth as much as their code, unless the user wrote them
DOUBTED_KINDS = ("decision", "pattern", "failure", "learning")  # may hold for other code too: they stay, and count less
LESS_CERTAIN = 0.5  # times its confidence: it ranks after what still has its code
DAY = 86_400.0
GONE = 3 * DAY  # code that two looks so far apart did not find is gone
# Where more than half of the known files are absent, another branch or an odd checkout is likelier than a rewrite.
MANY, LONG_GONE = 0.5, 14 * DAY
FEW = 10  # files of which all may be gone
LARGEST = 1 << 18  # bytes of a file that is searched for a function
MOST_MISSING = 10_000  # names that are remembered as absent


def plan(memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]:
    """Mark memories that lost all of their code, and restore those whose code is back."""
    deleted = _deleted(about.changes, before=about.now - GONE)
    planned: list[MemoryChange] = []
    for number, memory in enumerate(memories):
        if number % 200 == 0:
            about.give_way()
        if memory.files and not memory.pinned and (change := _plan_one(memory, deleted, about=about)):
            planned.append(change)
    return standing(planned, about=about)


def _plan_one(memory: Memory, deleted: Collection[tuple[str, str]], *, about: PlanContext) -> MemoryChange | None:
    if CODE_GONE in memory.detail and memory.status in ("active", "stale"):
        return _restore(memory) if _has_code(memory, about=about) else None
    if memory.status != "active" or memory.kind not in (*STALE_KINDS, *DOUBTED_KINDS):
        return None
    if memory.detail.get("what") == "DELETED":
        return None  # a deletion is true because the code is gone
    reason = _gone(memory, deleted, about=about)
    if not reason:
        return None
    detail = {**memory.detail, CODE_GONE: {"since": about.now, "confidence": memory.confidence}}
    if memory.kind in STALE_KINDS and memory.trust != "user":
        return MemoryChange("stale", reason, changed=((memory, replace(memory, status="stale", detail=detail)),))
    doubted = replace(memory, confidence=memory.confidence * LESS_CERTAIN, detail=detail)
    return MemoryChange("sink", reason, changed=((memory, doubted),))


def _restore(memory: Memory) -> MemoryChange:
    detail = {name: value for name, value in memory.detail.items() if name != CODE_GONE}
    # The memory may have been confirmed meanwhile, with a higher confidence.
    confidence = max(memory.confidence, confidence_before(memory))
    after = replace(memory, status="active", confidence=confidence, detail=detail)
    return MemoryChange("restore", "its code is back", changed=((memory, after),))


def _gone(memory: Memory, deleted: Collection[tuple[str, str]], *, about: PlanContext) -> str:
    """Return what is gone, in words; empty where some of it is there, or nobody can tell."""

    def is_gone(function: str) -> bool:
        """Look for the function in all files; where nobody can look, a deletion by a session counts."""
        checked = [(about.exists(file, function), (file, function) in deleted) for file in memory.files]
        return all(there is False or (there is None and by_session) for there, by_session in checked)

    if all(about.exists(file, "") is False for file in memory.files):
        return f"{_shown(memory.files)} gone"
    if memory.functions and all(map(is_gone, memory.functions)):
        return f"{_shown([f'{name}()' for name in memory.functions])} gone from {_shown(memory.files)}"
    return ""


def _has_code(memory: Memory, *, about: PlanContext) -> bool:
    return any(about.exists(file, name) for file in memory.files for name in memory.functions or ("",))


def _deleted(changes: Sequence[Change], *, before: float) -> set[tuple[str, str]]:
    """Return the functions whose last change was a deletion, some days ago."""
    last: dict[tuple[str, str], Change] = {}
    for change in sorted(changes, key=lambda change: change.at):
        last[change.file, change.function] = change
    return {place for place, change in last.items() if change.what == "DELETED" and change.at < before}


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


# ---- which code is there


class Present:
    """The code that is there now; `missing` is since when the rest was not found, for the next look."""

    def __init__(
        self,
        roots: Sequence[str],
        files: Iterable[str],
        *,
        missing: Mapping[str, float],
        now: float,
        deleted: Collection[tuple[str, str]] = (),
    ) -> None:
        self.missing: dict[str, float] = {}
        self._roots = roots
        self._before, self._now, self._deleted = missing, now, deleted
        self._there = {file: self._places(file) for file in dict.fromkeys(files) if _is_inside(file)}
        gone = sum(1 for places in self._there.values() if not places)
        share = gone / max(1, len(self._there))
        self._blind = not roots or (share == 1 and gone >= FEW)
        self._patience = LONG_GONE if share > MANY and gone >= FEW else GONE
        self._read = lru_cache(maxsize=64)(_text)

    def exists(self, file: str, function: str) -> bool | None:
        """Return whether a file is there, or a function in it; None where nobody can tell, or not for long enough."""
        if self._blind or not _is_inside(file):
            return None
        if file not in self._there:
            self._there[file] = self._places(file)
        places = self._there[file]
        if not places:
            return None if function else self._is_missing(file)
        if not function:
            return True
        held = [self._holds(place, file, function) for place in places]
        if any(held):
            return True
        return None if None in held else self._is_missing(f"{file}\0{function}")

    def _is_missing(self, name: str) -> bool | None:
        since = min(self._before.get(name, self._now), self._now)  # a clock that jumped makes nothing older
        if name in self.missing or len(self.missing) < MOST_MISSING:
            self.missing[name] = since
        return False if self._now - since >= self._patience else None

    def _places(self, file: str) -> tuple[str, ...]:
        return tuple(path for root in self._roots if os.path.lexists(path := os.path.join(root, file)))

    def _holds(self, path: str, file: str, function: str) -> bool | None:
        text = self._read(path)
        if text is None:
            return None
        name = function.rpartition(".")[2]
        if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            return False
        if (file, function) not in self._deleted:
            return True
        # A session deleted it, and its name is still there: only the grammar tells a call from a definition.
        from foreword.code.definitions import definitions

        found = definitions(text, file=file)
        return any(function in (each.name, each.qualified) or name == each.name for each in found) if found else None


def roots_of(project: Project, folders: Iterable[str], *, project_of: Callable[[str], Project]) -> tuple[str, ...]:
    """Return the folders that hold all of the project: none that is another project's, or a sparse checkout."""
    roots: dict[str, None] = {}
    for folder in dict.fromkeys(folders):
        if not os.path.isdir(folder):
            continue
        found = project_of(folder)
        if found.key == project.key and os.path.isdir(found.root) and not _is_sparse(found.root):
            roots[found.root] = None
    return tuple(roots)


def _is_sparse(root: str) -> bool:
    git = os.path.join(root, ".git")
    if os.path.isfile(git):  # a worktree
        git = os.path.join(root, (_text(git) or "").partition("gitdir:")[2].strip())
    return os.path.exists(os.path.join(git, "info", "sparse-checkout"))


def _is_inside(file: str) -> bool:
    return bool(file) and not os.path.isabs(file) and "\0" not in file and ".." not in file.split("/")


def _text(path: str) -> str | None:
    """Read an ordinary file of a bounded size."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > LARGEST:
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(LARGEST)
    except (OSError, ValueError):
        return None
