"""A memory and what it is to say instead -> the memory revised, or a proposal that waits for the user's yes. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foreword.amendments import patch_of
from foreword.trust import lowest
from foreword.types import Memory

REVISED = "revised"  # in a detail: who put it into other words; what is said again leaves those words alone
PROPOSAL, REVISES = "proposal", "revises"  # in the detail of what waits: what is proposed, and of which memory
WHOLE = ("kind", "title", "body", "scope", "tags", "files", "functions", "confidence")
PARTS = ("why", "fixed_by")  # of a detail
FIELDS = (*WHOLE, *PARTS)
LISTS = ("tags", "files", "functions")
ALONE, OWN_TERMINAL = "only the user does this", "ask the user to run it in a terminal of their own"
WORDS = ("title", "body", *LISTS, *PARTS)  # what an agent may put otherwise; what it is and where it counts, it may not


def revised(memory: Memory, changes: Mapping[str, Any], *, who: str) -> Memory:
    """*memory* with *changes* to some of FIELDS, marked as revised; as it was where they change nothing.

    Who said it first stays: other words for the same thing give it no more trust.
    """
    parts = {name: changes[name] for name in PARTS if name in changes and memory.detail.get(name, "") != changes[name]}
    after = replace(
        memory,
        **{name: changes[name] for name in WHOLE if name in changes},
        detail={**memory.detail, **parts},  # an emptied one stays, or the next session would bring it back
    )
    return after if after == memory else replace(after, detail={**after.detail, REVISED: _first(memory, who)})


def differing(before: Memory, after: Memory) -> tuple[str, ...]:
    """The names of what differs, as people know them."""
    patch = patch_of(before, after)
    parts = {name for each in patch.pop("detail", ()) for name in each} - {REVISED}
    return (*patch, *(name for name in PARTS if name in parts))


def version(memory: Memory) -> str:
    """The same for as long as a memory says the same: whoever revises it can tell which one they read."""
    says = [getattr(memory, name) for name in (*WHOLE, "status", "superseded_by")]
    told = json.dumps([*says, *(memory.detail.get(name) for name in PARTS)], default=list)
    return hashlib.blake2b(told.encode(), digest_size=12).hexdigest()


def is_the_users(memory: Memory) -> bool:
    """Whether the user said it, or put it into these words: then nobody else changes it."""
    return memory.trust == "user" or memory.detail.get(REVISED) == "user"


def proposed(memory: Memory, changes: Mapping[str, Any], *, source: str, session: str, at: float) -> Memory:
    """What somebody else would have the user's memory say: a memory of its own that nobody is shown."""
    after = revised(memory, changes, who="agent")
    told = {name: changes[name] for name in FIELDS if name in changes}
    mark = hashlib.blake2b(json.dumps([memory.uid, told], sort_keys=True).encode(), digest_size=12).hexdigest()
    detail = {name: each for name, each in after.detail.items() if name != REVISED}
    return replace(
        after,
        id="",
        uid=f"proposal-{mark}",
        source=source,
        session=session,
        trust=lowest(("agent", memory.trust)),
        status="proposed",
        superseded_by="",
        pinned=False,
        used=0,
        ignored=0,
        seen=1,
        created=at,
        confirmed=at,
        detail={**detail, PROPOSAL: "revise", REVISES: memory.id, "changes": told},
    )


def accepted(memory: Memory, proposal: Memory) -> Memory:
    """*memory* as a proposal wants it, now that the user said yes to it."""
    told = {name: proposal.detail["changes"][name] for name in WORDS if name in proposal.detail.get("changes", {})}
    return revised(memory, {name: tuple(told[name]) if name in LISTS else told[name] for name in told}, who="user")


def said_again(known: Memory, fresh: Memory) -> Memory:
    """*fresh*, as somebody tells it again; where *known* was revised, its words, with the counts and times of both.

    Nothing gains trust by being said again.
    """
    if not known.detail.get(REVISED):
        return replace(fresh, trust=lowest((fresh.trust, known.trust)))
    return replace(
        known,
        seen=max(known.seen, fresh.seen),
        created=min(known.created, fresh.created),
        confirmed=max(known.confirmed, fresh.confirmed),
        status=fresh.status if known.status == "stale" else known.status,
        detail={**fresh.detail, **known.detail},
    )


def _first(memory: Memory, who: str) -> str:
    """What the user once revised stays the user's."""
    return "user" if memory.detail.get(REVISED) == "user" else who
