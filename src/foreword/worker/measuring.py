"""What happens in the worker -> tallies of the day, and silences; a question -> figures. Nothing waits for a tally."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from foreword.errors import BadRequest, ForewordError
from foreword.statistics import RECALLS, SILENCES, figures, span
from foreword.store.silences import Silence
from foreword.store.sqlite import Store

MOST_DAYS = 3650


class Measuring:
    """Counts what is only counted, keeps why nothing was said, and notes each day as it begins."""

    def __init__(self, *, store: Callable[[], Store], now: Callable[[], float] = time.time) -> None:
        self._store, self._now = store, now
        self._counting = threading.Lock()
        self._counted: Counter[tuple[str, str, str]] = Counter()
        self._silences: list[Silence] = []
        self._day = ""  # the last that was noted

    def recalled(self, project: str, moment: str, *, silent: bool) -> None:
        """Context was wanted; what is counted is written within a second."""
        day = self._today()
        with self._counting:
            self._counted[day, project, f"{RECALLS}{moment}"] += 1
            if silent:
                self._counted[day, project, f"{SILENCES}{moment}"] += 1

    def silent(self, silence: Silence) -> None:
        """Nothing was said, and why; written with the tallies, in a commit that is made anyway."""
        with self._counting:
            self._silences.append(silence)

    def look(self) -> None:
        """Asked every second: write what was counted, and note a day that began."""
        day, store = self._today(), self._store()
        if day != self._day:
            store.note_day(day)
            self._day = day
        with self._counting:
            counted, self._counted = self._counted, Counter()
            silences, self._silences = self._silences, []
        if counted:
            store.tally(counted)
        if silences:
            store.note_silences(silences)

    def close(self) -> None:
        self._look_if_possible()

    def stats(self, *, project: str, name: str, days: int) -> dict[str, Any]:
        """The figures of a project, or of all where it is empty, over the last *days* local days."""
        if not 1 <= days <= MOST_DAYS:
            raise BadRequest(f"`days` must be from 1 to {MOST_DAYS}", hint="leave it out for 30")
        self._look_if_possible()
        over = span(self._now(), days=days)
        counted = self._store().statistics(
            project=project, since=over.since, until=over.until, first=over.days[0], last=over.days[-1]
        )
        told = figures(counted, over)
        told["store"]["bytes"] = self._store().size().total
        return {"project": project, "name": name, **told}

    def _look_if_possible(self) -> None:
        with suppress(ForewordError):  # a store that is locked can be read, and what is counted is not worth a word
            self.look()

    def _today(self) -> str:
        return time.strftime("%Y-%m-%d", time.localtime(self._now()))
