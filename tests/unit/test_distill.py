"""A session's actions become notes that a good colleague would leave; what a later session did is no longer open."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.distill import Draft, closed, distil, merged
from foreword.distill.gist import concepts
from foreword.extract.text import capitalised
from foreword.extract.actions import Action, Todo
from foreword.types import Change, Edit, Memory, Project, Session
from tests.tables import table

ROOMS = Project(key="rooms", name="rooms", root="/rooms")
FAILED = """F..
    def test_touch():
>       assert not overlaps((18, 20), (20, 22))
E       assert not True

tests/test_bookings.py:5: AssertionError
FAILED tests/test_bookings.py::test_touch - assert not True
1 failed, 2 passed in 0.03s"""
BEFORE, AFTER = "    return a[0] <= b[1] and b[0] <= a[1]", "    return a[0] < b[1] and b[0] < a[1]"


def session(id: str = "s1") -> Session:
    return Session(id, "claude-code", "rooms", "/rooms", 0.0, 0.0)


def told(*actions: Action, id: str = "s1"):
    numbered = [replace(action, at=1000.0 + number) for number, action in enumerate(actions)]
    return distil(numbered, session=session(id), project=ROOMS, changes_of=changes_of)


def changes_of(edit: Edit) -> tuple[Change, ...]:
    return (
        (Change("", edit.file, "overlaps", "MODIFIED", "overlaps(a, b)", 1, 2),)
        if edit.file.endswith("bookings.py")
        else ()
    )


def prompt(text: str) -> Action:
    return Action(kind="prompt", at=0, text=text)


def answer(text: str) -> Action:
    return Action(kind="answer", at=0, text=text)


def run(command: str, output: str = "", *, failed: bool | None = False) -> Action:
    return Action(kind="tool", at=0, act="run", tool="Bash", command=command, output=output, failed=failed)


def edit(file: str = "rooms/bookings.py", before: str = BEFORE, after: str = AFTER) -> Action:
    return Action(
        kind="tool", at=0, act="edit", tool="Edit", files=(file,), edits=(Edit(file, before, after),), failed=False
    )


def plan(*todos: tuple[str, bool]) -> Action:
    return Action(kind="tool", at=0, act="plan", tool="TodoWrite", todos=tuple(Todo(*each) for each in todos))


WHOLE = (
    prompt("hey, two bookings that touch at 20:00 are called overlapping. can you fix that?"),
    plan(("Fix the overlap check", False), ("Send the offer by mail", False)),
    run("python -m pytest -q", FAILED, failed=True),
    edit(),
    run("python -m pytest -q tests/test_bookings.py", "3 passed"),
    plan(("Fix the overlap check", True), ("Send the offer by mail", False)),
    answer("Fixed. The problem was `<=` in overlaps() where hours are half-open. All tests in test_bookings pass."),
    prompt(
        "Great. Let's store all times in UTC because two venues lie in different zones. Never add a dependency without asking."
    ),
    answer("Noted: times are stored in UTC."),
    run('git commit -am "Bookings that touch no longer overlap"', "1 file changed"),
    Action(kind="end", at=0),
)


def readable(memories) -> str:
    lines = []
    for memory in memories:
        lines.append(f"[{memory.kind}] {memory.title}  ({memory.trust}, {memory.confidence:g}, seen {memory.seen}x)")
        lines += [
            f"    {name}: {each}" for name in ("body", "files", "functions", "tags") if (each := getattr(memory, name))
        ]
        lines += [f"    {name}: {each}" for name, each in memory.detail.items() if name not in ("seen_in", "fixed_in")]
    return "\n".join(lines) + "\n"


def test_a_session_reads_like_the_notes_of_a_colleague():
    golden = Path(__file__).parent.parent / "golden" / "session.txt"
    assert readable(told(*WHOLE).memories) == golden.read_text(encoding="utf-8")


def test_the_same_deeds_give_the_same_harvest_however_often_it_is_brought_in():
    draft = Draft(session(), ROOMS, changes_of=changes_of)
    for number, action in enumerate(WHOLE):
        draft.add(replace(action, at=1000.0 + number))
        draft.harvest()
    assert draft.harvest() == told(*WHOLE)


def test_a_failure_is_told_with_what_fixed_it():
    # What fixed a failure is linked to it.
    got = told(*WHOLE)
    (failure,) = (each for each in got.memories if each.kind == "failure")
    assert [(link.relation, link.target) for link in got.links if link.relation == "resolves"] == [
        ("resolves", failure.uid)
    ]
    # A failure that nobody fixed is in the way.
    got = told(prompt("make the tests pass"), edit(), run("pytest", FAILED, failed=True), answer("They still fail."))
    (summary,) = (each for each in got.memories if each.kind == "summary")
    (failure,) = (each for each in got.memories if each.kind == "failure")
    assert summary.detail["block"] == ["assert not True (test_touch)"]
    assert failure.detail["open"] is True
    assert "fixed_by" not in failure.detail
    # A failure that comes back is open again and counts.
    got = told(
        prompt("fix it please, all of it"),
        run("pytest", FAILED, failed=True),
        edit(),
        run("pytest"),
        edit(),
        run("pytest", FAILED, failed=True),
    )
    (failure,) = (each for each in got.memories if each.kind == "failure")
    assert (failure.seen, failure.detail["open"]) == (2, True)
    # Without edits what was run in between is the fix.
    broken = "E   ModuleNotFoundError: No module named 'yaml'"
    got = told(
        prompt("run the tests for me"), run("pytest", broken, failed=True), run("pip install pyyaml"), run("pytest")
    )
    (failure,) = (each for each in got.memories if each.kind == "failure")
    assert failure.detail["fixed_by"] == "ran `pip install pyyaml`"
    # Another way to call it is a fix too.
    got = told(
        prompt("run the tests for me"),
        run("pytest", "bash: pytest: command not found", failed=True),
        run("python -m pytest -q"),
    )
    (failure,) = (each for each in got.memories if each.kind == "failure")
    assert failure.detail["fixed_by"] == "`python -m pytest -q` instead of `pytest`"


@table("command", ["grep -rn nothing .", "ls missing", "cat missing.txt", "git diff --exit-code", "test -f x"])
def test_looking_around_without_a_hit_is_no_failure(command):
    got = told(
        prompt("look for it everywhere"),
        run(command, "No such file or directory", failed=True),
        answer("It is not there at all."),
    )
    assert not [each for each in got.memories if each.kind == "failure"]


def test_only_what_was_said_and_failed_counts():
    # Where a host does not tell only what says so itself has failed.
    silent = told(
        prompt("run the tests for me"), run("pytest", FAILED, failed=None), run("./serve", "error rate: 0", failed=None)
    )
    assert [each.title for each in silent.memories if each.kind == "failure"] == ["assert not True (test_touch)"]
    # Nothing is made of a session in which nothing was said.
    assert told(Action(kind="start", at=0), Action(kind="end", at=0)).memories == ()
    assert told(prompt("/clear")).memories == ()
    # Only what the user said is trusted as the users.
    got = told(
        prompt("what is the plan here then?"),
        answer("Always use tabs. Never commit. Let's use SQLite because it is small."),
    )
    assert {each.trust for each in got.memories} == {"agent"}
    assert {each.kind for each in got.memories} == {"summary"}
    # Done to dos vanish and open ones are handed over.
    got = told(prompt("work through the list"), plan(("write the parser", True), ("write the docs", False)))
    (handoff,) = (each for each in got.memories if each.kind == "handoff")
    assert handoff.detail["next"] == ["write the docs"]
    later = told(prompt("work through the list"), plan(("write the parser", True), ("write the docs", True)))
    assert not [each for each in later.memories if each.kind == "handoff"]
    assert later.gone == (handoff.uid,)


def test_what_a_later_session_did_is_no_longer_open():
    # What a later session did is no longer open.
    earlier = Memory(
        "summary",
        "x",
        session="s0",
        detail={"next": ["Send the offer by mail", "Write the docs"], "block": ["assert not True (test_touch)"]},
    )
    got = told(*WHOLE, id="s2")
    after = closed(earlier, done=(*got.done, "send the offer by mail when cancelled"), open=())
    assert after.detail["next"] == ["Write the docs"]
    assert "block" not in after.detail  # it was fixed there
    assert closed(after, done=("something else entirely",), open=()) is None
    # A handoff with nothing left is stale unless the user wrote it.
    mine = Memory("handoff", "x", trust="user", detail={"next": ["write the docs"]})
    assert closed(mine, done=("write the docs",), open=()).status == "active"
    assert closed(replace(mine, trust="agent"), done=("write the docs",), open=()).status == "stale"
    # A handoff is called by what it still leaves open.
    left = Memory("handoff", "take out check_token", detail={"next": ["take out check_token", "log failed logins"]})
    assert closed(left, done=("take out check_token",), open=()).title == "log failed logins"


@table(("told", "begins"), [
    ("pier_of() breaks for lower case", "pier_of()"), ("web/map.ts is slow", "web/map.ts"), ("drawMap is slow", "drawMap"),
    ("fix the map", "Fix"), ("e2e tests fail", "e2e"), ("éclair", "Éclair"), ("", ""),
])  # fmt: skip
def test_a_name_of_code_keeps_its_letters_at_the_head_of_a_sentence(told, begins):
    assert capitalised(told).partition(" ")[0] == begins


def test_evidence_counts_sessions_once():
    # Evidence counts every session once however often it is told.
    first = next(each for each in told(*WHOLE).memories if each.kind == "failure")
    again = next(each for each in told(*WHOLE, id="s2").memories if each.kind == "failure")
    both = merged(first, again)
    assert (both.seen, both.created) == (2, first.created)
    assert merged(both, again).seen == 2
    assert merged(merged(both, again), first).seen == 2
    # The list of evidence stays short and the count right.
    known = next(each for each in told(*WHOLE).memories if each.kind == "failure")
    for number in range(200):
        known = merged(known, replace(known, detail={**known.detail, "seen_in": {f"n{number}": 1}}))
    assert known.seen == 201
    assert len(known.detail["seen_in"]) <= 51
    # What the user superseded stays so.
    decision = next(each for each in told(*WHOLE).memories if each.kind == "decision")
    known = replace(decision, status="superseded", superseded_by="dec-1")
    assert (merged(known, decision).status, merged(known, decision).superseded_by) == ("superseded", "dec-1")

    # A function made and removed in one session is no change.
    def change(edit: Edit) -> tuple[Change, ...]:
        return (Change("", "a.py", "f", str(edit.after)),)

    for whats, left in (
        (("NEW", "MODIFIED"), ["NEW"]),
        (("NEW", "DELETED"), []),
        (("MODIFIED", "DELETED"), ["DELETED"]),
        (("DELETED", "NEW"), ["MODIFIED"]),
    ):
        actions = [prompt("change the code a bit"), *(edit("a.py", "", what) for what in whats)]
        got = distil(actions, session=session(), project=ROOMS, changes_of=change)
        assert [each.what for each in got.changes] == left


def test_a_session_of_any_length_is_held_in_bounded_room():
    draft = Draft(session(), ROOMS, changes_of=changes_of)
    for number in range(600):
        draft.add(replace(prompt(f"always do thing number {number} please"), at=float(number)))
        draft.add(
            replace(answer(f"Did thing {number} because it was asked for, in module_{number}."), at=float(number))
        )
        draft.add(
            replace(
                run(f"pytest tests/test_{number}.py", f"E   ValueError: thing {number}x is bad", failed=True),
                at=float(number),
            )
        )
        draft.add(replace(edit(f"src/file_{number}.py"), at=float(number)))
    got = draft.harvest()
    assert len(got.memories) < 1000


def test_how_a_command_ended_is_told_by_its_output_too():
    # A failure whose exit code a pipe hides is one all the same.
    got = told(
        prompt("make the bookings touch again"),
        run("pytest -q 2>&1 | tail -20", FAILED),
        edit(),
        run("pytest -q 2>&1 | tail -20", "3 passed in 0.02s"),
    )
    (failure,) = (memory for memory in got.memories if memory.kind == "failure")
    assert failure.title == "assert not True (test_touch)"
    assert failure.detail["fixed_by"].startswith("overlaps() in rooms/bookings.py")
    assert not failure.detail["open"]
    # What fixed a failure is never that it was tried again.
    got = told(
        prompt("get the service up again please"),
        run("make all", "make: *** [all] Error 2", failed=True),
        run("make all", "done"),
        run("./seed.sh", "Error: no database here", failed=True),
        *(run(f"grep -n {n} log.txt") for n in range(80)),
        run("docker start db"),
        run("./seed.sh"),
    )
    fixes = [memory.detail.get("fixed_by", "") for memory in got.memories if memory.kind == "failure"]
    assert fixes == ["", "ran `docker start db`"]
    # Of a line that ended well every command did.
    got = told(
        prompt("tidy up the imports of the rooms"),
        run("ruff check .", "a.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.", failed=True),
        edit("rooms/a.py", "import os\nimport re", "import re"),
        run("ruff check . && pytest -q && git add -A && git commit -m 'Imports are tidy'"),
    )
    assert [memory.title for memory in got.memories if memory.kind == "observation"] == ["Committed: Imports are tidy"]
    assert "ruff passes; pytest passes" in got.memories[0].detail["done"][0]


def test_requests_choices_and_lists_are_told_for_what_they_are():
    # A choice that the user took back is no decision and goes where it was one.
    asked = prompt("Let's use Postgres for the queue because we run it already.")
    before = told(asked, answer("The queue is in Postgres now."))
    after = told(asked, answer("The queue is in Postgres now."), prompt("no, let's go with Redis instead of Postgres"))
    (decision,) = (memory for memory in before.memories if memory.kind == "decision")
    assert not [memory for memory in after.memories if memory.title == decision.title and memory.kind == "decision"]
    assert decision.uid in after.gone
    # What the user asks for in work is never called done or learned.
    got = told(
        prompt("export the reports as csv with streaming so that big reports never time out in the browser of members"),
        edit(),
        prompt("good. remember: we never use KEYS in production, always SCAN. and count the lost claims in a metric"),
        edit(),
        answer("Claims are counted. Next steps: raise the expiry for long jobs."),
    )
    detail = got.memories[0].detail
    assert detail["request"][0] == "Count the lost claims in a metric"
    assert "KEYS" not in f"{detail}"
    assert detail["next"] == ["Raise the expiry for long jobs"]
    assert "csv" not in f"{detail['done']} {detail.get('learned')}"
    # What failed on the way is no blocker once the tests pass.
    down = run("redis-cli ping", "Could not connect to Redis: Connection refused", failed=True)
    begun = (prompt("find out why bookings are lost"), edit(), down)
    assert "block" in told(*begun).memories[0].detail
    assert "block" not in told(*begun, run("pytest -q", "3 passed")).memories[0].detail
    # A blank entry of the list leaves nothing open.
    todos = (Todo(text=" \n"), Todo(text=""))
    plan = Action(kind="tool", act="plan", at=1.0, todos=todos)
    got = distil([edit("src/a.py"), plan], session=session(), project=ROOMS)
    assert got.open == ()
    assert not any(memory.kind == "handoff" for memory in got.memories)
    # One long answer to one question is kept.
    got = told(
        prompt("how does the retry logic in client.py work?"),
        answer(
            "The client retries three times with exponential backoff (0.5 s, 1 s, 2 s), only for 502, 503 and 504, and "
            "never for POST because it is not idempotent."
        ),
    )
    assert "exponential backoff" in f"{got.memories[0].detail}"


DEEDS = st.builds(
    Action,
    kind=st.sampled_from(["start", "prompt", "answer", "tool", "compaction", "end", "strange"]),
    at=st.floats(0, 1e10),
    text=st.text(max_size=200),
    act=st.sampled_from(["run", "edit", "plan", "read", "other", ""]),
    command=st.text(max_size=60),
    output=st.text(max_size=200),
    failed=st.sampled_from([True, False, None]),
    files=st.lists(st.text(max_size=10), max_size=2).map(tuple),
    edits=st.lists(st.builds(Edit, file=st.text(max_size=10), before=st.none() | st.text(max_size=20), after=st.none() | st.text(max_size=20), whole=st.booleans()), max_size=2).map(tuple),
    todos=st.lists(st.builds(Todo, text=st.text(max_size=20), done=st.booleans()), max_size=2).map(tuple),
)  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(st.lists(DEEDS, max_size=8))
def test_any_deeds_become_memories_without_an_error(actions):
    for memory in distil(actions, session=session(), project=ROOMS).memories:
        assert memory.title
        assert memory.scope == ROOMS.scope


def test_a_concept_is_shown_as_it_was_spelled_first():
    words = [f"{letter}omponent{letter}" for letter in "abdefghijk"]
    said = [" ".join(f"use {word.capitalize()} and {word}" for word in words)]
    assert concepts(said) == tuple(word.capitalize() for word in words)
