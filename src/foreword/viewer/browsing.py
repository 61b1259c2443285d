"""What the page of memories asks for -> JSON: those that are wanted, and how many there are of each sort."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from foreword.errors import BadRequest
from foreword.models import STATUSES, UNIVERSAL, Memory
from foreword.store.browsing import MOST_PAGE
from foreword.store.projects import names
from foreword.store.wanted import FACETS, SHOWN, Wanted
from foreword.worker.http import Request
from foreword.worker.routing import flag, whole, word, words

if TYPE_CHECKING:
    from foreword.worker.app import App

PAGE = 50  # memories
GIST = 200  # characters of a body that a list shows
MOST_TAGS, MOST_FILES = 8, 5  # of one memory in a list
ANY = "any"  # as a status: whatever it is


def browse(app: App, asked: Request) -> dict[str, Any]:
    """A page of the memories that are wanted, as a list shows them."""
    started = time.perf_counter()
    limit = whole(asked, "limit", PAGE, most=MOST_PAGE) or PAGE
    page = app.store.browse(wanted_of(asked), after=word(asked, "after"), limit=limit)
    name = names(app.store.projects.all())
    return {
        "memories": [_line(memory, name) for memory in page.memories],
        "next": page.next,
        "total": page.total,
        "took": round((time.perf_counter() - started) * 1000, 3),
    }


def facets(app: App, asked: Request) -> dict[str, Any]:
    """How many there are of each sort; `exact` is false where some were counted among the newest only."""
    found = app.store.facets(wanted_of(asked))
    name = names(app.store.projects.all())
    told = {
        facet: [
            {"value": each, "label": _label(facet, each, name), "count": count} for each, count in found.counts[facet]
        ]
        for facet in FACETS
    }
    return {"facets": told, "exact": not found.sampled, "sampled": list(found.sampled), "total": found.total}


def projects(app: App) -> dict[str, Any]:
    """Every project, the last one first, as people tell it from the others."""
    every = app.projects.every()["projects"]
    name = names(app.store.projects.all(), also=[each["key"] for each in every])
    return {"projects": [{**each, "name": name(each["key"])} for each in every]}


def wanted_of(asked: Request) -> Wanted:
    """What a request's words say is wanted; without a status, what may be shown."""
    statuses = words(asked, "status") or SHOWN
    unknown = [each for each in statuses if each not in (*STATUSES, ANY)]
    if unknown:
        raise BadRequest(f"there is no status {unknown[0][:40]!r}", hint=f"one of {', '.join((*STATUSES, ANY))}")
    return Wanted(
        words=word(asked, "q"),
        kinds=words(asked, "kind"),
        scopes=(word(asked, "scope"),) if word(asked, "scope") else (),  # one: a folder's name may hold a comma
        project=word(asked, "project"),
        tag=word(asked, "tag"),
        file=word(asked, "file"),
        statuses=() if ANY in statuses else statuses,
        trusts=words(asked, "trust"),
        pinned=flag(asked, "pinned") if word(asked, "pinned") else None,
    )


def _line(memory: Memory, name: Callable[[str], str]) -> dict[str, Any]:
    return {
        "id": memory.id,
        "kind": memory.kind,
        "title": memory.title,
        "gist": " ".join(memory.body[: 2 * GIST].split())[:GIST],
        "scope": memory.scope,
        "project": memory.project,
        "project_name": name(memory.project),
        "status": memory.status,
        "trust": memory.trust,
        "confidence": memory.confidence,
        "created": memory.created,
        "pinned": memory.pinned,
        "used": memory.used,
        "ignored": memory.ignored,
        "tags": list(memory.tags[:MOST_TAGS]),
        "files": list(memory.files[:MOST_FILES]),
    }


def _label(facet: str, each: str, name: Callable[[str], str]) -> str:
    """What people call a value."""
    if facet == "pinned":
        return "pinned" if each == "1" else "not pinned"
    if facet == "scope":
        sort, _, rest = each.partition(":")
        if each == UNIVERSAL:
            return "everywhere"
        return name(rest) if sort == "project" else rest or sort
    return (name(each) or "none") if facet == "project" else each
