"""What every store promises to whoever asks for all memories of a kind, also for what is put aside."""

from __future__ import annotations

import itertools

import pytest

from foreword.errors import BadRequest
from foreword.models import STATUSES, Memory

KINDS = ("note", "preference", "summary")


def filled(store):
    """One memory of each kind, status and scope; those that can be told of: what is being forgotten cannot."""
    every = itertools.product(KINDS, STATUSES, ("project:here", "project:there", "universal"))
    kept = store.memories.put(
        [
            Memory(kind, f"{kind} {status} {scope}", scope=scope, status=status, created=float(number))
            for number, (kind, status, scope) in enumerate(every)
        ]
    )
    return [each for each in kept if each.status != "forgotten"]


def test_all_of_a_kind_are_told_by_scope_status_and_limit(make_store):
    # All of a kind whatever their status newest first.
    store = make_store()
    wanted = [each for each in filled(store) if each.kind == "note"]
    assert list(store.memories.list(("note",))) == wanted[::-1]
    # Only of these scopes kinds and statuses.
    store = make_store()
    every = filled(store)
    for scopes, kinds, statuses in itertools.product(
        (("project:here",), ("project:here", "universal")),
        (("note",), ("note", "preference")),
        (("active",), ("stale",), ("active", "discarded"), ("stale", "superseded")),
    ):
        wanted = {each.id for each in every if each.scope in scopes and each.kind in kinds and each.status in statuses}
        got = store.memories.list(kinds, scopes=scopes, statuses=statuses)
        assert {each.id for each in got} == wanted
    # At most the limit and the newest of all.
    store = make_store()
    every = filled(store)
    newest = sorted((each for each in every if each.kind in ("note", "summary")), key=lambda each: -each.created)[:4]
    assert list(store.memories.list(("note", "summary"), limit=4)) == newest
    # Nothing where there is nothing.
    store = make_store()
    assert store.memories.list(("note",)) == ()
    assert store.memories.list((), scopes=("project:here",)) == ()


def test_a_whole_id_is_itself_also_where_a_longer_one_begins_so(store):
    ids = ("dec-q0hn5pnc", "dec-q0hn5pnczz", "dec-Q0HN5pnc")
    store.memories.put([Memory("decision", id, id=id, uid=id) for id in ids], imported=True)
    assert [store.full_id(id) for id in ids] == list(ids)
    assert store.full_id("DEC-Q0HN5PNC") == "dec-q0hn5pnc"
    assert store.full_id("dec-q0hn5pncz") == "dec-q0hn5pnczz"
    with pytest.raises(BadRequest, match="several ids begin with"):
        store.full_id("dec-q")
