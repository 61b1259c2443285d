"""Hooks that stop to run: `status` and `doctor` tell it, and what was not told can be imported."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foreword.paths import Home
from foreword.worker.client import Client
from tests.flow.conftest import CLEAN

NOW = time.time()
DAY = 86_400
SESSION = "00000001-0000-4000-8000-000000000000"
RECORDED = Path(__file__).parents[1] / "payloads" / "transcripts" / "claude-code.jsonl"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "user" / ".claude").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return tmp_path / "user"


@pytest.fixture
def foreword(home: Home, project: str, user: Path) -> Run:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(
            [sys.executable, "-m", "foreword", *words],
            check=False,
            capture_output=True,
            text=True,
            cwd=project,
            timeout=60,
            env={**CLEAN, "FOREWORD_HOME": str(home.root), "HOME": str(user)},
        )
        assert ended.returncode == 0 or words[0] == "doctor", ended.stderr  # which looks at more than this
        return ended

    return run


def tell(client: Client, kind: str, *, at: float, **payload: Any) -> None:
    """Send what a hook sends, at a time of our choice."""
    answer = {"session_id": SESSION, **payload}
    client.post("/api/events", {"host": "claude-code", "event": kind, "at": at, "payload": answer})


def transcribe(user: Path, project: str, *, began: float) -> Path:
    """Write a recorded transcript as if it had begun then."""
    answer = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    times = [datetime.fromisoformat(line["timestamp"]).timestamp() for line in answer if line.get("timestamp")]
    for line in answer:
        if line.get("timestamp"):
            at = datetime.fromisoformat(line["timestamp"]).timestamp() - min(times) + began
            line["timestamp"] = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
    path = user / ".claude" / "projects" / project.replace("/", "-") / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in answer).replace("/home/user/project", project))
    os.utime(path, (began + 60, began + 60))  # one that was written just now is still going on
    return path


def test_what_a_session_did_after_its_hooks_fell_silent_can_be_imported(
    start: Callable[[], Client], project: str, user: Path, foreword: Run
) -> None:
    client = start()
    began = NOW - 7200
    transcribe(user, project, began=began)
    tell(client, "SessionStart", at=began - 300, source="startup", cwd=project)
    tell(client, "UserPromptSubmit", at=began - 299, prompt="Please fix the booking test", cwd=project)
    before = client.get(f"/api/sessions/{SESSION}")["memories"]
    foreword("import", "claude-code")
    after = client.get(f"/api/sessions/{SESSION}")["memories"]
    assert len(after) > len(before)
    assert any("cents" in memory["title"] for memory in after)  # what the user laid down when no hook listened


def test_a_session_that_told_everything_is_not_imported_again(
    start: Callable[[], Client], project: str, user: Path, foreword: Run
) -> None:
    client = start()
    transcribe(user, project, began=NOW - 7200)
    tell(client, "UserPromptSubmit", at=NOW - 7199, prompt="Please fix the booking test", cwd=project)
    tell(client, "SessionEnd", at=NOW, reason="other", cwd=project)
    foreword("import", "claude-code")
    memories = client.get(f"/api/sessions/{SESSION}")["memories"]
    assert not any("cents" in memory["title"] for memory in memories)


@pytest.mark.parametrize(("written", "warns"), [(3600, True), (2.5 * DAY, False)])
def test_a_wired_host_that_goes_on_and_tells_nothing_is_a_line_of_status_and_of_doctor(
    start: Callable[[], Client], project: str, home: Home, user: Path, foreword: Run, written: float, warns: bool
) -> None:
    foreword("install", "claude-code", "--yes")
    for file in home.installed.glob("claude-code*"):
        os.utime(file, (NOW - 9 * DAY, NOW - 9 * DAY))
    tell(start(), "Stop", at=NOW - 3 * DAY, cwd=project)
    path = transcribe(user, project, began=NOW - 3 * DAY)
    os.utime(path, (NOW - written, NOW - written))
    shown = foreword("status").stdout
    assert re.search(r"claude-code +last event 3 days ago \(Stop\)", shown)
    assert ("claude-code wrote a transcript 1h ago" in shown) is warns
    assert ("wrote a transcript 1h ago" in foreword("doctor").stdout) is warns
    if warns:
        foreword("config", "set", "capture", "false")
        assert "wrote a transcript" not in foreword("status").stdout
