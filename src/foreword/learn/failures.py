"""Failures -> patterns out of those that the same thing fixed three times; gotchas out of those that nothing fixed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foreword.amendments import Amendment
from foreword.details import named
from foreword.distill.merge import fixes_of
from foreword.distill.sentences import cut
from foreword.learn.alike import alike, mostly_same, words_of
from foreword.learn.confidence import confidence
from foreword.learn.findings import SOURCE, Finding, Verdict
from foreword.trust import lowest
from foreword.types import Link, Memory, Project

THRICE = 3  # sessions that the same fix helped in
LEAST = 2  # sessions that nothing helped in
APART = 12 * 3600.0  # seconds between the first time and the last: a morning's work on one test is no trap
MOST = 200  # failures, the newest that were fixed, which are compared with each other
VERB = "promote"


def patterns(memories: Sequence[Memory], *, project: Project) -> tuple[Amendment, ...]:
    """What helped three sessions against the same failure, as a problem and its solution; the failure stays."""
    failures = [each for each in memories if each.kind == "failure" and each.status in ("active", "stale")]
    failures = sorted((each for each in failures if fixes_of(each.detail)), key=lambda each: (each.created, each.uid))[
        -MOST:
    ]
    known = {each.uid: each for each in memories if each.kind == "pattern"}
    found = []
    for group in _groups(failures):
        sessions, solution = _fix(group)
        if len(sessions) < THRICE:
            continue
        uids = [f"pat:{each.uid}" for each in group]
        before = next((known[uid] for uid in uids if uid in known), None)
        amendment = _pattern(group, sessions, solution, uid=uids[0], before=before, project=project)
        if amendment is not None:
            found.append(amendment)
    return tuple(found)


def unfixed(memories: Sequence[Memory], *, project: str) -> tuple[Finding, ...]:
    """Failures that came up in several sessions, some time apart, and that nothing fixed yet."""
    known = {str(each.detail.get("failure")) for each in memories if each.kind == "learning"}
    found = []
    for each in memories:
        sessions, fixes = list(named(each.detail, "seen_in")), named(each.detail, "fixed_in")
        open_one = each.status == "active" and each.detail.get("open") is True and not each.detail.get("fixed_by")
        trap = open_one and len(sessions) >= LEAST and each.confirmed - each.created >= APART
        if each.kind != "failure" or not (trap or each.uid in known):
            continue
        told = str(each.detail.get("message") or each.title).replace('"', "'")
        found.append(
            Finding(
                uid=f"lea:{project}:failure:{each.detail.get('fingerprint') or each.uid}",
                title=f'"{cut(told, 100)}" comes back, and no fix is known',
                category="gotcha",
                verdicts=tuple(
                    Verdict(session=session, at=each.confirmed, confirms=open_one and session not in fixes)
                    for session in sessions
                ),
                trust=each.trust,
                least=LEAST,
                files=each.files[:2],
                because=(each.id,),
                detail={"by": "failure", "failure": each.uid},
            )
        )
    return tuple(found)


def _groups(failures: Sequence[Memory]) -> list[list[Memory]]:
    """Failures that are one: the same error of the same type, wherever it came up."""
    groups: list[list[Memory]] = []
    for each in failures:
        near = next((group for group in groups if _same_error(group[0], each)), None)
        if near is None:
            groups.append([each])
        else:
            near.append(each)
    return groups


def _same_error(one: Memory, other: Memory) -> bool:
    return one.detail.get("type") == other.detail.get("type") and alike(_message(one), _message(other))


def _message(failure: Memory) -> str:
    """What went wrong, without the test that showed it."""
    return _OF_TEST.sub("", str(failure.detail.get("message") or failure.title))


_OF_TEST = re.compile(r" \([\w\[\]./:-]+\)$")


def _fix(group: Sequence[Memory]) -> tuple[tuple[str, ...], str]:
    """The sessions that the same thing helped in, most of them, and that thing as it was said last."""
    told = [(session, fix) for each in group for session, fix in fixes_of(each.detail).items()]
    best: list[tuple[str, str]] = []
    for _, fix in told:
        same = [other for other in told if _same_fix(fix, other[1])]
        if len({session for session, _ in same}) >= len({session for session, _ in best}):
            best = same
    return tuple(dict.fromkeys(session for session, _ in best)), best[-1][1] if best else ""


def _same_fix(one: str, other: str) -> bool:
    """Whether two fixes are one: the same functions were changed, or they are told in the same words."""
    functions, others = set(_FUNCTION.findall(one)), set(_FUNCTION.findall(other))
    if functions and others:
        return functions <= others or others <= functions
    return mostly_same(words_of(one), words_of(other))


_FUNCTION = re.compile(r"\b(\w+)\(\)")


def _pattern(
    group: Sequence[Memory],
    sessions: Sequence[str],
    solution: str,
    *,
    uid: str,
    before: Memory | None,
    project: Project,
) -> Amendment | None:
    evidence = {
        "from": [each.uid for each in group],
        "seen_in": dict.fromkeys(sessions, 1),
    }
    fresh: dict[str, Any] = {
        "confidence": confidence([True] * len(sessions)),
        "seen": len(sessions),
        "confirmed": max(each.confirmed for each in group),
    }
    if before is not None:
        detail = {**before.detail, **evidence}
        after = replace(before, **fresh, detail=detail)
        if before.status != "active" or before.detail.get("seen_in") == evidence["seen_in"]:
            return None
        return Amendment(VERB, "the same fix helped again", changed=((before, after),))
    problem = _message(group[0])
    command = str(group[0].detail.get("command") or "")
    memory = Memory(
        kind="pattern",
        title=cut(problem, 140),
        uid=uid,
        scope=project.scope,
        project=project.key,
        files=tuple(dict.fromkeys(file for each in group for file in each.files))[:8],
        functions=tuple(dict.fromkeys(name for each in group for name in each.functions))[:8],
        source=SOURCE,
        trust=lowest(each.trust for each in group),
        created=fresh["confirmed"],
        detail={
            "problem": problem,
            "solution": solution,
            **({"context": f"running `{command}`"} if command else {}),
            **evidence,
        },
        **fresh,
    )
    links = tuple(Link(uid, "caused-by", each.id or each.uid) for each in group)
    return Amendment(VERB, f"the same fix helped in {len(sessions)} sessions", new=(memory,), links=links)
