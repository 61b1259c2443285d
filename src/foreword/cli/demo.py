"""Show what an agent is given: at a session start, with a prompt, before a command; and why it mostly gets nothing."""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.errors import BadRequest, ForewordError
from foreword.models import Memory, Project

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.paths import Home
    from foreword.worker.client import Client

BATCH = 100  # memories in a request: a progress bar that moves, and one commit each
BARE_RUNS = 5  # of a bare interpreter; the median, because the first one warms the disk
TRIED = 30  # commits whose subject may make the prompt, newest first
RECORD_SECONDS = 1.0  # the next commit is milliseconds away
HOOK_SECONDS = 10.0  # hosts give it five
SESSION = "demo"
PROMPT = "rooms/show.py shows a slot of the second venue in the wrong time zone"
COMMAND = "make unit FILE=tests/test_slots.py"  # which failed in the story's sessions
REPLY = "yes, do that"
STORY = Path(__file__).with_name("demo_story.json")  # a few days of a service that rents out rehearsal rooms


@dataclass(frozen=True)
class Given:
    """What a hook printed, as an agent would see it, and the milliseconds from its start to its end."""

    text: str
    wall_ms: float


def demo(
    repo: Annotated[str, typer.Option(metavar="PATH", help="Show it on the git history of this repository.")] = "",
    keep: Annotated[bool, typer.Option("--keep", help="Leave the scratch memory there, to look around in it.")] = False,
) -> None:
    """See what an agent is given, on a made-up project.

    Nothing is installed, and nothing is left behind: it fills a scratch memory, starts a worker for it, runs the hook
    the way an agent does, prints what it answers and what that costs, and takes everything away again.

    \b
    Examples:
      foreword demo
      foreword demo --repo ~/src/project --keep
    """
    from foreword.projects import resolve

    folder = door.folder(repo) if repo else ""
    if folder and not os.path.isdir(folder):
        raise BadRequest(f"{folder} is not a folder", hint="give the path of a repository with --repo")
    with _scratch(keep=keep) as home:
        project = resolve(folder or _made_up(home))
        client = door.worker(home)
        memories = _filled(client, project)
        bare = _bare_ms()
        given = _hook(home, "SessionStart", project, source="startup")
        _show("What an agent is given when a session starts", given, bare, client)
        prompt = PROMPT if not folder else _prompt(client, memories, project)
        given = _hook(home, "UserPromptSubmit", project, prompt=prompt)
        _show(f"With the prompt: {prompt}", given, bare, client)
        if not folder:
            tool = {"tool_name": "Bash", "tool_use_id": "demo", "tool_input": {"command": COMMAND}}
            given = _hook(home, "PreToolUse", project, **tool)
            _show(f"Before the command: {COMMAND}", given, bare, client)
        given = _hook(home, "UserPromptSubmit", project, prompt=REPLY)
        _show(f"With the prompt: {REPLY}", given, bare, client)
    _next_steps(home, keep=keep)


def _made_up(home: Home) -> str:
    """Make the folder of the made-up project, with the files that its story names."""
    folder = home.root / "rooms"
    for row in json.loads(STORY.read_text(encoding="utf-8")):
        for file in row.get("files", ()):
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    (folder / "pyproject.toml").touch()
    return str(folder)


@contextmanager
def _scratch(*, keep: bool) -> Iterator[Home]:
    """A home of its own with the default settings; its worker is gone at the end, and so is the home."""
    import shutil

    for name in [name for name in os.environ if name.startswith("FOREWORD_")]:
        del os.environ[name]
    # A hook that finds no worker starts one; here it would outlive the folder it works in.
    os.environ["FOREWORD_WORKER_AUTOSTART"] = "0"
    os.environ["FOREWORD_DEADLINE_PROMPT_MS"] = "4500"  # on a busy machine it is shown late rather than not at all
    home = _new_home()
    try:
        yield home
    finally:
        try:
            _leave(home)
        finally:
            if not keep:
                shutil.rmtree(home.root, ignore_errors=True)


def _new_home() -> Home:
    import tempfile

    from foreword.paths import Home, socket_problem

    for base in (tempfile.gettempdir(), "/tmp"):  # noqa: S108 - mkdtemp makes it 0700; TMPDIR may be too long a path
        home = Home(Path(tempfile.mkdtemp(prefix="foreword-", dir=base)))
        problem = socket_problem(home)
        if not problem:
            return home
        home.root.rmdir()
    raise ForewordError(problem, hint="set TMPDIR to a short path in a folder of your own")


def _leave(home: Home) -> None:
    from foreword.worker.lifecycle import stop

    stop(home)


def _filled(client: Client, project: Project) -> list[Memory]:
    """Remember the history, newest first, with a bar in a terminal and a line everywhere."""
    from rich.progress import Progress

    began = time.perf_counter()
    memories, what = _history(project)
    beside = screen.console(stderr=True)
    with Progress(console=beside, transient=True, disable=not beside.is_terminal) as bar:
        task = bar.add_task("remembering", total=len(memories))
        for start in range(0, len(memories), BATCH):
            batch = memories[start : start + BATCH]
            client.post("/api/memories", {"memories": [_told(memory, project) for memory in batch]})
            bar.advance(task, len(batch))
    screen.say(f"Remembered {len(memories)} {what} in {time.perf_counter() - began:.1f} s.")
    return memories


def _history(project: Project) -> tuple[list[Memory], str]:
    from foreword.importers.git import commits

    if project.root.endswith("/rooms") and not os.path.exists(os.path.join(project.root, ".git")):
        return load_story(project, now=time.time()), "memories of a made-up project that rents out rehearsal rooms"
    return list(commits(project.root)), f"commits of {project.name}"


def load_story(project: Project, *, now: float) -> list[Memory]:
    """Return the made-up story as memories of *project*, newest first."""
    memories = []
    for row in json.loads(STORY.read_text(encoding="utf-8")):
        uid, at = f"story:{project.key}:{row.pop('name')}", now - row.pop("hours_ago") * 3600
        told: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
        source = "user" if row["trust"] == "user" else "story"
        if row["kind"] == "failure":
            told["detail"] = {**row["detail"], "last": at}
        memories.append(
            Memory(**told, uid=uid, scope=project.scope, project=project.key, source=source, created=at, confirmed=at)
        )
    return memories


def _told(memory: Memory, project: Project) -> dict[str, Any]:
    return {**vars(memory), "detail": dict(memory.detail), "scope": "project", "project_path": project.root}


def _hook(home: Home, event: str, project: Project, **more: Any) -> Given:
    """Run the hook as a host does: a payload on stdin, one JSON object or nothing on stdout."""
    from foreword.hook.build import command

    payload = {"session_id": SESSION, "cwd": project.root, "hook_event_name": event, **more}
    began = time.perf_counter()
    ended = subprocess.run(  # noqa: S603 - our own hook
        command(home, host="claude-code", event=event),
        input=json.dumps(payload).encode(),
        stdout=subprocess.PIPE,
        timeout=HOOK_SECONDS,
        check=False,
    )
    wall_ms = (time.perf_counter() - began) * 1000
    answer = json.loads(ended.stdout)["hookSpecificOutput"]["additionalContext"] if ended.stdout else ""
    return Given(text=answer, wall_ms=wall_ms)


def _bare_ms() -> float:
    """What an interpreter costs that does nothing, on this machine, now."""
    from foreword.hook.build import interpreter

    spent = []
    for _ in range(BARE_RUNS):
        began = time.perf_counter()
        subprocess.run([interpreter(), "-I", "-S", "-c", "pass"], check=True)  # noqa: S603 - our own interpreter
        spent.append((time.perf_counter() - began) * 1000)
    return sorted(spent)[BARE_RUNS // 2]


def _prompt(client: Client, memories: Sequence[Memory], project: Project) -> str:
    """A question in words of a recent subject; the first that the memory has an answer to."""
    from foreword.terms import terms

    asked = ""
    for memory in memories[:TRIED]:
        words = [word for word in terms(memory.title) if word.isalpha() and (len(word) > 2 or not word.isascii())][:3]
        if len(words) < 2:
            continue
        asked = f"What did we do about {', '.join(words[:-1])} and {words[-1]}?"
        if client.get("/api/context", project_path=project.root, prompt=asked)["context"]:
            return asked
    return asked or f"What happened last in {project.name}?"


def _show(heading: str, given: Given, bare: float, client: Client) -> None:
    _heading(heading)
    record = _recorded(client, "injections" if given.text else "silences")
    if given.text:
        screen.exactly(given.text)
    else:
        screen.say(f"(nothing: {record.get('says') or 'nothing that is remembered here has to do with it'})")
    cost = [f"{record['tokens']} of {record['budget']} tokens" if given.text and record else "0 tokens"]
    cost.append(f"hook {given.wall_ms:.0f} ms; a bare interpreter takes {bare:.0f} ms here")
    _dim(", ".join(cost))


def _recorded(client: Client, what: str) -> dict[str, Any]:
    """What the worker noted about its last answer; it does so after answering."""
    found: list[dict[str, Any]] = []
    until = time.monotonic() + RECORD_SECONDS
    while not found and time.monotonic() < until:
        found = client.get(f"/api/{what}", session_id=SESSION, limit=1)[what]
        time.sleep(0 if found else 0.02)
    return found[0] if found else {}


def _heading(text: str) -> None:
    from rich.text import Text

    out = screen.console()
    out.print()
    out.print(Text(f"== {text}", style="bold cyan"))


def _dim(text: str) -> None:
    from rich.text import Text

    screen.console().print(Text(text, style="dim"))


def _next_steps(home: Home, *, keep: bool) -> None:
    _heading("What to do next")
    if keep:
        screen.say(f"FOREWORD_HOME={home.root} foreword search WORDS     look around in what was kept")
    screen.say(
        'foreword add decision "…" --why "…"              remember something in your own memory\n'
        'foreword context "a question"                    see what an agent would be given with it\n'
        "foreword install                                 tell your agents: their hooks and their MCP server\n"
        "foreword doctor                                  check that everything works"
    )
