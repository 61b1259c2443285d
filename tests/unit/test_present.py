"""What a look at the code promises: gone is only what was gone for a while, and nothing where one cannot be sure."""

from __future__ import annotations

from pathlib import Path

from foreword.maintenance.stale import Present, roots_of
from foreword.models import Project
from tests.tables import table

DAY = 86_400.0
HERE = Project(key="here", name="here", root="")


def present_after(root: Path, files: list[str], days: list[float]) -> Present:
    """The last of several looks, so many days after the first."""
    missing: dict[str, float] = {}
    for day in days:
        last = Present((str(root),), files, missing=missing, now=day * DAY)
        for file in files:
            last.exists(file)
        missing = last.missing
    return last


def test_a_file_is_gone_after_days_and_not_by_mistake(tmp_path_factory):
    # A file is gone after days and not before.
    tmp_path = tmp_path_factory.mktemp("x")
    (tmp_path / "there.py").write_text("")
    files = ["there.py", "gone.py"]
    assert present_after(tmp_path, files, [0]).exists("gone.py") is None
    assert present_after(tmp_path, files, [0, 1]).exists("gone.py") is None
    assert present_after(tmp_path, files, [0, 1, 4]).exists("gone.py") is False
    assert present_after(tmp_path, files, [0, 1, 4]).exists("there.py") is True
    # Where more than half is gone nothing is: another branch is likelier.
    tmp_path = tmp_path_factory.mktemp("x")
    (tmp_path / "there.py").write_text("")
    files = ["there.py", *(f"gone{number}.py" for number in range(12))]
    assert present_after(tmp_path, files, [0, 100]).exists("gone1.py") is None
    # A clock that jumped back makes nothing older.
    tmp_path = tmp_path_factory.mktemp("x")
    (tmp_path / "there.py").write_text("")
    assert present_after(tmp_path, ["there.py", "gone.py"], [100, 1, 2]).exists("gone.py") is None


@table("file", ["/etc/passwd", "../other/a.py", "a\0b.py", ""])
def test_what_lies_elsewhere_is_not_judged(tmp_path: Path, file: str):
    (tmp_path / "there.py").write_text("")
    assert present_after(tmp_path, ["there.py", file], [0, 100]).exists(file) is None


def test_every_whole_folder_of_the_project_counts(tmp_path_factory):
    # Code in any folder of the project is there.
    tmp_path = tmp_path_factory.mktemp("x")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "two" / "a.py").write_text("x")
    look = Present((str(tmp_path / "one"), str(tmp_path / "two")), ["a.py"], missing={"a.py": 0.0}, now=100 * DAY)
    assert look.exists("a.py") is True
    # A folder that is gone, or another project's by now, is not looked at.
    folders = [str(tmp_path / name) for name in ("one", "gone", "two")]

    def project_of(folder: str) -> Project:
        return Project(key="there" if folder.endswith("two") else "here", name="", root=folder)

    assert roots_of(HERE, folders, project_of=project_of) == (folders[0],)
