"""`install` and `uninstall`: show what would be written into the agents' settings, ask, and write it."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.agents import AGENTS
from foreword.cli import output
from foreword.cli.connection import this_home
from foreword.cli.options import DryRun, Yes
from foreword.config import load
from foreword.encoding import did_you_mean
from foreword.errors import ForewordError
from foreword.hook.build import refresh
from foreword.redact import redact

if TYPE_CHECKING:
    from foreword.install.plan import Plan, PlannedFile

CONTEXT = 2  # lines of the user's own around a change
WIDE = 200  # characters that are shown of a line: a file may be a single line
MAX_LINES = {"change": 60, "create": 12, "remove": 0}  # shown of one file

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[AGENT]…", help=f"{', '.join(AGENTS)} (default: all found here)."),
]


def install(
    agents: Names = None,
    *,
    plugin: Annotated[
        bool | None,
        typer.Option("--plugin/--no-plugin", help="Install as the agent's own kind of plugin (default: as before)."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Connect your agents to Foreword: hooks and MCP server.

    Without a name, every agent found on this machine. It shows what it will write and asks; the rest of your settings
    stays byte for byte, and `foreword uninstall` removes exactly what was added. You can run it again at any time.
    """
    from foreword.install.plan import apply, plan
    from foreword.install.status import detect

    home, named = this_home(), _checked(agents)
    detected = detect(named or AGENTS, home=home, environ=os.environ, plugin=plugin)
    chosen = {each.agent: each for each in detected if named or each.is_here}
    if not chosen:
        hint = f"name one to set it up anyway: foreword install {next(iter(AGENTS))}; known: {', '.join(AGENTS)}"
        raise ForewordError("no known agent was found on this machine", hint=hint)
    places = {each.agent: each.binary or str(each.setup.folder) for each in chosen.values() if each.is_here}
    rows = [
        [agent, each.version or "-", places.get(agent, "not found here; set up anyway")]
        for agent, each in chosen.items()
    ]
    output.table(rows, headings=("agent", "version", "found"))

    def make(agent: str) -> Plan:
        each = chosen[agent]
        return plan(each.setup, agent=agent, home=home, plugin=each.plugin, version=each.version)

    def run(plan: Plan) -> None:
        home.prepare()
        refresh(home, load(home, os.environ).settings)  # what agents will run, before their settings name it
        apply(plan, home=home)

    plans, failed = _plans(list(chosen), make)
    failed |= _carry_out(plans, run, question="" if yes else "Write this?", dry_run=dry_run)
    raise typer.Exit(1 if failed else 0)


def uninstall(agents: Names = None, *, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Disconnect your agents: remove exactly what `install` added.

    Without a name, every agent that is connected. What you or the agent wrote since then stays, and so do your
    memories; it prints where they are and how to delete them.
    """
    from foreword.install import manifest
    from foreword.install.plan import undo, undo_plan

    home, named = this_home(), _checked(agents)
    installed = manifest.installed_agents(home)
    if not installed:
        output.write("nothing is installed; if you deleted the Foreword home, run `foreword install`, then this again")
    plans, failed = _plans(named or installed, lambda agent: undo_plan(agent, home=home))
    question = "" if yes else "Remove this?"
    failed |= _carry_out(plans, lambda plan: undo(plan.agent, home=home), question=question, dry_run=dry_run)
    if not dry_run and home.root.is_dir():
        output.write(f"\nYour memories stay in {home.root}. To delete them for good:")
        output.write(f"  foreword worker stop; rm -r {shlex.quote(str(home.root))}")
    raise typer.Exit(1 if failed else 0)


def diff(planned: PlannedFile) -> list[str]:
    """Return the lines that change, with some of the user's around them, without secrets."""
    if planned.new is None:
        return []
    old, new = (redact((data or b"").decode(errors="replace")).splitlines() for data in (planned.old, planned.new))
    lines = list(difflib.unified_diff(old, new, n=CONTEXT, lineterm=""))[3 if planned.old is None else 2 :]
    return [line if len(line) <= WIDE else f"{line[:WIDE]}…" for line in lines]


def _checked(names: Sequence[str] | None) -> list[str]:
    for name in names or ():
        if name not in AGENTS:
            known = f"known agents: {', '.join(AGENTS)}"
            output.error(f"unknown agent {name!r}", hint=did_you_mean(name, AGENTS, otherwise=known))
            raise typer.Exit(2)
    return list(dict.fromkeys(names or ()))


def _plans(agents: Sequence[str], make: Callable[[str], Plan]) -> tuple[list[Plan], bool]:
    """Return the plan of each agent, and whether one could not be made, which is printed."""
    plans = []
    for agent in agents:
        try:
            plans.append(make(agent))
        except ForewordError as exc:
            output.error(f"{agent}: {exc}", hint=exc.hint)
    return plans, len(plans) < len(agents)


def _carry_out(plans: Sequence[Plan], run: Callable[[Plan], None], *, question: str, dry_run: bool) -> bool:
    """Print the plans, ask, and run them; one that fails does not stop the others. Return whether one failed."""
    for plan in plans:
        _print_plan(plan)
    if dry_run:
        return False
    if question and any(plan.changed for plan in plans):
        output.confirm(question)
    output.write("")
    failed = False
    for plan in plans:
        try:
            run(plan)
        except (ForewordError, OSError) as exc:
            output.error(f"{plan.agent}: {exc}", hint=getattr(exc, "hint", "run `foreword doctor`"))
            failed = True
            continue
        output.write(f"{plan.agent}: {'done' if plan.changed else 'nothing to do'}")
        for sentence in plan.after:
            output.write(f"  {sentence}")
    return failed


def _print_plan(plan: Plan) -> None:
    output.write(f"\n{plan.agent}")
    if not plan.changed:
        output.write("  nothing to change")
    for planned in plan.files:
        if planned.changed:
            verb = "create" if planned.old is None else "remove" if planned.new is None else "change"
            output.write(f"  {verb}  {planned.file}")
            lines, max_lines = diff(planned), MAX_LINES[verb]
            for line in lines[:max_lines]:
                output.write(f"    {line}")
            if len(lines) > max_lines:
                output.write(f"    … {len(lines) - max_lines} more lines")
    for path in plan.leftovers:
        output.write(f"  remove  {path}")
