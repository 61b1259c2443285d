"""Make the worker's shared services over a test's store, and the job runner that goes with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from foreword.config import load
from foreword.models import ModelCall, Project
from foreword.paths import Home
from foreword.store import Store
from foreword.worker.projects import ProjectRegistry
from foreword.worker.services import Services


class Reports(Services):
    """Services that keep reported problems in a list instead of the problems log."""

    def __init__(
        self,
        store: Store | None,
        home: Home | None = None,
        *,
        now: Callable[[], float] = time.time,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(home or Home(Path("/nowhere")), now=now, store=store)
        self.loaded = load(self.home, environ or {})
        self.reports: list[tuple[str, str]] = []

    def report(self, where: str, what: str) -> None:
        if (where, what) not in self.reports:
            self.reports.append((where, what))

    def set(self, **settings: Any) -> None:
        self.loaded = self.loaded._replace(settings=replace(self.settings, **settings))

    @property
    def problems(self) -> list[str]:
        return [what for _, what in self.reports]


class OneProject(ProjectRegistry):
    """A registry for which every folder is the same project."""

    def __init__(self, services: Services, project: Project) -> None:
        super().__init__(services)
        self._project = project

    def at(self, folder: str) -> Project:
        return self._project


def model_calls(store: Store) -> tuple[ModelCall, ...]:
    """Return the recorded calls of models, newest first."""
    columns = "at, provider, model, purpose, session, tokens_in, tokens_out, ms, outcome, number"
    return tuple(ModelCall(*row) for row in store.database.query(f"SELECT {columns} FROM model_calls ORDER BY 10 DESC"))
