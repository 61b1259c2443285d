"""Import memories from what lies on this machine, in small commits that give way to hooks.

How far each source came is stored with what it brought, and so is what is not finished: the next worker goes on there.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from foreword.audit import said_again
from foreword.errors import BadRequest, ForewordError, StoreError
from foreword.extract.merge import merge
from foreword.importers.base import Batch, Source, find, refuse_where_off, safe, safe_row
from foreword.models import Change, Event, Link, Memory, Project, Session
from foreword.policy import chosen, off
from foreword.redact.files import denied
from foreword.store import Store
from foreword.worker.jobs import Job, JobRunner, Leaving
from foreword.worker.projects import ProjectRegistry
from foreword.worker.requests import ImportRequest
from foreword.worker.services import Services

log = logging.getLogger("foreword")

T = TypeVar("T", Memory, Change, Session, Event)

ROWS = 50  # memories in one commit: some 20 ms in which nobody else can write
FEW = 10  # ... while hooks come in
BREATH = 0.01  # seconds between two commits while hooks come in
BACK_OFF = (1.0, 2.0, 4.0, 5.0)  # seconds until a store that cannot be written is tried again
TRIES = 120  # 10 minutes: then it waits for the next worker
MOST_ENDED = 20  # imports that ended and are still listed
MOST_PROBLEMS = 50  # sentences kept of one source; the rest are counted
COUNTED = 1_000  # memories that an import remembers it has counted
UNSENT_SECONDS = 60.0  # that a transcript may go on after the last event of its session: clocks differ a little
UNFINISHED = "imports"  # the checkpoint of what a killed worker left


class ImportJob:
    """The imports of one worker: those that run, one batch of each source in turn, and the last that ended."""

    def __init__(self, services: Services, runner: JobRunner, projects: ProjectRegistry) -> None:
        self._services, self._runner, self._projects = services, runner, projects
        self._lock = threading.Lock()
        self._resuming = False
        self._imports: list[_Import] = []
        self._ended: deque[_Import] = deque(maxlen=MOST_ENDED)
        runner.add(Job("import", self._run, due=self.is_busy))

    def start(self, import_request: ImportRequest) -> dict[str, Any]:
        """Begin, or join the import of that project which runs already; what is refused is raised at once."""
        project = self._allowed(import_request)
        sources = {name: find(name, import_request.options, resolver=self._projects) for name in import_request.sources}
        if not sources:
            raise BadRequest("an import needs at least one source", hint='send {"sources": ["git"], …}')
        with self._lock:
            if self._runner.closing:
                raise Leaving
            joined = next((each for each in self._imports if each.project.key == project.key), None)
            one = joined or _Import(project, import_request)
            one.add(sources, import_request)
            self._store_unfinished(*(() if joined else (one,)))  # what cannot be stored is not begun
            if not joined:
                self._imports.append(one)
        self._runner.wake("import")
        return one.status()

    def status(self, project: str = "") -> dict[str, Any]:
        """Return every import that runs or ended lately, the last begun first."""
        with self._lock:
            found = sorted((*self._imports, *self._ended), key=lambda each: -each.since)
        return {"imports": [each.status() for each in found if project in ("", each.project.key)]}

    def resume(self) -> None:
        """Go on with what an earlier worker left unfinished."""
        try:
            left = json.loads(self._services.store.checkpoint(UNFINISHED) or "[]")
        except (ValueError, ForewordError):
            return
        self._resuming = True  # until all of them are queued, the old checkpoint is the true one
        for each in left:
            try:
                self.start(ImportRequest(each["folder"], tuple(each["sources"]), each["options"], each["environ"]))
            except (ForewordError, KeyError, TypeError) as exc:
                self._services.report("import", f"an unfinished import was given up: {exc}")
        self._resuming = False
        if left:
            with self._lock, suppress(StoreError):
                self._store_unfinished()

    def is_busy(self, *projects: str) -> bool:
        """Return whether an import runs: any, or one of these projects."""
        return any(not projects or each.project.key in projects for each in self._imports)

    def close(self) -> None:
        """Close what the sources have open, after the job has ended."""
        for each in self._imports:
            for run in each.runs.values():
                run.close()

    # -- in the job's thread ------------------------------------------------------------------------------------
    def _run(self) -> None:
        """Import a batch of each source of each project in turn: the newest of everything before the oldest."""
        while not self._runner.closing and (imports := tuple(self._imports)):
            for each in imports:
                for run in each.unfinished():
                    self._try(each, run)
                with self._lock:
                    if each.unfinished() or self._runner.closing:
                        continue  # also where a source was added in this moment
                    self._imports.remove(each)
                    self._ended.append(each)
                    with suppress(StoreError):  # then the next worker finds that nothing is left to do
                        self._store_unfinished()

    def _try(self, one: _Import, run: _SourceRun) -> None:
        try:
            self._allowed(one.import_request)
            self._step(run)
        except Leaving:
            raise  # it stays unfinished, for the next worker
        except ForewordError as exc:
            run.fail(f"{exc}; {exc.hint}")
            self._services.report("import", f"the import of {run.source.name} stopped: {exc}; {exc.hint}")
        except Exception:
            log.exception("the import of %s failed", run.source.name)
            run.fail("it failed, see logs/worker.log; please report it")

    def _step(self, run: _SourceRun) -> None:
        if run.batches is None:
            checkpoint = self._services.store.checkpoint(run.checkpoint)
            run.batches = run.source.read(run.project, environ=run.environ, checkpoint=checkpoint)
            run.state = "running"
        self._runner.give_way()
        batch = next(run.batches, None)
        if batch is None:
            run.end("done")
            return
        self._keep(batch, run)
        run.done, run.total = batch.done, batch.total
        run.complain(batch.problems)

    def _keep(self, batch: Batch, run: _SourceRun) -> None:
        store = self._services.store
        if batch.session is not None and _was_seen(batch.session, store=store):
            batch = Batch(checkpoint=batch.checkpoint)  # its own hooks sent it already, as it happened
        wide = getattr(run.source, "wide", False)
        deny = [each.lower() for each in self._services.settings.deny_paths]
        if wide:
            batch = self._allowed_part(batch)
        memories = []
        for each in _without_denied(batch.memories, deny):
            self._runner.give_way()  # an answer loses a few milliseconds to every switch of threads
            memories.append(self._own(safe(each), run.project, wide=wide))
        fresh, unchanged = _fresh(memories, store=store, gentle=batch.only_newer)
        run.known += unchanged
        changes = [
            self._own(safe_row(each), run.project, wide=wide) for each in batch.changes if not denied(each.file, deny)
        ]
        session = self._own(safe_row(batch.session), run.project, wide=wide) if batch.session else None
        events = [self._own(safe_row(each), run.project, wide=wide) for each in batch.events]
        links = [safe_row(each) for each in batch.links]
        if not wide:
            links = _within(links, run.project, store=store)
        rest = {"links": links, "changes": changes, "session": session, "events": events}
        place = 0
        while True:
            hooks_came = self._runner.give_way()
            rows = fresh[place : place + (FEW if hooks_came else ROWS)]
            place += len(rows)
            last = place >= len(fresh)  # what points at others comes when they are there, and the checkpoint with it
            more = rest | {"checkpoint": (run.checkpoint, batch.checkpoint)} if last else {}
            kept = self._write(rows, run, **more)
            run.kept += len(kept)
            run.forgotten += len(rows) - len(kept)
            run.count(kept)
            if last:
                return
            if hooks_came:
                self._runner.sleep(BREATH)

    def _write(self, rows: Sequence[Memory], run: _SourceRun, **more: Any) -> tuple[Memory, ...]:
        """Store rows and return what was kept; a store that cannot be written is tried again for ten minutes."""
        for attempt in range(TRIES):
            try:
                return self._services.store.put_import(rows, **more, at=time.time())
            except StoreError as exc:
                run.complain([f"{exc}; it is tried again"])
                self._runner.sleep(BACK_OFF[min(attempt, len(BACK_OFF) - 1)])
        raise StoreError("the store cannot be written", hint="run `foreword doctor`, then import again")

    # -- what may be imported, and what is left -----------------------------------------------------------------
    def _allowed(self, import_request: ImportRequest) -> Project:
        """Return the project, or raise BadRequest where its user lets nothing be kept."""
        project, settings = self._projects.seen_at(import_request.folder), self._services.settings
        refuse_where_off(project, choices=chosen(settings), environ=import_request.environ)
        return project

    def _allowed_part(self, batch: Batch) -> Batch:
        """Return a batch of many projects without those of which nothing may be kept."""
        choices = chosen(self._services.settings)
        rows = (*batch.memories, *batch.changes, *batch.events, *([batch.session] if batch.session else ()))
        # The key of a project without a remote says where it lies.
        projects = [Project(key=key, name="", root=key.removeprefix("dir:")) for key in {row.project for row in rows}]
        refused = {each.key for each in projects if off(each, choices).write}
        session = batch.session if batch.session and batch.session.project not in refused else None
        lists = {name: getattr(batch, name) for name in ("memories", "changes", "events")}
        kept: dict[str, Any] = {
            name: tuple(each for each in rows if each.project not in refused) for name, rows in lists.items()
        }
        return replace(batch, session=session, **kept)

    def _own(self, item: T, project: Project, *, wide: bool) -> T:
        """Return a row as the project's own: only a wide import writes into others than it was started for."""
        if wide:
            return self._projects.resolve(item)
        scope: dict[str, Any] = {"scope": project.scope} if isinstance(item, Memory) else {}
        return replace(item, project=project.key, **scope)

    def _store_unfinished(self, *more: _Import) -> None:
        if self._resuming:
            return
        left = [each.left() for each in (*self._imports, *more) if each.unfinished()]
        self._services.store.set_checkpoint(UNFINISHED, json.dumps(left), at=time.time())


class _SourceRun:
    """One source of an import, and how far it is."""

    def __init__(self, source: Source, project: Project, environ: Mapping[str, str]) -> None:
        self.source, self.project, self.environ = source, project, environ
        self.checkpoint = f"{source.name}:{project.key}"
        self.batches: Iterator[Batch] | None = None
        self.state = "waiting"
        self.done = self.total = self.kept = self.known = self.forgotten = self.unlisted = 0
        self.kinds: Counter[str] = Counter()
        self.recent: dict[str, None] = {}
        self.problems: list[str] = []
        self.since, self.ended = time.time(), 0.0

    def count(self, rows: Sequence[Memory]) -> None:
        """Count what was kept, by kind; a memory that comes again in better words counts once."""
        self.kinds.update(memory.kind for memory in rows if memory.uid not in self.recent)
        self.recent.update((memory.uid, None) for memory in rows)
        for uid in list(self.recent)[:-COUNTED]:
            del self.recent[uid]

    def complain(self, problems: Sequence[str]) -> None:
        new = [each for each in problems if each not in self.problems]
        room = MOST_PROBLEMS - len(self.problems)
        self.problems += new[:room]
        self.unlisted += len(new[room:])

    def fail(self, why: str) -> None:
        if self.state in ("waiting", "running"):
            self.complain([why])
            self.end("failed")

    def end(self, state: str) -> None:
        self.state, self.ended = state, time.time()
        self.close()

    def close(self) -> None:
        """Close what the source has open: files, and a git that waits to be read."""
        if isinstance(self.batches, Generator):
            with suppress(ValueError):  # a batch is still being read
                self.batches.close()
        self.batches = None

    def status(self) -> dict[str, Any]:
        more = [f"... and {self.unlisted} more"] if self.unlisted else []
        names = ("state", "done", "total", "kept", "known", "forgotten", "since", "ended")
        row = {name: getattr(self, name) for name in names}
        return {"source": self.source.name, **row, "kinds": dict(self.kinds), "problems": self.problems + more}


class _Import:
    """The import of one project, and its sources."""

    def __init__(self, project: Project, import_request: ImportRequest) -> None:
        self.project, self.import_request = project, import_request
        self.since = time.time()
        self.runs: dict[str, _SourceRun] = {}

    def add(self, sources: Mapping[str, Source], import_request: ImportRequest) -> None:
        for name, source in sources.items():
            old = self.runs.get(name)
            if old and not old.ended and import_request.options.get("file") != self.import_request.options.get("file"):
                raise BadRequest(f"an import of {name} runs already, from another file", hint="wait until it is done")
            if old is None or old.ended:
                self.runs[name] = _SourceRun(source, self.project, import_request.environ)
        self.import_request = replace(
            self.import_request,
            options={**self.import_request.options, **import_request.options},
            environ=import_request.environ,
        )

    def unfinished(self) -> list[_SourceRun]:
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

    def status(self) -> dict[str, Any]:
        runs = list(self.runs.values())
        states = {run.state for run in runs}
        state = "running" if states & {"waiting", "running"} else "failed" if "failed" in states else "done"
        about = {"project": self.project.key, "name": self.project.name, "project_path": self.import_request.folder}
        ended = 0.0 if state == "running" else max((run.ended for run in runs), default=0.0)
        return {**about, "state": state, "since": self.since, "ended": ended, "sources": [run.status() for run in runs]}


def _within(links: Sequence[Link], project: Project, *, store: Store) -> list[Link]:
    """Return the links that do not lead to another project's memories."""
    ends = list({end for link in links for end in (link.source, link.target)})
    known = (*store.memories.get_by_uid(ends), *store.memories.get(ends))
    away = {end for each in known if _is_others(each, project) for end in (each.uid, each.id)}
    return [link for link in links if away.isdisjoint((link.source, link.target))]


def _is_others(memory: Memory, project: Project) -> bool:
    return memory.scope.startswith("project:") and memory.scope != project.scope


def _without_denied(memories: Sequence[Memory], deny: Sequence[str]) -> list[Memory]:
    """Return the memories without the changes of denied files."""
    return [each for each in memories if each.kind != "change" or not any(denied(file, deny) for file in each.files)]


def _was_seen(session: Session, *, store: Store) -> bool:
    """Return whether hooks sent a session to its end; where its transcript goes on after them, they fell silent."""
    known = store.sessions.get(session.id)
    return known is not None and known.newest > 0 and session.last <= known.last + UNSENT_SECONDS


def _fresh(memories: Sequence[Memory], *, store: Store, gentle: bool) -> tuple[list[Memory], int]:
    """Return the memories that are new or changed, and how many are not."""
    latest = {memory.uid: memory for memory in memories}
    known = {memory.uid: memory for memory in store.memories.get_by_uid(list(latest))}
    both = [_merged(memory, known.get(uid), gentle=gentle) for uid, memory in latest.items()]
    fresh = [memory for memory in both if memory is not None]
    return fresh, len(latest) - len(fresh)


def _merged(new: Memory, old: Memory | None, *, gentle: bool) -> Memory | None:
    """Return what is to be written, or None; what somebody has forgotten or superseded stays so."""
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
