"""What an import may rely on: ids that are free are kept, others are named by uid, and the mark comes with the rows."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from foreword.store.sqlite import Store
from foreword.types import Change, Event, Link, Memory, Session

OLD = Memory(kind="decision", title="One file", uid="u-old", project="p", created=1.0, confirmed=1.0)
NEW = Memory(kind="decision", title="Two files", uid="u-new", project="p", created=2.0, confirmed=2.0)


def test_an_id_that_is_free_is_kept_and_one_that_is_taken_is_not(store: Store):
    (first,) = store.bring([replace(OLD, id="dec-00000000")])
    (second,) = store.bring([replace(NEW, id="dec-00000000")])
    (third,) = store.bring([replace(NEW, uid="u-third", id="not-00000001")])
    assert first.id == "dec-00000000"
    assert second.id.startswith("dec-")
    assert second.id != first.id
    assert third.id.startswith("dec-")  # an id tells the kind


def test_others_may_be_named_by_uid_also_those_that_were_there_before(store: Store):
    (new,) = store.bring([NEW])
    told = replace(OLD, status="superseded", superseded_by="u-new")
    (old,) = store.bring([told], links=[Link("u-new", "supersedes", "u-old")])
    assert store.by_uid(["u-old"])[0].superseded_by == new.id
    assert store.linked(old.id) == (Link(new.id, "supersedes", old.id),)


def test_the_mark_comes_with_the_rows_or_not_at_all(store: Store):
    store.bring([OLD], mark=("git:p", "half"), at=5.0)
    assert store.mark("git:p") == "half"
    with contextlib.suppress(Exception):
        store.bring([replace(NEW, kind="nonsense")], mark=("git:p", "all"), at=6.0)
    assert (store.mark("git:p"), store.by_uid(["u-new"])) == ("half", ())


def test_a_session_that_was_distilled_elsewhere_is_so_here(store: Store):
    event = Event(key="k", host="h", name="n", kind="prompt", session="s", project="p", cwd="/", at=3.0, payload={})
    told = Session(id="s", host="h", project="p", cwd="/", started=3.0, last=3.0, events=1, newest=77, distilled=77)
    store.bring([], events=[event], session=told)
    store.bring([], events=[event], session=told)
    (kept,) = store.sessions("p")
    assert (kept.events, kept.distilled) == (1, kept.newest)
    assert store.undistilled() == ()


def test_an_older_change_does_not_hide_a_newer_one(store: Store):
    newer = Change(project="p", file="a.py", function="f", what="DELETED", at=9.0)
    store.note_changes([newer])
    store.bring([], changes=[replace(newer, what="NEW", at=8.0)])
    assert store.changed("p", limit=5) == (newer,)


def test_what_is_brought_newest_first_stands_in_the_order_of_time_all_the_same(store: Store):
    def commit(number: int) -> Memory:
        return Memory(kind="note", title=f"{number}", uid=f"c{number}", project="p", created=float(number))

    def brought(*numbers: int, left: int, row: str = "walk") -> None:
        store.bring([commit(number) for number in numbers], row=(row, left))

    brought(9, 8, 7, left=6)
    store.keep([commit(10)])  # somebody works meanwhile
    brought(6, 5, left=4)
    brought(12, 11, left=0, row="a later walk")
    brought(4, 3, 2, left=1)
    brought(1, left=0)
    assert [memory.title for _, memory in store.page()] == [str(number) for number in range(1, 13)]


def test_a_row_that_is_longer_than_was_said_goes_on_above(store: Store):
    store.bring([replace(NEW, uid=f"a{number}") for number in range(3)], row=("walk", 1))
    store.bring([replace(OLD, uid=f"b{number}") for number in range(3)], row=("walk", 0))
    assert len(store.page()) == 6
