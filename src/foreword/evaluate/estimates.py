"""Texts with their true token counts -> how near the estimator comes, by tokenizer family and category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from foreword.errors import BadRequest
from foreword.evaluate.measures import mean
from foreword.evaluate.sets import Line, lines
from foreword.tokens import FAMILIES, count

MOST_ERROR = 0.08  # the specification's mean error per family
MOST_UNDER = -0.10  # a count that is too low breaks a budget, so no category may be further below
COLUMNS = {family: family.replace("-", "_").replace(".", "_") for family in FAMILIES}  # claude-4.7 -> claude_4_7
FORM = f"each line is an object with category, text and counts under {', '.join(COLUMNS.values())}, or some of them"


@dataclass(frozen=True)
class Sample:
    """A text, and what it costs by family."""

    category: str
    text: str
    counts: Mapping[str, int]


def read(path: Path) -> tuple[Sample, ...]:
    """The samples of a file, every line checked."""
    found = tuple(_sample(line) for line in lines(path, hint=FORM))
    if not found:
        raise BadRequest(f"{path} is empty", hint=FORM)
    return found


def estimates(samples: Sequence[Sample]) -> dict[str, Any]:
    """By family the mean absolute and the mean signed error, of all and of each category, and whether both pass."""
    families = []
    for family in FAMILIES:
        mine = [sample for sample in samples if family in sample.counts]
        if mine:
            errors = [
                (sample.category, count(sample.text, family=family) / sample.counts[family] - 1) for sample in mine
            ]
            families.append(_family(family, errors))
    return {
        "most_error": MOST_ERROR,
        "most_under": MOST_UNDER,
        "samples": len(samples),
        "families": families,
        "passes": all(each["passes"] for each in families),
    }


def _family(family: str, errors: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """A family passes by its mean error and where none of its categories is counted too low."""
    categories = [
        {"category": name, **_errors([error for category, error in errors if category == name], most=inf)}
        for name in sorted({category for category, _ in errors})
    ]
    told = _errors([error for _, error in errors], most=MOST_ERROR)
    passes = told["passes"] and all(each["passes"] for each in categories)
    return {"family": family, **told, "passes": passes, "categories": categories}


def _errors(errors: Sequence[float], *, most: float) -> dict[str, Any]:
    absolute, signed = mean(map(abs, errors)) or 0.0, mean(errors) or 0.0
    return {
        "samples": len(errors),
        "error": round(absolute, 5),
        "signed": round(signed, 5),
        "worst_under": round(min(errors), 5),
        "passes": absolute <= most and signed >= MOST_UNDER,
    }


def _sample(line: Line) -> Sample:
    counts = {family: line.told[column] for family, column in COLUMNS.items() if column in line.told}
    if not counts:
        raise line.wrong(f"has none of {', '.join(COLUMNS.values())}")
    for family, given in counts.items():
        if type(given) is not int or given < 1:
            raise line.wrong(f"`{COLUMNS[family]}` must be a count of at least 1")
    return Sample(category=line.text("category"), text=line.text("text"), counts=counts)
