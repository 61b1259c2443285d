"""A folder -> what can be learnt there on the first day, taken in after one yes, and what an agent would see now."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.imports import Commits, Wait, report, run
from foreword.cli.memories import Json
from foreword.errors import BadRequest, ForewordError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.importers import Found
    from foreword.models import Project
    from foreword.paths import Home


def init(
    path: Annotated[str, typer.Argument(metavar="[PATH]", help="A folder of the project; else this one.")] = "",
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    git: Annotated[bool, typer.Option("--git/--no-git", help="The git history.")] = True,
    files: Annotated[bool, typer.Option("--files/--no-files", help="README, decision records and the like.")] = True,
    transcripts: Annotated[
        bool, typer.Option("--transcripts/--no-transcripts", help="Sessions that agents kept on this machine.")
    ] = True,
    also: Annotated[
        list[str] | None, typer.Option("--with", metavar="TOOL", help="Another tool's memory too; may be repeated.")
    ] = None,
    commits: Commits = 0,
    wait: Wait = True,
    json: Json = False,
) -> None:
    """Fill this project's memory from what is here already.

    It says what it found, asks once, and begins with the newest. Nothing is written into the repository. It may be run
    again at any time: only what is new is taken. Ctrl-C leaves the rest to the worker.

    \b
    Examples:
      foreword init
      foreword init ~/src/rooms --yes --no-git
      foreword init --with claude-mem
    """
    from foreword.capture.parse import project_at
    from foreword.config import load
    from foreword.importers import ASKED, TRANSCRIPTS, known, offers, refuse_where_off
    from foreword.policy import chosen

    folder = door.folder(path)
    if not os.path.isdir(folder):
        raise BadRequest(f"{folder} is not a folder", hint="give the path of a project")
    wanted = tuple(also or ())
    if unknown := [name for name in wanted if name not in ASKED or name not in known()]:
        others = ", ".join(name for name in ASKED if name in known()) or "none yet"
        raise BadRequest(f"unknown tool {unknown[0]!r}", hint=f"the tools that can be taken in: {others}")
    project, home = project_at(folder), door.here()
    settings = load(home, os.environ).settings
    refuse_where_off(project, choices=chosen(settings), environ=os.environ)
    if yes:
        _warm(home)
    left_out = {"git": git, "files": files, **dict.fromkeys(TRANSCRIPTS, transcripts)}
    found = [each for each in offers(project, environ=os.environ) if left_out.get(each.source, True)]
    sources = [each.source for each in found if each.source not in ASKED or each.source in wanted]
    if json and not yes:
        told = [{"source": each.source, "about": each.about, "count": each.count} for each in found]
        screen.as_json({"project": project.key, "name": project.name, "offers": told, "taken": []})
        return
    if not json:
        _show(project, found, taken=sources)
    if not sources:
        screen.aside(f"there is nothing to learn from in {folder}; `foreword add` keeps what you tell it")
        return
    if not yes:
        _ask(project)
    done = run(home, sources, folder=folder, options={"commits": commits} if commits else {}, wait=wait)
    if json:
        screen.as_json(done)
    else:
        report(done, project)
        _picture(home, folder, offer_notes=not settings.agent_notes)
    if done["state"] == "failed":
        raise typer.Exit(1)


def _warm(home: Home) -> None:
    """Start the worker while we look around: a new home takes it a second, and what fails is told when it is asked."""
    from foreword.worker.lifecycle import start

    def begin() -> None:
        with suppress(ForewordError, OSError):
            start(home)

    threading.Thread(target=begin, daemon=True).start()


def _show(project: Project, found: Sequence[Found], *, taken: Sequence[str]) -> None:
    screen.say(f"{project.name} ({project.key})")
    screen.rows([(each.source, each.about) for each in found if each.source in taken])
    if others := [each for each in found if each.source not in taken]:
        screen.say("Another tool's memory is here too; it is taken only if you say so:")
        screen.rows([(each.source, f"{each.about}    foreword init --with {each.source}") for each in others])


def _ask(project: Project) -> None:
    if not sys.stdin.isatty():
        screen.error("nobody is there to ask", hint="say --yes")
        raise typer.Exit(2)
    question = f"Fill the memory of {screen.safe(project.name)} from these? Nothing is written into the project"
    if not typer.confirm(question, default=True, err=True):
        raise typer.Exit(0)


def _picture(home: Home, folder: str, *, offer_notes: bool) -> None:
    """What a session would begin with now, and what to do next."""
    answer: dict[str, Any] = door.worker(home).get("/api/context", project_path=folder, preview=1)
    if answer["context"]:
        screen.say("\nWhat an agent is given when a session starts here:\n")
        screen.exactly(answer["context"])
        screen.aside(f"{answer['tokens']} of {answer['budget']} tokens")
    else:
        screen.aside("a session begins with what earlier sessions brought; prompts and searches find all of this")
    screen.say(
        "\nNext:\n"
        "  foreword install                  tell your agents: what they are asked next, they know this\n"
        '  foreword context "a question"     what an agent would be given with it\n'
        "  foreword search WORDS             look around in what was learnt"
    )
    if offer_notes:
        screen.say("  foreword config set agent_notes true   let agents write notes after long work; costs a turn")
