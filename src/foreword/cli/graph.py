"""A memory's id -> what it is linked to; a function's name -> who calls it and whom it calls, in files as they are."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json, Project
from foreword.cli.speaker import refuse_agents
from foreword.models import RELATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from foreword.code.callgraph import Calls, Node, Place

Source = Annotated[str, typer.Argument(metavar="SOURCE", help="The id of a memory.")]
Relation = Annotated[str, typer.Argument(metavar="RELATION", help=f"One of {', '.join(RELATIONS)}.")]
Target = Annotated[str, typer.Argument(metavar="TARGET", help="The id of another one.")]


def graph(
    id: Annotated[str, typer.Argument(metavar="[ID]", help="A memory: what it is linked to.")] = "",
    *,
    calls: Annotated[
        str, typer.Option(metavar="NAME", help="A function or Class.method: who calls it, whom it calls.")
    ] = "",
    hops: Annotated[int, typer.Option(metavar="N", min=0, max=10, help="Go so many steps; 0: 2, of calls 1.")] = 0,
    seconds: Annotated[float, typer.Option(metavar="S", min=0.1, help="Read files for at most so long.")] = 30.0,
    json: Json = False,
    project: Project = "",
) -> None:
    """Show what a memory is linked to, or who calls a function and whom it calls.

    Of a memory: links of every relation, both ways, within its project. No agent is given the graph.

    Of a function: the project's source files are read now, and nothing is stored. Calls are matched by name, not by
    type: `a.save()` may call any `save`, and where several are defined it says how many. Where NAME itself is defined
    more than once, all its definitions are listed; Class.method chooses one.

    \b
    Examples:
      foreword graph dec-7k2m9qxw
      foreword graph --calls offer_slot
      foreword graph --calls Store.append --hops 3
    """
    if bool(id) == bool(calls):
        raise typer.BadParameter("a graph begins at one thing: give the id of a memory, or --calls NAME")
    if id:
        _of_memory(id, hops=hops, json=json)
        return
    hops = hops or 1
    from foreword.code.callgraph import read_calls

    root = _root(door.folder(project))
    with _progress() as tick:
        read = read_calls(root, seconds=seconds, tick=tick)
    if not read.complete:
        screen.warn(
            [f"not all was read: {read.files} files in the time and size that are allowed; --seconds gives more"]
        )
    places = read.named(calls)
    callers, called = _each_once(read.callers(places, hops=hops)), _each_once(read.called(places, hops=hops))
    if json:
        screen.as_json(_answer(read, places, callers, called))
        return
    for place in places:
        screen.say(f"{place.signature or place.function}  {place.file}:{place.line}")
    _print("called by", callers)
    _print("calls", called)


def link(source: Source, relation: Relation, target: Target, json: Json = False) -> None:
    """Link two memories of a project.

    \b
    Example:
      foreword link chg-2w9d4hqa resolves fai-m3x8apk2
    """
    _link({"source": source, "relation": relation, "target": target}, json=json)


def unlink(source: Source, relation: Relation, target: Target, json: Json = False) -> None:
    """Take away a link between two memories.

    \b
    Example:
      foreword unlink chg-2w9d4hqa resolves fai-m3x8apk2
    """
    _link({"source": source, "relation": relation, "target": target, "remove": True}, json=json)


def _link(told: dict[str, Any], *, json: bool) -> None:
    refuse_agents(os.environ)
    answer = door.worker(door.here()).post("/api/links", told)
    if json:
        screen.as_json(answer)
        return
    link = " ".join(answer["link"].values())
    screen.say(f"{link}: {'taken away' if told.get('remove') else 'linked' if answer['entry'] else 'linked already'}")


def _of_memory(id: str, *, hops: int, json: bool) -> None:
    answer = door.worker(door.here()).get(door.path("/api/graph", id), hops=hops or None)
    if json:
        screen.as_json(answer)
        return
    screen.say(_memory(answer))
    left = [(each, 1) for each in reversed(answer["beyond"])]
    while left:
        node, depth = left.pop()
        arrow = f"{node['relation']} ->" if node["forth"] else f"<- {node['relation']}"
        screen.say(f"{'  ' * depth}{arrow} {_memory(node)}")
        left += [(each, depth + 1) for each in reversed(node["beyond"])]
    if not answer["whole"]:
        screen.aside("there is more, further on")


def _memory(node: dict[str, Any]) -> str:
    status = "" if node["status"] == "active" else f" ({node['status']})"
    return f"[{node['kind']}] {node['id']}  {node['title']}{status}"


def _each_once(nodes: Sequence[Node]) -> list[Node]:
    """Where NAME is defined several times, a call may be of any of them: it is one call all the same."""
    seen: dict[tuple[str, str, int], Node] = {}
    for node in nodes:
        seen.setdefault((node.place.function, node.file, node.line), node)
    return list(seen.values())


def _root(folder: str) -> str:
    from foreword.projects import resolve

    return resolve(folder).root


def _print(heading: str, nodes: Sequence[Node]) -> None:
    screen.say(f"\n{heading}:" if nodes else f"\n{heading}: nothing that is defined here")
    left = [(node, 1) for node in reversed(nodes)]
    while left:
        node, depth = left.pop()
        name = node.place.function or "(the file itself)"
        remark = "  (see above)" if node.again else f"  (one of {node.several})" if node.several else ""
        screen.say(f"{'  ' * depth}{name}  {node.file}:{node.line}{remark}")
        left += [(each, depth + 1) for each in reversed(node.further)]


def _answer(read: Calls, places: Sequence[Place], callers: Sequence[Node], called: Sequence[Node]) -> dict[str, Any]:
    return {
        "definitions": [
            {"function": each.function, "file": each.file, "line": each.line, "signature": each.signature}
            for each in places
        ],
        "called_by": [_as_json(node, "called_by") for node in callers],
        "calls": [_as_json(node, "calls") for node in called],
        "files": read.files,
        "bytes": read.size,
        "complete": read.complete,
    }


def _as_json(node: Node, name: str) -> dict[str, Any]:
    return {
        "function": node.place.function,
        "file": node.file,
        "line": node.line,
        "again": node.again,
        "several": node.several,
        name: [_as_json(each, name) for each in node.further],
    }


@contextmanager
def _progress() -> Iterator[Callable[[int, int], object]]:
    """A bar on a terminal's stderr; where there is none, silence."""
    from rich.progress import Progress

    beside = screen.console(stderr=True)
    with Progress(console=beside, transient=True, disable=not beside.is_terminal) as bar:
        task = bar.add_task("reading files", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
