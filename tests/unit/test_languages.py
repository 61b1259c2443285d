"""languages: any folder, however big or broken, has its languages, and they cost the reading of a few folders."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword import projects as module
from foreword.projects import ENDINGS, SIGNS, VENDORED, languages
from tests.tables import table


def grown(root: Path, *names: str) -> str:
    """*root* with these files in it."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return str(root)


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch):
    """Give the reading of a folder time: on a busy machine 20 ms pass before the second one is read."""
    monkeypatch.setattr(module, "SECONDS", 60.0)


@pytest.fixture
def reads(monkeypatch):
    """Every folder that is read, in order."""
    seen = []

    real = os.scandir

    def scandir(folder):
        seen.append(folder)
        return real(folder)

    monkeypatch.setattr(module.os, "scandir", scandir)
    return seen


@table(("sign", "language"), SIGNS.items())
def test_a_project_file_gives_its_language_away(tmp_path, sign, language):
    assert languages(grown(tmp_path, sign))[0] == language


def test_files_speak_for_the_languages_of_a_folder(tmp_path_factory):
    # Project files come first and in one order.
    tmp_path = tmp_path_factory.mktemp("x")
    root = grown(tmp_path, "go.mod", "pyproject.toml", *(f"web/{n}.ts" for n in range(9)))
    assert languages(root) == ("python", "go", "typescript")
    # A folder without a project file speaks by its files.
    tmp_path = tmp_path_factory.mktemp("x")
    assert languages(grown(tmp_path, "scripts/tidy.py", "scripts/deep/er/more.py")) == ("python",)
    # A language needs a share of the files.
    tmp_path = tmp_path_factory.mktemp("x")
    root = grown(tmp_path, *(f"src/m{n}.rs" for n in range(40)), "src/x.lua", *(f"web/{n}.ts" for n in range(10)))
    assert languages(root) == ("rust", "typescript")
    # Forty packages do not hide what lies in them.
    tmp_path = tmp_path_factory.mktemp("x")
    names = [f"pkg{a}/mod{b}/f.{ending}" for a in range(40) for b in range(10) for ending in ("py", "ts")]
    assert languages(grown(tmp_path, *names)) == ("python", "typescript")
    # A name that is only an ending says nothing.
    tmp_path = tmp_path_factory.mktemp("x")
    assert languages(grown(tmp_path, "go", "r", ".sh", "py", "c.", "README.md", "data.json", "x.h")) == ()
    # Links are not followed.
    tmp_path = tmp_path_factory.mktemp("x")
    away = tmp_path / "away"
    grown(away, *(f"{n}.java" for n in range(20)))
    here = tmp_path / "here"
    root = grown(here, "main.rb")
    (here / "loop").symlink_to(here)
    (here / "away").symlink_to(away)
    (here / "gone").symlink_to(tmp_path / "nowhere")
    assert languages(root) == ("ruby",)


@table("vendored", [*sorted(VENDORED)[:5], "node_modules", ".venv", "site-packages", ".git", "target"])
def test_other_peoples_code_does_not_count(tmp_path, vendored):
    root = grown(tmp_path, "app/main.go", *(f"{vendored}/lib{n}.js" for n in range(50)))
    assert languages(root) == ("go",)


def test_a_big_tree_costs_the_reading_of_a_few_folders(tmp_path, reads):
    root = grown(tmp_path, *(f"a{a}/b{b}/c{c}/x.py" for a in range(15) for b in range(8) for c in range(4)))
    assert languages(root) == ("python",)
    assert len(reads) <= module.MOST_ENTRIES / 2


def test_neither_the_home_folder_nor_the_root_is_walked(tmp_path, reads, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert languages(grown(tmp_path, "notes.py", "Documents/x.go")) == ("python",)
    assert reads == [str(tmp_path)]
    languages("/")
    assert reads == [str(tmp_path), "/"]


def test_what_cannot_be_read_costs_only_itself(tmp_path_factory):
    # What is no readable folder has no languages.
    tmp_path = tmp_path_factory.mktemp("x")
    file = tmp_path / "pyproject.toml"
    file.touch()
    os.mkfifo(tmp_path / "pipe")
    for root in (str(file), str(tmp_path / "pipe"), str(tmp_path / "none"), "", "\0", "/\ud800", "x" * 5000):
        assert languages(root) == ()
    # A folder that may not be read costs only itself.
    tmp_path = tmp_path_factory.mktemp("x")
    root = grown(tmp_path, "a/x.py", "b/y.py")
    (tmp_path / "a").chmod(0)
    try:
        assert languages(root) == ("python",)
    finally:
        (tmp_path / "a").chmod(0o700)
    # Names that are no text do no harm.
    tmp_path = tmp_path_factory.mktemp("x")
    for name in (b"\xff\xfe.py", b"caf\xe9"):
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).mkdir()
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name + b"/\xff.go")).touch()
    assert languages(str(tmp_path)) == ("go",)


NAME = st.sampled_from([*[f"x.{ending}" for ending in ENDINGS], *SIGNS, *VENDORED, "src", "a b", ".git", "-", "…"])


@given(st.lists(st.lists(NAME, min_size=1, max_size=4), max_size=12))
def test_any_tree_has_known_languages_each_once(paths):
    with tempfile.TemporaryDirectory() as folder:
        for parts in paths:
            Path(folder, *parts).mkdir(parents=True, exist_ok=True)
        found = languages(folder)
        assert len(set(found)) == len(found)
        assert languages(folder) == found
        assert set(found) <= {*SIGNS.values(), *ENDINGS.values()}
