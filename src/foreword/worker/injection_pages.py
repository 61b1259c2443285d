"""Show what was injected into a session at each trigger (Now), and what would be injected (Try it)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from foreword.errors import BadRequest, NotFound
from foreword.extract.actions import action_of
from foreword.layout import MOST_TOKENS, window_budget
from foreword.models import TRIGGERS, Context, NoContext, Project, Trigger
from foreword.recall.pipeline import requested_trigger
from foreword.redact import redact
from foreword.worker import serialize
from foreword.worker.handlers import describe_sessions, list_no_context, settled_session
from foreword.worker.session_pages import heads

if TYPE_CHECKING:
    from foreword.models import Event
    from foreword.worker.app import App

TEXTS = 20  # triggers that are sent with their text: at most 160 KB
SESSIONS = 20  # to switch to, or to choose for a preview
NEAR = 5.0  # seconds between a prompt and what a plugin asks for it
PROMPT = 20_000  # characters that are sent of a prompt; recall reads no more of one
LEAST_BUDGET = 40  # tokens; the frame of a block and half a line: what it is to have too little
TIMES = 4  # how far the budget slider goes, in multiples of the setting


def live(app: App, *, session: str = "", limit: int = TEXTS) -> dict[str, Any]:
    """Return a session, by default the active one, with its totals and triggers, newest first, and other sessions."""
    app.capture.catch_up()  # with what hooks spooled
    recent = heads(app, app.store.sessions.list(limit=SESSIONS))
    active = recent[0]["id"] if recent else ""
    if not session and not active:
        return {"session": None, "sessions": [], "triggers": [], "more": False, "live": ""}
    about = next((each for each in recent if each["id"] == (session or active)), None)
    about = about or heads(app, [settled_session(app, session)])[0]
    triggers = _triggers(app, about["id"], limit=limit + 1)
    return {
        "session": {**about, **_totals(app, about)},
        "sessions": recent,
        "triggers": triggers[:limit],
        "more": len(triggers) > limit,
        "live": active,
    }


def _totals(app: App, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was injected into a session in all and in its context window, and what switches injection off."""
    injections = app.store.injections
    totals, use = injections.totals(about["id"]), injections.usage(session=about["id"])
    spent, allowed = injections.window_tokens(about["id"]), window_budget(app.settings.layout)
    unjudged = use.shown - use.used - use.ignored
    return {
        "totals": {"memories": totals["items"], "tokens": totals["tokens"], **use._asdict(), "unjudged": unjudged},
        "window": [
            {"trigger": trigger, "spent": spent.get(trigger, 0), "of": allowed[trigger]}
            for trigger in ("session_start", "prompt", "question", "tool")
        ],
        "off": app.projects.policy(app.projects.named(about["project"])).inject,
    }


def _triggers(app: App, session: str, *, limit: int) -> list[dict[str, Any]]:
    """Return the injections and the triggers without context, newest first, each with its prompt."""
    injections = app.store.injections.list(session=session, limit=limit, texts=True)
    ids = [item.memory for each in injections for item in each.items]
    known = {
        each.id: {"title": each.title, "kind": each.kind, "status": each.status} for each in app.store.memories.get(ids)
    }
    forgotten = {"title": "", "kind": "", "status": "forgotten"}
    rows = [
        {
            **serialize.injection(each, text=True),
            "silent": False,
            "layers": [{"name": name, "tokens": tokens} for name, tokens in each.layers.items()],
            "skipped": [{"name": name, "why": why} for name, why in each.skipped.items()],
            "items": [{**vars(item), **known.get(item.memory, forgotten)} for item in each.items],
        }
        for each in injections
    ]
    for each in list_no_context(app, session_id=session, limit=limit)["no_context"]:
        nearest = {"memory": each["nearest"], **{name: each[name] for name in ("title", "score", "needed")}}
        rows.append({**each, "silent": True, "nearest": nearest if each["nearest"] else None, "items": []})
    # A session start that was lost comes with the first prompt, before the prompt's own context.
    rows.sort(key=lambda each: (-each["at"], each["trigger"] == "session_start"))
    _add_prompts(rows, {event.key: event for event in app.store.events.prompts(session, limit=limit)})
    return rows


def _add_prompts(rows: list[dict[str, Any]], unanswered: dict[str, Event]) -> None:
    """Add to each trigger the prompt that it answered: at its own time by a hook, a little later by a plugin."""
    for row in rows:
        before = [event for event in unanswered.values() if row["at"] - NEAR <= event.at <= row["at"]]
        found = max(before, key=lambda event: event.at, default=None) if row["trigger"] == "prompt" else None
        action = action_of(unanswered.pop(found.key), root="") if found else None
        row["prompt"] = action.text[:PROMPT] if action else ""  # empty where no person wrote it


# ---- what would be injected


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
            for each in describe_sessions(app, app.store.sessions.list(found.key, limit=SESSIONS))
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
                **{"memory": each.memory, "kind": known[each.memory].kind, "title": known[each.memory].title},
                **{"layer": each.layer, "score": each.score, "tokens": each.tokens, "why": dict(each.why)},
                "line": next((line for line in lines if each.memory in line), ""),
            }
            for each in items
            if each.memory in known
        ],
        "rejected": [
            {
                **{"memory": each.ranked.memory.id, "kind": each.ranked.memory.kind, "title": each.ranked.memory.title},
                **{"layer": each.layer, "score": each.ranked.score, "tokens": 0, "why": dict(each.ranked.why)},
                **{"line": each.line, "reason": each.reason, "says": each.text},
            }
            for each in got.rejected
        ],
    }


def _trigger(app: App, body: Mapping[str, Any]) -> Trigger:
    name, budget = serialize.text(body, "trigger") or "prompt", body.get("budget") or 0
    session, prompt = serialize.text(body, "session"), redact(serialize.text(body, "prompt"))
    if name not in TRIGGERS:
        raise BadRequest(f"unknown trigger {name[:40]!r}", hint=f"one of {', '.join(TRIGGERS)}")
    if type(budget) is not int or not 0 <= budget <= MOST_TOKENS:  # True is an int to Python, and a mistake here
        raise BadRequest(f"`budget` must be a whole number up to {MOST_TOKENS}", hint="leave it out for the setting's")
    project = _project(app, serialize.text(body, "project"))
    known = app.store.sessions.get(session) if session else None
    if session and (known is None or app.projects.key(known.project) != project.key):
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
