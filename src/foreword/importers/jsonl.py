"""Read and write the export format: a header, then one JSON row a line. Wrong lines are reported by number."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import IO, Any, TypeVar

from foreword.errors import BadRequest
from foreword.importers.base import Batch, Offer, Resolver
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


@dataclass(frozen=True)
class Header:
    """The first line: the project of the rows (empty: of all), and how many there are of each part."""

    project: str
    counts: Mapping[str, int]


def source(_: str, options: Mapping[str, Any], _resolver: Resolver) -> Jsonl:
    path, wide, mapped = options.get("file"), options.get("all", False), options.get("as", False)
    if not isinstance(path, str) or not os.path.isabs(path):
        raise BadRequest("`file` must be the absolute path of an export", hint="`foreword import jsonl FILE`")
    if not os.path.isfile(path):
        raise BadRequest(f"there is no file {path}", hint="`foreword export FILE` writes one")
    if not isinstance(wide, bool) or not isinstance(mapped, bool) or (wide and mapped):
        raise BadRequest("`all` and `as` exclude each other", hint="one project into another, or all as they are")
    return Jsonl(path, wide=wide, mapped=mapped)


class Jsonl:
    """One export; *wide* takes every project as it is, *mapped* takes the file's one project as the named one."""

    name = "jsonl"

    def __init__(self, path: str, *, wide: bool = False, mapped: bool = False) -> None:
        self._path, self.wide, self._mapped = path, wide, mapped

    def offer(self, project: Project, *, environ: Mapping[str, str]) -> Offer | None:
        del project, environ
        with open(self._path, "rb") as file:
            header = _header(file.readline(MOST_LINE))
        count = sum(header.counts.values()) if header else 0
        return Offer(source=self.name, about=f"{count:,} rows" if header else "lines of JSON", count=count)

    def read(self, project: Project, *, environ: Mapping[str, str], checkpoint: str) -> Iterator[Batch]:
        # Again from the top after a kill: what is known already costs a look-up.
        del environ, checkpoint
        try:
            with open(self._path, "rb") as file:
                yield from _Reader(file, project, wide=self.wide, mapped=self._mapped).batches()
        except OSError as exc:
            raise BadRequest(f"{self._path} cannot be read: {exc.strerror}", hint="see that it is there") from exc


class _Reader:
    """One pass through the file; links and superseded memories come last, when the rows that they name are there."""

    def __init__(self, file: IO[bytes], project: Project, *, wide: bool, mapped: bool) -> None:
        self._file, self._project, self._wide = file, project, wide
        self._header = _header(file.readline(MOST_LINE))
        if mapped and not (self._header and self._header.project):
            raise BadRequest("only an export of one project can be mapped to another", hint="use --all, without --as")
        self._from = self._header.project if mapped and self._header else project.key
        self._total = sum(self._header.counts.values()) if self._header else 0
        self._done = 0
        self._others = 0  # rows of other projects
        self._superseded: dict[str, tuple[int, str]] = {}  # uid -> start of its line, and the uid that supersedes it
        self._first_link = -1  # start of its line

    def batches(self) -> Iterator[Batch]:
        if self._header is None:
            yield Batch(problems=("line 1: no header of an export: nothing here is trusted more than an import",))
        yield from self._rows()
        depths = self._depths()
        uids = sorted(self._superseded, key=depths.__getitem__)
        for start in range(0, len(uids), BATCH):
            yield self._batch([self._memory_at(self._superseded[uid][0]) for uid in uids[start : start + BATCH]])
        if self._first_link >= 0:
            yield from self._links()
        yield Batch(problems=tuple(self._final_problems()), done=self._done, total=self._done)

    def _rows(self) -> Iterator[Batch]:
        held: list[Any] = []
        problems: list[str] = []
        for number, place, raw in _lines(self._file, start=0):
            if number == 1 and self._header:
                continue
            try:
                row = self._row(raw, place)
            except (BadLine, RecursionError) as exc:
                problems.append(f"line {number}: {exc}")
                row = None
            held += [row] if row else []
            # A session counts its events: they are stored before it, so that none counts twice.
            if len(held) + len(problems) >= BATCH or isinstance(row, Session):
                yield self._batch(held, problems)
                held, problems = [], []
        yield self._batch(held, problems)

    def _row(self, raw: bytes, place: int) -> Any:
        """Return the row of a line; None where it is another project's, or comes later."""
        part, fields = _parse(raw)
        self._done += part != "link"
        if part == "link":
            _link(fields)  # a bad one is reported now; the others come when both ends are there
            self._first_link = place if self._first_link < 0 else self._first_link
            return None
        row = PARSERS[part](fields)
        scope = row.scope if isinstance(row, Memory) else f"project:{row.project}"
        if not self._wide and scope != f"project:{self._from}":
            self._others += 1
            return None
        if isinstance(row, Event) and self._header is None:
            raise BadLine("an event without an export's header: its text would count as the user's own words")
        row = self._mapped(row)
        if isinstance(row, Memory) and row.superseded_by:
            self._superseded[row.uid] = (place, row.superseded_by)
            return None
        return row

    def _mapped(self, row: Any) -> Any:
        """Return the row as one of the named project: with a uid of its own, so that the old project keeps its rows."""
        key = self._project.key
        if isinstance(row, Memory) and self._header is None:
            row = replace(row, trust="imported")
        if self._wide or self._from == key:
            return row
        if isinstance(row, Memory):
            by = self._uid(row.superseded_by) if row.superseded_by else ""
            return replace(row, uid=self._uid(row.uid), superseded_by=by, project=key, scope=self._project.scope)
        return replace(row, project=key)

    def _uid(self, uid: str) -> str:
        key = self._project.key
        if self._wide or self._from == key:
            return uid
        return uid.replace(self._from, key) if self._from in uid else f"as:{key}:{uid}"

    def _memory_at(self, place: int) -> Memory:
        self._file.seek(place)
        memory: Memory = self._mapped(_memory(_parse(self._file.readline(MOST_LINE))[1]))
        return memory

    def _depths(self) -> dict[str, int]:
        """Return how many memories are between each and the one that is still active; a ring has an end too."""
        depths: dict[str, int] = {}
        for first in self._superseded:
            way: dict[str, None] = {}
            uid = first
            while uid in self._superseded and uid not in depths and uid not in way:
                way[uid] = None
                uid = self._superseded[uid][1]
            for each in reversed(way):
                depths[each] = depths.get(self._superseded[each][1], 0) + 1
        return depths

    def _links(self) -> Iterator[Batch]:
        held: list[Any] = []
        for _, _, raw in _lines(self._file, start=self._first_link):
            try:
                part, fields = _parse(raw)
                link = _link(fields) if part == "link" else None
            except BadLine:
                continue  # reported in the first pass
            if link:
                self._done += 1
                held.append(replace(link, source=self._uid(link.source), target=self._uid(link.target)))
            if len(held) >= BATCH:
                yield self._batch(held)
                held = []
        yield self._batch(held)

    def _batch(self, rows: list[Any], problems: list[str] | None = None) -> Batch:
        def of(kind: type[T]) -> tuple[T, ...]:
            return tuple(row for row in rows if isinstance(row, kind))

        return Batch(
            memories=of(Memory),
            links=of(Link),
            changes=of(Change),
            session=next(iter(of(Session)), None),
            events=of(Event),
            done=self._done,
            total=max(self._done, self._total),
            problems=tuple(problems or ()),
            only_newer=True,
        )

    def _final_problems(self) -> Iterator[str]:
        if self._others:
            yield f"{self._others} rows of other projects were skipped; --all takes them"
        if self._done < self._total:
            yield f"the file is cut short: {self._done} of {self._total} rows are there"


# ---- lines


def _header(raw: bytes) -> Header | None:
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        return None
    if header.get("version") != VERSION:
        raise BadRequest(
            f"this export is of version {header.get('version')!r}, and we read {VERSION}", hint="upgrade Foreword"
        )
    counts = header.get("counts")
    whole = {name: n for name, n in counts.items() if isinstance(n, int)} if isinstance(counts, dict) else {}
    return Header(project=str(header.get("project") or ""), counts=whole)


def _lines(file: IO[bytes], *, start: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, start and bytes of every line that is not empty; one that is too long comes cut."""
    file.seek(start)
    number, place = 0, start
    while raw := file.readline(MOST_LINE):
        number += 1
        length = len(raw)
        rest = raw
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(MOST_LINE)
            length += len(rest)
        if raw.strip():
            yield number, place, raw
        place += length


def _parse(raw: bytes) -> tuple[str, dict[str, Any]]:
    if len(raw) >= MOST_LINE:
        raise BadLine(f"longer than {MOST_LINE:,} bytes")
    try:
        row = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise BadLine("no JSON") from exc
    part = next(iter(row), "") if isinstance(row, dict) else ""
    if part not in PARTS or len(row) > 1 or not isinstance(row[part], dict):
        raise BadLine("no row of an export")
    return part, row[part]


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


PARSERS: Mapping[str, Any] = {"memory": _memory, "session": _session, "change": _change, "event": _event}


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
