"""One memory -> all that is known of it, for a person who looks; and what that person wants done with it.

Looking counts for nothing: it is no fetch, and no memory ranks higher or lower for having been opened here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foreword.audit import PAST, REVISED, REVISES, AuditEntry, chronicle, is_undoable, version
from foreword.errors import NotFound
from foreword.models import Memory, text
from foreword.store.projects import names
from foreword.worker import serialize

if TYPE_CHECKING:
    from foreword.store import Store
    from foreword.worker.app import App

MOST_HISTORY = 100  # entries; whoever wants older ones has `foreword log --memory`
MOST_WAITING = 100  # of each sort, unless another limit is asked for; the count tells of all


def about(app: App, id: str) -> dict[str, Any]:
    """What it says, who said it where and when, what it is linked to, what happened to it, where it was shown."""
    told = app.memory(id, explain=True)
    store = app.store
    memory = next(iter(store.memories.get([id])), None)
    if memory is None or memory.status == "forgotten":
        raise NotFound(f"there is no memory {id[:80]!r}", hint="look for it by its words")
    sessions = _sessions(app, [memory.session, *(each["session"] for each in told["shown"])])
    return {
        "memory": {**serialize.memory(memory), "project_name": names(store.projects.all())(memory.project)},
        "version": version(memory),
        "session": sessions.get(memory.session),
        "links": _links(store, memory),
        "superseded_by": next(iter(_briefly(store, [memory.superseded_by])), None),
        "proposes": _proposes(store, memory),
        "revises": _revises(store, memory.detail),
        "waits": _waits(memory),
        "history": _history(store, memory),
        "score": told["score"],
        "why": told["why"],
        "use": told["use"],
        "shown": [{**each, "about": sessions.get(each["session"], {}).get("title", "")} for each in told["shown"]],
    }


def waiting(app: App, *, project: str = "", limit: int = MOST_WAITING) -> dict[str, Any]:
    """What waits for the user's word in a project, or in all: proposals and notes, newest first, and how many."""
    told, name = app.review(project=project, most=limit), names(app.store.projects.all())
    shown = {
        sort: [
            {
                **each,
                "project_name": name(each["project"]),
                "proposes": _proposes(app.store, each),
                "revises": _revises(app.store, each["detail"]),
                "waits": "proposal" if sort == "proposals" else "note",
            }
            for each in told[sort]
        ]
        for sort in ("proposals", "notes")
    }
    return {**told, **shown}


def revise(app: App, id: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """A memory in the user's own words: whoever sits at the page is no agent, whatever the request says."""
    return app.governing.revise(id, _by_the_user(told))


def supersede(app: App, told: Mapping[str, Any]) -> dict[str, Any]:
    """A memory put in another one's place, by one of the same project, or by new words."""
    known = app.store.memories.get([str(told.get("old"))])
    own = [each.scope.removeprefix("project:") for each in known if each.scope.startswith("project:")]
    return app.governing.supersede({**_by_the_user(told), **({"project": own[0]} if own else {})})


def _by_the_user(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given for name, given in told.items() if name not in ("by", "project", "project_path")}


def _links(store: Store, memory: Memory) -> list[dict[str, Any]]:
    """Each link with what is at its other end, and whether it leads there or comes from there."""
    linked = store.memories.links(memory.id)
    others = [link.target if link.source == memory.id else link.source for link in linked]
    ends = {each["id"]: each for each in _briefly(store, others)}
    return [
        {"relation": link.relation, "forth": link.source == memory.id, **ends[other]}
        for link, other in zip(linked, others, strict=True)
        if other in ends
    ]


def _briefly(store: Store, ids: Sequence[str]) -> list[dict[str, Any]]:
    known = store.memories.get(list(dict.fromkeys(filter(None, ids))))
    return [
        {name: getattr(each, name) for name in ("id", "kind", "title", "status", "scope")}
        for each in known
        if each.status != "forgotten"
    ]


def _sessions(app: App, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The sessions that are known, each with what it was about."""
    found = [app.store.sessions.get(id) for id in dict.fromkeys(filter(None, ids))]
    told = app.described([each for each in found if each is not None])
    return {each["id"]: {name: each[name] for name in ("id", "host", "started", "ended", "title")} for each in told}


def _history(store: Store, memory: Memory) -> list[dict[str, Any]]:
    """Who did what to it, newest first, each with what it was before and after, and whether it can be taken back."""
    entries = store.audit.list(memory=memory.id, limit=MOST_HISTORY)
    patches = {entry.number: entry for entry in entries}
    return [
        {
            **vars(each),
            "memories": list(each.memories),
            "said": PAST.get(each.what, each.what),
            "changes": _changes(patches[each.number], memory.id) if each.number else [],
            "undo": bool(each.number) and is_undoable(patches[each.number]),
        }
        for each in chronicle(entries, store.audit.created(memory=memory.id), limit=MOST_HISTORY)
    ]


def _changes(entry: AuditEntry, id: str) -> list[dict[str, Any]]:
    """What an entry changed of one memory: each field as it was and as it became."""
    patch = dict(entry.patch.get("changed", {}).get(id, {}))
    before, after = patch.pop("detail", ({}, {}))
    parts = {name: (before.get(name), after.get(name)) for name in (*before, *after) if name != REVISED}
    return [{"field": name, "before": was, "after": now} for name, (was, now) in {**patch, **parts}.items()]


def _proposes(store: Store, proposal: Memory | Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of other words that an agent proposes for a memory: those that they would replace."""
    detail = proposal.detail if isinstance(proposal, Memory) else proposal["detail"]
    known = store.memories.get([text(detail, REVISES)]) if text(detail, REVISES) else ()
    wanted = detail.get("changes")
    if not known or not isinstance(wanted, Mapping):
        return []
    old = serialize.memory(known[0])
    return [
        {"field": name, "before": old.get(name, old["detail"].get(name, "")), "after": new}
        for name, new in wanted.items()
    ]


def _revises(store: Store, detail: Mapping[str, Any]) -> dict[str, Any] | None:
    """The memory that a proposal has other words for, briefly; none where it is gone, or where it proposes a rule."""
    return next(iter(_briefly(store, [text(detail, REVISES)])), None)


def _waits(memory: Memory) -> str:
    """What the user may decide about: a proposal, a note, or nothing."""
    if memory.status == "proposed":
        return "proposal"
    return "note" if memory.kind == "note" and memory.status == "active" else ""
