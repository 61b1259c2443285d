"""Answer hooks around tool uses: one line before a command that failed before, after a failure, at a first edit.

A hint before a tool reaches the agent's model together with the tool's result. So an agent whose hook after a tool is
waited for anyway gets all hints there, and no second process is started for each of its tool uses. When a session stops
after substantial work, the agent is asked once for its own notes (setting `agent_notes`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from foreword.agents import find
from foreword.capture.parse import IDENTIFYING, CapturedEvent, injection_id
from foreword.capture.payload import HookCall
from foreword.extract.actions import Action, ToolUse, tool_action
from foreword.extract.commands import commands_of
from foreword.extract.failure_memory import CHECKS
from foreword.extract.failures import failure_key, failure_of, run_of
from foreword.models import EMPTY, TOOL_BEGIN, Context, Item, Project, Query, Trigger, texts
from foreword.recall.hints import Hint, KnownFailure, hint_after, hint_before, hint_for_edit
from foreword.recall.pipeline import injection_of
from foreword.recall.tokens import count
from foreword.redact import redact
from foreword.worker.services import Services
from foreword.worker.working_set import WorkingSet

FAILURES = 300  # of a project, the newest, that a command is compared with
SUMMARIES = 100  # sessions, the newest, whose checks tell what works here
MOST_PROJECTS = 50
MOST_SESSIONS = 500
ABOUT_FILE = ("preference", "correction", "decision", "learning", "pattern", "turn")
MOST_ABOUT_FILE = 40
FILES, TOOLS = 2, 8  # edited files and uses of tools that make work substantial
LAST = 400  # characters at the end of a message, where a question to the user stands
REQUEST = (
    "Before you finish: call memory_handoff once, for the next session here. `message`: what came of this work in one "
    "or two sentences, then what you learned about the code and what was decided, each in a line with its file; "
    "`next`: what is still open, if anything. Facts only, no praise, no secrets. Then end your turn without another "
    "answer."
)
# The agent waits for the user: asking it for notes now would talk over its question.
_ASKS = re.compile(
    r"\?\s*(?:$|\n)|\b(?:want me to|shall i|should i|let me know|would you like|which (?:one|option))\b", re.I
)


@dataclass(frozen=True)
class _Call:
    """One use of a tool that a hook asks about."""

    action: Action
    session: str
    project: Project
    cwd: str  # the folder of the shell before the tool was used
    before: bool
    hook_call: HookCall


@dataclass
class _SessionState:
    """What is known of one session's context window."""

    edited: set[str] = field(default_factory=set)
    waiting: tuple[Hint, _Call] | None = None  # until the next prompt
    requested: bool = False  # for the agent's own notes; once a session


class Hints:
    """Keeps the known failures of projects at hand, and which files each session has edited."""

    def __init__(self, services: Services, working_set: WorkingSet) -> None:
        self._services, self._working_set = services, working_set
        self._lock = threading.Lock()
        self._recording = threading.Lock()  # of two tool uses at once, the second must know the hint of the first
        self._failures: dict[str, tuple[KnownFailure, ...]] = {}
        self._sessions: dict[str, _SessionState] = {}

    def refresh(self) -> None:
        """Read failures again: they changed. A read that has begun writes to the dict that is dropped here."""
        self._failures = {}

    def new_window(self, session: str) -> None:
        """Forget what a session edited and what waits for it: its context window begins again."""
        with self._lock:
            state = self._state(session)
            state.edited, state.waiting = set(), None

    def answer(self, event: CapturedEvent, hook_call: HookCall, *, later: bool = False) -> str:
        """Return the hint for a tool use, recorded; nothing where nothing is known, and where anything goes wrong.

        With *later*, the agent takes no answer here: the hint waits for the session's next prompt.
        """
        if not self._services.settings.hints:
            return ""
        try:
            call = self._call(event, hook_call)
            hint = self._hint(call) if call else None
            if call and not call.before:
                self._keep_waiting(call, hint if later else None)
            return self._record(hint, call) if call and hint and not later else ""
        except Exception as exc:  # noqa: BLE001 - a hint must never break the agent
            self._services.report("hints", f"no hint could be injected: {type(exc).__name__}: {exc}")
            return ""

    def waiting(self, session: str) -> str:
        """Return the hint that waits for the next prompt of a session, recorded; nothing where none does."""
        with self._lock:
            state = self._state(session)
            kept, state.waiting = state.waiting, None
        try:
            return self._record(*kept) if kept else ""
        except Exception as exc:  # noqa: BLE001 - nor may one that waited break a prompt
            self._services.report("hints", f"no hint could be injected: {type(exc).__name__}: {exc}")
            return ""

    def request_notes(self, event: CapturedEvent) -> str:
        """Return what asks the agent for its own notes at this stop; nothing for almost all of them."""
        parsed, hook = event.parsed, event.parsed.input
        if not self._services.settings.agent_notes or parsed.kind != "stop" or not hook.session or hook.inner:
            return ""
        if parsed.payload.get("stop_hook_active") or _ASKS.search(hook.answer[-LAST:]):
            return ""  # a hook made it go on already, or it waits for the user
        files, tools = self._working_set.work_done(hook.session)
        if files < FILES or tools < TOOLS:
            return ""
        with self._lock:
            state = self._state(hook.session)
            requested, state.requested = state.requested, True
        of_session = self._services.store.memories.of_session(hook.session) if not requested else ()
        written = any(each.kind == "handoff" and each.trust == "agent" for each in of_session)
        return "" if requested or written else REQUEST

    def _state(self, session: str) -> _SessionState:
        """Return the state of a session; called with the lock held."""
        state = self._sessions.setdefault(session, _SessionState())
        while len(self._sessions) > MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return state

    def _keep_waiting(self, call: _Call, hint: Hint | None) -> None:
        """Let a hint wait for the next prompt; drop one whose program worked since."""
        with self._lock:
            state = self._state(call.session)
            if hint:  # it may wait for long: without the output
                light = call.hook_call._replace(raw=call.hook_call.raw[:IDENTIFYING])
                state.waiting = (hint, replace(call, action=replace(call.action, output=""), hook_call=light))
            elif state.waiting and not call.action.failed:
                lines = (state.waiting[1].action.command, call.action.command)
                failed, worked = ({each.words[0] for each in commands_of(line)} for line in lines)
                state.waiting = None if failed & worked else state.waiting

    def _call(self, event: CapturedEvent, hook_call: HookCall) -> _Call | None:
        parsed, hook = event.parsed, event.parsed.input
        if parsed.project is None or not hook.session or hook.inner:
            return None
        use = ToolUse(**find(hook_call.host).tool_use(parsed.payload))
        action = tool_action(use, at=hook_call.at, cwd=hook.cwd, root=parsed.project.root)
        before = parsed.kind == TOOL_BEGIN
        cwd = self._working_set.folder(hook.session, before_last=not before) or hook.cwd
        return _Call(action, hook.session, parsed.project, cwd, before, hook_call)

    def _hint(self, call: _Call) -> Hint | None:
        action, root, now = call.action, call.project.root, self._services.now()
        if action.act == "edit":
            return self._edit_hint(call, now=now)
        if action.act != "run" or not action.command or not (known := self._known(call.project)):
            return None
        if call.before:
            return hint_before(action.command, known, now=now, cwd=call.cwd, root=root)
        if not _failed(call, known):
            return None
        # Where no fix is known, that it never works may be, whatever was wrong this time.
        never = [each for each in known if each.detail["cause"] in ("usage", "folder")]
        return hint_after(action.command, action.output, known, now=now, cwd=call.cwd, root=root) or hint_before(
            action.command, never, now=now, cwd=call.cwd, root=root
        )

    def _edit_hint(self, call: _Call, *, now: float) -> Hint | None:
        """Return what other sessions laid down about a file that this one edits for the first time."""
        with self._lock:
            edited = self._state(call.session).edited
            first = [file for file in call.action.files if file not in edited]
            edited.update(first)
        query = Query(scopes=(call.project.scope,), kinds=ABOUT_FILE, limit=MOST_ABOUT_FILE)
        for file in first:
            hits = self._services.store.search.by_code(query, {file: 1.0})
            about = [hit.memory for hit in hits if hit.memory.session != call.session]
            edits = (edit for edit in call.action.edits if edit.file == file)
            changed = " ".join(f"{edit.before or ''} {edit.after or ''}" for edit in edits)
            if hint := hint_for_edit(file, about, now=now, changed=changed):
                return hint
        return None

    def _known(self, project: Project) -> tuple[KnownFailure, ...]:
        failures = self._failures
        if (kept := failures.get(project.key)) is not None:
            return kept
        active, memories = {"scopes": (project.scope,), "statuses": ("active",)}, self._services.store.memories
        summaries = memories.list(("summary",), **active, limit=SUMMARIES)
        checks = {each.session: texts(each.detail, "checks") for each in summaries if each.trust != "imported"}
        # Those without an error were written by hand or by an earlier version; an import may claim that anything
        # worked, so that it must not choose a command.
        known = tuple(
            KnownFailure(each.id, {**each.detail, CHECKS: checks})
            for each in memories.list(("failure",), **active, limit=FAILURES)
            if each.detail.get("error") and each.trust != "imported"
        )
        if len(failures) >= MOST_PROJECTS:
            failures.clear()
        failures[project.key] = known
        return known

    def _record(self, hint: Hint, call: _Call) -> str:
        """Record the hint and return it; nothing where this matter came up before or the window's budget is used."""
        store, layout = self._services.store, self._services.settings.layout["tool"]
        text = redact(hint.text)
        tokens = count(text)
        source = "before" if call.before else "after"
        trigger = Trigger("tool", call.project, session=call.session, host=call.hook_call.host, source=source)
        item = Item(memory=hint.memory, layer="hint", score=1.0, tokens=tokens, why=EMPTY)
        got = Context(text, tokens, layout.budget, layers={"hint": tokens}, skipped=EMPTY, items=(item,), build_ms=0.0)
        injection = injection_of(trigger, got, id=injection_id(call.hook_call), at=call.hook_call.at)
        with self._recording:
            used = store.injections.window_tokens(call.session).get("tool", 0)
            if tokens > min(layout.budget, layout.total - used) or hint.memory in store.injections.shown(call.session):
                return ""
            store.injections.record(injection)
        return text


def _failed(call: _Call, known: Sequence[KnownFailure]) -> bool:
    """Return whether a command failed, also where a pipe hides it.

    Where the exit code is not known (Codex), the error of a known failure of the same call tells that it failed again.
    """
    action, root = call.action, call.project.root
    run = run_of(action, root=root, cwd=call.cwd)
    if run.failed or action.failed is not None:
        return run.failed
    failure = failure_of(run_of(replace(action, failed=True), root=root, cwd=call.cwd))
    return failure is not None and failure_key(failure) in {each.detail["key"] for each in known}
