"""A project that rests -> its memory tidied: planned on what is there, carried out one amendment at a time.

Each amendment is a commit and an entry of the log; what changed meanwhile is passed over, and seen the next time. A run
that was killed goes on under its own name, so that all of it can be undone together.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from foreword.audit import MemoryChange, PlanContext, Planner
from foreword.config import Settings
from foreword.errors import Conflict, ForewordError, StoreError
from foreword.extract.text import stems
from foreword.maintenance import contradictions, dedupe, proposals, stale
from foreword.maintenance.stale import Present, roots_of
from foreword.models import BASE32, Memory, Project, Query, named, text, texts
from foreword.policy import chosen, off
from foreword.store import Store
from foreword.worker.jobs.imports import Backpressure

log = logging.getLogger("foreword")

WHO = "tidy"  # in the log
# In this order, each with its name in the log; each sees what the ones before it have done.
PLANNERS: tuple[tuple[str, Planner], ...] = (
    (WHO, dedupe.plan),
    (WHO, contradictions.plan),
    (WHO, stale.plan),
    (proposals.WHO, proposals.plan_confirmed),
    (proposals.WHO, proposals.plan),
)
ROUNDS = 6  # what one round brings to light, the next one tidies; two or three are the rule
DAY = 86_400.0  # seconds between two tidies of a project
AGAIN = 600.0  # seconds until an idle worker looks again for a project that is due
PAGE = 500  # memories read at a time
MOST = 50_000  # memories of a project that are looked at, the newest: 100 MB; older ones have been before
CHANGES = 20_000  # functions whose last change is known
SESSIONS = 1_000  # that tell which projects there are
FOLDERS = 50  # sessions of a project that tell where it lies
SHOWN = 500  # amendments that an answer tells; the rest are counted
CHOICES = 3_000  # decisions, preferences and corrections that are looked at when another one was said
PATIENCE = 5.0  # seconds that a worker which leaves waits for a commit
REPLACED = "Replaced since: "  # before the title of a summary: where titles are cut, the end is not read
LESS_SURE = 0.5  # times the confidence of such a summary: it comes after what holds
UNFINISHED = "tidying"  # the mark of a run that was not finished
TIDIED = "tidied: "  # and a project's key: when
MISSING = "code gone: "  # and a project's key: since when


def settle_choices(store: Store, memories: Sequence[Memory], *, at: float) -> list[str]:
    """Let what was just chosen supersede what it takes back, so that no start tells both; the ids of these."""
    superseded: list[str] = []
    said = [memory for memory in memories if memory.kind in contradictions.KINDS]
    for scope in sorted({memory.scope for memory in said if memory.scope.startswith("project:")}):
        found = store.search.by_recency(Query(scopes=(scope,), kinds=contradictions.KINDS, limit=CHOICES))
        own = [memory for memory in said if memory.scope == scope]
        since = store.memories.get([memory.superseded_by for memory in own if memory.superseded_by])
        known = {memory.id: memory for memory in (*(hit.memory for hit in found), *since, *own)}
        key = scope.partition(":")[2]
        about = PlanContext(Project(key=key, name="", root=""), now=at, taken_back=store.audit.undone())
        for memory_change in contradictions.plan(tuple(known.values()), about=about):
            if _amend(store, memory_change, at=at):
                gone = [after for _, after in memory_change.changed if after.status == "superseded"]
                superseded += [memory.id for memory in gone]
                for memory in gone:
                    _retell(store, memory, at=at)
    return superseded


def _retell(store: Store, gone: Memory, *, at: float) -> None:
    """Let no summary and no turn of its session tell a decision that was superseded as what holds."""
    parents = [
        link.target for link in store.memories.links(gone.id) if link.relation == "part-of" and link.source == gone.id
    ]
    for summary in store.memories.get(parents):
        told = texts(summary.detail, "decisions")
        kept = [each for each in told if not _tells(each, gone.title)]
        after = replace(summary, detail={**summary.detail, "decisions": kept}) if kept != list(told) else summary
        if stems(gone.title) <= stems(summary.title) and not summary.title.startswith(REPLACED):
            after = replace(after, title=REPLACED + summary.title, confidence=summary.confidence * LESS_SURE)
        if after != summary and not summary.pinned:
            _amend(store, MemoryChange("retell", "a later choice took it back", changed=((summary, after),)), at=at)
    sessions = filter(None, dict.fromkeys((gone.session, *named(gone.detail, "seen_in"))))
    for turn in (each for session in sessions for each in store.memories.of_session(session)):
        # What came of a turn that was about this choice is out of date with it: better no note than a false one.
        if turn.kind == "turn" and turn.status == "active" and stems(gone.title) <= stems(text(turn.detail, "user")):
            after = replace(turn, status="stale")
            _amend(store, MemoryChange("retell", "a later choice took it back", changed=((turn, after),)), at=at)


def _tells(decision: str, title: str) -> bool:
    """Return whether a summary's decision, whose title it may have cut, is the one of this title."""
    whole, cut = title.lower(), decision.lower()
    return whole.startswith(cut.removesuffix("…")) if cut.endswith("…") else whole == cut


def _amend(store: Store, memory_change: MemoryChange, *, at: float) -> bool:
    with suppress(Conflict):  # it changed in this moment: the next tidy sees it
        store.audit.apply([memory_change], who=WHO, at=at)
        return True
    return False


class Tidying:
    """One run at a time; by itself when nobody has asked for anything for some minutes."""

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        settings: Callable[[], Settings],
        project_of: Callable[[str], Project],
        backpressure: Backpressure,
        tell: Callable[[str, str], None],
        quiet: Callable[[], float],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._settings, self._project_of = store, settings, project_of
        self._courtesy, self._tell, self._quiet, self._now = backpressure, tell, quiet, now
        self._running = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._next = 0.0
        self._state: dict[str, Any] = {"state": "idle"}

    def look(self) -> None:
        """Asked every second: begin in a thread of its own where the worker has rested long enough."""
        settings = self._settings()
        if not settings.tidy or self._quiet() < settings.tidy_idle_minutes * 60 or time.monotonic() < self._next:
            return
        if self.busy() or self._closing.is_set():
            return
        self._thread = threading.Thread(target=self._one_that_is_due, name="tidying", daemon=True)
        self._thread.start()

    def run(self, projects: Sequence[Project], *, dry_run: bool = False) -> dict[str, Any]:
        """Tidy these projects now, or only tell what would be done."""
        with self._running:
            done = []
            run = "" if dry_run else self._run_id(projects)
            try:
                for project in projects:
                    done.append(self._tidy(project, run=run, dry_run=dry_run))
            finally:
                self._state = {"state": "idle"}
        by = sum((Counter(each["by"]) for each in done), Counter[str]())
        return {"run": run if by else "", "dry_run": dry_run, "by": dict(sorted(by.items())), "projects": done}

    def told(self) -> dict[str, Any]:
        """How far the present run is."""
        return dict(self._state)

    def projects(self) -> tuple[Project, ...]:
        """All that sessions told of and are not switched off, the last first."""
        folders: dict[str, str] = {}
        for session in self._store().sessions.list(limit=SESSIONS):
            folders.setdefault(session.project, session.cwd)
        found = [self._named(key, folder) for key, folder in folders.items() if key]
        return tuple(each for each in found if not off(each, chosen(self._settings())).write)

    def busy(self) -> bool:
        return self._running.locked() or (self._thread is not None and self._thread.is_alive())

    def close(self) -> None:
        """Finish the commit at hand; the rest waits for the next worker."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        if self._running.acquire(timeout=PATIENCE):  # somebody's own run ends at its next commit
            self._running.release()

    # -- by itself ----------------------------------------------------------------------------------------------
    def _one_that_is_due(self) -> None:
        try:
            project = next((each for each in self.projects() if self._is_due(each)), None)
            if project is None:
                self._next = time.monotonic() + AGAIN
                return
            self.run([project])
        except _Leaving:
            pass
        except ForewordError as exc:
            self._next = time.monotonic() + AGAIN
            self._tell("tidy", f"memory could not be tidied: {exc}; {exc.hint}")
        except Exception as exc:
            self._next = time.monotonic() + AGAIN
            log.exception("tidying failed")
            self._tell("tidy", f"memory could not be tidied: {type(exc).__name__}: {exc}")

    def _is_due(self, project: Project) -> bool:
        if self._unfinished().get("project") == project.key:
            return True
        at = float(self._store().checkpoint(f"{TIDIED}{project.key}") or 0.0)
        return not 0 <= self._now() - at < DAY  # a clock that jumped must not put it off for ever

    def _unfinished(self) -> dict[str, Any]:
        with suppress(ValueError):
            told = json.loads(self._store().checkpoint(UNFINISHED) or "{}")
            return told if isinstance(told, dict) else {}
        return {}

    def _run_id(self, projects: Sequence[Project]) -> str:
        left = self._unfinished()
        if left.get("project") in {project.key for project in projects}:
            return str(left["run"])
        return "tidy-" + "".join(secrets.choice(BASE32) for _ in range(8))

    # -- one project --------------------------------------------------------------------------------------------
    def _tidy(self, project: Project, *, run: str, dry_run: bool) -> dict[str, Any]:
        began = time.monotonic()
        store = self._store()
        self._state = {"state": "reading", "project": project.key, "done": 0}
        if not dry_run:
            store.set_checkpoint(UNFINISHED, json.dumps({"run": run, "project": project.key}), at=self._now())
        known = self._known(project)
        changes = store.sessions.changes(project.key, limit=CHANGES)
        present = self._present(
            project, known.values(), deleted={(each.file, each.function) for each in changes if each.what == "DELETED"}
        )
        about = PlanContext(
            project,
            now=self._now(),
            changes=changes,
            exists=present.exists,
            taken_back=store.audit.undone(),
            shown_to=store.injections.sessions_shown,
            give_way=self._give_way,
        )
        done = self._rounds(known, about=about, run=run, dry_run=dry_run)
        if not dry_run:
            now = self._now()
            store.set_checkpoint(f"{MISSING}{project.key}", json.dumps(present.missing), at=now)
            store.set_checkpoint(f"{TIDIED}{project.key}", str(now), at=now)
            store.set_checkpoint(UNFINISHED, "{}", at=now)
        return {
            "project": project.key,
            "name": project.name,
            "memories": len(known),
            "by": dict(sorted(Counter(each["what"] for each in done).items())),
            "amendments": done[:SHOWN],
            "left_out": len(done[SHOWN:]),
            "seconds": round(time.monotonic() - began, 3),
        }

    def _rounds(self, known: dict[str, Memory], *, about: PlanContext, run: str, dry_run: bool) -> list[dict[str, Any]]:
        done: list[dict[str, Any]] = []
        for _ in range(ROUNDS):
            before = len(done)
            for who, planner in PLANNERS:
                self._state = {**self._state, "state": "planning", "done": len(done)}
                every = planner(tuple(known.values()), about=about)
                planned = [each for each in every if not self._store().maintenance.was_forgotten(each.new)]
                for number, memory_change in enumerate(planned):
                    self._state = {**self._state, "state": "working", "done": number, "planned": len(planned)}
                    told = _told(memory_change, known)
                    if dry_run or self._carried_out(memory_change, known, who=who, run=run):
                        done.append(told)
                    if dry_run:
                        _imagined(memory_change, known)
            if len(done) == before:
                break
        return done

    def _carried_out(self, memory_change: MemoryChange, known: dict[str, Memory], *, who: str, run: str) -> bool:
        """Whether it was done; what is no longer as it was known is left for the next look."""
        self._give_way()
        store = self._store()
        ids = memory_change.about
        try:
            (entry,) = store.audit.apply([memory_change], who=who, at=self._now(), run=run)
            ids = (*ids, *entry.memories)
        except Conflict:
            entry = None
        known.update((memory.id, memory) for memory in store.memories.get(list(dict.fromkeys(ids))))
        return entry is not None

    def _known(self, project: Project) -> dict[str, Memory]:
        """The newest memories of a project, read page by page."""
        found: deque[Memory] = deque(maxlen=MOST)
        after = 0
        while page := self._store().memories.page(after=after, scopes=(project.scope,), limit=PAGE):
            self._give_way()
            found.extend(memory for _, memory in page if memory.status != "forgotten")
            after = page[-1][0]
            self._state = {**self._state, "done": len(found)}
        return {memory.id: memory for memory in found}

    def _present(self, project: Project, memories: Iterable[Memory], *, deleted: set[tuple[str, str]]) -> Present:
        store = self._store()
        folders = [session.cwd for session in store.sessions.list(project.key, limit=FOLDERS) if session.cwd]
        before: dict[str, Any] = {}
        with suppress(ValueError):
            before = json.loads(store.checkpoint(f"{MISSING}{project.key}") or "{}")
        return Present(
            roots_of(project, [*folders, *filter(None, (project.root,))], project_of=self._project_of),
            (file for memory in memories if memory.status == "active" for file in memory.files),
            missing={name: at for name, at in before.items() if isinstance(at, float | int)},
            now=self._now(),
            deleted=deleted,
        )

    def _named(self, key: str, folder: str) -> Project:
        with suppress(ForewordError):
            found = self._project_of(folder)
            if found.key == key:
                return found
        return Project(key=key, name="", root="")

    def _give_way(self) -> None:
        if self._closing.is_set():
            raise _Leaving("the worker is leaving", hint="ask again: what was done stays, and the rest follows")
        self._courtesy.give_way()


class _Leaving(StoreError):
    """The worker is asked to leave in the middle of a run."""


def _imagined(memory_change: MemoryChange, known: dict[str, Memory]) -> None:
    """What would be known if it had been done."""
    known.update((after.id, after) for _, after in memory_change.changed)
    known.update((each.uid, replace(each, id=each.uid)) for each in memory_change.new)


def _told(memory_change: MemoryChange, known: dict[str, Memory]) -> dict[str, Any]:
    memories = [
        known.get(id) or before for id, (before, _) in zip(memory_change.about, memory_change.changed, strict=True)
    ]
    about = [{"id": each.id, "kind": each.kind, "title": each.title} for each in (*memories, *memory_change.new)]
    return {"what": memory_change.what, "why": memory_change.why, "memories": about}
