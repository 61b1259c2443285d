"""The Store on SQLite: one connection writes, in one thread, many changes to a commit; readers are read-only."""

from __future__ import annotations

import queue
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from foreword.amendments import Amendment, Logged, Undone
from foreword.errors import DamagedIndex, StoreError
from foreword.store import mending
from foreword.store.commits import told
from foreword.store.judged import JudgedReader, JudgedWriter, Use, Verdict
from foreword.store.log import LogReader, LogWriter
from foreword.store.mending import MENDED, WAYS_OUT
from foreword.store.reading import Reader
from foreword.store.registry import Held, Known, Moved, RegistryReader, RegistryWriter
from foreword.store.tombstones import Tombstones
from foreword.store.turns import Turns
from foreword.store.writing import Writing
from foreword.types import (
    EMPTY,
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

if TYPE_CHECKING:
    from foreword.retention import Limits
    from foreword.store.browsing import BrowsingReader, Counts, Facets, Page, Wanted
    from foreword.store.forgetting import Forgetter
    from foreword.store.ledger import LedgerReader, Spending
    from foreword.store.pruning import Batch, Plan, PruningReader
    from foreword.store.scrub import Cleans, Scrubbed
    from foreword.store.seen import Seen, SeenReader
    from foreword.store.silences import Silence
    from foreword.store.statistics import Counted, StatisticsReader, Totals
    from foreword.store.tallies import Size, TallyReader
    from foreword.store.timeline import Changed, Given, TimelineReader
    from foreword.store.vectors import Nearest, VectorReader

T = TypeVar("T")
R = TypeVar("R", bound=Reader)

READERS = 8  # connections kept open for reading; more threads than that take turns
ASIDE = 2  # more of them, for those who only look: a viewer that asks much takes none of a hook's


class SqliteStore(Writing):
    """One SQLite file. Open it in one process only; other processes ask that one."""

    def __init__(
        self, path: Path, *, backups: Path, backups_keep: int = 5, choose: Callable[[str], str] = secrets.choice
    ) -> None:
        super().__init__(path, choose=choose)
        self._readers: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()
        self._reading = Turns(READERS, most_aside=ASIDE)
        self._nearest: Nearest | None = None
        self._all_have: tuple[object, ...] = ()  # the model and the `_bare` with which nothing was lacking
        opened = mending.opened(path, backups=backups, keep=backups_keep)
        self._db, self._file = opened.db, opened.file
        self._trouble.update(opened.trouble)
        self._db.set_update_hook(self._note)
        self._browsed: Counts | None = None  # what was counted for whoever looks around
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

    def proposed(self) -> tuple[Memory, ...]:
        from foreword.store.kinds import KindReader

        return self._ask_as(KindReader, lambda reader: reader.proposed())

    def of_kinds(
        self, kinds: Sequence[str], *, scopes: Sequence[str] = (), statuses: Sequence[str] = (), limit: int = 20_000
    ) -> tuple[Memory, ...]:
        from foreword.store.kinds import KindReader

        asked: dict[str, Any] = {"scopes": scopes, "statuses": statuses, "limit": limit}
        return self._ask_as(KindReader, lambda reader: reader.of_kinds(kinds, **asked))

    def taken_back(self) -> frozenset[tuple[str, frozenset[str]]]:
        return self._ask_log(lambda reader: reader.taken_back())

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
        found = self._ask(lambda reader: reader.by_id(ids))
        return tuple(memory for memory in found if memory.status != "forgotten")  # its bytes are about to go

    def by_uid(self, uids: Sequence[str]) -> tuple[Memory, ...]:
        return self._ask(lambda reader: reader.by_uid(uids))

    def page(self, *, after: int = 0, scopes: Sequence[str] = (), limit: int = 500) -> tuple[tuple[int, Memory], ...]:
        return self._ask(lambda reader: reader.page(after=after, scopes=scopes, limit=limit))

    def of_session(self, session: str, *, limit: int = 500) -> tuple[Memory, ...]:
        return self._ask_timeline(lambda reader: reader.of_session(session, limit=limit))

    def browse(self, wanted: Wanted, *, after: str = "", limit: int = 50) -> Page:
        return self._ask_browsing(wanted, lambda reader, known: reader.browse(wanted, known, after=after, limit=limit))

    def facets(self, wanted: Wanted) -> Facets:
        return self._ask_browsing(wanted, lambda reader, known: reader.facets(wanted, known))

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

    def prompts(self, session: str, *, limit: int = 20, oldest: bool = False) -> tuple[Event, ...]:
        return self._ask_seen(lambda reader: reader.prompts(session, limit=limit, oldest=oldest))

    def sessions_before(
        self, last: float, id: str = "", *, projects: Sequence[str] = (), limit: int
    ) -> tuple[Session, ...]:
        return self._ask_timeline(lambda reader: reader.sessions_before(last, id, projects=projects, limit=limit))

    def session_like(self, beginning: str) -> Session | None:
        return self._ask_timeline(lambda reader: reader.session_like(beginning))

    def sessions_with(self, ids: Sequence[str]) -> tuple[Session, ...]:
        return self._ask_timeline(lambda reader: reader.sessions_with(ids))

    def came_of(self, sessions: Sequence[str], *, kinds: Sequence[str], each: int) -> Mapping[str, tuple[Memory, ...]]:
        return self._ask_timeline(lambda reader: reader.came_of(sessions, kinds=kinds, each=each))

    def changed_in(self, sessions: Sequence[tuple[str, str]], *, each: int) -> Mapping[str, Changed]:
        return self._ask_timeline(lambda reader: reader.changed_in(sessions, each=each))

    def given_to(self, sessions: Sequence[str]) -> Mapping[str, Given]:
        self._flush()
        return self._ask_timeline(lambda reader: reader.given_to(sessions))

    def began_with(self, sessions: Sequence[str]) -> Mapping[str, Event]:
        return self._ask_timeline(lambda reader: reader.began_with(sessions))

    def events_before(self, session: str, number: int, *, limit: int) -> tuple[Event, ...]:
        return self._ask_timeline(lambda reader: reader.events_before(session, number, limit=limit))

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

    def silences(self, *, id: str = "", session: str = "", project: str = "", limit: int = 20) -> tuple[Silence, ...]:
        from foreword.store.silences import SilenceReader

        self._flush()
        asked: dict[str, Any] = {"id": id, "session": session, "project": project}
        return self._ask_as(SilenceReader, lambda reader: reader.silences(**asked, limit=limit))

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

    def use(self, *, project: str = "", memory: str = "", session: str = "", since: float = 0.0) -> Use:
        self._flush()
        asked = {"project": project, "memory": memory, "session": session}
        return self._ask_as(JudgedReader, lambda reader: reader.use(**asked, since=since))

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
        self._browsed = None  # nor is what went told by counts that may be old
        with self._turn:
            try:
                scrub.sweep(self._db)
            except apsw.Error as exc:
                raise told(exc, self._path) from exc

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
                raise told(exc, self._path) from exc

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
        self._stir()  # whoever waits for news is told that there will be none
        self._writer.join()
        with self._turn:  # somebody may be writing at once
            while not self._readers.empty():
                self._readers.get().close()
            self._db.close()

    def _index(self) -> int:
        count = mending.index(self._db)
        self._touched = True  # who holds which words may be another now
        for mended in MENDED:
            self._trouble.pop(mended, None)
        return count

    def _registered(self, work: Callable[[], T]) -> T:
        """The same for what may change which projects there are: it is read anew afterwards."""
        try:
            return self._write(work)
        finally:
            self._registry = None

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

    def _ask_browsing(self, wanted: Wanted, question: Callable[[BrowsingReader, Counts], T]) -> T:
        from foreword.store.browsing import BrowsingReader, Counts

        if "index" in self._trouble and (wanted.words or wanted.tag or wanted.file):
            raise DamagedIndex(self._trouble["index"], hint=WAYS_OUT["index"])
        known = self._browsed = Counts.at(self._memories_of, before=self._browsed)
        return self._ask_as(BrowsingReader, lambda reader: question(reader, known))

    def _ask_tallies(self, question: Callable[[TallyReader], T]) -> T:
        from foreword.store.tallies import TallyReader

        return self._ask_as(TallyReader, question)

    def _ask_timeline(self, question: Callable[[TimelineReader], T]) -> T:
        from foreword.store.timeline import TimelineReader

        return self._ask_as(TimelineReader, question)

    def _ask_as(self, kind: type[R], question: Callable[[R], T]) -> T:
        with self._reader() as connection:
            try:
                return question(kind(connection.execute, failures=(apsw.Error,)))
            except apsw.Error as exc:
                raise told(exc, self._path) from exc

    @contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        with self._reading.taken():
            self._check_open()
            try:
                connection = self._readers.get_nowait()
            except queue.Empty:
                connection = mending.connection(self._path, apsw.SQLITE_OPEN_READONLY)
            try:
                yield connection
            finally:
                self._readers.put(connection)
