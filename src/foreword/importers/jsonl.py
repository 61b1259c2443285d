"""Read and write the export format: a header, then one JSON row a line. Wrong lines are reported by number."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

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
NEEDED = {"memory": ("title", "uid"), "session": ("id",)}


class BadLine(ValueError):
    """A line that is no row of an export; its text says why."""


# ---- write


def export_rows(
    store: Store, part: str, *, project: Project | None, after: int = 0, of: str = "", limit: int = 500
) -> tuple[list[dict[str, Any]], int]:
    """Return the next rows of one part behind place *after*, and the place to go on from; 0 at the end.

    Without a project those of all. Changes are read by project, named in *of*. What a session did in another project's
    folder, and a link to another project's memory, are left out.
    """
    if part == "session":
        return [vars(session) for session in store.sessions.list(project.key if project else "", limit=ALL_ROWS)], 0
    if part == "change":
        key = of if project is None or of == project.key else ""
        return [vars(change) for change in store.sessions.changes(key, limit=ALL_ROWS)], 0
    if part not in PARTS:
        raise BadRequest(f"unknown part {part!r}", hint=f"one of {', '.join(PARTS)}")
    page = store.memories.page(after=after, scopes=(project.scope,) if project else (), limit=limit)
    following = page[-1][0] if len(page) == limit else 0

    def uids(ids: list[str]) -> dict[str, str]:
        """Return the uids of memories by id, without those of other projects."""
        found = store.memories.get(ids)
        others = [
            each for each in found if project and each.scope.startswith("project:") and each.scope != project.scope
        ]
        return {each.id: each.uid for each in found if each not in others}

    if part == "memory":
        by = uids([memory.superseded_by for _, memory in page])
        return [
            {
                **vars(memory),
                "detail": dict(memory.detail),
                "superseded_by": memory.superseded_by if memory.superseded_by in by else "",
                "superseded_by_uid": by.get(memory.superseded_by, ""),
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
    """One export: of the file's one project (`as`: as the named one), or of every project as it is (`all`)."""

    @property
    def path(self) -> str:
        return str(self.options.get("file", ""))

    def __post_init__(self) -> None:
        if not os.path.isabs(self.path):
            raise BadRequest("`file` must be the absolute path of an export", hint="`foreword import jsonl FILE`")
        if not os.path.isfile(self.path):
            raise BadRequest(f"there is no file {self.path}", hint="`foreword export FILE` writes one")
        if self.options.get("all") and self.options.get("as"):
            hint = "one project into another, or all as they are"
            raise BadRequest("`all` and `as` exclude each other", hint=hint)

    def offer(self, _project: Project) -> str:
        return ""  # it is imported where the user names a file

    def read(self, project: Project) -> Iterator[Batch]:
        """Yield the file's rows; links and superseded memories come last, when the rows that they name are there."""
        try:
            with open(self.path, "rb") as file:
                header = _header(file.readline(MOST_LINE))
                file.seek(0)
                yield from self._batches(iter(lambda: file.readline(MOST_LINE), b""), header, project)
        except OSError as exc:
            raise BadRequest(f"{self.path} cannot be read: {exc.strerror}", hint="check that you may read it") from exc

    def _batches(self, lines: Iterator[bytes], header: Mapping[str, Any], project: Project) -> Iterator[Batch]:
        origin = str(header.get("project") or "") if self.options.get("as") else project.key
        if not origin:
            raise BadRequest("only an export of one project can be mapped to another", hint="use --all, without --as")
        problems: list[str] = []
        held: list[Row] = []
        later: list[Row] = []
        done = others = 0
        for number, raw in enumerate(lines, 1):
            if not raw.strip() or number == 1:
                continue
            try:
                read = _row(raw)
                done += 1
            except (BadLine, RecursionError) as exc:
                problems.append(f"line {number}: {exc}")
                continue
            row = read if self.options.get("all") else _moved(read, origin, project)
            if row is None:
                others += 1
            else:
                is_last = isinstance(row, Link) or (isinstance(row, Memory) and row.superseded_by)
                (later if is_last else held).append(row)
            if len(held) >= BATCH or isinstance(row, Session):
                yield _batch(held, done)
                held = []
        yield _batch(held, done)
        # What supersedes is newer than what it supersedes: from the end, each finds its successor there.
        later.reverse()
        later.sort(key=lambda row: isinstance(row, Link))
        for start in range(0, len(later), BATCH):
            yield _batch(later[start : start + BATCH], done)
        if others:
            problems.append(f"{others} rows of other projects were skipped; --all takes them")
        yield Batch(done=done, total=done, problems=tuple(problems))


def _batch(rows: list[Row], done: int) -> Batch:
    return Batch(
        memories=tuple(row for row in rows if isinstance(row, Memory)),
        links=tuple(row for row in rows if isinstance(row, Link)),
        changes=tuple(row for row in rows if isinstance(row, Change)),
        session=next((row for row in rows if isinstance(row, Session)), None),
        done=done,
        only_newer=True,
    )


def _moved(row: Row, origin: str, project: Project) -> Row | None:
    """Return a row of the project *origin* as one of *project*; None where it is another project's.

    A copy into another project has a uid of its own, so that the old project keeps its rows.
    """

    def moved(uid: str) -> str:
        if not uid or origin == project.key:
            return uid
        return uid.replace(origin, project.key) if origin in uid else f"as:{project.key}:{uid}"

    if isinstance(row, Link):
        return replace(row, source=moved(row.source), target=moved(row.target))
    if (row.scope if isinstance(row, Memory) else f"project:{row.project}") != f"project:{origin}":
        return None
    if isinstance(row, Memory):
        row = replace(row, uid=moved(row.uid), superseded_by=moved(row.superseded_by), scope=project.scope)
    return replace(row, project=project.key)


# ---- lines


def _header(raw: bytes) -> dict[str, Any]:
    """Return the first line; BadRequest where it is no header of an export."""
    header: Any = None
    with suppress(ValueError, RecursionError):
        header = json.loads(raw)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise BadRequest("this is no export: its first line is no header", hint="`foreword export FILE` writes one")
    if header.get("version") != VERSION:
        message = f"this export is of version {header.get('version')!r}, this Foreword reads {VERSION}"
        raise BadRequest(message, hint="upgrade Foreword")
    return header


def _row(raw: bytes) -> Row:
    """Return the row of a line; BadLine where it is none."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise BadLine(f"no JSON, or longer than {MOST_LINE:,} bytes") from exc
    part = next(iter(line), "") if isinstance(line, dict) else ""
    if part not in PARTS or len(line) > 1 or not isinstance(line[part], dict):
        raise BadLine("no row of an export")
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
    usual: dict[str, Any] = {"int": 0, "float": 0.0, "bool": False, "tuple[str, ...]": [], "Mapping[str, Any]": {}}
    built: dict[str, Any] = {}
    for field in fields(kind):
        name, least = field.name, 1 if field.name == "seen" else 0
        default = usual.get(str(field.type), "")
        value = values.get(name, least if name == "seen" else default)
        if isinstance(default, int | float) and not isinstance(default, bool):
            is_good = type(value) in (int, float) and least <= value < MOST_NUMBER  # not isinstance: true is an int
        else:
            is_good = isinstance(value, type(default))
        if isinstance(default, list):
            is_good = is_good and all(isinstance(each, str) for each in value)
        if not is_good:
            raise BadLine(f"`{name}` is not of the type {field.type}")
        built[name] = tuple(value) if isinstance(default, list) else type(default)(value)
    return kind(**built)
