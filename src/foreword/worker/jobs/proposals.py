"""Propose rules when a session has ended; they wait for the user."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from foreword.audit import MemoryChange, PlanContext
from foreword.errors import Conflict, ForewordError
from foreword.extract.session import Extraction
from foreword.maintenance.proposals import WHO, plan, plan_wider
from foreword.models import Memory, Project
from foreword.store import Store

log = logging.getLogger("foreword")

TEACHING = ("correction", "preference")  # what a session must have come to before anything is asked
RULES = 2_000  # of a project, the newest, that are looked at
SUMMARIES = 20  # of each project, whose files tell its language


def learn_from(
    store: Store,
    extracted: Sequence[tuple[Project, Extraction]],
    *,
    now: float,
    tell: Callable[[str, str], None],
) -> None:
    """Plan and do what cannot wait for a quiet hour; what goes wrong is told, and waits for the next session."""
    for project, got in extracted:
        kinds = {memory.kind for memory in got.memories}
        if kinds.isdisjoint(TEACHING):
            continue
        try:
            about = PlanContext(project, now=now, taken_back=store.audit.undone())
            _do(store, plan(_of_project(store, project), about=about), at=now)
            _do(store, plan_wider(rules_of_all(store), about=about), at=now)
        except ForewordError as exc:
            tell("learn", f"what a session taught waits for the next one: {exc}")
        except Exception as exc:
            log.exception("nothing was learned from a session of %s", project.key)
            tell("learn", f"nothing was learned from a session: {type(exc).__name__}: {exc}")


def _do(store: Store, planned: Sequence[MemoryChange], *, at: float) -> None:
    """One at a time: what changed in this moment, or was forgotten, must not keep the others from being done."""
    for each in planned:
        if not store.maintenance.was_forgotten(each.new):
            with suppress(Conflict):
                store.audit.apply([each], who=WHO, at=at)


def rules_of_all(store: Store) -> tuple[Memory, ...]:
    """The rules of every project, and of those that have some enough to tell their languages."""
    rules = store.memories.list(("correction", "preference"), limit=RULES)
    scopes = sorted({memory.scope for memory in rules if memory.scope.startswith("project:")})
    if len(scopes) < 2:
        return rules
    summaries = (
        memory
        for scope in scopes
        for memory in store.memories.list(("summary",), scopes=(scope,), statuses=("active",), limit=SUMMARIES)
    )
    return (*rules, *summaries)


def _of_project(store: Store, project: Project) -> tuple[Memory, ...]:
    return store.memories.list(("correction", "preference", "decision"), scopes=(project.scope,), limit=RULES)
