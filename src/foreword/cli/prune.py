"""What is old, or too much -> shown, and gone when the user says so."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json
from foreword.units import sized


def prune(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Remove what is old, or more than the store may hold.

    What goes and how long it is kept are settings, as is the size of the store; what you pinned, rules, decisions,
    patterns, goals, learnings, open handoffs and what is not distilled yet stay. The worker does the same by itself
    once a day. It is shown before, and cannot be undone.

    \b
    Examples:
      foreword prune --dry-run
      foreword prune --yes
    """
    client = door.worker(door.here(), seconds=door.LONG)
    told = client.post("/api/prune", {"dry_run": True})
    ask = not (dry_run or yes)
    if json and (dry_run or ask):
        screen.as_json(told)
        return
    if not json:
        _show(told)
    if dry_run or not told["rows"]:
        if json:
            screen.as_json({**told, "dry_run": False, "done": True, "pruned": {}, "freed": 0})
        return
    if ask:
        screen.agree("Remove it? This cannot be undone.")
    with screen.console(stderr=True).status("removing") as shown:
        while True:
            told = client.post("/api/prune", {})
            if told["done"]:
                break
            shown.update(f"{sum(told['pruned'].values()):,} of {told['rows']:,} removed")
    if json:
        screen.as_json(told)
        return
    gone = ", ".join(f"{rows:,} {name}" for name, rows in told["pruned"].items()) or "nothing"
    freed = f"; the file is {sized(told['freed'])} smaller" if told["freed"] > 0 else ""
    screen.say(f"removed: {gone}{freed}")


def _show(told: dict[str, Any]) -> None:
    size = told["size"]
    cap = f" of {sized(size['most'])}" if size["most"] else ", without a cap"
    screen.say(f"the store holds {sized(size['used'])}{cap}")
    going = [each for each in told["classes"] if each["rows"]]
    if not going:
        screen.say("nothing is old enough to go")
    else:
        headings = ("class", "rows", "about", "by age", "by size", "from", "to", "what")
        screen.table([_row(each) for each in going], headings=headings)
    if told["short"]:
        short = sized(told["short"])
        screen.warn([f"that is not enough: {short} too much would be left, of which nothing may go by itself"])


def _row(each: dict[str, Any]) -> list[str]:
    dates = [screen.minute(each[name])[:10] for name in ("oldest", "newest")]
    numbers = [f"{each['rows']:,}", sized(each["bytes"]), f"{each['by_age']:,}", f"{each['by_size']:,}"]
    return [each["name"], *numbers, *dates, each["what"]]
