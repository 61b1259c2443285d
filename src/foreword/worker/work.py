"""Events as they pass, the store and git -> what is being worked on: files, newest first, and the last tool uses."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache

from foreword.errors import BadPayload, BadRequest, StoreError
from foreword.hosts import find
from foreword.languages import languages
from foreword.recall.query import MOST_TOUCHED
from foreword.remember import Read
from foreword.types import Event, Moment

MOST_SESSIONS = 200  # of which one is remembered; the others are read from the store when they go on
MOST_ROOTS = 200
EVENTS = 100  # read from the store after a restart: the last hour of a busy session
EVENTS_SECONDS = 0.02  # that a prompt waits for them
LATELY = 300.0  # seconds for which a tool use tells something about the next prompt
TOOLS = ("tool", "tool_failure")
GIT_SECONDS = 10.0  # for which an answer of git is fresh
GIT_SHARE = 20  # times as long as git took, it rests: a huge repository costs a twentieth of a processor at most
GIT_REST = 600.0  # after a failure
LANGUAGES_SECONDS = 30.0
BEGINNINGS = ("", "startup", "new", "clear")  # sources of a session that has no earlier events


class Work:
    """What is being worked on in every session and project, for as long as the worker runs."""

    def __init__(
        self,
        *,
        earlier: Callable[[str], Sequence[Event]],
        tell: Callable[[str, str], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._now = now
        self._earlier = earlier  # a session's last events, newest first
        self._tell = tell
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}
        self._changed: dict[str, _Changed] = {}
        self._languages: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._looking = ThreadPoolExecutor(2, thread_name_prefix="looking")

    def saw(self, told: Read) -> None:
        """Keep in mind what an event touched: some microseconds, and nothing that waits."""
        event = told.event
        if event.session:
            with self._lock:
                begins = event.kind == "session_start" and told.captured.told.source in BEGINNINGS
                self._session(event.session, whole=begins).saw(event, told.captured.told.files)

    def around(self, moment: Moment) -> Moment:
        """The moment with what is being worked on; git is asked in the background, and answers the next time."""
        root = moment.project.root
        if not root:
            return replace(moment, languages=())  # a project that was never seen on this machine
        files = dict(self._changed_in(root))
        recent: tuple[str, ...] = ()
        if moment.session:
            self._read_back(moment.session)
            with self._lock:
                session = self._session(moment.session)
                touched, recent = dict(session.files), session.lately(self._now())
            for path, at in touched.items():
                name = _inside(path, root)
                if name:
                    files[name] = max(at, files.get(name, 0.0))
        newest = sorted(files, key=lambda name: (-files[name], name))[:MOST_TOUCHED]
        return replace(moment, touched=tuple(newest), recent=recent, languages=self._languages_of(root))

    def forget(self, sessions: Sequence[str]) -> None:
        """Keep nothing of these in mind."""
        with self._lock:
            for session in sessions:
                self._sessions.pop(session, None)

    def close(self) -> None:
        self._looking.shutdown(cancel_futures=True)

    # -- sessions -----------------------------------------------------------------------------------------------
    def _session(self, id: str, *, whole: bool = False) -> _Session:
        """The session, which is now the one that was used last; the one that was not used for longest goes."""
        found = self._sessions.pop(id, None) or _Session(whole=whole)
        self._sessions[id] = found
        if len(self._sessions) > MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return found

    def _read_back(self, id: str) -> None:
        """What a session did before this worker was there, read once."""
        with self._lock:
            session = self._session(id)
            if session.whole:
                return
            session.whole = True
        # Late, then the next prompt has them; or the worker is leaving.
        with contextlib.suppress(TimeoutError, RuntimeError):
            self._looking.submit(self._read_events, id).result(EVENTS_SECONDS)

    def _read_events(self, id: str) -> None:
        try:
            events = self._earlier(id)
        except StoreError:
            return  # recall is told the same, and tells it
        for event in reversed(events):
            try:
                files = find(event.host).read(event.payload).files
            except BadPayload:
                continue  # a host that we do not know
            with self._lock:
                self._session(id).saw(event, files)

    # -- projects -----------------------------------------------------------------------------------------------
    def _changed_in(self, root: str) -> dict[str, float]:
        """What git said last; it is asked again where that was too long ago."""
        now = time.monotonic()
        with self._lock:
            if len(self._changed) > MOST_ROOTS:
                self._changed.clear()
            known = self._changed.setdefault(root, _Changed())
            asks = not known.asking and now >= known.until
            known.asking = known.asking or asks
        if asks:
            with contextlib.suppress(RuntimeError):  # the worker is leaving
                self._looking.submit(self._ask_git, root, known)
        return known.files

    def _ask_git(self, root: str, known: _Changed) -> None:
        from foreword.history import changed  # `re`, `subprocess` and `tempfile`, which an idle worker does without

        began = time.monotonic()
        rest = GIT_REST
        try:
            known.files = changed(root)
            rest = max(GIT_SECONDS, GIT_SHARE * (time.monotonic() - began))
        except BadRequest as exc:
            known.files = {}
            self._tell("git", f"{exc}; {exc.hint}")
        finally:
            known.until, known.asking = time.monotonic() + rest, False

    def _languages_of(self, root: str) -> tuple[str, ...]:
        now = time.monotonic()
        known = self._languages.get(root)
        if known is None or now - known[0] > LANGUAGES_SECONDS:
            if len(self._languages) > MOST_ROOTS:
                self._languages.clear()
            known = self._languages[root] = (now, languages(root))
        return known[1]


class _Changed:
    """What git said of one project."""

    def __init__(self) -> None:
        self.files: dict[str, float] = {}
        self.until = 0.0  # when it may be asked again
        self.asking = False


class _Session:
    """The files of one session by when each was touched last, and its last tool uses."""

    def __init__(self, *, whole: bool) -> None:
        self.whole = whole  # nothing of it is only in the store
        self.files: dict[str, float] = {}
        self.tools: list[tuple[float, str]] = []

    def saw(self, event: Event, files: Sequence[str]) -> None:
        if event.kind not in TOOLS:
            return
        self.tools = sorted([*self.tools, (event.at, event.kind)])[-8:]  # what was spooled comes later than it was
        for file in files:
            path = os.path.join(event.cwd or "/", file)
            self.files[path] = max(event.at, self.files.get(path, 0.0))
        if len(self.files) > 2 * MOST_TOUCHED:
            newest = sorted(self.files.items(), key=lambda item: -item[1])
            self.files = dict(newest[:MOST_TOUCHED])

    def lately(self, now: float) -> tuple[str, ...]:
        return tuple(kind for at, kind in reversed(self.tools) if now - at < LATELY)


def _inside(path: str, root: str) -> str:
    """*path* relative to *root*; nothing where it lies elsewhere."""
    path = os.path.normpath(path)
    top = root.rstrip("/") + "/"
    if not path.startswith(top):
        # A project is known by its real folder; a host may call it by a link.
        path = os.path.join(_real(os.path.dirname(path)), os.path.basename(path))
    return path[len(top) :] if path.startswith(top) else ""


@lru_cache(1000)
def _real(folder: str) -> str:
    try:
        return os.path.realpath(folder)
    except (OSError, ValueError):
        return folder
