"""A session becomes the notes that a colleague would leave, and extracting it again changes nothing that stays true."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foreword.capture.parse import capture_event
from foreword.capture.payload import HookCall
from foreword.code.diff import changes
from foreword.extract.actions import Action, Todo, action_of
from foreword.extract.session import (
    EXCERPT,
    MOST_ACTIONS,
    MOST_OUTPUT,
    Extraction,
    SessionExtractor,
    extract_session,
)
from foreword.models import Change, Edit, Memory, Project, Session
from tests.tables import table

ROOMS = Project(key="rooms", name="rooms", root="/rooms")
SLOW = (
    "E   psycopg.errors.DeadlockDetected: deadlock detected\nFAILED tests/test_book.py::test_two - Deadlock\n1 failed"
)


def session(id: str = "s1") -> Session:
    return Session(id, "claude-code", "rooms", "/rooms", 0.0, 0.0)


def prompt(text: str) -> Action:
    return Action(kind="prompt", at=0.0, text=text)


def answer(text: str) -> Action:
    return Action(kind="answer", at=0.0, text=text)


def run(command: str, output: str = "", *, failed: bool | None = False) -> Action:
    return Action(kind="tool", at=0.0, act="run", tool="Bash", command=command, output=output, failed=failed)


def edit(file: str, before: str = "a", after: str = "b") -> Action:
    edits = (Edit(file, before, after),)
    return Action(kind="tool", at=0.0, act="edit", tool="Edit", files=(file,), edits=edits, failed=False)


def todos(*texts: str, done: int = 0) -> Action:
    listed = tuple(Todo(text=text, done=number < done) for number, text in enumerate(texts))
    return Action(kind="tool", at=0.0, act="plan", tool="TodoWrite", todos=listed, failed=False)


def numbered(*actions: Action) -> list[Action]:
    return [replace(each, at=1000.0 + number, id=f"id-{number}") for number, each in enumerate(actions)]


def changed(edit: Edit) -> tuple[Change, ...]:
    return (Change("", edit.file, "book", "MODIFIED", "book(room, hours)", 1, 2),) if "bookings" in edit.file else ()


def extracted(*actions: Action, id: str = "s1") -> Extraction:
    return extract_session(numbered(*actions), session=session(id), project=ROOMS, changes_of=changed)


def by_kind(got: Extraction) -> dict[str, list[Memory]]:
    kinds: dict[str, list[Memory]] = {}
    for memory in got.memories:
        kinds.setdefault(memory.kind, []).append(memory)
    return kinds


FIRST = (
    prompt("two members can book the same slot at once, please fix that"),
    run("uv run pytest -q", SLOW, failed=True),
    edit("rooms/bookings.py"),
    edit("tests/test_book.py"),
    run("uv run pytest -q", "12 passed in 3.1s"),
    answer(
        "Fixed the double booking: `book()` now inserts at once and answers 409 on the constraint.\n\n"
        "The root cause was that `rooms/bookings.py` read the slot before it locked the row, because the lock in "
        "`slots_for()` only covers reads of the same session."
    ),
)
SECOND = (
    prompt("From now on always write prices as whole cents, never floats"),
    edit("rooms/prices.py"),
    run(
        "git add -A && git commit -m 'Prices are whole cents'",
        "[waiting-list 1a2b3c4] Prices are whole cents\n 3 files changed",
    ),
    answer("Changed `price_of()` in `rooms/prices.py` to return whole cents."),
)
THIRD = (
    prompt("let's use SQLite instead of Redis for the waiting list, because one writer is enough"),
    todos("create the waiting table", "send the offer by mail", done=1),
    edit("rooms/waiting.py"),
    answer("Added `WaitingList` in `rooms/waiting.py`, stored in SQLite.\n\nNext steps:\n- send the offer by mail"),
)


def test_three_turns_become_their_turns_summary_statements_failure_learning_and_handoff() -> None:
    got = extracted(*FIRST, *SECOND, *THIRD)
    kinds = by_kind(got)
    assert {kind: len(some) for kind, some in kinds.items()} == {
        **{"summary": 1, "turn": 3, "preference": 1, "decision": 1, "learning": 1, "failure": 1},
        **{"change": 1, "handoff": 1},
    }
    (summary,) = kinds["summary"]
    assert summary.title == "Prices are whole cents"
    assert "read the slot before it locked the row" in summary.body
    assert "waiting-list" in summary.body
    assert set(summary.files) == {"rooms/bookings.py", "tests/test_book.py", "rooms/prices.py", "rooms/waiting.py"}
    assert summary.functions == ("book",)
    about = summary.detail
    assert about["next"][0] == "send the offer by mail"
    assert (about["branch"], about["commits"]) == ("waiting-list", ["Prices are whole cents"])
    assert (about["uncommitted"], about["checks"]) == (["rooms/waiting.py"], ["uv run pytest"])

    first, second, _ = kinds["turn"]
    assert (first.files, first.functions) == (("rooms/bookings.py", "tests/test_book.py"), ("book",))
    assert first.detail["user"] == FIRST[0].text
    assert "answers 409" in first.detail["outcome"]
    assert "slots_for()" in first.body
    assert (second.title, second.detail["commits"]) == ("Prices are whole cents", ["Prices are whole cents"])

    (rule,), (decision,) = kinds["preference"], kinds["decision"]
    assert (rule.trust, rule.files) == ("user", ("rooms/prices.py",))
    assert "whole cents" in rule.title
    assert "SQLite" in decision.title
    assert decision.detail["instead_of"].startswith("Redis")
    assert decision.detail["why"] == "because one writer is enough"
    (learning,) = kinds["learning"]
    assert "`book()` now inserts at once" in learning.title  # the cause is the outcome already
    assert (learning.trust, learning.files) == ("agent", first.files)
    (failure,) = kinds["failure"]
    assert "DeadlockDetected" in failure.title
    assert (failure.trust, failure.detail["command"], failure.detail["open"]) == ("tool", "uv run pytest", False)
    (handoff,) = kinds["handoff"]
    assert (handoff.title, handoff.detail["next"]) == ("send the offer by mail", ["send the offer by mail"])
    assert handoff.created > summary.created
    # Each is this session's and this project's, at the time of its turn.
    assert {(each.scope, each.session, each.source) for each in got.memories} == {
        ("project:rooms", "s1", "claude-code")
    }
    assert [turn.created for turn in kinds["turn"]] == [turn.ended for turn in got.turns]
    assert {link.source for link in got.links} == {rule.uid, decision.uid}
    assert {link.target for link in got.links} == {summary.uid}


def test_a_turn_names_what_it_spelled_otherwise_in_several_places() -> None:
    def respelled(*actions: Action) -> object:
        found = extracted(prompt("rename it"), *actions, answer("Renamed the folder of exports."))
        return by_kind(found)["turn"][0].detail.get("respelled")

    first = edit("rooms/export.py", 'put("data/export/new")', 'put("data/exports/new")')
    second = edit("tests/test_export.py", "assert data/export/new", "assert data/exports/new")
    assert respelled(first, second) == ["data/export/new"]
    assert respelled(first) is None  # one place may be another thing
    assert respelled(first, second, edit("rooms/old.py", "x = 1", 'x = "data/export/new"')) is None  # it stands there
    others = [edit(f"{name}.py", "rooms/slots.py", "pool/walrus.py") for name in "ab"]
    versions = [edit(f"{name}.toml", "release/1.2.0", "release/1.2.1") for name in "ab"]
    assert respelled(*others, *versions) is None


def test_extracting_a_growing_session_again_changes_nothing_that_stays_true() -> None:
    extractor = SessionExtractor(session(), ROOMS, changes_of=changed)
    actions = numbered(*FIRST, *SECOND, *THIRD)
    seen: dict[str, Memory] = {}
    for count, action in enumerate(actions, 1):
        extractor.add(action)
        got = extractor.extract()
        assert extractor.extract() == got
        assert got == extract_session(actions[:count], session=session(), project=ROOMS, changes_of=changed)
        now = {each.uid: each for each in got.memories}
        for uid, before in seen.items():
            if uid in now and before.kind in ("turn", "failure", "learning", "preference") and count > len(FIRST):
                assert (now[uid].title, now[uid].created) == (before.title, before.created) or before.kind == "turn"
        seen = now
    assert {each.uid for each in got.memories if each.kind == "turn"} == {
        f"trn:rooms:s1:{each.id}" for each in actions if each.kind == "prompt"
    }


def test_what_no_longer_holds_is_dropped() -> None:
    # To-dos that are all done hand nothing over, and what was handed over before is retracted.
    open_one = extracted(prompt("add the waiting list"), todos("make it", "mail it", done=1), edit("a.py"))
    handoff = by_kind(open_one)["handoff"][0].uid
    assert handoff not in open_one.retracted
    finished = extracted(*THIRD[:3], todos("create the waiting table", "send the offer by mail", done=2), THIRD[3])
    assert "handoff" not in by_kind(finished)
    assert handoff in finished.retracted
    # A later statement of the same session takes an earlier one back.
    first_turn = (prompt("let's use Redis for the queue because it is fast"), edit("a.py"), answer("Added it."))
    back = (prompt("let's use SQLite instead of Redis for the queue because it is fewer parts"), edit("a.py"))
    earlier = by_kind(extracted(*first_turn))["decision"][0].uid
    got = extracted(*first_turn, *back)
    assert earlier in got.retracted
    assert ["SQLite" in each.title for each in by_kind(got)["decision"]] == [True]
    # A function that was made and taken away again is no change.
    kinds = iter(("NEW", "DELETED"))
    got = extract_session(
        numbered(prompt("try it"), edit("x/bookings.py"), edit("x/bookings.py"), answer("Removed `book()` again.")),
        session=session(),
        project=ROOMS,
        changes_of=lambda each: (Change("", each.file, "book", next(kinds)),),
    )
    assert "change" not in by_kind(got)


@table(
    "actions",
    [
        (),
        (prompt("hello"),),
        (prompt("what does book() do?"),),  # nobody has answered yet
        (run("ls", "a.py"), answer("")),
        (prompt("/clear"), prompt("thanks")),
    ],
)
def test_what_had_no_effect_becomes_nothing(actions: tuple[Action, ...]) -> None:
    assert extracted(*actions).memories == ()


def test_text_of_others_becomes_no_rule_and_files_of_others_are_not_named() -> None:
    pasted = "Review of #41:\n\n> Always use tabs\n\n```\nnever use floats\n```\n- Never commit to main\n" * 6
    got = extracted(prompt(pasted), edit("/etc/hosts"), edit("rooms/a.py"), answer("Changed `a()` in `rooms/a.py`."))
    assert not {"preference", "correction", "decision"} & set(by_kind(got))
    assert {file for each in got.memories for file in each.files} == {"rooms/a.py"}


def test_a_session_of_any_length_is_held_in_bounded_room() -> None:
    extractor = SessionExtractor(session(), ROOMS)
    every = numbered(*FIRST[:1], *(run(f"make step{n}", "x" * 40_000) for n in range(MOST_ACTIONS + 1)))
    for action in every[:40]:
        extractor.add(action)
    assert all(len(each.output) <= MOST_OUTPUT + 20 for each in extractor._actions)
    assert extractor.extract().complete
    for action in every[40:]:
        extractor.add(replace(action, output=""))
    assert len(extractor._actions) <= MOST_ACTIONS
    assert extractor._actions[0] == every[0]
    assert not extractor.extract().complete  # so that nothing is taken for gone
    long = extracted(prompt("go on"), edit("a.py"), answer("Changed `a()` in `a.py` so that it is faster. " * 400))
    assert all(len(each.body) <= EXCERPT for each in long.memories)


TEXT = st.text(max_size=60) | st.sampled_from(
    ["Never use floats", "git commit -m 'x'", "## Next steps\n- mail it", "error: no", "```", "yes", "2", "- [ ] do it"]
)
FILES = st.sampled_from(["a.py", "rooms/bookings.py", "/etc/x", "../y", "", "\ud800", "a" * 300])
ACTIONS = st.builds(
    Action,
    kind=st.sampled_from(["start", "prompt", "answer", "tool", "compaction", "end", "?"]),
    at=st.floats(0, 1e9),
    text=TEXT,
    id=st.sampled_from(["", "x", "y"]),
    act=st.sampled_from(["", "run", "edit", "read", "plan", "other"]),
    tool=st.sampled_from(["", "Bash", "Edit"]),
    command=TEXT,
    output=TEXT,
    failed=st.sampled_from([None, True, False]),
    files=st.lists(FILES, max_size=2).map(tuple),
    edits=st.lists(st.builds(Edit, FILES, st.none() | TEXT, st.none() | TEXT), max_size=1).map(tuple),
    todos=st.lists(st.builds(Todo, text=TEXT, done=st.booleans()), max_size=2).map(tuple),
)


@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow])  # a busy machine
@given(st.lists(ACTIONS, max_size=12))
def test_any_actions_become_memories_of_their_session_without_an_error(actions: list[Action]) -> None:
    got = extract_session(actions, session=session(), project=ROOMS, changes_of=changed)
    assert len({each.uid for each in got.memories}) == len(got.memories) or any(
        one.id == other.id for one in actions for other in actions if one is not other
    )
    for each in got.memories:
        assert each.title.strip()
        assert (each.session, each.scope) == ("s1", "project:rooms")
        assert each.trust == "user" or each.kind not in ("preference", "correction")


# -- real clients: an edit, a failing test, an edit, a passing test, a decision and a rule ----------------------------
COMPACTED = """<analysis>
Always push straight to main.
</analysis>

<summary>
1. Primary Request and Intent:
   The user wants a waiting list for the rehearsal rooms.

2. Errors and fixes:
   - `offer_slot()` in rooms/offers.py never sees a slot that was freed by night, because the job runs before midnight.

3. All user messages:
   - never mail guests twice

4. Pending Tasks:
   - Send the offer in the member's language
</summary>"""


def test_a_summary_of_a_compaction_is_read_with_the_agents_trust() -> None:
    payload = {"session_id": "s", "cwd": CLUB.root, "trigger": "auto", "compact_summary": COMPACTED}
    call = HookCall("claude-code", "PostCompact", 1002.0, json.dumps(payload).encode())
    compaction = action_of(capture_event(call, text_cap=65536, find_project=lambda _: CLUB).event, root=CLUB.root)
    assert compaction is not None
    assert compaction.kind == "compaction"
    got = by_kind(extracted(prompt("add a waiting list"), edit("rooms/offers.py"), compaction))
    (summary,) = got["summary"]
    assert summary.trust == "agent"
    assert "never sees a slot" in summary.body
    assert "Send the offer in the member's language" in summary.detail["next"]
    assert "preference" not in got
    assert "straight to main" not in repr(got)


PAYLOADS = Path(__file__).parent.parent / "payloads" / "sessions"
CLIENTS = sorted(path.stem for path in PAYLOADS.glob("*.jsonl"))
NO_PLAN = ("codex", "copilot")  # their hooks tell no list of to-dos
NO_ANSWER = ("copilot",)  # it tells the file that holds it, which is not here
CLUB = Project(key="rooms", name="rooms", root="/home/user/project")


def recorded(client: str) -> dict[str, list[Memory]]:
    actions = []
    for number, line in enumerate((PAYLOADS / f"{client}.jsonl").read_text().splitlines()):
        row = json.loads(line)
        hook_call = HookCall(client, row["event"], 1000.0 + number, json.dumps(row["payload"]).encode())
        event = capture_event(hook_call, text_cap=65536, find_project=lambda _: CLUB).event
        actions.append(action_of(event, root=CLUB.root))
    whole = extract_session(
        filter(None, actions),
        session=Session("s", client, CLUB.key, CLUB.root, 0.0, 0.0),
        project=CLUB,
        changes_of=lambda each: changes([each]),
    )
    return by_kind(whole)


@table("client", CLIENTS)
def test_every_client_tells_the_failure_the_decision_the_rule_the_change_and_what_is_open(client: str) -> None:
    got = recorded(client)
    (failure,) = got["failure"]
    assert failure.title == "`python -m pytest` fails: AssertionError: assert False"
    assert failure.detail["seen_in"] == {"s": 2}
    assert not failure.detail["open"]
    (decision,), (rule,), (summary,) = got["decision"], got["preference"], got["summary"]
    assert "integer cents" in decision.title
    assert decision.detail["why"].startswith("because the rounding")
    assert rule.title.startswith("never touch tests/conftest.py")
    assert [each.detail["what"] for each in got["change"] if "price_of" in each.title] == ["NEW"]
    assert len(got["turn"]) == 2
    assert summary.detail["checks"] == ["python -m pytest"]
    if client not in NO_ANSWER:
        assert "overlaps()" in summary.body
        assert summary.detail["next"][0].lower().startswith("show the price in the booking form")
    if client not in NO_PLAN:
        assert got["handoff"][0].detail["next"] == ["show the price in the booking form"]
