"""Tell what a session was given at each trigger, and what came of it; by default of the session that is active now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foreword.errors import NotFound
from foreword.extract.actions import action_of
from foreword.extract.text import cut
from foreword.layout import window_budget
from foreword.models import Project
from foreword.store.projects import names
from foreword.worker import serialize
from foreword.worker.handlers import describe_sessions, list_injections, list_no_context, list_sessions
from foreword.worker.pages.timeline import is_running

if TYPE_CHECKING:
    from foreword.models import Event, Injection, Memory
    from foreword.worker.app import App

TEXTS = 20  # triggers whose text is sent along: at most 160 KB
MOST = 500  # triggers at once
OTHERS = 20  # sessions to switch to
NEAR = 5.0  # seconds between a prompt and what a plugin asks for it
SETTLING = 2.0  # seconds: a prompt is stored at once, its injection a little later
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
    newest = list_injections(app, limit=1)["injections"]  # with what hooks spooled
    recent = list_sessions(app, limit=OTHERS)["sessions"]
    active = _active(recent, newest)
    id = session or active
    if not id:
        return {"session": None, "sessions": [], "triggers": [], "more": False, "live": ""}
    injections = _injections(app, id, limit=limit + 1)
    about = _about(app, id, recent, injections)
    silent = list_no_context(app, session_id=id, limit=limit + 1)["no_context"]
    triggers = feed(
        injections, app.store.events.prompts(id, limit=limit + 1), silent, now=app.now(), off=_off(app, about)
    )
    shown = {**_session(app, about), "totals": _totals(app, id), "window": _window(app, id)}
    return {
        "session": shown,
        "sessions": [_session(app, each) for each in recent],
        "triggers": _with_memories(app, triggers[:limit]),
        "more": len(triggers) > limit,
        "live": active,
    }


def feed(
    injections: Sequence[Injection],
    prompts: Sequence[Event],
    silent: Sequence[Mapping[str, Any]] = (),
    *,
    now: float,
    off: str = "",
) -> list[dict[str, Any]]:
    """Return the injections, each with its prompt, and the triggers without context, each with its reason."""
    unanswered = {event.key: event for event in prompts}
    triggers = []
    for each in injections:
        prompt = _take_prompt(each.at, unanswered) if each.trigger == "prompt" else None
        triggers.append(_injected(each, prompt))
    for silence in silent:
        prompt = _take_prompt(silence["at"], unanswered) if silence["trigger"] == "prompt" else None
        triggers.append(_silent(silence, prompt))
    triggers += [_unexplained(event, now=now, off=off) for event in unanswered.values() if _words(event)]
    # A session start that was lost is given with the first prompt, and comes before the prompt's own context.
    return sorted(triggers, key=lambda each: (-each["at"], each["trigger"] == "session_start"))


def _active(recent: Sequence[Mapping[str, Any]], newest: Sequence[Mapping[str, Any]]) -> str:
    """Return the session of the last event or injection: where capture is off, there are only injections."""
    times = [(each["last"], each["id"]) for each in recent[:1]]
    times += [(each["at"], each["session"]) for each in newest if each["session"]]
    return max(times, default=(0.0, ""))[1]


def _injections(app: App, id: str, *, limit: int) -> tuple[Injection, ...]:
    """Return the session's injections, newest first, the last ones with their texts."""
    some = min(limit, TEXTS + 1)  # one more tells whether there are more
    last = app.store.injections.list(session=id, limit=some, texts=True)
    known = {each.id for each in last}
    older = app.store.injections.list(session=id, limit=limit) if len(last) == some < limit else ()
    return (*last, *(each for each in older if each.id not in known))


def _about(
    app: App, id: str, recent: Sequence[Mapping[str, Any]], injections: Sequence[Injection]
) -> Mapping[str, Any]:
    """Return what is known of a session; where capture is off, that is what its injections tell."""
    known = next((each for each in recent if each["id"] == id), None)
    if known:
        return known
    if found := app.store.sessions.get(id):
        return describe_sessions(app, [found])[0]
    if not injections:
        raise NotFound(f"there is no session {id[:80]!r}", hint="/now shows the active one")
    first, last = injections[-1], injections[0]
    about = {"id": id, "host": last.host, "project": last.project, "cwd": "", "started": first.at, "last": last.at}
    return {**about, "ended": 0.0, "events": 0, "title": "", "summary": ""}


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


def _off(app: App, about: Mapping[str, Any]) -> str:
    """Return what switches injection off in a session's project now; empty where nothing does."""
    known = app.projects.known().get(about["project"])
    return app.projects.policy(
        Project(about["project"], known.name if known else "", known.root if known else "")
    ).inject


def _totals(app: App, id: str) -> dict[str, int]:
    totals = app.store.injections.totals(id)
    use = app.store.injections.usage(session=id)
    unjudged = use.shown - use.used - use.ignored
    return {"memories": totals["items"], "tokens": totals["tokens"], **vars(use), "unjudged": unjudged}


def _window(app: App, id: str) -> list[dict[str, Any]]:
    """Return the tokens that its context window was given, and the window budget, by trigger."""
    spent = app.store.injections.window_tokens(id)
    allowed = window_budget(app.settings.layout)
    triggers = ("session_start", "prompt", "question", "tool")
    rows = [(trigger, spent.get(trigger, 0), allowed[trigger]) for trigger in triggers]
    return [{"trigger": trigger, "spent": used, "of": most} for trigger, used, most in rows]


def _take_prompt(at: float, unanswered: dict[str, Event]) -> Event | None:
    """Remove and return the prompt that was answered then: at its own time by a hook, later by a plugin."""
    before = [event for event in unanswered.values() if at - NEAR <= event.at <= at]
    found = max(before, key=lambda event: event.at, default=None)
    return unanswered.pop(found.key) if found else None


def _injected(injection: Injection, prompt: Event | None) -> dict[str, Any]:
    return {
        **serialize.injection(injection, text=True),
        "text": injection.text or None,  # that of older ones is asked for alone
        "prompt": _words(prompt),
        "silent": False,
        "pending": False,
        "layers": [
            {"layer": each, "name": LAYERS.get(each, each), "tokens": n} for each, n in injection.layers.items()
        ],
        "skipped": [
            {"layer": each, "name": LAYERS.get(each, each), "why": SKIPPED.get(why, why)}
            for each, why in injection.skipped.items()
        ],
    }


def _silent(silence: Mapping[str, Any], prompt: Event | None) -> dict[str, Any]:
    """Return a trigger that got no context, with the reason and the memory that came nearest."""
    nearest = {name: silence[name] for name in ("title", "score", "needed")}
    return {
        **{name: silence[name] for name in ("id", "trigger", "source", "at", "why", "says", "away", "rejected")},
        "prompt": _words(prompt),
        "silent": True,
        "pending": False,
        "nearest": {"memory": silence["nearest"], **nearest} if silence["nearest"] else None,
        "text": None,
        "items": [],
    }


def _unexplained(event: Event, *, now: float, off: str) -> dict[str, Any]:
    """Return a prompt without context or reason; the context of a new one may still come."""
    return {
        "id": event.key,
        "trigger": "prompt",
        "at": event.at,
        "prompt": _words(event),
        "silent": True,
        "pending": 0 <= now - event.at < SETTLING and not off,
        "why": "off" if off else "",
        "says": f"injection is switched off in this project ({off})" if off else "",
        "rejected": [],
        "nearest": None,
        "text": None,
        "items": [],
    }


def _with_memories(app: App, triggers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the triggers with the title and kind of each item's memory; a forgotten one has none."""
    ids = [item["memory"] for trigger in triggers for item in trigger["items"]]
    known = {memory.id: memory for memory in app.store.memories.get(ids)}
    return [{**trigger, "items": [_item(item, known) for item in trigger["items"]]} for trigger in triggers]


def _item(item: Mapping[str, Any], known: Mapping[str, Memory]) -> dict[str, Any]:
    memory = known.get(item["memory"])
    layer = LAYERS.get(item["layer"], item["layer"])
    return {
        **item,
        "layer": layer,
        "title": memory.title if memory else "",
        "kind": memory.kind if memory else "",
        "status": memory.status if memory else "forgotten",
    }


def _words(event: Event | None) -> str:
    """Return the text of a prompt; empty where no person wrote it."""
    action = action_of(event, root="") if event else None
    return action.text[:PROMPT] if action else ""
