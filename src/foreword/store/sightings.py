"""A memory that several sessions saw -> a row for each but the newest, made of its detail: so each of them tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from foreword.encoding import storable
from foreword.models import Memory, named

Execute = Callable[..., Any]

NOBODY = ("", "earlier")  # in the place of a session: those that are only counted together
ALL = f"""INSERT OR IGNORE INTO sightings (session, memory)
  SELECT s.key, m.id FROM memories m, json_each(CASE WHEN json_valid(m.detail)
    AND json_type(m.detail, '$.seen_in') = 'object' THEN m.detail -> '$.seen_in' ELSE '{{}}' END) s
  WHERE m.session <> '' AND s.key NOT IN {(*NOBODY,)!r} AND s.key <> m.session"""


def elsewhere(memory: Memory) -> tuple[str, ...]:
    """The sessions that saw a memory before the one that it is of; what was learned over sessions is of none."""
    seen_in = named(memory.detail, "seen_in") if memory.session else {}
    return tuple(each for each in seen_in if each not in (*NOBODY, memory.session))


def put(execute: Execute, memory: Memory, *, known: bool) -> None:
    """Note who else saw a memory, in the place of what is noted where it is *known*."""
    if known:
        execute("DELETE FROM sightings WHERE memory = ?", (memory.id,))
    for session in elsewhere(memory):
        execute("INSERT OR IGNORE INTO sightings VALUES (?, ?)", (storable(session), memory.id))


def anew(execute: Execute) -> None:
    """All of them, from the memories."""
    execute("DELETE FROM sightings")
    execute(ALL)
