"""What somebody else is said to hold makes no rule, and the user's own rules are kept."""

from __future__ import annotations

import pytest

from foreword.extract.voice import is_own_voice, reported_words
from tests.corpora import assert_holds, read_corpus
from tests.growth import assert_linear
from tests.tables import table
from tests.unit.test_statements import of_prompt


def makes_no_rule(prompt: str) -> bool:
    return of_prompt(prompt) == ()


def makes_a_rule(prompt: str) -> bool:
    return of_prompt(prompt) != ()


def test_words_of_others_make_no_rule() -> None:
    assert_holds(read_corpus("foreign_rules.txt", held_out=False), makes_no_rule)


def test_rules_of_the_user_are_kept() -> None:
    assert_holds(read_corpus("own_rules.txt", held_out=False), makes_a_rule)


@pytest.mark.prove
def test_words_of_others_that_were_kept_aside_make_no_rule() -> None:
    assert_holds(read_corpus("foreign_rules.txt", held_out=True), makes_no_rule)


@pytest.mark.prove
def test_rules_of_the_user_that_were_kept_aside_are_kept() -> None:
    assert_holds(read_corpus("own_rules.txt", held_out=True), makes_a_rule)


@table(
    "head, stated, own",
    [
        ("", "should always", True),
        ("prices ", "should always", True),
        ("for tests ", "we always", True),
        ("I think that you ", "should never", True),
        ("so ", "we no longer", True),
        ("the function that opens it ", "must never", True),
        ("the list is slow, it ", "must never", True),
        ("my rule ", "is to never", True),
        ("the kernel docs explain that you ", "must never", False),
        ("snyk reports ", "you should never", False),
        ("handbook, section 4, one ", "must never", False),
        ("handbook", ", never close", False),
        ("the speaker's rule ", "is to never", False),
    ],
)
def test_what_stands_before_a_statement_tells_whose_it_is(head: str, stated: str, own: bool) -> None:
    assert is_own_voice(head, stated) is own


@table(
    "piece", ["what a ", "the a ", "from the a ", "says ", "a's ", "text of a ", "Ada has ", "if a ", "a: ", "it was "]
)
def test_long_prompts_are_read_in_linear_time(piece: str) -> None:
    assert_linear(reported_words, piece, size=4_000)
