"""What the end of a transcript shows: who said something after the last event, and when that is no sign of anything."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword import tails
from tests import retimed

HOSTS = ("claude-code", "codex", "copilot")
NOW = time.time()


def transcript(folder: Path, host: str, **more: object) -> str:
    path = folder / f"{host}.jsonl"
    retimed.write(path, host, first=NOW - 7200, **more)  # type: ignore[arg-type]
    return str(path)


@pytest.mark.parametrize("host", HOSTS)
def test_every_prompt_of_a_recorded_session_is_seen(host, tmp_path):
    assert len(tails.read(transcript(tmp_path, host), host=host).prompts) == 2


def test_tools_of_sub_agents_that_write_into_the_same_file_are_no_sign(tmp_path):
    assert tails.read(transcript(tmp_path, "copilot"), host="copilot").tools == ()


@pytest.mark.parametrize("host", HOSTS)
def test_a_session_that_told_everything_did_not_go_on(host, tmp_path):
    tail = tails.read(transcript(tmp_path, host), host=host)
    assert tails.went_on(tail, after=NOW - 7100, now=NOW) == 0.0


@pytest.mark.parametrize("host", HOSTS)
def test_a_prompt_long_after_the_last_event_shows_that_it_went_on(host, tmp_path):
    path = transcript(tmp_path, host, last=NOW - 600, more=(retimed.prompt(host),))
    until = tails.went_on(tails.read(path, host=host), after=NOW - 7000, now=NOW)
    assert until == pytest.approx(NOW - 600, abs=1)


def test_one_tool_is_no_sign_and_three_are(tmp_path):
    line = retimed.tool("claude-code")
    for several, shows in ((1, False), (3, True)):
        path = transcript(tmp_path, "claude-code", last=NOW - 600, more=(line,) * several)
        tail = tails.read(path, host="claude-code")
        assert bool(tails.went_on(tail, after=NOW - 7000, now=NOW)) is shows


def test_gemini_tells_prompts_and_rewrites_its_own_surroundings(tmp_path):
    context = {"text": "<session_context>\nThis is the Gemini CLI.</session_context>"}
    told = (
        {"sessionId": "s", "startTime": retimed.stamp(NOW - 7200), "kind": "main"},
        {"$set": {"messages": [{"timestamp": retimed.stamp(NOW - 600), "type": "user", "content": [context]}]}},
        {"timestamp": retimed.stamp(NOW - 600), "type": "user", "content": [context]},
        {"timestamp": retimed.stamp(NOW - 700), "type": "user", "content": [{"text": "first things first"}]},
        {"timestamp": retimed.stamp(NOW - 690), "type": "gemini", "content": "done"},
        {"$set": {"lastUpdated": retimed.stamp(NOW - 600)}},
    )
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in told))
    tail = tails.read(str(path), host="gemini")
    assert tail.prompts == (pytest.approx(NOW - 700, abs=0.01),)


NO_SIGN = (
    {"type": "cost-state", "timestamp": "", "totalCostUSD": 1},
    {"type": "system", "subtype": "stop_hook_summary", "timestamp": ""},
    {"type": "user", "timestamp": "", "isMeta": True, "message": {"role": "user", "content": "what a host adds"}},
    {"type": "user", "timestamp": "", "isSidechain": True, "message": {"role": "user", "content": "to a sub-agent"}},
    {"type": "user", "timestamp": "", "message": {"role": "user", "content": "[Request interrupted by user]"}},
    {"type": "user", "timestamp": "", "message": {"role": "user", "content": "<command-name>/exit</command-name>"}},
    {"type": "user", "timestamp": "", "promptSource": "schedule_wakeup", "message": {"content": "look again"}},
    {"type": "user", "timestamp": "", "entrypoint": "sdk-py", "message": {"content": "from a program"}},
    {"type": "assistant", "timestamp": "", "message": {"role": "assistant", "content": [{"type": "text"}]}},
)


@pytest.mark.parametrize("line", NO_SIGN, ids=lambda line: json.dumps(line)[:60])
def test_what_no_hook_would_tell_is_no_sign(line, tmp_path):
    path = transcript(tmp_path, "claude-code", last=NOW - 600, more=(line,) * 5)
    assert tails.went_on(tails.read(path, host="claude-code"), after=NOW - 7000, now=NOW) == 0.0


def test_what_was_said_a_moment_ago_may_still_be_told(tmp_path):
    path = transcript(tmp_path, "codex", last=NOW - 5, more=(retimed.prompt("codex"),))
    assert tails.went_on(tails.read(path, host="codex"), after=NOW - 7000, now=NOW) == 0.0


def test_lines_of_another_clock_in_a_file_that_was_not_written_since_are_no_sign(tmp_path):
    path = transcript(tmp_path, "codex", last=NOW - 600, more=(retimed.prompt("codex"),))
    os.utime(path, (NOW - 7000, NOW - 7000))
    assert tails.went_on(tails.read(path, host="codex"), after=NOW - 7000, now=NOW) == 0.0


def test_of_a_huge_transcript_only_the_end_is_read(tmp_path):
    path = transcript(tmp_path, "claude-code")
    filling = json.dumps({"type": "attachment", "text": "x" * 1000}) + "\n"
    with open(path, "a") as file:
        file.write(filling * 20_000)
        file.write(json.dumps({**retimed.prompt("claude-code"), "timestamp": retimed.stamp(NOW - 600)}) + "\n")
    tail = tails.read(path, host="claude-code")
    assert len(tail.prompts) == 1
    assert tails.went_on(tail, after=NOW - 7000, now=NOW)


@given(st.binary(max_size=400), st.sampled_from(sorted(tails.TELLING)))
def test_no_bytes_make_a_look_fail(tmp_path_factory, raw, host):
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    path.write_bytes(raw + b'\n{"type":"user","timestamp":7,"message":[]}\n[1]\n')
    tails.read(str(path), host=host)


@pytest.mark.parametrize("path", ["", "/nowhere/t.jsonl", "relative.jsonl", "/dev/null", "/tmp\0/t.jsonl"])
def test_a_transcript_that_is_gone_shows_nothing(path):
    assert tails.read(path, host="codex").prompts == ()


# ---- the newest files


def made(root: Path, name: str, *, age: float) -> str:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    os.utime(path, (NOW - age, NOW - age))
    return str(path)


def test_the_newest_files_come_first_whatever_folder_they_lie_in(tmp_path):
    old = made(tmp_path, "projects/a/1.jsonl", age=500)
    new = made(tmp_path, "projects/b/2.jsonl", age=5)
    made(tmp_path, "projects/b/notes.txt", age=1)
    assert tails.newest(str(tmp_path), ("projects/*/*.jsonl",)) == (new, old)


def test_any_number_of_folders_may_lie_between(tmp_path):
    deep = made(tmp_path, "sessions/2026/11/16/rollout-1.jsonl", age=5)
    flat = made(tmp_path, "sessions/rollout-0.jsonl", age=9)
    assert tails.newest(str(tmp_path), ("sessions/**/*.jsonl",)) == (deep, flat)


def test_of_many_folders_the_newest_are_looked_into(tmp_path):
    for number in range(60):
        made(tmp_path, f"projects/p{number}/s.jsonl", age=1000 - number)
        os.utime(tmp_path / "projects" / f"p{number}", (NOW - 1000 + number,) * 2)
    found = tails.newest(str(tmp_path), ("projects/*/*.jsonl",), files=3)
    assert [Path(each).parent.name for each in found] == ["p59", "p58", "p57"]


def test_a_folder_that_is_not_there_has_none(tmp_path):
    assert tails.newest(str(tmp_path / "gone"), ("*/*.jsonl", "**/x")) == ()
