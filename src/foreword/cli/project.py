"""A folder, a key or a name -> what is known of that project; what you say of it -> kept, or which counts as which."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json, Project
from foreword.cli.speaker import refuse_agents
from foreword.errors import BadRequest
from foreword.policy import FILE, opted_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.paths import Home

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)
Other = Annotated[str, typer.Argument(metavar="OTHER", help="A folder, a key or a name of another project.")]
Which = Annotated[str, typer.Argument(metavar="[PATH|KEY]", help="A folder, a key or a name; else this folder.")]
OFF, READ_ONLY, SILENT = "off_projects", "read_only_projects", "silent_projects"
OWN = {("capture", "inject"): "off", ("capture",): "read-only", ("inject",): "silent"}
TAKEN_OVER = 5.0  # seconds; a worker looks at its settings every second
WORDS = {OFF: "off: neither kept nor told", READ_ONLY: "read-only: nothing is kept", SILENT: "silent: nothing is told"}


@app.callback()
def project() -> None:
    """Show and say what a project is, and which folders count as one.

    A project is found by its git remote, else by its repository's folder, else by the nearest folder with a project
    file. Where that is not what you mean, `alias` and `merge` say so.

    \b
    Examples:
      foreword project show
      foreword project set --role "the booking service" --depends-on payments
      foreword project merge ~/old/rooms
      foreword project off
    """


@app.command()
def show(which: Which = "", json: Json = False) -> None:
    """Show what is known of a project: folders, memories by kind, facts, aliases, switches.

    \b
    Examples:
      foreword project show
      foreword project show ~/src/rooms
    """
    answer = door.worker(door.here()).get("/api/project", of=_named(which), project_path=door.folder(""))
    if json:
        screen.as_json(answer)
        return
    kinds = ", ".join(f"{count} {kind}" for kind, count in answer["kinds"].items())
    facts = [(name.replace("_", " "), _listed(told)) for name, told in answer["facts"].items()]
    switched = [WORDS[name] for name, on in answer["switches"].items() if on] + _own(which, answer)
    rows = (
        ("name", answer["name"]),
        ("key", answer["key"]),
        ("folders", _listed(answer["roots"])),
        ("memories", f"{answer['memories']}{f' ({kinds})' if kinds else ''}"),
        ("sessions", str(answer["sessions"])),
        ("last seen", screen.minute(answer["last"])),
        *facts,
        ("aliases", _listed(answer["aliases"])),
        ("switched", _listed(switched)),
    )
    screen.rows((name, told) for name, told in rows if told)
    for hint in answer["hints"]:
        screen.aside(hint)


@app.command("list")
def listed(json: Json = False) -> None:
    """List every project that was seen, the last one first.

    \b
    Example:
      foreword project list --json
    """
    answer = door.worker(door.here()).get("/api/projects")
    if json:
        screen.as_json(answer)
        return
    lines = [
        [each["name"] or "-", str(each["memories"]), str(each["sessions"]), screen.minute(each["last"]), _key(each)]
        for each in answer["projects"]
    ]
    if lines:
        screen.table(lines, headings=("name", "memories", "sessions", "last seen", "key"))
    else:
        screen.aside("no project was seen yet")


@app.command("set")
def change(
    *,
    role: Annotated[str | None, typer.Option(metavar="TEXT", help="What the project is for, in a line.")] = None,
    contract: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="What others rely on; may be repeated.")
    ] = None,
    depends_on: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="What it needs to run; may be repeated.")
    ] = None,
    related: Annotated[
        list[str] | None, typer.Option(metavar="KEY|PATH", help="Another project; may be repeated.")
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="What people call it.")] = "",
    project: Project = "",
    json: Json = False,
) -> None:
    """Say what a project is. What you give replaces what was said before; an empty text takes it away.

    Agents are told at the start of a session, and where a prompt asks for contracts or dependencies. Of a related
    project they are told the name, and nothing of its memory.

    \b
    Examples:
      foreword project set --role "the booking service" --contract "GET /rooms stays as it is"
      foreword project set --depends-on payments --related ~/src/payments
    """
    refuse_agents(os.environ)
    facts = {"role": role, "contracts": contract, "depends_on": depends_on}
    facts["related"] = [_named(each) for each in related] if related is not None else None
    told = {**facts, "name": name, "project_path": door.folder(project)}
    answer = door.worker(door.here()).post("/api/project", told)
    if json:
        screen.as_json(answer)
        return
    screen.rows((name.replace("_", " "), _listed(each)) for name, each in answer["facts"].items())
    screen.aside(f"kept for {answer['name']} ({answer['key']})")


@app.command()
def alias(other: Other, project: Project = "", json: Json = False) -> None:
    """Let another folder or key count as this project from now on.

    Where it has memories of its own, `merge` moves them.

    \b
    Example:
      foreword project alias ~/src/rooms-experiment
    """
    refuse_agents(os.environ)
    told = {"other": _named(other), "project_path": door.folder(project)}
    answer = door.worker(door.here()).post("/api/project/alias", told)
    screen.as_json(answer) if json else screen.say(f"{answer['alias']} counts as {answer['of']}")


@app.command()
def unalias(other: Other, json: Json = False) -> None:
    """Let a folder or key count as itself again; what was kept meanwhile stays where it is.

    \b
    Example:
      foreword project unalias ~/src/rooms-experiment
    """
    refuse_agents(os.environ)
    answer = door.worker(door.here()).post("/api/project/unalias", {"other": _named(other)})
    screen.as_json(answer) if json else screen.say(f"{answer['alias']} counts as itself")


@app.command()
def merge(
    other: Other,
    *,
    into: Annotated[str, typer.Option(metavar="PATH", help="A folder of the project to move it to; else here.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be moved.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Move everything of another project here, and let its key count as this one.

    Memories that are the same in both become one, with the evidence of both. It cannot be undone.

    \b
    Examples:
      foreword project merge ~/old/rooms --dry-run
      foreword project merge dir:/home/me/old/rooms/.git --yes
    """
    if not dry_run:
        refuse_agents(os.environ)
    client = door.worker(door.here(), seconds=door.LONG)
    told = {"other": _named(other), "project_path": door.folder(into)}
    would = client.post("/api/project/merge", {**told, "dry_run": True})
    if not (json and (dry_run or yes)):
        screen.say(f"{would['from']} -> {would['into']}")
        screen.say(f"  {_moved(would)}")
    if dry_run:
        screen.as_json(would) if json else None
        return
    if not yes:
        screen.agree("Move all of it? This cannot be undone.")
    answer = client.post("/api/project/merge", told)
    if json:
        screen.as_json(answer)
    else:
        screen.say(f"moved; entry {answer['entry']} of the log")


@app.command()
def off(
    which: Which = "",
    *,
    capture: Annotated[bool, typer.Option("--capture", help="Only keep nothing; agents are still told.")] = False,
    inject: Annotated[bool, typer.Option("--inject", help="Only tell agents nothing; sessions are kept.")] = False,
) -> None:
    """Neither keep nor tell anything in a project.

    \b
    Examples:
      foreword project off
      foreword project off ~/secret --inject
    """
    _switch(which, _settings_of(capture, inject), on=False)


@app.command()
def on(
    which: Which = "",
    *,
    capture: Annotated[bool, typer.Option("--capture", help="Only keep again.")] = False,
    inject: Annotated[bool, typer.Option("--inject", help="Only tell again.")] = False,
) -> None:
    """Keep and tell again in a project.

    \b
    Example:
      foreword project on ~/secret
    """
    _switch(which, _settings_of(capture, inject) if capture or inject else (OFF, READ_ONLY, SILENT), on=True)


def _settings_of(capture: bool, inject: bool) -> tuple[str, ...]:
    return tuple(name for name, meant in ((READ_ONLY, capture), (SILENT, inject)) if meant) or (OFF,)


def _switch(which: str, names: Sequence[str], *, on: bool) -> None:
    """Write the project's keys, and those of its aliases, into the settings, or take them out there."""
    from foreword.config import change as write
    from foreword.config import load
    from foreword.hook.build import refresh

    refuse_agents(os.environ)
    home = door.here()
    about = door.worker(home).get("/api/project", of=_named(which), project_path=door.folder(""))
    keys, before = [about["key"], *about["aliases"]], load(home, os.environ).settings
    for name in names:
        listed = [each for each in getattr(before, name) if each not in keys]
        after = listed if on else [*listed, *keys]
        if wrong := [each for each in after if "," in each]:
            raise BadRequest(f"{wrong[0]} has a comma in it", hint=f"write {name} into {home.config} by hand")
        if tuple(after) != tuple(getattr(before, name)):
            write(home, name, ",".join(after))
    now = load(home, os.environ).settings
    refresh(home, now)  # a hook that finds no worker obeys too
    left = [name for name in WORDS if _names(getattr(now, name, ()), [*keys, *about["roots"]])]
    _await(home, about["key"], {name: name in left for name in about["switches"]})
    own = _own(which, about)
    said = "; ".join([*(WORDS[name] for name in left), *own]) or "on: kept and told"
    screen.say(f"{about['name'] or about['key']} is {said}")


def _await(home: Home, key: str, switches: dict[str, bool]) -> None:
    """Come back when the worker has taken it over: nothing is kept or told after somebody read that it is off."""
    until = time.monotonic() + TAKEN_OVER
    while time.monotonic() < until:
        if door.worker(home).get("/api/project", of=key)["switches"] == switches:
            return
        time.sleep(0.1)


def _own(which: str, about: dict[str, Any]) -> list[str]:
    """What the repository's own file says, in words; of one that nobody saw yet, its folder is asked."""
    from foreword.projects import resolve

    folder = _named(which) or door.folder("")
    root = about["root"] or (resolve(folder).root if folder.startswith("/") else "")
    said = opted_out(root) if root else ()
    return [OWN[said] + f" by its own {FILE}"] if said else []


def _names(listed: Sequence[str], told: Sequence[str]) -> bool:
    return any(f"{each}/".startswith(f"{entry.rstrip('/')}/") for entry in listed for each in told if entry)


def _named(told: str) -> str:
    """A folder as its whole path, anything else as it is: a key or a name."""
    is_folder = told.startswith(("/", "~", ".")) or (told and os.path.isdir(told))
    return door.folder(told) if is_folder else told


def _moved(would: dict[str, Any]) -> str:
    rows = [f"{count:,} {table}" for table, count in would["rows"].items() if count and table != "log"]
    same = f"; {would['united']:,} memories are in both, and become one" if would["united"] else ""
    return f"{', '.join(rows) or 'nothing is kept there'}{same}"


def _key(each: dict[str, Any]) -> str:
    return f"{each['key']} -> {each['alias_of']}" if each["alias_of"] else str(each["key"])


def _listed(told: object) -> str:
    return "\n".join(map(str, told)) if isinstance(told, list) else str(told)
