"""A project, or all, and a span of days -> what was counted there. Counts alone: no text of anybody leaves here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from foreword.models import KINDS
from foreword.store.finding import bound, marks
from foreword.store.tallies import BYTES, LOCAL, TallyReader

AT_ONCE = 500  # parameters of one statement
KIND_OF = {prefix: kind for kind, prefix in KINDS.items()}


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
class Counted:
    """What happened in a span of days, as rows that were put together by the database."""

    injections: tuple[tuple[str, str, int, int], ...] = ()  # day, moment, how many, tokens
    # Moment -> each, the quickest first
    build_ms: Mapping[str, Sequence[float]] = field(default_factory=dict, hash=False)
    build_ms_by_day: Mapping[str, Sequence[float]] = field(default_factory=dict, hash=False)
    away: int = 0  # of the injections, those that a hook gave itself
    items: tuple[Items, ...] = ()
    tallies: tuple[tuple[str, str, float], ...] = ()  # day, what, how many
    memories: tuple[tuple[str, int], ...] = ()  # kind, how many there are
    aside: tuple[tuple[str, int], ...] = ()  # status, how many have it that are not active
    new: tuple[tuple[str, str, int], ...] = ()  # day, kind, how many are of that day
    sessions: tuple[tuple[str, int], ...] = ()  # host, how many were told of
    model: tuple[tuple[str, int, int, int, int], ...] = ()  # day, calls, refused ones, tokens in, tokens out
    sizes: tuple[tuple[str, float], ...] = ()  # day, bytes of the whole store as it began
    arrived: tuple[tuple[str, int], ...] = ()  # day, events of all projects that arrived; no row for what nobody noted
    ahead: int = 0  # injections from after the span: some clock was wrong


class StatisticsReader(TallyReader):
    """The questions about counts, of one read-only connection; an empty project means all."""

    def statistics(self, *, project: str, since: float, until: float, first: str, last: str) -> Counted:
        """Return what was counted of a project, or of all, between two times and from day *first* to *last*."""
        here, given = _of(project)
        span = f"tokens > 0 AND at >= ? AND at < ? {here}"  # a silence that is kept to stay one cost nothing
        asked = (since, until, *given)
        told = self._all(
            f"""SELECT {LOCAL.format("at")}, moment, count(*), sum(tokens), sum(away) FROM injections
            WHERE {span} GROUP BY 1, 2 ORDER BY 1, 2""",
            asked,
        )
        build: dict[str, list[float]] = {}
        by_day: dict[str, list[float]] = {}
        built = f"SELECT {LOCAL.format('at')}, moment, build_ms FROM injections WHERE {span} ORDER BY build_ms"
        for day, trigger, took in self._all(built, asked):
            build.setdefault(trigger, []).append(took)
            by_day.setdefault(day or "", []).append(took)
        ahead = self._all(f"SELECT count(*) FROM injections WHERE tokens > 0 AND at >= ? {here}", (until, *given))
        return Counted(
            injections=tuple((day or "", trigger, n, tokens) for day, trigger, n, tokens, _ in told),
            build_ms=build,
            build_ms_by_day=by_day,
            away=sum(row[4] for row in told),
            items=self._items_of(span, asked),
            tallies=self._rows(
                f"SELECT day, what, sum(number) FROM tallies WHERE day BETWEEN ? AND ? AND project <> '' {here} "
                "GROUP BY 1, 2 ORDER BY 1, 2",
                (first, last, *given),
            ),
            memories=self._by_kind(project, given),
            aside=self._rows(
                f"""SELECT status, count(*) FROM memories
                INDEXED BY {"memories_aside" if project else "memories_newest"}
                WHERE status <> 'active' {_own(project)} GROUP BY 1 ORDER BY 1""",
                given,
            ),
            new=self._rows(
                f"""SELECT {LOCAL.format("created")}, kind, count(*) FROM memories {_active(project, span=True)}
                AND created >= ? AND created < ? GROUP BY 1, 2 ORDER BY 1, 2""",
                (*given, since, until),
            ),
            sessions=self._rows(
                f"SELECT host, count(*) FROM sessions WHERE last >= ? AND started < ? {here} GROUP BY 1 ORDER BY 1",
                asked,
            ),
            model=self._rows(
                f"""SELECT {LOCAL.format("at")}, sum(outcome NOT LIKE 'refused%'), sum(outcome LIKE 'refused%'),
                sum(tokens_in), sum(tokens_out) FROM ledger WHERE at >= ? AND at < ? {_by_session(project)}
                GROUP BY 1 ORDER BY 1""",
                asked,
            ),
            sizes=self._rows(
                f"""SELECT day, number FROM tallies WHERE day BETWEEN ? AND ? AND project = '' AND what = '{BYTES}'
                ORDER BY 1""",
                (first, last),
            ),
            arrived=self._arrived(first, last),
            ahead=ahead[0][0],
        )

    def _by_kind(self, project: str, given: Sequence[Any]) -> tuple[tuple[str, int], ...]:
        # In the order of the index nothing is sorted: 8 ms instead of 36 for 100,000.
        sums: Counter[str] = Counter()
        for _, kind, number in self._all(
            f"SELECT owner, kind, count(*) FROM memories {_active(project)} GROUP BY 1, 2", given
        ):
            sums[kind] += number
        return tuple(sorted(sums.items()))

    def _items_of(self, span: str, asked: Sequence[Any]) -> tuple[Items, ...]:
        # Counted here: SQLite would sort all of them to group them, which takes five times as long.
        times = Counter(
            self._execute(
                # Materialized: the day of an injection is worked out once, not for each of its items.
                f"""WITH j AS MATERIALIZED (SELECT id, {LOCAL.format("at")} AS day FROM injections WHERE {span})
                SELECT i.memory, i.layer, j.day, i.used FROM j JOIN injection_items i ON i.injection = j.id""",
                bound(asked),
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
        """What came between the beginning of a day and that of the next one that was noted: numbers only grow."""
        days = self.days()
        stood = [each.events for each in days]
        stood += self._all("SELECT ifnull(max(number), 0) FROM events", ())[0]
        came: Counter[str] = Counter()
        for day, (then, until) in zip(days, pairwise(stood), strict=True):
            came[day.name] += max(0, until - then)  # less where the last ones were forgotten
        return tuple(sorted((day, number) for day, number in came.items() if first <= day <= last))

    def _kinds_of(self, ids: Collection[str]) -> dict[str, str]:
        """The kind of each; of one that is gone, its id tells it."""
        kinds = {id: KIND_OF.get(id[:3], "unknown") for id in ids}
        asked = list(ids)
        for start in range(0, len(asked), AT_ONCE):
            some = asked[start : start + AT_ONCE]
            kinds.update(self._all(f"SELECT id, kind FROM memories WHERE id IN ({marks(some)})", some))
        return kinds

    def _rows(self, sql: str, given: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(tuple(row) for row in self._all(sql, given))


def _of(project: str) -> tuple[str, tuple[str, ...]]:
    return ("AND project = ?", (project,)) if project else ("", ())


def _active(project: str, *, span: bool = False) -> str:
    """Those that may be shown, along an index that holds all that is asked of them; of a *span* no more than that."""
    index = "memories_newest" if span and not project else "memories_recent"
    return f"INDEXED BY {index} WHERE status = 'active' {_own(project)}"


def _own(project: str) -> str:
    return "AND owner = (SELECT number FROM owners WHERE scope = 'project:' || ?)" if project else ""


def _by_session(project: str) -> str:
    return "AND session IN (SELECT id FROM sessions WHERE project = ?)" if project else ""
