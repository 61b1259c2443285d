"""Answer hooks around tool uses: one line before a command that failed before, after a failure, at a first edit.

A hint before a tool reaches the agent's model together with the tool's result. So an agent whose hook after a tool is
waited for anyway gets all hints there, and no second process is started for each of its tool uses.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from foreword.agents import find
from foreword.capture.parse import CapturedEvent, injection_id
from foreword.capture.payload import HookCall
from foreword.extract.actions import Action, ToolUse, tool_action
from foreword.extract.commands import commands_of
from foreword.extract.failure_memory import CHECKS
from foreword.extract.failures import failure_key, failure_of, run_of
from foreword.models import EMPTY, TOOL_BEGIN, Injection, Item, Memory, Project, Query, texts
from foreword.recall.edits import hint_for_edit
from foreword.recall.hints import Hint, KnownFailure, hint_after, hint_before
from foreword.recall.tokens import count
from foreword.redact import redact
from foreword.worker.services import Services
from foreword.worker.working_set import WorkingSet

FAILURES = 300  # of a project, the newest, that a command is compared with
SUMMARIES = 100  # sessions, the newest, whose checks tell what works here
MOST_PROJECTS = 50
MOST_SESSIONS = 200
ABOUT_FILE = ("preference", "correction", "decision", "learning", "pattern", "turn")
MOST_ABOUT_FILE = 40


@dataclass(frozen=True)
class _Call:
    """One use of a tool that a hook asks about."""

    action: Action
    session: str
    project: Project
    cwd: str  # the folder of the shell before the tool was used
    before: bool


class Hints:
    """Keeps the known failures of projects at hand, and which files each session has edited."""

    def __init__(self, services: Services, working_set: WorkingSet) -> None:
        self._services, self._working_set = services, working_set
        self._lock = threading.Lock()
        self._recording = threading.Lock()  # of two tool uses at once, the second must know the hint of the first
        self._failures: dict[str, tuple[KnownFailure, ...]] = {}
        self._changes = 0  # how often something was to be read again
        self._edited: dict[str, set[str]] = {}
        self._waiting: dict[str, tuple[Hint, _Call, HookCall]] = {}  # by session, until its next prompt

    def refresh(self, project: str) -> None:
        """Read the failures of a project again: a session changed them."""
        with self._lock:
            self._changes += 1
            self._failures.pop(project, None)

    def new_window(self, session: str) -> None:
        """Forget which files a session edited: its context window begins anew."""
        with self._lock:
            self._edited.pop(session, None)
            self._waiting.pop(session, None)

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
                self._keep_waiting(call, hint, hook_call if later else None)
            return self._record(hint, call, hook_call) if call and hint and not later else ""
        except Exception as exc:  # noqa: BLE001 - a hint must never break the agent
            self._services.report("hints", f"no hint could be given: {type(exc).__name__}: {exc}")
            return ""

    def waiting(self, session: str) -> str:
        """Return the hint that waits for the next prompt of a session, recorded; nothing where none does."""
        with self._lock:
            kept = self._waiting.pop(session, None)
        try:
            return self._record(*kept) if kept else ""
        except Exception as exc:  # noqa: BLE001 - nor may one that waited break a prompt
            self._services.report("hints", f"no hint could be given: {type(exc).__name__}: {exc}")
            return ""

    def _keep_waiting(self, call: _Call, hint: Hint | None, hook_call: HookCall | None) -> None:
        """Let a hint wait, unless it is answered at once; drop one whose program worked since."""
        with self._lock:
            if hint and hook_call:
                self._waiting[call.session] = (hint, call, hook_call)
                while len(self._waiting) > MOST_SESSIONS:
                    del self._waiting[next(iter(self._waiting))]
            elif (kept := self._waiting.get(call.session)) and not call.action.failed:
                programs = {each.words[0] for each in commands_of(kept[1].action.command)}
                if programs.intersection(each.words[0] for each in commands_of(call.action.command)):
                    del self._waiting[call.session]

    def _call(self, event: CapturedEvent, hook_call: HookCall) -> _Call | None:
        parsed, hook = event.parsed, event.parsed.input
        if parsed.project is None or not hook.session or hook.inner:
            return None
        use = ToolUse(**find(hook_call.host).tool_use(parsed.payload))
        root = parsed.project.root
        action = tool_action(use, at=hook_call.at, cwd=hook.cwd, root=root)
        before = parsed.kind == TOOL_BEGIN
        cwd = self._working_set.folder(hook.session, before_last=not before) or hook.cwd
        return _Call(action, hook.session, parsed.project, cwd, before=before)

    def _hint(self, call: _Call) -> Hint | None:
        action, root = call.action, call.project.root
        if action.act == "edit" and action.files:
            return self._edit_hint(call)
        if action.act != "run" or not action.command or not (known := self._known(call.project)):
            return None
        now = self._services.now()
        if call.before:
            return hint_before(action.command, known, now=now, cwd=call.cwd, root=root)
        if not _failed(call, known):
            return None
        hint = hint_after(action.command, action.output, known, now=now, cwd=call.cwd, root=root)
        if hint is None:  # no fix is known; that it never works may be, whatever was wrong this time
            never = [each for each in known if each.detail.get("cause") in ("usage", "folder")]
            hint = hint_before(action.command, never, now=now, cwd=call.cwd, root=root)
        return hint

    def _edit_hint(self, call: _Call) -> Hint | None:
        with self._lock:
            edited = self._edited.setdefault(call.session, set())
            first = [file for file in call.action.files if file not in edited]
            edited.update(first)
            while len(self._edited) > MOST_SESSIONS:
                del self._edited[next(iter(self._edited))]
        hints = (hint_for_edit(file, self._about(call, file), now=self._services.now()) for file in first)
        return next(filter(None, hints), None)

    def _about(self, call: _Call, file: str) -> Sequence[Memory]:
        """Return what is remembered about a file, from other sessions."""
        query = Query(scopes=(call.project.scope,), kinds=ABOUT_FILE, limit=MOST_ABOUT_FILE)
        hits = self._services.store.search.by_code(query, {file: 1.0})
        return [hit.memory for hit in hits if hit.memory.session != call.session]

    def _known(self, project: Project) -> tuple[KnownFailure, ...]:
        with self._lock:
            known = self._failures.get(project.key)
        if known is None:
            with self._lock:
                read_at = self._changes
            rows = self._services.store.memories.list(
                ("failure",), scopes=(project.scope,), statuses=("active",), limit=FAILURES
            )
            summaries = self._services.store.memories.list(
                ("summary",), scopes=(project.scope,), statuses=("active",), limit=SUMMARIES
            )
            checks = {each.session: texts(each.detail, "checks") for each in summaries if each.trust != "imported"}
            # Those without an error were written by hand or by an earlier version; an import may claim that anything
            # worked, so that it must not choose a command.
            known = tuple(
                KnownFailure(each.id, {**each.detail, CHECKS: checks})
                for each in rows
                if each.detail.get("error") and each.trust != "imported"
            )
            with self._lock:
                if self._changes != read_at:
                    return known  # a session changed them meanwhile: the next call reads again
                while len(self._failures) >= MOST_PROJECTS:
                    del self._failures[next(iter(self._failures))]
                self._failures[project.key] = known
        return known

    def _record(self, hint: Hint, call: _Call, hook_call: HookCall) -> str:
        """Record the hint and return it, unless this matter came up already or the window's budget is used."""
        store, layout = self._services.store, self._services.settings.layout["tool"]
        text = redact(hint.text)
        tokens = count(text)
        item = Item(memory=hint.memory, layer="hint", score=1.0, tokens=tokens, why=EMPTY)
        injection = Injection(
            id=injection_id(hook_call),
            trigger="tool",
            session=call.session,
            project=call.project.key,
            host=hook_call.host,
            at=hook_call.at,
            tokens=tokens,
            budget=layout.budget,
            build_ms=0.0,
            layers={"hint": tokens},
            skipped=EMPTY,
            items=(item,),
            source="before" if call.before else "after",
            text=text,
        )
        with self._recording:
            if tokens > layout.budget or hint.memory in store.injections.shown(call.session):
                return ""
            if store.injections.window_tokens(call.session).get("tool", 0) + tokens > layout.total:
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
    return failure is not None and failure_key(failure) in {each.detail.get("key") for each in known}
