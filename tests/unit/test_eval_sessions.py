"""What `make eval-sessions` measures, on two made-up sessions that a person can follow."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.eval import replay
from bench.eval.compare import replay_differences
from bench.eval.replay import Result, random_blocks, replay_project, silent_cases, table_of

DAY = 86_400.0
NOON = 1_790_000_000.0
PROMPTS = (
    "the confirmation mail shows the wrong hour for Lisbon",
    "the reminder mail shows the wrong hour for Porto, what did we do about Lisbon?",
)


def events_of(number: int, prompt: str) -> Iterator[dict[str, Any]]:
    """One session: a prompt, a command that fails, one that works, an edit, a commit, an answer."""
    at = NOON + number * DAY
    edit = {"file_path": "@PROJECT@/rooms/mail.py", "old_string": "slot.hour", "new_string": "format_slot(slot, venue)"}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("SessionStart", {"source": "startup"}),
        ("UserPromptSubmit", {"prompt": prompt}),
        ("PostToolUseFailure", {**bash("make unit"), "error": "make: *** No rule to make target 'unit'.  Stop."}),
        ("PostToolUse", {**bash("make test"), "tool_response": {"stdout": "7 passed", "stderr": ""}}),
        ("PostToolUse", {"tool_name": "Edit", "tool_input": edit, "tool_response": {}}),
        ("PostToolUse", {**bash('git commit -qm "Show the venue\'s hour in mails"'), "tool_response": {"stdout": ""}}),
        (
            "Stop",
            {"last_assistant_message": "The mail now shows the venue's hour, because format_slot() knows its zone."},
        ),
        ("SessionEnd", {"reason": "exit"}),
    ]
    for place, (event, payload) in enumerate(calls):
        where = {"session_id": f"session-{number}", "cwd": "@PROJECT@", "hook_event_name": event}
        yield {"event": event, "at": at + 60 * place, "payload": {**where, **payload}}


def bash(command: str) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": command}}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of recorded sessions, as ../shared/bench/sessions has them."""
    folder = tmp_path_factory.mktemp("sessions") / "rooms"
    folder.mkdir()
    for number, prompt in enumerate(PROMPTS):
        lines = "".join(json.dumps(event) + "\n" for event in events_of(number, prompt))
        (folder / f"{number:03}-session-{number}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    session = {"session": "001-session-1", "title": "Show the venue's hour in mails", "outcome": "Mails show the hour"}
    gold = {"project": "rooms", "statements": [], "sessions": [session], "recurring": []}
    (folder / "gold.json").write_text(json.dumps(gold), encoding="utf-8")
    return folder


def test_a_replay_scores_what_was_told_and_is_the_same_every_time(recorded: Path, shared: Path) -> None:
    first, second = replay_project(recorded, each_turn=True), replay_project(recorded, each_turn=True)
    figures = first["metrics"]
    assert (figures["prompts"], figures["starts"]) == (2, 2)
    (start,) = [row for row in first["records"] if row["session"] == "session-1" and row["moment"] == "SessionStart"]
    assert "rooms/mail.py" in start["block"]
    assert figures["start_files"]["foreword"]["hit_knowable"] == 1.0
    assert figures["hints"]["repeated_failures"] == 1
    assert "titles (F1)" in first["notes"]
    assert "| rooms | 2 |" in table_of([first])
    assert "| all | 4 |" in table_of([first, second])
    (line,) = replay_differences(first, second)
    assert re.fullmatch(r"rooms: (\d+) of \1 figures and 20 of 20 answers are the same", line)


def test_without_shared_it_says_so_and_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay.main(["--sessions", str(tmp_path)]) == 0
    monkeypatch.setattr(replay, "TOOLS", tmp_path / "nowhere")
    assert replay.main(["rooms"]) == 0
    assert capsys.readouterr().out.count("skipped: eval-sessions") == 2


def made(block: str, **figures: Any) -> Result:
    truth = {"edited": ["rooms/mail.py"], "read": [], "commands": ["make test"], "failures": []}
    record = {"moment": "UserPromptSubmit", "at": NOON, "block": block, "prompt": PROMPTS[0], "number": 1}
    record |= {"truth": truth, "knowable": ["rooms/mail.py"]}
    return {"project": "rooms", "metrics": figures, "records": [record], "hints": []}


def test_differences_name_figures_and_lines_but_neither_times_nor_ids() -> None:
    there = made("notes\n- one [sum-t4dn417b]\n- two", prompt_files={"hit": 0.5}, ms_p50=12.0, answered=1.0)
    here = made("notes\n- one [sum-9qk2m1xd]\n- three", prompt_files={"hit": 0.25}, ms_p50=99.0, answered=1.0)
    head, *lines = replay_differences(there, here)
    assert head == "rooms: 1 of 2 figures and 0 of 1 answers are the same"
    place = f"  UserPromptSubmit at {NOON:.0f}, only"
    assert lines == ["  prompt_files.hit: 0.5 there, 0.25 here", f"{place} there: - two", f"{place} here: - three"]
    assert replay_differences(there, there) == ["rooms: 2 of 2 figures and 1 of 1 answers are the same"]


def test_cases_show_the_prompt_the_block_and_what_followed() -> None:
    spoken, silent = made("notes"), made("")
    (case,) = random_blocks([spoken, silent], count=5)
    assert case.splitlines() == [
        f"[rooms 001] {PROMPTS[0]}",
        "notes",
        "  knowable: rooms/mail.py",
        "  edited: rooms/mail.py",
        "  ran: make test",
    ]
    (case,) = silent_cases([spoken, silent])
    assert "(no block)" in case
