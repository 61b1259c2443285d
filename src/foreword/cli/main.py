"""The `foreword` command: exit code 0 for success, 1 for a failure with its reason, 2 for wrong usage."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from foreword import __version__
from foreword.cli import (
    config,
    demo,
    doctor,
    edit,
    install,
    maintenance,
    memories,
    output,
    project,
    search,
    transfer,
    worker,
)
from foreword.cli.options import did_you_mean
from foreword.errors import ForewordError

if TYPE_CHECKING:
    from collections.abc import Callable

ABOUT = """Memory for coding agents.

Foreword keeps what mattered in your agents' sessions and gives the next session the few lines that help.

\b
First steps:
  foreword init                     read this repository's history and past sessions
  foreword install                  connect your agents: hooks and MCP server
  foreword doctor                   check that everything works
  foreword demo                     see what an agent gets, on a made-up project

All data is kept in ~/.foreword, or in the folder that FOREWORD_HOME names.
"""
# Names that people try and difflib cannot guess.
SYNONYMS = {
    **{"delete": "forget", "remove": "forget", "find": "search", "list": "search", "edit": "revise", "ui": "view"},
    **{"get": "show", "history": "log", "recall": "context", "remember": "add", "settings": "config", "why": "explain"},
}


class GroupedCommands(TyperGroup):
    """List commands by group, and suggest the nearest command for an unknown one."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels = COMMANDS if ctx.parent is None else {"Commands": self.commands}
        for title, names in panels.items():
            with formatter.section(title):
                width = formatter.width - 6 - max(map(len, names))
                formatter.write_dl([(name, self.commands[name].get_short_help_str(width)) for name in names])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in self.commands and not name.startswith("-"):
            meant = SYNONYMS.get(name, "") if ctx.parent is None else ""
            hint = f"did you mean `{meant}`?" if meant else did_you_mean(name, self.commands, otherwise="")
            ctx.fail(f"No such command '{name}'.{' ' + hint[:1].upper() + hint[1:] if hint else ''}")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="foreword",
    cls=GroupedCommands,
    help=ABOUT,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help in a pipe stays plain text, and comes 80 ms earlier
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        output.write(f"foreword {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        output.write(context.get_help())


COMMANDS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "Start": {
        "init": transfer.init,
        "install": install.install,
        "uninstall": install.uninstall,
        "status": doctor.status,
        "doctor": doctor.doctor,
        "view": worker.view,
        "demo": demo.demo,
    },
    "Remember": {
        "add": memories.add,
        "note": memories.note,
        "handoff": memories.handoff,
        "goal": memories.goal_app,
    },
    "Find": {
        "search": search.search,
        "show": memories.show,
        "context": search.context,
        "explain": search.explain,
        "resume": search.resume,
        "sessions": search.sessions,
        "graph": search.graph,
        "stats": search.stats,
    },
    "Keep in order": {
        "review": edit.review_app,
        "revise": edit.revise,
        "pin": edit.pin,
        "supersede": edit.supersede,
        "undo": edit.undo,
        "log": edit.log,
        "tidy": maintenance.tidy,
        "prune": maintenance.prune,
        "forget": maintenance.forget,
        "scrub": maintenance.scrub,
    },
    "Move and save": {
        "import": transfer.import_,
        "export": transfer.export,
        "index": maintenance.index,
    },
    "Settings": {
        "config": config.app,
        "project": project.app,
        "model": config.model_app,
        "worker": worker.app,
        "mcp": worker.mcp,
    },
}
for commands in COMMANDS.values():
    for name, command in commands.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, cls=GroupedCommands)
        else:
            app.command(name)(command)


def main() -> None:
    """Run the command line; print an expected failure as one line and its hint, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a question mark where a terminal's encoding lacks a character
    try:
        app(prog_name="foreword")
    except ForewordError as exc:
        output.error(str(exc), hint=exc.hint)
    except OSError as exc:  # a full disk, a folder that went away
        output.error(str(exc), hint="run `foreword doctor`")
    sys.exit(1)
