"""Read from the end of a transcript what hooks lack: how a command ended (Codex), the last answer (Copilot).

The files are the agents' own and may be gone, huge or half written: what cannot be read is not known.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import Any

from foreword.agents import dict_of, text_of
from foreword.encoding import decoded, timestamp

TAIL = 256 * 1024  # bytes from the end; a turn of a hundred tool calls is shorter
LATER = 1.0  # seconds that an agent may take to write down what its hook reported already

EXIT = re.compile(r"^(?:Process exited with code|Exit code:|exit_code[:=]) ?(-?\d+)", re.MULTILINE)
HEAD = 300  # characters before an output itself, where Codex writes a chunk's id, the time it took and the exit code


def codex_exit(transcript_path: str, call_id: str) -> int | None:
    """Return how a call ended, as Codex wrote it into its rollout; None where that cannot be found."""
    if not call_id:
        return None
    for line in last_lines(transcript_path, holding=call_id):
        payload = dict_of(line.get("payload"))
        item = dict_of(payload.get("item", payload))
        # In code mode a hook gets the id of the item, which is nowhere but in its completion.
        if call_id in (item.get("call_id"), item.get("id")):
            code = item.get("exit_code")
            ended = code if isinstance(code, int) else codex_outcome(item.get("output"))[1]
            if ended is not None:
                return ended
    return None


def codex_outcome(output: Any) -> tuple[str, int | None]:
    """Return the output of a call as Codex wrote it down, and its exit code where there is one."""
    if fields := dict_of(output):
        code = dict_of(fields.get("metadata")).get("exit_code", fields.get("exit_code"))
        text = "\n".join(texts_of(fields.get("content"))) or text_of(fields, "output")
        return text, code if isinstance(code, int) else None
    text = "\n".join(texts_of(output))
    head, mark, body = text.partition("Output:\n")
    has_head = bool(mark) and len(head) < HEAD
    exit_line = EXIT.search(head if has_head else text[:HEAD])
    return (body if has_head and exit_line else text), int(exit_line[1]) if exit_line else None


def texts_of(content: Any) -> list[str]:
    """Return the texts of a message, which is a text or a list of blocks."""
    blocks = [content] if isinstance(content, str) else content if isinstance(content, list) else []
    texts = [block.get("text") if isinstance(block, dict) else block for block in blocks]
    return [text for text in texts if isinstance(text, str)]


def copilot_answer(transcript_path: str, *, before: float) -> str:
    """Return the last message of Copilot's agent until then; empty where that cannot be found."""
    for line in last_lines(transcript_path, holding='"assistant.message"'):
        text, written = text_of(dict_of(line.get("data")), "content"), timestamp(line.get("timestamp"))
        if line.get("type") == "assistant.message" and text.strip() and written <= before + LATER:
            return text
    return ""


def last_lines(path: str, *, holding: str = "") -> Iterator[Mapping[str, Any]]:
    """Yield the lines at the end of a transcript that hold a text, the last first; none where it is no .jsonl file."""
    sought = holding.encode(errors="replace")
    for raw in reversed(tail(path).split(b"\n")) if path.endswith(".jsonl") else ():
        if sought in raw and (line := dict_of(decoded(raw))):  # the first was cut, the last may be half written
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
