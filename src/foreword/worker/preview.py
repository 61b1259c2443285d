"""Try what would be injected, for the viewer: nothing is recorded or counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foreword.errors import BadRequest, NotFound
from foreword.layout import MOST_TOKENS
from foreword.models import TRIGGERS, Context, Memory, NoContext, Project, Trigger
from foreword.recall.pipeline import requested_trigger
from foreword.redact import redact
from foreword.worker import serialize
from foreword.worker.app import App
from foreword.worker.sessions import heads

SESSIONS = 20  # to choose from
LEAST_BUDGET = 40  # tokens; the frame of a block and half a line: what it is to have too little
TIMES = 4  # how far the budget slider goes, in multiples of the setting


def choices(app: App, *, project: str) -> dict[str, Any]:
    """Return what can be chosen for a preview in a project: triggers with their budgets, and the last sessions."""
    found = _project(app, project)
    budgets = {name: app.settings.layout[name].budget for name in TRIGGERS}
    return {
        "off": app.projects.policy(found).inject,
        "triggers": [
            {"name": name, "least": LEAST_BUDGET, "usual": usual, "most": min(MOST_TOKENS, max(1, usual) * TIMES)}
            for name, usual in budgets.items()
        ],
        "sessions": [
            {name: each[name] for name in ("id", "host", "last", "title")}
            for each in heads(app, app.store.sessions.list(found.key, limit=SESSIONS))
        ],
    }


def preview(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what would be injected and what was rejected; nothing is recorded or counted."""
    trigger = _trigger(app, body)
    off = app.projects.policy(trigger.project).inject
    got = NoContext("off", budget=trigger.budget) if off else app.context.recall(trigger, preview=True)[0]
    answer = serialize.context(got, "", trigger=trigger.name)
    items = got.items if isinstance(got, Context) else ()
    known = {each.id: each for each in app.store.memories.get([item.memory for item in items])}
    lines = answer["context"].splitlines()
    return {
        "trigger": trigger.name,
        "off": off,
        "text": answer["context"],
        **{name: answer[name] for name in ("tokens", "budget", "build_ms", "why")},
        "terms": list(got.terms),
        "problems": list(got.problems),
        "layers": [
            {
                **{"name": rule.name, "cap": rule.cap, "limit": rule.limit},
                "spent": got.layers.get(rule.name, 0) if isinstance(got, Context) else 0,
                "least": got.needed if isinstance(got, NoContext) else 0.0,
                "skipped": got.skipped.get(rule.name, ""),
            }
            for rule in app.settings.layout[trigger.name].layers
        ],
        "items": [
            {
                **_row(known[each.memory], each.score, each.why),
                **{"layer": each.layer, "tokens": each.tokens},
                "line": next((line for line in lines if each.memory in line), ""),
            }
            for each in items
            if each.memory in known
        ],
        "rejected": [
            {
                **_row(each.ranked.memory, each.ranked.score, each.ranked.why),
                **{"layer": each.layer, "tokens": 0, "line": each.line, "reason": each.reason, "says": each.text},
            }
            for each in got.rejected
        ],
    }


def _row(memory: Memory, score: float, why: Mapping[str, float]) -> dict[str, Any]:
    return {"memory": memory.id, "kind": memory.kind, "title": memory.title, "score": score, "why": dict(why)}


def _trigger(app: App, body: Mapping[str, Any]) -> Trigger:
    name, budget = serialize.text(body, "trigger") or "prompt", body.get("budget") or 0
    session, prompt = serialize.text(body, "session"), redact(serialize.text(body, "prompt"))
    if name not in TRIGGERS:
        raise BadRequest(f"unknown trigger {name[:40]!r}", hint=f"one of {', '.join(TRIGGERS)}")
    if type(budget) is not int or not 0 <= budget <= MOST_TOKENS:  # True is an int to Python, and a mistake here
        raise BadRequest(f"`budget` must be a whole number up to {MOST_TOKENS}", hint="leave it out for the setting's")
    project = _project(app, serialize.text(body, "project"))
    known = app.store.sessions.get(session)
    if session and (known is None or app.projects.named(known.project).key != project.key):
        raise NotFound("there is no such session in this project", hint="leave it out for a new window")
    form = "plain" if name == "compaction" else "markdown"
    return requested_trigger(Trigger(name, project, session=session, prompt=prompt, budget=budget, form=form))


def _project(app: App, key: str) -> Project:
    """Return the project of a key, or the one that it is an alias of."""
    found = app.projects.named(key)
    if not key:
        raise BadRequest("`project` is missing", hint="send the key of a project; /api/projects lists them")
    if found.key not in app.projects.known() and found.key not in app.store.projects.contents():
        raise NotFound(f"unknown project {key[:200]!r}", hint="/api/projects lists them")
    return found
