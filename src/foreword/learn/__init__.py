"""What a project remembers -> what repeats in it, as amendments that are planned and not done: pure, no model.

said.py, commands.py and coupled.py find what sessions say and do again, failures.py what keeps failing or is fixed the
same way; findings.py makes learnings of it, with confidence.py's one formula and alike.py's one measure. rules.py
proposes preferences, which the user accepts or refuses in `review`.
"""

from __future__ import annotations

from collections.abc import Sequence

from foreword.amendments import About, Amendment, standing
from foreword.learn import commands, coupled, failures, rules, said
from foreword.learn.confidence import asleep
from foreword.learn.findings import is_users_word, learned
from foreword.types import Memory

__all__ = ["WHO", "asleep", "plan", "plan_at_end", "plan_confirmed", "plan_wider"]

WHO = "learning"  # in the log
MOST_WORDS = 2_000  # of the user, the newest, that may deny a learning
EVERY = 20  # findings after which others may have their turn: some milliseconds


def plan(memories: Sequence[Memory], *, about: About) -> tuple[Amendment, ...]:
    """Everything that a project's memories, whatever their status, teach; once it is done, nothing."""
    project = about.project
    found = (
        *said.findings(memories, project=project.key, shown_to=about.shown_to),
        *commands.findings(memories, project=project.key),
        *coupled.findings(memories, project=project.key),
        *failures.unfixed(memories, project=project.key),
    )
    known = {each.uid: each for each in memories if each.kind == "learning"}
    present = frozenset(each.session for each in memories if each.kind == "summary" and each.session)
    users = tuple(each for each in memories if is_users_word(each))[-MOST_WORDS:]
    learnings = []
    for number, each in enumerate(found):
        if number % EVERY == 0:
            about.give_way()
        learnings.append(learned(each, known.get(each.uid), users=users, present=present, project=project))
    return (*standing(filter(None, learnings), about=about), *plan_at_end(memories, about=about))


def plan_at_end(memories: Sequence[Memory], *, about: About) -> tuple[Amendment, ...]:
    """The part that cannot wait for a quiet hour: patterns, and proposals for the user.

    It needs failures, patterns and what the user chose: some hundred memories, where a project may have 100,000.
    """
    planned = (*failures.patterns(memories, project=about.project), *rules.proposals(memories))
    return standing(planned, about=about)


def plan_wider(memories: Sequence[Memory], *, about: About) -> tuple[Amendment, ...]:
    """Rules that several projects have, proposed for more than one; given the rules of all projects."""
    return standing(rules.wider(memories, languages=rules.main_languages(memories)), about=about)


def plan_confirmed(memories: Sequence[Memory], *, about: About) -> tuple[Amendment, ...]:
    """Corrections of what is a rule by now, counted for the rule."""
    return standing(rules.confirmed(memories), about=about)
