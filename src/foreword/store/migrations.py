"""Create a database from `schema.sql`, or bring an older one up to it: backup first, each step whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import apsw

from foreword.errors import NewerStore, StoreError
from foreword.store.sql import SCHEMA

OLDEST = 8  # the first version whose databases are taken over; nothing was released before


@dataclass(frozen=True)
class Migration:
    """A step: the version it leads to, its SQL, and the tables that may lose rows, columns or values by it."""

    version: int
    sql: str
    may_change: tuple[str, ...] = ()


# One for each version after OLDEST, in order; the last leads to SCHEMA. A step that was released is never edited.
MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        9,
        """ALTER TABLE injections RENAME COLUMN moment TO trigger;
        DROP INDEX IF EXISTS silences_session;
        DROP INDEX IF EXISTS silences_recent;
        ALTER TABLE silences RENAME TO no_context;
        ALTER TABLE no_context RENAME COLUMN moment TO trigger;
        CREATE INDEX no_context_session ON no_context (session, at);
        CREATE INDEX no_context_recent ON no_context (project, at DESC);
        DROP TABLE IF EXISTS moved;""",
        may_change=("injections", "silences", "moved"),
    ),
    Migration(
        10,
        """ALTER TABLE sessions RENAME COLUMN distilled TO extracted;
        ALTER TABLE marks RENAME TO checkpoints;
        ALTER TABLE ledger RENAME TO model_calls;
        DROP INDEX ledger_at;
        CREATE INDEX model_calls_at ON model_calls (at);
        ALTER TABLE injections ADD COLUMN why TEXT NOT NULL DEFAULT '';
        ALTER TABLE injections ADD COLUMN nearest TEXT NOT NULL DEFAULT '';
        ALTER TABLE injections ADD COLUMN score REAL NOT NULL DEFAULT 0;
        ALTER TABLE injections ADD COLUMN needed REAL NOT NULL DEFAULT 0;
        ALTER TABLE injections ADD COLUMN spent INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE injections ADD COLUMN allowed INTEGER NOT NULL DEFAULT 0;
        INSERT OR REPLACE INTO injections (id, trigger, source, session, project, host, at, why, budget, build_ms,
          nearest, score, needed, spent, allowed, away, tokens, layers, skipped)
        SELECT id, trigger, source, session, project, host, at, iif(why = 'unclear', 'nothing', why), budget, build_ms,
          nearest, score, needed, spent, allowed, away, 0, '{}', '{}' FROM no_context;
        DROP TABLE no_context;""",
        may_change=("sessions", "marks", "ledger", "injections", "no_context"),
    ),
    Migration(
        11,
        """DROP INDEX IF EXISTS memories_proposed;
        UPDATE memories SET status = 'discarded' WHERE status = 'proposed';
        UPDATE log SET patch = replace(replace(replace(patch, '"status":["proposed",', '"status":["discarded",'),
          '"status":["active","proposed"]', '"status":["active","discarded"]'),
          '"status":["discarded","proposed"]', '"status":["discarded","discarded"]')
        WHERE patch LIKE '%"status":[%"proposed"%';""",
        may_change=("memories", "log"),
    ),
)


def migrate(db: apsw.Connection, *, backups: Path, keep: int = 5, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Bring *db* to the newest version and return the number of steps; a step that fails leaves what was there."""
    present = check_version(db, migrations=migrations)
    if not present:
        with db:
            execute_all(db, schema_sql())
            db.pragma("user_version", SCHEMA)
        present = SCHEMA
    if present < (migrations[-1].version if migrations else SCHEMA):
        _back_up(db, backups / f"memory-schema-{present}.db", keep=keep)
    return upgrade(db, migrations=migrations)


def upgrade(db: apsw.Connection, *, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Apply the steps that *db* lacks, without a backup, and return how many they were."""
    present = int(db.pragma("user_version"))
    waiting = [step for step in migrations if step.version > present]
    for step in waiting:
        _apply(db, step)
    return len(waiting)


def check_version(db: apsw.Connection, *, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Return the version of *db*, 0 if it is empty; raise StoreError if it cannot be brought to the newest."""
    present = int(db.pragma("user_version"))
    newest = migrations[-1].version if migrations else SCHEMA
    if present > newest:
        raise NewerStore(
            f"the database has schema {present}, and this Foreword knows {newest}",
            hint="upgrade Foreword, or set FOREWORD_HOME to another folder",
        )
    if 0 < present < OLDEST:
        raise StoreError(
            f"the database has schema {present}, and this Foreword takes over {OLDEST} and later",
            hint="run `foreword export --all --events FILE` with the version that wrote it, move the database away, "
            "then run `foreword import jsonl FILE`",
        )
    if not present and db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise StoreError(
            "the database has tables, but no schema version of Foreword",
            hint="move it away, or set FOREWORD_HOME to another folder",
        )
    return present


def schema_sql() -> str:
    return resources.files("foreword.store").joinpath("schema.sql").read_text(encoding="utf-8")


def execute_all(db: apsw.Connection, sql: str) -> None:
    """Run every statement of *sql*; apsw stops at the first that returns a row, unless all are read."""
    for _ in db.execute(sql):
        pass


def _apply(db: apsw.Connection, step: Migration) -> None:
    """Take a step, all or nothing; tables that it does not name must keep their rows, in the columns they had."""
    try:
        db.execute("BEGIN IMMEDIATE")
        before = {table: columns for table, columns in tables(db).items() if table not in step.may_change}
        content = {table: _content(db, table, columns) for table, columns in before.items()}
        execute_all(db, step.sql)
        db.pragma("user_version", step.version)
        after = tables(db)
        changed = [
            table
            for table, columns in before.items()
            if not set(columns) <= set(after.get(table, ())) or _content(db, table, columns) != content[table]
        ]
        db.execute("ROLLBACK" if changed else "COMMIT")
    except apsw.Error as exc:
        if db.in_transaction:  # SQLite itself rolls back when the disk is full
            db.execute("ROLLBACK")
        raise StoreError(
            f"migration {step.version} failed and was undone: {exc}",
            hint="your memory is as it was; free some disk space or run `foreword doctor`",
        ) from exc
    if changed:
        raise StoreError(
            f"migration {step.version} changed {', '.join(changed)}, which it must not; it was undone",
            hint="your memory is as it was; please report this, a copy lies in the backups folder",
        )


def tables(db: apsw.Connection) -> dict[str, tuple[str, ...]]:
    """Return the columns of all tables but those of the words index, which can be rebuilt, and SQLite's own."""
    rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    names = [name for (name,) in rows if not name.startswith(("sqlite_", "words"))]
    return {name: tuple(row[1] for row in db.execute(f'PRAGMA table_info("{name}")')) for name in names}


def _content(db: apsw.Connection, table: str, columns: Sequence[str]) -> tuple[int, int]:
    """Return how many rows a table has, and a hash of them in any order."""
    rows = total = 0
    listed = ", ".join(f'"{column}"' for column in columns)
    for row in db.execute(f'SELECT {listed} FROM "{table}"'):
        rows += 1
        total += int.from_bytes(hashlib.blake2b(repr(row).encode(), digest_size=16).digest())
    return rows, total


def _back_up(db: apsw.Connection, path: Path, *, keep: int) -> None:
    """Copy *db* to *path*, which gets its name when it is whole, and remove the oldest copies beyond *keep*."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    unfinished.unlink(missing_ok=True)
    db.execute("VACUUM INTO ?", (str(unfinished),))
    unfinished.chmod(0o600)
    unfinished.replace(path)
    old = sorted(path.parent.glob("memory-schema-*.db"), key=lambda file: file.stat().st_mtime)
    for file in old[:-keep]:
        file.unlink()
