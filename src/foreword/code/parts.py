"""Two versions of a file -> the parts of each that the other does not have, so that only those need parsing.

A part is mostly one function, or a class with those of its members that differ. Where one ends is guessed from empty
lines and margins, without a parser and twenty times as fast; what was cut in two does not parse, and then the caller
looks at the whole.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_GOES_ON = rb"(?:end|fi|done|esac|else|elif|elsif|elseif|except|finally|rescue|ensure|when|catch)\b"
# After an empty line, but nothing that goes on with or ends what stands above it.
_BEGINS = re.compile(rb"\n[ \t\r]*\n(?=[^\s})\]])(?!" + _GOES_ON + rb")")
# A part of this many bytes is worth a look at its members.
_LARGE = 1_000
_CLASS = re.compile(
    rb"^(?:[@#\[/].*\n)*[^\n(=]*\b(?:class|struct|impl|trait|interface|module|object|namespace|enum|extension|protocol|record)\b[^\n]*\n"
)
# What stands at the margin behind the first line of a class, and does not belong to it: its members end there.
_OUTSIDE = re.compile(rb"^(?!" + _GOES_ON + rb"|(?:public|private|protected)\b)[^\s})\]#{]", re.MULTILINE)
_INDENT = re.compile(rb"^([ \t]+)\S", re.MULTILINE)
_FOOT = frozenset({b"", b"}", b"};", b"},", b"})", b"});", b"end"})


@dataclass(frozen=True)
class Parts:
    """Some parts of a text, one after another: where each begins, line here -> line in the text, both from 0 on."""

    source: bytes
    here: tuple[int, ...]
    there: tuple[int, ...]
    classes: tuple[tuple[int, int], ...]  # first and last line in the text of those that lack members here
    begins: tuple[int, ...]  # where a part begins that is no other's member, lines here from 0 on

    def line(self, line: int) -> int:
        """The line in the text of a line here, both from 1 on."""
        at = bisect_right(self.here, line - 1) - 1
        return line if at < 0 else line - self.here[at] + self.there[at]

    def spans(self, line: int, end_line: int) -> bool:
        """Whether what stands here in these lines, from 1 on, goes over from one part into another."""
        return any(line <= begin < end_line for begin in self.begins)

    def end_of_class(self, line: int, end_line: int) -> int:
        """The last line of what begins at *line* of the text and may lack members here."""
        return next((last for first, last in self.classes if first <= line <= last), end_line)


def differing_parts(before: bytes, after: bytes, *, head: bytes = b"") -> tuple[Parts, Parts]:
    """What only *before* has, and what only *after* has; *head* stands in front of both where a part needs it."""
    start, end = _shared(before, after)
    lines = before.count(b"\n", 0, start)
    old, new = _cut(before[start : len(before) - end]), _cut(after[start : len(after) - end])
    gone, come = Counter(old), Counter(new)
    only_old, only_new = gone - come, come - gone
    cut = {part: _members(part) for part in (*only_old, *only_new)}
    in_old, in_new = ({key for part in only for key, _ in cut[part].members} for only in (only_old, only_new))
    return (
        _joined(old, only_old, cut=cut, without=in_new, head=head, line=lines),
        _joined(new, only_new, cut=cut, without=in_old, head=head, line=lines),
    )


@dataclass(frozen=True)
class _Class:
    """A part as a head, its members and a foot; a member's key names its class, for moved to another it is another."""

    head: bytes
    members: tuple[tuple[bytes, bytes], ...] = ()
    foot: bytes = b""


def _shared(before: bytes, after: bytes) -> tuple[int, int]:
    """How many bytes at the beginning and at the end both have, whole parts each."""
    most = min(len(before), len(after))
    start = _same(lambda size: before[:size] == after[:size], most)
    # A line that begins a part here must begin one there: so much of it as tells that must be shared too.
    begins = before.rfind(b"\n\n", 0, max(0, start - 10))
    while begins > 0 and not _BEGINS.match(before, begins):
        begins = before.rfind(b"\n\n", 0, begins)
    start = begins + 2 if begins > 0 else 0
    most -= start
    end = _same(lambda size: before[len(before) - size :] == after[len(after) - size :], most)
    begun = _BEGINS.search(before, len(before) - end)
    return start, len(before) - begun.end() if begun else 0


def _same(holds: Callable[[int], bool], most: int) -> int:
    """The largest size up to *most* for which it still holds, as it does for all smaller ones."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _cut(text: bytes) -> list[bytes]:
    return _between(text, [0, *(each.end() for each in _BEGINS.finditer(text)), len(text)])


def _between(text: bytes, places: list[int]) -> list[bytes]:
    """What lies between *places*, those put together between which a long string or remark goes on."""
    quotes = [quote for quote in (b'"""', b"'''", b"`") if quote in text]
    remarks = b"/*" in text
    pieces: list[bytes] = []
    first = places[0]
    for place in places[1:]:
        piece = text[first:place]
        is_open = any(piece.count(quote) % 2 for quote in quotes)
        if place < places[-1] and (is_open or (remarks and piece.count(b"/*") > piece.count(b"*/"))):
            continue
        pieces.append(piece)
        first = place
    return pieces


def _members(part: bytes) -> _Class:
    """All of *part* in the head where it is no class, or not worth it."""
    if len(part) < _LARGE or not (opened := _CLASS.match(part)) or _OUTSIDE.search(part, opened.end()):
        return _Class(part)
    inside = _INDENT.search(part, opened.end() - 1)
    if not inside:
        return _Class(part)
    begins = re.compile(rb"\n[ \t\r]*\n(?=" + re.escape(inside[1]) + rb"[^\s})\]])(?!\s*" + _GOES_ON + rb")")
    places = [each.end() for each in begins.finditer(part)]
    if not places:
        return _Class(part)
    foot = _foot(part, places[-1])
    head, *members = _between(part, [0, *places, foot])
    return _Class(head, tuple((opened[0] + b"\0" + member, member) for member in members), part[foot:])


def _foot(part: bytes, least: int) -> int:
    """Where the last lines begin that only close what is open."""
    foot = len(part)
    while foot > least:
        start = part.rfind(b"\n", least, foot - 1) + 1
        if start <= least or part[start:foot].strip() not in _FOOT:
            break
        foot = start
    return foot


def _joined(
    parts: list[bytes],
    wanted: Counter[bytes],
    *,
    cut: dict[bytes, _Class],
    without: set[bytes],
    head: bytes,
    line: int,
) -> Parts:
    """The wanted of *parts*, of equal ones the first, each without the members that the other version has too."""
    left = Counter(wanted)
    taken, here, there = [head], [], []
    classes = []
    begins = []
    at = head.count(b"\n")

    def take(piece: bytes) -> None:
        nonlocal at
        here.append(at)
        there.append(line)
        taken.append(piece)
        at += piece.count(b"\n")
        if not piece.endswith(b"\n"):
            taken.append(b"\n")
            at += 1

    for part in parts:
        if left[part] <= 0:
            line += part.count(b"\n")
            continue
        left[part] -= 1
        first = line
        one = cut[part]
        begins.append(at)
        take(one.head)
        line += one.head.count(b"\n")
        for key, member in one.members:
            if key not in without:
                take(member)
            line += member.count(b"\n")
        if one.foot.strip():
            take(one.foot)
        line += one.foot.count(b"\n")
        if one.members:
            classes.append((first + 1, first + part.rstrip().count(b"\n") + 1))
    return Parts(
        source=b"".join(taken), here=tuple(here), there=tuple(there), classes=tuple(classes), begins=tuple(begins)
    )
