"""What was asked to be imported -> kept in small commits by one thread that gives way to everybody else.

How far each source came is kept with what it gave, and what is not finished is kept too: a worker that was killed goes
on where it was.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from foreword.audit import said_again
from foreword.config import Settings
from foreword.errors import BadRequest, ForewordError, StoreError
from foreword.extract.merge import merge
from foreword.importers.base import Batch, Source, find, refuse_where_off, safe, safe_row
from foreword.models import Change, Event, Link, Memory, Project, Session
from foreword.policy import chosen, off
from foreword.redact.files import denied
from foreword.store import Store
from foreword.worker.project_lookup import Registry

log = logging.getLogger("foreword")

T = TypeVar("T", Memory, Change, Session, Event)

ROWS = 50  # memories in one commit: some 20 ms in which nobody else can write
FEW = 10  # ... while hooks come in
LATELY = 1.0  # seconds after an answer in which another one is likely
BREATH = 0.01  # seconds between two commits while hooks come in
GIVE_WAY = 0.5  # seconds at most that one commit waits for answers in the making: a storm must not stop it for good
AGAIN = (1.0, 2.0, 4.0)  # seconds until a store that cannot be written is tried again; then 5, as long as it takes
STAND = 120  # tries, 10 minutes: then it waits for the next worker
REMEMBERED = 20  # imports that ended and can still be asked for
MOST_PROBLEMS = 50  # sentences kept of one source; the rest are counted
COUNTED = 1_000  # memories that an import remembers it has counted
UNTOLD_SECONDS = 60.0  # that a transcript may go on after the last event of its session: clocks differ a little
UNFINISHED = "imports"  # the mark that holds what a killed worker left


@dataclass(frozen=True)
class ImportRequest:
    """What somebody wants imported into the project of a folder."""

    folder: str
    sources: tuple[str, ...]
    options: Mapping[str, Any]
    environ: Mapping[str, str]


class Backpressure:
    """Counts the answers in the making, so that whoever works aside can wait for them."""

    def __init__(self) -> None:
        self._quiet = threading.Condition()
        self._answering = 0
        self._last = 0.0

    def __enter__(self) -> None:
        with self._quiet:
            self._answering += 1

    def __exit__(self, *_: object) -> None:
        with self._quiet:
            self._answering -= 1
            self._last = time.monotonic()
            if not self._answering:
                self._quiet.notify_all()

    def give_way(self) -> bool:
        """Wait until nobody waits for an answer, not for ever; whether somebody did lately."""
        with self._quiet:
            self._quiet.wait_for(lambda: not self._answering, timeout=GIVE_WAY)
            return self._answering > 0 or time.monotonic() - self._last < LATELY


class Importing:
    """The imports of one worker: those that run, one batch of each source in turn, and the last that ended."""

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        settings: Callable[[], Settings],
        backpressure: Backpressure,
        tell: Callable[[str, str], None],
        registry: Registry,
    ) -> None:
        self._store, self._settings, self._courtesy, self._tell = store, settings, backpressure, tell
        self._registry = registry
        self._changing = threading.Lock()
        self._closing = threading.Event()
        self._resuming = False
        self._jobs: list[_Job] = []
        self._ended: deque[_Job] = deque(maxlen=REMEMBERED)
        self._thread: threading.Thread | None = None

    def start(self, import_request: ImportRequest) -> dict[str, Any]:
        """Begin, or join the import of that project which runs already; what it refuses is told at once."""
        project = self._allowed(import_request)
        sources = {name: find(name, import_request.options, resolver=self._registry) for name in import_request.sources}
        if not sources:
            raise BadRequest("an import needs at least one source", hint='send {"sources": ["git"], …}')
        with self._changing:
            if self._closing.is_set():
                raise StoreError("the worker is leaving", hint="ask again")
            joined = next((each for each in self._jobs if each.project.key == project.key), None)
            job = joined or _Job(project, import_request)
            job.add(sources, import_request)
            self._note_unfinished(*(() if joined else (job,)))  # what cannot be noted cannot be kept: it is told
            if not joined:
                self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="importing", daemon=True)
                self._thread.start()
        return job.told()

    def told(self, project: str = "") -> dict[str, Any]:
        """Every import that runs or ended lately, the last begun first."""
        with self._changing:
            jobs = sorted((*self._jobs, *self._ended), key=lambda job: -job.since)
        return {"imports": [job.told() for job in jobs if project in ("", job.project.key)]}

    def resume(self) -> None:
        """Go on with what an earlier worker left unfinished."""
        try:
            left = json.loads(self._store().checkpoint(UNFINISHED) or "[]")
        except (ValueError, ForewordError):
            return
        self._resuming = True  # until all of them stand in line, the old note is the true one
        for each in left:
            try:
                self.start(ImportRequest(each["folder"], tuple(each["sources"]), each["options"], each["environ"]))
            except (ForewordError, KeyError, TypeError) as exc:
                self._tell("import", f"an unfinished import was given up: {exc}")
        self._resuming = False
        if left:
            with self._changing, suppress(StoreError):
                self._note_unfinished()

    def busy(self, *projects: str) -> bool:
        """Whether an import runs: any, or one of these projects."""
        return any(not projects or job.project.key in projects for job in self._jobs)

    def close(self) -> None:
        """Finish the commit at hand; the rest waits for the next worker."""
        with self._changing:
            self._closing.set()
            thread = self._thread
        if thread is not None:
            thread.join()
        for job in self._jobs:
            for run in job.runs.values():
                run.let_go()

    # -- the thread ---------------------------------------------------------------------------------------------
    def _work(self) -> None:
        """A batch of each source of each project in turn: the newest of everything before the oldest of anything."""
        while True:
            with self._changing:
                jobs = tuple(self._jobs)
                if not jobs or self._closing.is_set():
                    self._thread = None
                    return
            for job in jobs:
                self._round(job)
                with self._changing:
                    if job.unfinished() or self._closing.is_set():
                        continue  # also where a source was added in this moment
                    self._jobs.remove(job)
                    self._ended.append(job)
                    with suppress(StoreError):  # then the next worker finds that nothing is left to do
                        self._note_unfinished()

    def _round(self, job: _Job) -> None:
        for run in job.unfinished():
            if self._closing.is_set():
                return
            try:
                self._allowed(job.import_request)
                self._step(run)
            except ForewordError as exc:
                if self._closing.is_set():
                    return  # it stays unfinished, for the next worker
                run.fail(f"{exc}; {exc.hint}")
                self._tell("import", f"the import of {run.source.name} stopped: {exc}; {exc.hint}")
            except Exception:
                log.exception("the import of %s failed", run.source.name)
                run.fail("it failed, and logs/worker.log tells why; please report it")

    def _step(self, run: _Run) -> None:
        if run.batches is None:
            mark = self._store().checkpoint(run.mark)
            run.batches = run.source.read(run.project, environ=run.environ, checkpoint=mark)
            run.state = "running"
        self._courtesy.give_way()
        batch = next(run.batches, None)
        if batch is None:
            run.end("done")
            return
        self._keep(batch, run)
        run.done, run.total = batch.done, batch.total
        run.complain(batch.problems)

    def _keep(self, batch: Batch, run: _Run) -> None:
        store = self._store()
        if batch.session is not None and _was_seen(batch.session, store=store):
            batch = Batch(checkpoint=batch.checkpoint)  # its own hooks told it already, as it happened
        wide = getattr(run.source, "wide", False)
        deny = [each.lower() for each in self._settings().deny_paths]
        if wide:
            batch = _allowed_of(batch, choices=chosen(self._settings()))
        memories = []
        for each in _told_of(
            batch.memories, deny
        ):  # a few milliseconds of an answer are lost to every switch of threads
            self._courtesy.give_way()
            memories.append(self._of(safe(each), run.project, wide=wide))
        fresh, unchanged = _fresh(memories, store=store, gentle=batch.only_newer)
        run.known += unchanged
        changes = [
            self._of(safe_row(each), run.project, wide=wide) for each in batch.changes if not denied(each.file, deny)
        ]
        session = self._of(safe_row(batch.session), run.project, wide=wide) if batch.session else None
        events = [self._of(safe_row(each), run.project, wide=wide) for each in batch.events]
        links = [safe_row(each) for each in batch.links]
        if not wide:
            links = _within(links, run.project, store=store)
        all_of_it = {"links": links, "changes": changes, "session": session, "events": events}
        place = 0
        while True:
            lately = self._courtesy.give_way()
            rows = fresh[place : place + (FEW if lately else ROWS)]
            place += len(rows)
            last = place >= len(fresh)  # what points at others comes when they are there, and the mark with it
            with_mark = all_of_it | {"checkpoint": (run.mark, batch.checkpoint)} if last else {}
            kept = self._written(rows, run, row=(batch.sequence, batch.remaining + len(fresh) - place), **with_mark)
            run.kept += len(kept)
            run.forgotten += len(rows) - len(kept)
            run.count(kept)
            if last:
                return
            if lately:
                self._closing.wait(BREATH)

    def _written(self, rows: Sequence[Memory], run: _Run, **more: Any) -> tuple[Memory, ...]:
        """What was kept of these rows; a store that cannot be written is tried again, and said so."""
        for attempt in range(STAND):
            try:
                return self._store().put_import(rows, **more, at=time.time())
            except StoreError as exc:
                run.complain([f"{exc}; it is tried again"])
                if self._closing.wait(AGAIN[attempt] if attempt < len(AGAIN) else 5.0):
                    raise
        raise StoreError("the store cannot be written", hint="run `foreword doctor`, then import again")

    # -- what may be, and what is left --------------------------------------------------------------------------
    def _allowed(self, import_request: ImportRequest) -> Project:
        """The project, where its user lets anything be kept."""
        project, settings = self._registry.seen_at(import_request.folder), self._settings()
        refuse_where_off(project, choices=chosen(settings), environ=import_request.environ)
        return project

    def _of(self, item: T, project: Project, *, wide: bool) -> T:
        """No import writes into another project than the one it was started for, unless it was told to."""
        if wide:
            return self._registry.own(item)
        scope: dict[str, Any] = {"scope": project.scope} if isinstance(item, Memory) else {}
        return replace(item, project=project.key, **scope)

    def _note_unfinished(self, *more: _Job) -> None:
        if self._resuming:
            return
        left = [job.left() for job in (*self._jobs, *more) if job.unfinished()]
        self._store().set_checkpoint(UNFINISHED, json.dumps(left), at=time.time())


class _Run:
    """One source of an import: where it stands."""

    def __init__(self, source: Source, project: Project, environ: Mapping[str, str]) -> None:
        self.source, self.project, self.environ = source, project, environ
        self.mark = f"{source.name}:{project.key}"
        self.batches: Iterator[Batch] | None = None
        self.state = "waiting"
        self.done = self.total = self.kept = self.known = self.forgotten = self.unsaid = 0
        self.kinds: Counter[str] = Counter()
        self.lately: dict[str, None] = {}
        self.problems: list[str] = []
        self.since, self.ended = time.time(), 0.0

    def count(self, rows: Sequence[Memory]) -> None:
        """Count what was kept, by kind; what a source tells again in better words is not learnt twice."""
        self.kinds.update(memory.kind for memory in rows if memory.uid not in self.lately)
        self.lately.update((memory.uid, None) for memory in rows)
        for uid in list(self.lately)[:-COUNTED]:
            del self.lately[uid]

    def complain(self, problems: Sequence[str]) -> None:
        new = [each for each in problems if each not in self.problems]
        room = MOST_PROBLEMS - len(self.problems)
        self.problems += new[:room]
        self.unsaid += len(new[room:])

    def fail(self, why: str) -> None:
        if self.state in ("waiting", "running"):
            self.complain([why])
            self.end("failed")

    def end(self, state: str) -> None:
        self.state, self.ended = state, time.time()
        self.let_go()

    def let_go(self) -> None:
        """Close what the source has open: files, and a git that waits to be read."""
        if isinstance(self.batches, Generator):
            self.batches.close()
        self.batches = None

    def told(self) -> dict[str, Any]:
        more = [f"... and {self.unsaid} more"] if self.unsaid else []
        names = ("state", "done", "total", "kept", "known", "forgotten", "since", "ended")
        told = {name: getattr(self, name) for name in names}
        return {"source": self.source.name, **told, "kinds": dict(self.kinds), "problems": self.problems + more}


class _Job:
    """The import of one project: its sources, each with where it stands."""

    def __init__(self, project: Project, import_request: ImportRequest) -> None:
        self.project, self.import_request = project, import_request
        self.since = time.time()
        self.runs: dict[str, _Run] = {}

    def add(self, sources: Mapping[str, Source], import_request: ImportRequest) -> None:
        for name, source in sources.items():
            old = self.runs.get(name)
            if old and not old.ended and import_request.options.get("file") != self.import_request.options.get("file"):
                raise BadRequest(f"an import of {name} runs already, from another file", hint="wait until it is done")
            if old is None or old.ended:
                self.runs[name] = _Run(source, self.project, import_request.environ)
        self.import_request = replace(
            self.import_request,
            options={**self.import_request.options, **import_request.options},
            environ=import_request.environ,
        )

    def unfinished(self) -> list[_Run]:
        return [run for run in self.runs.values() if not run.ended]

    def left(self) -> dict[str, Any]:
        names = [name for name, run in self.runs.items() if not run.ended]
        import_request = self.import_request
        return {
            "folder": import_request.folder,
            "sources": names,
            "options": dict(import_request.options),
            "environ": dict(import_request.environ),
        }

    def told(self) -> dict[str, Any]:
        runs = list(self.runs.values())
        states = {run.state for run in runs}
        state = "running" if states & {"waiting", "running"} else "failed" if "failed" in states else "done"
        about = {"project": self.project.key, "name": self.project.name, "project_path": self.import_request.folder}
        ended = 0.0 if state == "running" else max((run.ended for run in runs), default=0.0)
        return {**about, "state": state, "since": self.since, "ended": ended, "sources": [run.told() for run in runs]}


def _allowed_of(batch: Batch, *, choices: Mapping[str, Any]) -> Batch:
    """A batch of many projects without those of which nothing may be kept; a key tells where some of them lie."""
    rows = (*batch.memories, *batch.changes, *batch.events, *([batch.session] if batch.session else ()))
    projects = [Project(key=key, name="", root=key.removeprefix("dir:")) for key in {row.project for row in rows}]
    refused = {each.key for each in projects if off(each, choices).write}
    session = batch.session if batch.session and batch.session.project not in refused else None
    lists = {name: getattr(batch, name) for name in ("memories", "changes", "events")}
    kept: dict[str, Any] = {
        name: tuple(each for each in rows if each.project not in refused) for name, rows in lists.items()
    }
    return replace(batch, session=session, **kept)


def _within(links: Sequence[Link], project: Project, *, store: Store) -> list[Link]:
    """Those that do not lead to another project's memories."""
    ends = list({end for link in links for end in (link.source, link.target)})
    known = (*store.memories.get_by_uid(ends), *store.memories.get(ends))
    away = {end for each in known if _is_others(each, project) for end in (each.uid, each.id)}
    return [link for link in links if away.isdisjoint((link.source, link.target))]


def _is_others(memory: Memory, project: Project) -> bool:
    return memory.scope.startswith("project:") and memory.scope != project.scope


def _told_of(memories: Sequence[Memory], deny: Sequence[str]) -> list[Memory]:
    """Those that do not tell what stands in a denied file."""
    return [each for each in memories if each.kind != "change" or not any(denied(file, deny) for file in each.files)]


def _was_seen(session: Session, *, store: Store) -> bool:
    """Return whether hooks told a session to its end; where its transcript goes on after them, they fell silent."""
    known = store.sessions.get(session.id)
    return known is not None and known.newest > 0 and session.last <= known.last + UNTOLD_SECONDS


def _fresh(memories: Sequence[Memory], *, store: Store, gentle: bool) -> tuple[list[Memory], int]:
    """Those that are new or changed, and how many are not."""
    latest = {memory.uid: memory for memory in memories}
    known = {memory.uid: memory for memory in store.memories.get_by_uid(list(latest))}
    both = [_merged(memory, known.get(uid), gentle=gentle) for uid, memory in latest.items()]
    fresh = [memory for memory in both if memory is not None]
    return fresh, len(latest) - len(fresh)


def _merged(new: Memory, old: Memory | None, *, gentle: bool) -> Memory | None:
    """What is to be written; None where nothing is. What somebody has forgotten or superseded stays so."""
    if old is None:
        return new
    if old.scope != new.scope:
        return None  # it moved elsewhere, or is another project's: no import takes it from there
    if old.status != "forgotten" and "seen_in" in new.detail:  # both have seen it: evidence is put together
        new = merge(old, new)
        return None if replace(new, id=old.id) == old else new
    if old.status == "forgotten" or new.confirmed < old.confirmed or (gentle and new.confirmed == old.confirmed):
        return None
    new = said_again(old, new)
    if old.status != "active":  # by its uid it may be called otherwise, and be the same
        new = replace(new, status=old.status, superseded_by=old.superseded_by)
    return None if replace(new, id=old.id) == old else new
