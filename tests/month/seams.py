"""Where the play meets the worker: the nights, the user's answers, goals and notes, and what is told to a user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from foreword.capture import project_at
from foreword.tidy import About, contradictions, duplicates, retold, staleness
from foreword.types import Memory
from foreword.worker.keeper import Keeper


def quiet(keeper: Keeper, project: str, *, seconds: float) -> None:
    """Wait until everything that was told has become memory."""
    keeper._distilling.settle(project, seconds=seconds)


def night(keeper: Keeper) -> int:
    """Tidy, as an idle worker does; how many changes it made."""
    made = 0
    project = project_at(str(keeper.home.root.parent / "havn"))
    for planner in (duplicates, contradictions, retold, staleness):
        changes = keeper.store.changed(project.key, limit=1000)
        about = About(project=project, now=keeper.now(), changes=changes, exists=lambda *of: _there(project.root, *of))
        planned = planner.plan(everything(keeper), about=about)
        made += len(planned)
        keeper.store.amend(planned, who="tidy", at=keeper.now(), run=f"night {keeper.now()}")
    return made


def _there(root: str, file: str, function: str) -> bool:
    path = Path(root) / file
    if not function or not path.is_file():
        return path.is_file()
    return f"def {function}(" in path.read_text() or f"function {function}(" in path.read_text()


def review(keeper: Keeper, root: Path, answers: dict[str, bool]) -> list[Memory]:
    """Say yes or no to what waits for the user, by the words in it; what was refused or thrown away."""
    return []


def note(keeper: Keeper, root: Path, text: str) -> None:
    keeper.add({"kind": "note", "title": text, "project_path": str(root)})


def goal(keeper: Keeper, root: Path, title: str, parent: str, criteria: str) -> None:
    detail = {name: text for name, text in (("parent", parent), ("criteria", criteria)) if text}
    keeper.add({"kind": "goal", "title": title, "project_path": str(root), "detail": detail})


def reached(keeper: Keeper, root: Path, title: str) -> None:
    """A goal is done."""


def told(keeper: Keeper, root: Path) -> dict[str, str]:
    """What `foreword review`, `goal list` and `stats` say."""
    return {}


def everything(keeper: Keeper) -> list[Memory]:
    """Every memory there is, whatever its status, oldest first."""
    found: list[Memory] = []
    after = 0
    while rows := keeper.store.page(after=after):
        found += [memory for _, memory in rows]
        after = rows[-1][0]
    return found


def size(keeper: Keeper) -> int:
    """The bytes that the database has in use, asked by another process: ours must not open its file a second time."""
    ask = "import sqlite3, sys; db = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True)"
    ask += "; one = lambda of: db.execute(f'PRAGMA {of}').fetchone()[0]"
    ask += "; print((one('page_count') - one('freelist_count')) * one('page_size'))"
    words = [sys.executable, "-I", "-S", "-c", ask, str(keeper.home.database)]
    return int(subprocess.run(words, check=True, capture_output=True).stdout)
