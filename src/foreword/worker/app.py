"""The parts of the worker, held together; one function a route: a call in, an answer out. No HTTP here, and no SQL."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from foreword import __version__
from foreword.config import load, load_synonyms
from foreword.errors import BadRequest, ForewordError, StoreError
from foreword.hook import spool
from foreword.hook.build import fingerprint, key_of, refresh
from foreword.importers.jsonl import export_rows
from foreword.install.status import InstallStatus, install_status
from foreword.models import NoContextRecord, Project
from foreword.paths import Home
from foreword.policy import Policy, chosen, off, refuse_to_write
from foreword.problems import Problem, note, noted
from foreword.recall.resume import resume
from foreword.redact import redact
from foreword.redact.env import hiding
from foreword.store import Store
from foreword.store.scrub import Cleaner
from foreword.worker import requests, serialize
from foreword.worker import review as reviewing
from foreword.worker.agent_notes import AgentNotes
from foreword.worker.capture import Taking
from foreword.worker.context import Recalling
from foreword.worker.edits import Governing
from foreword.worker.embeddings import Meaning
from foreword.worker.forget import Forgetting
from foreword.worker.goals import Goals
from foreword.worker.graph import Graph
from foreword.worker.hints import Hints
from foreword.worker.hook import Moments
from foreword.worker.injections import Given
from foreword.worker.jobs.extract import ExtractionJob
from foreword.worker.jobs.imports import Backpressure, Importing
from foreword.worker.jobs.prune import Pruning
from foreword.worker.jobs.refine import Refining
from foreword.worker.jobs.tidy import Tidying
from foreword.worker.logs import log_to
from foreword.worker.memories import Memories
from foreword.worker.project_lookup import Registry
from foreword.worker.projects import Projects
from foreword.worker.scrub import scrub
from foreword.worker.session_lookup import Callers
from foreword.worker.sessions import Sessions
from foreword.worker.stats import Measuring
from foreword.worker.working_set import EVENTS, Work

log = logging.getLogger("foreword")


class App:
    """Owns the store and the settings of one home, for as long as the worker runs."""

    def __init__(
        self,
        home: Home,
        *,
        now: Callable[[], float] = time.time,
        choose: Callable[[str], str] = secrets.choice,
    ) -> None:
        self.home = home
        self.now = now
        self._choose = choose  # the characters of new ids
        self.started = now()
        self.asked = time.monotonic()
        day_ago = self.now() - 86_400
        self._told = {trouble.what for trouble in noted(str(home.trouble)) if trouble.at > day_ago}
        self._unsaid: dict[str, str] = {}
        self._build = fingerprint()
        self.registry = Registry(store=lambda: self.store, now=now)
        self._project = self.registry.at
        self.callers = Callers(store=lambda: self.store, project_of=self._project, now=now)
        self._work = Work(
            earlier=lambda id: self.store.events.list(id, limit=EVENTS, newest=True), tell=self.tell, now=now
        )
        self._store: Store | None = None
        self._broken = StoreError("the store is not open yet", hint="ask again")
        self._meaning = Meaning(tell=self.tell)
        self._refining = Refining(store=lambda: self.store, tell=self.tell)
        self._extraction = ExtractionJob(
            store=lambda: self.store,
            project_of=self._project,
            tell=self.tell,
            refining=self._refining,
            now=now,
            deny=lambda: self.settings.deny_paths,
            counts_as=self.registry.key,
            changed=self._memories_changed,
        )
        self.backpressure = Backpressure()
        self._measuring = Measuring(store=lambda: self.store, now=now)
        self.recalling = Recalling(
            store=lambda: self.store,
            settings=lambda: self.settings,
            synonyms=lambda: self._synonyms,
            meaning=self._meaning,
            work=self._work,
            measuring=self._measuring,
            hush=self._hush,
            tell=self.tell,
            now=now,
        )
        self._hints = Hints(
            store=lambda: self.store,
            settings=lambda: self.settings,
            measuring=self._measuring,
            work=self._work,
            tell=self.tell,
            now=now,
        )
        self._taking = Taking(
            home=home,
            store=lambda: self.store,
            settings=lambda: self.settings,
            registry=self.registry,
            callers=self.callers,
            work=self._work,
            extraction=self._extraction,
            off=self.off,
            hush=self._hush,
            tell=self.tell,
        )
        self._given = Given(
            store=lambda: self.store,
            project_of=self._project,
            catch_up=self._taking.catch_up,
            measuring=self._measuring,
            off=self.off,
            rejected=self.recalling.rejected,
            now=now,
        )
        self._moments = Moments(
            taking=self._taking,
            recalling=self.recalling,
            extraction=self._extraction,
            given=self._given,
            hints=self._hints,
            agent_notes=AgentNotes(store=lambda: self.store, settings=lambda: self.settings, work=self._work),
            project_of=self._project,
            off=self.off,
        )
        self._sessions = Sessions(
            store=lambda: self.store, project_of=self._project, extraction=self._extraction, given=self._given
        )
        self._memories = Memories(
            store=lambda: self.store,
            registry=self.registry,
            meaning=self._meaning,
            recalling=self.recalling,
            refuse=self._refuse,
            now=now,
        )
        self._pruning = Pruning(
            store=lambda: self.store,
            settings=lambda: self.settings,
            backpressure=self.backpressure,
            tell=self.tell,
            asked=lambda: self.asked,
            now=now,
        )
        self._importing = Importing(
            store=lambda: self.store,
            settings=lambda: self.settings,
            backpressure=self.backpressure,
            tell=self.tell,
            registry=self.registry,
        )
        self.projects = Projects(
            store=lambda: self.store,
            registry=self.registry,
            settings=lambda: self.settings,
            alone=self._extraction.alone,
            importing=self._importing.busy,
            now=now,
        )
        self._forgetting = Forgetting(
            home=home,
            store=lambda: self.store,
            extraction=self._extraction,
            refining=self._refining,
            importing=lambda: self._importing,
            work=self._work,
            drain=self._taking.drain,
            tell=self.tell,
            now=now,
        )
        self._tidying = Tidying(
            store=lambda: self.store,
            settings=lambda: self.settings,
            project_of=self._project,
            backpressure=self.backpressure,
            tell=self.tell,
            quiet=lambda: 0.0 if self._importing.busy() else time.monotonic() - self.asked,
            now=now,
        )
        self.governing = Governing(
            store=lambda: self.store,
            project_of=self._project,
            project_named=self.registry.named,
            vectors_of=self._meaning.of_memories,
            refuse=self._refuse,
            now=now,
        )
        self.goals = Goals(store=lambda: self.store, registry=self.registry, refuse=self._refuse, now=now)
        self.graph = Graph(store=lambda: self.store, now=now)
        # What a part answers is asked of the keeper, and goes straight to it.
        self.events = self._taking.events
        self.hook, self.context, self.question = self._moments.hook, self._moments.context, self._moments.question
        self.add, self.memory, self.search = self._memories.add, self._memories.one, self._memories.search
        self.sessions, self.session = self._sessions.every, self._sessions.story
        self.ids_like = self._sessions.ids_like
        self.described, self.settled = self._sessions.described, self._sessions.settled
        self.injections, self.injection = self._given.injections, self._given.injection
        self.silences, self.line, self.use = self._given.silences, self._given.line, self._given.use
        self.reload()
        self._store = self._opened()
        self._forgetting.resume()
        self._importing.resume()

    def _memories_changed(self, project: str) -> None:
        """Read again what is kept at hand of a project."""
        self._hints.refresh(project)
        self.recalling.refresh(project)

    # -- its own life -------------------------------------------------------------------------------------------
    def reload(self) -> None:
        """Read the settings again, and write the hook that goes with them."""
        self._settings_seen = self._stamps()
        self.loaded = load(self.home, os.environ)
        self.settings = self.loaded.settings
        log_to(self.home, self.settings)
        self._meaning.choose(self.settings, os.environ)
        self._refining.choose(self.settings, os.environ)
        self._synonyms, wrong = load_synonyms(self.home)
        for problem in (*self.loaded.problems, *wrong):
            self.tell("settings", problem)
        try:
            refresh(self.home, self.settings)
        except OSError as exc:
            self.tell("hook", f"hook.py cannot be written: {exc}")

    def _opened(self) -> Store | None:
        """The store; while it cannot be opened, every question is answered with the reason."""
        try:
            return Store(
                self.home.database,
                backups=self.home.backups,
                backups_keep=self.settings.backups_keep,
                choose=self._choose,
            )
        except StoreError as exc:
            self._broken = exc
            self.tell("store", f"{exc}; {exc.hint}")
            return None

    def tend(self) -> None:
        """What is done every second: changed settings, waiting deliveries, a store that may open again."""
        if self._stamps() != self._settings_seen:
            self.reload()
        for what, where in tuple(self._unsaid.items()):
            self.tell(where, what)
        if self._store is not None and not self._store.is_current_file():
            self.tell("store", f"{self.home.database} was taken away or replaced; it was opened anew")
            gone, self._store = self._store, self._opened()
            gone.close()
        if self._store is None:
            self._store = self._opened()
        if self._store is not None:
            try:
                self._taking.drain()
                spool.reserve(str(self.home.spool))
                self.registry.note()
            except (ForewordError, OSError) as exc:
                self.tell("spool", f"what hooks spooled waits: {exc}")
            for problem in self._store.problems():
                self.tell("store", problem)
            self._meaning.catch_up(self._store)
            self._extraction.look()
            self._measuring.look()
            self._pruning.look()
            self._tidying.look()

    def upgraded(self) -> bool:
        """Whether the package on the disk is no longer the one that runs."""
        try:
            return fingerprint() != self._build
        except OSError:
            return False  # in the middle of an upgrade; the next look decides

    def idle(self) -> bool:
        quiet = time.monotonic() - self.asked > self.settings.worker_idle_minutes * 60
        jobs = (self._importing, self._pruning, self._tidying)
        return quiet and not self._refining.busy and not any(each.busy() for each in jobs)

    def tell(self, where: str, what: str) -> None:
        """Say what went wrong once, where `status` and `doctor` find it."""
        what = redact(what)
        if what in self._told:
            return
        if note(str(self.home.trouble), Problem(at=self.now(), where=f"worker: {where}", what=what)):
            self._told.add(what)
            self._unsaid.pop(what, None)
            log.warning("%s: %s", where, what)
        else:
            self._unsaid[what] = where  # no room on the disk: it is told when there is

    def close(self) -> None:
        self._importing.close()
        self._pruning.close()
        self._tidying.close()
        self._meaning.close()
        self._extraction.close()
        self._refining.close()
        self._work.close()
        self._moments.close()
        self._measuring.close()
        if self._store is not None:
            self._store.close()

    @property
    def store(self) -> Store:
        if self._store is None:
            raise self._broken
        return self._store

    def _stamps(self) -> tuple[float, ...]:
        return tuple(path.stat().st_mtime if path.exists() else 0.0 for path in (self.home.config, self.home.synonyms))

    # -- what is switched off ----------------------------------------------------------------------------------
    def off(self, project: Project | None) -> Policy:
        """What is switched off in a project; of one that a hook named by its key alone, its root is looked for."""
        if project is not None and not project.name:
            with suppress(BadRequest):
                found = self._project(project.root)
                project = found if found.key == project.key else project
        return off(project, chosen(self.settings))

    def _hush(self, project: Project, silence: NoContextRecord) -> None:
        """Keep why nothing was said, where anything is captured."""
        if not self.off(project).capture:
            self._measuring.silent(silence)

    def _refuse(self, project: Project) -> None:
        refuse_to_write(self.off(project), project)

    # -- what people ask of it ----------------------------------------------------------------------------------
    def review(self, *, project_path: str = "", project: str = "", most: int | None = None) -> dict[str, Any]:
        """What waits for the user in a project, by folder or key, or in all, at most so many of each sort; how many."""
        key = project or (self._project(project_path).key if project_path else "")
        found = reviewing.waiting(self.store, scope=f"project:{key}" if key else "", most=most)
        told = {name: [serialize.memory(each) for each in getattr(found, name)] for name in ("proposals", "notes")}
        return {**told, "waiting": found.in_all, "becomes": list(reviewing.BECOMES)}

    def decide(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Do with one thing that waits what the user says, or with several."""
        if "ids" in told:
            return reviewing.decide_together(self.store, told, now=self.now())
        memory, entry = reviewing.decide(self.store, told, now=self.now())
        return {"memory": serialize.memory(memory), "entry": entry.number}

    def import_(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Fill a project's memory aside from what lies on this machine; where it stands."""
        return {"import": self._importing.start(requests.import_request(told))}

    def imports(self, *, project_path: str = "") -> dict[str, Any]:
        return self._importing.told(self._project(project_path).key if project_path else "")

    def export(
        self, *, part: str, project_path: str = "", everything: bool = False, after: int = 0, of: str = ""
    ) -> dict[str, Any]:
        """The next rows of an export, and the place to go on from."""
        project = None if everything else self._project(project_path)
        found, following = export_rows(self.store, part, project=project, after=after, of=of)
        return {"rows": found, "next": following, "project": project.key if project else ""}

    def resume(self, *, project_path: str, limit: int = 10) -> dict[str, Any]:
        """Where things stand in a project, for a person; nothing is recorded."""
        project = self._project(project_path)
        found = resume(self.store.search, project, now=self.now(), limit=limit)
        told = {name: [vars(point) for point in points] for name, points in vars(found).items()}
        return {"project": project.key, "name": project.name, **told}

    # -- what is known about itself -----------------------------------------------------------------------------
    def hosts(self) -> dict[str, Any]:
        """What was seen of each host that ever told something, and which of its sessions went on untold."""
        self._taking.catch_up()
        return {"hosts": {each.host: serialize.host(each) for each in self.store.stats.agents()}}

    def wiring(self) -> Mapping[str, InstallStatus]:
        """Of every host that can be wired, how much of that stands in its files."""
        return install_status(self.home, os.environ)

    def health(self) -> dict[str, Any]:
        """Whether it is well, and what is in it; asked of a worker whose store is broken, it tells that."""
        about: dict[str, Any] = {
            "version": __version__,
            "build": self._build,
            "pid": os.getpid(),
            "home": str(self.home.root),
            "uptime_s": round(max(0.0, self.now() - self.started), 1),  # a clock may be set back
            "ok": self._store is not None and not self._store.problems(),
            "mcp": self.callers.counts(),
        }
        if self._store is None:
            return {**about, "problems": [f"{self._broken}; {self._broken.hint}"], "counts": {}, "database_bytes": None}
        held = {"counts": dict(self._store.stats.row_counts()), "database_bytes": self._store.stats.size().total}
        return {**about, "problems": list(self._store.problems()), **held}

    def stats(self, *, project_path: str = "", project_key: str = "", days: int = 30) -> dict[str, Any]:
        """What was given, what came of it and what it cost; without a path or key, of all projects. Only counts."""
        named = self.registry.counted(Project(project_key, "", ""))
        project = self._project(project_path) if project_path else named
        return self._measuring.stats(project=project.key, name=project.name, days=days)

    def model(self, *, ledger: int = 0) -> dict[str, Any]:
        told = {"ledger": self._refining.spendings(limit=ledger)} if ledger else {}
        return {**self._refining.about(), **told}

    def try_model(self) -> dict[str, Any]:
        return self._refining.attempt()

    def index(self) -> dict[str, Any]:
        return {"indexed": self.store.reindex()}

    def prune(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """What is old or too much: shown, or a second's work of removing it; ask again until it is `done`."""
        return self._pruning.preview() if told.get("dry_run") else self._pruning.work(who="user")

    def tidy(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Merge, supersede and sink in a project or in all of them; with `dry_run`, tell what would be done."""
        self._taking.drain()
        folder = str(told.get("project_path") or "")
        projects = self._tidying.projects() if told.get("all") else (self._project(folder),)
        return self._tidying.run(projects, dry_run=bool(told.get("dry_run")))

    def tidying(self) -> dict[str, Any]:
        return self._tidying.told()

    def scrub(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Take out of what is stored what is now known to be secret, a second's work; with `after` it goes on there."""
        if not told.get("after"):
            self._taking.drain()
        cleaner = Cleaner(
            deny=self.settings.deny_paths,
            hide=hiding(str(told.get("hidden") or ""), key=key_of(self.home)) or str,
        )
        dry_run = bool(told.get("dry_run"))
        answer = scrub(self.store, self.home, cleaner=cleaner, after=told.get("after") or (), dry_run=dry_run)
        if not dry_run:
            log_to(self.home, self.settings)  # the log may be another file now
        return answer

    def forget(self, told: Mapping[str, Any], *, who: str = "user") -> dict[str, Any]:
        """Remove something for good, and prove it; or only tell what would go."""
        self._measuring.look()  # what is to be written with the next commit may name it
        return self._forgetting.forget(told, who=who)
