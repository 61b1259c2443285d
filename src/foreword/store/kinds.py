"""Kinds and statuses -> every memory of them, also what is put aside. The SQL of `review` and of what is learned."""

from __future__ import annotations

from collections.abc import Sequence

from foreword.models import Memory
from foreword.store.finding import FROM, MEMORY, marks, memory_of
from foreword.store.reading import Reader

MOST = 20_000  # more of one question are beyond any use


class KindReader(Reader):
    """The questions about kinds, of one read-only connection."""

    def proposed(self, *, limit: int = MOST) -> tuple[Memory, ...]:
        """Return what waits for the user's yes, in whatever scope, newest first."""
        rows = self._all(
            f"SELECT {MEMORY} {FROM} WHERE m.status = 'proposed' ORDER BY m.created DESC, m.id LIMIT ?", (limit,)
        )
        return tuple(map(memory_of, rows))

    def of_kinds(
        self, kinds: Sequence[str], *, scopes: Sequence[str] = (), statuses: Sequence[str] = (), limit: int = MOST
    ) -> tuple[Memory, ...]:
        """Return the memories of these kinds, newest first; of all scopes if none, and of any status if none."""
        owners = self._owners(scopes) if scopes else self._all("SELECT number, scope FROM owners ORDER BY number", ())
        aside = [status for status in statuses if status != "active"]
        conditions: dict[str, tuple[str, ...]] = {}
        if not statuses or "active" in statuses:
            conditions["m.status = 'active'"] = ()
        if aside or not statuses:
            # The first condition lets the partial index be used; SQLite does not see that it follows.
            only = f"AND m.status IN ({marks(aside)})" if aside else "AND m.status <> 'forgotten'"
            conditions[f"m.status <> 'active' {only}"] = tuple(aside)
        rows = [
            row
            for owner, _ in owners
            for kind in kinds
            for condition, given in conditions.items()
            for row in self._all(
                f"""SELECT {MEMORY} {FROM} WHERE m.owner = ? AND m.kind = ? AND {condition}
                ORDER BY m.created DESC LIMIT ?""",
                (owner, kind, *given, limit),
            )
        ]
        found = sorted(map(memory_of, rows), key=lambda memory: (memory.created, memory.id), reverse=True)
        return tuple(found[:limit])

    def how_many(self, kind: str, *, scopes: Sequence[str] = ()) -> int:
        """Return how many active memories there are of a kind; of all scopes if none."""
        owners = self._owners(scopes) if scopes else self._all("SELECT number, scope FROM owners", ())
        sql = "SELECT count(*) FROM memories m WHERE m.owner = ? AND m.kind = ? AND m.status = 'active'"
        return sum(self._all(sql, (owner, kind))[0][0] for owner, _ in owners)
