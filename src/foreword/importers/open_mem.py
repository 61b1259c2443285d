"""Read open-mem's database in the project's own folder; its rows are like claude-mem's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from foreword.importers.base import Batch, Offer, Source
from foreword.importers.claude_mem import TABLES, batches, count_rows, opened
from foreword.models import Project

SELECT = """SELECT t.*, s.project_path, s.id AS session, '{table}' AS "table" FROM {table} t
    JOIN sessions s ON s.id = t.session_id WHERE t.created_at >= ? {only} ORDER BY t.created_at DESC"""
# Rows that open-mem itself no longer shows.
ONLY = {"observations": "AND deleted_at IS NULL AND superseded_by IS NULL", "session_summaries": ""}


class OpenMem(Source):
    """The rows of open-mem, without sessions in a folder that still exists and is another project's."""

    def offer(self, project: Project, *, environ: Mapping[str, str]) -> Offer | None:
        del environ
        path = Path(project.root) / ".open-mem" / "memory.db"
        if not path.is_file():
            return None
        with opened(path) as db:
            rows = list(self._rows(db, project, since=""))
        return Offer(source=self.name, about=count_rows(rows, source=self.name), count=len(rows)) if rows else None

    def read(self, project: Project, *, environ: Mapping[str, str], checkpoint: str) -> Iterator[Batch]:
        del environ
        path = Path(project.root) / ".open-mem" / "memory.db"
        if path.is_file():
            with opened(path) as db:
                since = checkpoint if checkpoint[:1].isdigit() else ""
                rows = self._rows(db, project, since=since)
                yield from batches(rows, "created_at", self.name, project, since)

    def _rows(self, db: Connection, project: Project, *, since: str) -> Iterator[Mapping[str, Any]]:
        for table in TABLES:
            for row in db.execute(SELECT.format(table=table, only=ONLY[table]), (since,)):
                path = row["project_path"]  # gone where the project has moved since, and its database with it
                if not os.path.isdir(path) or self.key_of(path) == project.key:
                    yield row
