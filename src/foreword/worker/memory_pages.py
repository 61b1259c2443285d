"""List memories with their facets, and tell all that is known of one, for the viewer.

Looking is no fetch: no memory ranks higher or lower for having been opened in the viewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from foreword.audit import REVISED, AuditEntry, is_undoable
from foreword.errors import BadRequest
from foreword.models import STATUSES, UNIVERSAL, Hit, Memory, Query
from foreword.recall.rank import rank
from foreword.store.browsing import SHOWN_STATUSES, MemoryFilter
from foreword.store.projects import names
from foreword.worker import serialize
from foreword.worker.handlers import describe_sessions

if TYPE_CHECKING:
    from foreword.store import Store
    from foreword.worker.app import App

EXCERPT = 200  # characters of a body that a list shows
MAX_TAGS, MAX_FILES = 8, 5  # of one memory in a list
ANY_STATUS = "any"
MAX_SHOWN = 50  # injections of a memory
MAX_HISTORY = 100  # entries; `foreword log --memory` has older ones


def filter_of(
    *,
    q: str = "",
    kind: Sequence[str] = (),
    scope: str = "",  # one: a folder's name may hold a comma
    project: str = "",
    tag: str = "",
    file: str = "",
    status: Sequence[str] = (),
    trust: Sequence[str] = (),
    pinned: str = "",
) -> MemoryFilter:
    """Return the filter that a query chooses."""
    statuses = tuple(status) or SHOWN_STATUSES
    if unknown := [each for each in statuses if each not in (*STATUSES, ANY_STATUS)]:
        raise BadRequest(f"unknown status {unknown[0][:40]!r}", hint=f"one of {', '.join((*STATUSES, ANY_STATUS))}")
    return MemoryFilter(
        words=q,
        kinds=tuple(kind),
        scopes=(scope,) if scope else (),
        project=project,
        tag=tag,
        file=file,
        statuses=() if ANY_STATUS in statuses else statuses,
        trusts=tuple(trust),
        pinned=pinned.lower() in ("1", "true", "yes") if pinned else None,
    )


def browse(app: App, wanted: MemoryFilter, *, after: int = 0, limit: int = 50) -> dict[str, Any]:
    """Return a page of the memories that pass a filter; `next` is the offset of the following page."""
    memories, total = app.store.browsing.page(wanted, offset=after, limit=limit)
    name = names(app.store.projects.all())
    end = after + len(memories)
    same = ("id", "kind", "title", "scope", "project", "status", "trust", "confidence", "created", "pinned")
    rows = [
        {
            **{field: getattr(memory, field) for field in (*same, "used", "ignored")},
            "excerpt": " ".join(memory.body[: 2 * EXCERPT].split())[:EXCERPT],
            "project_name": name(memory.project),
            "tags": list(memory.tags[:MAX_TAGS]),
            "files": list(memory.files[:MAX_FILES]),
        }
        for memory in memories
    ]
    return {"memories": rows, "next": str(end) if rows and end < total else "", "total": total}


def facets(app: App, wanted: MemoryFilter) -> dict[str, Any]:
    """Count the memories that pass a filter, by the values of each facet, with what people call each value."""
    name = names(app.store.projects.all())

    def label(facet: str, value: str) -> str:
        if facet == "pinned":
            return "pinned" if value == "1" else "not pinned"
        if facet == "project":
            return name(value) or "none"
        if facet != "scope":
            return value
        sort, _, rest = value.partition(":")
        return "everywhere" if value == UNIVERSAL else name(rest) if sort == "project" else rest or sort

    counts = app.store.browsing.facets(wanted)
    return {
        "facets": {
            facet: [{"value": value, "label": label(facet, value), "count": count} for value, count in values]
            for facet, values in counts.items()
        }
    }


def details(app: App, id: str) -> dict[str, Any]:
    """Return all that is known of a memory: its text, source, links, history, score, and where it was injected."""
    store, memory = app.store, serialize.known(app.store, id)
    # Without words all match: these are the factors that the memory brings along.
    hits = {"recency": (Hit(memory=memory, source="recency"),)}
    (ranked,) = rank(hits, query=Query(scopes=(memory.scope,)), now=app.now(), trigger="session_start")
    injections = store.injections.list(memory=id, limit=MAX_SHOWN)
    ids = dict.fromkeys(filter(None, (memory.session, *(each.session for each in injections))))
    sessions = {each["id"]: each for each in describe_sessions(app, store.sessions.get_many(list(ids)))}
    shown = [
        {
            **vars(item),
            **{name: getattr(each, name) for name in ("at", "trigger", "session", "host")},
            "injection": each.id,
            "about": sessions.get(each.session, {}).get("title", ""),
        }
        for each in injections
        for item in each.items
        if item.memory == id
    ]
    return {
        "memory": {**serialize.memory(memory), "project_name": names(store.projects.all())(memory.project)},
        "score": ranked.score,
        "why": dict(ranked.why),
        "use": store.injections.usage(memory=id)._asdict(),
        "shown": shown,
        "session": sessions.get(memory.session),
        "links": _links(store, memory),
        "superseded_by": next(iter(_briefly(store, [memory.superseded_by])), None),
        "waits": serialize.waits(memory),
        "history": [
            {**serialize.entry(each), "changes": _changes(each, id), "undo": is_undoable(each)}
            for each in store.audit.list(memory=id, limit=MAX_HISTORY)
        ],
    }


def _links(store: Store, memory: Memory) -> list[dict[str, Any]]:
    """Return each link with the memory at its other end, none of another project, and whether it leads there."""
    linked = store.memories.links(memory.id)
    others = [link.target if link.source == memory.id else link.source for link in linked]
    ends = {each["id"]: each for each in _briefly(store, others)}
    return [
        {"relation": link.relation, "forth": link.source == memory.id, **ends[other]}
        for link, other in zip(linked, others, strict=True)
        if other in ends and ends[other]["scope"] in (memory.scope, UNIVERSAL)
    ]


def _briefly(store: Store, ids: Sequence[str]) -> list[dict[str, Any]]:
    fields = ("id", "kind", "title", "status", "scope")
    known = store.memories.get(list(dict.fromkeys(filter(None, ids))))
    return [{name: getattr(each, name) for name in fields} for each in known if each.status != "forgotten"]


def _changes(entry: AuditEntry, id: str) -> list[dict[str, Any]]:
    """Return what an entry of the log changed of one memory, field by field."""
    patch = dict(entry.patch.get("changed", {}).get(id, {}))
    before, after = patch.pop("detail", ({}, {}))
    parts = {name: (before.get(name), after.get(name)) for name in (*before, *after) if name != REVISED}
    return [{"field": name, "before": was, "after": now} for name, (was, now) in {**patch, **parts}.items()]
