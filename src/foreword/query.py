"""Moment -> what to look for: its words and their synonyms, in the scopes it may see. Light."""

from __future__ import annotations

from foreword.languages import languages
from foreword.types import EMPTY, UNIVERSAL, Query
from foreword.words import terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from foreword.types import Moment


def query_of(moment: Moment, *, synonyms: Mapping[str, Sequence[str]] = EMPTY) -> Query:
    """What a moment looks for: the words of its prompt, and their synonyms, in the scopes it may see."""
    asked = terms(moment.prompt)
    known = dict.fromkeys(asked)
    for term in asked:
        known.update(dict.fromkeys(synonyms.get(term, ())))
    return Query(scopes=scopes_of(moment), terms=tuple(known))


def scopes_of(moment: Moment) -> tuple[str, ...]:
    """The project's own, its languages', and the universal scope: nothing else is ever a candidate."""
    spoken = (f"language:{language}" for language in languages(moment.project.root))
    return (moment.project.scope, *spoken, UNIVERSAL)
