"""Merge what a session says again into what is known, and close the open items that it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foreword.extract.text import holds, stems
from foreword.models import Memory, named, texts

CLOSED = "done_since"  # in a detail: the open items that a later session did
EVIDENCE = 50  # sessions that a memory names; the oldest beyond are counted together
EARLIER = "earlier"
MOST_TIMES = 1_000_000_000  # that a session saw it

# What a memory that is seen again keeps of its first time, and what the new time tells better.
_COUNTED = ("failure", "decision", "preference", "correction", "learning")
ALSO = "also"  # in a detail: what others saw that were merged into this one, by session


def merge(known: Memory, fresh: Memory) -> Memory:
    """Return *fresh* with what only *known* has: its status, its beginning, how often it was seen before."""
    if known.status not in ("active", "stale"):  # what somebody decided stays; what was stale is confirmed again
        fresh = replace(fresh, status=known.status, superseded_by=known.superseded_by)
    from foreword.audit import REVISED, merge_repeated  # late: recall needs open_items, and a hook pays for imports

    if known.detail.get(REVISED):
        again = merge_repeated(known, fresh)
        seen_in = _evidence(known.detail, fresh.detail)
        counted: dict[str, Any] = {"seen": sum(seen_in.values()), "detail": {**again.detail, "seen_in": seen_in}}
        return replace(again, **counted) if seen_in else again
    if fresh.kind == "failure":
        from foreword.extract.failure_memory import failure_body, failure_title, merge_failure_detail  # late, as above

        detail = merge_failure_detail(known.detail, fresh.detail)
        merged = replace(fresh, uid=known.uid, title=failure_title(detail), body=failure_body(detail))
        return _seen_again(merged, known, most=8, seen=sum(counts_of(detail).values()), detail=detail)
    if fresh.kind not in _COUNTED and ALSO not in known.detail:
        # What others did of its open items since it was written stays done: a session may go on later.
        closed = [item for item in texts(known.detail, CLOSED) if item in _listed_items(fresh)]
        return replace(fresh, uid=known.uid, detail={**fresh.detail, **({CLOSED: closed} if closed else {})})
    seen_in = _evidence(known.detail, fresh.detail)
    older = known.confirmed > fresh.confirmed  # an old transcript that is read late tells nothing newer
    base, other = (known, fresh) if older else (fresh, known)
    detail = {**other.detail, **base.detail, "seen_in": seen_in}
    base = replace(base, status=fresh.status, superseded_by=fresh.superseded_by)
    return _seen_again(base, other, most=12, seen=sum(seen_in.values()), detail=detail)


def _seen_again(base: Memory, other: Memory, *, most: int, **more: Any) -> Memory:
    """Return *base* with the files, functions, confidence and times of both."""
    more["seen"] = max(1, more["seen"])
    return replace(
        base,
        body=base.body or other.body,
        files=tuple(dict.fromkeys((*base.files, *other.files)))[:most],
        functions=tuple(dict.fromkeys((*base.functions, *other.functions)))[:most],
        confidence=max(base.confidence, other.confidence),
        created=min(base.created, other.created),
        confirmed=max(base.confirmed, other.confirmed),
        **more,
    )


def close_items(memory: Memory, *, done: Sequence[str], open: Sequence[str]) -> Memory | None:
    """Return *memory* with its open items that were done since, or that somebody else carries on; None without any.

    They stay in the list of what the session left open, and are named as done beside it.
    """
    from foreword.extract.tasks import closes, replaces  # late, as above

    finished = [stems(each) for each in (*done, *open)]
    closed = [
        item
        for item in open_items(memory)
        if any(holds(each, stems(item)) for each in finished)
        or any(closes(each, item) for each in done)
        or any(replaces(each, item) for each in open)
    ]
    if not closed:
        return None
    detail = {**memory.detail, CLOSED: [*texts(memory.detail, CLOSED), *closed]}
    after = replace(memory, detail=detail)
    over = memory.kind == "handoff" and memory.trust != "user" and not open_items(after)
    return replace(after, status="stale") if over else after


def open_items(memory: Memory) -> tuple[str, ...]:
    """Return what a session or a handoff left open and nobody has done since."""
    closed = texts(memory.detail, CLOSED)
    return tuple(item for item in _listed_items(memory) if item not in closed)


def _listed_items(memory: Memory) -> tuple[str, ...]:
    return (*texts(memory.detail, "next"), *texts(memory.detail, "blockers"))


def evidence_of(memory: Memory) -> dict[str, int]:
    """Return which session saw a memory how often; what nobody counted by session is its own session's."""
    counted = counts_of(memory.detail)
    more = min(memory.seen, MOST_TIMES) - sum(counted.values())
    return together(counted, {memory.session or EARLIER: more} if more > 0 else {})


def together(one: object, other: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of both; those of the oldest sessions beyond what a memory names as one number."""
    counts = counts_of({"seen_in": one})
    for session, times in other.items():
        counts[session] = min(counts.get(session, 0) + times, MOST_TIMES)
    return _bounded(counts)


def counts_of(detail: Mapping[str, Any], name: str = "seen_in") -> dict[str, int]:
    """Return how often each session saw it, as far as that makes sense: an import may say anything."""
    return {
        session: times
        for session, times in named(detail, name).items()
        if type(times) is int and 0 < times <= MOST_TIMES
    }


def _evidence(known: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, int]:
    """Return which session saw it how often: one that is read again counts once, beside what was merged into it."""
    also = counts_of(known, ALSO)
    again = {session: times + also.get(session, 0) for session, times in counts_of(fresh).items()}
    return _bounded({**counts_of(known), **again})


def _bounded(counts: dict[str, int]) -> dict[str, int]:
    while len(counts) > EVIDENCE:
        oldest = next(session for session in counts if session != EARLIER)
        counts[EARLIER] = counts.get(EARLIER, 0) + counts.pop(oldest)
    return counts
