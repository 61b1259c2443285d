"""Names of hosts -> what would be written into their settings, shown and asked for, then done; or taken out again."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.agents import FILES
from foreword.cli import door, screen
from foreword.cli.memories import Json
from foreword.errors import ForewordError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from foreword.agents.setup import Setup
    from foreword.install.detect import Found
    from foreword.install.plan import Plan, Planned
    from foreword.paths import Home

CONTEXT = 2  # lines of the user's own around a change
WIDE = 200  # characters; of a longer line only what changes is shown: a whole file may stand in one
LINES = {"change": 60, "create": 12, "remove": 0}  # of one file that are shown; --json has all

Hosts = Annotated[
    list[str] | None,
    typer.Argument(metavar="[HOST]…", help=f"{', '.join(FILES)}; else all found here."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def install(
    hosts: Hosts = None,
    *,
    plugin: Annotated[
        bool | None,
        typer.Option(
            "--plugin/--no-plugin", help="As the host's own kind of plugin, where it has one; else as before."
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Tell your agents of Foreword: their hooks and their MCP server.

    Without a name it means every agent found on this machine. It shows what it will write before it writes; your own
    settings stay byte for byte, and `foreword uninstall` takes out exactly what was put in. It may be run again at any
    time: what is there already is left alone.

    \b
    Examples:
      foreword install
      foreword install claude-code --dry-run
      foreword install codex gemini --yes
    """
    from foreword.install.apply import apply
    from foreword.install.plan import plan

    home = door.here()
    named = _checked(hosts)
    found = _found(home, named, plugin=plugin)
    steps = [
        _planned(each.agent, partial(plan, each.setup, agent=each.agent, home=home, plugin=each.plugin))
        for each in found
    ]
    if not json:
        _show_hosts(found)
    _go(
        steps,
        do=lambda each: apply(each, home=home),
        before=lambda: _prepare(home),
        question="Write this?",
        dry_run=dry_run,
        yes=yes,
        json=json,
        about={each.agent: {"found": each.is_here, "version": each.version} for each in found},
    )


def uninstall(hosts: Hosts = None, *, dry_run: DryRun = False, yes: Yes = False, json: Json = False) -> None:
    """Take Foreword out of your agents' settings, and leave them as they were.

    Without a name it means every agent that knows of Foreword. What you or the agent wrote in the meantime stays. The
    memory itself stays too; it is told where it is, and how to remove it.

    \b
    Examples:
      foreword uninstall
      foreword uninstall cursor --dry-run
    """
    from foreword.install import manifest
    from foreword.install.apply import undo
    from foreword.install.plan import undo_plan

    home = door.here()
    named = _checked(hosts)
    setups = _setups(home)
    known = named or tuple(dict.fromkeys((*manifest.installed_agents(home), *setups)))
    steps = [_planned(host, partial(undo_plan, setups.get(host), agent=host, home=home)) for host in known]
    installed = manifest.installed_agents(home)
    steps = [each for each in steps if each.host in (named or installed) or each.problem or each.changed]
    if not steps and not json:
        screen.say("nothing is installed")
    _go(
        steps,
        do=lambda each: undo(each.agent, home=home, setup=setups.get(each.agent)),
        question="Take this out?",
        dry_run=dry_run,
        yes=yes,
        json=json,
    )
    if not json and not dry_run:
        _tell_of_memory(home)


@dataclass(frozen=True)
class _Step:
    """One host: its plan, or why there is none."""

    host: str
    plan: Plan | None = None
    problem: str = ""
    hint: str = ""
    words: tuple[str, ...] = ()
    done: bool = False

    @property
    def changed(self) -> bool:
        return self.plan is not None and self.plan.changed


def _checked(names: Sequence[str] | None) -> tuple[str, ...]:
    for name in names or ():
        if name not in FILES:
            screen.error(f"unknown host {name!r}", hint=f"known hosts: {', '.join(FILES)}")
            raise typer.Exit(2)
    return tuple(dict.fromkeys(names or ()))


def _found(home: Home, named: tuple[str, ...], *, plugin: bool | None) -> list[Found]:
    from foreword.install.detect import detect

    found = detect(named or FILES, home=home, environ=os.environ, plugin=plugin)
    if missing := set(named) - {each.agent for each in found}:
        raise ForewordError(f"{', '.join(sorted(missing))} cannot be set up by this version", hint="upgrade Foreword")
    meant = [each for each in found if named or each.is_here]
    if not meant:
        raise ForewordError(
            "none of the agents that we know was found on this machine",
            hint=f"name one to set it up anyway: foreword install {next(iter(FILES))}; known: {', '.join(FILES)}",
        )
    return meant


def _setups(home: Home) -> dict[str, Setup]:
    """All that any way of installing writes, to look for where no manifest tells."""
    from foreword.install.detect import detect

    plain = {each.agent: each.setup for each in detect(home=home, environ=os.environ, plugin=False)}
    plugins = {each.agent: each.setup for each in detect(home=home, environ=os.environ, plugin=True)}
    return {
        # Compared one by one: an entry may hold a dict, which has no hash.
        host: replace(each, changes=(*each.changes, *(c for c in plugins[host].changes if c not in each.changes)))
        for host, each in plain.items()
    }


def _prepare(home: Home) -> None:
    """What hosts are told to run must be there before they are told."""
    from foreword.config import load
    from foreword.hook.build import refresh

    home.prepare()
    refresh(home, load(home, os.environ).settings)


def _planned(host: str, make: Callable[[], Plan]) -> _Step:
    try:
        return _Step(host, make())
    except ForewordError as exc:
        return _Step(host, problem=str(exc), hint=exc.hint)


def _go(
    steps: Sequence[_Step],
    *,
    do: Callable[[Plan], tuple[str, ...]],
    question: str,
    dry_run: bool,
    yes: bool,
    json: bool,
    before: Callable[[], None] = lambda: None,
    about: dict[str, dict[str, Any]] | None = None,
) -> None:
    """Show, ask, do, tell; one host that fails does not keep the others from being done."""
    if not json:
        for each in steps:
            _show(each)
    done = list(steps)
    if not dry_run and (yes or not json):
        if any(each.changed for each in steps):
            _ask(question, yes=yes)
        before()
        done = [_done(each, do) for each in steps]
    if json:
        screen.as_json({"dry_run": dry_run or not yes, "hosts": [_as_json(each, about or {}) for each in done]})
    elif not dry_run:
        _tell(done)
    if any(each.problem for each in done):
        raise typer.Exit(1)


def _ask(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        screen.error("nobody is there to ask, and nothing was written", hint="say --yes")
        raise typer.Exit(2)
    if not typer.confirm(question, default=False, err=True):
        screen.aside("nothing was written")
        raise typer.Exit(0)


def _done(step: _Step, do: Callable[[Plan], tuple[str, ...]]) -> _Step:
    if step.plan is None:
        return step
    try:
        return _Step(step.host, step.plan, words=do(step.plan), done=True)
    except ForewordError as exc:
        return _Step(step.host, step.plan, problem=str(exc), hint=exc.hint)
    except OSError as exc:
        return _Step(step.host, step.plan, problem=str(exc), hint="run `foreword doctor`")


def _show_hosts(found: Sequence[Found]) -> None:
    rows = []
    for each in found:
        where = each.binary or (
            f"{each.setup.folder} is there" if each.is_here else "not found here; set up all the same"
        )
        rows.append([each.agent, each.version or "-", where])
    screen.table(rows, headings=("agent", "version", "found"))


def _show(step: _Step) -> None:
    screen.say(f"\n{step.host}")
    if step.plan is None:
        return
    if not step.changed:
        screen.say("  nothing to change")
    for each in step.plan.files:
        if each.changed:
            _show_file(each)
    for path in step.plan.gone:
        screen.say(f"  remove  {path}")


def _show_file(planned: Planned) -> None:
    what = _what(planned)
    screen.say(f"  {what}  {planned.file}")
    lines, most = diff(planned), LINES[what]
    for line in lines[:most]:
        screen.say(f"    {line}")
    if len(lines) > most:
        screen.say(f"    … {len(lines) - most} more lines")


def _what(planned: Planned) -> str:
    return "create" if planned.old is None else "remove" if planned.new is None else "change"


def diff(planned: Planned) -> list[str]:
    """What changes, with a few of the user's lines around it, and none of their secrets."""
    import difflib

    from foreword.redact import redact

    if planned.new is None:
        return []
    old, new = (redact((data or b"").decode(errors="replace")).splitlines() for data in (planned.old, planned.new))
    lines = list(difflib.unified_diff(old, new, n=CONTEXT, lineterm=""))[3 if planned.old is None else 2 :]
    return redact("\n".join(_narrow(lines))).splitlines()


def _narrow(lines: Sequence[str]) -> Iterator[str]:
    """Of a long line that changed, the part that did; of one that did not, its beginning."""
    before = ""
    for line in lines:
        if line[:1] == "-" and len(line) > WIDE:
            before = line[1:]
        elif line[:1] == "+" and before:
            yield f"+… {_differing(before, line[1:])} …"
            before = ""
        else:
            yield line if len(line) <= WIDE or line[:1] == "+" else f"{line[:WIDE]}…"


def _differing(old: str, new: str) -> str:
    """What *new* has between its beginning and its end that *old* has not."""
    start = next(
        (at for at, pair in enumerate(zip(old, new, strict=False)) if len(set(pair)) > 1), min(len(old), len(new))
    )
    ends = zip(reversed(old[start:]), reversed(new[start:]), strict=False)
    end = next((at for at, pair in enumerate(ends) if len(set(pair)) > 1), min(len(old), len(new)) - start)
    return new[start : len(new) - end]


def _tell(steps: Sequence[_Step]) -> None:
    screen.say("")
    for each in steps:
        if each.problem:
            screen.error(f"{each.host}: {each.problem}", hint=each.hint)
            continue
        screen.say(f"{each.host}: {'done' if each.changed else 'nothing was to be done'}")
        for word in each.words:
            screen.aside(word, style=screen.YELLOW)
        for sentence in each.plan.after if each.plan is not None else ():
            screen.say(f"  {sentence}")


def _tell_of_memory(home: Home) -> None:
    if home.root.is_dir():
        screen.say(f"\nYour memory stays in {home.root}. To remove it too, for good:")
        screen.say(f"  foreword worker stop; rm -r {shlex.quote(str(home.root))}")


def _as_json(step: _Step, about: dict[str, dict[str, Any]]) -> dict[str, Any]:
    plan = step.plan
    files = [
        {"path": str(each.file), "what": _what(each) if each.changed else "keep", "diff": "\n".join(diff(each))}
        for each in (plan.files if plan is not None else ())
    ]
    files += [{"path": str(path), "what": "remove", "diff": ""} for path in (plan.gone if plan is not None else ())]
    return {
        "host": step.host,
        **about.get(step.host, {}),
        "changed": step.changed,
        "done": step.done,
        "files": files,
        "words": list(step.words),
        "after": list(plan.after) if plan is not None else [],
        "problem": step.problem,
        "hint": step.hint,
    }
