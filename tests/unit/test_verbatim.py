"""Verbatim copies of a sentence are found and replaced wherever they stand, and nothing else is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.store.forget import MARK
from foreword.store.verbatim import FEW, SHORTEST, Sentences

WORDS = st.lists(st.text("abcdefghijklmnopqrstuvwxyzäßéλσ決済", min_size=3, max_size=9), min_size=10, max_size=20)
AROUND = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30)
MANY = [f"an unrelated sentence about number {number}" for number in range(FEW + 1)]


def written(text: str, how: str) -> str:
    """How a text may stand in a row or a file."""
    return {
        "plain": text,
        "capitals": text.upper() if text.upper().lower() == text else text,
        "wrapped": text.replace(" ", "\n  "),
        "json": json.dumps({"said": [text]}),
        "json in json": json.dumps({"said": json.dumps([text], ensure_ascii=False)}, ensure_ascii=False),
        "torn json": json.dumps({"out": json.dumps(text)})[:-1],
    }[how]


@given(
    words=WORDS,
    before=AROUND,
    after=AROUND,
    how=st.sampled_from(["plain", "capitals", "wrapped", "json", "json in json", "torn json"]),
    more=st.sampled_from([[], MANY]),
)
@settings(max_examples=300)
def test_a_copy_is_replaced_however_it_is_written_and_what_stands_around_it_stays(words, before, after, how, more):
    sentence = " ".join(words)
    sentences = Sentences([f"{sentence}.", *more])
    text = written(f"{before} {sentence} {after}", how)
    clean = sentences.cut_json(text)
    assert sentences.found(text)
    assert not sentences.found(clean)
    assert clean == sentences.cut_json(clean)
    if how == "plain" and text[:1] not in "{[":
        assert clean == f"{before} {MARK} {after}"
    if how == "json":
        assert json.loads(clean) == {"said": [f"{before} {MARK} {after}"]}


@given(words=WORDS, text=AROUND)
def test_a_text_without_any_copy_stays_as_it_is(words, text):
    assert Sentences([" ".join(words)]).cut_json(text) == text


@pytest.mark.parametrize(
    ("forgotten", "text", "clean"),
    [
        ("fix tests", "please fix tests", "please fix tests"),  # shorter than any sentence
        ("x" * (SHORTEST - 1), f"{'x' * (SHORTEST - 1)}", "x" * (SHORTEST - 1)),
        (
            "src/billing/invoices/monthly.py",
            "see src/billing/invoices/monthly.py",
            "see src/billing/invoices/monthly.py",
        ),
        ("Bookings are stored in UTC.", "Bookings are kept in UTC, always", "Bookings are kept in UTC, always"),
        ("Bookings are stored in UTC.", "So: bookings are  stored in UTC!", f"So: {MARK}!"),
        ("Bookings are stored in UTC because bands travel", "Bookings are stored in UTC be…", MARK),
        (
            "One. Two. Three. Four. Five. Six.",
            "One. Two. Three. Four. Five. Six",
            MARK,
        ),  # only the whole is long enough
        (f"{MARK} and a passage that stays here", "And a passage that stays here", MARK),
    ],
)
def test_what_counts_as_a_copy(forgotten, text, clean):
    assert Sentences([forgotten]).cut(text) == clean


def test_an_item_that_is_nothing_but_a_copy_leaves_its_list():
    sentences = Sentences(["the payroll database is at ten"])
    assert sentences.cut_json('["kept", "The payroll database is at ten"]') == '["kept"]'


def test_white_space_does_not_make_a_short_line_long() -> None:
    aligned = "PORT                           8080"
    assert Sentences([aligned]).cut("Use PORT 8080 for dev") == "Use PORT 8080 for dev"
    assert Sentences(["\\" * 40 + " a"]).cut("a a a") == "a a a"


def test_json_with_a_lone_surrogate_can_be_written_afterwards() -> None:
    sentence = "the waiting list of the rooms is full today"
    payload = '{"args": "{\\"text\\": \\"\\\\ud83d ' + sentence + '\\"}"}'
    changed = Sentences([sentence]).cut_json(payload)
    assert sentence not in changed
    changed.encode()
