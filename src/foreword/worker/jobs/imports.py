"""Import memories from what lies on this machine, in small commits that give way to hooks.

An import begins at the beginning, and leaves alone what is known already: after a crash it is simply started again.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from foreword.audit import merge_repeated
from foreword.errors import BadRequest, ForewordError
from foreword.extract.merge import merge
from foreword.importers import ENVIRON, Batch, Source, find, refuse_where_off, safe
from foreword.models import Change, Link, Memory, Project, Session
from foreword.policy import chosen, off
from foreword.redact.files import denied
from foreword.worker.jobs import Job, JobRunner, Leaving
from foreword.worker.projects import ProjectRegistry
from foreword.worker.serialize import text, texts
from foreword.worker.services import Services

log = logging.getLogger("foreword")

Row = TypeVar("Row", Memory, Change, Session)

ROWS = 25  # memories in one commit: some 10 ms in which nobody else can write
MOST_PROBLEMS = 50  # sentences kept of one source
UNSENT_SECONDS = 60.0  # that a transcript may go on after the last event of its session: clocks differ a little


@dataclass
class SourceRun:
    """One source of a project's import, and how far it is."""

    source: Source
    project: Project
    folder: str
    environ: Mapping[str, str]  # where the caller's folders are
    state: str = "running"
    done: int = 0
    total: int = 0
    kept: int = 0
    known: int = 0
    forgotten: int = 0
    since: float = field(default_factory=time.time)
    ended: float = 0.0
    problems: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def complain(self, *problems: str) -> None:
        self.problems = list(dict.fromkeys((*self.problems, *problems)))[:MOST_PROBLEMS]

    def end(self, state: str) -> None:
        self.state, self.ended = state, time.time()

    def status(self) -> dict[str, Any]:
        shown = ("state", "done", "total", "kept", "known", "forgotten", "since", "ended", "problems")
        return {"source": self.source.name, **{name: getattr(self, name) for name in shown}, "kinds": dict(self.kinds)}


class ImportJob:
    """The imports of one worker: the last one of each project, of which some run."""

    def __init__(self, services: Services, runner: JobRunner, projects: ProjectRegistry) -> None:
        self._services, self._runner, self._projects = services, runner, projects
        self._lock = threading.Lock()
        self._runs: dict[str, list[SourceRun]] = {}  # of the last import of each project
        runner.add(Job("import", self._run, due=self.is_busy))

    def start(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Begin, or join the import of that project which runs already; what is refused is raised at once."""
        names, options, folders = texts(body, "sources"), body.get("options") or {}, body.get("environ") or {}
        if not names:
            raise BadRequest("`sources` must be a list of names", hint='send {"sources": ["git"], "project_path": …}')
        if not isinstance(options, dict) or not isinstance(folders, dict):
            raise BadRequest("`options` and `environ` must be objects", hint="send {…}, or leave them out")
        environ = {name: str(each) for name, each in {**os.environ, **folders}.items() if name in ENVIRON}
        project = self._allowed(folder := text(body, "project_path"), environ)
        sources = [find(name, options, environ, self._projects.at) for name in dict.fromkeys(names)]
        with self._lock:
            if self._runner.closing:
                raise Leaving
            before = self._runs.get(project.key, []) if self.is_busy(project.key) else []
            running = [run.source.name for run in before if not run.ended]
            new = [each for each in sources if each.name not in running]
            self._runs[project.key] = [*before, *(SourceRun(each, project, folder, environ) for each in new)]
        self._runner.wake("import")
        return _import_status(self._runs[project.key])

    def status(self, project: str = "") -> dict[str, Any]:
        """Return the last import of every project, the last begun first."""
        found = [_import_status(runs) for key, runs in self._runs.copy().items() if project in ("", key)]
        return {"imports": sorted(found, key=lambda each: -each["since"])}

    def is_busy(self, *projects: str) -> bool:
        """Return whether an import runs: any, or one of these projects."""
        return any(not projects or run.project.key in projects for run in self._unfinished())

    def _unfinished(self) -> list[SourceRun]:
        return [run for runs in tuple(self._runs.values()) for run in runs if not run.ended]

    # -- in the job's thread ------------------------------------------------------------------------------------
    def _run(self) -> None:
        while not self._runner.closing and (waiting := self._unfinished()):
            self._import(waiting[0])

    def _import(self, run: SourceRun) -> None:
        """Import one source to its end."""
        try:
            for batch in run.source.read(run.project):
                self._allowed(run.folder, run.environ)  # the user may have switched it off meanwhile
                self._keep(batch, run.project, run)
                run.done, run.total = batch.done, batch.total
                run.complain(*batch.problems)
            run.end("done")
        except Leaving:
            raise
        except ForewordError as exc:
            run.complain(f"{exc}; {exc.hint}")
            run.end("failed")
            self._services.report("import", f"the import of {run.source.name} stopped: {exc}; {exc.hint}")
        except Exception:
            log.exception("the import of %s failed", run.source.name)
            run.complain("it failed, see logs/worker.log; please report it")
            run.end("failed")

    def _keep(self, batch: Batch, project: Project, run: SourceRun) -> None:
        """Store a batch: only what may be kept, redacted, as the project's own, and not what is known."""
        if batch.session is not None:
            # Its own hooks sent it already, as it happened; where its transcript goes on after them, they fell silent.
            known = self._services.store.sessions.get(batch.session.id)
            if known is not None and known.newest > 0 and batch.session.last <= known.last + UNSENT_SECONDS:
                return
        wide = bool(run.source.options.get("all"))
        deny = [each.lower() for each in self._services.settings.deny_paths]
        memories = []
        for each in batch.memories:
            self._runner.give_way()  # an answer loses a few milliseconds to every switch of threads
            if each.kind != "change" or not any(denied(file, deny) for file in each.files):
                memories += self._own(each, project, wide=wide)
        latest = {memory.uid: memory for memory in memories}
        before = {memory.uid: memory for memory in self._services.store.memories.get_by_uid(list(latest))}
        both = [_merged(memory, before.get(uid), gentle=batch.only_newer) for uid, memory in latest.items()]
        fresh = [memory for memory in both if memory is not None]
        run.known += len(memories) - len(fresh)
        changes = [
            row for each in batch.changes if not denied(each.file, deny) for row in self._own(each, project, wide=wide)
        ]
        session = next(iter(self._own(batch.session, project, wide=wide)), None) if batch.session else None
        links = [safe(each) for each in batch.links]
        if not wide:
            links = self._within(links, project)
        for start in range(0, len(fresh) or 1, ROWS):
            self._runner.give_way()
            rows = fresh[start : start + ROWS]
            is_last = start + ROWS >= len(fresh)  # what points at others comes when they are there
            more: dict[str, Any] = {"links": links, "changes": changes, "session": session} if is_last else {}
            kept = self._services.store.save(memories=rows, imported=True, **more)
            run.kept += len(kept)
            run.forgotten += len(rows) - len(kept)
            run.kinds.update(memory.kind for memory in kept)

    # -- what may be imported -----------------------------------------------------------------------------------
    def _allowed(self, folder: str, environ: Mapping[str, str]) -> Project:
        """Return the project, or raise BadRequest where its user lets nothing be kept."""
        project = self._projects.seen_at(folder)
        refuse_where_off(project, choices=chosen(self._services.settings), environ=environ)
        return project

    def _own(self, row: Row, project: Project, *, wide: bool) -> list[Row]:
        """Return a row, redacted, as the project's own; a wide import leaves it where it is, or out."""
        row = safe(row)
        if not wide:
            scope: dict[str, Any] = {"scope": project.scope} if isinstance(row, Memory) else {}
            return [replace(row, project=project.key, **scope)]
        # The key of a project without a remote says where it lies.
        theirs = Project(key=row.project, name="", root=row.project.removeprefix("dir:"))
        return [] if off(theirs, chosen(self._services.settings)).write else [self._projects.resolve(row)]

    def _within(self, links: Sequence[Link], project: Project) -> list[Link]:
        """Return the links that do not lead to another project's memories."""
        store, ends = self._services.store.memories, list({end for link in links for end in (link.source, link.target)})
        known = (*store.get_by_uid(ends), *store.get(ends))
        others = [each for each in known if each.scope.startswith("project:") and each.scope != project.scope]
        away = {end for each in others for end in (each.uid, each.id)}
        return [link for link in links if away.isdisjoint((link.source, link.target))]


def _import_status(runs: Sequence[SourceRun]) -> dict[str, Any]:
    """Return how far the import of a project is."""
    first, states = runs[0], {run.state for run in runs}
    state = next((each for each in ("running", "failed") if each in states), "done")
    about = {"project": first.project.key, "name": first.project.name, "project_path": first.folder}
    ended = 0.0 if state == "running" else max(run.ended for run in runs)
    return {**about, "state": state, "since": first.since, "ended": ended, "sources": [run.status() for run in runs]}


def _merged(new: Memory, old: Memory | None, *, gentle: bool) -> Memory | None:
    """Return what is to be written, or None; what somebody has forgotten or superseded stays so."""
    if old is None:
        return new
    if old.scope != new.scope or old.status == "forgotten":
        return None  # it moved elsewhere, or is another project's: no import takes it from there
    if "seen_in" in new.detail:  # both have seen it: evidence is put together
        new = merge(old, new)
    elif new.confirmed < old.confirmed or (gentle and new.confirmed == old.confirmed):
        return None
    else:
        new = merge_repeated(old, new)
        if old.status != "active":  # by its uid it may be called otherwise, and be the same
            new = replace(new, status=old.status, superseded_by=old.superseded_by)
    return None if replace(new, id=old.id) == old else new
