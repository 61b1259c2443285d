"""Moment -> what recall says at it, and where that is nothing, why: kept in a word and numbers, told in a sentence.

recall runs as it always does, only that its *look* is listened to, which costs a call for each layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from foreword.layout import Recipe
from foreword.learn import asleep
from foreword.recall.pipeline import GIVEN, LATE, NOTHING, TOLD, look, recall
from foreword.recall.rank import WORDED
from foreword.store.silences import Silence
from foreword.types import EMPTY, GOING_ON, Injection, Moment, Query, Ranked, Recalled, Skipped

if TYPE_CHECKING:
    from foreword.recall.search import Searchable

WORDLESS = "it names no topic: a thing, a file, a function"
# Each reason, and how it goes on behind "Nothing was said: ".
REASONS = {
    "nothing": "nothing that is remembered here has to do with it",
    "below": "nothing fits well enough",
    "told": "everything that fits was told already in this context window",
    "given": "what a session begins with was given already in this context window",
    "old": "nothing is new since this context window began",
    "unsure": "what fits is not sure enough to come by itself",
    "room": "what fits is too long for the budget of {budget:,} tokens",
    "used": "this context window's budget for {of} is used up{so_far}",
    "late": "there was no time left to look",
    "wordless": WORDLESS,
    "failed": "something went wrong on the way; `foreword doctor` tells what",
}
UNTOLD = "unclear"  # of a hook that was alone, which says no more
REASONS[UNTOLD] = "nothing fits well enough, or all of it was told already in this context window"
BEGINNING = "nothing is remembered here yet that a session begins with"
_KNOWN = {TOLD: "told", LATE: "late", GIVEN: "given"}


def heard(
    store: Searchable,
    moment: Moment,
    *,
    recipe: Recipe,
    threshold: float,
    spent: Callable[[], Mapping[str, int]] = dict,
    **more: Any,
) -> tuple[Recalled | Skipped, Silence | None]:
    """What recall says to the same arguments; where it says nothing, also what is kept of that, without id and time."""
    best: Ranked | None = None
    used: Mapping[str, int] = EMPTY

    def listen(store: Searchable, query: Query, **how: Any) -> tuple[tuple[Ranked, ...], tuple[str, ...]]:
        nonlocal best
        ranked, wrong = look(store, query, **how)
        if ranked and (best is None or ranked[0].score > best.score):
            best = ranked[0]
        return ranked, wrong

    def note() -> Mapping[str, int]:
        nonlocal used
        used = spent()
        return used

    got = recall(store, moment, recipe=recipe, threshold=threshold, spent=note, look=listen, **more)
    if isinstance(got, Recalled):
        return got, None
    return got, kept(moment, got, best=best, recipe=recipe, threshold=threshold, used=used)


def kept(
    moment: Moment, got: Skipped, *, best: Ranked | None, recipe: Recipe, threshold: float, used: Mapping[str, int]
) -> Silence:
    """What is kept of a silence, without id and time; *best* of all that was weighed, *used* in the window so far."""
    why = reason(moment, got, best=best, threshold=threshold)
    given, allowed = _ledger(moment, recipe, used) if why == "used" else (0, 0)
    return Silence(
        id="",
        moment=moment.name,
        source=moment.source,
        session=moment.session,
        project=moment.project.key,
        host=moment.host,
        at=0.0,
        why=why,
        budget=got.budget,
        build_ms=round(got.build_ms, 3),
        nearest=best.memory.id if best else "",
        score=best.score if best else 0.0,
        needed=threshold if best else 0.0,
        spent=given,
        allowed=allowed,
    )


def reason(moment: Moment, got: Skipped, *, best: Ranked | None, threshold: float) -> str:
    """The word for a silence, one of REASONS."""
    if got.why in _KNOWN:
        return _KNOWN[got.why]
    if got.why != NOTHING:
        return "used"
    if got.problems:
        return "failed"
    if moment.name in WORDED and not got.terms:
        return "wordless"
    if "does not fit" in got.skipped.values():
        return "room"
    if best is None:
        return "nothing"
    if best.score < threshold:
        return "below"
    if asleep(best.memory):
        return "unsure"
    return "old" if moment.source in GOING_ON else "nothing"


def of_hook(told: Injection) -> Silence:
    """What is kept of a silence that a hook kept without the worker: as much as its record of it tells."""
    whys = set(told.skipped.values())
    if told.moment in WORDED and not told.terms:
        why = "wordless"
    elif not whys:  # no layer was looked at
        why = "used"
    else:
        why = "late" if whys == {"deadline"} else "room" if "does not fit" in whys else UNTOLD
    names = ("id", "moment", "source", "session", "project", "host", "at", "budget", "build_ms", "away")
    return Silence(why=why, **{name: getattr(told, name) for name in names})


def says(silence: Silence) -> str:
    """The reason as a sentence goes on behind "Nothing was said: "; of a word that is not known, nothing."""
    if silence.why == "nothing" and silence.moment not in WORDED:
        return BEGINNING
    of = {"prompt": "prompts", "question": "questions"}.get(silence.moment, "session starts")
    so_far = f" ({silence.spent:,} of {silence.allowed:,} tokens)" if silence.allowed else ""
    return REASONS.get(silence.why, "").format(of=of, so_far=so_far, budget=silence.budget)


def _ledger(moment: Moment, recipe: Recipe, used: Mapping[str, int]) -> tuple[int, int]:
    """The nearer of the two borders that a window's ledger has for a moment: tokens given, of so many."""
    own = (used.get(moment.name, 0), recipe.total)
    both = (used.get("session_start", 0) + used.get("question", 0), recipe.together)
    return min(own, both, key=lambda each: each[1] - each[0])
