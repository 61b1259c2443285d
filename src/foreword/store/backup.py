"""Copy a database, check one, and read what can be read of one that is damaged.

Nothing here opens the live database but through SQLite: to open and close the file besides would drop SQLite's locks.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from foreword.encoding import loads, sized
from foreword.errors import StoreError
from foreword.models import Event
from foreword.paths import sync_path
from foreword.store import Store
from foreword.store.database import KnownEvents, open_connection
from foreword.store.forget import Backup, Tombstones
from foreword.store.maintenance import DERIVED, Execute
from foreword.store.migrations import execute_all, migrate, schema_sql, tables, upgrade
from foreword.store.sql import marks

COPY, REPLACED, UNFINISHED = "memory-", "replaced-", ".tmp"
RESTORED = "restored"  # the checkpoint by which earlier versions named the database whose events they take over later
WEEKLY = 4  # copies that are kept besides the daily ones, one a week
REPLACED_DAYS = 28  # that a database is kept for which another one was restored
SPARE = 32 * 1024 * 1024  # bytes that a copy leaves free
MOST_DAMAGE = 20  # sentences
BATCH = 500  # events of one commit
HEADER = b"SQLite format 3\0"
RESTORE = "`foreword restore` puts the newest copy in its place, and keeps the events that came since"
REBUILD = "`foreword index` rebuilds it"
COUNTED = {
    **{table: f"count(*) FROM {table}" for table in ("memories", "sessions", "events")},
    "newest": "ifnull(max(number), 0) FROM events",  # the number of the newest event
}
# Texts that are read as JSON: a row in which one is broken would make every query fail that finds it.
JSON_TEXTS = {"events": ("payload",), "memories": ("tags", "files", "functions", "detail")}
Lost = dict[str, list[int]]  # table -> the rowids that cannot be read, 0 for an unknown number of them
_UNREADABLE = (apsw.Error, UnicodeError)


class Damaged(StoreError):
    """A database cannot be copied, because it cannot be read."""


@dataclass(frozen=True)
class Report:
    """What a check of a database found; `damage` is empty where it is whole."""

    file: str
    bytes: int
    damage: tuple[str, ...] = ()
    way_out: str = ""
    rows: dict[str, int] = field(default_factory=dict)


# ---- check


def check(db: apsw.Connection, file: Path, *, interrupted: Callable[[], bool] = lambda: False) -> Report:
    """Read every page of an open database; name tables and indexes that are damaged."""
    damage: list[str] = []
    rows: dict[str, int] = {}
    lost: Lost = defaultdict(list)
    db.set_progress_handler(interrupted, 10_000)
    try:
        roots = {
            root: f"{kind} {name}" for kind, name, root in db.execute("SELECT type, name, rootpage FROM sqlite_master")
        }
        for (found,) in db.execute(f"PRAGMA integrity_check({MOST_DAMAGE})"):
            lines = [line for line in str(found).splitlines() if line not in ("ok", "*** in database main ***")]
            damage += [re.sub(r"^Tree (\d+)", lambda it: roots.get(int(it[1]), it[0]), line) for line in lines]
    except _UNREADABLE as exc:
        damage.append(str(exc))
    with suppress(*_UNREADABLE):
        for table, columns in (_own_tables(db) if damage else JSON_TEXTS).items():
            deque(readable(db, table, columns, lost), maxlen=0)
        for name, what in COUNTED.items():
            rows[name] = db.execute(f"SELECT {what}").get
    db.set_progress_handler(None)
    if interrupted():
        raise StoreError("the check was interrupted", hint="try again")
    named = [f"table {table}: {'some' if 0 in each else len(each)} rows cannot be read" for table, each in lost.items()]
    way_out = RESTORE if named or len(rows) < len(COUNTED) else REBUILD if damage else ""
    return Report(str(file), file.stat().st_size, (*named, *damage[:MOST_DAMAGE]), way_out, rows)


def check_file(file: Path, *, scratch: Path) -> Report:
    """Check a database that nobody has open, and leave it as it is."""
    if damage := _unreadable(file):
        return Report(str(file), file.stat().st_size, (damage,), RESTORE)
    with borrowed(file, scratch) as db:
        return check(db, file)


def _unreadable(file: Path) -> str:
    """Return why a file is no whole database by its first bytes and its size; empty where it may be one."""
    if not file.is_file():
        raise StoreError(f"there is no file {file}", hint="`foreword verify` lists the copies")
    with file.open("rb") as opened:
        head = opened.read(100)
    if not head:
        return "the file is empty"
    if not head.startswith(HEADER) or len(head) < 100:
        return "the file is no SQLite database: its beginning is overwritten"
    size, whole = file.stat().st_size, int.from_bytes(head[16:18]) * int.from_bytes(head[28:32])
    log = file.with_name(f"{file.name}-wal")  # which may hold the rest
    if size < whole and not (log.exists() and log.stat().st_size):
        return f"the file was cut short: it has {size:,} bytes of {whole:,}"
    return ""


@contextmanager
def borrowed(file: Path, folder: Path) -> Iterator[apsw.Connection]:
    """Open a database with its log to be read; what SQLite writes beside it lies in a folder of ours."""
    log, size = file.with_name(f"{file.name}-wal"), file.stat().st_size if file.exists() else 0
    with scratch(folder) as beside:
        here = beside / file.name
        try:
            if not size:
                here.write_bytes(bytes(4096))  # of an empty file SQLite does not read the log
            else:
                _link_or_copy(file, here)
            if log.exists():
                _copy_file(log, Path(f"{here}-wal"))
        except OSError as exc:
            raise StoreError(f"cannot read {file}: {exc.strerror}", hint="check the path and its permissions") from exc
        with closing(open_connection(here, apsw.SQLITE_OPEN_READONLY)) as db:
            yield db


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Make a folder for files that are not finished; `remove_unfinished` removes what a killed worker left."""
    with tempfile.TemporaryDirectory(dir=folder, suffix=UNFINISHED) as made:
        yield Path(made)


def _link_or_copy(file: Path, target: Path) -> None:
    try:
        os.link(file, target)
    except OSError:  # on another disk, or somebody else's
        _copy_file(file, target)


def _copy_file(file: Path, target: Path) -> None:
    _check_space(target.parent, file.stat().st_size)
    shutil.copyfile(file, target)


# ---- copy


def copy(db: apsw.Connection, target: Path, *, interrupted: Callable[[], bool] = lambda: False) -> Report:
    """Write a copy of an open database, checked and readable by the user alone; *target* appears only when it is whole.

    Pages that hold deleted rows are not copied.
    """
    unfinished = target.with_name(f".{target.name}{UNFINISHED}")
    try:
        used = db.pragma("page_size") * (db.pragma("page_count") - db.pragma("freelist_count"))
        _check_space(target.parent, used)
        unfinished.unlink(missing_ok=True)
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        db.set_progress_handler(interrupted, 10_000)
        db.execute("VACUUM INTO ?", (str(unfinished),))
        with closing(open_connection(unfinished, apsw.SQLITE_OPEN_READONLY)) as made:
            report = check(made, unfinished, interrupted=interrupted)
        if report.damage:
            raise Damaged(f"the copy is damaged: {report.damage[0]}", hint=report.way_out)
        sync_path(unfinished)
        unfinished.replace(target)
        sync_path(target.parent)
    except apsw.InterruptError as exc:
        raise StoreError("the copy was interrupted", hint="it is made again later") from exc
    except (apsw.Error, OSError) as exc:
        failed = StoreError if isinstance(exc, (apsw.FullError, OSError)) else Damaged
        raise failed(f"cannot write the copy {target}: {exc}", hint="run `foreword verify`") from exc
    finally:
        db.set_progress_handler(None)
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return Report(str(target), target.stat().st_size, rows=report.rows)


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed + SPARE:
        hint = "free some space, or give a path on another disk"
        raise StoreError(
            f"not enough space in {folder}: {sized(needed + SPARE)} are needed, {sized(free)} free", hint=hint
        )


def new_path(folder: Path, prefix: str) -> Path:
    """Return the path of a new file in the backups folder, named by the time."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    names = (f"{prefix}{stamp}{ending}.db" for ending in ("", *(f"-{number}" for number in range(2, 1000))))
    return next(folder / name for name in names if not (folder / name).exists())


def copies(folder: Path) -> list[Path]:
    """Return the daily copies and those made by hand, newest first."""
    return sorted(folder.glob(f"{COPY}[0-9]*.db"), reverse=True)


def rotate(folder: Path, *, daily: int) -> None:
    """Keep the newest copy of each of the last days and weeks that have one, and remove the others."""
    days: dict[str, Path] = {}
    weeks: dict[tuple[int, int], Path] = {}
    for path in copies(folder):
        with suppress(ValueError):
            day = path.name.removeprefix(COPY)[:8]
            days.setdefault(day, path)
            weeks.setdefault(date.fromisoformat(day).isocalendar()[:2], path)
    kept = {*list(days.values())[:daily], *list(weeks.values())[:WEEKLY]}
    for path in set(copies(folder)) - kept:
        path.unlink()
    oldest = time.strftime("%Y%m%d", time.localtime(time.time() - REPLACED_DAYS * 86_400))
    for path in folder.glob(f"{REPLACED}*"):
        if path.name.removeprefix(REPLACED)[:8] < oldest:
            path.unlink()


def remove_unfinished(folder: Path) -> None:
    """Remove what a killed worker was writing."""
    for path in folder.glob(f"*{UNFINISHED}"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


# ---- restore


def forgotten(folder: Path, *, database: Path, live: Execute | None) -> apsw.Connection:
    """Gather what the database and all copies know as forgotten: one that was lost took its own tombstones with it."""
    known = apsw.Connection(":memory:")
    execute_all(known, schema_sql())
    with suppress(StoreError):
        _add_forgotten(known, live) if live else None
    for file in [*([] if live else [database]), *folder.glob("*.db")]:
        with suppress(StoreError, *_UNREADABLE), borrowed(file, folder) as db:
            _add_forgotten(known, db.execute)
    return known


def _add_forgotten(known: apsw.Connection, other: Execute) -> None:
    Tombstones(known.execute).take_over(other)
    for alias in list(other("SELECT key, alias_of FROM projects WHERE alias_of <> ''")):
        known.execute("INSERT OR IGNORE INTO projects (key, alias_of) VALUES (?, ?)", alias)


def prepare(file: Path, new: Path, known: apsw.Connection) -> tuple[Report, dict[str, int]]:
    """Write a copy of *file* that can take the database's place, without what is *known* as forgotten.

    Return what it holds, and how many rows of each table were lost: none.
    """
    hint = "`foreword restore --salvage FILE` takes what can be read"
    if damage := _unreadable(file):
        raise StoreError(f"{file}: {damage}", hint=hint)
    try:
        with borrowed(file, new.parent) as db:
            copy(db, new)
    except Damaged as exc:
        raise StoreError(f"{file} is damaged: {exc}", hint=hint) from exc
    return _finish(new, known), {}


def _finish(new: Path, known: apsw.Connection) -> Report:
    """Bring a database to today's schema, and remove what is *known* as forgotten."""
    with closing((opened := Backup(new)).db) as db:
        upgrade(db)
        opened.forget_again(known.execute)
        db.pragma("journal_mode", "delete")
        return check(db, new)


def put_in_place(new: Path, database: Path, *, replaced: Path | None = None) -> None:
    """Let *new* take the place of the closed *database* at once, which *replaced* keeps."""
    if replaced:
        with closing(open_connection(new, apsw.SQLITE_OPEN_READONLY)) as db:
            known = KnownEvents(database)  # what the new one lacks is reported by who restores it
            known.note(*db.execute("SELECT ifnull(max(number), 0), count(*) FROM events").get)
            known.close()
        for ending in ("-wal", ""):
            with suppress(FileNotFoundError):
                os.link(f"{database}{ending}", f"{replaced}{ending}")
    remove_log(database)
    new.chmod(0o600)
    sync_path(new)
    new.replace(database)
    sync_path(database.parent)


def remove_log(database: Path) -> None:
    """Remove the log of a database that another one takes the place of."""
    for ending in ("-wal", "-shm"):
        Path(f"{database}{ending}").unlink(missing_ok=True)


def take_over(database: Path, store: Store, folder: Path, *, since: int, newest: int, events: int) -> tuple[int, int]:
    """Add the events of a closed *database* that *store* lacks; return how many, and how many are lost.

    Up to number *since*, *store* has all of them; the database had so many *events*, up to number *newest*.
    """
    taken, numbers, unreadable = 0, list[int](), defaultdict[str, list[int]](list)
    columns = ("number", "key", "host", "name", "kind", "session", "project", "cwd", "at", "payload")
    with borrowed(database, folder) as db:
        rows = readable(db, "events", columns, unreadable)
        while batch := list(islice(rows, BATCH)):
            numbers += [row[0] for row in batch]
            found = [Event._make([*each, loads(payload), False, 0]) for _, *each, payload in batch]
            taken += sum(store.events.append(found))
    numbers += filter(None, unreadable["events"])
    left = newest - since - sum(number > since for number in numbers)  # of these, some were deleted
    lost = max(0, min(left, events - len(numbers)))
    return taken, lost + sum(number > since for number in unreadable["events"])


def recover_log(database: Path, folder: Path) -> None:
    """Write back a database that was deleted or emptied, where its write-ahead log still holds all of it."""
    log = Path(f"{database}-wal")
    if (database.exists() and database.stat().st_size) or not (log.exists() and log.stat().st_size):
        return
    with suppress(Damaged, apsw.Error), borrowed(database, folder) as db, scratch(folder) as made:
        copy(db, made / "new.db")
        put_in_place(made / "new.db", database)


def rescue(db: apsw.Connection, new: Path) -> Report:
    """Write what an open connection can still read into a new database."""
    try:
        return copy(db, new)
    except Damaged:
        return _salvage(db, new)[0]


def salvage(
    file: Path, new: Path, known: apsw.Connection, *, copy: Path | None = None
) -> tuple[Report, dict[str, int]]:
    """Write what can be read of a file into a new database, and of a *copy* the rows that cannot be.

    Return what it holds, and how many rows of each table were lost.
    """
    with ExitStack() as opened:
        db = opened.enter_context(borrowed(file, new.parent))
        lost = _salvage(db, new, opened.enter_context(borrowed(copy, new.parent)) if copy else None)[1]
    return _finish(new, known), lost


def _salvage(db: apsw.Connection, new: Path, copy: apsw.Connection | None = None) -> tuple[Report, dict[str, int]]:
    lost: Lost = defaultdict(list)
    new.unlink(missing_ok=True)
    with closing(apsw.Connection(str(new))) as target:
        migrate(target, backups=new.parent)
        try:
            present = _own_tables(db)
        except apsw.Error as exc:
            raise Damaged(f"nothing can be read: {exc}", hint="`foreword restore` takes a copy") from exc
        for table, columns in _own_tables(target).items():
            both = [name for name in columns if name in present.get(table, ())]
            into = f"INSERT OR IGNORE INTO {table} ({', '.join(both)}) VALUES ({marks(both)})"
            with target:
                for row in readable(db, table, both, lost) if both else ():
                    target.execute(into, row)
            if table in lost and copy and table != "checkpoints":
                with target, suppress(apsw.Error):
                    lost[table] = _fill(target, into, copy, f"SELECT {', '.join(both)} FROM {table}", lost[table])
        target.execute("UPDATE memories SET status = 'discarded' WHERE status = 'proposed'")  # of schema 10 and before
        return check(target, new), {table: len(rows) for table, rows in lost.items() if rows}


def _fill(target: apsw.Connection, into: str, copy: apsw.Connection, select: str, lost: list[int]) -> list[int]:
    """Take lost rows from a copy, all that are missing where it is not known which; return those that it lacks."""
    if 0 in lost:
        target.executemany(into, copy.execute(select))
        return lost
    left = []
    for id in lost:
        target.executemany(into, copy.execute(f"{select} WHERE rowid = ?", (id,)))
        left += [] if target.changes() else [id]
    return left


def _own_tables(db: apsw.Connection) -> dict[str, tuple[str, ...]]:
    return {name: columns for name, columns in tables(db).items() if not name.startswith(DERIVED)}


def readable(db: apsw.Connection, table: str, columns: Sequence[str], lost: Lost) -> Iterator[list[Any]]:
    """Yield the rows of a table that can be read, and note the others in *lost*, as far as an index knows them."""
    try:
        ((sql,),) = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,))
        has_rowid = "WITHOUT ROWID" not in sql.upper()
        keys = ["rowid"] if has_rowid else [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[5]]
    except (ValueError, *_UNREADABLE):  # not even which tables there are
        lost[table].append(0)
        return
    valid = " AND ".join(f"json_valid({column})" for column in JSON_TEXTS.get(table, ())) or "1"
    select, last = f"SELECT {keys[0]}, {valid}, {', '.join(columns)} FROM {table}", None
    try:
        for key, is_valid, *row in db.execute(f"{select} ORDER BY {', '.join(keys)}"):
            last = key
            if is_valid:
                yield row
            else:
                lost[table].append(key if has_rowid else 0)
    except _UNREADABLE:
        pass
    else:
        return
    queries = {0: f"{select} ORDER BY {' DESC, '.join(keys)} DESC"}  # from the other end
    with suppress(*_UNREADABLE):
        if has_rowid:  # an index knows which rows there are
            ids = [id for (id,) in db.execute(f"SELECT rowid FROM {table}") if last is None or id > last]
            queries = {id: f"{select} WHERE rowid = {id}" for id in ids}
    for id, query in queries.items():
        found = 0
        with suppress(*_UNREADABLE):
            for _, is_valid, *row in db.execute(query):
                if is_valid:
                    found += 1
                    yield row
        if not found or not id:
            lost[table].append(id)
