"""The Store on SQLite: one connection writes, in one thread, many changes to a commit; readers are read-only."""

from __future__ import annotations

import json
import queue
import re
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import apsw

from foreword.amendments import Amendment, Logged, Undone
from foreword.errors import BadRequest, DamagedIndex, StoreError
from foreword.jsontext import dumps, storable
from foreword.store.finding import SEQUENCE_BITS, bound
from foreword.store.judged import JudgedReader, JudgedWriter, Use, Verdict
from foreword.store.log import LogReader, LogWriter
from foreword.store.migrate import Step, known_schema, migrate, steps
from foreword.store.reading import KNOWN_TABLES, Reader
from foreword.store.registry import Held, Known, Moved, RegistryReader, RegistryWriter
from foreword.store.tombstones import Tombstones
from foreword.types import (
    BASE32,
    EMPTY,
    GOING_ON,
    KINDS,
    Change,
    Event,
    Hit,
    Injection,
    Link,
    Memory,
    Project,
    Query,
    Session,
    Vector,
)
from foreword.values import fields, replace
from foreword.words import split, told_in

if TYPE_CHECKING:
    from foreword.retention import Limits
    from foreword.store.forgetting import Forgetter
    from foreword.store.ledger import LedgerReader, Spending
    from foreword.store.pruning import Batch, Plan, PruningReader
    from foreword.store.scrub import Cleans, Scrubbed
    from foreword.store.seen import Seen, SeenReader
    from foreword.store.statistics import Counted, StatisticsReader, Totals
    from foreword.store.tallies import Size, TallyReader
    from foreword.store.vectors import Nearest, VectorReader

T = TypeVar("T")
R = TypeVar("R", bound=Reader)
_Words = tuple[int, Sequence[str], Sequence[Any] | None]  # a memory's place, its texts, and its row before

MOST_IN_A_COMMIT = 500  # bounds how long the first of a batch waits for the last
MOST_WAITING = 10_000  # changes in line; past it callers wait, which is the honest answer to a full disk
READERS = 8  # connections kept open for reading; more threads than that take turns
SAME_EVENT_SECONDS = (
    10.0  # two hooks registered for one event tell it within seconds; a person repeating it takes longer
)
LATER_SECONDS = 1.0
BUSY_MS = 5_000
CODE_STEP = 4  # the migration that makes the tables of code, and fills them from the memories
MOST_DETAIL = 4_000  # characters of a detail that are looked for: the error, the reason, the fix
# What a damaged index raises; garbage where a size should be asks for more memory than there is.
DAMAGED = (apsw.SQLError, apsw.CorruptError, apsw.ConstraintError, apsw.NoMemError)
WAYS_OUT = {
    "index": "run `foreword index`",
    "tables": "run `foreword index`",
    "code": "run `foreword index`",
    "write": "hooks keep what they can in the spool; free some space, or run `foreword doctor`",
    "later": "run `foreword doctor`",
}


class SqliteStore:
    """One SQLite file. Open it in one process only; other processes ask that one."""

    def __init__(
        self, path: Path, *, backups: Path, backups_keep: int = 5, choose: Callable[[str], str] = secrets.choice
    ) -> None:
        self._path = path
        self._choose = choose  # the characters of new ids
        self._trouble: dict[str, str] = {}
        self._readers: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()
        self._reading = threading.BoundedSemaphore(READERS)
        self._waiting: queue.Queue[_Change | None] = queue.Queue(MOST_WAITING)
        self._later: deque[_Change] = deque()
        self._closing = threading.Lock()
        self._turn = threading.Lock()  # held by whoever uses the writing connection
        self._closed = False
        self._nearest: Nearest | None = None
        self._bare = 0  # grows whenever a memory is kept without a vector
        self._all_have: tuple[object, ...] = ()  # the model and the `_bare` with which nothing was lacking
        try:
            self._db = _open(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            try:
                self._prepare(backups=backups, keep=backups_keep)
                here = path.stat()
                self._file = here.st_dev, here.st_ino
            except BaseException:
                self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # its files stay as they are, -wal too
                self._db.close()
                raise
        except (apsw.Error, OSError) as exc:
            raise StoreError(
                f"cannot open {path}: {exc}", hint="run `foreword doctor`; the file is left as it is"
            ) from exc
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

        if not self._ask_tallies(lambda reader: reader.beginning(day)):
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
        return self._ask_log(lambda reader: reader.log(**asked, since=since, standing=standing, limit=limit))

    def written(
        self, *, project: str = "", memory: str = "", since: float = 0.0, limit: int = 50
    ) -> tuple[Memory, ...]:
        return self._ask_log(lambda reader: reader.written(project=project, memory=memory, since=since, limit=limit))

    def of_kinds(
        self, kinds: Sequence[str], *, scopes: Sequence[str] = (), statuses: Sequence[str] = (), limit: int = 20_000
    ) -> tuple[Memory, ...]:
        from foreword.store.kinds import KindReader

        asked: dict[str, Any] = {"scopes": scopes, "statuses": statuses, "limit": limit}
        return self._ask_as(KindReader, lambda reader: reader.of_kinds(kinds, **asked))

    def taken_back(self) -> frozenset[tuple[str, frozenset[str]]]:
        return self._ask_log(lambda reader: reader.taken_back())

    @property
    def forgetting(self) -> Forgetter:
        from foreword.store.forgetting import Forgetter

        self._flush()
        self._nearest = None
        return Forgetter(
            path=self._path,
            write=self._write,
            reader=self._reader,
            execute=self._db.execute,
            tombstones=self._tombstones,
            logging=self._logging,
        )

    # -- projects -----------------------------------------------------------------------------------------------
    def registry(self) -> Mapping[str, Known]:
        known = self._registry
        if known is None:
            known = self._registry = self._ask_registry(lambda reader: reader.registry())
        return known

    def held(self) -> Mapping[str, Held]:
        return self._ask_registry(lambda reader: reader.held())

    def of_project(self, key: str) -> Mapping[str, int]:
        self._flush()
        return self._ask_registry(lambda reader: reader.of_project(key))

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

    def gather_project(self, key: str, *, into: str, entry: int) -> None:
        self._write(lambda: self._projects.gather(key, into=into, entry=entry))

    # -- asking -------------------------------------------------------------------------------------------------
    def by_id(self, ids: Sequence[str]) -> tuple[Memory, ...]:
        return self._ask(lambda reader: reader.by_id(ids))

    def by_uid(self, uids: Sequence[str]) -> tuple[Memory, ...]:
        return self._ask(lambda reader: reader.by_uid(uids))

    def page(self, *, after: int = 0, scopes: Sequence[str] = (), limit: int = 500) -> tuple[tuple[int, Memory], ...]:
        return self._ask(lambda reader: reader.page(after=after, scopes=scopes, limit=limit))

    def of_session(self, session: str, *, limit: int = 500) -> tuple[Memory, ...]:
        return self._ask(lambda reader: reader.of_session(session, limit=limit))

    def around(self, memory: Memory, *, scope: str, limit: int) -> tuple[tuple[Memory, ...], tuple[Memory, ...]]:
        return self._ask(lambda reader: reader.around(memory, scope=scope, limit=limit))

    def by_words(self, query: Query) -> tuple[Hit, ...]:
        if "index" in self._trouble:
            raise DamagedIndex(self._trouble["index"], hint=WAYS_OUT["index"])
        try:
            return self._ask(lambda reader: reader.by_words(query))
        except DamagedIndex as exc:
            self._trouble["index"] = str(exc)
            raise

    def by_code(
        self, query: Query, votes: Mapping[str, float], *, known: Mapping[str, Memory] = EMPTY
    ) -> tuple[Hit, ...]:
        return self._ask(lambda reader: reader.by_code(query, votes, known=known))

    def by_recency(self, query: Query) -> tuple[Hit, ...]:
        return self._ask(lambda reader: reader.by_recency(query))

    def by_meaning(self, query: Query) -> tuple[Hit, ...]:
        if query.vector is None or not query.vector.data:
            return ()
        from foreword.store.vectors import Nearest  # with numpy, which a worker without vectors never loads

        nearest = self._nearest
        if nearest is None or not nearest.fits(query.vector):
            nearest = self._nearest = Nearest(query.vector, ask=self._ask_vectors)
        return nearest.hits(query)

    def without_vectors(self, model: str, *, dim: int = 0, limit: int = 100) -> tuple[Memory, ...]:
        # Asked every second: to look through all memories for nothing is done once.
        seen = (model, dim, self._bare)
        if self._all_have == seen:
            return ()
        lacking = self._ask_vectors(lambda reader: reader.lacking(model, dim=dim, limit=limit))
        if not lacking:
            self._all_have = seen
        return lacking

    def linked(self, id: str) -> tuple[Link, ...]:
        return self._ask(lambda reader: reader.linked(id))

    def changed(self, project: str, *, session: str = "", limit: int) -> tuple[Change, ...]:
        return self._ask(lambda reader: reader.changed(project, session=session, limit=limit))

    def sessions(self, project: str = "", *, limit: int = 20) -> tuple[Session, ...]:
        return self._ask(lambda reader: reader.sessions(project, limit=limit))

    def session(self, id: str) -> Session | None:
        return self._ask(lambda reader: reader.session(id))

    def sessions_of(self, host: str, *, limit: int) -> tuple[Session, ...]:
        return self._ask_seen(lambda reader: reader.sessions_of(host, limit=limit))

    def seen(self) -> tuple[Seen, ...]:
        self._flush()
        return self._ask_seen(lambda reader: reader.seen())

    def undistilled(self, *, project: str = "", limit: int = 100) -> tuple[Session, ...]:
        return self._ask(lambda reader: reader.undistilled(project=project, limit=limit))

    def events(self, session: str, *, limit: int = 1000, newest: bool = False, after: int = -1) -> tuple[Event, ...]:
        return self._ask(lambda reader: reader.events(session, limit=limit, newest=newest, after=after))

    def mark(self, name: str) -> str:
        return self._ask(lambda reader: reader.mark(name))

    def injections(
        self, *, session: str = "", project: str = "", memory: str = "", limit: int = 20, texts: bool = False
    ) -> tuple[Injection, ...]:
        self._flush()
        asked: dict[str, Any] = {"session": session, "project": project, "memory": memory}
        return self._ask(lambda reader: reader.injections(**asked, limit=limit, texts=texts))

    def injection(self, id: str) -> Injection | None:
        self._flush()
        return self._ask(lambda reader: reader.injection(id))

    def given(self, like: Injection) -> Injection | None:
        self._flush()
        return self._ask(lambda reader: reader.given(like))

    def shown(self, session: str) -> frozenset[str]:
        self._flush()
        return self._ask(lambda reader: reader.shown(session))

    def begun(self, session: str) -> float:
        self._flush()
        return self._ask(lambda reader: reader.begun(session))

    def prompted(self, session: str, *, before: float) -> bool:
        return self._ask(lambda reader: reader.prompted(session, before=before))

    def spent(self, session: str) -> Mapping[str, int]:
        self._flush()
        return self._ask(lambda reader: reader.spent(session))

    def given_in_all(self, session: str) -> tuple[int, int]:
        self._flush()
        return self._ask(lambda reader: reader.given_in_all(session))

    def unjudged(self, session: str, *, limit: int = 500) -> tuple[Injection, ...]:
        self._flush()
        return self._ask_as(JudgedReader, lambda reader: reader.unjudged(session, limit=limit))

    def overdue(self, *, since: float, before: float, limit: int = 20) -> tuple[Session, ...]:
        self._flush()
        return self._ask_as(JudgedReader, lambda reader: reader.overdue(since=since, before=before, limit=limit))

    def fetched(self, session: str, *, since: float = 0.0) -> tuple[tuple[str, float], ...]:
        self._flush()
        return self._ask_as(JudgedReader, lambda reader: reader.fetched(session, since=since))

    def use(self, *, project: str = "", memory: str = "", since: float = 0.0) -> Use:
        self._flush()
        return self._ask_as(JudgedReader, lambda reader: reader.use(project=project, memory=memory, since=since))

    def spendings(self, since: float = 0.0, limit: int = 20) -> tuple[Spending, ...]:
        return self._ask_ledger(lambda reader: reader.spendings(since=since, limit=limit))

    def spent_on_models(self, since: float) -> int:
        return self._ask_ledger(lambda reader: reader.spent_on_models(since))

    def counts(self) -> Mapping[str, int]:
        self._flush()
        return self._ask(lambda reader: reader.counts())

    def statistics(self, *, project: str, since: float, until: float, first: str, last: str) -> Counted:
        self._flush()
        asked: dict[str, Any] = {"project": project, "since": since, "until": until, "first": first, "last": last}
        return self._ask_statistics(lambda reader: reader.statistics(**asked))

    def totals(self, project: str = "") -> Totals:
        self._flush()
        return self._ask_statistics(lambda reader: reader.totals(project))

    def size(self) -> Size:
        return self._ask_tallies(lambda reader: reader.size())

    # -- keeping itself well -----------------------------------------------------------------------------------
    def index(self) -> int:
        try:
            return self._write(self._index)
        except StoreError as exc:
            self._trouble["index"] = f"the words index cannot be made anew: {exc}"
            raise

    def scrub(self, cleaner: Cleans, *, after: Sequence[object] = (), dry_run: bool = False) -> Scrubbed:
        from foreword.store import scrub

        self._flush()
        with self._reader() as connection:
            planned = scrub.plan(connection.execute, after=after, cleaner=cleaner)
        if planned.changes and not dry_run:
            self._write(lambda: scrub.apply(self._db.execute, planned))
        return planned.found

    def sweep(self) -> None:
        from foreword.store import scrub

        self.index()
        with self._turn:
            try:
                scrub.sweep(self._db)
            except apsw.Error as exc:
                raise _told(exc, self._path) from exc

    def prunable(self, limits: Limits, *, now: float) -> Plan:
        self._flush()
        return self._ask_pruning(lambda reader: reader.plan(limits, now=now))

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

        if "index" in self._trouble:
            raise DamagedIndex(self._trouble["index"], hint=WAYS_OUT["index"])
        keys, place = self._ask_pruning(lambda reader: reader.chosen(plan, part, after=after, now=now))
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
                raise _told(exc, self._path) from exc

    def problems(self) -> tuple[str, ...]:
        return tuple(f"{what}; {WAYS_OUT[about]}" for about, what in self._trouble.items())

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
        self._writer.join()
        with self._turn:  # somebody may be writing at once
            while not self._readers.empty():
                self._readers.get().close()
            self._db.close()

    # -- one writer, many changes to a commit -------------------------------------------------------------------
    def _write(self, work: Callable[[], T]) -> T:
        """Do *work* in the writer's next commit, and return when that commit is on the disk."""
        change = _Change(work)
        if not self._written_at_once(change):
            self._put(change)
        return cast("T", change.done.result())

    def _registered(self, work: Callable[[], T]) -> T:
        """The same for what may change which projects there are: it is read anew afterwards."""
        try:
            return self._write(work)
        finally:
            self._registry = None

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
        self._later.append(_Change(work, awaited=False))

    def _flush(self) -> None:
        """Write what was left for later, before somebody asks for it."""
        if self._later:
            with self._turn:
                self._commit([])

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
                self._flush()
                continue
            while len(batch) < MOST_IN_A_COMMIT and not self._waiting.empty():
                batch.append(self._waiting.get())
            open_for_more = None not in batch
            with self._turn:
                self._commit([change for change in batch if change is not None])

    def _commit(self, changes: Sequence[_Change]) -> None:
        """All *changes* in one transaction; one that fails is undone alone and told to its own caller."""
        later = tuple(self._later)  # they stay in sight until they are written: `_flush` must not miss them
        self._commit_all([*later, *changes])
        for _ in later:
            self._later.popleft()

    def _commit_all(self, changes: Sequence[_Change]) -> None:
        if not changes:
            return
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
                self._commit_all([change for change in changes if not change.done.done()])
                return
            self._trouble["write"] = f"the last write to {self._path} failed: {exc}"
            for change in changes:
                if not change.done.done():
                    self._fail(change, exc)
            return
        self._trouble.pop("write", None)
        for change, result in results:
            change.done.set_result(result)

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
        told = _told(exc, self._path)
        if not change.awaited:
            self._trouble["later"] = f"something could not be written to {self._path}: {told}"
        change.done.set_exception(told)

    # -- what is written; these run in one thread at a time, the one whose turn it is ---------------------------
    def _append(self, event: Event) -> bool:
        if self._tombstones.refuses_event(event):
            return False
        near = () if event.lasting else (event.at - SAME_EVENT_SECONDS, event.at + SAME_EVENT_SECONDS)
        told = f"SELECT 1 FROM events WHERE key = ? {'AND at BETWEEN ? AND ?' if near else ''} LIMIT 1"
        if self._db.execute(told, (event.key, *near)).fetchone():
            return False
        payload = storable(json.dumps(event.payload, ensure_ascii=False, separators=(",", ":")))
        self._db.execute(
            """INSERT INTO events (key, host, name, kind, session, project, cwd, at, payload)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (event.key, *map(storable, _who(event)), event.at, payload),
        )
        if event.session:
            self._see_session(event, number=self._db.last_insert_rowid())
        return True

    def _see_session(self, event: Event, *, number: int) -> None:
        # A context window begins with a start, a clear and a compaction; a resumed one goes on.
        # Most hosts tell a compaction by an event of its own and start nothing afterwards.
        starts = event.kind == "session_start" and event.payload.get("source") not in GOING_ON
        begins = starts or event.kind == "compaction"
        self._db.execute(
            """INSERT INTO sessions (id, host, project, cwd, started, last, ended, window, events, newest)
            VALUES (:id, :host, :project, :cwd, :at, :at, :ended, CASE WHEN :begins THEN :at ELSE 0 END, 1, :number)
            ON CONFLICT (id) DO UPDATE SET last = max(last, :at), started = min(started, :at), events = events + 1,
              newest = :number,
              ended = CASE WHEN :at >= last THEN :ended ELSE ended END,
              project = CASE WHEN project = '' THEN :project ELSE project END,
              window = CASE WHEN :begins AND :at > window THEN :at ELSE window END""",
            {
                "id": storable(event.session),
                "host": storable(event.host),
                "project": storable(event.project),
                "cwd": storable(event.cwd),
                "at": event.at,
                "ended": event.at if event.kind == "session_end" else 0.0,
                "begins": begins,
                "number": number,
            },
        )

    def _keep(
        self,
        memories: Sequence[Memory],
        links: Sequence[Link],
        vectors: Sequence[Vector | None],
        places: Iterable[int] = (),
        brought: bool = False,
    ) -> tuple[Memory, ...]:
        given, free = vectors or (None,) * len(memories), iter(places)
        tried = (self._put_one(memory, vector, free, brought) for memory, vector in zip(memories, given, strict=True))
        put = [each for each in tried if each is not None]
        self._index_words([words for _, words in put])
        kept = tuple(memory for memory, _ in put)
        self._link(links, at=kept[0].confirmed if kept else 0.0)
        return kept

    def _link(self, links: Sequence[Link], *, at: float) -> None:
        """Keep links; an end may be a uid, for what is new has no id yet that somebody could name."""
        ends = [(link.source, link.source, link.relation, link.target, link.target, at) for link in links]
        self._many(f"INSERT OR IGNORE INTO links VALUES (ifnull({BY_UID}, ?), ?, ifnull({BY_UID}, ?), ?)", ends)

    def _put_one(
        self, memory: Memory, vector: Vector | None, places: Iterator[int], brought: bool
    ) -> tuple[Memory, _Words] | None:
        memory = replace(
            memory, scope=memory.scope or f"project:{memory.project}", uid=storable(memory.uid) or secrets.token_hex(16)
        )
        if memory.kind not in KINDS:
            raise BadRequest(f"unknown kind {memory.kind!r}", hint=f"one of {', '.join(KINDS)}")
        old = self._db.execute(
            """SELECT place, id, title, body, tags, files, split, owner, functions, pinned, used, ignored
            FROM memories WHERE uid = ?""",
            (memory.uid,),
        ).fetchone()
        if old is None and self._tombstones.refuses(memory, brought=brought):
            return None
        owner, texts = self._owner(memory.scope), _indexed(memory)
        if old is None:
            memory, place = replace(memory, id=self._free_id(memory)), next(places, 0) or self._new_place(owner)
        else:
            # A memory that moves to another scope moves to that scope's range.
            place = old[0] if old[7] == owner else self._new_place(owner)
            # What was made of it is not for whoever says it again to tell.
            memory = replace(memory, id=old[1], pinned=old[9] == 1, used=old[10], ignored=old[11])
            if vector is None and tuple(old[2:7]) == texts:
                vector = self._vector_at(old[0])  # the same text means the same
            self._remove(old[0])
        self._db.execute(
            f"INSERT INTO memories ({MEMORY_COLUMNS}) VALUES ({','.join('?' * len(MEMORY_COLUMNS.split(',')))})",
            _row(memory, place=place, owner=owner, texts=texts),
        )
        self._index_code(memory, place, before=(old[0], old[5], old[8]) if old else None)
        self._put_vector(place, vector)
        return memory, (place, texts, old)

    def _remove(self, place: int) -> None:
        """Take a memory away, and what hangs on it; a broken table of vectors must not keep it from changing."""
        sql = "DELETE FROM memories WHERE place = ?"
        try:
            self._undoable(lambda: self._db.execute(sql, (place,)))
        except DAMAGED:
            if not self._db.in_transaction:
                raise
            self._db.execute("DROP TRIGGER IF EXISTS vectors_gone")
            self._db.execute(sql, (place,))

    def _index_code(self, memory: Memory, place: int, *, before: tuple[int, str, str] | None) -> None:
        """Note which files and functions a memory names; damaged tables must not cost the memory."""
        try:
            self._undoable(lambda: self._name_code(memory, place, before=before))
        except DAMAGED as exc:
            self._trouble["code"] = f"what names which code cannot be written: {exc}"
            if not self._db.in_transaction:
                raise  # the whole of it is gone, and is tried again

    def _name_code(self, memory: Memory, place: int, *, before: tuple[int, str, str] | None) -> None:
        """Put a memory's names in the place of those it had *before*: where it was, its files, its functions."""
        was, *lists = before or (0,)
        gone = [name for each in lists for name in _texts_of(each)]
        names = [*memory.files, *memory.functions]
        by_name = "(SELECT number FROM units WHERE name = ?)"
        self._many(f"DELETE FROM code WHERE unit = {by_name} AND place = ?", [(name, was) for name in gone])
        self._many("INSERT OR IGNORE INTO units (name) VALUES (?)", [(name,) for name in names])
        self._many(f"INSERT OR IGNORE INTO code VALUES ({by_name}, ?)", [(name, place) for name in names])
        # A name goes with the last memory that has it.
        unused = "NOT EXISTS (SELECT 1 FROM code WHERE unit = number)"
        self._many(f"DELETE FROM units WHERE name = ? AND {unused}", [(name,) for name in gone])

    def _guarded(self, work: Callable[[], object]) -> None:
        """Do *work* on tables that are made from others; damaged, they must not cost more than themselves."""
        try:
            self._undoable(work)
        except DAMAGED:
            if not self._db.in_transaction:
                raise

    def _vector_at(self, place: int) -> Vector | None:
        with suppress(*DAMAGED):
            row = self._db.execute("SELECT model, scale, blob FROM vectors WHERE place = ?", (place,)).fetchone()
            return Vector(*row) if row else None
        return None

    def _put_vector(self, place: int, vector: Vector | None) -> None:
        """Write a vector beside its memory; where there is none, or no table, the memory is kept all the same."""
        sql = "INSERT OR REPLACE INTO vectors (place, model, scale, blob) VALUES (?, ?, ?, ?)"
        if vector is not None:
            row = (place, vector.model, vector.scale, vector.data)
            try:
                self._undoable(lambda: self._db.execute(sql, row))
            except DAMAGED:
                if not self._db.in_transaction:
                    raise
            else:
                return
        self._bare += 1

    def _add_vector(self, memory: Memory, vector: Vector) -> bool:
        """Write the vector of a memory, unless its text has changed since it was read."""
        row = self._db.execute(
            "SELECT place, title, body, tags, files, split FROM memories WHERE id = ?", (storable(memory.id),)
        ).fetchone()
        if row is None or tuple(row[1:]) != _indexed(memory):
            return False
        self._put_vector(row[0], vector)
        return True

    def _index_words(self, changes: Sequence[_Words]) -> None:
        """Put the words of memories into the index; a damaged index must not cost the memories."""
        if "index" in self._trouble:
            self._fall_behind()
            return
        try:
            self._undoable(lambda: self._change_words(changes))
        except DAMAGED as exc:
            self._trouble["index"] = f"the words index cannot be written: {exc}"
            if not self._db.in_transaction:
                raise  # the whole of it is gone; the commit is tried again, now without the index
            self._fall_behind()

    def _change_words(self, changes: Sequence[_Words]) -> None:
        columns = "rowid, title, body, tags, files, split"
        for place, texts, old in changes:
            if old is not None:
                gone = f"INSERT INTO words (words, {columns}) VALUES ('delete', ?, ?, ?, ?, ?, ?)"
                self._db.execute(gone, (old[0], *old[2:7]))
            self._db.execute(f"INSERT INTO words ({columns}) VALUES (?, ?, ?, ?, ?, ?)", (place, *texts))
        # Here a damage can still be undone; at the end of the savepoint, FTS5 would find it too late.
        self._db.execute("INSERT INTO words (words) VALUES ('flush')")

    def _fall_behind(self) -> None:
        """Note in the database that the index lacks something, which it would not show after a restart."""
        with suppress(apsw.SQLError):  # `meta` itself may be missing, and that is told already
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('index', ?)", (self._trouble["index"],))

    def _owner(self, scope: str) -> int:
        self._db.execute("INSERT OR IGNORE INTO owners (scope) VALUES (?)", (storable(scope),))
        return int(self._db.execute("SELECT number FROM owners WHERE scope = ?", (storable(scope),)).get)

    def _new_place(self, owner: int) -> int:
        newest = self._db.execute(
            "UPDATE owners SET newest = newest + 1 WHERE number = ? RETURNING newest", (owner,)
        ).get
        return int(owner << SEQUENCE_BITS | newest)

    def _free_id(self, memory: Memory) -> str:
        taken = "SELECT 1 FROM memories WHERE id = ?"
        ours = memory.id.startswith(f"{KINDS[memory.kind]}-")
        return memory.id if ours and not self._db.execute(taken, (memory.id,)).get else self._new_id(memory.kind)

    def _new_id(self, kind: str) -> str:
        while True:
            id = f"{KINDS[kind]}-{''.join(self._choose(BASE32) for _ in range(8))}"
            if self._db.execute("SELECT 1 FROM memories WHERE id = ?", (id,)).fetchone() is None:
                return id

    def _keep_linked(
        self, memories: Sequence[Memory], links: Sequence[Link], *, row: tuple[str, int], at: float
    ) -> tuple[Memory, ...]:
        """Keep memories that may speak of others by their uids, also of those that were kept long ago."""
        memories = sorted(memories, key=lambda memory: memory.created)  # a higher place is a newer memory
        kept = self._keep(memories, (), (), places=self._places_in(row, memories, at=at), brought=True)
        self._link(links, at=at)
        told = [(each.superseded_by, each.id) for each in kept if each.superseded_by]
        self._many(f"UPDATE memories SET superseded_by = ifnull({BY_UID}, superseded_by) WHERE id = ?", told)
        return kept

    def _places_in(self, row: tuple[str, int], memories: Sequence[Memory], *, at: float) -> Sequence[int]:
        """Places below those that this row had before; it is given room for all that is to come when it begins."""
        name, left = f"places:{row[0]}", row[1]
        scopes = {memory.scope or f"project:{memory.project}" for memory in memories}
        if not row[0] or len(scopes) != 1:
            return ()
        held = self._db.execute("SELECT text FROM marks WHERE name = ?", (name,)).get
        lowest, room = map(int, held.split()) if held else (0, 0)
        if room < len(memories):
            owner, room = self._owner(scopes.pop()), len(memories) + left
            grown = "UPDATE owners SET newest = newest + ? WHERE number = ? RETURNING newest"
            lowest = (owner << SEQUENCE_BITS | int(self._db.execute(grown, (room, owner)).get)) + 1
        lowest, room = lowest - len(memories), room - len(memories)
        if left:
            self._many("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", [(name, f"{lowest} {room}", at)])
        else:
            self._many("DELETE FROM marks WHERE name = ?", [(name,)])
        return range(lowest, lowest + len(memories))

    def _settle(
        self, session: Session, upto: int, memories: Sequence[Memory], links: Sequence[Link], changes: Sequence[Change]
    ) -> tuple[Memory, ...]:
        kept = self._keep(memories, links, ())
        self._note_changes(changes)
        if self._tombstones.refuses_session(session.id, last=session.last):
            return kept
        row = fields(session)
        self._many(
            """INSERT INTO sessions (id, host, project, cwd, started, last, ended, events, newest, distilled)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0)
            ON CONFLICT (id) DO UPDATE SET started = min(started, excluded.started), last = max(last, excluded.last),
              events = max(events, excluded.events)""",
            [[row[name] for name in ("id", "host", "project", "cwd", "started", "last", "ended", "events")]],
        )
        self._many("UPDATE sessions SET distilled = max(distilled, ?) WHERE id = ?", [(upto, session.id)])
        return kept

    def _note_changes(self, changes: Sequence[Change]) -> None:
        self._many(
            """INSERT INTO changes (project, file, function, what, signature, line, end_line, session, at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project, session, file, function) DO UPDATE SET
            what = excluded.what, signature = excluded.signature, line = excluded.line, end_line = excluded.end_line,
            at = excluded.at WHERE excluded.at >= changes.at""",
            [tuple(fields(change).values()) for change in changes if not self._tombstones.refuses_change(change)],
        )

    def _record(self, injection: Injection) -> None:
        # A worker that was late may answer a hook which has long answered by itself: what the hook says was seen.
        known = self._db.execute("SELECT away FROM injections WHERE id = ?", (injection.id,)).get
        if known and not injection.away:
            return
        said = self._judged.verdicts(injection.id)
        self._many("DELETE FROM injection_items WHERE injection = ?", [(injection.id,)])
        row = (
            *(injection.id, injection.moment, injection.session, injection.project, injection.host, injection.at),
            *(injection.tokens, injection.budget, injection.build_ms),
            *(dumps(injection.layers), dumps(injection.skipped), injection.source, injection.form),
            *(dumps(injection.terms), dumps(injection.files), injection.away),
        )
        self._many(
            """INSERT OR REPLACE INTO injections (id, moment, session, project, host, at, tokens, budget, build_ms,
            layers, skipped, source, form, terms, files, away)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            [row],
        )
        texts = "INSERT OR REPLACE INTO injection_texts VALUES (?, ?)"
        try:  # the words are for people; that a memory was given must be known
            self._undoable(lambda: self._many(texts, [(injection.id, injection.text)]))
        except DAMAGED:
            if not self._db.in_transaction:
                raise
        self._many(
            """INSERT OR REPLACE INTO injection_items (injection, number, memory, layer, score, tokens, why)
            VALUES (?, ?, ?, ?, ?, ?, ?)""",
            [
                (injection.id, number, item.memory, item.layer, item.score, item.tokens, dumps(item.why))
                for number, item in enumerate(injection.items)
            ],
        )
        self._judged.judge(said)

    def _spend(self, entry: Spending) -> Spending:
        from foreword.store.ledger import PUT

        self._db.execute(PUT, bound(tuple(fields(entry).values())))
        return entry if entry.number else replace(entry, number=self._db.last_insert_rowid())

    def _index(self) -> int:
        """Missing tables are made anew, empty; then the index of words and that of code, from the memories."""
        for sql in _statements(steps()):
            try:
                self._db.execute(sql)
            except apsw.SQLError as exc:
                if "duplicate column" not in str(exc):
                    raise
        self._adopt()
        self._split_anew()
        with suppress(apsw.SQLError):  # an index of an unknown format cannot even be dropped
            self._db.execute("UPDATE words_config SET v = 4 WHERE k = 'version'")
        words = resources.files("foreword.store").joinpath("words.sql").read_text(encoding="utf-8")
        code = next(step.sql for step in steps() if step.number == CODE_STEP)
        for sql in (words, "DROP TABLE IF EXISTS code; DROP TABLE IF EXISTS units;", code):
            for _ in self._db.execute(sql):
                pass
        self._db.execute("DELETE FROM meta WHERE key = 'index'")
        for mended in ("tables", "index", "code", "later"):  # what was left for later may have met a missing table
            self._trouble.pop(mended, None)
        return int(self._db.execute("SELECT count(*) FROM memories").get)

    def _split_anew(self) -> None:
        """Details are looked for too, also those that were kept before they were."""
        rows: list[Any] = self._db.execute(
            "SELECT place, title, body, tags, files, functions, detail FROM memories WHERE detail <> '{}'"
        ).fetchall()
        for place, title, body, tags, files, functions, detail in rows:
            with suppress(ValueError):
                told = Memory("note", title, body, tags=_texts_of(tags), files=_texts_of(files))
                named = replace(told, functions=_texts_of(functions), detail=json.loads(detail))
                self._db.execute("UPDATE memories SET split = ? WHERE place = ?", (_indexed(named)[4], place))

    def _adopt(self) -> None:
        """Memories whose owner was lost keep its number, so that no other scope is given it, and them with it."""
        orphans = """SELECT owner, {scope}, max(place & {low}) FROM memories
            WHERE owner NOT IN (SELECT number FROM owners) GROUP BY owner ORDER BY count(*) DESC"""
        one_project = "CASE WHEN count(DISTINCT project) = 1 AND project <> '' THEN 'project:' || project END"
        for scope in (f"ifnull({one_project}, 'lost:' || owner)", "'lost:' || owner"):
            orphaned = orphans.format(scope=scope, low=(1 << SEQUENCE_BITS) - 1)
            self._db.execute(f"INSERT OR IGNORE INTO owners (number, scope, newest) {orphaned}")

    def _many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._db.executemany(sql, map(bound, rows))

    # -- reading --------------------------------------------------------------------------------------------------
    def _ask(self, question: Callable[[Reader], T]) -> T:
        return self._ask_as(Reader, question)

    def _ask_vectors(self, question: Callable[[VectorReader], T]) -> T:
        from foreword.store.vectors import VectorReader

        return self._ask_as(VectorReader, question)

    def _ask_ledger(self, question: Callable[[LedgerReader], T]) -> T:
        from foreword.store.ledger import LedgerReader

        return self._ask_as(LedgerReader, question)

    def _ask_log(self, question: Callable[[LogReader], T]) -> T:
        return self._ask_as(LogReader, question)

    def _ask_registry(self, question: Callable[[RegistryReader], T]) -> T:
        return self._ask_as(RegistryReader, question)

    def _ask_seen(self, question: Callable[[SeenReader], T]) -> T:
        from foreword.store.seen import SeenReader

        return self._ask_as(SeenReader, question)

    def _ask_statistics(self, question: Callable[[StatisticsReader], T]) -> T:
        from foreword.store.statistics import StatisticsReader

        return self._ask_as(StatisticsReader, question)

    def _ask_pruning(self, question: Callable[[PruningReader], T]) -> T:
        from foreword.store.pruning import PruningReader

        return self._ask_as(PruningReader, question)

    def _ask_tallies(self, question: Callable[[TallyReader], T]) -> T:
        from foreword.store.tallies import TallyReader

        return self._ask_as(TallyReader, question)

    def _ask_as(self, kind: type[R], question: Callable[[R], T]) -> T:
        with self._reader() as connection:
            try:
                return question(kind(connection.execute, failures=(apsw.Error,)))
            except apsw.Error as exc:
                raise _told(exc, self._path) from exc

    @contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        with self._reading:
            self._check_open()
            try:
                connection = self._readers.get_nowait()
            except queue.Empty:
                connection = _open(self._path, apsw.SQLITE_OPEN_READONLY)
            try:
                yield connection
            finally:
                self._readers.put(connection)

    def _prepare(self, *, backups: Path, keep: int) -> None:
        log = self._path.with_name(f"{self._path.name}-wal")
        in_log = log.stat().st_size if log.exists() else 0  # a page cut short there is whole in the log
        known_schema(self._db, todo=steps())  # before anything is changed
        if self._path.stat().st_size % int(self._db.pragma("page_size")) and not in_log:
            raise StoreError(f"{self._path} was cut short", hint="run `foreword doctor`; the file is left as it is")
        self._path.chmod(0o600)
        self._db.pragma("journal_mode", "wal")
        self._db.pragma("synchronous", "full")  # an acknowledged event is on the disk
        migrate(self._db, todo=steps(), backups=backups, keep=keep)
        self._check()

    def _check(self) -> None:
        """Make the index of a new store, and note what an old one lacks; the rest goes on working."""
        present = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        missing = [table for table in KNOWN_TABLES if table not in present]
        if missing:
            self._trouble["tables"] = f"missing in {self._path}: {', '.join(missing)}"
        if "words" not in present and not missing and not self._db.execute("SELECT 1 FROM memories LIMIT 1").fetchone():
            with self._db:
                self._index()
            return
        try:
            behind = "meta" in present and self._db.execute("SELECT value FROM meta WHERE key = 'index'").get
            if behind:
                self._trouble["index"] = behind
            self._db.execute("SELECT rowid FROM words WHERE words MATCH 'a' LIMIT 1").fetchall()
        except DAMAGED as exc:
            self._trouble["index"] = f"the words index cannot be read: {exc}"


class _Change:
    """Work for the writer, and the promise of its result."""

    def __init__(self, work: Callable[[], object], *, awaited: bool = True) -> None:
        self.work = work
        self.awaited = awaited
        self.done: Future[object] = Future()


BY_UID = "(SELECT id FROM memories WHERE uid = ?)"
MEMORY_COLUMNS = """place, id, uid, owner, kind, title, body, tags, files, functions, split, project, session, source,
 trust, confidence, seen, created, confirmed, status, superseded_by, pinned, used, ignored, detail"""


def _row(memory: Memory, *, place: int, owner: int, texts: Sequence[str]) -> tuple[Any, ...]:
    title, body, tags, files, words = texts
    return (
        *(
            place,
            memory.id,
            storable(memory.uid),
            owner,
            memory.kind,
            title,
            body,
            tags,
            files,
            _list(memory.functions),
        ),
        *(words, storable(memory.project), storable(memory.session), storable(memory.source), memory.trust),
        *(memory.confidence, memory.seen, memory.created, memory.confirmed, memory.status, memory.superseded_by),
        *(int(memory.pinned), memory.used, memory.ignored),
        storable(json.dumps(dict(memory.detail), ensure_ascii=False, separators=(",", ":"))),
    )


def _indexed(memory: Memory) -> tuple[str, str, str, str, str]:
    """The texts that the words index covers, in its order."""
    title, body = storable(memory.title), storable(memory.body)
    tags, files = _list(memory.tags), _list(memory.files)
    # A function's whole name is a word too, not only its parts; and why something was decided is looked for as well.
    named = " ".join((*memory.functions, told_in(memory.detail)[:MOST_DETAIL])).strip()
    return title, body, tags, files, storable(f"{named} {split(f'{title} {body} {tags} {files} {named}')}".strip())


def _texts_of(stored: str) -> tuple[str, ...]:
    """The texts of a stored list; what some other hand wrote as no list has none."""
    try:
        told = json.loads(stored)
    except ValueError:
        return ()
    return tuple(each for each in told if isinstance(each, str)) if isinstance(told, list) else ()


def _list(texts: Sequence[str]) -> str:
    return storable(json.dumps(list(texts), ensure_ascii=False, separators=(",", ":")))


def _who(event: Event) -> tuple[str, ...]:
    return event.host, event.name, event.kind, event.session, event.project, event.cwd


def _statements(todo: Sequence[Step]) -> Iterator[str]:
    """Every CREATE of the migrations, made harmless where the thing exists, and every new column."""
    for step in todo:
        statement = ""
        for part in re.sub(r"--[^\n]*", "", step.sql).split(";"):
            statement += f"{part};"
            if apsw.complete(statement):  # a trigger holds statements of its own
                if "ADD COLUMN" in statement:
                    yield statement
                elif statement.strip().startswith("CREATE"):
                    yield re.sub(
                        r"^\s*CREATE (TABLE|(?:UNIQUE )?INDEX|TRIGGER)(?! IF)", r"CREATE \1 IF NOT EXISTS", statement
                    )
                statement = ""


def _told(exc: Exception, path: Path) -> Exception:
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


def _open(path: Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_timeout(BUSY_MS)
    return connection
