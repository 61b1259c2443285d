"""What every store promises of projects: an alias can be undone; a merge moves all, and cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foreword.models import (
    Change,
    Event,
    Injection,
    Item,
    Link,
    Memory,
    Project,
    Query,
    Vector,
    agent_memory_uid,
    moved,
)
from foreword.store.projects import TABLES

OLD, NEW = "dir:/old", "git:example.com/a/new"


def a_memory(project: str, title: str, kind: str = "decision", **more: object) -> Memory:
    return replace(Memory(kind, title, project=project, created=5.0, confirmed=5.0), **more)


def an_event(project: str, session: str, number: int) -> Event:
    return Event(
        f"{project}{session}{number}", "h", "n", "tool", session, project, "/", float(number), {}, lasting=True
    )


def filled(store):
    """Two projects with something of theirs in every table."""
    ours = store.memories.put([a_memory(NEW, "walrus of ours", uid=f"dec:{NEW}:1", seen=2, body="first")])
    theirs = store.memories.put(
        [
            a_memory(OLD, "walrus of theirs", uid=f"dec:{OLD}:1", seen=3, body="second", files=("a.py",)),
            a_memory(OLD, "walrus alone", uid=f"sum:{OLD}:s1", kind="summary", session="s1", files=("a.py",)),
            a_memory(OLD, "walrus by hand", files=("b.py",)),
            a_memory(OLD, "walrus said", uid=agent_memory_uid(project=OLD, kind="decision", title="walrus said")),
            a_memory(OLD, "walrus everywhere", scope="universal"),
        ]
    )
    store.memories.add_vectors(theirs, [Vector("m", 1.0, bytes([number, 1])) for number in range(5)])
    store.memories.put([], links=[Link(theirs[0].id, "relates-to", theirs[1].id)])
    store.events.append([an_event(OLD, "s1", 1), an_event(OLD, "s1", 2), an_event(NEW, "s2", 3)])
    store.save(changes=[Change(OLD, "a.py", "f", "NEW", session="s1"), Change(NEW, "a.py", "g", "NEW", session="s2")])
    item = Item(theirs[1].id, "past", 1.0, 3, {})
    store.injections.record(Injection("inj-1", "prompt", "s1", OLD, "h", 1.0, 3, 500, 0.1, {}, {}, (item,), text="x"))
    nothing = {"why": "below", "nearest": theirs[1].id}
    store.injections.record(Injection("inj-2", "prompt", "s1", OLD, "h", 2.0, 0, 0, 0.0, {}, {}, (), **nothing))
    return ours, theirs


def everything(store, key):
    """What a project is told to hold, by any way that asks for it."""
    scopes = (f"project:{key}",)
    found = store.search.by_words(Query(scopes=scopes, terms=("walrus",), limit=50))
    return {
        "words": sorted(hit.memory.id for hit in found),
        "recent": sorted(hit.memory.id for hit in store.search.by_recency(Query(scopes=scopes, limit=50))),
        "code": sorted(hit.memory.id for hit in store.search.by_code(Query(scopes=scopes), {"a.py": 1.0, "b.py": 1.0})),
        "near": sorted(
            hit.memory.id
            for hit in store.search.by_vector(Query(scopes=scopes, vector=Vector("m", 1.0, bytes([1, 1]))))
        ),
        "sessions": [each.id for each in store.sessions.list(key)],
        "changes": sorted(each.function for each in store.sessions.changes(key, limit=9)),
        "injections": [each.id for each in store.injections.list(project=key)],
        "silences": [each.id for each in store.injections.list(project=key, empty=True)],
        "page": {memory.id: memory for _, memory in store.memories.page(scopes=scopes)},
    }


def test_a_merge_moves_everything_by_every_way_that_asks_for_it(store):
    ours, theirs = filled(store)
    got = store.projects.merge(OLD, into=NEW, who="user", at=9.0)
    assert not any(everything(store, OLD).values())
    now = everything(store, NEW)
    alone = sorted([ours[0].id, *(each.id for each in theirs[1:4])])
    assert now["words"] == now["recent"] == alone
    assert now["near"] == sorted(each.id for each in theirs[1:4])  # what ours means was never told
    assert now["code"] == sorted(each.id for each in theirs[1:3])
    assert now["sessions"] == ["s2", "s1"]
    assert now["changes"] == ["f", "g"]
    assert now["injections"] == ["inj-1"]
    assert now["silences"] == ["inj-2"]
    assert store.memories.links(theirs[0].id) == (Link(theirs[0].id, "relates-to", theirs[1].id),)
    assert store.memories.get([theirs[4].id])[0].project == NEW  # it counts everywhere, and came from here
    assert got.patch["moved"]["rows"]["memories"] == 4


def test_after_a_merge_the_same_memory_is_found_again_under_its_uid(store):
    _, theirs = filled(store)
    store.projects.merge(OLD, into=NEW, who="user", at=9.0)
    uid = agent_memory_uid(project=NEW, kind="decision", title="Walrus  said")
    assert [each.id for each in store.memories.get_by_uid([f"sum:{NEW}:s1", uid])] == [theirs[1].id, theirs[3].id]


def test_of_two_that_are_the_same_one_stays_active_and_nothing_is_lost(store):
    ours, theirs = filled(store)
    store.projects.merge(OLD, into=NEW, who="user", at=9.0)
    one, other = store.memories.get([ours[0].id, theirs[0].id])
    assert (one.body, one.status) == ("first", "active")
    assert (other.status, other.superseded_by, other.scope) == ("superseded", one.id, f"project:{NEW}")


def test_a_merge_is_logged_and_cannot_be_taken_back(store):
    filled(store)
    got = store.projects.merge(OLD, into=NEW, who="user", at=9.0)
    after = everything(store, NEW)
    assert store.projects.all()[OLD].alias_of == NEW
    (entry,) = store.audit.list(limit=1)
    assert (entry, entry.what) == (got, "merge project")
    assert set(entry.patch["moved"]["rows"]) == {"memories", *TABLES}
    assert "stay one" in store.audit.undo([got], who="user", at=10.0).refused[got.number]
    assert everything(store, NEW) == after


def test_a_project_is_known_by_its_first_name_and_by_every_folder_it_was_seen_in(store):
    for root in ("/a", "/b", "/a"):
        store.projects.see([Project(NEW, "new", root)], at=5.0)
    store.projects.see([Project(NEW, "other", "")], at=4.0)
    known = store.projects.all()[NEW]
    assert (known.name, known.root, known.roots, known.first, known.last) == ("new", "/a", ("/a", "/b"), 5.0, 5.0)


def test_what_a_project_holds_is_counted_by_kind(store):
    filled(store)
    held = store.projects.contents()
    assert dict(held[OLD].kinds) == {"decision": 3, "summary": 1}
    assert (held[OLD].memories, held[OLD].sessions, held[NEW].sessions) == (4, 1, 1)


@pytest.mark.parametrize(
    ("uid", "there"),
    [
        (f"dec:{OLD}:abc", f"dec:{NEW}:abc"),
        (f"prj:{OLD}", f"prj:{NEW}"),
        (f"chg:{OLD}:a.py:f", f"chg:{NEW}:a.py:f"),
        (f"dec:{OLD}er:abc", f"dec:{OLD}er:abc"),
        ("0123abcd", "0123abcd"),
    ],
)
def test_a_uid_follows_its_project(uid, there):
    assert moved(uid, old=OLD, new=NEW) == there
    assert moved(there, old=NEW, new=OLD) == uid
