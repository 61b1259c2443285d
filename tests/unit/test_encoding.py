"""JSON of any origin: one value or BadPayload, nothing else; what is written can be read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.encoding import decoded, dumps, loads, storable
from foreword.errors import BadPayload

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)

# We read a little more than the standard allows: a host that writes these means something by them.
LAX = {
    "n_string_unescaped_ctrl_char.json",  # control characters inside strings
    "n_string_unescaped_newline.json",
    "n_string_unescaped_tab.json",
    "n_number_NaN.json",  # become null
    "n_number_infinity.json",
    "n_number_minus_infinity.json",
}


@given(VALUES)
def test_what_json_writes_is_read(item):
    assert loads(json.dumps(item)) == item
    assert loads(json.dumps(item, ensure_ascii=False, indent=1)) == item


@given(VALUES)
def test_what_is_written_json_reads(item):
    text = dumps(item)
    assert text.isascii()
    assert "\n" not in text
    assert json.loads(text) == item


@given(st.binary())
def test_any_bytes_become_text(raw):
    decoded(raw).encode()


def test_a_mark_in_front_is_no_part_of_the_text():
    assert decoded(b'\xef\xbb\xbf{"a":1}') == '{"a":1}'
    assert decoded(b"a\xffb") == "a\ufffdb"


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_deep_nesting_is_a_bad_payload(deep):
    with pytest.raises(BadPayload):
        loads(deep)


def test_numbers_that_are_not_finite_become_null_as_they_do_when_written():
    assert loads("9" * 3999) == int("9" * 3999)
    assert loads("9" * 100_000) is None
    assert loads("[1e999, -1e999, NaN, 1e308, 2.5]") == [None, None, None, 1e308, 2.5]


def test_what_json_has_no_type_for_becomes_its_text():
    assert dumps({"a": b"x", "b": (1, 2)}) == '{"a":"b\'x\'","b":[1,2]}'


@given(st.text(alphabet=st.characters()))
def test_storable_text_can_be_written_and_loses_lone_surrogates_alone(text):
    storable(text).encode()
    assert storable(storable(text)) == storable(text)
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert storable(text) == text
    assert len(storable(text)) == len(text)


def test_the_cases_of_the_json_test_suite(shared):
    files = sorted((shared / "corpora" / "json" / "test_parsing").iterdir())
    assert len(files) == 318
    lax = set()
    for file in files:
        try:
            loads(decoded(file.read_bytes()))
            if file.name.startswith("n_"):
                lax.add(file.name)
        except BadPayload:
            assert not file.name.startswith("y_"), file.name
    assert lax == LAX


def test_numbers_that_json_cannot_spell_are_written_as_null():
    assert dumps({"a": [float("nan"), float("inf")], "b": 1.5}) == '{"a":[null,null],"b":1.5}'
