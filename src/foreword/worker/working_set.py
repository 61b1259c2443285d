"""Keep what each session is working on: its files, its last tool uses, its words, and what git calls changed."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from foreword.agents import find
from foreword.capture.parse import CapturedEvent
from foreword.errors import BadPayload, BadRequest, StoreError
from foreword.models import CONTINUING_SOURCES, Event, Trigger
from foreword.projects import languages
from foreword.recall.query import MOST_TOUCHED
from foreword.recall.relevance import content_words
from foreword.worker.services import Services

MOST_SESSIONS = 64  # that are kept, 70 KB each; the others are read from the store when they go on
MOST_ROOTS = 200
EVENTS = 100  # read from the store after a restart: the last hour of a busy session
RECENT = 300.0  # seconds for which a tool use says something about the next prompt
TOOLS = ("tool", "tool_failure")
READING = ("Read", "Grep", "Glob", "LS", "NotebookRead")  # tools that name files and change none
MOST_WORDS = 20_000  # of a session's conversation
MOST_ANSWER = 4_000  # characters
MOST_EDITED = 5  # files of another session that are named
MOST_PARALLEL = 3  # other sessions
ACTIVE = 1800.0  # seconds since the last event, within which a session is at work
GIT_SECONDS = 10.0  # for which an answer of git is fresh
GIT_SHARE = 20  # times as long as git took, it rests: a huge repository costs a twentieth of a processor at most
GIT_REST = 600.0  # after a failure
BEGINNINGS = ("", "startup", "new", "clear")  # sources of a session that has no earlier events
FORKS = ("resume", "fork")  # sources of a session that, where its id is new, carries another one's conversation on

_Seen = tuple[Event, Sequence[str], str]  # an event, the files that it names, and its text


class WorkingSet:
    """What is being worked on in every session and project, for as long as the worker runs."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}
        self._changed: dict[str, _Changed] = {}
        self._git = ThreadPoolExecutor(2, thread_name_prefix="working-set")

    def add(self, captured: CapturedEvent) -> None:
        """Remember what an event touched: some microseconds, and nothing that waits."""
        event, hook = captured.event, captured.parsed.input
        if not event.session:
            return
        with self._lock:
            starts, is_new = event.kind == "session_start", event.session not in self._sessions
            session = self._session(event.session, whole=starts and hook.source in BEGINNINGS)
            light = event._replace(payload={name: event.payload.get(name) for name in ("source", "tool_name")})
            session.add((light, hook.files, hook.prompt if event.kind == "prompt" else hook.answer))
            if starts and is_new and hook.source in FORKS:
                self._carry_over(event, session)

    def enrich(self, trigger: Trigger) -> Trigger:
        """Return a trigger with what is being worked on; git runs in the background, for the next time."""
        root = trigger.project.root
        if not root:
            return trigger._replace(languages=())  # a project that was never seen on this machine
        changed = self._changed_in(root)
        files = {name: at for name, at in (changed or {}).items() if not name.endswith("/")}
        recent: tuple[str, ...] = ()
        first, words, answer = True, frozenset[str](), ""
        if trigger.session:
            self._read_back(trigger.session)
            with self._lock:
                session = self._session(trigger.session)
                now, touched = self._services.now(), dict(session.files)
                recent = tuple(kind for at, kind in reversed(session.tools) if now - at < RECENT)
                first, words, answer = session.prompts <= 1, frozenset(session.words), session.answer
            for path, at in touched.items():
                if name := _inside(path, root):
                    files[name] = max(at, files.get(name, 0.0))
        newest = sorted(files, key=lambda name: (-files[name], name))[:MOST_TOUCHED]
        return trigger._replace(
            touched=tuple(newest),
            recent=recent,
            languages=languages(root),
            first=first,
            session_words=words,
            answer=answer,
            parallel=self._parallel(trigger),
            changed=None if changed is None else frozenset(changed),
        )

    def carried_over(self, session: str) -> tuple[str, ...]:
        """Return the sessions whose conversation this one carries on under an id of its own; mostly none."""
        with self._lock:
            found = self._sessions.get(session)
            return found.carried_over if found else ()

    def folder(self, session: str, *, before_last: bool) -> str:
        """Return the folder of a session's shell after its last event, or before that; empty where not known."""
        with self._lock:
            found = self._sessions.get(session)
            return "" if found is None else found.cwd_before if before_last else found.cwd

    def work_done(self, session: str) -> tuple[int, int]:
        """Return how many files a session edited, and how often it used tools, as far as this worker saw it."""
        with self._lock:
            found = self._sessions.get(session)
            return (len(found.edited), found.uses) if found else (0, 0)

    def forget(self, sessions: Sequence[str]) -> None:
        """Remember nothing of these sessions."""
        with self._lock:
            for session in sessions:
                self._sessions.pop(session, None)

    def close(self) -> None:
        self._git.shutdown(cancel_futures=True)

    # -- sessions -----------------------------------------------------------------------------------------------
    def _session(self, id: str, *, whole: bool = False) -> _Session:
        """Return the session, now the last used one; the one that was not used for longest is dropped."""
        found = self._sessions.pop(id, None) or _Session(whole=whole)
        self._sessions[id] = found
        if len(self._sessions) > MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return found

    def _read_back(self, id: str) -> None:
        """Load, once, a session's events from before this worker started, and add those that arrived meanwhile."""
        with self._lock:
            if self._session(id).whole:
                return
        try:
            earlier = self._services.store.events.list(id, limit=EVENTS, newest=True)
        except StoreError:
            earlier = ()  # recall fails with the same error, and reports it
        with self._lock:
            live = self._session(id)
            known = {event.key for event, _, _ in live.seen}
            if all(event.key in known for event in earlier):
                live.whole = True
                return
            session = _Session(whole=True)
            for event in reversed(earlier):
                if event.key in known:
                    continue  # it passed by while it was written
                with contextlib.suppress(BadPayload):  # an unknown agent
                    hook = find(event.host).parse(event.payload)
                    session.add((event, hook.files, hook.prompt if event.kind == "prompt" else hook.answer))
            for seen in live.seen:
                session.add(seen)
            self._sessions[id] = session

    def _carry_over(self, event: Event, session: _Session) -> None:
        """Let a resumed session with a new id know the conversation before it.

        Agents do not tell which session it was: the newest of the project, or one of those at work just before.
        """
        others = {
            id: each
            for id, each in self._sessions.items()
            if id != event.session and each.project == event.project and each.last <= event.at
        }
        newest = max(others, key=lambda id: others[id].last, default="")
        session.carried_over = tuple(id for id in others if id == newest or event.at - others[id].last < ACTIVE)
        for id in session.carried_over:
            session.words |= others[id].words
            session.prompts += others[id].prompts

    def _parallel(self, trigger: Trigger) -> tuple[tuple[float, tuple[str, ...]], ...]:
        """Return the other sessions that are active in this folder: since when, with which files of theirs."""
        if not trigger.session:
            return ()
        now, root = self._services.now(), trigger.project.root
        with self._lock:
            own = self._session(trigger.session).edited
            active = [
                (each.began, [path for path in reversed(each.edited) if path not in own][:MOST_EDITED])
                for id, each in self._sessions.items()
                if id != trigger.session and each.project == trigger.project.key
                if not each.ended and 0 <= now - each.last < ACTIVE
            ]
        others = [(began, tuple(filter(None, (_inside(path, root) for path in edited)))) for began, edited in active]
        return tuple(sorted(each for each in others if each[1]))[-MOST_PARALLEL:]

    # -- projects -----------------------------------------------------------------------------------------------
    def _changed_in(self, root: str) -> dict[str, float] | None:
        """Return the last answer of git, None before the first; run it again where that was too long ago."""
        with self._lock:
            if len(self._changed) > MOST_ROOTS:
                self._changed.clear()
            known = self._changed.setdefault(root, _Changed())
            if not known.asking and time.monotonic() >= known.until:
                known.asking = True
                with contextlib.suppress(RuntimeError):  # the worker is stopping
                    self._git.submit(self._ask_git, root, known)
        return known.files

    def _ask_git(self, root: str, known: _Changed) -> None:
        from foreword.importers.git import changed  # with `subprocess`, which an idle worker does without

        began, rest = time.monotonic(), GIT_REST
        try:
            known.files = changed(root)
            rest = max(GIT_SECONDS, GIT_SHARE * (time.monotonic() - began))
        except BadRequest as exc:
            known.files = None
            self._services.report("git", f"{exc}; {exc.hint}")
        finally:
            known.until, known.asking = time.monotonic() + rest, False


class _Changed:
    """The files that git calls changed in one project."""

    def __init__(self) -> None:
        self.files: dict[str, float] | None = None
        self.until = 0.0  # when git may run again
        self.asking = False


class _Session:
    """What one session did, by its events in the order of their arrival."""

    def __init__(self, *, whole: bool) -> None:
        self.whole = whole  # nothing of it is only in the store
        self.seen: list[_Seen] = []  # what passed by, until the rest is read
        self.files: dict[str, float] = {}  # when each was touched last
        self.edited: dict[str, None] = {}  # the newest last
        self.tools: list[tuple[float, str]] = []  # the last uses
        self.uses = 0  # of tools
        self.words: set[str] = set()  # of its prompts and answers, without the newest prompt
        self.answer = ""  # the end of the agent's last message, where its options stand
        self.prompts = 0  # in the present context window
        self.carried_over: tuple[str, ...] = ()  # sessions whose conversation it goes on with
        self.project = self.cwd_before = self.cwd = ""
        self.began = self.last = 0.0
        self.ended = False
        self._prompt = ""  # the newest, until something follows it

    def add(self, seen: _Seen) -> None:
        event, files, text = seen
        if not self.whole:
            self.seen = [*self.seen, seen][-EVENTS:]
        self.project = event.project or self.project
        if event.at >= self.last:  # what was spooled comes later than it was
            self.cwd_before, self.cwd = self.cwd or event.cwd, event.cwd
            self.last, self.ended = event.at, event.kind == "session_end"
        self.began = min(self.began or event.at, event.at)
        self._converse(event, text)
        if event.kind not in TOOLS:
            return
        self.uses += 1
        self.tools = sorted([*self.tools, (event.at, event.kind)])[-8:]
        edits = event.kind == "tool" and event.payload.get("tool_name") not in READING
        for path in (os.path.join(event.cwd or "/", file) for file in files):
            self.files[path] = max(event.at, self.files.get(path, 0.0))
            if edits:
                self.edited.pop(path, None)
                self.edited[path] = None
        if len(self.files) > 2 * MOST_TOUCHED:
            self.files = dict(sorted(self.files.items(), key=lambda item: -item[1])[:MOST_TOUCHED])

    def _converse(self, event: Event, text: str) -> None:
        """Note the words of the conversation, which tell a new topic from one that goes on."""
        if event.kind == "session_start" and event.payload.get("source") in CONTINUING_SOURCES:
            return
        if event.kind in ("session_start", "compaction"):
            self.words, self.prompts, self._prompt, self.answer = set(), 0, "", ""
            return
        if self._prompt:
            self.words |= content_words(self._prompt)
            self._prompt = ""
        if event.kind == "prompt":
            self.prompts, self._prompt = self.prompts + 1, text
        elif event.kind == "stop" and text:
            self.words |= content_words(text)
            self.answer = text[-MOST_ANSWER:]
        if len(self.words) > MOST_WORDS:
            self.words = set(list(self.words)[-MOST_WORDS:])


def _inside(path: str, root: str) -> str:
    """Return *path* relative to *root*; nothing where it lies elsewhere."""
    path = os.path.normpath(path)
    top = root.rstrip("/") + "/"
    if not path.startswith(top):
        # A project is known by its real folder; an agent may call it by a link.
        path = os.path.join(_real(os.path.dirname(path)), os.path.basename(path))
    return path[len(top) :] if path.startswith(top) else ""


@lru_cache(1000)
def _real(folder: str) -> str:
    try:
        return os.path.realpath(folder)
    except (OSError, ValueError):
        return folder
