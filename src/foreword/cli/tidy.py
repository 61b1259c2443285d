"""What is remembered -> what tidying would change, shown first; with a yes, what it has changed and how to undo it."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json
from foreword.errors import ForewordError

if TYPE_CHECKING:
    from foreword.paths import Home

LOOK = 0.2  # seconds between two looks at how far it is
MOST_LINES = 40  # of a plan that a person reads; --json tells more
# What a verb did, said of one and of many, where its past alone does not tell it.
VERBS = {
    "merge": "merged into another that says the same",
    "confirm": "counted for the one that they were merged into",
    "supersede": "superseded by a later choice",
    "stale": "put aside, since their code is gone",
    "sink": "ranked lower, since their code is gone",
    "restore": "back, since their code is",
    "learn": "learned from what sessions say, or surer or less sure now",
    "promote": "made a pattern, since the same thing fixed it again and again",
    "propose": "proposed as a rule, for your yes in `foreword review`",
}


def tidy(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")] = False,
    project: Annotated[
        str, typer.Option("--project", "-p", metavar="PATH", help="Folder of the project; by default this one.")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="All projects that sessions told of.")] = False,
    json: Json = False,
) -> None:
    """Merge what says the same, supersede what was taken back, and let sink what tells of code that is gone.

    The plan is shown first. Nothing is deleted: what is put aside keeps its text, and `foreword undo RUN` takes a whole
    run back. The worker does the same by itself when it is idle, once a day for each project (setting `tidy`).

    \b
    Examples:
      foreword tidy --dry-run
      foreword tidy --yes --all
    """
    home = door.here()
    import_request = {"all": True} if everything else {"project_path": door.folder(project)}
    if not yes or dry_run:
        plan = _asked(home, {**import_request, "dry_run": True})
        _tell(plan, json=json)
        if dry_run or json or not plan["by"]:
            return
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            screen.aside("nothing was changed; `foreword tidy --yes` does it")
            return
        screen.agree("Do this?")
    _tell(_asked(home, {**import_request, "dry_run": False}), json=json)


def _asked(home: Home, import_request: dict[str, Any]) -> dict[str, Any]:
    """The worker's answer, with its progress shown while it is awaited."""
    from foreword.worker.client import Client

    client = door.worker(home, seconds=door.LONG)
    answer: dict[str, Any] = {}
    failed: list[ForewordError] = []

    def ask() -> None:
        try:
            answer.update(client.post("/api/tidy", import_request))
        except ForewordError as exc:
            failed.append(exc)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    with screen.console(stderr=True).status("looking") as shown:
        while asking.is_alive():
            asking.join(LOOK)
            try:
                told = Client(home).get("/api/tidy") if asking.is_alive() else {}
            except ForewordError:
                time.sleep(LOOK)
                continue
            if told.get("project"):
                of = f" of {told['planned']:,}" if told.get("planned") else ""
                shown.update(f"{told['project']}: {told['state']}, {told.get('done', 0):,}{of}")
    if failed:
        raise failed[0]
    return answer


def _tell(done: dict[str, Any], *, json: bool) -> None:
    if json:
        screen.as_json(done)
        return
    if not done["by"]:
        screen.say("Nothing to tidy.")
        return
    if done["dry_run"]:
        _show(done)
        return
    for what, times in done["by"].items():
        screen.say(f"{times:,} {_done(what)}")
    screen.say(f"Undo all of it: foreword undo {done['run']}")


def _show(plan: dict[str, Any]) -> None:
    lines = 0
    for project in plan["projects"]:
        if not project["by"]:
            continue
        screen.say(f"{project['name'] or project['project']}, {project['memories']:,} memories:")
        for each in project["amendments"]:
            lines += 1
            if lines > MOST_LINES:
                break
            first = each["memories"][-1] if each["what"] in ("merge", "confirm") else each["memories"][0]
            screen.say(f"  {each['what']:<9} {first['id'] or 'new':<12}  {first['title'][:70]}")
            screen.say(f"            {each['why']}")
    if lines > MOST_LINES:
        screen.say(f"  ... and more; --json tells {sum(plan['by'].values()):,} in all")
    for what, times in plan["by"].items():
        screen.say(f"{times:,} would be {_done(what)}")


def _done(what: str) -> str:
    from foreword.audit import PAST

    return VERBS.get(what) or PAST.get(what, what)
