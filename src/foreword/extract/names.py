"""Tell which names of code a turn spelled otherwise, so that older notes that hold them stay silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from foreword.models import Edit
from foreword.terms import lazy_pattern

LONGEST = 80  # characters of a name
MOST_PIECE = 400  # characters of each side of an edit that are compared; of longer ones extraction keeps the ends
ALIKE = 0.75  # from which on two names are one in two spellings
PLACES = 2  # edits that respell a name: one may be another thing of a similar name
_WORD = lazy_pattern(r"[\w.@/-]+")
_NAME = lazy_pattern(r"(?=.*[^\W\d_]{3}).*(?:\w[/._-]\w|[a-z][A-Z])")  # a path, or an identifier of several words
_DIGITS = lazy_pattern(r"\d+")


def names_in(text: str) -> frozenset[str]:
    """Return the paths and the identifiers of several words that *text* holds."""
    found = {word.rstrip("./-") for word in _WORD.findall(text)}
    return frozenset(word for word in found if len(word) <= LONGEST and _NAME.match(word))


def respelled(edits: Iterable[Edit]) -> list[str]:
    """Return the names that *edits* spelled otherwise in several places, and that none of them left."""
    times, left = Counter[str](), set[str]()
    for edit in edits:
        before, after = edit.before or "", edit.after or ""
        left |= names_in(after)
        if max(len(before), len(after)) <= MOST_PIECE:
            times.update(dict.fromkeys(_respelled(before, after), PLACES if edit.everywhere else 1))
    return sorted(name for name, count in times.items() if count >= PLACES and name not in left)


@lru_cache(1000)  # a session is extracted after each of its turns
def _respelled(before: str, after: str) -> tuple[str, ...]:
    """Return the names that one edit spelled otherwise; another number in a name is another version of it."""
    from difflib import get_close_matches  # late: recall needs `names_in`, and a hook pays for imports

    old, new = names_in(before), names_in(after)
    came = {_DIGITS.sub("", name): name for name in new - old}
    gone = [name for name in old - new if _DIGITS.sub("", name) not in came]
    return tuple(name for name in gone if get_close_matches(name, came.values(), n=1, cutoff=ALIKE))
