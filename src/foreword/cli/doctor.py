"""Every finding about a home -> a line, and under what is wrong the way out; exit 1 where something is."""

from __future__ import annotations

import os
import time
from itertools import chain
from typing import TYPE_CHECKING

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.cli.hosts import Standing
    from foreword.paths import Home
    from foreword.problems import Finding, Group

RECENT = 7 * 86_400  # seconds; what went wrong before last week is history
MOST = 10  # troubles shown; more would hide the checks above them
MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "wrong": ("wrong", "bold red")}


def doctor(json: Json = False) -> None:
    """Check everything, and tell the way out of whatever is wrong.

    The home and its rights, the socket, the settings with the line of each mistake, the worker, the database and its
    index, what waits, the hook and its interpreter, the disk; of every host whether it is installed, wired, trusted and
    heard; and what went wrong in the last seven days. Exit 1 if something is wrong now, 0 if all is well.

    \b
    Examples:
      foreword doctor
      foreword doctor --json
    """
    from foreword.cli import hosts
    from foreword.cli.checks import findings
    from foreword.problems import WRONG

    home = door.here()
    found: list[Finding] = []
    standing: list[Standing] = []
    for finding in chain(findings(home, os.environ), _of_hosts(home, standing)):
        found.append(finding)
        if not json:
            _print(finding)
    recent = _recent(home)
    wrong = sum(finding.state == WRONG for finding in found)
    if json:
        checks = [vars(finding) for finding in found]
        screen.as_json(
            {
                "ok": not wrong,
                "home": str(home.root),
                "checks": checks,
                "hosts": [hosts.as_json(each) for each in standing],
                "troubles": [vars(group) for group in recent],
            }
        )
    else:
        _print_troubles(recent)
        screen.say(f"\n{wrong} {'thing is' if wrong == 1 else 'things are'} wrong" if wrong else "\nall is well")
    if wrong:
        raise typer.Exit(1)


def _of_hosts(home: Home, standing: list[Standing]) -> Iterator[Finding]:
    """What there is to say of every host; each is put into *standing* as well."""
    from foreword.cli import hosts

    health, seen = hosts.heard(home)
    for each in hosts.standings(home, os.environ, seen=seen):
        standing.append(each)
        if each.used:
            yield from hosts.findings(each, now=time.time())
    yield from hosts.absent(standing)
    yield from hosts.mcp(health)


def _recent(home: Home) -> tuple[Group, ...]:
    from foreword.problems import grouped, noted

    return grouped([each for each in noted(str(home.trouble)) if each.at > time.time() - RECENT])


def _print(finding: Finding) -> None:
    from rich.text import Text

    word, style = MARKS[finding.state]
    out = screen.console()
    out.print(Text.assemble((f"{word:<6}", style), f"{finding.check}: {screen.safe(finding.says)}"))
    if finding.way_out:
        out.print(Text(f"      {screen.safe(finding.way_out)}", style="dim" if finding.state == "note" else ""))


def _print_troubles(groups: tuple[Group, ...]) -> None:
    from foreword.recall.render import ago

    if groups:
        screen.say("\nwent wrong in the last seven days:")
    if len(groups) > MOST:
        screen.say(f"  … and {len(groups) - MOST} more, in logs/trouble.jsonl")
    for each in groups[-MOST:]:
        screen.say(f"  {ago(time.time() - each.last)}, {each.count}x, {each.where}: {each.what}")
