"""What may go, after how long, and in which order; days that were noted -> since when something is old. Pure.

A clock may jump, and what is imported brings dates of its own: by a date alone nothing is old. Something is old when
its own date says so, and enough days that brought something to record came after the one on which it arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

BORNE_OUT = 3  # days to the next one that a day with something to record bears out: people have weekends
# What never goes by itself, whatever its status: rules, and what was decided, learned and aimed at.
KEPT_KINDS = ("preference", "correction", "decision", "pattern", "goal", "learning")
ASIDE = ("superseded", "stale", "discarded")
# By size, in this order and the oldest first; what is not named goes by age alone.
BY_SIZE = ("events", "texts", "aside", "observations", "changes")
CLASSES = (*BY_SIZE, "access", "silences", "undo")
WHAT = {
    "events": "raw events of sessions that were distilled",
    "texts": "exact texts of what was injected",
    "aside": "memories that are superseded, stale or discarded",
    "observations": "observations",
    "changes": "changed functions",
    "access": "notes of who fetched what",
    "silences": "reasons why nothing was said",
    "undo": "what it takes to undo entries of the log",
}
ENOUGH = 0.9  # of the cap, to which a store is brought down that has passed it: not a little every day
REST_DAYS = 7  # a session that was told of so lately may go on, and needs its events and texts, whatever the size


SETTINGS = {
    "events": "events_keep_days",
    "texts": "traces_keep_days",
    "aside": "aside_keep_days",
    "observations": "observations_keep_days",
    "changes": "observations_keep_days",
    "access": "traces_keep_days",
    "silences": "traces_keep_days",
    "undo": "traces_keep_days",
}


@dataclass(frozen=True)
class Limits:
    """How many days each class is kept, 0 for ever; and how many bytes all of it may have, 0 for any."""

    days: Mapping[str, int]  # of CLASSES
    most_bytes: int = 0


@dataclass(frozen=True)
class Day:
    """A day on which a worker ran: its place in the order of days as they came, and where everything stood."""

    number: int
    name: str  # 2026-11-16, where the user is
    activity: int  # differs from the next day's if something was recorded
    before: Mapping[str, int]  # table, or owner of memories -> the highest number that had arrived when it began


@dataclass(frozen=True)
class Prunable:
    """What of a class goes: how many rows, about how many bytes, and from when to when they are."""

    name: str  # one of CLASSES
    rows: int = 0
    size: int = 0
    oldest: float = 0.0
    newest: float = 0.0
    by_age: int = 0  # of the rows; the others go because the store is too large


def horizon(days: Sequence[Day], *, keep: int) -> Day | None:
    """The last day before whose begin all that had arrived is *keep* days old; None where nothing is, or for ever.

    Days count in the order in which they came. One on which nothing was recorded bears out nothing; any other the time
    until the next, a weekend at most. More than that is a holiday or a clock that jumped, and counts as the one day.
    """
    age = 0
    for day, following in zip(days[-2::-1], days[:0:-1], strict=True) if keep else ():
        if day.activity != following.activity:
            gap = _ordinal(following.name) - _ordinal(day.name)
            age += gap if 0 < gap <= BORNE_OUT else 1
        if age >= keep:
            return day
    return None


def excess(used: int, *, going: int, limits: Limits) -> int:
    """The bytes that must go besides those that go by age, so that the store is well below its cap; 0 if it is."""
    if not limits.most_bytes or used - going <= limits.most_bytes:
        return 0
    return used - going - int(limits.most_bytes * ENOUGH)


def _ordinal(day: str) -> int:
    try:
        return date.fromisoformat(day).toordinal()
    except ValueError:
        return 0  # no day of ours
