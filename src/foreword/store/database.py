"""One SQLite file: opened and checked, written by one thread with many changes to a commit, read by a pool.

Whoever reads or writes calls `query` and `execute`; inside a change both use the writing connection and see what was
not committed yet, everywhere else `query` takes a read-only connection from the pool.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import apsw

from foreword.errors import StoreError
from foreword.store.migrations import check_version, migrate
from foreword.store.sql import bound

T = TypeVar("T")
P = ParamSpec("P")

MOST_IN_A_COMMIT = 500  # bounds how long the first of a batch waits for the last
MOST_WAITING = 10_000  # changes in line; past it callers wait, which is the honest answer to a full disk
LATER_SECONDS = 1.0
BUSY_MS = 5_000  # for whoever else has the file locked
READERS = 8  # connections kept open for reading; more threads than that take turns
# What a damaged index raises; garbage where a size should be asks for more memory than there is.
DAMAGED = (apsw.SQLError, apsw.CorruptError, apsw.ConstraintError, apsw.NoMemError)
HINTS = {
    "index": "run `foreword index`",
    "write": "hooks keep what they can in the spool; free some space, or run `foreword doctor`",
    "later": "run `foreword doctor`",
}


class Database:
    """One file, opened in one process only: other processes ask that one."""

    def __init__(self, path: Path, *, backups: Path, backups_keep: int = 5) -> None:
        self.path = path
        self.failures: tuple[type[Exception], ...] = (apsw.Error, StoreError)
        self.damaged = DAMAGED
        # The connection that writes, and what is wrong, by what it is about.
        self.connection, self.trouble = _open(path, backups=backups, keep=backups_keep)
        here = path.stat()
        self._file = (here.st_dev, here.st_ino)
        self.versions: Counter[str] = Counter()  # of a table, how many commits changed it; see `changed`
        self.turn = threading.Lock()  # held by whoever uses the writing connection
        self._touched: set[str] = set()  # tables that are other than at the last commit
        self._used = threading.local()  # the connection that this thread is using
        self._waiting: queue.Queue[_Change | None] = queue.Queue(MOST_WAITING)
        self._later: deque[_Change] = deque()
        self._closing = threading.Lock()
        self._closed = False
        self._commits = 0  # since it was opened
        self._committed = threading.Condition()
        self._pool: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()
        self._read_slots = threading.BoundedSemaphore(READERS)
        self._writer = threading.Thread(target=self._write_loop, name="writer", daemon=True)
        self._writer.start()

    # -- reading ------------------------------------------------------------------------------------------------
    def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Return the rows of a statement."""
        with self.same_connection() as connection:
            return list(connection.execute(sql, bound(parameters)))

    @contextmanager
    def same_connection(self) -> Iterator[apsw.Connection]:
        """Let all queries of a block use one connection: the writing one inside a change, else one of the pool."""
        held: apsw.Connection | None = getattr(self._used, "connection", None)
        if held is not None:
            yield held
            return
        with self._read_slots:
            self.check_open()
            try:
                connection = self._pool.get_nowait()
            except queue.Empty:
                connection = open_connection(self.path, apsw.SQLITE_OPEN_READONLY)
            self._used.connection = connection
            try:
                yield connection
            except apsw.Error as exc:
                raise in_words(exc, self.path) from exc
            finally:
                self._used.connection = None
                self._pool.put(connection)

    # -- writing ------------------------------------------------------------------------------------------------
    def write(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Do *work* in the next commit, and return its result when that commit is on the disk."""
        if getattr(self._used, "connection", None) is self.connection:
            return work(*args, **named)  # part of a change that is being made
        change = _Change(partial(work, *args, **named))
        if not self._written_at_once(change):
            with self._closing:  # nothing may stand in line behind the end
                self.check_open()
                self._waiting.put(change)
        return cast("T", change.done.result())

    def write_later(self, work: Callable[P, object], *args: P.args, **named: P.kwargs) -> None:
        """Do *work* with the next commit, or within a second; where that fails it is given up, and reported."""
        self.check_open()
        self._later.append(_Change(partial(work, *args, **named), awaited=False))

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> apsw.Cursor:
        """Run a statement on the writing connection, inside a change."""
        return self.connection.execute(sql, bound(parameters))

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each of *rows*, inside a change."""
        self.connection.executemany(sql, map(bound, rows))

    def attempt(self, work: Callable[P, object], *args: P.args, **named: P.kwargs) -> str:
        """Do *work* inside a change and return ""; where it meets a damaged table, undo it alone and return why."""
        try:
            self._undoable(partial(work, *args, **named))
        except DAMAGED as exc:
            if not self.connection.in_transaction:
                raise  # the whole of it is gone, and is tried again
            return str(exc)
        return ""

    def flush(self) -> None:
        """Write what was left for later, before somebody asks for it; a store that takes nothing lets nobody wait."""
        if getattr(self._used, "connection", None) is not None:
            return  # inside a change or a read, which began with it
        if self._later and "write" not in self.trouble:
            with self.turn:
                if "write" not in self.trouble:  # of many who came at once, one waits for a store that is locked
                    self._commit([])

    @contextmanager
    def exclusive(self) -> Iterator[apsw.Connection]:
        """Hold the writing connection outside of any transaction; nobody can write meanwhile."""
        self.flush()
        with self.turn:
            try:
                yield self.connection
            except apsw.Error as exc:
                raise in_words(exc, self.path) from exc

    def wait_for_commit(self, after: int, *, seconds: float) -> int:
        """Wait for a commit after number *after*, at most so long, and return the number of the last one."""
        self.flush()
        with self._committed:
            self._committed.wait_for(lambda: self._closed or self._commits != after, timeout=seconds)
            self.check_open()
            return self._commits

    # -- the file -----------------------------------------------------------------------------------------------
    def problems(self) -> tuple[str, ...]:
        """Return what is wrong, in sentences that tell the way out."""
        return tuple(f"{what}; {HINTS[about]}" for about, what in dict(self.trouble).items())

    def is_current_file(self) -> bool:
        """Return whether the file that was opened is still the one at its path: what is written to another is lost."""
        try:
            here = self.path.stat()
        except OSError:
            return False
        return (here.st_dev, here.st_ino) == self._file

    def check_open(self) -> None:
        """Raise StoreError where it was closed."""
        if self._closed:
            raise StoreError(f"{self.path} is closed", hint="the worker is leaving; ask again")

    def close(self) -> None:
        """Finish what is being written, and close all connections."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._waiting.put(None)
        self._notify()  # whoever waits for news is told that there will be none
        self._writer.join()
        with self.turn:  # somebody may be writing at once
            while not self._pool.empty():
                self._pool.get().close()
            self.connection.close()

    # -- the writer ---------------------------------------------------------------------------------------------
    def changed(self, table: str) -> None:
        """Count the next commit as one that changed *table*."""
        self._touched.add(table)

    def _written_at_once(self, change: _Change) -> bool:
        """Let the caller write where nobody writes and nobody waits: handing over costs two switches of threads."""
        if not self.turn.acquire(blocking=False):
            return False
        try:
            self.check_open()
            if not self._waiting.empty():
                return False
            self._commit([change])
            return True
        finally:
            self.turn.release()

    def _write_loop(self) -> None:
        open_for_more = True
        while open_for_more:
            try:
                batch = [self._waiting.get(timeout=LATER_SECONDS)]
            except queue.Empty:
                with self.turn:
                    self._commit([])
                continue
            while len(batch) < MOST_IN_A_COMMIT and not self._waiting.empty():
                batch.append(self._waiting.get())
            open_for_more = None not in batch
            with self.turn:
                self._commit([change for change in batch if change is not None])

    def _commit(self, changes: Sequence[_Change]) -> None:
        """Commit *changes* and what was left for later."""
        later = tuple(self._later)  # they stay in sight until they are written: `flush` must not miss them
        self._commit_all([*later, *changes])
        if later and not any(each.done.exception() for each in later):
            self.trouble.pop("later", None)
        for _ in later:
            self._later.popleft()

    def _commit_all(self, changes: Sequence[_Change]) -> bool:
        """Return whether there was a commit; a change that fails is undone alone and reported to its own caller."""
        if not changes:
            return True
        results: list[tuple[_Change, object]] = []
        indexed = "index" not in self.trouble
        before, self._used.connection = getattr(self._used, "connection", None), self.connection
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            for change in changes:
                try:
                    result = self._undoable(change.work)
                except Exception as exc:
                    if not self.connection.in_transaction:  # a full disk may take the whole of it back
                        raise
                    self._fail(change, exc)  # whatever it is, it belongs to the caller, not to the loop
                else:
                    results.append((change, result))
            self.connection.execute("COMMIT")
        except Exception as exc:  # noqa: BLE001 - a writer that died would leave everybody waiting
            with suppress(apsw.Error):
                self.connection.execute("ROLLBACK")
            if indexed and "index" in self.trouble:
                return self._commit_all([change for change in changes if not change.done.done()])
            self.trouble["write"] = f"the last write to {self.path} failed: {exc}"
            left = [change for change in changes if not change.done.done()]
            awaited = [change for change in left if change.awaited]
            again = len(awaited) < len(left)  # what somebody waits for is tried again without the rest
            for change in left:
                if not (again and change.awaited):
                    self._fail(change, exc)
            return again and self._commit_all(awaited)
        finally:
            self._used.connection = before
        self.trouble.pop("write", None)
        self.versions.update(self._touched)
        self._touched.clear()
        for change, result in results:
            change.done.set_result(result)
        if results:
            self._notify()
        return True

    def _notify(self) -> None:
        """Wake those who wait for news: microseconds, once a commit, which waits for the disk."""
        with self._committed:
            self._commits += 1
            self._committed.notify_all()

    def _undoable(self, work: Callable[[], T]) -> T:
        """Do *work* in a savepoint. Not apsw's own: it hides why SQLite took the whole transaction back."""
        self.connection.execute("SAVEPOINT work")
        try:
            result = work()
            self.connection.execute("RELEASE work")
        except Exception:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK TO work")
                self.connection.execute("RELEASE work")
            raise
        return result

    def _fail(self, change: _Change, exc: Exception) -> None:
        why = in_words(exc, self.path)
        if not change.awaited:
            self.trouble["later"] = f"something could not be written to {self.path}: {why}"
        change.done.set_exception(why)


class _Change:
    """Work for the writer, and the promise of its result."""

    def __init__(self, work: Callable[[], object], *, awaited: bool = True) -> None:
        self.work = work
        self.awaited = awaited
        self.done: Future[object] = Future()


def in_words(exc: Exception, path: Path) -> Exception:
    """Return SQLite's failure as a StoreError with a hint; any other stays what it is."""
    if not isinstance(exc, apsw.Error):
        return exc
    hint = "run `foreword doctor`"
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


def _open(path: Path, *, backups: Path, keep: int) -> tuple[apsw.Connection, dict[str, str]]:
    """Open the file, created where there is none and migrated; one that cannot be worked with is left as it is."""
    try:
        db = open_connection(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        try:
            _prepare(db, path, backups=backups, keep=keep)
            return db, _check(db)
        except BaseException:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # its files stay as they are, -wal too
            db.close()
            raise
    except (apsw.Error, OSError) as exc:
        raise StoreError(f"cannot open {path}: {exc}", hint="run `foreword doctor`; the file is left as it is") from exc


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


def _check(db: apsw.Connection) -> dict[str, str]:
    """Return what is wrong with the index, which the rest does not need."""
    try:
        behind = db.execute("SELECT value FROM meta WHERE key = 'index'").get
        db.execute("SELECT rowid FROM words WHERE words MATCH 'a' LIMIT 1").fetchall()
    except DAMAGED as exc:
        behind = f"the words index cannot be read: {exc}"
    return {"index": behind} if behind else {}
