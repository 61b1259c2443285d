"""Answer requests about memories: add, search, browse, show, export them, and goals. No HTTP here, and no SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foreword.audit import REVISED, AuditEntry, MemoryChange, is_undoable, merge_repeated
from foreword.errors import BadRequest
from foreword.importers.jsonl import export_rows as rows_of
from foreword.models import STATUSES, UNIVERSAL, Hit, Memory, Query
from foreword.policy import refuse_to_write
from foreword.recall.rank import rank
from foreword.redact import redact
from foreword.store import Store
from foreword.store.browsing import SHOWN_STATUSES, MemoryFilter
from foreword.store.projects import names
from foreword.worker import serialize
from foreword.worker.app import App
from foreword.worker.jobs.maintenance import settle_choices
from foreword.worker.sessions import heads

MOST_GOALS = 1000
EXCERPT = 200  # characters of a body that a list shows
MAX_TAGS, MAX_FILES = 8, 5  # of one memory in a list
ANY_STATUS = "any"
MAX_SHOWN = 50  # injections of a memory
MAX_HISTORY = 100  # entries; `foreword log --memory` has older ones


def add_memories(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Keep memories that somebody wrote: one, or a list under `memories`; redacted like everything else."""
    items = body.get("memories", [body])
    if not isinstance(items, list) or not items:
        raise BadRequest("`memories` must be a list with at least one memory", hint="send {kind, title, …}")
    memories = [serialize.read_memory(each, find_project=app.projects.seen_at, now=app.now()) for each in items]
    for each in items:
        if path := each.get("project_path"):
            project = app.projects.at(path)
            refuse_to_write(app.projects.policy(project), project)
    uids = [each.uid for each in memories if each.uid]
    known = {memory.uid: memory for memory in app.store.memories.get_by_uid(uids)}
    memories = [merge_repeated(known.get(each.uid, each), each) for each in memories]
    kept = app.store.memories.put(memories)
    superseded = settle_choices(app.store, kept, at=app.now())
    return {"memories": [serialize.memory(memory) for memory in kept], "superseded": superseded}


def search_memories(
    app: App,
    *,
    q: str,
    project_path: str,
    kinds: Sequence[str] = (),
    since: float = 0.0,
    limit: int = 0,
    compact: bool = False,
    explain: bool = False,
) -> dict[str, Any]:
    """Return what holds the words of *q* or is about the same code, best first; a search has no threshold."""
    now, project = app.now(), app.projects.at(project_path)
    found, problems = app.context.search(q, project=project, kinds=kinds, since=since, limit=limit, now=now)
    results = [
        {
            **(serialize.compact(each, now) if compact else {**serialize.memory(each.memory), "score": each.score}),
            **({"why": dict(each.why)} if explain else {}),
        }
        for each in found
    ]
    return {"project": project.key, "results": results, "problems": list(problems)}


def show_memory(app: App, id: str, *, full: bool = False) -> dict[str, Any]:
    """Return a memory with its links, and record that it was fetched; or with *full* all that is known of it."""
    if full:
        return _details(app, id)
    memory = serialize.known(app.store, id)
    app.store.memories.record_access([memory.id], how="get", at=app.now())
    return {"memory": serialize.memory(memory), "links": [vars(link) for link in app.store.memories.links(memory.id)]}


def export_rows(app: App, *, part: str, project_path: str = "", all: bool = False, after: int = 0) -> dict[str, Any]:
    """Return the next rows of an export, and the place to go on from."""
    project = None if all else app.projects.at(project_path)
    found, following = rows_of(app.store, part, project=project, after=after)
    return {"rows": found, "next": following, "project": project.key if project else ""}


# ---- browsing


def _filter_of(query: Mapping[str, str]) -> MemoryFilter:
    """Return the filter that a query chooses."""

    def several(name: str) -> tuple[str, ...]:
        return tuple(filter(None, query.get(name, "").split(",")))

    statuses = several("status") or SHOWN_STATUSES
    if unknown := [each for each in statuses if each not in (*STATUSES, ANY_STATUS)]:
        raise BadRequest(f"unknown status {unknown[0][:40]!r}", hint=f"one of {', '.join((*STATUSES, ANY_STATUS))}")
    scope, pinned = query.get("scope", ""), query.get("pinned", "")  # one scope: a folder's name may hold a comma
    return MemoryFilter(
        words=query.get("q", ""),
        kinds=several("kind"),
        scopes=(scope,) if scope else (),
        **{name: query.get(name, "") for name in ("project", "tag", "file")},
        statuses=() if ANY_STATUS in statuses else statuses,
        trusts=several("trust"),
        pinned=pinned.lower() in ("1", "true", "yes") if pinned else None,
    )


def browse(app: App, query: Mapping[str, str], *, after: int = 0, limit: int = 50) -> dict[str, Any]:
    """Return a page of the memories that pass a filter; `next` is the offset of the following page."""
    memories, total = app.store.browsing.page(_filter_of(query), offset=after, limit=limit)
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


def facets(app: App, query: Mapping[str, str]) -> dict[str, Any]:
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

    counts = app.store.browsing.facets(_filter_of(query))
    return {
        "facets": {
            facet: [{"value": value, "label": label(facet, value), "count": count} for value, count in values]
            for facet, values in counts.items()
        }
    }


def _details(app: App, id: str) -> dict[str, Any]:
    """Return all that is known of a memory: its text, source, links, history, score, and where it was injected.

    Looking is no fetch: no memory ranks higher or lower for having been opened in the viewer.
    """
    store, memory = app.store, serialize.known(app.store, id)
    id = memory.id
    # Without words all match: these are the factors that the memory brings along.
    hits = {"recency": (Hit(memory=memory, source="recency"),)}
    (ranked,) = rank(hits, query=Query(scopes=(memory.scope,)), now=app.now(), trigger="session_start")
    injections = store.injections.list(memory=id, limit=MAX_SHOWN)
    ids = dict.fromkeys(filter(None, (memory.session, *(each.session for each in injections))))
    known = [session for each in ids if (session := store.sessions.get(each))]
    sessions = {each["id"]: each for each in heads(app, known)}
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
        "use": store.injections.usage(memory=id),
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
    return [{name: getattr(each, name) for name in fields} for each in known]


def _changes(entry: AuditEntry, id: str) -> list[dict[str, Any]]:
    """Return what an entry of the log changed of one memory, field by field."""
    patch = dict(entry.patch.get("changed", {}).get(id, {}))
    before, after = patch.pop("detail", ({}, {}))
    parts = {name: (before.get(name), after.get(name)) for name in (*before, *after) if name != REVISED}
    return [{"field": name, "before": was, "after": now} for name, (was, now) in {**patch, **parts}.items()]


# ---- goals


def list_goals(app: App, *, project_path: str, all: bool = False) -> dict[str, Any]:
    """Return a project's open goals, older before newer; with *all* those that are reached behind them."""
    project = app.projects.at(project_path)
    query = Query(scopes=(project.scope,), kinds=("goal",), limit=MOST_GOALS)
    goals = sorted((hit.memory for hit in app.store.search.by_recency(query)), key=lambda goal: goal.created)
    reached = [goal for goal in goals if goal.detail.get("status") == "done"]
    still_open = [goal for goal in goals if goal not in reached]
    listed = [serialize.memory(goal) for goal in still_open + (reached if all else [])]
    return {"project": project.key, "goals": listed, "open": len(still_open), "done": len(reached)}


def finish_goal(app: App, id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Mark a goal as done, with its outcome."""
    before = serialize.known(app.store, id, hint="`foreword goal list` shows their ids")
    if before.kind != "goal":
        raise BadRequest(f"{id} is a {before.kind}", hint="`foreword goal list` shows the ids of goals")
    outcome = redact(serialize.text(body, "outcome")).strip()
    after = replace(before, detail={**before.detail, "status": "done", "outcome": outcome}, confirmed=app.now())
    change = MemoryChange("goal", f"done: {before.title}", changed=((before, after),))
    app.store.audit.apply([change], who="user", at=app.now())
    return {"memory": serialize.memory(serialize.known(app.store, before.id))}
