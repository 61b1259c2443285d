"""Walk the links between memories, step by step and never into another project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foreword.types import UNIVERSAL, Memory

if TYPE_CHECKING:
    from foreword.store.sqlite import Store

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
        steps = [(at, link) for at in edge for link in store.linked(at)]
        ends = [link.target if link.source == at else link.source for at, link in steps]
        found = {each.id: each for each in store.by_id([end for end in ends if end not in seen])}
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
