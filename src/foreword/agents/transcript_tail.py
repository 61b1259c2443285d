"""Read from the end of a transcript what hooks lack: how a command ended (Codex), the last answer (Copilot).

The files are the agents' own and may be gone, huge or half written: what cannot be read is not known.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from datetime import datetime
from typing import Any

TAIL = 256 * 1024  # bytes from the end; a turn of a hundred tool calls is shorter
LATER = 1.0  # seconds that an agent may take to write down what its hook reported already

EXIT = re.compile(r"(?:Process exited with code|Exit code:|exit_code[\"']?:) ?(-?\d+)")
HEAD = 400  # characters of an output in which Codex says how a command ended


def codex_exit(transcript_path: str, call_id: str) -> int | None:
    """Return how a call ended, as Codex wrote it into its rollout; None where that cannot be found."""
    if not call_id:
        return None
    for line in last_lines(transcript_path, holding=call_id):
        payload = line.get("payload")
        item = payload.get("item", payload) if isinstance(payload, dict) else None
        # In code mode a hook gets the id of the item, which is nowhere but in its completion.
        if isinstance(item, dict) and call_id in (item.get("call_id"), item.get("id")):
            ended = _ended(item)
            if ended is not None:
                return ended
    return None


def copilot_answer(transcript_path: str, *, before: float) -> str:
    """Return the last message of Copilot's agent until then; empty where that cannot be found."""
    for line in last_lines(transcript_path, holding='"assistant.message"'):
        data = line.get("data")
        if line.get("type") == "assistant.message" and isinstance(data, dict) and at(line) <= before + LATER:
            text = data.get("content")
            if isinstance(text, str) and text.strip():
                return text
    return ""


def _ended(item: dict[str, Any]) -> int | None:
    code = item.get("exit_code")
    if isinstance(code, int):
        return code
    output = item.get("output")
    if isinstance(output, list):
        output = "\n".join(str(part.get("text", "")) for part in output if isinstance(part, dict))
    if isinstance(output, dict):
        code = output.get("exit_code")
        return code if isinstance(code, int) else None
    found = EXIT.search(output[:HEAD]) if isinstance(output, str) else None
    return int(found[1]) if found else None


def last_lines(path: str, *, holding: str = "") -> Iterator[dict[str, Any]]:
    """Yield the lines at the end of a transcript that hold a text, the last first; none where it is no .jsonl file."""
    sought = holding.encode(errors="replace")
    for raw in reversed(tail(path).split(b"\n")) if path.endswith(".jsonl") else ():
        if sought in raw:
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):
                continue  # the first was cut, the last may be half written
            if isinstance(line, dict):
                yield line


def tail(path: str) -> bytes:
    """Return the last bytes of a transcript; none where it cannot be read."""
    try:
        if not os.path.isabs(path) or not stat.S_ISREG(os.stat(path).st_mode):  # a pipe of that name must not hold us
            return b""
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            return file.read(TAIL)
    except (OSError, ValueError):
        return b""


def at(line: dict[str, Any]) -> float:
    """Return when a line was written, as it says; 0 where it does not."""
    try:
        return datetime.fromisoformat(str(line.get("timestamp"))).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0
