"""Vectors -> those nearest to one, in memory, by owner: derived from the store, never the truth."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.embeddings import numpy
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
    """A memory's place, how near it is (the cosine), and the number of the vector that says so."""

    place: int
    cosine: float
    number: int


class Index:
    """The vectors of one length; of an owner who has too many, the newest."""

    def __init__(self, dim: int, *, most_bytes: int = MOST_BYTES) -> None:
        self.most = max(1, most_bytes // dim)  # vectors
        self._np = numpy()
        self._dim = dim
        self._blocks: dict[int, _Block] = {}  # the owner asked last is the last
        self._lock = threading.Lock()

    def owners(self) -> frozenset[int]:
        return frozenset(self._blocks)

    def load(self, owner: int, rows: Iterable[Row]) -> None:
        """Take in all of an owner; who was asked longest ago makes room."""
        block = _Block(self._np, self._dim)
        block.put(self._usable(rows))
        with self._lock:
            self._blocks.pop(owner, None)
            while self._blocks and sum(each.many for each in self._blocks.values()) + block.many > self.most:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[owner] = block

    def put(self, owner: int, rows: Sequence[Row]) -> None:
        """Add or replace vectors of an owner who is here; one who outgrows the room goes, to be loaded again."""
        with self._lock:
            block = self._blocks.get(owner)
            if block is None:
                return
            block.put(self._usable(rows))
            if sum(each.many for each in self._blocks.values()) > self.most:
                del self._blocks[owner]

    def drop(self, owner: int, places: Iterable[int]) -> None:
        """Forget vectors whose memory or text is gone."""
        with self._lock:
            if owner in self._blocks:
                self._blocks[owner].drop(places)

    def nearest(self, vector: Vector, *, owners: Sequence[int]) -> Iterator[list[Near]]:
        """Everything of these owners in lists, nearest first; the first list is short, because most ask no further."""
        np = self._np
        with self._lock:
            for owner in owners:
                if owner in self._blocks:
                    self._blocks[owner] = self._blocks.pop(owner)
            views = [self._blocks[owner].view() for owner in owners if owner in self._blocks]
        if not views or len(vector.data) != self._dim:
            return
        asked = np.frombuffer(vector.data, dtype=np.int8).astype(np.float32) * vector.scale
        cosines = np.concatenate([_cosines(np, view, asked) for view in views])
        places = np.concatenate([view[0] for view in views])
        numbers = np.concatenate([view[1] for view in views])
        first = np.argpartition(-cosines, FIRST)[:FIRST] if len(cosines) > FIRST else np.arange(len(cosines))
        yield _in_order(np, first, cosines, places, numbers)
        if len(cosines) > FIRST:
            rest = np.ones(len(cosines), dtype=bool)
            rest[first] = False
            yield _in_order(np, np.flatnonzero(rest), cosines, places, numbers)

    def _usable(self, rows: Iterable[Row]) -> list[Row]:
        """What can be compared; an empty vector replaces one that was there."""
        return [row for row in rows if len(row.data) == self._dim or not row.data]


class _Block:
    """One owner's vectors in arrays that grow."""

    def __init__(self, np: Any, dim: int) -> None:
        self._np = np
        self._dim = dim
        self._at: dict[int, int] = {}  # place -> row
        self.many = 0
        self._grow(64)

    def put(self, rows: Sequence[Row]) -> None:
        """Write each row where its place is, or behind the last; the later of two for one place counts."""
        last = {row.place: row for row in rows}
        if not last:
            return
        fresh = [place for place in last if place not in self._at]
        if self.many + len(fresh) > len(self._places):
            self._grow(max(2 * len(self._places), self.many + len(fresh)))
        self._at.update(zip(fresh, range(self.many, self.many + len(fresh)), strict=True))
        at = [self._at[place] for place in last]
        empty = bytes(self._dim)
        data = self._np.frombuffer(b"".join(row.data or empty for row in last.values()), dtype=self._np.int8)
        self._places[at] = list(last)
        self._numbers[at] = [row.number for row in last.values()]
        self._scales[at] = [row.scale for row in last.values()]
        self._data[at] = data.reshape(len(last), self._dim)
        self.many += len(fresh)

    def drop(self, places: Iterable[int]) -> None:
        for place in places:
            at = self._at.get(place)
            if at is not None:
                self._scales[at] = 0.0
                self._data[at] = 0

    def view(self) -> tuple[Any, ...]:
        """The arrays as they are; growing makes new ones and leaves these to whoever is reading."""
        return tuple(each[: self.many] for each in (self._places, self._numbers, self._scales, self._data))

    def _grow(self, room: int) -> None:
        np = self._np
        old = self.view() if self.many else ()
        self._places = np.zeros(room, dtype=np.int64)
        self._numbers = np.zeros(room, dtype=np.int64)
        self._scales = np.zeros(room, dtype=np.float32)
        self._data = np.zeros((room, self._dim), dtype=np.int8)
        for new, before in zip((self._places, self._numbers, self._scales, self._data), old, strict=False):
            new[: self.many] = before


def _cosines(np: Any, view: tuple[Any, ...], asked: Any) -> Any:
    _, _, scales, data = view
    found = np.empty(len(data), dtype=np.float32)
    for start in range(0, len(data), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        found[part] = data[part].astype(np.float32) @ asked
    return found * scales


def _in_order(np: Any, some: Any, cosines: Any, places: Any, numbers: Any) -> list[Near]:
    """Nearest first, of equals the newest; what points the other way is near to nothing and left out."""
    some = some[cosines[some] > 0]
    some = some[np.lexsort((-places[some], -cosines[some]))]
    return [
        Near(place=place, cosine=cosine, number=number)
        for place, cosine, number in zip(
            places[some].tolist(), cosines[some].tolist(), numbers[some].tolist(), strict=True
        )
    ]
