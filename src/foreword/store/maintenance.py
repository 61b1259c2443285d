"""Keep the file small and clean: rebuild indexes, delete what is old or too much, and rewrite texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from foreword.errors import StoreError
from foreword.store.memories import NAMED, NO_SESSION, WORDS, split_of
from foreword.store.migrations import execute_all, schema_sql
from foreword.store.sql import EACH, SEQUENCE_BITS, Repository, json_list, marks, transaction

Execute = Callable[..., Any]
Statement = tuple[str, Sequence[Any]]
CleanCell = Callable[[str, str, str, Mapping[str, Any]], str]  # (table, column, text, row) -> what stays of the text

# The clock is trusted after so many days in a row on which a worker ran, each soon after the one before.
STEADY_DAYS = 7
LONGEST_GAP = 14  # days; more than a usual holiday is taken for a clock that jumped
ENOUGH = 0.9  # of the cap, to which a store is brought down that has passed it: not a little every day
REST = 7 * 86_400  # seconds in which a session may go on, and needs its events and texts, whatever the store's size
ROWS = 100  # of one transaction: some milliseconds in which no hook can write

_INACTIVE = "m.status IN ('superseded', 'stale', 'discarded')"
# When somebody last wrote it, saw it again or changed it on purpose.
_TOUCHED = """max(m.created, m.confirmed,
 ifnull((SELECT max(l.at) FROM log_memories x JOIN log l ON l.number = x.number WHERE x.memory = m.id), 0))"""
# What is pinned never goes by itself, nor rules, and what was decided, learned and aimed at.
_MAY_GO = """m.pinned = 0
 AND m.kind NOT IN ('preference', 'correction', 'decision', 'pattern', 'goal', 'learning')"""
# Imported rows do not go by age: a repository's history is old from the first day.
_OWN = "m.trust <> 'imported'"

_ALL_SIGHTINGS = f"""INSERT OR IGNORE INTO sightings (session, memory)
  SELECT s.key, m.id FROM memories m, json_each(CASE json_type(m.detail, '$.seen_in')
    WHEN 'object' THEN m.detail -> '$.seen_in' ELSE '{{}}' END) s
  WHERE m.session <> '' AND s.key NOT IN {(*NO_SESSION,)!r} AND s.key <> m.session"""

# Tables that are derived from others: indexes are rebuilt, and vectors go with their memories.
DERIVED = ("words", "vectors", "code", "sqlite_")
OURS = {("events", "key"), ("memories", "split"), ("memories", "id")}  # what we made ourselves: no text of anybody's
INDEXED = ("title", "body", "tags", "files", "functions", "detail")  # what the words of a memory are made of
_REDACTED = re.compile(r"\[redacted:([^\]]{1,40})\]")


class Prunable(NamedTuple):
    """Rows of a table that may be deleted, and how old they are."""

    name: str  # of the class
    setting: str  # for how many days they are kept
    what: str  # for people
    rows: str  # the table, joined with what decides
    key: str
    at: str
    may: str = "true"  # what may go at all; :rest is the time before which a session is over
    by_age: str = "true"  # what else must hold of a row that goes by its age, which is before :before
    by_size: bool = True  # whether it also goes where the store is too large, in the order of these lines


PRUNABLE = (
    Prunable(
        *("events", "events_keep_days", "raw events of sessions that were extracted"),
        *("events e LEFT JOIN sessions s ON s.id = e.session", "e.number", "e.at"),
        # The highest number stays, so that it is not given again: a session would take its next event for a known one.
        """e.number < (SELECT max(number) FROM events)
        AND (e.session = '' OR (s.newest <= s.extracted AND s.last < :rest))""",
        "(e.session = '' OR s.last < :before)",
    ),
    Prunable(
        *("texts", "traces_keep_days", "exact texts of what was injected"),
        "injection_texts t JOIN injections j ON j.id = t.injection LEFT JOIN sessions s ON s.id = j.session",
        *("t.injection", "j.at", "ifnull(s.last, j.at) < :rest", "ifnull(s.last, j.at) < :before"),
    ),
    Prunable(
        *("inactive", "inactive_keep_days", "memories that are superseded, stale or discarded"),
        *("memories m", "m.place", _TOUCHED, f"{_INACTIVE} AND {_MAY_GO}", _OWN),
    ),
    Prunable(
        *("observations", "observations_keep_days", "observations, and memories of changed functions"),
        *("memories m", "m.place", _TOUCHED),
        *(f"m.kind IN ('observation', 'change') AND NOT {_INACTIVE} AND {_MAY_GO}", _OWN),
    ),
    Prunable(
        *("functions", "observations_keep_days", "changed functions", "changes c", "c.number", "c.at"),
        by_age="c.session <> ''",  # without one it is of an imported commit
    ),
    Prunable(
        *("access", "traces_keep_days", "notes of who fetched what", "access a", "a.rowid", "a.at"),
        by_size=False,
    ),
    Prunable(
        *("no_context", "traces_keep_days", "reasons why no context was given", "injections q", "q.id", "q.at"),
        may="q.tokens = 0",
        by_size=False,
    ),
    Prunable(
        *("undo", "traces_keep_days", "what it takes to undo entries of the log", "log l", "l.number", "l.at"),
        may="json_type(l.patch, '$.changed') IS NOT NULL",
        by_size=False,
    ),
)


def trusted_since(days: Sequence[str], *, now: float) -> float | None:
    """Return when the first of *days* began, or None where the clock jumped lately: then nothing is deleted by age.

    *days* are in the order in which they came. What is dated before the first of them was imported, or recorded while
    the clock was wrong, so that its date does not say how old it is.
    """
    try:
        lately = [datetime.fromisoformat(day) for day in days[-STEADY_DAYS:]] + [datetime.fromtimestamp(now)]
        gaps = [(later.date() - earlier.date()).days for earlier, later in pairwise(lately)]
        if len(gaps) < STEADY_DAYS or not all(0 <= gap <= LONGEST_GAP for gap in gaps):
            return None
        return datetime.fromisoformat(days[0]).timestamp()
    except (ValueError, OverflowError, OSError):  # a clock in the year 10,000
        return None


class Maintenance(Repository):
    """Maintenance of the whole database: rebuild indexes, prune, vacuum, rewrite texts."""

    def reindex(self) -> int:
        """Derive all indexes again from the memories, and return their number."""
        try:
            count = self._reindex()
        except StoreError as exc:
            self._db.trouble["index"] = f"the words index cannot be rebuilt: {exc}"
            raise
        for mended in ("index", "later"):  # what was left for later may have met a missing table
            self._db.trouble.pop(mended, None)
        return count

    @transaction
    def _reindex(self) -> int:
        with suppress(apsw.SQLError):  # an index of an unknown format cannot even be dropped
            self._db.execute("UPDATE words_config SET v = 4 WHERE k = 'version'")
        for table in ("words", "code", "units"):
            self._db.execute(f"DROP TABLE IF EXISTS {table}")
        execute_all(self._db.connection, schema_sql())
        self._db.execute("REINDEX")
        self._adopt_orphans()
        self._db.execute("INSERT INTO words (words) VALUES ('rebuild')")
        self._db.execute(f"INSERT INTO units (name) SELECT DISTINCT name FROM ({NAMED})")
        self._db.execute(f"INSERT INTO code SELECT u.number, n.place FROM ({NAMED}) n JOIN units u ON u.name = n.name")
        self._db.execute("DELETE FROM sightings")
        self._db.execute(_ALL_SIGHTINGS)
        return int(self._db.execute("SELECT count(*) FROM memories").get)

    def _adopt_orphans(self) -> None:
        """Let memories whose owner was lost keep its number, so that no other scope is given it, and them with it."""
        one_project = "CASE WHEN count(DISTINCT project) = 1 AND project <> '' THEN 'project:' || project END"
        for scope in (f"ifnull({one_project}, 'lost:' || owner)", "'lost:' || owner"):
            self._db.execute(
                f"""INSERT OR IGNORE INTO owners (number, scope, newest)
                SELECT owner, {scope}, max(place & {(1 << SEQUENCE_BITS) - 1}) FROM memories
                WHERE owner NOT IN (SELECT number FROM owners) GROUP BY owner ORDER BY count(*) DESC"""
            )

    # -- age and size -------------------------------------------------------------------------------------------
    def prune(
        self, keep_days: Mapping[str, int], *, most_bytes: int, now: float, dry_run: bool = False
    ) -> Iterator[tuple[str, int]]:
        """Delete what is too old, and where the store has more than *most_bytes*, not 0, the oldest of what may go.

        Yields class and rows after each small transaction, so that the caller can give way to hooks or stop. A
        *dry_run* counts the rows of each class that are older than the days for which its setting keeps them.
        """
        self._db.flush()
        if not dry_run:
            self._check_index()
        for each in PRUNABLE:
            old = self._old(each, keep_days, now=now)
            if dry_run:
                yield each.name, self._all(f"SELECT count(*) FROM {each.rows} WHERE {old[0]}", old[1])[0][0]
                continue
            while rows := self._delete(each, *old):
                yield each.name, rows
        if dry_run:
            return
        if not most_bytes or self._store.stats.size().used <= most_bytes:
            return
        for each in PRUNABLE:
            while each.by_size and self._store.stats.size().used > most_bytes * ENOUGH:
                rows = self._delete(each, f"{each.may} ORDER BY {each.at}", {"rest": now - REST})
                if not rows:
                    break
                yield each.name, rows

    def _old(self, each: Prunable, keep_days: Mapping[str, int], *, now: float) -> tuple[str, dict[str, float]]:
        """Return the condition for rows that are too old, and its parameters."""
        since, days = trusted_since(self._store.stats.days(), now=now), keep_days.get(each.setting, 0)
        if not days or since is None:
            return "false", {}
        where = f"{each.may} AND {each.by_age} AND {each.at} < :before AND {each.at} >= :since"
        return where, {"before": now - days * 86_400, "since": since, "rest": now - REST}

    @transaction
    def _delete(self, each: Prunable, where: str, values: Mapping[str, float]) -> int:
        """Delete the first rows that a condition holds of, as many as one transaction should; return how many."""
        keys = [key for (key,) in self._all(f"SELECT {each.key} FROM {each.rows} WHERE {where} LIMIT {ROWS}", values)]
        table, column = each.rows.split()[0], each.key.partition(".")[2]
        if table == "memories":
            self._delete_memories(keys)
        else:
            what = "UPDATE log SET patch = '{}'" if table == "log" else f"DELETE FROM {table}"
            self._db.execute(f"{what} WHERE {column} IN ({marks(keys)})", keys)
        return len(keys)

    def _delete_memories(self, places: Sequence[int]) -> None:
        """Delete memories with their words, code, links, access and sightings; a trigger deletes the vectors."""
        execute, these = self._db.execute, f"IN ({marks(places)})"
        sql = f"INSERT INTO words (words, rowid, {WORDS}) SELECT 'delete', place, {WORDS} FROM memories"
        execute(f"{sql} WHERE place {these}", places)
        ids = [id for (id,) in self._all(f"SELECT id FROM memories WHERE place {these}", places)]
        for table, column in (("links", "source"), ("links", "target"), ("access", "memory"), ("sightings", "memory")):
            execute(f"DELETE FROM {table} WHERE {column} {these}", ids)
        named = f"SELECT number FROM units WHERE name IN (SELECT name FROM ({NAMED}) WHERE place {these})"
        units = json_list(number for (number,) in self._all(named, places))
        execute(f"DELETE FROM code WHERE unit IN {EACH} AND place {these}", (units, *places))
        unused = f"number IN {EACH} AND NOT EXISTS (SELECT 1 FROM code WHERE unit = number)"
        execute(f"DELETE FROM units WHERE {unused}", (units,))
        execute(f"DELETE FROM memories WHERE place {these}", places)
        execute("INSERT INTO words (words) VALUES ('flush')")  # a damage is found while it can be undone

    def vacuum(self) -> None:
        """Make the file as small as what it holds; nobody can write meanwhile."""
        with self._db.exclusive() as connection:
            _vacuum(connection)

    # -- texts --------------------------------------------------------------------------------------------------
    def rewrite(self, clean: CleanCell, *, dry_run: bool = False) -> Rewritten:
        """Rewrite every text, some rows a transaction; run again, it continues with what is left."""
        self._db.flush()
        query, write = self._db.query, self._db.write
        return rewrite(query, clean, lambda statements: None if dry_run else write(run, query, statements))

    def sweep(self) -> None:
        """Leave no byte of what was cleaned: indexes rebuilt, free pages given back, the write-ahead log emptied."""
        self.reindex()
        with self._db.exclusive() as connection:
            sweep(connection)


# ---- texts of any database


@dataclass
class Rewritten:
    """The result of a rewrite: rows read and rows changed, by table, and secrets by kind."""

    seen: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, where: str, before: str, after: str) -> None:
        """Count a text that was looked at."""
        self.seen[where] += 1
        self.changed[where] += after != before
        self.kinds += Counter(_REDACTED.findall(after)) - Counter(_REDACTED.findall(before))


def rewrite(execute: Execute, clean: CleanCell, write: Callable[[list[Statement]], object]) -> Rewritten:
    """Clean the texts of all tables, some rows at a time, each written before the next are read."""
    found = Rewritten()
    for table, sql in list(execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name")):
        if table.startswith(DERIVED) or sql.startswith("CREATE VIRTUAL"):
            continue
        about = list(execute(f"PRAGMA table_info({table})"))
        keyed = [name for _, name in sorted((each[5], each[1]) for each in about if each[5])]
        keys = keyed if "WITHOUT ROWID" in sql.upper() else ["rowid"]
        columns = [each[1] for each in about if each[2].upper() == "TEXT" and (table, each[1]) not in OURS]
        after: Sequence[Any] = ()
        while columns:
            beyond = f"WHERE ({', '.join(keys)}) > ({marks(keys)})" if after else ""
            query = f"SELECT {', '.join([*keys, *columns])} FROM {table} {beyond} ORDER BY {', '.join(keys)}"
            rows = list(execute(f"{query} LIMIT {ROWS}", tuple(after)))
            statements: list[Statement] = []
            for row in rows:
                place, old = row[: len(keys)], dict(zip(columns, row[len(keys) :], strict=True))
                new = _cleaned(table, old, clean, place=place)
                found.add(table, "\n".join(str(old.get(name)) for name in new), "\n".join(new.values()))
                if new:
                    statements += _updates(table, keys, place, old, new)
            write(statements)
            if len(rows) < ROWS:
                break
            after = rows[-1][: len(keys)]
    return found


def _cleaned(table: str, old: Mapping[str, Any], clean: CleanCell, *, place: Sequence[Any]) -> dict[str, str]:
    """Return the texts of a row that change."""
    new: dict[str, str] = {}
    for name, text in old.items():
        after = clean(table, name, text, old) if isinstance(text, str) and text else text
        if after != text:
            new[name] = f"{after}#{place[0]}" if (table, name) == ("memories", "uid") else after
    if table == "memories" and set(new).intersection(INDEXED):
        new["split"] = split_of({**old, **new})
    return new


def _updates(
    table: str, keys: Sequence[str], place: Sequence[Any], old: Mapping[str, Any], new: Mapping[str, str]
) -> Iterator[Statement]:
    """Yield the statements that write a row's new texts; a row that changed meanwhile stays: today's rules wrote it."""
    known = [name for name in new if name in old]
    same = " AND ".join([*(f"{name} = ?" for name in keys), *(f"{name} IS ?" for name in known)])
    # Of two rows that become one (sessions whose ids were secrets), one is kept.
    sql = f"UPDATE OR REPLACE {table} SET {', '.join(f'{name} = ?' for name in new)} WHERE {same}"
    yield sql, (*new.values(), *place, *(old[name] for name in known))
    if "split" in new:
        yield "DELETE FROM vectors WHERE place = ?", place  # it tells of the text
    if table == "events" and "payload" in new:  # what its prompt was searched for has lost its spelling
        yield "UPDATE injections SET terms = '[]' WHERE session = ?", (old["session"],)


def run(execute: Execute, statements: Sequence[Statement]) -> None:
    """Run statements, inside the transaction of whoever calls."""
    for sql, parameters in statements:
        execute(sql, parameters)


def rewrite_backup(path: Path, clean: CleanCell, *, dry_run: bool) -> Rewritten:
    """Clean a backup, which nobody else has open."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as db:
        if dry_run:
            return rewrite(db.execute, clean, lambda _: None)
        db.pragma("journal_mode", "delete")
        with db:
            found = rewrite(db.execute, clean, partial(run, db.execute))
        sweep(db)
        return found


def sweep(db: apsw.Connection) -> None:
    """Leave no old byte in the file or beside it: words index rebuilt, free pages given back, the log emptied."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").get:
        db.execute("INSERT INTO words (words) VALUES ('rebuild')")
        db.execute("INSERT INTO words (words) VALUES ('optimize')")
    _vacuum(db)
    _vacuum(db)  # what the first pass left in the log is in the file by now


def _vacuum(db: apsw.Connection) -> None:
    """Write the file again without its free pages, and empty the log."""
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
