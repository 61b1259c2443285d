"""A store -> the rows of an export, a page at a time; `imports/jsonl.py` reads them."""

from __future__ import annotations

from typing import Any

from foreword.errors import BadRequest
from foreword.models import Link, Memory, Project
from foreword.store import Store

PARTS = ("event", "session", "memory", "change", "link")  # in this order: what is spoken of comes first
MOST = 1_000_000_000  # rows; more than there are


def rows(
    store: Store, part: str, *, project: Project | None, after: int = 0, of: str = "", limit: int = 500
) -> tuple[list[dict[str, Any]], int]:
    """The next rows of one part behind place *after*, and the place to go on from; 0 at the end.

    Without a project those of all. Events are asked for by session and changes by project, named in *of*. What a
    session did in another project's folder, and a link that leads to another project's memory, stay there.
    """
    if part == "session":
        return [vars(session) for session in store.sessions.list(project.key if project else "", limit=MOST)], 0
    if part == "change":
        named = of if project is None or of == project.key else ""
        return [vars(change) for change in store.sessions.changes(named, limit=MOST)], 0
    if part == "event":
        events = store.events.list(of, after=after, limit=limit)
        ours = [event for event in events if project is None or event.project in (project.key, "")]
        told = [{name: each for name, each in vars(event).items() if name != "lasting"} for event in ours]
        return told, events[-1].number if len(events) == limit else 0
    if part not in PARTS:
        raise BadRequest(f"unknown part {part!r}", hint=f"one of {', '.join(PARTS)}")
    page = store.memories.page(after=after, scopes=(project.scope,) if project else (), limit=limit)
    memories = [memory for _, memory in page]
    known = _Within(store, project)
    told = _memories(known, memories) if part == "memory" else _links(store, known, memories)
    return told, page[-1][0] if len(page) == limit else 0


class _Within:
    """Uids of memories by their ids, of one project and what counts everywhere; of all where there is none."""

    def __init__(self, store: Store, project: Project | None) -> None:
        self._store, self._project = store, project

    def uids(self, ids: list[str]) -> dict[str, str]:
        return {each.id: each.uid for each in self._store.memories.get(ids) if self._is_ours(each)}

    def _is_ours(self, memory: Memory) -> bool:
        if self._project is None or not memory.scope.startswith("project:"):
            return True
        return memory.scope == self._project.scope


def _memories(known: _Within, memories: list[Memory]) -> list[dict[str, Any]]:
    by = known.uids([memory.superseded_by for memory in memories])
    return [
        {
            **vars(memory),
            "detail": dict(memory.detail),
            "superseded_by": memory.superseded_by if memory.superseded_by in by else "",
            "superseded_by_uid": by.get(memory.superseded_by, ""),
        }
        for memory in memories
    ]


def _links(store: Store, known: _Within, memories: list[Memory]) -> list[dict[str, Any]]:
    found: list[Link] = []
    for memory in memories:
        found += [link for link in store.memories.links(memory.id) if link.source == memory.id]
    uids = known.uids([end for link in found for end in (link.source, link.target)])
    return [
        {**vars(link), "source_uid": uids[link.source], "target_uid": uids[link.target]}
        for link in found
        if link.source in uids and link.target in uids
    ]
