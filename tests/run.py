"""All tests -> a few pytest processes at a time, what takes longest first, and one summary, last.

    python tests/run.py [--clients] [--types] [FOLDER…] [what pytest understands, such as -x or -k words]

With --clients the real clients (tests/e2e/run.py) run beside them, with --types mypy and the layers (`make types`: they
keep one core busy, and the others would wait); with folders only what lies in these runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
LONG = ("viewer", "flow", "month")  # what takes longest begins first, or one core waits for the other at the end
PIECES = {"viewer": 5, "flow": 6, "unit": 3}  # of a folder; more would pay for browsers and collecting again and again
HEADS = ("test_walk.py", "test_axe.py", "test_xss.py", "test_memories.py")  # the longest, each in another piece
LAST = "test_visited.py"  # counts what the pieces of its folder have told, when all of them have ended
AT_ONCE = min(4, 1 + (os.cpu_count() or 1))  # one more than cores, for tests often wait for what they started
NOTHING = 5  # what pytest ends with where nothing was chosen
CLIENTS, TYPES = "--clients", "--types"
Command = Sequence[str]


def main() -> int:
    began = time.monotonic()
    given = [each for each in sys.argv[1:] if each not in (CLIENTS, TYPES)]
    folders = [ROOT / each for each in given if (ROOT / each).is_dir()] or [TESTS]
    asked = [each for each in given if not (ROOT / each).is_dir()]
    clients = [[sys.executable, str(TESTS / "e2e" / "run.py")]] if CLIENTS in sys.argv else []
    types = [["make", "--no-print-directory", "types"]] if TYPES in sys.argv else []
    with tempfile.TemporaryDirectory(prefix="tests-") as name, ThreadPoolExecutor(AT_ONCE) as pool:
        told = Path(name)
        first, last = parts(folders)
        tests = [pytest(part, asked, xml=told / f"{number}.xml") for number, part in enumerate([*first, *last])]
        # Where the pieces of a folder tell what they have done, and whether somebody runs the clients.
        environ = {**os.environ, "TESTS_TOLD": name, "TESTS_CLIENTS": "beside" if clients else ""}
        ended = list(pool.map(lambda command: run(command, environ), [*clients, *types, *tests[: len(first)]]))
        ended += [run(command, environ) for command in tests[len(first) :]]
        counted = sum((counts(told / f"{number}.xml") for number in range(len(tests))), Counter[str]())
    failed = [code for code in ended if code not in (0, NOTHING)]
    told_in_order = ("passed", "failed", "errors", "skipped")
    words = ", ".join(f"{counted[name]} {name}" for name in told_in_order if counted[name] or name == "passed")
    print(f"{'FAILED: ' if failed else ''}{words} in {time.monotonic() - began:.0f} s", flush=True)
    return 1 if failed else 0


def parts(folders: Sequence[Path]) -> tuple[list[list[Path]], list[list[Path]]]:
    """Every test file in one part, those that take long first; and the parts that wait for all of these."""
    files = {path for folder in folders for path in folder.rglob("test_*.py")}
    by_folder: dict[Path, list[Path]] = {}
    for path in sorted(
        files, key=lambda path: (_place(path.parent.name, LONG), path.parent, _place(path.name, HEADS), path)
    ):
        by_folder.setdefault(path.parent, []).append(path)
    found = []
    for folder, inside in by_folder.items():
        dealt = [path for path in inside if path.name != LAST]
        pieces = PIECES.get(folder.name, 2)
        found += [dealt[piece::pieces] for piece in range(pieces)]
    return [part for part in found if part], [[path] for path in sorted(files) if path.name == LAST]


def _place(name: str, order: Sequence[str]) -> int:
    return order.index(name) if name in order else len(order)


def pytest(part: Sequence[Path], asked: Sequence[str], *, xml: Path) -> Command:
    told = ["-rs", f"--junitxml={xml}", "-o", "junit_family=xunit1"]  # what is passed over is said, with the reason
    return [sys.executable, "-m", "pytest", *asked, *told, *map(str, part)]


def run(command: Command, environ: Mapping[str, str]) -> int:
    """What it says is printed when it has ended, so that two do not speak at once."""
    ended = subprocess.run(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    sys.stdout.buffer.write(ended.stdout)
    sys.stdout.flush()
    return ended.returncode


def counts(xml: Path) -> Counter[str]:
    if not xml.exists():
        return Counter(errors=1)  # it ended before it could tell
    counted = Counter[str]()
    for suite in ET.parse(xml).getroot().iter("testsuite"):
        number = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
        counted["failed"] += number["failures"]
        counted["errors"] += number["errors"]
        counted["skipped"] += number["skipped"]
        counted["passed"] += number["tests"] - number["failures"] - number["errors"] - number["skipped"]
    return counted


if __name__ == "__main__":
    sys.exit(main())
