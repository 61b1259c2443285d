"""Compare two sentences: do they say the same?"""

from __future__ import annotations

import re
from functools import lru_cache

from foreword.extract.text import stems
from foreword.terms import GENERIC

SAME = 0.6  # of the words of both, that both hold
WITHIN = 0.8  # of the words of the shorter one, that the longer one holds
SPECIFIC = 3  # words that both hold and that are not common to all projects: fewer are a coincidence
COMMON = 0.3  # weight of a word that is common to all projects

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
    """Return whether two sentences say the same in mostly the same words, whatever their endings and order."""
    return same_topic(one, other) and not differ(one, other)


def same_topic(one: str, other: str) -> bool:
    """Return whether two sentences say the same or the opposite: mostly the same words, some of them specific."""
    words, more = words_of(one), words_of(other)
    both = words & more
    if len(both) < SPECIFIC or sum(1 for word in both if word not in GENERIC) < SPECIFIC:
        return False
    common = _weight(both)
    return common >= SAME * _weight(words | more) or common >= WITHIN * min(_weight(words), _weight(more))


@lru_cache(1 << 15)  # the rules and learnings of a large project, which are compared with each other
def words_of(text: str) -> frozenset[str]:
    """Return the words of a sentence without stop words and endings."""
    return frozenset(word for word in stems(text) if not word.isdigit())


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
