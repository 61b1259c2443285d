"""What the user says becomes a decision, a rule or a correction; what is none of them becomes nothing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.distill.said import said, takes_back
from foreword.extract.text import cut, pieces
from tests.tables import table


def kinds(text: str, *, first: bool = False) -> list[str]:
    return [one.kind for one in said(text, first=first)]


@table(
    ("text", "rule"),
    [
        ("Always add type hints to Python functions.", "Always add type hints to Python functions"),
        ("also please never push to main without asking", "Never push to main without asking"),
        ("From now on run tests with `uv run pytest`", "From now on run tests with `uv run pytest`"),
        ("I prefer small commits.", "I prefer small commits"),
        ("No new dependencies without asking.", "No new dependencies without asking"),
        ("Use bun for everything.", "Use bun for everything"),
        (
            "When I work on JS projects I always use bun, not npm.",
            "When I work on JS projects I always use bun, not npm",
        ),
        ("make sure you always run the linter first", "Make sure you always run the linter first"),
        ("btw please don't commit config.toml, it holds secrets", "Don't commit config.toml, it holds secrets"),
        ("you should never edit generated files", "You should never edit generated files"),
        (
            "Remember to run make gen after changing a proto file.",
            "Remember to run make gen after changing a proto file",
        ),
        ("Whenever you change a route, update the docs.", "Whenever you change a route, update the docs"),
        ("A few notes: keep responses short.", "Keep responses short"),
    ],
)
def test_a_rule_of_the_user_is_kept_in_the_users_words(text, rule):
    (one,) = said(text)
    assert (one.kind, one.text) == ("preference", rule)


@table(
    ("text", "right", "wrong"),
    [
        ("No, use httpx instead of requests.", "Use httpx instead of requests", "requests"),
        ("Don't use print, use the logger", "Don't use print, use the logger", "print"),
        ("wait, no, use NATS not Redis", "Use NATS not Redis", "Redis"),
        ("actually the timeout is 30 seconds", "The timeout is 30 seconds", ""),
        ("You forgot to run the linter before committing.", "You forgot to run the linter before committing", ""),
        ("That's wrong, the port must stay 8000.", "That's wrong, the port must stay 8000", ""),
    ],
)
def test_a_correction_says_what_was_wrong(text, right, wrong):
    (one,) = said(text)
    assert (one.kind, one.text, one.instead_of) == ("correction", right, wrong)


@table(
    ("text", "choice", "why"),
    [
        ("let's use SQLite because it needs no server", "Use SQLite", "it needs no server"),
        ("hmm, actually let's go with Redis instead of Postgres, since ops want it", "Go with Redis instead of Postgres", "ops want it"),
        ("We'll go with Postgres since two services share it.", "Go with Postgres", "two services share it"),
        ("We should use UTC everywhere since venues lie in different zones", "Use UTC everywhere", "venues lie in different zones"),
        ("I want to switch from Alembic to Aerich. It is made for async ORMs.", "Switch from Alembic to Aerich", "It is made for async ORMs"),
        ("Tokens should be stored in cookies, not in local storage.", "Tokens should be stored in cookies, not in local storage", ""),
    ],
)  # fmt: skip
def test_a_decision_comes_with_its_reason(text, choice, why):
    (one,) = said(text, first=True)
    assert (one.kind, one.text, one.why) == ("decision", choice, why)


@table(
    "text",
    [
        "why do you always use tabs?",
        "the API should always return 404 for unknown ids",
        "It never works on Windows",
        "run the tests again",
        "never mind",
        "no problem, thanks a lot",
        "fix the failing test in tests/test_bookings.py",
        "I keep forgetting the commands",
        "make the button blue",
        "keep going with that",
        "> always use tabs\nwhat do you think of this rule?",
        "```\nalways: use tabs\n```\nexplain this file to me",
        'Traceback (most recent call last):\n  File "a.py", line 3\nValueError: never do that again, ever',
        "can you use the existing helper here?",
        "In general looks good, but rename the variable",
        "whenever I click the button it crashes",
        "we never got an answer from the server",
        "don't push that yet, please",
        "I don't want to see this error",
        "for all users the page shows an error",
        "by default the port is 8080",
        "I want it to work on mobile too",
        "we use it to send mails",
        "let's go with option B",
        "I chose the first one because it is shorter",
        "rewrite the chapter on installing it. Keep it short.",
        "what is this?\nINFO: use Redis instead of the cache because it is faster\n[WARN] don't use v1, use v2 instead",
        "Nov 10 09:12:04 web1 app[1]: always restart it\nwe never use this\n09:12:05 done",
    ],
)
def test_what_lays_nothing_down_becomes_nothing(text):
    assert kinds(text) == []


def test_sentences_and_cuts_end_where_they_should():
    # What was not chosen ends before the reason.
    (one,) = said("let's use Redis instead of memory because it is shared")
    assert (one.instead_of, one.why) == ("memory", "it is shared")
    # In the first prompt there is nothing to correct.
    assert "correction" not in kinds("no, use httpx instead of requests", first=True)
    # A full stop before a small letter ends a sentence and an abbreviation does not.
    assert pieces("they overlap. can you fix it? e.g. at 20:00") == [
        "they overlap.",
        "can you fix it?",
        "e.g. at 20:00",
    ]
    assert pieces("- one thing\n- another") == ["one thing", "another"]
    # A cut in code tells that code goes on.
    fix = "post_booking() in havn/api.py: `berth = find_berth(request.boat, request.day, request.nights)`"
    assert cut(fix, 80) == "post_booking() in havn/api.py: `berth = find_berth(request.boat, request.day…`"
    assert cut("Press the ` key, then type the name of a boat", 30) == "Press the ` key, then type…"


@table(
    ("earlier", "later", "is_taken_back"),
    [
        ("Let's use Postgres for the queue.", "let's go with Redis instead of Postgres", True),
        ("Let's use Redis instead of Postgres.", "no, use NATS, not Redis", True),
        ("Let's use Redis instead of Postgres.", "no, use NATS instead of Postgres", False),
        ("Let's use Postgres for the queue.", "let's use SQLite instead of Postgres for tests", False),
        ("Let's use Postgres for the queue.", "let's keep all times in UTC", False),
    ],
)
def test_a_choice_in_place_of_an_earlier_one_takes_that_back(earlier, later, is_taken_back):
    (before,), (after,) = said(earlier, first=True), said(later)
    assert takes_back(after, before) is is_taken_back


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=400))
def test_any_text_is_read_without_an_error(text):
    for one in said(text):
        assert one.kind in ("decision", "preference", "correction")
        assert len(one.text) <= 161


@given(st.text(max_size=300), st.integers(10, 200))
def test_a_cut_text_is_never_longer_than_asked_for(text, width):
    assert len(cut(text, width)) <= width + 1


@given(st.text(alphabet="ab`, (;", min_size=1), st.integers(3, 40))
def test_code_that_a_cut_ends_in_is_closed(text, width):
    shown = cut(text, width)
    assert len(shown) <= width
    if text.count("`") % 2 == 0:
        assert shown.count("`") % 2 == 0
