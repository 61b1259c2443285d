"""`install` and `uninstall`: show what would be written into the agents' settings, ask, and write it."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.agents import FILES as AGENTS
from foreword.cli import output
from foreword.cli.connection import this_home
from foreword.cli.options import DryRun, Json, Yes, did_you_mean
from foreword.errors import ForewordError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from foreword.agents.setup import Setup
    from foreword.install.detect import Found
    from foreword.install.plan import Plan, Planned
    from foreword.paths import Home

CONTEXT = 2  # lines of the user's own around a change
WIDE = 200  # characters; of a longer line only the changed part is shown: a file may be a single line
MAX_LINES = {"change": 60, "create": 12, "remove": 0}  # shown of one file; --json has all

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[AGENT]…", help=f"{', '.join(AGENTS)} (default: all found here)."),
]


@dataclass(frozen=True)
class Step:
    """What is to be done for one agent, and what came of it."""

    agent: str
    plan: Plan | None = None
    problem: str = ""
    hint: str = ""
    remarks: tuple[str, ...] = ()
    done: bool = False

    @property
    def changed(self) -> bool:
        return self.plan is not None and self.plan.changed


def install(
    agents: Names = None,
    *,
    plugin: Annotated[
        bool | None,
        typer.Option("--plugin/--no-plugin", help="As the agent's own kind of plugin (default: as before)."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
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
    steps = [
        _step(each.agent, partial(plan, each.setup, agent=each.agent, home=home, plugin=each.plugin)) for each in found
    ]
    if not json:
        output.table(
            [[each.agent, each.version or "-", _where(each)] for each in found], headings=("agent", "version", "found")
        )
        _print_steps(steps)
    if not dry_run and (yes or not json):
        _confirm(steps, "Write this?", yes=yes)
        _write_hook(home)
        steps = [_run(each, lambda plan: apply(plan, home=home)) for each in steps]
    about = {each.agent: {"found": each.is_here, "version": each.version} for each in found}
    _report(steps, about, dry_run=dry_run, yes=yes, json=json)


def uninstall(agents: Names = None, *, dry_run: DryRun = False, yes: Yes = False, json: Json = False) -> None:
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
    candidates = named or tuple(dict.fromkeys((*installed, *setups)))
    steps = [_step(agent, partial(undo_plan, setups.get(agent), agent=agent, home=home)) for agent in candidates]
    steps = [each for each in steps if each.agent in (named or installed) or each.problem or each.changed]
    if not json:
        _print_steps(steps)
        if not steps:
            output.write("nothing is installed")
    if not dry_run and (yes or not json):
        _confirm(steps, "Remove this?", yes=yes)
        steps = [_run(each, lambda plan: undo(plan.agent, home=home, setup=setups.get(plan.agent))) for each in steps]
    try:
        _report(steps, {}, dry_run=dry_run, yes=yes, json=json)
    finally:
        if not json and not dry_run and home.root.is_dir():
            output.write(f"\nYour memories stay in {home.root}. To delete them for good:")
            output.write(f"  foreword worker stop; rm -r {shlex.quote(str(home.root))}")


def diff(planned: Planned) -> list[str]:
    """Return the lines that change, with some of the user's around them, without secrets."""
    import difflib

    from foreword.redact import redact

    if planned.new is None:
        return []
    old, new = (redact((data or b"").decode(errors="replace")).splitlines() for data in (planned.old, planned.new))
    lines = list(difflib.unified_diff(old, new, n=CONTEXT, lineterm=""))[3 if planned.old is None else 2 :]
    return redact("\n".join(_narrow(lines))).splitlines()


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


def _where(found: Found) -> str:
    return found.binary or (f"{found.setup.folder}" if found.is_here else "not found here; set up anyway")


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


def _step(agent: str, make_plan: Callable[[], Plan]) -> Step:
    try:
        return Step(agent, make_plan())
    except ForewordError as exc:
        return Step(agent, problem=str(exc), hint=exc.hint)


def _run(step: Step, run: Callable[[Plan], tuple[str, ...]]) -> Step:
    """Carry out a plan; one agent that fails does not stop the others."""
    if step.plan is None:
        return step
    try:
        return replace(step, remarks=run(step.plan), done=True)
    except ForewordError as exc:
        return replace(step, problem=str(exc), hint=exc.hint)
    except OSError as exc:
        return replace(step, problem=str(exc), hint="run `foreword doctor`")


def _confirm(steps: Sequence[Step], question: str, *, yes: bool) -> None:
    if not yes and any(each.changed for each in steps):
        output.confirm(question)


def _report(steps: Sequence[Step], about: dict[str, Any], *, dry_run: bool, yes: bool, json: bool) -> None:
    if json:
        agents = [_as_json(each, about.get(each.agent, {})) for each in steps]
        output.write_json({"dry_run": dry_run or not yes, "agents": agents})
    elif not dry_run:
        output.write("")
        for each in steps:
            if each.problem:
                output.error(f"{each.agent}: {each.problem}", hint=each.hint)
                continue
            output.write(f"{each.agent}: {'done' if each.changed else 'nothing to do'}")
            for remark in each.remarks:
                output.remark(remark, style=output.YELLOW)
            for sentence in each.plan.after if each.plan is not None else ():
                output.write(f"  {sentence}")
    if any(each.problem for each in steps):
        raise typer.Exit(1)


def _print_steps(steps: Sequence[Step]) -> None:
    for step in steps:
        output.write(f"\n{step.agent}")
        if step.plan is None:
            continue
        if not step.changed:
            output.write("  nothing to change")
        for planned in step.plan.files:
            if planned.changed:
                _print_file(planned)
        for path in step.plan.gone:
            output.write(f"  remove  {path}")


def _print_file(planned: Planned) -> None:
    what = _what(planned)
    output.write(f"  {what}  {planned.file}")
    lines, most = diff(planned), MAX_LINES[what]
    for line in lines[:most]:
        output.write(f"    {line}")
    if len(lines) > most:
        output.write(f"    … {len(lines) - most} more lines")


def _what(planned: Planned) -> str:
    return "create" if planned.old is None else "remove" if planned.new is None else "change"


def _narrow(lines: Sequence[str]) -> Iterator[str]:
    """Shorten long lines: one that changed to the changed part, another to its beginning."""
    before = ""
    for line in lines:
        if line[:1] == "-" and len(line) > WIDE:
            before = line[1:]
        elif line[:1] == "+" and before:
            yield f"+… {_added(before, line[1:])} …"
            before = ""
        else:
            yield line if len(line) <= WIDE or line[:1] == "+" else f"{line[:WIDE]}…"


def _added(old: str, new: str) -> str:
    """Return what *new* has between the beginning and the end that it shares with *old*."""
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    return new[start : len(new) - end]


def _common(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _as_json(step: Step, about: dict[str, Any]) -> dict[str, Any]:
    plan = step.plan
    files = [
        {"path": str(each.file), "what": _what(each) if each.changed else "keep", "diff": "\n".join(diff(each))}
        for each in (plan.files if plan is not None else ())
    ]
    files += [{"path": str(path), "what": "remove", "diff": ""} for path in (plan.gone if plan is not None else ())]
    return {
        "agent": step.agent,
        **about,
        "changed": step.changed,
        "done": step.done,
        "files": files,
        "remarks": list(step.remarks),
        "after": list(plan.after) if plan is not None else [],
        "problem": step.problem,
        "hint": step.hint,
    }
