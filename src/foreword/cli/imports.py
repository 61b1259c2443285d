"""A source of memories -> the worker takes it in, and a bar shows how far it is; or only what it would take."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json, Project
from foreword.errors import BadRequest, WorkerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from foreword.models import Memory
    from foreword.models import Project as OurProject
    from foreword.paths import Home

LOOK = 0.15  # seconds between two looks at how far it is
SAMPLES = 3  # memories that a dry run shows
TRIES = 5  # to find a worker again that was killed or replaced

Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is done; else the worker goes on aside.")]
Commits = Annotated[int, typer.Option(metavar="N", min=0, help="Of a git history at most the newest N; 0 is 50,000.")]


def import_(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="git, files, claude-code, codex, claude-mem, open-mem or jsonl.")
    ],
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="The file to read, where the source has one.")] = "",
    *,
    project: Project = "",
    everything: Annotated[bool, typer.Option("--all", help="Every project of the file, as it is.")] = False,
    into: Annotated[str, typer.Option("--as", metavar="PATH", help="Into the project of this folder instead.")] = "",
    commits: Commits = 0,
    project_name: Annotated[
        str, typer.Option(metavar="NAME", help="What claude-mem calls this project, where it tells no folder.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be taken in.")] = False,
    wait: Wait = True,
    json: Json = False,
) -> None:
    """Take memories in from somewhere else.

    Twice is the same as once: what is known already is left alone. What looks like a secret is taken out before
    anything is written. The worker does it aside; Ctrl-C leaves the rest to it.

    \b
    Examples:
      foreword import git
      foreword import claude-code
      foreword import jsonl ~/rooms.jsonl --dry-run
      foreword import jsonl ~/rooms.jsonl --as ~/src/rooms-again
    """
    from foreword.capture.parse import project_at
    from foreword.importers.base import find, refuse_where_off
    from foreword.policy import chosen

    folder = door.folder(into or project)
    options = {"file": door.folder(file) if file else "", "all": everything, "as": bool(into), "commits": commits}
    options["project_name"] = project_name
    options = {name: given for name, given in options.items() if given}
    found = find(source, options)  # asked wrongly is told before a worker is troubled
    here = project_at(folder)
    home = door.here()
    if dry_run:
        _dry(found, here, json=json)
        return
    settings = _settings(home)
    refuse_where_off(here, choices=chosen(settings), environ=os.environ)
    if not file and found.offer(here, environ=os.environ) is None:
        screen.aside(f"nothing of {source} was found for {here.name}")
    done = run(home, [source], folder=folder, options=options, wait=wait)
    if json:
        screen.as_json(done)
    else:
        report(done, here)
    if done["state"] == "failed":
        raise typer.Exit(1)


def run(home: Home, sources: Sequence[str], *, folder: str, options: Mapping[str, Any], wait: bool) -> dict[str, Any]:
    """Start an import and, where it is waited for, show how far it is; what the worker tells of it last."""
    from foreword.importers.base import ENVIRON

    environ = {name: os.environ[name] for name in ENVIRON if name in os.environ}
    import_request = {"sources": list(sources), "project_path": folder, "options": options, "environ": environ}
    begun: dict[str, Any] = door.worker(home).post("/api/imports", import_request)["import"]
    if not wait:
        screen.aside("the worker goes on with it aside; the same command again tells how far it is")
        return begun
    try:
        return _watched(home, begun)
    except KeyboardInterrupt:
        screen.aside("\nthe worker goes on with the rest aside; the same command again tells how far it is")
        raise typer.Exit(130) from None


def report(done: Mapping[str, Any], project: OurProject) -> None:
    """What was learnt, by kind, and what could not be read."""
    kinds: Counter[str] = Counter()
    for source in done["sources"]:
        kinds.update(source["kinds"])
    known = sum(source["known"] for source in done["sources"])
    took = (done["ended"] or time.time()) - done["since"]
    if kinds:
        told = ", ".join(_counted(kind, count) for kind, count in kinds.most_common())
        screen.say(f"Learnt about {project.name} in {screen.lasting(took)}: {told}.")
    elif done["state"] != "running":
        screen.say(f"Nothing new about {project.name}{f': {known:,} are known already' if known else ''}.")
    forgotten = sum(source["forgotten"] for source in done["sources"])
    if forgotten:
        screen.say(f"{forgotten:,} passed over, because {'it was' if forgotten == 1 else 'they were'} forgotten here.")
    for source in done["sources"]:
        screen.warn(f"{source['source']}: {problem}" for problem in source["problems"])


def _counted(kind: str, count: int) -> str:
    plural = {"summary": "summaries", "decision": "decisions"}.get(kind, f"{kind}s")
    return f"{count:,} {kind if count == 1 else plural}"


def _watched(home: Home, begun: dict[str, Any]) -> dict[str, Any]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    beside = screen.console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=beside, transient=True, disable=not beside.is_terminal) as bars:
        tasks: dict[str, Any] = {}
        while True:
            begun = _seen(home, begun)
            for source in begun["sources"]:
                name = source["source"]
                task = tasks.setdefault(name, None) or bars.add_task(name, total=None)
                tasks[name] = task
                bars.update(task, completed=source["done"], total=source["total"] or None)
            if begun["state"] != "running":
                return begun
            time.sleep(LOOK)


def _seen(home: Home, begun: dict[str, Any]) -> dict[str, Any]:
    """Where it stands; a worker that was killed or replaced goes on in the next one."""
    from foreword.worker.client import Client

    for attempt in range(TRIES):
        try:
            client = Client(home) if attempt == 0 else door.worker(home)
            told = client.get("/api/imports", project_path=begun["project_path"])["imports"]
        except WorkerError:
            time.sleep(LOOK)
            continue
        if told:
            newest: dict[str, Any] = told[0]
            return newest
        return {**begun, "state": "done", "ended": time.time()}  # a new worker that found nothing left to do
    raise WorkerError("the worker went away in the middle", hint="run the same command again: it goes on from there")


def _dry(source: Any, project: OurProject, *, json: bool) -> None:
    from foreword.importers.base import safe

    kinds: Counter[str] = Counter()
    samples: list[Memory] = []
    problems: list[str] = []
    try:
        for batch in source.read(project, environ=os.environ, checkpoint=""):
            kinds.update(memory.kind for memory in batch.memories)
            samples += [safe(memory) for memory in batch.memories[: SAMPLES - len(samples)]]
            problems += batch.problems
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if json:
        shown = [{"kind": memory.kind, "title": memory.title, "body": memory.body} for memory in samples]
        screen.as_json({"project": project.key, "kinds": dict(kinds), "samples": shown, "problems": problems})
        return
    told = ", ".join(_counted(kind, count) for kind, count in kinds.most_common()) or "nothing"
    screen.say(f"Would read for {project.name}: {told}.")
    for memory in samples:
        screen.say(f"  [{memory.kind}] {memory.title}")
    screen.warn(problems)


def _settings(home: Home) -> Any:
    from foreword.config import load

    if not home.root.is_absolute():
        raise BadRequest(f"{home.root} is no absolute path", hint="see FOREWORD_HOME")
    return load(home, os.environ).settings
