"""What every store promises about use: counts move by the difference, once, and survive being recorded anew."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables import table

from foreword.models import UNDECIDABLE, Event, Injection, Item, Memory, UsageVerdict

VERDICTS = st.sampled_from([(True, "file"), (True, "words"), (False, ""), (None, UNDECIDABLE)])


def usage(shown, used, ignored):
    return {"shown": shown, "used": used, "ignored": ignored}


def kept(store, *titles):
    return store.memories.put([Memory("decision", title, project="here", created=1.0) for title in titles])


def given_to(store, *memories, id="inj-1", session="s1", at=10.0, **more):
    items = tuple(Item(each.id, "index", 0.5, 10, {}) for each in memories)
    injection = Injection(
        id, "prompt", session, "here", "codex", at, 60, 500, 1.0, {}, {}, items, text=f"text of {id}", **more
    )
    store.injections.record(injection)
    return injection


def counts(store, memory):
    (found,) = store.memories.get([memory.id])
    return found.used, found.ignored


def happened(store, kind, *, at, session="s1"):
    store.events.append([Event(f"{kind}{at}{session}", "codex", kind, kind, session, "here", "/here", at, {})])


def test_verdicts_are_counted_once_and_use_wins(make_store):
    # A verdict is kept with what told it and counted once.
    store = make_store()
    one, two = kept(store, "one", "two")
    given_to(store, one, two)
    verdicts = [UsageVerdict("inj-1", one.id, used=True, how="file"), UsageVerdict("inj-1", two.id, used=False)]
    assert [store.injections.record_usage(verdicts), store.injections.record_usage(verdicts)] == [2, 0]
    assert (counts(store, one), counts(store, two)) == ((1, 0), (0, 1))
    assert [(item.used, item.how) for item in store.injections.get("inj-1").items] == [(True, "file"), (False, "")]
    # What was used stays used and what was for nothing may become used.
    store = make_store()
    (one,) = kept(store, "one")
    given_to(store, one)
    for used, how, expected in (
        (False, "", (0, 1)),
        (True, "command", (1, 0)),
        (False, "", (1, 0)),
        (None, UNDECIDABLE, (1, 0)),
    ):
        store.injections.record_usage([UsageVerdict("inj-1", one.id, used=used, how=how)])
        assert counts(store, one) == expected
    # Counts outlive a memory that is kept again.
    store = make_store()
    (one,) = kept(store, "one")
    given_to(store, one)
    store.injections.record_usage([UsageVerdict("inj-1", one.id, used=True, how="file")])
    store.memories.put([replace(one, title="told better")])
    assert counts(store, one) == (1, 0)
    # Verdicts of what is not there change nothing.
    store = make_store()
    (one,) = kept(store, "one")
    given_to(store, one)
    verdicts = [
        UsageVerdict("inj-9", one.id, used=True, how="file"),
        UsageVerdict("inj-1", "dec-99999999", used=True, how="file"),
    ]
    assert store.injections.record_usage(verdicts) == 0
    assert counts(store, one) == (0, 0)


@given(verdicts=st.lists(st.tuples(st.sampled_from(["inj-a", "inj-b"]), VERDICTS), max_size=12))
@settings(max_examples=15, deadline=None)
def test_counts_are_always_those_of_the_items(shared_store, verdicts):
    (one,) = kept(shared_store, "counted")
    for id in ("inj-a", "inj-b"):
        given_to(shared_store, one, id=f"{id}{one.id}")
    for id, (used, how) in verdicts:
        shared_store.injections.record_usage([UsageVerdict(f"{id}{one.id}", one.id, used=used, how=how)])
    items = [item for each in shared_store.injections.list(memory=one.id) for item in each.items]
    assert counts(shared_store, one) == (sum(i.used is True for i in items), sum(i.used is False for i in items))
    assert usage(2, *counts(shared_store, one)).items() <= shared_store.injections.usage(memory=one.id).items()


def test_what_waits_for_a_verdict_is_told_until_it_has_one(make_store):
    # What waits for a verdict comes with its text oldest first.
    store = make_store()
    one, two = kept(store, "one", "two")
    happened(store, "prompt", at=5.0)
    given_to(store, one, id="inj-2", at=20.0)
    given_to(store, two, id="inj-1", at=10.0)
    given_to(store, two, id="inj-3", session="s2")
    given_to(store, two, id="inj-4", session="")
    assert [(each.id, each.text) for each in store.injections.undecided("s1")] == [
        ("inj-1", "text of inj-1"),
        ("inj-2", "text of inj-2"),
    ]
    assert [each.id for each in store.injections.undecided("s1", limit=1)] == ["inj-2"]
    store.injections.record_usage([UsageVerdict("inj-1", two.id, used=True, how="file")])
    assert [each.id for each in store.injections.undecided("s1")] == ["inj-2"]
    assert store.injections.undecided("") == ()
    # Silent sessions are overdue until all they were given is judged.
    store = make_store()
    one, two = kept(store, "one", "two")
    happened(store, "stop", at=50.0)
    happened(store, "stop", at=500.0, session="s2")
    given_to(store, one, two)
    given_to(store, one, id="inj-2", session="s2")
    overdue = {"since": 10.0, "before": (100.0, "")}
    assert [each.id for each in store.sessions.list(undecided=True, **overdue)] == ["s1"]
    store.injections.record_usage([UsageVerdict("inj-1", one.id, used=False)])
    assert [each.id for each in store.sessions.list(undecided=True, **overdue)] == ["s1"]
    store.injections.record_usage([UsageVerdict("inj-1", two.id, used=None, how=UNDECIDABLE)])
    assert store.sessions.list(undecided=True, **overdue) == ()
    assert store.sessions.list(undecided=True, since=60.0, before=(100.0, "")) == ()
    # What a session fetched is told with its time.
    store = make_store()
    one, two = kept(store, "one", "two")
    store.memories.record_access([one.id], how="get", at=5.0, session="s1")
    store.memories.record_access([one.id, two.id], how="get", at=15.0, session="s1")
    store.memories.record_access([two.id], how="get", at=16.0, session="s2")
    store.memories.record_access([two.id], how="get", at=17.0)
    assert store.memories.accessed("s1") == ((one.id, 5.0), *sorted([(one.id, 15.0), (two.id, 15.0)]))
    assert {id for id, _ in store.memories.accessed("s1", since=10.0)} == {one.id, two.id}
    assert store.memories.accessed("") == ()


@table("judged", [(False, ""), (None, UNDECIDABLE)])
def test_what_is_still_in_the_window_may_yet_be_used_and_what_is_not_is_done_with(store, judged):
    (one,) = kept(store, "one")
    happened(store, "session_start", at=5.0)
    given_to(store, one)
    store.injections.record_usage([UsageVerdict("inj-1", one.id, judged[0], judged[1])])
    assert [each.id for each in store.injections.undecided("s1")] == ["inj-1"]
    happened(store, "compaction", at=30.0)
    assert store.injections.undecided("s1") == ()


def test_use_is_counted_by_project_time_and_session(make_store):
    # Use is counted by project and since when.
    store = make_store()
    one, two = kept(store, "one", "two")
    given_to(store, one, two)
    given_to(store, one, id="inj-2", at=1000.0)
    store.injections.record_usage(
        [UsageVerdict("inj-1", one.id, used=True, how="file"), UsageVerdict("inj-1", two.id, used=False)]
    )
    assert usage(2, 1, 0).items() <= store.injections.usage(memory=one.id).items()
    # Use is counted of one session too.
    store = make_store()
    (one,) = kept(store, "one")
    given_to(store, one, id="inj-1", session="s1")
    given_to(store, one, id="inj-2", session="s2")
    store.injections.record_usage([UsageVerdict("inj-2", one.id, used=True, how="file")])
    assert usage(1, 0, 0).items() <= store.injections.usage(session="s1").items()
    assert usage(1, 1, 0).items() <= store.injections.usage(session="s2").items()
    assert usage(0, 0, 0).items() <= store.injections.usage(session="s3").items()
