"""Cut a long text to the sentences that fit a prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile

from foreword.extract.text import cut, names_code, split_sentences
from foreword.recall.relevance import memory_words, references, without_parts
from foreword.terms import lazy_pattern

SHORTEST = 25  # characters of a sentence that says something
ENOUGH = 1.2  # words' worth that the best sentence holds
HEAD = 12  # characters at the beginning of a line in which the number stands of the issue that it is about
NEXT = 0.6  # of the best sentence's weight that the second one needs
TELLS = 0.5  # words' worth of a sentence that states a cause or what was done
# A sentence that was torn out of its context begins in the middle, or announces what does not follow.
_WHOLE = lazy_pattern(r"[\"'`(\[*]{0,3}[A-Z0-9\u00c0-\uffff`][^\n]*[^:\n]$|[`.][\w./-]+[^\n]*[^:\n]$")
_OFFER = lazy_pattern(
    r"\b(?:want me to|shall i|should i|would you like|do you want|let me know|if you want)\b|\?$", re.I
)
_TELLS = lazy_pattern(
    r"\b(?:because|root cause|caused by|so that|turns out|instead of|only (?:works|when|if)|due to|fixed|added|removed"
    r"|changed|moved|renamed|replaced|now|set in|must|requires?|fails? (?:when|if|with))\b",
    re.I,
)


# Whose subject stands in a sentence before it: "It is mentioned", "The tradeoff: it works"; not "This project uses".
_POINTS_BACK = lazy_pattern(
    r"(?:(?:the|one|another|main|only) [\w -]{3,30}: )?"
    r"(?:it|they|these|those|this|that|both|neither)(?:'(?:s|re|ll|d))? "
    r"(?!(?:project|repo|repository|codebase|app|application|package|library|monorepo|machine|environment)\b)",
    re.I,
)
_CLAUSE_END = lazy_pattern(r"[,;]? [\u2013\u2014-] |[,;:.] ")


def is_torn(text: str) -> bool:
    """Return whether *text* begins with a pronoun for something that it does not say, and names no code there."""
    pointing = _POINTS_BACK.match(text)
    if not pointing:
        return False
    end = _CLAUSE_END.search(text, pointing.end())
    return not names_code(text[: end.start() if end else None])


def passage(text: str, weights: Mapping[str, float], *, room: int) -> str:
    """Return up to two sentences of *text* that hold most of the weight of a prompt's words; empty where none do."""
    lines = _lines(text)
    if section := _section_on(lines, weights, room=room):
        return section
    ranked = []
    for place, sentence in enumerate(lines):
        if len(sentence) < SHORTEST or _OFFER.search(sentence) or not _WHOLE.match(sentence):
            continue
        words = memory_words(cut(sentence, room))  # what is not shown does not count
        held = sum(weights[word] for word in without_parts([word for word in weights if word in words]))
        if held:
            ranked.append((held + TELLS * bool(_TELLS.search(sentence)), place, sentence))
    ranked.sort(key=lambda each: (-each[0], each[1]))
    if not ranked or ranked[0][0] < ENOUGH:
        return ""  # one word in passing: what came of the whole says more
    taken: list[tuple[int, str]] = []
    for weight, place, sentence in ranked[:4]:
        if taken and (weight < NEXT * ranked[0][0] or len(sentence) > room or len(taken) == 2):
            break
        taken.append((place, cut(sentence, room)))
        room -= len(sentence) + 1
        if room < SHORTEST:
            break
    return " ".join(each if each[-1] in ".!:" else f"{each}." for _, each in sorted(taken))


def _section_on(lines: Sequence[str], weights: Mapping[str, float], *, room: int) -> str:
    """Return what a list of issues says about the one that a prompt names: its heading and what follows."""
    for place, line in enumerate(lines):
        named = references(line[:HEAD])
        if len(named) != 1 or named[0] not in weights:
            continue
        following = list(takewhile(lambda after: not references(after[:HEAD]), lines[place + 1 :]))
        if rest := " ".join(after for after in following if not _OFFER.search(after)):
            return cut(f"{line.rstrip('.:')}: {rest}", room)
    return ""


def _lines(text: str) -> list[str]:
    """Return the sentences of a text: extraction writes one a line, other texts hold several."""
    return [sentence for line in text.splitlines() for sentence in split_sentences(line)]
