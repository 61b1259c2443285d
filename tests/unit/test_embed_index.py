"""The index gives what comparing all would give, forgets what it is told to, and never outgrows its room."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.embeddings.embedder import quantize
from foreword.embeddings.index import FIRST, Index, Row

DIM = 8


def rows_of(vectors, *, first=1, owner=1):
    return [
        Row(number=number, place=owner << 32 | number, scale=vector.scale, data=vector.data)
        for number, vector in enumerate(vectors, first)
    ]


def some(many, *, seed=1):
    return quantize(np.random.default_rng(seed).normal(size=(many, DIM)), model="m")


def found(index, vector, owners=(1,)):
    return [near for part in index.nearest(vector, owners=owners) for near in part]


def compared(rows, vector):
    """Each place with its cosine, by the definition; what points the other way is near to nothing."""
    asked = np.frombuffer(vector.data, dtype=np.int8).astype(int)
    dots = {row.place: (int(np.frombuffer(row.data, dtype=np.int8) @ asked), row.scale) for row in rows}
    return {place: dot * scale * vector.scale for place, (dot, scale) in dots.items() if dot > 0}


@settings(deadline=None, max_examples=20)
@given(many=st.integers(0, 3 * FIRST), seed=st.integers(0, 100))
def test_it_gives_what_comparing_all_would_give(many, seed):
    vectors = some(many + 1, seed=seed)
    rows = rows_of(vectors[1:])
    index = Index(DIM)
    index.load(1, rows)
    got = found(index, vectors[0])
    expected = compared(rows, vectors[0])
    # At right angles a rounding decides; everything else is decided.
    surely = {place for place, cosine in expected.items() if cosine > 1e-6}
    assert {near.place for near in got if near.cosine > 1e-6} == surely
    assert [near.cosine for near in got] == sorted((near.cosine for near in got), reverse=True)
    assert all(abs(near.cosine - expected.get(near.place, 0.0)) < 1e-5 for near in got)


def test_rows_are_added_dropped_and_make_room():
    # Owners who were not asked for are not compared.
    asked, *vectors = some(11)
    index = Index(DIM)
    index.load(1, rows_of(vectors[:5]))
    index.load(2, rows_of(vectors[5:], owner=2))
    assert {near.place >> 32 for near in found(index, asked, owners=(2, 7))} <= {2}
    assert found(index, asked, owners=()) == []
    # What is added and replaced counts from then on.
    one, two, three = some(3)
    index = Index(DIM)
    index.load(1, [])
    for number in range(1, 200):  # it grows several times
        index.put(1, rows_of([two], first=number))
    place = 1 << 32 | 7
    index.put(1, [Row(number=500, place=place, scale=one.scale, data=one.data)])
    best = found(index, one)[0]
    assert (best.place, best.number, round(best.cosine, 4)) == (place, 500, 1.0)
    index.put(1, [Row(number=501, place=place, scale=0.0, data=b"")])
    assert place not in {near.place for near in found(index, one)}
    index.put(9, rows_of([three], owner=9))  # nobody asked for this owner: it is loaded when somebody does
    assert index.owners() == {1}
    # What is dropped is not found.
    (one,) = some(1)
    index = Index(DIM)
    index.load(1, rows_of([one, one]))
    index.drop(1, [1 << 32 | 1, 1 << 32 | 99])
    index.drop(5, [1])
    assert [near.place for near in found(index, one)] == [1 << 32 | 2]
    # Vectors of another length are not compared.
    (one,) = some(1)
    (other,) = quantize(np.ones((1, DIM + 1)), model="m")
    index = Index(DIM)
    index.load(1, rows_of([one, other]))
    assert len(found(index, one)) == 1
    assert found(index, other) == []
    # Who was asked longest ago makes room.
    vectors = some(10)
    index = Index(DIM, most_bytes=20 * DIM)
    index.load(1, rows_of(vectors))
    index.load(2, rows_of(vectors, owner=2))
    found(index, vectors[0], owners=(1,))
    index.load(3, rows_of(vectors, owner=3))
    assert index.owners() == {1, 3}
    index.put(3, rows_of(vectors[:1], first=11, owner=3))
    assert index.owners() == {1}  # it outgrew the room, and is loaded again with its newest
