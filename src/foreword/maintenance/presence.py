"""A project's folders on this machine -> which code that it remembers is there, and since when the rest is not."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from foreword.models import Project

DAY = 86_400.0
GONE = 3 * DAY  # what two looks so far apart did not find is gone: a branch is checked out for hours, mostly
# Where more than half of what is remembered is not there, another branch or an odd checkout is likelier than a rewrite.
MANY, LONG_GONE = 0.5, 14 * DAY
FEW = 10  # files of which all may be gone
LARGEST = 1 << 18  # bytes of a file that is looked into
MOST_MISSING = 10_000  # names that are kept in mind
PARSE_MS = 50.0


class Present:
    """What is there now; `missing` is since when the rest was not found, to be handed to the next look."""

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
        """Whether a file is there, or a function in it; None: nobody can tell, or not for long enough."""
        if self._blind or not _is_inside(file):
            return None
        places = self._there.get(file)
        if places is None:
            places = self._there[file] = self._places(file)
        if not places:
            return None if function else self._is_missing(file)
        if not function:
            return True
        held = [self._holds(place, file, function) for place in places]
        if any(held):
            return True
        return None if None in held else self._is_missing(f"{file}\0{function}")

    def _is_missing(self, name: str) -> bool | None:
        since = self._before.get(name, self._now)
        since = min(since, self._now)  # a clock that jumped makes nothing older
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
            return True  # it is named there, which is all that one look tells
        from foreword.code.definitions import definitions  # grammars, which most looks do without

        found = definitions(text, file=file, most_ms=PARSE_MS)
        return any(function in (each.name, each.qualified) or name == each.name for each in found) if found else None


def roots_of(project: Project, folders: Iterable[str], *, project_of: Callable[[str], Project]) -> tuple[str, ...]:
    """The folders on this machine that hold all of the project: none that is another one's, or a part of it."""
    roots: dict[str, None] = {}
    for folder in dict.fromkeys(folders):
        if not os.path.isdir(folder):
            continue
        found = project_of(folder)
        if found.key == project.key and os.path.isdir(found.root) and not _is_partial(found.root):
            roots[found.root] = None
    return tuple(roots)


def _is_partial(root: str) -> bool:
    """Whether only some folders of a repository are checked out."""
    git = os.path.join(root, ".git")
    if os.path.isfile(git):  # a worktree
        told = _text(git) or ""
        git = os.path.join(root, told.partition("gitdir:")[2].strip())
    return os.path.exists(os.path.join(git, "info", "sparse-checkout"))


def _is_inside(file: str) -> bool:
    return bool(file) and not os.path.isabs(file) and "\0" not in file and ".." not in file.split("/")


def _text(path: str) -> str | None:
    """The text of an ordinary file of a bounded size."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > LARGEST:
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(LARGEST)
    except (OSError, ValueError):
        return None
