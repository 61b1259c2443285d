"""Memories that the user chose together, and what is wanted of each -> one run of the log, in one transaction.

What it makes no sense for stays as it is and is told, with the reason; taking the run back takes all of it back.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from foreword.audit import PROPOSAL, MemoryChange, revised
from foreword.errors import BadRequest, NotFound
from foreword.models import Memory
from foreword.store import Store
from foreword.worker import requests

MOST = 500  # memories at once: what a list shows; who means more means a filter, and may say it in parts
UNDO = "take back in its history what made it so"

Plan = Callable[[Memory], MemoryChange]


def ids_of(told: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids that a caller named, each once."""
    ids = requests.texts(told, "ids")
    if not ids:
        raise BadRequest("no memory is named", hint='send {"ids": ["…"]}')
    if len(ids) > MOST:
        raise BadRequest(
            f"{len(ids)} memories at once are too many", hint=f"at most {MOST} at once, the others after it"
        )
    return tuple(dict.fromkeys(ids))


def together(store: Store, ids: tuple[str, ...], plan: Plan, *, at: float) -> dict[str, Any]:
    """Carry out what is planned for each as the user's wish; a memory that changes meanwhile leaves all as it was."""
    known = {memory.id: memory for memory in store.memories.get(ids) if memory.status != "forgotten"}
    planned: list[MemoryChange] = []
    taken: dict[str, str] = {}  # id of a memory -> for whose sake it changes
    refused: dict[str, str] = {}
    for id in ids:
        try:
            memory_change = _planned(known.get(id), plan, id=id, taken=taken)
        except (BadRequest, NotFound) as exc:
            refused[id] = str(exc)
        else:
            planned.append(memory_change)
            taken |= dict.fromkeys(memory_change.about, id)
    run = f"together-{secrets.token_hex(6)}" if planned else ""
    entries = store.audit.apply(planned, who="user", at=at, run=run) if planned else ()
    done = [id for id in ids if id not in refused]
    return {"run": run, "entries": [each.number for each in entries], "changed": done, "refused": refused}


def pin(memory: Memory, *, pinned: bool) -> MemoryChange:
    """A memory that the user holds on to, or no longer."""
    if memory.pinned == pinned:
        raise BadRequest(f"{memory.id} is {'pinned already' if pinned else 'not pinned'}", hint="`foreword show` tells")
    return MemoryChange("pin" if pinned else "unpin", changed=((memory, replace(memory, pinned=pinned)),))


def put_aside(memory: Memory) -> MemoryChange:
    """A memory that is kept and no longer shown."""
    if memory.status == "proposed":
        raise BadRequest(f"{memory.id} is proposed", hint="accept or refuse it")
    if memory.status not in ("active", "stale"):
        raise BadRequest(f"{memory.id} is {memory.status} already", hint="it is not shown as it is")
    return MemoryChange("discard", "set aside", changed=((memory, replace(memory, status="discarded")),))


def bring_back(memory: Memory) -> MemoryChange:
    """A memory that was put aside, shown again; what was refused or gave way to another has its own way back."""
    if memory.status != "discarded":
        raise BadRequest(f"{memory.id} is {memory.status}, and was not set aside", hint=UNDO)
    if PROPOSAL in memory.detail or "refused" in memory.detail:
        raise BadRequest(f"{memory.id} was a proposal, and refused", hint=UNDO)
    return MemoryChange("restore", "brought back", changed=((memory, replace(memory, status="active")),))


def tag(memory: Memory, *, add: tuple[str, ...], remove: tuple[str, ...]) -> MemoryChange:
    """A memory with more tags, or with fewer."""
    kept = [each for each in memory.tags if each not in remove]
    tags = tuple(dict.fromkeys((*kept, *add)))
    if tags == memory.tags:
        raise BadRequest(f"{memory.id} has these tags already", hint="`foreword show` tells")
    return MemoryChange("revise", "tags", changed=((memory, revised(memory, {"tags": tags}, who="user")),))


def _planned(memory: Memory | None, plan: Plan, *, id: str, taken: Mapping[str, str]) -> MemoryChange:
    if memory is None:
        raise NotFound(f"there is no memory {id[:80]!r}", hint="`foreword search` finds ids")
    memory_change = plan(memory)
    # One transaction, but planned from what was there before it: nothing is changed twice.
    if twice := [each for each in memory_change.about if each in taken]:
        raise BadRequest(f"{twice[0]} was changed with {taken[twice[0]]} just now", hint="look at it again")
    return memory_change
