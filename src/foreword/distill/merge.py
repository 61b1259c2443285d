"""What is known and what a session says anew -> one memory, with the evidence of both; and what others left open, closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foreword.details import named
from foreword.distill.gist import holds, stems
from foreword.revise import REVISED, said_again
from foreword.types import Memory

EVIDENCE = 50  # sessions that a memory names; the oldest beyond are counted together
EARLIER = "earlier"
MOST_TIMES = 1_000_000_000  # that a session saw it

# What a memory that is seen again keeps of its first time, and what the new time tells better.
_COUNTED = ("failure", "decision", "preference", "correction")
ALSO = "also"  # in a detail: what others saw that were merged into this one, by session


def merged(known: Memory, fresh: Memory) -> Memory:
    """*fresh* with what *known* has that it cannot know: its status, its beginning, how often it was seen before."""
    if known.status not in ("active", "stale"):  # what somebody decided stays; what was stale is said again
        fresh = replace(fresh, status=known.status, superseded_by=known.superseded_by)
    if known.detail.get(REVISED):
        again = said_again(known, fresh)
        seen_in = _evidence(known.detail, fresh.detail)
        counted: dict[str, Any] = {"seen": sum(seen_in.values()), "detail": {**again.detail, "seen_in": seen_in}}
        return replace(again, **counted) if seen_in else again
    if fresh.kind not in _COUNTED and ALSO not in known.detail:
        return replace(fresh, uid=known.uid)
    seen_in = _evidence(known.detail, fresh.detail)
    detail = {**known.detail, **fresh.detail, "seen_in": seen_in}
    older = known.confirmed > fresh.confirmed  # an old transcript that is read late tells nothing newer
    base, other = (known, fresh) if older else (fresh, known)
    if older:
        detail = {**fresh.detail, **known.detail, "seen_in": seen_in}
    if fixes := fixes_of(known.detail) | fixes_of(fresh.detail):
        detail["fixed_in"] = dict(list(fixes.items())[-EVIDENCE:])
    return replace(
        base,
        body=base.body or other.body,
        files=tuple(dict.fromkeys((*base.files, *other.files)))[:12],
        functions=tuple(dict.fromkeys((*base.functions, *other.functions)))[:12],
        session=base.session,
        seen=max(1, sum(seen_in.values())),
        confidence=max(known.confidence, fresh.confidence),
        created=min(known.created, fresh.created),
        confirmed=max(known.confirmed, fresh.confirmed),
        status=fresh.status,
        superseded_by=fresh.superseded_by,
        detail=detail,
    )


def closed(memory: Memory, *, done: Sequence[str], open: Sequence[str]) -> Memory | None:
    """*memory* without what was done since, or is carried on by somebody else; None where nothing of it was."""
    finished = [stems(each) for each in (*done, *open)]
    detail: dict[str, Any] = dict(memory.detail)
    gone: list[str] = []
    kept: list[str] = []
    for name in ("next", "block", "blockers"):
        items = detail.get(name)
        if isinstance(items, list):
            left = [item for item in items if not (isinstance(item, str) and _is_among(item, finished))]
            gone += [item for item in items if item not in left]
            detail[name] = left
            kept += [item for item in left if isinstance(item, str)]
    if not gone:
        return None
    detail = {name: told for name, told in detail.items() if told or name not in ("next", "block", "blockers")}
    detail["done_since"] = [*detail.get("done_since", []), *gone][-10:]
    # A handoff that wrote itself is called by the first thing it left open.
    title = kept[0] if kept and memory.kind == "handoff" and memory.title in gone else memory.title
    empty = memory.kind == "handoff" and not any(
        detail.get(name) for name in ("next", "block", "blockers", "open", "questions")
    )
    return replace(
        memory, title=title, detail=detail, status="stale" if empty and memory.trust != "user" else memory.status
    )


def evidence_of(memory: Memory) -> dict[str, int]:
    """Which session saw a memory how often; what nobody counted by session is its own session's."""
    counted = counts_of(memory.detail)
    more = min(memory.seen, MOST_TIMES) - sum(counted.values())
    return together(counted, {memory.session or EARLIER: more} if more > 0 else {})


def together(one: object, other: Mapping[str, int]) -> dict[str, int]:
    """The counts of both; those of the oldest sessions beyond what a memory names as one number."""
    counts = counts_of({"seen_in": one})
    for session, times in other.items():
        counts[session] = min(counts.get(session, 0) + times, MOST_TIMES)
    return _bounded(counts)


def counts_of(detail: Mapping[str, Any], name: str = "seen_in") -> dict[str, int]:
    """How often each session saw it, as far as that makes sense: an import may say anything."""
    return {
        session: times
        for session, times in named(detail, name).items()
        if isinstance(times, int) and not isinstance(times, bool) and 0 < times <= MOST_TIMES
    }


def fixes_of(detail: Mapping[str, Any]) -> dict[str, str]:
    """Which session fixed a failure by what."""
    return {session: fix for session, fix in named(detail, "fixed_in").items() if isinstance(fix, str)}


def _evidence(known: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, int]:
    """Which session saw it how often: told again, a session counts once, beside what it saw of those merged into it."""
    also = counts_of(known, ALSO)
    again = {session: times + also.get(session, 0) for session, times in counts_of(fresh).items()}
    return _bounded({**counts_of(known), **again})


def _bounded(counts: dict[str, int]) -> dict[str, int]:
    while len(counts) > EVIDENCE:
        oldest = next(session for session in counts if session != EARLIER)
        counts[EARLIER] = counts.get(EARLIER, 0) + counts.pop(oldest)
    return counts


def _is_among(item: str, finished: Sequence[frozenset[str]]) -> bool:
    words = stems(item)
    return any(holds(each, words) for each in finished)
