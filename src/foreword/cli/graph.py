"""`graph`: what a memory is linked to; and who calls a function and what it calls, read from the files on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, folder, full_id, refuse_agents, route
from foreword.cli.options import Json, Project
from foreword.models import RELATIONS

if TYPE_CHECKING:
    from foreword.code.callgraph import Calls, Node, Place


def graph(
    id: Annotated[str, typer.Argument(metavar="[ID]", help="A memory's id, or enough of its beginning.")] = "",
    *,
    calls: Annotated[str, typer.Option(metavar="NAME", help="A function or Class.method, instead of a memory.")] = "",
    link: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="RELATION TARGET", help=f"Link the memory to another: {', '.join(RELATIONS)}."),
    ] = None,
    unlink: Annotated[
        tuple[str, str] | None, typer.Option(metavar="RELATION TARGET", help="Remove a link of the memory.")
    ] = None,
    hops: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=10, help="Steps to follow (default 2; calls 1).")
    ] = None,
    seconds: Annotated[float, typer.Option(metavar="S", min=0.1, help="Time limit for reading files.")] = 30.0,
    json: Json = False,
    project: Project = "",
) -> None:
    """Show a memory's links, or a function's callers and calls.

    With --calls, the project's source files are read now; nothing is stored. Calls are matched by name, not by type:
    `a.save()` may call any `save`, and where several are defined, their number is printed.

    \b
    Examples:
      foreword graph dec-7k2m9qxw
      foreword graph chg-2w9d4hqa --link resolves fai-m3x8apk2
      foreword graph --calls Store.append --hops 3
    """
    if bool(id) == bool(calls):
        raise typer.BadParameter("give either the id of a memory, or --calls NAME")
    if calls:
        _calls(calls, folder(project), hops=hops or 1, seconds=seconds, json=json)
    elif link or unlink:
        _link(id, link or unlink or ("", ""), remove=link is None, json=json)
    else:
        _links(id, hops=hops, json=json)


def _link(source: str, relation_and_target: tuple[str, str], *, remove: bool, json: bool) -> None:
    refuse_agents()
    client = connect()
    relation, target = relation_and_target
    request = {"source": full_id(client, source), "relation": relation, "target": full_id(client, target)}
    answer = client.post("/api/links", {**request, "remove": True} if remove else request)
    if json:
        output.write_json(answer)
        return
    state = "removed" if remove else "linked" if answer["entry"] else "already linked"
    output.write(f"{' '.join(answer['link'].values())}: {state}")


def _links(id: str, *, hops: int | None, json: bool) -> None:
    client = connect()
    answer = client.get(route("/api/graph", full_id(client, id)), hops=hops)
    if json:
        output.write_json(answer)
        return
    output.write(_memory(answer))

    def line(node: dict[str, Any]) -> str:
        return f"{node['relation']} -> {_memory(node)}" if node["forth"] else f"<- {node['relation']} {_memory(node)}"

    _print_tree(answer["beyond"], line=line, children=lambda node: node["beyond"])
    if not answer["whole"]:
        output.remark("there are more links further on; --hops follows them")


def _memory(node: dict[str, Any]) -> str:
    status = "" if node["status"] == "active" else f" ({node['status']})"
    return f"[{node['kind']}] {node['id']}  {node['title']}{status}"


def _calls(name: str, path: str, *, hops: int, seconds: float, json: bool) -> None:
    from rich.progress import Progress

    from foreword.code.callgraph import read_calls
    from foreword.projects import resolve

    stderr = output.console(stderr=True)
    with Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task("reading files", total=None)
        read = read_calls(
            resolve(path).root,
            seconds=seconds,
            tick=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if not read.complete:
        output.warn([f"only {read.files} files were read within the limits of time and size; --seconds gives more"])
    places = read.named(name)
    callers, called = _unique(read.callers(places, hops=hops)), _unique(read.called(places, hops=hops))
    if json:
        output.write_json(_calls_as_json(read, places, callers, called))
        return
    for place in places:
        output.write(f"{place.signature or place.function}  {place.file}:{place.line}")
    for heading, nodes in (("called by", callers), ("calls", called)):
        output.write(f"\n{heading}:" if nodes else f"\n{heading}: nothing that is defined here")
        _print_tree(nodes, line=_call, children=lambda node: node.further)


def _call(node: Node) -> str:
    name = node.place.function or "(the file itself)"
    mark = "  (see above)" if node.again else f"  (one of {node.several})" if node.several else ""
    return f"{name}  {node.file}:{node.line}{mark}"


def _unique(nodes: Sequence[Node]) -> list[Node]:
    """Drop repeated calls: where a name is defined several times, one call may be of any of them."""
    seen: dict[tuple[str, str, int], Node] = {}
    for node in nodes:
        seen.setdefault((node.place.function, node.file, node.line), node)
    return list(seen.values())


def _print_tree(nodes: Sequence[Any], *, line: Callable[[Any], str], children: Callable[[Any], Sequence[Any]]) -> None:
    left = [(node, 1) for node in reversed(nodes)]
    while left:
        node, depth = left.pop()
        output.write(f"{'  ' * depth}{line(node)}")
        left += [(each, depth + 1) for each in reversed(children(node))]


def _calls_as_json(
    read: Calls, places: Sequence[Place], callers: Sequence[Node], called: Sequence[Node]
) -> dict[str, Any]:
    def tree(node: Node, name: str) -> dict[str, Any]:
        further = [tree(each, name) for each in node.further]
        fields = {"file": node.file, "line": node.line, "again": node.again, "several": node.several}
        return {"function": node.place.function, **fields, name: further}

    return {
        "definitions": [
            {"function": each.function, "file": each.file, "line": each.line, "signature": each.signature}
            for each in places
        ],
        "called_by": [tree(node, "called_by") for node in callers],
        "calls": [tree(node, "calls") for node in called],
        "files": read.files,
        "bytes": read.size,
        "complete": read.complete,
    }
