"""A row that another memory kept -> a memory of ours, redacted: what claude-mem and open-mem have in common."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from foreword.encoding import storable
from foreword.extract.actions import relative
from foreword.importers import Batch
from foreword.importers.checkpoints import left, marked
from foreword.models import Memory, Project
from foreword.redact import redact_all
from foreword.store.foreign import Foreign

TITLE = 160  # characters; what a line shows at most
FILES = 40  # of one memory, as of a commit
SIZE = 100  # memories in a batch: some are on the disk within a second
SURE = 0.7  # confidence: a model wrote it, and nobody has confirmed it here
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


@dataclass(frozen=True)
class Row:
    """Where one row of this project stands; `key` is its place in time."""

    key: str
    table: str
    id: Any
    session: str  # as the host calls it
    at: float


def row(table: str, told: Mapping[str, Any], *, session: str) -> Row:
    at = when(told.get("created_at_epoch") or told.get("created_at"))
    id = told["id"]
    return Row(key=f"{int(at * 1000):016d} {table} {id!s:>12}", table=table, id=id, session=session, at=at)


def batches(other: Foreign, rows: Iterable[Row], *, source: str, project: Project, since_mark: str) -> Iterator[Batch]:
    """The memories of what is left, newest first, some at a time: a database may be larger than the memory."""
    todo = left(rows, mark=since_mark)
    some: list[Row] = []
    for done, (each, mark) in enumerate(marked(todo, mark=since_mark), 1):
        some.append(each)
        if len(some) == SIZE or done == len(todo):
            memories = tuple(_memories(other, some, source=source, project=project))
            yield Batch(memories=memories, mark=mark, done=done, total=len(todo))
            some = []


def _memories(other: Foreign, rows: list[Row], *, source: str, project: Project) -> Iterator[Memory]:
    ids = defaultdict(list)
    for row in rows:
        ids[row.table].append(row.id)
    said = {
        (table, told["id"]): told
        for table, some in ids.items()
        for told in other.rows(table, columns=("id", *TABLES[table]), ids=some)
    }
    for row in rows:
        told = said.get((row.table, row.id))  # its owner may have removed it since
        found = memory(row, told, source=source, project=project) if told else None
        if found:
            yield found


def memory(row: Row, said: Mapping[str, Any], *, source: str, project: Project) -> Memory | None:
    """What a row says; None where it says nothing."""
    told = redact_all({name: storable(each) if isinstance(each, str) else each for name, each in said.items()})
    found = _summary(told) if row.table == "session_summaries" else _observation(told)
    if not found["title"]:
        return None
    changed = (*_several(told.get("files_modified")), *_several(told.get("files_edited")))
    files = (
        relative(file, cwd=project.root, root=project.root) for file in (*changed, *_several(told.get("files_read")))
    )
    return Memory(
        **found,
        uid=f"{source}:{_digest(row)}",
        scope=project.scope,
        project=project.key,
        tags=tuple(_several(told.get("concepts"))),
        files=tuple(dict.fromkeys(files))[:FILES],
        session=row.session,
        source=source,
        trust="imported",
        confidence=SURE,
        created=row.at,
        confirmed=row.at,
    )


def told(counts: Sequence[int], *, source: str) -> str:
    """How much of each table there is, in words."""
    names = (("observation", "observations"), ("summary", "summaries"))
    parts = [f"{count:,} {name[count != 1]}" for count, name in zip(counts, names, strict=True) if count]
    return f"{' and '.join(parts)} of {source}"


def _digest(row: Row) -> str:
    """The same for the same row each time, and another in a database of another machine."""
    told = f"{row.table} {row.id} {row.session} {row.at:.3f}"
    return hashlib.blake2b(told.encode("utf-8", "replace"), digest_size=12).hexdigest()


def when(told: Any) -> float:
    """Seconds, from milliseconds, seconds or a date; 0 where it tells none."""
    try:
        if isinstance(told, str) and not told.isdigit():
            found = datetime.fromisoformat(told)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        number = float(told)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return number / 1000 if number > 1e11 else max(0.0, number)


def _observation(told: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(told.get("type") or "")
    said = _text(told, "narrative") or _text(told, "text")
    facts = _several(told.get("facts"))
    title = _text(told, "title") or _first_line(said) or (facts[0] if facts else "")
    body = "\n".join(part for part in (_text(told, "subtitle"), said, *(f"- {fact}" for fact in facts)) if part)
    detail: dict[str, Any] = {"type": kind} if kind else {}
    if kind == "decision":
        return {"kind": "decision", "title": title[:TITLE], "body": body, "detail": detail}
    if kind == "bugfix" and (said or facts):
        fix = _text(told, "subtitle") or (facts[0] if facts else _first_line(said))
        return {"kind": "failure", "title": title[:TITLE], "body": body, "detail": detail | {"fixed_by": fix}}
    lasts = kind == "discovery" and not LASTING.isdisjoint(_several(told.get("concepts")))
    return {"kind": "learning" if lasts else "observation", "title": title[:TITLE], "body": body, "detail": detail}


def _summary(told: Mapping[str, Any]) -> dict[str, Any]:
    done, request, all = _text(told, "completed"), _text(told, "request"), _text(told, "summary")
    detail = {
        "request": request,
        "done": done,
        "learned": _text(told, "learned"),
        "next": _text(told, "next_steps"),
        "investigated": _text(told, "investigated"),
        "decisions": _several(told.get("key_decisions")),
    }
    title = _first_line(request) or _first_line(all) or _first_line(done)
    body = "\n".join(part for part in (all, _text(told, "notes")) if part)
    kept = {name: each for name, each in detail.items() if each}
    return {"kind": "summary", "title": title[:TITLE], "body": body, "detail": kept}


def _text(told: Mapping[str, Any], name: str) -> str:
    found = told.get(name)
    return found.strip() if isinstance(found, str) else ""


def _first_line(text: str) -> str:
    return text.partition("\n")[0].strip()


def _several(told: Any) -> list[str]:
    """A list of texts, which is kept as JSON, or as a text with commas or lines in older versions."""
    if not isinstance(told, str) or not told.strip():
        return []
    try:
        found = json.loads(told)
    except (ValueError, RecursionError):
        found = told.replace("\n", ",").split(",")
    if not isinstance(found, list):
        found = [found]
    return [each.strip() for each in found if isinstance(each, str) and each.strip()]
