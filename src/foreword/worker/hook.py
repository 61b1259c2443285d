"""A call of a hook, of a plugin or of an agent -> the moment that it means, and what is said at that."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from foreword.agents import FILES, find
from foreword.capture.parse import CapturedEvent, capture, trigger_for
from foreword.capture.payload import HookCall
from foreword.encoding import dumps, storable
from foreword.errors import BadRequest
from foreword.models import FORMS, GOING_ON, TRIGGERS, Event, NoContext, Project, Trigger
from foreword.policy import Policy
from foreword.recall.pipeline import asked_trigger
from foreword.redact import redact
from foreword.worker import serialize
from foreword.worker.agent_notes import AgentNotes
from foreword.worker.capture import Taking
from foreword.worker.context import BETWEEN, Recalling
from foreword.worker.hints import Hints
from foreword.worker.injections import Given
from foreword.worker.jobs.extract import ExtractionJob

ECHO_SECONDS = 0.8  # a host starts both copies of a hook at once; a busy machine, some hundred milliseconds apart
MOST_ANSWERED = 256  # events that are kept in mind for so long
STATUS_LINE = "statusLine"  # what Claude calls it; hook/client.py knows the word too


class Moments:
    """Answers whoever is at a moment, after what was told until then was taken in."""

    def __init__(
        self,
        *,
        taking: Taking,
        recalling: Recalling,
        extraction: ExtractionJob,
        given: Given,
        hints: Hints,
        agent_notes: AgentNotes,
        project_of: Callable[[str], Project],
        off: Callable[[Project | None], Policy],
    ) -> None:
        self._taking, self._recalling, self._extraction, self._given = taking, recalling, extraction, given
        self._hints, self._agent_notes = hints, agent_notes
        self._project_of, self._off = project_of, off
        self._answering = threading.Lock()
        self._answered: dict[str, float] = {}  # key of an event -> when it was told
        self._writing = ThreadPoolExecutor(8, thread_name_prefix="writing")

    def hook(self, hook_call: HookCall) -> bytes:
        """One call of a hook: keep what it told, and answer with the bytes its host accepts."""
        if hook_call.event == STATUS_LINE:
            parsed = capture(hook_call, find_project=self._project_of)
            return str(self._given.in_a_line(parsed.told.session, parsed.project)["line"]).encode()
        if not hook_call.raw.strip():
            return b""
        told = self._taking.read(hook_call)
        trigger = trigger_for(hook_call, told.parsed)
        if told.event.kind in ("session_start", "compaction"):
            self._hints.new_window(told.event.session)
        if trigger is not None and trigger.name == "tool":
            self._taking.remember([told])
            text = "" if self._off(trigger.project).inject else self._hints.answer(told, hook_call)
            return find(hook_call.host).spoken(hook_call.event, text)
        if trigger is None or self._off(trigger.project).inject:
            self._taking.remember([told])
            project = told.parsed.project
            if told.event.kind == "tool_failure" and project is not None and not self._off(project).inject:
                self._hints.answer(told, hook_call, later=True)
            return self._ask_for_notes(told, hook_call)
        if not trigger.stable and trigger.source not in GOING_ON and self._is_echo(told.event):
            self._taking.remember([told])
            return b""
        if trigger.name == "session_start":
            self._extraction.settle(trigger.project.key)
        writing = self._writing.submit(self._taking.remember, [told])  # while it waits for the disk, we look
        try:
            self._taking.catch_up()
            text = self._recalling.answer(trigger, hook_call, told.parsed)
            if trigger.name == "prompt":
                text = BETWEEN.join(filter(None, (self._hints.waiting(trigger.session), text)))
        finally:
            writing.result()
        return find(hook_call.host).spoken(hook_call.event, text)

    def context(
        self,
        *,
        project_path: str,
        session_id: str = "",
        trigger: str = "",
        prompt: str = "",
        budget: int = 0,
        model: str = "",
        form: str = "",
        host: str = "",
        source: str = "",
        stable: bool = False,
        preview: bool = False,
    ) -> dict[str, Any]:
        """What is put in front of this moment, and what it costs; a preview is not recorded as given."""
        name = trigger or ("prompt" if prompt else "session_start")
        if name not in TRIGGERS:
            raise BadRequest(f"unknown trigger {name!r}", hint=f"one of {', '.join(TRIGGERS)}")
        if form and form not in FORMS:
            raise BadRequest(f"unknown form {form!r}", hint=f"one of {', '.join(FORMS)}")
        if host and host not in FILES:
            raise BadRequest(f"unknown host {host!r}", hint=f"one of {', '.join(FILES)}, or leave it out")
        if stable and not session_id:
            raise BadRequest("`stable` needs a `session_id`", hint="send the session that must see the same bytes")
        wanted = asked_trigger(
            Trigger(
                name=name,
                project=self._project_of(project_path),
                session=redact(storable(session_id)),
                prompt=redact(storable(prompt)),  # its words are recorded
                host=host,
                source=redact(storable(source)),
                model=model,
                budget=budget,
                form=form or ("plain" if name == "compaction" else "markdown"),
                stable=stable,
            )
        )
        if self._off(wanted.project).inject:
            return serialize.context(NoContext("off", budget=budget), "")
        self._taking.catch_up()
        if stable:
            return self._recalling.same(wanted, preview=preview)
        return serialize.context(*self._recalling.recall(wanted, preview=preview), trigger=wanted.name)

    def question(
        self, prompt: str, *, project: Project, session: str, host: str, scope: str = "", kinds: Sequence[str] = ()
    ) -> dict[str, Any]:
        """What an agent that asks is given, in its window's ledger; *scope* and *kinds* narrow it."""
        wanted = asked_trigger(
            Trigger(
                name="question",
                project=project,
                session=session,
                prompt=redact(storable(prompt)),
                host=host,
                scope=scope,
            )
        )
        if self._off(project).inject:
            return serialize.context(NoContext("off"), "")
        self._taking.catch_up()
        if wanted.name == "session_start":
            self._extraction.settle(project.key)
        return serialize.context(*self._recalling.recall(wanted, kinds=kinds), trigger=wanted.name)

    def _ask_for_notes(self, told: CapturedEvent, hook_call: HookCall) -> bytes:
        """Return what makes the agent write its own notes when it stops; nothing for almost all events."""
        ask = find(hook_call.host).ask if told.event.kind == "stop" else None
        if ask is None or self._off(told.parsed.project).inject:
            return b""
        text = self._agent_notes.request(told)
        return dumps(ask(text)).encode() if text else b""

    def close(self) -> None:
        self._writing.shutdown()

    def _is_echo(self, event: Event) -> bool:
        """Whether the same was told just now: of hooks wired twice, by plugin and by settings, one is answered."""
        with self._answering:
            before = self._answered.pop(event.key, -ECHO_SECONDS)
            self._answered[event.key] = event.at
            while len(self._answered) > MOST_ANSWERED:
                del self._answered[next(iter(self._answered))]
        return abs(event.at - before) < ECHO_SECONDS
