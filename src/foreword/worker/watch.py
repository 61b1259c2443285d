"""Sessions and their transcripts -> those whose capture died while the agent went on, each told once."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

from foreword import tails
from foreword.config import Settings
from foreword.errors import BadRequest, ForewordError
from foreword.hosts import text_of
from foreword.imports import TRANSCRIPTS
from foreword.install.wired import Wired
from foreword.store import Store
from foreword.switches import chosen, off
from foreword.types import Event, Project, Session

log = logging.getLogger("foreword")

SESSIONS = 10  # of a host that are looked at when another one begins
EVENTS = 8  # the last of a session, which are asked where its transcript lies; each of them tells, in most hosts
KEPT = 20  # sessions that are remembered as told, for each host
DAY = 86_400.0  # seconds between two looks at what hosts write without a word to us
MARK = "capture died: "  # and a host: what was told of its sessions
ON = "capture is on"  # since when; what happened before was not meant to be kept
QUIET = "hosts were looked at"
SHORT = 13  # characters of a session's id: those of Codex begin with the time, down to the millisecond


@dataclass(frozen=True)
class Died:
    """A session that told nothing more and went on: from when, and until when at least."""

    session: str
    project: str
    since: float
    until: float
    told: float
    brought: float = 0.0  # when an import read it; 0 for not yet


def died(store: Store, host: str) -> tuple[Died, ...]:
    """What was told of a host's sessions, the last first."""
    try:
        return tuple(Died(**each) for each in json.loads(store.mark(f"{MARK}{host}") or "[]"))
    except (ValueError, TypeError):
        return ()


def untold(store: Store, host: str) -> tuple[Died, ...]:
    """Those of them that nobody has brought in since."""
    return tuple(each for each in died(store, host) if not each.brought)


def bring_in(store: Store, host: str, session: str, *, at: float) -> None:
    """An import has read what a session did not tell."""
    before = died(store, host)
    after = tuple(replace(each, brought=at) if each.session == session else each for each in before)
    if after != before:
        _keep(store, host, after, at=at)


class Watching:
    """One thread that looks at transcripts now and then; no hook waits for it."""

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        settings: Callable[[], Settings],
        project_of: Callable[[str], Project],
        hosts: Callable[[], Mapping[str, Wired]],
        tell: Callable[[str, str], None],
    ) -> None:
        self._store = store
        self._settings = settings
        self._project_of = project_of
        self._hosts = hosts
        self._tell = tell
        self._begun: dict[str, str] = {}  # host -> the session that began
        self._looking = threading.Lock()
        self._looked = 0.0  # at all hosts; what another worker did before is on file
        self._working = ThreadPoolExecutor(1, thread_name_prefix="watching")

    def saw(self, kind: str, *, host: str, session: str) -> None:
        """An event was kept; a session that begins lets us look at those before it, a moment later."""
        if kind == "session_start" and session:
            self._begun[host] = session

    def look(self) -> None:
        """Asked every second, when what waited has been taken in: mostly there is nothing to do."""
        if (self._begun or time.time() - self._looked > DAY) and self._looking.acquire(blocking=False):
            try:
                self._working.submit(self._look)
            except RuntimeError:
                self._looking.release()  # the worker is leaving

    def close(self) -> None:
        self._working.shutdown(cancel_futures=True)

    # -- in its own thread --------------------------------------------------------------------------------------
    def _look(self) -> None:
        try:
            begun, self._begun = self._begun, {}
            since = self._on_since()
            if since is not None:
                for host, session in tuple(begun.items()):  # a hook may add one meanwhile
                    self._look_at_sessions(host, besides=session, since=since)
                self._look_at_hosts(since=since)
        except ForewordError as exc:
            self._tell("watch", f"it could not be seen whether capture works: {exc}")
        except Exception as exc:
            log.exception("looking at transcripts failed")
            self._tell("watch", f"it could not be seen whether capture works: {type(exc).__name__}: {exc}")
        finally:
            if time.time() - self._looked > DAY:  # what failed, or is off, is not tried again every second
                self._looked = time.time()
            self._looking.release()

    def _on_since(self) -> float | None:
        """Since when capture is switched on, as far as workers saw; None where it is off."""
        before = self._store().mark(ON)
        if not self._settings().capture:
            if before != "off":
                self._store().set_mark(ON, "off", at=time.time())
            return None
        if before == "off":
            before = str(time.time())
            self._store().set_mark(ON, before, at=time.time())
        return float(before or 0.0)

    def _look_at_sessions(self, host: str, *, besides: str, since: float) -> None:
        if host not in tails.TELLING:
            return  # it writes nothing that we can read
        sessions = self._store().sessions_of(host, limit=SESSIONS)
        told = {each.id: self._store().events(each.id, limit=EVENTS, newest=True) for each in sessions}
        paths = {id: _transcript(events) for id, events in told.items()}
        known = next(((id, path) for id, path in paths.items() if path and id in path), None)
        for session in sessions:
            # Copilot tells the path at the end of a turn only; it differs from another session's by the id.
            path = paths[session.id] or (known[1].replace(known[0], session.id) if known else "")
            if path and session.last >= since and not self._is_off(session.cwd):
                last = sorted(told[session.id], key=lambda event: -event.at)
                self._judge(session, last, path, resumed=session.id == besides)

    def _judge(self, session: Session, told: Sequence[Event], path: str, *, resumed: bool) -> None:
        """Whether a session went on after its last word; if *resumed*, up to where it begins again."""
        now = until = time.time()
        if resumed:
            began = next((place for place, event in enumerate(told) if event.kind == "session_start"), len(told) - 1)
            told, until = told[began + 1 :], told[began].at if told else now
        if not told:
            return
        # After a start alone nothing was told of what the user said: any prompt shows that something should have been.
        grace = 0.0 if told[0].kind == "session_start" else tails.GRACE
        tail = tails.read(path, host=session.host, after=told[0].at)
        went_on = tails.went_on(tail, after=told[0].at, now=until, grace=grace)
        if went_on:
            self._note(session, since=told[0].at, until=went_on, now=now)

    def _note(self, session: Session, *, since: float, until: float, now: float) -> None:
        this = Died(session=session.id, project=session.project, since=since, until=until, told=now)
        before = died(self._store(), session.host)
        if any((each.session, each.since) == (this.session, this.since) for each in before):
            return
        _keep(self._store(), session.host, [this, *(each for each in before if each.session != this.session)], at=now)
        self._tell(
            "capture",
            f"session {session.id[:SHORT]} of {session.host} ({session.project}) told nothing after {_clock(since)}, "
            f"and went on until {_clock(until)}; {brought_in(session.host)}, and `foreword doctor` tells whether its "
            "hooks run",
        )

    def _look_at_hosts(self, *, since: float) -> None:
        """Once a day: what wired hosts wrote, against what they told."""
        now = time.time()
        self._looked = self._looked or float(self._store().mark(QUIET) or 0.0)
        if 0 <= now - self._looked < DAY:
            return
        self._looked = now
        self._store().set_mark(QUIET, str(now), at=now)
        seen = {each.host: each.at for each in self._store().seen()}
        for host, wired in self._hosts().items():
            after = max(seen.get(host, 0.0), wired.since)
            if wired.begun and after:
                until = silent(host, wired, after=max(after, since), now=now, is_off=self._is_off)
                last = f"its last event is of {_clock(seen[host])}" if host in seen else "it never told anything"
                if until:
                    self._tell("capture", f"{host} went on until {_clock(until)}, and {last}; run `foreword doctor`")

    def _is_off(self, folder: str) -> bool:
        with suppress(BadRequest):
            return bool(folder and off(self._project_of(folder), chosen(self._settings())).write)
        return False


def silent(
    host: str, wired: Wired, *, after: float, now: float, is_off: Callable[[str], bool] = lambda _folder: False
) -> float:
    """Until when a host went on by its newest transcripts, *after* which nothing was told; 0 where it did not."""
    until = 0.0
    if host in tails.TELLING:
        for path in tails.newest(str(wired.setup.folder), wired.setup.transcripts):
            tail = tails.read(path, host=host, after=after)
            if not is_off(tail.cwd):
                until = max(until, tails.went_on(tail, after=after, now=now))
    return until


def brought_in(host: str) -> str:
    """What brings in what a session did not tell, where something does."""
    if host in TRANSCRIPTS:
        return f"`foreword import {host}` in its folder brings it in"
    return "its transcript cannot be imported"


def _keep(store: Store, host: str, told: Sequence[Died], *, at: float) -> None:
    store.set_mark(f"{MARK}{host}", json.dumps([vars(each) for each in told[:KEPT]]), at=at)


def _transcript(events: Sequence[Event]) -> str:
    paths = (text_of(event.payload, "transcript_path", "transcriptPath") for event in events)
    return next((path for path in paths if path), "")


def _clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
