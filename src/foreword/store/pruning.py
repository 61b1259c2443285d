"""Remove what is old, and what is more than the store may hold, some rows at a time.

A plan is made once and then carried out: what it chooses is looked at again in the transaction that removes it, for a
session may have gone on meanwhile, or the user may have pinned something.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from foreword.store.audit import Audit
from foreword.store.memories import stored_texts as texts_of
from foreword.store.stats import Day, DayReader

Execute = Callable[..., Any]

# The clock is trusted after so many days in a row on which a worker ran, each soon after the one before.
STEADY_DAYS = 7
LONGEST_GAP = 14  # days; more than a usual holiday is taken for a clock that jumped
# What never goes by itself, whatever its status: rules, and what was decided, learned and aimed at.
KEPT_KINDS = ("preference", "correction", "decision", "pattern", "goal", "learning")
INACTIVE = ("superseded", "stale", "discarded")
# By size, in this order and the oldest first; what is not named goes by age alone.
BY_SIZE = ("events", "texts", "aside", "observations", "changes")
CLASSES = (*BY_SIZE, "access", "no_context", "undo")
WHAT = {
    "events": "raw events of sessions that were distilled",
    "texts": "exact texts of what was injected",
    "aside": "memories that are superseded, stale or discarded",
    "observations": "observations",
    "changes": "changed functions",
    "access": "notes of who fetched what",
    "no_context": "reasons why no context was given",
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
    "no_context": "traces_keep_days",
    "undo": "traces_keep_days",
}

ROWS = 100  # of one transaction: some milliseconds in which no hook can write
SECONDS = 86_400
ROW = 200  # bytes that a row takes besides its texts: numbers, keys, and its lines in indexes
MEMORY_TEXTS = ("title", "body", "split", "tags", "files", "functions", "detail")
WORDS = "title, body, tags, files, split"


@dataclass(frozen=True)
class Limits:
    """How many days each class is kept, 0 for ever; and how many bytes all of it may have, 0 for any."""

    days: Mapping[str, int]  # of CLASSES
    most_bytes: int = 0


@dataclass(frozen=True)
class Prunable:
    """What of a class goes: how many rows, about how many bytes, and from when to when they are."""

    name: str  # one of CLASSES
    rows: int = 0
    size: int = 0
    oldest: float = 0.0
    newest: float = 0.0
    by_age: int = 0  # of the rows; the others go because the store is too large


@dataclass(frozen=True)
class Part:
    """Rows of one table that are of a class: how they are told apart, and what keeps them."""

    name: str  # the class
    table: str  # with its alias, and what it is joined with
    key: str  # one column, by which a row is found again
    size: str
    at: str
    may: str  # what may go at all
    by_age: str = "true"  # what else must be true of a row that goes by its age
    order: str = ""  # what comes first; else the time and the key

    @property
    def old(self) -> str:
        return f"{self.at} < :before AND {self.at} >= :since AND {self.by_age}"

    @property
    def place(self) -> str:
        return self.order or f"{self.at}, {self.key}"


@dataclass(frozen=True)
class Plan:
    """What goes: by class, for people; and for each part the rows that are old, and up to which others go by size."""

    classes: tuple[Prunable, ...]
    short: int  # bytes by which the cap will still be passed
    parameters: tuple[Mapping[str, Any] | None, ...]  # for each part what its `old` asks for; None where nothing is old
    upto: tuple[tuple[Any, ...], ...]  # for each part its last place that goes by size; empty for none

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.classes)


@dataclass(frozen=True)
class Batch:
    """What one transaction removed of a part: rows, their bytes, and where to go on; an empty place ends the part."""

    rows: int
    size: int
    after: tuple[Any, ...]
    noted: int = 0  # the entry of the log


def _memories(name: str, which: str) -> Part:
    logged = "(SELECT max(l.at) FROM log_memories x JOIN log l ON l.number = x.number WHERE x.memory = m.id)"
    kinds = ", ".join(f"'{kind}'" for kind in KEPT_KINDS)
    return Part(
        name,
        "memories m",
        "m.place",
        f"{2 * ROW} + " + " + ".join(f"octet_length(m.{each})" for each in MEMORY_TEXTS),
        f"max(m.created, m.confirmed, ifnull({logged}, 0))",
        f"{which} AND m.pinned = 0 AND m.kind NOT IN ({kinds})",
        "m.trust <> 'imported'",  # the dates of a repository's history are old from the first day
    )


_INACTIVE = ", ".join(f"'{status}'" for status in INACTIVE)
PARTS = (
    Part(
        "events",
        "events e LEFT JOIN sessions s ON s.id = e.session",
        "e.number",
        f"{ROW} + octet_length(e.payload) + octet_length(e.cwd)",
        "e.at",
        # The highest number stays, so that it is not given again: a session would take its next event for a known one.
        """e.number < (SELECT max(number) FROM events)
          AND (e.session = '' OR (s.newest <= s.distilled AND s.last < :rest))""",
        "(e.session = '' OR s.last < :before)",
        order="e.number",
    ),
    Part(
        "texts",
        "injections j JOIN injection_texts t ON t.injection = j.id LEFT JOIN sessions s ON s.id = j.session",
        "j.id",
        f"{ROW} + octet_length(t.text)",
        "j.at",
        "ifnull(s.last, j.at) < :rest",
        "ifnull(s.last, j.at) < :before",
    ),
    # Before the memories, with which these rows go too.
    Part(
        "access",
        "access a",
        "a.rowid",
        f"{ROW}",
        "a.at",
        "true",
    ),
    Part(
        "no_context",
        "no_context q",
        "q.id",
        f"{ROW}",
        "q.at",
        "true",
    ),
    _memories("aside", f"m.status IN ({_INACTIVE})"),
    _memories("observations", f"m.kind = 'observation' AND m.status NOT IN ({_INACTIVE})"),
    _memories("changes", f"m.kind = 'change' AND m.status NOT IN ({_INACTIVE})"),
    Part(
        "changes",
        "changes c",
        "c.number",
        f"{ROW} + octet_length(c.file) + octet_length(c.function) + octet_length(c.signature)",
        "c.at",
        "true",
        "c.session <> ''",  # without one it is of an imported commit
    ),
    Part(
        "undo",
        "log l",
        "l.number",
        "octet_length(l.patch)",
        "l.at",
        "json_type(l.patch, '$.changed') IS NOT NULL",
        order="l.number",
    ),
)


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


def excess(used: int, *, removed: int, limits: Limits) -> int:
    """Return the bytes that must go besides those that go by age, so that the store is well below its cap."""
    if not limits.most_bytes or used - removed <= limits.most_bytes:
        return 0
    return used - removed - int(limits.most_bytes * ENOUGH)


class PruningReader(DayReader):
    """Looks for what may go, on a read-only connection: nobody waits for it."""

    def plan(self, limits: Limits, *, now: float) -> Plan:
        rest, since = now - REST_DAYS * SECONDS, trusted_since(self.days(), now=now)
        parameters = tuple(
            {"before": now - keep * SECONDS, "since": since} if keep and since is not None else None
            for keep in (limits.days.get(part.name, 0) for part in PARTS)
        )
        parts = tuple(zip(PARTS, parameters, strict=True))
        found = [self._aged(part, span, rest=rest) if span else Prunable(part.name) for part, span in parts]
        used = self.size().used
        left = excess(used, removed=sum(each.size for each in found), limits=limits)
        upto: list[tuple[Any, ...]] = []
        for place, (part, span) in enumerate(parts):
            last: tuple[Any, ...] = ()
            if left > 0 and part.name in BY_SIZE:
                more, last = self._oldest(part, span, rest=rest, needed=left)
                found[place] = _together(found[place], more)
                left -= more.size
            upto.append(last)
        expected = used - sum(each.size for each in found)
        short = max(0, expected - limits.most_bytes) if limits.most_bytes else 0
        return Plan(_by_class(found), short, parameters, tuple(upto))

    def _aged(self, part: Part, span: Mapping[str, Any], *, rest: float) -> Prunable:
        ((rows, size, oldest, newest),) = list(
            self._all(
                f"SELECT count(*), ifnull(sum({part.size}), 0), ifnull(min({part.at}), 0), ifnull(max({part.at}), 0) "
                f"FROM {part.table} WHERE {part.may} AND {part.old}",
                {**span, "rest": rest},
            )
        )
        return Prunable(part.name, rows, size, oldest, newest, rows)

    def _oldest(
        self, part: Part, span: Mapping[str, Any] | None, *, rest: float, needed: int
    ) -> tuple[Prunable, tuple[Any, ...]]:
        """Return the oldest that do not go by age, until there are enough bytes, and the last one's place."""
        not_old = f"AND ({part.old}) IS NOT TRUE" if span else ""
        rows = size = 0
        oldest, newest, last = 0.0, 0.0, ()
        for row in self._all(
            f"SELECT {part.size}, {part.at}, {part.place} FROM {part.table} WHERE {part.may} {not_old} "
            f"ORDER BY {part.place}",
            {**(span or {}), "rest": rest},
        ):
            rows, size = rows + 1, size + row[0]
            oldest, newest = min(oldest or row[1], row[1]), max(newest, row[1])
            last = tuple(row[2:])
            if size >= needed:
                break
        return Prunable(part.name, rows, size, oldest, newest), last

    def chosen(self, plan: Plan, place: int, *, after: Sequence[Any], now: float) -> tuple[list[Any], tuple[Any, ...]]:
        """Return the keys of the next rows of a part that the plan removes, and the place of the last."""
        part, span, upto = PARTS[place], plan.parameters[place], plan.upto[place]
        parameters: dict[str, Any] = {**(span or {}), "rest": now - REST_DAYS * SECONDS}
        either = [f"({part.old})"] if span else []
        if upto:
            either.append(f"({part.place}) <= ({_bind('upto', upto, parameters)})")
        if not either:
            return [], ()
        beyond = f"AND ({part.place}) > ({_bind('after', after, parameters)})" if after else ""
        rows = list(
            self._all(
                f"SELECT {part.key}, {part.place} FROM {part.table} WHERE {part.may} AND ({' OR '.join(either)}) "
                f"{beyond} ORDER BY {part.place} LIMIT {ROWS}",
                parameters,
            )
        )
        return [row[0] for row in rows], tuple(rows[-1][1:]) if rows else ()


def carry_out(
    execute: Execute,
    log: Audit,
    place: int,
    keys: Sequence[Any],
    *,
    who: str,
    now: float,
    removed_so_far: Mapping[str, int],
    noted: int,
    after: tuple[Any, ...],
) -> Batch:
    """Remove rows of a part, and note in the log how many went so far: counts alone, and nothing to undo it with."""
    rows, size = remove(execute, place, keys, rest=now - REST_DAYS * SECONDS)
    name = PARTS[place].name
    patch = {"pruned": {**removed_so_far, name: removed_so_far.get(name, 0) + rows}}
    if rows and not noted:
        why = "old, or more than the store may hold; this cannot be undone"
        noted = log.note("prune", why, patch, who=who, at=now, project="", ids=()).number
    elif rows:
        execute("UPDATE log SET patch = ? WHERE number = ?", (json.dumps(patch), noted))
    return Batch(rows, size, after, noted)


def remove(execute: Execute, place: int, keys: Sequence[Any], *, rest: float) -> tuple[int, int]:
    """Remove these rows of a part, as far as they may still go; return how many, and their bytes."""
    part = PARTS[place]
    marks = ", ".join(f":k{number}" for number in range(len(keys)))
    parameters = {f"k{number}": key for number, key in enumerate(keys)}
    if ":rest" in part.may:
        parameters["rest"] = rest
    sql = f"SELECT {part.key}, {part.size} FROM {part.table} WHERE {part.key} IN ({marks}) AND {part.may}"
    rows = list(execute(sql, parameters))
    for key, _ in rows:
        _remove(execute, part, key)
    if part.table == "memories m" and rows:
        execute("INSERT INTO words (words) VALUES ('flush')")  # a damage is found here, where it can be undone
    return len(rows), sum(size for _, size in rows)


def _remove(execute: Execute, part: Part, key: Any) -> None:
    if part.table == "memories m":
        _remove_memory(execute, key)
    elif part.name == "texts":
        execute("DELETE FROM injection_texts WHERE injection = ?", (key,))
    elif part.name == "undo":
        execute("UPDATE log SET patch = '{}' WHERE number = ?", (key,))
    else:
        table, column = part.table.split()[0], part.key.split(".")[1]
        execute(f"DELETE FROM {table} WHERE {column} = ?", (key,))


def _remove_memory(execute: Execute, place: int) -> None:
    """Remove a memory with its words, code, links, access, sightings and vector."""
    ((id, functions, *words),) = list(execute(f"SELECT id, functions, {WORDS} FROM memories WHERE place = ?", (place,)))
    execute(f"INSERT INTO words (words, rowid, {WORDS}) VALUES ('delete', ?, ?, ?, ?, ?, ?)", (place, *words))
    execute("DELETE FROM memories WHERE place = ?", (place,))
    for name in (*texts_of(words[3]), *texts_of(functions)):
        execute("DELETE FROM code WHERE unit = (SELECT number FROM units WHERE name = ?) AND place = ?", (name, place))
        execute("DELETE FROM units WHERE name = ? AND NOT EXISTS (SELECT 1 FROM code WHERE unit = number)", (name,))
    execute("DELETE FROM links WHERE source = ?", (id,))
    execute("DELETE FROM links WHERE target = ?", (id,))
    execute("DELETE FROM access WHERE memory = ?", (id,))
    execute("DELETE FROM sightings WHERE memory = ?", (id,))


def give_back(execute: Execute) -> None:
    """Make the file as small as what it holds; nobody can write meanwhile."""
    execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    execute("VACUUM")
    execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _bind(name: str, values: Sequence[Any], parameters: dict[str, Any]) -> str:
    for number, each in enumerate(values):
        parameters[f"{name}{number}"] = each
    return ", ".join(f":{name}{number}" for number in range(len(values)))


def _together(one: Prunable, other: Prunable) -> Prunable:
    if not one.rows or not other.rows:
        return one if one.rows else other
    return Prunable(
        one.name,
        one.rows + other.rows,
        one.size + other.size,
        min(one.oldest, other.oldest),
        max(one.newest, other.newest),
        one.by_age + other.by_age,
    )


def _by_class(parts: Sequence[Prunable]) -> tuple[Prunable, ...]:
    classes: dict[str, Prunable] = {}
    for each in parts:
        classes[each.name] = _together(classes[each.name], each) if each.name in classes else each
    return tuple(classes.values())
