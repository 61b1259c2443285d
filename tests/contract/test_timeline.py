"""What a store tells of many sessions at once: in order, page by page, what came of each and what each was given."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.models import Injection, Item, Memory, Query, Session, UsageVerdict

fresh = itertools.count()


def session(id: str, *, last: float = 10.0, project: str = "p") -> Session:
    return Session(id=id, host="codex", project=project, cwd="/p", started=1.0, last=last)


def memory(title: str, *, kind: str = "decision", of: str = "a", at: float = 1.0, **more: object) -> Memory:
    about = {"uid": f"{kind}:{of}:{title}", "scope": "project:p", "project": "p", "session": of, "created": at}
    return Memory(kind=kind, title=title, **{**about, **more})


def injection(id: str, *memories: str, of: str = "a", tokens: int = 10) -> Injection:
    items = tuple(Item(memory=each, layer="rules", score=1.0, tokens=5, why={}) for each in memories)
    return Injection(id=id, trigger="prompt", session=of, project="p", host="codex", at=5.0, tokens=tokens, budget=500,
                     build_ms=1.0, layers={}, skipped={}, items=items)  # fmt: skip


@settings(max_examples=50)
@given(
    times=st.lists(st.sampled_from([1.0, 2.0, 2.5, 3.0]), max_size=12),
    limit=st.integers(min_value=1, max_value=5),
    all_of_them=st.booleans(),
)
def test_page_by_page_every_session_comes_once_newest_first_also_those_of_one_moment(
    shared_store, times, limit, all_of_them
):
    project = f"p{next(fresh)}"
    projects = (project,) if all_of_them else (project, "another")
    for number, last in enumerate(times):
        shared_store.save(session(f"{project}-{number}", last=last, project=project))
    found: list[Session] = []
    while page := shared_store.sessions.list(
        *projects, limit=limit, before=(found[-1].last, found[-1].id) if found else (float("inf"), "")
    ):
        assert len(page) <= limit
        found += page
    assert [each.id for each in found] == [each.id for each in shared_store.sessions.list(project, limit=100)]


def test_the_beginning_of_an_id_finds_the_newest_session_that_begins_so(store):
    for id, last in (("abc1", 1.0), ("abc2", 2.0), ("abd", 3.0), ("ab%", 4.0)):
        store.save(session(id, last=last))
    for prefix, ids in (("abc", ["abc2", "abc1"]), ("abc1", ["abc1"]), ("ab%", ["ab%"]), ("%", [])):
        assert [each.id for each in store.sessions.list(prefix=prefix, limit=5)] == ids


def seen_by(*sessions: str, of: str, title: str = "it broke", **more: object) -> Memory:
    counted = {"seen_in": dict.fromkeys(sessions, 1)}
    return replace(memory(title, kind="failure", of="", detail=counted, **more), session=of)


def told_by(store, *sessions: str) -> dict[str, list[str]]:
    """Return the ids of what each session came to."""
    return {session: [each.id for each in store.memories.of_session(session)] for session in sessions}


@settings(max_examples=40)
@given(kept=st.lists(st.tuples(st.sampled_from("xyz"), st.lists(st.sampled_from("abcd"), min_size=1)), max_size=8))
def test_a_session_tells_exactly_what_the_last_word_on_each_memory_says_it_saw(shared_store, kept):
    run = next(fresh)
    last: dict[str, list[str]] = {}
    for title, sessions in kept:
        named = [f"{run}{each}" for each in sessions]
        shared_store.memories.put([seen_by(*named, of=named[-1], title=f"{title} {run}")])
        last[f"{title} {run}"] = named
    for each in (f"{run}{letter}" for letter in "abcd"):
        titles = [memory.title for memory in shared_store.memories.of_session(each)]
        assert sorted(titles) == sorted(title for title, named in last.items() if each in named)


def test_of_two_that_became_one_a_session_tells_that_one(store):
    one, two = store.memories.put([seen_by("a", of="a", title="one"), seen_by("b", of="b", title="two")])
    united = replace(one, detail={"seen_in": {"a": 1, "b": 1}})
    store.memories.put([united, replace(two, status="superseded", superseded_by=one.id)])
    assert told_by(store, "a", "b") == {"a": [one.id], "b": [one.id]}
    changed = replace(one, detail={"seen_in": {"a": 1}})
    store.memories.put([changed])
    assert told_by(store, "b") == {"b": [two.id]}


def test_the_compaction_of_a_session_finds_what_others_saw_again(store):
    ours = [memory("mine", at=1.0), seen_by("a", "b", of="b", title="seen again", created=2.0)]
    store.memories.put([*ours, seen_by("b", "c", of="c", title="of others")])
    store.memories.put([seen_by("a", "c", of="c", title="aside", status="stale")])
    store.memories.put([seen_by("a", "b", of="b", title="elsewhere", scope="project:q", project="q")])
    query = Query(scopes=("project:p",), session="a", kinds=("decision", "failure"))
    assert [hit.memory.title for hit in store.search.by_recency(query)] == ["seen again", "mine"]
    assert [hit.memory.title for hit in store.search.by_recency(query._replace(limit=1))] == ["seen again"]
    assert [hit.memory.title for hit in store.search.by_recency(query._replace(kinds=("decision",)))] == ["mine"]
    assert store.search.by_recency(query._replace(session="nobody")) == ()


def test_who_saw_what_is_made_anew_with_the_index_and_goes_with_the_memory(store):
    kept = store.memories.put([seen_by("a", "b", of="b"), seen_by("a", "c", of="c", title="other")])
    before = told_by(store, "a", "b", "c")
    assert store.stats.row_counts()["sightings"] == 2
    store.maintenance.reindex()
    assert told_by(store, "a", "b", "c") == before
    live = store.forgetter
    target = live.find(ids=[kept[0].id])
    store.database.write(live.hide, target, at=9.0)
    assert told_by(store, "a", "b") == {"a": [kept[1].id], "b": []}
    assert store.database.write(live.remove, target)["sightings"] == 1
    assert store.stats.row_counts()["sightings"] == 1


def test_what_a_session_was_given_counts_every_memory_once_and_nothing_where_nothing_was(store):
    store.injections.record(injection("one", "dec-1", "dec-2"))
    store.injections.record(injection("two", "dec-1", "fai-1"))
    store.injections.record(injection("nothing", tokens=0))
    store.injections.record(injection("three", "dec-9", of="b"))
    store.injections.record_usage(
        [UsageVerdict("two", "dec-1", used=True, how="words"), UsageVerdict("one", "dec-2", used=False)]
    )
    assert store.injections.usage(session="a") == {"shown": 4, "used": 1, "ignored": 1, "memories": 3, "tokens": 20}
    assert store.injections.usage(session="b") == {"shown": 1, "used": 0, "ignored": 0, "memories": 1, "tokens": 10}
