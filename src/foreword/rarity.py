"""How many hold it, out of how many -> what holding it weighs. One owner for words and for code."""

from __future__ import annotations

import math

# Rows that every store is thought to have besides its own: in a store of three, two are not many. 0 to 1,000 were
# tried on the sets of `make eval`; from 100 on the order hardly changes.
IMAGINED = 200


def rarity(holders: int, size: int) -> float:
    """The weight of something that *holders* of *size* memories hold: the fewer, the more."""
    return math.log(1 + (max(size, holders) + IMAGINED - holders + 0.5) / (holders + 0.5))
