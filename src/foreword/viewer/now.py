"""A session, or else the one that told something last -> what it was given, moment by moment, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foreword.errors import NotFound
from foreword.extract.actions import action_of
from foreword.extract.text import cut
from foreword.layout import HINTS_TOKENS, window_totals
from foreword.models import Project
from foreword.store.projects import names
from foreword.viewer.timeline import goes_on
from foreword.worker import serialize

if TYPE_CHECKING:
    from foreword.models import Event, Injection, Memory
    from foreword.worker.app import App

TEXTS = 20  # moments whose text is sent along: 160 KB where each is as long as can be
MOST = 500  # moments at once
OTHERS = 20  # sessions to switch to
NEAR = 5.0  # seconds between a prompt and what a plugin asks for it
SETTLING = 2.0  # seconds: a prompt is kept at once, what it was given a moment later
PROMPT = 600  # characters that are shown of a prompt
TITLE = 90  # characters of one that stands for a title
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
    "empty": "nothing fits this moment",
    "does not fit": "no room was left for it",
    "deadline": "there was no time left for it",
    "off": "it is switched off",
}


def now(app: App, *, session: str = "", limit: int = TEXTS) -> dict[str, Any]:
    """The session with its totals and its moments, the newest first, and the sessions that one may switch to."""
    newest = app.injections(limit=1)["injections"]  # with what hooks spooled
    recent = app.sessions(limit=OTHERS)["sessions"]
    live = _live(recent, newest)
    id = session or live
    if not id:
        return {"session": None, "sessions": [], "moments": [], "more": False, "live": ""}
    given = _given(app, id, limit=limit + 1)
    about = _about(app, id, recent, given)
    silent = app.silences(session_id=id, limit=limit + 1)["silences"]
    triggers = feed(given, app.store.events.prompts(id, limit=limit + 1), silent, now=app.now(), off=_off(app, about))
    told = {**_told(app, about), "totals": _totals(app, id), "ledger": _ledger(app, id)}
    return {
        "session": told,
        "sessions": [_told(app, each) for each in recent],
        "moments": _with_memories(app, triggers[:limit]),
        "more": len(triggers) > limit,
        "live": live,
    }


def feed(
    given: Sequence[Injection],
    prompts: Sequence[Event],
    silent: Sequence[Mapping[str, Any]] = (),
    *,
    now: float,
    off: str = "",
) -> list[dict[str, Any]]:
    """What was given, each with the prompt that it was given for, and what nothing was given for, with the reason."""
    asked = {event.key: event for event in prompts}
    triggers = []
    for each in given:
        prompt = _prompt_of(each.at, asked) if each.trigger == "prompt" else None
        triggers.append(_moment(each, _asked(prompt)))
    for silence in silent:
        prompt = _prompt_of(silence["at"], asked) if silence["trigger"] == "prompt" else None
        triggers.append(_silence(silence, _asked(prompt)))
    triggers += [_untold(event, now=now, off=off) for event in asked.values() if _words(event)]
    # A lost start is given again with the first prompt, and stands before its own block.
    return sorted(triggers, key=lambda each: (-each["at"], each["trigger"] == "session_start"))


def prompt(app: App, key: str, *, session: str) -> dict[str, Any]:
    """All of a prompt, as it is kept: a card shows its beginning."""
    found = next((each for each in app.store.events.prompts(session, limit=MOST + 1) if each.key == key), None)
    if found is None:
        raise NotFound("this prompt is no longer kept", hint="type it again, or as much of it as is shown")
    return {"prompt": _words(found)}


def _live(recent: Sequence[Mapping[str, Any]], newest: Sequence[Mapping[str, Any]]) -> str:
    """The session that told something last, or was given something: where capture is off, nobody tells."""
    told = [(each["last"], each["id"]) for each in recent[:1]]
    told += [(each["at"], each["session"]) for each in newest if each["session"]]
    return max(told, default=(0.0, ""))[1]


def _given(app: App, id: str, *, limit: int) -> tuple[Injection, ...]:
    """What the session was given, newest first, the last ones with their texts."""
    some = min(limit, TEXTS + 1)  # one more tells whether there are more
    last = app.store.injections.list(session=id, limit=some, texts=True)
    known = {each.id for each in last}
    older = app.store.injections.list(session=id, limit=limit) if len(last) == some < limit else ()
    return (*last, *(each for each in older if each.id not in known))


def _about(app: App, id: str, recent: Sequence[Mapping[str, Any]], given: Sequence[Injection]) -> Mapping[str, Any]:
    """What is known of a session; where capture is off, what it was given tells it."""
    known = next((each for each in recent if each["id"] == id), None)
    if known:
        return known
    if found := app.store.sessions.get(id):
        return app.described([found])[0]
    if not given:
        raise NotFound(f"there is no session {id[:80]!r}", hint="/now shows the one that goes on")
    first, last = given[-1], given[0]
    about = {"id": id, "host": last.host, "project": last.project, "cwd": "", "started": first.at, "last": last.at}
    return {**about, "ended": 0.0, "events": 0, "title": "", "summary": ""}


def _told(app: App, about: Mapping[str, Any]) -> dict[str, Any]:
    """A session in a line: its title is that of its summary, or else what it was asked first."""
    first = () if about["title"] else app.store.events.prompts(about["id"], limit=1, oldest=True)
    same = ("id", "host", "project", "cwd", "started", "last", "ended", "events", "summary")
    return {
        **{name: about[name] for name in same},
        "project_name": names(app.registry.known())(about["project"]),
        "title": about["title"] or next((cut(_words(event), TITLE) for event in first), ""),
        "goes_on": goes_on(about["last"], about["ended"], now=app.now()),
    }


def _off(app: App, about: Mapping[str, Any]) -> str:
    """What switches injection off in a session's project now."""
    known = app.registry.known().get(about["project"])
    return app.off(Project(about["project"], known.name if known else "", known.root if known else "")).inject


def _totals(app: App, id: str) -> dict[str, int]:
    items, tokens = app.store.injections.totals(id)
    use = app.store.injections.usage(session=id)
    unjudged = use.shown - use.used - use.ignored
    return {"memories": items, "tokens": tokens, **vars(use), "unjudged": unjudged}


def _ledger(app: App, id: str) -> list[dict[str, Any]]:
    """What its context window was given so far, of what it may be given, by moment."""
    spent = app.store.injections.window_tokens(id)
    allowed = {**window_totals(app.settings.recipes), "tool": HINTS_TOKENS}
    triggers = ("session_start", "prompt", "question", "tool")
    rows = [(trigger, spent.get(trigger, 0), allowed[trigger]) for trigger in triggers]
    return [{"trigger": trigger, "spent": used, "of": most} for trigger, used, most in rows]


def _prompt_of(at: float, asked: dict[str, Event]) -> Event | None:
    """The prompt that was answered then, taken out: a hook's answer has its event's time, any other comes later."""
    before = [event for event in asked.values() if at - NEAR <= event.at <= at]
    found = max(before, key=lambda event: event.at, default=None)
    return asked.pop(found.key) if found else None


def _asked(event: Event | None) -> dict[str, str]:
    """The beginning of a prompt, and where that is not all of it, by which key the whole can be had."""
    words = _words(event) if event else ""
    if event is None or len(words) <= PROMPT:
        return {"prompt": words, "whole": ""}
    return {"prompt": f"{words[: PROMPT - 1].rstrip()}…", "whole": event.key}


def _moment(given: Injection, asked: Mapping[str, str]) -> dict[str, Any]:
    return {
        **serialize.injection(given, text=True),
        "text": given.text or None,  # of older ones it is asked for alone
        **asked,
        "silent": False,
        "pending": False,
        "layers": [{"layer": each, "name": LAYERS.get(each, each), "tokens": n} for each, n in given.layers.items()],
        "skipped": [
            {"layer": each, "name": LAYERS.get(each, each), "why": SKIPPED.get(why, why)}
            for each, why in given.skipped.items()
        ],
    }


def _silence(kept: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, Any]:
    """A moment that nothing was said at, and why; what came nearest, where that fell short."""
    nearest = {name: kept[name] for name in ("title", "score", "needed")}
    return {
        **{name: kept[name] for name in ("id", "trigger", "source", "at", "why", "says", "away", "rejected")},
        **asked,
        "silent": True,
        "pending": False,
        "nearest": {"memory": kept["nearest"], **nearest} if kept["nearest"] else None,
        "text": None,
        "items": [],
    }


def _untold(event: Event, *, now: float, off: str) -> dict[str, Any]:
    """A prompt that nothing was given for, and nobody knows why; of a new one that may still come."""
    return {
        "id": event.key,
        "trigger": "prompt",
        "at": event.at,
        **_asked(event),
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
    """Each item with the title and the kind of its memory; what was forgotten has none."""
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


def _words(event: Event) -> str:
    """What somebody typed; empty where it was no person."""
    action = action_of(event, root="")
    return action.text if action else ""
