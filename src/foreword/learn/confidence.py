"""What sessions say for and against something -> how sure it is, and whose word it is. The one owner of both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from foreword.rank import CERTAIN
from foreword.types import TRUSTS, Memory

if TYPE_CHECKING:
    from foreword.types import Trust

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


def lowest(trusts: Iterable[str]) -> Trust:
    """What is made of several has the lowest trust of them; what is made of nothing known, the lowest of all."""
    places = [TRUSTS.index(each) if each in TRUSTS else len(TRUSTS) - 1 for each in trusts]
    return cast("Trust", TRUSTS[max(places, default=len(TRUSTS) - 1)])
