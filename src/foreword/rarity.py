"""How many hold it, out of how many -> what holding it weighs. One owner for words and for code. Light."""

from __future__ import annotations

# Rows that every store is thought to have besides its own: in a store of three, two are not many. 0 to 1,000 were
# tried on the sets of `make eval`; from 100 on the order hardly changes.
IMAGINED = 200


def rarity(holders: int, size: int) -> float:
    """The weight of something that *holders* of *size* memories hold: the fewer, the more."""
    return logarithm(1 + (max(size, holders) + IMAGINED - holders + 0.5) / (holders + 0.5))


def logarithm(number: float) -> float:
    """The natural logarithm of a number from 1 on, to six digits: importing `math` costs a hook 0.5 ms."""
    halved = 0
    while number > 2:
        number, halved = number / 2, halved + 1
    part = (number - 1) / (number + 1)
    square = part * part
    return halved * 0.6931471805599453 + 2 * part * (
        1 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square / 9)))
    )
