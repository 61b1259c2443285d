"""Walk the links between memories, step by step and never into another project."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from foreword.audit import MemoryChange
from foreword.errors import BadRequest, NotFound
from foreword.models import UNIVERSAL, Link, Memory
from foreword.store import Store
from foreword.worker.requests import known

if TYPE_CHECKING:
    from foreword.store import Store


RELATIONS = ("supersedes", "resolves", "caused-by", "relates-to", "part-of")
MOST = 200  # memories of one walk


@dataclass(frozen=True)
class Node:
    """A memory of the graph, how it was come to, and what lies beyond it."""

    memory: Memory
    relation: str = ""  # of the link that led here
    forth: bool = True  # whether that link points here; else it points back
    beyond: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Walked:
    """What was come to: the start with all beyond it, and whether something was left out."""

    start: Node
    whole: bool


def walk(store: Store, start: Memory, *, hops: int, most: int = MOST) -> Walked:
    """Follow links of every relation both ways, the nearest first; each memory once, and none of another project."""
    seen: dict[str, Memory] = {start.id: start}
    came: dict[str, list[tuple[str, bool, str]]] = {}
    edge, whole = [start.id], True
    for _ in range(hops):
        steps = [(at, link) for at in edge for link in store.memories.links(at)]
        ends = [link.target if link.source == at else link.source for at, link in steps]
        found = {each.id: each for each in store.memories.get([end for end in ends if end not in seen])}
        edge = []
        for (at, link), end in zip(steps, ends, strict=True):
            if end in seen or end not in found or not _may_see(start, found[end]):
                continue
            if len(seen) >= most:
                whole = False
                break
            seen[end] = found[end]
            came.setdefault(at, []).append((link.relation, link.source == at, end))
            edge.append(end)
    return Walked(Node(start, beyond=_beyond(start.id, came, seen)), whole)


def _may_see(start: Memory, other: Memory) -> bool:
    return other.scope in (start.scope, UNIVERSAL) or other.scope.startswith("language:")


def _beyond(
    at: str, came: Mapping[str, Sequence[tuple[str, bool, str]]], seen: Mapping[str, Memory]
) -> tuple[Node, ...]:
    return tuple(
        Node(seen[end], relation=relation, forth=forth, beyond=_beyond(end, came, seen))
        for relation, forth, end in came.get(at, ())
    )


HOPS = 2
MOST_HOPS = 10


class Graph:
    """The links between memories, for people: no agent is given the graph."""

    def __init__(self, *, store: Callable[[], Store], now: Callable[[], float]) -> None:
        self._store, self._now = store, now

    def of(self, id: str, *, hops: int = HOPS) -> dict[str, Any]:
        """Return what a memory is linked to within so many steps."""
        start = known(self._store(), id)
        walked = walk(self._store(), start, hops=min(hops or HOPS, MOST_HOPS))
        return {
            **_told(walked.start),
            "whole": walked.whole,
        }

    def link(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a link between two memories, or with `remove` take it away."""
        source, relation, target = (str(told.get(name) or "") for name in ("source", "relation", "target"))
        if relation not in RELATIONS:
            raise BadRequest(f"unknown relation {relation!r}", hint=f"one of {', '.join(RELATIONS)}")
        one, other = (known(self._store(), id) for id in (source, target))
        link = Link(one.id, relation, other.id)
        unchanged = ((one, one), (other, other))  # the log says which memories it is about
        there = link in self._store().memories.links(one.id)
        if told.get("remove"):
            if not there:
                raise NotFound(f"{source} {relation} {target} is no link", hint=f"`foreword graph {source}` shows them")
            memory_change = MemoryChange("unlink", _said(link), unlinked=(link,), changed=unchanged)
        else:
            self._refuse(one, other)
            if there:
                return {"link": vars(link), "entry": 0}
            memory_change = MemoryChange("link", _said(link), links=(link,), changed=unchanged)
        [entry] = self._store().audit.apply([memory_change], who="user", at=self._now())
        return {"link": vars(link), "entry": entry.number}

    def _refuse(self, one: Memory, other: Memory) -> None:
        if one.id == other.id:
            raise BadRequest("a memory cannot be linked to itself", hint="give two ids")
        both = [each.scope for each in (one, other) if each.scope.startswith("project:")]
        if len(set(both)) > 1:
            raise BadRequest(
                f"{one.id} and {other.id} are of two projects", hint="links stay within one; `foreword project merge`"
            )


def _told(node: Node) -> dict[str, Any]:
    told = {"relation": node.relation, "forth": node.forth} if node.relation else {}
    return {**told, **_about(node.memory), "beyond": [_told(each) for each in node.beyond]}


def _about(memory: Memory) -> dict[str, Any]:
    return {name: getattr(memory, name) for name in ("id", "kind", "title", "status", "scope")}


def _said(link: Link) -> str:
    return f"{link.source} {link.relation} {link.target}"
