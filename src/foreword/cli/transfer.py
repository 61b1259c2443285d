"""`import` and `export`: read memories from other sources, and write them to a file."""

from __future__ import annotations

import json as jsonlib
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from foreword import __version__
from foreword.cli import output
from foreword.cli.connection import LONG, connect, folder, refuse_agents, this_home
from foreword.cli.options import Json, Project
from foreword.errors import BadRequest, WorkerError

if TYPE_CHECKING:
    from foreword.models import Project as ProjectModel
    from foreword.paths import Home
    from foreword.worker.client import Client

POLL_SECONDS = 0.15
HEADER = 1000  # bytes reserved for the first line, which counts what follows it


def import_(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="git, files, claude-code, codex, claude-mem, open-mem or jsonl.")
    ],
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="The file to read, for sources that have one.")] = "",
    *,
    project: Project = "",
    everything: Annotated[bool, typer.Option("--all", help="jsonl: every project of the file.")] = False,
    into: Annotated[str, typer.Option("--as", metavar="PATH", help="jsonl: into the project of this folder.")] = "",
    project_name: Annotated[
        str, typer.Option(metavar="NAME", help="claude-mem: its name of this project, if it has no folder.")
    ] = "",
    json: Json = False,
) -> None:
    """Import from git, files, past sessions, other tools, exports.

    What is known already is skipped, and secrets are removed, so it can be repeated safely. The worker does it in the
    background: Ctrl-C only stops watching.

    \b
    Examples:
      foreword import git
      foreword import claude-code
      foreword import jsonl ~/rooms.jsonl
      foreword import jsonl ~/rooms.jsonl --as ~/src/rooms-again
    """
    from foreword.capture.parse import project_at
    from foreword.config import load
    from foreword.importers import find, refuse_where_off
    from foreword.policy import chosen

    refuse_agents()
    path = folder(into or project)
    options = {"file": folder(file) if file else "", "all": everything, "as": bool(into)}
    options["project_name"] = project_name
    options = {name: value for name, value in options.items() if value}
    importer = find(source, options)  # report wrong usage before a worker is started
    target = project_at(path)
    home = this_home()
    refuse_where_off(target, choices=chosen(load(home, os.environ).settings), environ=os.environ)
    if not file and importer.offer(target, environ=os.environ) is None:
        output.remark(f"{source} has nothing for {target.name}")
    done = run_import(home, [source], path=path, options=options)
    if json:
        output.write_json(done)
    else:
        print_imported(done, target)
    if done["state"] == "failed":
        raise typer.Exit(1)


def run_import(home: Home, sources: Sequence[str], *, path: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Start an import in the worker, wait for it, and return its last state."""
    from foreword.importers import ENVIRON

    environ = {name: os.environ[name] for name in ENVIRON if name in os.environ}
    request = {"sources": list(sources), "project_path": path, "options": options, "environ": environ}
    started: dict[str, Any] = connect(home).post("/api/imports", request)["import"]
    try:
        return _watch(home, started)
    except KeyboardInterrupt:
        output.remark("\nthe worker continues in the background; run the same command again to see its progress")
        raise typer.Exit(130) from None


def print_imported(done: Mapping[str, Any], project: ProjectModel) -> None:
    """Print how many memories of each kind an import added, and what could not be read."""
    kinds: Counter[str] = Counter()
    for source in done["sources"]:
        kinds.update(source["kinds"])
    known, forgotten = (sum(source[name] for source in done["sources"]) for name in ("known", "forgotten"))
    took = output.duration((done["ended"] or time.time()) - done["since"])
    if kinds:
        output.write(f"Learned about {project.name} in {took}: {_counts(kinds)}.")
    elif done["state"] != "running":
        output.write(f"Nothing new about {project.name}{f': {known:,} are known already' if known else ''}.")
    if forgotten:
        output.write(f"{forgotten:,} skipped, because you had forgotten {'it' if forgotten == 1 else 'them'}.")
    for source in done["sources"]:
        output.warn(f"{source['source']}: {problem}" for problem in source["problems"])


def export(
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="The file to write (default `-`, stdout).")] = "-",
    *,
    project: Project = "",
    everything: Annotated[bool, typer.Option("--all", help="All projects and universal memories.")] = False,
    json: Json = False,
) -> None:
    """Write memories and sessions to a file, as JSON lines.

    Links and code changes are in it too. `foreword import jsonl FILE` reads it, here or on another machine. The file is
    readable by you alone, and appears only when it is complete.

    \b
    Examples:
      foreword export rooms.jsonl
      foreword export --all everything.jsonl
      foreword export - | gzip > rooms.jsonl.gz
    """
    if everything and project:
        raise BadRequest("--all and --project exclude each other", hint="leave one of them out")
    where = {"all": 1} if everything else {"project_path": folder(project)}
    client = connect(seconds=LONG)
    path = "" if file == "-" else os.path.realpath(folder(file))
    parent = os.path.dirname(path) or None
    if path and (os.path.isdir(path) or not os.path.isdir(parent or "")):
        raise BadRequest(f"cannot write {path}", hint="give the path of a file in a folder that exists")
    handle, temporary = tempfile.mkstemp(prefix=".foreword-export-", dir=parent)  # mode 0600
    try:
        with open(handle, "w+b") as out:
            counts = _write_export(out, client, where)
            if path:
                out.flush()
                os.fsync(out.fileno())
                os.replace(temporary, path)
            else:
                out.seek(0)
                shutil.copyfileobj(out, sys.stdout.buffer)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    if json and path:
        output.write_json({"file": path, "counts": counts})
        return
    parts = _counts(Counter({name: count for name, count in counts.items() if count}))
    output.remark(f"{path or 'stdout'}: {parts or 'nothing is stored here'}")


def _counts(kinds: Counter[str]) -> str:
    plurals = {"summary": "summaries", "memory": "memories"}
    named = {kind: plurals.get(kind, f"{kind}s") for kind in kinds}
    return ", ".join(output.plural(count, named[kind]) for kind, count in kinds.most_common())


def _watch(home: Home, state: dict[str, Any]) -> dict[str, Any]:
    """Show progress bars until an import has ended, and return its last state."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from foreword.worker.client import Client

    stderr = output.console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bars:
        tasks = {source["source"]: bars.add_task(source["source"], total=None) for source in state["sources"]}
        while state["state"] == "running":
            time.sleep(POLL_SECONDS)
            try:
                imports = Client(home).get("/api/imports", project_path=state["project_path"])["imports"]
            except WorkerError:
                imports = []
            if not imports:  # it was killed or replaced
                raise WorkerError("the worker stopped during the import", hint="run the same command again")
            state = imports[0]
            for source in state["sources"]:
                bars.update(tasks[source["source"]], completed=source["done"], total=source["total"] or None)
    return state


def _write_export(out: IO[bytes], client: Client, where: dict[str, Any]) -> dict[str, int]:
    """Write every row, then the first line, which counts them."""
    out.write(b" " * HEADER + b"\n")
    counts: Counter[str] = Counter()
    for part, row in _rows(client, where):
        line = jsonlib.dumps({part: row}, ensure_ascii=False, separators=(",", ":"))
        out.write(line.encode("utf-8", "replace") + b"\n")
        counts[part] += 1
    named = {part: counts[part] for part in ("memory", "link", "change", "session")}
    project = "" if "all" in where else client.get("/api/export", part="session", **where)["project"]
    header = {"format": "foreword export", "version": 1, "foreword": __version__, "at": time.time()}
    out.seek(0)
    out.write(jsonlib.dumps({**header, "project": project, "counts": named}).encode().ljust(HEADER))
    return named


def _rows(client: Client, where: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every row after those it refers to."""
    sessions = client.get("/api/export", part="session", **where)
    projects = {sessions["project"], *(session["project"] for session in sessions["rows"])}
    for session in sessions["rows"]:
        yield "session", session
    for row in _pages(client, "memory", where):
        projects.add(row["project"])
        yield "memory", row
    for project in sorted(filter(None, projects)):
        for row in _pages(client, "change", {**where, "of": project}):
            yield "change", row
    for row in _pages(client, "link", where):
        yield "link", row


def _pages(client: Client, part: str, where: dict[str, Any]) -> Iterator[dict[str, Any]]:
    after = 0
    while True:
        page = client.get("/api/export", part=part, after=after, **where)
        yield from page["rows"]
        after = page["next"]
        if not after:
            return
