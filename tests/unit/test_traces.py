"""What tells of a forgotten text goes wherever it stands, and nothing else."""

from __future__ import annotations

import json
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.traces import MARK, WINDOW, folded, held, traces_of, windows

LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
WORDS = ("stored", "bookings", "travel", "between", "zones", "while", "bands", "play", "night")
NOISE = st.text(LETTERS, min_size=12, max_size=80).filter(lambda text: len(set(text)) > 4)
AROUND = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30)


def left_in(text: str, forgotten: str) -> set[bytes]:
    sought = {each for each in windows(folded(forgotten)) if not each.isdigit()}
    return sought & windows(folded(text))


@given(forgotten=NOISE, before=AROUND, after=AROUND, upper=st.booleans(), start=st.integers(0, 6))
@settings(max_examples=300)
def test_no_window_of_noise_is_left_in_any_text_around_it(forgotten, before, after, upper, start):
    traces = traces_of([forgotten], words=WORDS)
    piece = forgotten[start:].upper() if upper else forgotten[start:]
    text = f"{before}{piece}{after}"
    assert not left_in(traces.near(text), forgotten)
    assert not left_in(json.loads(traces.near(json.dumps({"a": [text], text: 1})))["a"][0], forgotten)


@given(text=AROUND, forgotten=st.text(max_size=60))
def test_a_text_without_any_of_it_stays_as_it_is(text, forgotten):
    traces = traces_of([forgotten])
    for cut in (traces.near, traces.far, traces.kin, traces.other):
        if not held(folded(text), traces.telling):
            assert cut(text) == text
        again = cut(cut(text))
        assert again == cut(text) or MARK in text


@given(text=st.text(max_size=200))
def test_folding_keeps_the_place_of_every_byte(text):
    assert len(folded(text)) == len(text.encode("utf-8", "replace"))


@given(data=st.binary(max_size=300), cut=st.integers(0, 290), more=st.integers(0, 40_000))
@settings(max_examples=50)
def test_a_window_is_found_wherever_it_stands(data, cut, more):
    window = data[cut : cut + WINDOW].lower()
    if len(window) == WINDOW:
        sought = {window, b"nowher"}
        assert window in held(b"\0" * more + data, sought)


def test_a_quotation_goes_whole_with_its_ordinary_words():
    traces = traces_of(["We chose Valkey because the licence changed"]).without({b"becaus", b"ecause"})
    assert traces.near("so: we chose VALKEY because the licence changed!") == f"so: {MARK}!"


def test_what_only_chances_to_be_alike_stays_afar():
    traces = traces_of(["the deployment screen is blank"], words=["different", "screen", "deployment", "blank", "the"])
    assert traces.far("a different screw") == "a different screw"
    assert traces.far("nothing but a screen") == f"nothing but a{MARK}"
    assert traces.far("see the deployment screen") == f"see {MARK}"


def test_other_memories_keep_the_words_that_they_share_and_lose_what_they_quote():
    sentence = "Bookings are stored in UTC because bands travel between zones and nobody wants to reckon"
    traces = traces_of([sentence], words=sentence.split())
    assert traces.other("Bookings are stored in UTC, always") == "Bookings are stored in UTC, always"
    assert traces.other(f"He said: {sentence}.") == f"He said: {MARK}."
    assert traces.kin("bookings are stored in utc, always") == f"{MARK}, always"


def test_numbers_days_and_marks_tell_nothing():
    traces = traces_of([f"2026-11-16 10:00 {MARK} 123456"])
    assert traces.near("on 2026-11-16 10:00, 123456") == "on 2026-11-16 10:00, 123456"
    assert traces.near(f"and {MARK} too") == f"and {MARK} too"


def test_too_much_to_look_for_is_counted():
    rng = random.Random(1)
    texts = ["".join(rng.choices(LETTERS, k=100)) for _ in range(20)]
    traces = traces_of(texts, most=1000)
    assert len(traces.known) <= 1000
    assert traces.unsaid > 500
