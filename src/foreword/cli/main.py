"""The words after `foreword` -> one command -> an exit code: 0 well, 1 failed and told why, 2 asked wrongly."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

from foreword import __version__
from foreword.cli import (
    demo,
    doctor,
    explain,
    export,
    find,
    forget,
    goals,
    governing,
    graph,
    imports,
    init,
    install,
    mcp,
    memories,
    model,
    project,
    prune,
    resume,
    review,
    screen,
    scrub,
    sessions,
    settings,
    stats,
    status,
    tidy,
    view,
    worker,
)
from foreword.errors import ForewordError

ABOUT = """Memory for coding agents.

Foreword keeps what mattered in your agent's sessions, and puts the few lines that matter in front of the next prompt.

\b
First steps:
  foreword init                     fill the memory from what this repository tells
  foreword install                  tell your agents of it: hooks and MCP server
  foreword demo                     see what an agent would be given here, leaving nothing behind
  foreword add decision "Use UTC"   remember something yourself
  foreword search utc               find it again
  foreword doctor                   check that everything works

Everything is kept in ~/.foreword, or in the folder that FOREWORD_HOME names.
"""

app = typer.Typer(
    name="foreword",
    help=ABOUT,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # a help text in a pipe is text, and 80 ms earlier
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    if version:
        screen.say(f"foreword {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        screen.say(context.get_help())


app.command("init")(init.init)
app.command("install")(install.install)
app.command("uninstall")(install.uninstall)
app.command("add")(memories.add)
app.command("note")(memories.note)
app.command("show")(memories.show)
app.command("revise")(governing.revise)
app.command("pin")(governing.pin)
app.command("supersede")(governing.supersede)
app.command("undo")(governing.undo)
app.command("log")(governing.log)
app.command("search")(find.search)
app.command("context")(find.context)
app.command("explain")(explain.explain)
app.command("resume")(resume.resume)
app.command("sessions")(sessions.sessions)
app.command("handoff")(sessions.handoff)
app.command("graph")(graph.graph)
app.command("link")(graph.link)
app.command("unlink")(graph.unlink)
app.add_typer(goals.app, name="goal")
app.add_typer(project.app, name="project")
app.command("view")(view.view)
app.command("status")(status.status)
app.command("stats")(stats.stats)
app.command("doctor")(doctor.doctor)
app.command("import")(imports.import_)
app.command("export")(export.export)
app.command("index")(worker.index)
app.command("scrub")(scrub.scrub)
app.command("forget")(forget.forget)
app.command("prune")(prune.prune)
app.command("tidy")(tidy.tidy)
app.add_typer(review.app, name="review")
app.add_typer(settings.app, name="config")
app.add_typer(worker.app, name="worker")
app.add_typer(model.app, name="model")
app.command("hook")(worker.hook)
app.command("mcp")(mcp.mcp)
app.command("demo")(demo.demo)


def main() -> None:
    """Run the command line; a failure that we know is one line and its hint, and never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):
            _lenient(stream)
    try:
        app(prog_name="foreword")
    except ForewordError as exc:
        screen.error(str(exc), hint=exc.hint)
    except OSError as exc:  # a full disk, a folder that went away
        screen.error(str(exc), hint="run `foreword doctor`")
    sys.exit(1)


def _lenient(stream: Any) -> None:
    """A terminal that knows only ASCII gets a question mark, not a traceback."""
    stream.reconfigure(errors="replace")
