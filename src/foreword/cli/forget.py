"""`foreword forget`: show what will go, ask, remove it for good, and print the receipt."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json
from foreword.cli.speaker import refuse_agents
from foreword.errors import BadRequest
from foreword.units import sized

SHOWN = 20  # titles


def forget(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID…]", help="Memories, by their ids.")] = None,
    *,
    session: Annotated[str, typer.Option(metavar="ID", help="All of a session: memories, events, changes.")] = "",
    project: Annotated[str, typer.Option(metavar="PATH|KEY", help="All of a project; with --match, in it.")] = "",
    match: Annotated[str, typer.Option(metavar="WORDS", help="Memories here that hold all of these words.")] = "",
    why: Annotated[str, typer.Option(metavar="TEXT", help="Why, for the log.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    json: Json = False,
) -> None:
    """Remove something for good, and prove it.

    Memories, or all of a session or a project, go from the database, its indexes, logs, what waits and every backup;
    verbatim copies of their sentences in what else is kept become [forgotten]. Then every byte of the home is searched
    for them, and the receipt says what was found. It cannot be undone, and no import brings it back.

    \b
    Examples:
      foreword forget dec-7k2m9qxw --dry-run
      foreword forget --match "zanzibar"
      foreword forget --session 0f3c --yes
      foreword forget --project ~/src/old-customer
    """
    import_request = _wish(ids or [], session=session, project=project, match=match)
    if not dry_run:
        refuse_agents(os.environ)
    client = door.worker(door.here(), seconds=door.LONG)
    would = client.post("/api/forget", {**import_request, "dry_run": True})
    if dry_run:
        screen.as_json(would) if json else _tell(would)
        return
    if not yes:
        if json:
            raise BadRequest("JSON is for programs, and nobody is there to ask", hint="look with --dry-run, then --yes")
        _tell(would)
        screen.agree("Forget this for good?")
    with screen.console(stderr=True).status("forgetting"):
        receipt = client.post("/api/forget", {**import_request, "why": why})
    screen.as_json(receipt) if json else _show(receipt)
    if receipt["left"]:
        raise typer.Exit(1)


def _wish(ids: list[str], *, session: str, project: str, match: str) -> dict[str, Any]:
    if sum(map(bool, (ids, session, match))) + bool(project and not match) != 1:
        hint = "foreword forget ID…, --session ID, --project PATH, or --match WORDS"
        raise BadRequest("say one thing that is to be forgotten", hint=hint)
    [where] = door.project(project).values() if project or match else [""]
    asked: dict[str, Any] = {"ids": ids, "session": session, "project": where, "match": match}
    return {name: given for name, given in asked.items() if given}


def _tell(would: dict[str, Any]) -> None:
    """Print what would go, before anything does."""
    rows = [[table, f"{count:,} to go"] for table, count in sorted(would["tables"].items())]
    rows += [[table, f"{count:,} to lose copies"] for table, count in sorted(would["cut"].items())]
    rows += [[name, f"{count:,} lines to lose copies"] for name, count in sorted(would["files"].items())]
    screen.table(rows, headings=("where", "what"))
    for each in would["memories"][:SHOWN]:
        screen.say(f"  {screen.memory(each)}")
    more = would["more"] + len(would["memories"][SHOWN:])
    if more:
        screen.say(f"  ... and {more:,} more memories")
    if would["cut_memories"]:
        screen.say(f"These stay, without the sentences that they quote: {', '.join(would['cut_memories'])}")
    if would["copies"]:
        screen.say(f"It goes from these backups, too: {', '.join(would['copies'])}")
    _tell_others(would)


def _show(receipt: dict[str, Any]) -> None:
    rows = [[table, f"{count:,} removed"] for table, count in sorted(receipt["removed"].items())]
    rows += [[table, f"{count:,} lost copies"] for table, count in sorted(receipt["cut"].items())]
    rows += [[name, f"{count:,} changed"] for name, count in sorted(receipt["files"].items())]
    screen.table(rows, headings=("where", "what"))
    if receipt["cut_memories"]:
        screen.say(f"These stay, without the sentences that they quoted: {', '.join(receipt['cut_memories'])}")
    sought, scanned = receipt["sentences"], receipt["scanned"]
    screen.say(
        f"{sought['looked_for']:,} sentences were looked for in {scanned['files']:,} files, {sized(scanned['bytes'])}:"
        f" {'some are' if receipt['left'] else '0'} left."
    )
    if sought["too_short"]:
        screen.say(f"{sought['too_short']:,} texts were too short to be looked for outside of their own session.")
    screen.warn(f"{each['sentences']:,} left in {each['file']}: {each['why']}" for each in receipt["left"])
    screen.warn(f"not looked into: {each}" for each in receipt["not_looked_into"])
    screen.say(f"The receipt is entry {receipt['entry']} of the log.")
    _tell_others(receipt)


def _tell_others(told: dict[str, Any]) -> None:
    if told["similar"]:
        screen.say("These say much the same in other words, and stay until you forget them, too:")
    for each in told["similar"]:
        screen.say(f"  {screen.memory(each)}")
    screen.say("Not ours to remove:")
    for each in told["not_ours"]:
        screen.say(f"  {each}")
    screen.say(f"{told['undo'].capitalize()}.")
