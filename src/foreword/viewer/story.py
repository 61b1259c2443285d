"""A session -> its whole story in order of time: what was said, run, changed, broken and fixed, given and kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foreword.extract.actions import Action, Todo, action_of, todos_after
from foreword.extract.commands import command_of
from foreword.extract.failures import failure_key, failure_of, run_of
from foreword.extract.merge import fixes_of, open_items
from foreword.extract.session import failure_uid
from foreword.models import KINDS, Change, Event, Injection, Memory, Session, text, texts
from foreword.store.projects import names
from foreword.store.timeline import Given
from foreword.viewer.timeline import CAME, change, failure, fixing, head, named, places, summary_of, work_of

if TYPE_CHECKING:
    from foreword.store import Store
    from foreword.worker.app import App

MOST = 500  # moments of a story; more are read by nobody, and of a longer session the last ones tell how it stands
EVENTS = 1_000  # that are read for them, the newest: reading what was looked at on the way makes no moment
PAGE = 200
INJECTIONS = MOST  # each is a moment
ITEMS = 30  # memories that a moment of giving names
CHANGES = 300  # as many as the distiller keeps of a session
SAID, OUTPUT, COMMAND = 1_200, 700, 300  # characters that are shown of each
TODOS = 20
TOLD = tuple(kind for kind in KINDS if kind not in ("summary", "change"))  # the head and the changes tell these
# At one time, in this order: what was answered with something comes first, what came of it after.
ORDER = {name: at for at, name in enumerate(("start", "prompt", "given", "plan", "edit", "run", "fixed", "kept"))}


def story(app: App, id: str) -> dict[str, Any]:
    """What a session was about, and every moment of it, oldest first; of a very long one the last moments."""
    session = app.settled(id)
    store = app.store
    registry = store.projects.all()
    came = store.timeline.came_of([session.id], kinds=(*TOLD, "summary"), each=CAME)[session.id]
    changed = store.timeline.changed_in(places([session], {session.id: came}), each=CHANGES).get(session.id)
    given = store.injections.list(session=session.id, limit=INJECTIONS)
    prompts = store.timeline.began_with([session.id])
    events, unread = _events(store, session)
    roots = {key: known.root for key, known in registry.items()}
    actions = [action for event in events if (action := action_of(event, root=roots.get(event.project, session.cwd)))]
    telling = _Telling(app, session, came)
    triggers = [
        *telling.actions(actions),
        *telling.edits(actions, changed.changes if changed else ()),
        *telling.given(given),
        *telling.kept(),
    ]
    triggers.sort(key=lambda each: (each["at"], ORDER.get(each["what"], len(ORDER))))
    triggers = _joined(triggers)
    return {
        "session": head(session, came, name=names(registry), now=app.now(), prompt=prompts.get(session.id)),
        "about": _about(session, came),
        "handoff": _handoff(came),
        "given": vars(store.timeline.given_to([session.id]).get(session.id, Given())),
        "moments": triggers[-MOST:],
        "left_out": max(0, len(triggers) - MOST) + unread,
        "silent": not events,  # only what came of it is kept: it was imported, or its events are pruned
    }


class _Telling:
    """What happened, each as a moment `{at, what, ...}`; failures are known by the error that a run ended in."""

    def __init__(self, app: App, session: Session, came: Sequence[Memory]) -> None:
        self._keeper, self._store, self._session, self._came = app, app.store, session, came
        self._fixed = fixing(app, {session.id: came})
        self._ran: dict[float, dict[str, Any]] = {}  # by its time, what an observation may be of
        self._shown: set[str] = set()  # failures that runs tell of
        self._turns = {memory.uid: memory for memory in came if memory.kind == "turn"}  # that no prompt tells of yet

    def actions(self, actions: Sequence[Action]) -> list[dict[str, Any]]:
        """What was said and run."""
        triggers: list[dict[str, Any]] = []
        failed: list[tuple[dict[str, Any], str]] = []
        plan: tuple[Todo, ...] = ()
        for action in actions:
            trigger: dict[str, Any] = {"at": action.at, "what": action.kind}
            if action.kind == "prompt":
                triggers.append({**trigger, **_short(action.text, SAID), **self._turn(action)})
            elif action.kind == "answer":
                triggers.append({**trigger, **_short(action.text, SAID)})
            elif action.kind == "start":
                triggers.append({**trigger, "source": action.source})
            elif action.kind != "tool":
                triggers.append(trigger)
            elif action.act == "run" and (run := _run(action)):
                triggers.append({**trigger, "what": "run", **run})
                self._ran[action.at] = triggers[-1]
                if fingerprint := triggers[-1].pop("fingerprint"):
                    failed.append((triggers[-1], failure_uid(fingerprint, project=self._session.project)))
            elif action.act == "plan" and action.todos:
                plan = todos_after(plan, action.todos)
                todos = [{"text": _short(todo.text, COMMAND)["text"], "done": todo.done} for todo in plan[:TODOS]]
                triggers.append({**trigger, "what": "plan", "todos": todos, "more": max(0, len(plan) - TODOS)})
        self._name_failures(failed)
        return triggers

    def _turn(self, prompt: Action) -> dict[str, Any]:
        """Who wrote a prompt, and what came of its turn, where that is kept."""
        memory = self._turns.pop(f"trn:{self._session.project}:{self._session.id}:{prompt.id}", None)
        return turn(memory) if memory else {}

    def edits(self, actions: Iterable[Action], changes: Iterable[Change]) -> Iterator[dict[str, Any]]:
        """What was edited, file by file, with the functions that changed there for the last time."""
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

    def given(self, injections: Sequence[Injection]) -> list[dict[str, Any]]:
        """What was put in front of it, item by item, and whether that was of use."""
        ids = dict.fromkeys(item.memory for each in injections for item in each.items)
        known = {memory.id: memory for memory in self._store.memories.get(list(ids))}
        return [self._given(each, known) for each in injections]

    @staticmethod
    def _given(given: Injection, known: Mapping[str, Memory]) -> dict[str, Any]:
        # A memory may stand in a block with several lines; it is used where one of them was.
        items = {item.memory: item for item in sorted(given.items, key=lambda item: item.used is True)}
        listed = [items[id] for id in dict.fromkeys(item.memory for item in given.items)]
        return {
            "at": given.at,
            "what": "given",
            "injection": given.id,
            "trigger": given.trigger,
            "source": given.source,
            "tokens": given.tokens,
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
        """What came of it, at the time when it was said or seen."""
        for memory in self._came:
            at = self._at(memory)
            if memory.kind == "summary" or (memory.kind == "turn" and memory.uid not in self._turns):
                continue
            if memory.kind == "turn":
                yield {"at": at, "what": "turn", **_short(text(memory.detail, "user"), SAID), **turn(memory)}
            elif memory.kind == "observation" and memory.created in self._ran:
                self._ran[memory.created]["memory"] = named(memory)
            elif memory.kind == "failure":
                told = self._failure(memory)
                if memory.id not in self._shown:
                    yield {"at": at, "what": "failure", "memory": told, "command": text(memory.detail, "command")}
                elif fix := fixes_of(memory.detail).get(self._session.id):
                    yield {
                        "at": self._passed_after(self._at(memory, last=True)),
                        "what": "fixed",
                        "memory": told,
                        **_short(fix, SAID),
                    }
            else:
                why = text(memory.detail, "why")
                yield {"at": at, "what": "kept", "memory": named(memory), **_short(memory.body or why, SAID)}

    def _name_failures(self, failed: Sequence[tuple[dict[str, Any], str]]) -> None:
        """The failure that a run showed, which later sessions may have seen again and fixed."""
        known = {memory.uid: memory for memory in self._store.memories.get_by_uid([uid for _, uid in failed])}
        self._fixed |= fixing(self._keeper, {self._session.id: tuple(known.values())})
        for trigger, uid in failed:
            if uid in known and known[uid].status != "forgotten":
                trigger["failure"] = self._failure(known[uid])
                self._shown.add(known[uid].id)

    def _failure(self, memory: Memory) -> dict[str, Any]:
        return failure(memory, session=self._session, fixed=self._fixed)

    def _passed_after(self, at: float) -> float:
        """When a command first ran well after *at*: what had failed until then was fixed."""
        passed = [when for when, run in self._ran.items() if when > at and not run["failed"]]
        return min(passed, default=at)

    def _at(self, memory: Memory, *, last: bool = False) -> float:
        """When this session said it, or said it *last*: what was said again is as old as its first time."""
        began, ended = self._session.started, self._session.last
        times = (memory.confirmed, memory.created) if last else (memory.created, memory.confirmed)
        return next((at for at in times if began <= at <= ended), ended)


def _events(store: Store, session: Session) -> tuple[list[Event], int]:
    """The last events of a session in their order of time, and how many older ones were not read."""
    found: list[Event] = []
    while len(found) < EVENTS:
        page = store.timeline.events_before(session.id, found[-1].number if found else session.newest + 1, limit=PAGE)
        found += page
        if len(page) < PAGE:
            return sorted(found, key=lambda event: (event.at, event.number)), 0
    unread = max(0, session.events - len(found))
    return sorted(found, key=lambda event: (event.at, event.number)), unread


def _run(action: Action) -> dict[str, Any]:
    """A command that did something, or failed; looking around makes no moment."""
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


def _joined(triggers: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Edits in a row as one moment, plans in a row as the last, the same command again as one with how often."""
    found: list[dict[str, Any]] = []
    for each in triggers:
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
    """Whether a command was run again and came to the same: one that failed in another way is told too."""
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
    """Who wrote the prompt of a turn and why we think so, and what came of it."""
    author, _, why = text(memory.detail, "author").partition(": ")
    outcome = text(memory.detail, "outcome") or next(iter(texts(memory.detail, "commits")), "")
    return {"turn": memory.id, "author": author, "author_why": why, "outcome": _short(outcome, SAID)["text"]}


def _about(session: Session, came: Sequence[Memory]) -> dict[str, Any]:
    """What a session came to: its outcome, what it learned and decided, what it left open."""
    summary = summary_of(session, came)
    active = [memory for memory in came if memory.status == "active"]
    points = {
        "learned": [memory.title for memory in active if memory.kind == "learning"],
        "decisions": [memory.title for memory in active if memory.kind == "decision"],
        "next": list(open_items(summary)) if summary else [],
        "commits": list(texts(summary.detail, "commits")) if summary else [],
    }
    told = {name: some for name, some in points.items() if some}
    about = {"memory": summary.id if summary else "", "text": summary.body if summary else ""}
    return {**about, "work": work_of(summary), **told}


def _handoff(came: Sequence[Memory]) -> dict[str, Any] | None:
    found = [memory for memory in came if memory.kind == "handoff"]
    if not found:
        return None
    memory = found[-1]
    points = {name: list(texts(memory.detail, name)) for name in ("next", "blockers", "questions")}
    still = open_items(memory)
    points |= {name: [each for each in points[name] if each in still] for name in ("next", "blockers")}
    return {**named(memory), "text": memory.body, **points}


def _short(told: str, most: int) -> dict[str, Any]:
    """A text as long as one reads in a list, and how many characters come behind."""
    told = told.strip()
    return {"text": told[:most], "more": max(0, len(told) - most)}
