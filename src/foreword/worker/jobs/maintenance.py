"""Keep memory in order: settle choices after a session, tidy a project that rests, prune what is old.

A tidy is planned on what is there and carried out one change at a time: each is a commit and an entry of the audit log.
What changed meanwhile is skipped, and seen the next time.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from foreword.audit import MemoryChange, PlanContext, Planner
from foreword.errors import Conflict
from foreword.extract.text import stems
from foreword.maintenance import contradictions, dedupe, stale
from foreword.maintenance.stale import Present, roots_of
from foreword.models import BASE32, Memory, Project, named, text, texts
from foreword.store import Store
from foreword.store.maintenance import PRUNABLE
from foreword.worker.jobs import Job, JobRunner
from foreword.worker.projects import ProjectRegistry
from foreword.worker.services import Services

log = logging.getLogger("foreword")

LANE = "maintenance"  # a tidy and a prune never run at the same time
TIDY = "tidy"  # as the author of changes in the audit log
RETRY = 600.0  # seconds until an idle worker searches again for a project that is due
# In this order; each sees what the ones before it have done.
PLANNERS: tuple[Planner, ...] = (dedupe.plan, contradictions.plan, stale.plan, dedupe.plan_confirmed)
ROUNDS = 6  # what one round brings to light, the next one tidies; two or three are the rule
DAY = 86_400.0  # seconds between two tidies of a project
PAGE = 500  # memories read at a time
MOST_MEMORIES = 50_000  # of a project, the newest: 100 MB; older ones have been tidied before
MOST_CHOICES = 3_000  # decisions, preferences and corrections that a new one is compared with
REPLACED_PREFIX = "Until "  # before the title of a summary that was replaced: where titles are cut, the end is not read
LESS_SURE = 0.5  # times the confidence of such a summary: it comes after what holds
TIDIED = "tidied: "  # checkpoints in the store: when a project was tidied,
MISSING = "code gone: "  # since when its files are missing,
PRUNED = "pruned"  # and the last day on which it was pruned

COMMIT_PAUSE = 0.01  # seconds between two commits while hooks come in
QUIET = 120.0  # seconds without a request, after which the daily prune begins
MIN_FREE_BYTES = 1 << 20  # bytes of free pages, and ...
WORTH_SHARE = 0.05  # ... their share of the file, from which on it is written again without them


# ---- after a session


def settle_choices(store: Store, memories: Sequence[Memory], *, at: float) -> list[str]:
    """Let new choices supersede those that they contradict, so that no session sees both; return the old ids."""
    superseded: list[str] = []
    choices = [memory for memory in memories if memory.kind in contradictions.KINDS]
    for scope in sorted({memory.scope for memory in choices if memory.scope.startswith("project:")}):
        own = [memory for memory in choices if memory.scope == scope]
        latest = store.memories.list(contradictions.KINDS, scopes=(scope,), statuses=("active",), limit=MOST_CHOICES)
        since = store.memories.get([memory.superseded_by for memory in own if memory.superseded_by])
        known = {memory.id: memory for memory in (*latest, *since, *own)}
        about = PlanContext(at, taken_back=store.audit.undone())
        for change in contradictions.plan(tuple(known.values()), about=about):
            if not _apply(store, change, at=at):
                continue
            for old in (after for _, after in change.changed if after.status == "superseded"):
                superseded.append(old.id)
                by = known.get(old.superseded_by)
                _correct_summaries(store, old, now=by.title if by else "", at=at)
    return superseded


def _correct_summaries(store: Store, old: Memory, *, now: str, at: float) -> None:
    """Let no summary and no turn of its session state a superseded decision as what holds; *now* holds instead."""
    corrected: list[tuple[Memory, Memory]] = []
    links = store.memories.links(old.id)
    parents = [link.target for link in links if link.relation == "part-of" and link.source == old.id]
    for summary in store.memories.get(parents):
        decisions = texts(summary.detail, "decisions")
        kept = [each for each in decisions if not _is_title(each, old.title)]
        after = replace(summary, detail={**summary.detail, "decisions": kept}) if kept != list(decisions) else summary
        if stems(old.title) <= stems(summary.title) and not summary.title.startswith(REPLACED_PREFIX):
            day = time.strftime("%Y-%m-%d", time.gmtime(at))
            title = "; now: ".join(filter(None, (f"{REPLACED_PREFIX}{day}: {summary.title.rstrip('.')}", now)))
            after = replace(after, title=title, confidence=summary.confidence * LESS_SURE)
        if not summary.pinned:
            corrected.append((summary, after))
    sessions = filter(None, dict.fromkeys((old.session, *named(old.detail, "seen_in"))))
    for turn in (each for session in sessions for each in store.memories.of_session(session)):
        # What came of a turn that was about this choice is out of date with it: better no note than a false one.
        if turn.kind == "turn" and turn.status == "active" and stems(old.title) <= stems(text(turn.detail, "user")):
            corrected.append((turn, replace(turn, status="stale")))
    for before, after in corrected:
        if after != before:
            change = MemoryChange("retell", "a later choice took it back", changed=((before, after),))
            _apply(store, change, at=at)


def _is_title(decision: str, title: str) -> bool:
    """Return whether a summary's decision, which may be cut, is the one of this title."""
    whole, cut = title.lower(), decision.lower()
    return whole.startswith(cut.removesuffix("…")) if cut.endswith("…") else whole == cut


def _apply(store: Store, change: MemoryChange, *, at: float, run: str = "") -> tuple[str, ...] | None:
    """Carry out one change and return the ids it was about; None where it changed in this moment, or was forgotten."""
    with suppress(Conflict):
        (entry,) = store.audit.apply([change], who=TIDY, at=at, run=run)
        return entry.memories
    return None


# ---- tidy


class TidyJob:
    """Tidies one project at a time, after some minutes without a request."""

    def __init__(self, services: Services, runner: JobRunner, projects: ProjectRegistry) -> None:
        self._services, self._runner, self._projects = services, runner, projects
        self._running = threading.Lock()
        self._not_before = 0.0
        problem = "memory could not be tidied"
        runner.add(Job(TIDY, self._tidy_next, due=self._is_time, lane=LANE, problem=problem, retry=RETRY))

    def run(self, projects: Sequence[Project], *, dry_run: bool = False) -> dict[str, Any]:
        """Tidy these projects now, or only list the changes."""
        run = "tidy-" + "".join(secrets.choice(BASE32) for _ in range(8))
        with self._running:
            done = [self._tidy(project, run=run, dry_run=dry_run) for project in projects]
        by = sum((Counter(each["by"]) for each in done), Counter[str]())
        name = "" if dry_run or not by else run
        return {"run": name, "dry_run": dry_run, "by": dict(sorted(by.items())), "projects": done}

    def projects(self) -> tuple[Project, ...]:
        """Return the projects of all sessions that are not switched off, the last first."""
        folders: dict[str, str] = {}
        for session in self._services.store.sessions.list(limit=1_000):
            folders.setdefault(session.project, session.cwd)
        found = [self._projects.of_session(key, folder) for key, folder in folders.items() if key]
        return tuple(each for each in found if not self._projects.policy(each).write)

    def _is_time(self) -> bool:
        settings = self._services.settings
        quiet = 0.0 if self._runner.is_busy("import") else self._services.idle_seconds
        return settings.tidy and quiet >= settings.tidy_idle_minutes * 60 and time.monotonic() >= self._not_before

    def _tidy_next(self) -> None:
        for project in self.projects():
            at = float(self._services.store.checkpoint(f"{TIDIED}{project.key}") or 0.0)
            if not 0 <= self._services.now() - at < DAY:  # a clock that jumped must not put it off for ever
                self.run([project])
                return
        self._not_before = time.monotonic() + RETRY

    def _tidy(self, project: Project, *, run: str, dry_run: bool) -> dict[str, Any]:
        store = self._services.store
        known = self._known(project)
        present = self._present(project, known.values())
        about = PlanContext(self._services.now(), exists=present.exists, taken_back=store.audit.undone())
        done: list[dict[str, Any]] = []
        for _ in range(ROUNDS):
            before = len(done)
            for planner in PLANNERS:
                for change in planner(tuple(known.values()), about=about):
                    befores = [known.get(before.id) or before for before, _ in change.changed]
                    about_them = [{"id": m.id, "kind": m.kind, "title": m.title} for m in (*befores, *change.new)]
                    row = {"what": change.what, "why": change.why, "memories": about_them}
                    if self._carry_out(change, known, run=run, dry_run=dry_run):
                        done.append(row)
            if len(done) == before:
                break
        if not dry_run:
            now = self._services.now()
            store.set_checkpoint(f"{MISSING}{project.key}", json.dumps(present.missing), at=now)
            store.set_checkpoint(f"{TIDIED}{project.key}", str(now), at=now)
        return {
            "project": project.key,
            "name": project.name,
            "memories": len(known),
            "by": dict(sorted(Counter(each["what"] for each in done).items())),
            "amendments": done,
        }

    def _carry_out(self, change: MemoryChange, known: dict[str, Memory], *, run: str, dry_run: bool) -> bool:
        """Return whether it was done, or would be; what changed since it was read is left for the next round."""
        store = self._services.store
        if dry_run:
            if any(store.tombstones.refuses(each, imported=False) for each in change.new):
                return False
            known.update((after.id, after) for _, after in change.changed)
            known.update((each.uid, replace(each, id=each.uid)) for each in change.new)
            return True
        self._runner.give_way()
        ids = _apply(store, change, at=self._services.now(), run=run)
        known.update((memory.id, memory) for memory in store.memories.get([*change.about, *(ids or ())]))
        return ids is not None

    def _known(self, project: Project) -> dict[str, Memory]:
        """Read the newest memories of a project, page by page."""
        found: deque[Memory] = deque(maxlen=MOST_MEMORIES)
        after = 0
        while page := self._services.store.memories.page(after=after, scopes=(project.scope,), limit=PAGE):
            self._runner.give_way()
            found.extend(memory for _, memory in page)
            after = page[-1][0]
        return {memory.id: memory for memory in found}

    def _present(self, project: Project, memories: Iterable[Memory]) -> Present:
        store = self._services.store
        folders = [session.cwd for session in store.sessions.list(project.key, limit=50) if session.cwd]
        return Present(
            roots_of(project, [*folders, *filter(None, (project.root,))], project_of=self._projects.at),
            (file for memory in memories if memory.status == "active" for file in memory.files),
            missing=json.loads(store.checkpoint(f"{MISSING}{project.key}") or "{}"),
            now=self._services.now(),
        )


# ---- prune


class PruneJob:
    """Deletes what is older or larger than the settings allow, in small commits; one run at a time."""

    def __init__(self, services: Services, runner: JobRunner) -> None:
        self._services, self._runner = services, runner
        self._running = threading.Lock()
        self._day = ""  # the last on which it ran
        problem = "old data could not be removed"
        runner.add(Job("prune", self._prune, due=self._is_due, lane=LANE, problem=problem))

    def preview(self) -> dict[str, Any]:
        """Count what is too old, by class; what goes by size is only known when it goes."""
        keep_days, now = self._keep_days(), self._services.now()
        rows = dict(self._services.store.maintenance.prune(keep_days, most_bytes=0, now=now, dry_run=True))
        classes = [
            {"name": each.name, "what": each.what, "keep_days": keep_days[each.setting], "rows": rows[each.name]}
            for each in PRUNABLE
        ]
        return {"dry_run": True, "classes": classes, "rows": sum(rows.values()), "size": self._size()}

    def run(self, *, who: str) -> dict[str, Any]:
        """Delete it, and return how many rows of each class went, and by how many bytes the file is smaller."""
        store, now, most = self._services.store, self._services.now(), self._size()["most"]
        rows: Counter[str] = Counter()
        with self._running:
            try:
                for name, count in store.maintenance.prune(self._keep_days(), most_bytes=most, now=now):
                    rows[name] += count
                    if self._runner.give_way():
                        time.sleep(COMMIT_PAUSE)
            finally:
                if rows:
                    log.info("pruned: %s", ", ".join(f"{count} {name}" for name, count in rows.items()))
                    why = "old, or more than the store may hold; this cannot be undone"
                    store.audit.note("prune", why, {"pruned": dict(rows)}, who=who, at=now, project="", ids=())
            self._day = self._today()
            store.set_checkpoint(PRUNED, self._day, at=now)
            before = self._size()
            if before["bytes"] - before["used"] >= max(MIN_FREE_BYTES, before["bytes"] * WORTH_SHARE):
                self._runner.give_way()
                store.maintenance.vacuum()
        size = self._size()
        if 0 < most < size["used"]:
            self._services.report(
                "store",
                f"the store is larger than the {self._services.settings.store_max_mb} MB of `store_max_mb`, and "
                "nothing more may be removed automatically; raise it, or `foreword forget` what you do not need",
            )
        return {"dry_run": False, "pruned": dict(rows), "freed": before["bytes"] - size["bytes"], "size": size}

    def _is_due(self) -> bool:
        """Return whether it is time: once a day, when it is quiet."""
        quiet = min(QUIET, self._services.settings.worker_idle_minutes * 60 / 2)  # before the worker leaves
        self._day = self._day or self._services.store.checkpoint(PRUNED)
        return self._day != self._today() and self._services.idle_seconds > quiet

    def _prune(self) -> None:
        self._day = self._today()  # what fails is tried again tomorrow, or on request
        self.run(who="worker")

    def _today(self) -> str:
        return time.strftime("%Y-%m-%d", time.localtime(self._services.now()))

    def _keep_days(self) -> dict[str, int]:
        return {each.setting: int(getattr(self._services.settings, each.setting)) for each in PRUNABLE}

    def _size(self) -> dict[str, int]:
        size = self._services.store.stats.size()
        return {"bytes": size.total, "used": size.used, "most": self._services.settings.store_max_mb * 1024 * 1024}
