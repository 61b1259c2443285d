"""A host's transcript -> whether what a session begins with arrived there."""

from __future__ import annotations

from foreword.agents.transcript_tail import tail

# As `render` begins the block in each form; nothing in it is written otherwise inside JSON.
MARKS = (b"--- foreword: notes from earlier sessions in ", b"<foreword_context ")


def arrived(transcript: str) -> bool:
    """Whether the end of a transcript, where a first prompt stands, holds a block of ours."""
    held = tail(transcript)
    return any(mark in held for mark in MARKS)
