"""Measure how well Foreword finds what each question needs, against plain full-text search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.eval.datasets import Dataset, Question
from bench.eval.metrics import NAMES, auc, mean, measure, rounded
from bench.eval.scratch import Hit, Scratch

RATIOS = ("ndcg_at_10", "r_at_10")
SHARES = (*NAMES, "silent", "auc_unanswerable")


@dataclass(frozen=True)
class Answer:
    """One question with what Foreword and the baseline found."""

    question: Question
    found: tuple[Hit, ...]
    plain: tuple[str, ...]
    covered: tuple[Hit, ...]  # the baseline's first ten, by the share of the prompt's words


@dataclass(frozen=True)
class Result:
    """All questions of one set."""

    dataset: Dataset
    answers: tuple[Answer, ...]
    threshold: float


def ask(scratch: Scratch) -> Result:
    """Ask Foreword and the baseline every question of a set."""
    answers = tuple(
        Answer(
            question=question,
            found=scratch.search(question.prompt, at=question.at),
            plain=scratch.search_plain(question.prompt, at=question.at),
            covered=scratch.search_covered(question.prompt, at=question.at),
        )
        for question in scratch.questions()
    )
    return Result(dataset=scratch.dataset, answers=answers, threshold=scratch.options.threshold)


def summarize(results: Sequence[Result]) -> dict[str, Any]:
    """Return the measures of each set, the mean of each group, and the mean of all sets."""
    rows = [_row(result) for result in results]
    groups = {row["group"]: [each for each in rows if each["group"] == row["group"]] for row in rows}
    return {"sets": rows, "groups": {name: _mean(members) for name, members in groups.items()}, "mean": _mean(rows)}


def best_score(hits: Iterable[Hit]) -> float:
    """Return the highest score; -1 for no hits, which is below every threshold."""
    return max((hit.score for hit in hits), default=-1.0)


def _row(result: Result) -> dict[str, Any]:
    answerable = [each for each in result.answers if each.question.relevant]
    ours = {
        **_measures(answerable, lambda each: [hit.uid for hit in each.found]),
        "silent": mean(float(best_score(each.found) < result.threshold) for each in result.answers),
        "auc_unanswerable": _auc(result.answers, lambda each: each.found),
    }
    plain = {
        **_measures(answerable, lambda each: each.plain),
        "silent": mean(float(not each.plain) for each in result.answers),  # it has no threshold
        "auc_unanswerable": _auc(result.answers, lambda each: each.covered),
    }
    return {
        "name": result.dataset.name,
        "group": result.dataset.group,
        "memories": len(result.dataset.memories),
        "queries": len(result.answers),
        "answerable": len(answerable),
        **_with_baseline(ours, plain),
    }


def _mean(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the unweighted mean over sets, and the ratios of the means."""
    ours = {name: mean(row[name] for row in rows) for name in SHARES}
    plain = {name: mean(row["baseline"][name] for row in rows) for name in SHARES}
    counts = {name: sum(row[name] for row in rows) for name in ("memories", "queries", "answerable")}
    return {"sets": len(rows), **counts, **_with_baseline(ours, plain)}


def _with_baseline(ours: dict[str, float | None], plain: dict[str, float | None]) -> dict[str, Any]:
    ratios = {f"ratio_{name}": _ratio(ours[name], plain[name]) for name in RATIOS}
    return {**rounded(ours, 6), "baseline": rounded(plain, 6), **ratios}


def _measures(answers: Sequence[Answer], order: Callable[[Answer], Sequence[str]]) -> dict[str, float | None]:
    each = [measure(order(one), one.question.relevant) for one in answers]
    return {name: mean(one[name] for one in each) for name in NAMES}


def _auc(answers: Iterable[Answer], hits: Callable[[Answer], Sequence[Hit]]) -> float | None:
    """Return how well the best score separates questions that have an answer from those that have none."""
    scores: dict[bool, list[float]] = {True: [], False: []}
    for each in answers:
        scores[bool(each.question.relevant)].append(best_score(hits(each)))
    return auc(scores[True], scores[False])


def _ratio(ours: float | None, plain: float | None) -> float | None:
    return round(ours / plain, 4) if ours is not None and plain else None
