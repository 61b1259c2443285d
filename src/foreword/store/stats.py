"""Counts by day, what models cost, the size of the store, and what was seen of each agent. No text leaves here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from foreword.models import KINDS, AgentActivity, ModelCall
from foreword.store.sql import TABLES, Reader, chunks, marks, transaction

if TYPE_CHECKING:
    from foreword.store.database import Database

DAY, BYTES, EVENTS = "day", "bytes", "before:events"
LOCAL = "date({}, 'unixepoch', 'localtime')"  # the day on which that was, where the user is
KIND_OF = {prefix: kind for kind, prefix in KINDS.items()}
LATELY = 20  # sessions of an agent whose injections are read: a walk through all of them takes seconds at a million
_CALL = "at, provider, model, purpose, session, tokens_in, tokens_out, ms, outcome, number"


@dataclass(frozen=True)
class Day:
    """A day on which a worker ran; *number* is its place in the order in which days came."""

    number: int
    name: str  # 2026-11-16, where the user is
    events: int  # the highest number of an event that had arrived when it began


@dataclass(frozen=True)
class Size:
    """Bytes of a store: all of its file, and those of them that hold something."""

    total: int
    used: int


@dataclass(frozen=True)
class Items:
    """How many items of a kind were shown in a layer on a day, and what became of them; the rest is not judged."""

    kind: str
    layer: str
    day: str
    shown: int
    used: int
    ignored: int


@dataclass(frozen=True)
class Statistics:
    """What happened in a span of days, as rows that were put together by the database."""

    injections: tuple[tuple[str, str, int, int], ...] = ()  # day, trigger, how many, tokens
    # by trigger, each, the quickest first
    build_ms: Mapping[str, Sequence[float]] = field(default_factory=dict, hash=False)
    build_ms_by_day: Mapping[str, Sequence[float]] = field(default_factory=dict, hash=False)
    away: int = 0  # of the injections, those that a hook gave itself
    items: tuple[Items, ...] = ()
    tallies: tuple[tuple[str, str, float], ...] = ()  # day, what, how many
    memories: tuple[tuple[str, int], ...] = ()  # kind, how many there are
    inactive: tuple[tuple[str, int], ...] = ()  # status, how many have it that are not active
    new: tuple[tuple[str, str, int], ...] = ()  # day, kind, how many are of that day
    sessions: tuple[tuple[str, int], ...] = ()  # host, how many were told of
    model: tuple[tuple[str, int, int, int, int], ...] = ()  # day, calls, refused ones, tokens in, tokens out
    sizes: tuple[tuple[str, float], ...] = ()  # day, bytes of the whole store as it began
    arrived: tuple[tuple[str, int], ...] = ()  # day, events of all projects that arrived; no row for what nobody noted
    ahead: int = 0  # injections from after the span: some clock was wrong


class DayReader(Reader):
    """The days on which a worker ran, and the size of the store."""

    def days(self) -> tuple[Day, ...]:
        """Return the days on which a worker ran, in the order in which they came."""
        rows = self._all(f"SELECT day, what, number FROM tallies WHERE project = '' AND what IN ('{DAY}', '{EVENTS}')")
        noted: dict[str, dict[str, float]] = {}
        for day, what, number in rows:
            noted.setdefault(day, {})[what] = number
        known = sorted((each for each in noted.items() if DAY in each[1]), key=lambda each: each[1][DAY])
        days: list[Day] = []
        events = 0
        for day, numbers in known:
            events = int(numbers.get(EVENTS, events))  # once it was noted only where it had grown
            days.append(Day(int(numbers[DAY]), day, events))
        return tuple(days)

    def size(self) -> Size:
        """Return how large the store is, and how much of that is in use."""
        pages, free, each = (
            self._all(f"PRAGMA {name}")[0][0] for name in ("page_count", "freelist_count", "page_size")
        )
        return Size(pages * each, (pages - free) * each)


class Stats(DayReader):
    """Everything that is only counted; an empty project means all."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self._db = db

    def row_counts(self) -> dict[str, int]:
        """Return how many rows each table has."""
        self._db.flush()
        with self._db.same_connection():  # a store that is closed meanwhile answers what was begun
            present = {name for (name,) in self._all("SELECT name FROM sqlite_master WHERE type = 'table'")}
            return {name: self._all(f"SELECT count(*) FROM {name}")[0][0] for name in TABLES if name in present}

    # -- models -------------------------------------------------------------------------------------------------
    @transaction
    def record_model_call(self, call: ModelCall) -> ModelCall:
        """Store a call of a model, new or changed (by number), and return it with its number."""
        sql = f"INSERT OR REPLACE INTO ledger ({_CALL}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0))"
        self._db.execute(sql, tuple(vars(call).values()))
        return call if call.number else replace(call, number=self._db.connection.last_insert_rowid())

    def model_calls(self, since: float = 0.0, limit: int = 20) -> tuple[ModelCall, ...]:
        """Return the calls of models from then on, newest first."""
        sql = f"SELECT {_CALL} FROM ledger WHERE at >= ? ORDER BY at DESC, number DESC LIMIT ?"
        return tuple(ModelCall(*row) for row in self._all(sql, (since, limit)))

    def model_tokens(self, since: float) -> int:
        """Return the tokens that models read and wrote from then on."""
        rows = self._all("SELECT ifnull(sum(tokens_in + tokens_out), 0) FROM ledger WHERE at >= ?", (since,))
        return int(rows[0][0])

    # -- days ---------------------------------------------------------------------------------------------------
    def add(self, counted: Mapping[tuple[str, str, str], float]) -> None:
        """Add to what is only counted, by (day, project, what); it may be written a moment later."""
        self._db.write_later(
            self._db.execute_many,
            """INSERT INTO tallies (day, project, what, number) VALUES (?, ?, ?, ?)
            ON CONFLICT (day, project, what) DO UPDATE SET number = number + excluded.number""",
            [(*key, number) for key, number in counted.items()],
        )

    def start_day(self, day: str) -> bool:
        """Note size and events as a local day begins; return whether that is new. The age of things depends on it."""
        return bool(self._beginning(day)) and self._db.write(self._start_day, day)

    def _start_day(self, day: str) -> bool:
        rows = self._beginning(day)
        sql = "INSERT OR REPLACE INTO tallies (day, project, what, number) VALUES (?, '', ?, ?)"
        self._db.execute_many(sql, rows)
        return bool(rows)

    def _beginning(self, day: str) -> Sequence[tuple[str, str, float]]:
        """Return what is to be noted of a day that begins; nothing where it is the one that goes on."""
        days = self.days()
        if days and days[-1].name == day:
            return []
        number = (days[-1].number if days else 0) + 1
        events = self._all("SELECT ifnull(max(number), 0) FROM events")[0][0]
        return [(day, DAY, number), (day, BYTES, self.size().total), (day, EVENTS, events)]

    # -- agents -------------------------------------------------------------------------------------------------
    def agents(self) -> tuple[AgentActivity, ...]:
        """Return what was seen of each agent that ever sent an event."""
        self._db.flush()
        # A session of an import has no event of an agent: no number.
        rows = self._all(
            """SELECT host, count(*), sum(events) FROM sessions WHERE newest > 0 AND host <> ''
            GROUP BY host ORDER BY host"""
        )
        with self._db.same_connection():
            return tuple(self._agent(*row) for row in rows)

    def _agent(self, host: str, sessions: int, events: int) -> AgentActivity:
        sql = "SELECT id FROM sessions WHERE host = ? AND newest > 0 ORDER BY last DESC, id LIMIT ?"
        latest = [id for (id,) in self._all(sql, (host, LATELY))]
        event = self._newest("at, name, session, project FROM events", latest, order="number")
        injection = self._newest("at, trigger, tokens FROM injections", latest, order="at", only="AND tokens > 0")
        return AgentActivity(host, sessions, events, *(event or (0.0, "", "", "")), *(injection or (0.0, "", 0)))

    def _newest(self, what: str, sessions: Sequence[str], *, order: str, only: str = "") -> tuple[Any, ...]:
        sql = f"SELECT {what} WHERE session = ? {only} ORDER BY {order} DESC LIMIT 1"
        rows = [tuple(row) for id in sessions for row in self._all(sql, (id,))]
        return max(rows, key=lambda row: row[0], default=())

    # -- a span of days -----------------------------------------------------------------------------------------
    def statistics(self, *, project: str, since: float, until: float, first: str, last: str) -> Statistics:
        """Return what was counted of a project, or of all, between two times and from day *first* to *last*."""
        self._db.flush()
        here, of_project = ("AND project = ?", (project,)) if project else ("", ())
        span = f"tokens > 0 AND at >= ? AND at < ? {here}"  # a silence that is kept to stay one cost nothing
        span_of = (since, until, *of_project)
        by_trigger = self._all(
            f"""SELECT {LOCAL.format("at")}, trigger, count(*), sum(tokens), sum(away) FROM injections
            WHERE {span} GROUP BY 1, 2 ORDER BY 1, 2""",
            span_of,
        )
        build: dict[str, list[float]] = {}
        by_day: dict[str, list[float]] = {}
        built = f"SELECT {LOCAL.format('at')}, trigger, build_ms FROM injections WHERE {span} ORDER BY build_ms"
        for day, trigger, took in self._all(built, span_of):
            build.setdefault(trigger, []).append(took)
            by_day.setdefault(day or "", []).append(took)
        ahead = self._all(f"SELECT count(*) FROM injections WHERE tokens > 0 AND at >= ? {here}", (until, *of_project))
        return Statistics(
            injections=tuple((day or "", trigger, n, tokens) for day, trigger, n, tokens, _ in by_trigger),
            build_ms=build,
            build_ms_by_day=by_day,
            away=sum(row[4] for row in by_trigger),
            items=self._items_of(span, span_of),
            tallies=self._rows(
                f"SELECT day, what, sum(number) FROM tallies WHERE day BETWEEN ? AND ? AND project <> '' {here} "
                "GROUP BY 1, 2 ORDER BY 1, 2",
                (first, last, *of_project),
            ),
            memories=self._by_kind(project, of_project),
            inactive=self._rows(
                f"""SELECT status, count(*) FROM memories
                INDEXED BY {"memories_aside" if project else "memories_newest"}
                WHERE status <> 'active' {_own(project)} GROUP BY 1 ORDER BY 1""",
                of_project,
            ),
            new=self._rows(
                f"""SELECT {LOCAL.format("created")}, kind, count(*) FROM memories {_active(project, span=True)}
                AND created >= ? AND created < ? GROUP BY 1, 2 ORDER BY 1, 2""",
                (*of_project, since, until),
            ),
            sessions=self._rows(
                f"SELECT host, count(*) FROM sessions WHERE last >= ? AND started < ? {here} GROUP BY 1 ORDER BY 1",
                span_of,
            ),
            model=self._rows(
                f"""SELECT {LOCAL.format("at")}, sum(outcome NOT LIKE 'refused%'), sum(outcome LIKE 'refused%'),
                sum(tokens_in), sum(tokens_out) FROM ledger WHERE at >= ? AND at < ? {_by_session(project)}
                GROUP BY 1 ORDER BY 1""",
                span_of,
            ),
            sizes=self._rows(
                f"""SELECT day, number FROM tallies WHERE day BETWEEN ? AND ? AND project = '' AND what = '{BYTES}'
                ORDER BY 1""",
                (first, last),
            ),
            arrived=self._arrived(first, last),
            ahead=ahead[0][0],
        )

    def _by_kind(self, project: str, of_project: Sequence[Any]) -> tuple[tuple[str, int], ...]:
        # In the order of the index nothing is sorted: 8 ms instead of 36 for 100,000.
        sums: Counter[str] = Counter()
        for _, kind, number in self._all(
            f"SELECT owner, kind, count(*) FROM memories {_active(project)} GROUP BY 1, 2", of_project
        ):
            sums[kind] += number
        return tuple(sorted(sums.items()))

    def _items_of(self, span: str, span_of: Sequence[Any]) -> tuple[Items, ...]:
        # Counted here: SQLite would sort all of them to group them, which takes five times as long.
        times = Counter(
            self._all(
                # Materialized: the day of an injection is worked out once, not for each of its items.
                f"""WITH j AS MATERIALIZED (SELECT id, {LOCAL.format("at")} AS day FROM injections WHERE {span})
                SELECT i.memory, i.layer, j.day, i.used FROM j JOIN injection_items i ON i.injection = j.id""",
                span_of,
            )
        )
        kinds = self._kinds_of({memory for memory, *_ in times})
        put: dict[tuple[str, str, str], list[int]] = {}
        for (memory, layer, day, used), number in times.items():
            sums = put.setdefault((kinds[memory], layer, day or ""), [0, 0, 0])
            sums[0] += number
            if used is not None:
                sums[1 if used else 2] += number
        return tuple(Items(*key, *numbers) for key, numbers in sorted(put.items()))

    def _arrived(self, first: str, last: str) -> tuple[tuple[str, int], ...]:
        """Return how many events came between one noted day and the next: their numbers only grow."""
        days = self.days()
        stood = [each.events for each in days]
        stood += self._all("SELECT ifnull(max(number), 0) FROM events")[0]
        came: Counter[str] = Counter()
        for day, (then, until) in zip(days, pairwise(stood), strict=True):
            came[day.name] += max(0, until - then)  # less where the last ones were forgotten
        return tuple(sorted((day, number) for day, number in came.items() if first <= day <= last))

    def _kinds_of(self, ids: Collection[str]) -> dict[str, str]:
        """Return the kind of each; of one that is gone, by its id."""
        kinds = {id: KIND_OF.get(id[:3], "unknown") for id in ids}
        for some in chunks(list(ids)):
            kinds.update(self._all(f"SELECT id, kind FROM memories WHERE id IN ({marks(some)})", some))
        return kinds

    def _rows(self, sql: str, parameters: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(tuple(row) for row in self._all(sql, parameters))


def _active(project: str, *, span: bool = False) -> str:
    """Return the clause for active memories, along an index that covers the query; of a *span* the one by time."""
    index = "memories_newest" if span and not project else "memories_recent"
    return f"INDEXED BY {index} WHERE status = 'active' {_own(project)}"


def _own(project: str) -> str:
    return "AND owner = (SELECT number FROM owners WHERE scope = 'project:' || ?)" if project else ""


def _by_session(project: str) -> str:
    return "AND session IN (SELECT id FROM sessions WHERE project = ?)" if project else ""
