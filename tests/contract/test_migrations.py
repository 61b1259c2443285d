"""An old database becomes a new one whole or not at all: whatever fails, and wherever it is killed, no row changes."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys

import apsw
import pytest

from foreword.errors import NewerStore, StoreError
from foreword.store import sightings
from foreword.store.migrate import Step, migrate, steps
from foreword.store.reading import SCHEMA
from foreword.store.sqlite import SqliteStore
from foreword.types import Change, Event, Link, Memory

# A step as a later version may bring it: a new table filled from an old one, a column, a table made anew.
LATER = Step(
    SCHEMA + 1,
    """
    CREATE TABLE pins (memory TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
    INSERT INTO pins SELECT id, confirmed FROM memories;
    ALTER TABLE memories ADD COLUMN starred INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE links_new (source TEXT, relation TEXT, target TEXT, at REAL, PRIMARY KEY (source, relation, target));
    INSERT INTO links_new SELECT * FROM links;
    DROP TABLE links;
    ALTER TABLE links_new RENAME TO links;
    CREATE INDEX links_target ON links (target);
    UPDATE memories SET starred = 1 WHERE seen > 3;
    """,
)
LATEST = Step(SCHEMA + 2, "CREATE TABLE teams (id TEXT PRIMARY KEY); DELETE FROM access;", may_change=("access",))


@pytest.fixture
def database(tmp_path):
    """A closed store with something in every corner."""
    path = tmp_path / "memory.db"
    store = SqliteStore(path, backups=tmp_path / "backups")
    kept = store.keep([Memory("note", f"walrus {n} \0 版本", project=f"p{n % 5}", seen=n) for n in range(200)])
    store.keep([], links=[Link(one.id, "relates-to", two.id) for one, two in itertools.pairwise(kept)])
    store.append([Event(f"k{n}", "h", "n", "tool", f"s{n % 9}", "p", "/", float(n), {"n": n}) for n in range(200)])
    store.note_changes([Change("p", "a.py", f"f{n}", "NEW") for n in range(50)])
    store.touch([memory.id for memory in kept], how="get", at=1.0)
    store.close()
    return path


def rows_of(path):
    """How many rows each table of ours has and a hash of them, the schema, and whether the file is whole."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    found = {}
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
        if not table.startswith(("words", "sqlite_")):
            rows = sorted(map(repr, db.execute(f'SELECT * FROM "{table}"')))
            found[table] = (len(rows), hashlib.sha256("\n".join(rows).encode()).hexdigest())
    found["user_version"] = db.pragma("user_version")
    found["integrity"] = db.pragma("integrity_check")
    db.close()
    return found


def take(path, *todo, backups=None, keep=5):
    db = apsw.Connection(str(path))
    try:
        return migrate(db, todo=(*steps(), *todo), backups=backups or path.parent / "backups", keep=keep)
    finally:
        db.close()


def test_the_steps_that_come_with_the_package_lead_to_the_schema_it_reads():
    numbers = [step.number for step in steps()]
    assert (numbers[0], numbers[-1]) == (1, SCHEMA)
    assert len(set(numbers)) == len(numbers)


def test_a_new_database_needs_no_backup(tmp_path):
    assert take(tmp_path / "memory.db") == len(steps())
    assert not (tmp_path / "backups").exists()


def test_later_steps_keep_every_row(database):
    before = rows_of(database)
    assert take(database, LATER, LATEST) == 2
    after = rows_of(database)
    assert after["user_version"] == SCHEMA + 2
    assert after["access"][0] == 0  # it said that it would
    assert after["pins"][0] == 200
    for table in ("events", "sessions", "changes", "owners", "links", "meta"):
        assert after[table] == before[table]
    assert after["memories"][0] == before["memories"][0]


def test_what_the_first_schema_recorded_is_read_in_the_new_one(tmp_path):
    path = tmp_path / "memory.db"
    db = apsw.Connection(str(path))
    migrate(db, todo=steps()[:1], backups=tmp_path / "backups")
    row = "'inj-1', 'prompt', 's', 'here', 'claude-code', 5.0, 7, 500, 1.5, '{\"index\":7}', '{}'"
    db.execute(f"INSERT INTO injections VALUES ({row})")
    db.execute("INSERT INTO injection_items VALUES ('inj-1', 0, 'not-a', 'index', 0.5, 7, '{}', NULL)")
    db.close()
    store = SqliteStore(path, backups=tmp_path / "backups")
    given = store.injection("inj-1")
    assert (given.tokens, given.form, given.terms, given.text, given.away) == (7, "markdown", (), "", False)
    assert (store.shown("s"), store.spent("s")) == ({"not-a"}, {"prompt": 7})
    store.close()


def test_what_sessions_saw_is_told_by_each_of_them_once_it_is_migrated(tmp_path):
    path = tmp_path / "memory.db"
    db = apsw.Connection(str(path))
    migrate(db, todo=steps()[:7], backups=tmp_path / "backups")
    db.execute("INSERT INTO owners VALUES (1, 'project:p', 9)")
    twice = '{"seen_in":{"a":2,"b":1,"a":1,"earlier":7}}'
    details = (twice, '{"seen_in":["a"]}', '{"seen_in":{"a":1}}', "no JSON", "{}")
    for number, detail in enumerate(details):
        of = "" if number == 2 else "b"
        row = (number, f"fai-{number}", f"u{number}", of, detail)
        db.execute(
            """INSERT INTO memories (place, id, uid, owner, kind, title, session, source, trust, confidence, seen,
            created, confirmed, detail) VALUES (?, ?, ?, 1, 'failure', 't', ?, 's', 'tool', 1, 1, 1, 1, ?)""",
            row,
        )
    migrate(db, todo=steps(), backups=tmp_path / "backups")
    assert list(db.execute("SELECT session, memory FROM sightings")) == [("a", "fai-0")]
    sightings.anew(db.execute)
    assert list(db.execute("SELECT session, memory FROM sightings")) == [("a", "fai-0")]
    db.close()


def test_migrating_twice_does_nothing(database):
    take(database, LATER)
    before = rows_of(database)
    backup = database.parent / "backups" / f"memory-schema-{SCHEMA}.db"
    written = backup.stat().st_mtime_ns
    assert take(database, LATER) == 0
    assert rows_of(database) == before
    assert backup.stat().st_mtime_ns == written


def test_there_is_a_whole_backup_before_anything_changes(database):
    before = rows_of(database)
    take(database, LATER)
    backup = database.parent / "backups" / f"memory-schema-{SCHEMA}.db"
    assert rows_of(backup) == before
    assert backup.stat().st_mode & 0o777 == 0o600
    assert backup.parent.stat().st_mode & 0o777 == 0o700
    restored = SqliteStore(backup, backups=database.parent / "more")
    assert restored.counts()["memories"] == 200
    restored.close()
    assert not list(backup.parent.glob("*.tmp*"))


def test_an_unfinished_backup_of_a_crash_is_no_hindrance(database):
    backups = database.parent / "backups"
    backups.mkdir()
    (backups / f"memory-schema-{SCHEMA}.tmp").write_bytes(b"half a backup")
    take(database, LATER)
    assert [file.name for file in backups.iterdir()] == [f"memory-schema-{SCHEMA}.db"]


def test_backups_beyond_what_is_kept_go_the_oldest_first(database):
    backups = database.parent / "backups"
    backups.mkdir()
    for age in range(1, 8):
        old = backups / f"memory-schema-{90 + age}.db"
        old.touch()
        os.utime(old, (1e9 - age, 1e9 - age))
    (backups / "by-hand.db").touch()
    take(database, LATER, keep=3)
    names = {file.name for file in backups.iterdir()}
    assert names == {f"memory-schema-{SCHEMA}.db", "memory-schema-91.db", "memory-schema-92.db", "by-hand.db"}


def broken_at(place):
    """The later step with a statement that fails after *place* others."""
    statements = [statement for statement in LATER.sql.split(";") if statement.strip()]
    statements.insert(place, "\nINSERT INTO nowhere VALUES (1)")
    return Step(SCHEMA + 1, ";".join(statements))


@pytest.mark.parametrize("place", range(LATER.sql.count(";") + 1))
def test_a_step_that_fails_at_any_statement_changes_nothing(database, place):
    before = rows_of(database)
    with pytest.raises(StoreError, match=f"migration {SCHEMA + 1} failed and was undone") as failed:
        take(database, broken_at(place))
    assert "as it was" in failed.value.hint
    assert rows_of(database) == before
    assert take(database, LATER) == 1


def test_a_step_that_fails_leaves_the_steps_before_it(database):
    with pytest.raises(StoreError, match=f"migration {SCHEMA + 2} failed"):
        take(database, LATER, Step(SCHEMA + 2, "INSERT INTO nowhere VALUES (1)"))
    assert rows_of(database)["user_version"] == SCHEMA + 1
    assert take(database, LATER, LATEST) == 1


@pytest.mark.parametrize(
    ("loss", "table"),
    [
        ("DELETE FROM memories WHERE seen = 7", "memories"),
        ("DROP TABLE events", "events"),
        ("INSERT INTO meta VALUES ('a', 'b')", "meta"),
        (
            "CREATE TABLE s AS SELECT * FROM sessions LIMIT 3; DROP TABLE sessions; ALTER TABLE s RENAME TO sessions",
            "sessions",
        ),
    ],
)
def test_a_step_that_loses_rows_is_undone_and_told(database, loss, table):
    before = rows_of(database)
    with pytest.raises(StoreError, match=f"migration {SCHEMA + 1} changed {table} from") as told:
        take(database, Step(SCHEMA + 1, loss, may_change=("access",)))
    assert "backups" in told.value.hint
    assert rows_of(database) == before


def test_a_full_disk_changes_nothing_and_is_told_as_what_it_is(database):
    before = rows_of(database)
    db = apsw.Connection(str(database))
    db.pragma("max_page_count", int(db.pragma("page_count")) + 5)
    much = Step(SCHEMA + 1, "CREATE TABLE big AS SELECT zeroblob(4000) FROM memories")
    with pytest.raises(StoreError, match="full"):
        migrate(db, todo=(*steps(), much), backups=database.parent / "backups")
    db.close()
    assert rows_of(database) == before


def test_a_backup_that_cannot_be_written_stops_the_migration(database, tmp_path):
    before = rows_of(database)
    (tmp_path / "file").touch()
    with pytest.raises((StoreError, OSError)):
        take(database, LATER, backups=tmp_path / "file" / "backups")
    assert rows_of(database) == before


def test_a_newer_database_is_refused_without_a_backup(database):
    take(database, LATER)
    before = rows_of(database)
    with pytest.raises(NewerStore):
        take(database)
    with pytest.raises(NewerStore):
        SqliteStore(database, backups=database.parent / "backups")
    assert rows_of(database) == before


KILLED = """
import json, os, sys
from pathlib import Path
import apsw
from foreword.store.migrate import Step, migrate, steps
path, after, told = Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
db = apsw.Connection(str(path))
db.pragma("cache_size", 5)  # so that changed pages reach the disk before the commit
left = [after]
def tick():
    left[0] -= 1
    if not left[0]:
        os._exit(9)
    return False
db.set_progress_handler(tick, 1)
migrate(db, todo=(*steps(), *(Step(**each) for each in told)), backups=path.parent / "backups")
print(left[0])
"""


def killed(path, after):
    told = json.dumps([vars(LATER), vars(LATEST)])
    return subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(after), told],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_migration_killed_anywhere_leaves_a_whole_schema_and_every_row(database):
    image = database.read_bytes()
    whole = killed(database, 10**9)
    ticks = 10**9 - int(whole.stdout)
    done = rows_of(database)
    database.write_bytes(image)
    first = rows_of(database)
    second = None
    seen = set()
    for share in (*(n / 12 for n in range(1, 12)), 0.93, 0.97, 0.99, 0.999):
        database.write_bytes(image)
        assert killed(database, max(1, int(ticks * share))).returncode == 9
        rows = rows_of(database)
        seen.add(rows["user_version"])
        if rows["user_version"] == SCHEMA:
            assert rows == first
        elif rows["user_version"] == SCHEMA + 1:
            second = second or rows
            assert rows == second
            assert rows["access"] == first["access"]
        assert take(database, LATER, LATEST) == SCHEMA + 2 - rows["user_version"]
        assert rows_of(database) == done
        for log in database.parent.glob("memory.db-*"):
            log.unlink()
    assert SCHEMA in seen
    assert rows_of(database.parent / "backups" / f"memory-schema-{SCHEMA}.db") == first
