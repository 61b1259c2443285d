"""Two sentences -> whether they say the same, or the opposite. The one measure of everything that is learned."""

from __future__ import annotations

import re
from functools import lru_cache

from foreword.extract.text import stems
from foreword.terms import GENERIC

SAME = 0.6  # of the words of both, that both hold
WITHIN = 0.8  # of the words of the shorter one, that the longer one holds
TELLING = 3  # words that both hold and that not every project says: fewer are a coincidence
EVERYDAY = 0.3  # what a word of every project's day weighs

_NOT = re.compile(
    r"\b(?:not|never|no|none|without|cannot|nor|neither|avoids?|stop|\w+n['’]t|dont|doesnt|isnt|cant|wont)\b", re.I
)
# Where one sentence holds the one and the other the other, they differ, whatever else they have in common.
_OPPOSITES = tuple(
    (re.compile(rf"\b(?:{one})\b", re.I), re.compile(rf"\b(?:{other})\b", re.I))
    for one, other in (
        ("before", "after"),
        ("on", "off"),
        ("enabled?", "disabled?"),
        ("sync|synchronous", "async|asynchronous"),
        ("required|mandatory", "optional"),
        ("allowed", "forbidden"),
        ("first", "last"),
        ("local", "global"),
        ("true", "false"),
    )
)


def alike(one: str, other: str) -> bool:
    """Whether two sentences say the same in words that are mostly the same, whatever their endings and order."""
    return same_topic(one, other) and not differ(one, other)


def opposite(one: str, other: str) -> bool:
    """Whether two sentences speak of the same, and the one denies what the other says."""
    return same_topic(one, other) and differ(one, other)


def same_topic(one: str, other: str) -> bool:
    """Whether two sentences say the same or the opposite: mostly the same words, and some that tell."""
    words, more = words_of(one), words_of(other)
    both = words & more
    if len(both) < TELLING or sum(1 for word in both if word not in GENERIC) < TELLING:
        return False
    common = _weight(both)
    return common >= SAME * _weight(words | more) or common >= WITHIN * min(_weight(words), _weight(more))


@lru_cache(1 << 15)  # the rules and learnings of a large project, which are compared with each other
def words_of(text: str) -> frozenset[str]:
    """The words that tell what a sentence is about, without their endings."""
    return frozenset(word for word in stems(text) if not word.isdigit())


def mostly_same(words: frozenset[str], more: frozenset[str]) -> bool:
    """Whether two sets of words are mostly one, whatever they tell."""
    return bool(words) and len(words & more) >= SAME * len(words | more)


def differ(one: str, other: str) -> bool:
    """Whether one of two sentences denies what the other says, if they speak of the same."""
    if len(_NOT.findall(one)) % 2 != len(_NOT.findall(other)) % 2:
        return True
    return any(
        {bool(left.search(text)) - bool(right.search(text)) for text in (one, other)} == {1, -1}
        for left, right in _OPPOSITES
    )


def _weight(words: frozenset[str]) -> float:
    return sum(EVERYDAY if word in GENERIC else 1.0 for word in words)
