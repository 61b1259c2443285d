"""A file that `foreword export` wrote -> the same rows again; what is no row of ours is told with its line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import IO, Any, TypeVar

from foreword.errors import BadRequest
from foreword.importers import Batch, Found, Resolver
from foreword.models import KINDS, STATUSES, TRUSTS, UNIVERSAL, Change, Event, Link, Memory, Project, Session

FORMAT, VERSION = "foreword export", 1
ROWS = 200  # memories of one batch
MOST_LINE = 8 * 1024 * 1024  # bytes; an event has at most some 64 KB a text
MOST_NUMBER = 1e11  # seconds; the year 5138
WHATS = ("NEW", "MODIFIED", "DELETED")


T = TypeVar("T")


class BadLine(ValueError):
    """A line that is no row of ours; its text says why."""


@dataclass(frozen=True)
class Header:
    """What the first line says: of which project the rows are (empty: of all), and how many there are."""

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

    def look(self, project: Project, *, environ: Mapping[str, str]) -> Found | None:
        del project, environ
        with open(self._path, "rb") as file:
            header = _header(file.readline(MOST_LINE))
        count = sum(header.counts.values()) if header else 0
        return Found(source=self.name, about=f"{count:,} rows" if header else "lines of JSON", count=count)

    def read(self, project: Project, *, environ: Mapping[str, str], since_mark: str) -> Iterator[Batch]:
        # Again from the top after a kill: what is known already costs a look and is passed over.
        del environ, since_mark
        try:
            with open(self._path, "rb") as file:
                yield from _Reading(file, project, wide=self.wide, mapped=self._mapped).batches()
        except OSError as exc:
            raise BadRequest(f"{self._path} cannot be read: {exc.strerror}", hint="see that it is there") from exc


class _Reading:
    """One way through the file: what names others, links and superseded memories, comes when those are there."""

    def __init__(self, file: IO[bytes], project: Project, *, wide: bool, mapped: bool) -> None:
        self._file, self._project, self._wide = file, project, wide
        self._header = _header(file.readline(MOST_LINE))
        if mapped and not (self._header and self._header.project):
            raise BadRequest("only an export of one project can be mapped to another", hint="use --all, without --as")
        self._from = self._header.project if mapped and self._header else project.key
        self._total = sum(self._header.counts.values()) if self._header else 0
        self._done = 0
        self._others = 0  # rows of projects that were not named
        self._late: dict[str, tuple[int, str]] = {}  # uid -> where its line begins, and the uid that supersedes it
        self._links = -1  # where the first of them begins

    def batches(self) -> Iterator[Batch]:
        if self._header is None:
            yield Batch(problems=("line 1: no header of an export: nothing here is trusted more than an import",))
        yield from self._rows()
        depths = self._depths()
        for uids in _chunks(sorted(self._late, key=depths.__getitem__)):
            yield self._batch([self._memory_at(self._late[uid][0]) for uid in uids])
        if self._links >= 0:
            yield from self._linked()
        yield Batch(problems=tuple(self._afterwards()), done=self._done, total=self._done)

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
            # A session tells how many events it has: they are there before it, so that none counts twice.
            if len(held) + len(problems) >= ROWS or isinstance(row, Session):
                yield self._batch(held, problems)
                held, problems = [], []
        yield self._batch(held, problems)

    def _row(self, raw: bytes, place: int) -> Any:
        """The row of a line; None where it is another project's, or where its turn comes later."""
        what, told = _told(raw)
        self._done += what != "link"
        if what == "link":
            _link(told)  # a bad one is told now; the others come when what they join is there
            self._links = place if self._links < 0 else self._links
            return None
        row = READ[what](told)
        scope = row.scope if isinstance(row, Memory) else f"project:{row.project}"
        if not self._wide and scope != f"project:{self._from}":
            self._others += 1
            return None
        if isinstance(row, Event) and self._header is None:
            raise BadLine("an event without an export's header: what it says would count as the user's own words")
        row = self._named(row)
        if isinstance(row, Memory) and row.superseded_by:
            self._late[row.uid] = (place, row.superseded_by)
            return None
        return row

    def _named(self, row: Any) -> Any:
        """The row as one of the project that was named: with uids of its own, so that the old one keeps its rows."""
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
        memory: Memory = self._named(READ["memory"](_told(self._file.readline(MOST_LINE))[1]))
        return memory

    def _depths(self) -> dict[str, int]:
        """How many stand between each memory and the one that is still true; a ring has an end too."""
        depths: dict[str, int] = {}
        for first in self._late:
            way: dict[str, None] = {}
            uid = first
            while uid in self._late and uid not in depths and uid not in way:
                way[uid] = None
                uid = self._late[uid][1]
            for each in reversed(way):
                depths[each] = depths.get(self._late[each][1], 0) + 1
        return depths

    def _linked(self) -> Iterator[Batch]:
        held: list[Any] = []
        for _, _, raw in _lines(self._file, start=self._links):
            try:
                what, told = _told(raw)
                link = _link(told) if what == "link" else None
            except BadLine:
                continue  # told when it was met first
            if link:
                self._done += 1
                held.append(replace(link, source=self._uid(link.source), target=self._uid(link.target)))
            if len(held) >= ROWS:
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
            gentle=True,
        )

    def _afterwards(self) -> Iterator[str]:
        if self._others:
            yield f"{self._others} rows of other projects were passed over; --all takes them"
        if self._done < self._total:
            yield f"the file is cut short: {self._done} of {self._total} rows are there"


# ---- lines


def _header(raw: bytes) -> Header | None:
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        return None
    if told.get("version") != VERSION:
        raise BadRequest(
            f"this export is of version {told.get('version')!r}, and we read {VERSION}", hint="upgrade Foreword"
        )
    counts = told.get("counts")
    whole = {name: n for name, n in counts.items() if isinstance(n, int)} if isinstance(counts, dict) else {}
    return Header(project=str(told.get("project") or ""), counts=whole)


def _lines(file: IO[bytes], *, start: int) -> Iterator[tuple[int, int, bytes]]:
    """Every line that is not empty, with its number and where it begins; what is too long comes cut."""
    file.seek(start)
    number, place = 0, start
    while raw := file.readline(MOST_LINE):
        number += 1
        length = len(raw)
        rest = raw
        while rest and not rest.endswith(b"\n"):  # the rest of a line that nobody of us wrote
            rest = file.readline(MOST_LINE)
            length += len(rest)
        if raw.strip():
            yield number, place, raw
        place += length


def _told(raw: bytes) -> tuple[str, dict[str, Any]]:
    if len(raw) >= MOST_LINE:
        raise BadLine(f"longer than {MOST_LINE:,} bytes")
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise BadLine("no JSON") from exc
    what = next(iter(told), "") if isinstance(told, dict) else ""
    if what not in (*READ, "link") or len(told) > 1 or not isinstance(told[what], dict):
        raise BadLine("no row of an export")
    return what, told[what]


def _chunks(uids: list[str]) -> Iterator[list[str]]:
    return (uids[start : start + ROWS] for start in range(0, len(uids), ROWS))


# ---- rows


def _memory(told: Mapping[str, Any]) -> Memory:
    scope = _text(told, "scope")
    if scope != UNIVERSAL and not scope.startswith(("language:", "project:")):
        raise BadLine(f"unknown scope {scope[:80]!r}")
    detail = told.get("detail", {})
    if not isinstance(detail, dict):
        raise BadLine("`detail` is no object")
    if not _text(told, "title").strip() or not _text(told, "uid"):
        raise BadLine("a memory needs a title and a uid")
    seen = told.get("seen", 1)
    if not isinstance(seen, int) or isinstance(seen, bool) or not 1 <= seen < MOST_NUMBER:
        raise BadLine("`seen` is no whole number from 1 on")
    values: dict[str, Any] = {
        "kind": _one_of(told, "kind", tuple(KINDS)),
        "seen": seen,
        "pinned": told.get("pinned") is True,
        "trust": _one_of(told, "trust", TRUSTS),
        "status": _one_of(told, "status", STATUSES),
        "confidence": min(1.0, _number(told, "confidence")),
        "superseded_by": _text(told, "superseded_by_uid") or _text(told, "superseded_by"),
        "detail": detail,
    }
    values |= {name: _number(told, name) for name in ("created", "confirmed")}
    values |= {name: int(min(MOST_NUMBER, _number(told, name))) for name in ("used", "ignored") if name in told}
    values |= {name: _texts(told, name) for name in ("tags", "files", "functions")}
    names = ("id", "uid", "title", "body", "scope", "project", "session", "source")
    values |= {name: _text(told, name) for name in names}
    if scope.startswith("project:"):
        values["project"] = scope.partition(":")[2]  # else it would be told of in a project that cannot see it
    return Memory(**values)


def _link(told: Mapping[str, Any]) -> Link:
    ends = {name: _text(told, f"{name}_uid") or _text(told, name) for name in ("source", "target")}
    return Link(relation=_text(told, "relation"), **ends)


def _change(told: Mapping[str, Any]) -> Change:
    values: dict[str, Any] = {"what": _one_of(told, "what", WHATS), "at": _number(told, "at")}
    values |= {name: _text(told, name) for name in ("project", "file", "function", "signature", "session")}
    values |= {name: int(_number(told, name)) for name in ("line", "end_line")}
    return Change(**values)


def _session(told: Mapping[str, Any]) -> Session:
    values: dict[str, Any] = {name: _text(told, name) for name in ("id", "host", "project", "cwd")}
    values |= {name: _number(told, name) for name in ("started", "last", "ended")}
    if not values["id"]:
        raise BadLine("a session needs an id")
    values |= {name: int(_number(told, name)) for name in ("events", "newest", "distilled")}
    return Session(**values)


def _event(told: Mapping[str, Any]) -> Event:
    values: dict[str, Any] = {"payload": told.get("payload"), "at": _number(told, "at")}
    values |= {name: _text(told, name) for name in ("key", "host", "name", "kind", "session", "project", "cwd")}
    if not isinstance(values["payload"], dict) or not values["key"]:
        raise BadLine("an event needs a payload and a key")
    return Event(**values)


READ: Mapping[str, Any] = {"memory": _memory, "session": _session, "change": _change, "event": _event}


def _text(told: Mapping[str, Any], name: str) -> str:
    given = told.get(name, "")
    if not isinstance(given, str):
        raise BadLine(f"`{name}` is no text")
    return given


def _texts(told: Mapping[str, Any], name: str) -> tuple[str, ...]:
    given = told.get(name, [])
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise BadLine(f"`{name}` is no list of texts")
    return tuple(given)


def _number(told: Mapping[str, Any], name: str) -> float:
    given = told.get(name, 0.0)
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < MOST_NUMBER:
        raise BadLine(f"`{name}` is no number that can be")
    return float(given)


def _one_of(told: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    given = told.get(name)
    if given not in known:
        raise BadLine(f"unknown {name} {str(given)[:80]!r}")
    return str(given)
