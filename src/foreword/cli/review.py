"""`review`: decide on proposed rules and notes, one by one with a key each, or by id."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder, full_id, refuse_agents
from foreword.cli.options import AllProjects, Json, Project, Scope
from foreword.errors import ForewordError

if TYPE_CHECKING:
    from foreword.worker.client import Client

KEYS = {
    "proposal": {"a": "accept", "r": "refuse", "e": "edit", "u": "accept everywhere", "s": "skip", "q": "quit"},
    "note": {"a": "promote", "r": "discard", "e": "edit", "s": "skip", "q": "quit"},
}  # fmt: skip
KINDS = {
    "d": "decision", "p": "pattern", "l": "learning", "r": "preference", "g": "goal", "h": "handoff", "c": "correction",
    "f": "failure", "j": "project",
}  # fmt: skip

Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, as `foreword review --list` prints it.")]
Title = Annotated[str, typer.Option("--title", metavar="TEXT", help="A better wording.")]

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def review(
    context: typer.Context,
    everything: AllProjects = False,
    listed: Annotated[bool, typer.Option("--list", help="List them, and ask nothing.")] = False,
    project: Project = "",
    json: Json = False,
) -> None:
    """Decide on proposed rules and notes.

    A correction that you made more than once is proposed as a rule; no agent is given it before you accept it. Notes
    become what they are (a decision, a rule, a goal), or go. On a terminal they come one by one, with a key for each
    answer; elsewhere they are listed.

    \b
    Examples:
      foreword review
      foreword review accept pre-7k2m9qxw --scope universal
      foreword review promote not-3v8n1c5x decision
    """
    if context.invoked_subcommand is not None:
        return
    client = connect()
    answer = client.get("/api/review", project_path="" if everything else folder(project))
    if json:
        output.write_json(answer)
    elif not answer["waiting"]:
        output.remark("nothing to review")
    elif listed or not (sys.stdin.isatty() and sys.stdout.isatty()):
        for what in ("proposals", "notes"):
            for memory in answer[what]:
                output.write(f"{memory['id']}  [{what[:-1]}] {memory['title']}")
                output.write(f"  {_origin(memory)}")
    else:
        _one_by_one(client, answer)


@app.command("accept")
def accept(
    id: Id,
    scope: Scope = "",
    title: Title = "",
    json: Json = False,
) -> None:
    """Make a proposal a rule."""
    _print_decision(_decide(connect(), "accept", id, scope=scope, title=title), json=json)


@app.command("refuse")
def refuse(id: Id, json: Json = False) -> None:
    """Refuse a proposal; it is not made again."""
    _print_decision(_decide(connect(), "refuse", id), json=json)


@app.command("promote")
def promote(
    id: Id,
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"{', '.join(KINDS.values())}.")],
    scope: Scope = "",
    title: Title = "",
    json: Json = False,
) -> None:
    """Turn a note into another kind of memory."""
    _print_decision(_decide(connect(), "promote", id, scope=scope, kind=kind, title=title), json=json)


@app.command("discard")
def discard(id: Id, json: Json = False) -> None:
    """Discard a note."""
    _print_decision(_decide(connect(), "discard", id), json=json)


def _one_by_one(client: Client, answer: dict[str, Any]) -> None:
    items = [("proposal", each) for each in answer["proposals"]] + [("note", each) for each in answer["notes"]]
    for number, (what, memory) in enumerate(items, 1):
        output.write(f"\n{number} of {len(items)}  [{what}] {memory['title']}")
        if memory["body"]:
            output.write(memory["body"])
        output.write(f"  {_origin(memory)}")
        try:
            if not _decide_by_key(client, what, memory):
                return
        except ForewordError as exc:  # somebody else was quicker; the others remain
            output.error(str(exc), hint=exc.hint)


def _decide_by_key(client: Client, what: str, memory: dict[str, Any]) -> bool:
    """Ask for a key and do what it stands for; return whether to go on."""
    key = _key(KEYS[what])
    if key in ("s", "q"):
        return key == "s"
    if key == "r":
        _print_decision(_decide(client, "refuse" if what == "proposal" else "discard", memory["id"]))
        return True
    title = typer.prompt("new wording", default=memory["title"]) if key == "e" else ""
    if what == "proposal":
        scope = "universal" if key == "u" else ""
        _print_decision(_decide(client, "accept", memory["id"], scope=scope, title=title))
        return True
    kind = _key({**KINDS, "s": "skip"})
    if kind != "s":
        _print_decision(_decide(client, "promote", memory["id"], kind=KINDS[kind], title=title))
    return True


def _key(keys: dict[str, str]) -> str:
    """Wait for one of *keys*."""
    import click

    output.remark("  ".join(f"{key} {meaning}" for key, meaning in keys.items()))
    while True:
        try:
            pressed = click.getchar().lower()
        except EOFError:
            raise typer.Exit from None
        if pressed in keys:
            return pressed


def _decide(client: Client, what: str, id: str, *, scope: str = "", kind: str = "", title: str = "") -> dict[str, Any]:
    refuse_agents()
    request = {"do": what, "id": full_id(client, id), "scope": scope, "as": kind, "title": title}
    return client.post("/api/review", {name: value for name, value in request.items() if value})


def _print_decision(answer: dict[str, Any], *, json: bool = False) -> None:
    if json:
        output.write_json(answer)
        return
    memory = answer["memory"]
    active = memory["status"] == "active"
    output.write(output.memory_line(memory) if active else f"{memory['id']} {memory['status']}")
    stored = f"stored for {memory['scope']}; " if active else ""
    output.remark(f"{stored}`foreword undo {answer['entry']['number']}` undoes it")


def _origin(memory: dict[str, Any]) -> str:
    """Return where something to review comes from, in a line."""
    seen_in = memory["detail"].get("seen_in")
    parts = [output.age(max(memory["created"], memory["confirmed"]))]
    parts += [f"said {memory['seen']}x in {output.plural(len(seen_in), 'sessions')}"] if seen_in else []
    return "; ".join([*parts, memory["project"] or memory["scope"]])
