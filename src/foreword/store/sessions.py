"""The sessions of agents, how far each was turned into memories, and the functions that they changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from foreword.encoding import dumps
from foreword.models import Change, Link, Memory, Session
from foreword.store.memories import Memories
from foreword.store.sql import CHANGE, FOREVER, SESSION, Reader, marks, transaction, where

if TYPE_CHECKING:
    from foreword.store.database import Database
    from foreword.store.forget import Tombstones


class Sessions(Reader):
    """The sessions and their changes."""

    def __init__(self, db: Database, memories: Memories, tombstones: Tombstones) -> None:
        super().__init__(db)
        self._db, self._memories, self._tombstones = db, memories, tombstones

    def list(self, project: str = "", *, host: str = "", limit: int = 20) -> tuple[Session, ...]:
        """Return sessions, newest first: all, those of a project, or those that a host's hooks sent events of."""
        clause, parameters = where({"project = ?": project, "newest > 0 AND host = ?": host})
        sql = f"SELECT {SESSION} FROM sessions {clause} ORDER BY last DESC, id LIMIT ?"
        rows = self._all(sql, (*parameters, limit))
        return tuple(Session(*row) for row in rows)

    def get(self, id: str) -> Session | None:
        """Return one session."""
        rows = self._all(f"SELECT {SESSION} FROM sessions WHERE id = ?", (id,))
        return Session(*rows[0]) if rows else None

    def get_many(self, ids: Sequence[str]) -> tuple[Session, ...]:
        """Return the sessions of these ids, as far as they are known."""
        sql = f"SELECT {SESSION} FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
        return tuple(Session(*row) for row in self._all(sql, (dumps(ids),)))

    def before(self, last: float, id: str = "", *, projects: Sequence[str] = (), limit: int) -> tuple[Session, ...]:
        """Return the sessions behind one in the list of all, newest first; with 0 for its time, the first ones."""
        of_projects = f"project IN ({marks(projects)}) AND" if projects else ""
        rows = self._all(
            f"""SELECT {SESSION} FROM sessions WHERE {of_projects} last <= ? AND (last < ? OR id > ?)
            ORDER BY last DESC, id LIMIT ?""",
            (*projects, last or FOREVER, last or FOREVER, id, limit),
        )
        return tuple(Session(*row) for row in rows)

    def find(self, prefix: str) -> Session | None:
        """Return the newest session whose id begins so."""
        rows = self._all(
            f"SELECT {SESSION} FROM sessions WHERE id >= ? AND id < ? ORDER BY last DESC, id LIMIT 1",
            (prefix, prefix + chr(0x10FFFF)),
        )
        return Session(*rows[0]) if rows and prefix else None

    def pending(self, *, project: str = "", limit: int = 100) -> tuple[Session, ...]:
        """Return sessions with events that are not part of their memories yet, newest first."""
        rows = self._all(
            f"""SELECT {SESSION} FROM sessions WHERE newest > distilled AND (? = '' OR project = ?)
            ORDER BY last DESC, id LIMIT ?""",
            (project, project, limit),
        )
        return tuple(Session(*row) for row in rows)

    def changes(self, project: str, *, session: str = "", limit: int) -> tuple[Change, ...]:
        """Return the functions of a project that changed last, or in one session, newest first."""
        rows = self._all(
            f"""SELECT {CHANGE} FROM changes WHERE project = ? AND (? = '' OR session = ?)
            ORDER BY at DESC, number DESC LIMIT ?""",
            (project, session, session, limit),
        )
        return tuple(Change(*row) for row in rows)

    @transaction
    def put_changes(self, changes: Sequence[Change]) -> None:
        """Store which functions were new, modified or deleted; of one function a session has one change, the last."""
        self._db.execute_many(
            f"""INSERT INTO changes ({CHANGE})
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project, session, file, function) DO UPDATE SET
            what = excluded.what, signature = excluded.signature, line = excluded.line, end_line = excluded.end_line,
            at = excluded.at WHERE excluded.at >= changes.at""",
            [
                tuple(vars(each).values())
                for each in changes
                if not self._tombstones.refuses_part(each.session, at=each.at)
            ],
        )

    @transaction
    def save_extraction(
        self,
        session: Session,
        *,
        upto: int = 0,
        memories: Sequence[Memory] = (),
        links: Sequence[Link] = (),
        changes: Sequence[Change] = (),
    ) -> tuple[Memory, ...]:
        """Store what was extracted from a session's events up to number *upto*, all or nothing.

        A session that no event came from becomes known; ends of links may be uids of these memories.
        """
        kept = self._memories.put(memories, links=links)
        self.put_changes(changes)
        if self._tombstones.refuses_part(session.id, at=session.last):
            return kept
        who = (session.id, session.host, session.project, session.cwd)
        self._db.execute(
            """INSERT INTO sessions (id, host, project, cwd, started, last, ended, events, newest, distilled)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0)
            ON CONFLICT (id) DO UPDATE SET started = min(started, excluded.started), last = max(last, excluded.last),
              events = max(events, excluded.events)""",
            (*who, session.started, session.last, session.ended, session.events),
        )
        self._db.execute("UPDATE sessions SET distilled = max(distilled, ?) WHERE id = ?", (upto, session.id))
        return kept
