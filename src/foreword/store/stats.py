"""Counts, what models cost, the size of the store, and what was seen of each agent. No text leaves here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from foreword.models import KINDS, TRIGGERS, ModelCall
from foreword.store.sql import Repository, transaction

KIND_OF = {prefix: kind for kind, prefix in KINDS.items()}
LATELY = 20  # sessions of an agent whose injections are read: a walk through all of them takes seconds at a million
_CALL = "at, provider, model, purpose, session, tokens_in, tokens_out, ms, outcome, number"
_DAYS = "FROM tallies WHERE project = '' AND what = 'day'"  # their numbers tell the order in which they came


class Size(NamedTuple):
    """Bytes of a store: all of its file, and those of them that hold something."""

    total: int
    used: int


class Stats(Repository):
    """Counts for `stats` and `status`; an empty project means all projects."""

    def row_counts(self) -> dict[str, int]:
        """Return how many rows each table has."""
        self._db.flush()
        with self._db.same_connection():  # a store that is closed meanwhile answers what was begun
            tables = self._all("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
            own = [name for (name,) in tables if not name.startswith(("words", "sqlite_"))]
            return {name: self._all(f"SELECT count(*) FROM {name}")[0][0] for name in own}

    def size(self) -> Size:
        """Return how large the store is, and how much of that is in use."""
        pages, free, each = (
            self._all(f"PRAGMA {name}")[0][0] for name in ("page_count", "freelist_count", "page_size")
        )
        return Size(pages * each, (pages - free) * each)

    # -- models -------------------------------------------------------------------------------------------------
    @transaction
    def record_model_call(self, call: ModelCall) -> ModelCall:
        """Store a call of a model, new or changed (by number), and return it with its number."""
        sql = f"INSERT OR REPLACE INTO model_calls ({_CALL}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0))"
        self._db.execute(sql, call)
        return call if call.number else call._replace(number=self._db.connection.last_insert_rowid())

    def model_tokens(self, since: float) -> int:
        """Return the tokens that models read and wrote from then on."""
        rows = self._all("SELECT ifnull(sum(tokens_in + tokens_out), 0) FROM model_calls WHERE at >= ?", (since,))
        return int(rows[0][0])

    # -- days ---------------------------------------------------------------------------------------------------
    def days(self) -> tuple[str, ...]:
        """Return the local days on which a worker ran, such as 2026-11-16, in the order in which they came."""
        return tuple(day for (day,) in self._all(f"SELECT day {_DAYS} ORDER BY number"))

    @transaction
    def start_day(self, day: str) -> None:
        """Note that a local day began: pruning trusts the clock by the days that it has seen."""
        if self.days()[-1:] != (day,):
            sql = f"INSERT OR REPLACE INTO tallies SELECT ?, '', 'day', ifnull(max(number), 0) + 1 {_DAYS}"
            self._db.execute(sql, (day,))

    # -- agents -------------------------------------------------------------------------------------------------
    def agents(self) -> dict[str, dict[str, Any]]:
        """Return the last event and injection of each agent that ever sent an event, by its name."""
        self._db.flush()
        # A session of an import has no event of an agent: no number.
        latest = "SELECT id FROM sessions WHERE host = ? AND newest > 0 ORDER BY last DESC, id LIMIT"
        event = f"SELECT max(at) AS at, name FROM events WHERE session = ({latest} 1)"
        injection = f"""SELECT max(at) AS at, trigger, tokens FROM injections
            WHERE tokens > 0 AND session IN ({latest} {LATELY})"""
        counts = "SELECT host, count(*) FROM sessions WHERE newest > 0 AND host <> '' GROUP BY host ORDER BY host"
        return {
            host: {
                "last_event": self._last(("at", "name"), event, host),
                "last_injection": self._last(("at", "trigger", "tokens"), injection, host),
                "sessions": sessions,
            }
            for host, sessions in self._all(counts)
        }

    def _last(self, columns: Sequence[str], sql: str, host: str) -> dict[str, Any] | None:
        """Return the row of the last time; None where there is none."""
        ((at, *more),) = self._all(sql, (host,))
        return None if at is None else dict(zip(columns, (at, *more), strict=True))

    # -- what was given, and what became of it ------------------------------------------------------------------
    def figures(self, *, project: str, since: float, until: float) -> dict[str, Any]:
        """Return what was injected between two times, what became of it and what it cost; null where there is no data.

        Memories and bytes are those of now; the bytes are of all projects.
        """
        self._db.flush()
        span = f"at >= ? AND at < ? {'AND project = ?' if project else ''}"
        values = (since, until, *[project] * bool(project))
        rows = self._all(f"SELECT trigger, tokens, build_ms, away FROM injections WHERE tokens > 0 AND {span}", values)
        tokens = sum(row[1] for row in rows)
        times: dict[str, list[float]] = {}
        for trigger, _, build_ms, _ in rows:
            times.setdefault(trigger, []).append(build_ms)
        items = self._all(
            f"""SELECT substr(memory, 1, 3), count(*), ifnull(sum(used = 1), 0), ifnull(sum(used = 0), 0)
            FROM injection_items WHERE injection IN (SELECT id FROM injections WHERE tokens > 0 AND {span})
            GROUP BY 1""",
            values,
        )
        by_kind = {KIND_OF.get(prefix, "unknown"): numbers for prefix, *numbers in items}
        every = [sum(column) for column in zip(*by_kind.values(), strict=True)] or [0, 0, 0]
        no_context: dict[str, dict[str, int]] = {}
        reasons = f"SELECT trigger, why, count(*) FROM injections WHERE why <> '' AND {span}"
        for trigger, why, number in self._all(f"{reasons} GROUP BY 1, 2 ORDER BY 3 DESC, 2", values):
            no_context.setdefault(trigger, {})[why] = number
        memories = self._active_by_kind(project)
        return {
            "injections": {
                "total": len(rows),
                "away": sum(row[3] for row in rows),
                "by_trigger": {name: len(each) for name, each in _ordered(times, TRIGGERS).items()},
            },
            "tokens": {
                "given": tokens,
                "per_injection": round(tokens / len(rows), 1) if rows else None,
                "per_used_item": round(tokens / every[1], 1) if every[1] else None,
            },
            "items": {**_usage(*every), "by_kind": {kind: _usage(*by_kind[kind]) for kind in KINDS if kind in by_kind}},
            "no_context": _ordered(no_context, TRIGGERS),
            "build_ms": {trigger: _percentiles(each) for trigger, each in _ordered(times, TRIGGERS).items()},
            "memories": {"total": memories.total(), "by_kind": _ordered(memories, tuple(KINDS))},
            "store": {"bytes": self.size().total},
        }

    def _active_by_kind(self, project: str) -> Counter[str]:
        # In the order of the index nothing is sorted: 8 ms instead of 36 for 100,000.
        own = "AND owner = (SELECT number FROM owners WHERE scope = 'project:' || ?)" if project else ""
        sql = f"""SELECT owner, kind, count(*) FROM memories INDEXED BY memories_recent
            WHERE status = 'active' {own} GROUP BY 1, 2"""
        sums: Counter[str] = Counter()
        for _, kind, number in self._all(sql, (project,) if project else ()):
            sums[kind] += number
        return sums


def _ordered(named: dict[str, Any], order: Sequence[str]) -> dict[str, Any]:
    return {name: named[name] for name in (*order, *sorted(set(named) - set(order))) if name in named}


def _usage(shown: int, used: int, ignored: int) -> dict[str, Any]:
    rate = round(used / (used + ignored), 4) if used + ignored else None
    return {"shown": shown, "used": used, "ignored": ignored, "unjudged": shown - used - ignored, "hit_rate": rate}


def _percentiles(build_ms: list[float]) -> dict[str, float]:
    times = sorted(build_ms)
    median, p95 = times[(len(times) - 1) // 2], times[-(-95 * len(times) // 100) - 1]
    return {"count": len(times), "median": round(median, 3), "p95": round(p95, 3), "max": round(times[-1], 3)}
