"""Claude Code: nested `hookSpecificOutput`; an agent_id marks a sub-agent; compaction's own has an empty type."""

from __future__ import annotations

from foreword.hosts import Host, Told, apart, dict_of, files_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def read(payload: Mapping[str, Any]) -> Told:
    return Told(
        session=text_of(payload, "session_id"),
        cwd=text_of(payload, "cwd"),
        prompt=text_of(payload, "prompt"),
        answer=text_of(payload, "last_assistant_message"),
        source=text_of(payload, "source"),
        model=text_of(payload, "model"),
        id=text_of(payload, "tool_use_id", "prompt_id"),
        files=files_of(payload.get("tool_input")),
        inner="agent_id" in payload or payload.get("hook_event_name") in ("SubagentStart", "SubagentStop"),
    )


@apart
def used(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A failure is an event of its own; what the user stopped, or runs on behind, has not told how it ends."""
    result = payload.get("tool_response")
    told = dict_of(result)
    failed: bool | None = "error" in payload or told.get("interrupted") is True
    if payload.get("is_interrupt") is True or "backgroundTaskId" in told:
        failed = None
    error = text_of(payload, "error")
    head, _, rest = error.partition("\n")
    return {
        "tool": text_of(payload, "tool_name"),
        "given": dict_of(payload.get("tool_input")),
        "output": rest if rest and head.startswith("Exit code ") else error,
        "result": result,
        "failed": failed,
    }


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
    used=used,
)
