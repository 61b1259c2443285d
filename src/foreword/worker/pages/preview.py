"""Preview the context of a prompt: what would be injected within a budget, and what would be left out and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foreword.encoding import storable
from foreword.errors import BadRequest, NotFound
from foreword.layout import MOST_TOKENS, LayerRule, TriggerLayout
from foreword.models import TRIGGERS, Context, Item, Memory, NoContext, Project, Rejected, Session, Trigger
from foreword.recall.pipeline import explain_nothing, requested_trigger
from foreword.redact import redact
from foreword.worker.handlers import describe_sessions
from foreword.worker.pages.live import LAYERS, SKIPPED

if TYPE_CHECKING:
    from foreword.worker.app import App

LEAST_BUDGET = 40  # tokens; the frame of a block and half a line: what it is to have too little
TIMES = 4  # how far the slider goes, in multiples of the setting
SESSIONS = 20  # that can be chosen


def choices(app: App, *, project: str, session: str = "") -> dict[str, Any]:
    """Return what can be chosen for a preview in a project: triggers with their budgets, and sessions.

    The sessions are the last ones and *session*, however old, if it is one of the project's.
    """
    found = _project(app, project)
    last = list(app.store.sessions.list(found.key, limit=SESSIONS))
    known = _session(app, session, found)
    sessions = describe_sessions(
        app, [*last, *([known] if known and known.id not in {each.id for each in last} else [])]
    )
    return {
        "project": {"key": found.key, "name": found.name},
        "off": app.projects.policy(found).inject,
        "triggers": [{"name": name, **_range(app.settings.layout[name])} for name in TRIGGERS],
        "sessions": [{name: each[name] for name in ("id", "host", "last", "title")} for each in sessions],
    }


def preview(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what would be injected and what was rejected; nothing is recorded or counted."""
    trigger = _trigger(app, body)
    layout = app.settings.layout[trigger.name]
    off = app.projects.policy(trigger.project).inject
    got = NoContext("off", budget=trigger.budget) if off else app.context.preview(trigger)
    found = got if isinstance(got, Context) else None
    why, nearest = "", None
    if off:
        why = f"injection is switched off in this project ({off})"
    elif isinstance(got, NoContext):
        numbers = {"spent": got.spent, "allowed": got.allowed}
        why = explain_nothing(trigger.name, got.reason, budget=got.budget, **numbers)
        if got.reason == "below" and got.nearest and got.nearest.score < got.needed:
            nearest = {"score": got.nearest.score, "needed": got.needed}
    known = {each.id: each for each in app.store.memories.get([item.memory for item in found.items] if found else [])}
    lines = found.text.splitlines() if found else []
    items = found.items if found else ()
    return {
        "project": trigger.project.key,
        "name": trigger.project.name,
        "trigger": trigger.name,
        "range": _range(layout),
        "off": off,
        "text": found.text if found else "",
        "tokens": found.tokens if found else 0,
        "budget": got.budget,
        "why": why,
        "nearest": nearest,
        "build_ms": round(got.build_ms, 3),
        "terms": list(got.terms),
        "problems": list(got.problems),
        "layers": [_layer(each, got) for each in layout.layers],
        "items": [_item(each, known[each.memory], lines) for each in items if each.memory in known],
        "rejected": [_rejected(each) for each in got.rejected],
    }


def _layer(rule: LayerRule, got: Context | NoContext) -> dict[str, Any]:
    found = got if isinstance(got, Context) else None
    skipped = got.skipped.get(rule.name, "")
    return {
        "name": rule.name,
        "cap": rule.cap,
        "limit": rule.limit,
        "spent": found.layers.get(rule.name, 0) if found else 0,
        "items": sum(each.layer == rule.name for each in found.items) if found else 0,
        "least": got.needed if isinstance(got, NoContext) else 0.0,
        "skipped": SKIPPED.get(skipped, skipped),
        "heading": LAYERS.get(rule.name, rule.name).capitalize(),
    }


def _item(item: Item, memory: Memory, lines: Sequence[str]) -> dict[str, Any]:
    about = {"layer": item.layer, "score": item.score, "tokens": item.tokens, "why": dict(item.why)}
    line = next((each for each in lines if memory.id in each), "")
    return {**about, **_memory(memory), "line": line, "reason": "", "says": ""}


def _rejected(each: Rejected) -> dict[str, Any]:
    about = {"layer": each.layer, "score": each.ranked.score, "tokens": 0, "why": dict(each.ranked.why)}
    return {**about, **_memory(each.ranked.memory), "line": each.line, "reason": each.reason, "says": each.text}


def _memory(memory: Memory) -> dict[str, Any]:
    scope = memory.scope.partition(":")[0]
    return {"memory": memory.id, "title": memory.title, "kind": memory.kind, "scope": scope}


def _range(layout: TriggerLayout) -> dict[str, int]:
    """Return the range of the budget slider, and the budget of the settings."""
    return {"least": LEAST_BUDGET, "usual": layout.budget, "most": min(MOST_TOKENS, max(1, layout.budget) * TIMES)}


def _trigger(app: App, body: Mapping[str, Any]) -> Trigger:
    texts = {name: body.get(name) or "" for name in ("trigger", "project", "session", "prompt")}
    if wrong := next((name for name, value in texts.items() if not isinstance(value, str)), ""):
        raise BadRequest(f"`{wrong}` must be a text", hint="leave it out for none")
    name, budget = texts["trigger"] or "prompt", body.get("budget") or 0
    if name not in TRIGGERS:
        raise BadRequest(f"unknown trigger {name[:40]!r}", hint=f"one of {', '.join(TRIGGERS)}")
    if type(budget) is not int or not 0 <= budget <= MOST_TOKENS:  # True is an int to Python, and a mistake here
        raise BadRequest(f"`budget` must be a whole number up to {MOST_TOKENS}", hint="leave it out for the setting's")
    project = _project(app, texts["project"])
    if texts["session"] and _session(app, texts["session"], project) is None:
        raise NotFound("there is no such session in this project", hint="leave it out for a new window")
    prompt = redact(storable(texts["prompt"]))  # as the store would have it
    form = "plain" if name == "compaction" else "markdown"
    return requested_trigger(Trigger(name, project, session=texts["session"], prompt=prompt, budget=budget, form=form))


def _project(app: App, key: str) -> Project:
    """Return the project of a key, or the one that it is an alias of."""
    if not key:
        raise BadRequest("`project` is missing", hint="send the key of a project; /api/projects lists them")
    found = app.projects.named(key)
    if found.key not in app.projects.known() and found.key not in app.store.projects.contents():
        raise NotFound(f"no project is known as {key[:200]!r}", hint="/api/projects lists them")
    return found


def _session(app: App, id: str, project: Project) -> Session | None:
    """Return the session whose window budget counts, if it is one of the project's."""
    found = app.store.sessions.get(id) if id else None
    return found if found and app.projects.key(found.project) == project.key else None
