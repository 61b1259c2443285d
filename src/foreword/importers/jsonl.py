"""Read and write the export format: a header, then one JSON row a line. Wrong lines are reported by number."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

from foreword.agents import dict_of
from foreword.encoding import decoded
from foreword.errors import BadRequest
from foreword.importers import Batch, Source
from foreword.models import KINDS, STATUSES, TRUSTS, UNIVERSAL, Change, Link, Memory, Project, Session
from foreword.store import Store

FORMAT, VERSION = "foreword export", 1
BATCH = 200  # memories of one batch
MOST_LINE = 8 * 1024 * 1024  # bytes; a memory has some KB
MOST_NUMBER = 1e11  # seconds; the year 5138
ALL_ROWS = 1_000_000_000  # more than there are

Row: TypeAlias = Memory | Session | Change | Link
PARTS: dict[str, type[Row]] = {"session": Session, "memory": Memory, "change": Change, "link": Link}
# What a field may hold; every other field is free.
CHOICES: dict[str, dict[str, tuple[str, ...]]] = {
    "memory": {"kind": tuple(KINDS), "trust": TRUSTS, "status": STATUSES},
    "change": {"what": ("NEW", "MODIFIED", "DELETED")},
}
# By the type of a field; every other field is a text.
EMPTY_VALUES: dict[str, Any] = {"int": 0, "float": 0.0, "bool": False, "tuple[str, ...]": [], "Mapping[str, Any]": {}}
NEEDED = {"memory": ("title", "uid"), "session": ("id",)}


class BadLine(ValueError):
    """A line that is no row of an export; its text says why."""


# ---- write


def export_rows(
    store: Store, part: str, *, project: Project | None, after: int = 0, limit: int = 500
) -> tuple[list[dict[str, Any]], int]:
    """Return the next rows of one part behind place *after*, and the place to go on from; 0 at the end.

    Without a project those of all. What a session did in another project's folder, and a link to another project's
    memory, are left out.
    """
    key = project.key if project else ""
    if part == "session":
        return [vars(session) for session in store.sessions.list(key, limit=ALL_ROWS)], 0
    if part == "change":
        return [vars(change) for change in store.sessions.changes(key, limit=ALL_ROWS)], 0
    if part not in PARTS:
        raise BadRequest(f"unknown part {part!r}", hint=f"one of {', '.join(PARTS)}")
    page = store.memories.page(after=after, scopes=(project.scope,) if project else (), limit=limit)
    following = page[-1][0] if len(page) == limit else 0

    def uids(ids: list[str]) -> dict[str, str]:
        """Return the uids of memories by id, without those of other projects."""
        memories = store.memories.get(ids)
        others = [
            each for each in memories if project and each.scope.startswith("project:") and each.scope != project.scope
        ]
        return {each.id: each.uid for each in memories if each not in others}

    if part == "memory":
        uid_of = uids([memory.superseded_by for _, memory in page])
        return [
            {
                **vars(memory),
                "detail": dict(memory.detail),
                "superseded_by": memory.superseded_by if memory.superseded_by in uid_of else "",
                "superseded_by_uid": uid_of.get(memory.superseded_by, ""),
            }
            for _, memory in page
        ], following
    links = [link for _, memory in page for link in store.memories.links(memory.id) if link.source == memory.id]
    known = uids([end for link in links for end in (link.source, link.target)])
    return [
        {**vars(link), "source_uid": known[link.source], "target_uid": known[link.target]}
        for link in links
        if link.source in known and link.target in known
    ], following


# ---- read


@dataclass(frozen=True)
class Jsonl(Source):
    """The rows of one project in an export, or with `all` those of every project."""

    @property
    def path(self) -> str:
        return str(self.options.get("file", ""))

    def __post_init__(self) -> None:
        if not os.path.isabs(self.path):
            raise BadRequest("`file` must be the absolute path of an export", hint="`foreword import jsonl FILE`")
        if not os.path.isfile(self.path):
            raise BadRequest(f"there is no file {self.path}", hint="`foreword export FILE` writes one")

    def offer(self, _project: Project) -> str:
        return ""  # it is imported where the user names a file

    def read(self, project: Project) -> Iterator[Batch]:
        """Yield the file's rows; links and superseded memories come last, when the rows that they name are there."""
        try:
            with open(self.path, "rb") as file:
                _check_header(file.readline(MOST_LINE))
                yield from self._batches(iter(lambda: file.readline(MOST_LINE), b""), project)
        except OSError as exc:
            raise BadRequest(f"{self.path} cannot be read: {exc.strerror}", hint="check that you may read it") from exc

    def _batches(self, lines: Iterator[bytes], project: Project) -> Iterator[Batch]:
        problems: list[str] = []
        rows: list[Row] = []
        last_rows: list[Row] = []
        done = skipped = 0
        for number, raw in enumerate(lines, 2):
            if not raw.strip():
                continue
            try:
                row = _row(raw)
                done += 1
            except BadLine as exc:
                problems.append(f"line {number}: {exc}")
                continue
            if not self.options.get("all") and not _is_of(row, project):
                skipped += 1
            else:
                is_last = isinstance(row, Link) or (isinstance(row, Memory) and row.superseded_by)
                (last_rows if is_last else rows).append(row)
            if len(rows) >= BATCH or isinstance(row, Session):
                yield _batch(rows, done)
                rows = []
        yield _batch(rows, done)
        # What supersedes is newer than what it supersedes: from the end, each finds its successor there.
        last_rows.reverse()
        last_rows.sort(key=lambda row: isinstance(row, Link))
        for start in range(0, len(last_rows), BATCH):
            yield _batch(last_rows[start : start + BATCH], done)
        if skipped:
            problems.append(f"{skipped} rows of other projects were skipped; --all takes them")
        yield Batch(done=done, total=done, problems=tuple(problems))


def _batch(rows: list[Row], done: int) -> Batch:
    return Batch(
        memories=[row for row in rows if isinstance(row, Memory)],
        links=[row for row in rows if isinstance(row, Link)],
        changes=[row for row in rows if isinstance(row, Change)],
        session=next((row for row in rows if isinstance(row, Session)), None),
        done=done,
        only_newer=True,
    )


def _is_of(row: Row, project: Project) -> bool:
    """Return whether a row is the project's; of a link, only the worker knows."""
    scope = row.scope if isinstance(row, Memory) else "" if isinstance(row, Link) else f"project:{row.project}"
    return scope in ("", project.scope)


# ---- lines


def _check_header(raw: bytes) -> None:
    """Raise BadRequest for a first line that is no header of an export."""
    header = dict_of(decoded(raw))
    if header.get("format") != FORMAT:
        raise BadRequest("this is no export: its first line is no header", hint="`foreword export FILE` writes one")
    if header.get("version") != VERSION:
        message = f"this export is of version {header.get('version')!r}, this Foreword reads {VERSION}"
        raise BadRequest(message, hint="upgrade Foreword")


def _row(raw: bytes) -> Row:
    """Return the row of a line; BadLine where it is none."""
    line = dict_of(decoded(raw))
    part = next(iter(line), "")
    if part not in PARTS or len(line) > 1 or not isinstance(line[part], dict):
        raise BadLine("no row of an export" if line else f"no JSON object, or longer than {MOST_LINE:,} bytes")
    values = line[part]
    for name in ("superseded_by", "source", "target"):  # another store has other ids
        if values.get(f"{name}_uid"):
            values[name] = values[f"{name}_uid"]
    if part == "memory" and values.get("status") == "proposed":
        values["status"] = "discarded"  # as the store does with what earlier versions proposed
    for name, known in CHOICES.get(part, {}).items():
        if values.get(name) not in known:
            raise BadLine(f"unknown {name} {str(values.get(name))[:80]!r}")
    row = _build(PARTS[part], values)
    if any(not getattr(row, name).strip() for name in NEEDED.get(part, ())):
        raise BadLine(f"a {part} needs {' and '.join(NEEDED[part])}")
    if not isinstance(row, Memory):
        return row
    scope, key = row.scope.partition(":")[::2]
    if row.scope != UNIVERSAL and scope not in ("language", "project"):
        raise BadLine(f"unknown scope {row.scope[:80]!r}")
    return replace(
        row,
        confidence=min(1.0, row.confidence),
        project=key if scope == "project" else row.project,  # else another project would list what it cannot see
    )


def _build(kind: type[Row], values: Mapping[str, Any]) -> Row:
    """Make a dataclass of a row, checking each value by its field's type; what is missing is empty or 0."""
    built: dict[str, Any] = {}
    for field in fields(kind):
        name, empty = field.name, EMPTY_VALUES.get(str(field.type), "")
        least = 1 if name == "seen" else 0
        value = values.get(name, least if name == "seen" else empty)
        if type(empty) in (int, float):
            is_valid = type(value) in (int, float) and least <= value < MOST_NUMBER  # not isinstance: true is an int
        else:
            is_valid = isinstance(value, type(empty))
            is_valid &= not isinstance(empty, list) or all(isinstance(each, str) for each in value)
        if not is_valid:
            raise BadLine(f"`{name}` is not of the type {field.type}")
        built[name] = tuple(value) if isinstance(empty, list) else type(empty)(value)
    return kind(**built)
