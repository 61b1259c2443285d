"""`tidy`, `prune`, `forget`, `scrub` and `index`: work on everything that is stored, shown before it is done."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import folder, post_long, project_query, refuse_agents
from foreword.cli.options import AllProjects, DryRun, Json, Project, Yes
from foreword.encoding import plural, sized
from foreword.errors import BadRequest

MAX_LINES = 40  # of a plan that is printed; --json has all
MAX_TITLES = 20
# What was done to memories.
DONE = {
    "merge": "merged into another that says the same",
    "confirm": "counted for the one they were merged into",
    "supersede": "superseded by a later decision",
    "stale": "marked stale, since their code is gone",
    "restore": "restored, since their code is back",
    "retell": "corrected, since a later decision holds",
}


def tidy(
    dry_run: DryRun = False,
    yes: Yes = False,
    project: Project = "",
    everything: AllProjects = False,
    json: Json = False,
) -> None:
    """Merge duplicates and retire what is outdated.

    Later decisions supersede earlier ones, and memories about code that is gone rank lower. The plan is shown first.
    Nothing is deleted; `foreword undo RUN` takes a whole run back. The worker does the same by itself once a day
    (setting `tidy`).
    """
    request: dict[str, Any] = {"all": True} if everything else {"project_path": folder(project)}
    if dry_run or not yes:
        plan = post_long("/api/tidy", {**request, "dry_run": True}, doing="planning")
        _ask(plan, _print_tidy_plan, "Do this?", dry_run=dry_run or not plan["by"], json=json)
    answer = post_long("/api/tidy", request, doing="tidying")
    output.exit_with_json(answer, enabled=json)
    for what, times in answer["by"].items():
        output.write(f"{times:,} {DONE.get(what, what)}")
    output.write(f"Undo all of it: foreword undo {answer['run']}" if answer["by"] else "Nothing to tidy.")


def prune(dry_run: DryRun = False, yes: Yes = False, json: Json = False) -> None:
    """Delete what exceeds the limits on age and size.

    The limits are settings. What you pinned, rules, decisions, patterns, goals, learnings, open handoffs and sessions
    that are not extracted yet stay. The worker does the same by itself once a day. It cannot be undone.
    """
    if dry_run or not yes:
        plan = post_long("/api/prune", {"dry_run": True}, doing="planning")
        _ask(plan, _print_prune_plan, "Delete it? This cannot be undone.", dry_run=dry_run, json=json)
    answer = post_long("/api/prune", {}, doing="deleting")
    output.exit_with_json(answer, enabled=json)
    deleted = ", ".join(f"{rows:,} {name}" for name, rows in answer["pruned"].items()) or "nothing"
    freed = f"; the file is {sized(answer['freed'])} smaller" if answer["freed"] > 0 else ""
    output.write(f"deleted: {deleted}{freed}")


def forget(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID…]", help="Memories, by id.")] = None,
    *,
    session: Annotated[str, typer.Option(metavar="ID", help="All of a session: memories, events, changes.")] = "",
    project: Annotated[str, typer.Option(metavar="PATH|KEY", help="Everything of a project.")] = "",
    why: Annotated[str, typer.Option(metavar="TEXT", help="The reason, for the log.")] = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Delete something for good, and prove it.

    Memories, or all of a session or project, are removed from the database, its indexes, logs, the spool and every
    backup; verbatim copies of their sentences elsewhere become [forgotten]. Then every file is searched for them, and
    the receipt says what was found. It cannot be undone, and no import brings it back.
    """
    if sum(map(bool, (ids, session, project))) != 1:
        raise BadRequest("name what to forget, in one way", hint="foreword forget ID…, --session ID or --project PATH")
    if not dry_run:
        refuse_agents()
    request: dict[str, Any] = {"session": session} if session else {"ids": ids or []}
    if project:
        [request["project"]] = project_query(project).values()
    if dry_run or not yes:
        plan = post_long("/api/forget", {**request, "dry_run": True}, doing="planning")
        _ask(plan, _print_forget_plan, "Forget this for good?", dry_run=dry_run, json=json)
        if ids:  # what was shown, and nothing that has begun with the same letters since
            request["ids"] = [each["id"] for each in plan["memories"]]
    receipt = post_long("/api/forget", {**request, "why": why}, doing="forgetting")
    output.write_json(receipt) if json else _print_receipt(receipt)
    if receipt["left"]:
        raise typer.Exit(1)


def scrub(dry_run: DryRun = False, json: Json = False) -> None:
    """Remove secrets that were not recognised when they were stored.

    Searches memories, events, sessions, injections, logs, the spool and the backups with the current rules and with
    the values of secret variables in your environment; then rewrites the files, so that no old byte is left. You can
    interrupt it and start it again.
    """
    from foreword.hook.client import secret_values

    values = [os.fsdecode(each) for each in secret_values()]  # of this environment
    answer = post_long("/api/scrub", {"dry_run": dry_run, "values": values}, doing="searching")
    output.exit_with_json(answer, enabled=json)
    rows = sorted(answer["tables"].items())
    lines = [[table, f"{each['seen']:,}", f"{each['changed']:,}"] for table, each in rows]
    output.table(lines, headings=("where", "searched", "would change" if dry_run else "changed"))
    for kind, times in answer["kinds"].items():
        output.write(f"{times:,} x {kind}")
    if not answer["kinds"]:
        output.write("no secrets were found")


def index() -> None:
    """Rebuild the search index.

    For when `foreword doctor` reports that it is damaged; the memories themselves are not touched.
    """
    count = post_long("/api/index", {}, doing="building the search index")["indexed"]
    output.write(f"{plural(count, 'memories')} indexed")


def _ask(
    plan: dict[str, Any], print_plan: Callable[[dict[str, Any]], None], question: str, *, dry_run: bool, json: bool
) -> None:
    """Print what would be done; end the command where that is all, else ask whether to do it."""
    if json and not dry_run:
        raise BadRequest("cannot ask for confirmation with --json", hint="look with --dry-run, then pass --yes")
    output.exit_with_json(plan, enabled=json)
    print_plan(plan)
    if dry_run:
        raise typer.Exit
    output.confirm(question)


def _print_tidy_plan(plan: dict[str, Any]) -> None:
    if not plan["by"]:
        output.write("Nothing to tidy.")
    changes = [(project, change) for project in plan["projects"] for change in project["amendments"]]
    heading = ""
    for project, change in changes[:MAX_LINES]:
        if project["project"] != heading:
            heading = project["project"]
            output.write(f"{project['name'] or heading}, {project['memories']:,} memories:")
        memory = change["memories"][-1 if change["what"] in ("merge", "confirm") else 0]
        output.write(f"  {change['what']:<9} {memory['id'] or 'new':<12}  {memory['title'][:70]}")
        output.write(f"            {change['why']}")
    if len(changes) > MAX_LINES:
        output.write(f"  … and more; --json lists all {sum(plan['by'].values()):,}")
    for what, times in plan["by"].items():
        output.write(f"{times:,} would be {DONE.get(what, what)}")


def _print_prune_plan(plan: dict[str, Any]) -> None:
    size = plan["size"]
    cap = f" of {sized(size['most'])}" if size["most"] else ", without a limit"
    output.write(f"the store holds {sized(size['used'])}{cap}")
    rows = [each for each in plan["classes"] if each["rows"]]
    lines = [[each["name"], f"{each['rows']:,}", f"{each['keep_days']} days", each["what"]] for each in rows]
    if lines:
        output.table(lines, headings=("class", "rows", "kept for", "what"))
    else:
        output.write("nothing is old enough to delete")
    if 0 < size["most"] < size["used"]:
        output.write("it is over its limit: the oldest events, texts and observations go until it fits")


def _print_forget_plan(plan: dict[str, Any]) -> None:
    output.table(_rows(plan["tables"], "to delete"), headings=("where", "what"))
    for memory in plan["memories"][:MAX_TITLES]:
        output.write(f"  {output.memory_line(memory)}")
    if others := len(plan["memories"][MAX_TITLES:]):
        output.write(f"  … and {others:,} more memories")
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
    for memory in answer["similar"]:
        output.write(f"  {output.memory_line(memory)}")
    output.write("Not removed by this:")
    for place in answer["not_ours"]:
        output.write(f"  {place}")
    output.write(f"{answer['undo'].capitalize()}.")
