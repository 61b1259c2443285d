"""What was found, and what should have been -> the measures that retrieval is judged by. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log2

DEPTH = 50  # hits that are looked at; a searcher reads no further, and neither does the reciprocal rank
NAMES = ("ndcg_at_10", "r_at_5", "r_at_10", "r_at_20", "hit_at_10", "mrr")


def measured(found: Sequence[str], relevant: Mapping[str, int]) -> dict[str, float]:
    """Every measure of NAMES for one question: *found* best first, *relevant* with grades and not empty."""
    return {
        "ndcg_at_10": ndcg(found, relevant, most=10),
        "r_at_5": share_found(found, relevant, most=5),
        "r_at_10": share_found(found, relevant, most=10),
        "r_at_20": share_found(found, relevant, most=20),
        "hit_at_10": float(any(id in relevant for id in found[:10])),
        "mrr": next((1 / place for place, id in enumerate(found[:DEPTH], start=1) if id in relevant), 0.0),
    }


def ndcg(found: Sequence[str], relevant: Mapping[str, int], *, most: int) -> float:
    """The discounted gain of the first *most*, as a share of the best possible; a grade gains 2^grade - 1."""
    best = sorted(relevant.values(), reverse=True)[:most]
    return _gained([relevant.get(id, 0) for id in found[:most]]) / _gained(best)


def share_found(found: Sequence[str], relevant: Iterable[str], *, most: int) -> float:
    """The share of the relevant ones that is among the first *most*."""
    wanted = set(relevant)
    return len(wanted.intersection(found[:most])) / len(wanted)


def mean(numbers: Iterable[float | None]) -> float | None:
    """The mean of those that are known; of none it is not known."""
    known = [number for number in numbers if number is not None]
    return sum(known) / len(known) if known else None


def auc(higher: Sequence[float], lower: Sequence[float]) -> float | None:
    """The area under the ROC curve: how often one of *higher* passes one of *lower*, a tie being half."""
    if not higher or not lower:
        return None
    passed = sum((one > other) + (one == other) / 2 for one in higher for other in lower)
    return passed / (len(higher) * len(lower))


def _gained(grades: Sequence[int]) -> float:
    return sum((2.0**grade - 1) / log2(place + 1) for place, grade in enumerate(grades, start=1))
