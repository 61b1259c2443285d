"""Measure how near the token estimator comes to true counts, by tokenizer family and category."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from bench.eval.datasets import Sample
from bench.eval.metrics import mean
from foreword.recall.tokens import FAMILIES, count

MOST_ERROR = 0.08  # the specification's mean error per family
MOST_UNDER = -0.10  # a count that is too low breaks a budget, so no category may be further below


def measure_estimates(samples: Sequence[Sample]) -> dict[str, Any]:
    """Return the mean absolute and signed error of each family and category, and whether both pass."""
    families = []
    for family in FAMILIES:
        errors = [
            (sample.category, count(sample.text, family=family) / sample.counts[family] - 1)
            for sample in samples
            if family in sample.counts
        ]
        if errors:
            families.append({"family": family, **_family(errors)})
    return {
        "most_error": MOST_ERROR,
        "most_under": MOST_UNDER,
        "samples": len(samples),
        "families": families,
        "passes": all(each["passes"] for each in families),
    }


def _family(errors: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """Return a family's errors; it passes by its mean error and where no category is counted too low."""
    categories = [
        {"category": name, **_errors([error for category, error in errors if category == name], most=inf)}
        for name in sorted({category for category, _ in errors})
    ]
    whole = _errors([error for _, error in errors], most=MOST_ERROR)
    passes = whole["passes"] and all(each["passes"] for each in categories)
    return {**whole, "passes": passes, "categories": categories}


def _errors(errors: Sequence[float], *, most: float) -> dict[str, Any]:
    absolute, signed = mean(map(abs, errors)) or 0.0, mean(errors) or 0.0
    return {
        "samples": len(errors),
        "error": round(absolute, 5),
        "signed": round(signed, 5),
        "worst_under": round(min(errors), 5),
        "passes": absolute <= most and signed >= MOST_UNDER,
    }
