"""A project -> where things stand in it, for a person who comes back."""

from __future__ import annotations

from typing import Annotated

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json, Project


def resume(
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="At most so many sessions.")] = 10,
    json: Json = False,
    project: Project = "",
) -> None:
    """Say where things stand: handoffs, what the last session left open, and the last sessions.

    It is what an agent is told at the start of a session about going on, and it is not counted as shown.

    \b
    Example:
      foreword resume
    """
    answer = door.worker(door.here()).get("/api/resume", project_path=door.folder(project), limit=limit)
    if json:
        screen.as_json(answer)
        return
    if not answer["standing"] and not answer["sessions"]:
        screen.aside(f"nothing is known yet of where things stand in {answer['name']}")
    apart = False
    for heading, points in (("Where things stand", answer["standing"]), ("Recent sessions", answer["sessions"])):
        if points:
            screen.say(f"{chr(10) if apart else ''}{heading}")
            apart = True
        for point in points:
            screen.say(point["text"])
