"""Verdicts -> what each item was good for, and what that makes of its memory's counts; the SQL of use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.models import Injection, Session
from foreword.store.finding import marks
from foreword.store.reading import SESSION, THERE, Reader, _chunks

UNTOLD = "untold"  # how an item was judged of which nobody can tell: its window is closed, and nothing speaks


@dataclass(frozen=True)
class Verdict:
    """Whether an item of an injection was used, and what tells it; None: nobody can tell."""

    injection: str
    memory: str
    used: bool | None
    how: str = ""  # fetched, file, command or words; or UNTOLD
    layer: str = ""  # in which the memory was shown; empty: in any


@dataclass(frozen=True)
class Use:
    """How many items were given, and what became of them; the rest cannot be told, or not yet."""

    shown: int = 0
    used: int = 0
    ignored: int = 0


class JudgedReader(Reader):
    """The questions about use, of one read-only connection."""

    def unjudged(self, session: str, *, limit: int = 500) -> tuple[Injection, ...]:
        """Return what a session was given and is not known to have used, with its texts, oldest first.

        Of windows that are closed, only what was not judged yet.
        """
        # What is still before the agent's eyes may be used after it was thought to be over.
        newest = self._injections(
            f"""j.session = ?1 AND j.session <> '' AND EXISTS (SELECT 1 FROM injection_items i WHERE i.injection = j.id
            AND i.used IS NOT 1 AND ((i.used IS NULL AND i.how = '') OR {THERE})) ORDER BY j.at DESC, j.id LIMIT ?2""",
            (session, limit),
        )
        return newest[::-1]

    def overdue(self, *, since: float, before: float, limit: int = 20) -> tuple[Session, ...]:
        """Return sessions whose last event lies between these times and that have items which nobody has judged."""
        rows = self._all(
            f"""SELECT {SESSION} FROM sessions WHERE last BETWEEN ? AND ? AND EXISTS (SELECT 1 FROM injections j
            JOIN injection_items i ON i.injection = j.id
            WHERE j.session = sessions.id AND i.used IS NULL AND i.how = '') ORDER BY last DESC, id LIMIT ?""",
            (since, before, limit),
        )
        return tuple(Session(*row) for row in rows)

    def fetched(self, session: str, *, since: float = 0.0) -> tuple[tuple[str, float], ...]:
        """Return the ids that a session fetched from then on, each with its time."""
        rows = self._all(
            "SELECT memory, at FROM access WHERE session = ?1 AND session <> '' AND at >= ?2 ORDER BY at, memory",
            (session, since),
        )
        return tuple((memory, at) for memory, at in rows)

    def shown_to(self, memory: str) -> frozenset[str]:
        """Return the sessions that were given a memory, whenever that was."""
        rows = self._all(
            """SELECT DISTINCT j.session FROM injection_items i JOIN injections j ON j.id = i.injection
            WHERE i.memory = ? AND j.session <> ''""",
            (memory,),
        )
        return frozenset(session for (session,) in rows)

    def used_in(self, memories: Sequence[str]) -> dict[str, frozenset[str]]:
        """Return the sessions that used each of these memories; those that nobody used are left out."""
        found: dict[str, set[str]] = {}
        for some in _chunks(memories):
            rows = self._all(
                f"""SELECT DISTINCT i.memory, j.session FROM injection_items i JOIN injections j ON j.id = i.injection
                WHERE i.used = 1 AND j.session <> '' AND i.memory IN ({marks(some)})""",
                tuple(some),
            )
            for memory, session in rows:
                found.setdefault(memory, set()).add(session)
        return {memory: frozenset(sessions) for memory, sessions in found.items()}

    def use(self, *, project: str = "", memory: str = "", session: str = "", since: float = 0.0) -> Use:
        """Return how many items were given from then on, and how many of them were used or were for nothing."""
        asked = {"j.project = ?": project, "i.memory = ?": memory, "j.session = ?": session}
        wanted = {condition: given for condition, given in asked.items() if given}
        rows = self._all(
            f"""SELECT count(*), ifnull(sum(i.used = 1), 0), ifnull(sum(i.used = 0), 0)
            FROM injections j JOIN injection_items i ON i.injection = j.id
            WHERE {" AND ".join((*wanted, "j.at >= ?"))}""",
            (*wanted.values(), since),
        )
        return Use(*rows[0])


class JudgedWriter:
    """Writes verdicts, inside the transaction of whoever calls; counts move by the difference alone."""

    def __init__(self, execute: Callable[..., Any]) -> None:
        self._execute = execute

    def judge(self, verdicts: Iterable[Verdict]) -> int:
        """How many items are now other than they were; what was used stays used."""
        return sum(self._judge(each) for each in verdicts)

    def verdicts(self, injection: str) -> Sequence[Verdict]:
        """What was said of an injection that is about to be recorded anew, and is unsaid with this."""
        rows = self._execute(
            """SELECT memory, layer, used, how FROM injection_items
            WHERE injection = ? AND how || ifnull(used, '') <> ''""",
            (injection,),
        ).fetchall()
        for memory, _, used, _ in rows:
            self._count(memory, before=used, after=None)
        known = {None: None, 0: False, 1: True}
        return [
            Verdict(injection, memory, used=known.get(used), how=how, layer=layer) for memory, layer, used, how in rows
        ]

    def _judge(self, one: Verdict) -> int:
        items = self._execute(
            """SELECT number, used, how FROM injection_items WHERE injection = ?1 AND memory = ?2 AND used IS NOT 1
            AND ?3 IN ('', layer)""",
            (one.injection, one.memory, one.layer),
        ).fetchall()
        used = None if one.used is None else int(one.used)
        changed = [(number, before) for number, before, how in items if (before, how) != (used, one.how)]
        for number, before in changed:
            self._execute(
                "UPDATE injection_items SET used = ?, how = ? WHERE injection = ? AND number = ?",
                (used, one.how, one.injection, number),
            )
            self._count(one.memory, before=before, after=used)
        return len(changed)

    def _count(self, memory: str, *, before: int | None, after: int | None) -> None:
        used, ignored = ((after == what) - (before == what) for what in (1, 0))
        if used or ignored:
            self._execute(
                "UPDATE memories SET used = max(0, used + ?), ignored = max(0, ignored + ?) WHERE id = ?",
                (used, ignored, memory),
            )
