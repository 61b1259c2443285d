"""What every store promises about news: whoever waits is told of the next commit, also of what was left for later."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing

import pytest

from foreword.errors import StoreError
from foreword.models import Event, Injection, Memory

LONG = 20.0  # seconds that no test waits for


def event(key, *, kind="prompt", session="s1", at=1.0):
    return Event(key, "codex", kind, kind, session, "here", "/here", at, {"prompt": key})


def injection(id, *, session="s1", at=2.0):
    return Injection(id, "prompt", session, "here", "codex", at, 60, 500, 1.0, {}, {}, (), text=f"text of {id}")


def test_whoever_waits_is_told_of_the_next_commit_alone(make_store):
    # Whoever knows the last commit waits for the next.
    store = make_store()
    known = store.database.wait_for_commit(-1, seconds=LONG)
    assert store.database.wait_for_commit(known, seconds=0.01) == known
    commits = []
    waiting = threading.Thread(target=lambda: commits.append(store.database.wait_for_commit(known, seconds=LONG)))
    waiting.start()
    store.events.append([event("one")])
    waiting.join(LONG / 2)
    assert commits == [known + 1]
    # Whoever missed one is told at once.
    store = make_store()
    known = store.database.wait_for_commit(-1, seconds=LONG)
    store.memories.put([Memory("note", "one"), Memory("note", "two")])
    store.events.append([event("one")])
    assert store.database.wait_for_commit(known, seconds=LONG) == known + 2
    # What was left for later is news too.
    store = make_store()
    known = store.database.wait_for_commit(-1, seconds=LONG)
    store.injections.record(injection("inj-1"))
    assert store.database.wait_for_commit(known, seconds=LONG) != known
    assert [each.id for each in store.injections.list(session="s1")] == ["inj-1"]
    # Asking is no news.
    store = make_store()
    store.events.append([event("one")])
    known = store.database.wait_for_commit(-1, seconds=LONG)
    store.injections.list(session="s1")
    store.sessions.list()
    store.events.list("s1", kind="prompt")
    store.injections.usage(session="s1")
    assert store.database.wait_for_commit(known, seconds=0.05) == known
    # What could not be written is no news.
    store = make_store()
    known = store.database.wait_for_commit(-1, seconds=LONG)
    with pytest.raises(AttributeError):
        store.memories.put([None])
    assert store.database.wait_for_commit(known, seconds=0.05) == known
    # Prompts are told alone from either end.
    store = make_store()
    events = [event("one"), event("edit", kind="tool"), event("two"), event("other", session="s2"), event("three")]
    store.events.append(events)
    assert [each.key for each in store.events.list("s1", kind="prompt", newest=True)] == ["three", "two", "one"]
    assert [each.key for each in store.events.list("s1", kind="prompt", limit=1)] == ["one"]
    assert store.events.list("s1", kind="prompt", newest=True, limit=1)[0].payload == {"prompt": "three"}
    assert store.events.list("nobody", kind="prompt") == ()


def test_what_is_left_for_later_while_somebody_waits_is_news(store):
    known = store.database.wait_for_commit(-1, seconds=LONG)
    later = threading.Timer(0.05, lambda: store.injections.record(injection("inj-1")))
    later.start()
    assert store.database.wait_for_commit(known, seconds=LONG) != known


def test_a_store_that_closes_lets_go_of_those_who_wait(make_store):
    store = make_store()
    failed = []

    def wait():
        try:
            store.database.wait_for_commit(store.database.wait_for_commit(-1, seconds=LONG), seconds=LONG)
        except StoreError as exc:
            failed.append(exc)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.05)
    store.close()
    waiting.join(LONG / 2)
    assert failed
    with pytest.raises(StoreError):
        store.database.wait_for_commit(0, seconds=LONG)


def test_a_reader_that_outlives_its_store_does_not_keep_the_file_locked(make_store, tmp_path, monkeypatch):
    monkeypatch.setattr("foreword.store.database.CLOSE_SECONDS", 0.1)
    store = make_store(tmp_path)
    reads, may_end = threading.Event(), threading.Event()

    def read():
        with store.database.same_connection() as connection:
            connection.execute("SELECT count(*) FROM memories").fetchall()
            reads.set()
            may_end.wait(LONG)

    reader = threading.Thread(target=read)
    reader.start()
    assert reads.wait(LONG)
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.database.query("SELECT 1")
    may_end.set()
    reader.join(LONG)
    with closing(sqlite3.connect(tmp_path / "memory.db", timeout=0)) as other:
        assert other.execute("PRAGMA journal_mode = delete").fetchone() == ("delete",)  # nobody else has it open
