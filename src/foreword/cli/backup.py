"""`backup`, `restore` and `verify`: copy the database, put a copy back, and check either."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import LONG, connect, folder, refuse_agents
from foreword.cli.options import Json, Yes
from foreword.encoding import plural, sized

MAX_COPIES = 12
File = Annotated[str, typer.Argument(metavar="[FILE]", help="A copy of the database.")]


def backup(
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="A new file (default: in ~/.foreword/backups).")] = "",
    json: Json = False,
) -> None:
    """Copy the database, and check the copy.

    Readable by you alone; it appears only when it is whole. The worker makes one a day by itself (setting
    `backups_keep`). `foreword forget` reaches the copies in the home, not those elsewhere.
    """
    refuse_agents()
    made = _post("/api/backup", {"file": file and folder(file)}, "copying")
    output.write_json(made) if json else output.write(
        f"{made['file']}: {_holds(made)}, {sized(made['bytes'])}, checked"
    )


def restore(
    file: File = "",
    *,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Take what can be read of a damaged FILE (default: the database).")
    ] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Put a copy in the place of the database.

    By default the newest copy; while a loss is reported, the last one from before it. Events that came after the copy
    and can be read are taken over, hooks go on, and the present database is kept in the backups folder for four weeks.
    """
    refuse_agents()
    if not yes:
        what = "what can be read of it" if salvage and not file else file or "the newest copy"
        output.confirm(f"Replace the database by {what}? It is kept in the backups folder")
    done = _post("/api/restore", {"file": file and folder(file), "salvage": salvage}, "restoring")
    output.exit_with_json(done, enabled=json)
    before = f", {done['memories_before']:,} memories before" if done["memories_before"] is not None else ""
    output.write(f"restored from {done['file']}: {_holds(done)}{before}")
    output.write(f"{plural(done['taken_over'], 'events')} taken over; what was replaced is {done['replaced']}")
    output.warn(f"{rows:,} rows of {table} could not be read" for table, rows in done["unreadable"].items())
    _print_losses(done["losses"])


def verify(
    file: File = "",
    *,
    acknowledge: Annotated[bool, typer.Option("--acknowledge", help="Do not report these losses any more.")] = False,
    json: Json = False,
) -> None:
    """Check the database or a copy, page by page.

    Says which tables and indexes are damaged, what was lost, and the way out; lists the copies. Exit 1 if something is
    damaged.
    """
    if acknowledge:
        refuse_agents()
    found = _post("/api/verify", {"file": file and folder(file), "acknowledge": acknowledge}, "checking")
    if json:
        output.write_json(found)
    else:
        output.write(f"{found['file']}: {_holds(found) if found['rows'] else 'unreadable'}, {sized(found['bytes'])}")
        output.warn(found["damage"])
        output.write(f"{'damaged: ' + found['way_out'] if found['damage'] else 'every page is sound'}")
        _print_losses(found["losses"])
        for copy in found["copies"][:MAX_COPIES]:
            output.write(f"copy of {output.age(copy['at'])}: {copy['file']}, {sized(copy['bytes'])}")
    raise typer.Exit(1 if found["damage"] else 0)


def _post(route: str, request: dict[str, Any], doing: str) -> dict[str, Any]:
    client = connect(seconds=LONG)
    with output.console().status(doing):
        return client.post(route, request)


def _holds(found: dict[str, Any]) -> str:
    return ", ".join(plural(found["rows"][name], name) for name in ("memories", "sessions", "events"))


def _print_losses(losses: list[dict[str, Any]]) -> None:
    output.warn(
        f"{each['events']:,} events were lost: {each['what']}" if each["events"] else each["what"] for each in losses
    )
