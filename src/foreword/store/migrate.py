"""An old database -> the present schema: numbered steps, each atomic, a backup before, counts compared after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import apsw

from foreword.errors import NewerStore, StoreError


@dataclass(frozen=True)
class Step:
    """One migration: the schema it leads to, its SQL, and the tables whose count it may change."""

    number: int
    sql: str
    may_change: tuple[str, ...] = ()


def steps() -> tuple[Step, ...]:
    """The migrations that come with the package, in order. A first line `-- may change: a, b` names tables."""
    found = []
    for file in resources.files("foreword.store").joinpath("migrations").iterdir():
        if file.name.endswith(".sql"):
            sql = file.read_text(encoding="utf-8")
            head = sql.partition("\n")[0]
            named = head.removeprefix("-- may change:") if head.startswith("-- may change:") else ""
            may_change = tuple(name.strip() for name in named.split(",") if name.strip())
            found.append(Step(number=int(file.name[:4]), sql=sql, may_change=may_change))
    return tuple(sorted(found, key=lambda step: step.number))


def migrate(db: apsw.Connection, *, todo: Sequence[Step], backups: Path, keep: int = 5) -> int:
    """Bring *db* to the last of *todo*, and return how many steps that took; a failed step leaves its own start."""
    present = known_schema(db, todo=todo)
    waiting = [step for step in todo if step.number > present]
    if waiting and present:
        _back_up(db, backups / f"memory-schema-{present}.db", keep=keep)
    for step in waiting:
        _take(db, step)
    return len(waiting)


def known_schema(db: apsw.Connection, *, todo: Sequence[Step]) -> int:
    """The schema that *db* has; one that the last of *todo* does not reach raises NewerStore."""
    present, newest = int(db.pragma("user_version")), todo[-1].number
    if present > newest:
        raise NewerStore(
            f"the database has schema {present}, and this Foreword knows {newest}",
            hint="upgrade Foreword, or set FOREWORD_HOME to another folder",
        )
    return present


def _take(db: apsw.Connection, step: Step) -> None:
    before = _counts(db)
    try:
        db.execute("BEGIN IMMEDIATE")  # all of the step or nothing
        for _ in db.execute(step.sql):
            pass
        db.pragma("user_version", step.number)
        _compare(before, _counts(db), step=step)
        db.execute("COMMIT")
    except StoreError:
        db.execute("ROLLBACK")
        raise
    except apsw.Error as exc:
        if db.in_transaction:  # a full disk has taken it back already
            db.execute("ROLLBACK")
        raise StoreError(
            f"migration {step.number} failed and was undone: {exc}",
            hint="your memory is as it was; free some disk space or run `foreword doctor`",
        ) from exc


def _compare(before: Mapping[str, int], after: Mapping[str, int], *, step: Step) -> None:
    for table, rows in before.items():
        if table not in step.may_change and after.get(table) != rows:
            raise StoreError(
                f"migration {step.number} changed {table} from {rows} to {after.get(table)} rows; undone",
                hint="your memory is as it was; please report this, a copy lies in the backups folder",
            )


def _counts(db: apsw.Connection) -> Mapping[str, int]:
    tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    # The shadow tables of the words index are its own affair.
    names = [name for (name,) in tables if not name.startswith(("sqlite_", "words"))]
    return {name: db.execute(f'SELECT count(*) FROM "{name}"').get for name in names}


def _back_up(db: apsw.Connection, path: Path, *, keep: int) -> None:
    """A copy that is whole before it gets its name; the oldest beyond *keep* go."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    unfinished.unlink(missing_ok=True)
    copy = apsw.Connection(str(unfinished))
    try:
        with copy.backup("main", db, "main") as backup:
            while not backup.done:
                backup.step(1000)
    finally:
        copy.close()
    unfinished.chmod(0o600)
    unfinished.replace(path)
    old = sorted(path.parent.glob("memory-schema-*.db"), key=lambda file: file.stat().st_mtime)
    for file in old[:-keep]:
        file.unlink()
