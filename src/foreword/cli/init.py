"""`init`: find what can be imported on the first day, import it after one yes, and print what an agent would get."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder, refuse_agents, this_home
from foreword.cli.options import Json, Yes, did_you_mean
from foreword.cli.transfer import print_imported, run_import
from foreword.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.importers import Offer
    from foreword.models import Project
    from foreword.paths import Home


def init(
    path: Annotated[str, typer.Argument(metavar="[PATH]", help="A folder of the project (default: this one).")] = "",
    *,
    yes: Yes = False,
    also: Annotated[
        list[str] | None, typer.Option("--with", metavar="TOOL", help="Also another tool's memory; repeatable.")
    ] = None,
    json: Json = False,
) -> None:
    """Fill the memory from git history, files and past sessions.

    It prints what it found and asks once. Nothing is written into the repository. You can run it again at any time:
    only what is new is added.

    \b
    Examples:
      foreword init
      foreword init ~/src/rooms --yes
      foreword init --with claude-mem
    """
    from foreword.capture.parse import project_at
    from foreword.config import load
    from foreword.importers import OPT_IN, offers, refuse_where_off
    from foreword.policy import chosen

    refuse_agents()
    root = folder(path)
    if not os.path.isdir(root):
        raise BadRequest(f"{root} is not a folder", hint="give the path of a project")
    if unknown := [name for name in also or () if name not in OPT_IN]:
        hint = did_you_mean(unknown[0], OPT_IN, otherwise=f"one of {', '.join(OPT_IN)}")
        raise BadRequest(f"unknown tool {unknown[0]!r}", hint=hint)
    project, home = project_at(root), this_home()
    settings = load(home, os.environ).settings
    refuse_where_off(project, choices=chosen(settings), environ=os.environ)
    found = list(offers(project, environ=os.environ))
    sources = [each.source for each in found if each.source not in OPT_IN or each.source in (also or ())]
    if json and not yes:
        offered = [{"source": each.source, "about": each.about, "count": each.count} for each in found]
        output.write_json({"project": project.key, "name": project.name, "offers": offered, "taken": []})
        return
    if not json:
        _print_found(project, found, sources=sources)
    if not sources:
        output.remark(f"nothing to import in {root}; `foreword add` remembers what you type")
        return
    if not yes:
        question = f"Fill the memory of {project.name} from these? Nothing is written into the project"
        output.confirm(question, default=True)
    done = run_import(home, sources, path=root, options={})
    if json:
        output.write_json(done)
    else:
        print_imported(done, project)
        _print_context(home, root, offer_notes=not settings.agent_notes)
    if done["state"] == "failed":
        raise typer.Exit(1)


def _print_found(project: Project, found: Sequence[Offer], *, sources: Sequence[str]) -> None:
    output.write(f"{project.name} ({project.key})")
    output.fields([(each.source, each.about) for each in found if each.source in sources])
    if others := [each for each in found if each.source not in sources]:
        output.write("Another tool's memory is here too; it is imported only if you ask for it:")
        output.fields([(each.source, f"{each.about}    foreword init --with {each.source}") for each in others])


def _print_context(home: Home, root: str, *, offer_notes: bool) -> None:
    """Print what a session would begin with now, and what to do next."""
    answer: dict[str, Any] = connect(home).get("/api/context", project_path=root, preview=1)
    if answer["context"]:
        output.write("\nWhat an agent gets when a session starts here:\n")
        output.write_raw(answer["context"])
        output.remark(f"{answer['tokens']} of {answer['budget']} tokens")
    else:
        output.remark("a session begins with what earlier sessions brought; prompts and searches find all of this")
    output.write(
        "\nNext:\n"
        "  foreword install                  connect your agents, so that they get it\n"
        '  foreword context "a question"     see what an agent would get with it\n'
        "  foreword search WORDS             search what was imported"
    )
    if offer_notes:
        output.write("  foreword config set agent_notes true   let agents write notes after long work; costs a turn")
