"""Whose words something is made of -> how far it is trusted: no further than the least trusted of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from foreword.types import TRUSTS

if TYPE_CHECKING:
    from foreword.types import Trust


def level(trust: str) -> int:
    """0 for the user's own words; the higher, the less they count. What is not known counts least."""
    return TRUSTS.index(trust) if trust in TRUSTS else len(TRUSTS) - 1


def lowest(trusts: Iterable[str]) -> Trust:
    """What is made of several has the lowest trust of them; what is made of nothing known, the lowest of all."""
    return cast("Trust", TRUSTS[max(map(level, trusts), default=len(TRUSTS) - 1)])
