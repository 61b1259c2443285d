"""open-mem's database in the project's own folder -> memories of this project."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from foreword.capture.parse import project_at
from foreword.errors import BadRequest
from foreword.importers import Batch, Found, Resolver
from foreword.importers.foreign_rows import TABLES, Row, batches, row, told
from foreword.models import Project
from foreword.store.foreign import Foreign

NAME = "open-mem"
GONE = ("deleted_at", "superseded_by")  # what open-mem itself no longer shows


def source(_: str, options: Mapping[str, Any], resolver: Resolver) -> OpenMem:
    del options
    return OpenMem(find_project=resolver.at)


class OpenMem:
    """What open-mem kept. A session of a folder that still exists and is another project's is left out."""

    name = NAME

    def __init__(self, *, find_project: Callable[[str], Project] = project_at) -> None:
        self._find_project = find_project

    def look(self, project: Project, *, environ: Mapping[str, str]) -> Found | None:  # noqa: ARG002 - as all sources
        """How much of it is this project's."""
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
        return Found(source=NAME, about=told(counts, source=NAME), count=sum(counts)) if any(counts) else None

    def read(
        self,
        project: Project,
        *,
        environ: Mapping[str, str],  # noqa: ARG002 - as all sources
        since_mark: str,
    ) -> Iterator[Batch]:
        """Newest first; the same row has the same uid each time."""
        path = _database(project)
        if path.is_file():
            with Foreign(path) as other:
                rows = self._rows(other, project)
                yield from batches(other, rows, source=NAME, project=project, since_mark=since_mark)

    def _rows(self, other: Foreign, project: Project) -> Iterator[Row]:
        ours = self._sessions(other, project)
        for table in TABLES:
            for each in other.rows(table, columns=("id", "session_id", "created_at", *GONE)):
                if each["session_id"] in ours and not any(each[name] for name in GONE):
                    yield row(table, each, session=str(each["session_id"]))

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
