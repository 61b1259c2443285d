"""`review`: list what waits for the user, and decide on proposed rules and notes by id."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder, full_id, refuse_agents
from foreword.cli.options import AllProjects, Json, Project, Scope

Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, as `foreword review` prints it.")]
Title = Annotated[str, typer.Option("--title", metavar="TEXT", help="A better wording.")]

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def review(context: typer.Context, everything: AllProjects = False, project: Project = "", json: Json = False) -> None:
    """List proposed rules and notes, and decide on them.

    A correction that you made more than once is proposed as a rule; no agent is given it before you accept it. Notes
    become what they are (a decision, a rule, a goal), or go.

    \b
    Examples:
      foreword review
      foreword review accept pre-7k2m9qxw --scope universal
      foreword review promote not-3v8n1c5x decision
    """
    if context.invoked_subcommand is not None:
        return
    answer = connect().get("/api/review", project_path="" if everything else folder(project))
    if json:
        output.write_json(answer)
        return
    for what in ("proposals", "notes"):
        for memory in answer[what]:
            seen_in = memory["detail"].get("seen_in")
            origin = [output.age(max(memory["created"], memory["confirmed"]))]
            origin += [f"said {memory['seen']}x in {output.plural(len(seen_in), 'sessions')}"] if seen_in else []
            output.write(f"{memory['id']}  [{what[:-1]}] {memory['title']}")
            output.write(f"  {'; '.join([*origin, memory['project'] or memory['scope']])}")
    if not answer["waiting"]:
        output.remark("nothing to review")


@app.command("accept")
def accept(id: Id, scope: Scope = "", title: Title = "", json: Json = False) -> None:
    """Make a proposal a rule."""
    _decide("accept", id, json=json, scope=scope, title=title)


@app.command("refuse")
def refuse(id: Id, json: Json = False) -> None:
    """Refuse a proposal; it is not made again."""
    _decide("refuse", id, json=json)


@app.command("promote")
def promote(
    id: Id,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="decision, pattern, learning, preference, goal, …")],
    scope: Scope = "",
    title: Title = "",
    json: Json = False,
) -> None:
    """Turn a note into another kind of memory."""
    _decide("promote", id, json=json, **{"as": kind}, scope=scope, title=title)


@app.command("discard")
def discard(id: Id, json: Json = False) -> None:
    """Discard a note."""
    _decide("discard", id, json=json)


def _decide(what: str, id: str, *, json: bool, **more: Any) -> None:
    refuse_agents()
    client = connect()
    answer = client.post("/api/review", {"do": what, "id": full_id(client, id), **more})
    if json:
        output.write_json(answer)
        return
    memory = answer["memory"]
    active = memory["status"] == "active"
    output.write(output.memory_line(memory) if active else f"{memory['id']} {memory['status']}")
    stored = f"stored for {memory['scope']}; " if active else ""
    output.remark(f"{stored}`foreword undo {answer['entry']['number']}` undoes it")
