"""A repository's own history is a first memory: complete, bounded, and the same however often it is read."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from foreword import projects
from foreword.cli.demo import load_story
from foreword.code import git
from foreword.errors import BadRequest
from foreword.importers.git import FILES, changed, memories_of, memory_of
from foreword.models import KINDS, TRUSTS, Memory, Project
from tests.growth import assert_linear
from tests.tables import table

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed: real histories untested")

NOON = 1_700_000_000  # any moment; each commit of a test is a minute after the one before


class Repository:
    """A real one, whose commits have fixed times."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.minutes = 0
        folder.mkdir(parents=True)
        self.git("init", "--initial-branch=main")

    def git(self, *words: str | bytes, text: bytes = b"") -> str:
        trigger = f"{NOON + 60 * self.minutes} +0200"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Ada Writer",
            "GIT_AUTHOR_EMAIL": "ada@example.org",
            "GIT_COMMITTER_NAME": "Ada Writer",
            "GIT_COMMITTER_EMAIL": "ada@example.org",
            "GIT_AUTHOR_DATE": trigger,
            "GIT_COMMITTER_DATE": trigger,
        }
        ran = subprocess.run(["git", *words], cwd=self.folder, env=clean, input=text, capture_output=True, check=True)
        return ran.stdout.decode(errors="replace").strip()

    def commit(self, message: str | bytes, *names: str | bytes) -> str:
        """The hash of a new commit that touches the files of these names."""
        self.minutes += 1
        for name in names:
            path = os.path.join(os.fsencode(self.folder), os.fsencode(name))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "a") as file:
                file.write(f"{self.minutes}\n")
        self.git("add", "--all")
        raw = message if isinstance(message, bytes) else message.encode()
        self.git("commit", "--allow-empty", "--allow-empty-message", "--cleanup=verbatim", "--file=-", text=raw)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


def commits(folder: str, *, limit: int = 500) -> list[Memory]:
    """The newest commits around a folder, newest first."""
    project = projects.resolve(folder)
    hashes = git.run(project.root, ("rev-list", "--no-merges", f"--max-count={limit}", "HEAD", "--")).decode().split()
    return memories_of(hashes, project)


def only(repo: Repository) -> Memory:
    (memory,) = commits(str(repo.folder), limit=1)
    return memory


# ---- commits


@needs_git
def test_a_commit_becomes_one_observation_of_its_project(repo: Repository):
    made = repo.commit("Add the parser\n\nIt reads one line at a time.\n", "src/parse.py", "tests/test_parse.py")
    project = projects.resolve(str(repo.folder))
    assert list(commits(str(repo.folder))) == [
        Memory(
            kind="observation",
            title="Add the parser",
            body="It reads one line at a time.",
            uid=f"git:{project.key}:{made}",
            scope=project.scope,
            project=project.key,
            files=("src/parse.py", "tests/test_parse.py"),
            source="git",
            trust="imported",
            created=NOON + 60.0,
            confirmed=NOON + 60.0,
            detail={"commit": made, "files": 2},
        )
    ]


@needs_git
def test_a_history_is_the_same_every_time(tmp_path_factory, tmp_path: Path):
    # Reading twice gives the same and clones of one remote the same uids.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    for number in range(3):
        repo.commit(f"c{number}", "a")
    first = list(commits(str(repo.folder)))
    assert first == list(commits(str(repo.folder)))
    for clone in ("one", "two"):
        repo.git("clone", "--quiet", str(repo.folder), str(tmp_path / clone))
    one, two = ([memory.uid for memory in commits(str(tmp_path / clone))] for clone in ("one", "two"))
    assert one == two
    assert len(set(one)) == 3


@needs_git
def test_a_commit_is_told_with_its_files_and_without_people(tmp_path_factory):
    # Merges are left out and what they merged is kept.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    repo.commit("base", "a")
    repo.git("checkout", "--quiet", "-b", "side")
    repo.commit("on the side", "b")
    repo.git("checkout", "--quiet", "main")
    repo.commit("on main", "c")
    repo.minutes += 1
    repo.git("merge", "--no-ff", "--message=Merge side", "side")
    assert [memory.title for memory in commits(str(repo.folder))] == ["on main", "on the side", "base"]
    # A rename names both paths.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    repo.commit("one", "old.py")
    repo.git("mv", "old.py", "new.py")
    repo.commit("two")
    assert only(repo).files == ("new.py", "old.py")
    # Names come as they are.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    names = ("with space", "two\nlines", "\nbreak first", "日本/ü.py", 'quo"te\\', "-dash", "a\tb")
    repo.commit("odd", *names)
    repo.commit("after")
    assert sorted(list(commits(str(repo.folder)))[1].files) == sorted(names)
    repo.commit("break first of all", "\n\n")
    assert only(repo).files == ("\n\n",)
    # Text in any encoding becomes text that can be stored.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    try:
        repo.commit(b"caf\xe9 \xff\n\nbody \xfe", b"caf\xe9.txt")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    memory = only(repo)
    (memory.title + memory.body + memory.files[0]).encode()
    repo.git("-c", "i18n.commitEncoding=ISO-8859-1", "commit", "--allow-empty", "--file=-", text=b"caf\xe9")
    assert only(repo).title == "café"
    # A commit of many files keeps the first and the count.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    repo.commit("import", *(f"f{number:04}" for number in range(1000)))
    memory = only(repo)
    assert len(memory.files) == FILES
    assert memory.detail["files"] == 1000
    # A commit without a message has its hash for a title.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    made = repo.commit("", "a.py")
    assert only(repo).title == f"Commit {made[:10]} without a message"
    # A long subject stays whole.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    repo.commit("word " * 100 + "\nwrapped\n\nbody", "a")
    assert only(repo).title.endswith("word wrapped")
    assert only(repo).title.count("word") == 100
    # Names and addresses of people are left out.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    repo.commit(
        "Fix it\nSigned-off-by: Ada Writer <ada@example.org>\n\nAs said.\nReported-by: Bob <bob@example.org>", "a"
    )
    assert only(repo).title == "Fix it"
    assert not any(word in repr(only(repo)) for word in ("Ada", "Bob", "example.org"))


@needs_git
@table(
    ("message", "body"),
    [
        ("s\n\nWhy.\n\nSigned-off-by: Ada <ada@example.org>\nChange-Id: I0123\n", "Why."),
        ("s\n\nCo-Authored-By: Bot <bot@example.org>\n", ""),
        ("s\n\nWhy.\n\nReviewed-on: https://example.org/1\n\nCo-authored-by: A <a@b.c>\nCc: B <b@b.c>\n", "Why."),
        ("s\n\nWhy.\n\nFixes: #12\nCloses: https://example.org/1\n", "Why."),
        ("s\n\nWhy.\n(cherry picked from commit 0123456789abcdef)\n", "Why."),
        ("s\n\nWhy.\n\n🤖 Generated with [Claude Code](https://example.org)\n\nCo-Authored-By: X <x@y.z>\n", "Why."),
        ("s\n\nFirst.\nSuggested-by: Bob <bob@example.org>\nThen this.\n", "First.\nThen this."),
        ("s\n\nWhy.\n\nNote: this one is a sentence.\n", "Why.\n\nNote: this one is a sentence."),
        ("s\n\nBug: the parser stopped early.\n", "Bug: the parser stopped early."),
        ("s\n\nFollow-up: remove the flag.\n", "Follow-up: remove the flag."),
        ("s\n\nBREAKING-CHANGE: no more cascades\n", "BREAKING-CHANGE: no more cascades"),
        ("s\n\nA list:\n\n- one\n  indented\n", "A list:\n\n- one\n  indented"),
        ("s\n\n    indented only\n", "    indented only"),
        ("s\r\n\r\nWhy.\r\n\r\nSigned-off-by: A <a@b.c>\r\n", "Why."),
    ],
)
def test_a_body_is_the_message_without_its_trailers(repo: Repository, message: str, body: str):
    repo.commit(message, "a")
    assert only(repo).body == body
    assert only(repo).title == "s"


@needs_git
@table("part", ["\n", "cc: x ", "cc:<@", "signed-off-by: ", " to:<", "."])
def test_a_message_of_any_shape_is_read_in_the_time_it_takes_to_read_it(part: str):
    def read(text: str) -> None:
        project = Project(key="p", name="p", root="/p")
        memory_of(("0" * 40, "1", "A", f"x{text}x", f"x{text}x"), (), project=project)

    assert_linear(read, part)


def test_a_message_cannot_pretend_to_be_another_commit(repo: Repository):
    repo.commit("/0123\n\n/4567\n/89\n", "a", "b/c")
    repo.commit("two", "d")
    second, first = commits(str(repo.folder))
    assert (first.title, first.body, first.files) == ("/0123", "/4567\n/89", ("a", "b/c"))
    assert (second.title, second.files) == ("two", ("d",))


@needs_git
def test_the_users_own_settings_change_nothing(repo: Repository, monkeypatch: pytest.MonkeyPatch):
    repo.commit("one", "sub/a")
    repo.git("mv", "sub/a", "b")
    repo.commit("two")
    before = list(commits(str(repo.folder)))
    for name, value in {
        "color.ui": "always",
        "core.pager": "false",
        "log.showSignature": "true",
        "log.showRoot": "false",
        "log.decorate": "full",
        "diff.renames": "copies",
        "diff.relative": "true",
        "diff.external": "false",
        "format.pretty": "fuller",
        "i18n.logOutputEncoding": "UTF-16",
    }.items():
        repo.git("config", name, value)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_TRACE", "1")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert list(commits(str(repo.folder))) == list(commits(str(repo.folder / "sub"))) == before


@needs_git
def test_every_place_of_a_repository_tells_its_whole_history(tmp_path_factory):
    # A subfolder a file and a worktree tell the whole history.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    tmp_path = tmp_path_factory.mktemp("x")
    repo.commit("one", "sub/a")
    repo.commit("two", "b")
    repo.git("worktree", "add", "--quiet", str(tmp_path / "tree"))
    whole = list(commits(str(repo.folder)))
    for place in (repo.folder / "sub", repo.folder / "b", repo.folder / "gone", tmp_path / "tree"):
        assert list(commits(str(place))) == whole
    # A repository without commits has an empty history.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    tmp_path = tmp_path_factory.mktemp("x")
    assert list(commits(str(repo.folder))) == []
    repo.git("init", "--quiet", "--bare", str(tmp_path / "bare.git"))
    assert list(commits(str(tmp_path / "bare.git"))) == []
    # A partial clone fetches nothing unasked.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    tmp_path = tmp_path_factory.mktemp("x")
    repo.commit("one", "a")
    repo.commit("two", "b")
    repo.git("config", "uploadpack.allowFilter", "true")
    source = f"file://{repo.folder}"
    repo.git("clone", "--quiet", "--no-checkout", "--filter=tree:0", source, str(tmp_path / "part"))
    with pytest.raises(BadRequest, match="cannot read"):
        list(commits(str(tmp_path / "part")))


# ---- what cannot be read


@needs_git
@table("name", ["", "no-such-folder", "nul\0"])
def test_a_folder_outside_git_is_refused_with_a_way_out(tmp_path: Path, name: str):
    with pytest.raises(BadRequest) as caught:
        list(commits(f"{tmp_path}/{name}"))
    assert "git" in caught.value.hint


def test_without_git_the_user_is_told_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadRequest) as caught:
        list(commits(str(tmp_path)))
    assert "install git" in caught.value.hint


def test_a_git_that_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(BadRequest, match="takes longer than"):
        git.run(str(tmp_path), ("log",), patience=0.2)


# ---- the story of the demo


DETAIL = {
    "turn": {"user", "author", "outcome", "commits", "commands", "read"},
    "summary": {
        *("next", "branch", "pull_request", "fate", "uncommitted"),
        *("checks", "repository", "default_branch"),
    },
    "handoff": {"next", "blockers"},
    "decision": {"why", "alternatives"},
    "failure": {"command", "text", "error", "cause", "worked", "seen_in", "last", "fixed_by", "times"},
    "pattern": {"context", "problem", "solution"},
    "change": {"what", "signature", "line"},
    "correction": {"times"},
    "preference": set(),
    "learning": set(),
}


def test_the_story_shows_each_kind_with_the_fields_of_its_kind():
    memories = load_story(Project(key="dir:/x", name="x", root="/x"), now=NOON)
    assert {memory.kind for memory in memories} == set(DETAIL) <= set(KINDS)
    for memory in memories:
        assert set(memory.detail) <= DETAIL[memory.kind]
        assert memory.trust in TRUSTS
        assert memory.trust == "user" or memory.kind not in ("preference", "correction")  # a rule is the user's
        assert memory.title
        assert "\n" not in memory.title
    ages = [NOON - memory.created for memory in memories]
    assert ages == sorted(ages)
    assert 0 < min(ages) < max(ages) < 60 * 86400


def test_the_story_can_be_kept_for_two_projects_in_one_store(store):
    stories = [load_story(Project(key=key, name="x", root="/x"), now=NOON) for key in ("dir:/x", "dir:/y")]
    for memories in stories:
        store.memories.put(memories)
    for memories, key in zip(stories, ("dir:/x", "dir:/y"), strict=True):
        kept = store.memories.get_by_uid([memory.uid for memory in memories])
        assert {(memory.project, memory.scope) for memory in kept} == {(key, f"project:{key}")}
        assert len(kept) == len(memories)


# ---- what is changed


@needs_git
def test_changed_files_are_told_without_touching_the_repository(tmp_path_factory):
    # Changed new and deleted files are told with when they were written.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    repo.commit("first", "kept.py", "src/old.py", "gone.py", "moved.py")
    repo.git("mv", "moved.py", "to.py")
    for name in ("src/old.py", "new file.py", "naïve.py"):
        path = repo.folder / name
        path.write_text("changed")
        os.utime(path, (NOON, NOON))
    (repo.folder / "gone.py").unlink()
    (repo.folder / "fresh").mkdir()
    (repo.folder / "fresh" / "x.py").touch()
    found = changed(str(repo.folder))
    assert {name for name, at in found.items() if at == NOON} == {"src/old.py", "new file.py", "naïve.py"}
    assert set(found) == {"src/old.py", "new file.py", "naïve.py", "gone.py", "moved.py", "to.py", "fresh/"}
    assert found["gone.py"] == 0.0
    # Asking what is changed writes nothing and runs nothing of the repository.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    tmp_path = tmp_path_factory.mktemp("x")
    repo.commit("first", "a.py")
    ran = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    hook = repo.folder / ".git" / "hooks" / "post-index-change"
    shutil.copy(script, hook)
    repo.git("config", "core.fsmonitor", str(script))
    (repo.folder / "a.py").write_text("b")
    os.utime(repo.folder / "a.py", (NOON, NOON))
    index = (repo.folder / ".git" / "index").read_bytes()
    assert set(changed(str(repo.folder))) == {"a.py"}
    assert (repo.folder / ".git" / "index").read_bytes() == index
    assert not ran.exists()
    # What is no work tree has no changed files; before the first commit git cannot tell.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    tmp_path = tmp_path_factory.mktemp("x")
    (repo.folder / "b.py").touch()
    assert changed(str(repo.folder)) is None
    half = repo.folder / "half"
    (half / ".git").mkdir(parents=True)  # git would go on to the repository around it
    assert changed(str(half)) == {}
    assert changed(str(tmp_path)) == {}
    assert changed(str(tmp_path / "none")) == {}
    # A broken repository is told.
    repo = Repository(tmp_path_factory.mktemp("r") / "repo")
    repo.commit("first", "a.py")
    (repo.folder / ".git" / "index").write_bytes(b"garbage")
    with pytest.raises(BadRequest, match="git cannot read"):
        changed(str(repo.folder))


@needs_git
def test_a_git_dir_of_somebody_else_does_not_lead_away(repo: Repository, tmp_path: Path, monkeypatch):
    repo.commit("first", "a.py")
    (repo.folder / "b.py").touch()
    other = Repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "none"))
    assert set(changed(str(repo.folder))) == {"b.py"}
