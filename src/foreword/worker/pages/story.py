"""Tell a session step by step: prompts, answers, commands, edits, failures and fixes, injections, new memories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foreword.extract.actions import Action, Todo, action_of, todos_after
from foreword.extract.commands import command_of
from foreword.extract.failures import failure_key, failure_of, run_of
from foreword.extract.merge import fixes_of, open_items
from foreword.extract.session import failure_uid
from foreword.models import KINDS, Change, Injection, Memory, Session, text, texts
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
    from foreword.worker.app import App

MOST = 500  # steps; of a longer session the last ones are shown
EVENTS = 1_000  # the newest, which are read for them: reading files makes no step
INJECTIONS = MOST  # each is a step
ITEMS = 30  # memories that the step of an injection names
CHANGES = 300  # as many as extraction keeps of a session
TEXT, OUTPUT, COMMAND = 1_200, 700, 300  # characters that are shown of each
TODOS = 20
KEPT_KINDS = tuple(kind for kind in KINDS if kind not in ("summary", "change"))  # the head and the edits show these two
# The order of steps at the same time: causes before what came of them.
ORDER = {name: at for at, name in enumerate(("start", "prompt", "injected", "plan", "edit", "run", "fixed", "kept"))}


def story(app: App, id: str) -> dict[str, Any]:
    """Return what a session was about, and its steps, oldest first; of a very long one the last steps."""
    session = settled_session(app, id)
    store = app.store
    registry = store.projects.all()
    came = [each for each in store.memories.of_session(session.id, limit=MOST_CAME) if each.kind != "change"]
    changes = changes_of(app, session, came)[:CHANGES]
    injections = store.injections.list(session=session.id, limit=INJECTIONS)
    prompts = store.events.prompts(session.id, limit=1, oldest=True)
    newest = store.events.list(session.id, limit=EVENTS, newest=True)
    events = sorted(newest, key=lambda event: (event.at, event.number))
    unread = max(0, session.events - len(events)) if len(events) == EVENTS else 0
    roots = {key: known.root for key, known in registry.items()}
    actions = [action for event in events if (action := action_of(event, root=roots.get(event.project, session.cwd)))]
    builder = _StepBuilder(app, session, came)
    steps = [
        *builder.actions(actions),
        *builder.edits(actions, changes),
        *builder.injections(injections),
        *builder.kept(),
    ]
    steps.sort(key=lambda each: (each["at"], ORDER.get(each["what"], len(ORDER))))
    steps = _joined(steps)
    return {
        "session": head(session, came, name=names(registry), now=app.now(), prompt=prompts[0] if prompts else None),
        "about": _about(session, came),
        "handoff": _handoff(came),
        "injected": store.injections.totals(session.id),
        "steps": steps[-MOST:],
        "left_out": max(0, len(steps) - MOST) + unread,
        "without_events": not events,  # it was imported, or its events were pruned
    }


class _StepBuilder:
    """Builds the steps `{at, what, ...}` of one session; what runs and memories share is told once."""

    def __init__(self, app: App, session: Session, came: Sequence[Memory]) -> None:
        self._app, self._store, self._session, self._came = app, app.store, session, came
        self._fixed = fixing(app, {session.id: came})
        self._ran: dict[float, dict[str, Any]] = {}  # by time: an observation may be of one
        self._shown: set[str] = set()  # failures that runs show
        self._turns = {memory.uid: memory for memory in came if memory.kind == "turn"}  # without their prompts so far

    def actions(self, actions: Sequence[Action]) -> list[dict[str, Any]]:
        """Return prompts, answers, runs and plans."""
        steps: list[dict[str, Any]] = []
        failed: list[tuple[dict[str, Any], str]] = []
        plan: tuple[Todo, ...] = ()
        for action in actions:
            step: dict[str, Any] = {"at": action.at, "what": action.kind}
            if action.kind == "prompt":
                steps.append({**step, **_short(action.text, TEXT), **self._turn(action)})
            elif action.kind == "answer":
                steps.append({**step, **_short(action.text, TEXT)})
            elif action.kind == "start":
                steps.append({**step, "source": action.source})
            elif action.kind != "tool":
                steps.append(step)
            elif action.act == "run" and (run := _run(action)):
                steps.append({**step, "what": "run", **run})
                self._ran[action.at] = steps[-1]
                if fingerprint := steps[-1].pop("fingerprint"):
                    failed.append((steps[-1], failure_uid(fingerprint, project=self._session.project)))
            elif action.act == "plan" and action.todos:
                plan = todos_after(plan, action.todos)
                todos = [{"text": _short(todo.text, COMMAND)["text"], "done": todo.done} for todo in plan[:TODOS]]
                steps.append({**step, "what": "plan", "todos": todos, "more": max(0, len(plan) - TODOS)})
        self._name_failures(failed)
        return steps

    def _turn(self, prompt: Action) -> dict[str, Any]:
        """Return who wrote a prompt, and what came of its turn, where a turn is stored."""
        memory = self._turns.pop(f"trn:{self._session.project}:{self._session.id}:{prompt.id}", None)
        return turn(memory) if memory else {}

    def edits(self, actions: Iterable[Action], changes: Iterable[Change]) -> Iterator[dict[str, Any]]:
        """Return the edits, file by file, with the functions that last changed there."""
        functions: dict[tuple[float, str], list[Change]] = {}
        for each in changes:
            functions.setdefault((each.at, each.file), []).append(each)
        edited = [
            (action.at, file)
            for action in actions
            if action.act == "edit" and not action.failed
            for file in action.files
        ]
        for at, file in dict.fromkeys((*edited, *functions)):
            found = sorted(functions.get((at, file), ()), key=lambda each: each.line)
            yield {"at": at, "what": "edit", "files": [{"file": file, "functions": [change(each) for each in found]}]}

    def injections(self, injections: Sequence[Injection]) -> list[dict[str, Any]]:
        """Return the injections, item by item, and whether each item was used."""
        ids = dict.fromkeys(item.memory for each in injections for item in each.items)
        known = {memory.id: memory for memory in self._store.memories.get(list(ids))}
        return [self._injection(each, known) for each in injections]

    @staticmethod
    def _injection(injection: Injection, known: Mapping[str, Memory]) -> dict[str, Any]:
        # A memory may have several lines in a block; it was used where one of them was.
        items = {item.memory: item for item in sorted(injection.items, key=lambda item: item.used is True)}
        listed = [items[id] for id in dict.fromkeys(item.memory for item in injection.items)]
        return {
            "at": injection.at,
            "what": "injected",
            "injection": injection.id,
            "trigger": injection.trigger,
            "source": injection.source,
            "tokens": injection.tokens,
            "used": sum(item.used is True for item in listed),
            "items": [
                {
                    "memory": item.memory,
                    "kind": known[item.memory].kind if item.memory in known else "",
                    "title": known[item.memory].title if item.memory in known else "",
                    "used": item.used,
                    "how": item.how,
                }
                for item in listed[:ITEMS]
            ],
            "more": max(0, len(listed) - ITEMS),
        }

    def kept(self) -> Iterator[dict[str, Any]]:
        """Return the memories that came of it, at the time of their source."""
        for memory in self._came:
            at = self._at(memory)
            if memory.kind == "summary" or (memory.kind == "turn" and memory.uid not in self._turns):
                continue
            if memory.kind == "turn":
                yield {"at": at, "what": "turn", **_short(text(memory.detail, "user"), TEXT), **turn(memory)}
            elif memory.kind == "observation" and memory.created in self._ran:
                self._ran[memory.created]["memory"] = named(memory)
            elif memory.kind == "failure":
                shown = self._failure(memory)
                if memory.id not in self._shown:
                    yield {"at": at, "what": "failure", "memory": shown, "command": text(memory.detail, "command")}
                elif fix := fixes_of(memory.detail).get(self._session.id):
                    yield {
                        "at": self._passed_after(self._at(memory, last=True)),
                        "what": "fixed",
                        "memory": shown,
                        **_short(fix, TEXT),
                    }
            else:
                why = text(memory.detail, "why")
                yield {"at": at, "what": "kept", "memory": named(memory), **_short(memory.body or why, TEXT)}

    def _name_failures(self, failed: Sequence[tuple[dict[str, Any], str]]) -> None:
        """Add to each failed run its failure memory, which later sessions may have seen again and fixed."""
        known = {memory.uid: memory for memory in self._store.memories.get_by_uid([uid for _, uid in failed])}
        self._fixed |= fixing(self._app, {self._session.id: tuple(known.values())})
        for step, uid in failed:
            if uid in known and known[uid].status != "forgotten":
                step["failure"] = self._failure(known[uid])
                self._shown.add(known[uid].id)

    def _failure(self, memory: Memory) -> dict[str, Any]:
        return failure(memory, session=self._session, fixed=self._fixed)

    def _passed_after(self, at: float) -> float:
        """Return when a command first passed after *at*: what failed until then was fixed."""
        passed = [when for when, run in self._ran.items() if when > at and not run["failed"]]
        return min(passed, default=at)

    def _at(self, memory: Memory, *, last: bool = False) -> float:
        """Return when this session first saw a memory, or *last* saw it."""
        began, ended = self._session.started, self._session.last
        times = (memory.confirmed, memory.created) if last else (memory.created, memory.confirmed)
        return next((at for at in times if began <= at <= ended), ended)


def _run(action: Action) -> dict[str, Any]:
    """Return a command that changed or checked something; one that only reads makes no step."""
    command = command_of(action.command)
    if not command.program or command.kind == "look":
        return {}
    run = run_of(action)
    failure = failure_of(run) if run.failed else None
    shown = _short(action.command, COMMAND)
    output = action.output.strip()
    return {
        "command": shown["text"],
        "kind": command.kind,
        "failed": run.failed,
        "error": failure.error if failure else "",
        "output": output[-OUTPUT:] if run.failed else "",
        "more": max(0, len(output) - OUTPUT) if run.failed else 0,
        "fingerprint": failure_key(failure) if failure else "",
    }


def _joined(steps: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join edits in a row into one step, keep the last of plans in a row, and count a command that is repeated."""
    found: list[dict[str, Any]] = []
    for each in steps:
        last: dict[str, Any] = found[-1] if found else {"what": ""}
        if each["what"] != last["what"]:
            found.append(each)
        elif each["what"] == "edit":
            found[-1] = {**last, "until": each["at"], "files": _together(last["files"], each["files"])}
        elif each["what"] == "run" and _is_same(last, each):
            more = {"at": last["at"], "until": each["at"], "times": last.get("times", 1) + 1}
            found[-1] = {**last, **each, **more}
        elif each["what"] == "plan":
            found[-1] = {**each, "at": last["at"]}
        else:
            found.append(each)
    return found


def _is_same(run: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
    """Return whether a command was run again with the same result."""
    ended, then = (
        (each["command"], each["failed"], each.get("failure", {}).get("id") or each["error"]) for each in (run, again)
    )
    kept = {each["memory"]["id"] for each in (run, again) if "memory" in each}
    return ended == then and len(kept) <= 1


def _together(one: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    files: dict[str, list[dict[str, Any]]] = {}
    for each in (*one, *other):
        files.setdefault(each["file"], []).extend(each["functions"])
    return [{"file": file, "functions": functions} for file, functions in files.items()]


def turn(memory: Memory) -> dict[str, Any]:
    """Return who wrote the prompt of a turn and why we think so, and what came of it."""
    author, _, why = text(memory.detail, "author").partition(": ")
    outcome = text(memory.detail, "outcome") or next(iter(texts(memory.detail, "commits")), "")
    return {"turn": memory.id, "author": author, "author_why": why, "outcome": _short(outcome, TEXT)["text"]}


def _about(session: Session, came: Sequence[Memory]) -> dict[str, Any]:
    """Return the outcome of a session, what it learned and decided, and what it left open."""
    summary = summary_of(session, came)
    active = [memory for memory in came if memory.status == "active"]
    points = {
        "learned": [memory.title for memory in active if memory.kind == "learning"],
        "decisions": [memory.title for memory in active if memory.kind == "decision"],
        "next": list(open_items(summary)) if summary else [],
        "commits": list(texts(summary.detail, "commits")) if summary else [],
    }
    present = {name: some for name, some in points.items() if some}
    about = {"memory": summary.id if summary else "", "text": summary.body if summary else ""}
    return {**about, "work": work_of(summary), **present}


def _handoff(came: Sequence[Memory]) -> dict[str, Any] | None:
    found = [memory for memory in came if memory.kind == "handoff"]
    if not found:
        return None
    memory = found[-1]
    points = {name: list(texts(memory.detail, name)) for name in ("next", "blockers", "questions")}
    still = open_items(memory)
    points |= {name: [each for each in points[name] if each in still] for name in ("next", "blockers")}
    return {**named(memory), "text": memory.body, **points}


def _short(value: str, most: int) -> dict[str, Any]:
    """Return the beginning of a text, and how many characters follow it."""
    value = value.strip()
    return {"text": value[:most], "more": max(0, len(value) - most)}
