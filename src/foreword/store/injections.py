"""The answers to triggers: what was injected and whether it was used, or why nothing was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from foreword.encoding import dumps, loads
from foreword.models import Injection, Item, UsageVerdict
from foreword.store.sql import EACH, IN_WINDOW, WINDOW, Repository, transaction, where

# Layers that mention a memory in a line: it was not shown in full there.
_MENTIONS = "'standing', 'sessions', 'failures', 'commands', 'changes', 'files'"
# Fields of the dataclasses are columns of the same names; items and text have tables of their own.
_FIELDS = tuple(each.name for each in fields(Injection) if each.name not in ("items", "text"))
_JSON = ("layers", "skipped", "terms", "files")
_INJECTION = ", ".join(f"j.{name}" for name in _FIELDS)


class Injections(Repository):
    """All injections with the usage of their items; those without tokens say why nothing was injected."""

    def _all(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        self._db.flush()  # injections are written a moment after they were given
        return super()._all(sql, parameters)

    def first_start(self, session: str, *, project: str, form: str) -> Injection | None:
        """Return what the session's present context window began with, as far as the agent was told, with its text."""
        where = f"j.session = ?1 AND {IN_WINDOW} AND j.trigger = 'session_start' AND (j.tokens > 0 OR j.away)"
        rest = f"WHERE {where} AND j.project = ?2 AND j.form = ?3 ORDER BY j.at, j.id LIMIT 1"
        return next(iter(self._injections(rest, (session, project, form))), None)

    def shown(self, session: str) -> frozenset[str]:
        """Return the ids of the memories in the session's present context window, shown in full or made there."""
        rows = self._all(
            # What a compaction got went to the summariser, and is not in the window; what the session itself came
            # to since the window began was said there.
            f"""SELECT i.memory FROM injections j JOIN injection_items i ON i.injection = j.id
            WHERE j.session = ?1 AND {IN_WINDOW} AND j.trigger <> 'compaction' AND i.layer NOT IN ({_MENTIONS})
            UNION SELECT id FROM memories WHERE session = ?1 AND session <> '' AND created >= {WINDOW}
            UNION SELECT m.id FROM sightings s CROSS JOIN memories m ON m.id = s.memory
            WHERE s.session = ?1 AND m.created >= {WINDOW}""",
            (session,),
        )
        return frozenset(memory for (memory,) in rows)

    def last_start_at(self, session: str) -> float:
        """Return when the session's present context window was last given a start block; 0 for never."""
        where = f"j.session = ?1 AND j.trigger = 'session_start' AND j.tokens > 0 AND {IN_WINDOW}"
        rows = self._all(f"SELECT max(j.at) FROM injections j WHERE {where}", (session,))
        return float(rows[0][0] or 0.0)

    def window_tokens(self, session: str) -> dict[str, int]:
        """Return the tokens that the session's present context window was given, by trigger."""
        rows = self._all(
            f"""SELECT j.trigger, sum(j.tokens) FROM injections j WHERE j.session = ?1 AND {IN_WINDOW}
            GROUP BY j.trigger HAVING sum(j.tokens) > 0""",
            (session,),
        )
        return dict(rows)

    def _injections(self, rest: str, parameters: Sequence[Any], *, with_texts: bool = True) -> tuple[Injection, ...]:
        text = "coalesce((SELECT text FROM injection_texts WHERE injection = j.id), '')" if with_texts else "''"
        self._db.flush()
        with self._db.same_connection():
            rows = self._all(f"SELECT {_INJECTION}, {text} FROM injections j {rest}", parameters)
            return tuple(self._injection(dict(zip((*_FIELDS, "text"), row, strict=True))) for row in rows)

    def _injection(self, values: dict[str, Any]) -> Injection:
        values |= {name: loads(values[name]) for name in _JSON} | {"away": bool(values["away"])}
        values |= {name: tuple(values[name]) for name in ("terms", "files")}
        columns = "memory, layer, score, tokens, why, used, how"
        sql = f"SELECT {columns} FROM injection_items WHERE injection = ? ORDER BY number"
        rows = (dict(zip(columns.split(", "), row, strict=True)) for row in self._all(sql, (values["id"],)))
        items: Iterable[Any] = (
            {**row, "why": loads(row["why"]), "used": None if row["used"] is None else row["used"] == 1} for row in rows
        )
        return Injection(**values, items=tuple(Item(**each) for each in items))

    def list(
        self,
        *,
        session: str = "",
        project: str = "",
        memory: str = "",
        limit: int = 20,
        texts: bool = False,
        empty: bool = False,
    ) -> tuple[Injection, ...]:
        """Return injections, newest first, without their texts unless asked; or the *empty* ones."""
        of_memory = "j.id IN (SELECT injection FROM injection_items WHERE memory = ?)"
        conditions = {"j.session = ?": session, "j.project = ?": project, of_memory: memory}
        clause, parameters = where(conditions, "j.why <> ''" if empty else "j.tokens > 0")
        return self._injections(f"{clause} ORDER BY j.at DESC, j.id LIMIT ?", (*parameters, limit), with_texts=texts)

    def get(self, id: str) -> Injection | None:
        """Return one injection with its text, also one that says why there is none."""
        return next(iter(self._injections("WHERE j.id = ?", (id,))), None)

    def record(self, injection: Injection, *, at_once: bool = False) -> None:
        """Store an injection, a moment later unless *at_once*; of one id, what a hook said itself is kept."""
        if at_once:
            self._db.write(self._record, injection)
        else:
            self._db.write_later(self._record, injection)

    # -- usage --------------------------------------------------------------------------------------------------
    @transaction
    def record_usage(self, verdicts: Sequence[UsageVerdict]) -> int:
        """Store whether items were used, and move their memories' counts by the difference; return how many changed.

        What was used stays used, and saying the same again changes nothing.
        """
        return sum(map(self._record_verdict, verdicts))

    def undecided(self, session: str, *, limit: int = 500) -> tuple[Injection, ...]:
        """Return what a session was given and is not known to have used, with its texts, oldest first.

        Of windows that are closed, only what has no verdict yet.
        """
        # What is still before the agent's eyes may be used after it was thought to be over.
        newest = self._injections(
            f"""WHERE j.session = ?1 AND j.session <> '' AND EXISTS (SELECT 1 FROM injection_items i
            WHERE i.injection = j.id AND i.used IS NOT 1 AND ((i.used IS NULL AND i.how = '') OR {IN_WINDOW}))
            ORDER BY j.at DESC, j.id LIMIT ?2""",
            (session, limit),
        )
        return newest[::-1]

    def sessions_using(self, memories: Sequence[str]) -> dict[str, frozenset[str]]:
        """Return the sessions that used each of these memories; those that nobody used are left out."""
        found: dict[str, frozenset[str]] = {}
        sql = f"""SELECT DISTINCT i.memory, j.session FROM injection_items i JOIN injections j ON j.id = i.injection
            WHERE i.used = 1 AND j.session <> '' AND i.memory IN {EACH}"""
        for memory, session in self._all(sql, (dumps(memories),)):
            found[memory] = found.get(memory, frozenset()) | {session}
        return found

    def usage(self, *, session: str = "", memory: str = "") -> dict[str, int]:
        """Count the items that a session was given, or of a memory: shown, used, for nothing, and different memories.

        Of a session also the tokens.
        """
        clause, parameters = where({"j.session = ?": session, "i.memory = ?": memory})
        (counts,) = self._all(
            f"""SELECT count(*), ifnull(sum(i.used = 1), 0), ifnull(sum(i.used = 0), 0), count(DISTINCT i.memory)
            FROM injections j JOIN injection_items i ON i.injection = j.id {clause}""",
            parameters,
        )
        usage = dict(zip(("shown", "used", "ignored", "memories"), counts, strict=True))
        if session:
            tokens = "SELECT ifnull(sum(tokens), 0) FROM injections WHERE session = ?"
            usage["tokens"] = self._all(tokens, (session,))[0][0]
        return usage

    # -- inside a change ----------------------------------------------------------------------------------------
    def _record(self, injection: Injection) -> None:
        if self._store.tombstones.refuses_part(injection.session, at=injection.at):
            return
        # A worker that was late may answer a hook which has long answered by itself: what the hook says was seen.
        known = self._db.execute("SELECT away FROM injections WHERE id = ?", (injection.id,)).fetchone()
        if known and not injection.away and (known[0] or not injection.tokens):
            return
        self._db.execute("DELETE FROM injection_items WHERE injection = ?", (injection.id,))
        row = {name: getattr(injection, name) for name in _FIELDS}
        row |= {name: dumps(row[name]) for name in _JSON}
        sql = f"INSERT OR REPLACE INTO injections ({', '.join(row)}) VALUES (:{', :'.join(row)})"
        self._db.execute(sql, row)
        if injection.text:
            self._db.execute("INSERT OR REPLACE INTO injection_texts VALUES (?, ?)", (injection.id, injection.text))
        self._db.execute_many(
            """INSERT OR REPLACE INTO injection_items (injection, number, memory, layer, score, tokens, why)
            VALUES (?, ?, ?, ?, ?, ?, ?)""",
            [
                (injection.id, number, item.memory, item.layer, item.score, item.tokens, dumps(item.why))
                for number, item in enumerate(injection.items)
            ],
        )

    def _record_verdict(self, verdict: UsageVerdict) -> int:
        items = self._all(
            """SELECT number, used, how FROM injection_items WHERE injection = ?1 AND memory = ?2 AND used IS NOT 1
            AND ?3 IN ('', layer)""",
            (verdict.injection, verdict.memory, verdict.layer),
        )
        after = None if verdict.used is None else int(verdict.used)
        changed = [(number, before) for number, before, how in items if (before, how) != (after, verdict.how)]
        for number, before in changed:
            sql = "UPDATE injection_items SET used = ?, how = ? WHERE injection = ? AND number = ?"
            self._db.execute(sql, (after, verdict.how, verdict.injection, number))
            used, ignored = ((after == what) - (before == what) for what in (1, 0))
            sql = "UPDATE memories SET used = max(0, used + ?), ignored = max(0, ignored + ?) WHERE id = ?"
            self._db.execute(sql, (used, ignored, verdict.memory))
        return len(changed)
