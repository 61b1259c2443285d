"""A store -> the rows of an export, a page at a time; `imports/jsonl.py` reads them."""

from __future__ import annotations

from typing import Any

from foreword.errors import BadRequest
from foreword.store import Store
from foreword.types import Link, Memory, Project
from foreword.values import fields

PARTS = ("event", "session", "memory", "change", "link")  # in this order: what is spoken of comes first
MOST = 1_000_000_000  # rows; more than there are


def rows(
    store: Store, part: str, *, project: Project | None, after: int = 0, of: str = "", limit: int = 500
) -> tuple[list[dict[str, Any]], int]:
    """The next rows of one part behind place *after*, and the place to go on from; 0 at the end.

    Without a project those of all. Events are asked for by session and changes by project, named in *of*.
    """
    if part == "session":
        return [fields(session) for session in store.sessions(project.key if project else "", limit=MOST)], 0
    if part == "change":
        return [fields(change) for change in store.changed(of, limit=MOST)], 0
    if part == "event":
        events = store.events(of, after=after, limit=limit)
        told = [{name: each for name, each in fields(event).items() if name != "lasting"} for event in events]
        return told, events[-1].number if len(events) == limit else 0
    if part not in PARTS:
        raise BadRequest(f"unknown part {part!r}", hint=f"one of {', '.join(PARTS)}")
    page = store.page(after=after, scopes=(project.scope,) if project else (), limit=limit)
    memories = [memory for _, memory in page]
    told = _memories(store, memories) if part == "memory" else _links(store, memories)
    return told, page[-1][0] if len(page) == limit else 0


def _memories(store: Store, memories: list[Memory]) -> list[dict[str, Any]]:
    by = {each.id: each.uid for each in store.by_id([memory.superseded_by for memory in memories])}
    return [
        {**fields(memory), "detail": dict(memory.detail), "superseded_by_uid": by.get(memory.superseded_by, "")}
        for memory in memories
    ]


def _links(store: Store, memories: list[Memory]) -> list[dict[str, Any]]:
    found: list[Link] = []
    for memory in memories:
        found += [link for link in store.linked(memory.id) if link.source == memory.id]
    uids = {each.id: each.uid for each in store.by_id([end for link in found for end in (link.source, link.target)])}
    return [
        {**fields(link), "source_uid": uids.get(link.source, ""), "target_uid": uids.get(link.target, "")}
        for link in found
    ]
