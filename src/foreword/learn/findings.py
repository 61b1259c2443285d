"""Findings -> learnings: new ones, and known ones with the evidence of what was found since."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from foreword.amendments import Amendment
from foreword.details import named
from foreword.distill.merge import ALSO, counts_of
from foreword.learn.alike import opposite
from foreword.learn.confidence import confidence
from foreword.recall.rank import CERTAIN
from foreword.trust import lowest
from foreword.types import EMPTY, Link, Memory, Project

if TYPE_CHECKING:
    from foreword.types import Trust

EVIDENCE = 50  # sessions that a learning names; the oldest beyond are dropped
WRITTEN = 2  # sessions that are as good as somebody who wrote it down; what a user wrote, only a user lowers
SOURCE = "sessions"  # who says what was learned over several of them
VERB = "learn"
OF_USER = ("correction", "preference", "decision")  # what a user says against a learning


@dataclass(frozen=True)
class Verdict:
    """What one session says about a finding."""

    session: str
    at: float
    confirms: bool


@dataclass(frozen=True)
class Finding:
    """Something that sessions do or say again and again."""

    uid: str
    title: str
    category: str
    verdicts: tuple[Verdict, ...]  # at most one of a session
    trust: Trust
    least: int  # sessions that must confirm it before it is worth a line
    files: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    because: tuple[str, ...] = ()  # the ids of memories that it comes from
    detail: Mapping[str, Any] = field(default_factory=dict, hash=False)  # what else it is known by


def uid_of(kind: str, known_by: str) -> str:
    """The uid of a learning: the same for what is found again by the same."""
    mark = hashlib.blake2b(known_by.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"lea:{kind}:{mark}"


def learned(
    finding: Finding, known: Memory | None, *, users: Sequence[Memory], present: frozenset[str], project: Project
) -> Amendment | None:
    """What a finding makes of what is *known*; *present* sessions were asked, what others said before is believed.

    *users* are the words of the user, which may deny it.
    """
    if known is None:
        return _new(finding, project=project)
    if known.status != "active":
        return None  # somebody put it aside
    return _confirmed(finding, known, users=users, present=present)


def is_users_word(memory: Memory) -> bool:
    """Whether it may deny what was learned."""
    return memory.kind in OF_USER and memory.trust == "user" and memory.status == "active"


def _new(finding: Finding, *, project: Project) -> Amendment | None:
    verdicts = sorted(finding.verdicts, key=lambda each: (each.at, each.session))[-EVIDENCE:]
    confirming = [each for each in verdicts if each.confirms]
    sure = confidence([each.confirms for each in verdicts])
    if len(confirming) < finding.least or sure < CERTAIN:
        return None
    memory = Memory(
        kind="learning",
        title=finding.title,
        uid=finding.uid,
        scope=project.scope,
        project=project.key,
        files=finding.files,
        functions=finding.functions,
        source=SOURCE,
        trust=finding.trust,
        confidence=sure,
        seen=len(confirming),
        created=confirming[finding.least - 1].at,
        confirmed=confirming[-1].at,
        detail={"category": finding.category, **finding.detail, **_evidence(verdicts)},
    )
    links = tuple(Link(finding.uid, "caused-by", id) for id in finding.because)
    return Amendment(VERB, f"{len(confirming)} sessions say so", new=(memory,), links=links)


def _confirmed(
    finding: Finding, known: Memory, *, users: Sequence[Memory], present: frozenset[str]
) -> Amendment | None:
    against = _said_against(known, users)
    written = known.source != SOURCE  # by a person, an agent or another tool, with a confidence of their own
    # Who saw what was written need not have said it: only what was found in sessions is what they say by now.
    believed = _remembered(known, frozenset() if written else present)
    verdicts = sorted({*believed, *finding.verdicts}, key=lambda each: (each.at, each.session))
    heard = {each.session: each for each in verdicts} | {each.session: each for each in against}
    ordered = sorted(heard.values(), key=lambda each: (each.at, each.session))[-EVIDENCE:]
    asked = {*named(known.detail, "seen_in"), *named(known.detail, "against")} & present
    if not (finding.verdicts or against or asked):
        return None  # nobody says anything new
    if not ordered:
        return None
    said = float(known.detail.get("said", known.confidence))
    if known.trust == "imported" and said < CERTAIN:
        return None  # put to sleep where it was read: sessions that read the same file confirm nothing
    sure = confidence([*([True] * WRITTEN if written else ()), *(each.confirms for each in ordered)])
    if written and not (against or (known.trust != "user" and not all(each.confirms for each in ordered))):
        sure = max(said, sure)
    confirming = [each for each in ordered if each.confirms]
    kept = {name: told for name, told in known.detail.items() if name not in ("seen_in", "against")}
    detail = {**kept, **({"said": said} if written else {}), **_evidence(ordered, before=known.detail)}
    after = replace(
        known,
        confidence=sure,
        trust=known.trust if written else lowest((known.trust, finding.trust)),
        seen=max(known.seen, len(confirming)) if written else max(1, len(confirming)),
        confirmed=max([known.confirmed, *(each.at for each in confirming)]),
        detail=detail,
    )
    if after == known:
        return None
    return Amendment(VERB, _told(known, after), changed=((known, after),))


def _told(before: Memory, after: Memory) -> str:
    if before.confidence < CERTAIN <= after.confidence:
        return "confirmed: it wakes"
    if after.confidence < CERTAIN <= before.confidence:
        return "contradicted: it sleeps until it is confirmed"
    return "contradicted" if after.confidence < before.confidence else "confirmed"


def _said_against(known: Memory, users: Sequence[Memory]) -> list[Verdict]:
    """What the user said later that denies it; what was seen in actions is denied by actions."""
    if "by" in known.detail:
        return []
    return [
        Verdict(session=each.session or each.uid, at=each.confirmed, confirms=False)
        for each in users
        if each.confirmed > known.created and opposite(each.title, known.title)
    ]


def _remembered(known: Memory, present: frozenset[str]) -> list[Verdict]:
    """The evidence of sessions that can no longer be asked, or that others counted: it is older than all else."""
    counted_elsewhere = counts_of(known.detail) if known.source != SOURCE else counts_of(known.detail, ALSO)
    told: list[tuple[str, bool]] = [
        *((session, True) for session in counts_of(known.detail)),
        *((session, False) for session in named(known.detail, "against")),
    ]
    return [
        Verdict(session=session, at=0.0, confirms=yes)
        for session, yes in told
        if session not in present or (yes and session in counted_elsewhere)
    ]


def _evidence(verdicts: Sequence[Verdict], *, before: Mapping[str, Any] = EMPTY) -> dict[str, dict[str, int]]:
    """Which sessions confirm and deny it; what was counted of one *before* stays counted."""
    counted = counts_of(before)
    told = {
        "seen_in": {each.session: counted.get(each.session, 1) for each in verdicts if each.confirms},
        "against": {each.session: 1 for each in verdicts if not each.confirms},
    }
    return {name: each for name, each in told.items() if each}
