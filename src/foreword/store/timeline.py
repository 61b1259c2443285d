"""Read what many sessions came to, changed and were given: the SQL of the viewer's timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foreword.encoding import dumps
from foreword.models import Change, Event, Memory, Session
from foreword.store.memories import OF_SESSIONS as _SEEN
from foreword.store.sql import EVENT, FOREVER, SESSION, Reader, event_of, marks


@dataclass(frozen=True)
class Changed:
    """The functions that a session changed: the newest of them, and how many there are in all."""

    changes: tuple[Change, ...]
    count: int


@dataclass(frozen=True)
class InjectionTotals:
    """The injections of a session with their tokens, the memories in them, each once, and how many it used."""

    injections: int = 0
    tokens: int = 0
    items: int = 0
    used: int = 0


class Timeline(Reader):
    """The questions about many sessions, of one read-only connection."""

    def sessions_before(
        self, last: float, id: str = "", *, projects: Sequence[str] = (), limit: int
    ) -> tuple[Session, ...]:
        """Return the sessions behind one in the list of all, newest first; with 0 for its time, the first ones."""
        of_projects = f"project IN ({marks(projects)}) AND" if projects else ""
        rows = self._all(
            f"""SELECT {SESSION} FROM sessions WHERE {of_projects} last <= ? AND (last < ? OR id > ?)
            ORDER BY last DESC, id LIMIT ?""",
            (*projects, last or FOREVER, last or FOREVER, id, limit),
        )
        return tuple(Session(*row) for row in rows)

    def sessions_with(self, ids: Sequence[str]) -> tuple[Session, ...]:
        """Return the sessions of these ids, as far as they are known."""
        sql = f"SELECT {SESSION} FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
        return tuple(Session(*row) for row in self._all(sql, (dumps(ids),)))

    def came_of(self, sessions: Sequence[str], *, kinds: Sequence[str], each: int) -> dict[str, tuple[Memory, ...]]:
        """Return what sessions have come to or seen, by session, of any status, oldest first; so many of a kind each.

        What several of them saw comes with each. What was merged into another that the session saw comes as that one.
        """
        rows = self._all(
            f"""SELECT session, place FROM (SELECT *, row_number() OVER
            (PARTITION BY session, kind ORDER BY created, id) AS nth FROM ({_SEEN})
            WHERE kind IN (SELECT value FROM json_each(?2))) WHERE nth <= ?3 ORDER BY created, id""",
            (dumps(sessions), dumps(kinds), each),
        )
        found = self._memories_at({place for _, place in rows})
        came: dict[str, list[Memory]] = {session: [] for session in sessions}
        for session, place in rows:
            if place in found:
                came.setdefault(session, []).append(found[place])
        return {session: tuple(memories) for session, memories in came.items()}

    def changed_in(self, sessions: Sequence[tuple[str, str]], *, each: int) -> dict[str, Changed]:
        """Return what sessions changed, each named by a project and its id, newest first; at most so many each."""
        # A project comes with each session, for so the index begins; one session may have been in several.
        rows = self._all(
            """SELECT count, project, file, function, what, signature, line, end_line, session, at FROM (
            SELECT c.*, count(*) OVER (PARTITION BY c.session) AS count,
            row_number() OVER (PARTITION BY c.session ORDER BY c.at DESC, c.number DESC) AS nth
            FROM json_each(?1) s CROSS JOIN changes c ON c.project = s.value ->> 0 AND c.session = s.value ->> 1)
            WHERE nth <= ?2 ORDER BY session, nth""",
            (dumps([list(pair) for pair in dict.fromkeys(sessions)]), each),
        )
        found: dict[str, list[Change]] = {}
        counts = {row[8]: row[0] for row in rows}
        for row in rows:
            found.setdefault(row[8], []).append(Change(*row[1:]))
        return {session: Changed(tuple(changes), counts[session]) for session, changes in found.items()}

    def injected(self, sessions: Sequence[str]) -> dict[str, InjectionTotals]:
        """Return what sessions were given since they began; by session, without those that were given nothing."""
        self._reads.flush()
        some = (dumps(sessions),)
        totals = self._all(
            """SELECT j.session, count(*), sum(j.tokens) FROM injections j
            WHERE j.session IN (SELECT value FROM json_each(?1)) AND j.tokens > 0 GROUP BY j.session""",
            some,
        )
        held = self._all(
            """SELECT session, count(*), sum(used) FROM (SELECT j.session, ifnull(max(i.used = 1), 0) AS used
            FROM injections j JOIN injection_items i ON i.injection = j.id
            WHERE j.session IN (SELECT value FROM json_each(?1)) AND j.tokens > 0 GROUP BY j.session, i.memory)
            GROUP BY session""",
            some,
        )
        items = {session: (count, used) for session, count, used in held}
        return {id: InjectionTotals(count, tokens, *items.get(id, (0, 0))) for id, count, tokens in totals}

    def began_with(self, sessions: Sequence[str]) -> dict[str, Event]:
        """Return the first prompt of each of these sessions that has one."""
        rows = self._all(
            f"""SELECT {EVENT} FROM events WHERE number IN
            (SELECT (SELECT number FROM events WHERE session = s.value AND kind = 'prompt' ORDER BY number LIMIT 1)
            FROM json_each(?1) s)""",
            (dumps(sessions),),
        )
        return {event.session: event for event in map(event_of, rows)}
