"""What any store promises of silences: kept once, newest first, not beside what was given after all, forgotten."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.models import Event, Injection, Memory

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
fresh = itertools.count()


def a_silence(id, *, at=1000.0, session="s", **more):
    empty = {"tokens": 0, "budget": 0, "build_ms": 0.0, "layers": {}, "skipped": {}, "items": ()}
    fields = {"trigger": "prompt", "project": "here", "host": "claude-code", "why": "below", **empty}
    return Injection(id=id, at=at, session=session, **{**fields, **more})


def record(store, *silences):
    for each in silences:
        store.injections.record(each)


def silences(store, **query):
    return store.injections.list(empty=True, **query)


def an_injection(id, *, tokens=7, **more):
    return Injection(id, "prompt", "s", "here", "claude-code", 1000.0, tokens, 500, 1.5, {}, {}, (), **more)


def forgotten(store, **criteria):
    """As a worker forgets: hidden and buried, then gone."""
    live = store.forgetter
    target = live.find(**criteria)
    store.database.write(live.hide, target, at=10.0)
    store.database.write(live.remove, target)


@settings(deadline=None, max_examples=25)
@given(
    texts=st.tuples(*[TEXT] * 6).filter(lambda six: six[4]),
    numbers=st.tuples(*[st.floats(0, 1e9)] * 3),
    away=st.booleans(),
)
def test_any_silence_survives_exactly(shared_store, texts, numbers, away):
    id = f"inj-h{next(fresh)}"
    project, host, trigger, source, why, nearest = texts
    about = {"project": project, "host": host, "trigger": trigger, "source": source, "why": why, "nearest": nearest}
    score, needed, build_ms = numbers
    silence = a_silence(id, session=id, **about, score=score, needed=needed, build_ms=build_ms, spent=3, allowed=4)
    record(shared_store, replace(silence, away=away))
    assert silences(shared_store, session=id) == (replace(silence, away=away),)


def test_silences_are_kept_once_and_not_beside_what_was_given(make_store):
    # Silences are of a session or a project newest first.
    store = make_store()
    record(store, a_silence("a", at=1.0), a_silence("b", at=3.0), a_silence("c", at=2.0, session="other"))
    record(store, a_silence("d", at=4.0, project="there", session="other"))
    assert [each.id for each in silences(store)] == ["d", "b", "c", "a"]
    assert [each.id for each in silences(store, session="s")] == ["b", "a"]
    assert [each.id for each in silences(store, project="here")] == ["b", "c", "a"]
    assert [each.id for each in silences(store, session="other", project="here")] == ["c"]
    assert [each.id for each in silences(store, limit=1)] == ["d"]
    # A silence told twice is one and the hook knows better than a late worker.
    store = make_store()
    first, own = a_silence("i", why="below"), a_silence("i", why="late", away=True)
    record(store, first, replace(first, why="told"))
    assert silences(store) == (first,)
    record(store, own)
    record(store, first)
    assert silences(store) == (own,)
    # What was given after all is no silence.
    store = make_store()
    store.injections.record(an_injection("i", text="given"))
    record(store, a_silence("i"))
    assert silences(store) == ()
    record(store, a_silence("j"))
    store.injections.record(an_injection("j", away=True, text="by the hook itself"))
    assert silences(store) == ()
    assert store.injections.get("j").text == "by the hook itself"


def test_silences_go_with_their_session_and_their_project_and_name_no_memory_that_went(store):
    (memory,) = store.memories.put([Memory("note", "an otter of noise", project="here", scope="project:here")])
    event = Event("k", "h", "n", "prompt", "gone", "here", "/", 1.0, {})
    store.events.append([event, event._replace(key="l", session="stays", project="there")])
    record(
        store,
        a_silence("a", session="gone", project="there"),
        a_silence("b", session="stays", project="there", nearest=memory.id, score=0.3, needed=0.5),
        a_silence("c", session="", project="here"),
    )
    forgotten(store, ids=[memory.id])
    assert silences(store, session="stays") == (a_silence("b", session="stays", project="there", needed=0.5),)
    forgotten(store, session="gone")
    assert [each.id for each in silences(store)] == ["b", "c"]
    forgotten(store, projects=["here"])
    assert [each.id for each in silences(store)] == ["b"]
    record(store, a_silence("d", session="gone", at=0.5))  # one that was on its way
    assert [each.id for each in silences(store)] == ["b"]
