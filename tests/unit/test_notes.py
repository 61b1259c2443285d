"""Each memory in words that stand alone: what it says, when, from whom; of long texts what fits a prompt."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from foreword.models import KINDS, Memory
from foreword.recall.hints import hint_for_edit
from foreword.recall.notes import (
    QUOTE,
    SENTENCE,
    is_torn,
    note_of,
    passage,
    rule_note,
    session_note,
    unique_notes,
)
from foreword.recall.relevance import content_words
from foreword.recall.render import line
from tests.tables import table
from tests.unit.recalling import DAY, NOW, TRAPS, a_memory, any_memory

FAILED = {
    "command": "yarn unit",
    "error": "Couldn't find a script named 'unit'",
    "seen_in": {"a": 1, "b": 2, "c": 1},
    "worked": {"yarn test:unit": ["a", "b"]},
    "last": NOW - DAY,
}
STORY = (
    "Slots are kept in UTC.\nThe mail shows the hour of the venue because format_slot() converts it.\nAll tests pass."
)


def weights(text: str) -> dict[str, float]:
    return dict.fromkeys(content_words(text), 1.0)


def note_line(memory: Memory, prompt: str = "", *, layer: str = "notes") -> str:
    return line(note_of(memory, now=NOW, weights=weights(prompt)), layer=layer)


@table(
    ("memory", "prompt", "text"),
    [
        # What came of a turn, in the passage that holds the prompt's words, under its commit.
        (
            a_memory("x", kind="turn", id="trn-00000001", body=STORY, trust="agent", files=("m.py",)),
            "the mail has the wrong hour of the venue",
            "- yesterday: The mail shows the hour of the venue because format_slot() converts it. m.py [trn-00000001]",
        ),
        (
            a_memory("x", kind="turn", detail={"commits": ["Fix hours"], "outcome": "All is in UTC."}, trust="agent"),
            "",
            "- yesterday: Fix hours: All is in UTC",
        ),
        # A statement of the user, with its reason once.
        (
            a_memory("Use SQLite", id="dec-00000001", detail={"why": "because one writer is enough."}),
            "",
            "- you, yesterday: Use SQLite, because one writer is enough [dec-00000001]",
        ),
        (
            a_memory("Use SQLite, because one writer is enough.", detail={"why": "because one writer is enough."}),
            "",
            "- you, yesterday: Use SQLite, because one writer is enough",
        ),
        (a_memory("Use SQLite", trust="agent", source="codex"), "", "- decision (codex), yesterday: Use SQLite"),
        # A failure with what works.
        (
            a_memory("x", kind="failure", detail=FAILED, trust="tool"),
            "",
            "- failure: `yarn unit` fails (3 sessions, last yesterday): \"Couldn't find a script named 'unit'\";"
            " `yarn test:unit` worked in 2",
        ),
        # One that somebody wrote down.
        (
            a_memory("403 despite the allow block", kind="failure", detail={"fixed_by": "pass the resource"}),
            "",
            "- failure, yesterday: 403 despite the allow block: pass the resource",
        ),
        (
            a_memory("The sandbox rejects our sender", kind="learning", trust="agent", files=("rooms/mail.py",)),
            "",
            "- learned yesterday: The sandbox rejects our sender. rooms/mail.py",
        ),
        (a_memory("Add it", kind="observation", source="git", trust="tool"), "", "- commit, yesterday: Add it"),
        (
            a_memory("x", kind="change", files=("a.py",), detail={"what": "NEW", "signature": "book(room) -> Slot"}),
            "",
            "- yesterday: book(room) -> Slot NEW. a.py",
        ),
        (
            a_memory("Lock it", kind="pattern", body="Two writers race.", detail={"solution": "a lock"}),
            "",
            "- pattern, yesterday: Lock it: Two writers race: a lock",
        ),
        (a_memory("ask law", kind="note", trust="imported", source="lore"), "", "- note (lore), yesterday: ask law"),
    ],
)  # fmt: skip
def test_each_kind_says_what_it_knows_when_and_from_whom(memory: Memory, prompt: str, text: str) -> None:
    assert note_line(memory, prompt).rstrip(".") == text


def test_of_a_long_outcome_a_session_says_what_comes_before_a_clause() -> None:
    outcome = (
        "`book()` took a slot twice where two members of the band sent their forms at the same time, because "
        + "it read first and " * 9
    )
    note = session_note(
        a_memory("Book once", kind="summary", body=f"{outcome}wrote then.\nCommitted 1a2b3c4."), now=NOW
    )
    assert (
        note.text
        == "Book once: `book()` took a slot twice where two members of the band sent their forms at the same time"
    )


def test_sessions_and_rules_are_one_line_each() -> None:
    summary = a_memory(
        "Waiting list", kind="summary", body="offer_slot() holds a slot for 30 minutes.", files=("a.py", "b.py")
    )
    assert line(session_note(summary, now=NOW, files=("b.py",)), layer="sessions") == (
        "- yesterday: Waiting list: offer_slot() holds a slot for 30 minutes. b.py"
    )
    # A title that its outcome repeats is not said twice.
    same = replace(summary, title="Waiting list holds slots", body="The waiting list now holds slots for 30 minutes.")
    assert session_note(same, now=NOW).text == "The waiting list now holds slots for 30 minutes."
    rule = a_memory("Prices are whole cents", kind="preference", seen=3)
    assert line(rule_note(rule, now=NOW), layer="rules") == "- Prices are whole cents (you, 3 times, last yesterday)"
    assert line(rule_note(replace(rule, seen=1), now=NOW), layer="rules") == "- Prices are whole cents (you, yesterday)"


def test_the_users_words_are_quoted_only_where_a_person_typed_them_here() -> None:
    detail = {"user": "the mail must show the venue's hour", "outcome": "Changed confirm.txt."}
    turn = a_memory("x", kind="turn", detail=detail, trust="agent")
    quoted = 'you, yesterday: "the mail must show the venue\'s hour": Changed confirm.txt.'
    assert quoted in note_line(turn, "the hour of the venue in the mail")
    assert "you" not in note_line(turn, "confirm.txt was changed")
    # Who imports a turn could put words into the user's mouth.
    for trust in ("imported", "tool"):
        assert "you" not in note_line(replace(turn, trust=trust), "the hour of the venue in the mail")
    long = {**detail, "user": "the hour of the venue " * 20}
    assert "you" not in note_line(replace(turn, detail=long), "the hour of the venue in the mail")
    assert len(long["user"]) > QUOTE


@table("trap", TRAPS)
def test_no_text_leaves_its_note(trap: str) -> None:
    for kind in KINDS:
        detail = dict.fromkeys(("user", "outcome", "why", "solution", "signature", "error", "command", "fix"), trap)
        lists = {"commits": [trap], "worked": {trap: ["a", "b"]}, "seen_in": {trap: 1}, "worked_in": {trap: trap}}
        memory = a_memory(trap, kind=kind, body=trap, files=(trap,), source=trap, id=trap, detail={**detail, **lists})
        for trust in ("user", "agent", "imported"):
            for each in (
                note_of(replace(memory, trust=trust), now=NOW, weights=weights(trap)),
                rule_note(memory, now=NOW),
            ):
                text = line(each, layer="notes")
                assert text.isprintable()
                assert not any(
                    mark in text.lower() for mark in ("--- foreword", "--- end", "[foreword", "<", "```", "~~~")
                )


@given(st.integers(0, 10**6))
def test_notes_are_short_and_clean_whatever_was_stored(seed: int) -> None:
    memory = any_memory(random.Random(seed))
    for note in (note_of(memory, now=NOW), session_note(memory, now=NOW), rule_note(memory, now=NOW)):
        assert all(
            part.isprintable() for part in (note.text, note.label, note.tail, note.id, note.day, note.by, *note.files)
        )
        assert len(note.text) <= 2 * SENTENCE
        assert len(note.id) <= 40
        assert note.by.strip("-_").lower() != "user"


def test_notes_that_repeat_an_earlier_one_are_left_out() -> None:
    notes = [note_of(a_memory(text, kind="note"), now=NOW) for text in (
        "send the offer by mail", "Send the offer by mail please", "delete the old waiting table",
    )]  # fmt: skip
    assert [each.text for each in unique_notes(notes)] == ["send the offer by mail", "delete the old waiting table"]


# -- passages ----------------------------------------------------------------------------------------------------------
LONG = """I looked at all of it.
The confirmation mail formats the hour by itself because confirm.txt predates format_slot().
Want me to change the confirmation mail too?
The sandbox rejects our sender until the domain of the venue is verified.
Now format_slot() converts the hour of the confirmation mail to the venue's zone.
Done."""


@table(
    "text, expected",
    [
        ("It is mentioned: the third line says that slots are in UTC.", True),
        ("The tradeoff: it works for one venue, and `free_slots()` is slower.", True),
        ("This was tried before and did not help.", True),
        ("It's in `rooms/mail.py`, which formats the hour.", False),
        ("This project stores slots in UTC.", False),
        ("The cause: slots are stored in UTC.", False),
        ("Mail the offer: it goes out at once.", False),
    ],
)
def test_a_sentence_is_torn_where_its_subject_stands_in_another(text: str, expected: bool) -> None:
    assert is_torn(text) is expected


def test_a_passage_is_the_sentences_that_hold_the_words_in_their_order() -> None:
    got = passage(LONG, weights("the confirmation mail has the wrong hour"), room=240)
    assert got.startswith("The confirmation mail formats the hour by itself because")
    assert got.endswith("to the venue's zone.")
    assert "Want me" not in got
    assert passage(LONG, weights("the sandbox rejects the sender of a domain"), room=240).startswith(
        "The sandbox rejects"
    )
    assert passage(LONG, weights("printer queue"), room=240) == ""
    assert passage("", weights("mail"), room=240) == ""


TRIAGE = """I looked at all the open issues.
#41 — Mails for waiting guests
The sender is not verified, so `send_offer()` is skipped.
It needs the key of the domain first.
#44 — Prices in cents
Done since May."""


def test_of_a_list_of_issues_the_part_on_the_one_that_is_asked_for_is_told() -> None:
    assert passage(TRIAGE, {"#41": 1.3}, room=240) == (
        "#41 — Mails for waiting guests: The sender is not verified, so `send_offer()` is skipped. "
        "It needs the key of the domain first."
    )
    assert passage(TRIAGE, {"#44": 1.3}, room=240) == "#44 — Prices in cents: Done since May."
    assert passage(TRIAGE, {"#45": 1.3}, room=240) == ""


def test_what_came_of_an_issue_is_told_where_the_turn_was_asked_for_it() -> None:
    detail = {"user": "fix https://example.com/band/rooms/issues/41", "outcome": "The sender's domain is verified now."}
    turn = a_memory("x", kind="turn", trust="agent", body="Issue #41 asks for mails to waiting guests.", detail=detail)
    assert note_of(turn, now=NOW, weights={"#41": 1.3}).text == "The sender's domain is verified now."


@given(st.text(max_size=400), st.integers(1, 300))
def test_a_passage_is_never_longer_than_its_room(text: str, room: int) -> None:
    both = f"{text}\n{LONG}\n{text}"
    assert len(passage(both, weights(both[:200]), room=room)) <= room + 3


# -- at the first edit of a file ---------------------------------------------------------------------------------------
def test_before_an_edit_the_newest_that_the_user_laid_down_is_quoted() -> None:
    old = a_memory("full.sql is a snapshot", kind="preference", id="pre-00000001", age=9 * DAY)
    new = a_memory("full.sql is never edited; add a migration", kind="correction", id="cor-00000001", age=3 * DAY)
    others = [a_memory("we edited it", kind=kind, trust="agent", id="x") for kind in KINDS]
    hint = hint_for_edit("schema/full.sql", [*others, old, new], now=NOW)
    assert hint is not None
    assert hint.memory == "cor-00000001"
    assert hint.text == (
        '[foreword, history] schema/full.sql: the user, 3 days ago: "full.sql is never edited; add a migration"'
        " [cor-00000001]"
    )
    assert hint_for_edit("a.py", others, now=NOW) is None
    # What was said in a turn that edited many files is about those that it names.
    files = tuple(f"f{n}.py" for n in range(9))
    wide = a_memory("f3 is generated, never edit it", kind="correction", files=files)
    assert hint_for_edit("rooms/f3.py", [wide], now=NOW) is not None
    assert hint_for_edit("rooms/f4.py", [wide], now=NOW) is None
    assert hint_for_edit("a.py", [], now=NOW) is None
    # A file and its tests are one thing.
    pairs = ("a.py", "test_a.py", "b.ts", "b.test.ts", "c.go", "c_test.go")
    assert hint_for_edit("a.py", [a_memory("cents, never floats", kind="correction", files=pairs)], now=NOW) is not None


@table(
    ("title", "confidence", "files"),
    [
        ("Which of the layouts do you like best? Option B: cards in two columns", 0.9, ("web/cards.py",)),
        ("Chosen: cards in two columns", 0.9, ("web/cards.py",)),
        ("the cards must branch off main, and the pull request is merged there", 0.9, ("web/cards.py",)),
        ("the cards should have two columns", 0.65, ("web/cards.py",)),
        ("the total should stand below", 0.8, ("web/cards.py", "web/total.py")),
    ],
)
def test_an_answer_a_task_and_a_guess_are_not_told_at_an_edit(title: str, confidence: float, files) -> None:
    memory = a_memory(title, kind="decision", confidence=confidence, files=files)
    changed = "cards in two columns must branch; the total should stand below"
    assert hint_for_edit("web/cards.py", [memory], now=NOW, changed=changed) is None


def test_a_wish_comes_at_an_edit_of_its_words_and_a_prohibition_at_any() -> None:
    wish = a_memory("the weekly totals should be in bold type", kind="decision", files=("web/cards.py",))
    shared = "<b>{weeklyTotals}</b> // totals per week, weekly"
    assert hint_for_edit("web/cards.py", [wish], now=NOW, changed=shared) is not None
    assert hint_for_edit("web/cards.py", [wish], now=NOW, changed="padding: 2rem; // cards") is None
    wanted = a_memory("I want the client header in blue", kind="decision", files=("web/cards.py",))
    assert hint_for_edit("web/cards.py", [wanted], now=NOW, changed="padding: 2rem; // cards") is None
    rule = a_memory("cards never show prices without taxes", kind="decision", files=("web/cards.py",))
    assert hint_for_edit("web/cards.py", [rule], now=NOW, changed="padding: 2rem") is not None


@table("trap", TRAPS)
def test_a_hint_before_an_edit_is_one_line_whatever_was_stored(trap: str) -> None:
    hint = hint_for_edit(trap, [a_memory(f"never {trap}", kind="preference", id=trap)], now=NOW)
    assert hint is not None
    assert hint.text.isprintable()
    assert hint.text.lower().count("[foreword") == 1
    assert hint.text.count('"') == 2
    assert "<" not in hint.text
