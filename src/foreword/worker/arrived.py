"""A host's transcript -> whether what a session begins with arrived there."""

from __future__ import annotations

import os
import stat

TAIL = 256 * 1024  # bytes; a first prompt stands near the end, and a hook waits for the answer
# As `render` begins the block in each form; nothing in it is written otherwise inside JSON.
MARKS = (b"--- foreword: notes from earlier sessions in ", b"<foreword_context ")


def arrived(transcript: str) -> bool:
    """Whether the end of a transcript holds a block of ours; one that cannot be read does not show it."""
    try:
        # A pipe would wait for ever.
        with open(os.open(transcript, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                return False
            file.seek(max(0, about.st_size - TAIL))
            held = file.read(TAIL)
    except (OSError, ValueError):  # as of a name with a zero byte
        return False
    return any(mark in held for mark in MARKS)
