"""A month -> its figures in lines, each with what it is compared with: what `make month` prints."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from tests.month import measures
from tests.month.play import Month, is_useful


def figures(month: Month, *, ignoring: Month | None = None) -> Iterator[str]:
    """The figures; *ignoring* is the same month with an agent that makes no use of anything."""
    blocks = len(month.contexts)
    yield f"blocks injected          {blocks}, {sum(each.injection.tokens for each in month.contexts):,} tokens"
    statuses = [memory.status for memory in month.memories]
    counts = ", ".join(f"{statuses.count(each)} {each}" for each in sorted(set(statuses)))
    yield f"memories at the end      {len(statuses)}: {counts}"
    yield f"duplicates among active  {measures.share_of_duplicates(month.active):.1%} (at most 2 %)"
    stale = [line for each in month.contexts for line in measures.said_as_current(each)]
    yield f"replaced choices told    {len(stale)} (0)"
    past = [line for each in month.contexts for line in measures.remembered_as_current(each)]
    yield f"... as a session's title {len(past)}"
    gone = [line for each in month.contexts for line in measures.gone_as_current(each)]
    yield f"code that is gone, told  {len(gone)} (0)"
    judged = [item.used for each in month.judged.values() for item in each.items]
    judgements = f"{judged.count(True)} used, {judged.count(False)} ignored, {judged.count(None)} open"
    yield f"items judged             {judgements}"
    for name, late in (("first half", False), ("second half", True)):
        found = measures.by_judgement(month, late=late)
        yield f"place, {name:<17} {_places(found, 'used', 'ignored')}"
    yield f"... by fate, second half {_places(measures.by_fate(month, useful=is_useful), 'useful', 'others')}"
    if ignoring is not None:
        yield f"... nobody used anything {_places(measures.by_fate(ignoring, useful=is_useful), 'useful', 'others')}"
    yield from _growth(month)


def _places(found: measures.Places, one: str, other: str) -> str:
    return f"{one} {found.better:.3f}, {other} {found.worse:.3f} ({found.many[0]} and {found.many[1]})"


def _growth(month: Month) -> Iterator[str]:
    nights = month.nights
    for name, of in (
        ("active memories", lambda night: night.active),
        ("rows", lambda night: sum(night.rows.values())),
        ("bytes", lambda night: night.bytes),
    ):
        three = [measures.growth(nights, of, first=first, last=last) for first, last in ((1, 10), (10, 20), (20, 29))]
        text = ", ".join(f"{each:,.1f}" for each in three)
        yield f"{name + ' a day':<24} in thirds {text} (the last to the second {three[2] / (three[1] or 1):.2f})"
    early, late = (
        statistics.median(night.build_ms for night in nights if night.build_ms and low <= night.day <= high)
        for low, high in ((5, 12), (22, 29))
    )
    yield f"build of a block         days 5-12 {early:.1f} ms, days 22-29 {late:.1f} ms (ratio {late / early:.2f})"
    yield f"changes by tidying       {sum(night.tidied for night in nights)}, and {month.again} more when run again"
