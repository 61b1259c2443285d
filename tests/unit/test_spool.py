"""spool: what was appended comes back exactly once, whatever it holds and whatever was torn beside it."""

import fcntl
import json
import os
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foreword.capture.payload import HookCall
from foreword.hook.spool import RESERVED, SpoolWriter, _record, append, hook_calls, naming, reserve, take
from tests.tables import table

MUCH = 1 << 30


def a_delivery(raw, **more):
    return HookCall(**{"host": "codex", "event": "PostToolUse", "at": 12.5, "raw": raw, **more})


def taken(folder, name="taken"):
    path = take(str(folder), name)
    with open(path, "rb") as file:
        return list(hook_calls(file.read()))


RECORD = _record(a_delivery(b"inner"))
RAW = st.binary() | st.lists(
    st.sampled_from(
        [b"\n", b"\nFW1 ", b"FW1 12\n", b"\nEND 12.", b"{}", b"\nFW1 2\n{}\nEND 2.", RECORD, b"x", b"\0\xff"]
    )
).map(b"".join)
DELIVERIES = st.builds(
    a_delivery,
    RAW,
    host=st.text(),
    event=st.text(),
    at=st.floats(0, 1e10),
    project=st.text(),
    injection=st.booleans(),
)


def test_what_is_appended_is_taken_once_and_read_before(tmp_path_factory):
    # What is appended is taken once.
    tmp_path = tmp_path_factory.mktemp("x")
    folder = str(tmp_path)
    assert take(folder, "taken") == ""
    calls = [a_delivery(b'{"a":1}'), a_delivery(b""), a_delivery(b"\xff\0\n", project="git:x/y")]
    for hook_call in calls:
        append(folder, hook_call, most=MUCH)
    assert taken(tmp_path) == calls
    assert take(folder, "again") == ""
    append(folder, calls[0], most=MUCH)
    assert taken(tmp_path, "again") == calls[:1]
    # The first record is there before the second, and nobody takes the file in between.
    tmp_path = tmp_path_factory.mktemp("x")
    first, second = a_delivery(b"event"), a_delivery(b"answer", injection=True)
    with SpoolWriter(str(tmp_path), most=MUCH) as writer:
        writer.write(first)
        assert list(hook_calls((tmp_path / "current").read_bytes())) == [first]
        assert list(naming(str(tmp_path), "even")) == [first]
        assert take(str(tmp_path), "too early") == ""
        writer.write(second)
    assert taken(tmp_path) == [first, second]
    # Whatever goes wrong behind a record does not lose it.
    tmp_path = tmp_path_factory.mktemp("x")
    with suppress(ValueError), SpoolWriter(str(tmp_path), most=MUCH) as writer:
        writer.write(first)
        raise ValueError("no context today")
    assert taken(tmp_path) == [first]
    # The newest that name a session are read without taking them.
    tmp_path = tmp_path_factory.mktemp("x")
    assert list(naming(str(tmp_path), "s1")) == []
    calls = [
        a_delivery(json.dumps({"id": f"s{n % 3}-é", "text": "x" * 2000}).encode(), project=f"s{n}") for n in range(60)
    ]
    for hook_call in calls:
        append(str(tmp_path), hook_call, most=MUCH)
    found = list(naming(str(tmp_path), "s1-é"))
    assert found == [each for each in calls if b"s1-" in each.raw][-len(found) :]
    assert 5 < len(found) < 20, "of a long spool the end is read"
    assert list(naming(str(tmp_path), "s9-é")) == []
    # The file is for its owner alone whatever the umask.
    tmp_path = tmp_path_factory.mktemp("x")
    before = os.umask(0)
    try:
        append(str(tmp_path), a_delivery(b"x"), most=MUCH)
    finally:
        os.umask(before)
    assert (tmp_path / "current").stat().st_mode & 0o777 == 0o600
    assert os.stat(take(str(tmp_path), "taken")).st_mode & 0o777 == 0o600


@settings(deadline=None)
@given(calls=st.lists(DELIVERIES, max_size=4), word=st.text(min_size=1))
def test_looking_for_a_name_never_fails_and_finds_whole_records_only(tmp_path_factory, calls, word):
    folder = tmp_path_factory.mktemp("spool")
    for hook_call in calls:
        append(str(folder), hook_call, most=MUCH)
    assert all(found in calls or RECORD in b"".join(each.raw for each in calls) for found in naming(str(folder), word))


@given(st.lists(DELIVERIES, max_size=4))
@example([a_delivery(RECORD * 2), a_delivery(b"\nFW1 ")])
def test_any_bytes_come_back(calls):
    assert list(hook_calls(b"".join(map(_record, calls)))) == calls


@given(st.binary())
def test_any_bytes_are_read_to_their_end(data):
    found = list(hook_calls(data))
    if all(isinstance(each, bytes) for each in found):
        assert b"".join(found) == data


@table("raw", [b'{"text":"abc"}', b"line\nline\n", b"\n\n\n", b""])
def test_a_record_torn_at_any_byte_costs_only_itself(raw):
    first, last, next_ = (a_delivery(raw), a_delivery(raw, project="7"), a_delivery(raw, project="8"))
    torn = _record(last)
    for end in range(len(torn)):
        data = _record(first) + torn[:end]
        assert _whole(data) == [first]
        # The next hook appends behind what was torn.
        assert _whole(data + _record(next_) + _record(first)) == [first, next_, first]


@settings(max_examples=50)
@given(raw=RAW, share=st.floats(0, 0.999))
def test_a_torn_record_never_stops_the_reading(raw, share):
    torn = _record(a_delivery(raw))
    data = _record(a_delivery(b"before")) + torn[: int(len(torn) * share)] + _record(a_delivery(b"behind"))
    found = _whole(data)
    assert found[0] == a_delivery(b"before")
    assert found[-1] == a_delivery(b"behind")


@table("about", [b"{}", b"[]", b"3", b"", b'{"host":1', b'{"host":"h","event":"e","at":1,"head":1,"more":1}'])
def test_a_record_that_tells_nothing_usable_is_passed_over(about):
    body = about + b"\nraw"
    bad = b"\nFW1 %d\n%s\nEND %d." % (len(body), body, len(body))
    good = a_delivery(b"x")
    assert _whole(_record(good) + bad + _record(good)) == [good, good]


def _whole(data):
    return [each for each in hook_calls(data) if isinstance(each, HookCall)]


def test_what_lies_around_a_record_does_no_harm(tmp_path_factory):
    # Bytes between records are given back as they are.
    good = _record(a_delivery(b"x"))
    assert list(hook_calls(b"noise" + good + b"more")) == [b"noise", a_delivery(b"x"), b"more"]
    # A full spool says so and stays as it is.
    tmp_path = tmp_path_factory.mktemp("x")
    folder, hook_call = str(tmp_path), a_delivery(b"x" * 100)
    size = len(_record(hook_call))
    for _ in range(3):
        append(folder, hook_call, most=3 * size)
    with pytest.raises(OSError, match="is full"):
        append(folder, hook_call, most=3 * size)
    assert (tmp_path / "current").stat().st_size == 3 * size
    assert taken(tmp_path) == [hook_call] * 3
    append(folder, hook_call, most=3 * size)
    # A folder that is not there is made and one that cannot be is calls.
    tmp_path = tmp_path_factory.mktemp("x")
    append(str(tmp_path / "spool"), a_delivery(b"x"), most=MUCH)
    assert taken(tmp_path / "spool") == [a_delivery(b"x")]
    with pytest.raises(OSError, match="gone"):
        append(str(tmp_path / "gone" / "spool"), a_delivery(b"x"), most=MUCH)
    # A hook that was stopped while it wrote does not stop the worker.
    tmp_path = tmp_path_factory.mktemp("x")
    append(str(tmp_path), a_delivery(b"x"), most=MUCH)
    with open(tmp_path / "current", "rb") as stopped:
        fcntl.flock(stopped, fcntl.LOCK_SH)
        assert take(str(tmp_path), "taken") == ""
    assert taken(tmp_path) == [a_delivery(b"x")]
    # The reserve is really written and made only once.
    tmp_path = tmp_path_factory.mktemp("x")
    folder = tmp_path / "spool"
    reserve(str(folder))
    kept = tmp_path / "spool.reserve"
    assert kept.stat().st_blocks * 512 >= kept.stat().st_size == RESERVED
    before = kept.stat().st_mtime_ns
    reserve(str(folder))
    assert kept.stat().st_mtime_ns == before


APPENDING = """
import sys
from foreword.capture.payload import HookCall
from foreword.hook.spool import append
folder, number = sys.argv[1:]
sys.stdin.readline()
for n in range(60):
    if n == 59:
        sys.stdin.readline()  # the last waits until something was taken: on a busy machine all might be over before
    raw = b'{"key":"%s-%d","text":"%s"}' % (number.encode(), n, b"x" * (n * 97 % 5000))
    append(folder, HookCall("h", "e", 1.0, raw), most=1 << 30)
    print(f"{number}-{n}", flush=True)
"""


def test_what_eight_processes_append_while_another_takes_is_there_once_each(tmp_path):
    children = [
        subprocess.Popen(
            [sys.executable, "-c", APPENDING, str(tmp_path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="ascii",
        )
        for number in range(8)
    ]

    def go():
        for child in children:
            child.stdin.write("go\n")
            child.stdin.flush()

    go()
    found, takes, until = [], 0, time.monotonic() + 30
    while any(child.poll() is None for child in children) and time.monotonic() < until:
        path = take(str(tmp_path), f"taken-{takes}")
        if path:
            takes += 1
            if takes == 1:
                go()
            time.sleep(0.001)
    take(str(tmp_path), "taken-last")
    for file in tmp_path.iterdir():
        found += hook_calls(file.read_bytes())
    acknowledged = []
    for child in children:
        with child:
            acknowledged += child.stdout.read().split()
        assert child.returncode == 0
    assert all(isinstance(each, HookCall) for each in found)
    keys = [json.loads(each.raw)["key"] for each in found]
    assert sorted(keys) == sorted(acknowledged)
    assert len(set(keys)) == 480
    assert takes > 0
