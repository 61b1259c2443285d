"""Rewrite every text of a database: the walk that `scrub` and `forget` share, and the cleaner of `scrub`."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import apsw

from foreword.redact import redact, redact_all
from foreword.redact.files import without_denied
from foreword.store.memories import as_json, split_of

Execute = Callable[..., Any]

BATCH = 100  # rows of one transaction: the longest event is 64 KB a text, and somebody may wait for the writer
# Tables that are derived from others: indexes are rebuilt, and vectors go with their memories.
DERIVED = ("words", "vectors", "code", "sqlite_")
OURS = {("events", "key"), ("memories", "split"), ("memories", "id")}  # what we made ourselves: no text of anybody's
INDEXED = ("title", "body", "tags", "files", "functions", "detail")  # what the words of a memory are made of


class Cleans(Protocol):
    """What decides which of a text stays."""

    def text(self, text: str) -> str:
        """Clean a line of a log, or a record that was set aside."""

    def cell(self, table: str, column: str, text: str, *, row: Mapping[str, Any]) -> str:
        """Clean a text of a row."""


@dataclass(frozen=True)
class Cleaner:
    """Takes secrets out: by the rules of today, files that are denied, and values that a caller knows."""

    deny: tuple[str, ...] = ()
    hide: Callable[[str], str] = str

    def text(self, text: str) -> str:
        """Clean a text, which may be JSON that holds texts."""
        if text[:1] in ("{", "["):
            try:
                clean = redact_all(without_denied(json.loads(self.hide(text)), deny=self.deny))
                return text if clean == json.loads(text) else as_json(clean)
            except (ValueError, RecursionError):
                pass
        return redact(self.hide(text))

    def cell(self, table: str, column: str, text: str, *, row: Mapping[str, Any]) -> str:
        """Clean a text of a row; a project's key, which capture may have hashed, stays different from any other."""
        del table, row
        if column not in ("project", "scope"):
            return self.text(text)
        clean = redact(self.hide(text.removeprefix("project:")))
        if clean == text.removeprefix("project:"):
            return text
        digest = hashlib.blake2b(text.removeprefix("project:").encode("utf-8", "replace"), digest_size=6).hexdigest()
        return f"{'project:' * text.startswith('project:')}{clean}#{digest}"


class Batch(NamedTuple):
    """Some rows of a table that were looked at, and the statements that clean them."""

    table: str
    seen: int
    changed: int
    kinds: Counter[str]  # of secrets
    statements: list[tuple[str, Sequence[Any]]]

    def apply(self, execute: Execute) -> None:
        """Write the changes; a row that changed meanwhile stays, and is clean because today's rules wrote it."""
        for sql, parameters in self.statements:
            execute(sql, parameters)


@dataclass
class Rewritten:
    """What a walk came to: rows that were looked at and rows that changed, by table, and secrets by kind."""

    seen: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, where: str, seen: int, changed: int, kinds: Mapping[str, int]) -> None:
        self.seen[where] += seen
        self.changed[where] += changed
        self.kinds.update(kinds)


def batches(execute: Execute, cleaner: Cleans) -> Iterator[Batch]:
    """Yield what the texts of all tables need, some rows at a time; each is to be applied before the next."""
    tables = list(execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name"))
    for table, sql in tables:
        if table.startswith(DERIVED) or sql.startswith("CREATE VIRTUAL"):
            continue
        about = list(execute(f"PRAGMA table_info({table})"))
        keyed = [name for _, name in sorted((each[5], each[1]) for each in about if each[5])]
        keys = keyed if "WITHOUT ROWID" in sql.upper() else ["rowid"]
        columns = [each[1] for each in about if each[2].upper() == "TEXT" and (table, each[1]) not in OURS]
        after: Sequence[Any] = ()
        while columns:
            beyond = f"WHERE ({', '.join(keys)}) > ({', '.join('?' * len(keys))})" if after else ""
            query = f"SELECT {', '.join([*keys, *columns])} FROM {table} {beyond} ORDER BY {', '.join(keys)}"
            rows = list(execute(f"{query} LIMIT {BATCH}", tuple(after)))
            yield _batch(table, rows, keys=keys, columns=columns, cleaner=cleaner)
            if len(rows) < BATCH:
                break
            after = rows[-1][: len(keys)]


def _batch(table: str, rows: Sequence[Any], *, keys: Sequence[str], columns: Sequence[str], cleaner: Cleans) -> Batch:
    batch = Batch(table, len(rows), 0, Counter(), [])
    changed = 0
    for row in rows:
        place, old = row[: len(keys)], dict(zip(columns, row[len(keys) :], strict=True))
        new = _cleaned(table, old, cleaner=cleaner, place=place)
        if not new:
            continue
        changed += 1
        for name, text in new.items():
            batch.kinds.update(kinds_of(text) - kinds_of(str(old.get(name) or "")))
        known = [name for name in new if name in old]
        same = " AND ".join([*(f"{name} = ?" for name in keys), *(f"{name} IS ?" for name in known)])
        # Of two rows that become one (sessions whose ids were secrets), one is kept.
        sql = f"UPDATE OR REPLACE {table} SET {', '.join(f'{name} = ?' for name in new)} WHERE {same}"
        batch.statements.append((sql, (*new.values(), *place, *(old[name] for name in known))))
        if "split" in new:
            batch.statements.append(("DELETE FROM vectors WHERE place = ?", place))  # it tells of the text
        if table == "events" and "payload" in new:  # what its prompt was searched for has lost its spelling
            batch.statements.append(("UPDATE injections SET terms = '[]' WHERE session = ?", (old["session"],)))
    return batch._replace(changed=changed)


def _cleaned(table: str, old: Mapping[str, Any], *, cleaner: Cleans, place: Sequence[Any]) -> dict[str, str]:
    """Return the texts of a row that change."""
    new: dict[str, str] = {}
    for name, text in old.items():
        clean = cleaner.cell(table, name, text, row=old) if isinstance(text, str) and text else text
        if clean != text:
            new[name] = f"{clean}#{place[0]}" if (table, name) == ("memories", "uid") else clean
    if table == "memories" and set(new).intersection(INDEXED):
        new["split"] = split_of({**old, **new})
    return new


def kinds_of(text: str) -> Counter[str]:
    """Count the marks of each kind that a text holds."""
    pieces = text.split("[redacted:")[1:]
    return Counter(piece.partition("]")[0] for piece in pieces if "]" in piece[:40])


def rewrite_backup(path: Path, cleaner: Cleans, *, dry_run: bool) -> Rewritten:
    """Clean a backup, which nobody else has open."""
    found = Rewritten()
    flags = apsw.SQLITE_OPEN_READONLY if dry_run else apsw.SQLITE_OPEN_READWRITE
    with closing(apsw.Connection(str(path), flags=flags)) as db:
        if not dry_run:
            db.pragma("journal_mode", "delete")
        for batch in batches(db.execute, cleaner):
            found.add(f"backups/{path.name}", batch.seen, batch.changed, batch.kinds)
            if not dry_run:
                with db:
                    batch.apply(db.execute)
        if not dry_run:
            sweep(db)
    return found


def sweep(db: apsw.Connection) -> None:
    """Leave no old byte in the file or beside it: words index anew, free pages given back, the log emptied."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").get:
        db.execute("INSERT INTO words (words) VALUES ('rebuild')")
        db.execute("INSERT INTO words (words) VALUES ('optimize')")
    vacuum(db)
    vacuum(db)  # what the first pass left in the log is in the file by now


def vacuum(db: apsw.Connection) -> None:
    """Write the file again without its free pages, and empty the log."""
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
