"""OpenCode: a plugin inside the host speaks to the worker; its answer is plain text in a field."""

from __future__ import annotations

from foreword.hosts import Host, Told, files_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def read(payload: Mapping[str, Any]) -> Told:
    return Told(
        session=text_of(payload, "sessionID", "session_id"),
        cwd=text_of(payload, "directory", "cwd"),
        prompt=text_of(payload, "prompt"),
        source=text_of(payload, "source"),
        model=text_of(payload, "model"),
        id=text_of(payload, "callID", "messageID"),
        files=files_of(payload.get("args")),
    )


def answer(_event: str, text: str) -> Mapping[str, Any]:
    return {"context": text}


HOST = Host(
    name="opencode",
    events={
        "session.created": "session_start",
        "chat.message": "prompt",
        "tool.execute.after": "tool",
        "session.idle": "stop",
        "session.compacted": "compaction",
        "session.deleted": "session_end",
    },
    moments={"session.created": "session_start", "chat.message": "prompt"},
    read=read,
    answer=answer,
)
