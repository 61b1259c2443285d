"""Placebo for usage: replay recorded agents, who saw none of our lines, and count how many lines count as used.

    python -m bench.eval.usage [HOME ...]

Without arguments, the projects of ../shared/bench/sessions are replayed in this process; with arguments, the stores of
earlier replays are read. The exit status is 1 where more than a tenth of a project's lines count as used.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

from bench.eval.replay import TOOLS, InProcessWorker, load_tool, scratch_environment
from bench.eval.sessions import SESSIONS, projects
from foreword.extract.usage import NOT_JUDGED_LAYERS
from foreword.paths import Home

LIMIT = 0.10  # of the lines of a project

Usage = Counter[str]  # shown; in_judged_layers; used, ignored and untold; used by each kind of evidence


def main(argv: Sequence[str]) -> int:
    """Print one row for each project and one for all; return the exit status."""
    if argv:
        rows = [(Path(home).parent.name, usage_in(Path(home))) for home in argv]
    elif not TOOLS.is_dir():
        print(f"skipped: placebo (no tools in {TOOLS})")
        return 0
    else:
        names = projects()
        with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
            rows = list(zip(names, pool.map(replay_usage, [SESSIONS / name for name in names]), strict=True))
    rows.append(("all", sum((each for _, each in rows), Usage())))
    print("| project | lines shown | of layers that are judged | used | share | ignored | cannot be told | by |")
    print("|---|---|---|---|---|---|---|---|")
    for name, usage in rows:
        print(row_of(name, usage))
    return int(any(share_of(usage) > LIMIT for _, usage in rows))


def replay_usage(folder: Path) -> Usage:
    """Replay one project's recorded sessions and return what counts as used."""
    tool = load_tool("session_replay")

    def make(_binary: str, work: Path, project: Path) -> InProcessWorker:
        return InProcessWorker(work, project, each_turn=False)

    with tempfile.TemporaryDirectory(prefix="foreword-usage-") as work, scratch_environment(Path(work)):
        options = {"foreword": "", "sessions_dir": str(folder), "work": work, "name": "", "sessions": 0, "keep": True}
        with patch.object(tool, "Worker", make):
            tool.replay(argparse.Namespace(**options, git_dir="", import_git=False))
        return usage_in(Path(work) / "home")


def usage_in(home: Path) -> Usage:
    """Count the injected items of a store by what became of them."""
    with closing(sqlite3.connect(f"file:{Home(home).database}?mode=ro", uri=True)) as database:
        items = database.execute("SELECT layer, used, how FROM injection_items").fetchall()
    usage = Usage(shown=len(items))
    for layer, used, how in items:
        usage["in judged layers"] += layer not in NOT_JUDGED_LAYERS
        usage[{1: "used", 0: "ignored"}.get(used, "untold")] += 1
        usage[f"by {how}"] += used == 1
    return usage


def share_of(usage: Usage) -> float:
    """Return the share of the shown lines that count as used."""
    return usage["used"] / max(1, usage["shown"])


def row_of(name: str, usage: Usage) -> str:
    """Return one row of the table."""
    by = ", ".join(f"{how[3:]} {count}" for how, count in sorted(usage.items()) if how.startswith("by ") and count)
    counts = (f"{usage[each]}" for each in ("shown", "in judged layers", "used"))
    rest = (f"{share_of(usage):.3f}", str(usage["ignored"]), str(usage["untold"]), by)
    return f"| {' | '.join((name, *counts, *rest))} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
