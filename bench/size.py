"""A fresh environment with the project alone -> what it weighs on the disk, and in memory while the worker idles.

`make bench ARGS=size`. Needs an index that pip can reach. Nothing is asserted: goals stand beside the numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from hook import OUTPUT, SMALL, _fill, _project
from store import SEED, say

from foreword.hook.build import interpreter
from foreword.paths import Home
from foreword.projects import resolve
from foreword.worker import lifecycle
from foreword.worker.client import Client

ROOT = Path(__file__).resolve().parent.parent
DISK_GOAL, MEMORY_GOAL = 60.0, 80.0  # MB
NOT_OURS = ("pip", "setuptools", "wheel", "_distutils_hack", "pkg_resources", "distutils-precedence.pth")
EVENTS, CONTEXTS = 1_000, 200
MB = 1e6


def main() -> None:
    options = arguments()
    scratch = Path(tempfile.mkdtemp(prefix="fw-"))
    try:
        python = installed(scratch / "venv")
        result = {"disk": disk(python), "memory": memory(scratch, python)}
    finally:
        shutil.rmtree(scratch)
    print(report(result))
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write every number there too")
    return parser.parse_args()


# ---- on the disk


def installed(venv: Path) -> str:
    """The python of a new environment that holds this checkout, without extras."""
    say("installing into a fresh environment ...")
    subprocess.run([interpreter(), "-m", "venv", str(venv)], check=True)
    python = str(venv / "bin" / "python")
    constraints = ROOT / "constraints.txt"
    pinned = ["-c", str(constraints)] if constraints.exists() else []
    subprocess.run([python, "-m", "pip", "install", "--quiet", *pinned, str(ROOT)], check=True, stdout=sys.stderr)
    return python


def disk(python: str) -> dict[str, Any]:
    """MB by package, and how much of all that is .pyc, which pip compiles and a user's first run would."""
    ask = "import sysconfig; print(sysconfig.get_path('platlib'))"
    site = Path(subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip())
    packages: Counter[str] = Counter()
    compiled = 0
    for path in site.rglob("*"):
        name = path.relative_to(site).parts[0]
        if not path.is_file() or name.split("-")[0] in NOT_OURS or name in NOT_OURS:
            continue
        size = path.stat().st_size
        packages[name.partition("-")[0]] += size
        compiled += size if path.suffix == ".pyc" else 0
    total = sum(packages.values())
    return {
        "total_mb": round(total / MB, 2),
        "pyc_mb": round(compiled / MB, 2),
        "packages_mb": {name: round(size / MB, 2) for name, size in packages.most_common()},
    }


# ---- in memory


def memory(scratch: Path, python: str) -> dict[str, Any]:
    """The worker of the fresh environment: 3 s after its start, and after a day's work, at 5,000 memories."""
    home = Home(scratch / "home")
    home.prepare()
    folder = _project(scratch / "project")
    say(f"{SMALL:,} memories ...")
    prompts = _fill(home.database, SMALL, key=resolve(str(folder)).key, target=0)
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(scratch), "LANG": "C.UTF-8", "FOREWORD_HOME": str(home.root)}
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    started = time.perf_counter()
    pid = os.posix_spawn(python, [python, "-m", "foreword.worker"], environ, file_actions=null)
    try:
        ready = _ready(home, started)
        time.sleep(3)
        idle = resident(pid)
        say(f"{EVENTS:,} events and {CONTEXTS} contexts ...")
        contexts = _work(home, folder, prompts)
        busy = resident(pid)
        time.sleep(3)
        after = resident(pid)
    finally:
        lifecycle.stop(home)
        os.waitpid(pid, 0)
    return {"ready_ms": ready, "idle": idle, "busy": busy, "after": after, "contexts_given": contexts}


def _ready(home: Home, started: float) -> float:
    while True:
        try:
            Client(home).get("/api/health")
        except Exception:
            if time.perf_counter() - started > 20:
                raise
            time.sleep(0.01)
        else:
            return round((time.perf_counter() - started) * 1000)


def _work(home: Home, folder: Path, prompts: list[str]) -> int:
    """A day of hooks, each on a connection of its own; how many contexts were given."""
    chance = random.Random(SEED)
    turns = ["PostToolUse"] * EVENTS + ["UserPromptSubmit"] * CONTEXTS
    chance.shuffle(turns)
    answers = 0
    for number, event in enumerate(turns):
        payload: dict[str, Any] = {
            "session_id": f"session-{number // 40}",
            "cwd": str(folder),
            "hook_event_name": event,
        }
        if event == "PostToolUse":
            payload |= {"tool_name": "Bash", "tool_use_id": f"toolu_{number}", "tool_response": {"stdout": OUTPUT}}
        else:
            payload |= {"prompt": chance.choice(prompts), "prompt_id": f"prompt-{number}"}
        answers += b"additionalContext" in _posted(home, event, json.dumps(payload).encode())
    return answers


def _posted(home: Home, event: str, body: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(30)
        line.connect(str(home.socket))
        about = f"host=claude-code&event={event}&at={time.time():.6f}&head=-1&total={len(body)}"
        line.sendall(
            f"POST /api/hook?{about} HTTP/1.1\r\nHost: foreword\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n".encode()
            + body
        )
        got = b""
        while part := line.recv(1 << 18):
            got += part
    return got


def resident(pid: int) -> dict[str, float]:
    """Resident and proportional MB, as Linux tells; elsewhere nothing."""
    found: dict[str, float] = {}
    wanted = {f"/proc/{pid}/status": ("VmRSS",), f"/proc/{pid}/smaps_rollup": ("Pss", "Private_Dirty")}
    for path, names in wanted.items():
        if not Path(path).exists():
            continue
        for line in Path(path).read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in names:
                found[name] = round(int(rest.split()[0]) * 1024 / MB, 1)
    return found


# ---- the report


def report(result: dict[str, Any]) -> str:
    on_disk, worker = result["disk"], result["memory"]
    lines = [
        f"installed without extras: {on_disk['total_mb']:.1f} MB, of that .pyc {on_disk['pyc_mb']:.1f} MB "
        f"(goal ≤ {DISK_GOAL:.0f} MB in all) {_verdict(on_disk['total_mb'], DISK_GOAL)}",
    ]
    for name, size in list(on_disk["packages_mb"].items())[:12]:
        lines.append(f"  {size:>6.2f} MB  {name}")
    lines += [
        "",
        f"worker, ready {worker['ready_ms']:.0f} ms after its start; MB:",
        f"  {'':<44} {'VmRSS':>7} {'PSS':>7} {'private':>8}   goal ≤ {MEMORY_GOAL:.0f}",
    ]
    labels = {
        "idle": f"3 s after start, {SMALL:,} memories",
        "busy": f"after {EVENTS:,} events and {CONTEXTS} contexts",
        "after": "3 s later",
    }
    for name, text in labels.items():
        found = worker[name]
        lines.append(
            f"  {text:<44} {found.get('VmRSS', 0):>7.1f} {found.get('Pss', 0):>7.1f} "
            f"{found.get('Private_Dirty', 0):>8.1f}   {_verdict(found.get('VmRSS', 0), MEMORY_GOAL)}"
        )
    lines.append(f"  {worker['contexts_given']} of {CONTEXTS} prompts were given a context")
    return "\n".join(lines)


def _verdict(value: float, goal: float) -> str:
    return "met" if value <= goal else "missed"


if __name__ == "__main__":
    main()
