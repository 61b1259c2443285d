"""Take secrets out of a database that older rules filled, some rows at a time.

Nothing here knows the tables: every text of every table is looked at, so that one of tomorrow is not forgotten. Rows
are read and cleaned first, and written in a step of their own, each only where it is still as it was read.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import apsw

from foreword.redact import redact, redact_all
from foreword.redact.files import without_denied
from foreword.store.memories import as_json as to_json
from foreword.store.memories import split_of
from foreword.terms import terms

if TYPE_CHECKING:
    Execute = Callable[..., Any]

BATCH = 100  # rows of one transaction: the longest event is 64 KB a text, and somebody may wait for the writer
# Indexes that are made anew, and vectors, which go with their memories.
MADE = ("words", "vectors", "code", "sqlite_")
OURS = {("events", "key"), ("memories", "split"), ("memories", "id")}
INDEXED_FIELDS = ("title", "body", "tags", "files", "functions", "detail")  # what the words of a memory are made of


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
        return text if clean == json.loads(text) else to_json(clean)


@dataclass(frozen=True)
class Scrubbed:
    """What was found in some rows of a table: how many there were, how many changed, and secrets by their kind."""

    table: str
    seen: int = 0
    changed: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict, hash=False)
    after: Sequence[Any] = ()  # where the next ones begin: a table, and the key of a row in it; empty at the end


@dataclass(frozen=True)
class Plan:
    """What is to be changed in some rows of a table."""

    found: Scrubbed
    changes: Sequence[tuple[str, Sequence[Any]]]  # statements


def tables(execute: Execute) -> tuple[str, ...]:
    """Return every table that may hold a text of somebody's."""
    rows = execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    )
    return tuple(name for (name,) in rows if not name.startswith(MADE))


def plan(execute: Execute, *, after: Sequence[Any], cleaner: Cleans, limit: int = BATCH) -> Plan:
    """Return what the next rows need: from the beginning, or behind the row that *after* names."""
    table, *after = after or tables(execute)[:1] or ("",)
    if table not in tables(execute):
        return Plan(Scrubbed(table, after=_next(execute, table)), ())
    key, columns = _shape(execute, table)
    names = ", ".join(key)
    beyond = f"WHERE ({names}) > ({', '.join('?' * len(key))})" if after else ""
    rows = list(
        execute(
            f"SELECT {names}, {', '.join(columns) or 'NULL'} FROM {table} {beyond} ORDER BY {names} LIMIT {limit}",
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
    more = (table, *rows[-1][: len(key)]) if len(rows) == limit else _next(execute, table)
    return Plan(Scrubbed(table, len(rows), changed, kinds, more), changes)


def _next(execute: Execute, table: str) -> tuple[str, ...]:
    later = [name for name in tables(execute) if name > table]
    return (later[0],) if later else ()


def apply(execute: Execute, planned: Plan) -> None:
    """Write what was planned; a row that changed meanwhile stays, and is clean because today's rules wrote it."""
    for sql, parameters in planned.changes:
        execute(sql, parameters)


def sweep(db: apsw.Connection) -> None:
    """Leave no old byte in the file or beside it: indexes anew, free pages given back, the log emptied."""
    present = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "words" in present:
        db.execute("INSERT INTO words (words) VALUES ('rebuild')")
        db.execute("INSERT INTO words (words) VALUES ('optimize')")
    for _ in range(2):  # what is in the log is written to the file before it is copied, and the copy too
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
        after: Sequence[Any] = ()
        while True:
            planned = plan(db.execute, after=after, cleaner=cleaner)
            if not dry_run and planned.changes:
                with db:
                    apply(db.execute, planned)
            yield planned.found
            after = planned.found.after
            if not after:
                break
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
    if table == "memories" and set(new).intersection(INDEXED_FIELDS):
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
