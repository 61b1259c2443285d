"""What tells of gone code is stale, and comes back with the code; nothing is stale by mistake."""

from __future__ import annotations

from dataclasses import replace

from foreword.audit import PlanContext
from foreword.maintenance.stale import plan
from foreword.models import Memory, Project
from tests.tables import table

HERE = Project(key="here", name="here", root="/here")
NOW = 30 * 86_400.0


def memory(kind: str, id: str = "x", **more: object) -> Memory:
    made = Memory(kind, "about it", id=id, uid=id, scope=HERE.scope, project=HERE.key, trust="tool", confidence=0.8)
    return replace(made, **{"files": ("a.py",), **more})


def about(*there: str, **more: object) -> PlanContext:
    """What is known where these files are there."""
    return PlanContext(now=NOW, exists=lambda file: file in there)._replace(**more)


def after(memory: Memory, known: PlanContext) -> Memory:
    for memory_change in plan([memory], about=known):
        ((before, memory),) = memory_change.changed
        assert before.id == memory.id
    return memory


@table("kind", ["change", "observation", "learning"])
def test_what_is_worth_its_code_is_stale_with_it_and_comes_back_with_it(kind):
    one = memory(kind, functions=("load",))
    gone = after(one, about())
    assert gone.status == "stale"
    assert after(gone, about()) == gone
    assert after(gone, about("a.py")) == one
    assert after(one, about("a.py")) == one


@table("kind", ["decision", "pattern", "failure", "summary", "handoff", "goal", "note", "preference", "correction"])
def test_what_may_hold_without_its_code_is_left(kind):
    assert plan([memory(kind)], about=about()) == ()
    assert plan([memory("learning", trust="user")], about=about()) == ()


def test_nothing_is_stale_where_nobody_can_look():
    assert plan([memory("change", functions=("load",))], about=PlanContext(now=NOW)) == ()


def test_nothing_is_stale_that_is_there_pinned_or_taken_back():
    # Nothing is stale while some of its code is there.
    assert plan([memory("observation", files=("a.py", "b.py"))], about=about("b.py")) == ()
    # A deletion is true because the code is gone.
    assert plan([memory("change", functions=("load",), detail={"what": "DELETED"})], about=about()) == ()
    # What is pinned or was taken back is left.
    assert plan([memory("change", pinned=True)], about=about()) == ()
    assert plan([memory("change")], about=about(taken_back=frozenset({("stale", frozenset({"x"}))}))) == ()
    # What somebody else made stale is not brought back.
    assert plan([memory("handoff", status="stale")], about=about("a.py")) == ()
    assert plan([memory("observation", status="stale")], about=about("a.py")) == ()
