"""A question -> its answer, by the reader of its area, on one of a few read-only connections; who asks takes turns."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import apsw

from foreword.store.commits import told
from foreword.store.mending import connection
from foreword.store.reading import Reader
from foreword.store.turns import Turns

T = TypeVar("T")
R = TypeVar("R", bound=Reader)

READERS = 8  # connections kept open for reading; more threads than that take turns
ASIDE = 2  # more of them, for those who only look: a viewer that asks much takes none of a hook's


class Readers:
    """The read-only connections of one database, opened as they are needed."""

    def __init__(self, path: Path, *, check_open: Callable[[], None]) -> None:
        self._path, self._check_open = path, check_open
        self._turns = Turns(READERS, most_aside=ASIDE)
        self._free: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()

    def ask(self, kind: type[R], question: Callable[[R], T]) -> T:
        with self.taken() as db:
            try:
                return question(kind(db.execute, failures=(apsw.Error,)))
            except apsw.Error as exc:
                raise told(exc, self._path) from exc

    @contextmanager
    def taken(self) -> Iterator[apsw.Connection]:
        with self._turns.taken():
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
