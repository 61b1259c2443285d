"""What every store promises of what was forgotten: its rows are gone, and no way of keeping brings it back."""

from __future__ import annotations

import shutil
from dataclasses import replace

from tests.contract.test_store import an_injection

from foreword.audit import MemoryChange
from foreword.models import Change, Event, Item, Link, Memory, Query, Session
from foreword.store import Store
from foreword.store.forget import Backup
from foreword.store.verbatim import Cutter


def a_memory(title, **more):
    return Memory("decision", title, **{"project": "here", "created": 5.0, "uid": title, **more})


def an_event(key, at=5.0, session="s", prompt="hello"):
    return Event(key, "claude-code", "UserPromptSubmit", "prompt", session, "here", "/", at, {"prompt": prompt})


def forget(store, at=10.0, **criteria):
    live = store.forgetter
    target = live.find(**criteria)
    store.database.write(live.hide, target, at=at)
    store.database.flush()
    removed = store.database.write(live.remove, target)
    store.database.write(store.audit.note, "forget", "", {}, who="user", at=at, project="", ids=target.ids)
    return removed


def titles(store):
    return [memory.title for _, memory in store.memories.page()]


def test_every_row_of_a_memory_goes_and_no_other(store):
    one, two = store.memories.put(
        [a_memory("walrus", files=("a.py", "b.py"), functions=("f",)), a_memory("penguin", files=("b.py",))]
    )
    store.memories.put([], links=[Link(one.id, "relates-to", two.id)])
    store.memories.record_access([one.id, two.id], how="get", at=5.0)
    removed = forget(store, ids=[one.id])
    assert removed["memories"] == removed["links"] == removed["access"] == 1
    assert removed["units"] == 2  # a.py and f; b.py is named by the other
    assert titles(store) == ["penguin"]
    assert store.search.by_words(Query(scopes=("project:here",), terms=("walrus",))) == ()
    assert [hit.memory.title for hit in store.search.by_code(Query(scopes=("project:here",)), {"b.py": 1.0})] == [
        "penguin"
    ]
    (entry,) = store.audit.list(memory=one.id)
    assert (entry.what, entry.who) == ("forget", "user")


def test_what_waited_for_a_full_disk_is_not_written_behind_a_forgetting(tmp_path):
    store = Store(tmp_path / "memory.db", backups=tmp_path / "backups")
    (one,) = store.memories.put([a_memory("walrus")])
    store.database.write(
        lambda: store.database.connection.pragma(
            "max_page_count", int(store.database.connection.pragma("page_count")) + 5
        )
    )
    injection = an_injection("late", items=(Item(one.id, "index", 0.5, 3, {}),), text=f"walrus {'x' * 100_000}")
    store.injections.record(injection)
    assert store.injections.get("late") is None
    forget(store, ids=[one.id])
    store.database.write(lambda: store.database.connection.pragma("max_page_count", 10_000))
    store.set_checkpoint("space", "again", at=11.0)
    assert store.injections.get("late") is None
    store.close()


def test_imports_and_extraction_do_not_bring_it_back_but_what_is_said_anew_is_kept(store):
    (one,) = store.memories.put([a_memory("Use Valkey, not Redis", body="The licence.")])
    forget(store, ids=[one.id])
    same = replace(one, id="", uid="from elsewhere", title="use valkey not redis!", body="the licence")
    assert (
        store.save(imported=True, memories=[a_memory("other wording", uid=one.uid), same, a_memory("another")])[0].title
        == "another"
    )
    assert titles(store) == ["another"]
    assert store.save(Session("s", "h", "here", "/", 1.0, 9.0), memories=[same]) == ()
    assert store.memories.put([same]) == ()
    (again,) = store.memories.put([replace(one, id="", created=11.0)])
    forget(store, ids=[again.id], at=12.0)
    assert store.save(imported=True, memories=[replace(one, id="", created=13.0)]) == ()


def test_a_forgotten_session_is_not_told_again_but_may_go_on(store):
    store.events.append([an_event("a"), an_event("b", session="t")])
    store.memories.put([a_memory("walrus", session="s"), a_memory("penguin", session="t")])
    store.save(changes=[Change("here", "a.py", "f", "NEW", session="s", at=5.0)])
    removed = forget(store, session="s", at=10.0)
    assert (removed["events"], removed["sessions"], removed["memories"], removed["changes"]) == (1, 1, 1, 1)
    assert store.events.append([an_event("a"), an_event("older, another key", at=9.0)]) == (False, False)
    session = Session("s", "claude-code", "here", "/", 1.0, 9.0)
    change = Change("here", "a.py", "f", "NEW", session="s", at=5.0)
    assert (
        store.save(imported=True, memories=[a_memory("other words", session="s")], session=session, changes=[change])
        == ()
    )
    assert (store.sessions.get("s"), store.sessions.changes("here", limit=9)) == (None, ())
    assert store.events.append([an_event("a", at=11.0)]) == (True,)
    assert store.sessions.get("s").events == 1
    assert store.sessions.get("t").events == 1


def test_all_of_a_project_goes_and_it_may_be_used_anew(store):
    store.events.append([an_event("a"), an_event("b")._replace(project="there", session="t")])
    store.memories.put(
        [a_memory("walrus"), a_memory("for all", scope="universal"), a_memory("penguin", project="there")]
    )
    store.set_checkpoint("git:here", "abc", at=5.0)
    forget(store, projects=["here"])
    assert titles(store) == ["penguin"]
    assert [session.id for session in store.sessions.list()] == ["t"]
    assert store.checkpoint("git:here") == ""
    store.memories.put([a_memory("a new day", created=11.0)])
    assert [hit.memory.title for hit in store.search.by_recency(Query(scopes=("project:here",)))] == ["a new day"]


def test_the_log_stays_without_its_texts_and_nothing_of_it_is_taken_back(store):
    one, two = store.memories.put([a_memory("walrus"), a_memory("penguin")])
    both = ((one, replace(one, title="seal")), (two, replace(two, title="auk")))
    (entry,) = store.audit.apply([MemoryChange("revise", "walrus was wrong", changed=both[:1])], who="user", at=6.0)
    (shared,) = store.audit.apply(
        [
            MemoryChange(
                "merge", changed=((store.memories.get([one.id])[0], replace(one, body="x", title="seal")), both[1])
            )
        ],
        who="tidy",
        at=7.0,
    )
    forget(store, ids=[one.id])
    now = {each.number: each for each in store.audit.list()}
    assert (now[entry.number].patch, now[entry.number].why) == ({}, "")
    assert now[shared.number].patch == {}
    refused = store.audit.undo(tuple(now.values()), who="user", at=20.0).refused
    assert "cannot be taken back" in refused[entry.number]
    assert "cannot be taken back" in refused[max(now)]


def test_an_injection_that_told_it_stays_without_the_item_the_text_and_the_terms(store):
    one, two = store.memories.put([a_memory("walrus"), a_memory("penguin")])
    items = tuple(Item(memory=each.id, layer="index", score=1.0, tokens=3, why={}) for each in (one, two))
    for id, some in (("both", items), ("other", items[1:])):
        store.injections.record(
            replace(an_injection(id), items=some, text="as it was told", terms=("sea",)), at_once=True
        )
    forget(store, ids=[one.id])
    both, other = store.injections.get("both"), store.injections.get("other")
    assert ([item.memory for item in both.items], both.text, both.terms) == ([two.id], "", ())
    assert (other.text, other.terms) == ("as it was told", ("sea",))


def test_copies_in_other_memories_are_cut_or_go_with_it(store):
    fact = "The payroll database is at ten dot four"
    one, summary, same, other = store.memories.put(
        [
            a_memory("Use Valkey", body=f"{fact}.", session="s", detail={"why": "so be it"}),
            a_memory("Done", session="s", detail={"decisions": ["Use Valkey", "Use Vite"], "learned": f"that {fact}!"}),
            a_memory(fact.upper(), project="there", trust="agent"),
            a_memory("Use Valkey for locks", body="So be it.", session="t"),
        ]
    )
    live = store.forgetter
    target = live.find(ids=[one.id])
    texts = list(live.texts(target))
    cutter = Cutter(target, texts)
    of_agent = replace(target, only="here")
    assert live.with_copies(of_agent, cutter.sentences) == of_agent
    assert live.with_copies(target, cutter.sentences).ids == (one.id, same.id)
    store.database.write(live.hide, target, at=10.0)
    store.maintenance.rewrite(cutter.cell)
    assert cutter.cut == {summary.uid, same.uid}
    changed, untouched = store.memories.get([summary.id, other.id])
    assert changed.detail == {"decisions": ["Use Vite"], "learned": "that [forgotten]!"}
    assert untouched == other


def test_a_backup_is_cleaned_and_refuses_what_was_forgotten(tmp_path):
    live = Store(tmp_path / "memory.db", backups=tmp_path / "backups")
    (one, two) = live.memories.put([a_memory("walrus in the fog", session="s"), a_memory("penguin")])
    shutil.copytree(tmp_path, tmp_path / "copied")
    target = live.forgetter.find(ids=[one.id])
    live.database.write(live.forgetter.hide, target, at=10.0)
    path = tmp_path / "copied" / "memory.db"
    copy = Backup(path)
    cutter = Cutter(target, [one.title])
    assert copy.forget(target, cutter.cell, cutter.cut, live=live.database.query, at=10.0) >= 1
    copy.db.close()
    live.close()
    assert b"walrus" not in path.read_bytes()
    store = Store(path, backups=tmp_path / "backups")
    assert (store.database.problems(), titles(store)) == ((), [two.title])
    assert store.save(imported=True, memories=[a_memory("walrus in the fog")]) == ()
    store.close()


def test_a_key_is_made_once_and_hashes_tell_nothing_of_the_text(store):
    (one, two) = store.memories.put([a_memory("walrus in the fog"), a_memory("penguin in the sun")])
    forget(store, ids=[one.id])
    key, stones = ("SELECT value FROM meta WHERE key = 'tombstones'", "SELECT hash FROM tombstones")
    first = [store.database.query(sql) for sql in (key, stones)]
    forget(store, ids=[two.id])
    second = [store.database.query(sql) for sql in (key, stones)]
    assert first[0] == second[0]
    assert set(first[1]) < set(second[1])
    assert not any(b"walrus" in hash for (hash,) in second[1])
