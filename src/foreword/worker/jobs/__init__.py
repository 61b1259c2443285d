"""Run the worker's background jobs: each lane is one thread, jobs give way to hooks, failed ones back off.

A job is a `run` and a `due`, which is called every second. What a job raises is reported once and tried again later;
no job can break another one, or the worker.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from foreword.errors import ForewordError, StoreError
from foreword.worker.services import Services

log = logging.getLogger("foreword")

T = TypeVar("T")
Tasks = queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]

RECENT = 1.0  # seconds after an answer in which another one is likely
GIVE_WAY = 0.5  # seconds at most that one commit waits for answers in the making: a storm must not stop it for good
LEAVING = 5.0  # seconds that a worker which leaves waits for the commits of its jobs
UNAWAITED = ("refine",)  # lanes: a model's answer must not hold up the exit


class Leaving(StoreError):
    """The worker stops in the middle of a job; the next worker does the rest."""

    def __init__(self) -> None:
        super().__init__("the worker is stopping", hint="run the command again: finished steps are kept")


@dataclass
class Job:
    """Background work; every second, the jobs that are `due` are queued."""

    name: str
    run: Callable[[], object]
    due: Callable[[], bool] = lambda: True
    lane: str = ""  # jobs of one lane never run at the same time; its own where it is empty
    problem: str = ""  # what is reported when it fails, before the reason
    retry: float = 0.0  # seconds until it is tried again after a failure
    keeps_worker: bool = True  # whether an idle worker stays until it is done
    queued: bool = field(default=False, init=False)
    running: bool = field(default=False, init=False)
    not_before: float = field(default=0.0, init=False)


class JobRunner:
    """Runs background jobs in threads, one lane each, and pauses them while an answer is built."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._lanes: dict[str, tuple[Tasks, threading.Thread]] = {}
        self._jobs: dict[str, Job] = {}
        self._answered = threading.Condition()
        self._answering = 0
        self._last_answer = 0.0

    # -- jobs ---------------------------------------------------------------------------------------------------
    def add(self, job: Job) -> None:
        self._jobs[job.name] = job

    def tick(self) -> None:
        """Begin what is due; called every second."""
        for job in self._jobs.values():
            try:
                if not (job.queued or job.running) and time.monotonic() >= job.not_before and job.due():
                    self.wake(job.name)
            except ForewordError as exc:
                self._failed(job, f"{exc}; {exc.hint}")

    def wake(self, name: str) -> None:
        """Run a job as soon as its lane is free; one that is queued already is not queued twice."""
        job = self._jobs[name]
        with self._lock:
            if job.queued or self._closing.is_set():
                return
            job.queued = True
        self.submit(job.lane or job.name, lambda: self._run(job))

    def submit(self, lane: str, work: Callable[[], T]) -> Future[T]:
        """Queue *work* in a lane; its future has the result."""
        future: Future[T] = Future()
        with self._lock:
            if self._closing.is_set():
                future.set_exception(Leaving())
                return future
            if lane not in self._lanes:
                tasks: Tasks = queue.SimpleQueue()
                thread = threading.Thread(target=self._work, args=(tasks,), name=lane, daemon=True)
                thread.start()
                self._lanes[lane] = (tasks, thread)
            self._lanes[lane][0].put((future, work))
        return future

    def _work(self, tasks: Tasks) -> None:
        """Do what is queued in a lane, in order, until the end."""
        while (task := tasks.get()) is not None:
            future, work = task
            if self._closing.is_set():
                future.set_exception(Leaving())
            elif future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as exc:  # noqa: BLE001 - it belongs to whoever waits for the result
                    future.set_exception(exc)

    def is_busy(self, *names: str) -> bool:
        """Return whether one of these jobs is queued or running; without names, one that keeps the worker."""
        jobs = [self._jobs[name] for name in names] or [each for each in self._jobs.values() if each.keeps_worker]
        return any(job.queued or job.running for job in jobs)

    def _run(self, job: Job) -> None:
        job.running, job.queued = True, False  # what is added from now on needs another run
        try:
            job.run()
        except Leaving:
            pass
        except ForewordError as exc:
            self._failed(job, f"{exc}; {exc.hint}")
        except Exception as exc:
            log.exception("the job %s failed", job.name)
            self._failed(job, f"{type(exc).__name__}: {exc}")
        finally:
            job.running = False

    def _failed(self, job: Job, why: str) -> None:
        job.not_before = time.monotonic() + job.retry
        if not self._closing.is_set():
            self._services.report(job.name, f"{job.problem or f'the job {job.name} failed'}: {why}")

    # -- giving way ---------------------------------------------------------------------------------------------
    def __enter__(self) -> None:
        """Begin an answer that somebody waits for."""
        with self._answered:
            self._answering += 1

    def __exit__(self, *_: object) -> None:
        with self._answered:
            self._answering -= 1
            self._last_answer = time.monotonic()
            self._answered.notify_all()

    def give_way(self, *, most: int = 0) -> bool:
        """Wait until at most so many wait for an answer, a moment at most; return whether somebody did just now."""
        if self._closing.is_set():
            raise Leaving
        with self._answered:
            self._answered.wait_for(lambda: self._answering <= most, timeout=GIVE_WAY)
            return self._answering > 0 or time.monotonic() - self._last_answer < RECENT

    def sleep(self, seconds: float) -> None:
        """Wait in a job; raise Leaving as soon as the worker leaves."""
        if self._closing.wait(seconds):
            raise Leaving

    # -- the end ------------------------------------------------------------------------------------------------
    @property
    def closing(self) -> bool:
        return self._closing.is_set()

    def begin_close(self) -> None:
        """Start no more jobs; those that run stop at their next commit."""
        self._closing.set()

    def close(self) -> None:
        """Wait until the jobs that run have ended."""
        self.begin_close()
        with self._lock:
            lanes = tuple(self._lanes.items())
        until = time.monotonic() + LEAVING
        for name, (tasks, thread) in lanes:
            tasks.put(None)
            thread.join(max(0.0, until - time.monotonic()) if name not in UNAWAITED else 0.0)
