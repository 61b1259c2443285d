"""A file of JSON lines -> what each of them says, without secrets and in bounded memory: one line may have 20 MB."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

from foreword.encoding import storable
from foreword.redact import leaves_open, redact, redact_all

LONG = 256 * 1024  # bytes of a line; the strings of a longer one are cut while it is read
HALF = 64 * 1024  # bytes that stay of either end of such a string: whole source files, and what frames a long output
MOST = 2 * 1024 * 1024  # bytes of a line after that; what is longer is a list of a million things, and is left out
LEFT_OUT = " bytes left out]\n"  # how a string ends its note of what is missing in it


@dataclass(frozen=True)
class Line:
    """What one line says, redacted; `cwd` is the folder as it is called, which a project is found by."""

    said: Mapping[str, Any]
    cwd: str = ""


def read(
    file: IO[bytes],
    *,
    keep: Callable[[Any], dict[str, Any] | None],
    spoiled: Callable[[], None] = lambda: None,
    most: int = 0,
) -> Iterator[Line]:
    """What *keep* leaves of each line, in order, of the first *most* bytes; what is no JSON object is *spoiled*."""
    while (not most or file.tell() < most) and (raw := file.readline(LONG)):
        cut = len(raw) == LONG and not raw.endswith(b"\n")
        if cut:
            raw = _shortened(raw, _rest(file))
        elif raw.isspace():
            continue
        try:
            found = json.loads(raw.decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            spoiled()
            continue
        kept = keep(found)
        if kept is not None:
            yield Line(said=_clean(kept, cut=cut, odd=b"\\ud" in raw or b"\\uD" in raw), cwd=_cwd(found))


def is_whole(text: str) -> bool:
    """Whether nothing was left out of *text* while it was read."""
    return LEFT_OUT not in text


def _cwd(found: dict[str, Any]) -> str:
    inner = found.get("payload")
    told = found.get("cwd") or (inner.get("cwd") if isinstance(inner, dict) else "")
    return storable(told) if isinstance(told, str) else ""


def _clean(kept: dict[str, Any], *, cut: bool, odd: bool) -> Mapping[str, Any]:
    """The one place where what a file says loses its secrets."""
    mended = _each_text(kept, _mended) if cut else kept
    clean: dict[str, Any] = redact_all(_each_text(mended, storable) if odd else mended)
    return clean


def _each_text(item: Any, change: Callable[[str], str]) -> Any:
    if isinstance(item, str):
        return change(item)
    if isinstance(item, dict):
        return {change(key): _each_text(each, change) for key, each in item.items()}
    if isinstance(item, list):
        return [_each_text(each, change) for each in item]
    return item


# ---- a long line: outside of strings it is kept, inside of them both ends are

SEAM = "\ue000"  # stands on both sides of the number of bytes that are missing; a private character of Unicode
OPEN = "<private>"  # what a string ends with whose missing part may have opened something: the rest of it is hidden
_INSIDE = re.compile(rb'[^"\\]*+(?>(?:\\(?:u[0-9A-Fa-f]{4}|[^u])[^"\\]*+)*)')  # whole escapes, up to the closing quote
_QUOTE = 0x22
_ESCAPE = 6  # bytes of the longest one, \u0041
_OVERLAP = 200  # bytes; a tag or the first line of a key that lies across two pieces is shorter


def _rest(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.readline(LONG):
        yield piece
        if piece.endswith(b"\n"):
            return


def _shortened(first: bytes, rest: Iterator[bytes]) -> bytes:
    """A long line with its long strings cut; nothing where it stays too long."""
    kept = bytearray()
    string: _Ends | None = None
    left = b""
    for chunk in chain((first,), rest):
        piece, left, at = left + chunk, b"", 0
        while at < len(piece):
            if string is None:
                end = piece.find(b'"', at) + 1 or len(piece)
                kept += piece[at:end]
                string = _Ends() if piece[end - 1] == _QUOTE else None
                at = end
                continue
            found = _INSIDE.match(piece, at)
            end = found.end() if found else at
            string.take(piece[at:end])
            at = end
            if at < len(piece) and piece[at] == _QUOTE:
                kept += string.told() + b'"'
                string = None
                at += 1
            elif at < len(piece):  # an escape whose other half comes with the next piece
                left, at = piece[at:], len(piece)
        if len(kept) > MOST or len(left) >= _ESCAPE:
            for _ in rest:
                pass
            return b""
    return bytes(kept)


class _Ends:
    """The two ends of a string that is read piece by piece."""

    def __init__(self) -> None:
        self.head = bytearray()
        self.tail = bytearray()
        self.edge = b""
        self.lost = 0
        self.hidden = False

    def take(self, piece: bytes) -> None:
        """The next piece; it begins and ends between two escapes, and so does what is kept of it."""
        if not self.tail and len(self.head) < HALF:
            end = _whole(piece, HALF - len(self.head))
            self.head += piece[:end]
            piece = piece[end:]
        self.tail += piece
        if len(self.tail) > 2 * HALF:
            end = _whole(self.tail, len(self.tail) - HALF)
            missing = self.edge + bytes(self.tail[:end])
            self.lost += end
            self.hidden = self.hidden or leaves_open(missing.decode("utf-8", "replace"))
            self.edge = missing[-_OVERLAP:]
            del self.tail[:end]

    def told(self) -> bytes:
        if not self.lost:
            return bytes(self.head + self.tail)
        head, tail = (bytes(end).decode("utf-8", "ignore") for end in (self.head, self.tail))
        return f"{head}{SEAM}{self.lost}{SEAM}{OPEN if self.hidden else tail}".encode()


def _whole(piece: bytes | bytearray, room: int) -> int:
    """Where the last whole escape or character ends that has room."""
    found = _INSIDE.match(piece, 0, room)
    return found.end() if found else 0


def _mended(text: str) -> str:
    """A string that was cut, without what its edges may hold of a secret."""
    head, seam, rest = text.partition(SEAM)
    lost, end, tail = rest.partition(SEAM)
    if not (seam and end and lost.isdigit()):
        return text
    tail = OPEN if leaves_open(head) else redact(tail, cut="tail") if tail != OPEN else tail
    return f"{redact(head, cut='head')}\n[{lost}{LEFT_OUT}{tail}"
