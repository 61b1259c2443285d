"""Propose rules: corrections that were made again, and rules that several projects have. Only the user accepts them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foreword.audit import MemoryChange, PlanContext, standing
from foreword.extract.text import capitalised
from foreword.maintenance.similarity import alike, differ, words_of
from foreword.models import UNIVERSAL, Link, Memory, named, text, texts
from foreword.projects import ENDINGS

AGAIN = 2  # sessions, or times that lie apart
APART = 86_400.0  # seconds; said twice in one sitting is said once
PROJECTS = 2  # that have the same rule, before it is proposed for all
# What was refused comes back once, when twice as many sessions as then, and at least so many more, had to say it again.
TIMES_MORE, MORE, REFUSALS = 2, 3, 2
MOST = 1_000  # rules, the newest, which are compared with each other
VERB = "propose"
CONFIDENCE = 0.9  # the user wrote it, but not as a rule


WHO = "learning"  # in the audit log


def plan(memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]:
    """Return the proposals that a project's corrections call for; once they are made, none."""
    return standing(proposals(memories), about=about)


def plan_wider(memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]:
    """Return rules that several projects have, proposed for more than one; given the rules of all projects."""
    return standing(wider(memories, languages=main_languages(memories)), about=about)


def plan_confirmed(memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]:
    """Return corrections of what is a rule by now, counted for the rule."""
    return standing(confirmed(memories), about=about)


def proposals(memories: Sequence[Memory]) -> tuple[MemoryChange, ...]:
    """Propose a preference for each correction that was made again."""
    corrections = [each for each in memories if _is_rule(each, "correction")]
    preferences = [each for each in memories if each.kind == "preference" and "scope" not in each.detail]
    planned = []
    for group in _groups(corrections):
        sessions = _sessions(group)
        first, last = min(each.created for each in group), max(each.confirmed for each in group)
        apart = _seen(group) >= AGAIN and last - first >= APART
        if not (len(sessions) >= AGAIN or apart) or _taken_back(group, memories):
            continue
        own = _proposed_from(group, preferences)
        evidence: dict[str, Any] = {"from": sorted(each.uid for each in group), "seen_in": sessions}
        if own is not None:
            planned += _again(own, evidence, times=len(sessions), seen=_seen(group), at=last)
        elif not any(same(each, other) for each in preferences for other in group):
            planned.append(_proposed(group, uid=f"pre:{group[0].uid}:proposed", detail=evidence))
    return tuple(planned)


def confirmed(memories: Sequence[Memory]) -> tuple[MemoryChange, ...]:
    """Count corrections of what is a rule by now for the rule, and supersede them by it."""
    rules = {each.id: each for each in memories if _is_rule(each, "preference")}
    planned = []
    for correction in (each for each in memories if _is_rule(each, "correction")):
        earlier = (each for each in rules.values() if each.created < correction.created)
        rule = next((each for each in earlier if each.scope == correction.scope and same(each, correction)), None)
        if rule is not None:
            last = max(rule.confirmed, correction.confirmed)
            after = rules[rule.id] = replace(rule, seen=rule.seen + correction.seen, confirmed=last)
            superseded = replace(correction, status="superseded", superseded_by=rule.id)
            planned.append(MemoryChange("confirm", "said again", changed=((rule, after), (correction, superseded))))
    return tuple(planned)


def wider(memories: Sequence[Memory], *, languages: Mapping[str, str] | None = None) -> tuple[MemoryChange, ...]:
    """Propose a wider scope for each rule that several projects have; *memories* are the rules of all of them.

    The proposal stays in the project that had it first, and names no other, until the user accepts it.
    """
    rules = [each for each in memories if _is_rule(each, "correction", "preference") and _in_project(each)]
    settled = [
        each for each in memories if each.kind == "preference" and ("scope" in each.detail or not _in_project(each))
    ]
    planned = []
    for group in _groups(rules):
        projects = sorted({each.project for each in group})
        if len(projects) < PROJECTS or _taken_back(group, memories):
            continue
        scope = _scope(projects, languages or {})
        known = next((each for each in settled if any(same(each, other) for other in group)), None)
        evidence = {"scope": scope, "projects": len(projects)}
        if known is None:
            planned.append(_proposed(group, uid=f"pre:{group[0].uid}:everywhere", detail=evidence, links=False))
        elif "scope" in known.detail:
            planned += _again(known, evidence, times=len(projects), seen=_seen(group), at=known.confirmed)
    return tuple(planned)


def same(one: Memory, other: Memory) -> bool:
    """Return whether two rules say the same: in the same words, or the same in place of the same."""
    wrong, other_wrong = _instead_of(one), _instead_of(other)
    if wrong and other_wrong:
        # "plain pytest" is pytest; what is to be used instead must be the same all the same.
        rest = (words_of(each.title) - wrong - other_wrong for each in (one, other))
        return (wrong <= other_wrong or other_wrong <= wrong) and bool(frozenset.intersection(*rest))
    words, more = words_of(one.title), words_of(other.title)
    return (words == more and bool(words) and not differ(one.title, other.title)) or alike(one.title, other.title)


def main_languages(memories: Sequence[Memory]) -> dict[str, str]:
    """Return the language of most files of each project's memories."""
    counts: dict[str, Counter[str]] = {}
    for memory in memories:
        for file in memory.files:
            language = ENDINGS.get(file.rpartition(".")[2])
            if language:
                counts.setdefault(memory.project, Counter())[language] += 1
    return {project: min(found, key=lambda name: (-found[name], name)) for project, found in counts.items()}


def rule_of(correction: str) -> str:
    """Return a correction as a rule, without "I told you"."""
    bare = _REPEATED.sub("", correction).strip(" ,.;:—-")
    return capitalised(bare) if len(bare.split()) > 1 else correction


_REPEATED = re.compile(
    r"^(?:as )?(?:i (?:said|told you|asked you)|i['’]ve (?:said|told you))(?: (?:again|before|already))?"
    r"(?: to| that)?[\s,:]+",
    re.I,
)


def _groups(rules: Sequence[Memory]) -> list[list[Memory]]:
    """Group rules that say the same, each group oldest first."""
    groups: list[list[Memory]] = []
    for each in sorted(rules, key=lambda memory: (memory.created, memory.uid))[-MOST:]:
        near = [group for group in groups if any(same(each, other) for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append([*(other for group in near for other in group), each])
    return [sorted(group, key=lambda memory: (memory.created, memory.uid)) for group in groups]


def _proposed(group: Sequence[Memory], *, uid: str, detail: Mapping[str, Any], links: bool = True) -> MemoryChange:
    first = group[0]
    words = max((each for each in group if each.project == first.project), key=lambda each: (each.confirmed, each.uid))
    instead = {"instead_of": words.detail["instead_of"]} if words.detail.get("instead_of") else {}
    memory = Memory(
        kind="preference",
        title=rule_of(words.title),
        uid=uid,
        scope=first.scope,
        project=first.project,
        session=words.session,
        source="user",
        trust="user",
        confidence=CONFIDENCE,
        seen=_seen(group),
        created=words.confirmed,
        confirmed=words.confirmed,
        status="proposed",
        detail={**instead, **detail},
    )
    why = f"corrected {memory.seen}x" if links else f"{detail['projects']} projects have it"
    linked = tuple(Link(uid, "caused-by", each.id or each.uid) for each in group) if links else ()
    return MemoryChange(VERB, why, new=(memory,), links=linked)


def _again(known: Memory, evidence: Mapping[str, Any], *, times: int, seen: int, at: float) -> list[MemoryChange]:
    """Update a waiting proposal with new evidence; propose a refused one again by the rule above."""
    detail = {**known.detail, **evidence}
    if known.status == "discarded" and _comes_back(known.detail.get("refused"), times):
        after = replace(known, status="proposed", seen=seen, confirmed=at, detail=detail)
        return [MemoryChange(VERB, "said many more times since it was refused", changed=((known, after),))]
    if known.status != "proposed" or detail == dict(known.detail):
        return []
    after = replace(known, seen=seen, confirmed=max(known.confirmed, at), detail=detail)
    return [MemoryChange(VERB, "said again", changed=((known, after),))]


def _comes_back(refused: object, times: int) -> bool:
    if not isinstance(refused, Mapping):
        return False  # undone, or discarded without a reason: it stays so
    then = int(refused.get("sessions", 0))
    return int(refused.get("times", 1)) < REFUSALS and times >= max(then * TIMES_MORE, then + MORE)


def _taken_back(group: Sequence[Memory], memories: Sequence[Memory]) -> bool:
    """Return whether the user has written the reverse since: what was to be used is now what is not."""
    last = max(group, key=lambda each: (each.confirmed, each.uid))
    wrong, right = _instead_of(last), words_of(last.title) - _instead_of(last)
    return bool(wrong) and any(
        later.confirmed > last.confirmed
        and (not_now := _instead_of(later))
        and not_now <= right
        and wrong & words_of(later.title) - not_now
        for later in memories
        if _is_rule(later, "correction", "preference", "decision") and later.project == last.project
    )


def _proposed_from(group: Sequence[Memory], preferences: Sequence[Memory]) -> Memory | None:
    """Return the proposal that was made from this group before."""
    uids = {each.uid for each in group}
    return next((each for each in preferences if not uids.isdisjoint(texts(each.detail, "from"))), None)


def _is_rule(memory: Memory, *kinds: str) -> bool:
    return memory.kind in kinds and memory.trust == "user" and memory.status == "active"


def _in_project(memory: Memory) -> bool:
    return memory.scope.startswith("project:")


def _instead_of(memory: Memory) -> frozenset[str]:
    return words_of(text(memory.detail, "instead_of"))


def _sessions(group: Sequence[Memory]) -> dict[str, int]:
    """Return the sessions of a group, and how often each repeated it."""
    found: dict[str, int] = {}
    for each in group:
        seen_in = named(each.detail, "seen_in") or {each.session or each.uid: each.seen}
        for session, times in seen_in.items():
            found[session] = found.get(session, 0) + (times if isinstance(times, int) else 1)
    return dict(sorted(found.items()))


def _seen(group: Sequence[Memory]) -> int:
    return sum(each.seen for each in group)


def _scope(projects: Sequence[str], languages: Mapping[str, str]) -> str:
    """Return the narrowest scope of all projects: their language, where they have one in common."""
    spoken = {languages.get(project, "") for project in projects}
    return f"language:{spoken.pop()}" if len(spoken) == 1 and "" not in spoken else UNIVERSAL
