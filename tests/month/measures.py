"""A month that was played -> the few figures it is judged by, each measured without help of what it judges."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from foreword.models import Memory
from tests.month.play import InjectedContext, Month, Night
from tests.month.story import GONE, LINES, Choice

ALIKE = 0.9  # share of the words that two memories have in common, from which on they count as one said twice
HALF = 15  # the day that ends the first half
# Layers whose order is that of the calendar, whatever was used: no measure of ranking.
BY_DATE = ("standing", "sessions", "changes")
# Kinds that tell what happened on a day, not what holds.
HISTORY = ("summary", "turn", "observation", "failure", "change")


# -- duplicates ---------------------------------------------------------------------------------------------------
def duplicates(memories: Iterable[Memory]) -> list[tuple[Memory, Memory]]:
    """Pairs of one kind whose titles and bodies share nine words of ten, each word counted as often as it stands."""
    by_kind: dict[str, list[tuple[Memory, Counter[str]]]] = {}
    found = []
    for memory in memories:
        words = Counter(re.findall(r"\w+", f"{memory.title} {memory.body}".lower()))
        for other, others in by_kind.setdefault(memory.kind, []):
            if 2 * (words & others).total() >= ALIKE * (words.total() + others.total()):
                found.append((other, memory))
        by_kind[memory.kind].append((memory, words))
    return found


def share_of_duplicates(memories: list[Memory]) -> float:
    """The share of *memories* that say again what another of them says."""
    return len({later.id for _, later in duplicates(memories)}) / max(1, len(memories))


# -- what no longer holds -----------------------------------------------------------------------------------------
def said_as_current(context: InjectedContext) -> Iterator[str]:
    """What a block tells of choices that had been replaced on a day before, other than as what once happened."""
    for subject, choices in LINES.items():
        for choice, following in pairwise(choices):
            if context.day > following.day:
                yield from (f"day {context.day}, {subject}: {line}" for line in _telling(context, choice))


def _telling(context: InjectedContext, choice: Choice) -> Iterator[str]:
    for item in context.injection.items:
        memory = context.memories.get(item.memory)
        if memory is not None and memory.kind not in HISTORY and says(f"{memory.title} {memory.body}", choice):
            yield f"{memory.id} {memory.title}"
    section = ""
    for line in context.injection.text.splitlines():
        section = line if line.startswith("## ") else section
        if section in ("## Rules", "## For the files in play") and says(line, choice):
            yield line


def says(text: str, choice: Choice) -> bool:
    words = set(re.findall(r"\w+", text.lower()))
    return words.issuperset(choice.words) and words.isdisjoint(choice.not_words)


def remembered_as_current(context: InjectedContext) -> Iterator[str]:
    """Summaries of a block whose title is a choice that was replaced since, and that do not say so."""
    for subject, choices in LINES.items():
        for choice, following in pairwise(choices):
            for memory in context.memories.values() if context.day > following.day else ():
                title = memory.title.lower()
                if memory.kind == "summary" and says(title, choice) and not title.startswith("replaced"):
                    yield f"day {context.day}, {subject}: {memory.title}"


def gone_as_current(context: InjectedContext) -> Iterator[str]:
    """Names that were taken out of the code on a day before, and that a block tells as if they were there."""
    for name, day in GONE.items():
        if context.day > day:
            yield from (f"day {context.day}, {name}: {line}" for line in _naming(context.injection.text, name))


def _naming(text: str, name: str) -> Iterator[str]:
    """Lines that tell of code by its name, but for those that say it is gone, and for what happened on a day."""
    whole = re.compile(rf"(?<![\w.]){re.escape(name)}(?![\w])")
    section = ""
    for line in text.splitlines():
        section = line if line.startswith("## ") else section
        of_code = section == "## Recently changed code"
        if of_code and whole.search(line) and "deleted" not in line.lower():
            yield line
        if section == "## For the files in play" and whole.search(line) and f"without {name}" not in line:
            yield line


# -- ranking ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Places:
    """Mean places of two groups of memories, from 0 for the first of a block to 1 for the last, and their numbers."""

    better: float
    worse: float
    many: tuple[int, int]

    @property
    def gain(self) -> float:
        return self.worse - self.better


def by_judgement(month: Month, *, late: bool = True) -> Places:
    """Memories that were judged used at least once in the first half, against those judged, and only ever ignored.

    A memory's place is the mean over the blocks of the second half (or, not *late*, of the first) that showed it, each
    from 0 to 1 within its layer, so that long and short blocks count alike; the mean over memories follows, so that one
    which is shown every day does not speak for all. Layers in the order of the calendar are left out, and each kind is
    measured by its own mean: some kinds are judged more often than others, and some stand further up by nature.
    What is often shown has more occasions to be used: that is a bias towards what ranked well anyway, and the
    difference in the first half tells how much of it there is. `by_fate` has none.
    """
    used: dict[str, set[bool]] = {}
    for each in month.contexts:
        if each.day <= HALF:
            for item in month.judged[each.injection.id].items:
                if item.used is not None:
                    used.setdefault(item.memory, set()).add(item.used)
    better = {id for id, outcomes in used.items() if True in outcomes}
    worse = {id for id, outcomes in used.items() if outcomes == {False}}
    return _places(month, better=better, worse=worse, late=late)


def by_fate(month: Month, *, useful: Callable[[Memory], bool], late: bool = True) -> Places:
    """Memories that the agent was bound to find useful whenever it looked, against the others.

    Who belongs to which group was settled by a hash of the words before the month began: whatever else makes a memory
    rank well is spread over both groups by chance. Only what the first half showed is counted.
    """
    known = {memory.id: memory for each in month.contexts if each.day <= HALF for memory in each.memories.values()}
    better = {id for id, memory in known.items() if useful(memory)}
    return _places(month, better=better, worse=set(known) - better, late=late)


def _places(month: Month, *, better: set[str], worse: set[str], late: bool) -> Places:
    places: dict[str, list[float]] = {}
    for each in month.contexts:
        if (each.day > HALF) is not late:
            continue
        layers: dict[str, list[str]] = {}
        for item in each.injection.items:
            layers.setdefault(item.layer, []).append(item.memory)
        for layer, ids in layers.items():
            if layer not in BY_DATE and len(ids) > 1:
                for place, id in enumerate(ids):
                    places.setdefault(id, []).append(place / (len(ids) - 1))
    means = {id: statistics.mean(found) for id, found in places.items()}
    kinds = {id: memory.kind for each in month.contexts for id, memory in each.memories.items()}
    of_kind: dict[str, list[float]] = {}
    for id, place in means.items():
        of_kind.setdefault(kinds[id], []).append(place)
    own = {kind: statistics.mean(found) for kind, found in of_kind.items()}
    middle = statistics.mean(means.values())
    two = [[means[id] - own[kinds[id]] + middle for id in sorted(group) if id in means] for group in (better, worse)]
    return Places(*(statistics.mean(group) if group else 0.0 for group in two), many=(len(two[0]), len(two[1])))


# -- growth -------------------------------------------------------------------------------------------------------
def growth(nights: list[Night], of: Callable[[Night], float], *, first: int, last: int) -> float:
    """What a day adds, between two nights."""
    by_day = {night.day: of(night) for night in nights}
    return (by_day[last] - by_day[first]) / (last - first)
