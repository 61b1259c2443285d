"""The user's word about what waits: done all or nothing, logged as the user's, and taken back like everything else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foreword.audit import proposed
from foreword.errors import BadRequest, NotFound
from foreword.maintenance.proposals import plan_wider
from foreword.models import KINDS, STATUSES, Memory
from foreword.worker.edits import decide, waiting
from tests.tables import table
from tests.unit.test_proposals import BARS, ROOMS, rule
from tests.unit.test_proposals import proposed as kept_and_proposed

NPM = rule("correction", "Use pnpm instead of npm", {"s1": 1, "s2": 1}, instead_of="npm")


def everything(store) -> dict[str, Memory]:
    return {memory.id: memory for _, memory in store.memories.page(limit=1000)}


def test_a_yes_supersedes_what_it_came_from(make_store):
    # An accepted proposal supersedes its corrections and can be taken back.
    store = make_store()
    (proposal,) = kept_and_proposed(store, NPM)
    before, links = everything(store), store.memories.links(proposal.id)
    memory, entry = decide(store, {"do": "accept", "id": proposal.id}, now=9.0)
    (correction,) = store.memories.get_by_uid([NPM.uid])
    assert (memory.status, memory.trust, memory.confirmed, memory.scope) == ("active", "user", 9.0, ROOMS.scope)
    assert (correction.status, correction.superseded_by) == ("superseded", proposal.id)
    assert (entry.who, entry.what) == ("user", "accept")
    assert not store.audit.undo([entry], who="user", at=10.0).refused
    assert everything(store) == before
    assert store.memories.links(proposal.id) == links
    # A yes for all projects supersedes what each had and links none of them.
    store = make_store()
    there = rule("preference", "Always use pnpm instead of npm", {"s9": 1}, at=3, instead_of="npm", project=BARS)
    (proposal,) = kept_and_proposed(store, NPM, there, plan=plan_wider, everything=True)
    memory, _ = decide(store, {"do": "accept", "id": proposal.id}, now=9.0)
    assert memory.scope == "universal"
    assert {each.status for each in store.memories.get_by_uid([NPM.uid, there.uid])} == {"superseded"}
    (other,) = store.memories.get_by_uid([there.uid])
    assert store.memories.links(other.id) == ()
    # A yes for this project leaves the others alone.
    store = make_store()
    there = rule("preference", "Always use pnpm instead of npm", {"s9": 1}, at=3, instead_of="npm", project=BARS)
    (proposal,) = kept_and_proposed(store, NPM, there, plan=plan_wider, everything=True)
    memory, _ = decide(store, {"do": "accept", "id": proposal.id, "scope": "project"}, now=9.0)
    assert memory.scope == ROOMS.scope
    assert store.memories.get_by_uid([there.uid])[0].status == "active"


def test_notes_are_promoted_and_refusals_counted(make_store):
    # A promoted note is taken back with what it became.
    store = make_store()
    (note,) = store.memories.put(
        [Memory("note", "Slots are kept in UTC", body="two zones", project="here", created=1.0)]
    )
    memory, entry = decide(store, {"do": "promote", "id": note.id, "as": "learning"}, now=9.0)
    assert (memory.kind, memory.body, memory.trust) == ("learning", "two zones", "user")
    assert waiting(store).notes == ()
    store.audit.undo([entry], who="user", at=10.0)
    assert waiting(store).notes == (note,)
    assert store.memories.get([memory.id])[0].status == "discarded"
    # A refusal notes how often it had been said.
    store = make_store()
    (proposal,) = kept_and_proposed(store, NPM)
    refused, _ = decide(store, {"do": "refuse", "id": proposal.id}, now=9.0)
    assert refused.status == "discarded"
    assert refused.detail["refused"] == {"sessions": 2, "times": 1, "at": 9.0}
    # Only notes are promoted or discarded.
    store = make_store()
    kept = store.memories.put([Memory(kind, "text", project="here", created=1.0) for kind in KINDS if kind != "note"])
    for memory in kept:
        for what in ("promote", "discard"):
            with pytest.raises(BadRequest):
                decide(store, {"do": what, "id": memory.id, "as": "goal"}, now=9.0)
    assert store.audit.list() == ()
    # An id that nobody knows is told.
    store = make_store()
    with pytest.raises(NotFound):
        decide(store, {"do": "accept", "id": "pre-00000000"}, now=9.0)


@table("status", [each for each in STATUSES if each not in ("proposed", "forgotten")])
@table("what", ["accept", "refuse"])
def test_only_what_is_proposed_is_accepted_or_refused(store, status, what):
    (memory,) = store.memories.put([Memory("preference", "Use pnpm", project="here", status=status, created=1.0)])
    with pytest.raises(BadRequest):
        decide(store, {"do": what, "id": memory.id}, now=9.0)
    assert store.memories.get([memory.id]) == (memory,)


def test_proposals_of_others_are_shown_where_they_belong(make_store):
    # A yes to an agents words revises what the user said and can be taken back.
    store = make_store()
    (said,) = store.memories.put([Memory("decision", "Use Redis", project=ROOMS.key, scope=ROOMS.scope, created=1.0)])
    words = proposed(said, {"title": "Use Valkey", "why": "a fork"}, source="codex", session="s", at=2.0)
    (proposal,) = store.memories.put([words])
    before = everything(store)
    memory, entry = decide(store, {"do": "accept", "id": proposal.id}, now=9.0)
    assert (memory.id, memory.title, memory.detail["why"], memory.trust) == (said.id, "Use Valkey", "a fork", "user")
    assert store.memories.get([proposal.id])[0].superseded_by == said.id
    assert waiting(store).proposals == ()
    assert not store.audit.undo([entry], who="user", at=10.0).refused
    assert everything(store) == before
    # What is proposed for all is shown in no project that does not say it itself.
    store = make_store()
    rules = [
        Memory("correction", "Use pnpm instead of npm", project=key, uid=f"cor:{key}", created=1.0) for key in "ab"
    ]
    store.memories.put([replace(each, detail={"instead_of": "npm"}) for each in rules])
    proposal = Memory("preference", "Use pnpm instead of npm", project="a", status="proposed", created=2.0)
    store.memories.put([replace(proposal, detail={"scope": "universal", "projects": 2, "instead_of": "npm"})])
    shown = {key: len(waiting(store, scope=f"project:{key}").proposals) for key in "abc"}
    assert shown == {"a": 1, "b": 1, "c": 0}
    assert len(waiting(store).proposals) == 1
