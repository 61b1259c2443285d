"""Questions -> rows, for any SQLite connection: the worker asks through apsw, a hook without worker through the stdlib.

All reading SQL lives here. Light: the hook loads this file.
"""

from __future__ import annotations

import math

from foreword.errors import DamagedIndex, StoreError
from foreword.jsontext import loads, storable
from foreword.types import Change, Event, Hit, Injection, Item, Link, Memory, Query, Session
from foreword.words import any_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

SCHEMA = 1  # the newest schema this code can read; the number of the last migration
SEQUENCE_BITS = 32  # place = owner << 32 | sequence
KNOWN_TABLES = (
    "memories",
    "links",
    "sessions",
    "events",
    "changes",
    "injections",
    "injection_items",
    "access",
    "owners",
    "meta",
)

# A word in more rows of a scope than this is common there: its rows are not weighed one by one.
COMMON = 500
# So many of the rarest words make a full match; more words in a prompt must not make it harder to match.
FULL_MATCH = 5
# Failures that say nothing about the index: another moment may be better.
_PASSING = ("lock", "busy", "disk I/O", "unable to open", "out of memory", "interrupted")
IMAGINED = 100  # rows that a young store is thought to have besides its own

_MEMORY = """m.kind, m.title, m.body, m.id, m.uid, o.scope, m.project, m.tags, m.files, m.functions, m.session,
 m.source, m.trust, m.confidence, m.seen, m.created, m.confirmed, m.status, m.superseded_by, m.detail"""
_FROM = "FROM memories m JOIN owners o ON o.number = m.owner"


class Reader:
    """Asks one read-only connection; *failures* are the exceptions that connection raises."""

    def __init__(self, execute: Callable[..., Iterable[Any]], *, failures: tuple[type[Exception], ...]) -> None:
        self._execute = execute
        self._failures = failures

    # -- memories -----------------------------------------------------------------------------------------------
    def by_id(self, ids: Sequence[str]) -> tuple[Memory, ...]:
        rows: list[Any] = []
        for some in _chunks(ids):
            rows += self._all(f"SELECT {_MEMORY} {_FROM} WHERE m.id IN ({_marks(some)})", some)
        found = {memory.id: memory for memory in map(_memory, rows)}
        return tuple(found[id] for id in dict.fromkeys(ids) if id in found)

    def by_recency(self, query: Query) -> tuple[Hit, ...]:
        found: list[Memory] = []
        since, until = query.since, query.at or math.inf
        for owner, _ in self._owners(query.scopes):
            for kind in query.kinds or ("",):
                # One walk down the index for each kind: a list of kinds in one statement would sort them all.
                of_kind, given = ("AND m.kind = ?", (kind,)) if kind else ("", ())
                found += map(
                    _memory,
                    self._all(
                        f"""SELECT {_MEMORY} {_FROM} WHERE m.owner = ? {of_kind} AND m.status = 'active'
                        AND m.created BETWEEN ? AND ? ORDER BY m.created DESC LIMIT ?""",
                        (owner, *given, since, until, query.limit),
                    ),
                )
        found.sort(key=lambda memory: (-memory.created, memory.id))
        return tuple(Hit(memory=memory, source="recency", score=memory.created) for memory in found[: query.limit])

    def by_words(self, query: Query) -> tuple[Hit, ...]:
        try:
            return self._by_words(query)
        except self._failures as exc:
            if any(sign in str(exc) for sign in _PASSING):
                raise StoreError(f"the database cannot be read now: {exc}") from exc
            raise DamagedIndex(f"the words index cannot be read: {exc}", hint="run `foreword index`") from exc

    def _by_words(self, query: Query) -> tuple[Hit, ...]:
        owners = self._owners(query.scopes)
        if not owners or not query.terms:
            return ()
        holders = {
            term: [place for owner, _ in owners for (place,) in self._holding(term, owner)] for term in query.terms
        }
        size = sum(newest for _, newest in owners)
        weight = {term: _rarity(len(places), size) for term, places in holders.items()}
        full = sum(sorted(weight.values(), reverse=True)[:FULL_MATCH])
        chosen = _rarest(holders, query=query, size=size)
        if not chosen:
            return ()
        matched: dict[int, float] = {}
        for term in chosen:
            for place in holders[term]:
                matched[place] = matched.get(place, 0.0) + weight[term]
        found: list[Hit] = []
        for owner, _ in owners:
            ranks = dict(self._ranked(chosen, owner, query))
            here = self._at_places(tuple(ranks))
            if len(here) < query.limit < len(ranks):  # so many are no longer active that others were left out
                ranks = dict(self._ranked(chosen, owner, query, only_active=True))
                here = self._at_places(tuple(ranks))
            for memory, place in here:
                share = min(1.0, matched.get(place, 0.0) / full)
                found.append(Hit(memory=memory, source="words", score=-ranks[place], matched=share))
        found.sort(key=lambda hit: (-hit.score, hit.memory.id))
        return tuple(found[: query.limit])

    def _holding(self, term: str, owner: int) -> list[Any]:
        return self._all(
            "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?",
            (any_of((term,)), *_range(owner), COMMON + 1),
        )

    def _ranked(self, terms: Sequence[str], owner: int, query: Query, *, only_active: bool = False) -> list[Any]:
        expression, places = any_of(terms), _range(owner)
        if not (query.kinds or query.since or query.at or only_active):
            # Twice as many as wanted, because the rows that are no longer active fall out afterwards.
            return self._all(
                "SELECT rowid, rank FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rank LIMIT ?",
                (expression, *places, query.limit * 2),
            )
        of_kinds = f"AND m.kind IN ({_marks(query.kinds)})" if query.kinds else ""
        return self._all(
            f"""SELECT words.rowid, words.rank FROM words JOIN memories m ON m.place = words.rowid
            WHERE words MATCH ? AND words.rowid BETWEEN ? AND ? {of_kinds} AND m.created BETWEEN ? AND ?
            AND m.status = 'active' ORDER BY words.rank LIMIT ?""",
            (expression, *places, *query.kinds, query.since, query.at or math.inf, query.limit),
        )

    def _at_places(self, places: Sequence[int]) -> list[tuple[Memory, int]]:
        rows: list[Any] = []
        for some in _chunks(places):
            rows += self._all(
                f"SELECT {_MEMORY}, m.place {_FROM} WHERE m.place IN ({_marks(some)}) AND m.status = 'active'", some
            )
        return [(_memory(row), row[-1]) for row in rows]

    def _owners(self, scopes: Sequence[str]) -> list[Any]:
        return self._all(f"SELECT number, newest FROM owners WHERE scope IN ({_marks(scopes)})", tuple(scopes))

    # -- what surrounds them ------------------------------------------------------------------------------------
    def linked(self, id: str) -> tuple[Link, ...]:
        rows = self._all(
            """SELECT source, relation, target FROM links WHERE source = ?
            UNION SELECT source, relation, target FROM links WHERE target = ? ORDER BY 1, 2, 3""",
            (id, id),
        )
        return tuple(Link(*row) for row in rows)

    def changed(self, project: str, *, limit: int) -> tuple[Change, ...]:
        rows = self._all(
            """SELECT project, file, function, what, signature, line, end_line, session, at FROM changes
            WHERE project = ? ORDER BY at DESC, number DESC LIMIT ?""",
            (project, limit),
        )
        return tuple(Change(*row) for row in rows)

    def sessions(self, project: str = "", *, limit: int = 20) -> tuple[Session, ...]:
        rows = self._all(
            """SELECT id, host, project, cwd, started, last, ended, events FROM sessions
            WHERE ? = '' OR project = ? ORDER BY last DESC, id LIMIT ?""",
            (project, project, limit),
        )
        return tuple(Session(*row) for row in rows)

    def events(self, session: str, *, limit: int = 1000) -> tuple[Event, ...]:
        rows = self._all(
            """SELECT key, host, name, kind, session, project, cwd, at, payload FROM events
            WHERE session = ? ORDER BY at, number LIMIT ?""",
            (session, limit),
        )
        return tuple(_event(row) for row in rows)

    def injections(self, *, session: str = "", project: str = "", limit: int = 20) -> tuple[Injection, ...]:
        rows = self._all(
            """SELECT id, moment, session, project, host, at, tokens, budget, build_ms, layers, skipped FROM injections
            WHERE (? = '' OR session = ?) AND (? = '' OR project = ?) ORDER BY at DESC, id LIMIT ?""",
            (session, session, project, project, limit),
        )
        return tuple(_injection(row, self._items(row[0])) for row in rows)

    def _items(self, injection: str) -> tuple[Item, ...]:
        rows = self._all(
            "SELECT memory, layer, score, tokens, why FROM injection_items WHERE injection = ? ORDER BY number",
            (injection,),
        )
        return tuple(_item(row) for row in rows)

    def shown(self, session: str) -> frozenset[str]:
        rows = self._all(
            """SELECT DISTINCT i.memory FROM injections j JOIN injection_items i ON i.injection = j.id
            WHERE j.session = ? AND j.at >= coalesce((SELECT window FROM sessions WHERE id = ?), 0)""",
            (session, session),
        )
        return frozenset(memory for (memory,) in rows)

    # -- the store itself ---------------------------------------------------------------------------------------
    def counts(self) -> dict[str, int]:
        present = self.tables()
        return {name: self._all(f"SELECT count(*) FROM {name}", ())[0][0] for name in KNOWN_TABLES if name in present}

    def schema(self) -> int:
        return int(self._all("PRAGMA user_version", ())[0][0])

    def tables(self) -> frozenset[str]:
        return frozenset(name for (name,) in self._all("SELECT name FROM sqlite_master WHERE type = 'table'", ()))

    def _all(self, sql: str, given: Sequence[Any]) -> list[Any]:
        return list(self._execute(sql, bound(given)))


def bound(given: Iterable[Any]) -> tuple[Any, ...]:
    """The parameters of a statement, without the lone surrogates that no database takes."""
    return tuple(storable(each) if isinstance(each, str) else each for each in given)


def _rarity(holders: int, size: int) -> float:
    """The weight of a word by how few rows hold it, as if there were more: in a store of three, two are not many."""
    return math.log(1 + (size + IMAGINED - holders + 0.5) / (holders + 0.5))


def _rarest(holders: dict[str, list[int]], *, query: Query, size: int) -> list[str]:
    """The rarest words that occur at all, as many as the budget of postings allows, at least one."""
    chosen: list[str] = []
    spent = 0
    for term, places in sorted(holders.items(), key=lambda pair: (len(pair[1]), pair[0])):
        # Past COMMON the true number is unknown; a quarter of the scope is what a frequent word reaches.
        cost = len(places) if len(places) <= COMMON else max(COMMON, size // 4)
        if places and len(chosen) < query.most_terms and (not chosen or spent + cost <= query.postings):
            chosen.append(term)
            spent += cost
    return chosen


def _range(owner: int) -> tuple[int, int]:
    return owner << SEQUENCE_BITS, ((owner + 1) << SEQUENCE_BITS) - 1


def _marks(given: Sequence[Any]) -> str:
    return ",".join("?" * len(given))


def _chunks(given: Sequence[Any], *, size: int = 500) -> Iterable[Sequence[Any]]:
    """Parts that stay below SQLite's limit of parameters in one statement."""
    return (tuple(given[start : start + size]) for start in range(0, len(given), size))


def _memory(row: Sequence[Any]) -> Memory:
    lists = (_texts(stored) for stored in row[7:10])
    detail = loads(row[19]) if row[19] != "{}" else {}
    values: tuple[Any, ...] = (*row[:7], *lists, *row[10:19], detail)
    return Memory(*values)


def _injection(row: Sequence[Any], items: tuple[Item, ...]) -> Injection:
    values: tuple[Any, ...] = (*row[:-2], loads(row[-2]), loads(row[-1]), items)
    return Injection(*values)


def _event(row: Sequence[Any]) -> Event:
    values: tuple[Any, ...] = (*row[:-1], loads(row[-1]))
    return Event(*values)


def _item(row: Sequence[Any]) -> Item:
    values: tuple[Any, ...] = (*row[:-1], loads(row[-1]))
    return Item(*values)


def _texts(stored: str) -> tuple[str, ...]:
    return tuple(loads(stored)) if stored != "[]" else ()
