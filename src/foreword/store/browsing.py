"""List memories of all projects by filters and words, and count them by facet: the SQL of the viewer's list.

Every question reads the memories table once. At 100,000 memories that takes some tenths of a second (docs/log.md), and
needs no index, cache or sample that could be out of date.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from foreword.models import Memory
from foreword.store.sql import Repository, marks
from foreword.terms import any_of, terms

SHOWN_STATUSES = ("active",)  # unless others are asked for
FACETS = ("kind", "scope", "project", "status", "trust", "pinned", "tag", "file")
TOP = 20  # tags and files that are counted; others are found by typing
MAX_PAGE = 200
MAX_TEXT, MAX_WORDS = 400, 12  # characters and words of a search; a pasted page is found by how it begins
TYPED = 5  # characters of the last word while it is typed: the index holds stems, which are shorter than words


class MemoryFilter(NamedTuple):
    """Which memories are wanted; an empty field narrows nothing."""

    words: str = ""  # all of them must occur; the last may be the beginning of one
    kinds: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    project: str = ""
    tag: str = ""
    file: str = ""  # a path; with a slash at its end a folder; without any slash, every file of that name
    statuses: tuple[str, ...] = SHOWN_STATUSES
    trusts: tuple[str, ...] = ()
    pinned: bool | None = None


class Browsing(Repository):
    """Queries of the viewer's Memories page."""

    def page(self, wanted: MemoryFilter, *, offset: int = 0, limit: int = 50) -> tuple[tuple[Memory, ...], int]:
        """Return the memories that pass, best match and then newest first, and how many there are."""
        table, where, params = _found(wanted.words)
        filters, more = _filters(wanted)
        order = ("w.rank, " if " words " in table else "") + "m.created DESC, m.place DESC"
        sql = f"SELECT m.place, count(*) OVER () FROM {table} WHERE {where} AND {filters} ORDER BY {order}"
        rows = self._all(f"{sql} LIMIT ? OFFSET ?", (*params, *more, max(1, min(limit, MAX_PAGE)), offset))
        found = self._memories_at([place for place, _ in rows])
        return tuple(found[place] for place, _ in rows if place in found), rows[0][1] if rows else 0

    def facets(self, wanted: MemoryFilter) -> dict[str, tuple[tuple[str, int], ...]]:
        """Count the memories that pass by each facet's values, most first, as if nothing of that facet was chosen."""
        table, base, params = _found(wanted.words)
        parts: list[str] = []
        for facet in FACETS:
            where, more = _filters(wanted, but=facet)
            source, value, limit = "found m", f"m.{facet}", ""
            if facet in ("tag", "file"):
                source, value, limit = f"found m, json_each(m.{facet}s) e", "e.value", f"LIMIT {TOP}"
            where = where.replace("o.scope", "m.scope")
            rows = f"SELECT '{facet}', CAST({value} AS TEXT), count(*) AS n FROM {source} WHERE {where} GROUP BY 2"
            parts.append(f"SELECT * FROM ({rows} ORDER BY n DESC, 2 {limit})")
            params += more
        columns = "m.kind, o.scope, m.project, m.status, m.trust, m.pinned, m.tags, m.files"
        sql = f"WITH found AS MATERIALIZED (SELECT {columns} FROM {table} WHERE {base}) {' UNION ALL '.join(parts)}"
        counts: dict[str, tuple[tuple[str, int], ...]] = dict.fromkeys(FACETS, ())
        for facet, value, count in self._all(sql, params):
            counts[facet] += ((value, count),)
        return counts


def _found(text: str) -> tuple[str, str, list[Any]]:
    """Return the tables, the condition and its parameters for what is typed: beginnings of words, or of an id."""
    table, kept = "memories m JOIN owners o ON o.number = m.owner", "m.status <> 'forgotten'"  # never what is forgotten
    text = text.lstrip().lower()[:MAX_TEXT]
    if re.match(r"[a-z]{3}-[0-9a-z]+$", text.rstrip()):
        return table, f"{kept} AND m.id >= ? AND m.id < ?", [text.rstrip(), f"{text.rstrip()}\x7f"]
    if not text:
        return table, kept, []
    words = list(terms(text, limit=MAX_WORDS)) or [text.strip()]
    if not text[-1].isspace():
        words[-1] = words[-1][:TYPED]
    every = " AND ".join(any_of((f"{word.rstrip('*')}*",)) for word in words)
    return f"{table} JOIN words w ON w.rowid = m.place", f"{kept} AND words MATCH ?", [every]


def _filters(wanted: MemoryFilter, *, but: str = "") -> tuple[str, list[Any]]:
    """Return the condition for every facet *but* one."""
    conditions, params = ["true"], list[Any]()
    chosen: Mapping[str, tuple[Any, ...]] = {
        "m.kind": wanted.kinds,
        "o.scope": wanted.scopes,
        "m.project": (wanted.project,) if wanted.project else (),
        "m.status": wanted.statuses,
        "m.trust": wanted.trusts,
        "m.pinned": () if wanted.pinned is None else (int(wanted.pinned),),
    }
    for column, values in chosen.items():
        if values and column[2:] != but:
            conditions.append(f"{column} IN ({marks(values)})")
            params += values
    if wanted.tag and but != "tag":
        conditions.append("EXISTS (SELECT 1 FROM json_each(m.tags) e WHERE e.value = ?)")
        params.append(wanted.tag)
    if wanted.file and but != "file":
        matches, times = "e.value = ?", 1
        if wanted.file.endswith("/"):
            matches, times = "substr(e.value, 1, length(?)) = ?", 2
        elif "/" not in wanted.file:
            matches, times = "e.value = ? OR substr(e.value, -1 - length(?)) = '/' || ?", 3
        conditions.append(f"EXISTS (SELECT 1 FROM json_each(m.files) e WHERE {matches})")
        params += [wanted.file] * times
    return " AND ".join(conditions), params
