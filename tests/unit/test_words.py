"""words: whatever the text, its words are plain, few and findable."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.terms import STOP_WORDS, any_of, split, terms
from tests.tables import table

ODD = "aB9 _-.*\"'\0版本กิ한й́é\u200d\u202e\U0001f600\ud800"
TEXT = st.text(max_size=80) | st.text(alphabet=ODD, max_size=40)


@table(
    ("text", "words"),
    [
        ("resource_for_action", ["resource", "action"]),
        ("HTTPTransport", ["httptransport", "http", "transport"]),
        ("parseJSON2Dict", ["parsejson2dict", "parse", "json", "dict"]),
        ("src/foreword/store/sqlite.py", ["src", "foreword", "store", "sqlite", "py"]),
        ("utf8 SHA256sum", ["utf8", "utf", "sha256sum", "sha", "sum"]),
        ("IOError x y", ["ioerror", "io", "error"]),
        ("How do I use the pool?", ["pool"]),
        ("pool Pool POOL", ["pool"]),
        ("版本控制", ["版本", "本控", "控制"]),
        ("版", ["版*"]),
        ("API版本", ["api", "版本"]),
        ("Ёлка", ["елка"]),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),
        ("", []),
        ("the 😀 — of …", []),
    ],
)
def test_a_text_is_looked_for_by_these_words(text, words):
    assert list(terms(text)) == words


@table(
    ("text", "words"),
    [
        ("plain words need nothing", ""),
        ("HTTPTransport", "http transport"),
        ("v2 x1", ""),
        ("版本控制", "版本 本控 控制 制"),
        ("a字b", "a 字 b"),
        ("ภาษา", "ภา าษ ษา า"),
        ("Йод", "иод"),
        ("café", ""),
    ],
)
def test_the_index_gets_the_words_that_its_tokenizer_would_not_find(text, words):
    assert split(text) == words


@given(TEXT)
def test_every_term_of_any_text_is_a_lower_case_word_once(text):
    found = terms(text)
    assert len(set(found)) == len(found)
    for term in found:
        assert term
        assert not term.isspace()
        assert not any(sign in term for sign in '" \0')
        assert term.isascii() is False or (term == term.lower() and term not in STOP_WORDS and len(term) > 1)


@given(TEXT, st.integers(0, 10))
def test_there_are_never_more_terms_than_asked_for(text, limit):
    assert terms(text, limit=limit) == terms(text, limit=1000)[:limit]


@pytest.fixture(scope="module")
def index():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'porter unicode61 remove_diacritics 2')")
    return db


@given(text=TEXT)
def test_what_holds_a_letter_or_a_digit_is_found_by_each_of_its_terms(index, text):
    text = text.encode("utf-8", "replace").decode()
    index.execute("DELETE FROM words")
    index.execute("INSERT INTO words VALUES (?)", (f"{text} {split(text)}",))
    for term in terms(text):
        found = index.execute("SELECT count(*) FROM words WHERE words MATCH ?", (any_of((term,)),)).fetchone()
        known = any(_known(index, character) for character in term)
        assert found == (1,) or not known, term


def _known(index, character):
    """Whether this SQLite takes the character for one of a word; its Unicode is older than Python's."""
    index.execute("SAVEPOINT look")
    index.execute("INSERT INTO words (rowid, text) VALUES (99, ?)", (character,))
    found = index.execute("SELECT count(*) FROM words WHERE words MATCH ?", (any_of((character,)),)).fetchone()
    index.execute("ROLLBACK TO look")
    return found != (0,)


@given(words=st.lists(TEXT | st.sampled_from(["*", "**", '"', "", "AND", "NEAR(", "a*b*"]), min_size=1, max_size=5))
def test_no_words_make_an_expression_that_the_index_refuses(index, words):
    expression = any_of([word.encode("utf-8", "replace").decode() for word in words])
    index.execute("SELECT count(*) FROM words WHERE words MATCH ?", (expression,)).fetchone()


LOG = "".join(
    f"2026-11-{n % 28 + 1:02}T03:11.{n:03}Z INFO worker-{n % 9} id={n * 7919:016x} GET /orders/{n} 200 {n}ms\n"
    for n in range(500)
)


def test_pasted_and_huge_texts_leave_the_words_that_matter():
    # A pasted log leaves the users own words and the error in its middle.
    half = len(LOG) // 2
    error = "\nERROR ledger_import.py:88 DeadlockDetected: could not obtain lock on relation\n"
    found = terms(
        f"Why does the nightly import hang?\n{LOG[:half]}{error}{LOG[half:]}It must be the reconcile_ledger job."
    )
    assert found[:3] == ("nightly", "import", "hang")
    assert {"reconcile", "ledger", "job", "deadlockdetected", "obtain", "relation"} <= set(found)
    assert not any(term[0].isdigit() and len(term) > 4 for term in found)
    # A huge text takes no time.
    many = "wordNumber版本 " * 200_000
    assert len(terms(many)) == 4
    assert len(split(many).split()) < 10
    assert terms("x" * 2_000_000) == ("x" * 2_000_000,)


@given(st.integers(0, 150), st.integers(1, 64))
def test_a_short_text_gives_its_first_words_in_their_order(size, limit):
    words = [f"word{letter}{other}" for letter in "abcdefghijklmno" for other in "abcdefghij"][:size]
    assert terms(" ".join(words), limit=limit) == tuple(words[:limit])


@given(TEXT, st.integers(0, 80))
def test_a_long_text_gives_no_more_terms_than_asked_for_each_once(text, limit):
    found = terms(f"{text} {LOG[:4000]} {text} ValueError: {text}\n {LOG[:6000]} {text}", limit=limit)
    assert len(found) <= limit
    assert len(set(found)) == len(found)
