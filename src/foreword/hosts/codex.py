"""Codex: Claude's shape, but an unknown key fails the hook; every turn has an id."""

from __future__ import annotations

from foreword.hosts import Host, Told, files_of, text_of
from foreword.hosts.claude_code import answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def read(payload: Mapping[str, Any]) -> Told:
    return Told(
        session=text_of(payload, "session_id"),
        cwd=text_of(payload, "cwd"),
        prompt=text_of(payload, "prompt"),
        source=text_of(payload, "source"),
        model=text_of(payload, "model"),
        id=text_of(payload, "tool_use_id", "turn_id"),
        files=files_of(payload.get("tool_input")),
        inner=payload.get("hook_event_name") in ("SubagentStart", "SubagentStop"),
    )


HOST = Host(
    name="codex",
    events={
        "SessionStart": "session_start",
        "UserPromptSubmit": "prompt",
        "PostToolUse": "tool",
        "Stop": "stop",
        "PreCompact": "compaction",
        "SessionEnd": "session_end",
    },
    moments={"SessionStart": "session_start", "UserPromptSubmit": "prompt"},
    read=read,
    answer=answer,
)
