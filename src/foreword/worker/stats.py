"""Count triggers and their outcomes, and compute the figures of a span of days for `stats` and the viewer."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from typing import Any

from foreword.errors import BadRequest, ForewordError
from foreword.models import KINDS, TRIGGERS, NoContextRecord, Project
from foreword.store.stats import Statistics
from foreword.worker.projects import ProjectRegistry
from foreword.worker.services import Services

MOST_DAYS = 3650
RECALLS, SILENCES = "recalls:", "silences:"  # what is counted of each trigger
NOTES = (
    "days are local days",
    "a hook that answers without the worker counts what it injected, not when it injected nothing",
)


@dataclass(frozen=True)
class Span:
    """Some local days up to today: their names, and the times between which they lie."""

    first: date
    last: date

    @property
    def since(self) -> float:
        return datetime.combine(self.first, clock_time()).timestamp()

    @property
    def until(self) -> float:
        return datetime.combine(self.last + timedelta(days=1), clock_time()).timestamp()

    @property
    def days(self) -> tuple[str, ...]:
        return tuple((self.first + timedelta(days=n)).isoformat() for n in range((self.last - self.first).days + 1))


def span(now: float, *, days: int) -> Span:
    """Return the last *days* local days, today included."""
    last = datetime.fromtimestamp(now).date()
    return Span(last - timedelta(days=days - 1), last)


def figures(counted: Statistics, over: Span) -> dict[str, Any]:
    """Return all figures by name; null where there is no data."""
    injections = sum(row[2] for row in counted.injections)
    tokens = sum(row[3] for row in counted.injections)
    used = sum(each.used for each in counted.items)
    return {
        "from": over.first.isoformat(),
        "to": over.last.isoformat(),
        "days": len(over.days),
        "injections": {
            "total": injections,
            "away": counted.away,
            "dated_ahead": counted.ahead,
            "by_trigger": _by(counted.injections, key=1, number=2, order=TRIGGERS),
            "by_day": _injected_by_day(counted, over),
        },
        "tokens": {
            "given": tokens,
            "per_injection": _ratio(tokens, injections, digits=1),
            "per_used_item": _ratio(tokens, used, digits=1),
        },
        "items": {
            **_hits(counted.items),
            "by_kind": {kind: _hits(its) for kind, its in _grouped(counted.items, "kind", order=tuple(KINDS))},
            "by_layer": {layer: _hits(its) for layer, its in _grouped(counted.items, "layer")},
            "by_day": _items_by_day(counted, over),
        },
        "silence": _silence(counted.tallies),
        "build_ms": {trigger: _times(counted.build_ms[trigger]) for trigger in _ordered(counted.build_ms, TRIGGERS)},
        "build_ms_by_day": [
            {"day": day, **_times(counted.build_ms_by_day[day])} for day in over.days if day in counted.build_ms_by_day
        ],
        "memories": {
            "total": sum(number for _, number in counted.memories),
            "by_kind": _by(counted.memories, key=0, number=1, order=tuple(KINDS)),
            "by_status": {"active": sum(number for _, number in counted.memories), **dict(counted.inactive)},
            "new": sum(number for _, _, number in counted.new),
            "new_by_day": _new_by_day(counted.new, over),
        },
        "store": {"bytes_by_day": [{"day": day, "bytes": int(size)} for day, size in counted.sizes]},
        "growth": _growth(counted, over),
        "sessions": {
            "total": sum(number for _, number in counted.sessions),
            "by_host": _by(counted.sessions, key=0, number=1),
        },
        "model": {
            "calls": sum(row[1] for row in counted.model),
            "refused": sum(row[2] for row in counted.model),
            "tokens_in": sum(row[3] for row in counted.model),
            "tokens_out": sum(row[4] for row in counted.model),
            "by_day": [
                {"day": day, "calls": calls, "tokens_in": into, "tokens_out": out}
                for day, calls, _, into, out in counted.model
            ],
        },
        "notes": list(NOTES),
    }


def _by(rows: Iterable[Sequence[Any]], *, key: int, number: int, order: Sequence[str] = ()) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row[key]] += row[number]
    return {name: sums[name] for name in _ordered(sums, order)}


def _ordered(names: Iterable[str], order: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def _grouped(items: Sequence[Any], field: str, *, order: Sequence[str] = ()) -> list[tuple[str, list[Any]]]:
    names = _ordered({getattr(each, field) for each in items}, order)
    return [(name, [each for each in items if getattr(each, field) == name]) for name in names]


def _hits(items: Sequence[Any]) -> dict[str, Any]:
    shown, used, ignored = (sum(getattr(each, name) for each in items) for name in ("shown", "used", "ignored"))
    rate = _ratio(used, used + ignored, digits=4)
    return {"shown": shown, "used": used, "ignored": ignored, "unjudged": shown - used - ignored, "hit_rate": rate}


def _silence(tallies: Sequence[tuple[str, str, float]]) -> dict[str, dict[str, Any]]:
    recalls = _by(
        ((what.removeprefix(RECALLS), n) for _, what, n in tallies if what.startswith(RECALLS)), key=0, number=1
    )
    silent = _by(
        ((what.removeprefix(SILENCES), n) for _, what, n in tallies if what.startswith(SILENCES)), key=0, number=1
    )
    return {
        trigger: {
            "recalls": int(recalls[trigger]),
            "silences": int(silent.get(trigger, 0)),
            "rate": _ratio(silent.get(trigger, 0), recalls[trigger], digits=4),
        }
        for trigger in _ordered(recalls, TRIGGERS)
    }


def _times(build_ms: Sequence[float]) -> dict[str, float]:
    """Return count, median, 95th percentile and maximum of sorted times."""
    last = len(build_ms) - 1
    median, p95 = build_ms[last // 2], build_ms[-(-95 * len(build_ms) // 100) - 1]
    return {"count": last + 1, "median": round(median, 3), "p95": round(p95, 3), "max": round(build_ms[last], 3)}


def _injected_by_day(counted: Statistics, over: Span) -> list[dict[str, Any]]:
    days: dict[str, list[tuple[str, str, int, int]]] = {day: [] for day in over.days}
    for row in counted.injections:
        if row[0] in days:
            days[row[0]].append(row)
    return [
        {
            "day": day,
            "injections": sum(row[2] for row in rows),
            "tokens": sum(row[3] for row in rows),
            "tokens_by_trigger": _by(rows, key=1, number=3, order=TRIGGERS),
        }
        for day, rows in days.items()
    ]


def _items_by_day(counted: Statistics, over: Span) -> list[dict[str, Any]]:
    days = dict(_grouped(counted.items, "day"))
    return [{"day": day, **_hits(days.get(day, ()))} for day in over.days]


def _growth(counted: Statistics, over: Span) -> list[dict[str, Any]]:
    """Return for each day its bytes and events, null where not noted, and how many of today's memories it had."""
    sizes, came = dict(counted.sizes), dict(counted.arrived)
    new: Counter[str] = Counter()
    for day, _, number in counted.new:
        new[day] += number
    rows, there = [], sum(number for _, number in counted.memories)
    for day in reversed(over.days):
        size = int(sizes[day]) if day in sizes else None
        rows.append({"day": day, "bytes": size, "memories": there, "events": came.get(day)})
        there -= new[day]
    return rows[::-1]


def _new_by_day(rows: Sequence[tuple[str, str, int]], over: Span) -> list[dict[str, Any]]:
    days: dict[str, dict[str, int]] = {day: {} for day in over.days}
    for day, kind, number in rows:
        if day in days:
            days[day][kind] = number
    return [{"day": day, "kinds": kinds} for day, kinds in days.items()]


def _ratio(part: float, whole: float, *, digits: int) -> float | None:
    return round(part / whole, digits) if whole else None


class StatsRecorder:
    """Counts triggers, keeps the reasons of those without context, and notes the store's size each day."""

    def __init__(self, services: Services, projects: ProjectRegistry) -> None:
        self._services, self._projects = services, projects
        self._counting = threading.Lock()
        self._counted: Counter[tuple[str, str, str]] = Counter()
        self._no_context: list[NoContextRecord] = []
        self._day = ""  # the last that was noted

    def recalled(self, project: str, trigger: str, *, silent: bool) -> None:
        """Count a trigger; the count is stored within a second."""
        day = self._today()
        with self._counting:
            self._counted[day, project, f"{RECALLS}{trigger}"] += 1
            if silent:
                self._counted[day, project, f"{SILENCES}{trigger}"] += 1

    def record_no_context(self, project: Project, record: NoContextRecord) -> None:
        """Keep why nothing was injected, where events are captured; stored with the counts, in one commit."""
        if not self._projects.policy(project).capture:
            with self._counting:
                self._no_context.append(record)

    def flush(self) -> None:
        """Store what was counted, and note a day that began; called every second."""
        day, store = self._today(), self._services.store
        if day != self._day:
            store.stats.start_day(day)
            self._day = day
        with self._counting:
            counted, self._counted = self._counted, Counter()
            no_context, self._no_context = self._no_context, []
        if counted:
            store.stats.add(counted)
        if no_context:
            store.injections.record_no_context(no_context)

    def close(self) -> None:
        self._try_flush()

    def stats(self, *, project: str, name: str, days: int) -> dict[str, Any]:
        """Return the figures of a project, or of all where it is empty, over the last *days* local days."""
        if not 1 <= days <= MOST_DAYS:
            raise BadRequest(f"`days` must be from 1 to {MOST_DAYS}", hint="leave it out for 30")
        self._try_flush()
        over = span(self._services.now(), days=days)
        counted = self._services.store.stats.statistics(
            project=project, since=over.since, until=over.until, first=over.days[0], last=over.days[-1]
        )
        result = figures(counted, over)
        result["store"]["bytes"] = self._services.store.stats.size().total
        return {"project": project, "name": name, **result}

    def _try_flush(self) -> None:
        with suppress(ForewordError):  # a store that is locked can still be read
            self.flush()

    def _today(self) -> str:
        return time.strftime("%Y-%m-%d", time.localtime(self._services.now()))
