"""What a project remembers -> what repeats in it, as amendments that are planned and not done: pure, no model.

said.py, commands.py and coupled.py find what sessions say and do again, failures.py what keeps failing or is fixed the
same way; findings.py makes learnings of it, with confidence.py's one formula and alike.py's one measure. rules.py
proposes preferences, which the user accepts or refuses in `review`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from foreword.amendments import Amendment
from foreword.learn import commands, coupled, failures, rules, said
from foreword.learn.confidence import asleep
from foreword.learn.findings import learned
from foreword.types import Memory, Project

__all__ = ["CHEAP", "asleep", "plan", "plan_at_end", "plan_confirmed", "plan_wider"]

# What a session's end asks for: some hundred memories of these kinds, where all of a project may be 100,000.
CHEAP = ("failure", "pattern", "correction", "preference", "decision")


class About(Protocol):
    """What is known beside the memories: whose they are, and what somebody undid."""

    @property
    def project(self) -> Project: ...
    @property
    def taken_back(self) -> frozenset[tuple[str, frozenset[str]]]: ...


def plan(memories: Sequence[Memory], *, about: About) -> tuple[Amendment, ...]:
    """Everything that a project's memories, whatever their status, teach; once it is done, nothing."""
    project = about.project
    found = (
        *said.findings(memories, project=project.key),
        *commands.findings(memories, project=project.key),
        *coupled.findings(memories, project=project.key),
        *failures.unfixed(memories, project=project.key),
    )
    known = {each.uid: each for each in memories if each.kind == "learning"}
    present = frozenset(each.session for each in memories if each.kind == "summary" and each.session)
    learnings = (
        learned(each, known.get(each.uid), memories=memories, present=present, project=project) for each in found
    )
    return (*_may(filter(None, learnings), about), *plan_at_end(memories, about=about))


def plan_at_end(memories: Sequence[Memory], *, about: About) -> tuple[Amendment, ...]:
    """The part that cannot wait for a quiet hour: patterns, and proposals for the user; needs the CHEAP kinds only."""
    return _may((*failures.patterns(memories, project=about.project), *rules.proposals(memories)), about)


def plan_wider(memories: Sequence[Memory], *, about: About) -> tuple[Amendment, ...]:
    """Rules that several projects have, proposed for more than one; given the rules of all projects."""
    return _may(rules.wider(memories, languages=rules.main_languages(memories)), about)


def plan_confirmed(memories: Sequence[Memory], *, about: About) -> tuple[Amendment, ...]:
    """Corrections of what is a rule by now, counted for the rule."""
    return _may(rules.confirmed(memories), about)


def _may(planned: Sequence[Amendment] | filter[Amendment], about: About) -> tuple[Amendment, ...]:
    """Without what somebody took back before."""
    return tuple(each for each in planned if (each.what, frozenset(each.about)) not in about.taken_back)
