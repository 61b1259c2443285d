"""List sessions for the viewer's timeline, and tell one of them step by step.

A step is a prompt, an answer, a command, some edits, an injection, a failure or its fix, or a memory that came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foreword.errors import BadRequest
from foreword.extract.actions import Action, action_of
from foreword.extract.commands import command_of
from foreword.extract.failures import failure_key, failure_of, run_of
from foreword.extract.merge import fixes_of, open_items
from foreword.extract.session import failure_uid, is_test
from foreword.extract.text import cut
from foreword.models import Change, Injection, Memory, Session, text, texts
from foreword.store.projects import counts_as, names
from foreword.worker.handlers import settled_session

if TYPE_CHECKING:
    from foreword.worker.app import App

FEW = 5  # of one sort, in a row of the timeline; the story has all
MOST_CHANGES, MOST_MEMORIES = 300, 1_000  # of a session, that are read
MOST_STEPS = 500  # of a longer session the last ones are shown
EVENTS = 1_000  # the newest, which are read for them: reading files makes no step
ITEMS = 30  # memories that the step of an injection names
TITLE, SUMMARY, FIX, TEXT, OUTPUT, COMMAND = 160, 320, 150, 1_200, 700, 300  # characters
QUIET = 30 * 60.0  # seconds: an agent that works tells something within minutes
KINDS = ("summary", "handoff", "decision", "failure", "learning", "preference", "correction")
# The order of steps at the same time: causes before what came of them.
ORDER = {name: at for at, name in enumerate(("start", "prompt", "injected", "edit", "run", "fixed", "kept"))}

Step = dict[str, Any]


def timeline(app: App, *, project: str = "", before: str = "", limit: int = 30) -> dict[str, Any]:
    """Return sessions of a project and its aliases, or of all, older than *before*; `next` leads to older ones."""
    registry, limit = app.store.projects.all(), max(1, limit)
    keys: tuple[str, ...] = ()
    if project:  # older sessions of an alias are stored under their own key
        key = counts_as(project, registry)
        keys = (key, *(each for each, about in registry.items() if about.alias_of == key))
    last, _, id = before.partition("/")
    try:
        at = float(last or 0.0)
    except ValueError:
        at = -1.0
    if not 0 <= at < float("inf"):
        raise BadRequest(f"invalid `before`: {before[:40]!r}", hint="send the `next` of an earlier answer")
    found = app.store.sessions.before(at, id, projects=keys, limit=limit + 1)
    rows = [_row(app, each, names(registry)) for each in found[:limit]]
    return {"sessions": rows, "next": f"{found[limit - 1].last!r}/{found[limit - 1].id}" if len(found) > limit else ""}


def _row(app: App, session: Session, name: Callable[[str], str]) -> dict[str, Any]:
    """Return what a session came to: the first few of each sort, and how many more there are."""
    memories = [
        each
        for each in app.store.memories.of_session(session.id, limit=MOST_MEMORIES)
        if each.kind in KINDS and each.status not in ("proposed", "discarded")
    ]
    summary = _summary_of(session, memories)
    of = {kind: [each for each in memories if each.kind == kind] for kind in KINDS}
    left = [*of["handoff"], *([summary] if summary else [])]
    lists: dict[str, list[Any]] = {
        # A function says more than the name of its test.
        "changed": [_change(each) for each in sorted(_changes(app, session, memories), key=lambda c: is_test(c.file))],
        "failures": [_failure(each) for each in of["failure"]],
        "decisions": [_named(each) for each in of["decision"]],
        "rules": [_named(each) for each in (*of["preference"], *of["correction"])],
        "learned": [_named(each) for each in of["learning"]],
        "next": list(dict.fromkeys(item for each in left for item in open_items(each))),
    }
    return {
        **_head(app, session, summary, name),
        "summary": cut(summary.body, SUMMARY) if summary else "",
        "work": _work(summary),
        **{sort: items[:FEW] for sort, items in lists.items()},
        "more": {sort: len(items) - FEW for sort, items in lists.items() if len(items) > FEW},
        "injected": app.store.injections.totals(session.id),
    }


def _head(app: App, session: Session, summary: Memory | None, name: Callable[[str], str]) -> dict[str, Any]:
    """Return what identifies a session; its title is that of its summary, or until there is one its first prompt."""
    fields = ("id", "host", "project", "started", "last", "ended", "events")
    return {
        **{field: getattr(session, field) for field in fields},
        "project_name": name(session.project),
        "running": is_running(session.last, session.ended, now=app.now()),
        "title": cut(summary.title if summary else first_prompt(app, session.id), TITLE),
    }


def is_running(last: float, ended: float, *, now: float) -> bool:
    """Return whether a session has not ended and had an event not long ago."""
    return not ended and abs(now - last) < QUIET  # a clock may be set back


def first_prompt(app: App, session: str) -> str:
    """Return the text of the first prompt of a session; empty where there is none."""
    for event in app.store.events.prompts(session, limit=1, oldest=True):
        if action := action_of(event, root=""):
            return action.text
    return ""


def _summary_of(session: Session, memories: Iterable[Memory]) -> Memory | None:
    """Return the summary of a session; where it was in several projects, that of its own project."""
    found = [each for each in memories if each.kind == "summary"]
    return next((each for each in found if each.project == session.project), found[0] if found else None)


def _work(summary: Memory | None) -> str:
    """Return the branch, the pull request and the fate of a session's work in one line."""
    detail: Mapping[str, Any] = summary.detail if summary else {}
    branch, pull, fate = (text(detail, name) for name in ("branch", "pull_request", "fate"))
    return ", ".join(filter(None, (branch and f"branch {branch}", pull and f"pull request {pull}", fate)))


def _changes(app: App, session: Session, memories: Iterable[Memory]) -> list[Change]:
    """Return the functions that a session changed in every project that it was in, newest first."""
    projects = dict.fromkeys((session.project, *(each.project for each in memories)))
    found = [app.store.sessions.changes(key, session=session.id, limit=MOST_CHANGES) for key in projects]
    return sorted((each for some in found for each in some), key=lambda each: -each.at)[:MOST_CHANGES]


def _change(each: Change) -> dict[str, Any]:
    return {"file": each.file, "function": each.function, "what": each.what, "signature": each.signature}


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
    """Return what a session was about, and its steps, oldest first; of a very long one the last steps."""
    session, store = settled_session(app, id), app.store
    registry = store.projects.all()
    memories = [each for each in store.memories.of_session(session.id, limit=MOST_MEMORIES) if each.kind != "change"]
    summary = _summary_of(session, memories)
    events = store.events.list(session.id, limit=EVENTS, newest=True)
    roots = {key: known.root for key, known in registry.items()}
    actions = [
        action
        for event in sorted(events, key=lambda event: (event.at, event.number))
        if (action := action_of(event, root=roots.get(event.project, session.cwd)))
    ]
    steps = [
        *_steps(app, session, memories, actions),
        *_edits(actions, _changes(app, session, memories)),
        *_injections(app, session),
    ]
    steps.sort(key=lambda step: (step["at"], ORDER.get(step["what"], len(ORDER))))
    steps = _joined(steps)
    unread = max(0, session.events - len(events)) if len(events) == EVENTS else 0
    return {
        "session": _head(app, session, summary, names(registry)),
        "about": _about(summary, memories),
        "handoff": _handoff(memories),
        "injected": store.injections.totals(session.id),
        "steps": steps[-MOST_STEPS:],
        "left_out": max(0, len(steps) - MOST_STEPS) + unread,
        "without_events": not events,  # it was imported, or its events were pruned
    }


def _about(summary: Memory | None, memories: Sequence[Memory]) -> dict[str, Any]:
    """Return the outcome of a session, what it learned and decided, and what it left open."""
    titles = {
        kind: [each.title for each in memories if (each.kind, each.status) == (kind, "active")]
        for kind in ("learning", "decision")
    }
    return {
        "memory": summary.id if summary else "",
        "text": summary.body if summary else "",
        "work": _work(summary),
        "learned": titles["learning"],
        "decisions": titles["decision"],
        "next": list(open_items(summary)) if summary else [],
        "commits": list(texts(summary.detail, "commits")) if summary else [],
    }


def _handoff(memories: Sequence[Memory]) -> dict[str, Any] | None:
    """Return the last handoff of a session, with what of it is still open."""
    memory = next((each for each in reversed(memories) if each.kind == "handoff"), None)
    if memory is None:
        return None
    still = open_items(memory)
    points = {name: [each for each in texts(memory.detail, name) if each in still] for name in ("next", "blockers")}
    return {**_named(memory), **points, "questions": list(texts(memory.detail, "questions"))}


def _steps(app: App, session: Session, memories: Sequence[Memory], actions: Sequence[Action]) -> list[Step]:
    """Return prompts, answers, runs and plans, and the memories that came of them."""
    turns = {each.uid: each for each in memories if each.kind == "turn"}
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
    known = [each for each in app.store.memories.get_by_uid(list(failed)) if each.status != "forgotten"]
    for memory in known:
        for step in failed[memory.uid]:
            step["failure"] = _failure(memory)
    told = {each.uid for each in known} | {
        each.uid for each in memories if each.kind == "turn" and each.uid not in turns
    }
    for memory in memories:
        at = next((at for at in (memory.created, memory.confirmed) if session.started <= at <= session.last), 0.0)
        if memory.kind == "failure" and memory.uid in told and (fix := fixes_of(memory.detail).get(session.id)):
            broken = max(step["at"] for step in failed[memory.uid])
            passed = [step["at"] for step in steps if step["what"] == "run" and not step["failed"]]
            fixed_at = min((each for each in passed if each > broken), default=broken)
            steps.append({"at": fixed_at, "what": "fixed", "memory": _failure(memory), **_short(fix)})
        elif memory.uid not in told and memory.kind != "summary":
            steps.append({"at": at or session.last, **_kept(memory)})
    return steps


def _kept(memory: Memory) -> Step:
    if memory.kind == "turn":  # whose prompt is no longer there
        return {"what": "turn", **_short(text(memory.detail, "user")), **_turn(memory)}
    if memory.kind == "failure":  # whose run is no longer there
        return {"what": "failure", "memory": _failure(memory), "command": text(memory.detail, "command")}
    return {"what": "kept", "memory": _named(memory), **_short(memory.body or text(memory.detail, "why"))}


def _turn(memory: Memory) -> dict[str, Any]:
    """Return who wrote the prompt of a turn and why we think so, and what came of it."""
    author, _, why = text(memory.detail, "author").partition(": ")
    outcome = text(memory.detail, "outcome") or next(iter(texts(memory.detail, "commits")), "")
    return {"turn": memory.id, "author": author, "author_why": why, "outcome": outcome.strip()[:TEXT]}


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


def _edits(actions: Iterable[Action], changes: Iterable[Change]) -> Iterator[Step]:
    """Return the edits, file by file, with the functions that last changed there."""
    functions: dict[tuple[float, str], list[Change]] = {}
    for each in changes:
        functions.setdefault((each.at, each.file), []).append(each)
    done = (action for action in actions if action.act == "edit" and not action.failed)
    edited = [(action.at, file) for action in done for file in action.files]
    for at, file in dict.fromkeys((*edited, *functions)):
        found = sorted(functions.get((at, file), ()), key=lambda each: each.line)
        yield {"at": at, "what": "edit", "files": [{"file": file, "functions": [_change(each) for each in found]}]}


def _injections(app: App, session: Session) -> list[Step]:
    """Return the injections, memory by memory, and whether each was used."""
    injections = app.store.injections.list(session=session.id, limit=MOST_STEPS)
    ids = dict.fromkeys(item.memory for each in injections for item in each.items)
    known = {memory.id: memory for memory in app.store.memories.get(list(ids))}
    return [_injection(each, known) for each in injections]


def _injection(injection: Injection, known: Mapping[str, Memory]) -> Step:
    # A memory may have several lines in a block; it was used where one of them was.
    items = {item.memory: item for item in sorted(injection.items, key=lambda item: item.used is True)}
    rows = [
        {
            "memory": id,
            "kind": known[id].kind if id in known else "",
            "title": known[id].title if id in known else "",
            "used": items[id].used,
            "how": items[id].how,
        }
        for id in dict.fromkeys(item.memory for item in injection.items)
    ]
    return {
        **{name: getattr(injection, name) for name in ("at", "trigger", "tokens")},
        "what": "injected",
        "used": sum(row["used"] is True for row in rows),
        "items": rows[:ITEMS],
        "more": len(rows[ITEMS:]),
    }


def _joined(steps: Iterable[Step]) -> list[Step]:
    """Join edits in a row into one step, and count a command that is repeated."""
    found: list[Step] = []
    for step in steps:
        last: Step = found[-1] if found else {"what": ""}
        if step["what"] == last["what"] == "edit":
            files: dict[str, list[Any]] = {}
            for each in (*last["files"], *step["files"]):
                files.setdefault(each["file"], []).extend(each["functions"])
            found[-1] = {**last, "files": [{"file": file, "functions": some} for file, some in files.items()]}
        elif step["what"] == last["what"] == "run" and all(
            last[name] == step[name] for name in ("command", "failed", "error")
        ):
            found[-1] = {**step, "at": last["at"], "times": last.get("times", 1) + 1}
        else:
            found.append(step)
    return found


def _short(value: str) -> dict[str, Any]:
    """Return the beginning of a text, and how many characters follow it."""
    value = value.strip()
    return {"text": value[:TEXT], "more": max(0, len(value) - TEXT)}
