"""What you want to reach -> goals, told back as a tree."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json, Project
from foreword.cli.speaker import refuse_agents

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)
Id = Annotated[str, typer.Argument(metavar="ID", help="A goal's id, as `goal list` tells it.")]


@app.callback()
def goals() -> None:
    """Say what all this is for.

    Agents are told open goals where a prompt speaks of goals (goal, mission, milestone, objective,
    roadmap), and nowhere else.

    \b
    Examples:
      foreword goal add "Bookings survive a restart" --criterion "the storm test is green"
      foreword goal list
      foreword goal done goa-7k2m9qxw --outcome "since 2.1"
    """


@app.command()
def add(
    title: Annotated[list[str], typer.Argument(metavar="TITLE…", help="What is to be reached, in one line.")],
    *,
    parent: Annotated[str, typer.Option(metavar="ID", help="The goal that it is part of.")] = "",
    criterion: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="How one sees that it is reached; may be repeated.")
    ] = None,
    mission: Annotated[bool, typer.Option("--mission", help="It is what the whole project is for.")] = False,
    project: Project = "",
    json: Json = False,
) -> None:
    """Add a goal.

    \b
    Example:
      foreword goal add "Waiting list without double bookings" --parent goa-7k2m9qxw
    """
    refuse_agents(os.environ)
    told = {"title": " ".join(title), "parent": parent, "criteria": criterion or [], "mission": mission}
    answer = door.worker(door.here()).post("/api/goals", {**told, "project_path": door.folder(project)})
    _say(answer, json=json)


@app.command("list")
def listed(
    everything: Annotated[bool, typer.Option("--all", help="Also those that are done.")] = False,
    project: Project = "",
    json: Json = False,
) -> None:
    """List this project's goals, each under the one it is part of.

    \b
    Example:
      foreword goal list --all
    """
    client = door.worker(door.here())
    answer = client.get("/api/goals", project_path=door.folder(project), all=int(everything) or None)
    if json:
        screen.as_json(answer)
        return
    _print(answer["goals"], depth=0)
    if not answer["open"] + answer["done"]:
        screen.aside("no goal yet; `foreword goal add` adds one")
        return
    more = "" if everything or not answer["done"] else "; --all shows them"
    screen.aside(f"{answer['open']} open, {answer['done']} done{more}")


@app.command()
def done(
    id: Id,
    outcome: Annotated[str, typer.Option(metavar="TEXT", help="What came of it.")] = "",
    json: Json = False,
) -> None:
    """Say that a goal is reached; agents are no longer told of it.

    \b
    Example:
      foreword goal done goa-7k2m9qxw --outcome "since 2.1"
    """
    _reach(id, {"status": "done", "outcome": outcome}, json=json)


@app.command()
def reopen(id: Id, json: Json = False) -> None:
    """Say that a goal is not reached after all.

    \b
    Example:
      foreword goal reopen goa-7k2m9qxw
    """
    _reach(id, {"status": "open"}, json=json)


def _reach(id: str, told: dict[str, str], *, json: bool) -> None:
    refuse_agents(os.environ)
    _say(door.worker(door.here()).post(door.path("/api/goals", id), told), json=json)


def _say(answer: dict[str, Any], *, json: bool) -> None:
    if json:
        screen.as_json(answer)
        return
    _print([answer["goal"]], depth=0)
    if answer["open_parts"] and answer["goal"]["status"] == "done":
        screen.aside(f"still open and part of it: {', '.join(answer['open_parts'])}")


def _print(goals: list[dict[str, Any]], *, depth: int) -> None:
    for goal in goals:
        mark = "x" if goal["status"] == "done" else " "
        name = f"mission: {goal['title']}" if goal["mission"] else goal["title"]
        screen.say(f"{'  ' * depth}[{mark}] {goal['id']}  {name}")
        for criterion in goal["criteria"]:
            screen.say(f"{'  ' * depth}      - {criterion}")
        if goal["outcome"]:
            screen.say(f"{'  ' * depth}      = {goal['outcome']}")
        _print(goal["parts"], depth=depth + 1)
