"""`forget`: show what would go, ask, remove it for good, and print the receipt."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import LONG, connect, full_id, project_query, refuse_agents
from foreword.cli.options import DryRun, Json, Yes
from foreword.errors import BadRequest
from foreword.units import sized

MAX_TITLES = 20


def forget(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID…]", help="Memories, by id.")] = None,
    *,
    session: Annotated[str, typer.Option(metavar="ID", help="All of a session: memories, events, changes.")] = "",
    project: Annotated[str, typer.Option(metavar="PATH|KEY", help="All of a project.")] = "",
    why: Annotated[str, typer.Option(metavar="TEXT", help="The reason, for the log.")] = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Delete something for good, and prove it.

    Memories, or all of a session or project, are removed from the database, its indexes, logs, the spool and every
    backup; verbatim copies of their sentences elsewhere become [forgotten]. Then every file is searched for them, and
    the receipt says what was found. It cannot be undone, and no import brings it back.

    \b
    Examples:
      foreword forget dec-7k2m9qxw --dry-run
      foreword forget --session 0f3c --yes
      foreword forget --project ~/src/old-customer
    """
    if sum(map(bool, (ids, session, project))) != 1:
        raise BadRequest("say what to forget, in one way", hint="foreword forget ID…, --session ID or --project PATH")
    if not dry_run:
        refuse_agents()
    client = connect(seconds=LONG)
    request: dict[str, Any] = {"session": session} if session else {"ids": [full_id(client, id) for id in ids or ()]}
    if project:
        [request["project"]] = project_query(project).values()
    plan = client.post("/api/forget", {**request, "dry_run": True})
    if dry_run:
        output.write_json(plan) if json else _print_plan(plan)
        return
    if not yes:
        if json:
            raise BadRequest("cannot ask for confirmation with --json", hint="look with --dry-run, then pass --yes")
        _print_plan(plan)
        output.confirm("Forget this for good?")
    with output.console(stderr=True).status("forgetting"):
        receipt = client.post("/api/forget", {**request, "why": why})
    output.write_json(receipt) if json else _print_receipt(receipt)
    if receipt["left"]:
        raise typer.Exit(1)


def _print_plan(plan: dict[str, Any]) -> None:
    output.table(_rows(plan["tables"], "to delete"), headings=("where", "what"))
    for each in plan["memories"][:MAX_TITLES]:
        output.write(f"  {output.memory_line(each)}")
    if more := len(plan["memories"][MAX_TITLES:]):
        output.write(f"  … and {more:,} more memories")
    output.write("Verbatim copies of their sentences become [forgotten] everywhere else.")
    if plan["backups"]:
        output.write(f"Also removed from these backups: {', '.join(plan['backups'])}")
    _print_remaining(plan)


def _print_receipt(receipt: dict[str, Any]) -> None:
    lines = _rows(receipt["removed"], "deleted") + _rows(receipt["cut"], "copies removed")
    output.table(lines + _rows(receipt["files"], "changed"), headings=("where", "what"))
    if receipt["cut_memories"]:
        output.write(f"These stay, without the sentences they quoted: {', '.join(receipt['cut_memories'])}")
    sentences, scanned = receipt["sentences"], receipt["scanned"]
    output.write(
        f"{sentences['looked_for']:,} sentences were searched for in {scanned['files']:,} files, "
        f"{sized(scanned['bytes'])}: {'some are' if receipt['left'] else '0'} left."
    )
    if sentences["too_short"]:
        output.write(f"{sentences['too_short']:,} texts were too short to search for outside of their own session.")
    output.warn(f"{each['sentences']:,} left in {each['file']}: {each['why']}" for each in receipt["left"])
    output.warn(f"not searched: {each}" for each in receipt["not_looked_into"])
    output.write(f"The receipt is entry {receipt['entry']} of the log.")
    _print_remaining(receipt)


def _rows(counts: dict[str, int], what: str) -> list[list[str]]:
    return [[name, f"{count:,} {what}"] for name, count in sorted(counts.items())]


def _print_remaining(answer: dict[str, Any]) -> None:
    """Print what says the same in other words, and what is not ours to remove."""
    if answer["similar"]:
        output.write("These say much the same in other words, and stay until you forget them too:")
    for each in answer["similar"]:
        output.write(f"  {output.memory_line(each)}")
    output.write("Not ours to remove:")
    for each in answer["not_ours"]:
        output.write(f"  {each}")
    output.write(f"{answer['undo'].capitalize()}.")
