"""The user's word about what waits: done all or nothing, logged as the user's, and taken back like everything else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from foreword.errors import BadRequest, NotFound
from foreword.models import KINDS, Memory
from foreword.worker.edits import decide_review, list_review


def decide(store, body: dict[str, Any]) -> tuple[Memory, Any]:
    """Decide as the user does; return the memory that it became, and the entry of the log."""
    answer = decide_review(SimpleNamespace(store=store, now=lambda: 9.0), body)
    [entry] = store.audit.list(numbers=[answer["entry"]["number"]])
    return store.memories.get([answer["memory"]["id"]])[0], entry


def waiting(store) -> dict[str, Any]:
    return list_review(SimpleNamespace(store=store, projects=SimpleNamespace(key_at=str)))


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
        decide(store, {"do": "discard", "id": "not-00000000"})
