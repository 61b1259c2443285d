"""Sessions whose choices were taken back since -> their summaries say so: history is not told as what holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from foreword.amendments import About, Amendment, standing
from foreword.details import named, texts
from foreword.distill.gist import stems
from foreword.tidy.contradictions import CHOSEN_SINCE
from foreword.types import Memory

SINCE = "Replaced since: "  # in front of a title: where titles are cut, what comes last is not read
LESS_SURE = 0.5  # times its confidence: it comes after what holds
TAKEN_BACK = "taken_back"  # in a summary's detail: the choices it made that no longer hold


def plan(memories: Sequence[Memory], *, about: About) -> tuple[Amendment, ...]:
    """Tell the choices of a session that were taken back as such, and as before those that were chosen again."""
    choices = [memory for memory in memories if memory.kind == "decision" and memory.status == "superseded"]
    back = {memory.id for memory in choices if CHOSEN_SINCE in memory.detail}
    gone: dict[str, list[str]] = {}
    for memory in choices:
        if memory.id in back or memory.superseded_by in back:  # itself, or as one that says the same
            for session in dict.fromkeys((memory.session, *named(memory.detail, "seen_in"))):
                gone.setdefault(session, []).append(memory.title)
    planned = []
    for memory in memories:
        if memory.kind == "summary" and memory.status == "active" and not memory.pinned:
            after = _retold(memory, gone.get(memory.session, ()))
            if after != memory:
                why = "what it chose does not hold any more, or again"
                planned.append(Amendment("retell", why, changed=((memory, after),)))
    return standing(planned, about=about)


def _retold(summary: Memory, gone: Sequence[str]) -> Memory:
    title, sure = summary.title.removeprefix(SINCE), summary.confidence
    if title != summary.title:
        sure = min(1.0, sure / LESS_SURE)
    words = stems(title)
    if any(stems(each) <= words for each in gone):
        title, sure = SINCE + title, sure * LESS_SURE
    told = [*texts(summary.detail, "decisions"), *texts(summary.detail, TAKEN_BACK)]
    split = {
        "decisions": [each for each in told if not _is_among(each, gone)],
        TAKEN_BACK: [each for each in told if _is_among(each, gone)],
    }
    rest = {name: each for name, each in summary.detail.items() if name not in split}
    detail = {**rest, **{name: each for name, each in split.items() if each}} if told else summary.detail
    return replace(summary, title=title, confidence=sure, detail=detail)


def _is_among(told: str, gone: Sequence[str]) -> bool:
    """Whether one of them is told, be it cut."""
    head = told.rstrip("…").lower()
    return any(each.lower().startswith(head) for each in gone)
