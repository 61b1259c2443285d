"""Tell a session step by step: prompts, answers, commands, edits, failures, injections, new memories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foreword.extract.actions import Action, action_of
from foreword.extract.commands import command_of
from foreword.extract.failures import failure_key, failure_of, run_of
from foreword.extract.merge import fixes_of, open_items
from foreword.extract.session import failure_uid
from foreword.models import Change, Injection, Memory, Session, text, texts
from foreword.store.projects import names
from foreword.worker.handlers import settled_session
from foreword.worker.pages.timeline import (
    MOST_CAME,
    change,
    changes_of,
    failure,
    fixing,
    head,
    named,
    summary_of,
    work_of,
)

if TYPE_CHECKING:
    from foreword.store import Store
    from foreword.worker.app import App

MOST = 500  # steps; of a longer session the last ones are shown
EVENTS = 1_000  # the newest, which are read for them: reading files makes no step
ITEMS = 30  # memories that the step of an injection names
CHANGES = 300  # as many as extraction keeps of a session
TEXT, OUTPUT, COMMAND = 1_200, 700, 300  # characters that are shown of each
# The order of steps at the same time: causes before what came of them.
ORDER = {name: at for at, name in enumerate(("start", "prompt", "injected", "edit", "run", "fixed", "kept"))}

Step = dict[str, Any]


def story(app: App, id: str) -> dict[str, Any]:
    """Return what a session was about, and its steps, oldest first; of a very long one the last steps."""
    session = settled_session(app, id)
    store = app.store
    registry = store.projects.all()
    came = [each for each in store.memories.of_session(session.id, limit=MOST_CAME) if each.kind != "change"]
    changes = changes_of(app, session, came)[:CHANGES]
    events = store.events.list(session.id, limit=EVENTS, newest=True)
    roots = {key: known.root for key, known in registry.items()}
    actions = [
        action
        for event in sorted(events, key=lambda event: (event.at, event.number))
        if (action := action_of(event, root=roots.get(event.project, session.cwd)))
    ]
    steps = [
        *_steps(app, session, came, actions),
        *_edits(actions, changes),
        *_injections(store, session),
    ]
    steps.sort(key=lambda each: (each["at"], ORDER.get(each["what"], len(ORDER))))
    steps = _joined(steps)
    unread = max(0, session.events - len(events)) if len(events) == EVENTS else 0
    prompts = store.events.prompts(session.id, limit=1, oldest=True)
    return {
        "session": head(session, came, name=names(registry), now=app.now(), prompt=prompts[0] if prompts else None),
        "about": _about(session, came),
        "handoff": _handoff(came),
        "injected": store.injections.totals(session.id),
        "steps": steps[-MOST:],
        "left_out": max(0, len(steps) - MOST) + unread,
        "without_events": not events,  # it was imported, or its events were pruned
    }


def _steps(app: App, session: Session, came: Sequence[Memory], actions: Sequence[Action]) -> list[Step]:
    """Return prompts, answers, runs and plans, and the memories that came of them."""
    turns = {memory.uid: memory for memory in came if memory.kind == "turn"}
    steps: list[Step] = []
    failed: dict[str, list[Step]] = {}  # by the uid of the failure
    for action in actions:
        step: Step = {"at": action.at, "what": action.kind}
        if action.kind == "prompt":
            turn = turns.pop(f"trn:{session.project}:{session.id}:{action.id}", None)
            steps.append({**step, **_short(action.text), **(_turn(turn) if turn else {})})
        elif action.kind == "answer":
            steps.append({**step, **_short(action.text)})
        elif action.kind != "tool":
            steps.append({**step, "source": action.source})
        elif action.act == "run" and (run := _run(action)):
            uid = run.pop("uid")
            steps.append({**step, "what": "run", **run})
            if uid:
                failed.setdefault(failure_uid(uid, project=session.project), []).append(steps[-1])
    # A failure may have been seen first, and fixed, in another session.
    known = [each for each in app.store.memories.get_by_uid(list(failed)) if each.status != "forgotten"]
    fixed = fixing(app, {session.id: (*came, *known)})
    for memory in known:
        for step in failed[memory.uid]:
            step["failure"] = failure(memory, session=session, fixed=fixed)
    shown = {memory.uid for memory in came if memory.kind == "turn" and memory.uid not in turns}
    passed = [step["at"] for step in steps if step["what"] == "run" and not step["failed"]]
    for memory in came:
        at, fix = _seen_at(memory, session), fixes_of(memory.detail).get(session.id)
        if memory.kind == "failure" and memory in known and fix:  # when a command first passed after it
            last = _seen_at(memory, session, last=True)
            at = min((each for each in passed if each > last), default=last)
            about = failure(memory, session=session, fixed=fixed)
            steps.append({"at": at, "what": "fixed", "memory": about, **_short(fix)})
        elif memory not in known and memory.kind != "summary" and memory.uid not in shown:
            steps.append({"at": at, **_kept(memory, session, fixed)})
    return steps


def _kept(memory: Memory, session: Session, fixed: Mapping[str, Mapping[str, Any]]) -> Step:
    if memory.kind == "turn":  # whose prompt is no longer there
        return {"what": "turn", **_short(text(memory.detail, "user")), **_turn(memory)}
    if memory.kind == "failure":  # whose run is no longer there
        about = failure(memory, session=session, fixed=fixed)
        return {"what": "failure", "memory": about, "command": text(memory.detail, "command")}
    return {"what": "kept", "memory": named(memory), **_short(memory.body or text(memory.detail, "why"))}


def _seen_at(memory: Memory, session: Session, *, last: bool = False) -> float:
    """Return when a session first saw a memory, or *last* saw it."""
    times = (memory.confirmed, memory.created) if last else (memory.created, memory.confirmed)
    return next((at for at in times if session.started <= at <= session.last), session.last)


def _edits(actions: Iterable[Action], changes: Iterable[Change]) -> Iterator[Step]:
    """Return the edits, file by file, with the functions that last changed there."""
    functions: dict[tuple[float, str], list[Change]] = {}
    for each in changes:
        functions.setdefault((each.at, each.file), []).append(each)
    done = (action for action in actions if action.act == "edit" and not action.failed)
    edited = [(action.at, file) for action in done for file in action.files]
    for at, file in dict.fromkeys((*edited, *functions)):
        found = sorted(functions.get((at, file), ()), key=lambda each: each.line)
        yield {"at": at, "what": "edit", "files": [{"file": file, "functions": [change(each) for each in found]}]}


def _injections(store: Store, session: Session) -> list[Step]:
    """Return the injections, item by item, and whether each item was used."""
    injections = store.injections.list(session=session.id, limit=MOST)
    ids = dict.fromkeys(item.memory for each in injections for item in each.items)
    known = {memory.id: memory for memory in store.memories.get(list(ids))}
    return [_injection(each, known) for each in injections]


def _injection(injection: Injection, known: Mapping[str, Memory]) -> Step:
    # A memory may have several lines in a block; it was used where one of them was.
    items = {item.memory: item for item in sorted(injection.items, key=lambda item: item.used is True)}
    return {
        **{name: getattr(injection, name) for name in ("at", "trigger", "source", "tokens")},
        "what": "injected",
        "injection": injection.id,
        "used": sum(item.used is True for item in items.values()),
        "items": [
            {
                "memory": id,
                "kind": known[id].kind if id in known else "",
                "title": known[id].title if id in known else "",
                "used": items[id].used,
                "how": items[id].how,
            }
            for id in list(dict.fromkeys(item.memory for item in injection.items))[:ITEMS]
        ],
        "more": max(0, len(items) - ITEMS),
    }


def _run(action: Action) -> dict[str, Any]:
    """Return a command that changed or checked something; one that only reads makes no step."""
    command = command_of(action.command)
    if not command.program or command.kind == "look":
        return {}
    run = run_of(action)
    failure = failure_of(run) if run.failed else None
    output = action.output.strip() if run.failed else ""
    return {
        "command": action.command.strip()[:COMMAND],
        "failed": run.failed,
        "error": failure.error if failure else "",
        "output": output[-OUTPUT:],
        "more": max(0, len(output) - OUTPUT),
        "uid": failure_key(failure) if failure else "",
    }


def _joined(steps: Iterable[Step]) -> list[Step]:
    """Join edits in a row into one step, and count a command that is repeated."""
    found: list[Step] = []
    for each in steps:
        last: Step = found[-1] if found else {"what": ""}
        if each["what"] != last["what"] or each["what"] not in ("edit", "run"):
            found.append(each)
        elif each["what"] == "edit":
            found[-1] = {**last, "files": _together(last["files"], each["files"])}
        elif all(last[name] == each[name] for name in ("command", "failed", "error")):
            found[-1] = {**each, "at": last["at"], "times": last.get("times", 1) + 1}
        else:
            found.append(each)
    return found


def _together(one: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    files: dict[str, list[dict[str, Any]]] = {}
    for each in (*one, *other):
        files.setdefault(each["file"], []).extend(each["functions"])
    return [{"file": file, "functions": functions} for file, functions in files.items()]


def _turn(memory: Memory) -> dict[str, Any]:
    """Return who wrote the prompt of a turn and why we think so, and what came of it."""
    author, _, why = text(memory.detail, "author").partition(": ")
    outcome = text(memory.detail, "outcome") or next(iter(texts(memory.detail, "commits")), "")
    return {"turn": memory.id, "author": author, "author_why": why, "outcome": outcome.strip()[:TEXT]}


def _about(session: Session, came: Sequence[Memory]) -> dict[str, Any]:
    """Return the outcome of a session, what it learned and decided, and what it left open."""
    summary = summary_of(session, came)
    active = [memory for memory in came if memory.status == "active"]
    return {
        "memory": summary.id if summary else "",
        "text": summary.body if summary else "",
        "work": work_of(summary),
        "learned": [memory.title for memory in active if memory.kind == "learning"],
        "decisions": [memory.title for memory in active if memory.kind == "decision"],
        "next": list(open_items(summary)) if summary else [],
        "commits": list(texts(summary.detail, "commits")) if summary else [],
    }


def _handoff(came: Sequence[Memory]) -> dict[str, Any] | None:
    memory = next((each for each in reversed(came) if each.kind == "handoff"), None)
    if memory is None:
        return None
    still = open_items(memory)
    points = {name: [each for each in texts(memory.detail, name) if each in still] for name in ("next", "blockers")}
    return {**named(memory), "text": memory.body, **points, "questions": list(texts(memory.detail, "questions"))}


def _short(value: str) -> dict[str, Any]:
    """Return the beginning of a text, and how many characters follow it."""
    value = value.strip()
    return {"text": value[:TEXT], "more": max(0, len(value) - TEXT)}
