"""`worker` and `mcp`: the processes behind the commands, by hand."""

from __future__ import annotations

import sys

import typer

from foreword.cli import output
from foreword.cli.connection import connect, this_home
from foreword.errors import ForewordError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="""Start and stop the process that owns the database.

    You never have to: it starts when a hook or a command needs it, exits when idle, and is replaced after an upgrade.

    \b
    Examples:
      foreword worker stop
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


def mcp() -> None:
    """Serve this project's memory to an MCP client (stdio).

    Agents start it themselves; by hand it is useful for clients that want a command. FOREWORD_PROJECT names the
    project's folder where a client starts it elsewhere.

    \b
    Example:
      claude mcp add foreword -- foreword mcp
    """
    from foreword.mcp.__main__ import main

    raise typer.Exit(main())
