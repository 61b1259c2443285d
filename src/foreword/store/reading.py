"""Questions -> rows, for any SQLite connection: the worker asks through apsw, a hook without worker through the stdlib.

Finding by words and by code has a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from foreword.encoding import dumps, loads
from foreword.models import GOING_ON, KINDS, Change, Event, Hit, Injection, Item, Link, Memory, Project, Query, Session
from foreword.store.finding import FOREVER, FROM, MEMORY, Finder, marks, memory_of, texts

SCHEMA = 8  # the version of store/schema.sql, and the newest that this code can read
KNOWN_TABLES = (
    "memories",
    "vectors",
    "links",
    "sessions",
    "events",
    "changes",
    "injections",
    "injection_items",
    "injection_texts",
    "silences",
    "access",
    "owners",
    "units",
    "code",
    "sightings",
    "marks",
    "ledger",
    "log",
    "log_memories",
    "tombstones",
    "projects",
    "moved",
    "tallies",
    "meta",
)

NONE = "[]"
_MOST_PARAMETERS = 500  # in one statement
# When the present context window of session ?1 began; an answered start tells it too, for capture may be off.
_GOING_ON = ",".join(f"'{source}'" for source in GOING_ON)
_WINDOW = f"""max(coalesce((SELECT window FROM sessions WHERE id = ?1), 0), coalesce((SELECT max(at) FROM injections
 WHERE session = ?1 AND moment = 'session_start' AND source NOT IN ('', 'question', {_GOING_ON})), 0))"""
# What is in it: what it was given, and what is sent again with every request of its session (`types.stands`).
THERE = f"(j.at >= {_WINDOW} OR (j.moment = 'session_start' AND j.form = 'xml'))"
# Where lies what session ?1 saw: its own, where the second condition lets the partial index be used, and what ?2 names.
_SEEN = """SELECT place FROM memories WHERE session = ?1 AND session <> ''
 UNION SELECT place FROM memories WHERE id IN (SELECT value FROM json_each(?2))"""

EVENT = "key, host, name, kind, session, project, cwd, at, number, payload"
SESSION = "id, host, project, cwd, started, last, ended, events, newest, distilled"


# Layers that mention a memory in a line: what stood there is not told in full.
_MENTIONS = "'standing', 'sessions', 'failures', 'commands', 'changes', 'files'"


class Reader(Finder):
    """Asks one read-only connection; *failures* are the exceptions that connection raises."""

    # -- memories -----------------------------------------------------------------------------------------------
    def by_id(self, ids: Sequence[str]) -> tuple[Memory, ...]:
        found = {memory.id: memory for memory in self._named("id", ids)}
        return tuple(found[id] for id in dict.fromkeys(ids) if id in found)

    def by_uid(self, uids: Sequence[str]) -> tuple[Memory, ...]:
        """Return the memories with these uids, in this order, without those that do not exist."""
        found = {memory.uid: memory for memory in self._named("uid", uids)}
        return tuple(found[uid] for uid in dict.fromkeys(uids) if uid in found)

    def _named(self, column: str, names: Sequence[str]) -> Iterable[Memory]:
        for some in _chunks(names):
            yield from map(memory_of, self._all(f"SELECT {MEMORY} {FROM} WHERE m.{column} IN ({marks(some)})", some))

    def page(self, *, after: int = 0, scopes: Sequence[str] = (), limit: int = 500) -> tuple[tuple[int, Memory], ...]:
        """Return the next memories behind place *after*, each with its place, of any status; all scopes if none."""
        of_scopes = f"AND o.scope IN ({marks(scopes)})" if scopes else ""
        rows = self._all(
            f"""SELECT m.place, {MEMORY} {FROM} WHERE m.place > ? AND m.status <> 'forgotten' {of_scopes}
            ORDER BY m.place LIMIT ?""",
            (after, *scopes, limit),
        )
        return tuple((row[0], memory_of(row[1:])) for row in rows)

    def around(self, memory: Memory, *, scope: str, limit: int) -> tuple[tuple[Memory, ...], tuple[Memory, ...]]:
        """Return what came just before and just after a memory in a scope, active ones only, each side oldest first."""
        sides = []
        for beyond, order in (("<", "DESC"), (">", "ASC")):
            rows: list[Any] = []
            for owner, _ in self._owners((scope,)):
                for kind in KINDS:  # one walk along the index for each, as for recency
                    rows += self._all(
                        f"""SELECT created, id, place FROM memories WHERE owner = ?1 AND kind = ?2 AND status = 'active'
                        AND created {beyond}= ?3 AND (created {beyond} ?3 OR id {beyond} ?4)
                        ORDER BY created {order}, id {order} LIMIT ?5""",
                        (owner, kind, memory.created, memory.id, limit),
                    )
            nearest = sorted(rows, reverse=order == "DESC")[:limit]
            read = dict(self._memories([place for _, _, place in nearest]))
            sides.append(tuple(read[place] for _, _, place in sorted(nearest)))
        return sides[0], sides[1]

    def by_recency(self, query: Query) -> tuple[Hit, ...]:
        """Return what came last in the query's scopes, newest first; each kind and scope has its share of the limit."""
        if query.session:
            return self._of_session(query)
        lists: list[list[Any]] = []
        since, until = query.since, query.at or FOREVER
        for owner, _ in self._owners(query.scopes):
            for kind in query.kinds or ("",):
                # One walk down the index for each kind, which tells the times: a list of kinds would be sorted.
                of_kind, given = ("AND kind = ?", (kind,)) if kind else ("", ())
                lists.append(
                    self._all(
                        f"""SELECT created, place FROM memories WHERE owner = ? {of_kind} AND status = 'active'
                        AND created BETWEEN ? AND ? ORDER BY created DESC LIMIT ?""",
                        (owner, *given, since, until, query.limit),
                    )
                )
        # Each kind and scope has its share first: a day's observations must not hide the decision of last month.
        share = query.limit // max(1, sum(1 for each in lists if each))
        sure = {place for each in lists for _, place in each[:share]}
        more = sorted((row for each in lists for row in each[share:]), reverse=True)
        left = query.limit - len(sure)
        # Of equally new ones all are read, for only their ids tell which come first.
        last = more[:left][-1][0] if more[:left] else FOREVER
        read = dict(self._memories([*sure, *(place for created, place in more if created >= last)]))
        others = sorted((memory for place, memory in read.items() if place not in sure), key=_newest)[:left]
        found = sorted([*(memory for place, memory in read.items() if place in sure), *others], key=_newest)
        return tuple(Hit(memory=memory, source="recency", score=memory.created) for memory in found)

    def _of_session(self, query: Query) -> tuple[Hit, ...]:
        """What one session itself established, newest first, also where later ones saw it again."""
        of_kinds = f"AND m.kind IN ({marks(query.kinds)})" if query.kinds else ""
        seen = (query.session, self._saw(query.session))
        rows = self._all(
            # The plus keeps other indexes out of it.
            f"""SELECT {MEMORY} {FROM} WHERE m.place IN ({_SEEN}) AND +m.status = 'active' {of_kinds}
            AND +o.scope IN ({marks(query.scopes)}) AND +m.created BETWEEN ? AND ?
            ORDER BY m.created DESC, m.id LIMIT ?""",
            (*seen, *query.kinds, *query.scopes, query.since, query.at or FOREVER, query.limit),
        )
        found = map(memory_of, rows)
        return tuple(Hit(memory=memory, source="recency", score=memory.created) for memory in found)

    def _saw(self, session: str) -> str:
        """The ids, as JSON, of what later sessions saw again; without the table, as in an older schema, of nothing."""
        try:
            return dumps([id for (id,) in self._all("SELECT memory FROM sightings WHERE session = ?", (session,))])
        except self._failures:
            return NONE

    def by_meaning(self, _: Query) -> tuple[Hit, ...]:
        return ()  # a hook has no model

    # -- what surrounds them ------------------------------------------------------------------------------------
    def linked(self, id: str) -> tuple[Link, ...]:
        """Return every edge that begins or ends at this memory."""
        rows = self._all(
            """SELECT source, relation, target FROM links WHERE source = ?
            UNION SELECT source, relation, target FROM links WHERE target = ? ORDER BY 1, 2, 3""",
            (id, id),
        )
        return tuple(Link(*row) for row in rows)

    def changed(self, project: str, *, session: str = "", limit: int) -> tuple[Change, ...]:
        """Return the functions of a project that changed last, or in one session, newest first."""
        rows = self._all(
            """SELECT project, file, function, what, signature, line, end_line, session, at FROM changes
            WHERE project = ? AND (? = '' OR session = ?) ORDER BY at DESC, number DESC LIMIT ?""",
            (project, session, session, limit),
        )
        return tuple(Change(*row) for row in rows)

    def sessions(self, project: str = "", *, limit: int = 20) -> tuple[Session, ...]:
        """Return the sessions of a project, or of all, newest first."""
        rows = self._all(
            f"SELECT {SESSION} FROM sessions WHERE ? = '' OR project = ? ORDER BY last DESC, id LIMIT ?",
            (project, project, limit),
        )
        return tuple(Session(*row) for row in rows)

    def session(self, id: str) -> Session | None:
        """Return one session."""
        rows = self._all(f"SELECT {SESSION} FROM sessions WHERE id = ?", (id,))
        return Session(*rows[0]) if rows else None

    def undistilled(self, *, project: str = "", limit: int = 100) -> tuple[Session, ...]:
        """Return sessions with events that their memories do not tell of yet, newest first."""
        rows = self._all(
            f"""SELECT {SESSION} FROM sessions WHERE newest > distilled AND (? = '' OR project = ?)
            ORDER BY last DESC, id LIMIT ?""",
            (project, project, limit),
        )
        return tuple(Session(*row) for row in rows)

    def events(self, session: str, *, limit: int = 1000, newest: bool = False, after: int = -1) -> tuple[Event, ...]:
        """Return what happened in a session, in order; or what happened last, the newest first.

        Behind the event of number *after* they come as they arrived: what was spooled arrives late.
        """
        order = "number DESC" if newest else "number" if after >= 0 else "at, number"
        rows = self._all(
            f"""SELECT {EVENT} FROM events
            WHERE session = ? AND number > ? ORDER BY {order} LIMIT ?""",
            (session, after, limit),
        )
        return tuple(event_of(row) for row in rows)

    def injections(
        self, *, session: str = "", project: str = "", memory: str = "", limit: int = 20, texts: bool = False
    ) -> tuple[Injection, ...]:
        """Return what was injected, newest first, without its texts unless asked; kept silences are not told."""
        asked = {
            "j.session = ?": session,
            "j.project = ?": project,
            "j.id IN (SELECT injection FROM injection_items WHERE memory = ?)": memory,
        }
        wanted = {condition: given for condition, given in asked.items() if given}
        conditions = " AND ".join((*wanted, "j.tokens > 0"))  # a silence is kept only to stay one
        where = f"{conditions} ORDER BY j.at DESC, j.id LIMIT ?"
        return self._injections(where, (*wanted.values(), limit), texts=texts)

    def injection(self, id: str) -> Injection | None:
        """Return one injection with its text."""
        return next(iter(self._injections("j.id = ?", (id,))), None)

    def given(self, like: Injection) -> Injection | None:
        """Return the first injection of the present context window that was asked for alike, with its text."""
        found = self._injections(
            f"""j.session = ?1 AND {THERE} AND j.moment = ?2 AND j.project = ?3 AND j.form = ?4
            AND j.terms = ?5 AND j.files = ?6 ORDER BY j.at, j.id LIMIT 1""",
            (like.session, like.trigger, like.project, like.form, dumps(like.terms), dumps(like.files)),
        )
        return found[0] if found else None

    def _injections(self, where: str, given: Sequence[Any], *, texts: bool = True) -> tuple[Injection, ...]:
        text = "coalesce((SELECT text FROM injection_texts WHERE injection = j.id), '')" if texts else "''"
        rows = self._all(
            f"""SELECT j.id, j.moment, j.session, j.project, j.host, j.at, j.tokens, j.budget, j.build_ms, j.layers,
            j.skipped, j.source, j.form, j.terms, j.files, j.away, {text} FROM injections j WHERE {where}""",
            given,
        )
        return tuple(_injection(row, self._items(row[0])) for row in rows)

    def _items(self, injection: str) -> tuple[Item, ...]:
        rows = self._all(
            """SELECT memory, layer, score, tokens, why, used, how FROM injection_items
            WHERE injection = ? ORDER BY number""",
            (injection,),
        )
        return tuple(_item(row) for row in rows)

    def hinted(self, session: str) -> frozenset[str]:
        """Return the ids of the memories that hints of the session's present context window came from."""
        rows = self._all(
            f"""SELECT i.memory FROM injections j JOIN injection_items i ON i.injection = j.id
            WHERE j.session = ?1 AND {THERE} AND j.moment = 'tool'""",
            (session,),
        )
        return frozenset(memory for (memory,) in rows)

    def shown(self, session: str) -> frozenset[str]:
        """Return the ids of the memories in the session's present context window: told in full there, or made in it."""
        rows = self._all(
            # What a compaction was told went to the summariser, and is not in the window; what the session itself came
            # to since the window began was said there.
            f"""SELECT i.memory FROM injections j JOIN injection_items i ON i.injection = j.id
            WHERE j.session = ?1 AND {THERE} AND j.moment <> 'compaction' AND i.layer NOT IN ({_MENTIONS})
            UNION SELECT id FROM memories WHERE session = ?1 AND session <> '' AND created >= {_WINDOW}""",
            (session,),
        )
        if (again := self._saw(session)) != NONE:  # by others: most sessions have none, and are not made to wait for it
            of_these = "id IN (SELECT value FROM json_each(?2))"
            rows += self._all(f"SELECT id FROM memories WHERE {of_these} AND created >= {_WINDOW}", (session, again))
        return frozenset(memory for (memory,) in rows)

    def begun(self, session: str) -> float:
        """Return when the session's present context window was last given what a session begins with; 0 for never."""
        rows = self._all(
            f"""SELECT max(j.at) FROM injections j WHERE j.session = ?1 AND j.moment = 'session_start' AND j.tokens > 0
            AND {THERE}""",
            (session,),
        )
        return float(rows[0][0] or 0.0)

    def prompted(self, session: str, *, before: float) -> bool:
        """Return whether the session's present context window saw a prompt before that time."""
        rows = self._all(
            f"SELECT 1 FROM events WHERE session = ?1 AND kind = 'prompt' AND at >= {_WINDOW} AND at < ?2 LIMIT 1",
            (session, before),
        )
        return bool(rows)

    def spent(self, session: str) -> dict[str, int]:
        """Return the tokens that the session's present context window was given, by moment."""
        rows = self._all(
            f"""SELECT j.moment, sum(j.tokens) FROM injections j WHERE j.session = ?1 AND {THERE}
            GROUP BY j.moment HAVING sum(j.tokens) > 0""",
            (session,),
        )
        return dict(rows)

    def given_in_all(self, session: str) -> tuple[int, int]:
        """Return how many memories a session was given since it began, each counted once, and for how many tokens."""
        ((items, tokens),) = self._all(
            """SELECT count(DISTINCT i.memory), (SELECT ifnull(sum(tokens), 0) FROM injections WHERE session = ?1)
            FROM injections j JOIN injection_items i ON i.injection = j.id WHERE j.session = ?1""",
            (session,),
        )
        return items, tokens

    def counts_as(self, project: Project) -> Project:
        """The project that this one counts as: itself, or the one that it is an alias of, under its name for people."""
        rows = self._all(
            """SELECT t.key, t.name FROM projects p JOIN projects t ON t.key = coalesce(nullif(p.alias_of, ''), p.key)
            WHERE p.key = ?""",
            (project.key,),
        )
        return replace(project, key=rows[0][0], name=rows[0][1] or project.name) if rows else project

    def mark(self, name: str) -> str:
        """Return how far something had come when it was noted last; empty for never."""
        rows = self._all("SELECT text FROM marks WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else ""

    # -- the store itself ---------------------------------------------------------------------------------------
    def counts(self) -> dict[str, int]:
        """Return how many rows of everything there are."""
        present = self.tables()
        return {name: self._all(f"SELECT count(*) FROM {name}", ())[0][0] for name in KNOWN_TABLES if name in present}

    def schema(self) -> int:
        return int(self._all("PRAGMA user_version", ())[0][0])

    def tables(self) -> frozenset[str]:
        return frozenset(name for (name,) in self._all("SELECT name FROM sqlite_master WHERE type = 'table'", ()))


def _newest(memory: Memory) -> tuple[float, str]:
    return -memory.created, memory.id


def _chunks(given: Sequence[Any], *, size: int = _MOST_PARAMETERS) -> Iterable[Sequence[Any]]:
    """Parts that stay below SQLite's limit of parameters in one statement."""
    return (tuple(given[start : start + size]) for start in range(0, len(given), size))


def _injection(row: Sequence[Any], items: tuple[Item, ...]) -> Injection:
    asked = (*row[11:13], texts(row[13]), texts(row[14]), bool(row[15]), row[16])
    values: tuple[Any, ...] = (*row[:9], loads(row[9]), loads(row[10]), items, *asked)
    return Injection(*values)


def event_of(row: Sequence[Any]) -> Event:
    values: tuple[Any, ...] = (*row[:-2], loads(row[-1]), False, row[-2])
    return Event(*values)


def _item(row: Sequence[Any]) -> Item:
    used = None if row[5] is None else row[5] == 1
    values: tuple[Any, ...] = (*row[:4], loads(row[4]), used, row[6])
    return Item(*values)
