"""`demo`: show what an agent gets at a session start, with a prompt and before a command, and when it gets nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foreword.cli import output
from foreword.cli.connection import connect
from foreword.cli.output import NEXT_STEPS
from foreword.errors import ForewordError
from foreword.hook.build import command
from foreword.models import Memory, Project
from foreword.paths import Home, socket_problem
from foreword.worker.client import Client
from foreword.worker.lifecycle import stop

RECORD_SECONDS = 1.0  # an answer is recorded milliseconds after it was given
HOOK_SECONDS = 10.0  # agents allow five
PROMPT = "rooms/db.py locks while a second writer books; do we need a database server?"
COMMAND = "make unit FILE=tests/test_slots.py"  # which failed in the story's sessions
REPLY = "yes, do that"
STEPS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("What an agent gets when a session starts", "SessionStart", {"source": "startup"}),
    (f"With the prompt: {PROMPT}", "UserPromptSubmit", {"prompt": PROMPT}),
    (
        f"Before the command: {COMMAND}",
        "PreToolUse",
        {"tool_name": "Bash", "tool_use_id": "demo", "tool_input": {"command": COMMAND}},
    ),
    (f"With the prompt: {REPLY}", "UserPromptSubmit", {"prompt": REPLY}),
)
STORY = Path(__file__).with_name("demo_story.json")  # a few days of a service that rents out rehearsal rooms


def demo() -> None:
    """See what an agent gets, on a made-up project.

    Nothing is installed and nothing is left behind: it fills a scratch memory, runs the hook the way an agent does,
    and prints its answers and what they cost.
    """
    with _scratch_home() as home:
        client, root = connect(home), home.root / "rooms"
        memories = load_story(Project("dir:rooms", "rooms", str(root)), now=time.time())
        for file in ("pyproject.toml", *(file for each in memories for file in each.files)):  # that the story names
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).touch()
        rows = [{**vars(each), "scope": "project", "project": "", "project_path": str(root)} for each in memories]
        client.post("/api/memories", {"memories": [{**row, "detail": dict(row["detail"])} for row in rows]})
        output.write(f"Remembered {len(memories)} memories of a made-up project that rents out rehearsal rooms.")
        for heading, event, payload in STEPS:
            output.write(f"\n== {heading}", style=output.CYAN)
            _run_hook(home, client, event, {"cwd": str(root), **payload})
    output.write("\n== What to do next", style=output.CYAN)
    output.write(f"foreword init                     fill your own memory from this repository\n{NEXT_STEPS}")


def load_story(project: Project, *, now: float) -> list[Memory]:
    """Return the made-up story as memories of *project*, newest first."""
    memories = []
    for row in json.loads(STORY.read_text(encoding="utf-8")):
        created = now - row.pop("hours_ago") * 3600
        if row["kind"] == "failure":
            row["detail"]["last"] = created
        fields: dict[str, Any] = {name: tuple(each) if isinstance(each, list) else each for name, each in row.items()}
        fields |= {"uid": f"story:{project.key}:{fields.pop('name')}", "scope": project.scope, "project": project.key}
        source = "user" if row["trust"] == "user" else "story"
        memories.append(Memory(**fields, source=source, created=created, confirmed=created))
    return memories


@contextmanager
def _scratch_home() -> Iterator[Home]:
    """Yield a home of its own with default settings; stop its worker and delete it."""
    for name in [name for name in os.environ if name.startswith("FOREWORD_")]:
        del os.environ[name]
    # A hook that finds no worker starts one; here it would outlive the folder.
    os.environ["FOREWORD_WORKER_AUTOSTART"] = "0"
    os.environ["FOREWORD_DEADLINE_PROMPT_MS"] = "4500"  # on a busy machine a late answer is better than none
    home = Home(Path(tempfile.mkdtemp(prefix="foreword-")))
    try:
        if problem := socket_problem(home):
            raise ForewordError(problem, hint="set TMPDIR to a short path in a folder of your own")
        yield home
    finally:
        try:
            stop(home)
        finally:
            shutil.rmtree(home.root, ignore_errors=True)


def _run_hook(home: Home, client: Client, event: str, payload: dict[str, Any]) -> None:
    """Run the hook as an agent does, and print its answer with the time and the tokens that it took."""
    payload = {"session_id": "demo", "hook_event_name": event, **payload}
    started = time.perf_counter()
    ended = subprocess.run(  # noqa: S603 - our own hook
        command(home, host="claude-code", event=event),
        input=json.dumps(payload).encode(),
        stdout=subprocess.PIPE,
        timeout=HOOK_SECONDS,
        check=False,
    )
    wall_ms = (time.perf_counter() - started) * 1000
    text = json.loads(ended.stdout)["hookSpecificOutput"]["additionalContext"] if ended.stdout else ""
    query = {"session_id": "demo", "limit": 1, "empty": None if text else 1}
    record: dict[str, Any] = {}
    while not record and time.perf_counter() < started + wall_ms / 1000 + RECORD_SECONDS:
        record = next(iter(client.get("/api/injections", **query)["injections"]), {})
        time.sleep(0 if record else 0.02)
    output.write_raw(text or f"(nothing: {record.get('says') or 'nothing remembered here is relevant'})")
    cost = f"{record['tokens']} of {record['budget']} tokens" if text and record else "0 tokens"
    output.write(f"{cost}, {wall_ms:.0f} ms", style=output.DIM)
