"""The events that hooks sent, redacted: the source that a session's memories can be made from again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from foreword.models import GOING_ON, Event
from foreword.store.memories import as_json
from foreword.store.sql import EVENT, WINDOW, Reader, event_of, transaction

if TYPE_CHECKING:
    from foreword.store.database import Database
    from foreword.store.forget import Tombstones

# Two hooks registered for one event send it within seconds; a person repeating it takes longer.
SAME_EVENT_SECONDS = 10.0


class Events(Reader):
    """The events of all sessions."""

    def __init__(self, db: Database, tombstones: Tombstones) -> None:
        super().__init__(db)
        self._db, self._tombstones = db, tombstones

    @transaction
    def append(self, events: Sequence[Event]) -> tuple[bool, ...]:
        """Store *events*, and return of each whether it is new; the same event sent twice is one event."""
        return tuple(self._append(event) for event in events)

    def list(self, session: str, *, limit: int = 1000, newest: bool = False, after: int = -1) -> tuple[Event, ...]:
        """Return what happened in a session, in order; or what happened last, the newest first.

        Behind the event of number *after* they come as they arrived: what was spooled arrives late.
        """
        order = "number DESC" if newest else "number" if after >= 0 else "at, number"
        rows = self._all(
            f"SELECT {EVENT} FROM events WHERE session = ? AND number > ? ORDER BY {order} LIMIT ?",
            (session, after, limit),
        )
        return tuple(map(event_of, rows))

    def prompts(self, session: str, *, limit: int = 20, oldest: bool = False) -> tuple[Event, ...]:
        """Return the prompts of a session, the newest first, or the oldest."""
        rows = self._all(
            f"""SELECT {EVENT} FROM events
            WHERE session = ? AND kind = 'prompt' ORDER BY number {"" if oldest else "DESC"} LIMIT ?""",
            (session, limit),
        )
        return tuple(map(event_of, rows))

    def last(self, session: str, kind: str) -> Event | None:
        """Return the last event of a kind in a session."""
        sql = f"SELECT {EVENT} FROM events WHERE session = ? AND kind = ? ORDER BY number DESC LIMIT 1"
        return next(map(event_of, self._all(sql, (session, kind))), None)

    def has_prompt(self, session: str, *, before: float) -> bool:
        """Return whether the session's present context window had a prompt before that time."""
        rows = self._all(
            f"SELECT 1 FROM events WHERE session = ?1 AND kind = 'prompt' AND at >= {WINDOW} AND at < ?2 LIMIT 1",
            (session, before),
        )
        return bool(rows)

    def _append(self, event: Event) -> bool:
        if self._tombstones.refuses_part(event.session, at=event.at, event=event.key):
            return False
        near = () if event.lasting else (event.at - SAME_EVENT_SECONDS, event.at + SAME_EVENT_SECONDS)
        same = f"SELECT 1 FROM events WHERE key = ? {'AND at BETWEEN ? AND ?' if near else ''} LIMIT 1"
        if self._db.execute(same, (event.key, *near)).fetchone():
            return False
        who = (event.host, event.name, event.kind, event.session, event.project, event.cwd)
        self._db.execute(
            """INSERT INTO events (key, host, name, kind, session, project, cwd, at, payload)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (event.key, *who, event.at, as_json(event.payload)),
        )
        if event.session:
            self._note_session(event, number=self._db.connection.last_insert_rowid())
        return True

    def _note_session(self, event: Event, *, number: int) -> None:
        # A context window begins with a start, a clear and a compaction; a resumed one goes on.
        # Most agents send an event of its own for a compaction and start nothing afterwards.
        starts = event.kind == "session_start" and event.payload.get("source") not in GOING_ON
        begins = starts or event.kind == "compaction"
        self._db.execute(
            """INSERT INTO sessions (id, host, project, cwd, started, last, ended, window, events, newest)
            VALUES (:id, :host, :project, :cwd, :at, :at, :ended, CASE WHEN :begins THEN :at ELSE 0 END, 1, :number)
            ON CONFLICT (id) DO UPDATE SET last = max(last, :at), started = min(started, :at), events = events + 1,
              newest = :number,
              ended = CASE WHEN :at >= last THEN :ended ELSE ended END,
              project = CASE WHEN project = '' THEN :project ELSE project END,
              window = CASE WHEN :begins AND :at > window THEN :at ELSE window END""",
            {
                "id": event.session,
                "host": event.host,
                "project": event.project,
                "cwd": event.cwd,
                "at": event.at,
                "ended": event.at if event.kind == "session_end" else 0.0,
                "begins": begins,
                "number": number,
            },
        )
