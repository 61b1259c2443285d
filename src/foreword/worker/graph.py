"""An id -> its part of the graph as JSON; a link that somebody wants or does not want -> kept, logged, undoable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from foreword.amendments import Amendment
from foreword.errors import BadRequest, NotFound
from foreword.graph import RELATIONS, Node, walk
from foreword.store.sqlite import Store
from foreword.types import Link, Memory
from foreword.worker.asked import known

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
        there = link in self._store().linked(one.id)
        if told.get("remove"):
            if not there:
                raise NotFound(f"{source} {relation} {target} is no link", hint=f"`foreword graph {source}` shows them")
            amendment = Amendment("unlink", _said(link), unlinked=(link,), changed=unchanged)
        else:
            self._refuse(one, other)
            if there:
                return {"link": vars(link), "entry": 0}
            amendment = Amendment("link", _said(link), links=(link,), changed=unchanged)
        [entry] = self._store().amend([amendment], who="user", at=self._now())
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
