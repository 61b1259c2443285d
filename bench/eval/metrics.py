"""Compute the measures that retrieval is judged by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log2

DEPTH = 50  # hits that count; nobody reads further, so the reciprocal rank does not either
NAMES = ("ndcg_at_10", "r_at_5", "r_at_10", "r_at_20", "hit_at_10", "mrr")


def measure(found: Sequence[str], relevant: Mapping[str, int]) -> dict[str, float]:
    """Return every measure of NAMES for one question: *found* best first, *relevant* with grades and not empty."""
    return {
        "ndcg_at_10": ndcg(found, relevant, k=10),
        "r_at_5": recall_at(found, relevant, k=5),
        "r_at_10": recall_at(found, relevant, k=10),
        "r_at_20": recall_at(found, relevant, k=20),
        "hit_at_10": float(any(id in relevant for id in found[:10])),
        "mrr": next((1 / place for place, id in enumerate(found[:DEPTH], start=1) if id in relevant), 0.0),
    }


def ndcg(found: Sequence[str], relevant: Mapping[str, int], *, k: int) -> float:
    """Return the discounted gain of the first *k* as a share of the best possible; a grade gains 2^grade - 1."""
    ideal = sorted(relevant.values(), reverse=True)[:k]
    return _gain([relevant.get(id, 0) for id in found[:k]]) / _gain(ideal)


def recall_at(found: Sequence[str], relevant: Iterable[str], *, k: int) -> float:
    """Return the share of the relevant ones that is among the first *k*."""
    wanted = set(relevant)
    return len(wanted.intersection(found[:k])) / len(wanted)


def mean(numbers: Iterable[float | None]) -> float | None:
    """Return the mean of the known numbers, or None where there is none."""
    known = [number for number in numbers if number is not None]
    return sum(known) / len(known) if known else None


def auc(higher: Sequence[float], lower: Sequence[float]) -> float | None:
    """Return the area under the ROC curve: how often one of *higher* exceeds one of *lower*, a tie counting half."""
    if not higher or not lower:
        return None
    wins = sum((one > other) + (one == other) / 2 for one in higher for other in lower)
    return wins / (len(higher) * len(lower))


def rounded(numbers: Mapping[str, float | None], digits: int) -> dict[str, float | None]:
    """Return *numbers* with at most *digits* digits after the point."""
    return {name: None if number is None else round(number, digits) for name, number in numbers.items()}


def _gain(grades: Sequence[int]) -> float:
    return sum((2.0**grade - 1) / log2(place + 1) for place, grade in enumerate(grades, start=1))
