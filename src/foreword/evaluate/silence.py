"""Sets that were asked, and prompts of other projects -> what each threshold would silence, and what it would cost.

A prompt of one project means nothing to the memory of another, so there the right answer is silence. A threshold that
silences more of them also loses more of what the right project knows: the curve tells both, for the product's score
and for the plain share of the prompt's words that a memory holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any

from foreword.evaluate.measures import auc, mean, share_found
from foreword.evaluate.retrieval import Asked, Result, best
from foreword.evaluate.scratch import Scored, Scratch
from foreword.evaluate.sets import Question
from foreword.rank import worth_saying

PROMPTS = 2_250  # of one set to another in all: about what ten sets ask of themselves
# Points of a curve, in percent of silence; closer at the end, where a memory that knows its place should stand.
STEPS = (*range(0, 90, 5), *range(90, 100))
KEPT, SILENT = 0.95, 0.9  # the two ends at which one number tells a curve

_Hits = Callable[[Asked], Sequence[Scored]]


@dataclass(frozen=True)
class Stray:
    """The best that the memory of one project has for a prompt of another."""

    group: str  # of the project that was asked
    score: float
    coverage: float


def pairs(opened: Sequence[Scratch]) -> int:
    """How many prompts `silence` asks."""
    return sum(len(_sample(source, opened)) for source in opened) * (len(opened) - 1)


def silence(
    opened: Sequence[Scratch], results: Sequence[Result], *, tick: Callable[[], object] = bool
) -> dict[str, Any]:
    """The trade-off of every threshold, for the product and for the baseline; *results* are those of *opened*."""
    strays = [
        stray
        for target in opened
        for source in opened
        if source is not target
        for stray in _strays(_sample(source, opened), target, tick)
    ]
    threshold = opened[0].product.threshold
    return {
        "prompts": len(strays),
        "threshold": threshold,
        **_told(results, [stray.score for stray in strays], lambda each: each.found, mark=threshold),
        "groups": {
            group: _point(
                [result for result in results if result.given.group == group],
                [stray.score for stray in strays if stray.group == group],
                lambda each: each.found,
                threshold=threshold,
            )
            for group in dict.fromkeys(result.given.group for result in results)
        },
        "baseline": _told(results, [stray.coverage for stray in strays], lambda each: each.covered, mark=None),
    }


def _strays(prompts: Sequence[Question], target: Scratch, tick: Callable[[], object]) -> list[Stray]:
    """Strange prompts asked of *target*, at times when its own questions are asked: only the topic is strange."""
    times = [question.at for question in target.given.questions]
    target.learn(inf)
    found = []
    for number, question in enumerate(prompts):
        at = times[number * len(times) // len(prompts)]
        found.append(
            Stray(
                group=target.given.group,
                score=best(target.found(question.prompt, at=at)),
                coverage=best(target.covered(question.prompt, at=at)),
            )
        )
        tick()
    return found


def _sample(source: Scratch, opened: Sequence[Scratch]) -> list[Question]:
    """Of one set's questions so many that all together stay within PROMPTS, evenly spread, always the same."""
    questions = source.given.questions
    many = min(PROMPTS // (len(opened) * max(1, len(opened) - 1)), len(questions))
    return [questions[number * len(questions) // many] for number in range(many)]


def _told(results: Sequence[Result], strays: Sequence[float], hits: _Hits, *, mark: float | None) -> dict[str, Any]:
    own = [best(hits(each)) for result in results for each in result.asked if each.question.relevant]
    curve = [_point(results, strays, hits, threshold=at) for at in _thresholds(strays)]
    if mark is not None:
        curve.append({**_point(results, strays, hits, threshold=mark), "product": True})
        curve.sort(key=lambda point: (point["threshold"], "product" in point))
    return {
        "auc_cross": _rounded(auc(own, strays)),
        f"silent_at_{KEPT * 100:.0f}_kept": max(
            (point["silent"] for point in curve if (point["r_at_10_kept"] or 0.0) >= KEPT), default=0.0
        ),
        f"kept_at_{SILENT * 100:.0f}_silent": max(
            (point["r_at_10_kept"] or 0.0 for point in curve if point["silent"] >= SILENT), default=0.0
        ),
        "curve": curve,
    }


def _thresholds(strays: Sequence[float]) -> list[float]:
    """Those that silence the same further share each; the scale of a score is its finder's own affair."""
    ordered = sorted(max(0.0, score) for score in strays)
    steps = [ordered[len(ordered) * percent // 100] for percent in STEPS]
    return sorted({0.0, *steps, nextafter(ordered[-1], inf)})


def _point(results: Sequence[Result], strays: Sequence[float], hits: _Hits, *, threshold: float) -> dict[str, Any]:
    """What one threshold does: whom it silences rightly, and the share of R@10 that it keeps."""
    answerable = [each for result in results for each in result.asked if each.question.relevant]
    unanswerable = [each for result in results for each in result.asked if not each.question.relevant]
    above = mean(
        _recall(result, lambda each: worth_saying(hits(each), threshold=threshold, moment="prompt"))
        for result in results
    )
    all_of_it = mean(_recall(result, hits) for result in results)
    return {
        "threshold": round(threshold, 6),
        "silent": _rounded(mean(float(score < threshold) for score in strays)),
        "silent_unanswerable": _rounded(mean(float(best(hits(each)) < threshold) for each in unanswerable)),
        "silent_answerable": _rounded(mean(float(best(hits(each)) < threshold) for each in answerable)),
        "r_at_10": _rounded(above),
        "r_at_10_kept": _share(above, all_of_it),
    }


def _recall(result: Result, shown: _Hits) -> float | None:
    """R@10 of what is shown."""
    return mean(
        share_found([hit.uid for hit in shown(each)], each.question.relevant, most=10)
        for each in result.asked
        if each.question.relevant
    )


def _share(part: float | None, whole: float | None) -> float | None:
    return _rounded(part / whole if part is not None and whole else None)


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 4)
