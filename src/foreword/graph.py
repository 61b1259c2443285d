"""A memory -> what it is linked to, step by step, and what it might be linked to; never another project's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foreword.details import text
from foreword.types import UNIVERSAL, Hit, Link, Memory, Query

if TYPE_CHECKING:
    from foreword.store.sqlite import Store

RELATIONS = ("supersedes", "resolves", "caused-by", "relates-to", "part-of")
MOST = 200  # memories of one walk
SUGGESTED = 5
CANDIDATES = 40
OF_SESSION = 200  # memories of the same session that are looked at
TOGETHER = 1.0  # what it weighs that two come from one session; code weighs by its rarity, some 2 to 10
FIXES = 3.0  # that one fixed the other
# Kinds that say something of each other where they share code; any others must share more.
PAIRS = {
    ("change", "failure"): "resolves",
    ("decision", "failure"): "relates-to",
    ("pattern", "failure"): "relates-to",
    ("decision", "change"): "relates-to",
    ("failure", "failure"): "relates-to",
    ("decision", "decision"): "relates-to",
    ("learning", "failure"): "relates-to",
    ("goal", "decision"): "relates-to",
}


@dataclass(frozen=True)
class Node:
    """A memory of the graph, how it was come to, and what lies beyond it."""

    memory: Memory
    relation: str = ""  # of the link that led here
    forth: bool = True  # whether that link points here; else it points back
    beyond: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Suggestion:
    """A link that could be, and why."""

    link: Link
    memory: Memory  # the other end
    reason: str
    weight: float


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


def suggested(store: Store, start: Memory, *, most: int = SUGGESTED) -> tuple[Suggestion, ...]:
    """What shares code, a session or a fix with a memory and is not linked to it, best first, each with its reason."""
    linked = {end for link in store.linked(start.id) for end in (link.source, link.target)} | {start.id}
    near: dict[str, Memory] = {}
    weight: dict[str, float] = {}
    for hit in _by_code(store, start):
        near[hit.memory.id] = hit.memory
        weight[hit.memory.id] = hit.score
    for memory in store.of_session(start.session, limit=OF_SESSION) if start.session else ():
        near[memory.id] = memory
        weight[memory.id] = weight.get(memory.id, 0.0) + TOGETHER
    told = [
        _suggestion(start, memory, weight[id])
        for id, memory in near.items()
        if id not in linked and memory.status == "active" and _may_see(start, memory)
    ]
    best = sorted((each for each in told if each), key=lambda each: (-each.weight, each.memory.id))
    return tuple(best[:most])


def _may_see(start: Memory, other: Memory) -> bool:
    return other.scope in (start.scope, UNIVERSAL) or other.scope.startswith("language:")


def _beyond(
    at: str, came: Mapping[str, Sequence[tuple[str, bool, str]]], seen: Mapping[str, Memory]
) -> tuple[Node, ...]:
    return tuple(
        Node(seen[end], relation=relation, forth=forth, beyond=_beyond(end, came, seen))
        for relation, forth, end in came.get(at, ())
    )


def _by_code(store: Store, start: Memory) -> Sequence[Hit]:
    votes = dict.fromkeys((*start.files, *start.functions), 1.0)
    return store.by_code(Query(scopes=(start.scope,), limit=CANDIDATES), votes) if votes else ()


def _suggestion(start: Memory, other: Memory, weight: float) -> Suggestion | None:
    shared = [each for each in (*start.functions, *start.files) if each in (*other.functions, *other.files)]
    together = bool(start.session) and start.session == other.session
    link, pair = _link(start, other)
    if not pair or not (shared or (together and {start.kind, other.kind} & {"decision", "failure"})):
        return None
    fixes = _fixes(start, other) or _fixes(other, start)
    reasons = [
        *(["the change stands in what fixed the failure"] if fixes else []),
        *([f"both name {', '.join(shared[:2])}"] if shared else []),
        *(["the same session"] if together else []),
    ]
    return Suggestion(link, other, "; ".join(reasons), weight + (FIXES if fixes else 0.0))


def _link(one: Memory, other: Memory) -> tuple[Link, bool]:
    if (one.kind, other.kind) in PAIRS:
        return Link(one.id, PAIRS[one.kind, other.kind], other.id), True
    relation = PAIRS.get((other.kind, one.kind), "")
    return Link(other.id, relation or "relates-to", one.id), bool(relation)


def _fixes(change: Memory, failure: Memory) -> bool:
    told = text(failure.detail, "fixed_by") if (failure.kind, change.kind) == ("failure", "change") else ""
    return any(name and name.rpartition(".")[2] in told for name in change.functions)
