"""Keep memories and what they came from in one SQLite file: a repository for each group of tables.

`Store` is what a worker opens. `StoreReader` reads the same tables through a connection of the standard library, for
a hook without a worker; so nothing that it needs imports apsw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from foreword.errors import BadRequest, StoreError
from foreword.models import Change, Link, Memory, Session
from foreword.store.injections import Injections
from foreword.store.memories import Memories
from foreword.store.projects import Projects
from foreword.store.search import Search
from foreword.store.sql import SCHEMA, ReadOnly, transaction

if TYPE_CHECKING:
    from foreword.store.forget import Forgetter

__all__ = ["SCHEMA", "Store", "StoreReader"]


class Store:
    """One SQLite file. Open it in one process only; other processes ask that one."""

    def __init__(self, path: Path, *, backups: Path) -> None:
        # A hook without a worker has no apsw, and no time for what it never reads.
        from foreword.store.audit import Audit
        from foreword.store.browsing import Browsing
        from foreword.store.database import Database
        from foreword.store.forget import Tombstones
        from foreword.store.maintenance import Maintenance
        from foreword.store.sessions import Events, Sessions
        from foreword.store.stats import Stats

        self.database = self._db = Database(path, backups=backups)
        self.tombstones = Tombstones(self.database.query)
        self.memories = Memories(self)
        self.search = Search(self)
        self.events = Events(self)
        self.sessions = Sessions(self)
        self.injections = Injections(self)
        self.audit = Audit(self)
        self.projects = Projects(self)
        self.stats = Stats(self)
        self.browsing = Browsing(self)
        self.maintenance = Maintenance(self)

    @transaction
    def save(
        self,
        session: Session | None = None,
        *,
        upto: int = 0,
        memories: Sequence[Memory] = (),
        links: Sequence[Link] = (),
        changes: Sequence[Change] = (),
        imported: bool = False,
    ) -> tuple[Memory, ...]:
        """Store what was extracted from a session's events up to number *upto*, or read by an import, all or nothing.

        A session that no event came from becomes known; ends of links may be uids. Of an import, ids that are free are
        kept, `superseded_by` may be a uid of anything known by then, and the memories are returned oldest first.
        """
        if imported:
            whole = (memory for memory in memories if not self.tombstones.is_cut(memory))
            memories = sorted(whole, key=lambda memory: memory.created)
        kept = self.memories.put(memories, links=links, imported=imported)
        self.sessions.put_changes(changes)
        if session:
            self.sessions.put(session, upto=upto)
        if session and imported and 0 < session.newest <= session.extracted:  # numbers are each store's own
            sql = "UPDATE sessions SET extracted = newest WHERE id = ? AND events <= ?"
            self.database.execute(sql, (session.id, session.events))
        return kept

    def full_id(self, prefix: str) -> str:
        """Return the memory or injection called *prefix*, or the only one that begins so; without one, *prefix*."""
        self.database.flush()
        table = "injections" if prefix.lower().startswith("inj") else "memories"
        sql = f"SELECT id FROM {table} WHERE id = ? OR id >= ? AND id < ? ORDER BY lower(id) LIMIT 5"
        start = prefix.lower()
        ids = [id for (id,) in self.database.query(sql, (prefix, start, start + chr(0x10FFFF)))] if start else []
        if exact := [id for id in (prefix, start) if id in ids]:
            return exact[0]
        if len(ids) > 1:
            raise BadRequest(f"several ids begin with {prefix!r}", hint=f"one of {', '.join(ids)}")
        return ids[0] if ids else prefix

    def checkpoint(self, name: str) -> str:
        """Return how far something had come that may be interrupted; empty for never."""
        rows = self.database.query("SELECT text FROM checkpoints WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else ""

    @transaction
    def set_checkpoint(self, name: str, text: str, *, at: float) -> None:
        """Note how far something has come that may be interrupted; nothing where it is done."""
        self.database.execute("DELETE FROM checkpoints WHERE name = ?", (name,))
        if text:
            self.database.execute("INSERT INTO checkpoints VALUES (?, ?, ?)", (name, text, at))

    @property
    def forgetter(self) -> Forgetter:
        """Return what it takes to forget something, step by step. What was forgotten is never stored again."""
        from foreword.store.forget import Forgetter

        self.database.flush()
        return Forgetter(self.database.query, self.tombstones)

    def close(self) -> None:
        """Finish what is being written, and close the file."""
        self.database.close()


class StoreReader:
    """What a hook without a worker reads, through any connection's *execute*; *failures* are what that raises."""

    def __init__(self, execute: Callable[..., Iterable[Any]], *, failures: tuple[type[Exception], ...]) -> None:
        self.database = ReadOnly(execute, failures=failures)
        reading = cast("Store", self)  # its repositories only read
        self.memories, self.search = Memories(reading), Search(reading)
        self.injections, self.projects = Injections(reading), Projects(reading)

    def schema(self) -> int:
        """Return the version of the database, which may be older or newer than SCHEMA."""
        try:
            return int(self.database.query("PRAGMA user_version")[0][0])
        except IndexError as exc:
            raise StoreError("the database has no version") from exc
