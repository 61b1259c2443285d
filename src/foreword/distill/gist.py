"""What was said in a session -> the few sentences that hold most of it, and the words it was about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from foreword.distill.said import said
from foreword.distill.sentences import begun, cut, fenced, pieces
from foreword.tokens import count
from foreword.words import GENERIC, terms

POINT = 150  # characters of one point
MOST_UNITS = 400
TELLING = 1.5  # a point with fewer telling words than that is small talk
SAME = 0.75  # of the words of an item that another must hold to say it too
COMMAND = 90  # characters of a line of code that is worth a point

SHELL = ("bash", "sh", "shell", "console", "zsh", "")  # blocks whose lines are worth knowing by themselves
LEFT = 1.5  # times as heavy: what is left to do is what the next session begins with
DONE, LEARNED, NEXT, REQUEST = "done", "learned", "next", "request"
FRESH = 1.25  # telling words that a point must bring beyond what is said already; a number alone ("14 tests pass") is too little


@dataclass(frozen=True)
class Unit:
    """One sentence or point, and what it is: done, learned, next, or asked for."""

    text: str
    kind: str
    weight: float
    place: int


_LEARNED = re.compile(
    r"\b(?:turns? out|(?:^|i |we )learn(?:ed|t)|found out|lesson|root cause|the (?:issue|problem|cause|bug|trick|catch) (?:was|is)|gotcha|note that|be careful|watch out|classic|common trap"
    r"|must (?:not|be)|only works|requires?|by default|keep in mind|for future reference|whenever|because|otherwise|instead of|rather than"
    r"|prevents?|avoids?|never|always|cannot|can'?t|so (?:that|a|an|the|it|we|they)|the fix (?:was|is)|breaks?|fails? (?:when|if))\b",
    re.I,
)
_NEXT = re.compile(
    r"\b(?:next steps?|to ?do|remaining|pending|left to do|still (?:needs?|missing|open|to|calls?|uses?|fails?|broken)|not yet|follow[- ]?up|coming next|will need|in progress"
    r"|next session|blocker|critical path|tomorrow)\b",
    re.I,
)
_SECTION_NEXT = re.compile(
    r"^(?:next|pending|remaining|to ?do|open|in progress|left|follow[- ]?ups?|what'?s (?:next|left))\b.*:$", re.I
)
_SECTION_DONE = re.compile(
    r"^(?:completed?|done|finished|implemented|summary|changes|what (?:i|was) (?:did|done|changed))\b.*:$", re.I
)
_OPEN = re.compile(r"^(?:still open|next(?: steps?)?|to ?do|remaining|pending|open|left(?: to do)?)\s*[:—-]+\s*", re.I)
# What an agent says around what it says.
_SMALL_TALK = re.compile(
    r"^(?:great|good|perfect|noted|got it|sure|done|ok(?:ay)?|understood|absolutely|certainly|of course|excellent|nice|confirmed|ready when|on it|clean|solid"
    r"|looks good|that fixed it|let me know|anything else|you'?re (?:right|welcome)|thanks?|yes|no problem|all set|here(?:'s| is| are)|i'?ll (?:help|now|start|take a look))\b",
    re.I,
)
_LEAD = re.compile(
    r"^(?:(?:great|good|perfect|noted|got it|sure|done|okay|ok|understood|yes|excellent|confirmed|implemented|added|fixed)\s*[—:.,!-]+\s*)+|^(?:i'?ve|i have|i'?ll|i will|we'?ve|we'?ll|we) ",
    re.I,
)


def units(prompts: Sequence[str], answers: Sequence[str], *, work: bool = False) -> list[Unit]:
    """The points of a conversation that say something; in *work* the user's own are what is wanted, and weigh less."""
    found: list[Unit] = []
    own = 0.7 if work else 1.25
    for text, weight in [*((each, own) for each in prompts), *((each, 1.0) for each in answers)]:
        section = ""
        for piece in pieces(text):
            if piece.endswith(":") and len(piece) < 60:
                section = piece
                continue
            if piece.endswith("?") or (_SMALL_TALK.match(piece) and len(piece) < 60):
                continue
            kind = NEXT if _SECTION_NEXT.match(section) or (weight == 1.0 and _NEXT.search(piece)) else DONE
            if kind == DONE and not _SECTION_DONE.match(section) and _LEARNED.search(piece):
                kind = LEARNED
            if work and weight == own:
                if said(piece):
                    continue  # it is kept as what it is
                kind = REQUEST
            plain = _OPEN.sub("", piece) if kind == NEXT else piece
            heavy = weight * (LEFT if work and kind == NEXT else 1.0)
            found.append(Unit(text=_tidy(plain), kind=kind, weight=heavy, place=len(found)))
        for line in fenced(text, languages=SHELL):
            if 8 <= len(line) <= COMMAND and weight == 1.0:
                found.append(Unit(text=line, kind=DONE, weight=0.7, place=len(found)))
    told = [
        *found[: MOST_UNITS // 4],
        *found[MOST_UNITS // 4 :][-MOST_UNITS * 3 // 4 :],
    ]  # how it began, and how it ended
    return [unit for unit in told if sum(map(_worth, terms(unit.text))) >= TELLING]


def chosen(given: Sequence[Unit], *, budget: int, covered: str = "") -> list[Unit]:
    """The units that together hold most words for their tokens, in their order, within *budget* tokens."""
    said = {stem(term) for term in terms(covered, limit=200)}
    words = {unit.place: {stem(term): _worth(term) for term in terms(unit.text)} for unit in given}
    often: dict[str, int] = {}
    for each in words.values():
        for term in each:
            often[term] = often.get(term, 0) + 1
    costs = {unit.place: count(unit.text) + 2 for unit in given}

    def gain(unit: Unit) -> float:
        fresh = _fresh(words[unit.place], said, often)
        return unit.weight * fresh / (costs[unit.place] + 4) if fresh >= FRESH or unit.kind == NEXT else 0.0

    picked: list[Unit] = []
    # What a unit brings only sinks while others are taken: the best is one that is still the best when it is asked again.
    waiting = [(-gain(unit), unit.place, unit) for unit in given]
    heapify(waiting)
    while waiting:
        before, place, unit = heappop(waiting)
        if costs[place] > budget:
            continue
        now = -gain(unit)
        if now >= 0:
            continue
        if now > before and waiting and now > waiting[0][0]:
            heappush(waiting, (now, place, unit))
            continue
        picked.append(unit)
        budget -= costs[place]
        said |= words[place].keys()
    return sorted(picked, key=lambda unit: unit.place)


def _fresh(words: Mapping[str, float], said: Set[str], often: Mapping[str, int]) -> float:
    """What *words* bring that was not said yet; what a conversation comes back to weighs more."""
    return sum(worth * (1 + 0.25 * min(often[term] - 1, 3)) for term, worth in words.items() if term not in said)


def concepts(texts: Sequence[str], *, most: int = 12, covered: str = "") -> tuple[str, ...]:
    """The names and words a conversation was about, those said most first, without what *covered* says already."""
    said = covered.lower()
    counts: dict[str, float] = {}
    shown: dict[str, str] = {}
    for text in texts:
        inside = set(_INSIDE.findall(text[:8000]))
        for token in dict.fromkeys(_NAME.findall(text[:8000])):  # in order: the first spelling is the one that is shown
            low = token.lower().strip("._-/")
            if len(low) < 3 or low in GENERIC or low in said or low.isdigit() or not terms(low):
                continue
            odd = (
                token[1:] != token[1:].lower() or any(sign in token for sign in "_./@") or any(map(str.isdigit, token))
            )
            named = odd or token in inside  # a capital at the beginning of a sentence names nothing
            if not named and token != low:
                continue
            counts[low] = counts.get(low, 0.0) + (2.0 if named else 1.0)
            shown.setdefault(low, token.strip("._-/"))
    best = sorted((name for name, times in counts.items() if times >= 2), key=lambda name: (-counts[name], name))
    return tuple(shown[name] for name in best[:most])


_INSIDE = re.compile(r"(?<=[a-z,] )[A-Z][\w@./-]*[A-Za-z0-9]")
_NAME = re.compile(r"(?<!@)[A-Za-z@][\w@./-]*[A-Za-z0-9]")  # a row of signs is tried once


def _worth(term: str) -> float:
    if term in GENERIC:
        return 0.3
    return 1.2 if any(map(str.isdigit, term)) or "_" in term else 1.0


def stems(text: str) -> frozenset[str]:
    """The words that tell what a sentence is about, without their endings."""
    return frozenset(stem(term) for term in terms(text, limit=60))


def holds(words: frozenset[str], item: frozenset[str]) -> bool:
    """Whether *words* say what *item* says, in mostly the same words."""
    return bool(item) and len(item & words) >= SAME * len(item)


def stem(term: str) -> str:
    """A word without its ending, where enough of it is left."""
    for ending in ("ing", "ed", "es", "s"):
        if term.endswith(ending) and len(term) - len(ending) > 3:
            return term[: -len(ending)]
    return term


def _tidy(text: str) -> str:
    text = _LEAD.sub("", text).strip(" .;:—-")
    return cut(begun(text), POINT)
