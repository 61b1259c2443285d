"""A value put into a JSON file and taken out again leaves every other byte as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.errors import BadConfig
from foreword.install.jsonc import MISSING, emptied, find, put, read, remove, same
from tests.tables import table

KEYS = st.text(st.sampled_from('ab"\\é/ \n'), max_size=3)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
PATHS = st.lists(KEYS, min_size=1, max_size=3).map(tuple)
GAPS = st.sampled_from(
    ["", " ", "\n", "\r\n", "\t", "\n\n    ", ' /* a, } " */ ', " // it's { \"\n", "\n  // \\\n", "/*\n*/", "//\r\n "]
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A JSON object as a person or a program might have written it: any spacing, comments, a comma too many."""
    if draw(st.booleans()):
        indent: Any = draw(st.sampled_from([None, 0, 1, 2, 4, "\t"]))
        text = json.dumps(draw(OBJECTS), indent=indent, ensure_ascii=draw(st.booleans()))
        return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))) + draw(st.sampled_from(["", "\n"]))
    return draw(GAPS) + _written(draw, draw(OBJECTS)) + draw(GAPS)


def _written(draw: st.DrawFn, item: Any) -> str:
    def gap() -> str:
        return draw(GAPS)

    if isinstance(item, dict):
        parts = [
            f"{gap()}{json.dumps(key)}{gap()}:{gap()}{_written(draw, inner)}{gap()}" for key, inner in item.items()
        ]
    elif isinstance(item, list):
        parts = [f"{gap()}{_written(draw, inner)}{gap()}" for inner in item]
    else:
        return json.dumps(item)
    more = "," + gap() if parts and draw(st.booleans()) else ""
    inside = ",".join(parts) + more if parts else gap()
    return f"{{{inside}}}" if isinstance(item, dict) else f"[{inside}]"


def with_value(document: Any, keys: tuple[str, ...], new: Any, *, append: bool) -> Any:
    """What a document must say afterwards, by plain Python."""
    if not keys:
        return [*document, new] if append else new
    key, *rest = keys
    inner = document.get(key, {} if rest else [])
    return {**document, key: with_value(inner, tuple(rest), new, append=append)}


@given(documents(), PATHS, VALUES, st.booleans())
def test_what_is_put_in_can_be_taken_out_and_nothing_else_changes(
    text: str, keys: tuple[str, ...], new: Any, append: bool
) -> None:
    before = read(text)
    if not append and find(text, keys) is not MISSING:
        return  # what stands there is the user's
    try:
        done = put(text, keys, new, append=append)
    except BadConfig:
        return  # something else than a container stands in the way
    assert same(read(done.text), with_value(before, keys, new, append=append))
    place = (*keys, len(find(done.text, keys)) - 1) if append else keys
    assert emptied(remove(done.text, place), added=done.added, insides=done.insides) == text


@given(documents(), st.lists(st.tuples(PATHS, VALUES, st.booleans()), max_size=5))
def test_several_values_are_taken_out_in_any_number(
    text: str, changes: list[tuple[tuple[str, ...], Any, bool]]
) -> None:
    now, added, insides, places = text, [], {}, []
    for keys, new, append in changes:
        if not append and find(now, keys) is not MISSING:
            continue
        try:
            done = put(now, keys, new, append=append)
        except BadConfig:
            continue
        if any(keys[: len(place)] == place for place in places):
            continue  # inside a value of our own
        now, added, insides = done.text, [*added, *done.added], {**done.insides, **insides}
        places.append((*keys, len(find(now, keys)) - 1) if append else keys)
    for place in reversed(places):
        now = remove(now, place)
    assert emptied(now, added=added, insides=insides) == text


@table("text", ["", " ", "\n", "\ufeff", "\r\n\r\n", "// mine\n", "// mine", "/* mine */ "])
def test_an_empty_file_gets_an_object_and_is_empty_again(text: str) -> None:
    done = put(text, ("hooks", "Stop"), {"a": 1}, append=True)
    assert read(done.text) == {"hooks": {"Stop": [{"a": 1}]}}
    assert done.text.startswith(text)
    assert done.text.endswith("}\r\n" if "\r" in text else "}\n")
    assert emptied(remove(done.text, ("hooks", "Stop", 0)), added=done.added, insides=done.insides) == text


def test_what_is_put_in_looks_like_the_rest_and_swallows_nothing():
    # What is put in looks like the rest of the file.
    assert (
        put('{\n\t"a": 1\n}\n', ("b", "c"), [1]).text == '{\n\t"a": 1,\n\t"b": {\n\t\t"c": [\n\t\t\t1\n\t\t]\n\t}\n}\n'
    )
    assert put('{"a": 1}', ("b",), 2).text == '{"a": 1,\n  "b": 2}'
    assert put('{\r\n    "a": 1\r\n}', ("b",), 2).text == '{\r\n    "a": 1,\r\n    "b": 2\r\n}'
    assert put('{\n  "a": {}\n}', ("a", "b"), 2).text == '{\n  "a": {\n    "b": 2\n  }\n}'
    assert put("{}", ("a",), 2).text == '{\n  "a": 2\n}'
    assert put('{\n  "a": 1, // one\n}\n', ("b",), 2).text == '{\n  "a": 1, // one\n  "b": 2,\n}\n'
    assert put('{\n  "a": 1 // one\n}\n', ("b",), 2).text == '{\n  "a": 1, // one\n  "b": 2\n}\n'
    assert put("{}", ("é",), "ü").text == '{\n  "é": "ü"\n}'
    # A comment never swallows what stands behind it.
    text = '{ // mine\n  "ours": 1, "theirs": 2 }'
    assert read(remove(text, ("ours",))) == {"theirs": 2}
    assert "// mine" in remove(text, ("ours",))
    # What others put around it stays.
    done = put('{\n  "a": 1\n}\n', ("hooks", "Stop"), "ours", append=True)
    theirs = done.text.replace('"ours"', '"before", "ours", "behind"')
    assert read(remove(theirs, ("hooks", "Stop", 1))) == {"a": 1, "hooks": {"Stop": ["before", "behind"]}}
    kept = remove(theirs, ("hooks", "Stop", 1))
    assert read(emptied(kept, added=done.added, insides=done.insides)) == {
        "a": 1,
        "hooks": {"Stop": ["before", "behind"]},
    }
    # A list that is none is told.
    with pytest.raises(BadConfig, match="`a` in line 1 is not a list"):
        put('{"a": {}}', ("a",), 1, append=True)
    # Of a key that stands twice the last counts.
    assert find('{"a": 1, "a": 2}', ("a",)) == 2
    assert read(put('{"a": {}, "a": {"b": 1}}', ("a", "c"), 2).text) == {"a": {"b": 1, "c": 2}}
    # True is not one and the order of keys does not count.
    assert not same(True, 1)
    assert not same(1, 1.0)
    assert same({"a": 1, "b": [2]}, {"b": [2], "a": 1})


@table(
    ("text", "keys", "answer"),
    [
        ('{"a": 1}', ("a", "b"), "`a` in line 1 is not an object"),
        ("[]", ("a",), "the whole document in line 1 is not an object"),
        ('{\n"a": 1\n"b": 2}', ("c",), "Expecting ',' delimiter in line 3"),
        ("{'a': 1}", ("c",), "Expecting property name enclosed in double quotes"),
        ('{"a": tru}', ("c",), "Expecting value in line 1"),
        ('{"a" 1}', ("c",), "Expecting ':' delimiter"),
        ('{"a": }', ("c",), "Expecting value"),
        ('{"a": 1', ("c",), "Expecting ',' delimiter"),
        ("{} x", ("c",), "Extra data"),
        ("{} /* x", ("c",), "Extra data"),
        ('{"a": "x\n"}', ("c",), "Invalid control character at in line 1"),
        ("[" * 100_000, ("c",), "nested too deeply"),
    ],
)
def test_what_cannot_be_changed_is_told_with_its_line_and_the_way_out(text: str, keys: Any, answer: str) -> None:
    with pytest.raises(BadConfig) as raised:
        put(text, keys, 1)
    assert answer in str(raised.value)
    assert raised.value.hint
