"""Lists of hits -> one list, best first, every factor told. Every weight lives here; nothing else ranks. Light.

score = match x recency x importance x reinforcement x scope x task
"""

from __future__ import annotations

from foreword.types import UNIVERSAL, Ranked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from foreword.types import Hit, Memory

DAY = 86_400.0

# By kind: how much a memory of it matters when everything else is equal.
IMPORTANCE = {
    "pattern": 1.0,
    "preference": 1.0,
    "correction": 0.95,
    "decision": 0.9,
    "failure": 0.8,
    "learning": 0.8,
    "handoff": 0.7,
    "goal": 0.7,
    "summary": 0.6,
    "project": 0.6,
    "change": 0.5,
    "observation": 0.5,
    "note": 0.3,
}

# By kind, in days: the age at which a memory counts half.
HALF_LIFE = {
    "pattern": 730.0,
    "preference": 1460.0,
    "correction": 730.0,
    "decision": 1095.0,  # hardly fades in a year: 0.75
    "failure": 120.0,
    "learning": 365.0,
    "handoff": 14.0,
    "goal": 180.0,
    "summary": 60.0,
    "project": 730.0,
    "change": 30.0,
    "observation": 42.0,  # fades in weeks
    "note": 60.0,
}

SCOPE_AT_START = {"project": 1.0, "language": 0.7, "universal": 0.4}
CERTAIN = 0.5  # learnings below this confidence never come by themselves
WORDS_FLOOR = 0.5  # a hit that covers the query but ranks low in its list keeps this share of its match


def rank(found: Mapping[str, Sequence[Hit]], *, now: float, moment: str) -> tuple[Ranked, ...]:
    """One list out of all sources, best first; a memory that several found counts by its best."""
    best: dict[str, Ranked] = {}
    for hits in found.values():
        top = max((hit.score for hit in hits), default=0.0)
        for hit in hits:
            ranked = _weigh(hit, top=top, now=now, moment=moment)
            if hit.memory.id not in best or ranked.score > best[hit.memory.id].score:
                best[hit.memory.id] = ranked
    return tuple(sorted(best.values(), key=lambda ranked: (-ranked.score, -ranked.memory.created, ranked.memory.id)))


def _weigh(hit: Hit, *, top: float, now: float, moment: str) -> Ranked:
    memory = hit.memory
    why = {
        "match": _match(hit, top),
        "recency": _recency(memory, now),
        "importance": IMPORTANCE.get(memory.kind, 0.3) * memory.confidence,
        "reinforcement": 1.0,  # until use is judged
        "scope": _scope(memory) if moment == "session_start" else 1.0,
        "task": 1.0,  # until the task is guessed
    }
    score = 1.0
    for factor in why.values():
        score *= factor
    return Ranked(memory=memory, score=round(score, 6), why={name: round(factor, 4) for name, factor in why.items()})


def _match(hit: Hit, top: float) -> float:
    """The share of the query that a hit covers, less where its own list puts it low; without words all match."""
    if hit.source != "words":
        return 1.0
    place = hit.score / top if top > 0 else 1.0
    return hit.matched * (WORDS_FLOOR + (1 - WORDS_FLOOR) * place)


def _recency(memory: Memory, now: float) -> float:
    # A clock that jumped back must not make a memory count more than a fresh one.
    age = max(0.0, now - max(memory.created, memory.confirmed))
    return 1 / (1 + age / (HALF_LIFE.get(memory.kind, 60.0) * DAY))


def _scope(memory: Memory) -> float:
    return SCOPE_AT_START[UNIVERSAL if memory.scope == UNIVERSAL else memory.scope.partition(":")[0]]
