"""The Store on SQLite: one connection writes, in one thread, many changes to a commit; readers are read-only."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from foreword.amendments import Amendment, Logged, Undone
from foreword.errors import StoreError
from foreword.store import mending
from foreword.store.asking import Asking
from foreword.store.commits import told
from foreword.store.judged import JudgedWriter, Verdict
from foreword.store.log import LogWriter
from foreword.store.mending import MENDED, WAYS_OUT
from foreword.store.readers import LOG, PRUNING, REGISTRY, TALLIES
from foreword.store.registry import Held, Known, Moved, RegistryWriter
from foreword.store.tombstones import Tombstones
from foreword.types import (
    EMPTY,
    Change,
    Event,
    Injection,
    Link,
    Memory,
    Project,
    Session,
    Vector,
)

if TYPE_CHECKING:
    from foreword.retention import Limits
    from foreword.store.forgetting import Forgetter
    from foreword.store.ledger import Spending
    from foreword.store.pruning import Batch, Plan
    from foreword.store.scrub import Cleans, Scrubbed
    from foreword.store.silences import Silence

T = TypeVar("T")


class SqliteStore(Asking):
    """One SQLite file. Open it in one process only; other processes ask that one."""

    def __init__(
        self, path: Path, *, backups: Path, backups_keep: int = 5, choose: Callable[[str], str] = secrets.choice
    ) -> None:
        super().__init__(path, choose=choose)
        opened = mending.opened(path, backups=backups, keep=backups_keep)
        self._db, self._file = opened.db, opened.file
        self._trouble.update(opened.trouble)
        self._db.set_update_hook(self._note)
        self._logging = LogWriter(self._db.execute, keep=self._keep, failures=(apsw.Error,))
        self._judged = JudgedWriter(self._db.execute)
        self._tombstones = Tombstones(self._db.execute, failures=(apsw.Error,))
        self._projects = RegistryWriter(
            self._db.execute,
            keep=self._keep,
            index=self._index_words,
            owner=self._owner,
            guarded=self._guarded,
            logging=self._logging,
            failures=(apsw.Error,),
        )
        self._registry: Mapping[str, Known] | None = None  # as it was read last; every change of it lets go of this
        self._writer = threading.Thread(target=self._write_loop, name="writer", daemon=True)
        self._writer.start()

    # -- writing ------------------------------------------------------------------------------------------------
    def append(self, events: Sequence[Event]) -> tuple[bool, ...]:
        return self._write(lambda: tuple(self._append(event) for event in events))

    def keep(
        self, memories: Sequence[Memory], *, links: Sequence[Link] = (), vectors: Sequence[Vector | None] = ()
    ) -> tuple[Memory, ...]:
        return self._write(lambda: self._keep(memories, links, vectors))

    def add_vectors(self, memories: Sequence[Memory], vectors: Sequence[Vector]) -> int:
        return self._write(lambda: sum(map(self._add_vector, memories, vectors)))

    def note_changes(self, changes: Sequence[Change]) -> None:
        self._write(lambda: self._note_changes(changes))

    def settle(
        self,
        session: Session,
        *,
        upto: int = 0,
        memories: Sequence[Memory] = (),
        links: Sequence[Link] = (),
        changes: Sequence[Change] = (),
    ) -> tuple[Memory, ...]:
        return self._write(lambda: self._settle(session, upto, memories, links, changes))

    def bring(
        self,
        memories: Sequence[Memory],
        *,
        links: Sequence[Link] = (),
        changes: Sequence[Change] = (),
        session: Session | None = None,
        events: Sequence[Event] = (),
        mark: tuple[str, str] = ("", ""),
        row: tuple[str, int] = ("", 0),
        at: float = 0.0,
    ) -> tuple[Memory, ...]:
        def work() -> tuple[Memory, ...]:
            for event in events:
                self._append(event)
            whole = [memory for memory in memories if not self._tombstones.is_cut(memory)]
            kept = self._keep_linked(whole, links, row=row, at=at)
            self._note_changes(changes)
            if session:
                self._settle(session, 0, (), (), ())
                if 0 < session.newest <= session.distilled:  # numbers are each store's own
                    told = "UPDATE sessions SET distilled = newest WHERE id = ? AND events <= ?"
                    self._many(told, [(session.id, session.events)])
            if mark[0]:
                self._many("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", [(*mark, at)])
            return kept

        return self._write(work)

    def set_mark(self, name: str, text: str, *, at: float) -> None:
        self._write(lambda: self._many("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", [(name, text, at)]))

    def record(self, injection: Injection, *, at_once: bool = False) -> None:
        write = self._write if at_once else self._write_later
        write(lambda: self._record(injection))

    def note_silences(self, silences: Sequence[Silence]) -> None:
        self._write_later(lambda: self._note_silences(silences))

    def touch(self, ids: Iterable[str], *, how: str, at: float, session: str = "") -> None:
        rows = [(id, at, how, session) for id in ids]
        self._write_later(lambda: self._many("INSERT INTO access VALUES (?, ?, ?, ?)", rows))

    def spend(self, entry: Spending) -> Spending:
        return self._write(lambda: self._spend(entry))

    def judge(self, verdicts: Sequence[Verdict]) -> int:
        return self._write(lambda: self._judged.judge(verdicts))

    def tally(self, counted: Mapping[tuple[str, str, str], float]) -> None:
        from foreword.store import tallies

        self._write_later(lambda: tallies.add(self._db.execute, counted))

    def note_day(self, day: str) -> bool:
        from foreword.store import tallies

        if not self._ask_of(TALLIES, lambda reader: reader.beginning(day)):
            return False
        return self._write(lambda: tallies.note_day(self._db.execute, day, failures=(apsw.Error,)))

    # -- governing ----------------------------------------------------------------------------------------------
    def amend(self, amendments: Sequence[Amendment], *, who: str, at: float, run: str = "") -> tuple[Logged, ...]:
        return self._write(lambda: tuple(self._logging.amend(each, who=who, run=run, at=at) for each in amendments))

    def undo(self, entries: Sequence[Logged], *, who: str, at: float, run: str = "") -> Undone:
        return self._registered(lambda: self._logging.undo(entries, who=who, run=run, at=at))

    def log(
        self,
        *,
        project: str = "",
        memory: str = "",
        run: str = "",
        numbers: Sequence[int] = (),
        since: float = 0.0,
        standing: bool = False,
        limit: int = 50,
    ) -> tuple[Logged, ...]:
        asked: dict[str, Any] = {"project": project, "memory": memory, "run": run, "numbers": numbers}
        return self._ask_of(LOG, lambda reader: reader.log(**asked, since=since, standing=standing, limit=limit))

    def written(
        self, *, project: str = "", memory: str = "", since: float = 0.0, limit: int = 50
    ) -> tuple[Memory, ...]:
        asked: dict[str, Any] = {"project": project, "memory": memory, "since": since, "limit": limit}
        return self._ask_of(LOG, lambda reader: reader.written(**asked))

    def taken_back(self) -> frozenset[tuple[str, frozenset[str]]]:
        return self._ask_of(LOG, lambda reader: reader.taken_back())

    def was_forgotten(self, memories: Sequence[Memory]) -> bool:
        if not memories:
            return False
        with self._reader() as connection:
            tombstones = Tombstones(connection.execute, failures=(apsw.Error,))
            return any(tombstones.refuses(memory, brought=False) for memory in memories)

    @property
    def forgetting(self) -> Forgetter:
        from foreword.store.forgetting import Forgetter

        self._flush()
        self._nearest = None
        return Forgetter(
            path=self._path,
            write=self._registered,  # a project may go with its aliases
            let_go=self._let_go,
            reader=self._reader,
            execute=self._db.execute,
            tombstones=self._tombstones,
            logging=self._logging,
        )

    # -- projects -----------------------------------------------------------------------------------------------
    def registry(self) -> Mapping[str, Known]:
        known = self._registry
        if known is None:
            known = self._registry = self._ask_of(REGISTRY, lambda reader: reader.registry())
        return known

    def held(self) -> Mapping[str, Held]:
        return self._ask_of(REGISTRY, lambda reader: reader.held())

    def of_project(self, key: str) -> Mapping[str, int]:
        self._flush()
        return self._ask_of(REGISTRY, lambda reader: reader.of_project(key))

    def see_projects(self, projects: Sequence[Project], *, at: float) -> None:
        self._registered(lambda: self._projects.see(projects, at=at))

    def call_project(self, key: str, name: str) -> None:
        self._registered(lambda: self._projects.call(key, name))

    def alias_project(self, key: str, *, of: str, who: str, at: float) -> Logged:
        return self._registered(lambda: self._projects.alias(key, of=of, who=who, at=at))

    def merge_project(
        self, key: str, *, into: str, unite: Callable[[Memory, Memory], Memory], who: str, at: float
    ) -> Moved:
        self._flush()
        return self._registered(lambda: self._projects.merge(key, into=into, unite=unite, who=who, at=at))

    def gather_project(self, key: str, *, into: str) -> None:
        self._write(lambda: self._projects.gather(key, into=into))

    # -- keeping itself well -----------------------------------------------------------------------------------
    def index(self) -> int:
        try:
            return self._write(self._index)
        except StoreError as exc:
            self._trouble["index"] = f"the words index cannot be made anew: {exc}"
            raise

    def scrub(self, cleaner: Cleans, *, after: Sequence[object] = (), dry_run: bool = False) -> Scrubbed:
        from foreword.store import scrub

        self._flush() if dry_run else self._let_go()
        with self._reader() as connection:
            planned = scrub.plan(connection.execute, after=after, cleaner=cleaner)
        if planned.changes and not dry_run:
            self._write(lambda: scrub.apply(self._db.execute, planned))
        return planned.found

    def sweep(self) -> None:
        from foreword.store import scrub

        self.index()
        self._browsed = None  # nor is what went told by counts that may be old
        with self._turn:
            try:
                scrub.sweep(self._db)
            except apsw.Error as exc:
                raise told(exc, self._path) from exc

    def prunable(self, limits: Limits, *, now: float) -> Plan:
        self._flush()
        return self._ask_of(PRUNING, lambda reader: reader.plan(limits, now=now))

    def prune(
        self,
        plan: Plan,
        part: int,
        *,
        after: Sequence[object],
        who: str,
        now: float,
        told: Mapping[str, int] = EMPTY,
        noted: int = 0,
    ) -> Batch:
        from foreword.store import pruning

        self._check_words()
        keys, place = self._ask_of(PRUNING, lambda reader: reader.chosen(plan, part, after=after, now=now))
        if not keys:
            return pruning.Batch(0, 0, (), noted)
        told_of: dict[str, Any] = {"who": who, "now": now, "told": told, "noted": noted}
        log = self._logging
        return self._write(lambda: pruning.carry_out(self._db.execute, log, part, keys, after=place, **told_of))

    def give_back(self) -> None:
        from foreword.store import pruning

        self._flush()
        with self._turn:
            try:
                pruning.give_back(self._db.execute)
            except apsw.Error as exc:
                raise told(exc, self._path) from exc

    def problems(self) -> tuple[str, ...]:
        return tuple(f"{what}; {WAYS_OUT[about]}" for about, what in dict(self._trouble).items())

    def is_there(self) -> bool:
        """Whether the file that was opened is still the one at its path: what is written to another is lost."""
        try:
            here = self._path.stat()
        except OSError:
            return False
        return (here.st_dev, here.st_ino) == self._file

    def close(self) -> None:
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._waiting.put(None)
        self._stir()  # whoever waits for news is told that there will be none
        self._writer.join()
        with self._turn:  # somebody may be writing at once
            self._readers.close()
            self._db.close()

    def _index(self) -> int:
        count = mending.index(self._db)
        self._touched = True  # who holds which words may be another now
        for mended in MENDED:
            self._trouble.pop(mended, None)
        return count

    def _registered(self, work: Callable[[], T]) -> T:
        """Write what may change which projects there are: they are read anew afterwards."""
        try:
            return self._write(work)
        finally:
            self._registry = None
