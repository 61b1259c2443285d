"""What hooks and plugins deliver, at once or by the spool -> events in the store; who waits for a look is told."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from foreword.capture.parse import CapturedEvent, read, remember
from foreword.capture.payload import HookCall
from foreword.config import Settings
from foreword.errors import BadRequest, ForewordError, StoreError
from foreword.hook import spool
from foreword.hook.build import key_of
from foreword.models import TOOL_BEGIN, Injection, NoContextRecord, Project
from foreword.paths import Home
from foreword.policy import Policy
from foreword.redact.env import hiding
from foreword.store import Store
from foreword.worker import requests
from foreword.worker.jobs.extract import ExtractionJob
from foreword.worker.project_lookup import Registry
from foreword.worker.session_lookup import Callers
from foreword.worker.working_set import Work

log = logging.getLogger("foreword")

SPOOL_BATCH = 200  # deliveries in one commit when the spool is read
SOON = 256 * 1024  # bytes in the spool that a prompt waits for: some hooks' worth, a few milliseconds


class Taking:
    """Takes in what is delivered to one home, for as long as the worker runs."""

    def __init__(
        self,
        *,
        home: Home,
        store: Callable[[], Store],
        settings: Callable[[], Settings],
        registry: Registry,
        callers: Callers,
        work: Work,
        extraction: ExtractionJob,
        off: Callable[[Project | None], Policy],
        hush: Callable[[Project, NoContextRecord], None],
        tell: Callable[[str, str], None],
    ) -> None:
        self._home, self._store, self._settings = home, store, settings
        self._registry, self._callers, self._work = registry, callers, work
        self._extraction = extraction
        self._off, self._hush, self._tell = off, hush, tell
        self._draining = threading.Lock()

    # -- at once ------------------------------------------------------------------------------------------------
    def events(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Events from a plugin: `{host, event, payload, at?}`, or a list of them under `events`."""
        given = told.get("events", [told])
        if not isinstance(given, list) or not given:
            raise BadRequest("`events` must be a list with at least one event", hint="send {host, event, payload}")
        new = self.remember([self.read(requests.hook_call(each)) for each in given])
        return {"stored": sum(new), "known": len(new) - sum(new)}

    def read(self, hook_call: HookCall) -> CapturedEvent:
        """What a delivery says; what must be known before it is in the store is kept in mind."""
        settings = self._settings()
        told = read(
            self._registry.own(hook_call),
            text_cap=settings.event_text_kb * 1024,
            keep=lambda project: not self._off(project).capture,
            deny=settings.deny_paths,
            hide=hiding(hook_call.hidden, key=key_of(self._home)) if hook_call.hidden else None,
            find_project=self._registry.at,
        )
        if told.parsed.kind == TOOL_BEGIN:
            self._callers.saw(told.parsed, host=hook_call.host)
        if told.wanted:
            self._work.saw(told)
            self._registry.saw(told.parsed.project)
        return told

    def remember(self, told: Sequence[CapturedEvent]) -> tuple[bool, ...]:
        """Keep what was told; what it came to is looked at afterwards, and nobody waits for that."""
        new = remember(self._store(), told)
        for each, fresh in zip(told, new, strict=True):
            if fresh:
                self._extraction.saw(each.event.kind, each.event.session)
        return new

    # -- by the spool -------------------------------------------------------------------------------------------
    def drain(self) -> None:
        """Take in what hooks spooled; a file goes only when all of it is in the store."""
        with self._draining:
            self._drain()

    def catch_up(self) -> None:
        """Take in at once the little that hooks spooled a moment ago: it tells what this window was given."""
        if not self._draining.acquire(timeout=self._settings().deadline_prompt_ms / 1000 / 3):
            return  # much is being taken in, and a prompt cannot wait for all of it
        try:
            if 0 < os.stat(self._home.spool / "current").st_size < SOON:
                self._drain()
        except FileNotFoundError:
            pass  # nothing waits
        except (ForewordError, OSError) as exc:
            self._tell("spool", f"what hooks spooled waits: {exc}")
        finally:
            self._draining.release()

    def _drain(self) -> None:
        spool.take(str(self._home.spool), f"taken-{time.time_ns()}")
        for path in sorted(self._home.spool.glob("taken-*")):
            batch: list[HookCall] = []
            for record in spool.hook_calls(path.read_bytes()):
                if isinstance(record, bytes):
                    self._tell("spool", f"{len(record)} bytes of a torn record were passed over in {path.name}")
                    continue
                batch.append(record)
                if len(batch) == SPOOL_BATCH:
                    self._take_in(batch)
                    batch = []
            self._take_in(batch)
            path.unlink()

    def _take_in(self, waiting: list[HookCall]) -> None:
        """Keep a batch; one delivery that cannot be understood must not keep the others waiting for ever."""
        try:
            told = [self.read(each) for each in waiting if not each.given]
            for given in [self._registry.own(requests.injection(each)) for each in waiting if each.given]:
                self._store().injections.record(
                    given, at_once=not any(each.wanted for each in told)
                )  # else with the events
                if not given.tokens:
                    self._hush(Project(given.project, "", ""), _silence_of_hook(given))
            self.remember(told)
        except StoreError:
            raise  # the store's trouble, not theirs: they wait
        except Exception as exc:
            if len(waiting) > 1:
                for each in waiting:
                    self._take_in([each])
                return
            log.exception("a spooled delivery was set aside")
            aside = self._home.spool / "aside"
            self._tell("spool", f"a delivery was set aside in {aside}: {type(exc).__name__}: {exc}")
            aside.mkdir(mode=0o700, exist_ok=True)
            spool.append(str(aside), waiting[0], most=self._settings().spool_max_mb * 1024 * 1024)


def _silence_of_hook(record: Injection) -> NoContextRecord:
    """Return what a hook's own record says of why it injected nothing, without the worker."""
    reasons = set(record.skipped.values())
    if record.trigger in ("prompt", "question") and not record.terms:
        why = "wordless"
    elif not reasons:  # no layer was looked at
        why = "used"
    else:
        why = "late" if reasons == {"deadline"} else "room" if "does not fit" in reasons else "unclear"
    names = ("id", "trigger", "source", "session", "project", "host", "at", "budget", "build_ms", "away")
    return NoContextRecord(why=why, **{name: getattr(record, name) for name in names})
