"""Read open-mem's database in the project's own folder; its rows are like claude-mem's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from foreword.capture.parse import project_at
from foreword.errors import BadRequest
from foreword.importers.base import Batch, Offer, Resolver
from foreword.importers.claude_mem import TABLES, RowKey, batches, describe, row_key
from foreword.importers.foreign import Foreign
from foreword.models import Project

NAME = "open-mem"
GONE = ("deleted_at", "superseded_by")  # open-mem itself no longer shows a row with either


def source(_: str, options: Mapping[str, Any], resolver: Resolver) -> OpenMem:
    del options
    return OpenMem(find_project=resolver.at)


class OpenMem:
    """The rows of open-mem, without sessions in a folder that still exists and is another project's."""

    name = NAME

    def __init__(self, *, find_project: Callable[[str], Project] = project_at) -> None:
        self._find_project = find_project

    def offer(self, project: Project, *, environ: Mapping[str, str]) -> Offer | None:
        del environ
        path = _database(project)
        if not path.is_file():
            return None
        with Foreign(path) as other:
            ours = self._sessions(other, project)
            counts = [
                sum(
                    count
                    for (id, *gone), count in other.counts(table, by=("session_id", *GONE)).items()
                    if id in ours and not any(gone)
                )
                for table in TABLES
            ]
        return Offer(source=NAME, about=describe(counts, source=NAME), count=sum(counts)) if any(counts) else None

    def read(self, project: Project, *, environ: Mapping[str, str], checkpoint: str) -> Iterator[Batch]:
        del environ
        path = _database(project)
        if path.is_file():
            with Foreign(path) as other:
                rows = self._rows(other, project)
                yield from batches(other, rows, source=NAME, project=project, checkpoint=checkpoint)

    def _rows(self, other: Foreign, project: Project) -> Iterator[RowKey]:
        ours = self._sessions(other, project)
        for table in TABLES:
            for each in other.rows(table, columns=("id", "session_id", "created_at", *GONE)):
                if each["session_id"] in ours and not any(each[name] for name in GONE):
                    yield row_key(table, each, session=str(each["session_id"]))

    def _sessions(self, other: Foreign, project: Project) -> frozenset[Any]:
        known = other.rows("sessions", columns=("id", "project_path"))
        return frozenset(each["id"] for each in known if self._is_ours(str(each["project_path"] or ""), project))

    def _is_ours(self, path: str, project: Project) -> bool:
        if not os.path.isdir(path):  # the project has moved since, and its database with it
            return True
        try:
            return self._find_project(path).key == project.key
        except BadRequest:
            return True


def _database(project: Project) -> Path:
    return Path(project.root) / ".open-mem" / "memory.db"
