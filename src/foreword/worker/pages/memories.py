"""List memories with their facets, tell all that is known of one, and list what waits for the user's decision.

Looking is no fetch: no memory ranks higher or lower for having been opened in the viewer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foreword.audit import REVISED, AuditEntry, is_undoable, version
from foreword.errors import BadRequest, NotFound
from foreword.models import STATUSES, UNIVERSAL, Memory
from foreword.store.browsing import MAX_PAGE, SHOWN_STATUSES, MemoryFilter
from foreword.store.projects import names
from foreword.worker import serialize
from foreword.worker.edits import list_review
from foreword.worker.handlers import describe_sessions, show_memory
from foreword.worker.http import Request
from foreword.worker.projects import list_projects
from foreword.worker.requests import flag, items, whole, word

if TYPE_CHECKING:
    from foreword.store import Store
    from foreword.worker.app import App

PAGE = 50  # memories
EXCERPT = 200  # characters of a body that a list shows
MAX_TAGS, MAX_FILES = 8, 5  # of one memory in a list
ANY_STATUS = "any"
MAX_HISTORY = 100  # entries; `foreword log --memory` has older ones
MAX_WAITING = 100  # proposals, and notes, unless another limit is asked for; the count covers all


def browse(app: App, request: Request) -> dict[str, Any]:
    """Return a page of the memories that the query's filters choose; `next` is the offset of the following page."""
    offset = whole(request, "after", most=1 << 31)
    limit = whole(request, "limit", PAGE, most=MAX_PAGE) or PAGE
    memories, total = app.store.browsing.page(_filter(request), offset=offset, limit=limit)
    name = names(app.store.projects.all())
    end = offset + len(memories)
    return {
        "memories": [_row(memory, name) for memory in memories],
        "next": str(end) if memories and end < total else "",
        "total": total,
    }


def facets(app: App, request: Request) -> dict[str, Any]:
    """Count the memories that the query's filters choose, by the values of each facet."""
    name = names(app.store.projects.all())
    counts = app.store.browsing.facets(_filter(request))
    rows = {
        facet: [{"value": value, "label": _label(facet, value, name), "count": count} for value, count in values]
        for facet, values in counts.items()
    }
    return {"facets": rows}


def projects(app: App) -> dict[str, Any]:
    """Return every project, the last one first; `label` tells apart those that have the same name."""
    every = list_projects(app)["projects"]
    label = names(app.store.projects.all(), also=[each["key"] for each in every])
    return {"projects": [{**each, "label": label(each["key"])} for each in every]}


def _filter(request: Request) -> MemoryFilter:
    statuses = items(request, "status") or SHOWN_STATUSES
    unknown = [each for each in statuses if each not in (*STATUSES, ANY_STATUS)]
    if unknown:
        raise BadRequest(f"unknown status {unknown[0][:40]!r}", hint=f"one of {', '.join((*STATUSES, ANY_STATUS))}")
    return MemoryFilter(
        words=word(request, "q"),
        kinds=items(request, "kind"),
        scopes=(word(request, "scope"),) if word(request, "scope") else (),  # one: a folder's name may hold a comma
        project=word(request, "project"),
        tag=word(request, "tag"),
        file=word(request, "file"),
        statuses=() if ANY_STATUS in statuses else statuses,
        trusts=items(request, "trust"),
        pinned=flag(request, "pinned") if word(request, "pinned") else None,
    )


def _row(memory: Memory, name: Callable[[str], str]) -> dict[str, Any]:
    same = ("id", "kind", "title", "scope", "project", "status", "trust", "confidence", "created", "pinned")
    return {
        **{field: getattr(memory, field) for field in same},
        "excerpt": " ".join(memory.body[: 2 * EXCERPT].split())[:EXCERPT],
        "project_name": name(memory.project),
        "used": memory.used,
        "ignored": memory.ignored,
        "tags": list(memory.tags[:MAX_TAGS]),
        "files": list(memory.files[:MAX_FILES]),
    }


def _label(facet: str, value: str, name: Callable[[str], str]) -> str:
    """Return what people call a facet's value."""
    if facet == "pinned":
        return "pinned" if value == "1" else "not pinned"
    if facet == "scope":
        sort, _, rest = value.partition(":")
        if value == UNIVERSAL:
            return "everywhere"
        return name(rest) if sort == "project" else rest or sort
    return (name(value) or "none") if facet == "project" else value


def details(app: App, id: str) -> dict[str, Any]:
    """Return all that is known of a memory: its text, source, links, history, score, and where it was injected."""
    store = app.store
    memory = next(iter(store.memories.get([id])), None)
    if memory is None or memory.status == "forgotten":
        raise NotFound(f"there is no memory {id[:80]!r}", hint="look for it by its words")
    explained = show_memory(app, id, explain=True)
    ids = [memory.session, *(each["session"] for each in explained["shown"])]
    found = describe_sessions(app, store.sessions.get_many(list(dict.fromkeys(filter(None, ids)))))
    sessions = {
        each["id"]: {name: each[name] for name in ("id", "host", "started", "ended", "title")} for each in found
    }
    shown = [{**each, "about": sessions.get(each["session"], {}).get("title", "")} for each in explained["shown"]]
    is_note = memory.kind == "note" and memory.status == "active"
    return {
        "memory": {**serialize.memory(memory), "project_name": names(store.projects.all())(memory.project)},
        "version": version(memory),
        "session": sessions.get(memory.session),
        "links": _links(store, memory),
        "superseded_by": next(iter(_briefly(store, [memory.superseded_by])), None),
        "waits": "proposal" if memory.status == "proposed" else "note" if is_note else "",
        "history": _history(store, memory),
        **{name: explained[name] for name in ("score", "why", "use")},
        "shown": shown,
    }


def waiting(app: App, *, project: str = "", limit: int = MAX_WAITING) -> dict[str, Any]:
    """Return the proposals and notes that wait for the user in a project, or in all, newest first, and how many."""
    found, name = list_review(app, project=project, most=limit), names(app.store.projects.all())

    def row(each: Mapping[str, Any], waits: str) -> dict[str, Any]:
        return {**each, "project_name": name(each["project"]), "waits": waits}

    return {
        **found,
        "proposals": [row(each, "proposal") for each in found["proposals"]],
        "notes": [row(each, "note") for each in found["notes"]],
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


def _history(store: Store, memory: Memory) -> list[dict[str, Any]]:
    """Return who did what to it, newest first, with the fields before and after, and whether it can be undone."""
    return [
        {**serialize.entry(each), "changes": _changes(each, memory.id), "undo": is_undoable(each)}
        for each in store.audit.list(memory=memory.id, limit=MAX_HISTORY)
    ]


def _changes(entry: AuditEntry, id: str) -> list[dict[str, Any]]:
    """Return what an entry of the log changed of one memory, field by field."""
    patch = dict(entry.patch.get("changed", {}).get(id, {}))
    before, after = patch.pop("detail", ({}, {}))
    parts = {name: (before.get(name), after.get(name)) for name in (*before, *after) if name != REVISED}
    return [{"field": name, "before": was, "after": now} for name, (was, now) in {**patch, **parts}.items()]
