"""Find memories by words, by the code they name, by time and by vector, with what stood around them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foreword.encoding import dumps, storable
from foreword.errors import DamagedIndex, EmbedError, StoreError
from foreword.models import Hit, Memory, Near, Query
from foreword.store.memories import MOST
from foreword.store.sql import (
    EACH,
    FOREVER,
    FROM,
    MEMORY,
    SEQUENCE_BITS,
    Repository,
    json_list,
    marks,
    memory_of,
    range_of,
)
from foreword.terms import TAIL, any_of, plain, rarity, root

# A word in so many rows is common: all who hold it are read only if the budget of postings has room.
COMMON = 500
# So many of the rarest words make a full match; more words in a prompt must not make it harder to match.
FULL_MATCH = 5
MOST_AT_ONCE = 500  # rows looked at by their place
# Failures that say nothing about the index: another moment may be better.
_TRANSIENT_ERRORS = ("lock", "busy", "disk I/O", "unable to open", "interrupted")
MOST_PAIRS = 8  # of words side by side; each is one more look into the index
NEIGHBOUR_HITS = 60  # of the best hits have their sessions looked at
ADDED_NEIGHBOURS = 15  # of the best hits bring in what stood next to them, whatever it holds
NEIGHBOUR_DISTANCE = 3  # places to either side; sessions at the same time are interleaved
MAX_MEMORIES_PER_NAME = 200  # of the memories that name a file or a function, the newest


class Search(Repository):
    """Find memories; without the worker there are no vectors."""

    def by_vector(self, query: Query) -> tuple[Hit, ...]:
        """Return what is nearest to the query's vector, among the newest of the same model; the score is the cosine."""
        if query.vector is None or not query.vector.data:
            return ()
        np, (model, scale, data) = numpy(), query.vector
        vector = np.frombuffer(data, dtype=np.int8).astype(np.float32) * scale
        cosines: dict[int, float] = {}
        for owner, _ in self._owners(query.scopes):
            rows = self._all(
                """SELECT place, scale, blob FROM vectors WHERE place BETWEEN ? AND ? AND model = ?
                AND length(blob) = ? ORDER BY place DESC LIMIT ?""",
                (*range_of(owner), model, len(data), MOST_VECTORS),
            )
            table = np.frombuffer(b"".join(row[2] for row in rows), dtype=np.int8).reshape(len(rows), len(data))
            scores = (table.astype(np.float32) @ vector) * np.array([row[1] for row in rows], dtype=np.float32)
            # What points the other way is near to nothing.
            cosines |= {row[0]: score for row, score in zip(rows, scores.tolist(), strict=True) if score > 0}
        return tuple(Hit(memory, "meaning", cosines[at]) for at, memory in self._best(cosines, query).items())

    # -- words --------------------------------------------------------------------------------------------------
    def by_words(self, query: Query) -> tuple[Hit, ...]:
        """Return what holds any of the query's terms, best first, and what stood next to it in its session."""
        self._check_index()
        with self._db.same_connection():
            try:
                return self._by_words(query)
            except self._db.failures as exc:
                if any(sign in str(exc) for sign in _TRANSIENT_ERRORS):
                    raise StoreError(f"the database cannot be read now: {exc}") from exc
                self._db.trouble["index"] = f"the words index cannot be read: {exc}"
                raise DamagedIndex(self._db.trouble["index"], hint="run `foreword index`") from exc

    def _by_words(self, query: Query) -> tuple[Hit, ...]:
        """Return what holds the rarest words, and with it what stood around it in its session.

        Not FTS5's bm25: it counts every word over all projects, at 1 us a posting (1M memories: 17 ms against 1.5), and
        found less on the replay and LoCoMo sets.
        """
        owners = self._owners(query.scopes)
        terms = (*query.terms, *query.synonyms)
        if not owners or not terms:
            return ()
        size = sum(newest for _, newest in owners)
        spans = [range_of(owner) for owner, _ in owners]
        first = {term: self._places_with(term, spans, most=COMMON) for term in terms}
        holders = self._rarest(first, spans, query)
        weight = {term: rarity(len(holders.get(term, places)), size) for term, places in first.items()}
        full = sum(sorted((weight[term] for term in query.terms), reverse=True)[:FULL_MATCH])
        holders.update(self._adjacent_pairs(query.pairs, first, owners))
        weight.update({pair: rarity(len(places), size) for pair, places in holders.items() if pair not in weight})
        score = _sums(holders, weight)
        found = self._best(score, query)
        around = {} if query.plain else self._session_neighbours(found)
        held = _terms_by_place(holders, {*found, *around})
        near = _near(found, around, held)
        beside = [place for place in near if place not in found][: 2 * ADDED_NEIGHBOURS]
        found.update({place: memory for memory, place in self._at_places(beside, query)} if beside else {})
        hits = []
        for place, memory in found.items():
            own = {term: weight[term] for term in held[place]}
            at = score.get(place, 0.0)
            hits.append(Hit(memory, "words", at, held=own, full=full, size=size, near=near.get(place, ())))
        return tuple(hits)

    def holders(self, terms: Sequence[str], scopes: Sequence[str]) -> tuple[dict[str, int], int]:
        """Return how many memories hold each term, counted up to COMMON, and how many memories there are."""
        self._check_index()
        owners = self._owners(scopes)
        spans = [range_of(owner) for owner, _ in owners]
        counts = {term: len(self._places_with(term, spans, most=COMMON)) for term in terms}
        return counts, sum(newest for _, newest in owners)

    def _rarest(
        self, first: Mapping[str, list[int]], spans: Sequence[tuple[int, int]], query: Query
    ) -> dict[str, list[int]]:
        """Return the rarest words with all their places, as many as the budget of postings allows."""
        chosen: dict[str, list[int]] = {}
        left = query.postings
        for term in sorted(first, key=lambda term: (len(first[term]), term)):
            places = first[term]
            if not places or len(chosen) >= query.most_terms or (chosen and len(places) > left):
                continue
            if len(places) >= COMMON:
                places = self._places_with(term, spans, most=max(COMMON, left) + 1)
            if not chosen or len(places) <= left:
                chosen[term] = places
                left -= len(places)
        return chosen

    def _adjacent_pairs(
        self, pairs: Sequence[str], first: Mapping[str, Sequence[int]], owners: Sequence[Any]
    ) -> dict[str, list[int]]:
        """Return who holds two words side by side; a pair of common words takes long to read and says little."""
        found: dict[str, list[int]] = {}
        looked_for = 0
        for pair in pairs:
            one, other = (first.get(word, ()) for word in pair.split())
            if not one or not other or min(len(one), len(other)) >= COMMON or looked_for == MOST_PAIRS:
                continue
            looked_for += 1
            # Of a common word not all places are known: then the pair may be wherever the rare one is.
            both = set(one if len(one) < len(other) else other)
            if max(len(one), len(other)) < COMMON:
                both = set(one).intersection(other)
            of_owner = ([place for place in both if place >> SEQUENCE_BITS == owner] for owner, _ in owners)
            spans = [(min(places), max(places)) for places in of_owner if places]
            if places := self._places_with(pair, spans, most=COMMON):
                found[pair] = places
        return found

    def _places_with(self, term: str, spans: Iterable[tuple[int, int]], *, most: int) -> list[int]:
        """Return the places in each of *spans* that hold a word or a pair, at most so many, from the newest on."""
        expression = storable(any_of((term,)))
        return [
            place
            for span in spans
            # From the newest on, which costs no more: where there are too many, the old ones are left out.
            for (place,) in self._all(
                "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?",
                (expression, *span, most),
            )
        ]

    def _session_neighbours(self, found: Mapping[int, Memory]) -> dict[int, Any]:
        """Return session, title and end of the memories around the best hits of a session, by place."""
        best = [place for place, memory in found.items() if memory.session][:NEIGHBOUR_HITS]
        if not best:
            return {}
        places = {place + gap for place in best for gap in range(-NEIGHBOUR_DISTANCE - 2, NEIGHBOUR_DISTANCE + 3)}
        rows = self._all(
            f"""SELECT place, session, title, substr(body, -{TAIL}) FROM memories
            WHERE place IN {EACH} AND session <> ''""",
            (json_list(places),),
        )
        return {row[0]: row[1:] for row in rows}

    # -- code ---------------------------------------------------------------------------------------------------
    def by_code(self, query: Query, votes: Mapping[str, float]) -> tuple[Hit, ...]:
        """Return what names these files and functions, best first: the sum of the *votes*, each by its rarity."""
        owners = self._owners(query.scopes)
        size = sum(newest for _, newest in owners)
        holders = self._places_naming(votes, owners)
        weight = {name: rarity(len(places), size) for name, places in holders.items()}
        score = _sums(holders, {name: votes[name] * rare for name, rare in weight.items()})
        found = self._best(score, query)
        held = _terms_by_place(holders, set(found))
        return tuple(
            Hit(memory, "structure", score[place], held={name: weight[name] for name in held[place]}, size=size)
            for place, memory in found.items()
        )

    def _places_naming(self, names: Iterable[str], owners: Sequence[Any]) -> dict[str, list[int]]:
        """Return the newest places of each name that occurs in each owner's range, from the newest on."""
        stored = {storable(name): name for name in names}
        holders: dict[str, list[int]] = {name: [] for name in stored.values()}
        for owner, _ in owners:
            for name, places in self._all(
                f"""SELECT u.name, (SELECT group_concat(place) FROM (
                  SELECT place FROM code WHERE unit = u.number AND place BETWEEN ?2 AND ?3
                  ORDER BY place DESC LIMIT {MAX_MEMORIES_PER_NAME})) FROM units u WHERE u.name IN {EACH}""",
                (dumps([*stored]), *range_of(owner)),
            ):
                holders[stored[name]] += sorted(map(int, places.split(",")), reverse=True) if places else ()
        return {name: places for name, places in holders.items() if places}

    # -- time ---------------------------------------------------------------------------------------------------
    def by_recency(self, query: Query) -> tuple[Hit, ...]:
        """Return what came last in the query's scopes, newest first; each kind and scope has its share of the limit."""
        if query.session:
            return self._of_session(query)
        # One walk down the index for each kind, which tells the times: a list of kinds would be sorted.
        sql = f"""SELECT created, place FROM memories WHERE owner = ? {"AND kind = ?" if query.kinds else ""}
            AND status = 'active' AND created >= ? ORDER BY created DESC LIMIT ?"""
        span = (query.since, query.limit)
        kinds: list[tuple[str, ...]] = [(each,) for each in query.kinds] or [()]
        lists = [self._all(sql, (owner, *kind, *span)) for owner, _ in self._owners(query.scopes) for kind in kinds]
        # Each kind and scope has its share first: a day's observations must not hide the decision of last month.
        share = query.limit // max(1, sum(1 for each in lists if each))
        sure = {place for each in lists for _, place in each[:share]}
        more = sorted((row for each in lists for row in each[share:]), reverse=True)
        left = query.limit - len(sure)
        # Of equally new ones all are read, for only their ids tell which come first.
        last = more[:left][-1][0] if more[:left] else FOREVER
        read = self._memories_at([*sure, *(place for created, place in more if created >= last)])
        others = sorted((memory for place, memory in read.items() if place not in sure), key=_newest)[:left]
        found = sorted([*(memory for place, memory in read.items() if place in sure), *others], key=_newest)
        return tuple(Hit(memory, "recency", memory.created) for memory in found)

    def _of_session(self, query: Query) -> tuple[Hit, ...]:
        """Return what one session itself established, newest first, also where later ones saw it again."""
        of_session = self._store.memories.of_session(query.session, limit=MOST)
        found = [
            memory
            for memory in sorted(of_session, key=_newest)
            if memory.status == "active" and memory.scope in query.scopes and memory.created >= query.since
            if not query.kinds or memory.kind in query.kinds
        ]
        return tuple(Hit(memory, "recency", memory.created) for memory in found[: query.limit])

    # -- rows ---------------------------------------------------------------------------------------------------
    def _best(self, score: Mapping[int, float], query: Query) -> dict[int, Memory]:
        """Return the best memories that pass the query's filters, best first, by their places."""
        best = sorted(score, key=score.__getitem__, reverse=True)  # of equals those of the first word, newest first
        found: list[tuple[Memory, int]] = []
        # A few more than wanted, because some may be filtered out; where many are, the rest follows.
        at, step = 0, query.limit + query.limit // 4 + 1
        while at < len(best) and len(found) < query.limit:
            found += self._at_places(best[at : at + step], query)
            at, step = at + step, MOST_AT_ONCE
        found.sort(key=lambda each: (-score[each[1]], -each[0].created, each[0].id))
        return {place: memory for memory, place in found[: query.limit]}

    def _at_places(self, places: Sequence[int], query: Query) -> list[tuple[Memory, int]]:
        """Return the memories at these places that pass the query's filters, each with its place."""
        of_kinds = f"AND m.kind IN ({marks(query.kinds)})" if query.kinds else ""
        rows = self._all(
            f"""SELECT {MEMORY}, m.place {FROM} WHERE m.place IN {EACH} AND m.status = 'active'
            {of_kinds} AND m.created >= ?""",
            (json_list(places), *query.kinds, query.since),
        )
        return [(memory_of(row), row[-1]) for row in rows]


def _newest(memory: Memory) -> tuple[float, str]:
    return -memory.created, memory.id


def _sums(holders: Mapping[str, Sequence[int]], gains: Mapping[str, float]) -> dict[int, float]:
    """Return the sum of the gains of what it holds, by place."""
    sums: dict[int, float] = {}
    for name, places in holders.items():
        more = dict.fromkeys(places, gains[name])
        for place in sums.keys() & more.keys():
            more[place] += sums[place]
        sums.update(more)
    return sums


def _terms_by_place(holders: Mapping[str, Sequence[int]], places: set[int]) -> dict[int, list[str]]:
    """Return what each place holds, in the order of the holders."""
    held: dict[int, list[str]] = {place: [] for place in places}
    for name, holding in holders.items():
        for place in places.intersection(holding):
            held[place].append(name)
    return held


def _near(
    found: Iterable[int], around: Mapping[int, Any], held: Mapping[int, Sequence[str]]
) -> dict[int, tuple[Near, ...]]:
    """Return what stood before and after each place in its session: of the best, and of those next to them."""
    lines: dict[str, list[int]] = {}
    at: dict[int, int] = {}
    for place in sorted(around):
        line = lines.setdefault(around[place][0], [])
        at[place] = len(line)
        line.append(place)
    near: dict[int, tuple[Near, ...]] = {}
    described: dict[int, tuple[tuple[str, ...], bool]] = {}
    roots: dict[str, str] = {}
    for rank, place in enumerate([place for place in found if place in around][:NEIGHBOUR_HITS]):
        line = lines[around[place][0]]
        for other in line[max(0, at[place] - 1) : at[place] + 3] if rank < ADDED_NEIGHBOURS else (place,):
            if abs(other - place) > NEIGHBOUR_DISTANCE or other in near:
                continue
            neighbours = []
            for gap in (-2, -1, 1, 2):
                index = at[other] + gap
                if 0 <= index < len(line) and abs(line[index] - other) <= NEIGHBOUR_DISTANCE:
                    if line[index] not in described:
                        described[line[index]] = _description(around[line[index]], held[line[index]], roots)
                    neighbours.append(Near(gap, *described[line[index]]))
            near[other] = tuple(neighbours)
    return near


def _description(row: Sequence[Any], held: Sequence[str], roots: dict[str, str]) -> tuple[tuple[str, ...], bool]:
    """Return what a memory holds besides its title, and whether it asks something; *roots* is a cache."""
    _, title, tail = row
    titled = plain(title) if held else ""
    for term in held:
        if term not in roots:
            roots[term] = root(term)
    return tuple(term for term in held if roots[term] not in titled), "?" in tail


# ---- vectors

MOST_VECTORS = 20_000  # of a scope that are compared, the newest: 5 MB at 256 numbers
INSTALL = "pip install 'foreword[embeddings]'"


def numpy() -> Any:
    """Import numpy, which a worker without vectors never loads, or say how to install it."""
    # Its threads wait for each other by spinning: on a busy machine 100,000 vectors take 60 ms with two, 6 with one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        import numpy
    except ImportError as exc:
        raise EmbedError("`embeddings` needs numpy, which is not installed", hint=INSTALL) from exc
    return numpy
