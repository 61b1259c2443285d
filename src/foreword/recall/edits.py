"""Choose what to say before the first edit of a file: what the user laid down about just this file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from foreword.models import Memory
from foreword.recall.hints import Hint
from foreword.recall.notes import id_of
from foreword.recall.relevance import memory_words
from foreword.recall.sanitize import ago, neutral, shown_path

LAID_DOWN = ("preference", "correction", "decision", "learning")
WIDTH = 240  # characters of what is quoted
FEW = 3  # files of the turn in which it was said, each with its tests: then it was about these
_TEST = re.compile(r"^tests?[_-]|[_-](?:tests?|spec)$", re.IGNORECASE)
SURE = 0.7  # confidence; what was said once and not very clearly does not come by itself


def hint_for_edit(file: str, memories: Sequence[Memory], *, now: float) -> Hint | None:
    """Return what the user laid down about *file*, the newest of it; None where nothing was.

    A turn may edit ten files: what was said in it counts for a file that it names, or where it edited hardly any other.
    """
    rules = [each for each in memories if each.trust == "user" and each.kind in LAID_DOWN and each.confidence >= SURE]
    about = [each for each in rules if _stands_alone(each.title) and _is_about(each, file)]
    chosen = max(about, key=lambda each: each.created, default=None)
    if chosen is None:
        return None
    when = ago(now - max(chosen.created, chosen.confirmed))
    quoted = neutral(chosen.title, width=WIDTH).replace('"', "'")
    name = shown_path(file).replace('"', "'")
    text = f'[foreword, history] {name}: the user, {when}: "{quoted}" [{id_of(chosen)}]'
    return Hint(text, chosen.id)


def _is_about(memory: Memory, file: str) -> bool:
    if memory_words(_stem(file)) & memory_words(memory.title):
        return True
    named = {_stem(each) for each in memory.files}
    return len(named) <= (1 if memory.kind == "decision" else FEW)  # most decisions are about one task


def _stem(file: str) -> str:
    """Return the name of a file without its ending; that of a test is the name of what it tests."""
    return _TEST.sub("", file.rpartition("/")[2].partition(".")[0])


def _stands_alone(title: str) -> bool:
    """Return whether a sentence is about a file: no answer to a question, nothing about branches and commits.

    Readers called a question with its chosen option noise at an edit: it settled how to go on then.
    """
    return not _ANSWER.search(title) and not _PROCESS.search(title)


_ANSWER = re.compile(r"\?['\"”’)]*\s+\S|^Chosen: ")
_PROCESS = re.compile(
    r"\b(?:branch(?:es|ing)?|commit(?:s|ted)?|rebase|merged?|push(?:ed)?|pull request|PRs?)\b", re.IGNORECASE
)
