"""What the log of every store promises: each change made on purpose is told, and can be taken back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.amendments import Amendment
from foreword.errors import Conflict
from foreword.types import Link, Memory
from foreword.values import replace

TEXT = st.text(max_size=40)


def kept(store, *titles, **more):
    return store.keep([Memory("decision", title, project="here", created=1.0, **more) for title in titles])


def as_it_is(store, memory):
    return store.by_id([memory.id])[0]


def test_an_amendment_is_logged_with_who_what_why_and_when(store):
    (one,) = kept(store, "Use Redis")
    amendment = Amendment("revise", "a typing error", changed=((one, replace(one, title="Use Valkey")),))
    (entry,) = store.amend([amendment], who="user", at=5.0)
    assert (entry.who, entry.what, entry.why, entry.at) == ("user", "revise", "a typing error", 5.0)
    assert store.log() == (entry,)
    assert store.log(memory=one.id) == (entry,)
    assert store.log(memory="dec-00000000") == ()
    assert entry.patch["changed"] == {one.id: {"title": ["Use Redis", "Use Valkey"]}}


@given(title=TEXT, body=TEXT, tags=st.lists(TEXT, max_size=3), detail=st.dictionaries(TEXT, TEXT, max_size=2))
@settings(max_examples=60)
def test_any_change_can_be_taken_back_and_made_again(shared_store, title, body, tags, detail):
    (one,) = kept(shared_store, "as it was", body="first", tags=("a",), detail={"why": "so"})
    two = replace(one, title=title, body=body, tags=tuple(tags), detail=detail, pinned=True, status="stale")
    (entry,) = shared_store.amend([Amendment("revise", changed=((one, two),))], who="user", at=5.0)
    changed = as_it_is(shared_store, one)
    assert changed.pinned
    (back,) = shared_store.undo([entry], who="user", at=6.0).entries
    assert as_it_is(shared_store, one) == one
    assert not shared_store.undo([back], who="user", at=7.0).refused
    assert as_it_is(shared_store, one) == changed


def test_what_changed_since_is_not_taken_back_and_told(store):
    (one,) = kept(store, "first")
    (entry,) = store.amend([Amendment("revise", changed=((one, replace(one, title="second")),))], who="user", at=5.0)
    store.keep([replace(one, title="third")])
    got = store.undo([entry], who="user", at=6.0)
    assert got.entries == ()
    assert "title" in got.refused[entry.number]
    assert as_it_is(store, one).title == "third"


def test_a_change_of_another_field_stays_when_something_is_taken_back(store):
    (one,) = kept(store, "first")
    (entry,) = store.amend([Amendment("stale", changed=((one, replace(one, status="stale")),))], who="tidy", at=5.0)
    store.keep([replace(one, title="told better", status="stale")])
    store.undo([entry], who="user", at=6.0)
    assert (as_it_is(store, one).title, as_it_is(store, one).status) == ("told better", "active")


def test_an_amendment_of_what_changed_meanwhile_is_a_conflict_and_nothing_of_it_happens(store):
    one, two = kept(store, "one", "two")
    store.keep([replace(two, status="stale")])
    pairs = ((one, replace(one, status="stale")), (two, replace(two, status="superseded")))
    with pytest.raises(Conflict):
        store.amend([Amendment("merge", changed=pairs)], who="tidy", at=5.0)
    assert as_it_is(store, one).status == "active"
    assert store.log() == ()


def test_what_an_amendment_made_and_linked_is_put_aside_when_it_is_taken_back(store):
    (one,) = kept(store, "one")
    fresh = Memory("pattern", "made of it", uid="made", project="here", created=5.0)
    amendment = Amendment("learn", new=(fresh,), links=(Link("made", "caused-by", one.uid),))
    (entry,) = store.amend([amendment], who="tidy", at=5.0)
    (made,) = store.by_uid(["made"])
    assert store.linked(one.id) == (Link(made.id, "caused-by", one.id),)
    (back,) = store.undo([entry], who="user", at=6.0).entries
    assert as_it_is(store, made).status == "discarded"
    assert store.linked(one.id) == ()
    store.undo([back], who="user", at=7.0)
    assert as_it_is(store, made).status == "active"
    assert store.linked(one.id) == (Link(made.id, "caused-by", one.id),)


def test_what_was_taken_back_is_remembered_until_that_is_taken_back_too(store):
    (one,) = kept(store, "one")
    (entry,) = store.amend([Amendment("stale", changed=((one, replace(one, status="stale")),))], who="tidy", at=5.0)
    assert store.taken_back() == frozenset()
    (back,) = store.undo([entry], who="user", at=6.0).entries
    assert store.taken_back() == {("stale", frozenset({one.id}))}
    store.undo([back], who="user", at=7.0)
    assert store.taken_back() == frozenset()


def test_an_entry_is_taken_back_once(store):
    (one,) = kept(store, "one")
    (entry,) = store.amend([Amendment("stale", changed=((one, replace(one, status="stale")),))], who="tidy", at=5.0)
    store.undo([entry], who="user", at=6.0)
    again = store.undo(store.log(numbers=[entry.number]), who="user", at=7.0)
    assert "already" in again.refused[entry.number]


def test_who_says_a_memory_again_leaves_its_pin_and_its_use(store):
    (one,) = kept(store, "one")
    (entry,) = store.amend([Amendment("pin", changed=((one, replace(one, pinned=True)),))], who="user", at=5.0)
    store.keep([replace(one, title="again", pinned=False)])
    assert as_it_is(store, one).pinned
    assert entry.patch["changed"][one.id] == {"pinned": [False, True]}
