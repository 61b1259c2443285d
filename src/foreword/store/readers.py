"""A question -> its answer, by the reader of its area, on one of a few read-only connections; who asks takes turns."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import apsw

from foreword.store.commits import told
from foreword.store.mending import connection
from foreword.store.reading import Reader
from foreword.store.turns import Turns

if TYPE_CHECKING:
    from foreword.store.browsing import BrowsingReader
    from foreword.store.judged import JudgedReader
    from foreword.store.kinds import KindReader
    from foreword.store.ledger import LedgerReader
    from foreword.store.log import LogReader
    from foreword.store.pruning import PruningReader
    from foreword.store.registry import RegistryReader
    from foreword.store.seen import SeenReader
    from foreword.store.silences import SilenceReader
    from foreword.store.statistics import StatisticsReader
    from foreword.store.tallies import TallyReader
    from foreword.store.timeline import TimelineReader
    from foreword.store.vectors import VectorReader

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


@dataclass(frozen=True)
class Area(Generic[R]):
    """Where the reader of an area is, imported by the first who asks: a worker starts without."""

    module: str
    name: str

    def reader(self) -> type[R]:
        found: type[R] = getattr(import_module(f"foreword.store.{self.module}"), self.name)
        return found


BROWSING: Area[BrowsingReader] = Area("browsing", "BrowsingReader")
JUDGED: Area[JudgedReader] = Area("judged", "JudgedReader")
KINDS: Area[KindReader] = Area("kinds", "KindReader")
LEDGER: Area[LedgerReader] = Area("ledger", "LedgerReader")
LOG: Area[LogReader] = Area("log", "LogReader")
PRUNING: Area[PruningReader] = Area("pruning", "PruningReader")
REGISTRY: Area[RegistryReader] = Area("registry", "RegistryReader")
SEEN: Area[SeenReader] = Area("seen", "SeenReader")
SILENCES: Area[SilenceReader] = Area("silences", "SilenceReader")
STATISTICS: Area[StatisticsReader] = Area("statistics", "StatisticsReader")
TALLIES: Area[TallyReader] = Area("tallies", "TallyReader")
TIMELINE: Area[TimelineReader] = Area("timeline", "TimelineReader")
VECTORS: Area[VectorReader] = Area("vectors", "VectorReader")  # with numpy, which one without vectors never loads
