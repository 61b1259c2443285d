"""`install` and `uninstall`: show what would be written into the agents' settings, ask, and write it."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.agents import FILES as AGENTS
from foreword.cli import output
from foreword.cli.connection import this_home
from foreword.cli.options import DryRun, Yes, did_you_mean
from foreword.errors import ForewordError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from foreword.agents.setup import Setup
    from foreword.install.detect import Found
    from foreword.install.plan import Plan, PlannedFile
    from foreword.paths import Home

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
        typer.Option("--plugin/--no-plugin", help="As the agent's own kind of plugin (default: as before)."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Connect your agents to Foreword: hooks and MCP server.

    Without a name, every agent found on this machine. It shows what it will write and asks; the rest of your settings
    stays byte for byte, and `foreword uninstall` removes exactly what was added. You can run it again at any time.

    \b
    Examples:
      foreword install
      foreword install claude-code --dry-run
      foreword install codex gemini --yes
    """
    from foreword.install.apply import apply
    from foreword.install.plan import plan

    home = this_home()
    found = _find(home, _checked(agents), plugin=plugin)
    where = [
        each.binary or (str(each.setup.folder) if each.is_here else "not found here; set up anyway") for each in found
    ]
    rows = [[each.agent, each.version or "-", place] for each, place in zip(found, where, strict=True)]
    output.table(rows, headings=("agent", "version", "found"))

    plans, failed = _plans(
        {
            each.agent: partial(plan, each.setup, agent=each.agent, home=home, plugin=each.plugin, version=each.version)
            for each in found
        }
    )
    if not dry_run:
        _confirm(plans, "Write this?", yes=yes)
        _write_hook(home)
        failed |= _run(plans, lambda plan: apply(plan, home=home))
    if failed:
        raise typer.Exit(1)


def uninstall(agents: Names = None, *, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Disconnect your agents: remove exactly what `install` added.

    Without a name, every agent that is connected. What you or the agent wrote since then stays, and so do your
    memories; it prints where they are and how to delete them.

    \b
    Examples:
      foreword uninstall
      foreword uninstall cursor --dry-run
    """
    from foreword.install import manifest
    from foreword.install.apply import undo
    from foreword.install.plan import undo_plan

    home = this_home()
    named = _checked(agents)
    setups = _setups(home)
    installed = manifest.installed_agents(home)
    plans, failed = _plans(
        {
            agent: partial(undo_plan, setups.get(agent), agent=agent, home=home)
            for agent in named or tuple(dict.fromkeys((*installed, *setups)))
        },
        only_changed=not named,
    )
    if not plans and not failed:
        output.write("nothing is installed")
    if not dry_run:
        _confirm(plans, "Remove this?", yes=yes)
        failed |= _run(plans, lambda plan: undo(plan.agent, home=home, setup=setups.get(plan.agent)))
        if home.root.is_dir():
            output.write(f"\nYour memories stay in {home.root}. To delete them for good:")
            output.write(f"  foreword worker stop; rm -r {shlex.quote(str(home.root))}")
    if failed:
        raise typer.Exit(1)


def diff(planned: PlannedFile) -> list[str]:
    """Return the lines that change, with some of the user's around them, without secrets."""
    import difflib

    from foreword.redact import redact

    if planned.new is None:
        return []
    old, new = (redact((data or b"").decode(errors="replace")).splitlines() for data in (planned.old, planned.new))
    lines = list(difflib.unified_diff(old, new, n=CONTEXT, lineterm=""))[3 if planned.old is None else 2 :]
    return [line if len(line) <= WIDE else f"{line[:WIDE]}…" for line in lines]


def _checked(names: Sequence[str] | None) -> tuple[str, ...]:
    for name in names or ():
        if name not in AGENTS:
            known = f"known agents: {', '.join(AGENTS)}"
            output.error(f"unknown agent {name!r}", hint=did_you_mean(name, AGENTS, otherwise=known))
            raise typer.Exit(2)
    return tuple(dict.fromkeys(names or ()))


def _find(home: Home, named: tuple[str, ...], *, plugin: bool | None) -> list[Found]:
    from foreword.install.detect import detect

    found = detect(named or AGENTS, home=home, environ=os.environ, plugin=plugin)
    if missing := set(named) - {each.agent for each in found}:
        raise ForewordError(f"this version cannot set up {', '.join(sorted(missing))}", hint="upgrade Foreword")
    chosen = [each for each in found if named or each.is_here]
    if not chosen:
        hint = f"name one to set it up anyway: foreword install {next(iter(AGENTS))}; known: {', '.join(AGENTS)}"
        raise ForewordError("no known agent was found on this machine", hint=hint)
    return chosen


def _setups(home: Home) -> dict[str, Setup]:
    """Return what every way of installing writes, to search for where no manifest tells."""
    from foreword.install.detect import detect

    plain = {each.agent: each.setup for each in detect(home=home, environ=os.environ, plugin=False)}
    plugins = {each.agent: each.setup for each in detect(home=home, environ=os.environ, plugin=True)}
    return {
        # Compared one by one: an entry may hold a dict, which has no hash.
        agent: replace(each, changes=(*each.changes, *(c for c in plugins[agent].changes if c not in each.changes)))
        for agent, each in plain.items()
    }


def _write_hook(home: Home) -> None:
    """Write what agents will run before their settings name it."""
    from foreword.config import load
    from foreword.hook.build import refresh

    home.prepare()
    refresh(home, load(home, os.environ).settings)


def _plans(makers: dict[str, Callable[[], Plan]], *, only_changed: bool = False) -> tuple[list[Plan], bool]:
    """Make and print the plan of each agent; return them, and whether one failed."""
    plans, failed = [], False
    for agent, make in makers.items():
        try:
            plan = make()
        except ForewordError as exc:
            output.error(f"{agent}: {exc}", hint=exc.hint)
            failed = True
            continue
        if plan.changed or not only_changed:
            plans.append(plan)
            _print_plan(plan)
    return plans, failed


def _print_plan(plan: Plan) -> None:
    output.write(f"\n{plan.agent}")
    if not plan.changed:
        output.write("  nothing to change")
    for planned in plan.files:
        if planned.changed:
            what = "create" if planned.old is None else "remove" if planned.new is None else "change"
            output.write(f"  {what}  {planned.file}")
            lines, most = diff(planned), MAX_LINES[what]
            for line in lines[:most]:
                output.write(f"    {line}")
            if len(lines) > most and most:
                output.write(f"    … {len(lines) - most} more lines")
    for path in plan.gone:
        output.write(f"  remove  {path}")


def _confirm(plans: Sequence[Plan], question: str, *, yes: bool) -> None:
    if not yes and any(each.changed for each in plans):
        output.confirm(question)
    output.write("")


def _run(plans: Sequence[Plan], run: Callable[[Plan], None]) -> bool:
    """Carry out the plans; one agent that fails does not stop the others. Return whether one failed."""
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
