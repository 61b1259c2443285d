"""Goals form a tree that holds each of them once, whatever their parents say."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from foreword.goals import Branch, is_done, tree
from foreword.types import Memory

IDS = [f"goa-{number}" for number in range(6)]


def a_goal(id: str, parent: str, status: str) -> Memory:
    return Memory("goal", id, id=id, detail={"parent": parent, "status": status})


def flat(branches: tuple[Branch, ...]) -> Iterator[Memory]:
    for branch in branches:
        yield branch.goal
        yield from flat(branch.parts)


@given(
    st.lists(
        st.tuples(st.sampled_from([*IDS, "", "elsewhere"]), st.sampled_from(["open", "done"])), min_size=6, max_size=6
    )
)
def test_every_goal_is_shown_once_also_where_parents_go_in_circles(told):
    goals = [a_goal(id, parent, status) for id, (parent, status) in zip(IDS, told, strict=True)]
    assert sorted(goal.id for goal in flat(tree(goals, done=True))) == IDS
    assert sorted(goal.id for goal in flat(tree(goals))) == [goal.id for goal in goals if not is_done(goal)]


def test_what_is_part_of_something_stands_below_it():
    goals = [a_goal("goa-1", "goa-0", "open"), a_goal("goa-0", "", "open"), a_goal("goa-2", "goa-1", "done")]
    [top] = tree(goals, done=True)
    assert [goal.id for goal in flat((top,))] == ["goa-0", "goa-1", "goa-2"]
    assert [goal.id for goal in flat(tree(goals))] == ["goa-0", "goa-1"]
