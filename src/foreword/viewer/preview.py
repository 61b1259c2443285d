"""A prompt, a project and a budget -> what would be injected, and what would be left out; the choices for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foreword.agents import FILES, find
from foreword.encoding import storable
from foreword.errors import BadRequest, NotFound
from foreword.layout import MOST_TOKENS, LayerRule, Layout
from foreword.models import FORMS, TRIGGERS, Context, Item, Memory, NoContext, Project, Rejected, Session, Trigger
from foreword.recall.pipeline import asked_trigger, explain_nothing
from foreword.redact import redact
from foreword.viewer.now import LAYERS, SKIPPED

if TYPE_CHECKING:
    from foreword.worker.app import App

LEAST_BUDGET = 40  # tokens; the frame of a block and half a line: what it is to have too little
TIMES = 4  # the setting, as far as the slider goes
SESSIONS = 20  # that can be chosen


def choices(app: App, *, project: str, session: str = "") -> dict[str, Any]:
    """What can be chosen for a trial in a project: moments with their budgets, sessions, hosts with their forms.

    The last sessions, and with them *session*, however long ago it was, if it is one of the project's.
    """
    found = _project(app, project)
    sessions = app.described(_sessions(app, found, session))
    return {
        "project": {"key": found.key, "name": found.name},
        "off": app.off(found).inject,
        "moments": [{"name": name, **_range(app.settings.recipes[name])} for name in TRIGGERS],
        "hosts": [{"name": name, "form": find(name).form} for name in FILES],
        "forms": list(FORMS),
        "sessions": [{name: each[name] for name in ("id", "host", "last", "title")} for each in sessions],
    }


def trial(app: App, told: Mapping[str, Any]) -> dict[str, Any]:
    """What would be put in front of a prompt, and what just missed it; nothing of it is kept or counted."""
    trigger = _moment(app, told)
    asked = {
        "project": trigger.project.key,
        "name": trigger.project.name,
        "trigger": trigger.name,
        "form": trigger.form,
    }
    asked["model"] = trigger.model
    about = {**asked, "range": _range(app.settings.recipes[trigger.name])}
    recipe = app.settings.recipes[trigger.name]
    if by := app.off(trigger.project).inject:
        silent = NoContext("off", budget=trigger.budget)
        why = f"injection is switched off in this project ({by})"
        return {**about, "off": by, **_answer(silent, recipe, {}), "why": why, "nearest": None}
    got = app.recalling.preview(trigger)
    known = app.store.memories.get([item.memory for item in got.items]) if isinstance(got, Context) else ()
    nearest = None
    if isinstance(got, NoContext) and got.reason == "below" and got.nearest and got.nearest.score < got.needed:
        nearest = {"score": got.nearest.score, "needed": got.needed}
    return {
        **about,
        "off": "",
        **_answer(got, recipe, {each.id: each for each in known}, trigger.name),
        "nearest": nearest,
    }


def _answer(
    got: Context | NoContext, recipe: Layout, known: Mapping[str, Memory], trigger: str = "prompt"
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
        "layers": [_layer(each, got) for each in recipe.layers],
        "items": items,
        "left": [_rejected(each) for each in got.rejected],
        "more": 0,
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


def _range(recipe: Layout) -> dict[str, int]:
    """How far a budget can be moved, and where the settings have it."""
    return {"least": LEAST_BUDGET, "usual": recipe.budget, "most": min(MOST_TOKENS, max(1, recipe.budget) * TIMES)}


def _moment(app: App, told: Mapping[str, Any]) -> Trigger:
    name = _one_of(told, "trigger", TRIGGERS) or "prompt"
    host = _one_of(told, "host", tuple(FILES))
    project = _project(app, _text(told, "project"))
    session = _session(app, _text(told, "session"), project)
    form = _one_of(told, "form", FORMS) or (find(host).form if host else "markdown")
    return asked_trigger(
        Trigger(
            name=name,
            project=project,
            session=session,
            prompt=redact(storable(_text(told, "prompt"))),  # as it would have come to the store
            host=host,
            model=_model(app, name, session, host),
            budget=_budget(told),
            form="plain" if name == "compaction" else form,
        )
    )


def _project(app: App, key: str) -> Project:
    """The project of a key, as which it counts."""
    if not key:
        raise BadRequest("a project must be chosen", hint="send its key as `project`; /api/projects lists them")
    found = app.registry.named(key)
    if found.key not in app.registry.known() and found.key not in app.store.projects.contents():
        raise NotFound(f"no project is known as {key[:200]!r}", hint="/api/projects lists them")
    return found


def _sessions(app: App, project: Project, asked: str) -> list[Session]:
    last = list(app.store.sessions.list(project.key, limit=SESSIONS))
    known = _known(app, asked, project)
    return [*last, known] if known and asked not in {each.id for each in last} else last


def _session(app: App, id: str, project: Project) -> str:
    """The session whose window counts, which must be one of the project's."""
    if id and _known(app, id, project) is None:
        raise NotFound(f"there is no session {id[:80]!r} in this project", hint="leave it out for a new window")
    return id


def _known(app: App, id: str, project: Project) -> Session | None:
    found = app.store.sessions.get(id) if id else None
    return found if found and app.registry.key(found.project) == project.key else None


def _model(app: App, trigger: str, session: str, host: str) -> str:
    """What the hook of such a moment named last, in this session or at this host: tokens are counted for it."""
    latest = "" if session or not host else next((each.id for each in app.store.sessions.list(host=host, limit=1)), "")
    event = app.store.events.last(session or latest, trigger) if session or latest else None
    return find(event.host).parse(event.payload).model if event and event.host in FILES else ""


def _budget(told: Mapping[str, Any]) -> int:
    budget = told.get("budget") or 0
    if type(budget) is not int or not 0 <= budget <= MOST_TOKENS:  # true is an int to Python, and a slip to us
        raise BadRequest(f"`budget` must be a whole number up to {MOST_TOKENS}", hint="leave it out for the setting's")
    return budget


def _text(told: Mapping[str, Any], name: str) -> str:
    given = told.get(name) or ""
    if not isinstance(given, str):
        raise BadRequest(f"`{name}` must be a text", hint="leave it out for none")
    return given


def _one_of(told: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    given = _text(told, name)
    if given and given not in known:
        raise BadRequest(f"unknown {name} {given[:40]!r}", hint=f"one of {', '.join(known)}")
    return given
