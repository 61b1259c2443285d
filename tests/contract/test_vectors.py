"""What every store promises about vectors: kept and gone with their memory, found at once, never across projects."""

from __future__ import annotations

import threading
from dataclasses import replace

import apsw
import numpy as np
import pytest

from foreword.models import Memory, Query, Vector
from foreword.store import Store
from foreword.worker.embeddings import quantize

DIM = 16


def pointing(*directions: int, model: str = "m", dim: int = DIM) -> Vector:
    """A vector between these directions; vectors that share none are no way near each other."""
    row = np.zeros((1, dim), dtype=np.float32)
    row[0, list(directions)] = 1
    return quantize(row, model=model)[0]


def a_memory(title, **more):
    return Memory("note", title, **{"project": "here", "created": 1.0, **more})


def keep(store, memories, vectors):
    kept = store.memories.put(memories)
    store.memories.add_vectors(kept, vectors)
    return kept


def near(store, vector, *, scopes=("project:here",), **more):
    return [hit.memory.title for hit in store.search.by_vector(Query(scopes=scopes, vector=vector, **more))]


# -- found ------------------------------------------------------------------------------------------------------------


def test_the_nearest_of_the_scope_are_found_at_once(make_store):
    # The nearest comes first with its cosine.
    store = make_store()
    keep(store, [a_memory("half"), a_memory("all"), a_memory("none")], [pointing(1, 2), pointing(1), pointing(3)])
    hits = store.search.by_vector(Query(scopes=("project:here",), vector=pointing(1)))
    assert [(hit.memory.title, hit.source) for hit in hits] == [("all", "meaning"), ("half", "meaning")]
    assert [hit.score for hit in hits] == pytest.approx([1.0, 0.5**0.5], abs=0.01)
    # A fresh memory is found at once.
    store = make_store()
    for number in range(DIM):
        keep(store, [a_memory(f"t{number}")], [pointing(number)])
        assert near(store, pointing(number)) == [f"t{number}"]
    # A query without a vector finds nothing by meaning.
    store = make_store()
    keep(store, [a_memory("walrus")], [pointing(1)])
    assert near(store, None) == []
    assert near(store, Vector("m", 0.0, b"")) == []
    # Projects stay apart and their scopes come together.
    store = make_store()
    memories = [
        a_memory("mine"),
        a_memory("other", project="there"),
        a_memory("in go", scope="language:go"),
        a_memory("for all", scope="universal"),
    ]
    keep(store, memories, [pointing(1)] * 4)
    assert near(store, pointing(1)) == ["mine"]
    assert set(near(store, pointing(1), scopes=("project:here", "universal"))) == {"mine", "for all"}
    assert near(store, pointing(1), scopes=("project:nowhere",)) == []
    assert near(store, pointing(1), scopes=()) == []
    # Only what the query wants is found.
    store = make_store()
    memories = [a_memory(f"t{n}", created=float(n)) for n in range(1, 6)]
    memories += [replace(a_memory("decided", created=3.0), kind="decision"), a_memory("gone", status="superseded")]
    keep(store, memories, [pointing(1)] * 7)
    assert set(near(store, pointing(1), since=2.0)) == {"t2", "t3", "t4", "t5", "decided"}
    assert near(store, pointing(1), kinds=("decision",)) == ["decided"]
    assert len(near(store, pointing(1), limit=3)) == 3
    # Many that are not wanted do not hide the one that is.
    store = make_store()
    keep(store, [a_memory(f"t{n}") for n in range(1000)], [pointing(1)] * 1000)
    keep(store, [replace(a_memory("decided"), kind="decision")], [pointing(1, 2)])
    assert near(store, pointing(1), kinds=("decision",), limit=5) == ["decided"]
    # Vectors of different models or lengths are never compared.
    store = make_store()
    vectors = [pointing(1, model="one"), pointing(1, model="two"), pointing(1, model="one", dim=DIM * 2)]
    keep(store, [a_memory("one"), a_memory("two"), a_memory("long")], vectors)
    for vector, title in zip(vectors, ("one", "two", "long"), strict=True):
        assert near(store, vector) == [title]


# -- kept and gone with their memory ----------------------------------------------------------------------------------


def test_a_vector_goes_and_stays_with_its_text(make_store):
    # A changed text is not found by what it meant.
    store = make_store()
    (kept,) = keep(store, [a_memory("walrus")], [pointing(1)])
    assert near(store, pointing(1)) == ["walrus"]
    store.memories.put([replace(kept, title="penguin")])
    assert near(store, pointing(1)) == []
    assert [memory.title for memory in store.memories.without_vectors("m")] == ["penguin"]
    keep(store, [replace(kept, title="penguin")], [pointing(2)])
    assert (near(store, pointing(1)), near(store, pointing(2))) == ([], ["penguin"])
    # A memory that is confirmed or moved keeps its vector.
    store = make_store()
    (kept,) = keep(store, [a_memory("walrus")], [pointing(1)])
    (seen,) = store.memories.put([replace(kept, seen=2, confirmed=9.0)])
    assert near(store, pointing(1)) == ["walrus"]
    store.memories.put([replace(seen, scope="universal")])
    assert near(store, pointing(1)) == []
    assert near(store, pointing(1), scopes=("universal",)) == ["walrus"]
    assert store.memories.without_vectors("m") == ()
    assert store.stats.row_counts()["vectors"] == 1


# -- caught up later --------------------------------------------------------------------------------------------------


def test_what_lacks_a_vector_is_given_one(make_store):
    # What was kept without a vector can be given one.
    store = make_store()
    store.memories.put([a_memory(f"t{n}") for n in range(3)])
    keep(store, [a_memory("done")], [pointing(5)])
    lacking = store.memories.without_vectors("m", limit=2)
    assert [memory.title for memory in lacking] == ["t2", "t1"]  # the newest first
    assert store.memories.add_vectors(lacking, [pointing(2), pointing(1)]) == 2
    assert near(store, pointing(2)) == ["t2"]
    assert [memory.title for memory in store.memories.without_vectors("m")] == ["t0"]
    store.memories.add_vectors(store.memories.without_vectors("m"), [Vector("m", 0.0, b"")])
    assert store.memories.without_vectors("m") == store.memories.without_vectors("m") == ()
    store.memories.put([a_memory("later")])
    assert [memory.title for memory in store.memories.without_vectors("m")] == ["later"]
    # Another model or length lacks everything and replaces it.
    store = make_store()
    keep(store, [a_memory("walrus")], [pointing(1)])
    assert store.memories.without_vectors("m") == ()
    assert len(store.memories.without_vectors("new")) == 1
    store.memories.add_vectors(store.memories.without_vectors("new"), [pointing(1, model="new")])
    assert (near(store, pointing(1)), near(store, pointing(1, model="new"))) == ([], ["walrus"])
    assert store.stats.row_counts()["vectors"] == 1
    # A vector that comes too late for its text is not taken.
    store = make_store()
    (kept,) = store.memories.put([a_memory("walrus")])
    lacking = store.memories.without_vectors("m")
    store.memories.put([replace(kept, body="about something else now")])
    assert (
        store.memories.add_vectors([*lacking, a_memory("nobody", id="not-00000000")], [pointing(1), pointing(1)]) == 0
    )
    assert near(store, pointing(1)) == []
    assert len(store.memories.without_vectors("m")) == 1
    # Inactive memories need no vector.
    store = make_store()
    store.memories.put([a_memory("old", status="superseded")])
    assert store.memories.without_vectors("m") == ()


# -- SQLite alone -----------------------------------------------------------------------------------------------------


def test_vectors_go_with_their_memory(tmp_path_factory):
    # Whoever removes a memory removes its vector.
    tmp_path = tmp_path_factory.mktemp("x")
    store = Store(tmp_path / "memory.db", backups=tmp_path / "backups")
    keep(store, [a_memory("walrus"), a_memory("penguin")], [pointing(1), pointing(1)])
    assert len(near(store, pointing(1))) == 2
    other = apsw.Connection(str(tmp_path / "memory.db"))
    other.execute("DELETE FROM memories WHERE title = 'walrus'")
    assert other.execute("SELECT count(*) FROM vectors").get == 1
    other.close()
    assert near(store, pointing(1)) == ["penguin"]
    store.close()


def test_a_memory_that_is_being_written_while_somebody_looks_is_not_missed_later(store):
    counted, go_on = threading.Event(), threading.Event()

    def write() -> None:
        store.memories.put([Memory("note", "walrus", scope="universal", created=1.0)])
        counted.set()
        go_on.wait(20)

    writer = threading.Thread(target=store.database.write, args=(write,))
    writer.start()
    assert counted.wait(20)
    looker = threading.Thread(target=store.memories.without_vectors, args=("m",))
    looker.start()
    looker.join(0.3)  # it waits for the commit
    go_on.set()
    writer.join()
    looker.join()
    assert [memory.title for memory in store.memories.without_vectors("m")] == ["walrus"]
