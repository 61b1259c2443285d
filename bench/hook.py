"""Time the hook as multiples of a bare interpreter in the same run.

`make bench-hook`, or `python bench/hook.py --runs 30`. No time is asserted: goals stand beside the numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from store import BIGGEST, SEED, Words, memories, mixed, quantile, say, shares

from foreword.config import load
from foreword.hook import build
from foreword.hook.spool import hook_calls
from foreword.install.status import install_target
from foreword.models import Memory
from foreword.paths import Home
from foreword.projects import resolve
from foreword.store import Store
from foreword.worker import lifecycle
from foreword.worker.client import Client

SMALL, LARGE = 5_000, 100_000
FAILURES = 300  # known failures of a project, as many as the worker keeps at hand
WARM = 300  # events before the first that counts: a new WAL grows at every commit, one that has gone round does not
UP, DURABLE, AWAY = 1.25, 1.35, 12.0  # goals, as multiples of the bare interpreter
AWAY_MS = 150.0
ENVIRON = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LANG": "C.UTF-8",
}  # what a host hands down, and nothing else
PY = build.interpreter()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
ECHO = f"""
import socket, sys
line = socket.socket(socket.AF_UNIX); line.bind(sys.argv[1]); line.listen(64)
while True:
    peer, _ = line.accept(); peer.recv(1 << 20); peer.sendall({ANSWER!r}); peer.close()
"""


def main() -> None:
    options = arguments()
    scratch = Path(tempfile.mkdtemp(prefix="fw-"))
    load_before = os.getloadavg()
    try:
        with ExitStack() as running:
            bench = Bench(scratch, running, options)
            bench.run()
            result = bench.result()
    finally:
        shutil.rmtree(scratch)
    result["load"] = [round(load_before[0], 1), round(os.getloadavg()[0], 1)]
    print(report(result))
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=60, help="of each variant")
    parser.add_argument("--project", type=int, default=BIGGEST + 1, help="which project, by size (1 is the biggest)")
    parser.add_argument("--large", type=int, default=LARGE, help="memories in the large store")
    parser.add_argument("--only", default="", help="variants by their letters, such as `ade`")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--json", metavar="FILE", help="write every number there too")
    return parser.parse_args()


class Bench:
    """The homes, the workers and the variants of one run."""

    def __init__(self, scratch: Path, running: ExitStack, options: argparse.Namespace) -> None:
        self.options = options
        self.scratch = scratch
        self.folder = _project(scratch / "project")
        self.key = resolve(str(self.folder)).key
        self.chance = random.Random(options.seed)
        self.number = 0
        self.times: dict[str, list[float]] = {}
        self.cpu: dict[str, list[float]] = {}
        self.answered: dict[str, int] = {}
        self.prompts: dict[str, list[str]] = {}
        self.runs: dict[str, Callable[[], tuple[list[str], bytes]]] = {"bare": self._bare}
        self.workers: dict[str, Home] = {}
        self.away: dict[str, Home] = {}
        wanted = options.only or "abcdef"
        if "a" in wanted:
            self._with_pipe(running)
        if "b" in wanted or "c" in wanted:
            small = self._with_worker(running, "small", SMALL)
            if "b" in wanted:
                self.runs["b durable event"] = lambda: (self._hook(small, "PostToolUse"), self._tool())
            if "c" in wanted:
                large = self._with_worker(running, "large", options.large)
                self.runs["c context, 5,000"] = lambda: (self._hook(small, "UserPromptSubmit"), self._prompt("small"))
                self.runs["c context, large"] = lambda: (self._hook(large, "UserPromptSubmit"), self._prompt("large"))
                self.runs["c session start, 5,000"] = lambda: (self._hook(small, "SessionStart"), self._start())
        if "d" in wanted:
            alone, both = self._away("alone", memories=SMALL), self._away("both", memories=SMALL)
            alone.config.write_text("capture = false\n", encoding="utf-8")
            self.runs["d away, context alone"] = lambda: (self._hook(alone, "UserPromptSubmit"), self._prompt("alone"))
            self.runs["d away, context and spool"] = lambda: (
                self._hook(both, "UserPromptSubmit"),
                self._prompt("both"),
            )
        if "e" in wanted:
            spool = self._away("spool", memories=0)
            self.runs["e away, redact and spool"] = lambda: (self._hook(spool, "PostToolUse"), self._tool(secret=True))
        if "f" in wanted:
            tools, gone = self._with_failures(running), self._away("gone", memories=0)
            line = install_target(tools, ENVIRON).command("claude-code", "PreToolUse")
            self.runs["f before a command"] = lambda: (self._hook(tools, "PreToolUse"), self._command())
            self.runs["f ... as agents run it"] = lambda: (["/bin/sh", "-c", line], self._command())
            self.runs["f ... with a hint"] = lambda: (self._hook(tools, "PreToolUse"), self._command(known=True))
            self.runs["f ... away"] = lambda: (self._hook(gone, "PreToolUse"), self._command())

    # -- what is run --------------------------------------------------------------------------------------------
    def run(self) -> None:
        names = [*self.runs, "fdatasync"]
        self._begin(names)
        for name in self.runs:
            self._once(name)  # files in the page cache, the worker's statements prepared
        self._begin(names)
        say(f"{self.options.runs} runs of {len(names)} variants in mixed order ...")
        for name, _ in mixed(names, self.options.runs, self.chance):
            self._sync() if name == "fdatasync" else self._once(name)

    def _begin(self, names: list[str]) -> None:
        self.times, self.cpu = {name: [] for name in names}, {name: [] for name in names}
        self.answered = dict.fromkeys(names, 0)

    def _once(self, name: str) -> None:
        command, stdin = self.runs[name]()
        stdin_file, got = self.scratch / "stdin", self.scratch / "stdout"
        stdin_file.write_bytes(stdin)
        streams = [
            (os.POSIX_SPAWN_OPEN, 0, str(stdin_file), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(got), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        ]
        started = time.perf_counter()
        pid = os.posix_spawn(command[0], command, ENVIRON, file_actions=streams)
        _, status, used = os.wait4(pid, 0)  # waitpid, and the processor time with it
        spent = time.perf_counter() - started
        if status:
            raise SystemExit(f"{name}: the hook ended with {status}")
        self.times[name].append(spent * 1000)
        self.cpu[name].append((used.ru_utime + used.ru_stime) * 1000)
        self.answered[name] += b"additionalContext" in got.read_bytes()

    def _sync(self) -> None:
        """One write and fdatasync of what a capture brings, in a folder of the same disk."""
        data = self._tool()
        fd = os.open(self.scratch / "synced", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        started = time.perf_counter()
        os.write(fd, data)
        os.fdatasync(fd)
        self.times["fdatasync"].append((time.perf_counter() - started) * 1000)
        os.close(fd)

    def _bare(self) -> tuple[list[str], bytes]:
        return [PY, "-I", "-S", "-c", "pass"], b""

    def _hook(self, home: Home, event: str) -> list[str]:
        return [PY, "-I", "-S", str(home.hook), "--host", "claude-code", event]

    # -- what is told -------------------------------------------------------------------------------------------
    def _tool(self, *, secret: bool = False) -> bytes:
        """A tool use of about 2 KB, as Claude Code tells it, with an id of its own."""
        token = f" gh{'p_'}{'a1B2' * 9}" if secret else ""
        return self._payload(
            "PostToolUse",
            tool_name="Bash",
            tool_input={"command": f"make test{token}", "description": "Run the tests"},
            tool_response={"stdout": OUTPUT, "stderr": "", "interrupted": False, "isImage": False},
            tool_use_id=f"toolu_{self.number:08}",
            duration_ms=2210,
        )

    def _command(self, *, known: bool = False) -> bytes:
        """A command that is about to run, one that failed before or one that nothing is known of."""
        command = (
            f"make missing-{self.chance.randrange(FAILURES)}" if known else "uv run pytest -q tests/unit | tail -5"
        )
        tool_input = {"command": command, "description": "Run it"}
        return self._payload(
            "PreToolUse", tool_name="Bash", tool_input=tool_input, tool_use_id=f"toolu_{self.number:08}"
        )

    def _prompt(self, home: str) -> bytes:
        """A prompt about something that is known, in a session of its own, so that nothing was shown before."""
        return self._payload("UserPromptSubmit", prompt=self.chance.choice(self.prompts[home]))

    def _start(self) -> bytes:
        return self._payload("SessionStart", source="startup")

    def _payload(self, event: str, **fields: Any) -> bytes:
        self.number += 1
        session = f"{self.number:08}-0000-4000-8000-000000000000"
        about = {
            "session_id": session,
            "transcript_path": f"/home/user/.claude/projects/-home-user-project/{session}.jsonl",
            "cwd": str(self.folder),
            "prompt_id": f"{self.number:08}-0000-4000-9000-000000000000",
            "permission_mode": "default",
            "hook_event_name": event,
        }
        return json.dumps({**about, **fields}).encode()

    # -- where --------------------------------------------------------------------------------------------------
    def _with_pipe(self, running: ExitStack) -> None:
        home = self._home("pipe")
        self._write_hook(home)
        self.away["pipe"] = home
        running.enter_context(answering(str(home.socket)))
        self.runs["a worker up"] = lambda: (self._hook(home, "PostToolUse"), self._tool())
        # What a host's shell is told: two shells more, so that the interpreter may move without a word to any host.
        line = install_target(home, ENVIRON).command("claude-code", "PostToolUse")
        self.runs["a worker up, as agents run it"] = lambda: (["/bin/sh", "-c", line], self._tool())

    def _with_failures(self, running: ExitStack) -> Home:
        """A home with a worker that knows as many failures of the asked project as a command is compared with."""
        home = self._home("tools")
        store, now = Store(home.database, backups=home.backups), time.time()
        about = {"project": self.key, "created": now, "confirmed": now}
        store.memories.put(
            [Memory("failure", f"make missing-{at} fails", detail=_failed(at, now), **about) for at in range(FAILURES)]
        )
        store.close()
        return self._started(running, "tools", home)

    def _with_worker(self, running: ExitStack, name: str, size: int) -> Home:
        return self._started(running, name, self._filled(name, size))

    def _started(self, running: ExitStack, name: str, home: Home) -> Home:
        self._write_hook(home)
        running.callback(lifecycle.stop, home)
        lifecycle.start(home)
        while not Client(home).get("/api/health")["ok"]:
            time.sleep(0.05)
        self._write_hook(home)  # the worker wrote one that would start it again
        for number in range(WARM):
            payload = {"session_id": "warm", "cwd": "/", "tool_use_id": f"warm-{number}", "text": "x" * 2000}
            Client(home).post("/api/events", {"host": "claude-code", "event": "PostToolUse", "payload": payload})
        self.workers[name] = home
        return home

    def _away(self, name: str, *, memories: int) -> Home:
        home = self._filled(name, memories) if memories else self._home(name)
        self._write_hook(home)
        self.away[name] = home
        return home

    def _home(self, name: str) -> Home:
        home = Home(self.scratch / name)
        home.prepare()
        return home

    def _filled(self, name: str, size: int) -> Home:
        """A home with *size* memories in 50 projects, and prompts about those of the project that asks."""
        home = self._home(name)
        made = self.scratch / f"{size}.db"
        prompts = self.scratch / f"{size}.json"
        if not made.exists():
            say(f"{size:,} memories ...")
            prompts.write_text(json.dumps(_fill(made, size, key=self.key, target=self.options.project - 1)))
        shutil.copyfile(made, home.database)
        self.prompts[name] = json.loads(prompts.read_text())
        return home

    def _write_hook(self, home: Home) -> None:
        build.refresh(home, replace(load(home, {}).settings, worker_autostart=False))

    # -- what came out ------------------------------------------------------------------------------------------
    def result(self) -> dict[str, Any]:
        bare = quantile(self.times["bare"], 0.5)
        builds = {name: self._build_ms(home) for name, home in self.workers.items()}
        goals = {
            "a worker up, as agents run it": UP,
            "b durable event": DURABLE,
            "c context, 5,000": DURABLE + builds.get("small", 0.0) / bare,
            "c context, large": DURABLE + builds.get("large", 0.0) / bare,
            "d away, context alone": AWAY,
            "d away, context and spool": AWAY,
            "e away, redact and spool": AWAY,
        }
        return {
            "runs": self.options.runs,
            "hook_bytes": max(home.hook.stat().st_size for home in (*self.workers.values(), *self.away.values())),
            "interpreter": PY,
            "memories": {"small": SMALL, "large": self.options.large},
            "asked": {"small": self._project_size(SMALL), "large": self._project_size(self.options.large)},
            "build_ms": builds,
            "away_though_worker_up": {name: _away(home) for name, home in self.workers.items()},
            "spooled_while_away": {name: _waiting(home) for name, home in self.away.items()},
            "variants": {
                name: {
                    "min": round(min(times), 3),
                    "p50": quantile(times, 0.5),
                    "p90": quantile(times, 0.9),
                    "max": round(max(times), 3),
                    "ratio": round(quantile(times, 0.5) / bare, 3),
                    "ratio_min": round(min(times) / min(self.times["bare"]), 3),
                    "cpu_p50": quantile(self.cpu[name] or [0.0], 0.5),
                    "goal": round(goals[name], 3) if name in goals else None,
                    "answered": self.answered[name],
                }
                for name, times in self.times.items()
            },
        }

    def _project_size(self, size: int) -> int:
        return shares(size)[int(self.options.project) - 1]

    def _build_ms(self, home: Home) -> float:
        """The worker's own median time for the context of a prompt, from its records."""
        found = Client(home).get("/api/injections", limit=1000)["injections"]
        times = [each["build_ms"] for each in found if each["trigger"] == "prompt"]
        return quantile(times, 0.5) if times else 0.0


def _project(folder: Path) -> Path:
    """A repository with a remote and a language, so that the resolver has its usual work."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text(
        '[core]\n\tbare = false\n[remote "origin"]\n\turl = git@example.org:bench/asked.git\n'
        "\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
    )
    (folder / "pyproject.toml").write_text("[project]\n")
    return folder


def _fill(path: Path, size: int, *, key: str, target: int) -> list[str]:
    """A closed store, written as the product writes it; and prompts that quote recent memories of the asked project."""
    words, chance = Words(SEED), random.Random(SEED)
    store = Store(path, backups=path.parent)
    prompts = []
    for project, count in enumerate(shares(size)):
        ours = list(memories(words, project, count, key=key if project == target else "", now=time.time()))
        for start in range(0, count, 500):
            store.memories.put(ours[start : start + 500])
        if project == target:
            for memory in sorted(ours, key=lambda memory: -memory.created)[:200]:
                quoted = [word for word in f"{memory.title} {memory.body}".split() if len(word) > 3]
                prompts.append(f"please have a look at {' '.join(chance.sample(quoted, 10))} and tell me what we did")
    store.close()
    return prompts


def _failed(number: int, now: float) -> dict[str, Any]:
    """The detail of a failure, as extraction writes it."""
    call = f"make missing-{number}"
    return {
        "command": call,
        "text": call,
        "error": f"make: *** No rule to make target 'missing-{number}'.  Stop.",
        "key": str(number),
        "cause": "usage",
        "seen_in": {"s1": 1, "s2": 1},
        "last": now - 86_400,
    }


@contextmanager
def answering(path: str) -> Iterator[None]:
    """A server in a process of its own that answers everything at once with nothing."""
    pid = os.posix_spawn(PY, [PY, "-I", "-S", "-c", ECHO, path], ENVIRON)
    try:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with socket.socket(socket.AF_UNIX) as line:
                if line.connect_ex(path) == 0:
                    line.sendall(b"x")
                    line.recv(100)
                    break
            time.sleep(0.02)
        yield
    finally:
        os.kill(pid, 15)
        os.waitpid(pid, 0)


def _away(home: Home) -> int:
    """How many contexts hooks built without the worker; those runs timed the offline path."""
    return int(Client(home).get("/api/stats", days=1)["injections"]["away"])


def _waiting(home: Home) -> int:
    current = home.spool / "current"
    waiting = hook_calls(current.read_bytes()) if current.exists() else ()
    return sum(1 for each in waiting if not isinstance(each, bytes) and not each.injection)


# The tail of a test run: 1.4 KB of the text that tools bring.
_TESTED = ("terms", "tokens", "layout", "projects", "payload", "redact", "capture", "spool", "search", "rank", "budget")
OUTPUT = "\n".join(
    f"tests/unit/test_{name}.py {'.' * 48} [{9 * at + 1:3}%]  {at * 71 % 97 + 112} ms, {at * 3 + 40} MB resident"
    for at, name in enumerate(_TESTED)
)


def report(result: dict[str, Any]) -> str:
    sizes = result["asked"]
    lines = [
        f"{result['interpreter']} -I -S hook.py, {result['runs']} runs each in mixed order;",
        f"ms, and multiples of the bare interpreter's p50 in this run. hook.py {result['hook_bytes']:,} bytes; "
        f"load average {result['load'][0]} -> {result['load'][1]}.",
        f"The asked project has {sizes['small']:,} of {SMALL:,} and {sizes['large']:,} of "
        f"{result['memories']['large']:,} memories.",
        "",
        f"{'variant':<30} {'min':>7} {'p50':>7} {'p90':>7} {'max':>7} {'ratio':>7}  {'goal':<8} {'':<7} "
        f"{'of mins':>7} {'cpu':>6} {'contexts':>8}",
    ]
    for name, found in result["variants"].items():
        goal = f"≤ {found['goal']:.2f}" if found["goal"] else ""
        verdict = "" if not goal else "met" if found["ratio"] <= found["goal"] else "missed"
        answered = f"{found['answered']}" if name[0] in "cdf" else ""
        lines.append(
            f"{name:<30} {found['min']:>7.2f} {found['p50']:>7.2f} {found['p90']:>7.2f} {found['max']:>7.2f} "
            f"{found['ratio']:>7.2f}  "
            f"{goal:<8} {verdict:<7} {found['ratio_min']:>7.2f} {found['cpu_p50']:>6.1f} {answered:>8}"
        )
    lines.append("")
    for name, spent in result["build_ms"].items():
        lines.append(f"the worker's own build time, {name}: p50 {spent:.2f} ms (part of the goal of c)")
    lines += [
        f"goals: a {UP} as agents run it; b {DURABLE}; c {DURABLE} + the worker's build time; d and e {AWAY:.0f}, and "
        f"{AWAY_MS:.0f} ms",
        "of mins: the fastest run beside the fastest bare one, steadier on a busy machine; cpu: the hook's own ms, p50",
    ]
    late = {name: count for name, count in result["away_though_worker_up"].items() if count}
    late |= {name: count for name, count in result["spooled_while_away"].items() if name == "pipe" and count}
    if late:
        lines.append(f"hooks that found their worker late and timed the fallback instead: {late}")
    lines.append(f"events in the spools of the away variants: {result['spooled_while_away']}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
