"""The standard library's sources, and a history made of them -> what parsing costs beside `ast.parse` and `git log -p`.

`make bench ARGS=code`. Ratios of the fastest of three runs, interleaved. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from store import SEED, say

from foreword.code.definitions import definitions_in
from foreword.code.git import changed_functions
from foreword.code.languages import is_too_large, parse

ROOT = Path(__file__).resolve().parent.parent
RUNS = 3
EVERY = 6  # of the library's files: a sixth says the same as all
SMALL = (3_000, 60_000)  # bytes of a file in the made history
FILES = 150
SPEED_GOAL, GIT_GOAL = 0.5, 4.0  # definitions against ast.parse; functions of commits against `git log -p`
MB = 1e6
STATEMENT = re.compile(rb" {4,}(return [\w.]+|self\.\w+ = [\w.()]+|\w+ = [\w.]+)")  # whole on its line


def main() -> None:
    options = arguments()
    library = sources()
    result: dict[str, Any] = {"speed": speed(library), "git": {}}
    scratch = Path(tempfile.mkdtemp(prefix="fw-"))
    try:
        made = history(scratch / "made", library, commits=options.commits)
        result["git"][f"{options.commits:,} made commits"] = against_git(made, limit=options.commits)
    finally:
        shutil.rmtree(scratch)
    if (ROOT / ".git").exists():
        result["git"]["this repository"] = against_git(ROOT, limit=options.commits)
    for folder in options.repositories:
        result["git"][folder] = against_git(Path(folder).resolve(), limit=options.commits)
    print(report(result))
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repositories", nargs="*", help="histories of your own to measure too")
    parser.add_argument("--commits", type=int, default=2_000, help="of the made history (2,000)")
    parser.add_argument("--json", metavar="FILE", help="write every number there too")
    return parser.parse_args()


def sources() -> dict[str, bytes]:
    """The library's own files that are within our limits, by their names."""
    root = Path(sysconfig.get_path("stdlib"))
    found = [path for path in sorted(root.rglob("*.py")) if "site-packages" not in path.parts]
    read = {str(path.relative_to(root)): path.read_bytes() for path in found}
    return {name: text for name, text in read.items() if not is_too_large(text)}


# ---- parsing


def speed(library: dict[str, bytes]) -> dict[str, float]:
    """MB/s of CPU time of each way to read the same files."""
    some = dict(list(library.items())[::EVERY])
    size = sum(map(len, some.values())) / MB
    say(f"{len(some)} files of the standard library, {size:.1f} MB ...")
    ways: dict[str, Callable[[str, bytes], object]] = {
        "ast.parse": _ast,
        "tree-sitter alone": lambda _, text: parse(text, language="python"),
        "definitions": lambda name, text: definitions_in(text, file=name),
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(RUNS):
        for way, read in ways.items():
            started = time.process_time()
            for name, text in some.items():
                read(name, text)
            best[way] = min(best[way], time.process_time() - started)
    return {way: round(size / seconds, 2) for way, seconds in best.items()}


def _ast(_: str, text: bytes) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError):  # the library tests its own parser with such files
            return None


# ---- git


def history(folder: Path, library: dict[str, bytes], *, commits: int) -> Path:
    """A repository of library files, in which each commit changes a few functions in one to four of them."""
    say(f"a history of {commits:,} commits ...")
    chance = random.Random(SEED)
    fitting = [name for name, text in library.items() if SMALL[0] <= len(text) <= SMALL[1] and b"def " in text]
    texts = {name: library[name].split(b"\n") for name in chance.sample(fitting, min(FILES, len(fitting)))}
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    importing = subprocess.Popen(
        ["git", "-C", str(folder), "fast-import", "--quiet"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert importing.stdin is not None
    importing.stdin.write(_commit(0, texts))
    for number in range(1, commits):
        names = chance.sample(sorted(texts), min(len(texts), chance.choice((1, 1, 2, 4))))
        for name in names:
            texts[name] = edited(texts[name], number, chance)
        importing.stdin.write(_commit(number, {name: texts[name] for name in names}))
    importing.stdin.close()
    importing.wait()
    subprocess.run(["git", "-C", str(folder), "symbolic-ref", "HEAD", "refs/heads/main"], check=True)
    subprocess.run(["git", "-C", str(folder), "gc", "--quiet"], check=True)
    return folder


def edited(lines: list[bytes], number: int, chance: random.Random) -> list[bytes]:
    """A line more in one to three places, a line changed, and now and then a function more."""
    lines = list(lines)
    inside = [at for at, line in enumerate(lines) if STATEMENT.fullmatch(line)]
    for at in sorted(chance.sample(inside, min(len(inside), chance.randint(1, 3))), reverse=True):
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        lines.insert(at + 1, indent + b"changed = %d" % number)
    if chance.random() < 0.2:
        lines += [b"", b"", b"def added_%d(first, second):" % number, b"    return first + second", b""]
    return lines


def _commit(number: int, texts: dict[str, list[bytes]]) -> bytes:
    header = f"commit refs/heads/main\ncommitter A <a@example.org> {1_700_000_000 + number * 60} +0000\ndata 1\nc\n"
    pieces = [header.encode()]
    for name, lines in texts.items():
        text = b"\n".join(lines)
        pieces.append(f"M 100644 inline {name}\ndata {len(text)}\n".encode() + text + b"\n")
    return b"".join(pieces)


def against_git(folder: Path, *, limit: int) -> dict[str, float]:
    """Seconds of processor time of both, git's own included, the fastest of some runs."""
    say(f"functions of the commits in {folder.name} ...")
    log, ours, commits, changes = float("inf"), float("inf"), 0, 0
    words = ["git", "-C", str(folder), "log", "-p", "--no-merges", "--no-renames", f"--max-count={limit}"]
    for _ in range(RUNS):
        started = _processor()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "GIT_PAGER": "cat"})
        log = min(log, _processor() - started)
        started = _processor()
        listed = subprocess.run(
            ["git", "-C", str(folder), "rev-list", "--no-merges", f"--max-count={limit}", "HEAD"],
            check=True,
            capture_output=True,
            text=True,
        )
        counts = [len(changes) for _, changes in changed_functions(str(folder), listed.stdout.split())]
        ours = min(ours, _processor() - started)
        commits, changes = len(counts), sum(counts)
    return {"log_s": round(log, 2), "ours_s": round(ours, 2), "commits": commits, "changes": changes}


def _processor() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


# ---- the report


def report(result: dict[str, Any]) -> str:
    speeds = result["speed"]
    lines = [f"{'':<24} {'MB/s':>6}   beside ast.parse (goal ≥ {SPEED_GOAL})"]
    for way, found in speeds.items():
        lines.append(f"{way:<24} {found:>6.2f}   {found / speeds['ast.parse']:.2f}")
    lines += ["", f"{'':<24} {'commits':>8} {'changes':>8} {'log -p':>8} {'ours':>8}   ratio (goal ≤ {GIT_GOAL:g})"]
    for name, found in result["git"].items():
        lines.append(
            f"{name:<24} {found['commits']:>8,} {found['changes']:>8,} {found['log_s']:>7.2f}s {found['ours_s']:>7.2f}s"
            f"   {found['ours_s'] / found['log_s']:.2f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
