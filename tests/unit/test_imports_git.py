"""A history is read oldest first, with the functions that its newest commits changed; routine weighs little."""

from __future__ import annotations

from pathlib import Path

import pytest

from foreword.capture.parse import project_at
from foreword.importers import Batch, find
from foreword.importers.git import RECENT, ROUTINE, Git
from foreword.models import Memory
from tests.tables import table
from tests.unit.test_history import Repository, needs_git

pytestmark = needs_git


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


def read(repo: Repository) -> list[Batch]:
    return list(Git("git").read(project_at(str(repo.folder))))


def titles(batches: list[Batch]) -> list[str]:
    return [memory.title for batch in batches for memory in batch.memories]


def one(repo: Repository, message: str, *names: str) -> Memory:
    repo.commit(message, *(names or ("a.py",)))
    return read(repo)[0].memories[-1]


def test_a_history_is_read_oldest_first(repo: Repository):
    for number in range(RECENT + 2):
        repo.commit(f"Commit {number}", "a.py")
    batches = read(repo)
    assert titles(batches) == [f"Commit {number}" for number in range(RECENT + 2)]
    assert [(batch.done, batch.total) for batch in batches] == [(2, RECENT + 2), (RECENT + 2, RECENT + 2)]


@table(
    ("subject", "names"),
    [
        ("Bump left-pad from 1.0 to 1.1", ("package.json",)),
        ("chore(deps): update all", ("package.json",)),
        ("Release 1.2.3", ("CHANGELOG.md",)),
        ("wip", ("a.py",)),
        ("fixup! Add the parser", ("a.py",)),
    ],
)
def test_routine_is_kept_with_little_confidence(repo: Repository, subject: str, names: tuple[str, ...]):
    memory = one(repo, subject, *names)
    assert (memory.confidence, memory.tags[-1]) == (ROUTINE, "routine")


@table("subject", ["Fix the parser", "Release the lock before waiting", "Update the index at once"])
def test_ordinary_work_is_not_taken_for_routine(repo: Repository, subject: str):
    assert one(repo, subject).confidence == 1.0


def test_functions_and_counts_come_with_commits(tmp_path_factory, tmp_path: Path):
    # The newest commits name the functions that they changed.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    (repo.folder / "a.py").write_text("def f(x):\n    return x\n")
    repo.commit("Add f")
    (repo.folder / "a.py").write_text("def f(x):\n    return x + 1\n\n\ndef g(): ...\n")
    repo.commit("Add g")
    (batch,) = read(repo)
    assert [(memory.kind, memory.title, memory.functions) for memory in batch.memories] == [
        ("observation", "Add f", ("f",)),
        ("observation", "Add g", ("f", "g")),
        ("change", "f() in a.py", ("f",)),
        ("change", "g() in a.py", ("g",)),
    ]
    assert {change.function: change.what for change in batch.changes} == {"f": "MODIFIED", "g": "NEW"}
    # Outside of git and before the first commit there is nothing.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    (tmp_path / "plain").mkdir()
    for folder in (tmp_path / "plain", repo.folder):
        project = project_at(str(folder))
        assert find("git").offer(project) == ""
        assert titles(list(find("git").read(project))) == []
    # It tells how many there are before reading them.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    for number in range(3):
        repo.commit(f"Commit {number}")
    found = find("git").offer(project_at(str(repo.folder)))
    assert found == "3 commits"
