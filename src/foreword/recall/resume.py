"""A project -> where things stand and what the last sessions did, for a person who comes back to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from foreword.layout import RECIPES
from foreword.recall import render
from foreword.recall.pipeline import left_open
from foreword.types import Memory, Project, Query, Ranked

if TYPE_CHECKING:
    from foreword.recall.search import Searchable

HANDED_OVER = RECIPES["session_start"].layers[0].limit  # as many as a session begins with


@dataclass(frozen=True)
class Point:
    """One memory, and what it says."""

    id: str
    kind: str
    at: float
    text: str


@dataclass(frozen=True)
class Standing:
    """Where things stand, and the last sessions, each newest first."""

    standing: tuple[Point, ...]
    sessions: tuple[Point, ...]


def resume(store: Searchable, project: Project, *, now: float, limit: int) -> Standing:
    """The handoffs of *project* and what its sessions left open, as a session begins with them; the last sessions."""
    handoffs = _newest(store, project, kind="handoff", limit=HANDED_OVER)
    sessions = _newest(store, project, kind="summary", limit=limit)
    newest = sorted(left_open([*handoffs, *sessions]), key=lambda each: (-each.created, each.id))[:HANDED_OVER]
    return Standing(
        standing=tuple(_point(each, layer="continuity", now=now) for each in newest),
        sessions=tuple(_point(each, layer="sessions", now=now) for each in sessions),
    )


def _newest(store: Searchable, project: Project, *, kind: str, limit: int) -> list[Memory]:
    query = Query(scopes=(project.scope,), kinds=(kind,), limit=limit)
    return [hit.memory for hit in store.by_recency(query)]


def _point(memory: Memory, *, layer: str, now: float) -> Point:
    text = render.line(Ranked(memory=memory, score=0.0, why={}), layer=layer, now=now)
    return Point(id=memory.id, kind=memory.kind, at=memory.created, text=text)
