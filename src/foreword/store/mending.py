"""A file -> its database, in today's schema, with what it lacks told; and its indexes made anew from the memories."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apsw

from foreword.errors import StoreError
from foreword.models import Memory
from foreword.store import sightings
from foreword.store.commits import BUSY_MS
from foreword.store.finding import SEQUENCE_BITS
from foreword.store.migrations import check_version, execute_all, migrate, schema_sql
from foreword.store.reading import KNOWN_TABLES
from foreword.store.writing import DAMAGED, indexed, texts_of

# Which memory names which file or function. What some other hand wrote as no list names nothing.
_NAMED = " UNION ".join(
    f"""SELECT m.place, n.value AS name FROM memories m,
    json_each(CASE WHEN json_valid(m.{column}) AND json_type(m.{column}) = 'array' THEN m.{column} ELSE '[]' END) n
    WHERE n.type = 'text'"""
    for column in ("files", "functions")
)
WAYS_OUT = {
    "index": "run `foreword index`",
    "tables": "run `foreword index`",
    "code": "run `foreword index`",
    "sightings": "run `foreword index`",
    "write": "hooks keep what they can in the spool; free some space, or run `foreword doctor`",
    "notes": "free some space, or run `foreword doctor`",
    "later": "run `foreword doctor`",
}
# What is well again when the indexes were made anew: what was left for later may have met a missing table.
MENDED = ("tables", "index", "code", "sightings", "later")


@dataclass(frozen=True)
class Opened:
    """The connection that writes, which file it opened, and what is wrong with that, by what it is about."""

    db: apsw.Connection
    file: tuple[int, int]
    trouble: Mapping[str, str]


def opened(path: Path, *, backups: Path, keep: int) -> Opened:
    """Open a database, made where there is none; one that cannot be worked with is left as it is."""
    try:
        db = connection(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        try:
            _prepare(db, path, backups=backups, keep=keep)
            trouble = _checked(db, path)
            here = path.stat()
        except BaseException:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # its files stay as they are, -wal too
            db.close()
            raise
    except (apsw.Error, OSError) as exc:
        raise StoreError(f"cannot open {path}: {exc}", hint="run `foreword doctor`; the file is left as it is") from exc
    return Opened(db, (here.st_dev, here.st_ino), trouble)


def connection(path: Path, flags: int) -> apsw.Connection:
    """One more connection, that waits for the others."""
    made = apsw.Connection(str(path), flags=flags)
    made.set_busy_timeout(BUSY_MS)
    return made


def index(db: apsw.Connection) -> int:
    """Create the tables that are missing, empty; rebuild what is derived from the memories, and return their number."""
    with suppress(apsw.SQLError):  # an index of an unknown format cannot even be dropped
        db.execute("UPDATE words_config SET v = 4 WHERE k = 'version'")
    for table in ("words", "code", "units"):
        db.execute(f"DROP TABLE IF EXISTS {table}")
    execute_all(db, schema_sql())
    _adopt(db)
    _split_anew(db)
    db.execute("INSERT INTO words (words) VALUES ('rebuild')")
    db.execute(f"INSERT INTO units (name) SELECT DISTINCT name FROM ({_NAMED})")
    db.execute(f"INSERT INTO code SELECT u.number, n.place FROM ({_NAMED}) n JOIN units u ON u.name = n.name")
    sightings.anew(db.execute)
    db.execute("DELETE FROM meta WHERE key = 'index'")
    return int(db.execute("SELECT count(*) FROM memories").get)


def _prepare(db: apsw.Connection, path: Path, *, backups: Path, keep: int) -> None:
    log = path.with_name(f"{path.name}-wal")
    in_log = log.stat().st_size if log.exists() else 0  # a page cut short there is whole in the log
    check_version(db)  # before anything is changed
    if path.stat().st_size % int(db.pragma("page_size")) and not in_log:
        raise StoreError(f"{path} was cut short", hint="run `foreword doctor`; the file is left as it is")
    path.chmod(0o600)
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "full")  # an acknowledged event is on the disk
    migrate(db, backups=backups, keep=keep)


def _checked(db: apsw.Connection, path: Path) -> dict[str, str]:
    """Return what the database lacks, by what it is about; the rest goes on working."""
    trouble: dict[str, str] = {}
    present = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    missing = [table for table in KNOWN_TABLES if table not in present]
    if missing:
        trouble["tables"] = f"missing in {path}: {', '.join(missing)}"
    try:
        behind = "meta" in present and db.execute("SELECT value FROM meta WHERE key = 'index'").get
        if behind:
            trouble["index"] = behind
        db.execute("SELECT rowid FROM words WHERE words MATCH 'a' LIMIT 1").fetchall()
    except DAMAGED as exc:
        trouble["index"] = f"the words index cannot be read: {exc}"
    return trouble


def _adopt(db: apsw.Connection) -> None:
    """Memories whose owner was lost keep its number, so that no other scope is given it, and them with it."""
    orphans = """SELECT owner, {scope}, max(place & {low}) FROM memories
        WHERE owner NOT IN (SELECT number FROM owners) GROUP BY owner ORDER BY count(*) DESC"""
    one_project = "CASE WHEN count(DISTINCT project) = 1 AND project <> '' THEN 'project:' || project END"
    for scope in (f"ifnull({one_project}, 'lost:' || owner)", "'lost:' || owner"):
        orphaned = orphans.format(scope=scope, low=(1 << SEQUENCE_BITS) - 1)
        db.execute(f"INSERT OR IGNORE INTO owners (number, scope, newest) {orphaned}")


def _split_anew(db: apsw.Connection) -> None:
    """Details are looked for too, also those that were kept before they were."""
    rows: list[Any] = db.execute(
        "SELECT place, title, body, tags, files, functions, detail, split FROM memories WHERE detail <> '{}'"
    ).fetchall()
    for place, title, body, tags, files, functions, detail, split in rows:
        with suppress(ValueError):
            told = Memory("note", title, body, tags=texts_of(tags), files=texts_of(files))
            named = replace(told, functions=texts_of(functions), detail=json.loads(detail))
            if (anew := indexed(named)[4]) != split:
                db.execute("UPDATE memories SET split = ? WHERE place = ?", (anew, place))
