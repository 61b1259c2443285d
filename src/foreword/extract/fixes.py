"""Find what came of a failure in a session that saw it: how often it was seen, and what fixed it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from foreword.extract.merge import counts_of, evidence_of, fixes_of
from foreword.models import Memory, Session, text


@dataclass(frozen=True)
class Fate:
    """What came of a failure, as one of its sessions is to tell it."""

    times: int  # that this session saw it
    open: bool  # it still fails, whoever saw it last
    fix: str = ""
    by: str = ""  # the other session that fixed it
    later: bool = False  # after this one; else before, and it came back


def elsewhere(came: Mapping[str, Iterable[Memory]]) -> tuple[str, ...]:
    """The sessions that fixed what these saw and did not fix themselves."""
    fixes = [
        (session, fixes_of(each.detail)) for session, some in came.items() for each in some if each.kind == "failure"
    ]
    return tuple(dict.fromkeys(other for session, by in fixes if not by.get(session) for other in by))


def fate_of(memory: Memory, *, session: Session, ended: Mapping[str, float]) -> Fate:
    """What came of a failure in *session*; *ended* is when those ended that may have fixed it instead."""
    fixes = fixes_of(memory.detail)
    stated = memory.detail.get("open")
    still = memory.status == "active" and (stated if isinstance(stated, bool) else not text(memory.detail, "fix"))
    times = counts_of(memory.detail).get(session.id) or evidence_of(memory).get(session.id, 1)
    if own := fixes.get(session.id):
        return Fate(times, still, own)
    others = sorted((each for each in fixes if each in ended), key=lambda each: (ended[each], each))
    later = [each for each in others if ended[each] > session.last]
    if later:
        return Fate(times, still, fixes[later[0]], later[0], later=True)
    if others:
        return Fate(times, still, fixes[others[-1]], others[-1])
    return Fate(times, still, text(memory.detail, "fix"))
