"""Find the vectors nearest to one, by comparing all in memory; derived from the store, never the truth."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.embeddings.embedder import numpy
from foreword.models import Vector

MOST_BYTES = 64 * 1024 * 1024  # of all owners together: 250,000 vectors of 256 numbers, 15 ms a search
ROWS_AT_ONCE = 1024  # cast to float32: 1 MB at 256 numbers, which a core keeps near
FIRST = 256  # so many of the best are put in order before the rest is


@dataclass(frozen=True)
class Row:
    """One row of the table of vectors."""

    number: int
    place: int
    scale: float
    data: bytes


@dataclass(frozen=True)
class Near:
    """A memory's place, how near it is (the cosine), and the number of the compared vector."""

    place: int
    cosine: float
    number: int


class Index:
    """The vectors of one length, by owner; of an owner with too many, the newest."""

    def __init__(self, dim: int, *, most_bytes: int = MOST_BYTES) -> None:
        self.most = max(1, most_bytes // dim)  # vectors
        self._np = numpy()
        self._dim = dim
        self._rows: dict[int, dict[int, Row]] = {}  # owner -> place -> row; the owner used last is the last
        self._arrays: dict[int, tuple[Any, Any, Any, Any]] = {}  # of each owner, made at its next search
        self._lock = threading.Lock()

    def owners(self) -> frozenset[int]:
        return frozenset(self._rows)

    def load(self, owner: int, rows: Iterable[Row]) -> None:
        """Take in all vectors of an owner; the owner used longest ago makes room."""
        with self._lock:
            self._remove(owner)
            loaded = {row.place: row for row in self._usable(rows)}
            while self._rows and self._count() + len(loaded) > self.most:
                self._remove(next(iter(self._rows)))
            self._rows[owner] = loaded

    def put(self, owner: int, rows: Sequence[Row]) -> None:
        """Add or replace vectors of a loaded owner; an owner that outgrows the room goes, to be loaded again."""
        with self._lock:
            if owner not in self._rows:
                return
            self._rows[owner].update((row.place, row) for row in self._usable(rows))
            self._arrays.pop(owner, None)
            if self._count() > self.most:
                self._remove(owner)

    def drop(self, owner: int, places: Iterable[int]) -> None:
        """Remove vectors whose memory or text is gone."""
        with self._lock:
            for place in places:
                self._rows.get(owner, {}).pop(place, None)
            self._arrays.pop(owner, None)

    def nearest(self, vector: Vector, *, owners: Sequence[int]) -> Iterator[list[Near]]:
        """Yield all vectors of these owners in two lists, nearest first; most callers need only the short first."""
        np = self._np
        with self._lock:
            known = [owner for owner in owners if self._rows.get(owner)]
            for owner in known:
                self._rows[owner] = self._rows.pop(owner)
            parts = [self._array(owner) for owner in known]
        if not parts or len(vector.data) != self._dim:
            return
        query = np.frombuffer(vector.data, dtype=np.int8).astype(np.float32) * vector.scale
        cosines = np.concatenate([self._cosines(scales, data, query) for _, _, scales, data in parts])
        places = np.concatenate([part[0] for part in parts])
        numbers = np.concatenate([part[1] for part in parts])

        def in_order(some: Any) -> list[Near]:
            # Of equals the newest first; what points the other way is near to nothing.
            some = some[cosines[some] > 0]
            some = some[np.lexsort((-places[some], -cosines[some]))]
            found = zip(places[some].tolist(), cosines[some].tolist(), numbers[some].tolist(), strict=True)
            return [Near(*each) for each in found]

        everything = np.arange(len(cosines))
        if len(cosines) <= FIRST:
            yield in_order(everything)
            return
        first = np.argpartition(-cosines, FIRST)[:FIRST]
        yield in_order(first)
        yield in_order(np.setdiff1d(everything, first, assume_unique=True))

    def _array(self, owner: int) -> tuple[Any, Any, Any, Any]:
        if owner not in self._arrays:
            np, rows = self._np, self._rows[owner].values()
            data = np.frombuffer(b"".join(row.data or bytes(self._dim) for row in rows), dtype=np.int8)
            self._arrays[owner] = (
                np.array([row.place for row in rows], dtype=np.int64),
                np.array([row.number for row in rows], dtype=np.int64),
                np.array([row.scale for row in rows], dtype=np.float32),
                data.reshape(len(rows), self._dim),
            )
        return self._arrays[owner]

    def _cosines(self, scales: Any, data: Any, query: Any) -> Any:
        found = self._np.empty(len(data), dtype=self._np.float32)
        for start in range(0, len(data), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            found[part] = data[part].astype(self._np.float32) @ query
        return found * scales

    def _usable(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows that can be compared; an empty vector replaces one that was there."""
        return [row for row in rows if len(row.data) == self._dim or not row.data]

    def _count(self) -> int:
        return sum(map(len, self._rows.values()))

    def _remove(self, owner: int) -> None:
        self._rows.pop(owner, None)
        self._arrays.pop(owner, None)
