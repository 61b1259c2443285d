"""The sessions of agents with the events that hooks sent, how far each was extracted, and the functions it changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from foreword.encoding import loads
from foreword.models import CONTINUING_SOURCES, Change, Event, Session
from foreword.store.sql import FOREVER, SESSION, WINDOW, Repository, as_json, marks, transaction, where

# Two hooks registered for one event send it within seconds; a person repeating it takes longer.
SAME_EVENT_SECONDS = 10.0
_EVENT = "key, host, name, kind, session, project, cwd, at, number, payload"
_CHANGE = "project, file, function, what, signature, line, end_line, session, at"
_UNDECIDED = """EXISTS (SELECT 1 FROM injections j JOIN injection_items i ON i.injection = j.id
 WHERE j.session = sessions.id AND i.used IS NULL AND i.how = '')"""


class Events(Repository):
    """The events that hooks sent, redacted: the source that a session's memories can be made from again."""

    @transaction
    def append(self, events: Sequence[Event]) -> tuple[bool, ...]:
        """Store *events*, and return of each whether it is new; the same event sent twice is one event."""
        return tuple(self._append(event) for event in events)

    def list(
        self, session: str, *, kind: str = "", limit: int = 1000, newest: bool = False, after: int = -1
    ) -> tuple[Event, ...]:
        """Return what happened in a session, in order, or only events of a kind; with *newest* the last ones first.

        Behind the event of number *after* they come as they arrived: what was spooled arrives late.
        """
        order = "number DESC" if newest else "number" if after >= 0 else "at, number"
        where = f"session = ? AND number > ? AND ? IN ('', kind) ORDER BY {order} LIMIT ?"
        return self._events(where, (session, after, kind, limit))

    def has_prompt(self, session: str, *, before: float) -> bool:
        """Return whether the session's present context window had a prompt before that time."""
        where = f"session = ?1 AND kind = 'prompt' AND at >= {WINDOW} AND at < ?2 LIMIT 1"
        return bool(self._events(where, (session, before)))

    def _events(self, rest: str, parameters: Sequence[Any]) -> tuple[Event, ...]:
        rows = self._all(f"SELECT {_EVENT} FROM events WHERE {rest}", parameters)
        values: Iterable[Any] = ((*row[:8], loads(row[9]), False, row[8]) for row in rows)
        return tuple(Event(*each) for each in values)

    def _append(self, event: Event) -> bool:
        if self._store.tombstones.refuses_part(event.session, at=event.at, event=event.key):
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
        starts = event.kind == "session_start" and event.payload.get("source") not in CONTINUING_SOURCES
        self._db.execute(
            """INSERT INTO sessions (id, host, project, cwd, started, last, ended, window, events, newest)
            VALUES (:id, :host, :project, :cwd, :at, :at, :ended, CASE WHEN :begins THEN :at ELSE 0 END, 1, :number)
            ON CONFLICT (id) DO UPDATE SET last = max(last, :at), started = min(started, :at), events = events + 1,
              newest = :number,
              ended = CASE WHEN :at >= last THEN :ended ELSE ended END,
              project = CASE WHEN project = '' THEN :project ELSE project END,
              window = CASE WHEN :begins AND :at > window THEN :at ELSE window END""",
            {
                **{"id": event.session, "host": event.host, "project": event.project, "cwd": event.cwd},
                **{"at": event.at, "ended": event.at if event.kind == "session_end" else 0.0},
                **{"begins": starts or event.kind == "compaction", "number": number},
            },
        )


class Sessions(Repository):
    """The sessions and their changes."""

    def list(
        self,
        *projects: str,
        prefix: str = "",
        pending: bool = False,
        undecided: bool = False,
        since: float = 0.0,
        before: tuple[float, str] = (FOREVER, ""),
        limit: int = 20,
    ) -> tuple[Session, ...]:
        """Return sessions of these projects, or of all, newest first, behind the one of this last time and id.

        With a *prefix*, those whose ids begin so; *pending* are those with events that are not in their memories yet,
        *undecided* those with injected items that have no verdict.
        """
        if undecided:
            self._db.flush()  # injections are written a moment after they were given
        keys, (last, id) = tuple(filter(None, projects)), before
        of_projects = f"project IN ({marks(keys)}) AND" if keys else ""
        of_ids = "id >= ? AND id < ? AND" if prefix else ""
        ids = (prefix, prefix + chr(0x10FFFF)) if prefix else ()
        waiting = f"{'newest > extracted AND' * pending} {f'{_UNDECIDED} AND' * undecided}"
        return self._sessions(
            f"""WHERE {of_projects} {of_ids} {waiting} last >= ? AND last <= ? AND (last < ? OR id > ?)
            ORDER BY last DESC, id LIMIT ?""",
            (*keys, *ids, since, last, last, id, limit),
        )

    def get(self, id: str) -> Session | None:
        """Return one session."""
        return next(iter(self._sessions("WHERE id = ?", (id,))), None)

    def changes(self, project: str, *, session: str = "", limit: int) -> tuple[Change, ...]:
        """Return the functions that changed last in a project, or in all, or in one session, newest first."""
        clause, values = where({"project = ?": project, "session = ?": session})
        rows = self._all(
            f"SELECT {_CHANGE} FROM changes {clause} ORDER BY at DESC, number DESC LIMIT ?", (*values, limit)
        )
        return tuple(Change(*row) for row in rows)

    # -- inside a change ----------------------------------------------------------------------------------------
    def put_changes(self, changes: Sequence[Change]) -> None:
        """Write which functions were new, modified or deleted; of one function a session has one change, the last."""
        kept = [each for each in changes if not self._store.tombstones.refuses_part(each.session, at=each.at)]
        self._db.execute_many(
            f"""INSERT INTO changes ({_CHANGE})
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project, session, file, function) DO UPDATE SET
            what = excluded.what, signature = excluded.signature, line = excluded.line, end_line = excluded.end_line,
            at = excluded.at WHERE excluded.at >= changes.at""",
            [tuple(vars(each).values()) for each in kept],
        )

    def put(self, session: Session, *, upto: int) -> None:
        """Write a session, and that its memories tell of its events up to number *upto*."""
        if not self._store.tombstones.refuses_part(session.id, at=session.last):
            self._db.execute(
                """INSERT INTO sessions (id, host, project, cwd, started, last, ended, events, newest, extracted)
                VALUES (:id, :host, :project, :cwd, :started, :last, :ended, :events, 0, :upto) ON CONFLICT (id)
                DO UPDATE SET started = min(started, excluded.started), last = max(last, excluded.last),
                  events = max(events, excluded.events), extracted = max(extracted, excluded.extracted)""",
                {**vars(session), "upto": upto},
            )

    def _sessions(self, rest: str, parameters: Sequence[Any]) -> tuple[Session, ...]:
        return tuple(Session(*row) for row in self._all(f"SELECT {SESSION} FROM sessions {rest}", parameters))
