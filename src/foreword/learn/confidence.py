"""What sessions say for and against something -> how sure it is. The one owner of that."""

from __future__ import annotations

from collections.abc import Sequence

from foreword.recall.rank import CERTAIN
from foreword.types import Memory

WINDOW = 8  # sessions, the last that said anything about it: three that do otherwise outweigh ten of long ago
DOUBT = 1.0  # two sessions make two thirds, three three quarters, eight nine tenths
AGAINST = 1.5  # one that does otherwise weighs more than one that does the same: what is wrong costs more than silence


def confidence(verdicts: Sequence[bool]) -> float:
    """How sure something is that these sessions confirm or contradict, the oldest first; from 0 to below 1."""
    last = verdicts[-WINDOW:]
    for_it = sum(last)
    return round(for_it / (for_it + AGAINST * (len(last) - for_it) + DOUBT), 2)


def asleep(memory: Memory) -> bool:
    """Whether a learning is too unsure to be given by itself; confirmed again it wakes."""
    return memory.kind == "learning" and memory.confidence < CERTAIN
