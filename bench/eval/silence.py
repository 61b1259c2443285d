"""Measure what each threshold silences and what it loses, by asking each project the prompts of the others.

A prompt of one project means nothing to the memory of another, so there silence is right. A threshold that silences
more of them also loses more of what the right project knows: the curve shows both, for Foreword's score and for the
plain share of the prompt's words that a memory holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any

from bench.eval.datasets import Question
from bench.eval.metrics import auc, mean, recall_at, rounded
from bench.eval.retrieval import Answer, Result, best_score
from bench.eval.scratch import Hit, Scratch
from foreword.recall.rank import min_score

PROMPTS = 2_250  # asked of other sets in all: about what ten sets ask of themselves
STEPS = (*range(0, 90, 5), *range(90, 100))  # points of a curve, in percent of silence; closer at the end that matters
KEPT, SILENT = 0.95, 0.9  # the two ends at which one number describes a curve

Hits = Callable[[Answer], Sequence[Hit]]


@dataclass(frozen=True)
class Stray:
    """The best scores that the memory of one project reaches for a prompt of another."""

    group: str  # of the project that was asked
    score: float
    coverage: float


def measure_silence(scratches: Sequence[Scratch], results: Sequence[Result]) -> dict[str, Any]:
    """Return the trade-off of every threshold, for Foreword and for the baseline; *results* are of *scratches*."""
    strays = [
        stray
        for target in scratches
        for source in scratches
        if source is not target
        for stray in _ask(target, _sample(source.dataset.questions, len(scratches)))
    ]
    threshold = scratches[0].options.threshold
    groups = {
        group: _point(
            [result for result in results if result.dataset.group == group],
            [stray.score for stray in strays if stray.group == group],
            lambda each: each.found,
            threshold=threshold,
        )
        for group in dict.fromkeys(result.dataset.group for result in results)
    }
    return {
        "prompts": len(strays),
        "threshold": threshold,
        **_curve(results, [stray.score for stray in strays], lambda each: each.found, threshold=threshold),
        "groups": groups,
        "baseline": _curve(results, [stray.coverage for stray in strays], lambda each: each.covered, threshold=None),
    }


def _sample(questions: Sequence[Question], sets: int) -> list[Question]:
    """Return evenly spread questions of one set, so many that those of all sets together stay within PROMPTS."""
    many = min(PROMPTS // (sets * (sets - 1)), len(questions))
    return [questions[number * len(questions) // many] for number in range(many)]


def _ask(target: Scratch, prompts: Sequence[Question]) -> list[Stray]:
    """Ask *target* strange prompts at times when its own questions are asked: only the topic is strange."""
    times = [question.at for question in target.dataset.questions]
    target.learn(inf)
    questions = [
        (question.prompt, times[number * len(times) // len(prompts)]) for number, question in enumerate(prompts)
    ]
    return [
        Stray(
            group=target.dataset.group,
            score=best_score(target.search(prompt, at=at)),
            coverage=best_score(target.search_covered(prompt, at=at)),
        )
        for prompt, at in questions
    ]


def _curve(
    results: Sequence[Result], strays: Sequence[float], hits: Hits, *, threshold: float | None
) -> dict[str, Any]:
    own = [best_score(hits(each)) for result in results for each in result.answers if each.question.relevant]
    curve = [_point(results, strays, hits, threshold=at) for at in _thresholds(strays)]
    if threshold is not None:
        curve.append({**_point(results, strays, hits, threshold=threshold), "product": True})
        curve.sort(key=lambda point: (point["threshold"], "product" in point))
    return {
        **rounded({"auc_cross": auc(own, strays)}, 4),
        "silent_at_95_kept": max(
            (point["silent"] for point in curve if (point["r_at_10_kept"] or 0.0) >= KEPT), default=0.0
        ),
        "kept_at_90_silent": max(
            (point["r_at_10_kept"] or 0.0 for point in curve if point["silent"] >= SILENT), default=0.0
        ),
        "curve": curve,
    }


def _thresholds(strays: Sequence[float]) -> list[float]:
    """Return thresholds that silence the same further share each, whatever the scale of the scores."""
    ordered = sorted(max(0.0, score) for score in strays)
    steps = [ordered[len(ordered) * percent // 100] for percent in STEPS]
    return sorted({0.0, *steps, nextafter(ordered[-1], inf)})


def _point(results: Sequence[Result], strays: Sequence[float], hits: Hits, *, threshold: float) -> dict[str, Any]:
    """Return what one threshold does: the share it silences rightly and wrongly, and the share of R@10 it keeps."""
    answers = [each for result in results for each in result.answers]
    scores = [(best_score(hits(each)), bool(each.question.relevant)) for each in answers]
    above = mean(_recall(result, lambda each: _worth_saying(hits(each), threshold)) for result in results)
    whole = mean(_recall(result, hits) for result in results)
    return {
        "threshold": round(threshold, 6),
        **rounded(
            {
                "silent": mean(float(score < threshold) for score in strays),
                "silent_unanswerable": mean(float(score < threshold) for score, relevant in scores if not relevant),
                "silent_answerable": mean(float(score < threshold) for score, relevant in scores if relevant),
                "r_at_10": above,
                "r_at_10_kept": above / whole if above is not None and whole else None,
            },
            4,
        ),
    }


def _worth_saying(found: Sequence[Hit], threshold: float) -> list[Hit]:
    """Return those that are not below the lowest score that is shown."""
    lowest = min_score(found[0].score if found else 0.0, threshold=threshold)
    return [each for each in found if each.score >= lowest]


def _recall(result: Result, shown: Hits) -> float | None:
    """Return R@10 over the hits that are shown."""
    return mean(
        recall_at([hit.uid for hit in shown(each)], each.question.relevant, k=10)
        for each in result.answers
        if each.question.relevant
    )
