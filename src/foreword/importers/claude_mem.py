"""Read the databases of claude-mem and open-mem, which have the same columns, and map their rows to memories.

claude-mem keeps only the name of a session's folder: its rows count as this project's where a transcript of Claude Code
says that the session was here, or where the user says that the name is this project's. open-mem's file lies in the
project's own folder.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from foreword.agents import text_of
from foreword.encoding import loads, plural, timestamp
from foreword.errors import BadPayload, BadRequest, StoreError
from foreword.extract.actions import relative
from foreword.importers import Batch, Source
from foreword.importers.transcripts import peek
from foreword.models import Memory, Project, texts
from foreword.redact import redact_all

TITLE = 160  # characters; what a line shows at most
FILES = 40  # of one memory, as of a commit
BATCH = 100  # memories: the first are stored within a second
PATIENCE = 2.0  # seconds that somebody else may hold the file; its owner writes for milliseconds
CONFIDENCE = 0.7  # a model wrote it, and nobody has confirmed it here
# Discoveries that hold for longer than a day; the others tell what was read on the way.
LASTING = frozenset(("gotcha", "pattern", "how-it-works", "why-it-exists", "trade-off"))
TABLES = {"observations": "observations", "session_summaries": "summaries"}
ROWS = """SELECT t.*, s.content_session_id AS session, '{table}' AS "table" FROM {table} t
    LEFT JOIN sdk_sessions s USING (memory_session_id) ORDER BY t.created_at_epoch"""
OPEN_MEM_ROWS = """SELECT t.*, s.project_path, s.id AS session, '{table}' AS "table" FROM {table} t
    JOIN sessions s ON s.id = t.session_id WHERE {shown} ORDER BY t.created_at"""
# Rows that open-mem itself still shows.
OPEN_MEM_SHOWN = {"observations": "deleted_at IS NULL AND superseded_by IS NULL", "session_summaries": "true"}


class _Database(Source):
    """The rows of another tool's database that are of one project."""

    def offer(self, project: Project) -> str:
        """Count the rows of this project."""
        counts = Counter(row["table"] for row in self._rows(project))
        parts = [plural(counts[table], things) for table, things in TABLES.items() if counts[table]]
        return f"{' and '.join(parts)} of {self.name}" if parts else ""

    def read(self, project: Project) -> Iterator[Batch]:
        rows, done = self._rows(project), 0
        while page := list(islice(rows, BATCH)):
            done += len(page)
            memories = (_memory(row, source=self.name, project=project) for row in page)
            yield Batch([memory for memory in memories if memory.title], done=done)

    def _rows(self, project: Project) -> Iterator[Mapping[str, Any]]:
        raise NotImplementedError


class ClaudeMem(_Database):
    """The rows of claude-mem."""

    def offer(self, project: Project) -> str:
        """Count the rows of this project; where there are none, those that only have its name."""
        folder = os.path.basename(project.root)
        if (offered := super().offer(project)) or self.options.get("project_name"):
            return offered
        unassigned = sum(1 for _ in ClaudeMem(self.name, {"project_name": folder}, self.environ)._rows(project))
        about = f"{unassigned:,} rows of a project called `{folder}`: add `--project-name {folder}` if that is this one"
        return about if unassigned else ""

    def _rows(self, project: Project) -> Iterator[Mapping[str, Any]]:
        environ = self.environ
        home, name, folder = Path(environ.get("HOME", "/")), self.options.get("project_name"), Path(project.root).name
        if name and name != folder:
            hint = "import it from the folder that has that name"
            raise BadRequest(f"this project's folder is called `{folder}`, not `{name}`", hint=hint)
        path = Path(environ.get("CLAUDE_MEM_DATA_DIR") or home / ".claude-mem") / "claude-mem.db"
        sessions = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"
        transcripts = {each.stem: str(each) for each in sessions.glob("*/*.jsonl")}
        keys: dict[str, str] = {}  # of the projects of sessions that have a transcript
        for row in _read(path, [ROWS.format(table=table) for table in TABLES]):
            session = row["session"]
            if session in transcripts and session not in keys:
                cwd = peek(transcripts[session], agent="claude-code")[1]
                keys[session] = self.key_of(cwd) if cwd else ""
            if (keys.get(session) or row["project"]) in (project.key, name):
                yield row


class OpenMem(_Database):
    """The rows of open-mem, without sessions in a folder that still exists and is another project's."""

    def _rows(self, project: Project) -> Iterator[Mapping[str, Any]]:
        path = Path(project.root) / ".open-mem" / "memory.db"
        queries = [OPEN_MEM_ROWS.format(table=table, shown=shown) for table, shown in OPEN_MEM_SHOWN.items()]
        for row in _read(path, queries):
            folder = row["project_path"]  # gone where the project has moved since, and its database with it
            if not os.path.isdir(folder) or self.key_of(folder) == project.key:
                yield row


def _read(path: Path, queries: list[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of another tool's database, none where there is no file; StoreError where it cannot be read."""
    if not path.is_file():
        return
    # At rest it is opened as immutable: as usual, SQLite would leave two files beside it.
    mode = "mode=ro" if Path(f"{path}-wal").exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=PATIENCE)) as db:
            db.text_factory = lambda raw: raw.decode("utf-8", "replace")
            db.row_factory = lambda cursor, row: dict(zip([each[0] for each in cursor.description], row, strict=True))
            for query in queries:
                yield from db.execute(query)
    except sqlite3.Error as exc:
        hint = "close the program that uses it, or update it: only its newest tables are read; nothing was changed"
        raise StoreError(f"cannot read {path}: {exc}", hint=hint) from exc


# ---- rows as memories


def _memory(row: Mapping[str, Any], *, source: str, project: Project) -> Memory:
    """Return a row as a memory; without a title where it is empty."""
    row = {name: value.strip() if isinstance(value, str) else value for name, value in row.items()}
    row = redact_all(row)  # before anything is cut: half a secret is not recognised
    fields = _summary(row) if row["table"] == "session_summaries" else _observation(row)
    at, session = timestamp(row.get("created_at_epoch") or row.get("created_at")), str(row["session"] or "")
    paths = [path for name in ("files_modified", "files_edited", "files_read") for path in _several(row, name)]
    files = (relative(path, cwd=project.root, root=project.root) for path in paths)
    # The same for the same row each time, and another in a database of another machine.
    digest = f"{row['table']} {row['id']} {session} {at:.3f}".encode("utf-8", "replace")
    return Memory(
        **fields,
        uid=f"{source}:{hashlib.blake2b(digest, digest_size=12).hexdigest()}",
        scope=project.scope,
        project=project.key,
        tags=tuple(_several(row, "concepts")),
        files=tuple(dict.fromkeys(files))[:FILES],
        session=session,
        source=source,
        trust="imported",
        confidence=CONFIDENCE,
        created=at,
        confirmed=at,
    )


def _observation(row: Mapping[str, Any]) -> dict[str, Any]:
    narrative = text_of(row, "narrative", "text")
    type, subtitle, facts = text_of(row, "type"), text_of(row, "subtitle"), _several(row, "facts")
    kind, detail = "observation", {"type": type} if type else {}
    if type == "decision":
        kind = "decision"
    elif type == "bugfix" and (narrative or facts):
        kind = "failure"
        detail["fixed_by"] = subtitle or next(iter(facts), narrative.partition("\n")[0])
    elif type == "discovery" and not LASTING.isdisjoint(_several(row, "concepts")):
        kind = "learning"
    title = text_of(row, "title") or narrative.partition("\n")[0] or next(iter(facts), "")
    body = "\n".join(filter(None, (subtitle, narrative, *(f"- {fact}" for fact in facts))))
    return {"kind": kind, "title": title[:TITLE], "body": body, "detail": detail}


def _summary(row: Mapping[str, Any]) -> dict[str, Any]:
    names = {"request": "request", "completed": "done", "learned": "learned", "next_steps": "next"}
    detail: dict[str, Any] = {ours: text_of(row, theirs) for theirs, ours in names.items()}
    detail |= {"investigated": text_of(row, "investigated"), "decisions": _several(row, "key_decisions")}
    title = (detail["request"] or text_of(row, "summary") or detail["done"]).partition("\n")[0]
    body = "\n".join(filter(None, (text_of(row, "summary"), text_of(row, "notes"))))
    filled = {name: each for name, each in detail.items() if each}
    return {"kind": "summary", "title": title[:TITLE], "body": body, "detail": filled}


def _several(row: Mapping[str, Any], name: str) -> list[str]:
    """Return a list of texts, which is stored as JSON."""
    value: Any = text_of(row, name)
    with suppress(BadPayload):  # else it is a text
        value = loads(value)
    return [text.strip() for text in texts({name: value}, name)]
