"""Summarise a project for a person who comes back to it: where things stand, and the last sessions."""

from __future__ import annotations

from dataclasses import dataclass

from foreword.models import Memory, Project, Query, Trigger
from foreword.recall import render
from foreword.recall.search import Searchable
from foreword.recall.start import SessionStart


@dataclass(frozen=True)
class Point:
    """One thing to know, and the memory behind it."""

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
    """Return what *project*'s sessions left open, as a session begins with it, and the last sessions."""

    def recent(kinds: tuple[str, ...], most: int) -> list[Memory]:
        return [hit.memory for hit in store.by_recency(Query(scopes=(project.scope,), kinds=kinds, limit=most))]

    start = SessionStart(Trigger("session_start", project), now=now, recent=recent, about=lambda *_: (), history=())
    parts = []
    for layer, most in (("standing", limit), ("sessions", limit)):
        points = []
        for entry in start.entries(layer, lambda _: ())[:most]:
            memory = entry.ranked.memory if entry.ranked else None
            text = render.line(entry.note, layer=layer)
            points.append(
                Point(memory.id, memory.kind, memory.created, text) if memory else Point("", "handoff", now, text)
            )
        parts.append(tuple(points))
    return Standing(standing=parts[0], sessions=parts[1])
