"""`foreword goal`: what you want to reach."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json, Project
from foreword.cli.speaker import refuse_agents

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def goals() -> None:
    """Say what all this is for.

    Agents are told open goals where a prompt speaks of goals (goal, mission, milestone, objective,
    roadmap), and nowhere else.

    \b
    Examples:
      foreword goal add "Bookings survive a restart"
      foreword goal list
      foreword goal done goa-7k2m9qxw --outcome "since 2.1"
    """


@app.command()
def add(
    title: Annotated[list[str], typer.Argument(metavar="TITLE…", help="What is to be reached, in one line.")],
    *,
    project: Project = "",
    json: Json = False,
) -> None:
    """Add a goal.

    \b
    Example:
      foreword goal add "Waiting list without double bookings"
    """
    refuse_agents(os.environ)
    goal = {"title": " ".join(title), "project_path": door.folder(project)}
    _print_goal(door.worker(door.here()).post("/api/goals", goal), json=json)


@app.command("list")
def list_goals(
    everything: Annotated[bool, typer.Option("--all", help="Also those that are done.")] = False,
    project: Project = "",
    json: Json = False,
) -> None:
    """List this project's goals.

    \b
    Example:
      foreword goal list --all
    """
    client = door.worker(door.here())
    answer = client.get("/api/goals", project_path=door.folder(project), all=int(everything) or None)
    if json:
        screen.as_json(answer)
        return
    for goal in answer["goals"]:
        _print_line(goal)
    if not answer["open"] + answer["done"]:
        screen.aside("no goal yet; `foreword goal add` adds one")
        return
    more = "" if everything or not answer["done"] else "; --all shows them"
    screen.aside(f"{answer['open']} open, {answer['done']} done{more}")


@app.command()
def done(
    id: Annotated[str, typer.Argument(metavar="ID", help="A goal's id, as `goal list` tells it.")],
    outcome: Annotated[str, typer.Option(metavar="TEXT", help="What came of it.")] = "",
    json: Json = False,
) -> None:
    """Say that a goal is reached; agents are no longer told of it. `foreword undo` opens it again.

    \b
    Example:
      foreword goal done goa-7k2m9qxw --outcome "since 2.1"
    """
    refuse_agents(os.environ)
    _print_goal(door.worker(door.here()).post(door.path("/api/goals", id), {"outcome": outcome}), json=json)


def _print_goal(answer: dict[str, Any], *, json: bool) -> None:
    if json:
        screen.as_json(answer)
    else:
        _print_line(answer["goal"])


def _print_line(goal: dict[str, Any]) -> None:
    screen.say(f"[{'x' if goal['status'] == 'done' else ' '}] {goal['id']}  {goal['title']}")
    if goal["outcome"]:
        screen.say(f"      = {goal['outcome']}")
