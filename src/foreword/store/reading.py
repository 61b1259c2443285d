"""Questions -> rows, for any SQLite connection: the worker asks through apsw, a hook without worker through the stdlib.

All reading SQL lives here. Light: the hook loads this file.
"""

from __future__ import annotations

from foreword.errors import DamagedIndex, StoreError
from foreword.jsontext import dumps, loads, storable
from foreword.rarity import rarity
from foreword.types import Change, Event, Hit, Injection, Item, Link, Memory, Near, Query, Session
from foreword.words import any_of, plain, root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

SCHEMA = 4  # the newest schema this code can read; the number of the last migration
FOREVER = float("inf")
SEQUENCE_BITS = 32  # place = owner << 32 | sequence
KNOWN_TABLES = (
    "memories",
    "vectors",
    "links",
    "sessions",
    "events",
    "changes",
    "injections",
    "injection_items",
    "injection_texts",
    "access",
    "owners",
    "units",
    "code",
    "meta",
)

# A word in so many rows is common: all who hold it are read only if the budget of postings has room.
COMMON = 500
# So many of the rarest words make a full match; more words in a prompt must not make it harder to match.
FULL_MATCH = 5
_MOST_PARAMETERS = 500  # in one statement
# Failures that say nothing about the index: another moment may be better.
_PASSING = ("lock", "busy", "disk I/O", "unable to open", "interrupted")
MOST_PAIRS = 8  # of words side by side; each is one more look into the index
AROUND = 60  # of the best hits have their sessions looked at
BESIDE = 15  # of the best hits bring in what stood next to them, whatever it holds
WINDOW = 3  # places to either side; sessions at the same time are interleaved
TAIL = 60  # characters at the end of a body that tell whether it asks
MOST_SHARED = 200  # of the memories that name a file or a function, the newest

_MEMORY = """m.kind, m.title, m.body, m.id, m.uid, o.scope, m.project, m.tags, m.files, m.functions, m.session,
 m.source, m.trust, m.confidence, m.seen, m.created, m.confirmed, m.status, m.superseded_by, m.detail"""
_FROM = "FROM memories m JOIN owners o ON o.number = m.owner"
# When the present context window of session ?1 began; an answered start tells it too, for capture may be off.
_WINDOW = """max(coalesce((SELECT window FROM sessions WHERE id = ?1), 0), coalesce((SELECT max(at) FROM injections
 WHERE session = ?1 AND moment = 'session_start' AND source NOT IN ('', 'resume', 'fork', 'question')), 0))"""


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
        if query.session:
            return self._of_session(query)
        lists: list[list[Memory]] = []
        since, until = query.since, query.at or FOREVER
        for owner, _ in self._owners(query.scopes):
            for kind in query.kinds or ("",):
                # One walk down the index for each kind: a list of kinds in one statement would sort them all.
                of_kind, given = ("AND m.kind = ?", (kind,)) if kind else ("", ())
                rows = self._all(
                    f"""SELECT {_MEMORY} {_FROM} WHERE m.owner = ? {of_kind} AND m.status = 'active'
                    AND m.created BETWEEN ? AND ? ORDER BY m.created DESC LIMIT ?""",
                    (owner, *given, since, until, query.limit),
                )
                lists.append([_memory(row) for row in rows])
        # Each kind and scope has its share first: a day's observations must not hide the decision of last month.
        share = query.limit // max(1, len(lists))
        found = [memory for each in lists for memory in each[:share]]
        more = sorted((memory for each in lists for memory in each[share:]), key=_newest)
        found = sorted(found + more[: query.limit - len(found)], key=_newest)
        return tuple(Hit(memory=memory, source="recency", score=memory.created) for memory in found)

    def _of_session(self, query: Query) -> tuple[Hit, ...]:
        """What one session itself established, newest first."""
        of_kinds = f"AND m.kind IN ({_marks(query.kinds)})" if query.kinds else ""
        rows = self._all(
            # The second condition lets the partial index be used; the plus keeps other indexes out of it.
            f"""SELECT {_MEMORY} {_FROM} WHERE m.session = ? AND m.session <> '' AND +m.status = 'active' {of_kinds}
            AND +o.scope IN ({_marks(query.scopes)}) AND m.created BETWEEN ? AND ?
            ORDER BY m.created DESC, m.id LIMIT ?""",
            (query.session, *query.kinds, *query.scopes, query.since, query.at or FOREVER, query.limit),
        )
        found = map(_memory, rows)
        return tuple(Hit(memory=memory, source="recency", score=memory.created) for memory in found)

    def by_meaning(self, _: Query) -> tuple[Hit, ...]:
        return ()  # a hook has no model

    def by_words(self, query: Query) -> tuple[Hit, ...]:
        try:
            return self._by_words(query)
        except self._failures as exc:
            if any(sign in str(exc) for sign in _PASSING):
                raise StoreError(f"the database cannot be read now: {exc}") from exc
            raise DamagedIndex(f"the words index cannot be read: {exc}", hint="run `foreword index`") from exc

    def _by_words(self, query: Query) -> tuple[Hit, ...]:
        """What holds the rarest words, and with it what stood around it in its session.

        Not FTS5's bm25: it counts every word over all projects, at 1 us a posting (1M memories: 17 ms against 1.5), and
        found less on the replay and LoCoMo sets.
        """
        owners = self._owners(query.scopes)
        asked = (*query.terms, *query.synonyms)
        if not owners or not asked:
            return ()
        size = sum(newest for _, newest in owners)
        first = {term: self._holding(term, owners, most=COMMON) for term in asked}
        holders = self._rarest(first, owners, query)
        weight = {term: rarity(len(holders.get(term, places)), size) for term, places in first.items()}
        full = sum(sorted((weight[term] for term in query.terms), reverse=True)[:FULL_MATCH])
        holders.update(self._side_by_side(query.pairs, first, owners))
        weight.update({pair: rarity(len(places), size) for pair, places in holders.items() if pair not in weight})
        score: dict[int, float] = {}
        for term, places in holders.items():
            gain = weight[term]
            for place in places:
                score[place] = score.get(place, 0.0) + gain
        found = self._best(score, query)
        near = {} if query.plain else self._near(found, holders)
        if near:
            beside = [place for place in near if place not in found][: 2 * BESIDE]
            found.update({place: memory for memory, place in self._at_places(beside, query)})
        holding = {term: frozenset(places) for term, places in holders.items()}
        return tuple(
            Hit(
                memory=memory,
                source="words",
                score=score.get(place, 0.0),
                held={term: weight[term] for term, places in holding.items() if place in places},
                full=full,
                size=size,
                near=near.get(place, ()),
            )
            for place, memory in found.items()
        )

    def _best(self, score: Mapping[int, float], query: Query) -> dict[int, Memory]:
        """The memories at the best places that pass the query's filters, best first."""
        best = sorted(score, key=score.__getitem__, reverse=True)  # of equals the newest, as they were read
        found: list[tuple[Memory, int]] = []
        # A few more than wanted, because some may be filtered out; where many are, the rest follows.
        at, step = 0, query.limit + query.limit // 4 + 1
        while at < len(best) and len(found) < query.limit:
            found += self._at_places(best[at : at + step], query)
            at, step = at + step, _MOST_PARAMETERS
        found.sort(key=lambda hit: (-score[hit[1]], -hit[0].created, hit[0].id))
        return {place: memory for memory, place in found[: query.limit]}

    def _side_by_side(
        self, pairs: Sequence[str], first: Mapping[str, Sequence[int]], owners: Sequence[Any]
    ) -> dict[str, list[int]]:
        """Who holds two words next to each other; a pair of common words would be read for long and say little."""
        known = [
            pair
            for pair in pairs
            if all(first.get(word) for word in pair.split()) and any(len(first[word]) < COMMON for word in pair.split())
        ]
        found = {pair: self._holding(pair, owners, most=COMMON) for pair in known[:MOST_PAIRS]}
        return {pair: places for pair, places in found.items() if places}

    def _near(self, found: Mapping[int, Memory], holders: Mapping[str, Sequence[int]]) -> dict[int, tuple[Near, ...]]:
        """By place, what stood before and after it in its session: for the best, and for what stood next to those."""
        best = [place for place, memory in found.items() if memory.session][:AROUND]
        places = {place + gap for place in best for gap in range(-WINDOW - 2, WINDOW + 3)}
        rows = {}
        for some in _chunks(sorted(places)):
            marks = f"place IN ({_marks(some)}) AND session <> ''"
            sql = f"SELECT place, session, title, substr(body, -{TAIL}), length(body) FROM memories WHERE {marks}"
            rows.update({row[0]: row[1:] for row in self._all(sql, some)})
        sessions: dict[str, list[int]] = {}
        for place in sorted(rows):
            sessions.setdefault(rows[place][0], []).append(place)
        holding = {term: frozenset(held) for term, held in holders.items()}
        told = {
            place: (
                tuple(_said(row[1], [term for term, held in holding.items() if place in held])),
                "?" in row[2],
                row[3],
            )
            for place, row in rows.items()
        }
        near: dict[int, tuple[Near, ...]] = {}
        for rank, place in enumerate(best):
            line = sessions[found[place].session]
            at = line.index(place)
            for other in line[max(0, at - 1) : at + 3] if rank < BESIDE else (place,):
                if abs(other - place) <= WINDOW and other not in near:
                    near[other] = _neighbours(line, other, told)
        return near

    def _rarest(self, first: dict[str, list[int]], owners: Sequence[Any], query: Query) -> dict[str, list[int]]:
        """The rarest words that occur at all with all who hold them, as many as the budget of postings allows."""
        chosen: dict[str, list[int]] = {}
        left = query.postings
        for term in sorted(first, key=lambda term: (len(first[term]), term)):
            places = first[term]
            if not places or len(chosen) >= query.most_terms:
                continue
            if len(places) >= COMMON:
                places = self._holding(term, owners, most=max(COMMON, left) + 1)
            if not chosen or len(places) <= left:
                chosen[term] = places
                left -= len(places)
        return chosen

    def _holding(self, term: str, owners: Sequence[Any], *, most: int) -> list[int]:
        expression = storable(any_of((term,)))
        return [
            place
            for owner, _ in owners
            # From the newest on, which costs no more: where there are too many, the old ones are left out.
            for (place,) in self._execute(
                "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?",
                (expression, *_range(owner), most),
            )
        ]

    def _at_places(self, places: Sequence[int], query: Query) -> list[tuple[Memory, int]]:
        of_kinds = f"AND m.kind IN ({_marks(query.kinds)})" if query.kinds else ""
        rows = self._all(
            f"""SELECT {_MEMORY}, m.place {_FROM} WHERE m.place IN ({_marks(places)}) AND m.status = 'active' {of_kinds}
            AND m.created BETWEEN ? AND ?""",
            (*places, *query.kinds, query.since, query.at or FOREVER),
        )
        return [(_memory(row), row[-1]) for row in rows]

    def _owners(self, scopes: Sequence[str]) -> list[Any]:
        return self._all(f"SELECT number, newest FROM owners WHERE scope IN ({_marks(scopes)})", tuple(scopes))

    def by_code(self, query: Query, votes: Mapping[str, float]) -> tuple[Hit, ...]:
        """What names these files and functions; the sum of the votes, each by its rarity."""
        owners = self._owners(query.scopes)
        size = sum(newest for _, newest in owners)
        holders = {name: self._naming(name, owners) for name in votes}
        weight = {name: rarity(len(places), size) for name, places in holders.items() if places}
        score: dict[int, float] = {}
        for name, rare in weight.items():
            gain = votes[name] * rare
            for place in holders[name]:
                score[place] = score.get(place, 0.0) + gain
        naming = {name: frozenset(holders[name]) for name in weight}
        return tuple(
            Hit(
                memory=memory,
                source="structure",
                score=score[place],
                held={name: weight[name] for name, places in naming.items() if place in places},
                size=size,
            )
            for place, memory in self._best(score, query).items()
        )

    def _naming(self, name: str, owners: Sequence[Any]) -> list[int]:
        return [
            place
            for owner, _ in owners
            for (place,) in self._all(
                """SELECT c.place FROM units u JOIN code c ON c.unit = u.number
                WHERE u.name = ? AND c.place BETWEEN ? AND ? ORDER BY c.place DESC LIMIT ?""",
                (name, *_range(owner), MOST_SHARED),
            )
        ]

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

    def events(self, session: str, *, limit: int = 1000, newest: bool = False) -> tuple[Event, ...]:
        order = "number DESC" if newest else "at, number"  # by number there is an index, and nothing to sort
        rows = self._all(
            f"""SELECT key, host, name, kind, session, project, cwd, at, payload FROM events
            WHERE session = ? ORDER BY {order} LIMIT ?""",
            (session, limit),
        )
        return tuple(_event(row) for row in rows)

    def injections(
        self, *, session: str = "", project: str = "", memory: str = "", limit: int = 20, texts: bool = False
    ) -> tuple[Injection, ...]:
        asked = {
            "j.session = ?": session,
            "j.project = ?": project,
            "j.id IN (SELECT injection FROM injection_items WHERE memory = ?)": memory,
        }
        wanted = {condition: given for condition, given in asked.items() if given}
        conditions = " AND ".join((*wanted, "j.tokens > 0"))  # a silence is kept only to stay one
        where = f"{conditions} ORDER BY j.at DESC, j.id LIMIT ?"
        return self._injections(where, (*wanted.values(), limit), texts=texts)

    def injection(self, id: str) -> Injection | None:
        return next(iter(self._injections("j.id = ?", (id,))), None)

    def given(self, like: Injection) -> Injection | None:
        found = self._injections(
            f"""j.session = ?1 AND j.at >= {_WINDOW} AND j.moment = ?2 AND j.project = ?3 AND j.form = ?4
            AND j.terms = ?5 AND j.files = ?6 ORDER BY j.at, j.id LIMIT 1""",
            (like.session, like.moment, like.project, like.form, dumps(like.terms), dumps(like.files)),
        )
        return found[0] if found else None

    def _injections(self, where: str, given: Sequence[Any], *, texts: bool = True) -> tuple[Injection, ...]:
        text = "coalesce((SELECT text FROM injection_texts WHERE injection = j.id), '')" if texts else "''"
        rows = self._all(
            f"""SELECT j.id, j.moment, j.session, j.project, j.host, j.at, j.tokens, j.budget, j.build_ms, j.layers,
            j.skipped, j.source, j.form, j.terms, j.files, j.away, {text} FROM injections j WHERE {where}""",
            given,
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
            # What a compaction was told went to the summariser, and is not in the window.
            f"""SELECT DISTINCT i.memory FROM injections j JOIN injection_items i ON i.injection = j.id
            WHERE j.session = ?1 AND j.at >= {_WINDOW} AND j.moment <> 'compaction'""",
            (session,),
        )
        return frozenset(memory for (memory,) in rows)

    def spent(self, session: str) -> dict[str, int]:
        rows = self._all(
            f"""SELECT j.moment, sum(j.tokens) FROM injections j WHERE j.session = ?1 AND j.at >= {_WINDOW}
            GROUP BY j.moment HAVING sum(j.tokens) > 0""",
            (session,),
        )
        return dict(rows)

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


def _newest(memory: Memory) -> tuple[float, str]:
    return -memory.created, memory.id


def _range(owner: int) -> tuple[int, int]:
    return owner << SEQUENCE_BITS, ((owner + 1) << SEQUENCE_BITS) - 1


def _said(title: str, held: Iterable[str]) -> Iterable[str]:
    """Of the words that a memory holds, those that are not only its title's: a title names it, and says nothing."""
    titled = plain(title)
    return (term for term in held if root(term) not in titled)


def _neighbours(
    line: Sequence[int], place: int, told: Mapping[int, tuple[tuple[str, ...], bool, int]]
) -> tuple[Near, ...]:
    """The two before and the two after *place* in its session that are not far away."""
    at = line.index(place)
    return tuple(
        Near(gap, *told[line[at + gap]])
        for gap in (-2, -1, 1, 2)
        if 0 <= at + gap < len(line) and abs(line[at + gap] - place) <= WINDOW
    )


def _marks(given: Sequence[Any]) -> str:
    return ",".join("?" * len(given))


def _chunks(given: Sequence[Any], *, size: int = _MOST_PARAMETERS) -> Iterable[Sequence[Any]]:
    """Parts that stay below SQLite's limit of parameters in one statement."""
    return (tuple(given[start : start + size]) for start in range(0, len(given), size))


def _memory(row: Sequence[Any]) -> Memory:
    lists = (_texts(stored) for stored in row[7:10])
    detail = loads(row[19]) if row[19] != "{}" else {}
    values: tuple[Any, ...] = (*row[:7], *lists, *row[10:19], detail)
    return Memory(*values)


def _injection(row: Sequence[Any], items: tuple[Item, ...]) -> Injection:
    asked = (*row[11:13], _texts(row[13]), _texts(row[14]), bool(row[15]), row[16])
    values: tuple[Any, ...] = (*row[:9], loads(row[9]), loads(row[10]), items, *asked)
    return Injection(*values)


def _event(row: Sequence[Any]) -> Event:
    values: tuple[Any, ...] = (*row[:-1], loads(row[-1]))
    return Event(*values)


def _item(row: Sequence[Any]) -> Item:
    values: tuple[Any, ...] = (*row[:-1], loads(row[-1]))
    return Item(*values)


def _texts(stored: str) -> tuple[str, ...]:
    return tuple(loads(stored)) if stored != "[]" else ()
