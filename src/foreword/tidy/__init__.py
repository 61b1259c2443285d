"""What a project remembers -> amendments that keep it clean, planned and not done: pure, and the same for the same.

duplicates.py merges what says the same, contradictions.py supersedes what was chosen otherwise since, staleness.py lets
what speaks of code that is gone sink. Each is a `Planner`; the worker runs them in turn and carries out what they plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from foreword.amendments import Amendment
from foreword.types import Change, Memory, Project
from foreword.values import value

Exists = Callable[[str, str], bool | None]  # a file, and a function in it or "" -> there; None: nobody can tell


@value
class About:
    """What planners know beside the memories: whose they are, when it is, and what became of the code."""

    project: Project
    now: float
    changes: tuple[Change, ...] = ()  # of the project's functions, newest first
    exists: Exists = lambda _file, _function: None
    taken_back: frozenset[tuple[str, frozenset[str]]] = frozenset()  # (verb, ids): what somebody undid
    give_way: Callable[[], object] = lambda: None  # called now and then in long work: others have their turn


class Planner(Protocol):
    """Memories of one project, whatever their status, in the order of their places -> what is to be done."""

    def __call__(self, memories: Sequence[Memory], *, about: About) -> tuple[Amendment, ...]: ...


def may(amendment: Amendment, *, about: About) -> bool:
    """Whether nobody took back the same before: what a person undid is not done again."""
    return (amendment.what, frozenset(amendment.about)) not in about.taken_back
