"""Count things by day, and note once a day how large the store is and which event was the last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from foreword.store.finding import bound
from foreword.store.reading import Reader
from foreword.store.retention import Day

DAY, BYTES, EVENTS = "day", "bytes", "before:events"
LOCAL = "date({}, 'unixepoch', 'localtime')"  # the day on which that was, where the user is
ADD = """INSERT INTO tallies (day, project, what, number) VALUES (?, ?, ?, ?)
 ON CONFLICT (day, project, what) DO UPDATE SET number = number + excluded.number"""
PUT = "INSERT OR REPLACE INTO tallies (day, project, what, number) VALUES (?, '', ?, ?)"


@dataclass(frozen=True)
class Size:
    """Bytes of a store: all of its file (`sizes.STORE`), and those of them that hold something."""

    total: int
    used: int


class TallyReader(Reader):
    """The questions about days, of one connection."""

    def days(self) -> tuple[Day, ...]:
        """The days on which a worker ran, in the order in which they came."""
        rows = self._all(
            f"SELECT day, what, number FROM tallies WHERE project = '' AND what IN ('{DAY}', '{EVENTS}')", ()
        )
        told: dict[str, dict[str, float]] = {}
        for day, what, number in rows:
            told.setdefault(day, {})[what] = number
        known = sorted((each for each in told.items() if DAY in each[1]), key=lambda each: each[1][DAY])
        days: list[Day] = []
        events = 0
        for day, numbers in known:
            events = int(numbers.get(EVENTS, events))  # once it was noted only where it had grown
            days.append(Day(int(numbers[DAY]), day, events))
        return tuple(days)

    def size(self) -> Size:
        """Return how large the store is, and how much of that is in use."""
        pages, free, each = (
            self._all(f"PRAGMA {name}", ())[0][0] for name in ("page_count", "freelist_count", "page_size")
        )
        return Size(pages * each, (pages - free) * each)

    def beginning(self, day: str) -> list[tuple[str, str, float]]:
        """What is to be noted of a day that begins; nothing where it is the one that goes on."""
        days = self.days()
        if days and days[-1].name == day:
            return []
        number = (days[-1].number if days else 0) + 1
        events = self._all("SELECT ifnull(max(number), 0) FROM events", ())[0][0]
        return [(day, DAY, number), (day, BYTES, self.size().total), (day, EVENTS, events)]


def note_day(execute: Callable[..., Any], day: str, *, failures: tuple[type[Exception], ...]) -> bool:
    """Note how large the store is as a day begins; return whether that was not noted before."""
    rows = TallyReader(execute, failures=failures).beginning(day)
    for row in rows:
        execute(PUT, row)
    return bool(rows)


def add(execute: Callable[..., Any], counted: Mapping[tuple[str, str, str], float]) -> None:
    """Add to tallies: (day, project, what) -> how many more."""
    for key, number in counted.items():
        execute(ADD, bound((*key, number)))
