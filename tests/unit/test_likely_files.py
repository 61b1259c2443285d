"""Which files a prompt will probably need."""

from __future__ import annotations

from foreword.recall.files import LikelyFile, TurnRecord, is_source, likely_files, select_files
from foreword.recall.relevance import content_words
from tests.tables import table


def turn(session: str, ended: float, words: str, *edited: str, read: tuple[str, ...] = ()) -> TurnRecord:
    return TurnRecord(session, ended, content_words(words), content_words(words), edited, read)


HISTORY = [
    turn("one", 1, "the mail shows the hour of the venue", "rooms/mail.py", "rooms/slots.py"),
    turn("two", 2, "vouchers have prices in cents", "rooms/prices.py", "rooms/vouchers.py"),
    turn("three", 3, "waiting list offers a slot", "rooms/waiting.py", read=("rooms/slots.py",)),
    turn("four", 4, "tidy everything", *(f"rooms/old_{number}.py" for number in range(50))),
]


def paths(prompt: str, history: list[TurnRecord] = HISTORY, **more: object) -> list[str]:
    terms = dict.fromkeys(content_words(prompt), 1.0)
    return [each.path for each in likely_files(terms, history, session="now", **more)]  # type: ignore[arg-type]


@table(
    "prompt, expected",
    [
        ("the hour in the mail is wrong", "rooms/mail.py"),
        ("round the prices of vouchers", "rooms/vouchers.py"),
        ("waiting list loses members", "rooms/waiting.py"),
    ],
)
def test_words_of_earlier_turns_and_names_find_the_file(prompt: str, expected: str) -> None:
    assert expected in paths(prompt)[:2]


def test_edited_files_count_more_than_read_ones() -> None:
    history = [turn("one", 1, "reminder sent twice", "rooms/first.py", read=("rooms/second.py",))]
    assert paths("reminder sent twice", history) == ["rooms/first.py", "rooms/second.py"]


def test_a_turn_of_fifty_files_does_not_win() -> None:
    history = [*HISTORY[:3], turn("four", 4, "the mail hour", *(f"rooms/old_{number}.py" for number in range(50)))]
    assert paths("the hour in the mail is wrong", history)[0] == "rooms/mail.py"


def test_the_newer_of_two_equal_files_comes_first() -> None:
    history = [turn("one", 1, "reminder", "rooms/a.py"), turn("two", 2, "reminder", "rooms/b.py")]
    assert paths("reminder", history)[0] == "rooms/b.py"


def test_files_edited_together_with_those_of_the_session_come_first() -> None:
    history = [turn("one", 1, "x", "rooms/a.py", "rooms/z.py"), turn("one", 2, "y", "rooms/b.py", "rooms/c.py")]
    assert paths("something", history, session_touched=("rooms/c.py",))[0] == "rooms/b.py"


def test_leaves_out_what_the_agent_has() -> None:
    assert "rooms/mail.py" not in paths("mail hour", session_touched=("rooms/mail.py",))
    assert "rooms/mail.py" not in paths("mail hour", names_in_prompt=("Mail.py",))


def test_a_routine_names_only_files_whose_whole_name_it_says() -> None:
    history = [turn("one", 1, "commit and update changelog", "CHANGELOG.md", "rooms/mail.py")]
    assert paths("commit and update the changelog", history, only_named=True) == ["CHANGELOG.md"]
    assert paths("commit", history, only_named=True) == []


def test_scores_are_chances_and_rise_with_evidence() -> None:
    terms = dict.fromkeys(content_words("the hour of the venue in the mail"), 1.0)
    found = likely_files(terms, HISTORY, session="now")
    assert all(0 < each.score < 1 for each in found)
    again = likely_files(
        terms, [*HISTORY, turn("five", 5, "mail shows the venue hour", "rooms/mail.py")], session="now"
    )
    assert again[0].path == "rooms/mail.py"
    assert again[0].score > found[0].score
    assert likely_files({}, [], session="now") == []


@table(
    "path, expected",
    [
        ("rooms/mail.py", True),
        (".github/workflows/ci.yml", True),
        ("src/builder/output.ts", True),
        ("node_modules/x/index.js", False),
        ("web/dist/app.js", False),
        ("yarn.lock", False),
        ("package-lock.json", False),
        ("api/user_pb2.py", False),
        ("tmp/try.py", False),
        ("/etc/hosts", False),
        ("../other/a.py", False),
        ("C:/work/a.py", False),
    ],
)
def test_only_files_that_a_person_edits(path: str, expected: bool) -> None:
    assert is_source(path) is expected


@table(
    "scores, with_note, opens_topic, expected",
    [
        ((0.6, 0.3, 0.1), False, True, 2),
        ((0.4, 0.3), False, True, 0),
        ((0.4, 0.3, 0.25, 0.25), True, True, 3),
        ((0.9,), False, False, 0),
        ((), True, True, 0),
    ],
)
def test_names_few_files_and_none_for_most_prompts(
    scores: tuple[float, ...], with_note: bool, opens_topic: bool, expected: int
) -> None:
    found = [LikelyFile(f"{number}.py", score, {}) for number, score in enumerate(scores)]
    assert len(select_files(found, with_note=with_note, opens_topic=opens_topic)) == expected
