"""Forgotten texts -> what tells of them in other texts and in any bytes, and those texts without it.

A window is six bytes in a row, in small letters. A forgotten text is known by its windows; those that something which
stays has too tell nothing of it. docs/forget.md has the rules and their reasons.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

WINDOW = 6  # bytes: random noise of 32 letters has a billion of them, so that one that is found was not met by chance
MARK = "[forgotten]"
PASSAGE = 24  # bytes in a row that one text hardly has from another by chance: four words
PHRASE = 12  # two words: enough among what an agent was told, which nobody reads again
QUOTED = 64  # bytes: a sentence; a memory that has so much of another in common quotes it
FEW = 64  # windows up to which each is looked for by itself, at memory's speed
MOST = 1_000_000  # windows that are looked for at once: 75 MB of memory
CHUNK = 32 * 1024  # bytes that are looked through at once: a few milliseconds in which no other thread works
_NUMBERS = frozenset(b"0123456789 -:.,/+tz_")  # what numbers, days and times are made of


@dataclass(frozen=True)
class Traces:
    """What is known of forgotten texts: their windows, those that nothing else has, and how ordinary text looks."""

    known: frozenset[bytes] = frozenset()
    telling: frozenset[bytes] = frozenset()
    ordinary: frozenset[bytes] = frozenset()  # three letters each, as they stand in words of ours
    unsaid: int = 0  # windows that were too many to look for

    def without(self, found: Iterable[bytes]) -> Traces:
        """The same, when *found* stand in what stays."""
        return replace(self, telling=self.telling.difference(found))

    def held(self, data: bytes) -> frozenset[bytes]:
        """The telling windows that *data* holds, whatever the size of its letters."""
        return held(data, self.telling)

    def near(self, text: str) -> str:
        """A text of ours, or of the session that it came from: everything that tells of it goes."""
        return self._cut(text, lambda _data, _start, _end: True)

    def far(self, text: str) -> str:
        """What another session was told: whole words, phrases, and what is no ordinary text go."""
        return self._cut(text, self._is_no_chance)

    def kin(self, text: str) -> str:
        """A memory of the same session: passages of it, and what is no ordinary text, go."""
        return self._cut(text, lambda data, start, end: end - start >= PASSAGE or self._is_odd(data[start:end]))

    def other(self, text: str) -> str:
        """Any other memory: whole sentences and noise go; words, names and phrases that it shares are its own."""
        return self._cut(text, lambda data, start, end: end - start >= QUOTED or self._is_noise(data[start:end]))

    def share(self, texts: Iterable[str]) -> float:
        """How much of *texts* is made of forgotten ones, from 0 to 1."""
        own = set().union(*(windows(folded(text)) for text in texts))
        return len(own & self.known) / len(own) if own else 0.0

    def _cut(self, text: str, wanted: Callable[[bytes, int, int], bool]) -> str:
        if len(text) < WINDOW or not self.telling:
            return text
        if text[:1] in ("{", "["):
            try:
                told = json.loads(text)
            except (ValueError, RecursionError):
                pass
            else:
                clean = _each_text(told, lambda each: self._cut(each, wanted))
                return text if clean == told else json.dumps(clean, ensure_ascii=False, separators=(",", ":"))
        data = folded(text)
        if not self.held(data):
            return text
        spans = [(start, end) for start, end in self._runs(data) if wanted(data, start, end)]
        return _replaced(text.encode("utf-8", "replace"), spans) if spans else text

    def _runs(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where forgotten windows stand one behind another, with at least one that tells: a quotation goes whole."""
        every = _windows_in_order(data)
        for run in _ONES.finditer(bytes(map(self.known.__contains__, every))):
            start, end = run.span()
            if not self.telling.isdisjoint(every[start:end]):
                yield start, end - 1 + WINDOW

    def _is_no_chance(self, data: bytes, start: int, end: int) -> bool:
        if end - start >= PHRASE or self._is_odd(data[start:end]):
            return True
        return not (_inside_a_word(data, start) or _inside_a_word(data, end))  # words, whole

    def _is_odd(self, run: bytes) -> bool:
        """Whether a telling window of a run has three letters that no word of ours has: names and noise do."""
        every = (run[at : at + WINDOW] for at in range(len(run) - WINDOW + 1))
        return any(
            window in self.telling and not self.ordinary.issuperset(_threes(window))
            for window in every
            if window.isascii()
        )

    def _is_noise(self, run: bytes) -> bool:
        """Whether half of a run of some length looks like no word."""
        threes = list(_threes(run)) if run.isascii() and len(run) >= PHRASE else []
        odd = sum(each not in self.ordinary for each in threes)
        return bool(threes) and 2 * odd >= len(threes)


def traces_of(texts: Iterable[str], *, ours: bytes = b"", words: Iterable[str] = (), most: int = MOST) -> Traces:
    """What tells of *texts*; the windows of *ours*, bytes that stand in every home, tell nothing.

    Of *words* it is learnt how ordinary text looks.
    """
    known: set[bytes] = set()
    unsaid = 0
    for text in dict.fromkeys(texts):
        found = set().union(*(windows(form) for form in _forms(text)))
        if len(known) + len(found) > most:
            unsaid += len(found - known)
        else:
            known |= found
    plain = held(ours, known)
    ordinary = frozenset(each for word in words for each in _threes(folded(word)))
    telling = frozenset(each for each in known if each not in plain and not _NUMBERS.issuperset(each))
    return Traces(known=frozenset(known), telling=telling, ordinary=ordinary, unsaid=unsaid)


def folded(text: str) -> bytes:
    """A text in small letters, each as many bytes long as before."""
    if text.isascii():
        return text.lower().encode()
    return text.translate(_SMALL).encode("utf-8", "replace")


def windows(data: bytes) -> set[bytes]:
    """The windows of *data* that say something: not those of lines, spaces and one letter."""
    found = {data[at : at + WINDOW] for at in range(len(data) - WINDOW + 1)}
    return {each for each in found if len(set(each)) > 1 and (not each.isascii() or any(map(_is_letter, each)))}


def held(data: bytes, sought: frozenset[bytes] | set[bytes]) -> frozenset[bytes]:
    """Which windows of *sought* stand in *data*."""
    small = data.lower()
    if len(sought) < FEW:
        return frozenset(each for each in sought if each in small)
    found: set[bytes] = set()
    for start in range(0, max(1, len(small) - WINDOW + 1), CHUNK):
        for row in _rows(small[start : start + CHUNK + WINDOW - 1]):
            found |= sought.intersection(row)
    return frozenset(found)


def _rows(data: bytes) -> Iterator[tuple[bytes, ...]]:
    """The windows of *data*, every sixth in one row, and some behind its end; twice as quick as a slice for each."""
    count = len(data) // WINDOW + 1
    step = 1 << max(0, count.bit_length() - 3)
    count = -(-count // step) * step  # of some dozen lengths: to make a struct costs as much as to use it
    padded = data.ljust(count * WINDOW + WINDOW - 1, b"\0")
    return (_cells(count).unpack_from(padded, shift) for shift in range(WINDOW))


def _windows_in_order(data: bytes) -> list[bytes]:
    size = max(0, len(data) - WINDOW + 1)
    every = [b""] * size
    for shift, row in enumerate(_rows(data)):
        every[shift::WINDOW] = row[: len(range(shift, size, WINDOW))]
    return every


def _forms(text: str) -> Iterator[bytes]:
    """A text as it may stand in a file: itself, and as JSON writes it, also when it is written twice."""
    for piece in text.split(MARK):
        yield folded(piece)
        yield piece.encode("utf-8", "replace").lower()
        if not piece.isascii() or not piece.isprintable() or '"' in piece or "\\" in piece:
            for ascii_only in (False, True):
                once = json.dumps(piece, ensure_ascii=ascii_only)[1:-1]
                yield folded(once)
                yield folded(json.dumps(once, ensure_ascii=ascii_only)[1:-1])


def _each_text(item: Any, change: Callable[[str], str]) -> Any:
    if isinstance(item, str):
        return change(item)
    if isinstance(item, dict):
        return {change(name): _each_text(each, change) for name, each in item.items()}
    return [_each_text(each, change) for each in item] if isinstance(item, list) else item


def _replaced(data: bytes, spans: list[tuple[int, int]]) -> str:
    """*data* with the mark in the place of each span; no letter is cut in two."""
    out: list[bytes] = []
    done = 0
    for start, end in spans:
        while start > done and data[start] & 0xC0 == 0x80:
            start -= 1  # noqa: PLW2901 - to where the letter begins
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1  # noqa: PLW2901
        if out and start <= done:
            done = max(done, end)
            continue
        out.append(data[done:start])
        done = end
    out.append(data[done:])
    return MARK.join(piece.decode("utf-8", "replace") for piece in out)


def _threes(word: bytes) -> Iterator[bytes]:
    every = (word[at : at + 3] for at in range(len(word) - 2))
    return (each for each in every if each.isalnum())


def _inside_a_word(data: bytes, at: int) -> bool:
    """Whether a word goes on over this place."""
    return 0 < at < len(data) and all(_is_letter(each) or each > 127 for each in data[at - 1 : at + 1])


def _is_letter(byte: int) -> bool:
    return 48 <= byte <= 57 or 97 <= byte <= 122 or 65 <= byte <= 90


_ONES = re.compile(b"\x01+")


@lru_cache(64)
def _cells(count: int) -> struct.Struct:
    return struct.Struct(f"{WINDOW}s" * count)


class _Small(dict[int, str]):
    """A letter -> the small one, where that has as many bytes."""

    def __missing__(self, number: int) -> str:
        letter = chr(number)
        small = letter.lower()
        alike = len(small.encode("utf-8", "replace")) == len(letter.encode("utf-8", "replace"))
        self[number] = small if alike else letter
        return self[number]


_SMALL = _Small()
