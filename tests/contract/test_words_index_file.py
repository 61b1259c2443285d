"""The SQLite file itself: readable by the stdlib's SQLite, and never lost with its index, whatever became of either."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace

import apsw
import pytest

from foreword.errors import DamagedIndex, NewerStore, StoreError
from foreword.models import Memory, Query
from foreword.store import SCHEMA, Store
from foreword.terms import terms


@pytest.fixture
def open_store(tmp_path):
    """Opens the database of this test, again and again; all are closed at the end."""
    opened = []

    def make():
        opened.append(Store(tmp_path / "memory.db", backups=tmp_path / "backups"))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def database(tmp_path):
    return tmp_path / "memory.db"


def a_memory(title, **more):
    return Memory("note", title, **{"project": "here", "created": 1.0, **more})


def words(text, **more):
    return Query(scopes=("project:here",), terms=terms(text), **more)


def found(store, text):
    return [hit.memory.title for hit in store.search.by_words(words(text))]


def tampered(database, *statements):
    """What a stranger does to the file. Not with the stdlib: two SQLites in one process break each other's locks."""
    db = apsw.Connection(str(database))
    for statement in statements:
        db.execute(statement)
    db.close()


def bytes_of(folder):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir() if file.is_file()}


def a_lived_in_store(open_store):
    """Inserts, changes, moves and an index made anew."""
    store = open_store()
    kept = store.memories.put(
        [a_memory(f"walrus {n}", body=f"版本 HTTPTransport {n}", files=(f"src/a_{n}.py",)) for n in range(300)]
    )
    store.memories.put([replace(memory, title=f"penguin {n}") for n, memory in enumerate(kept[:100])])
    store.memories.put([replace(memory, scope="universal") for memory in kept[100:150]])
    store.maintenance.reindex()
    store.memories.put([replace(memory, title="ostrich", status="superseded") for memory in kept[150:200]])
    return store


# -- the file is everybody's ------------------------------------------------------------------------------------------


BY_THE_STDLIB = """
import pickle, sqlite3, sys
from foreword.store import StoreReader
path, texts, asked = pickle.load(sys.stdin.buffer)
db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
many = {text: db.execute("SELECT count(*) FROM words WHERE words MATCH ?", (text,)).fetchone()[0] for text in texts}
reader = StoreReader(db.execute, failures=(sqlite3.Error,))
pickle.dump((many, reader.search.by_words(asked), reader.search.by_recency(asked)), sys.stdout.buffer)
"""


def test_the_stdlib_reads_and_searches_the_file_while_the_store_is_open(open_store, database, tmp_path):
    store = a_lived_in_store(open_store)
    expected = {"penguin": 100, "walrus": 150, "ostrich": 50, "transport": 300, "版本": 300}
    query = words("walrus 版本", limit=30)
    question = pickle.dumps((str(database), list(expected), query))
    answer = subprocess.run([sys.executable, "-c", BY_THE_STDLIB], input=question, capture_output=True, check=True)
    assert pickle.loads(answer.stdout) == (expected, store.search.by_words(query), store.search.by_recency(query))
    store.close()

    copy = tmp_path / "copy.db"
    shutil.copy(database, copy)
    db = sqlite3.connect(copy)
    db.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    config = dict(db.execute("SELECT k, v FROM words_config"))
    db.close()
    assert config["version"] == 4  # 5 came with secure-delete, and SQLite before 3.42 refuses it
    assert "secure-delete" not in config


# -- the index is lost or damaged, the memories are not ---------------------------------------------------------------

GARBAGE = {
    "dropped": ["DROP TABLE words"],
    "structure": ["UPDATE words_data SET block = x'ffffffffffffffffffff' WHERE id = 10"],
    "no structure": ["DELETE FROM words_data WHERE id = 10"],
    "averages": ["UPDATE words_data SET block = x'ff' WHERE id = 1"],
    "leaves": ["UPDATE words_data SET block = randomblob(length(block)) WHERE id > 10"],
    "zeroes": ["UPDATE words_data SET block = zeroblob(length(block)) WHERE id > 10"],
    "short": ["UPDATE words_data SET block = x'00' WHERE id > 10"],
    "all": ["UPDATE words_data SET block = randomblob(200)"],
    "emptied": ["DELETE FROM words_data"],
    "sizes": ["DELETE FROM words_docsize"],
    "pages": ["DELETE FROM words_idx"],
    "no data": ["PRAGMA writable_schema = 1", "DELETE FROM sqlite_master WHERE name = 'words_data'"],
    "version": ["UPDATE words_config SET v = 99 WHERE k = 'version'"],
}


# An open connection does not look at the schema and the version again.
@pytest.mark.parametrize(
    ("damage", "at_work"),
    [(each, False) for each in GARBAGE] + [(each, True) for each in ("dropped", "structure", "short", "emptied")],
)
def test_a_damaged_index_costs_no_memory_and_is_made_anew(open_store, database, damage, at_work):
    store = open_store()
    (first, *_) = store.memories.put([a_memory(f"walrus {n}", body="some text " * 20) for n in range(40)])
    assert len(found(store, "walrus")) == 40
    if not at_work:
        store.close()
    tampered(database, *GARBAGE[damage])
    if not at_work:
        store = open_store()

    # Either it can be written, or whoever writes is told; all that was there is read.
    during = [a_memory("walrus during", created=3.0)]
    with contextlib.suppress(DamagedIndex):
        store.memories.put(during)
        during = []
    assert not during or "foreword index" in " ".join(store.database.problems())
    assert len(store.search.by_recency(words("", limit=50))) == 41 - len(during)
    if damage not in ("sizes", "pages", "leaves", "zeroes", "averages", "emptied"):  # these may only find less
        with pytest.raises(DamagedIndex) as damaged:
            store.search.by_words(words("walrus"))
        assert "foreword index" in damaged.value.hint

    assert store.maintenance.reindex() == 41 - len(during)
    assert store.database.problems() == ()
    store.memories.put([*during, replace(first, title="penguin")])
    assert sorted(found(store, "penguin")) == ["penguin"]
    assert len(found(store, "walrus")) == 40
    assert "walrus during" in found(store, "walrus")
    store.close()
    again = open_store()
    assert again.database.problems() == ()
    assert len(found(again, "walrus")) == 40


def test_a_passing_failure_is_not_taken_for_a_damaged_index(open_store, database, monkeypatch):
    store = open_store()
    store.memories.put([a_memory("walrus")])
    with store.database.same_connection() as connection:
        connection.set_progress_handler(lambda: True, 1)  # interrupts whatever it is asked
    with pytest.raises(StoreError) as failed:
        found(store, "walrus")
    assert not isinstance(failed.value, DamagedIndex)
    with store.database.same_connection() as connection:
        connection.set_progress_handler(None)
    assert found(store, "walrus") == ["walrus"]
    assert store.database.problems() == ()


def test_no_scope_inherits_the_memories_of_one_that_was_lost(open_store, database):
    store = open_store()
    store.memories.put([a_memory(f"walrus {project} {n}", project=project) for project in "abc" for n in range(3)])
    store.memories.put([a_memory("walrus for all", scope="universal", project=project) for project in "abc"])
    store.memories.put([a_memory("walrus in go", scope="language:go", project="a")])
    store.close()
    tampered(database, "DROP TABLE owners")
    store = open_store()
    store.maintenance.reindex()
    store.memories.put([a_memory("walrus new", project=project) for project in ("a", "x", "y", "z")])
    for project, many in (("a", 4), ("b", 3), ("x", 1), ("y", 1), ("z", 1)):
        hits = store.search.by_words(Query(scopes=(f"project:{project}",), terms=("walrus",)))
        assert len(hits) == many
        assert {hit.memory.project for hit in hits} == {project}
    assert store.search.by_words(Query(scopes=("universal", "language:go"), terms=("walrus",))) == ()


# -- files that are no store of ours ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["delete", "wal", "only in the log"])
def test_a_newer_database_is_left_untouched_byte_for_byte(open_store, database, tmp_path, mode):
    store = open_store()
    store.memories.put([a_memory("walrus")])
    store.close()
    other = apsw.Connection(str(database))
    if mode == "only in the log":
        other.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    else:
        other.pragma("journal_mode", mode)
    other.pragma("user_version", SCHEMA + 1)
    other.close()
    before = bytes_of(tmp_path)
    assert ("memory.db-wal" in before) == (mode == "only in the log")
    with pytest.raises(NewerStore):
        open_store()
    after = bytes_of(tmp_path)
    assert {name: after[name] for name in before if not name.endswith("-shm")}.items() <= before.items()


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(open_store, database):
    a_lived_in_store(open_store).close()
    whole = database.read_bytes()
    cut = [whole[: int(len(whole) * share)] for share in (0.001, 0.01, 0.1, 0.5, 0.9, 0.99)]
    magic = b"SQLite format 3\0"
    for content in (b"not a database", b"\0" * 5000, magic, magic + b"\xff" * 5000, b"x", *cut):
        database.write_bytes(content)
        with pytest.raises(StoreError) as refused:
            open_store()
        assert refused.value.hint
        assert str(database) in str(refused.value)
        assert database.read_bytes() == content
        for log in database.parent.glob("memory.db-*"):
            log.unlink()


def test_a_folder_in_the_place_of_the_database_is_refused(tmp_path):
    for path in (tmp_path / "nowhere" / "memory.db", tmp_path):
        with pytest.raises(StoreError, match="cannot open"):
            Store(path, backups=tmp_path / "backups")


def test_an_empty_file_is_a_new_store(open_store, database):
    database.touch()
    store = open_store()
    store.memories.put([a_memory("walrus")])
    assert (found(store, "walrus"), store.database.problems()) == (["walrus"], ())


def test_a_name_of_code_goes_with_the_last_memory_that_has_it(open_store, database):
    store = open_store()
    one, two = store.memories.put(
        [Memory("note", title, project="p", files=("a.py", f"{title}.py")) for title in ("one", "two")]
    )
    store.memories.put([replace(one, files=()), replace(two, files=("a.py",))])
    store.close()
    db = apsw.Connection(str(database))
    assert [name for (name,) in db.execute("SELECT name FROM units")] == ["a.py"]
    assert db.execute("SELECT count(*) FROM code").get == 1
