"""`worker` and `mcp`: the processes behind the commands, by hand."""

from __future__ import annotations

import sys

import typer

from foreword.cli import output
from foreword.cli.connection import connect, this_home
from foreword.cli.options import Json
from foreword.errors import ForewordError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="""Start, stop and inspect the process that owns the database.

    You never have to: it starts when a hook or a command needs it, exits when idle, and is replaced after an upgrade.

    \b
    Examples:
      foreword worker status
      foreword worker run
    """,
)


@app.command()
def start() -> None:
    """Start the worker, unless it runs already."""
    from foreword.worker.lifecycle import pid_of

    home = this_home()
    before = pid_of(home)
    connect(home)
    pid = pid_of(home)
    output.write(f"the worker {'already runs' if pid == before else 'runs'}, process {pid}, in {home.root}")


@app.command()
def stop() -> None:
    """Stop the worker; nothing is lost, and the next hook or command starts a new one."""
    from foreword.worker.lifecycle import stop as stop_worker

    output.write("the worker has stopped" if stop_worker(this_home()) else "no worker runs")


@app.command()
def run() -> None:
    """Run the worker in this terminal, until Ctrl-C."""
    from foreword.worker.__main__ import main
    from foreword.worker.lifecycle import pid_of

    home = this_home()
    if pid := pid_of(home):
        raise ForewordError(f"a worker already runs, process {pid}", hint="run `foreword worker stop` first")
    output.remark(f"serving {home.root}, logging to {home.log}; Ctrl-C stops it")
    sys.exit(main())


@app.command()
def status(json: Json = False) -> None:
    """Print whether a worker runs, without starting one; exit 1 if none does."""
    from foreword.worker.client import Client
    from foreword.worker.lifecycle import pid_of

    home = this_home()
    pid = pid_of(home)
    if not pid:
        output.write_json({"running": False}) if json else output.write("no worker runs; it starts when it is needed")
        raise typer.Exit(1)
    health = Client(home, seconds=5).get("/api/health")
    if json:
        output.write_json({"running": True, **health})
        return
    state = f"up {output.duration(health['uptime_s'])}, {'healthy' if health['ok'] else 'not healthy'}"
    output.write(f"running, process {pid}, version {health['version']}, {state}")
    output.warn(health["problems"])


def mcp() -> None:
    """Serve this project's memory to an MCP client (stdio).

    Agents start it themselves; by hand it is useful for clients that want a command. FOREWORD_PROJECT names the
    project's folder where a client starts it elsewhere.

    \b
    Example:
      claude mcp add foreword -- foreword mcp
    """
    from foreword.mcp.server import main

    raise typer.Exit(main())
