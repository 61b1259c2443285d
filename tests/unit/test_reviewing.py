"""The user's word about what waits: done all or nothing, logged as the user's, and taken back like everything else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from foreword.errors import BadRequest, NotFound
from foreword.models import KINDS, STATUSES, Memory
from foreword.worker.edits import decide_review, list_review
from tests.tables import table
from tests.unit.test_proposals import ROOMS, rule
from tests.unit.test_proposals import proposed as kept_and_proposed

NPM = rule("correction", "Use pnpm instead of npm", {"s1": 1, "s2": 1}, instead_of="npm")


def decide(store, body: dict[str, Any]) -> tuple[Memory, Any]:
    """Decide as the user does; return the memory that it became, and the entry of the log."""
    answer = decide_review(SimpleNamespace(store=store, now=lambda: 9.0), body)
    [entry] = store.audit.list(numbers=[answer["entry"]["number"]])
    return store.memories.get([answer["memory"]["id"]])[0], entry


def waiting(store) -> dict[str, Any]:
    return list_review(SimpleNamespace(store=store, projects=SimpleNamespace(key_at=str)))


def everything(store) -> dict[str, Memory]:
    return {memory.id: memory for _, memory in store.memories.page(limit=1000)}


def test_a_yes_supersedes_what_it_came_from_and_can_be_taken_back(store):
    (proposal,) = kept_and_proposed(store, NPM)
    before, links = everything(store), store.memories.links(proposal.id)
    memory, entry = decide(store, {"do": "accept", "id": proposal.id})
    (correction,) = store.memories.get_by_uid([NPM.uid])
    assert (memory.status, memory.trust, memory.confirmed, memory.scope) == ("active", "user", 9.0, ROOMS.scope)
    assert (correction.status, correction.superseded_by) == ("superseded", proposal.id)
    assert (entry.who, entry.what) == ("user", "accept")
    assert not store.audit.undo([entry], who="user", at=10.0).refused
    assert everything(store) == before
    assert store.memories.links(proposal.id) == links


def test_a_promoted_note_is_taken_back_with_what_it_became(store):
    (note,) = store.memories.put(
        [Memory("note", "Slots are kept in UTC", body="two zones", project="here", created=1.0)]
    )
    memory, entry = decide(store, {"do": "promote", "id": note.id, "as": "learning"})
    assert (memory.kind, memory.body, memory.trust) == ("learning", "two zones", "user")
    assert waiting(store)["notes"] == []
    store.audit.undo([entry], who="user", at=10.0)
    assert [each["id"] for each in waiting(store)["notes"]] == [note.id]
    assert store.memories.get([memory.id])[0].status == "discarded"


def test_only_notes_are_promoted_or_discarded(store):
    kept = store.memories.put([Memory(kind, "text", project="here", created=1.0) for kind in KINDS if kind != "note"])
    for memory in kept:
        for what in ("promote", "discard"):
            with pytest.raises(BadRequest):
                decide(store, {"do": what, "id": memory.id, "as": "goal"})
    assert store.audit.list() == ()
    with pytest.raises(NotFound):
        decide(store, {"do": "accept", "id": "pre-00000000"})


@table("status", [each for each in STATUSES if each not in ("proposed", "forgotten")])
@table("what", ["accept", "refuse"])
def test_only_what_is_proposed_is_accepted_or_refused(store, status, what):
    (memory,) = store.memories.put([Memory("preference", "Use pnpm", project="here", status=status, created=1.0)])
    with pytest.raises(BadRequest):
        decide(store, {"do": what, "id": memory.id})
    assert store.memories.get([memory.id]) == (memory,)
