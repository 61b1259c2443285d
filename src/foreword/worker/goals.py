"""Keep a project's goals as memories: add one, list them, say that one is reached; each change is in the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from foreword.audit import MemoryChange
from foreword.encoding import storable
from foreword.errors import NotFound
from foreword.models import Memory, Project, Query
from foreword.redact import redact
from foreword.store import Store
from foreword.worker import requests
from foreword.worker.project_lookup import Registry

MOST = 1000  # goals of a project that are listed


class Goals:
    """The goals of each project; nobody lists another's."""

    def __init__(
        self,
        *,
        store: Callable[[], Store],
        registry: Registry,
        refuse: Callable[[Project], None],  # where nothing may be kept
        now: Callable[[], float],
    ) -> None:
        self._store, self._registry, self._refuse, self._now = store, registry, refuse, now

    def every(self, project_path: str, *, done: bool = False) -> dict[str, Any]:
        """Return a project's open goals, older before newer; with *done* those that are reached behind them."""
        project = self._registry.at(project_path)
        query = Query(scopes=(project.scope,), kinds=("goal",), limit=MOST)
        goals = sorted((hit.memory for hit in self._store().search.by_recency(query)), key=lambda goal: goal.created)
        reached = [goal for goal in goals if _is_done(goal)]
        still_open = [goal for goal in goals if not _is_done(goal)]
        return {
            "project": project.key,
            "goals": [_as_json(goal) for goal in still_open + (reached if done else [])],
            "open": len(still_open),
            "done": len(reached),
        }

    def add(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a new goal."""
        given = {name: told.get(name) for name in ("title", "body", "project_path")}
        goal = requests.memory(
            {**given, "kind": "goal", "detail": {"status": "open"}}, find_project=self._writable, now=self._now()
        )
        goal = replace(goal, created=self._now(), confirmed=self._now(), uid=requests.new_uid())
        memory_change = MemoryChange("goal", f"new: {goal.title}", new=(goal,))
        [entry] = self._store().audit.apply([memory_change], who="user", at=self._now())
        return {"goal": _as_json(self._goal(entry.memories[0]))}

    def reach(self, id: str, told: Mapping[str, Any]) -> dict[str, Any]:
        """Mark a goal as done, with what came of it."""
        outcome = redact(storable(str(told.get("outcome") or ""))).strip()
        before = self._goal(id)
        detail = {**before.detail, "status": "done", **({"outcome": outcome} if outcome else {})}
        if detail != before.detail:
            after = replace(before, detail=detail, confirmed=self._now())
            memory_change = MemoryChange("goal", f"done: {before.title}", changed=((before, after),))
            self._store().audit.apply([memory_change], who="user", at=self._now())
        return {"goal": _as_json(self._goal(id))}

    def _writable(self, folder: str) -> Project:
        project = self._registry.at(folder)
        self._refuse(project)
        self._registry.saw(project)
        return project

    def _goal(self, id: str) -> Memory:
        found = self._store().memories.get([id])
        if not found or found[0].kind != "goal" or found[0].status != "active":
            raise NotFound(f"there is no goal {id!r}", hint="`foreword goal list` tells their ids")
        return found[0]


def _is_done(goal: Memory) -> bool:
    return goal.detail.get("status") == "done"


def _as_json(goal: Memory) -> dict[str, Any]:
    return {
        "id": goal.id,
        "title": goal.title,
        "body": goal.body,
        "status": "done" if _is_done(goal) else "open",
        "outcome": str(goal.detail.get("outcome") or ""),
        "project": goal.project,
        "created": goal.created,
    }
