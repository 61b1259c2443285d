"""What a store tells of many sessions at once: in order, page by page, what came of each and what each was given."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.store.judged import Verdict
from foreword.store.timeline import Given
from foreword.types import Change, Event, Injection, Item, Memory, Session

fresh = itertools.count()


def session(id: str, *, last: float = 10.0, project: str = "p") -> Session:
    return Session(id=id, host="codex", project=project, cwd="/p", started=1.0, last=last)


def memory(title: str, *, kind: str = "decision", of: str = "a", at: float = 1.0, **more: object) -> Memory:
    uid = f"{kind}:{of}:{title}"
    return Memory(kind=kind, title=title, uid=uid, scope="project:p", project="p", session=of, created=at, **more)


def change(function: str, *, of: str = "a", at: float = 1.0, project: str = "p") -> Change:
    return Change(project=project, file="app.py", function=function, what="NEW", session=of, at=at)


def injection(id: str, *memories: str, of: str = "a", tokens: int = 10) -> Injection:
    items = tuple(Item(memory=each, layer="rules", score=1.0, tokens=5, why={}) for each in memories)
    return Injection(id=id, moment="prompt", session=of, project="p", host="codex", at=5.0, tokens=tokens, budget=500,
                     build_ms=1.0, layers={}, skipped={}, items=items)  # fmt: skip


def test_an_empty_store_has_no_sessions_and_nothing_came_of_them(store):
    assert store.sessions_before(0.0, limit=5) == ()
    assert store.came_of(["a"], kinds=["decision"], each=5) == ()
    assert store.changed_in([("p", "a")], each=5) == {}
    assert store.given_to(["a"]) == {}
    assert store.events_before("a", 99, limit=5) == ()
    assert store.session_like("a") is None


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
        shared_store.settle(session(f"{project}-{number}", last=last, project=project))
    found: list[Session] = []
    while page := shared_store.sessions_before(
        found[-1].last if found else 0.0, found[-1].id if found else "", projects=projects, limit=limit
    ):
        assert len(page) <= limit
        found += page
    assert [each.id for each in found] == [each.id for each in shared_store.sessions(project, limit=100)]


def test_sessions_of_all_projects_come_where_none_is_named(store):
    for id, project, last in (("a", "p", 1.0), ("b", "q", 3.0), ("c", "r", 2.0)):
        store.settle(session(id, project=project, last=last))
    assert [each.id for each in store.sessions_before(0.0, limit=9)] == ["b", "c", "a"]
    assert [each.id for each in store.sessions_before(3.0, "b", limit=9)] == ["c", "a"]
    assert [each.id for each in store.sessions_before(0.0, projects=["p", "r"], limit=9)] == ["c", "a"]


def test_the_beginning_of_an_id_finds_the_newest_session_that_begins_so(store):
    for id, last in (("abc1", 1.0), ("abc2", 2.0), ("abd", 3.0), ("ab%", 4.0)):
        store.settle(session(id, last=last))
    assert store.session_like("abc").id == "abc2"
    assert store.session_like("abc1").id == "abc1"
    assert store.session_like("ab%").id == "ab%"
    assert store.session_like("%") is None
    assert store.session_like("") is None


def test_what_came_of_sessions_is_what_each_alone_came_to_and_no_more_of_a_kind_than_asked_for(store):
    store.keep([memory(f"choice {number}", of=of, at=number) for number in range(4) for of in ("a", "b")])
    store.keep([memory("it broke", kind="failure"), memory("other", of="c"), memory("seen", kind="observation")])
    store.keep([memory("no longer", status="superseded", at=9.0), memory("nobody's", of="")])
    found = store.came_of(["a", "b", ""], kinds=["decision", "failure"], each=3)
    told = [(each.session, each.title) for each in found]
    assert sorted(told) == [
        *(("a", f"choice {number}") for number in range(3)),
        ("a", "it broke"),
        *(("b", f"choice {number}") for number in range(3)),
    ]
    assert [each.created for each in found] == sorted(each.created for each in found)
    whole = store.came_of(["a"], kinds=["decision"], each=99)
    assert [each.title for each in whole][-1] == "no longer"
    assert whole == tuple(each for each in store.of_session("a") if each.kind == "decision")


def test_what_sessions_changed_comes_newest_first_with_how_much_there_is_in_all(store):
    store.note_changes([change(f"f{number}", at=number) for number in range(5)])
    store.note_changes([change("elsewhere", project="q", at=9.0), change("g", of="b"), change("h", of="c")])
    found = store.changed_in([("p", "a"), ("p", "b"), ("p", "nobody"), ("p", "a")], each=2)
    assert {id: ([each.function for each in of.changes], of.count) for id, of in found.items()} == {
        "a": (["f4", "f3"], 5),
        "b": (["g"], 1),
    }
    both = store.changed_in([("p", "a"), ("q", "a")], each=2)["a"]
    assert ([each.function for each in both.changes], both.count) == (["elsewhere", "f4"], 6)


def test_what_sessions_were_given_counts_every_memory_once_and_no_silence(store):
    store.record(injection("one", "dec-1", "dec-2"))
    store.record(injection("two", "dec-1", "fai-1"))
    store.record(injection("silence", tokens=0))
    store.record(injection("three", "dec-9", of="b"))
    store.judge([Verdict("two", "dec-1", used=True, how="words"), Verdict("one", "dec-2", used=False)])
    found = store.given_to(["a", "b", "nobody"])
    assert found == {"a": Given(injections=2, tokens=20, items=3, used=1), "b": Given(1, 10, 1, 0)}


def test_events_come_backwards_from_a_number(store):
    store.append([
        Event(key=f"k{number}", host="codex", name="Stop", kind="stop", session=of, project="p", cwd="/p",
              at=float(number), payload={"n": number})
        for number, of in enumerate(["a", "b", "a", "a"])
    ])  # fmt: skip
    every = store.events("a")
    last = store.session("a").newest
    assert store.events_before("a", last + 1, limit=9) == every[::-1]
    assert store.events_before("a", last, limit=1) == every[1:2]
