"""What sessions say again is one memory with the evidence of all; what a later session did is no longer open."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from foreword.audit import revised
from foreword.extract.actions import Action, turns_of
from foreword.extract.failure_memory import failure_detail
from foreword.extract.failures import failures_of
from foreword.extract.merge import (
    CLOSED,
    EARLIER,
    EVIDENCE,
    close_items,
    evidence_of,
    merge,
    open_items,
    together,
)
from foreword.models import Memory
from tests.tables import table


def failure(session: str, *steps: Action, at: float = 10.0) -> Memory:
    """The failure of a session, as extraction writes it."""
    timed = [replace(each, at=at + place, id=str(place)) for place, each in enumerate(steps)]
    (found,) = failures_of(turns_of([Action("prompt", at, text="go", cwd="/shop"), *timed]), root="/shop")
    detail = failure_detail(found, session)
    return Memory("failure", "", uid="fai:1", session=session, created=at, confirmed=at, detail=detail, trust="tool")


def run(command: str, output: str = "", *, failed: bool = False) -> Action:
    return Action("tool", 0.0, act="run", command=command, output=output, failed=failed, cwd="/shop")


MISSING = run("yarn unit", "error: Couldn't find a script named 'unit'", failed=True)
WORKS = run("yarn test:unit", "12 passed")
OTHER = run("yarn run units", "12 passed")


def test_a_failure_of_several_sessions_keeps_all_evidence_and_the_fix_seen_most_often() -> None:
    known = failure("s1", MISSING, WORKS, at=10.0)
    known = merge(known, failure("s2", MISSING, MISSING, WORKS, at=20.0))
    got = merge(known, failure("s3", MISSING, OTHER, at=30.0))
    assert got.detail["seen_in"] == {"s1": 1, "s2": 2, "s3": 1}
    assert (got.seen, got.created, got.confirmed, got.uid) == (4, 10.0, 30.0, "fai:1")
    assert list(got.detail["worked"]) == ["yarn test:unit", "yarn run units"]
    assert "yarn unit" in got.title
    assert "yarn test:unit" in got.body
    # A session that is extracted again while it grows counts once, as it is now.
    again = merge(got, failure("s3", MISSING, MISSING, OTHER, at=30.0))
    assert again.detail["seen_in"] == {"s1": 1, "s2": 2, "s3": 2}
    assert merge(again, failure("s3", MISSING, MISSING, OTHER, at=30.0)) == again
    # An old transcript that is read late does not make it look like news.
    late = merge(again, failure("s0", MISSING, at=1.0))
    assert (late.created, late.confirmed, late.detail["last"]) == (1.0, 30.0, again.detail["last"])


def statement(text: str = "Prices are whole cents", *, session: str = "s1", at: float = 10.0, **more: object) -> Memory:
    detail = {"seen_in": {session: 1}}
    blank = Memory("preference", text, uid="pre:1", session=session, created=at, confirmed=at, detail=detail)
    return replace(blank, **more)  # type: ignore[arg-type]


def test_what_is_said_again_counts_and_keeps_what_was_decided_about_it() -> None:
    known = statement(confidence=0.9, files=("a.py",))
    got = merge(known, statement(session="s2", at=20.0, confidence=0.7, files=("b.py",)))
    assert (got.seen, got.created, got.confirmed, got.confidence) == (2, 10.0, 20.0, 0.9)
    assert set(got.files) == {"a.py", "b.py"}
    # What is superseded, discarded or forgotten stays so; what was stale is said again.
    for status in ("superseded", "discarded", "forgotten"):
        assert merge(replace(known, status=status, superseded_by="x"), statement(session="s2")).status == status
    assert merge(replace(known, status="stale"), statement(session="s2")).status == "active"
    # What the user revised keeps the user's words, and is counted all the same.
    mine = revised(known, {"title": "Prices are cents, in integers"}, who="user")
    again = merge(mine, statement(session="s2", at=20.0))
    assert (again.title, again.seen) == ("Prices are cents, in integers", 2)
    # A summary is what the session says now.
    old, new = Memory("summary", "First title", uid="sum:1", body="old"), Memory("summary", "Better", uid="sum:1")
    assert merge(old, new) == new


def handed_over(*items: str, kind: str = "handoff", trust: str = "agent") -> Memory:
    return Memory(kind, "t", detail={"next": list(items)}, trust=trust)  # type: ignore[arg-type]


def test_what_a_later_session_did_or_carries_on_is_no_longer_open() -> None:
    memory = handed_over("send the offer by mail", "delete the old waiting table", kind="summary")
    assert close_items(memory, done=["Rename the prices module"], open=()) is None
    mailed = close_items(memory, done=["Send the waiting list offer by mail (#41)"], open=())
    assert mailed is not None
    assert open_items(mailed) == ("delete the old waiting table",)
    assert (mailed.detail["next"], mailed.status) == (memory.detail["next"], "active")
    # Whoever still has it open carries it on.
    carried = close_items(mailed, done=(), open=["delete the old waiting table"])
    assert carried is not None
    assert (open_items(carried), carried.detail[CLOSED]) == ((), list(memory.detail["next"]))
    assert close_items(carried, done=["Send the offer by mail"], open=()) is None
    # It stays closed when its own session goes on and is extracted again, and what is new there is open.
    again = merge(mailed, handed_over("send the offer by mail", "write the docs", kind="summary"))
    assert open_items(again) == ("write the docs",)
    # A handoff of which nothing is left is over, unless a person wrote it.
    for trust, status in (("agent", "stale"), ("user", "active")):
        over = close_items(handed_over("send the offer by mail", trust=trust), done=["send the offer by mail"], open=())
        assert over is not None
        assert over.status == status


@table(
    "item, done, open, expected",
    [
        ("Planned, not implemented: Zones in mails", ["Show zones in mails (#44)"], [], True),
        ("Planned, not implemented: Zones in mails", ["Restyle the menu"], [], False),
        ("PR #7: review and merge", ["PR #7 merged"], [], True),
        ("Not pushed: 1 commit on feat/waiting (1a2b3c4)", ["pushed feat/waiting"], [], True),
        (
            "Not pushed: 1 commit on feat/waiting (1a2b3c4)",
            [],
            ["Not pushed: 4 commits on feat/waiting (9f8e7d6)"],
            True,
        ),
        ("Not pushed: 1 commit on feat/waiting (1a2b3c4)", [], ["Not pushed: 4 commits on main (9f8e7d6)"], False),
    ],
)
def test_an_item_closes_by_what_it_says_and_not_by_its_label(
    item: str, done: list[str], open: list[str], expected: bool
) -> None:
    after = close_items(handed_over(item, kind="summary"), done=done, open=open)
    assert (after is not None) is expected


@table("detail", [{}, {"next": None}, {"next": 7}, {"next": [None, 3, " "]}, {CLOSED: "x", "blockers": {"a": 1}}])
def test_odd_details_leave_nothing_open_and_break_nothing(detail: dict[str, object]) -> None:
    memory = Memory("summary", "t", detail=detail)
    assert open_items(memory) in ((), (" ",))
    assert close_items(memory, done=["anything at all"], open=()) is None


def test_closed_items_stay_closed_and_evidence_is_bounded() -> None:
    items = [f"write chapter number{number} of the handbook" for number in range(40)]
    memory = handed_over(*items, kind="summary")
    for item in items:
        memory = close_items(memory, done=[item], open=()) or memory
    assert open_items(memory) == ()
    counts: dict[str, int] = {}
    for number in range(EVIDENCE + 30):
        counts = together(counts, {f"s{number}": 2})
    assert len(counts) <= EVIDENCE
    assert sum(counts.values()) == 2 * (EVIDENCE + 30)
    assert counts[EARLIER] == 2 * 31


SESSIONS = st.dictionaries(st.sampled_from(["s1", "s2", "s3", EARLIER]), st.integers(1, 5))


@given(SESSIONS, SESSIONS, st.integers(1, 9))
def test_evidence_is_counted_once_by_session(one: dict[str, int], other: dict[str, int], seen: int) -> None:
    assert together(one, other) == together(other, one)
    memory = Memory("failure", "x", session="s9", seen=seen, detail={"seen_in": one})
    assert sum(evidence_of(memory).values()) == max(seen, sum(one.values()))
    fresh = Memory("preference", "x", session="s2", detail={"seen_in": {"s2": 3}})
    known = Memory("preference", "x", detail={"seen_in": {"s1": 2, "s2": 9}})
    assert merge(known, fresh).detail["seen_in"] == {"s1": 2, "s2": 3}
