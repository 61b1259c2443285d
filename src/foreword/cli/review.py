"""What waits for the user -> one after the other with a key each, or a list; an id -> what is to become of it."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json, Project
from foreword.cli.speaker import refuse_agents
from foreword.errors import ForewordError

if TYPE_CHECKING:
    from foreword.worker.client import Client

KEYS = {
    "proposal": {"a": "accept", "r": "refuse", "e": "edit", "u": "accept everywhere", "s": "skip", "q": "quit"},
    "note": {"a": "promote", "r": "discard", "e": "edit", "s": "skip", "q": "quit"},
}  # fmt: skip
BECOMES = {
    "d": "decision", "p": "pattern", "l": "learning", "r": "preference", "g": "goal", "h": "handoff", "c": "correction",
    "f": "failure", "j": "project",
}  # fmt: skip
SCOPE = "Where it counts: project, universal, or language:NAME."

Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, as `foreword review --list` gives it.")]
Scope = Annotated[str, typer.Option("--scope", metavar="SCOPE", help=SCOPE)]
Title = Annotated[str, typer.Option("--title", metavar="TEXT", help="In other words.")]

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def review(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Of all projects.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Only list it.")] = False,
    project: Project = "",
    json: Json = False,
) -> None:
    """Say what becomes of what waits for you: proposed rules, and notes.

    A correction that you made again is proposed as a rule, and shown to no agent before you accept it. What is
    refused comes back only if you keep making the same correction. Notes become what they are: a decision, a rule, a
    goal; or go. On a terminal one comes after the other, with a key each; else they are listed.

    \b
    Examples:
      foreword review
      foreword review accept pre-7k2m9qxw --scope universal
      foreword review promote not-3v8n1c5x decision
    """
    if context.invoked_subcommand is not None:
        return
    client = door.worker(door.here())
    waiting = client.get("/api/review", project_path="" if everything else door.folder(project))
    if json:
        screen.as_json(waiting)
    elif not waiting["waiting"]:
        screen.aside("nothing waits for you")
    elif listed or not (sys.stdin.isatty() and sys.stdout.isatty()):
        for what in ("proposals", "notes"):
            for memory in waiting[what]:
                screen.say(f"{memory['id']}  [{what[:-1]}] {memory['title']}")
                screen.say(f"  {_about(memory)}")
    else:
        _one_by_one(client, waiting)


@app.command("accept")
def accept(
    id: Id,
    scope: Scope = "",
    kind: Annotated[str, typer.Option("--as", metavar="KIND", help="As another kind than a preference.")] = "",
    title: Title = "",
    json: Json = False,
) -> None:
    """Make a proposal a rule, from now on.

    \b
    Example:
      foreword review accept pre-7k2m9qxw --scope language:python
    """
    _tell(_decided(door.worker(door.here()), "accept", id, scope=scope, kind=kind, title=title), json=json)


@app.command("refuse")
def refuse(id: Id, json: Json = False) -> None:
    """Say no to a proposal.

    \b
    Example:
      foreword review refuse pre-7k2m9qxw
    """
    _tell(_decided(door.worker(door.here()), "refuse", id), json=json)


@app.command("promote")
def promote(
    id: Id,
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"What it is: {', '.join(BECOMES.values())}.")],
    scope: Scope = "",
    title: Title = "",
    json: Json = False,
) -> None:
    """Make a note what it is.

    \b
    Example:
      foreword review promote not-3v8n1c5x decision --title "Slots are stored in UTC"
    """
    _tell(_decided(door.worker(door.here()), "promote", id, scope=scope, kind=kind, title=title), json=json)


@app.command("discard")
def discard(id: Id, json: Json = False) -> None:
    """Put a note aside.

    \b
    Example:
      foreword review discard not-3v8n1c5x
    """
    _tell(_decided(door.worker(door.here()), "discard", id), json=json)


def _one_by_one(client: Client, waiting: dict[str, Any]) -> None:
    things = [("proposal", each) for each in waiting["proposals"]] + [("note", each) for each in waiting["notes"]]
    for number, (what, memory) in enumerate(things, 1):
        screen.say(f"\n{number} of {len(things)}  [{what}] {memory['title']}")
        if memory["body"]:
            screen.say(memory["body"])
        screen.say(f"  {_about(memory)}")
        _tell_old(client, memory)
        try:
            if not _answered(client, what, memory):
                return
        except ForewordError as exc:  # somebody else was quicker: the others still wait
            screen.error(str(exc), hint=exc.hint)


def _tell_old(client: Client, memory: dict[str, Any]) -> None:
    """Of other words that an agent proposes: those that they would replace."""
    old = memory["detail"].get("revises")
    if not old:
        return
    try:
        known = client.get(f"/api/memories/{old}", explain=1)["memory"]
    except ForewordError as exc:
        screen.error(str(exc), hint=exc.hint)
        return
    for name, new in memory["detail"].get("changes", {}).items():
        was = known.get(name, known["detail"].get(name, ""))
        screen.say(f"  {name.replace('_', ' ')}: {_plain(was) or '(nothing)'} -> {_plain(new) or '(nothing)'}")


def _plain(told: object) -> str:
    return ", ".join(map(str, told)) if isinstance(told, list) else str(told)


def _answered(client: Client, what: str, memory: dict[str, Any]) -> bool:
    """Ask for a key and do what it says; whether to go on."""
    key = _key(KEYS[what])
    if key in ("s", "q"):
        return key == "s"
    if key == "r":
        _tell(_decided(client, "refuse" if what == "proposal" else "discard", memory["id"]))
        return True
    title = typer.prompt("in other words", default=memory["title"]) if key == "e" else ""
    if what == "proposal":
        _tell(_decided(client, "accept", memory["id"], scope="universal" if key == "u" else "", title=title))
        return True
    kind = _key({**BECOMES, "s": "skip"})
    if kind != "s":
        _tell(_decided(client, "promote", memory["id"], kind=BECOMES[kind], title=title))
    return True


def _key(keys: dict[str, str]) -> str:
    """One of *keys*, pressed once; Ctrl-C and the end of the input leave."""
    import click

    screen.aside("  ".join(f"{key} {meaning}" for key, meaning in keys.items()))
    while True:
        try:
            pressed = click.getchar().lower()
        except EOFError:
            raise typer.Exit from None  # nobody is there any more
        if pressed in keys:
            return pressed


def _decided(client: Client, what: str, id: str, *, scope: str = "", kind: str = "", title: str = "") -> dict[str, Any]:
    refuse_agents(os.environ)
    told = {"do": what, "id": id, "scope": scope, "as": kind, "title": title}
    return client.post("/api/review", {name: each for name, each in told.items() if each})


def _tell(answer: dict[str, Any], *, json: bool = False) -> None:
    if json:
        screen.as_json(answer)
        return
    memory = answer["memory"]
    if memory["status"] == "active":
        screen.say(screen.memory(memory))
        screen.aside(f"kept for {memory['scope']}; log entry {answer['entry']}")
    else:
        screen.say(f"{memory['id']} put aside")
        screen.aside(f"log entry {answer['entry']}")


def _about(memory: dict[str, Any]) -> str:
    """Where something that waits comes from, in a line."""
    from foreword.recall.render import ago

    detail = memory["detail"]
    parts = [ago(time.time() - max(memory["created"], memory["confirmed"]))]
    if detail.get("revises"):
        parts.append(f"other words for {detail['revises']}, by {memory['source']}")
    elif detail.get("seen_in"):
        parts.append(f"said {memory['seen']}x in {len(detail['seen_in'])} sessions")
    if detail.get("scope"):
        parts.append(f"{detail['projects']} projects have it: proposed for {detail['scope']}")
    return "; ".join([*parts, memory["project"] or memory["scope"]])
