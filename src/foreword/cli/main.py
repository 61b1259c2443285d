"""The `foreword` command: exit code 0 for success, 1 for a failure with its reason, 2 for wrong usage."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from itertools import chain
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from foreword import __version__
from foreword.cli import demo, doctor, edit, install, maintenance, memories, output, search, settings, transfer, worker
from foreword.encoding import did_you_mean, read_table
from foreword.errors import ForewordError

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
EXAMPLES = read_table(__file__, "examples.txt")
# Names that people try and difflib cannot guess.
SYNONYMS = {
    **{"delete": "forget", "remove": "forget", "find": "search", "list": "search", "edit": "revise", "ui": "view"},
    **{"get": "show", "history": "log", "recall": "context", "remember": "add", "settings": "config", "why": "explain"},
}


class GroupedCommands(TyperGroup):
    """List commands by group, and suggest the nearest command for an unknown one."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels = {title: list(map(name_of, each)) for title, each in COMMANDS.items()}
        for title, names in panels.items() if ctx.parent is None else [("Commands", list(self.commands))]:
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


COMMANDS: dict[str, list[Callable[..., None] | typer.Typer]] = {
    "Start": [transfer.init, install.install, install.uninstall, doctor.status, doctor.doctor, worker.view, demo.demo],
    "Remember": [memories.add, memories.note, memories.handoff, memories.goal_app],
    "Find": [
        *(search.search, memories.show, search.context, search.explain),
        *(search.resume, search.sessions, search.graph, search.stats),
    ],
    "Keep in order": [
        *(edit.review_app, edit.revise, edit.pin, edit.supersede, edit.undo, edit.log),
        *(maintenance.tidy, maintenance.prune, maintenance.forget, maintenance.scrub),
    ],
    "Move and save": [
        *(transfer.import_, transfer.export, transfer.backup, transfer.restore, transfer.verify, maintenance.index),
    ],
    "Settings": [settings.config_app, settings.project_app, settings.model_app, worker.app, worker.mcp],
}


def name_of(command: Callable[..., None] | typer.Typer) -> str:
    """Return the name of a command: that of its function, without the underscore that a keyword needs."""
    return str(command.info.name) if isinstance(command, typer.Typer) else command.__name__.rstrip("_")


def examples_of(name: str) -> str:
    """Return the end of a command's help."""
    return "\n".join(("\b\nExamples:", *(f"  {line}" for line in EXAMPLES if re.search(rf"\bforeword {name}\b", line))))


for command in chain.from_iterable(COMMANDS.values()):
    name = name_of(command)
    if isinstance(command, typer.Typer):
        app.add_typer(command, cls=GroupedCommands, epilog=examples_of(name))
    else:
        app.command(name, epilog=examples_of(name))(command)


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
