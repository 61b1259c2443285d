"""Keep the file small and clean: derive indexes anew, remove what is old or too much, and take out secrets.

Pruning and scrubbing work some rows at a time. What they chose is looked at again in the transaction that changes it,
for a session may have gone on meanwhile, or the user may have pinned something.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import apsw

from foreword.errors import StoreError
from foreword.models import EMPTY
from foreword.redact import redact, redact_all
from foreword.redact.files import without_denied
from foreword.store.audit import Audit
from foreword.store.database import Database
from foreword.store.memories import Memories, as_json, split_of, stored_texts
from foreword.store.migrations import execute_all, schema_sql
from foreword.store.search import Search
from foreword.store.sql import transaction
from foreword.store.stats import Day, DayReader
from foreword.terms import terms

Execute = Callable[..., Any]

# What is well again when the indexes were made anew: what was left for later may have met a missing table.
MENDED = ("tables", "index", "code", "sightings", "later")

# ---- what may be removed, by age and by size

# The clock is trusted after so many days in a row on which a worker ran, each soon after the one before.
STEADY_DAYS = 7
LONGEST_GAP = 14  # days; more than a usual holiday is taken for a clock that jumped
# What never goes by itself, whatever its status: rules, and what was decided, learned and aimed at.
KEPT_KINDS = ("preference", "correction", "decision", "pattern", "goal", "learning")
INACTIVE = ("superseded", "stale", "discarded")
# By size, in this order and the oldest first; what is not named goes by age alone.
BY_SIZE = ("events", "texts", "aside", "observations", "changes")
CLASSES = {  # with the setting that says for how many days, and what people call it
    "events": ("events_keep_days", "raw events of sessions that were distilled"),
    "texts": ("traces_keep_days", "exact texts of what was injected"),
    "aside": ("inactive_keep_days", "memories that are superseded, stale or discarded"),
    "observations": ("observations_keep_days", "observations"),
    "changes": ("observations_keep_days", "changed functions"),
    "access": ("traces_keep_days", "notes of who fetched what"),
    "no_context": ("traces_keep_days", "reasons why no context was given"),
    "undo": ("traces_keep_days", "what it takes to undo entries of the log"),
}
ENOUGH = 0.9  # of the cap, to which a store is brought down that has passed it: not a little every day
# Seconds in which a session may go on, and needs its events and texts, whatever the size of the store.
REST = 7 * 86_400
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


class PrunableRow(NamedTuple):
    """A row that goes: its key, about how many bytes it takes, and from when it is."""

    key: Any
    size: int
    at: float


@dataclass(frozen=True)
class PrunePlan:
    """What goes: by class, for people; and the rows of each part."""

    classes: tuple[Prunable, ...]
    short: int  # bytes by which the cap will still be passed
    parts: tuple[tuple[PrunableRow, ...], ...]


@dataclass(frozen=True)
class Batch:
    """What one transaction removed of a part: how many rows, and where to go on; 0 ends the part."""

    rows: int
    noted: int  # the entry of the log
    after: int


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
    Part("access", "access a", "a.rowid", f"{ROW}", "a.at", "true"),
    Part("no_context", "no_context q", "q.id", f"{ROW}", "q.at", "true"),
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


def _classes(parts: Sequence[Sequence[PrunableRow]], by_age: Sequence[int]) -> tuple[Prunable, ...]:
    """Sum up what goes, by class."""
    found: dict[str, list[PrunableRow]] = {}
    aged: Counter[str] = Counter()
    for part, rows, old in zip(PARTS, parts, by_age, strict=True):
        found.setdefault(part.name, []).extend(rows)
        aged[part.name] += old
    return tuple(
        Prunable(
            name,
            len(rows),
            sum(row.size for row in rows),
            min((row.at for row in rows), default=0.0),
            max((row.at for row in rows), default=0.0),
            aged[name],
        )
        for name, rows in found.items()
    )


# ---- secrets

BATCH = 100  # rows of one transaction: the longest event is 64 KB a text, and somebody may wait for the writer
# Indexes that are made anew, and vectors, which go with their memories.
MADE = ("words", "vectors", "code", "sqlite_")
OURS = {("events", "key"), ("memories", "split"), ("memories", "id")}
REPORTED = ("title", "body", "tags", "files", "functions", "detail")  # what the words of a memory are made of


class Cleans(Protocol):
    """What decides which of a text stays."""

    def text(self, text: str) -> str:
        """Clean a line of a log, or a record that was set aside."""

    def cell(self, table: str, name: str, text: str, *, row: Mapping[str, Any]) -> str:
        """Clean a text of a row."""

    @property
    def hide(self) -> Callable[[str], str]:
        """Return what is done to a text before it is read as JSON."""


@dataclass(frozen=True)
class Cleaner:
    """What takes secrets out: the rules of today, files that are denied, and values that a caller knows."""

    deny: tuple[str, ...] = ()
    hide: Callable[[str], str] = str

    def text(self, text: str) -> str:
        """Clean a text, which may be JSON that holds texts."""
        if text[:1] in ("{", "["):
            try:
                return self._json(text)
            except (ValueError, RecursionError):
                pass
        return redact(self.hide(text))

    def cell(self, table: str, name: str, text: str, *, row: Mapping[str, Any]) -> str:
        """Clean a text of a row; a project's key stays different from any other."""
        del table, row
        return _project(text, cleaner=self) if name in ("project", "scope") else self.text(text)

    def _json(self, text: str) -> str:
        stored = json.loads(self.hide(text))
        clean = redact_all(without_denied(stored, more=self.deny))
        return text if clean == json.loads(text) else as_json(clean)


@dataclass(frozen=True)
class Scrubbed:
    """What was found in some rows of a table: how many there were, how many changed, and secrets by their kind."""

    table: str
    seen: int = 0
    changed: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict, hash=False)
    after: Sequence[Any] = ()  # where the next ones begin: a table, and the key of a row in it; empty at the end


@dataclass(frozen=True)
class ScrubPlan:
    """What is to be changed in some rows of a table."""

    found: Scrubbed
    changes: Sequence[tuple[str, Sequence[Any]]]  # statements

    def apply(self, execute: Execute) -> None:
        """Write what was planned; a row that changed meanwhile stays, and is clean because today's rules wrote it."""
        for sql, parameters in self.changes:
            execute(sql, parameters)


def tables(execute: Execute) -> tuple[str, ...]:
    """Return every table that may hold a text of somebody's."""
    rows = execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    )
    return tuple(name for (name,) in rows if not name.startswith(MADE))


def plan_scrub(execute: Execute, *, after: Sequence[Any], cleaner: Cleans) -> ScrubPlan:
    """Return what the next rows need: from the beginning, or behind the row that *after* names."""
    table, *after = after or tables(execute)[:1] or ("",)
    if table not in tables(execute):
        return ScrubPlan(Scrubbed(table, after=_next(execute, table)), ())
    key, columns = _shape(execute, table)
    names = ", ".join(key)
    beyond = f"WHERE ({names}) > ({', '.join('?' * len(key))})" if after else ""
    rows = list(
        execute(
            f"SELECT {names}, {', '.join(columns) or 'NULL'} FROM {table} {beyond} ORDER BY {names} LIMIT {BATCH}",
            tuple(after),
        )
    )
    changes: list[tuple[str, Sequence[Any]]] = []
    kinds: Counter[str] = Counter()
    changed = 0
    for row in rows:
        place, old = row[: len(key)], dict(zip(columns, row[len(key) :], strict=bool(columns)))
        new = _cleaned(table, old, cleaner=cleaner, place=place)
        if new:
            changed += 1
            for name, text in new.items():
                kinds += kinds_of(text) - kinds_of(str(old.get(name) or ""))
            changes += _statements(execute, table, key=key, place=place, old=old, new=new)
    more = (table, *rows[-1][: len(key)]) if len(rows) == BATCH else _next(execute, table)
    return ScrubPlan(Scrubbed(table, len(rows), changed, kinds, more), changes)


def _next(execute: Execute, table: str) -> tuple[str, ...]:
    later = [name for name in tables(execute) if name > table]
    return (later[0],) if later else ()


def plan_all(execute: Execute, *, cleaner: Cleans) -> Iterator[ScrubPlan]:
    """Yield what all rows need, some at a time; each plan is to be carried out before the next."""
    after: Sequence[Any] = ()
    while True:
        planned = plan_scrub(execute, after=after, cleaner=cleaner)
        yield planned
        if not (after := planned.found.after):
            return


def sweep(db: apsw.Connection) -> None:
    """Leave no old byte in the file or beside it: indexes anew, free pages given back, the log emptied."""
    present = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "words" in present:
        db.execute("INSERT INTO words (words) VALUES ('rebuild')")
        db.execute("INSERT INTO words (words) VALUES ('optimize')")
    _vacuum(db)
    _vacuum(db)  # what the first pass left in the log is in the file by now


def _vacuum(db: apsw.Connection) -> None:
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def scrub_file(path: Path, *, cleaner: Cleans, dry_run: bool) -> Iterator[Scrubbed]:
    """Clean a backup, which nobody else has open, and yield what was found."""
    flags = apsw.SQLITE_OPEN_READONLY if dry_run else apsw.SQLITE_OPEN_READWRITE
    db = apsw.Connection(str(path), flags=flags)
    try:
        if not dry_run:
            db.pragma("journal_mode", "delete")
        for planned in plan_all(db.execute, cleaner=cleaner):
            if not dry_run:
                with db:
                    planned.apply(db.execute)
            yield planned.found
        if not dry_run:
            sweep(db)
    finally:
        db.close()


def _shape(execute: Execute, table: str) -> tuple[list[str], list[str]]:
    """Return the columns that tell a row from the others, and those that may hold a text."""
    about = list(execute(f"PRAGMA table_info({table})"))
    [(sql,)] = list(execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)))
    keyed = [name for order, name in sorted((each[5], each[1]) for each in about if each[5])]
    texts = [each[1] for each in about if each[2].upper() == "TEXT" and (table, each[1]) not in OURS]
    return (keyed if "WITHOUT ROWID" in sql.upper() else ["rowid"]), texts


def _cleaned(table: str, old: Mapping[str, Any], *, cleaner: Cleans, place: Sequence[Any]) -> dict[str, str]:
    """Return the texts of a row that change."""
    new: dict[str, str] = {}
    for name, text in old.items():
        if not isinstance(text, str) or not text:
            continue
        clean = cleaner.cell(table, name, text, row=old)
        if clean != text:
            new[name] = f"{clean}#{place[0]}" if (table, name) == ("memories", "uid") else clean
    if table == "memories" and set(new).intersection(REPORTED):
        new["split"] = split_of({**old, **new})
    return new


def _project(name: str, *, cleaner: Cleaner) -> str:
    """Return a project's key as capture writes it where it looks like a secret: two must not become one."""
    before, colon, key = name.partition("project:")
    key = key if colon and not before else name
    clean = redact(cleaner.hide(key))
    if clean == key:
        return name
    told_apart = hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"{'project:' if key is not name else ''}{clean}#{told_apart}"


def _statements(
    execute: Execute,
    table: str,
    *,
    key: Sequence[str],
    place: Sequence[Any],
    old: Mapping[str, Any],
    new: Mapping[str, str],
) -> Iterator[tuple[str, Sequence[Any]]]:
    changed = ", ".join(f"{name} = ?" for name in new)
    same = " AND ".join([*(f"{name} = ?" for name in key), *(f"{name} IS ?" for name in new if name in old)])
    # Of two rows that become one (sessions whose ids were secrets), one is kept.
    sql = f"UPDATE OR REPLACE {table} SET {changed} WHERE {same}"
    yield sql, (*new.values(), *place, *(old[name] for name in new if name in old))
    if table == "memories" and "split" in new:
        yield "DELETE FROM vectors WHERE place = ?", tuple(place)  # a text can be guessed from its vector
    if table == "events" and "payload" in new:
        yield from _without_terms(execute, session=old.get("session") or "", gone=_gone(old["payload"], new["payload"]))


def _without_terms(execute: Execute, *, session: str, gone: frozenset[str]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield updates that remove the words *gone* from a session's search terms, which no format finds."""
    present = [each[1] for each in execute("PRAGMA table_info(injections)")]
    if not gone or "terms" not in present:
        return
    for id, stored in list(execute("SELECT id, terms FROM injections WHERE session = ? AND terms <> '[]'", (session,))):
        terms = json.loads(stored)
        kept = [term for term in terms if not (isinstance(term, str) and term.lower() in gone)]
        if kept != terms:
            yield "UPDATE injections SET terms = ? WHERE id = ? AND terms = ?", (json.dumps(kept), id, stored)


def _gone(old: str, new: str) -> frozenset[str]:
    """Return the words of a text that are not in it any more."""
    return frozenset(terms(old, limit=100_000)) - frozenset(terms(new, limit=100_000))


def kinds_of(text: str) -> Counter[str]:
    """Count the marks of each kind that a text holds."""
    pieces = text.split("[redacted:")[1:]
    return Counter(piece.partition("]")[0] for piece in pieces if "]" in piece[:40])


# ---- the repository


class Maintenance(DayReader):
    """What is done to the whole file."""

    def __init__(self, db: Database, *, memories: Memories, search: Search, audit: Audit) -> None:
        super().__init__(db)
        self._db, self._memories, self._search, self._audit = db, memories, search, audit

    def reindex(self) -> int:
        """Create tables that are missing, derive all indexes anew from the memories, and return their number."""
        try:
            count = self._reindex()
        except StoreError as exc:
            self._db.trouble["index"] = f"the words index cannot be made anew: {exc}"
            raise
        for mended in MENDED:
            self._db.trouble.pop(mended, None)
        return count

    @transaction
    def _reindex(self) -> int:
        with suppress(apsw.SQLError):  # an index of an unknown format cannot even be dropped
            self._db.execute("UPDATE words_config SET v = 4 WHERE k = 'version'")
        for table in ("words", "code", "units"):
            self._db.execute(f"DROP TABLE IF EXISTS {table}")
        execute_all(self._db.connection, schema_sql())
        self._db.changed("memories")  # who holds which words may be another now
        return self._memories.rebuild()

    # -- age and size -------------------------------------------------------------------------------------------
    def plan_pruning(self, limits: Limits, *, now: float) -> PrunePlan:
        """Return what would be removed, by age and by size; nothing is."""
        self._db.flush()
        with self._db.same_connection():
            since = trusted_since(self.days(), now=now)
            parts = [self._old(part, limits.days.get(part.name, 0), since=since, now=now) for part in PARTS]
            by_age = [len(rows) for rows in parts]
            used = self.size().used
            left = excess(used, removed=sum(row.size for rows in parts for row in rows), limits=limits)
            for part, rows in zip(PARTS, parts, strict=True):
                if left > 0 and part.name in BY_SIZE:
                    more = self._oldest(part, {row.key for row in rows}, needed=left, now=now)
                    left -= sum(row.size for row in more)
                    rows.extend(more)
        expected = used - sum(row.size for rows in parts for row in rows)
        short = max(0, expected - limits.most_bytes) if limits.most_bytes else 0
        return PrunePlan(_classes(parts, by_age), short, tuple(map(tuple, parts)))

    def _old(self, part: Part, days: int, *, since: float | None, now: float) -> list[PrunableRow]:
        if not days or since is None:
            return []
        old = f"AND {part.at} < :before AND {part.at} >= :since AND {part.by_age}"
        return list(self._prunable(part, old, {"before": now - days * SECONDS, "since": since}, now=now))

    def _oldest(self, part: Part, known: Set[Any], *, needed: int, now: float) -> list[PrunableRow]:
        """Return the oldest rows that are not *known*, until there are enough bytes."""
        found: list[PrunableRow] = []
        for row in self._prunable(part, "", {}, now=now):
            if needed <= 0:
                break
            if row.key not in known:
                needed -= row.size
                found.append(row)
        return found

    def _prunable(self, part: Part, more: str, parameters: Mapping[str, Any], *, now: float) -> Iterator[PrunableRow]:
        sql = f"""SELECT {part.key}, {part.size}, {part.at} FROM {part.table} WHERE {part.may} {more}
            ORDER BY {part.order or f"{part.at}, {part.key}"}"""
        return (PrunableRow(*row) for row in self._all(sql, {**parameters, "rest": now - REST}))

    def prune(
        self,
        plan: PrunePlan,
        part: int,
        *,
        after: int = 0,
        who: str,
        now: float,
        removed: Mapping[str, int] = EMPTY,
        noted: int = 0,
    ) -> Batch:
        """Remove the next rows of a part of the plan, a transaction at most, and log how many went.

        *removed* is what went before, by class, and *noted* its entry, 0 for none yet: a run has one entry.
        """
        self._search.check_index()
        chosen = plan.parts[part][after : after + ROWS]
        count = 0
        if chosen:
            count, noted = self._prune(PARTS[part], chosen, who=who, now=now, removed=removed, noted=noted)
        return Batch(count, noted, after + ROWS if after + ROWS < len(plan.parts[part]) else 0)

    @transaction
    def _prune(
        self,
        part: Part,
        chosen: Sequence[PrunableRow],
        *,
        who: str,
        now: float,
        removed: Mapping[str, int],
        noted: int,
    ) -> tuple[int, int]:
        """Remove the rows that may still go and are as old as planned; return how many, and the entry of the log."""
        at = {row.key: row.at for row in chosen}
        names = {f"k{number}": key for number, key in enumerate(at)}
        these = f"{part.key} IN (:{', :'.join(names)})"
        sql = f"SELECT {part.key}, {part.at} FROM {part.table} WHERE {these} AND {part.may}"
        keys = [key for key, at_now in self._all(sql, {**names, "rest": now - REST}) if at_now == at[key]]
        for key in keys:
            self._remove(part, key)
        if not keys:
            return 0, noted
        if part.table == "memories m":
            self._db.execute("INSERT INTO words (words) VALUES ('flush')")  # a damage is found while it can be undone
        patch = {"pruned": {**removed, part.name: removed.get(part.name, 0) + len(keys)}}  # nothing to undo it with
        if noted:
            self._db.execute("UPDATE log SET patch = ? WHERE number = ?", (json.dumps(patch), noted))
        else:
            why = "old, or more than the store may hold; this cannot be undone"
            noted = self._audit.note("prune", why, patch, who=who, at=now, project="", ids=()).number
        return len(keys), noted

    def _remove(self, part: Part, key: Any) -> None:
        if part.table == "memories m":
            self._remove_memory(key)
        elif part.name == "texts":
            self._db.execute("DELETE FROM injection_texts WHERE injection = ?", (key,))
        elif part.name == "undo":
            self._db.execute("UPDATE log SET patch = '{}' WHERE number = ?", (key,))
        else:
            table, column = part.table.split()[0], part.key.split(".")[1]
            self._db.execute(f"DELETE FROM {table} WHERE {column} = ?", (key,))

    def _remove_memory(self, place: int) -> None:
        """Remove a memory with its words, code, links, access, sightings and vector."""
        execute = self._db.execute
        ((id, functions, *words),) = execute(f"SELECT id, functions, {WORDS} FROM memories WHERE place = ?", (place,))
        execute(f"INSERT INTO words (words, rowid, {WORDS}) VALUES ('delete', ?, ?, ?, ?, ?, ?)", (place, *words))
        execute("DELETE FROM memories WHERE place = ?", (place,))
        for name in (*stored_texts(words[3]), *stored_texts(functions)):
            unit = "(SELECT number FROM units WHERE name = ?)"
            execute(f"DELETE FROM code WHERE unit = {unit} AND place = ?", (name, place))
            execute("DELETE FROM units WHERE name = ? AND NOT EXISTS (SELECT 1 FROM code WHERE unit = number)", (name,))
        for table, column in (("links", "source"), ("links", "target"), ("access", "memory"), ("sightings", "memory")):
            execute(f"DELETE FROM {table} WHERE {column} = ?", (id,))

    def vacuum(self) -> None:
        """Make the file as small as what it holds; nobody can write meanwhile."""
        with self._db.exclusive() as connection:
            _vacuum(connection)

    # -- secrets ------------------------------------------------------------------------------------------------
    def scrub(self, cleaner: Cleans, *, after: Sequence[object] = (), dry_run: bool = False) -> Scrubbed:
        """Clean the next rows, a transaction at most, and say what was found and where the next ones begin."""
        self._db.flush() if dry_run else self._db.let_go()
        with self._db.same_connection():
            planned = plan_scrub(self._db.query, after=after, cleaner=cleaner)
        if planned.changes and not dry_run:
            self._db.write(planned.apply, self._db.query)
        return planned.found

    def sweep(self) -> None:
        """Leave no byte of what was cleaned: indexes anew, free pages given back, the write-ahead log emptied."""
        self.reindex()
        with self._db.exclusive() as connection:
            sweep(connection)
