"""Measure redact on ordinary and hostile text: MB a second, the growth from n to 2n, and false hits.

`make bench ARGS=redact`, or `python bench/redact.py --mb 4`. No time is asserted: goals stand beside the numbers.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import sysconfig
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from store import quantile, say

from foreword.hook.client import without_values
from foreword.redact import redact, redact_all

SPEED = 10.0  # MB a second, at least
HITS = 1.0  # a megabyte of source, at most
STDLIB = Path(sysconfig.get_path("stdlib"))
TESTS = {"test", "tests", "idle_test", "site-packages"}
# Repeated: what each step looks for, next to itself.
HOSTILE = """password = |password=|token: a1|key=|"password": "x", |authorization: bearer |Cookie: a=|mysql -p
curl -u a:|<password>|password is |eyJ|sk-|xapp-1|a|A|_|\\u003c|<|<private|</private>|&lt;|-----BEGIN |PRIVATE KEY |://a:b@|QUJDREVG
contraseña: a1b2c3 |password|user;password;|https://aaaaaaaaaaaaaaaaaaaa1@h """
# What one pass of `re` over the same text costs: five words that every scanner looks for.
PLAIN = re.compile(r"password|secret|token|api_key|BEGIN [A-Z ]*PRIVATE KEY")


def main() -> None:
    options = arguments()
    texts = samples(options.mb * 1_000_000)
    rows = {name: measured(text, options.runs) for name, text in texts.items()}
    result = {"texts": rows, "hostile": hostile(int(options.mb * 500_000)), "hits": false_hits(options.all)}
    print(report(result))
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


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
    ways: dict[str, Callable[[], object]] = {
        "redact": lambda: redact(text),
        "as a value": lambda: redact_all({"a": [text]}),
        "variables": lambda: without_values(raw, [b"zq7Zq7Zq7Zq7Zq7Zq7Zq7Zq7"]),
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


def hostile(size: int) -> dict[str, dict[str, object]]:
    """Return MB a second of 2n characters, and how much longer they take than n: a square takes four times as long."""
    say(f"hostile text, {2 * size / 1e6:.1f} MB ...")
    rng = random.Random(9)
    name = "".join(rng.choices("abcdefghij", k=8))
    texts = {unit: unit * (2 * size // len(unit)) for unit in HOSTILE.replace("\n", "|").split("|")}
    texts["table"] = "name,password\n" + "ada,a1b2c3\n" * (2 * size // 11)
    texts["tables"] = "a;password\nx;1\n\n" * (2 * size // 16)
    made = {
        "login lines": lambda: f"user=ada password={name}{rng.randrange(10**4)}\n",
        "keys": lambda: f"api_key={rng.randrange(1 << 128):032x}\n",
        "tokens": lambda: f"{'gh' + 'p_'}{rng.randrange(1 << 144):036x}\n",
        "URLs": lambda: f"https://ada:{rng.randrange(1 << 32):x}@db/shop ",
    }
    for kind, line in made.items():
        texts[kind] = "".join(line() for _ in range(2 * size // len(line()) + 1))[: 2 * size]
    texts["base64"] = base64.b64encode(rng.randbytes(size * 3 // 2)).decode()
    texts["minified"] = "".join("".join(text.split()) for _, text in sources(tests=False))[: 2 * size]
    found: dict[str, dict[str, object]] = {}
    for unit, text in texts.items():
        half = text[: len(text) // 2]
        once, twice = (min(seconds(part) for _ in range(2)) for part in (half, half + half))
        found[unit] = {"mb_s": round(2 * len(half.encode()) / 1e6 / twice, 1), "growth": round(twice / once, 2)}
    return found


def seconds(text: str) -> float:
    begun = time.process_time()
    redact(text)
    return max(time.process_time() - begun, 1e-9)


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
    lines.append("hostile text: MB a second, and the time of 2n beside that of n")
    for unit, about in sorted(result["hostile"].items(), key=lambda each: float(str(each[1]["mb_s"]))):
        missed = "" if float(str(about["mb_s"])) >= SPEED else f"  under the goal of {SPEED}"
        lines.append(f"  {unit[:24]!r:<28}{about['mb_s']:>8}{about['growth']:>8}{missed}")
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
