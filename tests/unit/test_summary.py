"""What a session was about, what came of it and what it found out; and the sentences that this is made of."""

from __future__ import annotations

from foreword.extract.actions import Action, Turn, turns_of
from foreword.extract.facts import commits_of, pull_requests_of
from foreword.extract.summary import LEARNED_ALL, TITLE, learned_of, outcome_of, outcome_of_session, title_of
from foreword.extract.text import blocks, cut, sentences
from tests.growth import assert_linear
from tests.tables import table

HEREDOC = "git add a.py && git commit -m \"$(cat <<'EOF'\n{}\n\n{}\n\nCo-Authored-By: Agent <a@example.org>\nEOF\n)\""


def session(*actions: Action) -> tuple[Turn, ...]:
    return turns_of(Action(**{**each.__dict__, "at": float(at)}) for at, each in enumerate(actions))


def prompt(text: str) -> Action:
    return Action(kind="prompt", at=0, text=text)


def answer(text: str) -> Action:
    return Action(kind="answer", at=0, text=text)


def run(command: str, output: str = "", *, failed: bool = False) -> Action:
    return Action(kind="tool", at=0, act="run", tool="Bash", command=command, output=output, failed=failed)


def edit(*files: str) -> Action:
    return Action(kind="tool", at=0, act="edit", tool="Edit", files=files, failed=False)


@table(
    "text, expected",
    [
        ("Slots live in rooms/slots.py. They are UTC.", ["Slots live in rooms/slots.py.", "They are UTC."]),
        ("Use a zone, e.g. Lisbon. Not v1.2 of it.", ["Use a zone, e.g. Lisbon.", "Not v1.2 of it."]),
        ("Run `make . && x. Y` first. Then stop.", ["Run `make . && x. Y` first.", "Then stop."]),
        ("## Done\n- **book()** is [here](a/b.py)\n- ✅ mail", ["book() is here", "mail"]),
        ("Before\n```py\nx = 1. Not this\n```\n| a | b |\n|---|---|\n| c | d |\n> quoted\nAfter", ["Before", "After"]),
        (
            "A line that was broken by a window of some seventy-odd columns and\ngoes on here.",
            ["A line that was broken by a window of some seventy-odd columns and goes on here."],
        ),
        ("", []),
    ],
)
def test_splits_messages_into_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_knows_headings_and_boxes_of_items() -> None:
    found = blocks("**Still to do:**\n- [ ] mail\n- [x] prices\n  - cents only\n\nPlain text.")
    assert [(each.kind, each.text, each.heading, each.done) for each in found] == [
        ("heading", "Still to do", "", None),
        ("item", "mail", "Still to do", False),
        ("item", "prices", "Still to do", True),
        ("item", "cents only", "prices", None),
        ("text", "Plain text.", "Still to do", None),
    ]
    assert [each.text for each in blocks("# Head\n*soft* and **hard**")] == ["Head", "soft and hard"]


@table("width", range(12, 120, 9))
def test_never_cuts_inside_a_word_or_leaves_code_open(width: int) -> None:
    text = "book() inserts at once, and `the constraint of bookings` answers (with 409) when two members are as fast"
    short = cut(text, width)
    assert len(short) <= width
    assert short.count("`") % 2 == 0
    body = short.rstrip("…").rstrip()
    assert text.startswith(body)
    assert body == text or not (body[-1].isalnum() and text[len(body)].isalnum())


def test_reads_commits_and_pull_requests_from_commands() -> None:
    turns = session(
        prompt("go"),
        run(
            HEREDOC.format("fix(rooms): refuse double bookings", "Two inserts raced, so both won.\n\nFixes #39"),
            "[slots 1a2b3c4] fix(rooms): refuse double bookings\n 1 file changed",
        ),
        run('git commit -m "docs: explain"', "nothing to commit, working tree clean"),
        run("git commit -m 'lost'", "hook failed", failed=True),
        run("git -C /work commit --amend --no-edit", "[slots 9f8e7d6] fix(rooms): refuse double bookings"),
        run("echo 'git commit -m no'"),
        run('gh pr create --title "Refuse double bookings" --body "x"', "https://git.example.org/band/rooms/pull/41"),
    )
    (commit,) = commits_of(turns)
    assert (commit.subject, commit.hash, commit.branch) == ("fix(rooms): refuse double bookings", "9f8e7d6", "slots")
    assert "Two inserts raced" in commit.body
    assert "Co-Authored" not in commit.body
    (pull,) = pull_requests_of(turns)
    assert (pull.title, pull.number) == ("Refuse double bookings", "41")


@table(
    "actions, expected",
    [
        ([run("git commit -m 'fix(mail): show the hour of the venue'")], "mail: show the hour of the venue"),
        (
            [run("git commit -m 'docs: list the zones'"), run("git commit -m 'feat: hold a slot for half an hour'")],
            "List the zones; Hold a slot for half an hour",
        ),
        ([run('gh pr create --title "Waiting list"', "https://x.org/a/b/pull/7")], "Waiting list (#7)"),
        (
            [edit("a.py"), answer("All done. Moved the prices to `rooms/prices.py`.")],
            "Moved the prices to `rooms/prices.py`",
        ),
        ([answer("Yes, it does.")], "Show the waiting list in the menu"),
    ],
)
def test_titles_a_session_by_the_best_that_it_has(actions: list[Action], expected: str) -> None:
    assert title_of(session(prompt("hey, can you show the waiting list in the menu?"), *actions)) == expected


@table(
    "text, expected",
    [
        (
            "Implement the following plan:\n\n# Plan: Offer free slots by mail\n\n## Context\nx",
            "Offer free slots by mail",
        ),
        ("https://git.example.org/band/rooms/issues/12", ""),
        ("ok thanks", ""),
        ("予約の一覧をもっと速く表示して", "予約の一覧をもっと速く表示して"),
        ("commit", ""),
    ],
)
def test_titles_nothing_by_a_link_a_reply_or_a_wrapper(text: str, expected: str) -> None:
    assert title_of(session(prompt(text), answer("Here you go."))) == expected


def test_keeps_titles_short() -> None:
    commits = [run(f"git commit -m 'feat: add the {word} of a rather long list of rooms'") for word in "abcdefgh"]
    long = run("git commit -m '" + "prices of rooms " * 20 + "'")
    assert all(len(title_of(session(prompt("go"), *some))) <= TITLE for some in (commits, [long]))


@table(
    "text, expected",
    [
        (
            "Done. `offer_slot()` now holds a slot for 30 minutes. Want me to push?",
            "`offer_slot()` now holds a slot for 30 minutes.",
        ),
        (
            "The bug was that `format_slot` ignored the venue's zone. All 12 tests pass.",
            "The bug was that `format_slot` ignored the venue's zone.",
        ),
        ("All done. Here's a summary:\n\n| file | change |\n|---|---|\n| a | b |", ""),
        ("Let me look at the mail templates first.", ""),
        ("Shall I fix `book()` as well?", ""),
        ("Moved the task of the venue's mails to done in `todo.md`.", ""),
        ("Fixup squashed into 3f602d14 (now 6dd3a03d), and pushed with lease to `origin/slots`.", ""),
        ("`holdUntil`, `offerSlot()` and `freeSlots()` are now set in `rooms/slots.py`.", ""),
        (
            "Erledigt. `book()` sperrt die Zeile in `rooms/book.py`, weil zwei Anfragen zugleich kamen. Pushen?",
            "`book()` sperrt die Zeile in `rooms/book.py`, weil zwei Anfragen zugleich kamen.",
        ),
        (
            "Fait. `book()` verrouille la ligne dans `rooms/book.py`.\n\n## Reste à faire\n- le test de `cancel()`",
            "`book()` verrouille la ligne dans `rooms/book.py`.",
        ),
        (
            "修正しました。`book()` が `rooms/book.py` の行をロックするようにしました。",
            "`book()` が `rooms/book.py` の行をロックするようにしました。",
        ),
        ("Listo.\n\n## Falta\n- El bloque `moved` en `net.tf`, y el test de `moved`", ""),
        ("", ""),
    ],
)
def test_says_what_came_of_a_turn(text: str, expected: str) -> None:
    assert outcome_of(session(prompt("fix it"), edit("rooms/slots.py"), answer(text))[0]) == expected


def test_says_what_became_of_the_work() -> None:
    turns = session(
        prompt("fix it"),
        edit("rooms/slots.py"),
        answer("Fixed `format_slot()`: it now takes the zone of the venue. All 12 tests pass."),
        prompt("commit"),
        run("git commit -m 'fix: zone of the venue'", "[lisbon 1a2b3c4] fix: zone of the venue"),
        run("git push -u origin lisbon"),
        answer("Pushed."),
    )
    outcome = outcome_of_session(turns)
    assert outcome.startswith("Fixed `format_slot()`: it now takes the zone of the venue. ")
    assert outcome.endswith("Committed 1a2b3c4 on lisbon, pushed, 12 tests pass.")


FACT = "The root cause: `load_zone()` never reads `tzdata` unless the test extra is installed, so CI falls back to UTC."


@table(
    "text, kept",
    [
        (FACT, True),
        ("This never works because `book()` requires a lock before it writes the row.", False),
        ("It might be that `book()` never releases the lock, so the next import has to wait.", False),
        ("The mail is late because the queue has to wait for somebody to open it again.", False),
        ("Want me to change `book()` so that it never waits for the lock of the import?", False),
        ("All 12 tests in `tests/test_mail.py` pass now, because lint runs before them.", False),
    ],
)
def test_learns_only_facts_that_stand_alone_and_name_code(text: str, kept: bool) -> None:
    other = answer("Added the waiting list to `menu.html`, and moved its badge to the left.")
    turns = session(prompt("add the list"), edit("menu.html"), other, prompt("why?"), answer(text))
    assert bool(learned_of(turns)) is kept
    assert [each.turn.number for each in learned_of(turns)] == [1] * kept


def test_learns_little_and_nothing_twice() -> None:
    facts = [
        f"`load_{name}()` never reads {name} unless `{name}.toml` exists, so {name} falls back to nothing."
        for name in ("zones", "prices", "members", "bookings", "mails", "venues", "bands")
    ]
    done = [prompt("add the list"), edit("menu.html"), answer("Added the waiting list to `menu.html`.")]
    turns = session(*done, prompt("why?"), *(answer(each) for each in [*facts, *facts]))
    learned = [each.text for each in learned_of(turns)]
    assert 0 < len(learned) == len(set(learned))
    assert sum(map(len, learned)) <= LEARNED_ALL


@table(
    "piece",
    [
        "-",
        "| ",
        "`",
        "a-",
        "**",
        "\n",
        "_a",
        "[",
        "commit ",
        "so the `a` ",
        "- [ ] a\n",
        "1, ",
        "git -C ",
    ],
)
def test_reads_any_text_in_linear_time(piece: str) -> None:
    def read(text: str) -> None:
        turns = session(prompt(text), edit("a.py"), run(f"git commit -m '{text}'", text), answer(text))
        title_of(turns), outcome_of_session(turns), learned_of(turns)

    assert_linear(read, piece, size=8_000)
