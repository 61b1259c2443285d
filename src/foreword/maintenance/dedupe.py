"""Merge memories that say the same: one keeps the evidence of all, the others are superseded by it; none is deleted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import ceil

from foreword.audit import MemoryChange, PlanContext, still_wanted
from foreword.encoding import read_words
from foreword.extract.merge import ALSO, evidence_of, seen_again, together
from foreword.extract.text import stem, stems
from foreword.models import Link, Memory, text, trust_rank
from foreword.terms import GENERIC, MOST_TEXT, STOP_WORDS, broken, split, text_in

MIN_SIMILARITY = 0.9  # share of the words of two memories that both hold, from which on they say the same
# What holds for longer is repeated in other words. All other kinds are events (change, observation, summary, handoff)
# or somebody's own lines (goal, note, project): they stay as they are.
LASTING = ("decision", "pattern", "failure", "learning", "preference", "correction")
# Where both have one of these, and not the same, they mean different things in the same words.
DISTINGUISHING_FIELDS = ("choice", "solution", "fix", "fixed_by", "instead_of", "symptom", "problem", "category")
MOST_NAMES = 40  # files, functions and tags of a merged memory
SAME_AS = "same_as"  # in the detail of a merged memory: into which
OWN = ("seen_in", ALSO, SAME_AS)  # of a detail: about this memory and no other
_WORDS = read_words(__file__, "words.txt")
FILLER_WORDS, NEGATING_WORDS, DIRECTED = (frozenset(_WORDS[use]) for use in ("filler", "negating", "directed"))


def plan(memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]:
    """Plan one merge for each memory that another repeats; never across scopes and kinds, or to a lower trust."""
    # Whoever undid a merge wants both memories to stay, whatever else says the same.
    apart = _kept_apart(about)
    groups: dict[tuple[str, str, str], list[Memory]] = {}
    for memory in memories:
        if memory.status == "active" and memory.kind in LASTING:
            groups.setdefault((memory.scope, memory.project, memory.kind), []).append(memory)
    return tuple(each for name in sorted(groups) for each in _merges(groups[name], apart))


def _kept_apart(about: PlanContext) -> frozenset[str]:
    """Return the memories whose merge somebody undid: both are to stay."""
    return frozenset(id for what, ids in about.taken_back if what == "merge" for id in ids)


def plan_confirmed(memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]:
    """Count corrections that were made again for the rule or correction that came first, and supersede them by it."""
    own = [each for each in memories if each.trust == "user" and each.status == "active"]
    rules = {each.id: each for each in own if each.kind in ("preference", "correction")}
    planned: list[MemoryChange] = []
    apart = _kept_apart(about)
    for correction in sorted((each for each in own if each.kind == "correction"), key=lambda each: each.created):
        earlier = (each for each in rules.values() if each.created < correction.created)
        rule = next((each for each in earlier if each.scope == correction.scope and same_rule(each, correction)), None)
        if rule is None or correction.pinned or correction.id in apart:
            continue
        after = _with_evidence(rule, correction)
        superseded = replace(correction, status="superseded", superseded_by=rule.id)
        links = (Link(rule.id, "supersedes", correction.id),)
        changed = ((rule, after), (correction, superseded))
        if wanted := still_wanted([MemoryChange("confirm", "made again", changed=changed, links=links)], about=about):
            planned += wanted
            rules[rule.id] = after
            del rules[correction.id]
    return tuple(planned)


def same_rule(one: Memory, other: Memory) -> bool:
    """Return whether two rules say the same: in the same words, or the same in place of the same."""
    wrong, other_wrong = (words_of(text(each.detail, "instead_of")) for each in (one, other))
    if wrong and other_wrong:
        # "plain pytest" is pytest; what is to be used instead must be the same all the same.
        right, other_right = (words_of(each.title) - wrong - other_wrong - _IN_PLACE for each in (one, other))
        same = (wrong <= other_wrong or other_wrong <= wrong) and (right <= other_right or other_right <= right)
        return same and bool(right and other_right)
    words, more = words_of(one.title), words_of(other.title)
    titles = one.title, other.title
    return same_statement(*titles) or (words == more and bool(words) and not differ(*titles))


# ---- which memories say the same


def _alike(one: Sequence[str], other: Sequence[str]) -> float:
    if one == other:
        return 1.0
    one_words, other_words = frozenset(one), frozenset(other)
    common, all_words = one_words & other_words, one_words | other_words
    if not common or _tells_apart(one_words - common, other_words - common):
        return 0.0
    in_order = [each for each in one if each in common] == [each for each in other if each in common]
    return 0.0 if all_words & DIRECTED and not in_order else len(common) / len(all_words)


def _tells_apart(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether the words of only one make them different: a number, a turn, or a name for another name."""
    if any(word in NEGATING_WORDS or not word.isalpha() for word in (*one, *other)):
        return True
    return all(any(word not in GENERIC and word not in STOP_WORDS for word in words) for words in (one, other))


def _words(text: str) -> Iterator[str]:
    plain = text[:MOST_TEXT].replace("n\u2019t", " not").replace("n't", " not").lower()
    tokens = [token for token in broken(plain).split() if token not in FILLER_WORDS]
    for token in tokens:
        yield from (stem(token),) if token.isascii() else split(token).split() or (token,)
    if not tokens and text.strip():
        yield text.strip()  # signs alone, or little words alone


# ---- merge


def _merges(memories: Sequence[Memory], apart: frozenset[str]) -> Iterator[MemoryChange]:
    """Yield the merges of memories of one kind; the better takes in the others."""
    words = {memory.id: tuple(_words(f"{memory.title}\n{memory.body}")) for memory in memories}
    count = Counter(word for each in words.values() for word in frozenset(each))
    by_word: dict[str, list[str]] = {}
    kept: dict[str, Memory] = {}  # as they are after the merges so far
    for memory in sorted(
        memories, key=lambda each: (not each.pinned, trust_rank(each.trust), -each.confirmed, -each.seen, each.id)
    ):
        # Two memories that share nine tenths of their words share one of the rarest tenth.
        rarest = sorted(frozenset(words[memory.id]), key=lambda word: (count[word], word))
        keys = rarest[: len(rarest) - ceil(MIN_SIMILARITY * len(rarest)) + 1]
        near = [kept[id] for id in dict.fromkeys(id for key in keys for id in by_word.get(key, ()))]
        scores = {
            each.id: _alike(words[each.id], words[memory.id]) for each in near if _may_merge(each, memory, apart=apart)
        }
        best = max(scores, key=scores.__getitem__, default="")
        if not best or scores[best] < MIN_SIMILARITY:
            kept[memory.id] = memory
            for key in keys:
                by_word.setdefault(key, []).append(memory.id)
            continue
        winner = kept[best]
        kept[best] = _with_evidence(winner, memory)
        superseded = replace(memory, status="superseded", superseded_by=best, detail={**memory.detail, SAME_AS: best})
        yield MemoryChange(
            "merge",
            f"{memory.id} says the same as {best}",
            changed=((winner, kept[best]), (memory, superseded)),
            links=(Link(best, "supersedes", memory.id),),
        )


def _may_merge(winner: Memory, loser: Memory, *, apart: frozenset[str]) -> bool:
    if loser.pinned or loser.id in apart or trust_rank(loser.trust) < trust_rank(winner.trust):
        return False
    pairs = [(winner.detail.get(name), loser.detail.get(name)) for name in DISTINGUISHING_FIELDS]
    return all(
        one == other or tuple(_words(text_in(one))) == tuple(_words(text_in(other)))
        for one, other in pairs
        if one and other
    )


def _with_evidence(winner: Memory, loser: Memory) -> Memory:
    """Return *winner* with the evidence of *loser*; its words and its trust stay its own."""
    detail = dict(winner.detail)
    if trust_rank(loser.trust) <= trust_rank(winner.trust):
        detail = {**{name: value for name, value in loser.detail.items() if name not in OWN}, **detail}
    evidence = evidence_of(loser)
    seen_in = together(evidence_of(winner), evidence)
    detail |= {ALSO: together(detail.get(ALSO), evidence), "seen_in": seen_in}
    most = max(MOST_NAMES, *map(len, (winner.files, winner.functions, winner.tags)))  # none of its own is lost
    both = seen_again(winner, loser, most=most, seen=sum(seen_in.values()), detail=detail)
    return replace(both, body=winner.body, tags=tuple(dict.fromkeys((*winner.tags, *loser.tags)))[:most])


# ---- whether two sentences say the same, whatever their order and endings

SAME = 0.6  # of the words of both, that both hold
WITHIN = 0.8  # of the words of the shorter one, that the longer one holds
SPECIFIC = 3  # words that both hold and that are not common to all projects: fewer are a coincidence
COMMON = 0.3  # weight of a word that is common to all projects

_NOT = re.compile(
    r"\b(?:not|never|no|none|without|cannot|nor|neither|avoids?|stop|\w+n['’]t|dont|doesnt|isnt|cant|wont)\b", re.I
)
# Where one sentence holds the one and the other the other, they differ, whatever else they have in common.
_OPPOSITES = tuple(
    tuple(re.compile(rf"\b(?:{word})\b", re.I) for word in pair)
    for pair in zip(_WORDS["opposite"][::2], _WORDS["opposite"][1::2], strict=True)
)


def same_statement(one: str, other: str) -> bool:
    """Return whether two sentences say the same in mostly the same words, whatever their endings and order."""
    words, others = words_of(one), words_of(other)
    shared = words & others
    if len(shared) < SPECIFIC or sum(1 for word in shared if word not in GENERIC) < SPECIFIC:
        return False
    common = _weight(shared)
    same_topic = common >= SAME * _weight(words | others) or common >= WITHIN * min(_weight(words), _weight(others))
    return same_topic and not differ(one, other)


@lru_cache(1 << 15)  # the rules and learnings of a large project, which are compared with each other
def words_of(text: str) -> frozenset[str]:
    """Return the words of a sentence without stop words and endings."""
    return frozenset(word for word in stems(text) if not word.isdigit())


_IN_PLACE = words_of("instead rather than in place of")


def differ(one: str, other: str) -> bool:
    """Return whether one of two sentences on one topic denies what the other says."""
    if len(_NOT.findall(one)) % 2 != len(_NOT.findall(other)) % 2:
        return True
    return any(
        {bool(left.search(text)) - bool(right.search(text)) for text in (one, other)} == {1, -1}
        for left, right in _OPPOSITES
    )


def _weight(words: frozenset[str]) -> float:
    return sum(COMMON if word in GENERIC else 1.0 for word in words)
