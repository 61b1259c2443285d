"""What came of a failure, as each of the sessions that saw it is to tell it."""

from __future__ import annotations

from dataclasses import replace

from foreword.extract.fixes import Fate, elsewhere, fate_of
from foreword.models import Memory, Session
from tests.tables import table

ENDED = {"first": 1.0, "fixer": 2.0, "later": 3.0}


def failure(*, open: bool | None = False, by: str = "", status: str = "active", **fixed_in: str) -> Memory:
    fixes = {text: [session for session in fixed_in if fixed_in[session] == text] for text in fixed_in.values()}
    seen = {"seen_in": {"first": 2, "fixer": 1, "later": 1}, "fixes": fixes, "fix": by}
    detail = seen if open is None else {**seen, "open": open}
    return Memory("failure", "it broke", session="later", seen=4, status=status, detail=detail)


def fate_in(memory: Memory, id: str, ended: dict[str, float] = ENDED) -> Fate:
    return fate_of(memory, session=Session(id, "codex", "p", "/p", 0.0, ENDED[id]), ended=ended)


def test_each_session_tells_the_fix_that_concerns_it():
    # Who fixed it tells the fix and others where it was fixed.
    one = failure(fixer="changed f()")
    assert fate_in(one, "fixer") == Fate(1, open=False, fix="changed f()")
    assert fate_in(one, "first") == Fate(2, open=False, fix="changed f()", by="fixer", later=True)
    assert fate_in(one, "later") == Fate(1, open=False, fix="changed f()", by="fixer", later=False)
    # A command that worked there is told rather than an edit.
    one = failure(fixer="changed f()")
    two = replace(one, detail={**one.detail, "worked": {"make unit": ["fixer", None], "odd": "fixer"}})
    assert fate_in(two, "fixer").fix == "`make unit`"
    # What came back is open for all who saw it.
    one = failure(open=True, fixer="changed f()")
    assert [fate_in(one, id).open for id in ENDED] == [True, True, True]
    # Of several fixes the first one after a session is told and else the last.
    one = failure(first="a", fixer="b", later="c")
    assert [fate_in(one, id).fix for id in ENDED] == ["a", "b", "c"]
    two = failure(fixer="b", later="c")
    assert fate_in(two, "first").by == "fixer"
    three = failure(first="a", fixer="b")
    assert fate_in(three, "later").by == "fixer"
    # A session that is not known any more is not named.
    assert fate_in(failure(by="changed f()", fixer="changed f()"), "first", {}) == Fate(
        2, open=False, fix="changed f()"
    )
    # Only sessions that fixed what another did not are asked for.
    one = failure(fixer="b", later="c")
    assert elsewhere({"fixer": [one]}) == ()
    assert elsewhere({"first": [one], "fixer": [one]}) == ("fixer", "later")
    assert elsewhere({"first": [Memory("decision", "use UTC", detail=one.detail)]}) == ()


@table(
    ("memory", "is_open"),
    [
        (failure(open=True), True),
        (failure(open=False), False),  # it ran well later, and nobody can tell why
        (failure(open=None), True),
        (failure(open=None, by="said by hand"), False),
        (failure(open=True, status="superseded"), False),
    ],
)
def test_what_nobody_fixed_is_open_until_it_is_not_seen_any_more(memory, is_open):
    assert fate_in(memory, "first").open is is_open
