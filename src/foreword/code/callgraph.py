"""Build the call graph of a project by names alone: no types are known, and nothing is stored."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from time import monotonic
from typing import TypeAlias

from foreword.code import git, languages
from foreword.code.commits import ELSEWHERE, is_made, is_own
from foreword.code.definitions import Definition, in_tree
from foreword.errors import BadRequest, NotFound

MOST_FILES = 10_000
MOST_BYTES = 60_000_000  # some twenty seconds of parsing
SECONDS = 30.0
MOST_NODES, MOST_HOPS = 500, 50  # of the tree that is shown
# Where a method of the same class may be called without saying whose it is.
IMPLICIT = frozenset({"java", "c#", "c++", "ruby", "kotlin", "swift", "scala", "groovy", "dart"})
LIST = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".")


@dataclass(frozen=True)
class Place:
    """Something defined in a file."""

    file: str
    function: str  # qualified; empty for what a file does by itself when it is loaded
    line: int
    signature: str = ""


@dataclass(frozen=True)
class Call:
    """A call at a line of *caller*'s file, by the last part of the name that is written there."""

    caller: Place
    name: str
    line: int
    on: str  # what stands in front of the name: `self`, any other thing, or nothing


@dataclass(frozen=True)
class Node:
    """One function in the tree of callers or of those called, and where the call stands."""

    place: Place
    file: str
    line: int
    further: tuple[Node, ...]
    again: bool = False  # it is shown above, so its own callers are not repeated here
    several: int = 0  # so many definitions may be meant, and none is followed


Step: TypeAlias = Callable[[Place], Iterator[tuple[Place, int, int]]]  # who is next, the call's line, how many fit


class Calls:
    """Every definition and call of a project, by name."""

    def __init__(self) -> None:
        self.defined: dict[str, list[Place]] = {}
        self.by_name: dict[str, list[Call]] = {}
        self.by_caller: dict[tuple[str, str], list[Call]] = {}
        self.files = 0
        self.size = 0
        self.complete = True

    def add(self, file: str, source: bytes) -> None:
        """Add what *file* defines and calls; nothing where a tool wrote it or it is larger than people write."""
        language = languages.language_of(file, head=source[:4096])
        if not language or languages.is_too_large(source) or is_made(source):
            return
        tree = languages.parse(source, language=language)
        found = in_tree(tree, source, language=language) if tree else None
        if tree is None or found is None:
            return
        for each in found:
            self.defined.setdefault(each.name, []).append(_place(file, each))
        captured = languages.captures(tree, language=language, part="calls")
        breaks = [at for at, byte in enumerate(source) if byte == 0x0A]
        for node in (captured or {}).get("call", ()):
            name = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
            line = bisect_left(breaks, node.start_byte) + 1
            caller = _around(found, line)
            place = _place(file, caller) if caller else Place(file, "", 1)
            call = Call(place, name, line, _on(source, node.start_byte, language=language))
            self.by_name.setdefault(name, []).append(call)
            self.by_caller.setdefault((file, place.function), []).append(call)

    def named(self, name: str) -> tuple[Place, ...]:
        """Return the definitions of *name*, which may be qualified; NotFound with near names where there are none."""
        wanted = name.strip().removesuffix("()").replace("::", ".").replace("#", ".").strip(".")
        last = wanted.rpartition(".")[2]
        found = [
            place
            for place in self.defined.get(last, ())
            if place.function == wanted or place.function.endswith(f".{wanted}")
        ]
        if found:
            return tuple(found)
        near = get_close_matches(last, self.defined, n=5, cutoff=0.6)
        same = [place.function for place in self.defined.get(last, ())]
        hint = (
            f"did you mean {', '.join(dict.fromkeys([*same[:5], *near]))}?"
            if near or same
            else "names are case-sensitive"
        )
        raise NotFound(f"nothing named {name!r} is defined in the {self.files} files that were read", hint=hint)

    def callers(self, places: tuple[Place, ...], *, hops: int) -> tuple[Node, ...]:
        """Return who calls one of *places*, and who calls those, so many times."""
        return self._grown(places, hops=hops, step=self._callers, inward=True)

    def called(self, places: tuple[Place, ...], *, hops: int) -> tuple[Node, ...]:
        """Return what *places* call, as far as it is defined in the project, and what those call."""
        return self._grown(places, hops=hops, step=self._called, inward=False)

    def _grown(self, places: tuple[Place, ...], *, hops: int, step: Step, inward: bool) -> tuple[Node, ...]:
        """Return the tree below *places*, in which every function is followed once."""
        seen = {(place.file, place.function) for place in places}

        def below(place: Place, left: int) -> tuple[Node, ...]:
            nodes: dict[tuple[str, str], Node] = {}
            for other, line, several in step(place) if left > 0 else ():
                key = (other.file, other.function)
                if key in nodes or len(seen) > MOST_NODES:
                    continue
                again = key in seen
                seen.add(key)
                further = () if again or several or not other.function else below(other, left - 1)
                nodes[key] = Node(other, other.file if inward else place.file, line, further, again, several)
            return tuple(nodes.values())

        return tuple(node for place in places for node in below(place, min(hops, MOST_HOPS)))

    def _callers(self, place: Place) -> Iterator[tuple[Place, int, int]]:
        owner, _, name = place.function.rpartition(".")
        for call in self.by_name.get(name, ()):
            # A method is not meant by a bare name, and one of another class not by `self`.
            beside = call.caller.file == place.file
            if beside or not owner or call.on == "other":
                yield call.caller, call.line, 0

    def _called(self, place: Place) -> Iterator[tuple[Place, int, int]]:
        for call in self.by_caller.get((place.file, place.function), ()):
            known = self.defined.get(call.name, ())
            if call.on != "other":
                beside = [each for each in known if each.file == place.file]
                known = beside or [each for each in known if call.on == "self" or each.function == call.name]
            several = len(known) if len(known) > 1 else 0
            for each in known[:1]:
                yield (Place("", call.name, 0) if several else each), call.line, several


def read_calls(
    root: str,
    *,
    seconds: float = SECONDS,
    most_files: int = MOST_FILES,
    most_bytes: int = MOST_BYTES,
    tick: Callable[[int, int], object] | None = None,
) -> Calls:
    """Read every definition and call in the source files under *root*; `complete` says whether a bound left some out.

    *tick* is called with how many files of how many were read.
    """
    if not os.path.isdir(root):
        raise BadRequest(f"not a folder: {root!r}", hint="give the path of a project")
    until = monotonic() + seconds
    names = sorted(name for name in _listed(root, until=until) if is_own(name))
    calls = Calls()
    calls.complete = len(names) <= most_files and monotonic() <= until
    for at, name in enumerate(names[:most_files]):
        if monotonic() > until or calls.size > most_bytes:
            calls.complete = False
            break
        source = _read(os.path.join(root, name))
        if source is not None:
            calls.add(name, source)
            calls.files += 1
            calls.size += len(source)
        if tick:
            tick(at + 1, min(len(names), most_files))
    return calls


def _listed(root: str, *, until: float) -> Iterator[str]:
    """Yield the files that git knows or would add; outside of git those of the folders, ours only."""
    if os.path.lexists(os.path.join(root, ".git")):
        yield from (os.fsdecode(name) for name in git.run(root, LIST).split(b"\0") if name)
        return
    for folder, below, files in os.walk(root):
        below[:] = sorted(name for name in below if name[0] != "." and name not in ELSEWHERE)
        if monotonic() > until:
            return
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), root)


def _read(path: str) -> bytes | None:
    """Return a file's bytes; None for what is no file, cannot be read or is too large."""
    try:
        if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > languages.LARGEST:
            return None
        with open(path, "rb") as file:
            return file.read(languages.LARGEST)
    except (OSError, ValueError):
        return None


def _on(source: bytes, at: int, *, language: str) -> str:
    """Return what a name at a place is called on."""
    front = source[max(0, at - 12) : at].rstrip()
    if front.endswith((b"self.", b"this.", b"this->", b"self::", b"cls.")):
        return "self"
    if front.endswith((b".", b"->", b"::", b"?.")):
        return "other"
    return "self" if language in IMPLICIT else ""


def _around(found: tuple[Definition, ...], line: int) -> Definition | None:
    """Return the innermost definition that a line lies in."""
    inside = [each for each in found if each.line <= line <= each.end_line]
    return max(inside, key=lambda each: each.line, default=None)


def _place(file: str, one: Definition) -> Place:
    return Place(file, one.qualified, one.line, one.signature)
