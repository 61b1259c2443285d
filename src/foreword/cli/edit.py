"""`review`, `revise`, `pin`, `supersede`, `undo` and `log`: change memories, and take it back."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder, project_query, refuse_agents, route
from foreword.cli.memories import warn_of_secrets
from foreword.cli.options import AllProjects, Files, Id, Json, Project, ProjectOrKey, Scope, Since

review_app = typer.Typer(name="review", rich_markup_mode=None)
Title = Annotated[str, typer.Option("--title", metavar="TEXT", help="A better wording.")]


@review_app.callback(invoke_without_command=True)
def review(context: typer.Context, everything: AllProjects = False, project: Project = "", json: Json = False) -> None:
    """List your notes, and decide on them: each becomes what it is (a decision, a rule, a goal), or goes."""
    if context.invoked_subcommand is not None:
        return
    answer = connect().get("/api/review", project_path="" if everything else folder(project))
    output.exit_with_json(answer, enabled=json)
    for memory in answer["notes"]:
        output.write(f"{memory['id']}  [note] {memory['title']}")
        output.write(f"  {output.age(memory['created'])}; {memory['project'] or memory['scope']}")
    if not answer["waiting"]:
        output.remark("nothing to review")


@review_app.command()
def promote(
    id: Id,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="decision, pattern, learning, preference, goal, …")],
    scope: Scope = "",
    title: Title = "",
) -> None:
    """Turn a note into another kind of memory."""
    _decide("promote", id, **{"as": kind}, scope=scope, title=title)


@review_app.command()
def discard(id: Id) -> None:
    """Discard a note."""
    _decide("discard", id)


def revise(
    id: Id,
    *,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="What is worth knowing, in one line.")] = None,
    body: Annotated[str | None, typer.Option(metavar="TEXT", help="More about it; `-` reads stdin.")] = None,
    why: Annotated[str | None, typer.Option(metavar="TEXT", help="The reason for a decision.")] = None,
    fixed_by: Annotated[str | None, typer.Option(metavar="TEXT", help="What fixed a failure.")] = None,
    file: Files = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Another kind; the id stays the same.")] = None,
    scope: Annotated[str | None, typer.Option(metavar="SCOPE", help="project, universal or language:NAME.")] = None,
) -> None:
    """Change what a memory says.

    Only what you name changes; an empty text removes it, and --file replaces the whole list. Later sessions do not
    overwrite your words. `foreword undo` takes it back.
    """
    refuse_agents()
    body = sys.stdin.read() if body == "-" else body
    files = [each for each in file if each] if file is not None else None
    changes: dict[str, Any] = {"title": title, "body": body, "why": why, "fixed_by": fixed_by, "files": files}
    answer = connect().post(route("/api/memories", id), {**changes, "kind": kind, "scope": scope})
    _print_change(answer, f"revised: {answer['entry']['why']}")
    warn_of_secrets(changes)


def pin(id: Id, off: Annotated[bool, typer.Option("--off", help="Remove the pin.")] = False) -> None:
    """Pin a memory: it ranks higher, whether or not it is used."""
    refuse_agents()
    answer = connect().post("/api/pin", {"id": id, "off": off})
    _print_change(answer, "no longer pinned" if off else "pinned")


def supersede(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The memory that is no longer true.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The memory that replaces it.")],
) -> None:
    """Replace a memory; the old one is kept but no longer injected."""
    refuse_agents()
    answer = connect().post("/api/supersede", {"old": old, "new": new})
    _print_change(answer, f"supersedes {answer['memory']['id']}", changed="by")


def undo(
    which: Annotated[str, typer.Argument(metavar="[ENTRY|RUN]", help="Of the log (default: the last here).")] = "",
    project: ProjectOrKey = "",
) -> None:
    """Take back a change: a revision, a pin, a run of tidy.

    What has changed again since then stays as it is. An undo is an entry of the log too, and can be undone. What was
    forgotten cannot be brought back.
    """
    refuse_agents()
    request: dict[str, Any] = {"entry": int(which)} if which.isdecimal() else {"run": which} if which else {}
    answer = connect().post("/api/undo", {**request, **project_query(project)})
    _print_entries(answer["undone"])
    for number, why in answer["refused"].items():
        output.error(f"entry {number} was not undone: {why}")
    if not answer["undone"]:
        raise typer.Exit(1)


def log(
    *,
    memory: Annotated[str, typer.Option("--memory", metavar="ID", help="Only changes of this memory.")] = "",
    project: ProjectOrKey = "",
    everything: AllProjects = False,
    since: Since = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Maximum number of entries.")] = 50,
    json: Json = False,
) -> None:
    """List who changed and forgot what, newest first.

    `foreword undo NUMBER` takes an entry back.
    """
    where = {} if everything or (memory and not project) else project_query(project)
    entries = connect().get("/api/log", memory=memory, since=since or "", limit=limit, **where)["log"]
    output.exit_with_json({"log": entries}, enabled=json)
    _print_entries(entries)
    if not entries:
        output.remark("no entries since then" if since else "no entries yet")


def _decide(decision: str, id: str, **options: Any) -> None:
    refuse_agents()
    answer = connect().post("/api/review", {"do": decision, "id": id, **options})
    memory = answer["memory"]
    done = f"stored for {memory['scope']}" if memory["status"] == "active" else memory["status"]
    _print_change(answer, done)


def _print_change(answer: dict[str, Any], outcome: str, *, changed: str = "memory") -> None:
    """Print the memory that a change concerns, what was done, and how to take it back."""
    output.write(output.memory_line(answer[changed]))
    output.remark(f"{outcome}; `foreword undo {answer['entry']['number']}` takes it back")


def _print_entries(entries: Iterable[dict[str, Any]]) -> None:
    """Print each entry in a line: when, its number, who, what, which memories, why, and whether it was undone."""
    for entry in entries:
        about = ": ".join(filter(None, (entry["about"], entry["why"])))
        notes = "; ".join(filter(None, (entry["run"], f"undone by {entry['undone']}" if entry["undone"] else "")))
        head = f"{output.local_time(entry['at'])}  {entry['number']:>4}  {entry['who']:<12}  {entry['done']:<12}"
        output.write(f"{head}  {about}{f'  ({notes})' if notes else ''}")
