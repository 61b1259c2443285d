"""Work that writes -> commits, many changes to each; what fails is undone alone and told to its own caller."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import apsw

from foreword.errors import StoreError
from foreword.store.finding import bound

T = TypeVar("T")

MOST_IN_A_COMMIT = 500  # bounds how long the first of a batch waits for the last
MOST_WAITING = 10_000  # changes in line; past it callers wait, which is the honest answer to a full disk
LATER_SECONDS = 1.0
BUSY_MS = 5_000  # for whoever else has the file locked


class Commits:
    """The writing side of one database, whose connection `_db` is opened by whoever this is a part of."""

    _db: apsw.Connection

    def __init__(self, path: Path) -> None:
        self._path = path
        self._trouble: dict[str, str] = {}
        self._waiting: queue.Queue[_Change | None] = queue.Queue(MOST_WAITING)
        self._later: deque[_Change] = deque()
        self._closing = threading.Lock()
        self._turn = threading.Lock()  # held by whoever uses the writing connection
        self._closed = False
        self._number = 0  # of the last commit since it was opened
        self._stirring = threading.Condition()
        self._touched = False  # whether a memory is other than at the last commit
        self._memories_of = 0  # grows with every commit that changed memories

    def _note(self, _what: int, _database: str, table: str, _row: int) -> None:
        """Told by SQLite of every row that changes: 0.4 us."""
        if table == "memories":
            self._touched = True

    def stirred(self, after: int, *, seconds: float) -> int:
        self._flush()
        with self._stirring:
            self._stirring.wait_for(lambda: self._closed or self._number != after, timeout=seconds)
            self._check_open()
            return self._number

    def _write(self, work: Callable[[], T]) -> T:
        """Do *work* in the writer's next commit, and return when that commit is on the disk."""
        change = _Change(work)
        if not self._written_at_once(change):
            self._put(change)
        return cast("T", change.done.result())

    def _written_at_once(self, change: _Change) -> bool:
        """Where nobody writes and nobody waits, the caller writes: handing it over costs two switches of threads."""
        if not self._turn.acquire(blocking=False):
            return False
        try:
            self._check_open()
            if not self._waiting.empty():
                return False
            self._commit([change])
            return True
        finally:
            self._turn.release()

    def _write_later(self, work: Callable[[], object]) -> None:
        """Do *work* with the next commit, or within a second: nobody waits for it, so it takes nobody's time."""
        self._check_open()
        if len(self._later) < MOST_WAITING:
            self._later.append(_Change(work, awaited=False))
        else:
            self._trouble["notes"] = f"{self._path} takes nothing: more than {MOST_WAITING:,} notes were let go"

    def _flush(self) -> None:
        """Write what was left for later, before somebody asks for it; a store that takes nothing lets nobody wait."""
        if self._later and "write" not in self._trouble:
            with self._turn:
                if "write" not in self._trouble:  # of many who came at once, one waits for a store that is locked
                    self._commit([])

    def _catch_up(self) -> None:
        if not self._later:
            return
        with self._turn:
            if "write" in self._trouble:  # it is only tried: others would stand in line behind who waits for a lock
                self._db.set_busy_timeout(0)
            try:
                self._commit([])
            finally:
                self._db.set_busy_timeout(BUSY_MS)

    def _let_go(self) -> None:
        """Write what was left for later, or give it up: what is forgotten now must not be written behind it."""
        with self._turn:
            self._commit([])
            if self._later and "write" in self._trouble:
                self._trouble["notes"] = f"{self._path} took nothing: {len(self._later):,} notes were let go"
                self._later.clear()

    def _put(self, change: _Change) -> None:
        with self._closing:  # nothing may stand in line behind the end
            self._check_open()
            self._waiting.put(change)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self._path} is closed", hint="the worker is leaving; ask again")

    def _write_loop(self) -> None:
        open_for_more = True
        while open_for_more:
            try:
                batch = [self._waiting.get(timeout=LATER_SECONDS)]
            except queue.Empty:
                self._catch_up()
                continue
            while len(batch) < MOST_IN_A_COMMIT and not self._waiting.empty():
                batch.append(self._waiting.get())
            open_for_more = None not in batch
            with self._turn:
                self._commit([change for change in batch if change is not None])

    def _commit(self, changes: Sequence[_Change]) -> None:
        """All *changes* in one transaction, and what was left for later, which waits for the next where that fails."""
        if "write" in self._trouble and changes:  # what somebody waits for is not held up by the rest
            if not self._commit_all(changes):
                return
            changes = ()
        later = tuple(self._later)  # they stay in sight until they are written: `_flush` must not miss them
        if self._commit_all([*later, *changes]) and later:
            self._trouble.pop("notes", None)
        for _ in later:
            self._later.popleft()
        self._later.extendleft(change for change in reversed(later) if not change.done.done())

    def _commit_all(self, changes: Sequence[_Change]) -> bool:
        """Whether there was a commit; one change that fails is undone alone and told to its own caller."""
        if not changes:
            return True
        results: list[tuple[_Change, object]] = []
        indexed = "index" not in self._trouble
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for change in changes:
                try:
                    result = self._undoable(change.work)
                except Exception as exc:
                    if not self._db.in_transaction:  # a full disk may take the whole of it back
                        raise
                    self._fail(change, exc)  # whatever it is, it belongs to the caller, not to the loop
                else:
                    results.append((change, result))
            self._db.execute("COMMIT")
        except Exception as exc:  # noqa: BLE001 - a writer that died would leave everybody waiting
            with suppress(apsw.Error):
                self._db.execute("ROLLBACK")
            if indexed and "index" in self._trouble:
                return self._commit_all([change for change in changes if not change.done.done()])
            self._trouble["write"] = f"the last write to {self._path} failed: {exc}"
            for change in changes:
                if change.awaited and not change.done.done():
                    self._fail(change, exc)
            return False
        self._trouble.pop("write", None)
        self._memories_of += self._touched
        self._touched = False
        for change, result in results:
            change.done.set_result(result)
        if results:
            self._stir()
        return True

    def _stir(self) -> None:
        """Wake those who wait for news: microseconds, once a commit, which waits for the disk."""
        with self._stirring:
            self._number += 1
            self._stirring.notify_all()

    def _undoable(self, work: Callable[[], T]) -> T:
        """Do *work* in a savepoint. Not apsw's own: it hides why SQLite took the whole transaction back."""
        self._db.execute("SAVEPOINT work")
        try:
            result = work()
            self._db.execute("RELEASE work")
        except Exception:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK TO work")
                self._db.execute("RELEASE work")
            raise
        return result

    def _fail(self, change: _Change, exc: Exception) -> None:
        why = told(exc, self._path)
        if not change.awaited:
            self._trouble["later"] = f"something could not be written to {self._path}: {why}"
        change.done.set_exception(why)

    def _many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._db.executemany(sql, map(bound, rows))


class _Change:
    """Work for the writer, and the promise of its result."""

    def __init__(self, work: Callable[[], object], *, awaited: bool = True) -> None:
        self.work = work
        self.awaited = awaited
        self.done: Future[object] = Future()


def told(exc: Exception, path: Path) -> Exception:
    """SQLite's failures in our words; any other stays what it is."""
    if not isinstance(exc, apsw.Error):
        return exc
    hint = "run `foreword doctor`"
    if isinstance(exc, apsw.FullError):
        hint = "the disk is full: free some space; hooks keep what they can in the spool"
    elif "no such table" in str(exc):
        hint = "run `foreword index`"
    told = StoreError(f"{path}: {exc}", hint=hint)
    told.__cause__ = exc
    return told
