"""Goals -> the tree they form, open ones first; whether one may be part of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foreword.details import text
from foreword.errors import BadRequest
from foreword.types import Memory


@dataclass(frozen=True)
class Branch:
    """A goal and what is part of it."""

    goal: Memory
    parts: tuple[Branch, ...] = ()


def is_done(goal: Memory) -> bool:
    return goal.detail.get("status") == "done"


def parent_of(goal: Memory) -> str:
    """The id of the goal that this one is part of; empty for none."""
    return text(goal.detail, "parent")


def tree(goals: Sequence[Memory], *, done: bool = False) -> tuple[Branch, ...]:
    """The goals, each once, under the one they are part of; with *done* also those that were reached.

    Open ones and missions come first, older before newer; one whose parent is not there stands by itself.
    """
    shown = {goal.id: goal for goal in goals if done or not is_done(goal)}
    children: dict[str, list[Memory]] = {}
    for goal in sorted(shown.values(), key=_order):
        parent = parent_of(goal)
        children.setdefault(parent if parent in shown and not _is_above(goal, parent, shown) else "", []).append(goal)
    return _branches("", children)


def refuse_part(goal: Memory, parent: Memory, *, known: Mapping[str, Memory]) -> None:
    """BadRequest where *goal* cannot be part of *parent*."""
    if parent.kind != "goal" or parent.scope != goal.scope:
        raise BadRequest(f"{parent.id} is no goal of this project", hint="`foreword goal list` tells their ids")
    if goal.id and (goal.id == parent.id or _is_above(goal, parent.id, known)):
        raise BadRequest(f"{parent.id} is part of {goal.id} itself", hint="a goal cannot be part of what is part of it")


def _is_above(goal: Memory, below: str, known: Mapping[str, Memory]) -> bool:
    """Whether the way up from *below* comes to *goal*."""
    passed: set[str] = set()
    while below != goal.id and below in known and below not in passed:
        passed.add(below)
        below = parent_of(known[below])
    return below == goal.id


def _branches(parent: str, children: Mapping[str, Sequence[Memory]]) -> tuple[Branch, ...]:
    return tuple(Branch(goal, _branches(goal.id, children)) for goal in children.get(parent, ()))


def _order(goal: Memory) -> tuple[bool, bool, float, str]:
    return is_done(goal), goal.detail.get("mission") is not True, goal.created, goal.id
