"""What people say of goals -> memories that tell it, each change logged; a project's goals as a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from foreword.amendments import Amendment
from foreword.encoding import storable
from foreword.errors import BadRequest, NotFound
from foreword.goals import Branch, is_done, parent_of, refuse_part, tree
from foreword.redact import redact
from foreword.store.sqlite import Store
from foreword.types import Link, Memory, Project, Query
from foreword.worker import asked
from foreword.worker.registry import Registry

MOST = 1000  # goals of a project that are looked at
CRITERIA = 20
LIST = "`foreword goal list` tells their ids"


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
        """A project's goals as a tree, open ones first."""
        project = self._registry.at(project_path)
        goals = self._all(project.scope)
        return {
            "project": project.key,
            "goals": [_told(branch) for branch in tree(goals, done=done)],
            "open": sum(not is_done(goal) for goal in goals),
            "done": sum(is_done(goal) for goal in goals),
        }

    def add(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """A new goal, or a mission, and what it is part of."""
        criteria = asked.texts(told, "criteria")
        if len(criteria) > CRITERIA:
            raise BadRequest(f"a goal has at most {CRITERIA} criteria", hint="make some of them goals of their own")
        parent = told.get("parent") or ""
        detail = {
            "status": "open",
            **({"criteria": [each.strip() for each in criteria if each.strip()]} if criteria else {}),
            **({"parent": str(parent)} if parent else {}),
            **({"mission": True} if told.get("mission") else {}),
        }
        given = {**{name: told.get(name) for name in ("title", "body", "project_path")}, "kind": "goal"}
        goal = asked.memory({**given, "detail": detail}, find_project=self._writable, now=self._now())
        goal = replace(goal, created=self._now(), confirmed=self._now(), uid=asked.new_uid())
        links: tuple[Link, ...] = ()
        if parent:
            refuse_part(goal, self._goal(str(parent)), known={})
            links = (Link(goal.uid, "part-of", str(parent)),)
        amendment = Amendment("goal", f"new: {goal.title}", new=(goal,), links=links)
        [entry] = self._store().amend([amendment], who="user", at=self._now())
        return self._answer(entry.memories[0])

    def reach(self, id: str, told: Mapping[str, Any]) -> dict[str, Any]:
        """A goal is done, with what came of it, or open again; what is part of it stays as it is."""
        status = told.get("status")
        if status not in ("done", "open"):
            raise BadRequest("`status` must be done or open", hint="send {status, outcome?}")
        outcome = redact(storable(str(told.get("outcome") or ""))).strip()
        before = self._goal(id)
        detail = {**before.detail, "status": status, **({"outcome": outcome} if outcome else {})}
        if status == "open":
            detail.pop("outcome", None)
        after = replace(before, detail=detail, confirmed=self._now())
        if detail != before.detail:
            amendment = Amendment("goal", f"{status}: {before.title}", changed=((before, after),))
            self._store().amend([amendment], who="user", at=self._now())
        return self._answer(id)

    def _writable(self, folder: str) -> Project:
        project = self._registry.at(folder)
        self._refuse(project)
        self._registry.saw(project)
        return project

    def _answer(self, id: str) -> dict[str, Any]:
        goal = self._goal(id)
        parts = [each for each in self._all(goal.scope) if parent_of(each) == id and not is_done(each)]
        return {"goal": _told(Branch(goal)), "open_parts": [each.id for each in parts]}

    def _goal(self, id: str) -> Memory:
        found = self._store().by_id([id])
        if not found or found[0].kind != "goal" or found[0].status != "active":
            raise NotFound(f"there is no goal {id!r}", hint=LIST)
        return found[0]

    def _all(self, scope: str) -> tuple[Memory, ...]:
        return goals_of(self._store(), scope)


def goals_of(store: Store, scope: str) -> tuple[Memory, ...]:
    """The goals of a scope, done ones too."""
    query = Query(scopes=(scope,), kinds=("goal",), limit=MOST)
    return tuple(hit.memory for hit in store.by_recency(query))


def _told(branch: Branch) -> dict[str, Any]:
    goal = branch.goal
    return {
        "id": goal.id,
        "title": goal.title,
        "body": goal.body,
        "status": "done" if is_done(goal) else "open",
        "mission": goal.detail.get("mission") is True,
        "criteria": list(goal.detail.get("criteria") or ()),
        "parent": parent_of(goal),
        "outcome": str(goal.detail.get("outcome") or ""),
        "project": goal.project,
        "created": goal.created,
        "parts": [_told(each) for each in branch.parts],
    }
