"""Keep the file small and clean: derive indexes anew, remove what is old, take out secrets, forget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import apsw

from foreword.errors import StoreError
from foreword.models import EMPTY, Memory
from foreword.store import pruning, scrub
from foreword.store.audit import Audit
from foreword.store.database import Database
from foreword.store.forgetting import Forgetter
from foreword.store.memories import Memories
from foreword.store.migrations import execute_all, schema_sql
from foreword.store.pruning import Batch, Limits, Plan, PruningReader
from foreword.store.scrub import Cleans, Scrubbed
from foreword.store.search import Search
from foreword.store.tombstones import Tombstones

# What is well again when the indexes were made anew: what was left for later may have met a missing table.
MENDED = ("tables", "index", "code", "sightings", "later")


class Maintenance:
    """What is done to the whole file."""

    def __init__(
        self, db: Database, *, memories: Memories, search: Search, audit: Audit, tombstones: Tombstones
    ) -> None:
        self._db, self._memories, self._search, self._audit = db, memories, search, audit
        self._tombstones = tombstones

    def reindex(self) -> int:
        """Create tables that are missing, derive all indexes anew from the memories, and return their number."""
        try:
            count = self._db.write(self._reindex)
        except StoreError as exc:
            self._db.trouble["index"] = f"the words index cannot be made anew: {exc}"
            raise
        for mended in MENDED:
            self._db.trouble.pop(mended, None)
        return count

    def _reindex(self) -> int:
        with suppress(apsw.SQLError):  # an index of an unknown format cannot even be dropped
            self._db.execute("UPDATE words_config SET v = 4 WHERE k = 'version'")
        for table in ("words", "code", "units"):
            self._db.execute(f"DROP TABLE IF EXISTS {table}")
        execute_all(self._db.connection, schema_sql())
        self._db.changed("memories")  # who holds which words may be another now
        return self._memories.rebuild()

    # -- age and size -------------------------------------------------------------------------------------------
    def plan_pruning(self, limits: Limits, *, now: float) -> Plan:
        """Return what would be removed, by age and by size; nothing is."""
        self._db.flush()
        with self._db.same_connection():
            return PruningReader(self._db).plan(limits, now=now)

    def prune(
        self,
        plan: Plan,
        part: int,
        *,
        after: Sequence[object],
        who: str,
        now: float,
        removed: Mapping[str, int] = EMPTY,
        noted: int = 0,
    ) -> Batch:
        """Remove the next rows of a part of the plan, a transaction at most, and log how many went.

        *removed* is what went before, by class, and *noted* its entry, 0 for none yet: a run has one entry.
        """
        self._search.check_index()
        keys, place = PruningReader(self._db).chosen(plan, part, after=after, now=now)
        if not keys:
            return Batch(0, 0, (), noted)
        return self._db.write(
            pruning.carry_out,
            self._db.query,
            self._audit,
            part,
            keys,
            after=place,
            who=who,
            now=now,
            removed_so_far=removed,
            noted=noted,
        )

    def vacuum(self) -> None:
        """Make the file as small as what it holds; nobody can write meanwhile."""
        with self._db.exclusive() as connection:
            pruning.give_back(connection.execute)

    # -- secrets and what was forgotten -------------------------------------------------------------------------
    def scrub(self, cleaner: Cleans, *, after: Sequence[object] = (), dry_run: bool = False) -> Scrubbed:
        """Clean the next rows, a transaction at most, and say what was found and where the next ones begin."""
        self._db.flush() if dry_run else self._db.let_go()
        with self._db.same_connection():
            planned = scrub.plan(self._db.query, after=after, cleaner=cleaner)
        if planned.changes and not dry_run:
            self._db.write(scrub.apply, self._db.query, planned)
        return planned.found

    def sweep(self) -> None:
        """Leave no byte of what was cleaned: indexes anew, free pages given back, the write-ahead log emptied."""
        self.reindex()
        with self._db.exclusive() as connection:
            scrub.sweep(connection)

    def was_forgotten(self, memories: Sequence[Memory]) -> bool:
        """Return whether one of these was forgotten, so that it must not be made automatically again."""
        return any(self._tombstones.refuses(memory, imported=False) for memory in memories)

    @property
    def forgetting(self) -> Forgetter:
        """Return what it takes to forget something, step by step. What was forgotten is never kept again."""
        self._db.flush()
        self._search.drop_vectors()
        return Forgetter(self._db, tombstones=self._tombstones, audit=self._audit)
