"""What is only counted -> rows of a day, and back; and, once a day, where everything stood when that day began.

Where a day began tells by itself how old anything is, whatever clocks and imported dates say: what has a lower number
had arrived by then. `retention.py` owns what follows from that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from foreword.retention import Day
from foreword.store.finding import bound
from foreword.store.reading import Reader

DAY, BYTES, ACTIVITY, BEFORE = "day", "bytes", "activity", "before:"
LOCAL = "date({}, 'unixepoch', 'localtime')"  # the day on which that was, where the user is
NUMBERED = ("events", "changes", "log")  # tables whose numbers grow
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
            f"""SELECT day, what, number FROM tallies WHERE project = ''
            AND (what IN ('{DAY}', '{ACTIVITY}') OR what LIKE '{BEFORE}%')""",
            (),
        )
        told: dict[str, dict[str, float]] = {}
        for day, what, number in rows:
            told.setdefault(day, {})[what] = number
        known = sorted((each for each in told.items() if DAY in each[1]), key=lambda each: each[1][DAY])
        days: list[Day] = []
        before: dict[str, int] = {}
        for day, numbers in known:
            # Only what has grown is noted; the rest stood where it was.
            new = {what.removeprefix(BEFORE): int(n) for what, n in numbers.items() if what.startswith(BEFORE)}
            before = {**before, **new}
            days.append(Day(int(numbers[DAY]), day, int(numbers.get(ACTIVITY, 0)), before))
        return tuple(days)

    def size(self) -> Size:
        pages, free, each = (
            self._all(f"PRAGMA {name}", ())[0][0] for name in ("page_count", "freelist_count", "page_size")
        )
        return Size(pages * each, (pages - free) * each)

    def _numbers(self) -> dict[str, int]:
        highest = {name: self._all(f"SELECT ifnull(max(number), 0) FROM {name}", ())[0][0] for name in NUMBERED}
        owners = {str(number): newest for number, newest in self._all("SELECT number, newest FROM owners", ())}
        return {**highest, **owners}

    def beginning(self, day: str) -> list[tuple[str, str, float]]:
        """What is to be noted of a day that begins; nothing where it is the one that goes on."""
        days = self.days()
        if days and days[-1].name == day:
            return []
        # A clock that went back brings a day again: all of it is noted anew, for its first time is forgotten.
        again = not days or any(each.name == day for each in days)
        numbers, last = self._numbers(), {} if again else days[-1].before
        given = self._all("SELECT count(*) FROM injections", ())[0][0]
        activity = given + sum(number for name, number in numbers.items() if name not in ("log", "changes"))
        grown = [(day, f"{BEFORE}{name}", number) for name, number in numbers.items() if number != last.get(name, 0)]
        number = (days[-1].number if days else 0) + 1
        return [(day, DAY, number), (day, ACTIVITY, activity), (day, BYTES, self.size().total), *grown]


def note_day(execute: Callable[..., Any], day: str, *, failures: tuple[type[Exception], ...]) -> bool:
    """Note where everything stands as a day begins; whether it was not noted before."""
    rows = TallyReader(execute, failures=failures).beginning(day)
    if rows:
        execute(f"DELETE FROM tallies WHERE day = ? AND project = '' AND what LIKE '{BEFORE}%'", (day,))
    for row in rows:
        execute(PUT, row)
    return bool(rows)


def add(execute: Callable[..., Any], counted: Mapping[tuple[str, str, str], float]) -> None:
    """Add to tallies: (day, project, what) -> how many more."""
    for key, number in counted.items():
        execute(ADD, bound((*key, number)))
