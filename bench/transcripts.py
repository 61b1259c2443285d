"""A long transcript -> how fast it is read into actions against `json.loads` of each line, and what memory that takes.

`make bench ARGS=transcripts`. Nothing is asserted: goals stand beside the numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from store import SEED, say

from foreword.importers.transcripts import actions, peek

MB = 1e6
MEMORY_GOAL = 60.0  # MB that reading may add, however long the file is
RUNS = 5
WORDS = (
    "the",
    "booking",
    '"test"',
    "fails",
    "when",
    "a",
    "slot",
    "ends",
    "at",
    "midnight:\n",
    "dates",
    "compared",
    "\t",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=100)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--json", metavar="FILE", help="write every number there too")
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="fw-") as folder:
        for host, write in (("claude-code", claude_transcript), ("codex", _codex)):
            path = Path(folder) / f"{host}.jsonl"
            for line, text in (("", "ordinary lines"), ("long", "with lines of 20 MB")):
                size = write(path, mb=options.mb, long=bool(line))
                results.append(_measure(path, host=host, size=size, runs=options.runs, about=text))
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _measure(path: Path, *, host: str, size: float, runs: int, about: str) -> dict[str, Any]:
    ours, plain, look_times = [], [], []
    for _ in range(runs):  # by turns, and in CPU time: a busy machine slows both alike
        started = time.process_time()
        count = sum(1 for _ in actions(str(path), agent=host, root="/home/user/rooms"))
        ours.append(time.process_time() - started)
        started = time.process_time()
        with open(path, "rb") as file:
            for line in file:
                json.loads(line)
        plain.append(time.process_time() - started)
        started = time.process_time()
        peek(str(path), agent=host)
        look_times.append(time.process_time() - started)
    done = subprocess.run(
        [sys.executable, __file__, "--peak", str(path), host], capture_output=True, text=True, check=True
    )
    base, growth = map(float, done.stdout.split())
    say(
        f"{host}, {size:.0f} MB, {about}: {count:,} actions; {size / min(ours):.0f} MB/s, "
        f"json.loads {size / min(plain):.0f} MB/s ({min(ours) / min(plain):.2f} times); "
        f"a look {min(look_times) * 1000:.1f} ms; memory +{growth:.1f} MB over {base:.0f} (goal {MEMORY_GOAL:.0f})"
    )
    speed, times = size / min(ours), min(ours) / min(plain)
    return {"host": host, "about": about, "mb_s": speed, "times": times, "growth_mb": growth}


def _peak(path: str, host: str) -> None:
    base = _most_memory()
    for _ in actions(path, agent=host, root="/home/user/rooms"):
        pass
    print(base, _most_memory() - base)


def _most_memory() -> float:
    """MB that this process has had at most; Linux counts its parent's into what `resource` tells."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 / MB for line in file if line.startswith("VmHWM"))
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MB


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words))


def claude_transcript(path: Path, *, mb: int, long: bool, cwd: str = "/home/user/rooms") -> float:
    """Prompts, answers, commands, edits and attachments, in the sizes that sessions have."""
    rng = random.Random(SEED)
    common = {
        "isSidechain": False,
        "cwd": cwd,
        "sessionId": "s",
        "version": "2.1.325",
        "gitBranch": "main",
    }
    number = 0
    with open(path, "w") as file:

        def line(kind: str, **more: object) -> None:
            nonlocal number
            number += 1
            head = {
                "uuid": f"{rng.getrandbits(128):032x}",
                "timestamp": f"2026-11-15T17:{number // 60 % 60:02}:{number % 60:02}Z",
            }
            file.write(json.dumps({"type": kind, **common, **head, **more}) + "\n")

        while file.tell() < mb * MB:
            line("user", message={"role": "user", "content": _text(rng, 30)}, promptId=f"p{number}")
            line("attachment", attachment={"type": "environment", "content": _text(rng, 200)})
            for _ in range(12):
                id = f"toolu_{number}"
                edit = rng.random() < 0.3
                tool_input = {"command": _text(rng, 8)}
                if edit:
                    tool_input = {
                        "file_path": "/home/user/rooms/a.py",
                        "old_string": _text(rng, 40),
                        "new_string": _text(rng, 60),
                    }
                block = {"type": "tool_use", "id": id, "name": "Edit" if edit else "Bash", "input": tool_input}
                line("assistant", message={"role": "assistant", "content": [block], "usage": {"input_tokens": 1}})
                output = _text(rng, rng.choice([5, 50, 400, 3000]))
                result = {"originalFile": _text(rng, 2000), "structuredPatch": []} if edit else {"stdout": output}
                tool_result = {"type": "tool_result", "tool_use_id": id, "content": output, "is_error": False}
                line("user", message={"role": "user", "content": [tool_result]}, toolUseResult=result)
            line("assistant", message={"role": "assistant", "content": [{"type": "text", "text": _text(rng, 200)}]})
            if long:
                image = {"type": "image", "source": {"type": "base64", "data": "iVBORw0KGgo" * 1_800_000}}
                line("user", message={"role": "user", "content": [image, {"type": "text", "text": "see"}]})
    return os.path.getsize(path) / MB


def _codex(path: Path, *, mb: int, long: bool) -> float:
    rng = random.Random(SEED)
    number = 0
    with open(path, "w") as file:

        def line(kind: str, **payload: object) -> None:
            nonlocal number
            number += 1
            stamp = f"2026-11-15T17:{number // 60 % 60:02}:{number % 60:02}Z"
            file.write(json.dumps({"timestamp": stamp, "ordinal": number, "type": kind, "payload": payload}) + "\n")

        line("session_meta", id="s", cwd="/home/user/rooms", instructions=_text(rng, 4000))
        while file.tell() < mb * MB:
            prompt, answer = _text(rng, 30), _text(rng, 200)
            line("response_item", type="message", role="user", content=[{"type": "input_text", "text": prompt}])
            line("event_msg", type="user_message", message=prompt)
            for _ in range(12):
                id = f"call_{number}"
                line("response_item", type="reasoning", encrypted_content="g" * 2000)
                arguments = json.dumps({"cmd": _text(rng, 8)})
                line("response_item", type="function_call", name="exec_command", arguments=arguments, call_id=id)
                output = f"Process exited with code 0\nOutput:\n{_text(rng, rng.choice([5, 50, 400, 3000]))}"
                line("response_item", type="function_call_output", call_id=id, output=output)
                line("event_msg", type="token_count", info={"total_token_usage": {"input_tokens": number}})
            line("response_item", type="message", role="assistant", content=[{"type": "output_text", "text": answer}])
            if long:
                line("response_item", type="function_call_output", call_id="x", output=_text(rng, 3_700_000))
    return os.path.getsize(path) / MB


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        _peak(*sys.argv[2:])
    else:
        main()
