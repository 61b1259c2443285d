"""Silences -> rows, and back: why nothing was said at a moment, without any of its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.store.finding import bound
from foreword.store.reading import Reader

COLUMNS = """id, moment, source, session, project, host, at, why, budget, build_ms, nearest, score, needed, spent,
 allowed, away"""
# What was given after all is no silence; and what a hook says of itself was seen, whatever a late worker thought.
PUT = f"""INSERT INTO silences ({COLUMNS}) SELECT {", ".join("?" * len(COLUMNS.split(",")))}
 WHERE NOT EXISTS (SELECT 1 FROM injections WHERE id = ? AND tokens > 0) ON CONFLICT (id) DO UPDATE SET
 why = excluded.why, budget = excluded.budget, build_ms = excluded.build_ms, nearest = excluded.nearest,
 score = excluded.score, needed = excluded.needed, spent = excluded.spent, allowed = excluded.allowed,
 away = excluded.away WHERE excluded.away"""


@dataclass(frozen=True)
class Silence:
    """A moment at which nothing was said, and why; its id is that of the injection which it would have been."""

    id: str
    trigger: str
    source: str
    session: str
    project: str
    host: str
    at: float
    why: str  # one of `silences.REASONS`
    budget: int = 0
    build_ms: float = 0.0
    nearest: str = ""  # the id of the best memory that was weighed
    score: float = 0.0
    needed: float = 0.0
    spent: int = 0  # where the window's budget is used up: tokens ...
    allowed: int = 0  # ... of so many
    away: bool = False  # the hook kept silent by itself, without the worker


class SilenceReader(Reader):
    """Asks for silences."""

    def silences(self, *, id: str = "", session: str = "", project: str = "", limit: int = 20) -> tuple[Silence, ...]:
        """Return moments at which nothing was said, newest first."""
        asked = {"id = ?": id, "session = ?": session, "project = ?": project}
        wanted = {condition: given for condition, given in asked.items() if given}
        where = f"WHERE {' AND '.join(wanted)}" if wanted else ""
        rows = self._all(
            f"SELECT {COLUMNS} FROM silences {where} ORDER BY at DESC, id LIMIT ?", (*wanted.values(), limit)
        )
        return tuple(map(_silence, rows))


def put(execute: Callable[..., Any], silence: Silence) -> None:
    """Write one, unless it is known already or something was given after all."""
    execute(PUT, bound((*vars(silence).values(), silence.id)))


def _silence(row: Sequence[Any]) -> Silence:
    values: tuple[Any, ...] = (*row[:-1], bool(row[-1]))
    return Silence(*values)
