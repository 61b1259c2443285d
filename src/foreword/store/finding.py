"""Find memories by words or by code, and what stood around them in their sessions: SQL for any connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from foreword.encoding import dumps, loads, storable
from foreword.errors import DamagedIndex, StoreError
from foreword.models import EMPTY, Hit, Memory, Near, Query
from foreword.terms import TAIL, any_of, plain, rarity, root

FOREVER = float("inf")
SEQUENCE_BITS = 32  # place = owner << 32 | sequence
# A word in so many rows is common: all who hold it are read only if the budget of postings has room.
COMMON = 500
# So many of the rarest words make a full match; more words in a prompt must not make it harder to match.
FULL_MATCH = 5
MOST_AT_ONCE = 500  # rows looked at by their place
# Failures that say nothing about the index: another moment may be better.
_PASSING = ("lock", "busy", "disk I/O", "unable to open", "interrupted")
MOST_PAIRS = 8  # of words side by side; each is one more look into the index
AROUND = 60  # of the best hits have their sessions looked at
BESIDE = 15  # of the best hits bring in what stood next to them, whatever it holds
WINDOW = 3  # places to either side; sessions at the same time are interleaved
MOST_SHARED = 200  # of the memories that name a file or a function, the newest

MEMORY = """m.kind, m.title, m.body, m.id, m.uid, o.scope, m.project, m.tags, m.files, m.functions, m.session,
 m.source, m.trust, m.confidence, m.seen, m.created, m.confirmed, m.status, m.superseded_by,
 m.pinned, m.used, m.ignored, m.detail"""
FROM = "FROM memories m JOIN owners o ON o.number = m.owner"
# One statement for any number of them: SQLite prepares every other number of marks anew, 0.2 ms for 500.
_EACH = "(SELECT value FROM json_each(?1))"


class Finder:
    """Asks one read-only connection; *failures* are the exceptions that connection raises."""

    def __init__(self, execute: Callable[..., Iterable[Any]], *, failures: tuple[type[Exception], ...]) -> None:
        self._execute = execute
        self._failures = failures

    # -- words --------------------------------------------------------------------------------------------------
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
        spans = [range_of(owner) for owner, _ in owners]
        first = {term: self._holding(term, spans, most=COMMON) for term in asked}
        holders = self._rarest(first, spans, query)
        weight = {term: rarity(len(holders.get(term, places)), size) for term, places in first.items()}
        full = sum(sorted((weight[term] for term in query.terms), reverse=True)[:FULL_MATCH])
        holders.update(self._side_by_side(query.pairs, first, owners))
        weight.update({pair: rarity(len(places), size) for pair, places in holders.items() if pair not in weight})
        score = _sums(holders, weight)
        found = {place: memory_of(row[3:]) for place, row in self._best(score, query, columns=MEMORY)}
        around = {} if query.plain else self._around(found)
        held = _held(holders, {*found, *around})
        near = _near(found, around, held)
        beside = [place for place in near if place not in found][: 2 * BESIDE]
        found.update({place: memory for memory, place in self._at_places(beside, query)} if beside else {})
        return tuple(
            Hit(
                memory=memory,
                source="words",
                score=score.get(place, 0.0),
                held={term: weight[term] for term in held[place]},
                full=full,
                size=size,
                near=near.get(place, ()),
            )
            for place, memory in found.items()
        )

    def holders(self, terms: Sequence[str], scopes: Sequence[str]) -> tuple[dict[str, int], int]:
        """Return how many memories hold each term, counted up to COMMON, and how many memories there are."""
        owners = self._owners(scopes)
        spans = [range_of(owner) for owner, _ in owners]
        counts = {term: len(self._holding(term, spans, most=COMMON)) for term in terms}
        return counts, sum(newest for _, newest in owners)

    def _rarest(
        self, first: Mapping[str, list[int]], spans: Sequence[tuple[int, int]], query: Query
    ) -> dict[str, list[int]]:
        """The rarest words that occur at all with all who hold them, as many as the budget of postings allows."""
        chosen: dict[str, list[int]] = {}
        left = query.postings
        for term in sorted(first, key=lambda term: (len(first[term]), term)):
            places = first[term]
            if not places or len(chosen) >= query.most_terms or (chosen and len(places) > left):
                continue
            if len(places) >= COMMON:
                places = self._whole(term, places, spans, most=max(COMMON, left) + 1)
            if not chosen or len(places) <= left:
                chosen[term] = places
                left -= len(places)
        return chosen

    def _whole(self, term: str, places: Sequence[int], spans: Sequence[tuple[int, int]], *, most: int) -> list[int]:
        """The newest places of a common word, with those after them in each of *spans* that has more."""
        found: list[int] = []
        for first, last in spans:
            newest = [place for place in places if first <= place <= last]
            found += newest
            if len(newest) == COMMON:
                found += self._holding(term, ((first, newest[-1] - 1),), most=most - COMMON)
        return found

    def _side_by_side(
        self, pairs: Sequence[str], first: Mapping[str, Sequence[int]], owners: Sequence[Any]
    ) -> dict[str, list[int]]:
        """Who holds two words next to each other; a pair of common words would be read for long and say little."""
        known = [
            pair
            for pair in pairs
            if all(first.get(word) for word in pair.split()) and any(len(first[word]) < COMMON for word in pair.split())
        ]
        found = {}
        for pair in known[:MOST_PAIRS]:
            both = _may_hold(*(first[word] for word in pair.split()))
            of_owner = ([place for place in both if place >> SEQUENCE_BITS == owner] for owner, _ in owners)
            spans = [(min(places), max(places)) for places in of_owner if places]
            found[pair] = self._holding(pair, spans, most=COMMON)
        return {pair: places for pair, places in found.items() if places}

    def _holding(self, term: str, spans: Iterable[tuple[int, int]], *, most: int) -> list[int]:
        """The places in each of *spans* that hold a word or a pair, at most so many, from the newest on."""
        expression = storable(any_of((term,)))
        return [
            place
            for span in spans
            # From the newest on, which costs no more: where there are too many, the old ones are left out.
            for (place,) in self._execute(
                "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?",
                (expression, *span, most),
            )
        ]

    def _around(self, found: Mapping[int, Memory]) -> dict[int, Any]:
        """By place, session, title, end and length of what stands near the best that are of a session."""
        best = [place for place, memory in found.items() if memory.session][:AROUND]
        if not best:
            return {}
        places = {place + gap for place in best for gap in range(-WINDOW - 2, WINDOW + 3)}
        rows = self._execute(
            f"""SELECT place, session, title, substr(body, -{TAIL}), length(body) FROM memories
            WHERE place IN {_EACH} AND session <> ''""",
            (json_list(places),),
        )
        return {row[0]: row[1:] for row in rows}

    # -- code ---------------------------------------------------------------------------------------------------
    def by_code(
        self, query: Query, votes: Mapping[str, float], *, known: Mapping[str, Memory] = EMPTY
    ) -> tuple[Hit, ...]:
        """What names these files and functions; the sum of the votes, each by its rarity. What is *known* by its id
        is not read again.
        """
        owners = self._owners(query.scopes)
        size = sum(newest for _, newest in owners)
        holders = self._naming(votes, owners)
        weight = {name: rarity(len(places), size) for name, places in holders.items()}
        score = _sums(holders, {name: votes[name] * rare for name, rare in weight.items()})
        best = [(place, row[2]) for place, row in self._best(score, query)]
        found = dict(self._memories([place for place, id in best if id not in known]))
        found.update({place: known[id] for place, id in best if id in known})
        held = _held(holders, set(found))
        return tuple(
            Hit(
                memory=found[place],
                source="structure",
                score=score[place],
                held={name: weight[name] for name in held[place]},
                size=size,
            )
            for place, _ in best
            if place in found  # another connection may have taken it away since
        )

    def _naming(self, names: Iterable[str], owners: Sequence[Any]) -> dict[str, list[int]]:
        """Of each name that occurs, the newest places in each owner's range, from the newest on."""
        stored = {storable(name): name for name in names}
        holders: dict[str, list[int]] = {name: [] for name in stored.values()}
        for owner, _ in owners:
            for name, places in self._execute(
                f"""SELECT u.name, (SELECT group_concat(place) FROM (
                  SELECT place FROM code WHERE unit = u.number AND place BETWEEN ?2 AND ?3
                  ORDER BY place DESC LIMIT {MOST_SHARED})) FROM units u WHERE u.name IN {_EACH}""",
                (dumps([*stored]), *range_of(owner)),
            ):
                holders[stored[name]] += sorted(map(int, places.split(",")), reverse=True) if places else ()
        return {name: places for name, places in holders.items() if places}

    # -- rows ---------------------------------------------------------------------------------------------------
    def _best(self, score: Mapping[int, float], query: Query, *, columns: str = "m.kind") -> list[tuple[int, Any]]:
        """The best places that pass the query's filters, best first, each with its row: place, time, id, *columns*."""
        best = sorted(
            score, key=score.__getitem__, reverse=True
        )  # of equals those of the first word, from the newest on
        rows: list[Any] = []
        # A few more than wanted, because some may be filtered out; where many are, the rest follows.
        at, step = 0, query.limit + query.limit // 4 + 1
        while at < len(best) and len(rows) < query.limit:
            rows += self._passing(best[at : at + step], query, columns=columns)
            at, step = at + step, MOST_AT_ONCE
        rows.sort(key=lambda row: (-score[row[0]], -row[1], row[2]))
        return [(row[0], row) for row in rows[: query.limit]]

    def _at_places(self, places: Sequence[int], query: Query) -> list[tuple[Memory, int]]:
        return [(memory_of(row[3:]), row[0]) for row in self._passing(places, query, columns=MEMORY)]

    def _passing(self, places: Sequence[int], query: Query, *, columns: str) -> list[Any]:
        of_kinds = f"AND m.kind IN ({marks(query.kinds)})" if query.kinds else ""
        return self._all(
            f"""SELECT m.place, m.created, m.id, {columns} {FROM} WHERE m.place IN {_EACH} AND m.status = 'active'
            {of_kinds} AND m.created BETWEEN ? AND ?""",
            (json_list(places), *query.kinds, query.since, query.at or FOREVER),
        )

    def _memories(self, places: Sequence[int]) -> Iterable[tuple[int, Memory]]:
        sql = f"SELECT {MEMORY}, m.place {FROM} WHERE m.place IN {_EACH}"
        return [(row[-1], memory_of(row)) for row in self._execute(sql, (json_list(places),))] if places else ()

    def _owners(self, scopes: Sequence[str]) -> list[Any]:
        return self._all(f"SELECT number, newest FROM owners WHERE scope IN ({marks(scopes)})", tuple(scopes))

    def _all(self, sql: str, given: Sequence[Any]) -> list[Any]:
        return list(self._execute(sql, bound(given)))


def bound(given: Iterable[Any]) -> tuple[Any, ...]:
    """The parameters of a statement, without the lone surrogates that no database takes."""
    return tuple(storable(each) if isinstance(each, str) else each for each in given)


def range_of(owner: int) -> tuple[int, int]:
    """The first and the last place that can be an owner's."""
    return owner << SEQUENCE_BITS, ((owner + 1) << SEQUENCE_BITS) - 1


def marks(given: Sequence[Any]) -> str:
    return ",".join("?" * len(given))


def memory_of(row: Sequence[Any]) -> Memory:
    """The memory in a row that begins with the columns of MEMORY."""
    lists = (texts(stored) for stored in row[7:10])
    detail = loads(row[22]) if row[22] != "{}" else {}
    values: tuple[Any, ...] = (*row[:7], *lists, *row[10:19], row[19] == 1, *row[20:22], detail)
    return Memory(*values)


def texts(stored: str) -> tuple[str, ...]:
    return tuple(loads(stored)) if stored != "[]" else ()


def json_list(numbers: Iterable[int]) -> str:
    """Numbers as one parameter of a statement, for `json_each`."""
    return f"[{','.join(map(str, numbers))}]"


def _may_hold(one: Sequence[int], other: Sequence[int]) -> set[int]:
    """The places where two words can meet, one of which is rare: of a common one not all places are known."""
    if len(one) >= COMMON or len(other) >= COMMON:
        return set(one if len(one) < len(other) else other)
    return set(one).intersection(other)


def _sums(holders: Mapping[str, Sequence[int]], gains: Mapping[str, float]) -> dict[int, float]:
    """By place, the sum of the gains of what it holds."""
    sums: dict[int, float] = {}
    for name, places in holders.items():
        more = dict.fromkeys(places, gains[name])
        for place in sums.keys() & more.keys():
            more[place] += sums[place]
        sums.update(more)
    return sums


def _held(holders: Mapping[str, Sequence[int]], places: set[int]) -> dict[int, list[str]]:
    """By place, what it holds, in the order of the holders."""
    held: dict[int, list[str]] = {place: [] for place in places}
    for name, holding in holders.items():
        for place in places.intersection(holding):
            held[place].append(name)
    return held


def _near(
    found: Iterable[int], around: Mapping[int, Any], held: Mapping[int, Sequence[str]]
) -> dict[int, tuple[Near, ...]]:
    """By place, what stood before and after it in its session: for the best, and for what stood next to those."""
    lines: dict[str, list[int]] = {}
    at: dict[int, int] = {}
    for place in sorted(around):
        line = lines.setdefault(around[place][0], [])
        at[place] = len(line)
        line.append(place)
    beside: dict[int, list[tuple[int, int]]] = {}
    for rank, place in enumerate([place for place in found if place in around][:AROUND]):
        line = lines[around[place][0]]
        for other in line[max(0, at[place] - 1) : at[place] + 3] if rank < BESIDE else (place,):
            if abs(other - place) <= WINDOW and other not in beside:
                beside[other] = _neighbours(line, at[other])
    told = _told({other for some in beside.values() for _, other in some}, around, held)
    return {place: tuple(Near(gap, *told[other]) for gap, other in some) for place, some in beside.items()}


def _neighbours(line: Sequence[int], at: int) -> list[tuple[int, int]]:
    """The two before and the two after a place in its session that are not far away, each with how many later it is."""
    return [
        (gap, line[at + gap])
        for gap in (-2, -1, 1, 2)
        if 0 <= at + gap < len(line) and abs(line[at + gap] - line[at]) <= WINDOW
    ]


def _told(
    places: Iterable[int], around: Mapping[int, Any], held: Mapping[int, Sequence[str]]
) -> dict[int, tuple[tuple[str, ...], bool, int]]:
    """By place, what it holds besides its title, which names it and says nothing; whether it asks; its length."""
    roots: dict[str, str] = {}
    told = {}
    for place in places:
        _, title, tail, length = around[place]
        titled = plain(title) if held[place] else ""
        said = []
        for term in held[place]:
            if term not in roots:
                roots[term] = root(term)
            if roots[term] not in titled:
                said.append(term)
        told[place] = tuple(said), "?" in tail, length
    return told
