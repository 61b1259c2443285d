"""`init`, `import`, `export`, `backup`, `restore`, `verify`: fill the memory, move it, copy it and put a copy back."""

from __future__ import annotations

import json as jsonlib
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import IO, Annotated, Any

import typer

from foreword import __version__
from foreword.capture.parse import project_at
from foreword.cli import output
from foreword.cli.connection import LONG, connect, folder, post_long, refuse_agents, this_home
from foreword.cli.options import Json, Project, Yes
from foreword.config import load
from foreword.encoding import did_you_mean, plural, sized
from foreword.errors import BadRequest, WorkerError
from foreword.paths import replacing
from foreword.policy import chosen
from foreword.worker.client import Client

POLL_SECONDS = 0.15
MAX_COPIES = 12
Copy = Annotated[str, typer.Argument(metavar="[FILE]", help="A copy of the database.")]


def init(
    path: Annotated[str, typer.Argument(metavar="[PATH]", help="A folder of the project (default: this one).")] = "",
    *,
    yes: Yes = False,
    also: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="TOOL", help="Also import from claude-mem or open-mem; repeatable."),
    ] = None,
    json: Json = False,
) -> None:
    """Fill the memory from git history, files and past sessions.

    It prints what it found and asks once. Nothing is written into the repository. You can run it again at any time:
    only what is new is added.
    """
    from foreword.importers import OPT_IN, offers, refuse_where_off

    refuse_agents()
    root, also = folder(path), also or []
    if not os.path.isdir(root):
        raise BadRequest(f"{root} is not a folder", hint="give the path of a project")
    if unknown := [name for name in also if name not in OPT_IN]:
        hint = did_you_mean(unknown[0], OPT_IN, otherwise=f"one of {', '.join(OPT_IN)}")
        raise BadRequest(f"unknown tool {unknown[0]!r}", hint=hint)
    project, settings = project_at(root), load(this_home(), os.environ).settings
    refuse_where_off(project, choices=chosen(settings), environ=os.environ)  # before anything is asked
    offered = offers(project, os.environ)
    sources = [name for name in offered if name not in OPT_IN or name in also]
    if json and not yes:
        rows = [{"source": name, "about": about} for name, about in offered.items()]
        output.write_json({"project": project.key, "name": project.name, "offers": rows, "taken": []})
        return
    if not json:
        output.write(f"{project.name} ({project.key})")
        output.fields([(name, offered[name]) for name in sources])
        for name in offered.keys() - set(sources):
            output.write(f"{name} is here too ({offered[name]}): foreword init --with {name} imports it")
    if not sources:
        output.remark(f"nothing to import in {root}; `foreword add` remembers what you type")
        return
    if not yes:
        question = f"Fill the memory of {project.name} from these? Nothing is written into the project"
        output.confirm(question, default=True)
    _import(sources, root, {}, json=json)
    if json:
        return
    answer = connect().get("/api/context", project_path=root, preview=1)
    if answer["context"]:
        output.write(f"\nWhat an agent gets when a session starts here ({answer['tokens']} tokens):\n")
        output.write_raw(answer["context"])
    else:
        output.remark("a session begins with what earlier sessions brought; prompts and searches find all of this")
    output.write(f"\nNext:\n{output.NEXT_STEPS}")
    if not settings.agent_notes:
        output.write("foreword config set agent_notes true   let agents write notes after long work; costs a turn")


def import_(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="git, files, claude-code, codex, claude-mem, open-mem or jsonl.")
    ],
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="The file to read, for sources that have one.")] = "",
    *,
    project: Project = "",
    everything: Annotated[bool, typer.Option("--all", help="jsonl: import every project of the file.")] = False,
    project_name: Annotated[str, typer.Option(metavar="NAME", help="claude-mem: the name of this project there.")] = "",
    json: Json = False,
) -> None:
    """Import from git, files, past sessions, other tools, exports.

    What is known already is skipped, and secrets are removed, so it can be repeated safely. The worker does it in the
    background: Ctrl-C only stops watching.
    """
    from foreword.importers import refuse_where_off

    refuse_agents()
    path, choices = folder(project), chosen(load(this_home(), os.environ).settings)
    refuse_where_off(project_at(path), choices=choices, environ=os.environ)
    options = {"file": file and folder(file), "all": everything, "project_name": project_name}
    _import([source], path, {name: value for name, value in options.items() if value}, json=json)


def export(
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="The file to write (default `-`, stdout).")] = "-",
    *,
    project: Project = "",
    everything: Annotated[bool, typer.Option("--all", help="All projects and universal memories.")] = False,
) -> None:
    """Write memories and sessions to a file, as JSON lines.

    Links and code changes are in it too. `foreword import jsonl FILE` reads it, here or on another machine. The file is
    readable by you alone, and appears only when it is complete.
    """
    where = {"all": 1} if everything else {"project_path": folder(project)}
    client = connect(seconds=LONG)
    path = "" if file == "-" else os.path.realpath(folder(file))
    if path and (os.path.isdir(path) or not os.path.isdir(os.path.dirname(path))):
        raise BadRequest(f"cannot write {path}", hint="give the path of a file in a folder that exists")
    with replacing(path) if path else nullcontext(sys.stdout.buffer) as out:
        counts = _write_export(out, client, where)
    output.remark(f"{path or 'stdout'}: {_listed(counts) or 'nothing is stored here'}")


def backup(
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="A new file (default: in ~/.foreword/backups).")] = "",
    json: Json = False,
) -> None:
    """Copy the database, and check the copy.

    Readable by you alone; it appears only when it is whole. The worker makes one a day by itself (setting
    `backups_keep`). `foreword forget` reaches the copies in the home, not those elsewhere.
    """
    refuse_agents()
    copy = post_long("/api/backup", {"file": file and folder(file)}, doing="copying")
    output.exit_with_json(copy, enabled=json)
    output.write(f"{copy['file']}: {_rows_of(copy)}, {sized(copy['bytes'])}, checked")


def restore(
    file: Copy = "",
    *,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Take what can be read of a damaged FILE (default: the database).")
    ] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Put a copy in the place of the database.

    By default the newest copy; while a loss is reported, the last one from before it. Events that came after the copy
    and can be read are taken over, hooks go on, and the present database is kept in the backups folder for four weeks.
    """
    refuse_agents()
    if not yes:
        what = "what can be read of it" if salvage and not file else file or "the newest copy"
        output.confirm(f"Replace the database by {what}? It is kept in the backups folder")
    restored = post_long("/api/restore", {"file": file and folder(file), "salvage": salvage}, doing="restoring")
    output.exit_with_json(restored, enabled=json)
    before = restored["memories_before"]
    added = f", {before:,} memories before" if before is not None else ""
    output.write(f"restored from {restored['file']}: {_rows_of(restored)}{added}")
    output.write(f"{plural(restored['taken_over'], 'events')} taken over; what was replaced is {restored['replaced']}")
    output.warn(f"{rows:,} rows of {table} could not be read" for table, rows in restored["unreadable"].items())
    _print_losses(restored["losses"])


def verify(
    file: Copy = "",
    *,
    acknowledge: Annotated[bool, typer.Option("--acknowledge", help="Do not report these losses any more.")] = False,
    json: Json = False,
) -> None:
    """Check the database or a copy, page by page.

    Says which tables and indexes are damaged, what was lost, and the way out; lists the copies. Exit 1 if something is
    damaged.
    """
    if acknowledge:
        refuse_agents()
    request = {"file": file and folder(file), "acknowledge": acknowledge}
    checked = post_long("/api/verify", request, doing="checking")
    if json:
        output.write_json(checked)
    else:
        holds = _rows_of(checked) if checked["rows"] else "unreadable"
        output.write(f"{checked['file']}: {holds}, {sized(checked['bytes'])}")
        output.warn(checked["damage"])
        output.write(f"damaged: {checked['way_out']}" if checked["damage"] else "every page is sound")
        _print_losses(checked["losses"])
        for copy in checked["copies"][:MAX_COPIES]:
            output.write(f"copy of {output.age(copy['at'])}: {copy['file']}, {sized(copy['bytes'])}")
    raise typer.Exit(1 if checked["damage"] else 0)


def _import(sources: Sequence[str], path: str, options: Mapping[str, Any], *, json: bool) -> None:
    """Start an import in the worker, wait for it, and print how many memories of each kind it added."""
    from foreword.importers import ENVIRON

    environ = {name: os.environ[name] for name in ENVIRON if name in os.environ}
    request = {"sources": list(sources), "project_path": path, "options": options, "environ": environ}
    started = connect().post("/api/imports", request)["import"]
    try:
        ended = _watch(started)
    except KeyboardInterrupt:
        output.remark("\nthe worker continues in the background; run the same command again to see its progress")
        raise typer.Exit(130) from None
    if json:
        output.write_json(ended)
    else:
        kinds = sum((Counter(source["kinds"]) for source in ended["sources"]), Counter[str]())
        known, forgotten = (sum(source[name] for source in ended["sources"]) for name in ("known", "forgotten"))
        duration = output.duration((ended["ended"] or time.time()) - ended["since"])
        if kinds:
            output.write(f"Learned about {ended['name']} in {duration}: {_listed(kinds)}.")
        else:
            output.write(f"Nothing new about {ended['name']}{f': {known:,} are known already' if known else ''}.")
        if forgotten:
            output.write(f"{forgotten:,} skipped, because you had forgotten {'it' if forgotten == 1 else 'them'}.")
        for source in ended["sources"]:
            output.warn(f"{source['source']}: {problem}" for problem in source["problems"])
    if ended["state"] == "failed":
        raise typer.Exit(1)


def _watch(state: dict[str, Any]) -> dict[str, Any]:
    """Show progress bars until an import has ended, and return its last state."""
    from rich.progress import Progress

    stderr = output.console()
    with Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as bars:
        tasks = {source["source"]: bars.add_task(source["source"], total=None) for source in state["sources"]}
        while state["state"] == "running":
            time.sleep(POLL_SECONDS)
            try:
                imports = Client(this_home()).get("/api/imports", project_path=state["project_path"])["imports"]
            except WorkerError:
                imports = []
            if not imports:  # it was killed or replaced
                raise WorkerError("the worker stopped during the import", hint="run the same command again")
            state = imports[0]
            for source in state["sources"]:
                bars.update(tasks[source["source"]], completed=source["done"], total=source["total"] or None)
    return state


def _listed(counts: Mapping[str, int]) -> str:
    plurals = {"summary": "summaries", "memory": "memories"}
    largest = sorted(counts.items(), key=lambda each: -each[1])
    return ", ".join(plural(count, plurals.get(name, f"{name}s")) for name, count in largest if count)


def _write_export(file: IO[bytes], client: Client, where: dict[str, Any]) -> Counter[str]:
    """Write the header and every row after those it refers to; return how many there are of each part."""
    project = client.get("/api/export", part="session", **where)["project"]  # empty for all projects
    header = {"format": "foreword export", "version": 1, "foreword": __version__, "at": time.time(), "project": project}
    file.write(jsonlib.dumps(header).encode() + b"\n")
    counts: Counter[str] = Counter()
    for part in ("session", "memory", "change", "link"):
        after = -1
        while after:
            page = client.get("/api/export", part=part, after=max(after, 0), **where)
            for row in page["rows"]:
                line = jsonlib.dumps({part: row}, ensure_ascii=False, separators=(",", ":"))
                file.write(line.encode("utf-8", "replace") + b"\n")
            counts[part] += len(page["rows"])
            after = page["next"]
    return counts


def _rows_of(copy: dict[str, Any]) -> str:
    return ", ".join(plural(copy["rows"][name], name) for name in ("memories", "sessions", "events"))


def _print_losses(losses: list[dict[str, Any]]) -> None:
    for loss in losses:
        output.warn([f"{loss['events']:,} events were lost: {loss['what']}" if loss["events"] else loss["what"]])
