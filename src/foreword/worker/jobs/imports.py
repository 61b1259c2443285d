"""Import memories from what lies on this machine, in small commits that give way to hooks.

How far each source came is stored with what it brought. Imports that a worker left unfinished begin again with the
next one, which leaves alone what is known already.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from foreword.audit import said_again
from foreword.errors import ForewordError, StoreError
from foreword.extract.merge import merge
from foreword.importers.base import Batch, Source, find, refuse_where_off, safe, safe_row
from foreword.models import Change, Event, Link, Memory, Project, Session
from foreword.policy import chosen, off
from foreword.redact.files import denied
from foreword.store import Store
from foreword.worker.jobs import Job, JobRunner, Leaving
from foreword.worker.projects import ProjectRegistry
from foreword.worker.serialize import ImportRequest
from foreword.worker.services import Services

log = logging.getLogger("foreword")

T = TypeVar("T", Memory, Change, Session, Event)

ROWS = 25  # memories in one commit: some 10 ms in which nobody else can write
RETRY, TRIES = 5.0, 120  # seconds until a store that cannot be written is tried again; after 10 minutes it is given up
MOST_ENDED = 20  # imports that ended and are still listed
MOST_PROBLEMS = 50  # sentences kept of one source
UNSENT_SECONDS = 60.0  # that a transcript may go on after the last event of its session: clocks differ a little
UNFINISHED = "imports"  # the checkpoint of what a killed worker left


class ImportJob:
    """The imports of one worker: those that run, one batch of each source in turn, and the last that ended."""

    def __init__(self, services: Services, runner: JobRunner, projects: ProjectRegistry) -> None:
        self._services, self._runner, self._projects = services, runner, projects
        self._lock = threading.Lock()
        self._imports: dict[str, _Import] = {}  # by project
        self._ended: deque[_Import] = deque(maxlen=MOST_ENDED)
        runner.add(Job("import", self._run, due=self.is_busy))

    def start(self, import_request: ImportRequest) -> dict[str, Any]:
        """Begin, or join the import of that project which runs already; what is refused is raised at once."""
        project = self._allowed(import_request)
        options = import_request.options
        sources = {name: find(name, options, project_of=self._projects.at) for name in import_request.sources}
        with self._lock:
            if self._runner.closing:
                raise Leaving
            one = self._imports.get(project.key) or _Import(project, import_request)
            for name, source in sources.items():
                if name not in one.runs or one.runs[name].ended:
                    one.runs[name] = _SourceRun(source, project, import_request.environ)
            self._imports[project.key] = one
            with suppress(StoreError):  # the import itself waits for a store that can be written
                self._store_unfinished()
        self._runner.wake("import")
        return one.status()

    def status(self, project: str = "") -> dict[str, Any]:
        """Return every import that runs or ended lately, the last begun first."""
        with self._lock:
            found = sorted((*self._imports.values(), *self._ended), key=lambda each: -each.since)
        return {"imports": [each.status() for each in found if project in ("", each.project.key)]}

    def resume(self) -> None:
        """Begin again with what an earlier worker left unfinished."""
        try:
            left = json.loads(self._services.store.checkpoint(UNFINISHED) or "[]")
        except (ValueError, ForewordError):
            return
        for each in left:
            try:
                self.start(ImportRequest(each["folder"], tuple(each["sources"]), each["options"], each["environ"]))
            except (ForewordError, KeyError, TypeError) as exc:
                self._services.report("import", f"an unfinished import was given up: {exc}")

    def is_busy(self, *projects: str) -> bool:
        """Return whether an import runs: any, or one of these projects."""
        return any(not projects or key in projects for key in tuple(self._imports))

    # -- in the job's thread ------------------------------------------------------------------------------------
    def _run(self) -> None:
        """Import a batch of each source of each project in turn, so that none waits for another."""
        while not self._runner.closing and (imports := tuple(self._imports.values())):
            for one in imports:
                for run in one.unfinished():
                    self._try(one, run)
                with self._lock:
                    if not one.unfinished():  # not where a source was added in this moment
                        self._ended.append(self._imports.pop(one.project.key))
                        with suppress(StoreError):  # then the next worker finds that nothing is left to do
                            self._store_unfinished()

    def _try(self, one: _Import, run: _SourceRun) -> None:
        """Import one batch of a source."""
        try:
            self._allowed(one.import_request)
            self._runner.give_way()
            if run.batches is None:
                checkpoint = self._services.store.checkpoint(run.checkpoint)
                run.batches = run.source.read(run.project, environ=run.environ, checkpoint=checkpoint)
            batch = next(run.batches, None)
            if batch is None:
                run.end("done")
                return
            self._keep(batch, run)
            run.done, run.total = batch.done, batch.total
            run.complain(batch.problems)
        except Leaving:
            raise  # it stays unfinished, for the next worker
        except ForewordError as exc:
            run.complain([f"{exc}; {exc.hint}"])
            run.end("failed")
            self._services.report("import", f"the import of {run.source.name} stopped: {exc}; {exc.hint}")
        except Exception:
            log.exception("the import of %s failed", run.source.name)
            run.complain(["it failed, see logs/worker.log; please report it"])
            run.end("failed")

    def _keep(self, batch: Batch, run: _SourceRun) -> None:
        store = self._services.store
        if batch.session is not None and _was_seen(batch.session, store=store):
            batch = Batch(checkpoint=batch.checkpoint)  # its own hooks sent it already, as it happened
        wide = run.source.options.get("all", False)
        deny = [each.lower() for each in self._services.settings.deny_paths]
        if wide:
            batch = self._allowed_part(batch)
        memories = []
        for each in batch.memories:
            self._runner.give_way()  # an answer loses a few milliseconds to every switch of threads
            if each.kind != "change" or not any(denied(file, deny) for file in each.files):
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
        for start in range(0, len(fresh) or 1, ROWS):
            self._runner.give_way()
            rows = fresh[start : start + ROWS]
            more: dict[str, Any] = {}
            if start + ROWS >= len(
                fresh
            ):  # what points at others comes when they are there, and the checkpoint with it
                more = {"links": links, "changes": changes, "session": session, "events": events}
                more["checkpoint"] = (run.checkpoint, batch.checkpoint)
            kept = self._write(rows, run, **more)
            run.forgotten += len(rows) - len(kept)
            run.count(kept)

    def _write(self, rows: Sequence[Memory], run: _SourceRun, **more: Any) -> tuple[Memory, ...]:
        """Store rows and return what was kept; a store that cannot be written is tried again for ten minutes."""
        for _ in range(TRIES):
            try:
                return self._services.store.put_import(rows, **more, at=time.time())
            except StoreError as exc:
                run.complain([f"{exc}; it is tried again"])
                self._runner.sleep(RETRY)
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

        def is_allowed(row: Memory | Change | Event | Session) -> bool:
            # The key of a project without a remote says where it lies.
            project = Project(key=row.project, name="", root=row.project.removeprefix("dir:"))
            return not off(project, choices).write

        session = batch.session if batch.session and is_allowed(batch.session) else None
        return replace(
            batch,
            memories=tuple(filter(is_allowed, batch.memories)),
            changes=tuple(filter(is_allowed, batch.changes)),
            events=tuple(filter(is_allowed, batch.events)),
            session=session,
        )

    def _own(self, item: T, project: Project, *, wide: bool) -> T:
        """Return a row as the project's own: only a wide import writes into others than it was started for."""
        if wide:
            return self._projects.resolve(item)
        scope: dict[str, Any] = {"scope": project.scope} if isinstance(item, Memory) else {}
        return replace(item, project=project.key, **scope)

    def _store_unfinished(self) -> None:
        left = [each.left() for each in self._imports.values()]
        self._services.store.set_checkpoint(UNFINISHED, json.dumps(left), at=time.time())


class _SourceRun:
    """One source of an import, and how far it is."""

    def __init__(self, source: Source, project: Project, environ: Mapping[str, str]) -> None:
        self.source, self.project, self.environ = source, project, environ
        self.checkpoint = f"{source.name}:{project.key}"
        self.batches: Iterator[Batch] | None = None
        self.state = "running"
        self.done = self.total = self.kept = self.known = self.forgotten = 0
        self.kinds: Counter[str] = Counter()
        self.problems: list[str] = []
        self.since, self.ended = time.time(), 0.0
        self._counted: set[str] = set()

    def count(self, rows: Sequence[Memory]) -> None:
        """Count what was kept, by kind; a memory that comes again in better words counts once."""
        self.kept += len(rows)
        self.kinds.update(memory.kind for memory in rows if memory.uid not in self._counted)
        self._counted.update(memory.uid for memory in rows)

    def complain(self, problems: Sequence[str]) -> None:
        new = [each for each in problems if each not in self.problems]
        self.problems = (self.problems + new)[:MOST_PROBLEMS]

    def end(self, state: str) -> None:
        self.state, self.ended, self.batches = state, time.time(), None

    def status(self) -> dict[str, Any]:
        names = ("state", "done", "total", "kept", "known", "forgotten", "since", "ended", "problems")
        return {"source": self.source.name, **{name: getattr(self, name) for name in names}, "kinds": dict(self.kinds)}


class _Import:
    """The import of one project, and its sources."""

    def __init__(self, project: Project, import_request: ImportRequest) -> None:
        self.project, self.import_request = project, import_request
        self.since = time.time()
        self.runs: dict[str, _SourceRun] = {}

    def unfinished(self) -> list[_SourceRun]:
        return [run for run in self.runs.values() if not run.ended]

    def left(self) -> dict[str, Any]:
        names = [run.source.name for run in self.unfinished()]
        options: dict[str, Any] = {}
        for run in self.unfinished():
            options |= run.source.options
        about = self.import_request
        return {"folder": about.folder, "sources": names, "options": options, "environ": dict(about.environ)}

    def status(self) -> dict[str, Any]:
        runs = list(self.runs.values())
        states = {run.state for run in runs}
        state = next((each for each in ("running", "failed") if each in states), "done")
        about = {"project": self.project.key, "name": self.project.name, "project_path": self.import_request.folder}
        ended = 0.0 if state == "running" else max((run.ended for run in runs), default=0.0)
        return {**about, "state": state, "since": self.since, "ended": ended, "sources": [run.status() for run in runs]}


def _within(links: Sequence[Link], project: Project, *, store: Store) -> list[Link]:
    """Return the links that do not lead to another project's memories."""
    ends = list({end for link in links for end in (link.source, link.target)})
    known = (*store.memories.get_by_uid(ends), *store.memories.get(ends))
    others = [each for each in known if each.scope.startswith("project:") and each.scope != project.scope]
    away = {end for each in others for end in (each.uid, each.id)}
    return [link for link in links if away.isdisjoint((link.source, link.target))]


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
