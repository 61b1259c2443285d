"""One SQLite file: opened and checked, written by one connection with many changes to a commit, read by a pool.

Whoever reads or writes calls `query` and `execute`; inside a change both use the writing connection and see what was
not committed yet, everywhere else `query` takes a read-only connection from the pool.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import apsw

from foreword.errors import StoreError
from foreword.store.migrations import check_version, migrate
from foreword.store.sql import bound

T = TypeVar("T")
P = ParamSpec("P")

LATER_SECONDS = 1.0  # until what nobody waits for is written
BUSY_MS = 5_000  # for whoever else has the file locked
PIECE = 64 * 1024  # bytes of the file that are read at once
CLOSE_SECONDS = 2.0  # that a closing store waits for those who still read
READERS = 8  # connections kept open for reading; more threads than that take turns
REPLACED, LOG_LOST, CUT = "was removed or replaced", "lost its write-ahead log", "was cut short or overwritten"
# What a damaged index raises; garbage where a size should be asks for more memory than there is.
DAMAGED = (apsw.SQLError, apsw.CorruptError, apsw.ConstraintError, apsw.NoMemError)
HINTS = {
    "index": "run `foreword index`",
    "write": "hooks keep what they can in the spool; free some space, or run `foreword verify`",
    "later": "run `foreword doctor`",
}


class Database:
    """One file, opened in one process only: other processes ask that one."""

    def __init__(self, path: Path, *, backups: Path) -> None:
        self.path = path
        cause = _lost_cause(path, backups)
        self.failures: tuple[type[Exception], ...] = (apsw.Error, StoreError)
        self.damaged = DAMAGED
        # The connection that writes, and what is wrong, by what it is about.
        self.connection, self.trouble = _open(path, backups=backups)
        self._files = _files(path)
        self.known_events = known = KnownEvents(path)
        self._newest = newest = self._newest_event()
        self._events = known.count if newest == known.number else self._count_events()
        self._removed = False  # whether events were deleted in this transaction
        # Events that were acknowledged and are no longer there, the number of the newest, and the cause.
        gone = max(min(known.number - newest, known.count), known.count - self._events)
        self.lost = (gone if newest < known.number else 0, known.number, cause)
        self.connection.set_update_hook(self._note_change)
        self.commits = time.time_ns() // 1000  # no two databases that are opened begin with the same number
        self._committed = threading.Condition()
        self.turn = threading.Lock()  # held by whoever uses the writing connection
        self._waiting: deque[_Change] = deque()
        self._wake = threading.Event()  # set where somebody waits for the writer thread
        self._used = threading.local()  # the connection that this thread is using
        self._pool: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()
        self._read_slots = threading.BoundedSemaphore(READERS)
        self._closed = threading.Event()
        self._has_ended = False  # the writer thread
        threading.Thread(target=self._write_loop, name="writer", daemon=True).start()

    # -- reading ------------------------------------------------------------------------------------------------
    def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Return the rows of a statement."""
        with self.same_connection() as connection:
            return list(connection.execute(sql, bound(parameters)))

    @contextmanager
    def same_connection(self) -> Iterator[apsw.Connection]:
        """Let all queries of a block use one connection: the writing one inside a change, else one of the pool."""
        if held := self._connection_in_use():
            yield held
            return
        with self._read_slots:
            self._check_open()
            try:
                connection = self._pool.get_nowait()
            except queue.Empty:
                connection = self._open_for_reading()
            self._used.connection = connection
            try:
                yield connection
            except apsw.Error as exc:
                raise in_words(exc, self.path) from exc
            finally:
                self._used.connection = None
                self._pool.put(connection)
                if self._closed.is_set():  # nobody else closes it, and it would keep the file locked
                    self._close_pool()

    def _open_for_reading(self) -> apsw.Connection:
        try:
            return open_connection(self.path, apsw.SQLITE_OPEN_READONLY)
        except apsw.Error as exc:  # somebody removed the file
            raise in_words(exc, self.path) from exc

    # -- writing ------------------------------------------------------------------------------------------------
    def write(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Run *work* in the next commit, and return its result when that commit is on the disk."""
        if self._connection_in_use() is self.connection:
            return work(*args, **named)  # part of a change that is being made
        change = _Change(partial(work, *args, **named))
        self._waiting.append(change)
        if self.turn.acquire(blocking=False):  # nobody writes: to hand over costs two switches of threads
            try:
                self._check_open()
                self._commit()
            finally:
                self.turn.release()
        else:  # all who wait share the next commit, and its one wait for the disk
            self._wake.set()
            if self._has_ended:  # who came after the writer thread had ended would wait for ever
                raise self._closed_error()
        return cast("T", change.done.result())

    def write_later(self, work: Callable[P, object], *args: P.args, **named: P.kwargs) -> None:
        """Run *work* with the next commit, or within a second; where that fails it is given up, and reported."""
        self._check_open()
        self._waiting.append(_Change(partial(work, *args, **named), awaited=False))

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> apsw.Cursor:
        """Run a statement on the writing connection, inside a change."""
        return self.connection.execute(sql, bound(parameters))

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each of *rows*, inside a change."""
        self.connection.executemany(sql, map(bound, rows))

    def flush(self) -> None:
        """Write what was left for later, before somebody asks for it; a store that takes nothing lets nobody wait."""
        if self._connection_in_use() is not None:
            return  # inside a change or a read, which began with it
        if self._waiting and "write" not in self.trouble:
            with self.turn:
                if "write" not in self.trouble:  # of many who came at once, one waits for a store that is locked
                    self._commit()

    @contextmanager
    def exclusive(self) -> Iterator[apsw.Connection]:
        """Hold the writing connection outside of any transaction; nobody can write meanwhile."""
        self.flush()
        with self.turn:
            try:
                yield self.connection
            except apsw.Error as exc:
                raise in_words(exc, self.path) from exc
            finally:
                self._note_sizes()

    def wait_for_commit(self, after: int, *, seconds: float) -> int:
        """Wait for a commit after number *after*, at most so long, and return the number of the last one."""
        self.flush()
        with self._committed:
            self._committed.wait_for(lambda: self._closed.is_set() or self.commits != after, timeout=seconds)
            self._check_open()
            return self.commits

    # -- the file -----------------------------------------------------------------------------------------------
    def problems(self) -> tuple[str, ...]:
        """Return what is wrong, in sentences that tell the way out."""
        return tuple(f"{what}; {HINTS[about]}" for about, what in dict(self.trouble).items())

    def files_lost(self) -> str:
        """Return what happened to the files that were opened, empty while they are in place: other writes are lost."""
        if not self.turn.acquire(timeout=LATER_SECONDS):
            return ""  # whoever writes looks, too
        try:
            return self._files_lost()
        finally:
            self.turn.release()

    def _files_lost(self) -> str:
        present = _files(self.path)
        for (here, size), (opened, least), lost in zip(present, self._files, (REPLACED, LOG_LOST), strict=True):
            if here != opened:
                return lost
            if size < least:
                return CUT
        return "" if self._removed or self._newest_event() >= self._newest else CUT

    def _note_sizes(self, *, least: bool = False) -> None:
        """Note how large the files are, *least* where they cannot have shrunk: only a vacuum makes them smaller."""
        present = zip(self._files, _files(self.path), strict=True)
        self._files = tuple((opened, max(size, before * least)) for (opened, before), (_, size) in present)

    def note_present(self) -> None:
        """Count from what is there, once it is reported what is not."""
        self.known_events.note(self._newest, self._events)

    def has_own_log(self) -> bool:
        """Return whether the log at its path is the one that was opened: of no use beside another database."""
        return _files(self.path)[1][0] == self._files[1][0]

    def copy(self, write: Callable[[apsw.Connection], T], *, rescue: bool = False) -> T:
        """Let *write* copy all that is committed; a *rescue* reads files that are no longer in the folder."""
        self.flush()
        if rescue:
            with self.exclusive() as connection:
                return write(connection)
        with closing(self._open_for_reading()) as connection:
            return write(connection)

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes of the file, read by SQLite: to open and close it besides would drop its locks."""
        file = apsw.VFSFile("", str(self.path), [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
        try:
            size = file.xFileSize()
            for at in range(0, size, PIECE):
                yield file.xRead(min(PIECE, size - at), at)
        finally:
            file.xClose()

    def close(self, *, checkpoint: bool = True) -> None:
        """Finish what is being written, and close all connections; without a checkpoint the files stay as they are."""
        with self.turn:
            if self._closed.is_set():
                return
            self._commit()
            if not checkpoint:
                self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self._closed.set()
        self._wake.set()
        with self._committed:
            self._committed.notify_all()
        until = time.monotonic() + CLOSE_SECONDS
        slots = [self._read_slots.acquire(timeout=max(0.0, until - time.monotonic())) for _ in range(READERS)]
        if taken := sum(slots):  # nobody reads any more; who waits is told that it is closed
            self._read_slots.release(taken)
        with self.turn:
            self._close_pool()
            self.connection.close()
            self.known_events.close()

    def _close_pool(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._pool.get_nowait().close()

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise self._closed_error()

    def _closed_error(self) -> StoreError:
        return StoreError(f"{self.path} is closed", hint="the worker is stopping; try again")

    def _connection_in_use(self) -> apsw.Connection | None:
        return getattr(self._used, "connection", None)

    # -- commits, by whoever holds the turn ---------------------------------------------------------------------
    def _write_loop(self) -> None:
        while True:
            self._wake.wait(LATER_SECONDS)
            self._wake.clear()
            with self.turn:
                if self._closed.is_set():
                    self._has_ended = True
                    while self._waiting:  # hooks may still add to it
                        self._waiting.popleft().done.set_exception(self._closed_error())
                    return
                self._commit()

    def _commit(self) -> None:
        """Commit all that waits; it stays in sight until it is written, for `flush` must not miss it."""
        waiting = tuple(self._waiting)
        if not waiting or self._closed.is_set():
            return
        before, self._used.connection = self._connection_in_use(), self.connection
        try:
            self._write_all(waiting)
        finally:
            self._used.connection = before
            for _ in waiting:
                self._waiting.popleft()

    def _write_all(self, changes: Sequence[_Change]) -> None:
        """Write *changes* in one transaction; one that fails is undone alone, and reported to its own caller."""
        results: list[tuple[_Change, object]] = []
        events = self._events
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            for change in changes:
                try:
                    results.append((change, self._in_savepoint(change.work)))
                except Exception as exc:
                    if not self.connection.in_transaction:  # a full disk may take the whole of it back
                        raise
                    self._fail(change, exc)  # whatever it is, it belongs to the caller, not to the writer
            if why := self._files_lost():
                raise StoreError(f"{self.path} {why}", hint="try again")  # noqa: TRY301 - it undoes the transaction
            newest, known = self._newest_event(), self.known_events
            known.note(min(newest, known.number), min(self._events, known.count))  # what was deleted is not lost
            self.connection.execute("COMMIT")
            self._newest, self._removed = newest, False
            self.note_present()
            self._note_sizes(least=True)
        except Exception as exc:  # noqa: BLE001 - a writer that died would leave everybody waiting
            with suppress(apsw.Error):
                self.connection.execute("ROLLBACK")
            self._events, self._removed = events, False
            left = [change for change in changes if not change.done.done()]
            if len(left) > 1 and not isinstance(exc, apsw.BusyError):
                for change in left:  # one of them may be more than a full disk takes
                    self._write_all([change])
                return
            self.trouble["write"] = f"the last write to {self.path} failed: {exc}"
            for change in left:
                self._fail(change, exc)
            return
        self.trouble.pop("write", None)
        for change, result in results:
            change.done.set_result(result)
            if not change.awaited:
                self.trouble.pop("later", None)
        if results:
            with self._committed:
                self.commits += 1
                self._committed.notify_all()

    def _newest_event(self) -> int:
        """Return the number of the newest event; of a damaged table, what is known of it."""
        with suppress(apsw.Error):
            return int(self.connection.execute("SELECT ifnull(max(number), 0) FROM events").get)
        return self.known_events.number

    def _count_events(self) -> int:
        with suppress(apsw.Error):
            return int(self.connection.execute("SELECT count(*) FROM events").get)
        return self.known_events.count

    def _note_change(self, kind: int, _database: str, table: str, _row: int) -> None:
        if table == "events":
            self._events += {apsw.SQLITE_INSERT: 1, apsw.SQLITE_DELETE: -1}.get(kind, 0)
            self._removed |= kind == apsw.SQLITE_DELETE

    def _in_savepoint(self, work: Callable[[], T]) -> T:
        """Run *work* in a savepoint. Not apsw's own: it hides why SQLite took the whole transaction back."""
        events = self._events
        self.connection.execute("SAVEPOINT work")
        try:
            result = work()
            self.connection.execute("RELEASE work")
        except Exception:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK TO work")
                self.connection.execute("RELEASE work")
                self._events = events
            raise
        return result

    def _fail(self, change: _Change, exc: Exception) -> None:
        why = in_words(exc, self.path)
        if not change.awaited:
            self.trouble["later"] = f"something could not be written to {self.path}: {why}"
        change.done.set_exception(why)


class _Change:
    """Work for the next commit, and the promise of its result."""

    def __init__(self, work: Callable[[], object], *, awaited: bool = True) -> None:
        self.work = work
        self.awaited = awaited
        self.done: Future[object] = Future()


def in_words(exc: Exception, path: Path) -> Exception:
    """Return SQLite's failure as a StoreError with a hint; any other stays what it is."""
    if not isinstance(exc, apsw.Error):
        return exc
    hint = "run `foreword doctor`"
    if isinstance(exc, (apsw.CorruptError, apsw.NotADBError)):
        hint = "run `foreword verify`: it says what is damaged, and the way out"
    if isinstance(exc, apsw.FullError):
        hint = "the disk is full: free some space; hooks keep what they can in the spool"
    error = StoreError(f"{path}: {exc}", hint=hint)
    error.__cause__ = exc
    return error


def open_connection(path: Path, flags: int) -> apsw.Connection:
    """Open a connection that waits for the others."""
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_timeout(BUSY_MS)
    return connection


class KnownEvents:
    """The number of the newest event and how many there are, in a file beside the database: what a lost one held.

    Written in place and never synced: it survives `kill -9` and a full disk, and costs microseconds.
    """

    def __init__(self, database: Path) -> None:
        self._fd, self.number, self.count = -1, 0, 0
        with suppress(OSError, ValueError):
            self._fd = os.open(database.with_name("newest-event"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.number, self.count = map(int, os.pread(self._fd, 40, 0).split())

    def note(self, number: int, count: int) -> None:
        if (number, count) != (self.number, self.count):
            self.number, self.count = number, count
            with suppress(OSError):
                os.pwrite(self._fd, b"%-20d%-20d" % (number, count), 0)

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._fd)


_File = tuple[tuple[int, int] | None, int]  # which file lies at a path, if any, and its size


def _files(path: Path) -> tuple[_File, ...]:
    """Return which files lie at the path of a database and of its write-ahead log."""
    return tuple(map(_file, (path, Path(f"{path}-wal"))))


def _file(path: Path) -> _File:
    with suppress(OSError):
        here = path.stat()
        return (here.st_dev, here.st_ino), here.st_size
    return None, 0


def _lost_cause(path: Path, backups: Path) -> str:
    """Return why events would be missing; the log of a database that is gone is kept, which SQLite would delete."""
    if path.exists() and path.stat().st_size:
        return "its write-ahead log was removed, or an older copy was put in its place"
    cause = "it was emptied" if path.exists() else "it was deleted"
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        backups.mkdir(mode=0o700, parents=True, exist_ok=True)
        replaced = backups / f"replaced-{time.strftime('%Y%m%d-%H%M%S')}-log.db"
        replaced.touch(mode=0o600)
        replaced.write_bytes(bytes(4096))  # of an empty file SQLite does not read the log
        log.rename(f"{replaced}-wal")
    return cause


def _open(path: Path, *, backups: Path) -> tuple[apsw.Connection, dict[str, str]]:
    """Open the file, created where there is none and migrated; one that cannot be worked with is left as it is."""
    left = "`foreword restore` puts the newest copy in its place; until then the file is left as it is"
    try:
        with suppress(FileNotFoundError):
            path.chmod(0o600)  # SQLite opens what may not be written for reading alone
        db = open_connection(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        try:
            log = path.with_name(f"{path.name}-wal")
            in_log = log.stat().st_size if log.exists() else 0  # a page cut short there is whole in the log
            check_version(db)  # before anything is changed
            if path.stat().st_size % int(db.pragma("page_size")) and not in_log:
                raise StoreError(f"{path} is truncated", hint=left)  # noqa: TRY301 - it closes the file, too
            path.chmod(0o600)
            db.pragma("journal_mode", "wal")
            db.pragma("synchronous", "full")  # an acknowledged event is on the disk
            migrate(db, backups=backups)
            return db, _check(db)
        except BaseException:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # its files stay as they are, -wal too
            db.close()
            raise
    except (apsw.FullError, apsw.ReadOnlyError) as exc:
        raise in_words(exc, path) from exc
    except (apsw.Error, OSError) as exc:
        raise StoreError(f"cannot open {path}: {exc}", hint=left) from exc


def _check(db: apsw.Connection) -> dict[str, str]:
    """Return what is wrong with the words index, which the rest does not need."""
    try:
        db.execute("SELECT rowid FROM words WHERE words MATCH 'a' LIMIT 1").fetchall()
    except DAMAGED as exc:
        return {"index": f"the words index cannot be read: {exc}"}
    return {}
