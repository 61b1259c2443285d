"""A store that an earlier version wrote is opened with all its rows; a migration happens whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict

import apsw
import pytest
from tests.fixtures.make_store import FIXTURES, HERE, ROOMS, content, rows

from foreword.errors import NewerStore, StoreError
from foreword.models import KINDS, Memory, Query, Vector
from foreword.store import SCHEMA, Store, backup
from foreword.store.maintenance import DERIVED
from foreword.store.migrations import MIGRATIONS, OLDEST, Migration, migrate
from foreword.store.sql import as_json

SCOPE = f"project:dir:{ROOMS}"


@pytest.fixture(params=FIXTURES, ids=lambda path: path.name)
def old(request, tmp_path):
    """A copy of each store that an earlier version wrote."""
    path = tmp_path / "memory.db"
    path.write_bytes(gzip.decompress(request.param.read_bytes()))
    return path


@pytest.fixture
def database(old):
    """The same in the present version, without the backup that a migration made."""
    opened(old).close()
    shutil.rmtree(old.parent / "backups", ignore_errors=True)
    return old


def opened(path):
    return Store(path, backups=path.parent / "backups")


# -- stores of earlier versions ---------------------------------------------------------------------------------------


def test_there_is_a_store_of_every_version_that_is_taken_over():
    assert [path.name for path in FIXTURES] == [f"store-v{version}.db.gz" for version in range(OLDEST, SCHEMA + 1)]
    assert [step.version for step in MIGRATIONS] == list(range(OLDEST + 1, SCHEMA + 1))


def test_an_old_store_keeps_every_row(old):
    version = rows(old, "PRAGMA user_version")[0][0]
    manifest = json.loads((HERE / f"store-v{version}.json").read_text())
    store = opened(old)
    assert store.database.problems() == ()
    store.close()
    changed = {table for step in MIGRATIONS if step.version > version for table in step.may_change}
    now = content(old, like={table: each for table, each in manifest.items() if table not in changed})
    for table in manifest.keys() - changed:
        assert now[table] == manifest[table], table
    assert rows(old, "PRAGMA user_version") == [(SCHEMA,)]
    assert (old.parent / "backups").exists() == (version < SCHEMA)


@pytest.mark.parametrize("version", range(OLDEST, SCHEMA))
def test_rules_that_were_proposed_are_discarded_and_nothing_else_changes(tmp_path, version):
    path = tmp_path / "memory.db"
    path.write_bytes(gzip.decompress((HERE / f"store-v{version}.db.gz").read_bytes()))
    with closing(apsw.Connection(str(path))) as db:
        proposed = db.execute(
            "UPDATE memories SET status = 'proposed' WHERE kind = 'preference' RETURNING id"
        ).fetchall()
        accepted = {"changed": {proposed[0][0]: {"status": ["proposed", "active"]}}}
        db.execute("UPDATE log SET patch = ? WHERE number = 1", (as_json(accepted),))
    before = {table: rows(path, f"SELECT * FROM {table}") for table in ("memories", "log")}
    opened(path).close()
    assert proposed
    for table, kept in before.items():
        discarded = [
            tuple(
                each.replace("proposed", "discarded") if each in ("proposed", as_json(accepted)) else each
                for each in row
            )
            for row in kept
        ]
        assert rows(path, f"SELECT * FROM {table}") == discarded


def test_a_salvage_of_the_schema_before_loses_nothing(tmp_path):
    path, new = tmp_path / "memory.db", tmp_path / "new.db"
    path.write_bytes(gzip.decompress((HERE / "store-v10.db.gz").read_bytes()))
    with closing(apsw.Connection(str(path))) as db:
        db.execute("UPDATE memories SET status = 'proposed' WHERE kind = 'preference'")
    before = content(path)
    with closing(backup.forgotten(tmp_path, database=path, live=None)) as known:
        assert backup.salvage(path, new, known)[1] == {}
    statuses = dict(rows(new, "SELECT kind || status, count(*) FROM memories GROUP BY 1"))
    assert "preferenceproposed" not in statuses
    assert statuses["preferencediscarded"] > 0
    kept = content(new, like=before)
    before, after = ({name: each for name, each in of.items() if not name.startswith(DERIVED)} for of in (before, kept))
    assert after.pop("memories")["rows"] == before.pop("memories")["rows"]
    assert after == before


def test_an_old_store_is_searched_and_read(old):
    [(version,)] = rows(old, "PRAGMA user_version")
    with closing(opened(old)) as store:
        by_words = store.search.by_words(Query(scopes=(SCOPE,), terms=("sqlite",)))
        assert "Keep bookings in SQLite" in {hit.memory.title for hit in by_words}
        assert {memory.kind for _, memory in store.memories.page()} >= {*KINDS} - {"turn"}  # they came later
        decision = next(hit.memory for hit in by_words if hit.memory.title == "Keep bookings in SQLite")
        assert store.memories.get([decision.id]) == (decision,)
        by_code = store.search.by_code(Query(scopes=(SCOPE,)), {"rooms/store.py": 1.0})
        assert decision in [hit.memory for hit in by_code]
        links = [(link.relation, link.source) for link in store.memories.links(decision.id)]
        assert links == ([("relates-to", decision.id)] if version <= 9 else [])  # later versions write none
        vector = Vector(
            *rows(old, f"SELECT model, scale, blob FROM vectors WHERE place = {place_of(old, decision)}")[0]
        )
        assert store.search.by_vector(Query(scopes=(SCOPE,), vector=vector))[0].memory == decision
        assert store.projects.all()["dir:/home/user/rooms-copy"].alias_of == f"dir:{ROOMS}"
        (injection, begun) = store.injections.list(session="made-up-1", texts=True)
        assert decision.title in f"{injection.text}{begun.text}"
        assert [item.memory for item in injection.items if item.memory not in injection.text] == []
        assert {"forget", "supersede", "merge project"} <= {entry.what for entry in store.audit.list()}
        forgotten = Memory("note", "The spare key lies under the flowerpot", project=f"dir:{ROOMS}", scope=SCOPE)
        assert store.save(imported=True, memories=[forgotten]) == ()


def place_of(path, memory):
    return rows(path, f"SELECT place FROM memories WHERE id = '{memory.id}'")[0][0]


def test_what_is_derived_is_rebuilt_as_it_was(old):
    def derived():
        return [
            sorted(rows(old, "SELECT u.name, c.place FROM code c JOIN units u ON u.number = c.unit")),
            sorted(rows(old, "SELECT * FROM sightings")),
            rows(old, "SELECT rowid FROM words WHERE words MATCH 'sqlite OR prices' ORDER BY rowid"),
        ]

    before = derived()
    with closing(opened(old)) as store:
        assert store.maintenance.reindex() == len(rows(old, "SELECT id FROM memories"))
        assert store.database.problems() == ()
    assert derived() == before
    assert all(before)


def test_a_new_store_has_the_same_schema_as_an_old_one(database, tmp_path):
    new = tmp_path / "new.db"
    opened(new).close()
    assert schema_of(new) == schema_of(database)
    assert not (tmp_path / "backups").exists()


def schema_of(path):
    """Each table with its columns, and each index and trigger, however their SQL is laid out."""
    tables = {
        name: (about, [tuple(row) for row in rows(path, f'PRAGMA table_xinfo("{name}")')])
        for _, name, *about in rows(path, "PRAGMA table_list")
        if not name.startswith("sqlite_")
    }
    others = {
        name: " ".join(re.sub(r"--[^\n]*|IF NOT EXISTS ", "", sql).split())
        for name, sql in rows(path, "SELECT name, sql FROM sqlite_master WHERE sql <> '' AND name NOT LIKE 'words_%'")
        if name not in tables or name == "words"
    }
    return tables, others


# -- databases that are not taken over --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(1, OLDEST))
def test_an_older_store_is_refused_with_the_way_out(database, version):
    refused = refused_with(database, f"PRAGMA user_version = {version}", match=f"has schema {version}")
    assert "foreword export" in refused.hint
    assert "foreword import jsonl" in refused.hint


def test_a_newer_store_is_refused_with_the_way_out(database):
    refused = refused_with(database, f"PRAGMA user_version = {SCHEMA + 1}", match=f"has schema {SCHEMA + 1}")
    assert isinstance(refused, NewerStore)
    assert "upgrade" in refused.hint


def test_a_database_of_another_program_is_refused(tmp_path):
    refused_with(tmp_path / "memory.db", "CREATE TABLE theirs (id TEXT)", match="no schema version")


def refused_with(path, sql, *, match):
    db = apsw.Connection(str(path))
    db.execute(sql)
    db.close()
    before = content(path)
    with pytest.raises(StoreError, match=match) as refused:
        opened(path)
    assert content(path) == before
    assert not (path.parent / "backups").exists()
    return refused.value


# -- steps that later versions may bring ------------------------------------------------------------------------------

# A new table filled from an old one, a column, a table made anew.
LATER = Migration(
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
    UPDATE memories SET starred = 1 WHERE pinned;
    """,
)
LATEST = Migration(SCHEMA + 2, "CREATE TABLE teams (id TEXT PRIMARY KEY); DELETE FROM access;", may_change=("access",))


def take(path, *steps, backups=None, keep=5):
    with closing(apsw.Connection(str(path))) as db:
        return migrate(db, backups=backups or path.parent / "backups", keep=keep, migrations=(*MIGRATIONS, *steps))


def state(path, *, like=None):
    """The version, what is in each table, and whether the file is whole."""
    return rows(path, "PRAGMA user_version")[0][0], rows(path, "PRAGMA integrity_check"), content(path, like=like)


def backup_of(path):
    return path.parent / "backups" / f"memory-schema-{SCHEMA}.db"


def test_steps_keep_every_row_that_they_do_not_name_and_are_taken_once(database):
    before = content(database)
    assert take(database, LATER, LATEST) == 2
    after = content(database, like=before)
    assert after.pop("access")["rows"] == 0
    assert after.pop("pins")["rows"] == before["memories"]["rows"]
    assert {table: after[table] for table in before if table != "access"} == {
        table: each for table, each in before.items() if table != "access"
    }
    written = backup_of(database).stat().st_mtime_ns
    assert take(database, LATER, LATEST) == 0
    assert backup_of(database).stat().st_mtime_ns == written


def test_there_is_a_whole_backup_before_anything_changes(database):
    before = state(database)
    backups = backup_of(database).parent
    backups.mkdir(mode=0o700)
    (backups / f"memory-schema-{SCHEMA}.tmp").write_bytes(b"half a backup, left by a crash")
    take(database, LATER)
    assert [file.name for file in backups.iterdir()] == [backup_of(database).name]
    assert backup_of(database).stat().st_mode & 0o777 == 0o600
    assert state(backup_of(database)) == before
    with closing(Store(backup_of(database), backups=database.parent / "more")) as restored:
        assert restored.stats.row_counts()["memories"] == before[2]["memories"]["rows"]


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
    assert names == {backup_of(database).name, "memory-schema-91.db", "memory-schema-92.db", "by-hand.db"}


def test_a_backup_that_cannot_be_written_stops_the_migration(database, tmp_path):
    before = state(database)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        take(database, LATER, backups=tmp_path / "file" / "backups")
    assert state(database) == before


def test_a_step_that_fails_at_any_statement_changes_nothing(database):
    before = state(database)
    statements = [statement for statement in LATER.sql.split(";") if statement.strip()]
    for place in range(len(statements) + 1):
        broken = [*statements[:place], "\nINSERT INTO nowhere VALUES (1)", *statements[place:]]
        with pytest.raises(StoreError, match=f"migration {SCHEMA + 1} failed and was undone") as failed:
            take(database, Migration(SCHEMA + 1, ";".join(broken)))
        assert "as it was" in failed.value.hint
        assert state(database) == before
    with pytest.raises(StoreError, match=f"migration {SCHEMA + 2} failed"):
        take(database, LATER, Migration(SCHEMA + 2, "INSERT INTO nowhere VALUES (1)"))
    assert take(database, LATER, LATEST) == 1  # the step before it stays


@pytest.mark.parametrize(
    ("loss", "table"),
    [
        ("DELETE FROM memories WHERE pinned", "memories"),
        ("UPDATE memories SET title = '' WHERE pinned", "memories"),
        ("ALTER TABLE memories DROP COLUMN split", "memories"),
        ("DROP TABLE events", "events"),
        ("INSERT INTO meta VALUES ('a', 'b')", "meta"),
    ],
)
def test_a_step_that_changes_what_it_does_not_name_is_undone(database, loss, table):
    before = state(database)
    with pytest.raises(StoreError, match=f"migration {SCHEMA + 1} changed {table}") as refused:
        take(database, Migration(SCHEMA + 1, f"DROP TABLE words; {loss}", may_change=("access",)))
    assert "backups" in refused.value.hint
    assert state(database) == before


def test_a_full_disk_changes_nothing_and_is_named(database):
    before = state(database)
    much = Migration(SCHEMA + 1, "CREATE TABLE big AS SELECT zeroblob(4000) FROM memories")
    with closing(apsw.Connection(str(database))) as db:
        db.pragma("max_page_count", int(db.pragma("page_count")) + 5)
        with pytest.raises(StoreError, match="full"):
            migrate(db, backups=database.parent / "backups", migrations=(*MIGRATIONS, much))
    assert state(database) == before


KILLED = """
import json, os, sys
from pathlib import Path
import apsw
from foreword.store.migrations import MIGRATIONS, Migration, migrate
path, after, steps = Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
db = apsw.Connection(str(path))
db.pragma("cache_size", 5)  # so that changed pages reach the disk before the commit
left = [after]
def tick():
    left[0] -= 1
    if not left[0]:
        os._exit(9)
    return False
db.set_progress_handler(tick, 1)
migrate(db, backups=path.parent / "backups", migrations=(*MIGRATIONS, *(Migration(**each) for each in steps)))
print(left[0])
"""


def killed(path, after):
    steps = json.dumps([asdict(LATER), asdict(LATEST)])
    command = [sys.executable, "-c", KILLED, str(path), str(after), steps]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_migration_killed_anywhere_leaves_every_row_and_can_be_repeated(database):
    image, first = database.read_bytes(), state(database)
    ticks = 10**9 - int(killed(database, 10**9).stdout)
    done = state(database)
    between = {}
    for share in (*(n / 12 for n in range(1, 12)), 0.97, 0.999):
        for log in database.parent.glob("memory.db-*"):
            log.unlink()
        database.write_bytes(image)
        assert killed(database, max(1, int(ticks * share))).returncode == 9
        found = state(database)
        version = found[0]
        assert found == {SCHEMA: first, SCHEMA + 2: done}.get(version, between.setdefault(version, found))
        assert take(database, LATER, LATEST) == SCHEMA + 2 - version
        assert state(database) == done
    assert state(backup_of(database)) == first
