"""Find who calls a function and what it calls, by names alone: no types are known, and nothing is stored."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from foreword.code import git, languages
from foreword.code.definitions import in_tree
from foreword.errors import BadRequest, NotFound
from foreword.projects import ALWAYS_VENDORED

MOST_FILES = 10_000
SECONDS = 30.0
LIST = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".")


@dataclass(frozen=True)
class Place:
    """Something defined in a file."""

    file: str
    function: str  # qualified; empty for what a file does by itself when it is loaded
    line: int
    signature: str = ""


class Call(NamedTuple):
    """A call at a line of a file: who calls, or what is called; `several` definitions may be meant."""

    function: str
    file: str
    line: int
    several: int = 0


class Calls:
    """Every definition and call of a project, by name."""

    def __init__(self) -> None:
        self.defined: dict[str, list[Place]] = {}
        self.calls: list[tuple[Place, str, int]] = []  # the caller, the last part of the name, the line
        self.files = 0
        self.complete = True

    def add(self, file: str, source: bytes) -> None:
        """Add what *file* defines and calls; nothing where a tool wrote it or it is larger than people write."""
        language = languages.language_of(file, head=source[:4096])
        if not language or languages.is_too_large(source) or git.is_made(source):
            return
        tree = languages.parse(source, language=language)
        found = in_tree(tree, source, language=language) if tree else None
        if tree is None or found is None:
            return
        for each in found:
            self.defined.setdefault(each.name, []).append(Place(file, each.qualified, each.line, each.signature))
        captured = languages.captures(tree, language=language, part="calls") or {}
        breaks = [at for at, byte in enumerate(source) if byte == 0x0A]
        for node in captured.get("call", ()):
            name = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
            line = bisect_left(breaks, node.start_byte) + 1
            around = [each for each in found if each.line <= line <= each.end_line]
            caller = Place(file, "", 1)
            if around:
                inner = max(around, key=lambda each: each.line)
                caller = Place(file, inner.qualified, inner.line, inner.signature)
            self.calls.append((caller, name, line))

    def named(self, name: str) -> tuple[Place, ...]:
        """Return the definitions of *name*, which may be qualified; NotFound with near names where there are none."""
        wanted = name.strip().removesuffix("()").replace("::", ".").replace("#", ".").strip(".")
        last = wanted.rpartition(".")[2]
        same = self.defined.get(last, [])
        found = [place for place in same if f".{place.function}".endswith(f".{wanted}")]
        if found:
            return tuple(found)
        near = [*(place.function for place in same[:5]), *get_close_matches(last, self.defined, n=5, cutoff=0.6)]
        hint = f"did you mean {', '.join(dict.fromkeys(near))}?" if near else "names are case-sensitive"
        raise NotFound(f"{name!r} is not defined in the {self.files} source files", hint=hint)

    def callers(self, places: Sequence[Place]) -> list[Call]:
        """Return who calls one of *places*, each caller once."""
        names = {place.function.rpartition(".")[2] for place in places}
        found: dict[Place, Call] = {}
        for caller, name, line in self.calls:
            if name in names:
                found.setdefault(caller, Call(caller.function, caller.file, line))
        return list(found.values())

    def called(self, places: Sequence[Place]) -> list[Call]:
        """Return what *places* call, as far as it is defined in the project, each name once."""
        found: dict[str, Call] = {}
        for caller, name, line in self.calls:
            if caller in places and name in self.defined:
                known = self.defined[name]
                known = [each for each in known if each.file == caller.file] or known
                function = known[0].function if len(known) == 1 else name
                found.setdefault(name, Call(function, caller.file, line, len(known) if len(known) > 1 else 0))
        return list(found.values())


def read_calls(root: str, *, seconds: float = SECONDS) -> Calls:
    """Read every definition and call in the source files under *root*; `complete`: whether no bound left some out."""
    if not os.path.isdir(root):
        raise BadRequest(f"not a folder: {root!r}", hint="give the path of a project")
    until = monotonic() + seconds
    names = sorted(name for name in _listed(root) if git.is_own(name))
    calls = Calls()
    calls.complete = len(names) <= MOST_FILES
    for name in names[:MOST_FILES]:
        if monotonic() > until:
            calls.complete = False
            break
        path = os.path.join(root, name)
        with suppress(OSError, ValueError):
            if os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) <= languages.LARGEST:
                calls.add(name, Path(path).read_bytes())
                calls.files += 1
    return calls


def _listed(root: str) -> Iterator[str]:
    """Yield the files that git knows or would add; outside of git those of the folders, ours only."""
    if os.path.lexists(os.path.join(root, ".git")):
        yield from (os.fsdecode(name) for name in git.run(root, LIST).split(b"\0") if name)
        return
    for folder, below, files in os.walk(root):
        below[:] = sorted(name for name in below if name[0] != "." and name not in ALWAYS_VENDORED)
        yield from (os.path.relpath(os.path.join(folder, name), root) for name in files)
