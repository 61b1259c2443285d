"""What sinking promises: what tells of gone code comes last, and comes back with it; nothing sinks by mistake."""

from __future__ import annotations

from dataclasses import replace

from foreword.audit import PlanContext
from foreword.maintenance.stale import LESS_CERTAIN, plan
from foreword.models import Change, Memory, Project
from tests.tables import table

HERE = Project(key="here", name="here", root="/here")
NOW = 30 * 86_400.0


def memory(kind: str, id: str = "x", **more: object) -> Memory:
    given = Memory(kind, "about it", id=id, uid=id, scope=HERE.scope, project=HERE.key, trust="tool", confidence=0.8)
    return replace(given, **{"files": ("a.py",), **more})


def about(there: dict[str, tuple[str, ...]] | None, changes: tuple[Change, ...] = (), **more: object) -> PlanContext:
    """What is known where these files hold these functions; None: nobody can look."""

    def exists(file: str, function: str) -> bool | None:
        if there is None:
            return None
        return file in there and (not function or function in there[file])

    return replace(PlanContext(HERE, now=NOW, changes=changes, exists=exists), **more)


def after(memory: Memory, known: PlanContext) -> Memory:
    for memory_change in plan([memory], about=known):
        ((before, memory),) = memory_change.changed
        assert before.id == memory.id
    return memory


def change(
    what: str, function: str, signature: str, *, at: float = 1.0, session: str = "s", file: str = "a.py"
) -> Change:
    return Change(HERE.key, file, function, what, signature, session=session, at=at)


@table("kind", ["change", "observation", "learning"])
def test_what_is_worth_its_code_sinks_with_it_and_comes_back_with_it(kind):
    one = memory(kind, functions=("load",))
    gone = after(one, about({}))
    assert gone.status == "stale"
    assert after(gone, about({})) == gone
    assert after(gone, about({"a.py": ("load",)})) == one
    assert after(one, about({"a.py": ()})).status == "stale"


@table("kind", ["decision", "pattern", "failure"])
def test_what_may_hold_for_other_code_stays_and_counts_less(kind):
    one = memory(kind)
    gone = after(one, about({}))
    assert (gone.status, gone.confidence) == ("active", 0.8 * LESS_CERTAIN)
    assert gone.detail["code_gone"]["since"] == NOW
    assert after(gone, about({})) == gone
    assert after(gone, about({"a.py": ()})) == one


@table("kind", ["summary", "handoff", "goal", "note", "project", "preference", "correction"])
def test_what_is_not_about_code_is_left(kind):
    assert plan([memory(kind)], about=about({})) == ()


@table("kind", ["learning", "observation", "change"])
def test_what_the_user_said_stays_and_counts_less(kind):
    gone = after(memory(kind, trust="user"), about({}))
    assert (gone.status, gone.confidence) == ("active", 0.8 * LESS_CERTAIN)


@table("kind", ["change", "decision"])
def test_nothing_sinks_where_nobody_can_look(kind):
    assert plan([memory(kind, functions=("load",))], about=about(None)) == ()


def test_nothing_sinks_that_is_there_pinned_or_taken_back():
    # Nothing sinks while some of its code is there.
    assert plan([memory("observation", files=("a.py", "b.py"))], about=about({"b.py": ()})) == ()
    two = memory("observation", functions=("load", "save"))
    assert plan([two], about=about({"a.py": ("save",)})) == ()
    # A deletion is true because the code is gone.
    assert plan([memory("change", functions=("load",), detail={"what": "DELETED"})], about=about({})) == ()
    # What is pinned or was taken back is left.
    assert plan([memory("change", pinned=True)], about=about({})) == ()
    assert plan([memory("change")], about=about({}, taken_back=frozenset({("stale", frozenset({"x"}))}))) == ()
    # What somebody else made stale is not brought back.
    assert plan([memory("handoff", status="stale")], about=about({"a.py": ()})) == ()
    assert plan([memory("observation", status="stale")], about=about({"a.py": ()})) == ()


def test_a_function_that_a_session_deleted_is_gone_after_some_days():
    # A function that a session deleted is gone after some days where nobody can look.
    one = memory("learning", functions=("load",))
    deleted = change("DELETED", "load", "def load(path)")
    assert after(one, about(None, (deleted,))).status == "stale"
    assert plan([one], about=about(None, (replace(deleted, at=NOW - 60.0),))) == ()
    made_again = change("NEW", "load", "def load(path)", at=9.0, session="t")
    assert plan([one], about=about(None, (made_again, deleted))) == ()
