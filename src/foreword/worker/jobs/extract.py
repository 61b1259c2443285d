"""Events that were kept -> what their sessions came to, in the background: after a turn, or after a while."""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from foreword.agents.transcript_tail import LATER
from foreword.audit import REVISED, said_again
from foreword.errors import ForewordError, StoreError
from foreword.extract.actions import action_of
from foreword.extract.failure_memory import confirm_failure_detail, failure_body, failure_title
from foreword.extract.failures import runs_of
from foreword.extract.merge import close_items, evidence_of, merge
from foreword.extract.session import Extraction, SessionExtractor
from foreword.extract.usage import Activity
from foreword.models import Change, Edit, Memory, Project, Query, Session, texts
from foreword.redact import redact
from foreword.redact.files import MARK, denied
from foreword.store import Store
from foreword.worker.jobs.proposals import learn_from
from foreword.worker.jobs.refine import Refining
from foreword.worker.jobs.tidy import settle_choices
from foreword.worker.jobs.usage import UsageTracker

if TYPE_CHECKING:
    from foreword.llm.refine import Refined

log = logging.getLogger("foreword")

T = TypeVar("T")

TELLING = ("stop", "compaction", "session_end")  # kinds of events after which a session has come to something
SHARE = 20  # times as long as it took, a session rests before its next turn is looked at
IDLE = 60.0  # seconds without an event, after which a session is taken as it stands
DRAFTS = 16  # sessions that are kept in mind; others are read again from the store
LARGEST = 1 << 18  # bytes of a file that is read to place an edit in it
PARSE_MS = 50.0  # of an edit: while a text is parsed, no hook is answered
PAGE = 500  # events read at a time
MOST_WAITING = 1000  # sessions looked at: those that go on, or failed, must not hide one that is due
AT_ONCE = 50  # sessions taken at a time
REPLACED = ("learning", "preference", "correction", "decision")  # kinds that a later look at a session may drop
FAILURES = 300  # known failures of a project whose evidence a session may add to
OTHERS = 20  # summaries and handoffs of a project whose open items may have been done since
START_SECONDS = 0.2  # that a session's start waits for what the last one came to


class ExtractionJob:
    """One thread that turns sessions into memory; nothing waits for it but a session's start, and that not for long."""

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        project_of: Callable[[str], Project],
        tell: Callable[[str, str], None],
        refining: Refining,
        now: Callable[[], float] = time.time,
        deny: Callable[[], Sequence[str]] = tuple,
        counts_as: Callable[[str], str] = str,
        changed: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._changed = changed  # the memories of a project, by its key
        self._counts_as = counts_as
        self._registry: object = None
        self._aliases: Mapping[str, str] = {}  # as they were when the drafts were begun
        self._now = now
        self._deny = deny
        self._refining = refining
        self._store = store
        self._project_of = project_of
        self._tell = tell
        self._usage = UsageTracker(store=store, tell=tell, now=now)
        self._drafts: dict[str, _Going] = {}
        self._due: dict[str, None] = {}
        self._working = ThreadPoolExecutor(1, thread_name_prefix="extraction")
        self._asked = threading.Lock()
        self._waiting = False
        self._aside: dict[str, int] = {}  # sessions that failed, and the event they failed at

    def saw(self, kind: str, session: str) -> None:
        """An event was kept; after some kinds its session is looked at right away."""
        if session and kind in TELLING:
            self._due[session] = None
            self._look_soon()

    def look(self) -> None:
        """Look for sessions that fell silent; asked every second, it costs one question to the store."""
        self._look_soon()

    def settle(self, project: str, *, seconds: float = START_SECONDS) -> None:
        """Wait a moment for what a project's sessions have come to."""
        with suppress(TimeoutError, RuntimeError):  # late: it is there the next time; or the worker is leaving
            self._working.submit(self._all_of, project).result(seconds)

    def apart(self, work: Callable[[], T]) -> Future[T]:
        """Do *work* while no session is distilled, in its own thread; afterwards all are read anew from the store."""

        def alone() -> T:
            self._drafts.clear()
            try:
                return work()
            finally:
                self._drafts.clear()

        return self._working.submit(alone)

    def alone(self, work: Callable[[], T]) -> T:
        """The same for whoever waits for it."""
        try:
            return self.apart(work).result()
        except RuntimeError as exc:
            raise StoreError("the worker is leaving", hint="ask again") from exc

    def close(self) -> None:
        self._working.shutdown(cancel_futures=True)

    # -- in its own thread --------------------------------------------------------------------------------------
    def _look_soon(self) -> None:
        with self._asked:
            if self._waiting:
                return
            self._waiting = True
        with suppress(RuntimeError):
            self._working.submit(self._look)

    def _look(self) -> None:
        self._waiting = False
        try:
            waiting = (each for each in self._store().sessions.pending(limit=MOST_WAITING) if self._is_due(each))
            for session in islice(waiting, AT_ONCE):
                self._due.pop(session.id, None)
                self._take(session)
            for session in self._usage.overdue():
                self._take(session, by=self._settle_usage)
        except ForewordError as exc:
            self._tell("distil", f"sessions wait to be distilled: {exc}")

    def _is_due(self, session: Session) -> bool:
        if self._aside.get(session.id) == session.newest:
            return False
        # A clock that jumped makes a session old or from the future; both are taken.
        due = session.id in self._due or not 0 <= self._now() - session.last < IDLE
        return due and (session.ended > 0 or not self._rests(session.id))

    def _rests(self, session: str) -> bool:
        """Whether a session was looked at so lately that its next turn can wait."""
        going = self._drafts.get(session)
        return going is not None and time.monotonic() < going.rests_until

    def _all_of(self, project: str) -> None:
        with suppress(ForewordError):
            for session in self._store().sessions.pending(project=project, limit=3):
                self._due.pop(session.id, None)
                self._take(session)

    def _take(self, session: Session, *, by: Callable[[Session], None] | None = None) -> None:
        """Distil one session; one that cannot be distilled must not keep the others waiting."""
        if self._aside.get(session.id) == session.newest:
            return
        try:
            (by or self._distil)(session)
        except ForewordError:
            raise
        except Exception as exc:
            while len(self._aside) >= MOST_WAITING:
                del self._aside[next(iter(self._aside))]
            log.exception("session %s cannot be distilled", session.id)
            self._aside[session.id] = session.newest
            self._drafts.pop(session.id, None)
            self._tell("distil", f"a session of {session.host} cannot be distilled: {type(exc).__name__}: {exc}")

    def _distil(self, session: Session) -> None:
        began = time.monotonic()
        store = self._store()
        going = self._read(session)
        session = store.sessions.get(session.id) or session  # it may have ended while it was read
        self._usage.update(session, going.activity)  # first: what a crash leaves undistilled is looked at again
        extracted = [(draft.project, draft.extract()) for draft in going.drafts.values()]
        kept = store.sessions.save_extraction(
            session,
            upto=going.number,
            memories=[each for project, got in extracted for each in self._memories(store, project, session, got)],
            links=[link for _, got in extracted for link in got.links],
            changes=[change for _, got in extracted for change in got.changes],
        )
        settle_choices(store, kept, at=self._now())
        for project, _ in extracted:
            self._changed(project.key)
        if session.ended or self._now() - session.last > IDLE:
            learn_from(store, extracted, now=self._now(), tell=self._tell)
            for draft, (_, got) in zip(going.drafts.values(), extracted, strict=True):
                self._refine(session, draft, got)
        going.rests_until = time.monotonic() + SHARE * (time.monotonic() - began)
        if session.ended:
            self._drafts.pop(session.id, None)

    def _settle_usage(self, session: Session) -> None:
        """Store what a session used that fell silent, or ended while no worker ran."""
        self._usage.update(session, self._read(session).activity)
        self._drafts.pop(session.id, None)

    def _read(self, session: Session) -> _Going:
        """All that happened in a session; what was read before is kept in mind."""
        store = self._store()
        if (known := store.projects.all()) is not self._registry:
            self._registry, aliases = known, {key: each.alias_of for key, each in known.items() if each.alias_of}
            if aliases != self._aliases:  # a draft may be of a project that counts as another now
                self._aliases = aliases
                self._drafts.clear()
        going = self._drafts.pop(session.id, None) or _Going()
        self._drafts[session.id] = going
        while len(self._drafts) > DRAFTS:
            del self._drafts[next(iter(self._drafts))]
        while events := store.events.list(session.id, after=going.number, limit=PAGE):
            for event in events:
                # Copilot writes an answer into its transcript behind the hook that tells of it: read it a second later.
                if event.kind == "stop" and event.host == "copilot" and 0 <= self._now() - event.at < LATER:
                    self._due[session.id] = None
                    return going
                # A session may go into another project's folder: what happens there is that project's alone.
                project = self._counts_as(event.project or session.project)
                draft = self._draft(going, session, project=project, cwd=event.cwd)
                action = action_of(event, root=draft.project.root)
                if action is not None:
                    draft.add(action)
                    self._usage.add(going.activity, action, project=draft.project)
                going.number = event.number
        return going

    def _refine(self, session: Session, draft: SessionExtractor, got: Extraction) -> None:
        """Have a model put the summary of a session that is over in better words, where the user chose one."""
        summary = next((each for each in got.memories if each.kind == "summary"), None)
        if summary is None or not self._refining.on:
            return
        from foreword.llm.refine import apply, draft_of

        def then(told: Refined | None) -> None:
            if told is not None:
                store = self._store()
                (known,) = store.memories.get_by_uid([summary.uid]) or (summary,)
                better = apply(known, told)
                before = {each.uid: each for each in store.memories.get_by_uid([each.uid for each in better])}
                store.memories.put([said_again(before.get(each.uid, each), each) for each in better])

        trusts = (*(each.trust for each in got.memories), "agent")
        self._refining.submit(session.id, draft_of(got.memories), excerpts=draft.excerpts, trusts=trusts, then=then)

    def _draft(self, going: _Going, session: Session, *, project: str, cwd: str) -> SessionExtractor:
        if project not in going.drafts:
            found = self._project(project, cwd or session.cwd)
            begun = replace(session, project=project, started=0.0, last=0.0)  # what it holds tells when it was

            def changes_of(edit: Edit) -> list[Change]:
                return _changes_of(edit, root=found.root, deny=self._deny())

            going.drafts[project] = SessionExtractor(begun, found, changes_of=changes_of)
        return going.drafts[project]

    def _memories(self, store: Store, project: Project, session: Session, got: Extraction) -> list[Memory]:
        """What the session says, put together with what is known; what others left open and it did is closed."""
        known = {
            memory.uid: memory
            for memory in store.memories.get_by_uid([*(each.uid for each in got.memories), *got.retracted])
        }
        fresh = [merge(known[each.uid], each) if each.uid in known else each for each in got.memories]
        written = [
            each for each in store.memories.of_session(session.id) if each.kind == "handoff" and each.uid not in known
        ]
        if written:  # somebody wrote one: the agent or the user knows better
            fresh = [each for each in fresh if each.kind != "handoff"]
        gone = [
            replace(known[uid], status="stale")
            for uid in got.retracted
            if uid in known and known[uid].status == "active" and not known[uid].detail.get(REVISED)
        ]
        if got.complete:
            gone += self._outdated(store, session, {each.uid for each in got.memories})
        changed = [each for each in fresh if not _same(known.get(each.uid), each)]
        carried = [item for each in written for item in texts(each.detail, "next")]
        closed = self._closed(store, project, session, replace(got, open=(*got.open, *carried)))
        confirmed = self._confirmed(store, project, session, got, {each.uid for each in (*changed, *gone)})
        return [*changed, *gone, *closed, *confirmed]

    def _outdated(self, store: Store, session: Session, fresh: Collection[str]) -> list[Memory]:
        """Return what an earlier extraction of this session said and this one, which saw more of it, does not."""
        return [
            replace(each, status="stale")
            for each in store.memories.of_session(session.id)
            if each.kind in REPLACED
            and each.status == "active"
            and each.uid not in fresh
            and each.uid.startswith(f"{each.kind[:3]}:")
            and not each.detail.get(REVISED)
            and set(evidence_of(each)) <= {session.id}
        ]

    def _confirmed(
        self, store: Store, project: Project, session: Session, got: Extraction, fresh: Collection[str]
    ) -> list[Memory]:
        """Return known failures whose command this session ran well, or whose alternative it used again."""
        runs = runs_of(got.turns, root=project.root)
        failures = store.memories.list(("failure",), scopes=(project.scope,), statuses=("active",), limit=FAILURES)
        updated = []
        for memory in failures:
            if memory.uid in fresh or memory.detail.get(REVISED):
                continue
            detail = confirm_failure_detail(memory.detail, runs, session.id)
            if detail != memory.detail:
                title, body = failure_title(detail), failure_body(detail)
                updated.append(replace(memory, title=title, body=body, detail=detail))
        return updated

    def _closed(self, store: Store, project: Project, session: Session, got: Extraction) -> list[Memory]:
        query = Query(scopes=(project.scope,), kinds=("handoff", "summary"), limit=OTHERS)
        others = (hit.memory for hit in store.search.by_recency(query))
        earlier = (each for each in others if each.session != session.id and each.created <= session.last)
        return [each for memory in earlier if (each := close_items(memory, done=got.done, open=got.open))]

    def _project(self, key: str, folder: str) -> Project:
        with suppress(ForewordError):
            found = self._project_of(folder)
            if found.key == key:
                return found
        return Project(key=key, name="", root=folder)


def _changes_of(edit: Edit, *, root: str, deny: Sequence[str] = ()) -> list[Change]:
    """What an edit changed, told by the file as it is now; what is read there passes redaction like all else."""
    from foreword.code import changes  # grammars, which a worker without edits does without

    path = os.path.join(root, edit.file)
    more = [each.lower() for each in deny]
    hidden = MARK in (edit.before, edit.after)
    if os.path.isabs(edit.file):
        return []  # what lies elsewhere is not this project's code
    if hidden or any(denied(each, more) for each in (edit.file, _behind_links(path))):
        return []  # a hook has hidden what was written there, and it is not read here either
    found = changes([edit], present=lambda _: _text(path), most_ms=PARSE_MS)
    return [
        replace(each, function=redact(each.function), signature=redact(each.signature), file=redact(each.file))
        for each in found
    ]


def _text(path: str) -> str | None:
    """A file's text, of a bounded size; nothing of what is no ordinary file, which might wait for ever."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(number, encoding="utf-8", errors="replace", newline="") as file:
            found = os.fstat(number)
            return file.read(LARGEST) if stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST else None
    except (OSError, ValueError):
        return None


def _behind_links(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


def _same(known: Memory | None, fresh: Memory) -> bool:
    if known is None:
        return False
    # What was made of it is the store's own.
    return known == replace(fresh, id=known.id, pinned=known.pinned, used=known.used, ignored=known.ignored)


class _Going:
    """A session's drafts, one for each project it went to, its activity, and the last event that they hold."""

    def __init__(self) -> None:
        self.drafts: dict[str, SessionExtractor] = {}
        self.activity = Activity()
        self.number = 0
        self.rests_until = 0.0
