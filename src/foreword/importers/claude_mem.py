"""Read the databases of claude-mem and open-mem, which have the same columns, and map their rows to memories.

claude-mem keeps only the name of a session's folder: its rows count as this project's where a transcript of Claude Code
says that the session was here, or where the user says that the name is this project's. open-mem's file lies in the
project's own folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from foreword.encoding import storable
from foreword.errors import BadRequest, StoreError
from foreword.extract.actions import relative
from foreword.importers.base import Batch, Offer, Source, timestamp
from foreword.importers.transcripts import peek
from foreword.models import Memory, Project
from foreword.redact import redact_all

TITLE = 160  # characters; what a line shows at most
FILES = 40  # of one memory, as of a commit
BATCH = 100  # memories: the first are stored within a second
PATIENCE = 2.0  # seconds that somebody else may hold the file; its owner writes for milliseconds
CONFIDENCE = 0.7  # a model wrote it, and nobody has confirmed it here
# Discoveries that hold for longer than a day; the others tell what was read on the way.
LASTING = frozenset(("gotcha", "pattern", "how-it-works", "why-it-exists", "trade-off"))
TABLES = {"observations": ("observation", "observations"), "session_summaries": ("summary", "summaries")}
ROWS = """SELECT t.*, s.content_session_id AS session, '{table}' AS "table" FROM {table} t
    LEFT JOIN sdk_sessions s USING (memory_session_id) WHERE t.created_at_epoch >= ? ORDER BY t.created_at_epoch"""

OPEN_MEM_ROWS = """SELECT t.*, s.project_path, s.id AS session, '{table}' AS "table" FROM {table} t
    JOIN sessions s ON s.id = t.session_id WHERE t.created_at >= ? AND {shown} ORDER BY t.created_at"""
# Rows that open-mem itself still shows.
OPEN_MEM_SHOWN = {"observations": "deleted_at IS NULL AND superseded_by IS NULL", "session_summaries": "true"}


class ClaudeMem(Source):
    """The rows of claude-mem that are of one project."""

    def offer(self, project: Project, *, environ: Mapping[str, str]) -> Offer | None:
        """Count the rows of this project, and those that only have its name."""
        path, owner = _database(environ), self._owner(environ)
        if not path.is_file():
            return None
        with opened(path) as db:
            rows = [row for table in TABLES for row in db.execute(ROWS.format(table=table), (0,))]
        folder, name = os.path.basename(project.root), self.options.get("project_name")
        ours = [row for row in rows if (owner(row) or row["project"]) in (project.key, name)]
        maybe = sum(not owner(row) and row["project"] == folder != name for row in rows)
        if not ours and not maybe:
            return None
        more = f"{maybe:,} rows of a project called `{folder}`: add `--project-name {folder}` if that is this one"
        about = [*([count_rows(ours, source=self.name)] if ours else []), *([more] if maybe else [])]
        return Offer(source=self.name, about="; ".join(about), count=len(ours))

    def read(self, project: Project, *, environ: Mapping[str, str], checkpoint: str) -> Iterator[Batch]:
        name, folder = self.options.get("project_name"), os.path.basename(project.root)
        if name and name != folder:
            hint = "import it from the folder that has that name"
            raise BadRequest(f"this project's folder is called `{folder}`, not `{name}`", hint=hint)
        path, owner = _database(environ), self._owner(environ)
        if path.is_file():
            with opened(path) as db:
                since = int(checkpoint) if checkpoint.isdigit() else 0
                rows = (row for table in TABLES for row in db.execute(ROWS.format(table=table), (since,)))
                ours = (row for row in rows if (owner(row) or row["project"]) in (project.key, name))
                yield from batches(ours, "created_at_epoch", self.name, project, checkpoint)

    def _owner(self, environ: Mapping[str, str]) -> Callable[[Mapping[str, Any]], str]:
        """Return a function that finds the project of a row by its session's transcript; empty where there is none."""
        top = Path(environ.get("CLAUDE_CONFIG_DIR") or Path(environ.get("HOME", "/")) / ".claude") / "projects"
        transcripts = {path.stem: str(path) for path in top.glob("*/*.jsonl")}
        keys: dict[str, str] = {}

        def owner(row: Mapping[str, Any]) -> str:
            session = row["session"] or ""
            if session not in keys:
                path = transcripts.get(session)
                folder = peek(path, host="claude-code")[1] if path else ""
                keys[session] = self.key_of(folder) if folder else ""
            return keys[session]

        return owner


def _database(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("CLAUDE_MEM_DATA_DIR") or Path(environ.get("HOME", "/")) / ".claude-mem") / "claude-mem.db"


class OpenMem(Source):
    """The rows of open-mem, without sessions in a folder that still exists and is another project's."""

    def offer(self, project: Project, *, environ: Mapping[str, str]) -> Offer | None:
        del environ
        rows = list(self._rows(project, since=""))
        return Offer(source=self.name, about=count_rows(rows, source=self.name), count=len(rows)) if rows else None

    def read(self, project: Project, *, environ: Mapping[str, str], checkpoint: str) -> Iterator[Batch]:
        del environ
        since = checkpoint if checkpoint[:1].isdigit() else ""
        yield from batches(self._rows(project, since=since), "created_at", self.name, project, since)

    def _rows(self, project: Project, *, since: str) -> Iterator[Mapping[str, Any]]:
        path = Path(project.root) / ".open-mem" / "memory.db"
        if not path.is_file():
            return
        with opened(path) as db:
            for table, shown in OPEN_MEM_SHOWN.items():
                for row in db.execute(OPEN_MEM_ROWS.format(table=table, shown=shown), (since,)):
                    folder = row["project_path"]  # gone where the project has moved since, and its database with it
                    if not os.path.isdir(folder) or self.key_of(folder) == project.key:
                        yield row


# ---- for both


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open another tool's database for reading; StoreError where it cannot be read, or has other tables."""
    try:
        # At rest it is opened as immutable: as usual, SQLite would leave two files beside it.
        how = "mode=ro" if Path(f"{path}-wal").exists() else "immutable=1"
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=PATIENCE)) as db:
            db.text_factory = lambda raw: raw.decode("utf-8", "replace")
            db.row_factory = lambda cursor, row: dict(zip([each[0] for each in cursor.description], row, strict=True))
            yield db
    except sqlite3.Error as exc:
        hint = "close the program that uses it, or update it: only its newest tables are read; nothing was changed"
        raise StoreError(f"cannot read {path}: {exc}", hint=hint) from exc


def count_rows(rows: Sequence[Mapping[str, Any]], *, source: str) -> str:
    """Return how many rows there are, in words."""
    counts = Counter(row["table"] for row in rows)
    parts = [f"{counts[table]:,} {names[counts[table] != 1]}" for table, names in TABLES.items() if counts[table]]
    return f"{' and '.join(parts)} of {source}"


def batches(
    rows: Iterator[Mapping[str, Any]], time: str, source: str, project: Project, checkpoint: str
) -> Iterator[Batch]:
    """Yield the rows as memories, some at a time; the last batch has the newest *time* as its checkpoint."""
    done, newest = 0, checkpoint
    while some := list(islice(rows, BATCH)):
        done += len(some)
        newest = max(newest, *(str(row[time]) for row in some))
        memories = (_memory(row, source=source, project=project) for row in some)
        yield Batch(tuple(filter(None, memories)), checkpoint=checkpoint, done=done)
    yield Batch(checkpoint=newest, done=done, total=done)


def _memory(row: Mapping[str, Any], *, source: str, project: Project) -> Memory | None:
    """Return a row as a memory; None where it is empty."""
    clean = redact_all({name: storable(each) if isinstance(each, str) else each for name, each in row.items()})
    fields = _summary(clean) if row["table"] == "session_summaries" else _observation(clean)
    if not fields["title"]:
        return None
    at, session = timestamp(row.get("created_at_epoch") or row.get("created_at")), str(row["session"] or "")
    paths = [path for name in ("files_modified", "files_edited", "files_read") for path in _several(clean.get(name))]
    files = (relative(path, cwd=project.root, root=project.root) for path in paths)
    # The same for the same row each time, and another in a database of another machine.
    digest = f"{row['table']} {row['id']} {session} {at:.3f}".encode("utf-8", "replace")
    return Memory(
        **fields,
        uid=f"{source}:{hashlib.blake2b(digest, digest_size=12).hexdigest()}",
        scope=project.scope,
        project=project.key,
        tags=tuple(_several(clean.get("concepts"))),
        files=tuple(dict.fromkeys(files))[:FILES],
        session=session,
        source=source,
        trust="imported",
        confidence=CONFIDENCE,
        created=at,
        confirmed=at,
    )


def _observation(row: Mapping[str, Any]) -> dict[str, Any]:
    type = str(row.get("type") or "")
    narrative = _text(row, "narrative") or _text(row, "text")
    facts = _several(row.get("facts"))
    title = _text(row, "title") or _first_line(narrative) or (facts[0] if facts else "")
    body = "\n".join(part for part in (_text(row, "subtitle"), narrative, *(f"- {fact}" for fact in facts)) if part)
    detail: dict[str, Any] = {"type": type} if type else {}
    kind = "observation"
    if type == "decision":
        kind = "decision"
    elif type == "bugfix" and (narrative or facts):
        kind = "failure"
        detail["fixed_by"] = _text(row, "subtitle") or (facts[0] if facts else _first_line(narrative))
    elif type == "discovery" and not LASTING.isdisjoint(_several(row.get("concepts"))):
        kind = "learning"
    return {"kind": kind, "title": title[:TITLE], "body": body, "detail": detail}


def _summary(row: Mapping[str, Any]) -> dict[str, Any]:
    completed, request, summary = _text(row, "completed"), _text(row, "request"), _text(row, "summary")
    detail = {
        "request": request,
        "done": completed,
        "learned": _text(row, "learned"),
        "next": _text(row, "next_steps"),
        "investigated": _text(row, "investigated"),
        "decisions": _several(row.get("key_decisions")),
    }
    title = _first_line(request) or _first_line(summary) or _first_line(completed)
    body = "\n".join(part for part in (summary, _text(row, "notes")) if part)
    kept = {name: each for name, each in detail.items() if each}
    return {"kind": "summary", "title": title[:TITLE], "body": body, "detail": kept}


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value.strip() if isinstance(value, str) else ""


def _first_line(text: str) -> str:
    return text.partition("\n")[0].strip()


def _several(value: Any) -> list[str]:
    """Return a list of texts, which is stored as JSON."""
    try:
        found = json.loads(value) if isinstance(value, str) else []
    except (ValueError, RecursionError):
        found = [value]
    items = found if isinstance(found, list) else [found]
    return [each.strip() for each in items if isinstance(each, str) and each.strip()]
