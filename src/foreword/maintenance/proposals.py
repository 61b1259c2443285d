"""Propose a rule for every correction that was made again. Only the user accepts it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from foreword.audit import MemoryChange, PlanContext, still_wanted
from foreword.extract.text import capitalised
from foreword.maintenance.dedupe import differ, same_statement, words_of
from foreword.models import Link, Memory, named, text, texts

MIN_REPEATS = 2  # sessions, or times that lie apart
MIN_GAP = 86_400.0  # seconds; said twice in one sitting is said once
MOST = 1_000  # corrections, the newest, which are compared with each other
CONFIDENCE = 0.9  # the user wrote it, but not as a rule
WHO = "learning"  # in the audit log
_REPEATED = re.compile(
    r"^(?:as )?(?:i (?:said|told you|asked you)|i['’]ve (?:said|told you))(?: (?:again|before|already))?"
    r"(?: to| that)?[\s,:]+",
    re.I,
)


def plan(memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]:
    """Propose a preference for each correction that was made again, unless there is one, whatever became of it."""
    preferences = [each for each in memories if each.kind == "preference"]
    planned = []
    for group in _groups([each for each in memories if _is_rule(each, "correction")]):
        first, last = min(each.created for each in group), max(each.confirmed for each in group)
        has_lasted = sum(each.seen for each in group) >= MIN_REPEATS and last - first >= MIN_GAP
        if (len(_sessions(group)) >= MIN_REPEATS or has_lasted) and not _is_reversed(group, memories):
            uids = {each.uid for each in group}
            is_proposed = any(not uids.isdisjoint(texts(each.detail, "from")) for each in preferences)
            if not is_proposed and not any(same(each, other) for each in preferences for other in group):
                planned.append(_proposal(group))
    return still_wanted(planned, about=about)


def plan_confirmed(memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]:
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
    return still_wanted(planned, about=about)


def same(one: Memory, other: Memory) -> bool:
    """Return whether two rules say the same: in the same words, or the same in place of the same."""
    wrong, other_wrong = _instead_of(one), _instead_of(other)
    if wrong and other_wrong:
        # "plain pytest" is pytest; what is to be used instead must be the same all the same.
        rest = (words_of(each.title) - wrong - other_wrong for each in (one, other))
        return (wrong <= other_wrong or other_wrong <= wrong) and bool(frozenset.intersection(*rest))
    words, more = words_of(one.title), words_of(other.title)
    titles = one.title, other.title
    return same_statement(*titles) or (words == more and bool(words) and not differ(*titles))


def rule_of(correction: str) -> str:
    """Return a correction as a rule, without "I told you"."""
    statement = _REPEATED.sub("", correction).strip(" ,.;:—-")
    return capitalised(statement) if len(statement.split()) > 1 else correction


def _groups(rules: Sequence[Memory]) -> list[list[Memory]]:
    """Group rules that say the same, each group oldest first."""
    groups: list[list[Memory]] = []
    for rule in sorted(rules, key=lambda memory: (memory.created, memory.uid))[-MOST:]:
        near = [group for group in groups if any(same(rule, other) for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append([*(other for group in near for other in group), rule])
    return [sorted(group, key=lambda memory: (memory.created, memory.uid)) for group in groups]


def _proposal(group: Sequence[Memory]) -> MemoryChange:
    first, newest = group[0], max(group, key=lambda each: (each.confirmed, each.uid))
    instead = {"instead_of": newest.detail["instead_of"]} if newest.detail.get("instead_of") else {}
    memory = Memory(
        "preference",
        rule_of(newest.title),
        uid=f"pre:{first.uid}:proposed",
        scope=first.scope,
        project=first.project,
        session=newest.session,
        confidence=CONFIDENCE,
        seen=sum(each.seen for each in group),
        created=newest.confirmed,
        confirmed=newest.confirmed,
        status="proposed",
        detail={**instead, "from": sorted(each.uid for each in group), "seen_in": _sessions(group)},
    )
    links = tuple(Link(memory.uid, "caused-by", each.id or each.uid) for each in group)
    return MemoryChange("propose", f"corrected {memory.seen}x", new=(memory,), links=links)


def _is_reversed(group: Sequence[Memory], memories: Sequence[Memory]) -> bool:
    """Return whether the user has written the reverse since: what was to be used is now what is not."""
    last = max(group, key=lambda each: (each.confirmed, each.uid))
    wrong, right = _instead_of(last), words_of(last.title) - _instead_of(last)
    return bool(wrong) and any(
        later.confirmed > last.confirmed
        and (not_now := _instead_of(later))
        and not_now <= right
        and wrong & words_of(later.title) - not_now
        for later in memories
        if _is_rule(later, "correction", "preference", "decision")
    )


def _is_rule(memory: Memory, *kinds: str) -> bool:
    return memory.kind in kinds and memory.trust == "user" and memory.status == "active"


def _instead_of(memory: Memory) -> frozenset[str]:
    return words_of(text(memory.detail, "instead_of"))


def _sessions(group: Sequence[Memory]) -> dict[str, int]:
    """Return the sessions of a group, and how often each repeated it."""
    counts: dict[str, int] = {}
    for memory in group:
        seen_in = named(memory.detail, "seen_in") or {memory.session or memory.uid: memory.seen}
        for session, times in seen_in.items():
            counts[session] = counts.get(session, 0) + (times if isinstance(times, int) else 1)
    return dict(sorted(counts.items()))
