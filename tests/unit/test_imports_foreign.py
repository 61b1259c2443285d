"""What claude-mem and open-mem kept becomes memories of the project it is surely of; their files stay as they are."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foreword.capture.parse import project_at
from foreword.errors import BadRequest, StoreError
from foreword.importers import Batch
from foreword.importers.claude_mem import ClaudeMem, OpenMem
from foreword.models import Memory, Project
from tests.sessions import Claude

AT = 1_790_000_000
KEY = "ghp_" + "a1B2" * 9

NEW = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT UNIQUE NOT NULL,
  memory_session_id TEXT UNIQUE, project TEXT NOT NULL, platform_source TEXT NOT NULL DEFAULT 'claude',
  user_prompt TEXT, started_at TEXT NOT NULL, started_at_epoch INTEGER NOT NULL, completed_at TEXT,
  completed_at_epoch INTEGER, status TEXT NOT NULL DEFAULT 'active');
CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL,
  text TEXT, type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT,
  files_modified TEXT, prompt_number INTEGER, content_hash TEXT, created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL, UNIQUE(memory_session_id, content_hash));
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL,
  project TEXT NOT NULL, request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT,
  files_read TEXT, files_edited TEXT, notes TEXT, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
"""
OLD = NEW.replace("content_session_id", "claude_session_id").replace("memory_session_id", "sdk_session_id")
OPEN_MEM = """
CREATE TABLE sessions (_rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, project_path TEXT NOT NULL,
  started_at TEXT NOT NULL DEFAULT (datetime('now')), ended_at TEXT, status TEXT NOT NULL DEFAULT 'active');
CREATE TABLE observations (_rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, session_id TEXT NOT NULL,
  type TEXT NOT NULL, title TEXT NOT NULL, subtitle TEXT NOT NULL DEFAULT '', facts TEXT NOT NULL DEFAULT '[]',
  narrative TEXT NOT NULL DEFAULT '', concepts TEXT NOT NULL DEFAULT '[]', files_read TEXT NOT NULL DEFAULT '[]',
  files_modified TEXT NOT NULL DEFAULT '[]', raw_tool_output TEXT NOT NULL DEFAULT '', tool_name TEXT,
  created_at TEXT NOT NULL DEFAULT (datetime('now')), superseded_by TEXT, deleted_at TEXT);
CREATE TABLE session_summaries (_rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL,
  session_id TEXT NOT NULL UNIQUE, summary TEXT NOT NULL, key_decisions TEXT NOT NULL DEFAULT '[]',
  files_modified TEXT NOT NULL DEFAULT '[]', concepts TEXT NOT NULL DEFAULT '[]',
  created_at TEXT NOT NULL DEFAULT (datetime('now')), request TEXT NOT NULL DEFAULT '',
  learned TEXT NOT NULL DEFAULT '',
  completed TEXT NOT NULL DEFAULT '', next_steps TEXT NOT NULL DEFAULT '');
"""


OPENED: list[sqlite3.Connection] = []


class Other:
    """A database of another tool that is being filled."""

    def __init__(self, path: Path, schema: str = NEW) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.db = sqlite3.connect(path)
        OPENED.append(self.db)
        self.db.execute("PRAGMA synchronous=OFF")
        self.db.executescript(schema)

    def add(self, table: str, **reported: Any) -> None:
        held = {name: json.dumps(each) if isinstance(each, list) else each for name, each in reported.items()}
        names = ", ".join(held)
        with self.db:
            self.db.execute(
                f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(held))})", tuple(held.values())
            )

    def session(self, id: str, *, project: str = "rooms", cwd: str = "") -> None:
        times = {"started_at": "2026-09-21T13:33:20Z", "started_at_epoch": AT * 1000}
        self.add("sdk_sessions", content_session_id=id, memory_session_id=f"m-{id}", project=project, **times)
        if cwd:
            Claude(cwd, session=id).prompt("hi").into(self.path.parents[1] / ".claude")

    def observe(
        self, session: str, *, project: str = "rooms", at: int = AT, table: str = "observations", **reported: Any
    ) -> None:
        times = {"created_at": "2026-09-21T13:33:20Z", "created_at_epoch": at * 1000}
        reported = {"type": "discovery"} | reported if table == "observations" else reported
        self.add(table, memory_session_id=f"m-{session}", project=project, **times, **reported)


CLAUDE_MEM, OPEN_MEM_SOURCE = ClaudeMem("claude-mem"), OpenMem("open-mem")
NAMED = ClaudeMem("claude-mem", {"project_name": "rooms"})


class World:
    def __init__(self, root: Path) -> None:
        self.environ = {"HOME": str(root / "home")}
        self.path = root / "home" / ".claude-mem" / "claude-mem.db"
        (root / "rooms").mkdir()
        (root / "rooms" / "pyproject.toml").touch()
        self.rooms = project_at(str(root / "rooms"))

    def read(self, source: ClaudeMem | OpenMem | None = None) -> list[Batch]:
        return list(self.here(source).read(self.rooms))

    def memories(self, source: ClaudeMem | OpenMem | None = None) -> list[Memory]:
        return [memory for batch in self.read(source) for memory in batch.memories]

    def about(self, source: ClaudeMem | OpenMem | None = None) -> str:
        return self.here(source).offer(self.rooms)

    def here(self, source: ClaudeMem | OpenMem | None) -> ClaudeMem | OpenMem:
        return replace(source or CLAUDE_MEM, environ=self.environ)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture(autouse=True)
def _close_databases() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


def test_each_type_becomes_its_kind(world: World) -> None:
    other = Other(world.path)
    other.session("s1", cwd=f"{world.rooms.root}/web")
    other.observe("s1", type="decision", title="Use cents", narrative="Floats lost one.", concepts=["trade-off"])
    other.observe(
        "s1",
        at=AT + 1,
        type="bugfix",
        title="Booking at midnight",
        narrative="The day was wrong.",
        facts=["compare dates"],
    )
    other.observe("s1", at=AT + 2, type="discovery", title="Slots are half open", narrative="…", concepts=["gotcha"])
    other.observe(
        "s1", at=AT + 3, type="discovery", title="Read the settings", narrative="…", concepts=["what-changed"]
    )
    other.observe(
        "s1",
        at=AT + 4,
        type="feature",
        title="Waiting list",
        subtitle="for full evenings",
        files_modified=[f"{world.rooms.root}/rooms/w.py", "rooms/b.py"],
        files_read=["/etc/hosts"],
    )
    other.observe(
        "s1",
        at=AT + 5,
        table="session_summaries",
        request="add a waiting list\nplease",
        completed="table and mail",
        learned="holds count",
        next_steps="send it",
        investigated="slots",
    )
    found = world.memories()
    assert [(memory.kind, memory.title) for memory in found] == [
        ("decision", "Use cents"),
        ("failure", "Booking at midnight"),
        ("learning", "Slots are half open"),
        ("observation", "Read the settings"),
        ("observation", "Waiting list"),
        ("summary", "add a waiting list"),
    ]
    decision, failure, learning, _, feature, summary = found
    assert dict(summary.detail) == {
        "request": "add a waiting list\nplease",
        "done": "table and mail",
        "learned": "holds count",
        "next": "send it",
        "investigated": "slots",
    }
    assert feature.files == ("rooms/w.py", "rooms/b.py", "/etc/hosts")
    assert failure.detail["fixed_by"] == "compare dates"
    assert failure.body == "The day was wrong.\n- compare dates"
    assert learning.tags == ("gotcha",)
    for memory in found:
        assert (memory.trust, memory.source, memory.session) == ("imported", "claude-mem", "s1")
        assert (memory.scope, memory.project) == (world.rooms.scope, world.rooms.key)
        assert memory.uid.startswith("claude-mem:")
    assert decision.created == AT
    assert len({memory.uid for memory in found}) == 6


def test_other_tables_are_an_error_that_says_so(tmp_path: Path) -> None:
    for number, schema in enumerate((OLD, "CREATE TABLE recipes (id INTEGER)")):
        (tmp_path / str(number)).mkdir()
        world = World(tmp_path / str(number))
        Other(world.path, schema)
        with pytest.raises(StoreError, match=r"claude-mem\.db") as caught:
            world.memories(NAMED)
        assert "newest tables" in caught.value.hint


def test_only_sessions_of_this_project_are_taken(tmp_path_factory, tmp_path: Path):
    # A bare name is reported and not believed.
    world = World(tmp_path_factory.mktemp("x"))
    other = Other(world.path)
    other.session("s1")
    for number in range(3):
        other.observe("s1", title=f"of some rooms {number}")
    assert world.memories() == []
    assert world.about() == "3 rows of a project called `rooms`: add `--project-name rooms` if that is this one"
    assert len(world.memories(NAMED)) == 3
    assert world.about(NAMED) == "3 observations of claude-mem"
    # A session that is known to be elsewhere is not taken by its name.
    world = World(tmp_path_factory.mktemp("x"))
    (tmp_path / "other" / "rooms").mkdir(parents=True)
    other = Other(world.path)
    other.session("s1", cwd=str(tmp_path / "other" / "rooms"))
    other.observe("s1", title="of the other rooms")
    assert world.memories(NAMED) == []
    assert world.about() == ""
    # Another name than the folders is refused.
    world = World(tmp_path_factory.mktemp("x"))
    Other(world.path).session("s1", project="halls")
    with pytest.raises(BadRequest, match="called `rooms`, not `halls`"):
        world.read(ClaudeMem("claude-mem", {"project_name": "halls"}))
    # Claudes own transcripts tell the folder of a session.
    world = World(tmp_path_factory.mktemp("x"))
    other = Other(world.path)
    Claude(world.rooms.root, session="s1").prompt("hi").into(Path(world.environ["HOME"]) / ".claude")
    other.session("s1", project="whatever")
    other.observe("s1", project="whatever", title="found by its transcript")
    assert [memory.title for memory in world.memories()] == ["found by its transcript"]
    assert world.about() == "1 observation of claude-mem"


def test_the_same_row_has_the_same_uid(world: World) -> None:
    other = Other(world.path)
    other.session("s1")
    for number in range(250):
        other.observe("s1", at=AT + number, title=f"n {number}")
    source = NAMED
    batches = world.read(source)
    assert [len(batch.memories) for batch in batches] == [100, 100, 50]
    assert batches[0].memories[0].title == "n 0"
    assert [batch.memories for batch in world.read(source)] == [batch.memories for batch in batches]


def test_no_secret_and_no_odd_column_comes_through(tmp_path_factory):
    # No secret leaves the database.
    world = World(tmp_path_factory.mktemp("x"))
    other = Other(world.path)
    other.session("s1")
    other.observe(
        "s1",
        title=f"key {KEY}",
        narrative=f"<private>plan</private> {KEY}",
        facts=[KEY],
        concepts=[KEY],
        files_read=[KEY],
    )
    found = repr(world.memories(NAMED))
    assert KEY not in found
    assert "plan" not in found
    # Whatever stands in the columns nothing breaks.
    world = World(tmp_path_factory.mktemp("x"))
    other = Other(world.path)
    other.session("s1")
    other.observe("s1", title=None, narrative=None)
    other.observe("s1", title="ok", facts='[1, null, "yes"]', concepts="7", files_read="a.py", narrative=b"\xff\xfe")
    (memory,) = world.memories(NAMED)
    assert (memory.title, memory.files, memory.body) == ("ok", ("a.py",), "- yes")


# ---- the file itself


def test_the_file_stays_as_it_is_and_a_damaged_one_is_told(tmp_path_factory):
    # Nothing in the file or beside it changes.
    world = World(tmp_path_factory.mktemp("x"))
    other = Other(world.path)
    other.db.execute("PRAGMA journal_mode=WAL")
    other.session("s1")
    other.observe("s1", title="while its owner is at work")
    before = {path.name: path.read_bytes() for path in world.path.parent.iterdir() if path.suffix != ".db-shm"}
    assert len(world.memories(NAMED)) == 1
    assert before.items() <= {path.name: path.read_bytes() for path in world.path.parent.iterdir()}.items()
    # A file at rest gets no company.
    world = World(tmp_path_factory.mktemp("x"))
    other = Other(world.path)
    other.db.execute("PRAGMA journal_mode=WAL")
    other.session("s1")
    other.observe("s1", title="at rest")
    other.db.close()
    before = {path.name: path.read_bytes() for path in world.path.parent.iterdir()}
    assert len(world.memories(NAMED)) == 1
    assert {path.name: path.read_bytes() for path in world.path.parent.iterdir()} == before
    # A damaged file is reported by its name.
    world = World(tmp_path_factory.mktemp("x"))
    Other(world.path).db.close()
    raw = bytearray(world.path.read_bytes())
    raw[:100] = b"not a database" * 7 + b"xx"
    world.path.write_bytes(raw)
    for ask in (world.about, world.memories):
        with pytest.raises(StoreError, match=r"claude-mem\.db") as caught:
            ask()
        assert "nothing was changed" in caught.value.hint
    # No database is no trouble.
    world = World(tmp_path_factory.mktemp("x"))
    for source in (CLAUDE_MEM, OPEN_MEM_SOURCE):
        assert world.memories(source) == []
        assert world.about(source) == ""


# ---- open-mem


def opened(project: Project) -> Other:
    return Other(Path(project.root) / ".open-mem" / "memory.db", OPEN_MEM)


def test_open_mem_is_read_like_claude_mem_and_of_its_project(tmp_path_factory, tmp_path: Path):
    # Open mem is read like claude mem.
    world = World(tmp_path_factory.mktemp("x"))
    other = opened(world.rooms)
    other.add("sessions", id="ses_1", project_path=world.rooms.root)
    other.add(
        "observations",
        id="o1",
        session_id="ses_1",
        type="decision",
        title="Use cents",
        narrative="Floats lost one.",
        files_modified=["rooms/m.py"],
        created_at="2026-09-21 13:33:20",
    )
    other.add("observations", id="o2", session_id="ses_1", type="change", title="gone", deleted_at="2026-09-22")
    other.add("observations", id="o3", session_id="ses_1", type="change", title="old", superseded_by="o1")
    other.add(
        "session_summaries",
        id="u1",
        session_id="ses_1",
        summary="Money is stored as cents",
        key_decisions=["cents"],
        created_at="2026-09-21 14:00:00",
    )
    decision, summary = world.memories(OPEN_MEM_SOURCE)
    assert (summary.kind, summary.title, summary.detail["decisions"]) == (
        "summary",
        "Money is stored as cents",
        ["cents"],
    )
    assert (decision.kind, decision.files, decision.created) == ("decision", ("rooms/m.py",), 1_789_997_600.0)
    assert (decision.source, decision.trust, decision.session) == ("open-mem", "imported", "ses_1")
    assert world.about(OPEN_MEM_SOURCE) == "1 observation and 1 summary of open-mem"
    # Open mem of a moved project is its own and of another is not.
    world = World(tmp_path_factory.mktemp("x"))
    (tmp_path / "halls").mkdir()
    other = opened(world.rooms)
    other.add("sessions", id="moved", project_path=str(tmp_path / "where-it-was"))
    other.add("sessions", id="halls", project_path=str(tmp_path / "halls"))
    for session in ("moved", "halls"):
        other.add("observations", id=session, session_id=session, type="change", title=session)
    assert [memory.title for memory in world.memories(OPEN_MEM_SOURCE)] == ["moved"]
