"""Build the parts of the worker and run their upkeep every second: the composition root."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from foreword.errors import ForewordError
from foreword.hook import spool
from foreword.hook.build import fingerprint
from foreword.paths import Home
from foreword.worker import forget
from foreword.worker.callers import Callers
from foreword.worker.context import ContextBuilder
from foreword.worker.embeddings import Embeddings
from foreword.worker.hints import Hints
from foreword.worker.hook import Capture, HookHandler
from foreword.worker.jobs import JobRunner
from foreword.worker.jobs.backup import BackupJob
from foreword.worker.jobs.extract import ExtractionJob
from foreword.worker.jobs.imports import ImportJob
from foreword.worker.jobs.maintenance import PruneJob, TidyJob
from foreword.worker.jobs.refine import RefineJob
from foreword.worker.projects import ProjectRegistry
from foreword.worker.services import Services
from foreword.worker.working_set import WorkingSet


class App(Services):
    """The services of one home's worker with all parts that use them; handlers get it as their first argument."""

    def __init__(self, home: Home, *, now: Callable[[], float] = time.time) -> None:
        self.build = fingerprint()
        super().__init__(home, now=now)
        self.started = now()
        self._day = ""  # the last local day that was noted
        self.runner = runner = JobRunner(self)
        self.projects = projects = ProjectRegistry(self)
        self.callers = Callers(self, projects)
        self.working_set = WorkingSet(self)
        self.embeddings = Embeddings(self, runner)
        self.context = ContextBuilder(self, projects, self.working_set, self.embeddings)
        self.hints = Hints(self, self.working_set)
        self.refine = RefineJob(self, runner)
        caches = (self.context, self.hints)
        self.extraction = ExtractionJob(self, runner, projects, self.refine, caches=caches)
        self.imports = ImportJob(self, runner, projects)
        self.tidy = TidyJob(self, runner, projects)
        self.prune = PruneJob(self, runner)
        self.backup = BackupJob(self, runner, self.extraction)
        self.capture = Capture(self, projects, self.callers, self.working_set, self.extraction)
        self.hooks = HookHandler(
            self, projects, self.capture, self.context, extraction=self.extraction, hints=self.hints
        )
        self.reload()
        self.open_store()
        forget.resume(self)

    def reload(self) -> None:
        """Read the settings again, and let everything follow them."""
        super().reload()
        self.embeddings.configure(self.settings)

    def tick(self) -> None:
        """Follow changed settings, reopen the store, store what hooks spooled, begin due jobs; called every second."""
        self.follow_settings()
        self.report_unwritten()
        self.open_store()
        if not self.has_store:
            return
        try:
            self.capture.drain()
            spool.reserve(str(self.home.spool))
            self.projects.store_seen()
        except (ForewordError, OSError) as exc:
            self.report("spool", f"spooled hook calls cannot be stored yet: {exc}")
        for problem in self.store_problems():
            self.report("store", problem)
        today = datetime.fromtimestamp(self.now()).date().isoformat()
        if today != self._day:
            self.store.stats.start_day(today)
            self._day = today
        self.runner.tick()

    def upgraded(self) -> bool:
        """Return whether the package on the disk is no longer the one that runs."""
        try:
            return fingerprint() != self.build
        except OSError:
            return False  # in the middle of an upgrade; the next check decides

    def is_idle(self) -> bool:
        """Return whether no request came for long, and nothing keeps the worker."""
        return (
            not self.unrescued
            and self.idle_seconds > self.settings.worker_idle_minutes * 60
            and not self.runner.is_busy()
        )

    def close(self) -> None:
        """Let jobs finish the commits at hand, then close what is open; the rest waits for the next worker."""
        self.runner.begin_close()
        self.runner.close()
        self.working_set.close()
        self.hooks.close()
        super().close()
