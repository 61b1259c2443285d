"""All tests -> as many pytest processes at a time as there are cores (at most four), and one summary, last.

    python tests/run.py [what pytest understands, such as -x or -k words]

Flow tests mostly wait for processes that they started: two halves side by side take little longer than one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONG = ("viewer", "month", "flow")  # what takes longest begins first, or one core waits for the other at the end
WHOLE = ("viewer",)  # what must see all of its folder in one process: which routes were visited
AT_ONCE = min(4, os.cpu_count() or 1)
PIECES = 4  # of a folder's files; more would pay for collecting and for fixtures of a module again and again
NOTHING = 5  # what pytest ends with where nothing was chosen


def main() -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tests-") as told, ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [(part, Path(told) / f"{number}.xml") for number, part in enumerate(parts())]
        ended = list(pool.map(lambda job: run(job[0], xml=job[1]), jobs))
        counted = Counter[str]()
        for _, xml in jobs:
            counted.update(counts(xml))
    failed = [code for code in ended if code not in (0, NOTHING)]
    told_in_order = ("passed", "failed", "errors", "skipped")
    words = ", ".join(f"{counted[name]} {name}" for name in told_in_order if counted[name] or name == "passed")
    print(f"{'FAILED: ' if failed else ''}{words} in {time.monotonic() - began:.0f} s", flush=True)
    return 1 if failed else 0


def parts() -> list[list[str]]:
    """Every test file in one of these, those that take long first."""
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    ordered = sorted(
        folders, key=lambda folder: (LONG.index(folder.name) if folder.name in LONG else len(LONG), folder)
    )
    found = []
    for folder in ordered:
        files = sorted(map(str, folder.glob("test_*.py")))
        found += [files] if folder.name in WHOLE else [files[piece::PIECES] for piece in range(PIECES)]
    return [part for part in found if part]


def run(part: Sequence[str], *, xml: Path) -> int:
    """One pytest; what it says is printed when it has ended, so that two do not speak at once."""
    command = [sys.executable, "-m", "pytest", *sys.argv[1:], f"--junitxml={xml}", "-o", "junit_family=xunit1", *part]
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
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
