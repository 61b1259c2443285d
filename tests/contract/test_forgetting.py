"""What every store promises of what was forgotten: its rows are gone, and no way of keeping brings it back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.test_store import an_injection

from foreword.amendments import Amendment
from foreword.store import forgetting
from foreword.store.sqlite import SqliteStore
from foreword.traces import Traces
from foreword.types import Change, Event, Item, Link, Memory, Query, Session


def a_memory(title, **more):
    return Memory("decision", title, **{"project": "here", "created": 5.0, "uid": title, **more})


def an_event(key, at=5.0, session="s", prompt="hello"):
    return Event(key, "claude-code", "UserPromptSubmit", "prompt", session, "here", "/", at, {"prompt": prompt})


def forget(store, at=10.0, **asked):
    live = store.forgetting
    going = live.ask(lambda execute: forgetting.doomed(execute, **asked))
    live.begin(going, at=at)
    removed = live.remove(going)
    live.end({}, who="user", why="", at=at, ids=going.ids)
    return removed


def titles(store):
    return [memory.title for _, memory in store.page()]


def test_every_row_of_a_memory_goes_and_no_other(store):
    one, two = store.keep(
        [a_memory("walrus", files=("a.py", "b.py"), functions=("f",)), a_memory("penguin", files=("b.py",))]
    )
    store.keep([], links=[Link(one.id, "relates-to", two.id)])
    store.touch([one.id, two.id], how="get", at=5.0)
    removed = forget(store, ids=[one.id])
    assert removed["memories"] == removed["links"] == removed["access"] == 1
    assert removed["units"] == 2  # a.py and f; b.py is named by the other
    assert titles(store) == ["penguin"]
    assert store.by_words(Query(scopes=("project:here",), terms=("walrus",))) == ()
    assert [hit.memory.title for hit in store.by_code(Query(scopes=("project:here",)), {"b.py": 1.0})] == ["penguin"]
    (entry,) = store.log(memory=one.id)
    assert (entry.what, entry.who) == ("forget", "user")


def test_what_waited_for_a_full_disk_is_not_written_behind_a_forgetting(tmp_path):
    store = SqliteStore(tmp_path / "memory.db", backups=tmp_path / "backups")
    (one,) = store.keep([a_memory("walrus")])
    store._write(lambda: store._db.pragma("max_page_count", int(store._db.pragma("page_count")) + 5))
    told = an_injection("late", items=(Item(one.id, "index", 0.5, 3, {}),), text=f"walrus {'x' * 100_000}")
    store.record(told)
    assert store.injection("late") is None
    forget(store, ids=[one.id])
    store._write(lambda: store._db.pragma("max_page_count", 10_000))
    store.set_mark("space", "again", at=11.0)
    assert store.injection("late") is None
    assert "let go" in " ".join(store.problems())
    store.close()


def test_what_was_forgotten_is_not_brought_back_by_its_source_nor_by_its_words(store):
    (one,) = store.keep([a_memory("Use Valkey, not Redis", body="The licence.")])
    forget(store, ids=[one.id])
    same = replace(one, id="", uid="from elsewhere", title="use valkey not redis!", body="the licence")
    assert store.bring([a_memory("other wording", uid=one.uid), same, a_memory("another")])[0].title == "another"
    assert titles(store) == ["another"]
    assert store.settle(Session("s", "h", "here", "/", 1.0, 9.0), memories=[same]) == ()
    assert store.keep([same]) == ()


def test_what_is_said_anew_after_it_was_forgotten_is_kept(store):
    (one,) = store.keep([a_memory("Use Valkey, not Redis")])
    forget(store, ids=[one.id], at=10.0)
    assert store.keep([replace(one, id="", created=11.0)])[0].title == one.title
    forget(store, ids=[titled.id for _, titled in store.page()], at=12.0)
    assert store.bring([replace(one, id="", created=13.0)]) == ()


def test_a_forgotten_session_is_not_told_again_but_may_go_on(store):
    store.append([an_event("a"), an_event("b", session="t")])
    store.keep([a_memory("walrus", session="s"), a_memory("penguin", session="t")])
    store.note_changes([Change("here", "a.py", "f", "NEW", session="s", at=5.0)])
    removed = forget(store, session="s", at=10.0)
    assert (removed["events"], removed["sessions"], removed["memories"], removed["changes"]) == (1, 1, 1, 1)
    assert store.append([an_event("a"), an_event("older, another key", at=9.0)]) == (False, False)
    told = Session("s", "claude-code", "here", "/", 1.0, 9.0)
    change = Change("here", "a.py", "f", "NEW", session="s", at=5.0)
    assert store.bring([a_memory("other words", session="s")], session=told, changes=[change]) == ()
    assert (store.session("s"), store.changed("here", limit=9)) == (None, ())
    assert store.append([an_event("a", at=11.0)]) == (True,)
    assert store.session("s").events == 1
    assert store.session("t").events == 1


def test_all_of_a_project_goes_and_it_may_be_used_anew(store):
    store.append([an_event("a"), replace(an_event("b"), project="there", session="t")])
    store.keep([a_memory("walrus"), a_memory("for all", scope="universal"), a_memory("penguin", project="there")])
    store.set_mark("git:here", "abc", at=5.0)
    forget(store, projects=["here"])
    assert titles(store) == ["penguin"]
    assert [session.id for session in store.sessions()] == ["t"]
    assert store.mark("git:here") == ""
    store.keep([a_memory("a new day", created=11.0)])
    assert [hit.memory.title for hit in store.by_recency(Query(scopes=("project:here",)))] == ["a new day"]


def test_the_log_stays_without_its_texts_and_nothing_of_it_is_taken_back(store):
    one, two = store.keep([a_memory("walrus"), a_memory("penguin")])
    both = ((one, replace(one, title="seal")), (two, replace(two, title="auk")))
    (entry,) = store.amend([Amendment("revise", "walrus was wrong", changed=both[:1])], who="user", at=6.0)
    (shared,) = store.amend(
        [Amendment("merge", changed=((store.by_id([one.id])[0], replace(one, body="x", title="seal")), both[1]))],
        who="tidy",
        at=7.0,
    )
    forget(store, ids=[one.id])
    now = {each.number: each for each in store.log()}
    assert (now[entry.number].patch, now[entry.number].why) == ({}, "")
    assert list(now[shared.number].patch["changed"]) == [two.id]
    refused = store.undo(tuple(now.values()), who="user", at=20.0).refused
    assert "cannot be taken back" in refused[entry.number]
    assert "cannot be taken back" in refused[max(now)]


def test_an_injection_stays_without_the_forgotten_item(store):
    one, two = store.keep([a_memory("walrus"), a_memory("penguin")])
    items = tuple(Item(memory=each.id, layer="index", score=1.0, tokens=3, why={}) for each in (one, two))
    store.record(replace(an_injection("inj-1"), items=items), at_once=True)
    forget(store, ids=[one.id])
    assert [item.memory for item in store.injection("inj-1").items] == [two.id]


def test_a_backup_takes_the_tombstones_and_can_be_opened_again(tmp_path):
    live, copied = (SqliteStore(tmp_path / name, backups=tmp_path / "backups") for name in ("memory.db", "copy.db"))
    (one,) = live.keep([a_memory("walrus in the fog", session="s")])
    copied.keep([replace(one, title="walrus")])
    copied.close()
    going = live.forgetting.ask(lambda execute: forgetting.doomed(execute, ids=[one.id]))
    live.forgetting.begin(going, at=10.0)
    stones = live.forgetting.stones()
    live.close()
    copy = forgetting.Copy(tmp_path / "copy.db")
    traces = Traces()
    cutter = forgetting.Cutter(going, known=traces, kin=traces, rest=traces)
    assert copy.forget(going, cutter, stones=stones, at=10.0)["memories"] == 1
    copy.close()
    store = SqliteStore(tmp_path / "copy.db", backups=tmp_path / "backups")
    assert (store.problems(), titles(store)) == ((), [])
    assert store.bring([a_memory("walrus in the fog")]) == ()
    store.close()


def test_a_key_is_made_once_and_hashes_tell_nothing_of_the_text(store):
    (one, two) = store.keep([a_memory("walrus in the fog"), a_memory("penguin in the sun")])
    forget(store, ids=[one.id])
    first = store.forgetting.stones()
    forget(store, ids=[two.id])
    second = store.forgetting.stones()
    assert first.key == second.key
    assert set(first.rows) < set(second.rows)
    assert not any(b"walrus" in hash for hash, _, _ in second.rows)


@pytest.mark.parametrize("words", ["WALRUS fog", "fog, licence"])
def test_words_are_looked_for_in_every_text_of_a_memory_whatever_their_case(store, words):
    store.keep([a_memory("Walrus", detail={"why": "the fog, licence"}), a_memory("fog", project="there")])
    going = store.forgetting.ask(lambda execute: forgetting.doomed(execute, projects=["here"], match=words))
    assert (len(going.ids), going.projects) == (1, ())
