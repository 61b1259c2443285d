"""What the log of every store promises: each change made on purpose is told, and can be taken back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.audit import AuditEntry, MemoryChange
from foreword.errors import Conflict
from foreword.models import Link, Memory

TEXT = st.text(max_size=40)


def kept(store, *titles, **more):
    return store.memories.put([Memory("decision", title, project="here", created=1.0, **more) for title in titles])


def as_it_is(store, memory):
    return store.memories.get([memory.id])[0]


def test_an_amendment_is_logged_and_conflicts_with_what_changed(make_store):
    # An amendment is logged with who what why and when.
    store = make_store()
    (one,) = kept(store, "Use Redis")
    memory_change = MemoryChange("revise", "a typing error", changed=((one, replace(one, title="Use Valkey")),))
    (entry,) = store.audit.apply([memory_change], who="user", at=5.0)
    assert (entry.who, entry.what, entry.why, entry.at) == ("user", "revise", "a typing error", 5.0)
    assert store.audit.list() == (entry,)
    assert store.audit.list(memory=one.id) == (entry,)
    assert store.audit.list(memory="dec-00000000") == ()
    assert entry.patch["changed"] == {one.id: {"title": ["Use Redis", "Use Valkey"]}}
    # What changed since is not taken back and told.
    store = make_store()
    (one,) = kept(store, "first")
    (entry,) = store.audit.apply(
        [MemoryChange("revise", changed=((one, replace(one, title="second")),))], who="user", at=5.0
    )
    store.memories.put([replace(one, title="third")])
    got = store.audit.undo([entry], who="user", at=6.0)
    assert got.entries == ()
    assert "title" in got.refused[entry.number]
    assert as_it_is(store, one).title == "third"
    # A change of another field stays when something is taken back.
    store = make_store()
    (one,) = kept(store, "first")
    (entry,) = store.audit.apply(
        [MemoryChange("stale", changed=((one, replace(one, status="stale")),))], who="tidy", at=5.0
    )
    store.memories.put([replace(one, title="told better", status="stale")])
    store.audit.undo([entry], who="user", at=6.0)
    assert (as_it_is(store, one).title, as_it_is(store, one).status) == ("told better", "active")
    # An amendment of what changed meanwhile is a conflict and nothing of it happens.
    store = make_store()
    one, two = kept(store, "one", "two")
    store.memories.put([replace(two, status="stale")])
    pairs = ((one, replace(one, status="stale")), (two, replace(two, status="superseded")))
    with pytest.raises(Conflict):
        store.audit.apply([MemoryChange("merge", changed=pairs)], who="tidy", at=5.0)
    assert as_it_is(store, one).status == "active"
    assert store.audit.list() == ()


@given(title=TEXT, body=TEXT, tags=st.lists(TEXT, max_size=3), detail=st.dictionaries(TEXT, TEXT, max_size=2))
@settings(max_examples=25)
def test_any_change_can_be_taken_back_and_made_again(shared_store, title, body, tags, detail):
    (one,) = kept(shared_store, "as it was", body="first", tags=("a",), detail={"why": "so"})
    two = replace(one, title=title, body=body, tags=tuple(tags), detail=detail, pinned=True, status="stale")
    (entry,) = shared_store.audit.apply([MemoryChange("revise", changed=((one, two),))], who="user", at=5.0)
    changed = as_it_is(shared_store, one)
    assert changed.pinned
    (back,) = shared_store.audit.undo([entry], who="user", at=6.0).entries
    assert as_it_is(shared_store, one) == one
    assert not shared_store.audit.undo([back], who="user", at=7.0).refused
    assert as_it_is(shared_store, one) == changed


def test_what_was_taken_back_is_put_aside_once(make_store):
    # What an amendment made and linked is put aside when it is taken back.
    store = make_store()
    (one,) = kept(store, "one")
    fresh = Memory("pattern", "made of it", uid="made", project="here", created=5.0)
    memory_change = MemoryChange("learn", new=(fresh,), links=(Link("made", "caused-by", one.uid),))
    (entry,) = store.audit.apply([memory_change], who="tidy", at=5.0)
    (made,) = store.memories.get_by_uid(["made"])
    assert store.memories.links(one.id) == (Link(made.id, "caused-by", one.id),)
    (back,) = store.audit.undo([entry], who="user", at=6.0).entries
    assert as_it_is(store, made).status == "discarded"
    assert store.memories.links(one.id) == ()
    store.audit.undo([back], who="user", at=7.0)
    assert as_it_is(store, made).status == "active"
    assert store.memories.links(one.id) == (Link(made.id, "caused-by", one.id),)
    # What was taken back is remembered until that is taken back too.
    store = make_store()
    (one,) = kept(store, "one")
    (entry,) = store.audit.apply(
        [MemoryChange("stale", changed=((one, replace(one, status="stale")),))], who="tidy", at=5.0
    )
    assert store.audit.undone() == frozenset()
    (back,) = store.audit.undo([entry], who="user", at=6.0).entries
    assert store.audit.undone() == {("stale", frozenset({one.id}))}
    store.audit.undo([back], who="user", at=7.0)
    assert store.audit.undone() == frozenset()
    # An entry is taken back once.
    store = make_store()
    (one,) = kept(store, "one")
    (entry,) = store.audit.apply(
        [MemoryChange("stale", changed=((one, replace(one, status="stale")),))], who="tidy", at=5.0
    )
    store.audit.undo([entry], who="user", at=6.0)
    again = store.audit.undo(store.audit.list(numbers=[entry.number]), who="user", at=7.0)
    assert "already" in again.refused[entry.number]
    # Of two who take back the same at once one is refused.
    store = make_store()
    fresh = Memory("decision", "made of a note", uid="made", project="here", created=5.0)
    (entry,) = store.audit.apply([MemoryChange("promote", new=(fresh,))], who="user", at=5.0)
    assert store.audit.undo([entry], who="user", at=6.0).entries
    again = store.audit.undo([entry], who="user", at=6.0)
    assert "already" in again.refused[entry.number]
    assert store.memories.get_by_uid(["made"])[0].status == "discarded"


def test_pins_details_and_places_are_taken_back_alone(make_store):
    # Who says a memory again leaves its pin and its use.
    store = make_store()
    (one,) = kept(store, "one")
    (entry,) = store.audit.apply([MemoryChange("pin", changed=((one, replace(one, pinned=True)),))], who="user", at=5.0)
    store.memories.put([replace(one, title="again", pinned=False)])
    assert as_it_is(store, one).pinned
    assert entry.patch["changed"][one.id] == {"pinned": [False, True]}
    # What is counted in a detail does not keep a change from being taken back.
    store = make_store()
    (one,) = kept(store, "first", detail={"why": "so", "seen_in": {"a": 1}})
    two = replace(one, detail={**one.detail, "why": "otherwise", "revised": "user"})
    (entry,) = store.audit.apply([MemoryChange("revise", changed=((one, two),))], who="user", at=5.0)
    assert entry.patch["changed"][one.id] == {"detail": [{"why": "so"}, {"why": "otherwise", "revised": "user"}]}
    store.memories.put([replace(two, detail={**two.detail, "seen_in": {"a": 1, "b": 2}})])
    assert not store.audit.undo([entry], who="user", at=6.0).refused
    assert as_it_is(store, one).detail == {"why": "so", "seen_in": {"a": 1, "b": 2}}
    # A part of a detail that changed since is not taken back.
    store = make_store()
    (one,) = kept(store, "first", detail={"why": "so"})
    two = replace(one, detail={"why": "otherwise"})
    (entry,) = store.audit.apply([MemoryChange("revise", changed=((one, two),))], who="user", at=5.0)
    store.memories.put([replace(two, detail={"why": "once more"})])
    assert "detail" in store.audit.undo([entry], who="user", at=6.0).refused[entry.number]
    assert as_it_is(store, one).detail == {"why": "once more"}
    # What takes another ones place may be new.
    store = make_store()
    (old,) = kept(store, "Use Redis")
    new = Memory("decision", "Use Valkey", uid="new", project="here", created=5.0)
    after = replace(old, status="superseded", superseded_by="new")
    memory_change = MemoryChange(
        "supersede", changed=((old, after),), new=(new,), links=(Link("new", "supersedes", old.id),)
    )
    (entry,) = store.audit.apply([memory_change], who="user", at=5.0)
    (made,) = store.memories.get_by_uid(["new"])
    assert as_it_is(store, old).superseded_by == made.id
    assert store.memories.links(old.id) == (Link(made.id, "supersedes", old.id),)
    store.audit.undo([entry], who="user", at=6.0)
    assert (as_it_is(store, old).status, as_it_is(store, made).status) == ("active", "discarded")


def test_the_log_is_asked_by_time_and_for_what_still_stands(make_store):
    # What was forgotten cannot be taken back and that is said.
    store = make_store()
    forgot = AuditEntry(number=7, at=1.0, who="user", what="forget", why="", run="", project="here", memories=())
    got = store.audit.undo([forgot], who="user", at=2.0)
    assert got.entries == ()
    assert "gone for good" in got.refused[7]
    # The log can be asked from a time on and for what still stands.
    store = make_store()
    one, two = kept(store, "one", "two")
    (first,) = store.audit.apply(
        [MemoryChange("stale", changed=((one, replace(one, status="stale")),))], who="tidy", at=4.0
    )
    (second,) = store.audit.apply(
        [MemoryChange("stale", changed=((two, replace(two, status="stale")),))], who="tidy", at=5.0
    )
    assert [each.number for each in store.audit.list(since=4.5)] == [second.number]
    (back,) = store.audit.undo([second], who="user", at=6.0).entries
    assert [each.number for each in store.audit.list(undoable=True)] == [first.number]
    assert [each.number for each in store.audit.list()] == [back.number, second.number, first.number]
