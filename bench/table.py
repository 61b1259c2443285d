"""All benchmarks that a user would feel in one table, for this checkout alone or beside another revision.

`make bench`, `make bench ARGS=hook` (one script with its own report and options), `make bench-compare REV=main~20`.
Each figure stands beside a baseline that the same script took in the same run: a machine that is twice as busy shows in
both. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).parent
SECONDS = 3_600  # that one script may take


class Row(NamedTuple):
    """A figure, and what it is beside its baseline where it has one."""

    what: str
    value: float
    unit: str
    ratio: float = 0.0
    beside: str = ""
    goal: str = ""


def of_hook(found: Any) -> Iterator[Row]:
    names = {
        "a worker up, as agents run it": ("hook, worker up, nothing to write", "≤ 1.25 ×"),
        "b durable event": ("hook, tool use, on disk", "≤ 1.35 ×"),
        "c context, 5,000": ("hook, prompt, 5,000 memories", "≤ 1.35 × + build"),
        "c context, large": (f"hook, prompt, {found['memories']['large']:,} memories", "≤ 1.35 × + build"),
        "c session start, 5,000": ("hook, session start, 5,000 memories", "≤ 1.35 × + build"),
        "f ... as agents run it": ("hook, before a command", ""),
        "f ... with a hint": ("hook, before a command that failed before", ""),
        "d away, context and spool": ("hook, worker away, prompt", "≤ 12 ×"),
        "e away, redact and spool": ("hook, worker away, tool use with a secret", "≤ 12 ×"),
    }
    for name, (what, goal) in names.items():
        if each := found["variants"].get(name):
            yield Row(what, each["p50"], "ms", each["ratio"], "bare interpreter", goal)


def of_capture(found: Any) -> Iterator[Row]:
    worker, weights = found["worker"], found["worker"]["rss_mb"]
    rate = worker["events_a_second"]
    yield Row("durable events by the worker", rate, "a second", rate / found["fsyncs"], "one fsync each", "≥ 1,000")
    yield Row("a request of 20 events, p99 of 64 at once", worker["p99_ms"], "ms")
    yield Row(f"worker's memory after {weights[-2][0]:,} events", weights[-2][1], "MB", goal="≤ 80")
    imported = found["transcript"]
    yield Row(f"a transcript of {imported['mb']} MB imported", imported["seconds"], "s")


def of_store(found: Any) -> Iterator[Row]:
    for each in found:
        ours, plain = each["biggest"]["ours"]["p50"], each["biggest"]["P1 join"]["p50"]
        yield Row(f"search, {each['memories']:,} memories", ours, "ms", ours / plain, "plain FTS5", "≤ 2 ×")


def of_recall(found: Any) -> Iterator[Row]:
    for each in found:
        plain = each["biggest"]["P1 join"]["p50"]
        for name in ("prompt", "start", "compaction", "question"):
            if name in each["biggest"]:
                took = each["biggest"][name]["p50"]
                what = f"context, {name}, {each['memories']:,} memories"
                yield Row(what, took, "ms", took / plain, "plain FTS5", "≤ 3 ×" if each["memories"] >= 1e5 else "")


def of_redact(found: Any) -> Iterator[Row]:
    for name, each in found["texts"].items():
        yield Row(f"redaction, {name}", each["redact"], "MB/s", each["redact"] / each["re"], "one plain re", "≥ 10")
    plain = min(each["re"] for each in found["texts"].values())
    _, worst = min(found["hostile"].items(), key=lambda each: each[1]["mb_s"])
    speed = worst["mb_s"]
    yield Row("redaction, slowest hostile text", speed, "MB/s", speed / plain, "one plain re", "≥ 10")
    yield Row("time of 2n beside n, worst hostile text", max(e["growth"] for e in found["hostile"].values()), "×")
    yield Row("false hits in the standard library", found["hits"]["without its tests"]["per_mb"], "a MB", goal="≤ 1")


def of_transcripts(found: Any) -> Iterator[Row]:
    for each in found:
        what = f"transcripts of {each['host']}, {each['about']}"
        yield Row(what, each["mb_s"], "MB/s", 1 / each["times"], "json.loads")


def of_day_one(found: Any) -> Iterator[Row]:
    for name, each in found.items():
        yield Row(f"init, {name}", each["total_s"], "s", each["ratio"], "git log -p")
        yield Row(f"init, {name}: first context", each["first_s"], "s", goal="≤ 5")
        yield Row(f"init, {name}: worker's peak", each["peak_mb"], "MB", goal="≤ 150")


def of_size(found: Any) -> Iterator[Row]:
    worker = found["memory"]
    yield Row("start of a worker until it answers", worker["ready_ms"], "ms")
    yield Row("idle worker's memory, 5,000 memories", worker["idle"].get("VmRSS", 0), "MB", goal="≤ 80")
    yield Row("the same after 1,000 events, 200 contexts", worker["after"].get("VmRSS", 0), "MB", goal="≤ 80")
    yield Row("installed without extras", found["disk"]["total_mb"], "MB", goal="≤ 60")


# Script -> how its result is read, and its options for a quick run and for a full one.
SCRIPTS: dict[str, tuple[Callable[[Any], Iterator[Row]], str, str]] = {
    "hook": (of_hook, "--runs 30 --large 20000", "--runs 60"),
    "capture": (of_capture, "--events 10000 --hooks 40 --mb 10", ""),
    "store": (of_store, "--sizes 1000,10000 --queries 100 --keep 500 --events 1600", "--million"),
    "recall": (of_recall, "--sizes 1000,10000 --prompts 100", "--sizes 1000,10000,100000,1000000"),
    "redact": (of_redact, "--mb 0.5 --runs 3", ""),
    "transcripts": (of_transcripts, "--mb 10 --runs 2", ""),
    "day_one": (of_day_one, "--commits 500", ""),
    "size": (of_size, "", ""),
}


def main() -> None:
    options, rest = arguments()
    if options.script:  # one script, with its own report
        raise SystemExit(subprocess.run([sys.executable, HERE / f"{options.script}.py", *rest], check=False).returncode)
    with tempfile.TemporaryDirectory(prefix="fw-bench-") as scratch:
        checkouts = {"here": (ROOT, sys.executable)}
        try:
            if options.compare:
                checkouts[options.compare] = checked_out(options.compare, Path(scratch))
            runs: dict[str, list[Row]] = {name: [] for name in checkouts}
            for script in options.only.split(",") if options.only else SCRIPTS:
                for name, (root, python) in checkouts.items():  # by turns, so that both meet the same machine
                    runs[name] += measured(script, root, python, full=options.full)
        finally:
            if options.compare:
                subprocess.run(
                    ["git", "-C", ROOT, "worktree", "remove", "--force", Path(scratch) / "tree"], check=False
                )
    about = f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d', time.gmtime())}"
    table = compared(runs["here"], runs[options.compare], options.compare) if options.compare else alone(runs["here"])
    print(f"{about}\n\n{table}")
    if options.json:
        held = {name: [each._asdict() for each in rows] for name, rows in runs.items()}
        Path(options.json).write_text(json.dumps({"about": about, **held}, indent=1) + "\n", encoding="utf-8")
    if options.write:
        page = Path(options.write)
        before, _, rest_of_page = page.read_text(encoding="utf-8").partition("<!-- make bench -->\n")
        after = rest_of_page.partition("<!-- end -->")[2]
        page.write_text(f"{before}<!-- make bench -->\n{about}\n\n{table}\n<!-- end -->{after}", encoding="utf-8")


def arguments() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    others = [path.stem for path in HERE.glob("*.py") if path.name not in (Path(__file__).name, "__init__.py")]
    parser.add_argument("script", nargs="?", choices=sorted(others), help="only this one, with options of its own")
    parser.add_argument("--only", default="", help="these rows of the table, such as `hook,size`")
    parser.add_argument("--full", action="store_true", help="up to 1,000,000 memories and 100,000 events (an hour)")
    parser.add_argument("--compare", metavar="REV", help="the same scripts of another revision beside these")
    parser.add_argument("--json", metavar="FILE", help="write every row there too")
    parser.add_argument("--write", metavar="PAGE", help="put the table into this page, between its two comments")
    words = sys.argv[1:]
    own = words[:1] if words and words[0] in others else words  # what stands behind a script is for the script
    return parser.parse_args(own), words[len(own) :]


def measured(script: str, root: Path, python: str, *, full: bool) -> list[Row]:
    """Run one script of a checkout, and return its rows; one that fails there has none."""
    read, quick, all_of_it = SCRIPTS[script]
    words = (all_of_it if full else quick).split()
    print(f"{script} {' '.join(words)} ({root.name}) ...", file=sys.stderr, flush=True)
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [python, root / "bench" / f"{script}.py", *words, "--json", out.name]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        if ended.returncode:
            print(f"{script} fails: {(ended.stderr.strip().splitlines() or ['?'])[-1]}", file=sys.stderr)
            return []
        return list(read(json.load(out)))


def checked_out(revision: str, scratch: Path) -> tuple[Path, str]:
    """Check *revision* out into a folder of its own, with an environment of its own; return both."""
    tree, venv = scratch / "tree", scratch / "venv"
    subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", tree, revision], check=True)
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    python = str(venv / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", tree / "constraints.txt"]
    subprocess.run([*install, "-e", f"{tree}[embeddings,code]"], check=True)
    return tree, python


def alone(rows: list[Row]) -> str:
    lines = ["| what | measured | beside | goal |", "|---|---|---|---|"]
    for each in rows:
        beside = f"{each.ratio:.2f} × {each.beside}" if each.beside else ""
        lines.append(f"| {each.what} | {_number(each.value)} {each.unit} | {beside} | {each.goal} |")
    return "\n".join(lines)


def compared(here: list[Row], there: list[Row], revision: str) -> str:
    """Both in one table, with the ratio: of what stands beside the baselines, where there is one."""
    others = {each.what: each for each in there}
    lines = [f"| what | here | {revision} | here / {revision} |", "|---|---|---|---|"]
    for each in here:
        if other := others.get(each.what):
            mine, theirs = (each.ratio, other.ratio) if each.beside else (each.value, other.value)
            ratio = f"{mine / theirs:.2f}{' by baseline' if each.beside else ''}" if theirs else ""
            cells = (f"{_number(each.value)} {each.unit}", f"{_number(other.value)} {other.unit}", ratio)
            lines.append(f"| {each.what} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    main()
