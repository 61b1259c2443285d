"""Extract sessions into memories in the background, after a turn or when they fell silent, and settle usage."""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from foreword.agents.transcript_tail import LATER
from foreword.audit import REVISED
from foreword.errors import ForewordError
from foreword.extract.actions import action_of
from foreword.extract.failure_memory import confirm_failure_detail, failure_body, failure_title
from foreword.extract.failures import runs_of
from foreword.extract.merge import close_items, evidence_of, merge
from foreword.extract.session import Extraction, SessionExtractor
from foreword.extract.usage import Activity, BaseRates, base_rates_of, usage_of
from foreword.models import Change, Edit, Memory, Project, Query, Session, texts
from foreword.redact import redact
from foreword.redact.files import MARK, denied
from foreword.store import Store
from foreword.worker.context import ContextBuilder
from foreword.worker.hints import Hints
from foreword.worker.jobs import Job, JobRunner
from foreword.worker.jobs.maintenance import settle_choices
from foreword.worker.jobs.refine import RefineJob
from foreword.worker.projects import ProjectRegistry
from foreword.worker.services import Services

if TYPE_CHECKING:
    pass

log = logging.getLogger("foreword")

T = TypeVar("T")

ENDS_TURN = ("stop", "compaction", "session_end")  # kinds of events after which a session is extracted
SHARE = 20  # times as long as its extraction took, a session rests before its next turn is extracted
IDLE = 60.0  # seconds without an event, after which a session is extracted as it is
OPEN_SESSIONS = 16  # sessions that are kept in memory; others are read again from the store
LARGEST = 1 << 18  # bytes of a file that is read to place an edit in it
PAGE = 500  # events read at a time
MOST_WAITING = 1000  # sessions considered: those that go on, or failed, must not hide one that is due
AT_ONCE = 50  # sessions extracted in one run
STORM = 8  # answers in the making, above which an extraction waits a moment: it takes twice as long as storing events
REPLACED = ("learning", "preference", "correction", "decision")  # kinds that a later extraction may drop
FAILURES = 300  # known failures of a project whose evidence a session may add to
MAX_OPEN_SUMMARIES = 20  # summaries and handoffs of a project whose open items may have been done since
START_SECONDS = 0.2  # that a session's start waits for the extraction of the last one
SESSION_TIMEOUT = (
    3600.0  # seconds without an event, after which a session counts as over; should it go on, usage still counts
)
MAX_AGE = 30 * 86_400.0  # sessions that fell silent before that are left alone
MOST_OVERDUE = 100  # sessions at a time
OVERDUE_EVERY = 60.0  # seconds between two searches for sessions that fell silent
TURNS = 240  # newest turns of a project, which hold its last thirty sessions and say what these did


class ExtractionJob:
    """Turns sessions into memories; only a session start waits for it, for a moment."""

    def __init__(
        self,
        services: Services,
        runner: JobRunner,
        projects: ProjectRegistry,
        refine: RefineJob,
        *,
        caches: Sequence[ContextBuilder | Hints] = (),  # of projects' memories, refreshed when they change
    ) -> None:
        self._services, self._runner, self._projects, self._refine = services, runner, projects, refine
        self._caches = caches
        self._usage = UsageTracker(services)
        self._open: dict[str, _OpenSession] = {}
        self._due: dict[str, None] = {}
        self._failed: dict[str, int] = {}  # sessions that failed, and the event they failed at
        self.copying = threading.Lock()  # held while a copy is made, which ends early ...
        self.hurry = threading.Event()  # ... where somebody wants to change what it reads
        runner.add(Job("extract", self.run, problem="sessions wait to be extracted", keeps_worker=False))

    def event_stored(self, kind: str, session: str) -> None:
        """Extract a session soon after an event that ends a turn."""
        if session and kind in ENDS_TURN:
            self._due[session] = None
            self._runner.wake("extract")

    def settle(self, project: str, *, seconds: float = START_SECONDS) -> None:
        """Wait a moment for the extraction of a project's sessions."""
        with suppress(TimeoutError, ForewordError):  # late: it is there the next time; or the worker is stopping
            self._runner.submit("extract", lambda: self._extract_project(project)).result(seconds)

    def apart(self, work: Callable[[], T]) -> Future[T]:
        """Queue *work* while no session is extracted and no copy made; sessions are read again from the store then."""

        def alone() -> T:
            self.hurry.set()
            with self.copying:
                self.hurry.clear()
                self._open.clear()
                try:
                    return work()
                finally:
                    self._open.clear()
                    self._refresh()

        return self._runner.submit("extract", alone)

    # -- in the job's thread ------------------------------------------------------------------------------------
    def _refresh(self) -> None:
        for cache in self._caches:
            cache.refresh()

    def run(self) -> None:
        """Extract the sessions that are due, and settle the usage of those that fell silent."""
        waiting = self._services.store.sessions.list(pending=True, limit=MOST_WAITING)
        for session in islice(filter(self._is_due, waiting), AT_ONCE):
            self._runner.give_way(most=STORM)
            self._try(session, self._extract)
        for session in self._usage.overdue():
            self._try(session, self._settle_usage)

    def _is_due(self, session: Session) -> bool:
        if self._failed.get(session.id) == session.newest:
            return False
        # A clock that jumped makes a session old or from the future; both are taken.
        due = session.id in self._due or not 0 <= self._services.now() - session.last < IDLE
        known = self._open.get(session.id)  # extracted so lately that its next turn can wait?
        return due and (session.ended > 0 or known is None or time.monotonic() >= known.rests_until)

    def _extract_project(self, project: str) -> None:
        for session in self._services.store.sessions.list(project, pending=True, limit=3):
            self._try(session, self._extract)

    def _try(self, session: Session, step: Callable[[Session], None]) -> None:
        """Run *step* on one session; one that fails must not keep the others waiting."""
        if self._failed.get(session.id) == session.newest:
            return
        self._due.pop(session.id, None)
        try:
            step(session)
        except ForewordError:
            raise
        except Exception as exc:
            while len(self._failed) >= MOST_WAITING:
                del self._failed[next(iter(self._failed))]
            log.exception("session %s cannot be extracted", session.id)
            self._failed[session.id] = session.newest
            self._open.pop(session.id, None)
            why = f"{type(exc).__name__}: {exc}"
            self._services.report("extract", f"a session of {session.host} cannot be extracted: {why}")

    def _extract(self, session: Session) -> None:
        began = time.monotonic()
        store = self._services.store
        opened = self._read(session)
        session = store.sessions.get(session.id) or session  # it may have ended while it was read
        self._usage.update(session, opened)  # first: what a crash leaves unextracted is extracted again
        extracted = [(each.project, each.extract()) for each in opened.extractors.values()]
        kept = store.save(
            session,
            upto=opened.number,
            memories=[each for project, got in extracted for each in self._memories(store, project, session, got)],
            links=[link for _, got in extracted for link in got.links],
            changes=[change for _, got in extracted for change in got.changes],
        )
        settle_choices(store, kept, at=self._services.now())
        if extracted:
            self._refresh()
        if session.ended or self._services.now() - session.last > IDLE:
            for extractor, (_, got) in zip(opened.extractors.values(), extracted, strict=True):
                if any(each.kind == "summary" for each in got.memories):
                    self._refine.submit(session.id, got.memories, excerpts=extractor.excerpts)
        opened.rests_until = time.monotonic() + SHARE * (time.monotonic() - began)
        if session.ended:
            self._open.pop(session.id, None)

    def _settle_usage(self, session: Session) -> None:
        """Store what a session used that fell silent, or ended while no worker ran."""
        self._usage.update(session, self._read(session))
        self._open.pop(session.id, None)

    def _read(self, session: Session) -> _OpenSession:
        """Read the events of a session that came since it was read last."""
        store = self._services.store
        opened = self._open.pop(session.id, None) or _OpenSession()
        self._open[session.id] = opened
        while len(self._open) > OPEN_SESSIONS:
            del self._open[next(iter(self._open))]
        while events := store.events.list(session.id, after=opened.number, limit=PAGE):
            for event in events:
                # Copilot writes an answer into its transcript after the hook call: read it a second later.
                if event.kind == "stop" and event.host == "copilot" and 0 <= self._services.now() - event.at < LATER:
                    self._due[session.id] = None
                    return opened
                # A session may go into another project's folder: what happens there is that project's alone.
                project = self._projects.named(event.project or session.project).key
                extractor = self._extractor(opened, session, project=project, cwd=event.cwd)
                action = action_of(event, root=extractor.project.root)
                if action is not None:
                    extractor.add(action)
                    with self._usage.reporting("what was done cannot be noted"):
                        opened.activity.add(action, project=extractor.project.key, root=extractor.project.root)
                opened.number = event.number
        return opened

    def _extractor(self, opened: _OpenSession, session: Session, *, project: str, cwd: str) -> SessionExtractor:
        if project not in opened.extractors:
            folder = cwd or session.cwd
            found = self._projects.of_session(project, folder, root=folder)
            begun = replace(session, project=project, started=0.0, last=0.0)  # its actions say when it was

            def changes_of(edit: Edit) -> list[Change]:
                return _changes_of(edit, root=found.root, deny=self._services.settings.deny_paths)

            opened.extractors[project] = SessionExtractor(begun, found, changes_of=changes_of)
        return opened.extractors[project]

    def _memories(self, store: Store, project: Project, session: Session, got: Extraction) -> list[Memory]:
        """Merge what the session says with what is known; close what others left open and it did."""
        uids = {each.uid for each in got.memories}
        known = {each.uid: each for each in store.memories.get_by_uid([*uids, *got.retracted])}
        fresh = [merge(known[each.uid], each) if each.uid in known else each for each in got.memories]
        before = store.memories.of_session(session.id)
        written = [each for each in before if each.kind == "handoff" and each.uid not in known]
        if written:  # by the agent or the user, who know better
            fresh = [each for each in fresh if each.kind != "handoff"]
        outdated = [known[uid] for uid in got.retracted if uid in known]
        if got.complete:  # what an earlier extraction of this session said and this one, which saw more of it, does not
            outdated += [
                each
                for each in before
                if each.kind in REPLACED
                and each.uid not in uids
                and each.uid.startswith(f"{each.kind[:3]}:")
                and set(evidence_of(each)) <= {session.id}
            ]
        changed = [each for each in fresh if _is_changed(known.get(each.uid), each)]
        changed += [
            replace(each, status="stale")
            for each in outdated
            if each.status == "active" and not each.detail.get(REVISED)
        ]
        carried = [item for each in written for item in texts(each.detail, "next")]
        query = Query(scopes=(project.scope,), kinds=("handoff", "summary"), limit=MAX_OPEN_SUMMARIES)
        for hit in store.search.by_recency(query):
            if hit.memory.session != session.id and hit.memory.created <= session.last:
                closed = close_items(hit.memory, done=got.done, open=(*got.open, *carried))
                changed += [closed] if closed else []
        return [*changed, *self._confirmed(store, project, session, got, {each.uid for each in changed})]

    def _confirmed(
        self, store: Store, project: Project, session: Session, got: Extraction, fresh: Collection[str]
    ) -> list[Memory]:
        """Return known failures whose command this session ran well, or whose alternative it used again."""
        runs = runs_of(got.turns, root=project.root)
        updated = []
        for memory in store.memories.list(("failure",), scopes=(project.scope,), statuses=("active",), limit=FAILURES):
            if memory.uid in fresh or memory.detail.get(REVISED):
                continue
            detail = confirm_failure_detail(memory.detail, runs, session.id)
            if detail != memory.detail:
                updated.append(replace(memory, title=failure_title(detail), body=failure_body(detail), detail=detail))
        return updated


def _changes_of(edit: Edit, *, root: str, deny: Sequence[str] = ()) -> list[Change]:
    """Return the functions that an edit changed, by the file as it is now, redacted like all else."""
    from foreword.code.diff import changes  # grammars, which a worker without edits does without

    if os.path.isabs(edit.file) or "\0" in edit.file:
        return []  # what lies elsewhere is not this project's code
    path = os.path.join(root, edit.file)
    more = [each.lower() for each in deny]
    if MARK in (edit.before, edit.after) or any(denied(each, more) for each in (edit.file, os.path.realpath(path))):
        return []  # a hook has hidden what was written there, and it is not read here either
    found = changes([edit], present=lambda _: _text(path))
    return [
        replace(each, function=redact(each.function), signature=redact(each.signature), file=redact(each.file))
        for each in found
    ]


def _text(path: str) -> str | None:
    """Return a file's text, of a bounded size; None for what is no ordinary file, which might wait for ever."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(number, encoding="utf-8", errors="replace", newline="") as file:
            found = os.fstat(number)
            return file.read(LARGEST) if stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST else None
    except (OSError, ValueError):
        return None


def _is_changed(known: Memory | None, fresh: Memory) -> bool:
    # Pins and usage are the store's own.
    return known is None or known != replace(
        fresh, id=known.id, pinned=known.pinned, used=known.used, ignored=known.ignored
    )


class _OpenSession:
    """A session's extractors, one for each project it went to, its activity, and the last event that they hold."""

    def __init__(self) -> None:
        self.extractors: dict[str, SessionExtractor] = {}
        self.activity = Activity()
        self.rates: dict[str, BaseRates] = {}  # by project
        self.number = 0
        self.rests_until = 0.0


class UsageTracker:
    """Decides for every injected item whether it was used, as far as the actions show it."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._last_search = -OVERDUE_EVERY

    def update(self, session: Session, opened: _OpenSession) -> None:
        """Store which memories a session used so far; an error here is reported and breaks nothing else."""
        with self.reporting(f"the usage of a session of {session.host} cannot be decided"):
            store = self._services.store
            injections = store.injections.undecided(session.id)
            if not injections:
                return
            for project in {each.project for each in injections} - opened.rates.keys():
                # What the project's sessions did before this one does not change while it goes on.
                scope = Project(key=project, name="", root="").scope
                turns = store.memories.list(("turn",), scopes=(scope,), statuses=("active",), limit=TURNS)
                opened.rates[project] = base_rates_of(turns, session=session.id, before=injections[0].at)
            ids = list({item.memory: None for each in injections for item in each.items})
            verdicts = usage_of(
                injections,
                memories={memory.id: memory for memory in store.memories.get(ids)},
                activity=opened.activity,
                base_rates=opened.rates,
                fetched=store.memories.accessed(session.id, since=injections[0].at),
                used_before=store.injections.sessions_using(ids),
                over=session.ended > 0 or self._services.now() - session.last > SESSION_TIMEOUT,
            )
            if verdicts:
                store.injections.record_usage(verdicts)

    def overdue(self) -> tuple[Session, ...]:
        """Return sessions that fell silent with unsettled items; called each second, it searches each minute."""
        if 0 <= time.monotonic() - self._last_search < OVERDUE_EVERY:
            return ()
        self._last_search = time.monotonic()
        now = self._services.now()
        until = (now - SESSION_TIMEOUT, "")
        return self._services.store.sessions.list(undecided=True, since=now - MAX_AGE, before=until, limit=MOST_OVERDUE)

    @contextmanager
    def reporting(self, what: str) -> Iterator[None]:
        """Report an error instead of raising it: usage must not break extraction."""
        try:
            yield
        except Exception as exc:
            log.exception(what)
            self._services.report("use", f"{what}: {type(exc).__name__}: {exc}")
