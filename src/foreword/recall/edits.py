"""Choose what to say before the first edit of a file: what the user laid down about it in earlier sessions."""

from __future__ import annotations

from collections.abc import Sequence

from foreword.extract.hints import Hint
from foreword.recall.notes import id_of
from foreword.recall.sanitize import ago, neutral
from foreword.types import Memory

LAID_DOWN = ("preference", "correction", "decision", "learning")
WIDTH = 240  # characters of what is quoted


def hint_for_edit(file: str, memories: Sequence[Memory], *, now: float) -> Hint | None:
    """Return what the user laid down about *file*, newest first; None where nothing was."""
    laid_down = [each for each in memories if each.trust == "user" and each.kind in LAID_DOWN]
    chosen = max(laid_down, key=lambda each: each.created, default=None)
    if chosen is None:
        return None
    when = ago(now - max(chosen.created, chosen.confirmed))
    quoted = neutral(chosen.title, width=WIDTH).replace('"', "'")
    text = f'[foreword, history] {neutral(file, width=120)}: the user, {when}: "{quoted}" [{id_of(chosen)}]'
    return Hint(text, chosen.id, "the user laid it down about this file")
