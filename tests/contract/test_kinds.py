"""What every store promises to whoever asks for all memories of a kind, also for what is put aside."""

from __future__ import annotations

import itertools

from foreword.types import STATUSES, Memory

KINDS = ("note", "preference", "summary")


def filled(store):
    """One memory of each kind, status and scope; those that can be told of: what is being forgotten cannot."""
    every = itertools.product(KINDS, STATUSES, ("project:here", "project:there", "universal"))
    kept = store.keep(
        [
            Memory(kind, f"{kind} {status} {scope}", scope=scope, status=status, created=float(number))
            for number, (kind, status, scope) in enumerate(every)
        ]
    )
    return [each for each in kept if each.status != "forgotten"]


def test_all_of_a_kind_whatever_their_status_newest_first(store):
    wanted = [each for each in filled(store) if each.kind == "note"]
    assert list(store.of_kinds(("note",))) == wanted[::-1]


def test_only_of_these_scopes_kinds_and_statuses(store):
    every = filled(store)
    for scopes, kinds, statuses in itertools.product(
        (("project:here",), ("project:here", "universal")),
        (("note",), ("note", "preference")),
        (("active",), ("proposed",), ("active", "discarded"), ("stale", "superseded")),
    ):
        wanted = {each.id for each in every if each.scope in scopes and each.kind in kinds and each.status in statuses}
        got = store.of_kinds(kinds, scopes=scopes, statuses=statuses)
        assert {each.id for each in got} == wanted


def test_at_most_the_limit_and_the_newest_of_all(store):
    every = filled(store)
    newest = sorted((each for each in every if each.kind in ("note", "summary")), key=lambda each: -each.created)[:4]
    assert list(store.of_kinds(("note", "summary"), limit=4)) == newest


def test_nothing_where_there_is_nothing(store):
    assert store.of_kinds(("note",)) == ()
    assert store.of_kinds((), scopes=("project:here",)) == ()


def test_how_many_are_active_is_counted(store):
    every = filled(store)
    for kind, scopes in itertools.product(("note", "preference"), ((), ("project:here",), ("project:nowhere",))):
        wanted = [
            each
            for each in every
            if each.kind == kind and each.status == "active" and (not scopes or each.scope in scopes)
        ]
        assert store.how_many(kind, scopes=scopes) == len(wanted)
