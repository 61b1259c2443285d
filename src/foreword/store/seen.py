"""Hosts -> what was seen of each: its sessions, its last event, what it was given last, what it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foreword.models import Event, Session
from foreword.store.reading import EVENT, SESSION, Reader, event_of

LATELY = 20  # sessions of a host whose injections are looked at: a walk through all of them takes seconds at a million


@dataclass(frozen=True)
class Seen:
    """What was seen of one host; times are 0 where there was nothing."""

    host: str
    sessions: int
    events: int
    at: float = 0.0  # of its last event
    name: str = ""
    session: str = ""
    project: str = ""
    given: float = 0.0  # when it was given something last, in its latest sessions
    trigger: str = ""
    tokens: int = 0


class SeenReader(Reader):
    """The questions about hosts, of one read-only connection."""

    def seen(self) -> tuple[Seen, ...]:
        """Return what was seen of each host that ever told something."""
        # What an import told of a session is no event of a host: it has no number.
        rows = self._all(
            """SELECT host, count(*), sum(events) FROM sessions WHERE newest > 0 AND host <> ''
            GROUP BY host ORDER BY host""",
            (),
        )
        return tuple(self._seen(*row) for row in rows)

    def sessions_of(self, host: str, *, limit: int) -> tuple[Session, ...]:
        """Return the sessions of a host that its hooks told of, newest first."""
        rows = self._all(
            f"SELECT {SESSION} FROM sessions WHERE host = ? AND newest > 0 ORDER BY last DESC, id LIMIT ?",
            (host, limit),
        )
        return tuple(Session(*row) for row in rows)

    def prompts(self, session: str, *, limit: int = 20, oldest: bool = False) -> tuple[Event, ...]:
        """Return what a session was asked, the newest first, or the oldest."""
        rows = self._all(
            f"""SELECT {EVENT} FROM events
            WHERE session = ? AND kind = 'prompt' ORDER BY number {"" if oldest else "DESC"} LIMIT ?""",
            (session, limit),
        )
        return tuple(map(event_of, rows))

    def last_told(self, session: str, kind: str) -> Event | None:
        """Return the last event of a kind that a session told."""
        sql = f"SELECT {EVENT} FROM events WHERE session = ? AND kind = ? ORDER BY number DESC LIMIT 1"
        return next(map(event_of, self._all(sql, (session, kind))), None)

    def _seen(self, host: str, sessions: int, events: int) -> Seen:
        latest = [each.id for each in self.sessions_of(host, limit=LATELY)]
        told = self._newest("at, name, session, project FROM events", latest, order="number")
        given = self._newest("at, moment, tokens FROM injections", latest, order="at", only="AND tokens > 0")
        return Seen(host, sessions, events, *(told or (0.0, "", "", "")), *(given or (0.0, "", 0)))

    def _newest(self, what: str, sessions: Sequence[str], *, order: str, only: str = "") -> tuple[Any, ...]:
        sql = f"SELECT {what} WHERE session = ? {only} ORDER BY {order} DESC LIMIT 1"
        rows = [tuple(row) for id in sessions for row in self._all(sql, (id,))]
        return max(rows, key=lambda row: row[0], default=())
