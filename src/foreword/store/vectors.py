"""Find the memories nearest to a query's vector by comparing all of them, with numpy, which no hook needs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from foreword.errors import EmbedError
from foreword.models import Hit, Query, Vector
from foreword.store.search import SearchReader
from foreword.store.sql import range_of

if TYPE_CHECKING:
    from foreword.store.database import Database

MOST = 50_000  # vectors of an owner that are compared, the newest: 13 MB at 256 numbers, 6 ms a search
MOST_OWNERS = 5  # whose vectors are kept in memory
ROWS_AT_ONCE = 1024  # cast to float32: 1 MB at 256 numbers, which a core keeps near

INSTALL = "pip install 'foreword[embeddings]'"


def numpy() -> Any:
    """Import numpy, or say how to install it."""
    # Its threads wait for each other by spinning: on a busy machine 100,000 vectors take 60 ms with two, 6 with one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        import numpy
    except ImportError as exc:
        raise EmbedError("`embeddings` needs numpy, which is not installed", hint=INSTALL) from exc
    return numpy


class Nearest(SearchReader):
    """The vectors of one model in memory, by owner; read again where the table has changed."""

    def __init__(self, like: Vector, db: Database) -> None:
        super().__init__(db)
        self._np = numpy()
        self._model, self._dim = like.model, len(like.data)
        self._loaded: dict[int, tuple[Any, Any, Any, Any]] = {}  # of an owner: state, places, scales, numbers

    def fits(self, vector: Vector) -> bool:
        return (vector.model, len(vector.data)) == (self._model, self._dim)

    def hits(self, query: Query) -> tuple[Hit, ...]:
        """Return what is near to the query's vector in its scopes, nearest first."""
        np = self._np
        assert query.vector is not None
        parts = [self._load(owner) for owner, _ in self.owners(query.scopes)]
        if not parts:
            return ()
        vector = np.frombuffer(query.vector.data, dtype=np.int8).astype(np.float32) * query.vector.scale
        places = np.concatenate([places for _, places, _, _ in parts])
        cosines = np.concatenate([self._cosines(data, vector) * scales for _, _, scales, data in parts])
        # Of equals the newest first; what points the other way is near to nothing.
        order = [at for at in np.lexsort((-places, -cosines)).tolist() if cosines[at] > 0]
        found: list[Hit] = []
        for start in range(0, len(order), query.limit):
            some = {int(places[at]): float(cosines[at]) for at in order[start : start + query.limit]}
            memories = {place: memory for memory, place in self.at_places(list(some), query)}
            found += [
                Hit(memory=memories[place], source="meaning", score=cosine)
                for place, cosine in some.items()
                if place in memories
            ]
            if len(found) >= query.limit:
                break
        return tuple(found[: query.limit])

    def _load(self, owner: int) -> tuple[Any, Any, Any, Any]:
        np, span = self._np, range_of(owner)
        # Their numbers only grow: a vector that came, changed or went makes another count or maximum.
        [state] = self._all("SELECT count(*), max(number) FROM vectors WHERE place BETWEEN ? AND ?", span)
        known = self._loaded.get(owner)
        if known and known[0] == state:
            return known
        rows = self._all(
            """SELECT place, scale, blob FROM vectors WHERE place BETWEEN ? AND ? AND model = ? AND length(blob) = ?
            ORDER BY place DESC LIMIT ?""",
            (*span, self._model, self._dim, MOST),
        )
        numbers = np.frombuffer(b"".join(row[2] for row in rows), dtype=np.int8).reshape(len(rows), self._dim)
        places = np.array([row[0] for row in rows], dtype=np.int64)
        scales = np.array([row[1] for row in rows], dtype=np.float32)
        if len(self._loaded) >= MOST_OWNERS:
            self._loaded = {}
        self._loaded[owner] = (state, places, scales, numbers)
        return self._loaded[owner]

    def _cosines(self, data: Any, vector: Any) -> Any:
        found = self._np.empty(len(data), dtype=self._np.float32)
        for start in range(0, len(data), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            found[part] = data[part].astype(self._np.float32) @ vector
        return found
