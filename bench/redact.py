"""Ordinary source, logs and JSON through redact -> MB a second beside a copy and one plain `re`, and false hits.

`make bench-redact`, or `python bench/redact.py --mb 4`. No time is asserted: goals stand beside the numbers.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sysconfig
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from store import quantile, say

from foreword.redact import redact, redact_all, suspicious
from foreword.redact.env import hiding

SPEED = 10.0  # MB a second, at least
HITS = 1.0  # a megabyte of source, at most
STDLIB = Path(sysconfig.get_path("stdlib"))
TESTS = {"test", "tests", "idle_test", "site-packages"}
# What one pass of `re` over the same text costs: five words that every scanner looks for.
PLAIN = re.compile(r"password|secret|token|api_key|BEGIN [A-Z ]*PRIVATE KEY")


def main() -> None:
    given = arguments()
    texts = samples(given.mb * 1_000_000)
    rows = {name: measured(text, given.runs) for name, text in texts.items()}
    result = {"texts": rows, "hits": false_hits(given.all)}
    print(report(result))
    if given.json:
        Path(given.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=float, default=2.0, help="of each kind of text")
    parser.add_argument("--runs", type=int, default=5, help="of each kind of text, the median counts")
    parser.add_argument("--all", action="store_true", help="false hits in the tests of the standard library too")
    parser.add_argument("--json", metavar="FILE", help="write every number there too")
    return parser.parse_args()


def samples(size: float) -> dict[str, str]:
    """Text of each kind, made of what is on every machine."""
    source = "".join(text for _, text in sources(tests=False))[: int(size)]
    rng = random.Random(7)
    words = sorted(set(re.findall(r"[a-z_]{3,}", source[:200_000])))
    lines, logs = [], 0
    while logs < size:
        at = f"2026-11-16T{rng.randrange(24):02}:{rng.randrange(60):02}:00Z"
        about = f"id={rng.randrange(1 << 64):016x} key={rng.choice(words)} token_count={rng.randrange(9000)}"
        line = f"{at} INFO {rng.choice(words)}.{rng.choice(words)}: {' '.join(rng.choices(words, k=9))} {about}"
        lines.append(line)
        logs += len(line)
    events = [{"session_id": f"{n:08}-0000-4000-8000-000000000000", "stdout": line} for n, line in enumerate(lines)]
    held = json.dumps({"events": events})[: int(size)]
    return {"source": source, "logs": "\n".join(lines), "JSON": held}


def sources(*, tests: bool) -> list[tuple[str, str]]:
    """The standard library without what pip installed; its tests hold made-up passwords on purpose, and count apart."""
    found = [path for path in sorted(STDLIB.rglob("*.py")) if "site-packages" not in path.parts]
    wanted = [path for path in found if bool(TESTS.intersection(path.parts)) == tests]
    return [(str(path.relative_to(STDLIB)), path.read_text("utf-8", "replace")) for path in wanted]


def measured(text: str, runs: int) -> dict[str, float]:
    say(f"{len(text) / 1e6:.1f} MB ...")
    raw = text.encode()
    hide = hiding("24-0011223344556677-8899aabbccddeeff", key=1)
    assert hide is not None
    ways: dict[str, Callable[[], object]] = {
        "redact": lambda: redact(text),
        "suspicious": lambda: suspicious(text),
        "as a value": lambda: redact_all({"a": [text]}),
        "variables": lambda: hide(text),
        "re": lambda: PLAIN.findall(text),
        "copy": lambda: bytearray(raw),
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(runs):
        for name, run in ways.items():
            begun = time.process_time()
            run()
            spent[name].append(time.process_time() - begun)
    return {name: round(len(raw) / 1e6 / max(quantile(times, 0.5), 1e-9), 1) for name, times in spent.items()}


def false_hits(everything: bool) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for name, tests in (("without its tests", False), ("its tests", True)):
        if tests and not everything:
            continue
        size, kinds, where = 0, Counter(), Counter()
        for path, text in sources(tests=tests):
            size += len(text)
            marks = Counter(re.findall(r"\[redacted:([a-z0-9-]+)\]", redact(text)))
            if marks:
                kinds += marks
                where[path] += sum(marks.values())
        hits = sum(kinds.values())
        found[name] = {
            "mb": round(size / 1e6, 1),
            "hits": hits,
            "per_mb": round(hits / size * 1e6, 2),
            "kinds": dict(kinds),
            "files": dict(where),
        }
    return found


def report(result: dict[str, dict[str, dict[str, object]]]) -> str:
    rows = result["texts"]
    ways = list(next(iter(rows.values())))
    lines = [
        "MB a second of processor time, the median of the runs",
        f"{'text':<10}" + "".join(f"{way:>12}" for way in ways),
    ]
    for name, row in rows.items():
        lines.append(f"{name:<10}" + "".join(f"{row[way]:>12}" for way in ways))
    slowest = min(float(str(row["redact"])) for row in rows.values())
    lines.append(f"redact: {slowest} MB/s where it is slowest, goal {SPEED}: {'met' if slowest >= SPEED else 'missed'}")
    ratios = ", ".join(f"{name} {float(str(row['re'])) / float(str(row['redact'])):.1f}" for name, row in rows.items())
    lines.append(f"times one plain regular expression over the same text: {ratios}")
    for name, about in result["hits"].items():
        met = "" if "its" in name.split()[0] else ("met" if float(str(about["per_mb"])) <= HITS else "missed")
        lines.append(
            f"false hits in the standard library, {name}: {about['hits']} in {about['mb']} MB, {about['per_mb']} a MB"
            + (f", goal {HITS}: {met}" if met else "")
        )
        lines.append(f"  {about['kinds']} in {about['files']}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
