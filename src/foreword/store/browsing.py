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
from foreword.terms import any_of

SHOWN_STATUSES = ("active", "proposed")  # unless others are asked for
FACETS = ("kind", "scope", "project", "status", "trust", "pinned", "tag", "file")
TOP = 20  # tags and files that are counted; others are found by typing
MAX_PAGE = 200
MAX_TEXT, MAX_WORDS = 400, 12  # characters and words of a search; a pasted page is found by how it begins
# What phones and keyboards write around words. A symbol alone, such as an emoji, is a word.
_PUNCTUATION = "\"'`.,;:!?()[]{}<>*^|\\“”„‘’«»…—–-\0"
_HAYSTACK = "lower(m.title || ' ' || m.body || ' ' || m.tags || ' ' || m.files)"
_TABLE = "memories m JOIN owners o ON o.number = m.owner"


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
    """The questions of the viewer's Memories page."""

    def page(self, wanted: MemoryFilter, *, offset: int = 0, limit: int = 50) -> tuple[tuple[Memory, ...], int]:
        """Return the memories that pass, newest first, and how many there are; with words, those in titles first."""
        where, params = _where(self._with_whole_id(wanted))
        order, order_params = _order(wanted.words)
        sql = f"SELECT m.place, count(*) OVER () FROM {_TABLE} WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?"
        rows = self._all(sql, (*params, *order_params, max(1, min(limit, MAX_PAGE)), offset))
        found = self._memories_at([place for place, _ in rows])
        return tuple(found[place] for place, _ in rows if place in found), rows[0][1] if rows else 0

    def facets(self, wanted: MemoryFilter) -> dict[str, tuple[tuple[str, int], ...]]:
        """Count the memories that pass by each facet's values, most first, as if nothing of that facet was chosen."""
        wanted = self._with_whole_id(wanted)
        base, params = _where(MemoryFilter(words=wanted.words, statuses=()))
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
        sql = f"WITH found AS MATERIALIZED (SELECT {columns} FROM {_TABLE} WHERE {base}) {' UNION ALL '.join(parts)}"
        counts: dict[str, tuple[tuple[str, int], ...]] = dict.fromkeys(FACETS, ())
        for facet, value, count in self._all(sql, params):
            counts[facet] += ((value, count),)
        return counts

    def _with_whole_id(self, wanted: MemoryFilter) -> MemoryFilter:
        """Show the memory of a whole id whatever its status: who types one means it."""
        known = self._all("SELECT 1 FROM memories WHERE id = ?", (wanted.words.strip().lower(),))
        return wanted._replace(statuses=()) if known and wanted.statuses == SHOWN_STATUSES else wanted


def _where(wanted: MemoryFilter) -> tuple[str, list[Any]]:
    """Return the whole condition and its parameters; what is being forgotten never passes."""
    filters, params = _filters(wanted)
    words, word_params = ["true"], list[Any]()
    for word in _words(wanted.words):
        # A part of the text as it is typed, or another form of a whole word as the index of words knows it.
        forms = {word.lower()} if word.isascii() else {word.lower(), word.upper(), word.capitalize()}
        parts = [*[f"instr({_HAYSTACK}, ?)"] * len(forms), "m.place IN (SELECT rowid FROM words WHERE words MATCH ?)"]
        words.append(f"({' OR '.join(parts)})")
        word_params += (*forms, any_of((word,)))
    holds = " AND ".join(words)
    id = wanted.words.strip().lower()
    if re.match(r"[a-z]{3}-", id):
        holds, word_params = f"({holds} OR m.id >= ? AND m.id < ?)", [*word_params, id, f"{id}\x7f"]
    return f"m.status <> 'forgotten' AND {filters} AND {holds}", [*params, *word_params]


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


def _order(text: str) -> tuple[str, list[str]]:
    """Order by how the title answers the words, then the newest first."""
    words = [word.lower() for word in _words(text)]
    if not words:
        return "m.created DESC, m.place DESC", []
    in_title = " + ".join(["(instr(lower(m.title), ?) > 0)"] * len(words))
    order = f"instr(lower(m.title), ?) = 1 DESC, m.status NOT IN ({marks(SHOWN_STATUSES)}), {in_title} DESC"
    return f"{order}, m.created DESC, m.place DESC", [text.strip().lower(), *SHOWN_STATUSES, *words]


def _words(text: str) -> list[str]:
    """Return the words that must occur, without the punctuation around them."""
    words = (word.strip(_PUNCTUATION) for word in text[:MAX_TEXT].replace("’", "'").split())
    return list(dict.fromkeys(word for word in words if word))[:MAX_WORDS]
