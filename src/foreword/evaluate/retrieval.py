"""Sets -> how well the product finds what each question needs, and how well plain full-text search does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from foreword.evaluate.measures import NAMES, auc, mean, measured
from foreword.evaluate.scratch import Scored, Scratch
from foreword.evaluate.sets import Question, Set

RATIOS = ("ndcg_at_10", "r_at_10")
SHARES = (*NAMES, "silent", "auc_unanswerable")


@dataclass(frozen=True)
class Asked:
    """One question, with what the product and plain search found for it."""

    question: Question
    found: tuple[Scored, ...]
    plain: tuple[str, ...]
    covered: tuple[Scored, ...]  # plain search's first ten, by how much of the prompt they hold


@dataclass(frozen=True)
class Result:
    """All questions of one set."""

    given: Set
    asked: tuple[Asked, ...]
    threshold: float
    seconds: float


def ask(opened: Scratch, *, tick: Callable[[], object] = bool) -> Result:
    """Every question of a set, asked of the product and of plain search."""
    started = perf_counter()
    asked = []
    for question in opened.questions():
        prompt, at = question.prompt, question.at
        asked.append(
            Asked(
                question=question,
                found=opened.found(prompt, at=at),
                plain=opened.plainly(prompt, at=at),
                covered=opened.covered(prompt, at=at),
            )
        )
        tick()
    return Result(
        given=opened.given,
        asked=tuple(asked),
        threshold=opened.product.threshold,
        seconds=perf_counter() - started,
    )


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """What `--json` prints: each set, the mean of each group, and the mean of all sets."""
    rows = [_row(result) for result in results]
    groups = {row["group"]: [each for each in rows if each["group"] == row["group"]] for row in rows}
    return {
        "sets": rows,
        "groups": {name: _mean(members) for name, members in groups.items()},
        "mean": _mean(rows),
    }


def best(hits: Iterable[Scored]) -> float:
    """The highest score; for nothing found, one below every threshold."""
    return max((hit.score for hit in hits), default=-1.0)


def _row(result: Result) -> dict[str, Any]:
    with_answer = [each for each in result.asked if each.question.relevant]
    ours = {
        **_measures(with_answer, lambda each: [hit.uid for hit in each.found]),
        "silent": mean(float(best(each.found) < result.threshold) for each in result.asked),
        "auc_unanswerable": _auc(result.asked, lambda each: each.found),
    }
    plain = {
        **_measures(with_answer, lambda each: each.plain),
        "silent": mean(float(not each.plain) for each in result.asked),  # it knows no threshold
        "auc_unanswerable": _auc(result.asked, lambda each: each.covered),
    }
    return {
        "name": result.given.name,
        "group": result.given.group,
        "memories": len(result.given.memories),
        "queries": len(result.asked),
        "answerable": len(with_answer),
        "seconds": round(result.seconds, 3),
        **_with_baseline(ours, plain),
    }


def _mean(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The unweighted mean over sets, and the ratios of the means."""
    ours = {name: mean(row[name] for row in rows) for name in SHARES}
    plain = {name: mean(row["baseline"][name] for row in rows) for name in SHARES}
    counts = {name: sum(row[name] for row in rows) for name in ("memories", "queries", "answerable", "seconds")}
    return {"sets": len(rows), **counts, **_with_baseline(ours, plain)}


def _with_baseline(ours: dict[str, float | None], plain: dict[str, float | None]) -> dict[str, Any]:
    return {
        **_rounded(ours),
        "baseline": _rounded(plain),
        **{f"ratio_{name}": _ratio(ours[name], plain[name]) for name in RATIOS},
    }


def _measures(asked: Sequence[Asked], order: Callable[[Asked], Sequence[str]]) -> dict[str, float | None]:
    each = [measured(order(one), one.question.relevant) for one in asked]
    return {name: mean(one[name] for one in each) for name in NAMES}


def _auc(asked: Iterable[Asked], hits: Callable[[Asked], Sequence[Scored]]) -> float | None:
    """How well the best score tells questions that have an answer from those that have none."""
    scores: dict[bool, list[float]] = {True: [], False: []}
    for each in asked:
        scores[bool(each.question.relevant)].append(best(hits(each)))
    return auc(scores[True], scores[False])


def _ratio(ours: float | None, plain: float | None) -> float | None:
    return round(ours / plain, 4) if ours is not None and plain else None


def _rounded(numbers: dict[str, float | None]) -> dict[str, float | None]:
    return {name: None if number is None else round(number, 6) for name, number in numbers.items()}
