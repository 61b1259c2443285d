"""What a model made of a session stays where that session was."""

from __future__ import annotations

from foreword.llm.refine import Decision, Refined, apply
from foreword.models import Memory


def test_the_same_decision_of_a_session_in_two_projects_is_two_memories():
    told = Refined(
        title="", request="", done="", learned=(), decisions=(Decision("Use UTC"),), next=(), source="m", trust="agent"
    )
    summaries = [
        Memory(kind="summary", title="T", uid=f"sum:{key}:s", scope=f"project:{key}", project=key, session="s")
        for key in ("a", "b")
    ]
    uids = {apply(summary, told)[1].uid for summary in summaries}
    assert len(uids) == 2


def test_a_summary_that_is_refined_twice_keeps_what_came_without_a_model():
    first, second = (
        Refined(title=title, request="", done=title, learned=(), decisions=(), next=(), source="m", trust="agent")
        for title in ("Better", "Better still")
    )
    summary = Memory(kind="summary", title="Plain", uid="sum:a:s", detail={"done": ["plain"]})
    (once,) = apply(summary, first)
    (twice,) = apply(once, second)
    assert (twice.title, twice.detail["done"]) == ("Better still", ["Better still"])
    assert twice.detail["without_model"] == {"title": "Plain", "done": ["plain"]}
