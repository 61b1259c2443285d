"""Answer requests about sessions: list them, with what came of each, and tell one of them step by step.

A step is a prompt, an answer, a command, an edit, an injection, or a memory that came of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foreword.errors import BadRequest, NotFound
from foreword.extract.actions import Action, action_of
from foreword.extract.commands import command_of
from foreword.extract.failures import failure_of, run_of
from foreword.extract.merge import open_items
from foreword.extract.session import is_test, session_uid
from foreword.extract.text import cut
from foreword.layout import window_budget
from foreword.models import Change, Event, Memory, Session, text, texts
from foreword.recall.start import resume
from foreword.store.projects import counts_as, names
from foreword.worker import serialize
from foreword.worker.app import App
from foreword.worker.injections import describe_injections

TRIGGERS = 20  # that are sent with their text: at most 160 KB
SESSIONS = 20  # to switch to
NEAR = 5.0  # seconds between a prompt and what a plugin asks for it
PROMPT = 20_000  # characters that are sent of a prompt; recall reads no more of one
FEW = 5  # of one sort, in a row of the timeline; the story has all
MOST_CHANGES, MOST_MEMORIES, MOST_NO_CONTEXT = 300, 1_000, 50  # of a session, that are read
MOST_STEPS = 500  # of a longer session the last ones are shown
EVENTS = 1_000  # the newest, which are read for them: reading files makes no step
TITLE, SUMMARY, FIX, TEXT, OUTPUT, COMMAND = 160, 600, 150, 1_200, 700, 300  # characters
QUIET = 30 * 60.0  # seconds: an agent that works tells something within minutes
# The order of steps at the same time: causes before what came of them.
ORDER = {name: at for at, name in enumerate(("start", "prompt", "injected", "edit", "run", "failure", "kept"))}

Step = dict[str, Any]


def list_sessions(app: App, *, project_path: str = "", limit: int = 20) -> dict[str, Any]:
    """Return the newest sessions of a project, or of all."""
    return {"sessions": heads(app, app.store.sessions.list(app.projects.key_at(project_path), limit=limit))}


def settled_session(app: App, id: str) -> Session:
    """Return a session, by its id or the beginning of it, after its extraction was waited for a moment."""
    sessions = app.store.sessions
    found = sessions.get(id) or next(iter(sessions.list(prefix=id, limit=1) if id else ()), None)
    if found is None:
        raise NotFound(f"there is no session {id!r}", hint="`foreword sessions` lists them")
    app.extraction.settle(found.project)
    return sessions.get(found.id) or found  # as it is now


def show_resume(app: App, *, project_path: str, limit: int = 10) -> dict[str, Any]:
    """Return the state of a project for a person who comes back; nothing is recorded."""
    project = app.projects.at(project_path)
    points = resume(app.store.search, project, now=app.now(), limit=limit)
    return {"project": project.key, "name": project.name, **points}


# ---- what is going on


def live(app: App, *, session: str = "", limit: int = TRIGGERS) -> dict[str, Any]:
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
    use, spent = injections.usage(session=about["id"]), injections.window_tokens(about["id"])
    allowed, unjudged = window_budget(app.settings.layout), use["shown"] - use["used"] - use["ignored"]
    return {
        "totals": {**use, "unjudged": unjudged},
        "window": [
            {"trigger": trigger, "spent": spent.get(trigger, 0), "of": allowed[trigger]}
            for trigger in ("session_start", "prompt", "question", "tool")
        ],
        "off": app.projects.policy(app.projects.named(about["project"])).inject,
    }


def _triggers(app: App, session: str, *, limit: int) -> list[dict[str, Any]]:
    """Return the injections and the triggers without context, newest first, each with its prompt."""
    injected, nothing = (
        app.store.injections.list(session=session, limit=limit, texts=True, empty=empty) for empty in (False, True)
    )
    rows = describe_injections(app, [*injected, *nothing], text=True)
    # A session start that was lost comes with the first prompt, before the prompt's own context.
    rows.sort(key=lambda each: (-each["at"], each["trigger"] == "session_start"))
    prompts = app.store.events.list(session, kind="prompt", newest=True, limit=limit)
    _add_prompts(rows, {event.key: event for event in prompts})
    return rows


def _add_prompts(rows: list[dict[str, Any]], unanswered: dict[str, Event]) -> None:
    """Add to each trigger the prompt that it answered: at its own time by a hook, a little later by a plugin."""
    for row in rows:
        before = [event for event in unanswered.values() if row["at"] - NEAR <= event.at <= row["at"]]
        found = max(before, key=lambda event: event.at, default=None) if row["trigger"] == "prompt" else None
        action = action_of(unanswered.pop(found.key), root="") if found else None
        row["prompt"] = action.text[:PROMPT] if action else ""  # empty where no person wrote it


# ---- the timeline


def timeline(app: App, *, project: str = "", before: str = "", limit: int = 30) -> dict[str, Any]:
    """Return sessions of a project and its aliases, or of all, older than *before*; `next` leads to older ones."""
    registry, limit = app.store.projects.all(), max(1, limit)
    keys: tuple[str, ...] = ()
    if project:  # older sessions of an alias are stored under their own key
        key = counts_as(project, registry)
        keys = (key, *(each for each, about in registry.items() if about.alias_of == key))
    last, _, id = before.partition("/")
    try:
        at = float(last or "inf")
    except ValueError:
        at = -1.0
    if not at >= 0:
        raise BadRequest(f"invalid `before`: {before[:40]!r}", hint="send the `next` of an earlier answer")
    found = app.store.sessions.list(*keys, before=(at, id), limit=limit + 1)
    rows = [
        {**row, **_came_of(app, session, _memories(app, session), most=FEW)}
        for row, session in zip(heads(app, found[:limit]), found[:limit], strict=True)
    ]
    return {"sessions": rows, "next": f"{found[limit - 1].last!r}/{found[limit - 1].id}" if len(found) > limit else ""}


def heads(app: App, sessions: Sequence[Session]) -> list[dict[str, Any]]:
    """Return what identifies sessions; the title is that of the summary, or until there is one the first prompt."""
    name = names(app.projects.known())
    uids = [session_uid("sum", project=each.project, session=each.id) for each in sessions]
    known = {(memory.uid, memory.scope): memory for memory in app.store.memories.get_by_uid(uids)}
    rows = []
    for session, uid in zip(sessions, uids, strict=True):
        summary = known.get((uid, f"project:{session.project}"))
        first = () if summary else app.store.events.list(session.id, kind="prompt", limit=1)
        prompts = [action.text for event in first if (action := action_of(event, root=""))]
        rows.append(
            {
                **vars(session),
                "title": cut(summary.title if summary else "".join(prompts), TITLE),
                "summary": summary.id if summary else "",
                "project_name": name(session.project),
                # A clock may be set back.
                "running": not session.ended and abs(app.now() - session.last) < QUIET,
            }
        )
    return rows


def _memories(app: App, session: Session) -> list[Memory]:
    """Return what a session came to or saw, but for its changes of code."""
    return [
        each
        for each in app.store.memories.of_session(session.id, limit=MOST_MEMORIES)
        if each.kind != "change" and each.status != "discarded"
    ]


def _came_of(app: App, session: Session, memories: Sequence[Memory], *, most: int) -> dict[str, Any]:
    """Return what came of a session: at most so many of each sort, and how many more there are."""
    of: dict[str, list[Memory]] = {}
    for each in memories:
        of.setdefault(each.kind, []).append(each)
    # Where it was in several projects, the summary of its own.
    summary = next(iter(sorted(of.get("summary", ()), key=lambda each: each.project != session.project)), None)
    detail: Mapping[str, Any] = summary.detail if summary else {}
    branch, pull, fate = (text(detail, name) for name in ("branch", "pull_request", "fate"))
    left = [*of.get("handoff", ()), *([summary] if summary else [])]
    rules = [*of.get("preference", ()), *of.get("correction", ())]
    lists: dict[str, list[Any]] = {
        # A function says more than the name of its test.
        "changed": [
            {name: getattr(each, name) for name in ("file", "function", "what", "signature")}
            for each in sorted(_changes(app, session, memories), key=lambda change: is_test(change.file))
        ],
        "failures": [_failure(each) for each in of.get("failure", ())],
        "decisions": [_named(each) for each in of.get("decision", ())],
        "rules": [_named(each) for each in rules],
        "learned": [_named(each) for each in of.get("learning", ())],
        "next": list(dict.fromkeys(item for each in left for item in open_items(each))),
    }
    return {
        "summary": cut(summary.body, SUMMARY) if summary else "",
        "summary_id": summary.id if summary else "",
        "work": ", ".join(filter(None, (branch and f"branch {branch}", pull and f"pull request {pull}", fate))),
        **{sort: items[:most] for sort, items in lists.items()},
        "more": {sort: len(items) - most for sort, items in lists.items() if len(items) > most},
        "injected": app.store.injections.usage(session=session.id),
    }


def _changes(app: App, session: Session, memories: Iterable[Memory]) -> list[Change]:
    """Return the functions that a session changed in every project that it was in, newest first."""
    projects = dict.fromkeys((session.project, *(each.project for each in memories)))
    found = [app.store.sessions.changes(key, session=session.id, limit=MOST_CHANGES) for key in projects]
    changes = dict.fromkeys(change for some in found for change in some)
    return sorted(changes, key=lambda change: -change.at)[:MOST_CHANGES]


def _named(memory: Memory) -> dict[str, Any]:
    """Return what identifies a memory in a list."""
    return {"id": memory.id, "kind": memory.kind, "title": cut(memory.title, TITLE), "status": memory.status}


def _failure(memory: Memory) -> dict[str, Any]:
    """Return what broke, how often it was seen, what fixed it, and whether it still fails."""
    fix, still = text(memory.detail, "fix"), memory.detail.get("open")
    fails = memory.status == "active" and (still if isinstance(still, bool) else not fix)
    return {**_named(memory), "fix": cut(fix, FIX), "open": fails, "seen": memory.seen}


# ---- one session


def story(app: App, id: str) -> dict[str, Any]:
    """Return what came of a session, and its steps, oldest first; of a very long one the last steps."""
    session, store = settled_session(app, id), app.store
    memories = _memories(app, session)
    events = store.events.list(session.id, limit=EVENTS, newest=True)
    roots = {key: known.root for key, known in store.projects.all().items()}
    actions = [
        action
        for event in sorted(events, key=lambda event: (event.at, event.number))
        if (action := action_of(event, root=roots.get(event.project, session.cwd)))
    ]
    turns = {each.uid: each for each in memories if each.kind == "turn"}
    steps = [step for action in actions if (step := _step(action, session, turns))]
    prompted = {step["turn"] for step in steps if "turn" in step}
    steps += [
        {
            **{name: getattr(each, name) for name in ("at", "trigger", "tokens")},
            "what": "injected",
            "memories": len({item.memory for item in each.items}),
            "used": len({item.memory for item in each.items if item.used}),
        }
        for each in store.injections.list(session=session.id, limit=MOST_STEPS)
    ]
    steps += [_kept(each, session) for each in memories if each.kind != "summary" and each.id not in prompted]
    nothing = store.injections.list(session=session.id, limit=MOST_NO_CONTEXT, empty=True)
    steps.sort(key=lambda step: (step["at"], ORDER.get(step["what"], len(ORDER))))
    unread = max(0, session.events - len(events)) if len(events) == EVENTS else 0
    return {
        "session": {**heads(app, [session])[0], **_came_of(app, session, memories, most=MOST_STEPS)},
        "steps": steps[-MOST_STEPS:],
        "left_out": max(0, len(steps) - MOST_STEPS) + unread,
        "without_events": not events,  # it was imported, or its events were pruned
        "memories": [serialize.memory(each) for each in store.memories.of_session(session.id, limit=MOST_MEMORIES)],
        "no_context": describe_injections(app, nothing),
    }


def _step(action: Action, session: Session, turns: Mapping[str, Memory]) -> Step | None:
    """Return the step of an action: a prompt, an answer, an edit, a command; none for one that only reads."""
    step: Step = {"at": action.at, "what": action.kind}
    if action.kind in ("prompt", "answer"):
        turn = turns.get(f"trn:{session.project}:{session.id}:{action.id}")
        return {**step, **_short(action.text), **(_turn(turn) if turn else {})}
    if action.kind != "tool":
        return {**step, "source": action.source}
    if action.act == "edit" and action.files and not action.failed:
        return {**step, "what": "edit", "files": list(action.files)}
    command = command_of(action.command) if action.act == "run" else None
    if not command or not command.program or command.kind == "look":
        return None
    run = run_of(action)
    failure = failure_of(run) if run.failed else None
    return {
        **step,
        "what": "run",
        "command": action.command.strip()[:COMMAND],
        "failed": run.failed,
        "error": failure.error if failure else "",
        "output": action.output.strip()[-OUTPUT:] if run.failed else "",
    }


def _kept(memory: Memory, session: Session) -> Step:
    """Return the step of a memory: at the time when this session first saw it."""
    at = next((at for at in (memory.created, memory.confirmed) if session.started <= at <= session.last), session.last)
    if memory.kind == "turn":  # whose prompt is no longer there
        return {"at": at, "what": "prompt", **_short(text(memory.detail, "user")), **_turn(memory)}
    if memory.kind == "failure":
        return {"at": at, "what": "failure", "memory": _failure(memory)}
    return {"at": at, "what": "kept", "memory": _named(memory), **_short(memory.body or text(memory.detail, "why"))}


def _turn(memory: Memory) -> dict[str, Any]:
    """Return who wrote the prompt of a turn and why we think so, and what came of it."""
    author, _, why = text(memory.detail, "author").partition(": ")
    outcome = text(memory.detail, "outcome") or next(iter(texts(memory.detail, "commits")), "")
    return {"turn": memory.id, "author": author, "author_why": why, "outcome": outcome.strip()[:TEXT]}


def _short(value: str) -> dict[str, Any]:
    """Return the beginning of a text, and how many characters follow it."""
    value = value.strip()
    return {"text": value[:TEXT], "more": max(0, len(value) - TEXT)}
