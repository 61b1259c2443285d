"""Find the memories nearest to a query's vector, with numpy, which no hook needs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING

from foreword.embeddings.index import Index, Near, Row
from foreword.errors import ForewordError
from foreword.models import Hit, Query, Vector
from foreword.store.search import SearchReader
from foreword.store.sql import SEQUENCE_BITS, marks, range_of

if TYPE_CHECKING:
    from foreword.store.database import Database

AT_ONCE = 5_000  # memories of an owner that are loaded while somebody waits: 20 ms
ROOM = 7 / 8  # of the index that one owner fills at first, so that what comes later does not send it away at once


class _Rows(SearchReader):
    """The questions about vectors, of one read-only connection."""

    def newest_vector(self) -> int:
        return int(self._all("SELECT ifnull(max(number), 0) FROM vectors")[0][0])

    def vectors_after(self, number: int, *, model: str) -> list[Row]:
        rows = self._all(
            "SELECT number, place, scale, blob FROM vectors WHERE number > ? AND model = ? ORDER BY place",
            (number, model),
        )
        return [Row(*row) for row in rows]

    def vectors_of(self, owner: int, *, model: str, limit: int) -> list[Row]:
        rows = self._all(
            """SELECT number, place, scale, blob FROM vectors WHERE place BETWEEN ? AND ? AND model = ?
            ORDER BY place DESC LIMIT ?""",
            (*range_of(owner), model, limit),
        )
        return [Row(*row) for row in rows]

    def present(self, found: Sequence[Near]) -> frozenset[int]:
        """Return the places whose vector is still the one that was compared."""
        rows = self._all(
            f"SELECT place, number FROM vectors WHERE place IN ({marks(found)})", [each.place for each in found]
        )
        now = dict(rows)
        return frozenset(each.place for each in found if now.get(each.place) == each.number)


class Nearest:
    """The vectors of one model in memory, brought up to the table before every answer."""

    def __init__(self, like: Vector, db: Database) -> None:
        self._model = like.model
        self._index = Index(len(like.data))
        self._dim = len(like.data)
        self._rows = _Rows(db)
        self._seen = -1  # the last number that was read; nothing is here before the first
        self._refreshing = threading.Lock()
        self._loading: set[int] = set()

    def fits(self, vector: Vector) -> bool:
        return (vector.model, len(vector.data)) == (self._model, self._dim)

    def hits(self, query: Query) -> tuple[Hit, ...]:
        """Return what is near to the query's vector in its scopes, nearest first."""
        assert query.vector is not None
        owners = self._rows.owners(query.scopes)
        self._refresh(owners)
        found: list[Hit] = []
        for near in self._index.nearest(query.vector, owners=[owner for owner, _ in owners]):
            for start in range(0, len(near), query.limit):
                found += self._hits(near[start : start + query.limit], query)
                if len(found) >= query.limit:
                    return tuple(found[: query.limit])
        return tuple(found)

    def _hits(self, near: Sequence[Near], query: Query) -> list[Hit]:
        places = [each.place for each in near]
        present = self._rows.present(near)
        for owner, gone in groupby(sorted(set(places) - present), key=_owner):
            self._index.drop(owner, gone)
        memories = {place: memory for memory, place in self._rows.at_places(places, query)}
        return [
            Hit(memory=memories[each.place], source="meaning", score=each.cosine)
            for each in near
            if each.place in memories and each.place in present
        ]

    def _refresh(self, owners: Sequence[tuple[int, int]]) -> None:
        """Read what was written since the last time; owners whom nobody asked for before are loaded."""
        with self._refreshing:
            newest = self._rows.newest_vector()
            if self._seen < 0:
                self._seen = newest
            elif newest > self._seen:
                rows = self._rows.vectors_after(self._seen, model=self._model)
                for owner, its in groupby(rows, key=lambda row: _owner(row.place)):
                    self._index.put(owner, list(its))
                self._seen = newest
            absent = [each for each in owners if each[0] not in self._index.owners() | self._loading]
            for owner, kept in absent:
                if kept <= AT_ONCE:
                    self._load(owner)
                else:
                    # It would take longer than a prompt waits: this one is answered without.
                    self._loading.add(owner)
                    threading.Thread(target=self._load_aside, args=(owner,), name="vectors", daemon=True).start()

    def _load(self, owner: int) -> None:
        most = int(self._index.most * ROOM)
        self._index.load(owner, self._rows.vectors_of(owner, model=self._model, limit=most))

    def _load_aside(self, owner: int) -> None:
        try:
            with suppress(ForewordError):  # a store that is closing; who asks again is told
                self._load(owner)
                # What was written meanwhile is newer than what was read, or the same: it may be put twice.
                rows = self._rows.vectors_after(self._seen, model=self._model)
                self._index.put(owner, [row for row in rows if _owner(row.place) == owner])
        finally:
            self._loading.discard(owner)


def _owner(place: int) -> int:
    return place >> SEQUENCE_BITS
