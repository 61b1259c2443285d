"""A hook of today meets the store of an earlier version: its event is kept, and the next worker migrates the store."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from foreword.paths import Home
from foreword.problems import noted
from foreword.store import SCHEMA
from tests.fixtures.make_store import FIXTURES, ROOMS
from tests.flow.conftest import HookRunner


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
def test_a_hook_answers_from_a_store_of_today_and_keeps_its_event_beside_any(
    home: Home, host: HookRunner, fixture: Path
) -> None:
    home.database.write_bytes(gzip.decompress(fixture.read_bytes()))
    host.write_hook()  # and no worker, which would migrate it
    start = host.context("SessionStart", {"session_id": "s", "cwd": ROOMS, "source": "startup"})
    payload = {"session_id": "another", "cwd": ROOMS, "prompt": "why keep bookings in SQLite?"}
    prompt = host.context("UserPromptSubmit", payload)
    if fixture.name == f"store-v{SCHEMA}.db.gz":
        assert "- Open: show the price in the booking form" in start
        assert "- Write prices as integer cents (you, " in start
        assert "Keep bookings in SQLite" in prompt
    else:
        assert (start, prompt) == ("", "")
    assert noted(str(home.trouble)) == ()
    assert host.spooled() > 0
