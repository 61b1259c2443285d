"""The first day: `init`, `import` and `export` as people run them, and an import whose worker is killed."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreword.paths import Home
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import PATIENT, end_worker, until, wait_for
from tests.flow.forked import foreword
from tests.scratch import scratch_folder

SECRET = "ghp_" + "a1B2" * 9

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed: real histories untested")


class Person:
    """Somebody with a repository, an empty home, and nothing else."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "h")
        self.folder = root / "rooms"
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "LANG": "C.UTF-8",
            "FOREWORD_HOME": str(self.home.root),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self.folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str, typed: bytes = b"") -> None:
        subprocess.run(["git", *words], cwd=self.folder, env=self.environ, input=typed, check=True)

    def history(self, commits: int, *, now: float) -> None:
        """So many commits, a minute apart, the last one at *now*."""
        stream = []
        for number in range(commits):
            message = f"Mend the booking of room {number}\n\nIt was taken twice by band {number}.\n"
            at = int(now) - 60 * (commits - number)
            stream.append(f"commit refs/heads/main\ncommitter Ada <ada@example.org> {at} +0000\ndata {len(message)}\n")
            stream.append(f"{message}\nM 100644 inline rooms/part{number % 7}.py\ndata 2\n{number % 10}\n\n")
        self.git("fast-import", "--quiet", typed="".join(stream).encode())
        self.git("reset", "--quiet", "--hard", "main")

    def run(self, *words: str, code: int = 0, **environ: str) -> subprocess.CompletedProcess[str]:
        ended = foreword(*words, cwd=self.folder, env={**self.environ, **environ})
        assert ended.returncode == code, (ended.stdout, ended.stderr)
        return ended

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json").stdout)

    def rows(self, sql: str) -> list[Any]:
        connection = sqlite3.connect(f"file:{self.home.database}?mode=ro", uri=True)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    with scratch_folder() as root:
        made = Person(root)
        monkeypatch.setenv("FOREWORD_HOME", str(made.home.root))  # for workers that a test starts itself
        yield made
        end_worker(made.home)


def now() -> float:
    import time

    return time.time()


def test_init_says_what_it_found_and_prompts_and_searches_find_it(person: Person):
    person.history(30, now=now())
    (person.folder / "README.md").write_text("# Rooms\n\nRehearsal rooms by the hour, for bands that are loud.\n")
    (person.folder / "docs" / "adr").mkdir(parents=True)
    record = "# 1. Slots are in UTC\n\n## Status\n\nAccepted\n\n## Decision\n\nUTC, because clocks go back.\n"
    (person.folder / "docs" / "adr" / "0001-utc.md").write_text(record)
    before = _everything_in(person.folder)
    ended = person.run("init", "--yes")
    output = ended.stdout
    assert "30 commits" in output
    assert "1 decision record" in output
    assert "30 observations" in output
    assert "prompts and searches find all of this" in ended.stderr, "commits alone begin no session"
    assert "foreword install" in output
    assert "foreword config set agent_notes true" in output
    for words, found in (
        ("rehearsal", "bands that are loud"),
        ("slots UTC", "Slots are in UTC"),
        ("room 29", "Mend the booking of room 29"),
    ):
        assert found in person.run("search", words).stdout
    assert _everything_in(person.folder) == before  # nothing is written into the repository


def test_init_twice_gives_no_duplicates_and_takes_what_is_new(person: Person):
    person.history(30, now=now())
    person.json("init", "--yes")
    again = person.json("init", "--yes")
    assert [source["kept"] for source in again["sources"]] == [0]
    (person.folder / "new.py").write_text("x")
    person.git("add", ".")
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    person.git(*identity, "commit", "--quiet", "-m", f"Add the waiting list {SECRET}")
    assert [source["kept"] for source in person.json("init", "--yes")["sources"]] == [1]
    assert person.rows("SELECT count(*), count(DISTINCT uid) FROM memories") == [(31, 31)]
    assert person.rows("SELECT count(*) FROM memories WHERE title LIKE '%redacted:github-token%'") == [(1,)]


def test_init_asks_and_without_an_answer_does_nothing(person: Person):
    person.history(3, now=now())
    assert "hint: pass --yes" in person.run("init", code=1).stderr
    offered = person.json("init")
    assert [offer["source"] for offer in offered["offers"]] == ["git"]
    assert not person.home.database.exists()


def test_init_outside_of_git_reads_files_and_an_empty_folder_is_no_error(person: Person, tmp_path: Path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "README.md").write_text("# Notes\n\nWhat I think about when nobody is looking at me.\n")
    (tmp_path / "empty").mkdir()
    assert "1 project" in person.run("init", "--yes", str(tmp_path / "notes")).stdout
    assert "nothing to import" in person.run("init", "--yes", str(tmp_path / "empty")).stderr


def test_off_means_off(person: Person):
    person.history(3, now=now())
    for words in (("init", "--yes"), ("import", "git")):
        assert "FOREWORD_OFF" in person.run(*words, code=1, FOREWORD_OFF="1").stderr
        assert "capture is switched off" in person.run(*words, code=1, FOREWORD_CAPTURE="0").stderr
        assert "switched off" in person.run(*words, code=1, FOREWORD_OFF_PROJECTS=str(person.folder)).stderr
    assert not person.home.database.exists()


def begin_import(person: Person) -> None:
    """Start an import of the git history, and do not wait for it."""
    lifecycle.start(person.home)
    Client(person.home, seconds=20).post("/api/imports", {"sources": ["git"], "project_path": str(person.folder)})


def test_an_import_that_was_killed_is_repeated_without_loss_or_doubles(person: Person):
    commits = 600
    person.history(commits, now=now())
    begin_import(person)
    wait_for(lambda: person.rows("SELECT count(*) FROM memories")[0][0] >= 100)
    end_worker(person.home)
    assert person.run("import", "git").returncode == 0
    assert person.rows("SELECT count(*), count(DISTINCT uid), count(DISTINCT title) FROM memories") == [
        (commits, commits, commits)
    ]
    assert [source["kept"] for source in person.json("init", "--yes")["sources"]] == [0]


def test_a_prompt_is_answered_while_an_import_runs(person: Person):
    # Not from the commits: of 1,500 that are alike, none is close enough to a prompt.
    person.environ |= PATIENT
    person.run("add", "decision", "The piano in the cellar is tuned on Mondays", "--why", "the tuner lives far away")
    person.history(1500, now=now())
    begin_import(person)
    client = Client(person.home, seconds=20)
    prompt = {"project_path": str(person.folder), "prompt": "when is the piano in the cellar tuned?", "preview": 1}
    for _ in until(60):
        assert "tuned on Mondays" in client.get("/api/context", **prompt)["context"]
        if client.get("/api/imports")["imports"][0]["state"] == "done":
            break
    found = client.get("/api/search", q="booking room", project_path=str(person.folder), limit=1)["results"]
    assert found[0]["title"] == "Mend the booking of room 1499"  # of equals the newest, though it was taken in first


def test_an_export_is_private_whole_and_comes_back(person: Person, tmp_path: Path):
    person.history(20, now=now())
    person.run("init", "--yes")
    person.run("add", "decision", "Slots are in UTC", "--why", "clocks go back")
    file = tmp_path / "rooms.jsonl"
    old = os.umask(0)
    try:
        person.run("export", str(file))
    finally:
        os.umask(old)
    assert file.read_text(encoding="utf-8").count('\n{"memory":') == 21
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["rooms.jsonl"]
    assert person.run("export").stdout.splitlines()[1:] == file.read_text(encoding="utf-8").splitlines()[1:]
    names = "id, uid, kind, title, body, tags, files, project, source, trust, confidence, seen, created, status, detail"
    before = person.rows(f"SELECT {names} FROM memories ORDER BY uid")
    end_worker(person.home)
    shutil.rmtree(person.home.root)
    assert person.json("import", "jsonl", str(file))["sources"][0]["kept"] == 21
    assert person.rows(f"SELECT {names} FROM memories ORDER BY uid") == before
    assert "Nothing new" in person.run("import", "jsonl", str(file)).stdout


def test_what_cannot_be_imported_is_named_and_an_agents_shell_imports_nothing(person: Person):
    for words in (("import", "git"), ("init", "--yes"), ("config", "set", "inject", "off")):
        assert "hint: " in person.run(*words, code=1, CLAUDECODE="1").stderr
    assert not person.home.database.exists()
    assert "unknown source" in person.run("import", "nonsense", code=1).stderr
    assert "no file" in person.run("import", "jsonl", "/nowhere.jsonl", code=1).stderr


def _everything_in(folder: Path) -> dict[str, tuple[int, float]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime) for path in folder.rglob("*") if path.is_file()}
