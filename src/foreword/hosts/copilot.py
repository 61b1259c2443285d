"""Copilot CLI: flat `additionalContext`; camelCase events send camelCase fields, PascalCase events snake_case ones."""

from __future__ import annotations

from foreword.hosts import Host, Told, files_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def read(payload: Mapping[str, Any]) -> Told:
    stamp = payload.get("timestamp")
    return Told(
        session=text_of(payload, "sessionId", "session_id"),
        cwd=text_of(payload, "cwd"),
        prompt=text_of(payload, "prompt"),
        source=text_of(payload, "source"),
        model=text_of(payload, "model"),
        id=str(stamp) if isinstance(stamp, (int, str)) else "",
        files=files_of(payload.get("toolArgs", payload.get("tool_input"))),
    )


def answer(_event: str, text: str) -> Mapping[str, Any]:
    return {"additionalContext": text}


_EVENTS = {
    "sessionStart": "session_start",
    "userPromptSubmitted": "prompt",
    "postToolUse": "tool",
    "agentStop": "stop",
    "preCompact": "compaction",
    "sessionEnd": "session_end",
    "SessionStart": "session_start",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool",
    "Stop": "stop",
    "PreCompact": "compaction",
    "SessionEnd": "session_end",
}

HOST = Host(
    name="copilot",
    events=_EVENTS,
    moments={name: kind for name, kind in _EVENTS.items() if kind in ("session_start", "prompt")},
    read=read,
    answer=answer,
)
