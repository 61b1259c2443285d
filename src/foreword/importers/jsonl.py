"""Read and write the export format: a header, then one JSON row a line. Wrong lines are reported by number."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import IO, Any, TypeVar

from foreword.errors import BadRequest
from foreword.importers.base import Batch, Offer, Source
from foreword.models import KINDS, STATUSES, TRUSTS, UNIVERSAL, Change, Event, Link, Memory, Project, Session
from foreword.store import Store

FORMAT, VERSION = "foreword export", 1
BATCH = 200  # memories of one batch
MOST_LINE = 8 * 1024 * 1024  # bytes; an event has at most some 64 KB a text
MOST_NUMBER = 1e11  # seconds; the year 5138
ALL_ROWS = 1_000_000_000  # more than there are
PARTS = ("event", "session", "memory", "change", "link")  # in this order: a row comes after those that it names

T = TypeVar("T")


class BadLine(ValueError):
    """A line that is no row of an export; its text says why."""


# ---- write


def export_rows(
    store: Store, part: str, *, project: Project | None, after: int = 0, of: str = "", limit: int = 500
) -> tuple[list[dict[str, Any]], int]:
    """Return the next rows of one part behind place *after*, and the place to go on from; 0 at the end.

    Without a project those of all. Events are read by session and changes by project, named in *of*. What a session did
    in another project's folder, and a link to another project's memory, are left out.
    """
    if part == "session":
        return [vars(session) for session in store.sessions.list(project.key if project else "", limit=ALL_ROWS)], 0
    if part == "change":
        key = of if project is None or of == project.key else ""
        return [vars(change) for change in store.sessions.changes(key, limit=ALL_ROWS)], 0
    if part == "event":
        events = store.events.list(of, after=after, limit=limit)
        ours = [event for event in events if project is None or event.project in (project.key, "")]
        rows = [{name: each for name, each in vars(event).items() if name != "lasting"} for event in ours]
        return rows, events[-1].number if len(events) == limit else 0
    if part not in PARTS:
        raise BadRequest(f"unknown part {part!r}", hint=f"one of {', '.join(PARTS)}")
    page = store.memories.page(after=after, scopes=(project.scope,) if project else (), limit=limit)
    memories = [memory for _, memory in page]
    write = _memory_rows if part == "memory" else _link_rows
    return write(store, project, memories), page[-1][0] if len(page) == limit else 0


def _uids(store: Store, project: Project | None, ids: list[str]) -> dict[str, str]:
    """Return the uids of memories by id, without those of other projects than *project*."""
    return {
        each.id: each.uid
        for each in store.memories.get(ids)
        if project is None or not each.scope.startswith("project:") or each.scope == project.scope
    }


def _memory_rows(store: Store, project: Project | None, memories: list[Memory]) -> list[dict[str, Any]]:
    by = _uids(store, project, [memory.superseded_by for memory in memories])
    return [
        {
            **vars(memory),
            "detail": dict(memory.detail),
            "superseded_by": memory.superseded_by if memory.superseded_by in by else "",
            "superseded_by_uid": by.get(memory.superseded_by, ""),
        }
        for memory in memories
    ]


def _link_rows(store: Store, project: Project | None, memories: list[Memory]) -> list[dict[str, Any]]:
    links = [link for memory in memories for link in store.memories.links(memory.id) if link.source == memory.id]
    uids = _uids(store, project, [end for link in links for end in (link.source, link.target)])
    return [
        {**vars(link), "source_uid": uids[link.source], "target_uid": uids[link.target]}
        for link in links
        if link.source in uids and link.target in uids
    ]


# ---- read


class Jsonl(Source):
    """One export: of the file's one project (`as`: as the named one), or of every project as it is (`all`)."""

    def __init__(self, name: str, options: Mapping[str, Any], project_of: Callable[[str], Project]) -> None:
        super().__init__(name, options, project_of)
        path = options.get("file")
        if not isinstance(path, str) or not os.path.isabs(path):
            raise BadRequest("`file` must be the absolute path of an export", hint="`foreword import jsonl FILE`")
        if not os.path.isfile(path):
            raise BadRequest(f"there is no file {path}", hint="`foreword export FILE` writes one")
        if options.get("all") and options.get("as"):
            hint = "one project into another, or all as they are"
            raise BadRequest("`all` and `as` exclude each other", hint=hint)
        self._path = path

    def offer(self, project: Project, *, environ: Mapping[str, str]) -> Offer | None:
        del project, environ
        with open(self._path, "rb") as file:
            count = _total(_header(file.readline(MOST_LINE)))
        return Offer(source=self.name, about=f"{count:,} rows", count=count)

    def read(self, project: Project, *, environ: Mapping[str, str], checkpoint: str) -> Iterator[Batch]:
        """Yield the file's rows; links and superseded memories come last, when the rows that they name are there."""
        del environ, checkpoint  # again from the top: what is known already costs a look-up
        try:
            with open(self._path, "rb") as file:
                header = _header(file.readline(MOST_LINE))
                file.seek(0)
                lines = enumerate(_lines(file), 1)
                yield from self._batches(lines, header, _Target(project, header, self.options))
        except OSError as exc:
            raise BadRequest(f"{self._path} cannot be read: {exc.strerror}", hint="see that it is there") from exc

    def _batches(
        self, lines: Iterator[tuple[int, bytes]], header: Mapping[str, Any], target: _Target
    ) -> Iterator[Batch]:
        done, others, total = 0, 0, _total(header)
        problems = [] if header else ["line 1: no header of an export: nothing here is trusted more than an import"]
        held: list[Any] = []
        later: list[Any] = []

        def batch(rows: Sequence[Any]) -> Batch:
            found = _batch(rows, done=done, total=max(done, total), problems=tuple(problems))
            problems.clear()
            return found

        for number, raw in lines:
            if not raw.strip() or (header and number == 1):
                continue
            ours = None
            try:
                ours = target.own(_row(raw, trusted=bool(header)))
                done += 1
                others += ours is None
            except (BadLine, RecursionError) as exc:
                problems.append(f"line {number}: {exc}")
            if isinstance(ours, Link) or (isinstance(ours, Memory) and ours.superseded_by):
                later.append(ours)
            elif ours is not None:
                held.append(ours)
            # A session counts its events: they are stored before it, so that none counts twice.
            if len(held) + len(problems) >= BATCH or isinstance(ours, Session):
                yield batch(held)
                held = []
        yield batch(held)
        # What supersedes is newer than what it supersedes: from the end, each finds its successor there.
        later.reverse()
        later.sort(key=lambda row: isinstance(row, Link))
        for start in range(0, len(later), BATCH):
            yield batch(later[start : start + BATCH])
        if others:
            problems.append(f"{others} rows of other projects were skipped; --all takes them")
        if done < total:
            problems.append(f"the file is cut short: {done} of {total} rows are there")
        yield batch([])


class _Target:
    """The project that rows are imported into."""

    def __init__(self, project: Project, header: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        self._project, self._wide = project, bool(options.get("all"))
        self._from = str(header.get("project") or "") if options.get("as") else project.key
        if not self._from:
            raise BadRequest("only an export of one project can be mapped to another", hint="use --all, without --as")

    def own(self, row: Any) -> Any:
        """Return the row as one of the target, None where it is another project's.

        A copy into another project has a uid of its own, so that the old project keeps its rows.
        """
        if self._wide:
            return row
        if isinstance(row, Link):
            return replace(row, source=self._uid(row.source), target=self._uid(row.target))
        if (row.scope if isinstance(row, Memory) else f"project:{row.project}") != f"project:{self._from}":
            return None
        if isinstance(row, Memory):
            by = self._uid(row.superseded_by) if row.superseded_by else ""
            row = replace(row, uid=self._uid(row.uid), superseded_by=by, scope=self._project.scope)
        return replace(row, project=self._project.key)

    def _uid(self, uid: str) -> str:
        key = self._project.key
        if self._from == key:
            return uid
        return uid.replace(self._from, key) if self._from in uid else f"as:{key}:{uid}"


def _batch(rows: Sequence[Any], **more: Any) -> Batch:
    def of(kind: type[T]) -> tuple[T, ...]:
        return tuple(row for row in rows if isinstance(row, kind))

    session = next(iter(of(Session)), None)
    return Batch(of(Memory), of(Link), of(Change), session=session, events=of(Event), only_newer=True, **more)


# ---- lines


def _header(raw: bytes) -> dict[str, Any]:
    """Return the first line; empty where it is no header of an export."""
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        return {}
    if header.get("version") != VERSION:
        message = f"this export is of version {header.get('version')!r}, and we read {VERSION}"
        raise BadRequest(message, hint="upgrade Foreword")
    return header


def _total(header: Mapping[str, Any]) -> int:
    counts = header.get("counts")
    return sum(n for n in counts.values() if isinstance(n, int)) if isinstance(counts, dict) else 0


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield every line; one that is too long comes cut."""
    while raw := file.readline(MOST_LINE):
        rest = raw
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(MOST_LINE)
        yield raw


def _row(raw: bytes, *, trusted: bool) -> Any:
    """Return the row of a line; BadLine where it is none. Nothing of a file without our header speaks for the user."""
    if len(raw) >= MOST_LINE:
        raise BadLine(f"longer than {MOST_LINE:,} bytes")
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise BadLine("no JSON") from exc
    part = next(iter(line), "") if isinstance(line, dict) else ""
    if part not in PARSERS or len(line) > 1 or not isinstance(line[part], dict):
        raise BadLine("no row of an export")
    row = PARSERS[part](line[part])
    if not trusted and isinstance(row, Event):
        raise BadLine("an event without an export's header: its text would count as the user's own words")
    return replace(row, trust="imported") if not trusted and isinstance(row, Memory) else row


# ---- rows


def _memory(row: Mapping[str, Any]) -> Memory:
    scope = _text(row, "scope")
    if scope != UNIVERSAL and not scope.startswith(("language:", "project:")):
        raise BadLine(f"unknown scope {scope[:80]!r}")
    if not isinstance(row.get("detail", {}), dict):
        raise BadLine("`detail` is no object")
    if not _text(row, "title").strip() or not _text(row, "uid"):
        raise BadLine("a memory needs a title and a uid")
    if _number({"seen": 1, **row}, "seen") < 1:
        raise BadLine("`seen` is no whole number from 1 on")
    for name, known in (("kind", tuple(KINDS)), ("trust", TRUSTS), ("status", STATUSES)):
        if row.get(name) not in known:
            raise BadLine(f"unknown {name} {str(row.get(name))[:80]!r}")
    memory = _build(Memory, {"seen": 1, **row}, detail=row.get("detail", {}))
    return replace(
        memory,
        confidence=min(1.0, memory.confidence),
        superseded_by=_text(row, "superseded_by_uid") or memory.superseded_by,
        # Else another project would list what it cannot see.
        project=scope.partition(":")[2] if scope.startswith("project:") else memory.project,
    )


def _link(row: Mapping[str, Any]) -> Link:
    ends = {name: _text(row, f"{name}_uid") or _text(row, name) for name in ("source", "target")}
    return Link(relation=_text(row, "relation"), **ends)


def _change(row: Mapping[str, Any]) -> Change:
    change = _build(Change, row)
    if change.what not in ("NEW", "MODIFIED", "DELETED"):
        raise BadLine(f"unknown what {change.what[:80]!r}")
    return change


def _session(row: Mapping[str, Any]) -> Session:
    session = _build(Session, row)
    if not session.id:
        raise BadLine("a session needs an id")
    return session


def _event(row: Mapping[str, Any]) -> Event:
    if not isinstance(row.get("payload"), dict) or not _text(row, "key"):
        raise BadLine("an event needs a payload and a key")
    return _build(Event, row, payload=row["payload"], number=0)


PARSERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "memory": _memory,
    "session": _session,
    "change": _change,
    "event": _event,
    "link": _link,
}


def _build(kind: Callable[..., T], row: Mapping[str, Any], **known: Any) -> T:
    """Make a dataclass of a row, checking each value by its field's type; what is missing is empty or 0."""
    parsers: dict[str, Callable[[Mapping[str, Any], str], Any]] = {
        "float": _number,
        "int": _whole,
        "tuple[str, ...]": _texts,
        "bool": lambda row, name: row.get(name) is True,
    }
    any_kind: Any = kind  # of fields(), which takes dataclasses alone
    for each in fields(any_kind):
        if each.name not in known:
            parse: Callable[[Mapping[str, Any], str], Any] = parsers.get(str(each.type), _text)
            known[each.name] = parse(row, each.name)
    return kind(**known)


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name, "")
    if not isinstance(value, str):
        raise BadLine(f"`{name}` is no text")
    return value


def _texts(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = row.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadLine(f"`{name}` is no list of texts")
    return tuple(value)


def _number(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name, 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MOST_NUMBER:
        raise BadLine(f"`{name}` is no valid number")
    return float(value)


def _whole(row: Mapping[str, Any], name: str) -> int:
    return int(_number(row, name))
