"""A folder has one project, whoever asks, from wherever, by whatever spelling."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foreword.errors import BadRequest
from foreword.models import Project
from foreword.projects import FILE_LIMIT, is_pushed, remote, resolve
from tests.tables import table

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed: real repositories untested")

CLEAN = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "protocol.file.allow",
    "GIT_CONFIG_VALUE_0": "always",
}


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, env=CLEAN)


def repository(folder: Path, *, url: str = "") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--initial-branch=main")
    (folder / "a.txt").write_text("a")
    git(folder, "add", ".")
    git(folder, "commit", "--message=one")
    if url:
        git(folder, "remote", "add", "origin", url)
    return folder


def handmade(folder: Path, config: str | bytes) -> Path:
    """The least that counts as a repository, with a config that git itself might refuse."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_bytes(config if isinstance(config, bytes) else config.encode())
    return folder


def key(folder: Path | str) -> str:
    return resolve(str(folder)).key


# ---- what is asked


@table("folder", ["", ".", "..", "src", "./src", "~", "~/code", "C:\\code", " /code"])
def test_refuses_a_path_that_is_not_absolute_and_says_what_to_give(folder: str):
    with pytest.raises(BadRequest) as caught:
        resolve(folder)
    assert "full path" in caught.value.hint


@given(st.text(st.characters(), max_size=60))
@example("\0")
@example("a\0b/c")
@example("\udcff\ud800")
@example("../../..")
def test_answers_any_absolute_path_with_a_key_that_a_database_can_hold(text: str):
    project = resolve("/no-such-folder-here/" + text)
    project.key.encode()
    project.name.encode()
    assert project.name
    assert project.name.isprintable()
    assert project.root.startswith("/")


def test_a_folder_has_one_project_also_when_it_is_gone(tmp_path_factory):
    # Gives the same answer twice and from its own root.
    tmp_path = tmp_path_factory.mktemp("x")
    handmade(tmp_path / "x", '[remote "origin"]\nurl = https://example.org/o/r\n')
    deep = tmp_path / "x" / "a" / "b"
    deep.mkdir(parents=True)
    first = resolve(str(deep))
    assert first == resolve(str(deep)) == resolve(first.root) == resolve(str(deep) + "/")
    # A file stands for its folder.
    tmp_path = tmp_path_factory.mktemp("x")
    (tmp_path / "a.py").write_text("")
    assert key(tmp_path / "a.py") == key(tmp_path) == key(tmp_path / "a.py" / "b")
    # A folder that is gone keeps the project around it.
    tmp_path = tmp_path_factory.mktemp("x")
    handmade(tmp_path / "repo", "")
    assert key(tmp_path / "repo" / "worktrees" / "gone") == key(tmp_path / "repo")
    # A folder that is gone keeps its own key where nothing is around it.
    tmp_path = tmp_path_factory.mktemp("x")
    folder = tmp_path / "scratch"
    folder.mkdir()
    before = key(folder)
    folder.rmdir()
    assert key(folder) == before


def test_starts_no_process(tmp_path: Path):
    handmade(tmp_path, '[remote "origin"]\nurl = https://example.org/o/r\n')
    source = Path(resolve.__code__.co_filename).parent.parent
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "starts = ('os.fork', 'os.posix_spawn', 'os.exec', 'subprocess.Popen');"
        "sys.addaudithook(lambda name, _: sys.exit(name) if name in starts else None);"
        "from foreword.projects import resolve;"
        "print(resolve(sys.argv[2]).name)"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(source), str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["r"]


# ---- symbolic links


def test_links_lead_to_the_project_behind_them(tmp_path_factory):
    # A link leads to the project behind it.
    tmp_path = tmp_path_factory.mktemp("x")
    handmade(tmp_path / "repo", "")
    (tmp_path / "repo" / "src").mkdir()
    (tmp_path / "absolute").symlink_to(tmp_path / "repo" / "src")
    (tmp_path / "relative").symlink_to("repo/./src/../src")
    (tmp_path / "twice").symlink_to("relative")
    for name in ("absolute", "relative", "twice"):
        assert resolve(str(tmp_path / name)) == resolve(str(tmp_path / "repo"))
    # Dots are followed after links as the system does.
    tmp_path = tmp_path_factory.mktemp("x")
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to("far/away")
    assert key(tmp_path / "link" / "..") == key(tmp_path / "far")
    # Links in a circle neither hang nor fail.
    tmp_path = tmp_path_factory.mktemp("x")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "self").symlink_to("self/self/self")
    for name in ("a", "b", "self", "a/b/c"):
        assert key(tmp_path / name).startswith("dir:" + str(tmp_path.resolve()))


# ---- git, for real


@needs_git
def test_a_repository_is_a_project_named_after_its_remote(tmp_path_factory):
    # Clones share by their remote and are named after it.
    tmp_path = tmp_path_factory.mktemp("x")
    one = repository(tmp_path / "one", url="git@github.com:Owner/Repo.git")
    two = repository(tmp_path / "two", url="https://user:s3cret@github.com/owner/repo")
    assert key(one) == key(two) == "git:github.com/owner/repo"
    assert resolve(str(one)) == Project(key="git:github.com/owner/repo", name="Repo", root=str(one.resolve()))
    # A subfolder belongs to its repository and not to a project file on the way.
    tmp_path = tmp_path_factory.mktemp("x")
    repo = repository(tmp_path / "repo")
    (repo / "packages" / "web").mkdir(parents=True)
    (repo / "packages" / "web" / "package.json").write_text("{}")
    assert resolve(str(repo / "packages" / "web")) == resolve(str(repo))
    # Repositories of one name are two projects.
    tmp_path = tmp_path_factory.mktemp("x")
    one, two = repository(tmp_path / "1" / "api"), repository(tmp_path / "2" / "api")
    assert resolve(str(one)).name == resolve(str(two)).name == "api"
    assert key(one) != key(two)
    # Reads what git writes into its config.
    tmp_path = tmp_path_factory.mktemp("x")
    repo = repository(tmp_path / "repo")
    url = 'https://example.org/o/we"ird; name\\x'
    git(repo, "config", 'remote.a"b\\c.url', url)
    git(repo, "config", "core.comment", "trailing backslash\\")
    assert key(repo) == 'git:example.org/o/we"ird; name\\x'


@needs_git
@table("url", ["", "https://example.org/o/r.git", "../upstream"])
def test_worktrees_share_with_their_repository(tmp_path: Path, url: str):
    repo = repository(tmp_path / "repo", url=url)
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    tree = tmp_path / "elsewhere" / "deep" / "tree"
    git(repo, "worktree", "add", str(tree))
    inside = repo / ".worktrees" / "tree2"
    git(repo, "worktree", "add", str(inside))
    assert key(tree) == key(inside) == key(repo)
    assert resolve(str(tree)).name == resolve(str(repo)).name
    assert resolve(str(tree)).root == str(tree.resolve())


@needs_git
def test_every_form_of_a_git_folder_is_its_project(tmp_path_factory):
    # Worktrees of a bare repository share with it.
    tmp_path = tmp_path_factory.mktemp("x")
    repo = repository(tmp_path / "repo")
    home = tmp_path / "proj"
    git(tmp_path, "clone", "--bare", str(repo), str(home / ".bare"))
    git(home / ".bare", "remote", "remove", "origin")
    (home / ".git").write_text("gitdir: ./.bare\n")
    git(home, "worktree", "add", str(home / "main"))
    assert key(home / "main") == key(home) == key(home / ".bare") == f"dir:{home.resolve()}/.bare"
    assert resolve(str(home / "main")).name == "proj"
    # A bare repository is a project.
    tmp_path = tmp_path_factory.mktemp("x")
    git(tmp_path, "init", "--bare", str(tmp_path / "tool.git"))
    project = resolve(str(tmp_path / "tool.git" / "hooks"))
    assert project.key == f"dir:{tmp_path.resolve()}/tool.git"
    assert project.name == "tool"
    # Inside the git folder is the same project.
    tmp_path = tmp_path_factory.mktemp("x")
    repo = repository(tmp_path / "repo")
    assert resolve(str(repo / ".git" / "refs" / "heads")) == resolve(str(repo))
    # A separate git directory is followed.
    tmp_path = tmp_path_factory.mktemp("x")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "store").mkdir()
    git(tree, "init", f"--separate-git-dir={tmp_path / 'store' / 'tool.git'}")
    assert key(tree) == f"dir:{tmp_path.resolve()}/store/tool.git"
    assert resolve(str(tree)).name == "tool"


@needs_git
def test_submodules_and_clones_share_with_their_origin(tmp_path_factory):
    # A submodule is its own project and shares with other clones of it.
    tmp_path = tmp_path_factory.mktemp("x")
    library = repository(tmp_path / "library")
    repo = repository(tmp_path / "app")
    git(repo, "submodule", "add", str(library), "vendor/lib")
    git(tmp_path, "clone", str(library), str(tmp_path / "clone"))
    assert key(repo / "vendor" / "lib") == key(tmp_path / "clone") != key(repo)
    assert resolve(str(repo / "vendor" / "lib")).root == str((repo / "vendor" / "lib").resolve())
    # Clones of a local repository share however they spell it.
    tmp_path = tmp_path_factory.mktemp("x")
    git(tmp_path, "init", "--bare", str(tmp_path / "srv" / "tool one.git"))
    (tmp_path / "link").symlink_to("srv")
    spellings = [
        str(tmp_path / "srv" / "tool one.git"),
        str(tmp_path / "srv" / "tool one"),
        str(tmp_path / "link" / "tool one.git") + "/",
        "../srv/tool one.git",
        f"file://{tmp_path}/srv/tool%20one.git",
        f"file://localhost{tmp_path}/srv/tool%20one.git",
    ]
    clones = [repository(tmp_path / f"clone{number}", url=url) for number, url in enumerate(spellings)]
    assert {key(clone) for clone in clones} == {f"git:{tmp_path.resolve()}/srv/tool one.git"}
    assert {resolve(str(clone)).name for clone in clones} == {"tool one"}


# ---- git, by hand


@needs_git
def test_gits_files_say_what_waits_for_a_push(tmp_path: Path):
    origin = repository(tmp_path / "origin")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", str(origin), str(clone))
    assert is_pushed(str(clone), "main", "")
    git(clone, "switch", "--create", "feat/rooms")
    git(clone, "commit", "--allow-empty", "--message=two")
    assert not is_pushed(str(clone), "feat/rooms", "1a2b3c4")
    git(clone, "push", "origin", "feat/rooms")
    assert is_pushed(str(clone), "feat/rooms", "")
    git(clone, "pack-refs", "--all")
    assert is_pushed(str(clone), "feat/rooms", "")
    git(clone, "commit", "--allow-empty", "--message=three")
    assert not is_pushed(str(clone), "feat/rooms", "1a2b3c4")
    git(clone, "switch", "main")
    git(clone, "branch", "-D", "feat/rooms")  # nobody knows what was in it
    assert not is_pushed(str(clone), "feat/rooms", "1a2b3c4")
    assert not is_pushed(str(tmp_path), "main", "")  # no repository says nothing
    assert not is_pushed("", "main", "")
    assert not is_pushed(str(clone), "../../../etc/passwd", "")


@table(
    "config",
    [
        '[remote "origin"]\n\turl = https://example.org/o/r\n',
        '\ufeff[core]\r\n\tbare = false\r\n[remote "origin"]\r\n\turl = https://example.org/o/r\r\n',
        '[remote "origin"]\nurl = "https://example.org/o/r" ; mine\n',
        '[remote "origin"]\nurl = https://exam"ple".org/o/r   # mine\n',
        '[remote "origin"]\nurl = https://example.org/o/r\nurl = https://example.org/second/url\n',
        '[remote "origin"]\nfetch = x\n[branch "m"]\nremote = origin\n[remote "origin"]\nurl = https://example.org/o/r\n',
        '[core]\nx = a \\\n[remote "origin"] url = https://wrong.org/o/r\n[remote "origin"]\nurl = https://example.org/o/r\n',
        '# not continued \\\n[remote "origin"]\nurl = https://example.org/o/r\n',
        '[remote "upstream"]\nurl = https://example.org/up/r\n[remote "origin"]\nurl = https://example.org/o/r\n',
        '[remote "only"]\nurl = https://example.org/o/r\n',
        '[remote "b"]\nurl = https://example.org/b/r\n[remote "a"]\nurl = https://example.org/o/r\n',
        '[remote "a"]\npushurl = https://example.org/no/r\n[remote "b"]\nurl = https://example.org/o/r\n',
        '[remote "ori\\gin"]\nurl = https://example.org/o/r\n',
        '[url "x"]\nurl = https://wrong.org/o/r\n[remote "z"]\nvalueless\nurl = https://example.org/o/r\n',
    ],
)
def test_finds_the_remote_in_any_spelling_of_the_config(tmp_path: Path, config: str):
    handmade(tmp_path / "x", config)
    assert key(tmp_path / "x") == "git:example.org/o/r"


@table(
    "config",
    [
        b"",
        b"\xff\xfe\x00\x01" * 1000,
        bytes(range(256)) * 50,
        b'[remote "origin"',
        b'[remote "origin\n\n\n[[[',
        b'[remote "origin"]\nurl',
        b'[remote "origin"]\nurl = "\\',
        b'[remote "origin"]\nurl = \\\n',
        b'[remote "origin"]\nurl = ext::sh -c "password s3cret"\n',
        b'[remote "origin"]\nurl = https://user:s3/cret@example.org/o/r\n',
        b'[remote "origin"]\nurl = https://example.org/o/r?private_token=s3cret\n',
        b'[remote "origin"]\nurl = https://proxy.org/https://me:s3cret@example.org/o/r\n',
    ],
)
def test_a_config_that_tells_no_remote_leaves_the_repository_its_folder(tmp_path: Path, config: bytes):
    handmade(tmp_path / "x", config)
    assert key(tmp_path / "x") == f"dir:{tmp_path.resolve()}/x/.git"
    assert resolve(str(tmp_path / "x")).name == "x"


@given(config=st.binary(max_size=300) | st.text('[]remotuigl=\\"#; \n\r/:@x').map(str.encode))
def test_no_config_can_make_it_fail(tmp_path_factory: pytest.TempPathFactory, config: bytes):
    folder = tmp_path_factory.getbasetemp() / "any-config"
    if not folder.exists():
        handmade(folder, b"")
    (folder / ".git" / "config").write_bytes(b'[remote "origin"]\nurl = ' + config)
    resolve(str(folder)).key.encode()


def test_no_config_and_no_git_folder_makes_it_fail(tmp_path_factory):
    # A huge config is read to its limit and no further.
    tmp_path = tmp_path_factory.mktemp("x")
    section = b'[remote "origin"]\nurl = https://example.org/o/r'
    handmade(tmp_path / "early", section + b"\n" + b"[a]\n\tb = c\n" * 200_000)
    handmade(tmp_path / "cut", b"#" * (FILE_LIMIT - len(section) - 1) + b"\n" + section + b"epository\n")
    handmade(tmp_path / "endless", b'[remote "origin"]\nurl = ' + b"a::" * 250_000 + b"b://c/d\n")
    started = time.process_time()
    assert key(tmp_path / "early") == "git:example.org/o/r"
    assert key(tmp_path / "cut").startswith("dir:")
    assert key(tmp_path / "endless").startswith("dir:")
    assert time.process_time() - started < 10  # linear work takes a fraction of it, quadratic work far more
    # A pipe in place of a file does not hang.
    tmp_path = tmp_path_factory.mktemp("x")
    handmade(tmp_path / "x", "")
    (tmp_path / "x" / ".git" / "config").unlink()
    os.mkfifo(tmp_path / "x" / ".git" / "config")
    (tmp_path / "y").mkdir()
    os.mkfifo(tmp_path / "y" / ".git")
    assert key(tmp_path / "x").endswith("/x/.git")
    assert key(tmp_path / "y").endswith("/y")
    # An empty git folder is no repository.
    tmp_path = tmp_path_factory.mktemp("x")
    handmade(tmp_path / "x", "")
    (tmp_path / "x" / "y" / ".git").mkdir(parents=True)
    assert key(tmp_path / "x" / "y") == key(tmp_path / "x")


@table("text", ["", "gitdir:", "gitdir: ", "gitdir: /no/such", "nonsense", "gitdir: \0", "gitdir: .git"])
def test_a_git_file_that_leads_nowhere_is_no_repository(tmp_path: Path, text: str):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "config").write_text("")
    (tmp_path / "x" / ".git").write_text(text)
    assert key(tmp_path / "x") == f"dir:{tmp_path.resolve()}/x"


CONFIG = '[remote "origin"]\n\turl = {}\n'


@needs_git
@pytest.mark.parametrize(
    ("user", "own", "url"),
    [
        ('[url "https://example.org/"]\ninsteadOf = ex:\n', "", "ex:o/r"),
        (
            '[url "https://example.org/"]\ninsteadOf = ex:\n[url "https://other.org/"]\ninsteadOf = ex:o/\n',
            "",
            "ex:o/r",
        ),
        ('[url "https://example.org/"]\npushInsteadOf = https://other.org/\n', "", "https://other.org/o/r"),
        ("[include]\npath = more\n", "", "ex:o/r"),
        ("[include]\npath = ~/more\n", "", "ex:o/r"),
        ('[includeIf "gitdir:~/code/"]\npath = more\n', "", "ex:o/r"),
        ('[includeIf "gitdir:code/"]\npath = more\n', "", "ex:o/r"),
        ('[includeIf "gitdir/i:~/CODE/"]\npath = more\n', "", "ex:o/r"),
        ('[includeIf "gitdir:~/elsewhere/"]\npath = more\n', "", "ex:o/r"),
        ('[includeIf "onbranch:none"]\npath = more\n', "", "ex:o/r"),
        ("", "[include]\npath = ../../../more\n", "ex:o/r"),
        ("", '[url "https://t0ken@example.org/"]\ninsteadOf = https://example.org/\n', "https://example.org/o/r"),
    ],
)
def test_a_remote_is_read_as_git_reads_it(tmp_path: Path, monkeypatch, user: str, own: str, url: str):
    """`git ls-remote --get-url` says the same."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / ".gitconfig").write_text(user)
    (tmp_path / "more").write_text('[url "https://example.org/"]\ninsteadOf = ex:\n')
    folder = repository(tmp_path / "code" / "rooms", url=url)
    with (folder / ".git" / "config").open("a") as file:
        file.write(own)
    environ = {name: text for name, text in CLEAN.items() if not name.startswith("GIT_CONFIG")} | {
        "HOME": str(tmp_path)
    }
    words = ["git", "-C", str(folder), "ls-remote", "--get-url"]
    real = subprocess.run(words, check=True, capture_output=True, text=True, env=environ).stdout.strip()
    assert key(folder) == ("git:" + remote(real) if remote(real) else f"dir:{folder.resolve()}/.git")


def test_a_config_that_includes_itself_ends(tmp_path: Path):
    folder = handmade(tmp_path / "x", CONFIG.format("https://example.org/o/r") + "[include]\npath = config\n")
    assert key(folder) == "git:example.org/o/r"


# ---- remotes


@table(
    "url",
    [
        "git@github.com:owner/repo.git",
        "git@github.com:/Owner/Repo",
        "github.com:owner/repo",
        "ssh://git@github.com/owner/repo",
        "ssh://git@github.com:22/owner/repo.git/",
        "ssh://git@ssh.github.com:443/owner/repo.git",
        "git+ssh://git@github.com/owner/repo",
        "https://github.com/owner/repo.git",
        "https://GitHub.com./OWNER/REPO//",
        "https://www.github.com/owner/repo",
        "HTTPS://github.com:443/owner/repo/.git",
        "http://github.com:80/owner/repo",
        "git://github.com:9418/owner/repo.git",
        "https://ghp_s3cret@github.com/owner/repo",
        "https://user:p@ss:w@rd@github.com/owner/repo",
        "user:s3cret@github.com/owner/repo",
        "  https://github.com/./owner/repo  ",
        "gcrypt::https://github.com/owner/repo",
    ],
)
def test_every_spelling_of_a_remote_is_one(url: str):
    assert remote(url) == "github.com/owner/repo"


@table(
    ("url", "expected"),
    [
        ("https://example.org/Owner/Repo", "example.org/Owner/Repo"),
        ("https://example.org:8443/o/r", "example.org:8443/o/r"),
        ("ssh://me@[2001:db8::1]:2222/o/r.git", "[2001:db8::1]:2222/o/r"),
        ("me@[2001:db8::1]:o/r.git", "[2001:db8::1]/~me/o/r"),
        ("a@host:rooms.git", "host/~a/rooms"),
        ("b@host:rooms.git", "host/~b/rooms"),
        ("a@host:~/rooms.git", "host/~a/rooms"),
        ("a@host:~b/rooms.git", "host/~b/rooms"),
        ("ssh://a@host/~/rooms.git", "host/~a/rooms"),
        ("ssh://a@host:2222/~/rooms", "host:2222/~a/rooms"),
        ("a@host:/srv/rooms.git", "host/srv/rooms"),
        ("ssh://a@host/srv/rooms.git", "host/srv/rooms"),
        ("git@host:rooms.git", "host/rooms"),
        ("org-123@github.com:o/r.git", "github.com/o/r"),
        ("Gh0st-T0ken@host:rooms.git", "host/rooms"),
        ("host:~/repo", "host/repo"),
        ("ssh://host/~/repo", "host/repo"),
        ("ssh://host/~me/repo", "host/~me/repo"),
        ("https://gitlab.com/Group/Sub/Sub2/Repo", "gitlab.com/group/sub/sub2/repo"),
        ("https://example.org/@scope/repo", "example.org/@scope/repo"),
    ],
)
def test_keeps_what_tells_remotes_apart(url: str, expected: str):
    assert remote(url) == expected


@table(
    "url",
    [
        "",
        "/srv/x.git",
        "../x",
        "./a:b",
        "x",
        "file:///srv/x",
        "https://",
        "https:///o/r",
        "https://host",
        "host:",
        "::",
    ],
)
def test_what_has_no_host_or_no_path_is_no_remote(url: str):
    assert remote(url) == ""


@given(st.text(max_size=80) | st.text("ab/:@.[]~?#% git\t", max_size=40).map(lambda text: "https://" + text))
@example("https://h/..git")
@example("https://h/~.git")
@example("h:a.git .git/ ")
@example("file://%")
@example("file:///%zz%4\ud800")
@example("a::b::c://d")
def test_normalising_never_raises_and_once_is_enough(url: str):
    once = remote(url)
    assert not once or remote("https://" + once) == once


WORD = st.text("abcdefXYZ019-_", min_size=1, max_size=8)
SECRET = st.text("abcdefXYZ019:@!$&'()*+,;=%-_.~\\ \"", max_size=20).map(lambda text: f"{text}s3cret{text}")


@given(st.sampled_from(["https", "http", "ssh", "git"]), SECRET, SECRET, WORD, WORD)
def test_no_spelling_lets_credentials_through(scheme: str, user: str, password: str, owner: str, name: str):
    for url in (
        f"{scheme}://{user}:{password}@Example.org/{owner}/{name}.git",
        f"{scheme}://{user}@example.org/{owner}/{name}",
        f"{user}:{password}@example.org:{owner}/{name}",
        f"{user}@example.org:/{owner}/{name}/",
    ):
        assert remote(url) in (f"example.org/{owner}/{name}", "")


# ---- outside git


def test_outside_git_the_nearest_project_file_marks_the_project(tmp_path_factory):
    # The nearest project file marks the project.
    tmp_path = tmp_path_factory.mktemp("x")
    inner = tmp_path / "outer" / "inner"
    (inner / "src" / "deep").mkdir(parents=True)
    (tmp_path / "outer" / "package.json").write_text("{}")
    (inner / "pyproject.toml").write_text("")
    assert key(inner / "src" / "deep") == key(inner) == f"dir:{inner.resolve()}"
    assert resolve(str(inner / "src")).name == "inner"
    assert key(tmp_path / "outer") == f"dir:{tmp_path.resolve()}/outer"
    # Folders of one name are two projects.
    tmp_path = tmp_path_factory.mktemp("x")
    for number in ("1", "2"):
        (tmp_path / number / "app").mkdir(parents=True)
    assert key(tmp_path / "1" / "app") != key(tmp_path / "2" / "app")
    # The top of all folders is a project like any other.
    assert resolve("/") == Project(key="dir:/", name="/", root="/")
    # Odd names are shown clean and kept apart.
    tmp_path = tmp_path_factory.mktemp("x")
    shown = {}
    for raw in (b"a\nb", b"a\xffb", b"ab", b"a\x1b[31mb", b"a\xc2\x85b", "a\u202eb".encode()):
        folder = os.fsencode(tmp_path) + b"/" + raw
        try:
            os.mkdir(folder)
        except OSError:  # macOS takes UTF-8 only
            continue
        shown[raw] = resolve(os.fsdecode(folder))
    assert len({project.key for project in shown.values()}) == len(shown)
    for project in shown.values():
        project.key.encode()
        assert project.name in ("ab", "a[31mb")
        assert "\n" not in project.key


def test_a_stray_file_in_the_home_folder_or_a_shared_one_unites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("home", "shared"):
        (tmp_path / name / "notes").mkdir(parents=True)
        (tmp_path / name / "package.json").write_text("{}")
    (tmp_path / "shared").chmod(0o1777)
    (tmp_path / "link").symlink_to("home")
    notes = str(tmp_path / "home" / "notes")
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    assert resolve(notes).root == str((tmp_path / "home" / "notes").resolve())
    assert resolve(str(tmp_path / "shared" / "notes")).name == "notes"
    monkeypatch.setenv("HOME", "/elsewhere")
    assert resolve(notes).root == str((tmp_path / "home").resolve())
