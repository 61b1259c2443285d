"""Rows -> how many there are of each value, counted once for each state of the memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Any

from foreword.store.memories import stored_texts as texts_of
from foreword.store.wanted import COLUMNS, Among

MOST_COUNTS = 12  # that are kept: some hundred KB each
TOP = 20  # tags and files; others are found by typing
SLOW = 1.0  # seconds of counting after which counts may be old: at most a tenth of the time is spent on them


class Counts:
    """What was counted of one state of the memories: 0.2 s at 100,000, and asked for again and again."""

    def __init__(self, state: int) -> None:
        self.state = state
        self.counted: dict[tuple[str, tuple[Any, ...]], list[Any]] = {}
        self.old = False  # counted of an earlier state
        self.took, self.since = 0.0, 0.0
        self.chosen: dict[str, tuple[str, Among]] = {}  # the last tag and the last file, and who has them
        self.held: dict[str, Among] = {}  # the last words, and who holds them: a page, then its facets

    @staticmethod
    def at(state: int, *, before: Counts | None) -> Counts:
        """What is known of a state: nothing yet, or where counting takes long what was known *before*."""
        if before is None:
            return Counts(state)
        held = before.took > SLOW and monotonic() - before.since < 10 * before.took
        if before.state == state and (held or not before.old):
            return before
        new = Counts(state)
        if held:
            new.counted, new.took, new.since, new.old = before.counted, before.took, before.since, True
        return new

    def count(self, sql: str, given: Sequence[Any], ask: Callable[..., list[Any]]) -> list[Any]:
        """The rows of a question that looks at all, asked once."""
        key = sql, tuple(given)
        rows = self.counted.get(key)
        if rows is None:
            began = monotonic()
            rows = ask(sql, given)
            self.took = max(self.took, monotonic() - began)
            self.since = self.since or monotonic()
            self.counted = {**(self.counted if len(self.counted) < MOST_COUNTS else {}), key: rows}
        return rows


def sums(cells: Iterable[Sequence[Any]], names: Sequence[str]) -> dict[str, Counter[Any]]:
    """Cells with their counts -> how many there are of each value of these columns."""
    counts: dict[str, Counter[Any]] = {}
    for name in names:
        at, counter = COLUMNS.index(name), Counter[Any]()
        for cell in cells:
            counter[cell[at]] += cell[6]
        counts[name] = counter
    return counts


def sums_of_rows(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> dict[str, Counter[Any]]:
    """The same of rows, with what most of them have and name."""
    counts = sums(rows, [name for name in names if name in COLUMNS])
    for at, name in ((7, "tag"), (8, "file")):
        if name in names:
            every = Counter(each for row in rows if row[at] != "[]" for each in texts_of(row[at]))
            counts[name] = Counter(dict(every.most_common(TOP)))
    return counts


def most_first(counted: Counter[Any]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(((str(each), count) for each, count in counted.items()), key=lambda pair: (-pair[1], pair[0])))
