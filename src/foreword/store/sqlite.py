"""The Store on SQLite: one connection writes, in one thread, many changes to a commit; readers are read-only."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import apsw

from foreword.audit import AuditEntry, MemoryChange, UndoResult
from foreword.errors import DamagedIndex, StoreError
from foreword.models import EMPTY, Change, Event, Hit, Injection, Link, Memory, Project, Query, Session, Vector
from foreword.store import mending
from foreword.store.browsing import BrowsingReader
from foreword.store.commits import told
from foreword.store.judged import JudgedReader, JudgedWriter, Verdict
from foreword.store.kinds import KindReader
from foreword.store.ledger import LedgerReader
from foreword.store.log import LogReader, LogWriter
from foreword.store.mending import MENDED, WAYS_OUT
from foreword.store.readers import R, Readers
from foreword.store.reading import Reader
from foreword.store.registry import Known, Moved, RegistryReader, RegistryWriter
from foreword.store.seen import SeenReader
from foreword.store.silences import SilenceReader
from foreword.store.statistics import StatisticsReader
from foreword.store.tallies import TallyReader
from foreword.store.timeline import TimelineReader
from foreword.store.tombstones import Tombstones
from foreword.store.writing import Writing

if TYPE_CHECKING:
    from foreword.store.forgetting import Forgetter
    from foreword.store.ledger import Spending
    from foreword.store.pruning import Batch, Plan
    from foreword.store.retention import Limits
    from foreword.store.scrub import Cleans, Scrubbed
    from foreword.store.silences import Silence
    from foreword.store.vectors import Nearest

T = TypeVar("T")
P = ParamSpec("P")


def _asks(
    kind: type[R], method: Callable[Concatenate[R, P], T], *, flush: bool = False
) -> Callable[Concatenate[Store, P], T]:
    """Make a reader's *method* one of the store; with *flush*, what was left for later is written before."""

    def ask(self: Store, /, *given: P.args, **named: P.kwargs) -> T:
        if flush:
            self._flush()
        return self._readers.ask(kind, lambda reader: method(reader, *given, **named))

    return ask


class Store(Writing):
    """One SQLite file. Open it in one process only; other processes ask that one."""

    def __init__(
        self, path: Path, *, backups: Path, backups_keep: int = 5, choose: Callable[[str], str] = secrets.choice
    ) -> None:
        super().__init__(path, choose=choose)
        self._readers = Readers(path, check_open=self._check_open)
        self._reader = self._readers.taken
        self._nearest: Nearest | None = None
        self._all_have: tuple[object, ...] = ()  # the model and the `_bare` with which nothing was lacking
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
        """Keep *events*, and say of each whether it is new; the same event told twice is one event."""
        return self._write(lambda: tuple(self._append(event) for event in events))

    def keep(
        self, memories: Sequence[Memory], *, links: Sequence[Link] = (), vectors: Sequence[Vector | None] = ()
    ) -> tuple[Memory, ...]:
        """Keep *memories*, new or changed (by uid), with the vectors of their texts, and return them with their ids."""
        return self._write(lambda: self._keep(memories, links, vectors))

    def add_vectors(self, memories: Sequence[Memory], vectors: Sequence[Vector]) -> int:
        """Give vectors to memories that were kept without, unless a text has changed since; how many were given."""
        return self._write(lambda: sum(map(self._add_vector, memories, vectors)))

    def note_changes(self, changes: Sequence[Change]) -> None:
        """Keep which functions were new, modified or deleted; of one function a session has one change, the last."""
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
        """Keep what a session has come to, and that it tells of every event up to number *upto*, all or nothing.

        A session that no event told of becomes known; ends of links may be uids of these memories.
        """
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
        """Keep what an import read, and under its name how far it came, all or nothing; oldest first are returned.

        Ids that are free are kept; ends of links and `superseded_by` may be uids of anything known by then. A *row*
        that is read from its newest end has a name, and so many older ones to come: they find their place below.
        """

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
        """Note how far something has come that may be interrupted."""
        self._write(lambda: self._many("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", [(name, text, at)]))

    def record(self, injection: Injection, *, at_once: bool = False) -> None:
        """Keep what was injected, a moment later unless *at_once*; of an id, what a hook gave itself is last."""
        write = self._write if at_once else self._write_later
        write(lambda: self._record(injection))

    def note_silences(self, silences: Sequence[Silence]) -> None:
        """Keep why nothing was said, a moment later; what was given after all is no silence."""
        self._write_later(lambda: self._note_silences(silences))

    def touch(self, ids: Iterable[str], *, how: str, at: float, session: str = "") -> None:
        """Keep that somebody fetched these memories; it may be written a moment later."""
        rows = [(id, at, how, session) for id in ids]
        self._write_later(lambda: self._many("INSERT INTO access VALUES (?, ?, ?, ?)", rows))

    def spend(self, entry: Spending) -> Spending:
        """Keep a call of a model, new or changed (by number), and return it with its number."""
        return self._write(lambda: self._spend(entry))

    def judge(self, verdicts: Sequence[Verdict]) -> int:
        """Keep whether items were used, and move their memories' counts by the difference; how many are now other.

        What was used stays used, and saying the same again changes nothing.
        """
        return self._write(lambda: self._judged.judge(verdicts))

    def tally(self, counted: Mapping[tuple[str, str, str], float]) -> None:
        """Add to what is only counted, (day, project, what) -> how many more; it may be written a moment later."""
        from foreword.store import tallies

        self._write_later(lambda: tallies.add(self._db.execute, counted))

    def note_day(self, day: str) -> bool:
        """Note where everything stands as a local day begins; whether that is new. How old things are hangs on it."""
        from foreword.store import tallies

        if not self._readers.ask(TallyReader, lambda reader: reader.beginning(day)):
            return False
        return self._write(lambda: tallies.note_day(self._db.execute, day, failures=(apsw.Error,)))

    # -- reading ------------------------------------------------------------------------------------------------
    by_uid = _asks(Reader, Reader.by_uid)
    page = _asks(Reader, Reader.page)
    around = _asks(Reader, Reader.around)
    of_session = _asks(TimelineReader, TimelineReader.of_session)
    proposed = _asks(KindReader, KindReader.proposed)
    of_kinds = _asks(KindReader, KindReader.of_kinds)
    how_many = _asks(KindReader, KindReader.how_many)
    by_code = _asks(Reader, Reader.by_code)
    by_recency = _asks(Reader, Reader.by_recency)
    linked = _asks(Reader, Reader.linked)
    changed = _asks(Reader, Reader.changed)
    sessions = _asks(Reader, Reader.sessions)
    session = _asks(Reader, Reader.session)
    undistilled = _asks(Reader, Reader.undistilled)
    sessions_of = _asks(SeenReader, SeenReader.sessions_of)
    seen = _asks(SeenReader, SeenReader.seen, flush=True)
    prompts = _asks(SeenReader, SeenReader.prompts)
    last_told = _asks(SeenReader, SeenReader.last_told)
    sessions_before = _asks(TimelineReader, TimelineReader.sessions_before)
    session_like = _asks(TimelineReader, TimelineReader.session_like)
    sessions_with = _asks(TimelineReader, TimelineReader.sessions_with)
    came_of = _asks(TimelineReader, TimelineReader.came_of)
    changed_in = _asks(TimelineReader, TimelineReader.changed_in)
    given_to = _asks(TimelineReader, TimelineReader.given_to, flush=True)
    began_with = _asks(TimelineReader, TimelineReader.began_with)
    events = _asks(Reader, Reader.events)
    mark = _asks(Reader, Reader.mark)
    injections = _asks(Reader, Reader.injections, flush=True)
    injection = _asks(Reader, Reader.injection, flush=True)
    silences = _asks(SilenceReader, SilenceReader.silences, flush=True)
    given = _asks(Reader, Reader.given, flush=True)
    shown = _asks(Reader, Reader.shown, flush=True)
    hinted = _asks(Reader, Reader.hinted, flush=True)
    begun = _asks(Reader, Reader.begun, flush=True)
    prompted = _asks(Reader, Reader.prompted)
    spent = _asks(Reader, Reader.spent, flush=True)
    given_in_all = _asks(Reader, Reader.given_in_all, flush=True)
    unjudged = _asks(JudgedReader, JudgedReader.unjudged, flush=True)
    overdue = _asks(JudgedReader, JudgedReader.overdue, flush=True)
    fetched = _asks(JudgedReader, JudgedReader.fetched, flush=True)
    shown_to = _asks(JudgedReader, JudgedReader.shown_to, flush=True)
    used_in = _asks(JudgedReader, JudgedReader.used_in, flush=True)
    use = _asks(JudgedReader, JudgedReader.use, flush=True)
    spendings = _asks(LedgerReader, LedgerReader.spendings)
    spent_on_models = _asks(LedgerReader, LedgerReader.spent_on_models)
    counts = _asks(Reader, Reader.counts, flush=True)
    statistics = _asks(StatisticsReader, StatisticsReader.statistics, flush=True)
    size = _asks(TallyReader, TallyReader.size)
    browse = _asks(BrowsingReader, BrowsingReader.browse)
    facets = _asks(BrowsingReader, BrowsingReader.facets)

    def by_id(self, ids: Sequence[str]) -> tuple[Memory, ...]:
        """Return the memories with these ids, in this order, without those that do not exist."""
        found = self._readers.ask(Reader, lambda reader: reader.by_id(ids))
        return tuple(memory for memory in found if memory.status != "forgotten")  # its bytes are about to go

    def by_words(self, query: Query) -> tuple[Hit, ...]:
        """Return what holds any of the query's terms, best first, and what stood next to it in its session."""
        self._check_words()
        try:
            return self._readers.ask(Reader, lambda reader: reader.by_words(query))
        except DamagedIndex as exc:
            self._trouble["index"] = str(exc)
            raise

    def holders(self, terms: Sequence[str], scopes: Sequence[str]) -> tuple[dict[str, int], int]:
        """Return how many memories of these scopes hold each term, and how many there are."""
        self._check_words()
        return self._readers.ask(Reader, lambda reader: reader.holders(terms, scopes))

    def by_meaning(self, query: Query) -> tuple[Hit, ...]:
        """Return what is nearest to the query's vector, among vectors of the same model; the score is the cosine."""
        if query.vector is None or not query.vector.data:
            return ()
        from foreword.store.vectors import Nearest, VectorReader  # with numpy, which one without vectors never loads

        nearest = self._nearest
        if nearest is None or not nearest.fits(query.vector):
            ask = partial(self._readers.ask, VectorReader)
            nearest = self._nearest = Nearest(query.vector, ask=ask)
        return nearest.hits(query)

    def without_vectors(self, model: str, *, dim: int = 0, limit: int = 100) -> tuple[Memory, ...]:
        """Return active memories that have no vector of this model (and, where known, of this length), newest first."""
        # Asked every second: to look through all memories for nothing is done once.
        seen = (model, dim, self._bare)
        if self._all_have == seen:
            return ()
        from foreword.store.vectors import VectorReader

        lacking = self._readers.ask(VectorReader, lambda reader: reader.lacking(model, dim=dim, limit=limit))
        if not lacking:
            self._all_have = seen
        return lacking

    def _check_words(self) -> None:
        if "index" in self._trouble:
            raise DamagedIndex(self._trouble["index"], hint=WAYS_OUT["index"])

    # -- governing ----------------------------------------------------------------------------------------------
    def amend(
        self, memory_changes: Sequence[MemoryChange], *, who: str, at: float, run: str = ""
    ) -> tuple[AuditEntry, ...]:
        """Carry out *amendments*, all or nothing, and log each so that it can be taken back.

        What is no longer as an amendment knows it raises Conflict. Ends of links may be uids, and `superseded_by` the
        uid of a new one.
        """
        return self._write(lambda: tuple(self._logging.amend(each, who=who, run=run, at=at) for each in memory_changes))

    def undo(self, entries: Sequence[AuditEntry], *, who: str, at: float, run: str = "") -> UndoResult:
        """Take back what entries of the log changed; what was changed again since is left, and told."""
        return self._registered(lambda: self._logging.undo(entries, who=who, run=run, at=at))

    log = _asks(LogReader, LogReader.log)
    written = _asks(LogReader, LogReader.written)
    taken_back = _asks(LogReader, LogReader.taken_back)

    def was_forgotten(self, memories: Sequence[Memory]) -> bool:
        """Return whether one of these was forgotten, so that nobody may make it by himself again."""
        if not memories:
            return False
        with self._reader() as connection:
            tombstones = Tombstones(connection.execute, failures=(apsw.Error,))
            return any(tombstones.refuses(memory, brought=False) for memory in memories)

    @property
    def forgetting(self) -> Forgetter:
        """Return what it takes to forget something, step by step. What was forgotten is never kept again."""
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
        """Return the projects that were seen, by key; another object whenever that has changed."""
        known = self._registry
        if known is None:
            known = self._registry = self._readers.ask(RegistryReader, RegistryReader.registry)
        return known

    held = _asks(RegistryReader, RegistryReader.held)
    of_project = _asks(RegistryReader, RegistryReader.of_project, flush=True)

    def see_projects(self, projects: Sequence[Project], *, at: float) -> None:
        """Note where projects were seen, and under which name the first time."""
        self._registered(lambda: self._projects.see(projects, at=at))

    def call_project(self, key: str, name: str) -> None:
        """Give a project a name for people."""
        self._registered(lambda: self._projects.call(key, name))

    def alias_project(self, key: str, *, of: str, who: str, at: float) -> AuditEntry:
        """Let a project count as another from now on, or with none named as itself again; logged, and can be undone.

        No alias leads to another one.
        """
        return self._registered(lambda: self._projects.alias(key, of=of, who=who, at=at))

    def merge_project(
        self, key: str, *, into: str, unite: Callable[[Memory, Memory], Memory], who: str, at: float
    ) -> Moved:
        """Make everything of a project another's, all or nothing, and its key an alias; logged, and cannot be undone.

        Uids become those of the new project. Where one exists there already, *unite* puts the two together, the known
        one first; the one that came stays as superseded by it.
        """
        self._flush()
        return self._registered(lambda: self._projects.merge(key, into=into, unite=unite, who=who, at=at))

    def gather_project(self, key: str, *, into: str) -> None:
        """Bring along what was written under a key in the moment a merge made it an alias."""
        self._write(lambda: self._projects.gather(key, into=into))

    # -- keeping itself well -----------------------------------------------------------------------------------
    def index(self) -> int:
        """Make the words index anew from the memories, and say how many it holds."""
        try:
            return self._write(self._index)
        except StoreError as exc:
            self._trouble["index"] = f"the words index cannot be made anew: {exc}"
            raise

    def scrub(self, cleaner: Cleans, *, after: Sequence[object] = (), dry_run: bool = False) -> Scrubbed:
        """Clean the next rows, a transaction at most, and say what was found and where the next ones begin."""
        from foreword.store import scrub

        self._flush() if dry_run else self._let_go()
        with self._reader() as connection:
            planned = scrub.plan(connection.execute, after=after, cleaner=cleaner)
        if planned.changes and not dry_run:
            self._write(lambda: scrub.apply(self._db.execute, planned))
        return planned.found

    def sweep(self) -> None:
        """Leave no byte of what was cleaned: indexes anew, free pages given back, the log emptied."""
        from foreword.store import scrub

        self.index()
        with self._turn:
            try:
                scrub.sweep(self._db)
            except apsw.Error as exc:
                raise told(exc, self._path) from exc

    def prunable(self, limits: Limits, *, now: float) -> Plan:
        """Return what would go, by age and by size; nothing does."""
        from foreword.store.pruning import PruningReader

        self._flush()
        return self._readers.ask(PruningReader, lambda reader: reader.plan(limits, now=now))

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
        """Take away the next rows of a part of the plan, a transaction at most, and note in the log how many went.

        *told* is what went before, by class, and *noted* its entry, 0 for none yet: a run has one entry.
        """
        from foreword.store import pruning

        self._check_words()
        keys, place = self._readers.ask(
            pruning.PruningReader, lambda reader: reader.chosen(plan, part, after=after, now=now)
        )
        if not keys:
            return pruning.Batch(0, 0, (), noted)
        told_of: dict[str, Any] = {"who": who, "now": now, "told": told, "noted": noted}
        log = self._logging
        return self._write(lambda: pruning.carry_out(self._db.execute, log, part, keys, after=place, **told_of))

    def give_back(self) -> None:
        """Make the file as small as what it holds; nobody can write meanwhile."""
        from foreword.store import pruning

        self._flush()
        with self._turn:
            try:
                pruning.give_back(self._db.execute)
            except apsw.Error as exc:
                raise told(exc, self._path) from exc

    def problems(self) -> tuple[str, ...]:
        """Return what is wrong with the store, in sentences that tell the way out."""
        return tuple(f"{what}; {WAYS_OUT[about]}" for about, what in dict(self._trouble).items())

    def is_there(self) -> bool:
        """Whether the file that was opened is still the one at its path: what is written to another is lost."""
        try:
            here = self._path.stat()
        except OSError:
            return False
        return (here.st_dev, here.st_ino) == self._file

    def close(self) -> None:
        """Finish what is being written, and let go of the database."""
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
