"""Tell what a session was given at each trigger, and what came of it; by default of the session that is active now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foreword.extract.actions import action_of
from foreword.extract.text import cut
from foreword.layout import window_budget
from foreword.models import Project
from foreword.store.projects import names
from foreword.worker import serialize
from foreword.worker.handlers import describe_sessions, list_no_context, list_sessions, settled_session
from foreword.worker.pages.timeline import is_running

if TYPE_CHECKING:
    from foreword.models import Event, Injection, Memory
    from foreword.worker.app import App

TEXTS = 20  # triggers that are sent with their text: at most 160 KB
MOST = 200  # triggers at once
OTHERS = 20  # sessions to switch to
NEAR = 5.0  # seconds between a prompt and what a plugin asks for it
PROMPT = 20_000  # characters that are sent of a prompt; recall reads no more of one
TITLE = 90  # characters of a prompt that serves as the title
LAYERS = {
    "standing": "where things stand",
    "sessions": "recent sessions",
    "failures": "what comes back",
    "commands": "how things are run",
    "rules": "rules",
    "knowledge": "for the files in play",
    "changes": "changed code",
    "files": "files",
    "notes": "notes on the prompt",
    "index": "index of what fits",
    "session": "what this session established",
    "past": "relevant past work",
    "answer": "what answers the question",
    "hint": "hint",
}
SKIPPED = {
    "empty": "nothing fits",
    "does not fit": "no room was left for it",
    "deadline": "there was no time left for it",
    "off": "it is switched off",
}


def live(app: App, *, session: str = "", limit: int = TEXTS) -> dict[str, Any]:
    """Return a session with its totals and its triggers, newest first, and the sessions that one may switch to."""
    app.capture.catch_up()  # with what hooks spooled
    recent = list_sessions(app, limit=OTHERS)["sessions"]
    active = recent[0]["id"] if recent else ""
    if not session and not active:
        return {"session": None, "sessions": [], "triggers": [], "more": False, "live": ""}
    id = session or active
    about = next((each for each in recent if each["id"] == id), None)
    about = about or describe_sessions(app, [settled_session(app, id)])[0]
    id = about["id"]
    triggers = _feed(
        app.store.injections.list(session=id, limit=limit + 1, texts=True),
        list_no_context(app, session_id=id, limit=limit + 1)["no_context"],
        app.store.events.prompts(id, limit=limit + 1),
    )
    return {
        "session": {**_session(app, about), **_totals(app, about)},
        "sessions": [_session(app, each) for each in recent],
        "triggers": _with_memories(app, triggers[:limit]),
        "more": len(triggers) > limit,
        "live": active,
    }


def _feed(
    injections: Sequence[Injection], silences: Sequence[Mapping[str, Any]], prompts: Sequence[Event]
) -> list[dict[str, Any]]:
    """Return the injections and the triggers without context, newest first, each with its prompt."""
    unanswered = {event.key: event for event in prompts}

    def prompt_at(trigger: str, at: float) -> str:
        """Return the prompt that was answered then: at its own time by a hook, later by a plugin."""
        before = [event for event in unanswered.values() if at - NEAR <= event.at <= at]
        found = max(before, key=lambda event: event.at, default=None) if trigger == "prompt" else None
        return _words(unanswered.pop(found.key)) if found else ""

    triggers = [
        {
            **serialize.injection(each, text=True),
            "prompt": prompt_at(each.trigger, each.at),
            "silent": False,
            "layers": [{"layer": name, "name": LAYERS.get(name, name), "tokens": n} for name, n in each.layers.items()],
            "skipped": [
                {"layer": name, "name": LAYERS.get(name, name), "why": SKIPPED.get(why, why)}
                for name, why in each.skipped.items()
            ],
        }
        for each in injections
    ]
    for each in silences:
        nearest = {"memory": each["nearest"], **{name: each[name] for name in ("title", "score", "needed")}}
        triggers.append(
            {
                **{name: each[name] for name in ("id", "trigger", "source", "at", "why", "says", "away", "rejected")},
                "prompt": prompt_at(each["trigger"], each["at"]),
                "silent": True,
                "nearest": nearest if each["nearest"] else None,
                "items": [],
            }
        )
    # A session start that was lost is given with the first prompt, and comes before the prompt's own context.
    return sorted(triggers, key=lambda each: (-each["at"], each["trigger"] == "session_start"))


def _session(app: App, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return a session in a line; its title is that of its summary, or else its first prompt."""
    first = () if about["title"] else app.store.events.prompts(about["id"], limit=1, oldest=True)
    same = ("id", "host", "project", "cwd", "started", "last", "ended", "events", "summary")
    return {
        **{name: about[name] for name in same},
        "project_name": names(app.projects.known())(about["project"]),
        "title": about["title"] or next((cut(_words(event), TITLE) for event in first), ""),
        "running": is_running(about["last"], about["ended"], now=app.now()),
    }


def _totals(app: App, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a session was given in all and in its context window, and what switches injection off there."""
    totals = app.store.injections.totals(about["id"])
    use = app.store.injections.usage(session=about["id"])
    spent, allowed = app.store.injections.window_tokens(about["id"]), window_budget(app.settings.layout)
    known = app.projects.known().get(about["project"])
    project = Project(about["project"], known.name if known else "", known.root if known else "")
    return {
        "totals": {
            **{"memories": totals["items"], "tokens": totals["tokens"]},
            **vars(use),
            "unjudged": use.shown - use.used - use.ignored,
        },
        "window": [
            {"trigger": trigger, "spent": spent.get(trigger, 0), "of": allowed[trigger]}
            for trigger in ("session_start", "prompt", "question", "tool")
        ],
        "off": app.projects.policy(project).inject,
    }


def _with_memories(app: App, triggers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the triggers with the title and kind of each item's memory; a forgotten one has none."""
    ids = [item["memory"] for trigger in triggers for item in trigger["items"]]
    known = {memory.id: memory for memory in app.store.memories.get(ids)}
    return [{**trigger, "items": [_item(item, known) for item in trigger["items"]]} for trigger in triggers]


def _item(item: Mapping[str, Any], known: Mapping[str, Memory]) -> dict[str, Any]:
    memory = known.get(item["memory"])
    return {
        **item,
        "layer": LAYERS.get(item["layer"], item["layer"]),
        "title": memory.title if memory else "",
        "kind": memory.kind if memory else "",
        "status": memory.status if memory else "forgotten",
    }


def _words(event: Event) -> str:
    """Return the text of a prompt; empty where no person wrote it."""
    action = action_of(event, root="")
    return action.text[:PROMPT] if action else ""
