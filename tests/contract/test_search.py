"""Finding by words and by code, of any store: what is held, who names it, and what stood around it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.models import Memory, Query
from foreword.terms import rarity

HERE = ("project:here", "universal")


def a_memory(title, **more):
    return Memory("note", title, **{"project": "here", "created": 1.0, **more})


# -- words ------------------------------------------------------------------------------------------------------------


def test_words_and_pairs_are_counted_in_every_scope(make_store):
    # All who hold a common word are counted in every scope.
    store = make_store()
    store.memories.put([a_memory(f"walrus {n}") for n in range(700)])
    store.memories.put([a_memory(f"walrus {n}", scope="universal") for n in range(600)])
    hits = store.search.by_words(Query(scopes=HERE, terms=("walrus",), limit=5))
    assert [hit.held["walrus"] for hit in hits] == [rarity(1300, 1300)] * 5
    # A word too common for the budget leaves the rarer ones.
    store = make_store()
    store.memories.put([a_memory(f"walrus {n} {'tusk' if n % 7 == 0 else ''}") for n in range(700)])
    hits = store.search.by_words(Query(scopes=HERE, terms=("walrus", "tusk"), postings=400, limit=500))
    assert {tuple(hit.held) for hit in hits} == {("tusk",)}
    assert len(hits) == 100
    # Words side by side are told wherever they are.
    store = make_store()
    store.memories.put(
        [
            a_memory("a walrus tusk"),
            a_memory("tusk of the walrus"),
            a_memory("walrus"),
            a_memory("the old walrus tusk", scope="universal"),
            *(a_memory(f"walrus {n}") for n in range(600)),
        ]
    )
    query = Query(scopes=HERE, terms=("walrus", "tusk", "old"), pairs=("walrus tusk", "old walrus"))
    pairs_by_title = {
        hit.memory.title: {each for each in hit.held if " " in each} for hit in store.search.by_words(query)
    }
    assert {title: pairs for title, pairs in pairs_by_title.items() if pairs} == {
        "a walrus tusk": {"walrus tusk"},
        "the old walrus tusk": {"walrus tusk", "old walrus"},
    }


def test_neighbours_code_and_recency_leave_nobody_out(make_store):
    store = make_store()
    store.memories.put([a_memory(f"turn {n}", files=("a.py",), functions=(f"f{n}",)) for n in range(6)])
    query, votes = Query(scopes=HERE), {"a.py": 1.0, "f2": 0.5, "unknown.py": 1.0}
    hits = store.search.by_code(query, votes)
    assert hits[0].memory.title == "turn 2"
    assert {frozenset(hit.held) for hit in hits} == {frozenset({"a.py", "f2"}), frozenset({"a.py"})}
    # Of many that name a file the newest of each scope are found.
    store = make_store()
    store.memories.put([a_memory(f"turn {n}", files=("a.py",)) for n in range(230)])
    store.memories.put([a_memory("everywhere", files=("a.py",), scope="universal")])
    hits = store.search.by_code(Query(scopes=HERE, limit=400), {"a.py": 1.0})
    assert {hit.memory.title for hit in hits} == {"everywhere", *(f"turn {n}" for n in range(30, 230))}
    assert hits[0].held == {"a.py": rarity(201, 231)}


# -- code -------------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(name=st.text(st.characters(exclude_characters="\0"), min_size=1))
def test_any_name_is_found_as_it_is_written(shared_store, name):
    shared_store.memories.put([a_memory("named", uid="named", files=(name,), project="names")])
    (hit,) = shared_store.search.by_code(Query(scopes=("project:names",)), {name: 1.0})
    assert set(hit.held) == {name}


# -- recency ----------------------------------------------------------------------------------------------------------
