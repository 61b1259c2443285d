"""A session loses its hooks in the middle: the next start tells the user, and what was lost can be brought in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from foreword.client import Client
from foreword.paths import Home
from tests import retimed
from tests.flow.conftest import CLEAN, wait_for

NOW = time.time()
SESSION = "00000001-0000-4000-8000-000000000000"


def foreword(home: Home, *words: str, cwd: str, user: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "foreword", *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=60,
        env={**CLEAN, "FOREWORD_HOME": str(home.root), "HOME": str(user)},
    )


def tell(client: Client, kind: str, *, session: str, at: float, **payload: Any) -> None:
    """What the hook sends, at a time of our choice."""
    client.post(
        "/api/events", {"host": "claude-code", "event": kind, "at": at, "payload": {"session_id": session, **payload}}
    )


def test_a_session_that_lost_its_hooks_is_told_at_the_next_start_and_can_be_brought_in(
    home: Home, start: Callable[[], Client], project: str, tmp_path: Path
) -> None:
    client = start()
    user = tmp_path / "user"
    slug = project.replace("/", "-")
    path = user / ".claude" / "projects" / slug / f"{SESSION}.jsonl"
    about = {"cwd": project, "transcript_path": str(path)}
    began = NOW - 7200
    tell(client, "SessionStart", session=SESSION, at=began, source="startup", **about)
    tell(client, "UserPromptSubmit", session=SESSION, at=began + 1, prompt="Please fix the booking test", **about)
    # From here on its hooks are gone, and the agent works on: edits, tests, a second prompt an hour later.
    retimed.write(path, "claude-code", first=began, last=NOW - 600, more=(retimed.prompt("claude-code"),))
    written = path.stat().st_mtime
    path.write_text(path.read_text().replace("/home/user/project", project))
    os.utime(path, (written, written))

    tell(client, "SessionStart", session="next", at=NOW, source="startup", cwd=project)
    wait_for(lambda: client.get("/api/hosts")["hosts"]["claude-code"]["died"])

    about_it = json.loads(foreword(home, "status", "--json", cwd=project, user=user).stdout)
    (trouble,) = [each for each in about_it["troubles"] if each["where"] == "worker: capture"]
    assert SESSION[:8] in trouble["what"]
    assert "foreword import claude-code" in trouble["what"]
    assert about_it["hosts"]["claude-code"]["sessions"] == 2

    # Told once by status; doctor keeps telling it.
    shown = foreword(home, "status", cwd=project, user=user).stdout
    assert SESSION[:8] in shown
    assert "claude-code  last event" in shown
    assert SESSION[:8] not in foreword(home, "status", cwd=project, user=user).stdout
    doctor = json.loads(foreword(home, "doctor", "--json", cwd=project, user=user).stdout)
    assert any(SESSION[:8] in each["what"] for each in doctor["troubles"])

    before = client.get(f"/api/sessions/{SESSION}")["memories"]
    brought = foreword(home, "import", "claude-code", cwd=project, user=user)
    assert brought.returncode == 0, brought.stderr
    after = client.get(f"/api/sessions/{SESSION}")["memories"]
    assert len(after) > len(before)
    assert client.get("/api/hosts")["hosts"]["claude-code"]["died"] == []
    assert any("cents" in memory["title"] for memory in after)  # what the user laid down when no hook listened


def test_a_session_that_told_everything_is_passed_over_by_the_next_start(
    home: Home, start: Callable[[], Client], project: str, tmp_path: Path
) -> None:
    client = start()
    path = tmp_path / "projects" / "p" / f"{SESSION}.jsonl"
    retimed.write(path, "claude-code", first=NOW - 7200)
    about = {"cwd": project, "transcript_path": str(path)}
    tell(client, "UserPromptSubmit", session=SESSION, at=NOW - 7199, prompt="hello", **about)
    tell(client, "SessionEnd", session=SESSION, at=NOW - 7100, reason="other", **about)
    tell(client, "SessionStart", session="next", at=NOW, source="startup", cwd=project)
    time.sleep(2.5)  # it is looked at within a second
    assert client.get("/api/hosts")["hosts"]["claude-code"]["died"] == []
    about_it = json.loads(foreword(home, "status", "--json", cwd=project, user=tmp_path).stdout)
    assert about_it["troubles"] == []
