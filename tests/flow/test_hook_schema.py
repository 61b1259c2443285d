"""A hook and a database of different versions: the hook ends well, and what it was told is kept."""

from __future__ import annotations

import apsw
import pytest

from foreword.paths import Home
from foreword.projects import resolve
from foreword.store.migrate import migrate, steps
from foreword.store.sqlite import SqliteStore
from foreword.types import Memory
from tests.flow.conftest import Host


@pytest.mark.parametrize("schema", range(1, len(steps()) + 1))
def test_a_hook_of_today_meets_a_database_of_any_older_schema(
    home: Home, host: Host, project: str, schema: int
) -> None:
    home.backups.mkdir(parents=True, exist_ok=True)
    db = apsw.Connection(str(home.database))
    migrate(db, todo=steps()[:schema], backups=home.backups)
    db.execute("INSERT INTO owners VALUES (1, ?, 9)", (resolve(project).scope,))
    db.execute(
        """INSERT INTO memories (place, id, uid, owner, kind, title, source, trust, confidence, seen, created,
        confirmed) VALUES (4294967297, 'dec-00000001', 'u', 1, 'decision', 'Use Valkey', 'user', 'user', 1, 1, 1, 1)"""
    )
    db.close()
    host.write_hook()
    for event, more in (("SessionStart", {"source": "startup"}), ("UserPromptSubmit", {"prompt": "is it Valkey?"})):
        ended = host.tell(event, {"session_id": "s", "cwd": project, **more})
        assert (ended.returncode, ended.stderr) == (0, b"")
    assert host.spooled() > 0
    store = SqliteStore(home.database, backups=home.backups)
    (memory,) = store.by_id(["dec-00000001"])
    assert (memory.pinned, memory.used, memory.ignored) == (False, 0, 0)
    assert isinstance(memory, Memory)
    store.close()
