"""The worker's life, its words index and the hook's command line, by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from foreword.agents import FILES
from foreword.cli import door, screen
from foreword.cli.memories import Json
from foreword.errors import BadRequest, ForewordError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="""The process that owns the database.

    It starts by itself when a hook or a command needs it, leaves when nobody asked for a while, and is replaced after
    an upgrade: you never have to start it.

    \b
    Example:
      foreword worker status
    """,
)


@app.command()
def start() -> None:
    """Start the worker, if none runs.

    \b
    Example:
      foreword worker start
    """
    from foreword.worker.lifecycle import pid_of

    home = door.here()
    before = pid_of(home)
    door.worker(home)
    now = pid_of(home)
    screen.say(f"the worker {'already runs' if now == before else 'runs'}, process {now}, in {home.root}")


@app.command()
def stop() -> None:
    """Ask the worker to leave; nothing is lost, and the next hook starts a new one.

    \b
    Example:
      foreword worker stop
    """
    from foreword.worker.lifecycle import stop as leave

    screen.say("the worker has left" if leave(door.here()) else "no worker runs")


@app.command()
def run() -> None:
    """Be the worker, in this terminal, until Ctrl-C.

    \b
    Example:
      foreword worker run
    """
    import sys

    from foreword.worker.__main__ import main
    from foreword.worker.lifecycle import pid_of

    home = door.here()
    if pid := pid_of(home):
        raise ForewordError(f"a worker already runs, process {pid}", hint="run `foreword worker stop` first")
    screen.aside(f"serving {home.root}; Ctrl-C ends it, and {home.log} has its log")
    sys.exit(main())


@app.command()
def status(json: Json = False) -> None:
    """Say whether a worker runs, without starting one; exit 1 if none does.

    \b
    Example:
      foreword worker status --json
    """
    from foreword.worker.client import Client
    from foreword.worker.lifecycle import pid_of

    home = door.here()
    pid = pid_of(home)
    if not pid:
        screen.as_json({"running": False}) if json else screen.say("no worker runs; it starts when it is needed")
        raise typer.Exit(1)
    health = Client(home, seconds=5).get("/api/health")
    if json:
        screen.as_json({"running": True, **health})
        return
    up = screen.lasting(health["uptime_s"])
    screen.say(
        f"running, process {pid}, version {health['version']}, up {up}, {'well' if health['ok'] else 'not well'}"
    )
    screen.warn(health["problems"])


def index(json: Json = False) -> None:
    """Build the words index anew.

    It is made from the memories themselves, which stay as they are; for when `foreword doctor` says that it is damaged.

    \b
    Example:
      foreword index
    """
    client = door.worker(door.here(), seconds=door.LONG)
    with screen.console(stderr=True).status("building the words index"):
        made = client.post("/api/index", {})["indexed"]
    screen.as_json({"indexed": made}) if json else screen.say(f"{made:,} memories indexed")


def hook(
    host: Annotated[str, typer.Argument(metavar="HOST", help=f"{', '.join(FILES)}.")],
    event: Annotated[str, typer.Argument(metavar="EVENT", help="The host's own name for it, such as SessionStart.")],
) -> None:
    """Print the command line that a host must run at one of its events.

    `foreword install` puts it into a host's settings for you; this is for those who do it by hand. The hook is one file
    with no needs but an interpreter; it is written, or brought up to date, before its command line is printed.

    \b
    Examples:
      foreword hook claude-code SessionStart
      foreword hook claude-code UserPromptSubmit
    """
    import os
    import shlex

    from foreword.agents import find
    from foreword.config import load
    from foreword.hook.build import refresh

    known = find(host).events
    if event not in known:
        raise BadRequest(f"{host} has no event {event!r} that we know", hint=f"one of {', '.join(known)}")
    home = door.here()
    home.prepare()
    refresh(home, load(home, os.environ).settings)
    screen.say(shlex.join([str(home.launcher), "--host", host, event]))
