"""A history is read oldest first, once, whatever happens in between: new commits, a kill, a revert, a rewrite."""

from __future__ import annotations

from pathlib import Path

import pytest

from foreword.capture.parse import project_at
from foreword.importers.base import Batch, find
from foreword.importers.git import RECENT, ROUTINE, Git
from foreword.models import Memory
from tests.tables import table
from tests.unit.test_history import Repository, needs_git

pytestmark = needs_git


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


def read(repo: Repository, mark: str = "", **options: int) -> list[Batch]:
    return list(Git("git", options).read(project_at(str(repo.folder)), environ={}, checkpoint=mark))


def titles(batches: list[Batch]) -> list[str]:
    return [memory.title for batch in batches for memory in batch.memories]


def one(repo: Repository, message: str, *names: str) -> Memory:
    repo.commit(message, *(names or ("a.py",)))
    return read(repo)[0].memories[-1]


def test_a_history_is_read_once_on_every_branch(tmp_path_factory):
    # A second reading finds nothing new.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    for number in range(3):
        repo.commit(f"Commit {number}", "a.py")
    batches = read(repo)
    assert titles(batches) == ["Commit 0", "Commit 1", "Commit 2"]
    assert (batches[-1].done, batches[-1].total) == (3, 3)
    assert titles(read(repo, batches[-1].checkpoint)) == []
    # A larger limit reads what a smaller one left out.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    for number in range(5):
        repo.commit(f"Commit {number}")
    some = read(repo, commits=2)
    assert titles(some) == ["Commit 3", "Commit 4"]
    assert titles(read(repo, some[-1].checkpoint)) == []
    assert len(titles(read(repo, some[-1].checkpoint, commits=4))) == 4
    # Branches share what they share.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    repo.commit("Base", "a.py")
    mark = read(repo)[-1].checkpoint
    repo.git("checkout", "-qb", "side")
    repo.commit("On the side", "b.py")
    batches = read(repo, mark)
    repo.git("checkout", "-q", "main")
    assert titles(batches) == ["On the side"]
    assert titles(read(repo, batches[-1].checkpoint)) == []
    # A rewritten history is read again.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    repo.commit("Base", "a.py")
    repo.commit("Draft", "a.py")
    mark = read(repo)[-1].checkpoint
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.commit("Final", "a.py")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    assert titles(read(repo, mark)) == ["Base", "Final"]


def test_an_interrupted_import_begins_again(repo: Repository):
    for number in range(RECENT + 5):
        repo.commit(f"Old {number}")
    first = next(iter(Git("git").read(project_at(str(repo.folder)), environ={}, checkpoint="")))
    assert (len(first.memories), first.total, first.checkpoint) == (RECENT, RECENT + 5, "")


@table("mark", ["nonsense", "-n1", "0" * 40, '{"tips": 3}'])
def test_a_mark_that_nobody_understands_begins_again(tmp_path: Path, mark: str):
    repo = Repository(tmp_path / "repo")
    repo.commit("Only")
    assert titles(read(repo, mark)) == ["Only"]


def test_a_reverted_commit_is_superseded_and_no_other(tmp_path_factory):
    # A reverted commit is superseded by the one that took it back.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    bad = repo.commit("Cache everything", "a.py")
    repo.commit(f'Revert "Cache everything"\n\nThis reverts commit {bad}.\n', "a.py")
    first, *_, last = read(repo)
    revert, (gone,) = first.memories[1], last.memories
    assert (gone.status, gone.superseded_by) == ("superseded", revert.uid)
    assert [(link.source, link.relation, link.target) for link in last.links] == [(revert.uid, "supersedes", gone.uid)]
    # A revert that was itself reverted takes nothing back.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    good = repo.commit("Cache everything", "a.py")
    revert = repo.commit(f'Revert "Cache everything"\n\nThis reverts commit {good}.\n', "a.py")
    repo.commit(f'Reapply "Cache everything"\n\nThis reverts commit {revert}.\n', "a.py")
    *_, last = read(repo)
    assert [memory.title for memory in last.memories] == ['Revert "Cache everything"']
    assert last.memories[0].status == "superseded"
    # A revert of something read long ago still counts.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    bad = repo.commit("Cache everything", "a.py")
    mark = read(repo)[-1].checkpoint
    repo.commit(f'Revert "Cache everything"\n\nThis reverts commit {bad}.\n', "a.py")
    status = {memory.title: memory.status for batch in read(repo, mark) for memory in batch.memories}
    assert status == {'Revert "Cache everything"': "active", "Cache everything": "superseded"}
    # What is taken back in part stays.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    bad = repo.commit("Cache everything", "a.py")
    repo.commit(f"Cache less\n\nThis reverts commit {bad} partially.\n", "a.py")
    assert {memory.status for memory in read(repo)[0].memories} == {"active"}


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
    # Functions of the newest commits come behind what somebody waits for.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    (repo.folder / "a.py").write_text("def f(x):\n    return x\n")
    repo.commit("Add f")
    (repo.folder / "a.py").write_text("def f(x):\n    return x + 1\n\n\ndef g(): ...\n")
    repo.commit("Add g")
    first, second, *_ = read(repo)
    assert titles([first]) == ["Add f", "Add g"]
    assert not first.changes
    assert [(memory.kind, memory.title, memory.functions) for memory in second.memories] == [
        ("observation", "Add g", ("f", "g")),
        ("observation", "Add f", ("f",)),
        ("change", "f() in a.py", ("f",)),
        ("change", "g() in a.py", ("g",)),
    ]
    assert {change.function: change.what for change in second.changes} == {"f": "MODIFIED", "g": "NEW"}
    # Outside of git and before the first commit there is nothing.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    (tmp_path / "plain").mkdir()
    for folder in (tmp_path / "plain", repo.folder):
        project = project_at(str(folder))
        assert find("git").offer(project, environ={}) is None
        assert titles(list(find("git").read(project, environ={}, checkpoint=""))) == []
    # It tells how many there are before reading them.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    for number in range(3):
        repo.commit(f"Commit {number}")
    found = find("git").offer(project_at(str(repo.folder)), environ={})
    assert found
    assert (found.count, found.about) == (3, "3 commits")
