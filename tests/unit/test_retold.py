"""What retelling promises: a session's choice that was taken back since is not told as what holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foreword.tidy import About
from foreword.tidy.contradictions import CHOSEN_SINCE
from foreword.tidy.retold import SINCE, plan
from foreword.types import Memory, Project

ABOUT = About(Project(key="here", name="here", root="/here"), now=100.0)
CHOICE = Memory("decision", "Use Redis for the cache", id="dec-1", uid="dec-1", session="s1", confirmed=1.0)
TAKEN_BACK = replace(CHOICE, status="superseded", superseded_by="dec-2", detail={CHOSEN_SINCE: "dec-2"})
SUMMARY = Memory(
    "summary",
    "Use Redis for the cache, because it is there",
    id="sum-1",
    uid="sum-1",
    session="s1",
    detail={"decisions": ["Use Redis for the cache", "Use uv"], "done": ["it works"]},
)


def retold(*memories: Memory) -> Memory:
    (amendment,) = plan(memories, about=ABOUT)
    ((_, after),) = amendment.changed
    return after


def test_a_summary_tells_that_its_choice_was_replaced():
    after = retold(TAKEN_BACK, SUMMARY)
    assert after.title == SINCE + SUMMARY.title
    assert after.confidence < SUMMARY.confidence
    assert after.detail == {"decisions": ["Use uv"], "taken_back": ["Use Redis for the cache"], "done": ["it works"]}
    assert plan([TAKEN_BACK, after], about=ABOUT) == ()


def test_what_is_chosen_again_is_told_as_before():
    assert retold(CHOICE, retold(TAKEN_BACK, SUMMARY)) == replace(
        SUMMARY, detail={**SUMMARY.detail, "decisions": ["Use uv", "Use Redis for the cache"]}
    )


def test_every_session_that_said_it_tells_so():
    other = replace(SUMMARY, id="sum-2", uid="sum-2", session="s2", detail={})
    again = replace(TAKEN_BACK, detail={**TAKEN_BACK.detail, "seen_in": {"s1": 1, "s2": 1}})
    assert len(plan([again, SUMMARY, other], about=ABOUT)) == 2


def test_what_was_merged_into_a_choice_that_is_gone_is_gone_too():
    same = replace(
        CHOICE, id="dec-3", title="Redis for our cache", session="s3", status="superseded", superseded_by="dec-1"
    )
    summary = replace(SUMMARY, title="Redis for our cache please", session="s3", detail={})
    assert retold(TAKEN_BACK, same, summary).title.startswith(SINCE)


@pytest.mark.parametrize("choice", [CHOICE, replace(TAKEN_BACK, session="s9"), replace(TAKEN_BACK, detail={})])
def test_a_summary_whose_choices_hold_stays_as_it_is(choice: Memory):
    assert plan([choice, SUMMARY], about=ABOUT) == ()
