"""Say what may be removed, after how many days, in which order, and whether the clock can be trusted. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

# The clock is trusted after so many days in a row on which a worker ran, each soon after the one before.
STEADY_DAYS = 7
LONGEST_GAP = 14  # days; more than a usual holiday is taken for a clock that jumped
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
    "aside": "inactive_keep_days",
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
    """A day on which a worker ran; *number* is its place in the order in which days came."""

    number: int
    name: str  # 2026-11-16, where the user is
    events: int  # the highest number of an event that had arrived when it began


@dataclass(frozen=True)
class Prunable:
    """What of a class goes: how many rows, about how many bytes, and from when to when they are."""

    name: str  # one of CLASSES
    rows: int = 0
    size: int = 0
    oldest: float = 0.0
    newest: float = 0.0
    by_age: int = 0  # of the rows; the others go because the store is too large


def trusted_since(days: Sequence[Day], *, now: float) -> float | None:
    """Return when the first of *days* began, or None where the clock jumped lately: then nothing is removed by age.

    *days* stand in the order in which they came. What is dated before the first of them was imported, or recorded while
    the clock was wrong, so that its date does not say how old it is.
    """
    try:
        lately = [datetime.fromisoformat(day.name) for day in days[-STEADY_DAYS:]] + [datetime.fromtimestamp(now)]
        gaps = [(later.date() - earlier.date()).days for earlier, later in pairwise(lately)]
        if len(gaps) < STEADY_DAYS or not all(0 <= gap <= LONGEST_GAP for gap in gaps):
            return None
        return datetime.fromisoformat(days[0].name).timestamp()
    except (ValueError, OverflowError, OSError):  # a clock in the year 10,000
        return None


def excess(used: int, *, going: int, limits: Limits) -> int:
    """The bytes that must go besides those that go by age, so that the store is well below its cap; 0 if it is."""
    if not limits.most_bytes or used - going <= limits.most_bytes:
        return 0
    return used - going - int(limits.most_bytes * ENOUGH)
