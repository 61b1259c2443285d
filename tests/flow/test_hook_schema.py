"""A hook of today meets the store of an earlier version: it answers from it, and its event is kept."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from foreword.paths import Home
from foreword.problems import noted
from tests.fixtures.make_store import FIXTURES, ROOMS
from tests.flow.conftest import HookRunner


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
def test_a_hook_answers_from_the_store_of_an_earlier_version(home: Home, host: HookRunner, fixture: Path) -> None:
    home.database.write_bytes(gzip.decompress(fixture.read_bytes()))
    if fixture != FIXTURES[-1]:  # as if the newest version had two more columns
        with closing(sqlite3.connect(home.database)) as older:
            older.execute("ALTER TABLE memories DROP COLUMN ignored")
            older.execute("ALTER TABLE memories DROP COLUMN used")
    host.write_hook()  # and no worker, which would migrate it
    start = host.context("SessionStart", {"session_id": "s", "cwd": ROOMS, "source": "startup"})
    assert "- Open: show the price in the booking form" in start
    assert "- Write prices as integer cents (you, " in start
    payload = {"session_id": "another", "cwd": ROOMS, "prompt": "why keep bookings in SQLite?"}
    assert "Keep bookings in SQLite" in host.context("UserPromptSubmit", payload)
    assert noted(str(home.trouble)) == ()
    assert host.spooled() > 0
