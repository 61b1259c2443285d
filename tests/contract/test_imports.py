"""What an import may rely on: ids that are free are kept, others are named by uid, and all rows come or none."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from foreword.models import Change, Event, Link, Memory, Session

OLD = Memory(kind="decision", title="One file", uid="u-old", project="p", created=1.0, confirmed=1.0)
NEW = Memory(kind="decision", title="Two files", uid="u-new", project="p", created=2.0, confirmed=2.0)


def test_ids_and_uids_come_with_the_rows(make_store):
    # An id that is free is kept and one that is taken is not.
    store = make_store()
    (first,) = store.save(imported=True, memories=[replace(OLD, id="dec-00000000")])
    (second,) = store.save(imported=True, memories=[replace(NEW, id="dec-00000000")])
    (third,) = store.save(imported=True, memories=[replace(NEW, uid="u-third", id="not-00000001")])
    assert first.id == "dec-00000000"
    assert second.id.startswith("dec-")
    assert second.id != first.id
    assert third.id.startswith("dec-")  # an id tells the kind
    # Others may be named by uid also those that were there before.
    store = make_store()
    (new,) = store.save(imported=True, memories=[NEW])
    memory = replace(OLD, status="superseded", superseded_by="u-new")
    (old,) = store.save(imported=True, memories=[memory], links=[Link("u-new", "supersedes", "u-old")])
    assert store.memories.get_by_uid(["u-old"])[0].superseded_by == new.id
    assert store.memories.links(old.id) == (Link(new.id, "supersedes", old.id),)
    # All rows come or none.
    store = make_store()
    with contextlib.suppress(Exception):
        store.save(imported=True, memories=[OLD, replace(NEW, kind="nonsense")])
    assert store.memories.get_by_uid(["u-old", "u-new"]) == ()


def test_sessions_and_changes_are_kept(make_store):
    # A session that was distilled elsewhere is so here.
    store = make_store()
    event = Event(key="k", host="h", name="n", kind="prompt", session="s", project="p", cwd="/", at=3.0, payload={})
    session = Session(id="s", host="h", project="p", cwd="/", started=3.0, last=3.0, events=1, newest=77, extracted=77)
    store.events.append([event])
    store.save(imported=True, memories=[], session=session)
    (kept,) = store.sessions.list("p")
    assert (kept.events, kept.extracted) == (1, kept.newest)
    assert store.sessions.list(pending=True) == ()
    # An older change does not hide a newer one.
    store = make_store()
    newer = Change(project="p", file="a.py", function="f", what="DELETED", at=9.0)
    store.save(changes=[newer])
    store.save(imported=True, memories=[], changes=[replace(newer, what="NEW", at=8.0)])
    assert store.sessions.changes("p", limit=5) == (newer,)
