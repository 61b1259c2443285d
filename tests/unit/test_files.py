"""Files that a project works on: the newest turns count most, and companions need evidence."""

from __future__ import annotations

from foreword.recall.files import TurnRecord, changed_together, is_source, missing_tests, recent_files
from tests.tables import table


def turn(ended: float, *edited: str, read: tuple[str, ...] = (), session: str = "s") -> TurnRecord:
    return TurnRecord(session, ended, tuple(edited), read)


HISTORY = [
    turn(1, "rooms/mail.py", "tests/test_mail.py"),
    turn(2, "rooms/mail.py", "tests/test_mail.py", "rooms/prices.py"),
    turn(3, "rooms/mail.py", "tests/test_mail.py"),
    turn(4, "rooms/slots.py", read=("rooms/zones.py",)),
]


def test_the_newest_turn_comes_first_and_editing_counts_more_than_reading() -> None:
    files = recent_files(HISTORY)
    assert files.index("rooms/slots.py") < files.index("rooms/zones.py")
    assert files.index("rooms/mail.py") < files.index("rooms/prices.py")


def test_a_turn_of_fifty_files_does_not_outvote_one_of_two() -> None:
    sweep = turn(5, *(f"rooms/part{number}.py" for number in range(50)))
    assert recent_files([*HISTORY, sweep])[0] in ("rooms/slots.py", "rooms/mail.py", "tests/test_mail.py")


def test_companions_changed_in_half_of_the_turns_or_more_and_twice_at_least() -> None:
    assert changed_together(["rooms/mail.py"], HISTORY) == [("tests/test_mail.py", 3, 3)]
    assert changed_together(["mail.py"], HISTORY) == [("tests/test_mail.py", 3, 3)]
    assert changed_together(["rooms/slots.py"], HISTORY) == []
    assert changed_together([], HISTORY) == []


def test_a_plan_is_told_of_tests_alone_and_only_of_those_it_leaves_out() -> None:
    assert missing_tests(["rooms/mail.py"], HISTORY) == [("tests/test_mail.py", 3, 3)]
    assert missing_tests(["rooms/mail.py", "tests/test_mail.py"], HISTORY) == []
    assert missing_tests(["rooms/mail.py"], HISTORY[1:]) == []  # twice is no habit
    twins = [turn(each, "web/Slots.tsx", "web/Slots.test.tsx", "web/Rooms.tsx", "web/slots.css") for each in range(4)]
    assert missing_tests(["Slots.tsx"], twins) == [("web/Slots.test.tsx", 4, 4)]


@table(
    "path, wanted",
    [
        ("rooms/mail.py", True),
        (".github/workflows/release.yml", True),
        ("package-lock.json", False),
        ("web/node_modules/x/index.js", False),
        ("dist/app.min.js", False),
        ("/etc/hosts", False),
        ("../other/file.py", False),
    ],
)
def test_generated_and_foreign_files_are_left_out(path: str, wanted: bool) -> None:
    assert is_source(path) is wanted
