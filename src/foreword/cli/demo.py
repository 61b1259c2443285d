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
from typing import TYPE_CHECKING, Any

from foreword.cli import output
from foreword.cli.connection import connect
from foreword.errors import ForewordError
from foreword.models import Memory, Project

if TYPE_CHECKING:
    from foreword.paths import Home
    from foreword.worker.client import Client

RECORD_SECONDS = 1.0  # an answer is recorded milliseconds after it was given
HOOK_SECONDS = 10.0  # agents allow five
SESSION = "demo"
PROMPT = "rooms/db.py locks while a second writer books; do we need a database server?"
COMMAND = "make unit FILE=tests/test_slots.py"  # which failed in the story's sessions
REPLY = "yes, do that"
STORY = Path(__file__).with_name("demo_story.json")  # a few days of a service that rents out rehearsal rooms
NEXT_STEPS = """\
foreword init                                    fill your own memory from this repository
foreword install                                 connect your agents: hooks and MCP server
foreword context "a question"                    see what an agent would get with it
foreword doctor                                  check that everything works"""


def demo() -> None:
    """See what an agent gets, on a made-up project.

    Nothing is installed and nothing is left behind: it fills a scratch memory, runs the hook the way an agent does,
    and prints its answers and what they cost.

    \b
    Example:
      foreword demo
    """
    with _scratch_home() as home:
        project = _made_up_project(home)
        client = connect(home)
        memories = load_story(project, now=time.time())
        rows = [{**vars(each), "detail": dict(each.detail), "scope": "project"} for each in memories]
        client.post("/api/memories", {"memories": [{**row, "project_path": project.root} for row in rows]})
        output.write(f"Remembered {len(memories)} memories of a made-up project that rents out rehearsal rooms.")

        def show(heading: str, event: str, **payload: Any) -> None:
            output.write("")
            output.styled(f"== {heading}", "bold cyan")
            text, hook_ms = _run_hook(home, event, project, **payload)
            _print_answer(client, text, f"{hook_ms:.0f} ms")

        show("What an agent gets when a session starts", "SessionStart", source="startup")
        show(f"With the prompt: {PROMPT}", "UserPromptSubmit", prompt=PROMPT)
        tool = {"tool_name": "Bash", "tool_use_id": "demo", "tool_input": {"command": COMMAND}}
        show(f"Before the command: {COMMAND}", "PreToolUse", **tool)
        show(f"With the prompt: {REPLY}", "UserPromptSubmit", prompt=REPLY)
    output.write("")
    output.styled("== What to do next", "bold cyan")
    output.write(NEXT_STEPS)


def load_story(project: Project, *, now: float) -> list[Memory]:
    """Return the made-up story as memories of *project*, newest first."""
    memories = []
    for row in json.loads(STORY.read_text(encoding="utf-8")):
        uid, at = f"story:{project.key}:{row.pop('name')}", now - row.pop("hours_ago") * 3600
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in row.items()
        }
        source = "user" if row["trust"] == "user" else "story"
        if row["kind"] == "failure":
            fields["detail"] = {**row["detail"], "last": at}
        memories.append(
            Memory(**fields, uid=uid, scope=project.scope, project=project.key, source=source, created=at, confirmed=at)
        )
    return memories


def _made_up_project(home: Home) -> Project:
    """Create the folder of the made-up project, with the files that its story names."""
    from foreword.projects import resolve

    root = home.root / "rooms"
    for row in json.loads(STORY.read_text(encoding="utf-8")):
        for file in row.get("files", ()):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).touch()
    (root / "pyproject.toml").touch()
    return resolve(str(root))


@contextmanager
def _scratch_home() -> Iterator[Home]:
    """Yield a home of its own with default settings; stop its worker and delete it."""
    from foreword.paths import Home, socket_problem
    from foreword.worker.lifecycle import stop

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


def _run_hook(home: Home, event: str, project: Project, **more: Any) -> tuple[str, float]:
    """Run the hook as an agent does; return the context it gives and its wall time in milliseconds."""
    from foreword.hook.build import command

    payload = {"session_id": SESSION, "cwd": project.root, "hook_event_name": event, **more}
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
    return text, wall_ms


def _print_answer(client: Client, text: str, wall_time: str) -> None:
    """Print what the hook answered, with the tokens that the worker recorded for it."""
    record: dict[str, Any] = {}
    route = "injections" if text else "no-context"
    until = time.monotonic() + RECORD_SECONDS
    while not record and time.monotonic() < until:
        record = next(iter(client.get(f"/api/{route}", session_id=SESSION, limit=1)[route.replace("-", "_")]), {})
        time.sleep(0 if record else 0.02)
    if text:
        output.write_raw(text)
    else:
        output.write(f"(nothing: {record.get('says') or 'nothing remembered here is relevant'})")
    cost = f"{record['tokens']} of {record['budget']} tokens" if text and record else "0 tokens"
    output.styled(f"{cost}, {wall_time}", "dim")
