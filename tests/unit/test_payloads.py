"""payloads: any bytes are a payload or BadPayload; what was cut keeps its ids, its beginning and its end."""

import contextlib
import json
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foreword.capture.payload import CUT, HookCall, _unescaped, payload_of, recovered
from foreword.errors import BadPayload
from tests.tables import table

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
IDS = ("session_id", "cwd", "tool_use_id", "hook_event_name")


def a_delivery(raw, **more):
    return HookCall("claude-code", "PostToolUse", 1.0, raw, **more)


def cut(raw, *, head, tail):
    """What a hook sends of a payload that is too long."""
    return a_delivery(raw[:head] + raw[len(raw) - tail :], head=head, total=len(raw))


@pytest.fixture(scope="module")
def recorded(shared):
    """The real payloads, as the hosts wrote them."""
    files = sorted((shared / "payloads").glob("*.json"))
    assert len(files) > 100
    read = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    payloads = [each["stdin"] if isinstance(each, dict) and "stdin" in each else each for each in read]
    return [each for each in payloads if isinstance(each, dict)]


def test_every_recorded_payload_is_read(recorded):
    for payload in recorded:
        for text in (json.dumps(payload), json.dumps(payload, indent=2, ensure_ascii=False)):
            assert payload_of(a_delivery(text.encode())) == payload


def test_every_truncation_of_a_recorded_payload_keeps_what_lies_in_its_head(recorded):
    for payload in recorded:
        text = json.dumps(payload)
        for end in range(1, len(text), 37):
            found = recovered(text[:end], "", len(text))
            assert found.pop(CUT) == {"total": len(text), "tail": "[cut]"}
            for name in found:
                assert name in payload
            for name in IDS:
                whole = f"{json.dumps(name)}: {json.dumps(payload.get(name))}"
                if text.find(whole) >= 0 and text.find(whole) + len(whole) <= end:
                    assert found[name] == payload[name]
                else:
                    assert name not in found


def test_a_huge_answer_keeps_its_ids_its_beginning_and_its_end():
    words = " ".join(f'line{n}\n"quoted" \\path\\' for n in range(150_000))
    payload = {
        "session_id": "s-1",
        "cwd": "/home/me/p",
        "tool_name": "Bash",
        "tool_input": {"command": "make"},
        "tool_response": {"stdout": f"BEGIN {words} END", "stderr": "", "interrupted": False},
        "tool_use_id": "toolu_1",
        "hook_event_name": "PostToolUse",
    }
    raw = json.dumps(payload).encode()
    assert len(raw) > 3_000_000
    found = payload_of(cut(raw, head=700_000, tail=300_000))
    for name in ("session_id", "cwd", "tool_name", "tool_input", "tool_use_id", "hook_event_name"):
        assert found[name] == payload[name]
    assert found["tool_response"]["stdout"].startswith('BEGIN line0\n"quoted" \\path\\ line1')
    assert found["tool_response"]["stdout"].endswith(" [cut]")
    assert found[CUT]["total"] == len(raw)
    assert found[CUT]["tail"].startswith("[cut]")
    assert 'line149999\n"quoted" \\path\\ END' in found[CUT]["tail"]


def test_what_was_cut_in_half_is_left_out():
    # Half an id is no id and its whole is found in the tail.
    raw = json.dumps({"tool_name": "Bash", "session_id": "abcdefgh", "text": "x " * 100, "tool_use_id": "t"}).encode()
    middle = raw.index(b"efgh")
    found = payload_of(cut(raw, head=middle, tail=30))
    assert "session_id" not in found
    assert found["tool_use_id"] == "t"
    text = json.dumps({"session_id": "abcdefgh"})
    assert recovered(text[:18], ", " + text[1:], 99)["session_id"] == "abcdefgh"
    # Half a number is no number.
    assert recovered('{"a": 12, "b": 123', "", 99).keys() == {"a", CUT}
    assert recovered('{"a": [12, 123', "", 99)["a"] == [12]
    assert recovered('{"a": tru', "", 99).keys() == {CUT}
    # Where a text was cut its half word goes.
    found = recovered('{"a": "one two sk-sec', 'ret three", "cwd": "/p"}', 99)
    assert found["a"] == "one two [cut]"
    assert found[CUT]["tail"] == '[cut] three", "cwd": "/p"}'
    assert found["cwd"] == "/p"
    # Ids inside a quoted text are not taken for the payloads own.
    inner = json.dumps({"session_id": "evil", "cwd": "/evil"})
    raw = json.dumps({"x": string.ascii_letters * 10, "text": inner, "session_id": "good", "note": inner}).encode()
    found = payload_of(cut(raw, head=20, tail=len(raw) - 300))
    assert found["session_id"] == "good"
    assert "cwd" not in found


@table("tail", ['\\"x y\\n', "\\x y\\n", "\\\\x y\\n", "u00e9 y\\n", "x\0 y\\n", '" y\\n'])
def test_a_tail_that_begins_inside_an_escape_is_still_read(tail):
    assert recovered("{", tail, 9)[CUT]["tail"] == "[cut] y\n"


@given(text=st.text(alphabet=st.characters()))
@example('\\"')
@example('\\\\"\0\\')
def test_unescaping_gives_back_what_was_escaped(text):
    for ascii_only in (True, False):
        assert _unescaped(json.dumps(text, ensure_ascii=ascii_only)[1:-1]) == text or _has_half_pair(text)


def _has_half_pair(text):
    """Two lone surrogates side by side are one character to JSON."""
    return any("\ud800" <= character <= "\udfff" for character in text)


@given(text=st.text(), end=st.integers(0, 200))
def test_a_piece_that_was_cut_inside_an_escape_loses_that_escape_alone(text, end):
    found = _unescaped(json.dumps(text)[1:-1][:end])
    assert text.startswith(found.rstrip("".join(map(chr, range(0xD800, 0xE000)))))


@given(item=st.dictionaries(st.text(max_size=8) | st.sampled_from(IDS), VALUES, max_size=6), data=st.data())
def test_any_object_cut_anywhere_is_a_payload_or_a_bad_one(item, data):
    text = json.dumps(item, ensure_ascii=data.draw(st.booleans()), indent=data.draw(st.sampled_from([None, 1])))
    head, tail = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text)))
    try:
        found = recovered(text[:head], text[len(text) - tail :], len(text))
    except BadPayload:
        assert "{" not in text[:head]
    else:
        assert found[CUT]["total"] == len(text)
        json.dumps(found)


@given(
    st.text(alphabet='{}[]",:0123456789eE+-.truefalsn\\u \n') | st.text(), st.text(alphabet='\\"u0 {}[]:,session_id')
)
def test_any_two_texts_are_a_payload_or_a_bad_one(head, tail):
    try:
        assert CUT in recovered("{" + head, tail, 1)
        recovered(head, tail, 1)
    except BadPayload:
        assert "{" not in head


@given(raw=st.binary(), head=st.integers(-1, 50))
def test_any_bytes_are_a_payload_or_a_bad_one(raw, head):
    with contextlib.suppress(BadPayload):
        assert isinstance(payload_of(a_delivery(raw, head=head, total=len(raw))), dict)


@table("raw", [b"", b"[]", b"3", b"null", b'"x"', b'{"a":1} {}', b"{", b"[" * 100_000, b'{"a":' * 100_000])
def test_what_is_no_object_is_a_bad_payload(raw):
    with pytest.raises(BadPayload):
        payload_of(a_delivery(raw))


@table("deep", ["[" * 100_000, '{"a":' * 100_000, '[{"a":' * 50_000])
def test_deep_nesting_that_was_cut_is_followed_no_further_than_it_makes_sense(deep):
    found = recovered('{"session_id":"s","x":' + deep, deep, 999_999)
    assert found["session_id"] == "s"


@table("run", [part * (300_000 // len(part)) for part in ("\\", '\\"', "1", " ", "[", ",{")])
def test_a_hostile_megabyte_is_read_in_no_time(run):
    for text in ("{" + run, '{"a":"' + run, '{"a":' + run):
        recovered(text, run, 1)
