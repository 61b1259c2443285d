"""Decide who wrote a prompt: a person who typed it, somebody whose text was pasted, or a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from foreword.extract.actions import own_words

Author = Literal["typed", "mixed", "pasted", "machine"]


@dataclass(frozen=True)
class Authorship:
    """Who wrote a prompt, the part of it that a person typed, and what tells so."""

    author: Author
    typed: str
    reason: str


def authorship_of(prompt: str, *, earlier: Sequence[str] = ()) -> Authorship:
    """Return who wrote *prompt*; *earlier* are texts of this session that a person may have pasted from."""
    text = own_words(prompt)
    if not text:
        return Authorship("machine", "", "written by the client")
    return Authorship("typed", text, "nothing tells otherwise")
