"""Serve hook calls: store the event, return the context that the agent's hook prints.

`Capture` stores what hooks and plugins send, directly or through the spool; `HookHandler` answers a hook call.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from foreword.agents import find
from foreword.capture.parse import CapturedEvent, capture_event, parse_hook, store_events, trigger_for
from foreword.capture.payload import HookCall
from foreword.encoding import dumps, plural
from foreword.errors import BadRequest, ForewordError, StoreError
from foreword.hook import spool
from foreword.models import CONTINUING_SOURCES, TOOL_BEGIN, Event, Project
from foreword.worker import serialize
from foreword.worker.callers import Callers
from foreword.worker.context import BETWEEN, ContextBuilder
from foreword.worker.hints import Hints
from foreword.worker.jobs.extract import ExtractionJob
from foreword.worker.projects import ProjectRegistry
from foreword.worker.services import Services
from foreword.worker.working_set import WorkingSet

log = logging.getLogger("foreword")

SPOOL_BATCH = 200  # hook calls in one commit when the spool is read
SMALL_SPOOL = 256 * 1024  # bytes that a prompt waits for: some hook calls, a few milliseconds
ECHO_SECONDS = 0.8  # an agent starts both copies of a hook at once; a busy machine, some hundred milliseconds apart
MOST_ECHOES = 256  # events that are remembered for so long
STATUS_LINE = "statusLine"  # Claude Code's name for it; hook/client.py knows it too


class Capture:
    """Stores the events of one home, for as long as the worker runs."""

    def __init__(
        self,
        services: Services,
        projects: ProjectRegistry,
        callers: Callers,
        working_set: WorkingSet,
        extraction: ExtractionJob,
    ) -> None:
        self._services, self._projects, self._callers = services, projects, callers
        self._working_set, self._extraction = working_set, extraction
        self._draining = threading.RLock()

    def add_events(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Store events from a plugin: `{host, event, payload, at?}`, or a list of them under `events`."""
        events = body.get("events", [body])
        if not isinstance(events, list) or not events:
            raise BadRequest("`events` must be a list with at least one event", hint="send {host, event, payload}")
        new = self.store([self.read(serialize.read_hook_call(each)) for each in events])
        return {"stored": sum(new), "known": len(new) - sum(new)}

    def read(self, hook_call: HookCall) -> CapturedEvent:
        """Parse a hook call, and remember what must be known before its event is in the store."""
        settings = self._services.settings
        captured = capture_event(
            self._projects.resolve(hook_call),
            keep=lambda project: not self._projects.policy(project).capture,
            deny=settings.deny_paths,
            find_project=self._projects.at,
        )
        if captured.parsed.kind == TOOL_BEGIN:
            self._callers.note_tool_use(captured.parsed, host=hook_call.host)
        if captured.wanted:
            self._working_set.add(captured)
            self._projects.saw(captured.parsed.project)
        return captured

    def store(self, captured: Sequence[CapturedEvent]) -> tuple[bool, ...]:
        """Store events, and return for each whether it is new; their sessions are extracted later."""
        new = store_events(self._services.store, captured)
        for each, is_new in zip(captured, new, strict=True):
            if is_new:
                self._extraction.event_stored(each.event.kind, each.event.session)
        return new

    # -- the spool ----------------------------------------------------------------------------------------------
    def drain(self) -> None:
        """Store what hooks spooled; a file is removed only when all of it is in the store."""
        with self._draining:
            folder = self._services.home.spool
            spool.take(str(folder), f"taken-{time.time_ns()}")
            for path in sorted(folder.glob("taken-*")):
                self._store_spooled(path)

    def catch_up(self) -> None:
        """Store at once the little that hooks spooled a moment ago: it says what this window has seen."""
        if not self._draining.acquire(timeout=self._services.settings.deadline_prompt_ms / 1000 / 3):
            return  # much is being stored, and a prompt cannot wait for all of it
        try:
            if 0 < os.stat(self._services.home.spool / "current").st_size < SMALL_SPOOL:
                self.drain()
        except FileNotFoundError:
            pass  # nothing is spooled
        except (ForewordError, OSError) as exc:
            self._services.report("spool", f"spooled hook calls cannot be stored yet: {exc}")
        finally:
            self._draining.release()

    def _store_spooled(self, path: Path) -> None:
        batch: list[HookCall] = []
        for record in spool.hook_calls(path.read_bytes()):
            if isinstance(record, bytes):
                self._services.report("spool", f"{len(record)} bytes of a torn record in {path.name} were skipped")
                continue
            batch.append(record)
            if len(batch) == SPOOL_BATCH:
                self._store_batch(batch)
                batch = []
        self._store_batch(batch)
        path.unlink()

    def _store_batch(self, batch: list[HookCall]) -> None:
        """Store a batch of hook calls; one that cannot be parsed must not keep the others waiting for ever."""
        try:
            events = [self.read(each) for each in batch if not each.injection]
            for injection in [
                self._projects.resolve(serialize.read_injection(each)) for each in batch if each.injection
            ]:
                at_once = not any(each.wanted for each in events)  # else with the events
                if injection.tokens or not self._projects.policy(Project(injection.project, "", "")).capture:
                    self._services.store.injections.record(injection, at_once=at_once)
            self.store(events)
        except StoreError:
            raise  # the store's problem, not theirs: they wait
        except Exception as exc:
            if len(batch) > 1:
                for each in batch:
                    self._store_batch([each])
                return
            log.exception("a spooled hook call was set aside")
            folder = self._services.home.spool / "aside"
            self._services.report("spool", f"a hook call was set aside in {folder}: {type(exc).__name__}: {exc}")
            folder.mkdir(mode=0o700, exist_ok=True)
            spool.append(str(folder), batch[0], most=self._services.settings.spool_max_mb * 1024 * 1024)


class HookHandler:
    """Answers hook calls, after what hooks sent before them was stored."""

    def __init__(
        self,
        services: Services,
        projects: ProjectRegistry,
        capture: Capture,
        context: ContextBuilder,
        *,
        extraction: ExtractionJob,
        hints: Hints,
    ) -> None:
        self._services, self._projects, self._capture, self._context = services, projects, capture, context
        self._extraction, self._hints = extraction, hints
        self._echo_lock = threading.Lock()
        self._answered: dict[str, float] = {}  # key of an event -> when it came
        self._writers = ThreadPoolExecutor(8, thread_name_prefix="writing")

    def answer(self, hook_call: HookCall) -> bytes:
        """Store the event of one hook call, and return the bytes that its agent accepts."""
        if hook_call.event == STATUS_LINE:
            parsed = parse_hook(hook_call, find_project=self._projects.at)
            return self.status_line(parsed.input.session, parsed.project).encode()
        if not hook_call.raw.strip():
            return b""
        event = self._capture.read(hook_call)
        trigger = trigger_for(hook_call, event.parsed)
        if event.event.kind in ("session_start", "compaction"):
            self._hints.new_window(event.event.session)
        if trigger is not None and trigger.name == "tool":
            self._capture.store([event])
            text = "" if self._projects.policy(trigger.project).inject else self._hints.answer(event, hook_call)
            return find(hook_call.host).encode_answer(hook_call.event, text)
        if trigger is None or self._projects.policy(trigger.project).inject:
            self._capture.store([event])
            project = event.parsed.project
            failed = event.event.kind == "tool_failure"
            if failed and project is not None and not self._projects.policy(project).inject:
                self._hints.answer(event, hook_call, later=True)
            return self._ask_for_notes(event, hook_call)
        if not trigger.stable and trigger.source not in CONTINUING_SOURCES and self._is_echo(event.event):
            self._capture.store([event])
            return b""
        if trigger.name == "session_start":
            self._extraction.settle(trigger.project.key)
        writing = self._writers.submit(self._capture.store, [event])  # recall runs while the disk is waited for
        try:
            self._capture.catch_up()
            text = self._context.answer_hook(trigger, hook_call, event.parsed)
            if trigger.name == "prompt":
                text = BETWEEN.join(filter(None, (self._hints.waiting(trigger.session), text)))
        finally:
            writing.result()
        return find(hook_call.host).encode_answer(hook_call.event, text)

    def status_line(self, session: str, project: Project | None) -> str:
        """Return what was injected into a session, in a line for people."""
        policy = self._projects.policy(project)
        if policy.inject:
            return "foreword: off" if policy.capture else "foreword: silent"
        usage = self._services.store.injections.usage(session=session) if session else {"tokens": 0}
        tokens = usage["tokens"]
        return f"foreword: {plural(usage['memories'], 'items')}, {tokens:,} tokens" if tokens else "foreword: quiet"

    def close(self) -> None:
        self._writers.shutdown()

    def _ask_for_notes(self, event: CapturedEvent, hook_call: HookCall) -> bytes:
        """Return what makes the agent write its own notes when it stops; nothing for almost all events."""
        ask = find(hook_call.host).follow_up if event.event.kind == "stop" else None
        if ask is None or self._projects.policy(event.parsed.project).inject:
            return b""
        text = self._hints.request_notes(event)
        return dumps(ask(text)).encode() if text else b""

    def _is_echo(self, event: Event) -> bool:
        """Return whether the same came just now: of hooks installed twice, by plugin and settings, one is answered."""
        with self._echo_lock:
            before = self._answered.pop(event.key, -ECHO_SECONDS)
            self._answered[event.key] = event.at
            while len(self._answered) > MOST_ECHOES:
                del self._answered[next(iter(self._answered))]
        return abs(event.at - before) < ECHO_SECONDS
