"""Limits of the settings -> what would go, shown; and the same gone, in small commits that give way to others."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from foreword.config import Settings
from foreword.errors import ForewordError
from foreword.store import Store
from foreword.store.pruning import PARTS, SETTINGS, WHAT, Limits, Plan, Prunable
from foreword.worker.jobs.imports import Backpressure

log = logging.getLogger("foreword")

SLICE = 1.0  # seconds of one answer: so often a person sees how far it is
BREATH = 0.01  # seconds between two commits while hooks come in
QUIET = 120.0  # seconds without a question, after which the daily look is taken
SIZE_EVERY = 60.0  # seconds between two looks at the size, which do not wait for quiet
AGAIN = 3600.0  # seconds until a store is tried again that could not be brought below its cap
WORTH = 1 << 20  # bytes of free pages, and ...
WORTH_SHARE = 0.05  # ... their share of the file, from which on it is written anew
TRIES = 4  # times that a quiet moment is waited for; without one, the file stays large until the next time
PRUNED = "pruned"  # the mark of the last day on which it was looked


class Pruning:
    """One run at a time, whoever began it; what is left of it when a worker ends is planned anew by the next."""

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        settings: Callable[[], Settings],
        backpressure: Backpressure,
        tell: Callable[[str, str], None],
        asked: Callable[[], float],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._settings, self._courtesy, self._tell = store, settings, backpressure, tell
        self._asked, self._now = asked, now
        self._working = threading.Lock()
        self._run: _Run | None = None
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="pruning")
        self._looking = threading.Lock()
        self._closing = threading.Event()
        self._sized = self._tried = 0.0
        self._day = ""

    def preview(self) -> dict[str, Any]:
        """What would go now, by class; nothing does."""
        return self._told(self._store().maintenance.plan_pruning(self._limits(), now=self._now()), dry_run=True)

    def work(self, *, who: str) -> dict[str, Any]:
        """A second's work of the run that goes on, or of a new one; `done` says whether that was all."""
        until = time.monotonic() + SLICE
        with self._working:
            run = self._run = self._run or self._begun()
            while run.place < len(PARTS) and time.monotonic() < until and not self._closing.is_set():
                self._step(run, who=who)
            done = run.place == len(PARTS)
            if done:
                self._run = None
                self._end(run)
            return {**self._told(run.plan, dry_run=False), "done": done, "pruned": dict(run.rows), "freed": run.freed}

    def look(self) -> None:
        """Asked every second: once a day when it is quiet, and soon where the store is too large."""
        if self._is_due() and self._looking.acquire(blocking=False):
            try:
                self._aside.submit(self._work_through)
            except RuntimeError:
                self._looking.release()  # the worker is leaving

    def busy(self) -> bool:
        return self._looking.locked()

    def close(self) -> None:
        self._closing.set()
        self._aside.shutdown(cancel_futures=True)

    # -- one run ------------------------------------------------------------------------------------------------
    def _begun(self) -> _Run:
        now = self._now()
        return _Run(self._store().maintenance.plan_pruning(self._limits(), now=now), now=now)

    def _step(self, run: _Run, *, who: str) -> None:
        lately = self._courtesy.give_way()
        batch = self._store().maintenance.prune(
            run.plan, run.place, after=run.after, who=who, now=run.now, removed=run.rows, noted=run.noted
        )
        run.rows[PARTS[run.place].name] += batch.rows
        run.noted, run.after = batch.noted, batch.after
        if not batch.after:
            run.place += 1
        if lately:
            time.sleep(BREATH)

    def _end(self, run: _Run) -> None:
        self._day = self._today()
        self._store().set_checkpoint(PRUNED, self._day, at=self._now())
        run.rows = +run.rows
        run.freed = self._give_back()
        if run.rows:
            log.info("pruned: %s", ", ".join(f"{rows} {name}" for name, rows in run.rows.items()))
        if run.plan.short:
            most = self._settings().store_max_mb
            self._tell(
                "store",
                f"the store is larger than the {most} MB of `store_max_mb`, and nothing more of it may go by itself; "
                "raise it, or `foreword forget` what you do not need",
            )

    def _give_back(self) -> int:
        """Write the file anew where that is worth it and nobody waits; the bytes that it is smaller by."""
        size = self._store().stats.size()
        if size.total - size.used < max(WORTH, size.total * WORTH_SHARE):
            return 0
        for _ in range(TRIES):
            if not self._courtesy.give_way():
                self._store().maintenance.vacuum()
                return size.total - self._store().stats.size().total
            self._closing.wait(SLICE / 2)
        return 0

    # -- by itself ----------------------------------------------------------------------------------------------
    def _is_due(self) -> bool:
        clock = time.monotonic()
        idle = min(QUIET, self._settings().worker_idle_minutes * 60 / 2)  # before the worker leaves
        today = self._today()
        if self._day != today and clock - self._asked() > idle:
            self._day = self._day or self._store().checkpoint(PRUNED)
            return self._day != today
        if clock - self._sized < SIZE_EVERY:
            return False
        self._sized = clock
        most = self._limits().most_bytes
        return 0 < most < self._store().stats.size().used and (not self._tried or clock - self._tried > AGAIN)

    def _work_through(self) -> None:
        try:
            self._tried = time.monotonic()
            while not self._closing.is_set() and not self.work(who="worker")["done"]:
                pass
        except ForewordError as exc:
            self._tell("prune", f"what is old could not be removed: {exc}")
            self._run = None
        except Exception as exc:
            log.exception("pruning failed")
            self._tell("prune", f"what is old could not be removed: {type(exc).__name__}: {exc}")
            self._run = None
        finally:
            self._day = self._today()  # what failed is tried again tomorrow, or when somebody asks
            self._looking.release()

    def _today(self) -> str:
        return time.strftime("%Y-%m-%d", time.localtime(self._now()))

    def _limits(self) -> Limits:
        settings = self._settings()
        days = {name: int(getattr(settings, setting)) for name, setting in SETTINGS.items()}
        return Limits(days, settings.store_max_mb * 1024 * 1024)

    def _told(self, plan: Plan, *, dry_run: bool) -> dict[str, Any]:
        size, limits = self._store().stats.size(), self._limits()
        return {
            "dry_run": dry_run,
            "classes": [_class(each, keep=limits.days[each.name]) for each in plan.classes],
            "rows": plan.rows,
            "size": {"bytes": size.total, "used": size.used, "most": limits.most_bytes},
            "short": plan.short,
        }


class _Run:
    """A plan, and how far it was carried out."""

    def __init__(self, plan: Plan, *, now: float) -> None:
        self.plan, self.now = plan, now
        self.place = self.noted = self.freed = 0
        self.after: tuple[Any, ...] = ()
        self.rows: Counter[str] = Counter()


def _class(each: Prunable, *, keep: int) -> dict[str, Any]:
    told = {"name": each.name, "what": WHAT[each.name], "keep_days": keep, "rows": each.rows, "bytes": each.size}
    dates = {"oldest": each.oldest, "newest": each.newest} if each.rows else {"oldest": None, "newest": None}
    return {**told, "by_age": each.by_age, "by_size": each.rows - each.by_age, **dates}
