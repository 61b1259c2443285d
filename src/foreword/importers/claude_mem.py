"""claude-mem's database -> memories of this project, as far as it is sure: it keeps only the name of a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from foreword.capture.parse import project_at
from foreword.errors import BadRequest
from foreword.importers import Batch, Found, Resolver
from foreword.importers.foreign_rows import TABLES, Row, batches, row, told
from foreword.importers.transcript_reader import peek
from foreword.models import Project
from foreword.store.foreign import Foreign

NAME = "claude-mem"


def source(_: str, options: Mapping[str, Any], resolver: Resolver) -> ClaudeMem:
    return ClaudeMem(project_name=str(options.get("project_name") or ""), find_project=resolver.at)


class ClaudeMem:
    """What claude-mem kept. Its sessions are found by their folder; where that is unknown, by a name the user gave."""

    name = NAME

    def __init__(self, *, project_name: str = "", find_project: Callable[[str], Project] = project_at) -> None:
        self._project_name = project_name
        self._find_project = find_project

    def look(self, project: Project, *, environ: Mapping[str, str]) -> Found | None:
        """What is surely of this project, and what is only called like it."""
        path = _database(environ)
        if not path.is_file():
            return None
        with Foreign(path) as other:
            sessions = _Sessions(other, environ=environ, find_project=self._find_project)
            sure, maybe = [0, 0], 0
            for number, table in enumerate(TABLES):
                for (id, name), count in other.counts(table, by=(_session_column(other, table), "project")).items():
                    if sessions.is_of(project, id, name, named=self._project_name):
                        sure[number] += count
                    elif sessions.is_of(project, id, name, named=_folder(project)):
                        maybe += count
        about = [told(sure, source=NAME)] if any(sure) else []
        if maybe:
            about.append(
                f"claude-mem holds {maybe:,} more for a project called `{_folder(project)}`, and not in which folder; "
                f"if that is this one, add `--project-name {_folder(project)}`"
            )
        return Found(source=NAME, about="; ".join(about), count=sum(sure)) if about else None

    def read(self, project: Project, *, environ: Mapping[str, str], since_mark: str) -> Iterator[Batch]:
        """Newest first; the same row has the same uid each time."""
        if self._project_name and self._project_name != _folder(project):
            raise BadRequest(
                f"this project's folder is called `{_folder(project)}`, not `{self._project_name}`",
                hint="import it from the folder that has that name",
            )
        path = _database(environ)
        if path.is_file():
            with Foreign(path) as other:
                rows = self._rows(other, project, environ=environ)
                yield from batches(other, rows, source=NAME, project=project, since_mark=since_mark)

    def _rows(self, other: Foreign, project: Project, *, environ: Mapping[str, str]) -> Iterator[Row]:
        sessions = _Sessions(other, environ=environ, find_project=self._find_project)
        for table in TABLES:
            session = _session_column(other, table)
            for each in other.rows(table, columns=("id", session, "project", "created_at", "created_at_epoch")):
                if sessions.is_of(project, each[session], each["project"], named=self._project_name):
                    yield row(table, each, session=sessions.hosts.get(each[session], ""))


class _Sessions:
    """Whose the sessions are: claude-mem's own tables, or Claude Code's transcripts, may tell their folder."""

    def __init__(self, other: Foreign, *, environ: Mapping[str, str], find_project: Callable[[str], Project]) -> None:
        columns = other.columns("sdk_sessions")
        inner = "memory_session_id" if "memory_session_id" in columns else "sdk_session_id"
        outer = "content_session_id" if "content_session_id" in columns else "claude_session_id"
        known = list(other.rows("sdk_sessions", columns=(inner, outer, "cwd")))
        self.hosts = {each[inner]: str(each[outer] or "") for each in known}  # claude-mem's id -> the host's
        self._folders = _told_folders(other) | {each[outer]: each["cwd"] for each in known if each["cwd"]}
        self._files = _transcripts(environ)
        self._find_project = find_project
        self._keys: dict[Any, str] = {}

    def is_of(self, project: Project, id: Any, name: Any, *, named: str) -> bool:
        """By its folder; where that is unknown, by the name that the user gave, if the project's folder has it too."""
        key = self._key(id)
        return key == project.key if key else name == named == _folder(project) != ""

    def _key(self, id: Any) -> str:
        if id not in self._keys:
            session = self.hosts.get(id, "")
            folder = self._folders.get(session) or _peeked(self._files.get(session, ""))
            try:
                self._keys[id] = self._find_project(str(folder)).key if folder else ""
            except BadRequest:
                self._keys[id] = ""
        return self._keys[id]


def _database(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("CLAUDE_MEM_DATA_DIR") or Path(environ.get("HOME", "/")) / ".claude-mem") / "claude-mem.db"


def _folder(project: Project) -> str:
    return os.path.basename(project.root)


def _session_column(other: Foreign, table: str) -> str:
    return "memory_session_id" if "memory_session_id" in other.columns(table) else "sdk_session_id"


def _told_folders(other: Foreign) -> dict[Any, Any]:
    """The folders of sessions whose messages still wait there, or were kept."""
    columns = other.columns("pending_messages")
    session = "content_session_id" if "content_session_id" in columns else "claude_session_id"
    if not {"cwd", session} <= columns:
        return {}
    return {id: cwd for id, cwd in other.counts("pending_messages", by=(session, "cwd")) if cwd}


def _transcripts(environ: Mapping[str, str]) -> dict[str, str]:
    """Claude Code's own file of each session, which tells its folder."""
    top = Path(environ.get("CLAUDE_CONFIG_DIR") or Path(environ.get("HOME", "/")) / ".claude") / "projects"
    return {path.stem: str(path) for path in top.glob("*/*.jsonl")}


def _peeked(path: str) -> str:
    try:
        found = peek(path, host="claude-code") if path else None
    except OSError:
        return ""
    return found.cwd if found else ""
