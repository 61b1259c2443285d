"""A session's footprint and what it was given -> verdicts in the store; aside, and never in anybody's way."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from foreword.extract.actions import Action
from foreword.store.sqlite import Store
from foreword.types import Project, Session
from foreword.use import Footprint, judge

log = logging.getLogger("foreword")

OVER = 3600.0  # seconds without an event, after which a session counts as over; should it go on, use still counts
LONG_AGO = 30 * 86_400.0  # what fell silent before that, when nobody judged, is left alone
MOST = 100  # sessions in one look
EVERY = 60.0  # seconds between two looks for sessions that fell silent


class Judging:
    """Tells of every item whether it was used, as far as it can be told."""

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
        self._looked = -EVERY

    def note(self, footprint: Footprint, action: Action, *, project: Project, functions: Sequence[str]) -> None:
        """Take in what happened next; a action that cannot be taken in is passed over, and told."""
        try:
            footprint.add(action, project=project.key, root=project.root, functions=functions)
        except Exception as exc:
            log.exception("a action was passed over")
            self._tell("use", f"what was done cannot be noted: {type(exc).__name__}: {exc}")

    def judge(self, session: Session, footprint: Footprint) -> None:
        """Judge what a session was given, by what it did so far; what goes wrong here breaks nothing else."""
        try:
            self._judge(session, footprint)
        except Exception as exc:
            log.exception("what session %s used cannot be judged", session.id)
            self._tell("use", f"what a session of {session.host} used cannot be judged: {type(exc).__name__}: {exc}")

    def overdue(self) -> tuple[Session, ...]:
        """Sessions that fell silent and were never judged to the end; asked every second, it looks every minute."""
        if 0 <= time.monotonic() - self._looked < EVERY:
            return ()
        self._looked = time.monotonic()
        now = self._now()
        return self._store().overdue(since=now - LONG_AGO, before=now - OVER, limit=MOST)

    def _judge(self, session: Session, footprint: Footprint) -> None:
        store = self._store()
        given = store.unjudged(session.id)
        if not given:
            return
        memories = store.by_id(list({item.memory: None for each in given for item in each.items}))
        verdicts = judge(
            given,
            memories={memory.id: memory for memory in memories},
            footprint=footprint,
            fetched=store.fetched(session.id, since=given[0].at),
            over=session.ended > 0 or self._now() - session.last > OVER,
        )
        if verdicts:
            store.judge(verdicts)
