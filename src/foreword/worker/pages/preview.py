"""Preview the context of a prompt: what would be injected within a budget, and what would be left out and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foreword.agents import FILES, find
from foreword.encoding import storable
from foreword.errors import BadRequest, NotFound
from foreword.layout import MOST_TOKENS, LayerRule, TriggerLayout
from foreword.models import FORMS, TRIGGERS, Context, Item, Memory, NoContext, Project, Rejected, Session, Trigger
from foreword.recall.pipeline import asked_trigger, explain_nothing
from foreword.redact import redact
from foreword.worker.handlers import describe_sessions
from foreword.worker.pages.live import LAYERS, SKIPPED

if TYPE_CHECKING:
    from foreword.worker.app import App

LEAST_BUDGET = 40  # tokens; the frame of a block and half a line: what it is to have too little
TIMES = 4  # how far the slider goes, in multiples of the setting
SESSIONS = 20  # that can be chosen


def choices(app: App, *, project: str, session: str = "") -> dict[str, Any]:
    """Return what can be chosen for a preview in a project: triggers with their budgets, sessions, agents, forms.

    The sessions are the last ones and *session*, however old, if it is one of the project's.
    """
    found = _project(app, project)
    sessions = describe_sessions(app, _sessions(app, found, session))
    return {
        "project": {"key": found.key, "name": found.name},
        "off": app.projects.policy(found).inject,
        "triggers": [{"name": name, **_range(app.settings.layout[name])} for name in TRIGGERS],
        "hosts": [{"name": name, "form": find(name).form} for name in FILES],
        "forms": list(FORMS),
        "sessions": [{name: each[name] for name in ("id", "host", "last", "title")} for each in sessions],
    }


def preview(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what would be injected and what was rejected; nothing is recorded or counted."""
    trigger = _trigger(app, body)
    layout = app.settings.layout[trigger.name]
    about = {
        "project": trigger.project.key,
        "name": trigger.project.name,
        "trigger": trigger.name,
        "form": trigger.form,
        "model": trigger.model,
        "range": _range(layout),
    }
    if by := app.projects.policy(trigger.project).inject:
        silent = NoContext("off", budget=trigger.budget)
        why = f"injection is switched off in this project ({by})"
        return {**about, "off": by, **_answer(silent, layout, {}), "why": why, "nearest": None}
    got = app.context.preview(trigger)
    known = app.store.memories.get([item.memory for item in got.items]) if isinstance(got, Context) else ()
    nearest = None
    if isinstance(got, NoContext) and got.reason == "below" and got.nearest and got.nearest.score < got.needed:
        nearest = {"score": got.nearest.score, "needed": got.needed}
    return {
        **about,
        "off": "",
        **_answer(got, layout, {each.id: each for each in known}, trigger.name),
        "nearest": nearest,
    }


def _answer(
    got: Context | NoContext, layout: TriggerLayout, known: Mapping[str, Memory], trigger: str = "prompt"
) -> dict[str, Any]:
    found = got if isinstance(got, Context) else None
    numbers = {} if isinstance(got, Context) else {"spent": got.spent, "allowed": got.allowed}
    why = "" if isinstance(got, Context) else explain_nothing(trigger, got.reason, budget=got.budget, **numbers)
    lines = found.text.splitlines() if found else []
    items = [_item(each, known[each.memory], lines) for each in (found.items if found else ()) if each.memory in known]
    return {
        "text": found.text if found else "",
        "tokens": found.tokens if found else 0,
        "budget": got.budget,
        "why": why,
        "build_ms": round(got.build_ms, 3),
        "terms": list(got.terms),
        "files": list(got.files),
        "problems": list(got.problems),
        "layers": [_layer(each, got) for each in layout.layers],
        "items": items,
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
    name = _one_of(body, "trigger", TRIGGERS) or "prompt"
    host = _one_of(body, "host", tuple(FILES))
    project = _project(app, _text(body, "project"))
    session = _session(app, _text(body, "session"), project)
    form = _one_of(body, "form", FORMS) or (find(host).form if host else "markdown")
    return asked_trigger(
        Trigger(
            name=name,
            project=project,
            session=session,
            prompt=redact(storable(_text(body, "prompt"))),  # as the store would have it
            host=host,
            model=_model(app, name, session, host),
            budget=_budget(body),
            form="plain" if name == "compaction" else form,
        )
    )


def _project(app: App, key: str) -> Project:
    """Return the project of a key, or the one that it is an alias of."""
    if not key:
        raise BadRequest("`project` is missing", hint="send the key of a project; /api/projects lists them")
    found = app.projects.named(key)
    if found.key not in app.projects.known() and found.key not in app.store.projects.contents():
        raise NotFound(f"no project is known as {key[:200]!r}", hint="/api/projects lists them")
    return found


def _sessions(app: App, project: Project, id: str) -> list[Session]:
    last = list(app.store.sessions.list(project.key, limit=SESSIONS))
    known = _known(app, id, project)
    return [*last, known] if known and id not in {each.id for each in last} else last


def _session(app: App, id: str, project: Project) -> str:
    """Return the session whose window budget counts, which must be one of the project's."""
    if id and _known(app, id, project) is None:
        raise NotFound(f"there is no session {id[:80]!r} in this project", hint="leave it out for a new window")
    return id


def _known(app: App, id: str, project: Project) -> Session | None:
    found = app.store.sessions.get(id) if id else None
    return found if found and app.projects.key(found.project) == project.key else None


def _model(app: App, trigger: str, session: str, host: str) -> str:
    """Return the model that this session's or agent's last such hook named: tokens are estimated for it."""
    latest = "" if session or not host else next((each.id for each in app.store.sessions.list(host=host, limit=1)), "")
    event = app.store.events.last(session or latest, trigger) if session or latest else None
    return find(event.host).parse(event.payload).model if event and event.host in FILES else ""


def _budget(body: Mapping[str, Any]) -> int:
    budget = body.get("budget") or 0
    if type(budget) is not int or not 0 <= budget <= MOST_TOKENS:  # True is an int to Python, and a mistake here
        raise BadRequest(f"`budget` must be a whole number up to {MOST_TOKENS}", hint="leave it out for the setting's")
    return budget


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name) or ""
    if not isinstance(value, str):
        raise BadRequest(f"`{name}` must be a text", hint="leave it out for none")
    return value


def _one_of(body: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    value = _text(body, name)
    if value and value not in known:
        raise BadRequest(f"unknown {name} {value[:40]!r}", hint=f"one of {', '.join(known)}")
    return value
