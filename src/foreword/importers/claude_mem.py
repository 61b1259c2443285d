"""Read claude-mem's database, and map its rows to memories; open-mem has the same tables.

claude-mem keeps only the name of a session's folder: its rows count as this project's where the folder itself is known,
or where the user says that the name is this project's.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foreword.capture.parse import project_at
from foreword.encoding import storable
from foreword.errors import BadRequest
from foreword.extract.actions import relative
from foreword.importers.base import Batch, Offer, Resolver, pending, timestamp, with_checkpoints
from foreword.importers.foreign import Foreign
from foreword.importers.transcript_reader import peek
from foreword.models import Memory, Project
from foreword.redact import redact_all

NAME = "claude-mem"
TITLE = 160  # characters; what a line shows at most
FILES = 40  # of one memory, as of a commit
BATCH = 100  # memories: the first are stored within a second
CONFIDENCE = 0.7  # a model wrote it, and nobody has confirmed it here
# Discoveries that hold for longer than a day; the others tell what was read on the way.
LASTING = frozenset(("gotcha", "pattern", "how-it-works", "why-it-exists", "trade-off"))
TABLES = {
    "observations": (
        "type", "title", "subtitle", "narrative", "text", "facts", "concepts", "files_read", "files_modified",
    ),
    "session_summaries": (
        "request", "investigated", "learned", "completed", "next_steps", "notes", "files_read", "files_edited",
        "files_modified", "summary", "key_decisions", "concepts",
    ),
}  # fmt: skip


def source(_: str, options: Mapping[str, Any], resolver: Resolver) -> ClaudeMem:
    return ClaudeMem(project_name=str(options.get("project_name") or ""), find_project=resolver.at)


class ClaudeMem:
    """The rows of claude-mem that are of one project."""

    name = NAME

    def __init__(self, *, project_name: str = "", find_project: Callable[[str], Project] = project_at) -> None:
        self._project_name = project_name
        self._find_project = find_project

    def offer(self, project: Project, *, environ: Mapping[str, str]) -> Offer | None:
        """Count the rows of this project, and those that only have its name."""
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
        about = [describe(sure, source=NAME)] if any(sure) else []
        if maybe:
            about.append(
                f"claude-mem holds {maybe:,} more for a project called `{_folder(project)}`, and not in which folder; "
                f"if that is this one, add `--project-name {_folder(project)}`"
            )
        return Offer(source=NAME, about="; ".join(about), count=sum(sure)) if about else None

    def read(self, project: Project, *, environ: Mapping[str, str], checkpoint: str) -> Iterator[Batch]:
        if self._project_name and self._project_name != _folder(project):
            raise BadRequest(
                f"this project's folder is called `{_folder(project)}`, not `{self._project_name}`",
                hint="import it from the folder that has that name",
            )
        path = _database(environ)
        if path.is_file():
            with Foreign(path) as other:
                rows = self._rows(other, project, environ=environ)
                yield from batches(other, rows, source=NAME, project=project, checkpoint=checkpoint)

    def _rows(self, other: Foreign, project: Project, *, environ: Mapping[str, str]) -> Iterator[RowKey]:
        sessions = _Sessions(other, environ=environ, find_project=self._find_project)
        for table in TABLES:
            session = _session_column(other, table)
            for each in other.rows(table, columns=("id", session, "project", "created_at", "created_at_epoch")):
                if sessions.is_of(project, each[session], each["project"], named=self._project_name):
                    yield row_key(table, each, session=sessions.agents.get(each[session], ""))


class _Sessions:
    """The projects of claude-mem's sessions: its own tables, or Claude Code's transcripts, may tell their folder."""

    def __init__(self, other: Foreign, *, environ: Mapping[str, str], find_project: Callable[[str], Project]) -> None:
        columns = other.columns("sdk_sessions")
        inner = "memory_session_id" if "memory_session_id" in columns else "sdk_session_id"
        outer = "content_session_id" if "content_session_id" in columns else "claude_session_id"
        known = list(other.rows("sdk_sessions", columns=(inner, outer, "cwd")))
        self.agents = {each[inner]: str(each[outer] or "") for each in known}  # claude-mem's id -> the agent's
        self._folders = _pending_folders(other) | {each[outer]: each["cwd"] for each in known if each["cwd"]}
        self._transcripts = _transcripts(environ)
        self._find_project = find_project
        self._keys: dict[Any, str] = {}

    def is_of(self, project: Project, id: Any, name: Any, *, named: str) -> bool:
        """Decide by the folder; where that is unknown, by *named*, if row and project have that name."""
        key = self._key(id)
        return key == project.key if key else name == named == _folder(project) != ""

    def _key(self, id: Any) -> str:
        if id not in self._keys:
            session = self.agents.get(id, "")
            folder = self._folders.get(session) or _transcript_folder(self._transcripts.get(session, ""))
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


def _pending_folders(other: Foreign) -> dict[Any, Any]:
    """Return the folders of sessions whose messages claude-mem still holds."""
    columns = other.columns("pending_messages")
    session = "content_session_id" if "content_session_id" in columns else "claude_session_id"
    if not {"cwd", session} <= columns:
        return {}
    return {id: cwd for id, cwd in other.counts("pending_messages", by=(session, "cwd")) if cwd}


def _transcripts(environ: Mapping[str, str]) -> dict[str, str]:
    top = Path(environ.get("CLAUDE_CONFIG_DIR") or Path(environ.get("HOME", "/")) / ".claude") / "projects"
    return {path.stem: str(path) for path in top.glob("*/*.jsonl")}


def _transcript_folder(path: str) -> str:
    try:
        found = peek(path, host="claude-code") if path else None
    except OSError:
        return ""
    return found.cwd if found else ""


# ---- rows of claude-mem and open-mem


@dataclass(frozen=True)
class RowKey:
    """One row of this project; `key` is its place in time."""

    key: str
    table: str
    id: Any
    session: str  # the agent's id of it
    at: float


def row_key(table: str, row: Mapping[str, Any], *, session: str) -> RowKey:
    at = timestamp(row.get("created_at_epoch") or row.get("created_at"))
    id = row["id"]
    return RowKey(key=f"{int(at * 1000):016d} {table} {id!s:>12}", table=table, id=id, session=session, at=at)


def batches(
    other: Foreign, keys: Iterable[RowKey], *, source: str, project: Project, checkpoint: str
) -> Iterator[Batch]:
    """Read the pending rows newest first, some at a time: a database may be larger than the machine's memory."""
    todo = pending(keys, checkpoint=checkpoint)
    some: list[RowKey] = []
    for done, (each, reached) in enumerate(with_checkpoints(todo, checkpoint=checkpoint), 1):
        some.append(each)
        if len(some) == BATCH or done == len(todo):
            memories = tuple(_memories(other, some, source=source, project=project))
            yield Batch(memories=memories, checkpoint=reached, done=done, total=len(todo))
            some = []


def describe(counts: Sequence[int], *, source: str) -> str:
    """Return how many rows each table has, in words."""
    names = (("observation", "observations"), ("summary", "summaries"))
    parts = [f"{count:,} {name[count != 1]}" for count, name in zip(counts, names, strict=True) if count]
    return f"{' and '.join(parts)} of {source}"


def _memories(other: Foreign, keys: list[RowKey], *, source: str, project: Project) -> Iterator[Memory]:
    ids = defaultdict(list)
    for key in keys:
        ids[key.table].append(key.id)
    rows = {
        (table, row["id"]): row
        for table, some in ids.items()
        for row in other.rows(table, columns=("id", *TABLES[table]), ids=some)
    }
    for key in keys:
        row = rows.get((key.table, key.id))  # its owner may have removed it since
        if row and (memory := _memory(key, row, source=source, project=project)):
            yield memory


def _memory(key: RowKey, row: Mapping[str, Any], *, source: str, project: Project) -> Memory | None:
    """Return a row as a memory; None where it is empty."""
    clean = redact_all({name: storable(each) if isinstance(each, str) else each for name, each in row.items()})
    fields = _summary(clean) if key.table == "session_summaries" else _observation(clean)
    if not fields["title"]:
        return None
    paths = [path for name in ("files_modified", "files_edited", "files_read") for path in _several(clean.get(name))]
    files = (relative(path, cwd=project.root, root=project.root) for path in paths)
    # The same for the same row each time, and another in a database of another machine.
    digest = f"{key.table} {key.id} {key.session} {key.at:.3f}".encode("utf-8", "replace")
    return Memory(
        **fields,
        uid=f"{source}:{hashlib.blake2b(digest, digest_size=12).hexdigest()}",
        scope=project.scope,
        project=project.key,
        tags=tuple(_several(clean.get("concepts"))),
        files=tuple(dict.fromkeys(files))[:FILES],
        session=key.session,
        source=source,
        trust="imported",
        confidence=CONFIDENCE,
        created=key.at,
        confirmed=key.at,
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
    """Return a list of texts, which is stored as JSON, or with commas or lines in older versions."""
    if not isinstance(value, str) or not value.strip():
        return []
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = value.replace("\n", ",").split(",")
    if not isinstance(found, list):
        found = [found]
    return [each.strip() for each in found if isinstance(each, str) and each.strip()]
