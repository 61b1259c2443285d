"""Keep track of what sessions do, and store which of the injected memories they used; in the background."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from foreword.extract.actions import Action
from foreword.extract.usage import Activity, BaseRates, base_rates_of, usage_of
from foreword.models import Injection, Project, Session
from foreword.store import Store

log = logging.getLogger("foreword")

OVER = 3600.0  # seconds without an event, after which a session counts as over; should it go on, use still counts
LONG_AGO = 30 * 86_400.0  # sessions that fell silent before that are left alone
MOST_OVERDUE = 100  # sessions at a time
EVERY = 60.0  # seconds between two looks for sessions that fell silent
TURNS = 240  # newest turns of a project, which hold its last thirty sessions and tell what these did
MOST_RATES = 16  # sessions whose base rates are kept in memory


class UsageTracker:
    """Decides for every injected item whether it was used, as far as that can be told."""

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        tell: Callable[[str, str], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._tell = tell
        self._now = now
        self._last_look = -EVERY
        self._rates: dict[tuple[str, str], BaseRates] = {}  # by session and project

    def add(self, activity: Activity, action: Action, *, project: Project) -> None:
        """Take in what happened next; an action that cannot be taken in is skipped and reported."""
        try:
            activity.add(action, project=project.key, root=project.root)
        except Exception as exc:
            log.exception("an action was skipped")
            self._tell("use", f"what was done cannot be noted: {type(exc).__name__}: {exc}")

    def update(self, session: Session, activity: Activity) -> None:
        """Store which memories a session used so far; an error here is reported and breaks nothing else."""
        try:
            self._update(session, activity)
        except Exception as exc:
            log.exception("what session %s used cannot be told", session.id)
            self._tell("use", f"what a session of {session.host} used cannot be told: {type(exc).__name__}: {exc}")

    def overdue(self) -> tuple[Session, ...]:
        """Return sessions that fell silent with unsettled items; called each second, it looks each minute."""
        if 0 <= time.monotonic() - self._last_look < EVERY:
            return ()
        self._last_look = time.monotonic()
        now = self._now()
        return self._store().injections.undecided_sessions(since=now - LONG_AGO, before=now - OVER, limit=MOST_OVERDUE)

    def _update(self, session: Session, activity: Activity) -> None:
        store = self._store()
        injections = store.injections.undecided(session.id)
        if not injections:
            return
        ids = list({item.memory: None for each in injections for item in each.items})
        verdicts = usage_of(
            injections,
            memories={memory.id: memory for memory in store.memories.get(ids)},
            activity=activity,
            base_rates={
                project: self._base_rates(store, session, project, injections) for project in _projects(injections)
            },
            fetched=store.memories.accessed(session.id, since=injections[0].at),
            used_before=store.injections.sessions_using(ids),
            over=session.ended > 0 or self._now() - session.last > OVER,
        )
        if verdicts:
            store.injections.record_usage(verdicts)

    def _base_rates(self, store: Store, session: Session, project: str, injections: Sequence[Injection]) -> BaseRates:
        """Return what the project's sessions did before this one; they do not change while it goes on."""
        key = session.id, project
        if key not in self._rates:
            scope = Project(key=project, name="", root="").scope
            turns = store.memories.list(("turn",), scopes=(scope,), statuses=("active",), limit=TURNS)
            while len(self._rates) >= MOST_RATES:
                del self._rates[next(iter(self._rates))]
            self._rates[key] = base_rates_of(turns, session=session.id, before=injections[0].at)
        return self._rates[key]


def _projects(injections: Sequence[Injection]) -> dict[str, None]:
    return {each.project: None for each in injections}
