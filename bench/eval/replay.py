"""Replay recorded sessions through the worker's routes, in this process, and score every answer.

    python -m bench.eval.replay [PROJECT ...] [--compare RESULT.json] [--blocks N] [--worst]

The loop, the baselines, the judging and the tables are those of ../shared/tools (session_replay.py, score_notes.py).
Only its worker is replaced: requests go straight to the routes, without socket, process, preloaded clock or deadline.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stdout
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl, quote, urlsplit

from bench.eval.compare import replay_differences
from bench.eval.sessions import SESSIONS, projects
from foreword.paths import Home
from foreword.worker.app import App
from foreword.worker.http import Request
from foreword.worker.memories import export_rows
from foreword.worker.routes import TICK_EVERY, handler
from foreword.worker.sessions import settled_session

TOOLS = SESSIONS.parents[1] / "tools"
Result = dict[str, Any]  # of one project, as session_replay.py writes it; and `notes`, the report of score_notes.py


def main(argv: Sequence[str] | None = None) -> int:
    """Replay the chosen projects, print the tables, and return the exit status."""
    args = parse(argv)
    names = args.projects or projects(args.sessions)
    if not names or not TOOLS.is_dir():
        print(f"skipped: eval-sessions (no recorded sessions in {args.sessions}, or no tools in {TOOLS})")
        return 0
    # A process for each project: each has its own environment, and all cores are used.
    with ProcessPoolExecutor(min(len(names), os.cpu_count() or 1), mp_context=get_context("spawn")) as pool:
        results = list(
            pool.map(partial(replay_project, each_turn=args.each_turn), [args.sessions / name for name in names])
        )
    print("\n".join(result["notes"] for result in results))
    print(table_of(results))
    if args.blocks:
        print("\n\n".join(["", *random_blocks(results, count=args.blocks, seed=args.seed)]))
    if args.worst:
        print("\n\n".join(["", *silent_cases(results)]))
    for result in results if args.out else ():
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / f"{result['project']}.json").write_text(json.dumps(result, indent=1, default=str), "utf-8")
    for path in args.compare:
        other = json.loads(path.read_text("utf-8"))
        for ours in results:
            if ours["project"] == other["project"]:
                print("\n".join(replay_differences(other, ours)[: None if args.list else 1]))
    return 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(prog="python -m bench.eval.replay", description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("projects", nargs="*", metavar="PROJECT", help="Projects to replay (default: all).")
    add("--sessions", type=Path, default=SESSIONS, metavar="DIR", help="Folder of recorded projects.")
    add("--out", type=Path, metavar="DIR", help="Write each project's result to DIR/PROJECT.json.")
    add("--each-turn", action="store_true", help="Wait for extraction after each turn: the same in every run.")
    add("--compare", type=Path, action="append", default=[], metavar="FILE", help="A result of session_replay.py.")
    add("--list", action="store_true", help="With --compare: print every figure and line that differs.")
    add("--blocks", type=int, default=0, metavar="N", help="Print N random prompts with their block and what followed.")
    add("--seed", type=int, default=0, help="With --blocks: choose other prompts.")
    add("--worst", action="store_true", help="List prompts without a block whose files were knowable.")
    return parser.parse_args(argv)


def load_tool(name: str) -> ModuleType:
    """Import a module of ../shared/tools."""
    if str(TOOLS) not in sys.path:
        sys.path.append(str(TOOLS))
    return importlib.import_module(name)


# ---- replaying


class InProcessWorker:
    """What session_replay.py asks of its worker process, answered by the routes themselves."""

    def __init__(self, work: Path, project: Path, *, each_turn: bool) -> None:
        self._each_turn = each_turn
        self.home, self.user, self.project = work / "home", work / "user", project
        self.memories: list[dict[str, Any]] = []  # all that is stored at the end
        self._now = self._ticked = 0.0

    def set_now(self, at: float) -> None:
        """Let the worker's clock show *at*."""
        self._now = at

    def start(self) -> None:
        """Open the store; ids break ties, so they are the same in every run."""
        self.user.mkdir(parents=True)
        home = Home(self.home)
        home.prepare()
        self._app = App(home, now=lambda: self._now)
        self._app.store.memories.choose = random.Random(self.project.name).choice
        self._answer = handler(self._app)

    def ensure(self) -> None:
        """Do what the worker's main thread does every second."""
        if time.monotonic() - self._ticked > TICK_EVERY:
            self._ticked = time.monotonic()
            self._app.tick()

    def stop(self) -> None:
        """Read what is stored, and close the store."""
        after, more = 0, True
        while more:
            page = export_rows(self._app, part="memory", all=True, after=after)
            self.memories += page["rows"]
            after = page["next"]
            more = bool(after)
        self._app.close()

    def ask(self, method: str, path: str, body: bytes = b"", _seconds: float = 0.0) -> tuple[int, bytes]:
        """Return status and body of the answer to one request."""
        parts = urlsplit(path)
        response = self._answer(Request(method, parts.path, dict(parse_qsl(parts.query)), body))
        return response.status, response.body if isinstance(response.body, bytes) else b""

    def get(self, path: str) -> Any:
        """Return the JSON of one answer."""
        code, body = self.ask("GET", path)
        return json.loads(body) if code == 200 else {}

    def hook(self, event: str, at: float, payload: bytes) -> tuple[bytes, float]:
        """Return the answer to one hook call, and the milliseconds it took."""
        began = time.perf_counter()
        path = f"/api/hook?host=claude-code&event={event}&at={at:.6f}&head=-1&total={len(payload)}"
        code, body = self.ask("POST", path, payload)
        if code != 200:
            print(f"hook {event}: {code} {body[:200]!r}", file=sys.stderr)
        took = (time.perf_counter() - began) * 1000
        if event == "Stop" and self._each_turn:
            self.settle(ended=False)
        return body if code == 200 else b"", took

    def settle(self, seconds: float = 20.0, *, ended: bool = True) -> bool:
        """Wait until every session that ended is extracted; else all of them."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = self.get(f"/api/sessions?project_path={quote(str(self.project))}&limit=12")["sessions"]
            waiting = [row["id"] for row in found if row["ended"] >= ended and row["newest"] > row["extracted"]]
            if not waiting:
                return True
            settled_session(self._app, waiting[0])
        return False


def replay_project(folder: Path, *, each_turn: bool = False) -> Result:
    """Replay one project's recorded sessions; return what session_replay.py returns, and the scores of the notes.

    With *each_turn*, wait for extraction after each turn, as an agent's pace gives it time to: then two runs agree.
    """
    tool, workers = load_tool("session_replay"), list[InProcessWorker]()

    def make(_binary: str, work: Path, project: Path) -> InProcessWorker:
        workers.append(InProcessWorker(work, project, each_turn=each_turn))
        return workers[-1]

    with tempfile.TemporaryDirectory(prefix="foreword-replay-") as name, scratch_environment(Path(name)):
        options = {"foreword": "", "sessions_dir": str(folder), "work": name, "name": "", "sessions": 0, "keep": True}
        with patch.object(tool, "Worker", make):
            result: Result = tool.replay(argparse.Namespace(**options, git_dir="", import_git=False))
        result["notes"] = score_notes(folder / "gold.json", result, workers[0].memories, work=Path(name))
    return result


@contextmanager
def scratch_environment(work: Path) -> Iterator[None]:
    """Set the variables of session_replay.py's worker, and long deadlines, so that a busy machine changes nothing."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("FOREWORD_", "GIT_"))}
    ours = {"HOME": str(work / "user"), "FOREWORD_HOME": str(work / "home")}
    patience = {"FOREWORD_DEADLINE_PROMPT_MS": "4500", "FOREWORD_DEADLINE_START_MS": "4500"}
    git = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    with patch.dict(os.environ, kept | ours | patience | git, clear=True):
        yield


def score_notes(gold: Path, result: Result, memories: Sequence[Mapping[str, Any]], *, work: Path) -> str:
    """Return the report of score_notes.py."""
    export, replayed, printed = work / "export.jsonl", work / "result.json", io.StringIO()
    export.write_text("".join(json.dumps({"memory": memory}, default=str) + "\n" for memory in memories), "utf-8")
    replayed.write_text(json.dumps(result, default=str), "utf-8")
    words = ["score_notes.py", str(export), str(gold), "--replay", str(replayed)]
    with patch.object(sys, "argv", words), redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the tool does not close its files
        load_tool("score_notes").main()
    return printed.getvalue().rstrip()


# ---- printing


def table_of(results: Sequence[Result]) -> str:
    """Return the tables of session_replay.py; where there are several projects, with their sum."""
    tool, added = load_tool("session_replay"), []
    if len(results) > 1:
        records, hints = ([row for result in results for row in result[name]] for name in ("records", "hints"))
        added = [{"project": "all", "metrics": tool.metrics(records) | {"hints": tool.hint_metrics(hints)}}]
    return str(tool.table([*results, *added]))


def random_blocks(results: Sequence[Result], *, count: int, seed: int = 0) -> list[str]:
    """Describe randomly chosen prompts that got a block."""
    spoken = [(project, record) for project, record in prompts_of(results) if record["block"]]
    chosen = random.Random(seed).sample(spoken, min(count, len(spoken)))
    return [describe(project, record) for project, record in chosen]


def silent_cases(results: Sequence[Result]) -> list[str]:
    """Describe the prompts without a block after which a file was edited that earlier sessions had touched."""
    silent = (
        (project, record) for project, record in prompts_of(results) if record["knowable"] and not record["block"]
    )
    return [describe(project, record) for project, record in silent]


def prompts_of(results: Sequence[Result]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every prompt's record, with its project."""
    for result in results:
        yield from ((result["project"], row) for row in result["records"] if row["moment"] == "UserPromptSubmit")


def describe(project: str, record: Mapping[str, Any]) -> str:
    """Return a prompt, its block and what the agent did next, as text."""
    truth = record["truth"]
    lines = {
        "knowable": ", ".join(record["knowable"]),
        "edited": ", ".join(truth["edited"][:6]),
        "read": ", ".join(truth["read"][:6]),
        "ran": " | ".join(command[:60] for command in truth["commands"][:4]),
        "failed": " | ".join(failure["error"][:80] for failure in truth["failures"][:3]),
    }
    top = f"[{project} {record['number']:03}] {' '.join(record['prompt'].split())[:300]}"
    return "\n".join(
        [top, record["block"] or "(no block)", *(f"  {name}: {text}" for name, text in lines.items() if text)]
    )


if __name__ == "__main__":
    sys.exit(main())
