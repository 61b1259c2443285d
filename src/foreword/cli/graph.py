"""`graph`: what a memory is linked to; and who calls a function and what it calls, read from the files on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder, full_id, route
from foreword.cli.options import Json, Project

if TYPE_CHECKING:
    from foreword.code.callgraph import Node


def graph(
    id: Annotated[str, typer.Argument(metavar="[ID]", help="A memory's id, or enough of its beginning.")] = "",
    *,
    calls: Annotated[str, typer.Option(metavar="NAME", help="A function or Class.method, instead of a memory.")] = "",
    hops: Annotated[int, typer.Option(metavar="N", min=1, max=10, help="Steps to follow, with --calls.")] = 1,
    json: Json = False,
    project: Project = "",
) -> None:
    """Show a memory's links, or a function's callers and calls.

    With --calls, the project's source files are read now; nothing is stored. Calls are matched by name, not by type:
    `a.save()` may call any `save`, and where several are defined, their number is printed.

    \b
    Examples:
      foreword graph dec-7k2m9qxw
      foreword graph --calls Store.append --hops 3
    """
    if bool(id) == bool(calls):
        raise typer.BadParameter("give either the id of a memory, or --calls NAME")
    if calls:
        _calls(calls, folder(project), hops=hops, json=json)
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


def _calls(name: str, path: str, *, hops: int, json: bool) -> None:
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
    callers, called = _unique(read.callers(places, hops=hops)), _unique(read.called(places, hops=hops))
    if json:
        fields = ("function", "file", "line", "signature")
        found = {
            "definitions": [{name: getattr(each, name) for name in fields} for each in places],
            "called_by": [_as_json(node, "called_by") for node in callers],
            "calls": [_as_json(node, "calls") for node in called],
        }
        output.write_json({**found, "files": read.files, "bytes": read.size, "complete": read.complete})
        return
    for place in places:
        output.write(f"{place.signature or place.function}  {place.file}:{place.line}")
    for heading, nodes in (("called by", callers), ("calls", called)):
        output.write(f"\n{heading}:" if nodes else f"\n{heading}: nothing that is defined here")
        _print_calls(nodes)


def _unique(nodes: Sequence[Node]) -> list[Node]:
    """Drop repeated calls: where a name is defined several times, one call may be of any of them."""
    seen: dict[tuple[str, str, int], Node] = {}
    for node in nodes:
        seen.setdefault((node.place.function, node.file, node.line), node)
    return list(seen.values())


def _print_calls(nodes: Sequence[Node], *, depth: int = 1) -> None:
    for node in nodes:
        name = node.place.function or "(the file itself)"
        mark = "  (see above)" if node.again else f"  (one of {node.several})" if node.several else ""
        output.write(f"{'  ' * depth}{name}  {node.file}:{node.line}{mark}")
        _print_calls(node.further, depth=depth + 1)


def _as_json(node: Node, name: str) -> dict[str, Any]:
    fields = {"file": node.file, "line": node.line, "again": node.again, "several": node.several}
    return {"function": node.place.function, **fields, name: [_as_json(each, name) for each in node.further]}
