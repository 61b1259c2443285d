"""`graph`: what a memory is linked to; and who calls a function and what it calls, read from the files on demand."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder, full_id, route
from foreword.cli.options import Json, Project


def graph(
    id: Annotated[str, typer.Argument(metavar="[ID]", help="A memory's id, or enough of its beginning.")] = "",
    *,
    calls: Annotated[str, typer.Option(metavar="NAME", help="A function or Class.method, instead of a memory.")] = "",
    json: Json = False,
    project: Project = "",
) -> None:
    """Show a memory's links, or a function's callers and calls.

    With --calls, the project's source files are read now; nothing is stored. Calls are matched by name, not by type:
    `a.save()` may call any `save`, and where several are defined, their number is printed.

    \b
    Examples:
      foreword graph dec-7k2m9qxw
      foreword graph --calls Store.append
    """
    if bool(id) == bool(calls):
        raise typer.BadParameter("give either the id of a memory, or --calls NAME")
    if calls:
        _calls(calls, folder(project), json=json)
    else:
        _links(id, json=json)


def _links(id: str, *, json: bool) -> None:
    client = connect()
    found = client.get(route("/api/memories", full_id(client, id)), full=1)
    if json:
        output.write_json({name: found[name] for name in ("memory", "links")})
        return
    output.write(_memory(found["memory"]))
    for link in found["links"]:
        arrow = f"{link['relation']} ->" if link["forth"] else f"<- {link['relation']}"
        output.write(f"  {arrow} {_memory(link)}")


def _memory(memory: dict[str, Any]) -> str:
    status = "" if memory["status"] == "active" else f" ({memory['status']})"
    return f"[{memory['kind']}] {memory['id']}  {memory['title']}{status}"


def _calls(name: str, path: str, *, json: bool) -> None:
    from rich.progress import Progress

    from foreword.code.callgraph import read_calls
    from foreword.projects import resolve

    stderr = output.console(stderr=True)
    with Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task("reading files", total=None)
        root = resolve(path).root
        read = read_calls(root, tick=lambda done, total: bar.update(task, completed=done, total=total))
    if not read.complete:
        output.warn([f"only {read.files} files were read within the limits of time and size"])
    places = read.named(name)
    found = {"called_by": read.callers(places), "calls": read.called(places)}
    if json:
        rows = {name: [call._asdict() for call in calls] for name, calls in found.items()}
        about = {"files": read.files, "complete": read.complete}
        output.write_json({"definitions": [vars(place) for place in places], **rows, **about})
        return
    for place in places:
        output.write(f"{place.signature or place.function}  {place.file}:{place.line}")
    for part, calls in found.items():
        heading = part.replace("_", " ")
        output.write(f"\n{heading}:" if calls else f"\n{heading}: nothing that is defined here")
        for call in calls:
            mark = f"  (one of {call.several})" if call.several else ""
            output.write(f"  {call.function or '(the file itself)'}  {call.file}:{call.line}{mark}")
