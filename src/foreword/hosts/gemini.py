"""Gemini CLI: nested JSON only; the first prompt carries our own session-start text, which is not the user's.

PreCompress comes before every model call, whether or not anything is compressed: it is no sign of a compaction.
"""

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
        prompt=_own_words(text_of(payload, "prompt")),
        source=text_of(payload, "source"),
        model=text_of(payload, "model"),
        id=text_of(payload, "timestamp"),
        files=files_of(payload.get("tool_input")),
    )


def _own_words(prompt: str) -> str:
    """The prompt without the `<hook_context>` that Gemini puts before it."""
    if not prompt.startswith("<hook_context>"):
        return prompt
    return prompt.rpartition("</hook_context>")[2].lstrip()


HOST = Host(
    name="gemini",
    events={
        "SessionStart": "session_start",
        "BeforeAgent": "prompt",
        "AfterTool": "tool",
        "AfterAgent": "stop",
        "SessionEnd": "session_end",
    },
    moments={"SessionStart": "session_start", "BeforeAgent": "prompt"},
    read=read,
    answer=answer,
)
