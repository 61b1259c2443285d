"""Limits -> what of the store would go, and the same taken away some rows at a time. The SQL of retention.

A plan is made once and then carried out: what is chosen by a plan is looked up aside, and looked at again in the
transaction that removes it, for a session may have gone on meanwhile, or the user may have pinned something.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.store.audit import Audit
from foreword.store.memories import stored_texts as texts_of
from foreword.store.retention import ASIDE, BY_SIZE, KEPT_KINDS, REST_DAYS, Limits, Prunable, excess, trusted_since
from foreword.store.stats import DayReader

Execute = Callable[..., Any]

ROWS = 100  # of one transaction: some milliseconds in which no hook can write
SECONDS = 86_400
ROW = 200  # bytes that a row takes besides its texts: numbers, keys, and its lines in indexes
MEMORY_TEXTS = ("title", "body", "split", "tags", "files", "functions", "detail")
WORDS = "title, body, tags, files, split"


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
    given: tuple[Mapping[str, Any] | None, ...]  # for each part what its `old` asks for; None where nothing is old
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


_ASIDE = ", ".join(f"'{status}'" for status in ASIDE)
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
        "silences",
        "silences q",
        "q.id",
        f"{ROW}",
        "q.at",
        "true",
    ),
    _memories("aside", f"m.status IN ({_ASIDE})"),
    _memories("observations", f"m.kind = 'observation' AND m.status NOT IN ({_ASIDE})"),
    _memories("changes", f"m.kind = 'change' AND m.status NOT IN ({_ASIDE})"),
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


class PruningReader(DayReader):
    """Looks for what may go, on a read-only connection: nobody waits for it."""

    def plan(self, limits: Limits, *, now: float) -> Plan:
        rest, since = now - REST_DAYS * SECONDS, trusted_since(self.days(), now=now)
        given = tuple(
            {"before": now - keep * SECONDS, "since": since} if keep and since is not None else None
            for keep in (limits.days.get(part.name, 0) for part in PARTS)
        )
        parts = tuple(zip(PARTS, given, strict=True))
        found = [self._aged(part, asked, rest=rest) if asked else Prunable(part.name) for part, asked in parts]
        used = self.size().used
        left = excess(used, going=sum(each.size for each in found), limits=limits)
        upto: list[tuple[Any, ...]] = []
        for place, (part, asked) in enumerate(parts):
            last: tuple[Any, ...] = ()
            if left > 0 and part.name in BY_SIZE:
                more, last = self._oldest(part, asked, rest=rest, needed=left)
                found[place] = _together(found[place], more)
                left -= more.size
            upto.append(last)
        expected = used - sum(each.size for each in found)
        short = max(0, expected - limits.most_bytes) if limits.most_bytes else 0
        return Plan(_by_class(found), short, given, tuple(upto))

    def _aged(self, part: Part, asked: Mapping[str, Any], *, rest: float) -> Prunable:
        ((rows, size, oldest, newest),) = list(
            self._all(
                f"SELECT count(*), ifnull(sum({part.size}), 0), ifnull(min({part.at}), 0), ifnull(max({part.at}), 0) "
                f"FROM {part.table} WHERE {part.may} AND {part.old}",
                {**asked, "rest": rest},
            )
        )
        return Prunable(part.name, rows, size, oldest, newest, rows)

    def _oldest(
        self, part: Part, asked: Mapping[str, Any] | None, *, rest: float, needed: int
    ) -> tuple[Prunable, tuple[Any, ...]]:
        """The oldest that do not go by age, until there are enough bytes of them; and the last one's place."""
        not_old = f"AND ({part.old}) IS NOT TRUE" if asked else ""
        rows = size = 0
        oldest, newest, last = 0.0, 0.0, ()
        for row in self._all(
            f"SELECT {part.size}, {part.at}, {part.place} FROM {part.table} WHERE {part.may} {not_old} "
            f"ORDER BY {part.place}",
            {**(asked or {}), "rest": rest},
        ):
            rows, size = rows + 1, size + row[0]
            oldest, newest = min(oldest or row[1], row[1]), max(newest, row[1])
            last = tuple(row[2:])
            if size >= needed:
                break
        return Prunable(part.name, rows, size, oldest, newest), last

    def chosen(self, plan: Plan, place: int, *, after: Sequence[Any], now: float) -> tuple[list[Any], tuple[Any, ...]]:
        """The keys of the next rows of a part that the plan lets go, and the place of the last; none at its end."""
        part, asked, upto = PARTS[place], plan.given[place], plan.upto[place]
        given: dict[str, Any] = {**(asked or {}), "rest": now - REST_DAYS * SECONDS}
        either = [f"({part.old})"] if asked else []
        if upto:
            either.append(f"({part.place}) <= ({_bind('upto', upto, given)})")
        if not either:
            return [], ()
        beyond = f"AND ({part.place}) > ({_bind('after', after, given)})" if after else ""
        rows = list(
            self._all(
                f"SELECT {part.key}, {part.place} FROM {part.table} WHERE {part.may} AND ({' OR '.join(either)}) "
                f"{beyond} ORDER BY {part.place} LIMIT {ROWS}",
                given,
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
    told: Mapping[str, int],
    noted: int,
    after: tuple[Any, ...],
) -> Batch:
    """Remove rows of a part, and note in the log how many went so far: counts alone, and nothing to undo it with."""
    rows, size = remove(execute, place, keys, rest=now - REST_DAYS * SECONDS)
    name = PARTS[place].name
    patch = {"pruned": {**told, name: told.get(name, 0) + rows}}
    if rows and not noted:
        why = "old, or more than the store may hold; this cannot be undone"
        noted = log.note("prune", why, patch, who=who, at=now, project="", ids=()).number
    elif rows:
        execute("UPDATE log SET patch = ? WHERE number = ?", (json.dumps(patch), noted))
    return Batch(rows, size, after, noted)


def remove(execute: Execute, place: int, keys: Sequence[Any], *, rest: float) -> tuple[int, int]:
    """Take away these rows of a part, as far as they may still go; how many they were, and their bytes."""
    part = PARTS[place]
    marks = ", ".join(f":k{number}" for number in range(len(keys)))
    given = {f"k{number}": key for number, key in enumerate(keys)} | ({"rest": rest} if ":rest" in part.may else {})
    rows = list(
        execute(f"SELECT {part.key}, {part.size} FROM {part.table} WHERE {part.key} IN ({marks}) AND {part.may}", given)
    )
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
    """A memory, its words, its names in the index of code, its links, who fetched it, who saw it; and its vector."""
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


def _bind(name: str, values: Sequence[Any], given: dict[str, Any]) -> str:
    for number, each in enumerate(values):
        given[f"{name}{number}"] = each
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
