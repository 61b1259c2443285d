"""Claude Code: nested `hookSpecificOutput`; an agent_id marks a sub-agent; compaction's own has an empty type."""

from __future__ import annotations

from foreword.hosts import Host, Told, files_of, text_of

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
        id=text_of(payload, "tool_use_id", "prompt_id"),
        files=files_of(payload.get("tool_input")),
        inner="agent_id" in payload or payload.get("hook_event_name") in ("SubagentStart", "SubagentStop"),
    )


def answer(event: str, text: str) -> Mapping[str, Any]:
    # A missing or wrong hookEventName drops the whole context silently.
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


HOST = Host(
    name="claude-code",
    events={
        "SessionStart": "session_start",
        "UserPromptSubmit": "prompt",
        "PostToolUse": "tool",
        "PostToolUseFailure": "tool_failure",
        "Stop": "stop",
        "PreCompact": "compaction",
        "SessionEnd": "session_end",
    },
    moments={"SessionStart": "session_start", "UserPromptSubmit": "prompt"},
    read=read,
    answer=answer,
)
