"""Events of made-up sessions -> how many a second are kept, by hooks and by the worker, and what the worker weighs then.

`make bench ARGS=capture`, or `python bench/capture.py --events 20000`. Each rate stands beside a baseline of the same run: hooks
beside bare interpreters, the worker beside one `fsync` after another. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
from hook import ENVIRON, PY
from store import SEED, quantile, say
from transcripts import claude_transcript

from foreword.errors import StoreError, WorkerError
from foreword.hook import build
from foreword.paths import Home
from foreword.worker import lifecycle
from foreword.worker.client import Client

EVENTS = 100_000
HOOKS = 300
LINES = 64  # connections at a time: as many as the worker has threads
IN_A_POST = 20  # events in a request of a plugin
IN_A_SESSION = 200
SAMPLES = 10  # at the worker's memory, on the way
GOAL = 1_000  # durable events a second


def main() -> None:
    options = arguments()
    scratch = Path(tempfile.mkdtemp(prefix="fw-"))
    project = scratch / "project"
    project.mkdir()
    home = Home(scratch / "home")
    os.environ["FOREWORD_HOME"] = str(home.root)
    lifecycle.start(home)
    pid = lifecycle.pid_of(home)
    try:
        if options.soak:
            say_soak(soak(home, project, many=options.soak, seed=options.seed))
            return
        result = {
            "fsyncs": fsyncs(scratch),
            "hooks": hooks(home, project, many=options.hooks),
            "worker": worker(home, project, pid, many=options.events, seed=options.seed),
            "transcript": transcript(home, scratch, pid, mb=options.mb),
        }
    finally:
        lifecycle.stop(home)
        shutil.rmtree(scratch)
    print(report(result))
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=EVENTS, help="that the worker is told")
    parser.add_argument("--hooks", type=int, default=HOOKS, help="processes that are started, of each kind")
    parser.add_argument("--mb", type=int, default=100, help="of a transcript that is imported at the end")
    parser.add_argument("--soak", type=int, default=0, metavar="N", help="N events instead, with restarts on the way")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--json", metavar="FILE", help="write every number there too")
    return parser.parse_args()


# ---- what is told


def event(chance: random.Random, number: int, project: Path) -> dict[str, Any]:
    """One event of a session that prompts, edits, runs and fails like sessions do."""
    session, place = f"bench-{number // IN_A_SESSION}", number % IN_A_SESSION
    base = {"session_id": session, "cwd": str(project)}
    if place == 0:
        return hook_event("SessionStart", {**base, "source": "startup"}, number)
    if place == IN_A_SESSION - 1:
        return hook_event("SessionEnd", {**base, "reason": "other"}, number)
    name = f"part_{chance.randrange(400)}"
    if place % 20 == 1:
        return hook_event(
            "UserPromptSubmit",
            {**base, "prompt": f"change {name} so that it takes {number} rows", "prompt_id": f"p{number}"},
            number,
        )
    if place % 20 == 0:
        return hook_event(
            "Stop",
            {**base, "last_assistant_message": f"{name} takes {number} rows now, because they are read in pages."},
            number,
        )
    tool: dict[str, Any] = {**base, "tool_use_id": f"t{number}"}
    if place % 5 == 2:
        file = str(project / f"{name}.py")
        was, now = f"    return rows[:{place}]\n", f"    return rows[:{number}]\n"
        return hook_event(
            "PostToolUse",
            {
                **tool,
                "tool_name": "Edit",
                "tool_input": {"file_path": file, "old_string": was, "new_string": now},
                "tool_response": {},
            },
            number,
        )
    output = "\n".join(f"{name} line {line}: {chance.random():.6f}" for line in range(40))
    if place % 7 == 3:
        failed = f"Exit code 1\n{output}\nE   ValueError: {name} takes no rows\nFAILED tests/test_{name}.py::test_rows"
        return hook_event(
            "PostToolUseFailure",
            {**tool, "tool_name": "Bash", "tool_input": {"command": "pytest -q"}, "error": failed},
            number,
        )
    return hook_event(
        "PostToolUse",
        {**tool, "tool_name": "Bash", "tool_input": {"command": "pytest -q"}, "tool_response": {"stdout": output}},
        number,
    )


def hook_event(name: str, payload: dict[str, Any], number: int) -> dict[str, Any]:
    at = 1_790_000_000.0 + number
    return {"host": "claude-code", "event": name, "at": at, "payload": {**payload, "hook_event_name": name}}


# ---- what is measured


def fsyncs(folder: Path, *, seconds: float = 2.0) -> float:
    """A write of 2 KB and an `fsync`, one after another, a second."""
    say("writing and syncing a file ...")
    done, end = 0, time.perf_counter() + seconds
    fd = os.open(folder / "baseline", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while time.perf_counter() < end:
        os.write(fd, b"x" * 2048)
        os.fsync(fd)
        done += 1
    os.close(fd)
    return done / seconds


def hooks(home: Home, project: Path, *, many: int) -> dict[str, Any]:
    """Hook processes one after another, and bare interpreters between them."""
    say(f"{many} hooks and as many bare interpreters ...")
    chance = random.Random(0)
    payloads = [json.dumps(event(chance, 5 + 20 * number, project)["payload"]).encode() for number in range(many)]
    command = build.command(home, host="claude-code", event="PostToolUse")
    spent = {"hook": 0.0, "bare": 0.0}
    for payload in payloads:
        for kind, line in (("hook", command), ("bare", [PY, "-I", "-S", "-c", "pass"])):
            began = time.perf_counter()
            subprocess.run(line, input=payload, env=ENVIRON, check=True, capture_output=True)
            spent[kind] += time.perf_counter() - began
    rates = {f"{kind}_a_second": many / took for kind, took in spent.items()}
    return {**rates, "ratio": spent["hook"] / spent["bare"]}


def worker(home: Home, project: Path, pid: int, *, many: int, seed: int) -> dict[str, Any]:
    """Posts over many lines at once; each returns when its events are on the disk. Then what they came to is awaited."""
    say(f"{many} events, {IN_A_POST} a request, over {LINES} lines ...")
    chance = random.Random(seed)
    batches = [
        [event(chance, number, project) for number in range(start, min(many, start + IN_A_POST))]
        for start in range(0, many, IN_A_POST)
    ]
    waits: list[float] = []
    weights: list[tuple[int, float]] = []
    began = time.perf_counter()
    for part in range(SAMPLES):
        some = batches[part * len(batches) // SAMPLES : (part + 1) * len(batches) // SAMPLES]
        told_by_many(home, some, waits)
        weights.append(((part + 1) * many // SAMPLES, rss(pid)))
    took = time.perf_counter() - began
    say("waiting until all sessions are extracted ...")
    extracted = awaited(home)
    return {
        "events": many,
        "events_a_second": many / took,
        "p50_ms": quantile(waits, 0.5) * 1000,
        "p99_ms": quantile(waits, 0.99) * 1000,
        "rss_mb": [*weights, ("at the end", rss(pid))],
        "extracted_after_s": extracted,
        "memories": Client(home).get("/api/health")["counts"]["memories"],
        "database_mb": home.database.stat().st_size / 1e6,
    }


def told_by_many(home: Home, batches: list[list[dict[str, Any]]], waits: list[float]) -> None:
    left = iter(batches)
    turn = threading.Lock()

    def line() -> None:
        client = Client(home)
        while True:
            with turn:
                batch = next(left, None)
            if batch is None:
                return
            began = time.perf_counter()
            while True:
                try:
                    client.post("/api/events", {"events": batch})
                    break
                except (WorkerError, StoreError):  # killed meanwhile: told again, as hooks do
                    time.sleep(0.05)
            waits.append(time.perf_counter() - began)

    threads = [threading.Thread(target=line) for _ in range(LINES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def soak(home: Home, project: Path, *, many: int, seed: int) -> dict[str, Any]:
    """Send *many* events as fast as they go: half of them to workers that are killed or stopped, half to one worker."""
    chance, waits, seen = random.Random(seed), [], Seen(home)
    parts = 20
    for part in range(parts):
        numbers = range(part * many // parts, (part + 1) * many // parts)
        made = [event(chance, number, project) for number in numbers]
        batches = [made[at : at + IN_A_POST] for at in range(0, len(made), IN_A_POST)]
        sending = threading.Thread(target=told_by_many, args=(home, batches, waits))
        sending.start()
        if part < parts // 2:
            sending.join(chance.random() * 2)
            if pid := lifecycle.pid_of(home):  # one that replaces itself has none for a moment
                os.kill(pid, signal.SIGKILL if part % 2 else signal.SIGTERM)
                with suppress(ChildProcessError):
                    os.waitpid(pid, 0)
            lifecycle.start(home)
        sending.join()
        seen.look(numbers.stop)
        say(f"{numbers.stop:>9,} events: {seen.rss[-1][1]:.0f} MB, WAL at most {seen.wal:.1f} MB")
    seen.over.set()
    extracted = awaited(home)
    seen.look(many)
    counts = Client(home).get("/api/health")["counts"]
    warm = seen.rss[parts // 2 + 1][1]  # one part after the last restart
    return {
        "sent": many,
        "stored": counts["events"],
        "memories": counts["memories"],
        "growth": seen.rss[-1][1] / warm - 1,
        "most": max(mb for _, mb in seen.rss[parts // 2 + 1 :]) / warm - 1,
        "rss_mb": seen.rss,
        "wal_mb": seen.wal,
        "workers": seen.workers,
        "zombies": seen.zombies,
        "extracted_after_s": extracted,
        "p99_ms": quantile(waits, 0.99) * 1000,
    }


class Seen:
    """What the home and its processes look like meanwhile."""

    def __init__(self, home: Home) -> None:
        self.home, self.over = home, threading.Event()
        self.rss: list[tuple[int, float]] = []
        self.wal, self.workers, self.zombies = 0.0, 0, 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        wal = Path(f"{self.home.database}-wal")
        while not self.over.wait(0.1):
            with suppress(FileNotFoundError):
                self.wal = max(self.wal, wal.stat().st_size / 1e6)

    def look(self, events: int) -> None:
        """Note the worker's memory, and how many workers and zombies there are."""
        self.rss.append((events, rss(lifecycle.pid_of(self.home))))
        running, dead = 0, 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                ours = f"FOREWORD_HOME={self.home.root}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes()
                running += ours and b"foreword.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
                state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
                dead += state == "Z" and int(parent) in (os.getpid(), lifecycle.pid_of(self.home))
        self.workers, self.zombies = max(self.workers, running), max(self.zombies, dead)


def say_soak(result: dict[str, Any]) -> None:
    print(
        f"soak: {result['stored']:,} of {result['sent']:,} events stored, {result['memories']:,} memories; "
        f"p99 of a request {result['p99_ms']:.0f} ms; all extracted {result['extracted_after_s']:.0f} s later\n"
        f"memory after warm-up {result['growth']:+.1%} at the end, {result['most']:+.1%} at most (goal +10 %): "
        + ", ".join(f"{events // 1000}k {mb:.0f}" for events, mb in result["rss_mb"])
        + f" MB\nWAL at most {result['wal_mb']:.1f} MB; workers at most {result['workers']}; zombies {result['zombies']}"
    )


def awaited(home: Home, *, most: float = 600.0) -> float:
    """Wait until all sessions are extracted; asked of the file, so that no list of them weighs on the worker."""
    began = time.perf_counter()
    waiting = "SELECT count(*) FROM sessions WHERE newest > extracted"
    with closing(apsw.Connection(str(home.database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        while time.perf_counter() - began < most and connection.execute(waiting).get:
            time.sleep(1.0)
    return time.perf_counter() - began


def transcript(home: Home, scratch: Path, pid: int, *, mb: int) -> dict[str, Any]:
    """One session of Claude Code so long, imported by the worker; what it weighed at most meanwhile."""
    say(f"a transcript of {mb} MB is written and imported ...")
    project = scratch / "rooms"
    folder = scratch / "claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(project))
    for each in (project, folder):
        each.mkdir(parents=True)
    claude_transcript(folder / "s.jsonl", mb=mb, long=False, cwd=str(project))
    os.utime(folder / "s.jsonl", (time.time() - 3600,) * 2)  # a session that is going on would wait
    before, most, began = rss(pid), 0.0, time.perf_counter()
    environ = {"HOME": str(scratch), "CLAUDE_CONFIG_DIR": str(scratch / "claude")}
    import_request = {"sources": ["claude-code"], "project_path": str(project), "options": {}, "environ": environ}
    state = Client(home).post("/api/imports", import_request)["import"]
    while state["state"] == "running":
        time.sleep(0.05)
        most = max(most, rss(pid))
        state = next(
            each for each in Client(home).get("/api/imports")["imports"] if each["project_path"] == str(project)
        )
    (source,) = state["sources"]
    return {
        "mb": mb,
        "before_mb": before,
        "most_mb": most,
        "seconds": time.perf_counter() - began,
        "kinds": source["kinds"],
        "state": state["state"],
    }


def rss(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1000
    return 0.0


def report(result: dict[str, Any]) -> str:
    worker, hooks = result["worker"], result["hooks"]
    lines = [
        f"worker: {worker['events_a_second']:.0f} durable events a second (goal {GOAL}), {worker['events_a_second'] / result['fsyncs']:.1f} times one `fsync` after another ({result['fsyncs']:.0f} a second)",
        f"        a request of {IN_A_POST}: p50 {worker['p50_ms']:.1f} ms, p99 {worker['p99_ms']:.1f} ms over {LINES} lines",
        f"hooks:  {hooks['hook_a_second']:.0f} a second one after another, {hooks['ratio']:.2f} times a bare interpreter ({hooks['bare_a_second']:.0f} a second)",
        "memory: " + ", ".join(f"{when}: {mb:.0f} MB" for when, mb in worker["rss_mb"]),
        f"extracted {worker['extracted_after_s']:.1f} s after the last event: {worker['memories']} memories; database {worker['database_mb']:.0f} MB",
        f"a transcript of {result['transcript']['mb']} MB: imported in {result['transcript']['seconds']:.1f} s, {result['transcript']['most_mb']:.0f} MB at most ({result['transcript']['before_mb']:.0f} before): {result['transcript']['kinds']}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
