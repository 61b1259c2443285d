"""A repository and an empty home -> how soon an agent is given something, and what the rest costs.

`make bench ARGS=day_one`. This repository, and a made-up one of 20,000 commits, alone and while somebody
works. Nothing is asserted: goals stand beside the numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from store import SEED, say

from foreword.errors import ForewordError
from foreword.paths import Home
from foreword.worker import lifecycle
from foreword.worker.client import Client

ROOT = Path(__file__).resolve().parent.parent
FIRST_GOAL, MEMORY_GOAL = 5.0, 150.0  # seconds; MB
COMMITS = 20_000
PROMPT_EVERY = 0.25  # seconds between two prompts of somebody who works meanwhile
PARTS = (
    "api",
    "auth",
    "billing",
    "cache",
    "client",
    "config",
    "core",
    "db",
    "export",
    "http",
    "import",
    "index",
    "jobs",
)
PARTS += ("mail", "parser", "queue", "report", "search", "ui", "worker")
NOUNS = ("retry", "timeout", "token", "session", "page", "cursor", "batch", "header", "schema", "lock", "event", "row")
NOUNS += ("key", "limit", "plan", "path", "query", "buffer", "stream", "clock")
VERBS = ("Add", "Fix", "Remove", "Rename", "Move", "Handle", "Simplify", "Speed up", "Test", "Document", "Guard", "Log")
WHYS = (
    "Two requests at once saw the same {0} and both wrote it.",
    "It grew without bound when the {0} was never read.",
    "The {0} was built again for every row, which was most of the time.",
    "Callers had to know about the {0}; now they need not.",
    "It failed on an empty {0}, which is what a fresh install has.",
)


def main() -> None:
    options = arguments()
    scratch = Path(tempfile.mkdtemp(prefix="fw-"))
    results: dict[str, Any] = {}
    try:
        made = scratch / "made"
        began = time.perf_counter()
        make(made, commits=options.commits)
        say(f"{options.commits:,} commits made in {time.perf_counter() - began:.1f} s")
        for name, folder, working in (
            ("this repository", ROOT, False),
            ("made up", made, False),
            ("made up, while somebody works", made, True),
        ):
            results[name] = measured(scratch / f"h{len(results)}", folder, working=working)
            show(name, results[name])
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2), encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=COMMITS, help="commits of the made-up repository")
    parser.add_argument("--json", help="keep all numbers in this file")
    return parser.parse_args()


def measured(scratch: Path, folder: Path, *, working: bool) -> dict[str, Any]:
    """One first day: `init --yes` in an empty home, prompts meanwhile where somebody works, and the same once more."""
    git_log = _git_log(folder)
    home = Home(scratch)
    environ = {**os.environ, "FOREWORD_HOME": str(home.root), "HOME": str(scratch / "nobody")}
    os.environ["FOREWORD_HOME"] = str(home.root)
    began = time.perf_counter()
    command = [sys.executable, "-m", "foreword", "init", "--yes", "--json", str(folder)]
    with (scratch.parent / f"{scratch.name}.out").open("w+") as out:
        running = subprocess.Popen(command, env=environ, stdout=out)
        try:
            first = _first(home, folder, began)
            during = _Prompts(home, folder) if working else None
            running.wait()
        finally:
            running.kill()
            running.wait()
        total = time.perf_counter() - began
        out.seek(0)
        ended = json.load(out)
    try:
        client, latencies, quiet = Client(home), [], []
        if during:
            latencies, afterwards = during.ended(), _Prompts(home, folder)
            time.sleep(20)
            quiet = afterwards.ended()
        before = client.get("/api/health")["counts"]
        subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=True)
        after = client.get("/api/health")["counts"]
        peak = _peak(lifecycle.pid_of(home))
    finally:
        lifecycle.stop(home)
    names = ("memories", "links", "changes", "sessions", "code", "units")
    return {
        "first_s": first,
        "total_s": total,
        "git_log_p_s": git_log,
        "ratio": total / git_log,
        "peak_mb": peak,
        "kept": sum(source["kept"] for source in ended["sources"]),
        "twice_the_same": all(before[name] == after[name] for name in names),
        "during_ms": latencies,
        "quiet_ms": quiet,
    }


def show(name: str, run: dict[str, Any]) -> None:
    def met(good: bool) -> str:
        return "met" if good else "MISSED"

    def spread(times: list[float]) -> str:
        if not times:
            return "none"
        ordered = sorted(times)
        return f"p50 {statistics.median(ordered):.1f}, p95 {ordered[int(len(ordered) * 0.95)]:.1f} ms of {len(ordered)}"

    say(f"\n{name}: {run['kept']:,} memories")
    first = run["first_s"]
    say(f"  first context     {first:6.2f} s    goal {FIRST_GOAL:g} s: {met(first < FIRST_GOAL)}")
    log = f"{run['ratio']:.1f} x `git log -p` ({run['git_log_p_s']:.2f} s)"
    say(f"  all of it         {run['total_s']:6.2f} s    {log}")
    say(f"  worker's peak     {run['peak_mb']:6.0f} MB   goal {MEMORY_GOAL:g} MB: {met(run['peak_mb'] < MEMORY_GOAL)}")
    say(f"  twice is once     {run['twice_the_same']}")
    if run["during_ms"]:
        say(f"  prompts meanwhile {spread(run['during_ms'])}; afterwards {spread(run['quiet_ms'])}")


class _Prompts:
    """Somebody who works: a prompt's hook call on the worker's socket every now and then, each timed."""

    def __init__(self, home: Home, folder: Path) -> None:
        self._home, self._folder = home, folder
        self._over = threading.Event()
        self._times: list[float] = []
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def ended(self) -> list[float]:
        self._over.set()
        self._thread.join()
        return self._times

    def _work(self) -> None:
        client, chosen = Client(self._home), random.Random(SEED)
        number = 0
        while not self._over.wait(PROMPT_EVERY):
            number += 1
            prompt = f"Why does the {chosen.choice(NOUNS)} of the {chosen.choice(PARTS)} fail after a retry?"
            payload = {"session_id": f"s{number}", "cwd": str(self._folder), "prompt": prompt}
            began = time.perf_counter()
            try:
                client.send("POST", "/api/hook?host=claude-code&event=UserPromptSubmit", json.dumps(payload).encode())
            except ForewordError:
                continue
            self._times.append((time.perf_counter() - began) * 1000)


def _first(home: Home, folder: Path, began: float) -> float:
    """Seconds until a question about the newest commit is given something."""
    command = ["git", "-C", str(folder), "log", "-1", "--no-merges", "--format=%s"]
    newest = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    question = {"trigger": "question", "prompt": newest, "preview": 1}
    client = Client(home, seconds=5)
    while time.perf_counter() - began < 120:
        try:
            if client.get("/api/context", project_path=str(folder), **question)["context"]:
                return time.perf_counter() - began
        except ForewordError:
            pass
        time.sleep(0.05)
    return float("inf")


def _git_log(folder: Path) -> float:
    began = time.perf_counter()
    subprocess.run(["git", "-C", str(folder), "log", "-p", "--no-merges"], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def _peak(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return float("nan")
    return next(int(line.split()[1]) / 1000 for line in status.splitlines() if line.startswith("VmHWM"))


# ---- a made-up repository


def make(folder: Path, *, commits: int) -> None:
    """A history by `git fast-import`: 400 files, messages as people write them, the last commit an hour old."""
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(folder)], check=True)
    chosen = random.Random(SEED)
    names = [f"src/{part}/{noun}.py" for part in PARTS for noun in NOUNS]
    lines = {name: [f"def {Path(name).stem}_{number}(): return {number}" for number in range(20)] for name in names}
    now = int(time.time())
    importing = subprocess.Popen(["git", "-C", str(folder), "fast-import", "--quiet"], stdin=subprocess.PIPE)
    assert importing.stdin is not None
    for number in range(commits):
        at = now - 3600 - (commits - number) * 900
        message = _message(chosen).encode()
        head = f"commit refs/heads/main\ncommitter Ada Writer <ada@example.org> {at} +0000\ndata {len(message)}\n"
        importing.stdin.write(head.encode() + message + b"\n")
        for name in chosen.sample(names, chosen.choice((1, 1, 2, 3))):
            text = lines[name]
            text[chosen.randrange(len(text))] = f"def {Path(name).stem}_{number}(): return {number}"
            body = "\n".join(text).encode()
            importing.stdin.write(f"M 100644 inline {name}\ndata {len(body)}\n".encode() + body + b"\n")
    importing.stdin.close()
    if importing.wait():
        raise RuntimeError("git fast-import failed")


def _message(chosen: random.Random) -> str:
    verb, noun, part = chosen.choice(VERBS), chosen.choice(NOUNS), chosen.choice(PARTS)
    other = chosen.choice(NOUNS)
    subject = f"{verb} the {noun} of the {part} when its {other} is gone (#{chosen.randrange(9999)})"
    if chosen.random() < 0.1:
        return f"Bump {noun}-{part} from 1.{chosen.randrange(9)} to 2.{chosen.randrange(9)}"
    if chosen.random() < 0.4:
        return subject
    why = f"{chosen.choice(WHYS).format(other)} {chosen.choice(WHYS).format(noun)}"
    return f"{subject}\n\n{why}\n\nReviewed-by: Bo <bo@example.org>"


if __name__ == "__main__":
    main()
