"""Lend read-only connections to readers, a few at a time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import apsw

from foreword.store.commits import told
from foreword.store.mending import connection
from foreword.store.reading import Reader

T = TypeVar("T")
R = TypeVar("R", bound=Reader)

READERS = 8  # connections kept open for reading; more threads than that take turns


class Readers:
    """The read-only connections of one database, opened as they are needed."""

    def __init__(self, path: Path, *, check_open: Callable[[], None]) -> None:
        self._path, self._check_open = path, check_open
        self._slots = threading.BoundedSemaphore(READERS)
        self._own = threading.local()  # whether this thread has one: it takes no second
        self._free: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()

    def ask(self, kind: type[R], question: Callable[[R], T]) -> T:
        with self.taken() as db:
            try:
                return question(kind(db.execute, failures=(apsw.Error,)))
            except apsw.Error as exc:
                raise told(exc, self._path) from exc

    @contextmanager
    def taken(self) -> Iterator[apsw.Connection]:
        if getattr(self._own, "slot", False):
            with self._lent() as db:
                yield db
            return
        with self._slots:
            self._own.slot = True
            try:
                with self._lent() as db:
                    yield db
            finally:
                self._own.slot = False

    @contextmanager
    def _lent(self) -> Iterator[apsw.Connection]:
        self._check_open()
        try:
            db = self._free.get_nowait()
        except queue.Empty:
            db = connection(self._path, apsw.SQLITE_OPEN_READONLY)
        try:
            yield db
        finally:
            self._free.put(db)

    def close(self) -> None:
        while not self._free.empty():
            self._free.get().close()
