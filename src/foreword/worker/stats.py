"""Record why nothing was injected, note the days on which a worker runs, and answer `stats`."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Any

from foreword.errors import BadRequest
from foreword.models import NoContextRecord, Project
from foreword.worker.projects import ProjectRegistry
from foreword.worker.services import Services

MOST_DAYS = 3650


class StatsRecorder:
    """Records what is only counted."""

    def __init__(self, services: Services, projects: ProjectRegistry) -> None:
        self._services, self._projects = services, projects
        self._day = ""  # the last that was noted

    def record_no_context(self, project: Project, record: NoContextRecord) -> None:
        """Keep why nothing was injected, where events are captured; it is stored within a second."""
        if not self._projects.policy(project).capture:
            self._services.store.injections.record_no_context([record])

    def note_day(self) -> None:
        """Note a local day that began; called every second."""
        day = self._today().isoformat()
        if day != self._day:
            self._services.store.stats.start_day(day)
            self._day = day

    def stats(self, *, project: str, name: str, days: int) -> dict[str, Any]:
        """Return the figures of a project, or of all where it is empty, over the last *days* local days."""
        if not 1 <= days <= MOST_DAYS:
            raise BadRequest(f"`days` must be from 1 to {MOST_DAYS}", hint="leave it out for 30")
        last = self._today()
        first = last - timedelta(days=days - 1)
        since, until = (datetime.combine(day, time()).timestamp() for day in (first, last + timedelta(days=1)))
        figures = self._services.store.stats.figures(project=project, since=since, until=until)
        span = {"from": first.isoformat(), "to": last.isoformat(), "days": days}
        return {"project": project, "name": name, **span, **figures}

    def _today(self) -> date:
        return datetime.fromtimestamp(self._services.now()).date()
