"""Sessions of this project, and of no other, become batches: oldest first, and each once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from foreword.capture.parse import project_at
from foreword.extract.actions import Action
from foreword.importers import Batch, transcripts
from foreword.importers.transcripts import Transcripts
from foreword.models import Change, Link, Memory, Project, Session
from tests.sessions import START, Claude, Codex

DAY = 86_400.0
NOW = START + 30 * DAY


@dataclass(frozen=True)
class Came:
    memories: tuple[Memory, ...] = ()
    links: tuple[Link, ...] = ()
    changes: tuple[Change, ...] = ()


def extract(actions: Iterable[Action], *, session: Session, project: Project, changes_of: Any) -> Came:
    """One memory for each thing that was said or run: enough to see what came through."""
    return Came(
        memories=tuple(
            Memory(kind="observation", title=action.text or action.command, project=project.key, session=session.id)
            for action in actions
            if action.text or action.command
        )
    )


class World:
    """A home with its agents' folders, and projects beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ = {"HOME": str(root / "home")}
        self.claude = root / "home" / ".claude"
        self.codex = root / "home" / ".codex"

    def project(self, name: str, *, git: str = "") -> Project:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pyproject.toml").touch()
        if git:
            (folder / ".git").mkdir()
            (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
            (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {git}\n')
        return project_at(str(folder))

    def source(self, host: str = "claude-code") -> Transcripts:
        return Transcripts(host, environ=self.environ)

    def read(self, project: Project, host: str = "claude-code") -> list[Batch]:
        return list(self.source(host).read(project))

    def titles(self, project: Project, host: str = "claude-code") -> list[list[str]]:
        return [[memory.title for memory in batch.memories] for batch in self.read(project, host)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture(autouse=True)
def _made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "extract_session", extract)
    monkeypatch.setattr(transcripts.time, "time", lambda: NOW)


def test_the_newest_session_comes_last_with_what_it_was(world: World) -> None:
    rooms = world.project("rooms")
    for day in (1, 3, 2):
        Claude(rooms.root, session=f"s-{day}", at=START + day * DAY).prompt(f"day {day}").answer("ok").into(
            world.claude
        )
    batches = world.read(rooms)
    assert [batch.session.id for batch in batches if batch.session] == ["s-1", "s-2", "s-3"]
    assert [(batch.done, batch.total) for batch in batches] == [(1, 3), (2, 3), (3, 3)]
    assert batches[-1].session == Session(
        id="s-3",
        host="claude-code",
        project=rooms.key,
        cwd=rooms.root,
        started=START + 3 * DAY + 1,
        last=START + 3 * DAY + 2,
        ended=START + 3 * DAY + 2,
        events=4,
    )
    assert [memory.title for memory in batches[-1].memories] == ["day 3", "ok"]


def test_no_project_gets_the_sessions_of_another(tmp_path_factory):
    # Two projects whose folders claude calls the same never mix.
    world = World(tmp_path_factory.mktemp("x"))
    dashed, nested, dotted = (
        world.project("work/rooms-api"),
        world.project("work/rooms/api"),
        world.project("work/rooms.api"),
    )
    for project in (dashed, nested, dotted):
        Claude(project.root).prompt(f"in {project.root}").into(world.claude)
    assert len(list((world.claude / "projects").iterdir())) == 1
    for project in (dashed, nested, dotted):
        assert world.titles(project) == [[f"in {project.root}"]]
        found = world.source().offer(project)
        assert found == "1 session of Claude Code"
    # A project whose name begins like anothers is not taken for it.
    world = World(tmp_path_factory.mktemp("x"))
    rooms, roomsy = world.project("rooms"), world.project("rooms-two")
    Claude(roomsy.root).prompt("of the other").into(world.claude)
    Codex(roomsy.root).prompt("of the other").into(world.codex)
    assert world.titles(rooms) == world.titles(rooms, "codex") == []
    assert world.source().offer(rooms) == ""
    # A session that went into another project brings nothing from there.
    world = World(tmp_path_factory.mktemp("x"))
    rooms, secret = world.project("rooms"), world.project("secret")
    session = Claude(rooms.root).prompt("here")
    session.cwd = secret.root
    session.tool("Bash", {"command": "make secret"}, "secret").prompt("there")
    session.into(world.claude)
    assert world.titles(rooms) == [["here"]]
    assert world.titles(secret) == []


def test_every_folder_and_clone_of_a_project_counts(tmp_path_factory):
    # Sessions in subfolders and worktrees are the projects.
    world = World(tmp_path_factory.mktemp("x"))
    rooms = world.project("rooms", git="git@example.com:me/rooms.git")
    (tree := world.root / "elsewhere" / "fix").mkdir(parents=True)
    git = Path(rooms.root) / ".git" / "worktrees" / "fix"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/fix\n")
    (git / "commondir").write_text("../..\n")
    (git / "gitdir").write_text(f"{tree}/.git\n")
    (tree / ".git").write_text(f"gitdir: {git}\n")
    Claude(str(tree), at=START + 2).prompt("in a tree").into(world.claude)
    Claude(f"{rooms.root}/web/src", at=START + 1).prompt("below").into(world.claude)
    assert world.titles(rooms) == [["below"], ["in a tree"]]
    assert world.titles(project_at(str(tree))) == [["below"], ["in a tree"]]
    # Another clone of the same repository counts.
    world = World(tmp_path_factory.mktemp("x"))
    here = world.project("rooms", git="git@example.com:me/rooms.git")
    there = world.project("old/checkout", git="https://example.com/me/rooms")
    Claude(there.root).prompt("in the other clone").into(world.claude)
    assert world.titles(here) == [["in the other clone"]]
    # Rollouts are found in all their folders but not sub agents.
    world = World(tmp_path_factory.mktemp("x"))
    rooms = world.project("rooms")
    Codex(rooms.root, at=START).prompt("one").into(world.codex)
    Codex(rooms.root, at=START + 40 * DAY).prompt("three").into(world.codex)
    Codex(rooms.root, at=START + DAY).prompt("two").write(world.codex / "archived_sessions" / "rollout-two.jsonl")
    Codex(rooms.root, at=START + 9, source={"subagent": "review"}).prompt("inner").into(world.codex)
    assert world.titles(rooms, "codex") == [["one"], ["two"], ["three"]]
    assert world.read(rooms, "codex")[0].session.host == "codex"  # type: ignore[union-attr]
    # Homes that were moved are found.
    world = World(tmp_path_factory.mktemp("x"))
    rooms = world.project("rooms")
    Claude(rooms.root).prompt("moved").into(world.root / "c")
    Codex(rooms.root).prompt("moved").into(world.root / "x")
    world.environ |= {"CLAUDE_CONFIG_DIR": str(world.root / "c"), "CODEX_HOME": str(world.root / "x")}
    assert world.titles(rooms) == world.titles(rooms, "codex") == [["moved"]]
    # A real repository is the same project from each of its folders.
    world = World(tmp_path_factory.mktemp("x"))
    root = world.root / "real"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "src").mkdir()
    Claude(str(root / "src")).prompt("below").into(world.claude)
    assert world.titles(project_at(str(root))) == [["below"]]


def test_sessions_that_go_on_or_are_known_wait(tmp_path_factory):
    # Nothing at all is no trouble.
    world = World(tmp_path_factory.mktemp("x"))
    rooms = world.project("rooms")
    for host in ("claude-code", "codex"):
        assert world.read(rooms, host) == []
        assert world.source(host).offer(rooms) == ""
    # A session that is still being written waits and is reported.
    world = World(tmp_path_factory.mktemp("x"))
    rooms = world.project("rooms")
    Claude(rooms.root).prompt("done").into(world.claude)
    live = Claude(rooms.root, session="live", at=NOW - 60).prompt("going on").into(world.claude)
    found = world.source().offer(rooms)
    assert found == "2 sessions of Claude Code"
    first = world.read(rooms)
    assert [batch.done for batch in first] == [0, 1]
    assert "still running" in first[0].problems[0]
    os.utime(live, (NOW - 4000, NOW - 4000))
    assert sorted(world.titles(rooms)) == [["done"], ["going on"]]


def test_an_import_tells_everything_once(tmp_path_factory):
    # A fork and its origin tell everything once.
    world = World(tmp_path_factory.mktemp("x"))
    rooms = world.project("rooms")
    origin = Claude(rooms.root, session="origin").prompt("shared").answer("yes")
    fork = Claude(rooms.root, session="fork", at=START + DAY)
    fork.lines = [line | {"sessionId": "fork", "forkedFrom": {"sessionId": "origin"}} for line in origin.lines]
    fork.prompt("only in the fork").into(world.claude)
    origin.at += 2 * DAY
    origin.prompt("only in the origin").into(world.claude)
    assert world.titles(rooms) == [["shared", "yes", "only in the fork"], ["only in the origin"]]
    again = Codex(rooms.root, session="c-1").prompt("shared").answer("yes")
    copy = Codex(rooms.root, session="c-2", at=START + DAY, forked_from_id="c-1")
    copy.lines += again.lines
    copy.prompt("new").into(world.codex)
    again.into(world.codex)
    assert world.titles(rooms, "codex") == [["shared", "yes"], ["new"]]


def test_broken_lines_are_told_and_no_secret_leaves(tmp_path_factory):
    # Broken lines and files are reported and the rest is read.
    world = World(tmp_path_factory.mktemp("x"))
    rooms = world.project("rooms")
    Claude(rooms.root, session="good").prompt("good").raw("{broken").into(world.claude)
    (folder,) = (world.claude / "projects").iterdir()
    (folder / "empty.jsonl").touch()
    (folder / "agent-1.jsonl").write_text("{}")
    (batch,) = world.read(rooms)
    assert batch.memories[0].title == "good"
    assert batch.problems[0].startswith("1 line of ")
    # No secret leaves the source.
    world = World(tmp_path_factory.mktemp("x"))
    key = "ghp_" + "a1B2" * 9
    rooms = world.project(f"rooms-{key}")
    Claude(rooms.root, session="s").prompt(f"use {key} <private>plan</private>").answer(key).into(world.claude)
    Codex(rooms.root).prompt(f"use {key}").into(world.codex)
    assert world.titles(rooms) == [["use [redacted:github-token] [redacted:private]", "[redacted:github-token]"]]
    assert key not in repr(world.read(rooms)) + repr(world.read(rooms, "codex"))
