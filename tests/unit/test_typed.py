"""What is typed becomes a question at every letter, and a title that answers it best is told from the others."""

from __future__ import annotations

import apsw
from hypothesis import given
from hypothesis import strategies as st

from foreword.encoding import storable
from foreword.store.typed import MOST_TYPED, typed
from tests.tables import table

INDEX = apsw.Connection(":memory:")
INDEX.execute("CREATE VIRTUAL TABLE words USING fts5 (title, tokenize = 'porter unicode61 remove_diacritics 2')")


@table(
    ("text", "whole", "begun"),
    [
        ("", (), ""),
        ("au", (), "au"),
        ("auth tok", ("auth",), "tok"),
        ("auth ", ("auth",), ""),
        ("the auth tok", ("auth",), "tok"),
        ("the ", (), "the"),
        ("src/auth.py", ("src", "auth"), "py"),
        ("?!", (), ""),
    ],
)
def test_the_last_word_is_a_beginning_until_something_follows_it(text, whole, begun):
    said = typed(text)
    assert (said.whole, said.begun) == (whole, begun)
    assert said.empty == (not whole and not begun)


@given(st.text(max_size=2 * MOST_TYPED) | st.text(alphabet='"*^:(){}+-ANDORNEAR \0\ud800é内'))
def test_every_question_is_one_that_the_index_understands(text):
    said = typed(text)
    for asked in (said.expression(), said.expression(begun=False), said.first if said.said else "", said.stems):
        if asked:
            INDEX.execute("SELECT rowid FROM words WHERE words MATCH ?", (storable(asked),)).fetchall()


def test_a_title_that_begins_so_is_before_one_that_holds_it_before_one_that_does_not():
    fit = typed("cache keys").fitting(newest=1e9)
    titles = ("Cache keys are hashed", "Hashes as cache keys", "Keys of a lock", "Something else")
    scores = [fit(title, 0.0, False) for title in titles]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 4
    assert fit("Something else", 1e9, False) > fit("Something else", 0.0, False)
    assert fit(titles[0], 0.0, False) > fit(titles[0], 0.0, True)
    assert fit(titles[0], 0.0, False) > fit(titles[1], 1e9, False)
