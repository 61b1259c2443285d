"""Memories that say the same -> one with the evidence of all, the others superseded by it; none is deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil
from typing import Any

from foreword.audit import MemoryChange, PlanContext
from foreword.extract.merge import ALSO, EARLIER, evidence_of, together
from foreword.extract.text import stem
from foreword.models import Link, Memory, trust_rank
from foreword.terms import GENERIC, MOST_TEXT, STOP_WORDS, broken, split, text_in

ALIKE = 0.9  # of the words of two memories that both hold, from which on they say the same
# What holds for longer is told again in other words. All other kinds are events (what happened once: change,
# observation, summary, handoff) or somebody's own lines (goal, note, project): a little different, they are two.
LASTING = ("decision", "pattern", "failure", "learning", "preference", "correction")
# Where both have one of these, and not the same, they tell of different things in the same words.
DECIDING = ("choice", "solution", "fix", "fixed_by", "instead_of", "symptom", "problem", "category")
MOST_NAMES = 40  # files, functions and tags of a memory that took others in; those keep their own
CODE_GONE = "code_gone"  # in a detail: since when, and how sure the memory was before
SAME_AS, TOLD = "same_as", "told"  # in the detail of one that was merged: into which, and the counts that it gave

# Without these a sentence says the same.
LITTLE = frozenset(
    """a an and are be been i is it its just let ll my our please re s so that the then these this those ve was we were
    you your""".split()  # noqa: SIM905 - lists of so many strings are unreadable
)
# ... and with one of these more it says something else, however many other words are shared.
TURNING = frozenset(
    """after all always before different down except first if in instead last less more never new no none not nothing
    off old on only out over same under unless until up with without""".split()  # noqa: SIM905
)
# Around these, what comes first matters: A instead of B is not B instead of A.
DIRECTED = frozenset(
    """after against before but from instead into not over rather than to until versus vs without""".split()  # noqa: SIM905
)
LONG, LONGER = 60, 70  # words; between the two a text is found both ways, as one of them may be a tenth longer
EVERY = 200  # memories after which others may have their turn


def plan(memories: Sequence[Memory], *, about: PlanContext) -> tuple[MemoryChange, ...]:
    """One merge for each memory that another one says as well; never across scopes, kinds, or to a lower trust."""
    # Whoever took back a merge wants what it joined to stand by itself, whatever else says the same.
    apart = frozenset(id for what, ids in about.taken_back if what == "merge" for id in ids)
    merges = [
        each
        for some in _by_kind(memories)
        for each in _merges(some, apart=apart, pointing=_pointing(memories), about=about)
    ]
    return (*merges, *_told_since(memories, merged={id for each in merges for id in each.about}))


def alike(one: Memory, other: Memory) -> float:
    """How much of their words both hold, from 0 to 1; 0 where a number, a name or a turn tells them apart."""
    return _alike(_words_of(one), _words_of(other))


@dataclass(frozen=True)
class _Words:
    inorder: tuple[str, ...]
    all: frozenset[str]
    title: tuple[str, ...]


def _alike(one: _Words, other: _Words) -> float:
    if one.inorder == other.inorder:
        return 1.0
    both, either = one.all & other.all, one.all | other.all
    if not both or _tells_apart(one.all - both, other.all - both):
        return 0.0
    share = len(both) / len(either)
    if share >= ALIKE and not DIRECTED.isdisjoint(either):
        share = min(share, _in_order(one.inorder, other.inorder))
    return share


def _tells_apart(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether what only one of two holds makes them different: a number or a turn, or a name for another name."""
    if any(word in TURNING or not word.isalpha() for word in (*one, *other)):
        return True
    return any(map(_is_telling, one)) and any(map(_is_telling, other))


def _is_telling(word: str) -> bool:
    return word not in GENERIC and word not in STOP_WORDS


def _in_order(one: Sequence[str], other: Sequence[str]) -> float:
    """How much of two rows of words stands in the same order, from 0 to 1."""
    best = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for place, against in enumerate(other, 1):
            here = best[place]
            best[place] = before + 1 if word == against else max(here, best[place - 1])
            before = here
    return 2 * best[-1] / (len(one) + len(other))


def _words_of(memory: Memory) -> _Words:
    said = memory.body
    if memory.kind not in LASTING:  # of an event all that is told must be the same, and the code that it is about
        told = {name: each for name, each in memory.detail.items() if name not in ("seen_in", ALSO, TOLD, SAME_AS)}
        said = " ".join((said, text_in(told), *sorted(memory.files), *sorted(memory.functions)))
    title = tuple(_words(memory.title))
    inorder = (*title, *_words(said))
    return _Words(inorder, frozenset(inorder), title)


def _words(text: str) -> Iterator[str]:
    plain = text[:MOST_TEXT].replace("n\u2019t", " not").replace("n't", " not").lower()
    found = False
    for token in broken(plain).split():
        if token not in LITTLE:
            found = True
            yield from (stem(token),) if token.isascii() else split(token).split() or (token,)
    if not found and text.strip():
        yield text.strip()  # signs alone, or little words alone


def _by_kind(memories: Sequence[Memory]) -> Iterable[list[Memory]]:
    """Active memories, those of one scope and kind together, each before those that would become a part of it."""
    groups: dict[tuple[str, str, str], list[Memory]] = {}
    for memory in memories:
        if memory.status == "active":
            groups.setdefault((memory.scope, memory.project, memory.kind), []).append(memory)
    return (sorted(groups[name], key=_rank) for name in sorted(groups))


def _rank(memory: Memory) -> tuple[Any, ...]:
    return not memory.pinned, trust_rank(memory.trust), -memory.confirmed, -memory.seen, memory.id


class _Kept:
    """A memory that stays, and what becomes of it while others are merged into it."""

    def __init__(self, memory: Memory, words: _Words) -> None:
        self.now = memory
        self.words = words


def _merges(
    memories: Sequence[Memory],
    *,
    apart: frozenset[str],
    pointing: Mapping[str, Sequence[Memory]],
    about: PlanContext,
) -> list[MemoryChange]:
    words = {}
    for number, memory in enumerate(memories):
        if number % EVERY == 0:
            about.give_way()
        words[memory.id] = _words_of(memory)
    found = _Candidates(words)
    kept: list[_Kept] = []
    memory_changes: list[MemoryChange] = []
    led = {id: list(some) for id, some in pointing.items()}

    def merge(winner: _Kept, loser: _Kept) -> None:
        after = _with(winner.now, loser.now)
        memory_changes.append(_merge(winner.now, after, loser.now, led.get(loser.now.id, ())))
        led.setdefault(winner.now.id, []).extend(after for _, after in memory_changes[-1].changed[1:])
        winner.now = after

    for number, memory in enumerate(memories):
        if number % EVERY == 0:
            about.give_way()
        one = _Kept(memory, words[memory.id])
        near = (each for each in found.near(memory) if _may(each.now, memory, apart=apart))
        best = max(
            ((_alike(each.words, one.words), -place, each) for place, each in enumerate(near)),
            key=lambda each: each[:2],
            default=None,
        )
        if best is not None and best[0] >= ALIKE:
            merge(best[2], one)
        else:
            kept.append(one)
            found.add(one)
    for winner, loser in _titles_alone(kept):
        if _may(winner.now, loser.now, apart=apart):
            merge(winner, loser)
    return memory_changes


class _Candidates:
    """What may be alike, found by its rarest words: of two that share nine tenths, both have some of those."""

    def __init__(self, words: Mapping[str, _Words]) -> None:
        self._words = words
        self._often = Counter(word for each in words.values() for word in each.all)
        self._by_words: dict[tuple[str, ...], list[_Kept]] = {}
        self._by_row: dict[tuple[str, ...], list[_Kept]] = {}

    def add(self, one: _Kept) -> None:
        self._by_row.setdefault(one.words.inorder, []).append(one)
        if one.now.kind in LASTING:
            for rare in self._rare(one.now):
                self._by_words.setdefault(rare, []).append(one)

    def near(self, memory: Memory) -> Iterator[_Kept]:
        words = self._words[memory.id]
        same = self._by_row.get(words.inorder, ())
        yield from same
        if memory.kind not in LASTING:
            return
        seen = {id(each) for each in same}
        least, most = ALIKE * len(words.all), len(words.all) / ALIKE
        for rare in self._rare(memory):
            for each in self._by_words.get(rare, ()):
                if id(each) not in seen and least <= len(each.words.all) <= most:
                    seen.add(id(each))
                    yield each

    def _rare(self, memory: Memory) -> list[tuple[str, ...]]:
        """The rarest words of a short text in pairs, of a long one alone: so many that two alike have one in common."""
        words = sorted(self._words[memory.id].all, key=lambda word: (self._often[word], word))
        fewest = len(words) - ceil(ALIKE * len(words)) + 1
        pairs = combinations(words[: fewest + 1], min(2, len(words))) if len(words) <= LONGER else ()
        return [*pairs, *((word,) for word in words[:fewest] if len(words) >= LONG)]


def _titles_alone(kept: Sequence[_Kept]) -> Iterator[tuple[_Kept, _Kept]]:
    """Where one memory says in its title alone what one other says with a body: the two, the better first."""
    by_title: dict[tuple[str, ...], list[_Kept]] = {}
    for each in kept:
        if each.now.kind in LASTING:
            by_title.setdefault(each.words.title, []).append(each)
    for some in by_title.values():
        bare = [each for each in some if not each.now.body.strip()]
        if len(some) != 2 or len(bare) != 1 or len(some[0].words.title) < 2:
            continue
        # What the winner lacks it gets from an equal trust alone.
        if bare[0] is some[1] or some[0].now.trust == some[1].now.trust:
            yield some[0], some[1]


def _may(winner: Memory, loser: Memory, *, apart: frozenset[str]) -> bool:
    if loser.pinned or trust_rank(loser.trust) < trust_rank(winner.trust):
        return False
    if loser.id in apart:
        return False
    return not any(_differ(winner.detail.get(name), loser.detail.get(name)) for name in DECIDING)


def _differ(one: object, other: object) -> bool:
    if not one or not other or one == other:
        return False
    return tuple(_words(text_in(one))) != tuple(_words(text_in(other)))


def _with(winner: Memory, loser: Memory) -> Memory:
    """*winner* with the evidence of *loser*: it stays as it was put, and its trust stays its own."""
    theirs = evidence_of(loser)
    detail = dict(winner.detail)
    if trust_rank(loser.trust) <= trust_rank(winner.trust):
        more = {name: told for name, told in loser.detail.items() if name not in OWN}
        detail = {**more, **detail}
    taken_in = {ALSO: together(detail.get(ALSO), theirs), "seen_in": together(evidence_of(winner), theirs)}
    body = winner.body if winner.body.strip() or loser.trust != winner.trust else loser.body
    return replace(
        winner,
        body=body,
        tags=_union(winner.tags, loser.tags),
        files=_union(winner.files, loser.files),
        functions=_union(winner.functions, loser.functions),
        seen=sum(taken_in["seen_in"].values()),
        created=min(winner.created, loser.created),
        confirmed=max(winner.confirmed, loser.confirmed),
        confidence=winner.confidence if CODE_GONE in winner.detail else max(winner.confidence, sure(loser)),
        detail={**detail, **taken_in},
    )


OWN = ("seen_in", ALSO, TOLD, SAME_AS, CODE_GONE)  # of a detail: what is told of this memory and no other


def sure(memory: Memory) -> float:
    """How sure a memory is, whether or not its code is gone."""
    told = memory.detail.get(CODE_GONE)
    before = told.get("confidence") if isinstance(told, Mapping) else None
    return before if isinstance(before, float) else memory.confidence


def _union(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))[: max(MOST_NAMES, len(one))]


def _merge(winner: Memory, after: Memory, loser: Memory, pointing: Sequence[Memory]) -> MemoryChange:
    aside = replace(
        loser,
        status="superseded",
        superseded_by=winner.id,
        detail={**loser.detail, SAME_AS: winner.id, TOLD: evidence_of(loser)},
    )
    # What was merged into the loser before says the same as the winner now.
    led = [
        (each, replace(each, superseded_by=winner.id, detail={**each.detail, SAME_AS: winner.id})) for each in pointing
    ]
    return MemoryChange(
        "merge",
        f"{loser.id} says the same as {winner.id}",
        changed=((winner, after), (loser, aside), *led),
        links=tuple(Link(winner.id, "supersedes", each.id) for each in (loser, *pointing)),
        unlinked=tuple(Link(loser.id, "supersedes", each.id) for each in pointing),
    )


def _pointing(memories: Sequence[Memory]) -> dict[str, list[Memory]]:
    """For each memory those that were merged into it."""
    found: dict[str, list[Memory]] = {}
    for memory in memories:
        if _is_merged(memory):
            found.setdefault(memory.superseded_by, []).append(memory)
    return found


def _is_merged(memory: Memory) -> bool:
    return memory.status == "superseded" and memory.superseded_by == memory.detail.get(SAME_AS, "-")


def _told_since(memories: Sequence[Memory], *, merged: set[str]) -> Iterator[MemoryChange]:
    """What sessions saw again of a memory after it was merged counts for the one that it was merged into."""
    known = {memory.id: memory for memory in memories}
    for memory in memories:
        winner = known.get(memory.superseded_by)
        if winner is None or not _is_merged(memory) or {memory.id, winner.id} & merged:
            continue
        if more := _more(evidence_of(memory), than=memory.detail.get(TOLD)):
            merged |= {memory.id, winner.id}  # one at a time: the next is seen in the next round
            yield _confirm(winner, memory, more)


def _more(now: Mapping[str, int], *, than: object) -> dict[str, int]:
    """What is counted beyond what was told; sessions that are only counted elsewhere now are nothing new."""
    told = together(than, {})
    left = sum(now.values()) - sum(told.values())
    more = {}
    for session in sorted(now, key=lambda session: session == EARLIER):
        gained = min(left, now[session] - told.get(session, 0))
        if gained > 0:
            more[session] = gained
            left -= gained
    return more


def _confirm(winner: Memory, again: Memory, more: Mapping[str, int]) -> MemoryChange:
    seen_in = together(evidence_of(winner), more)
    after = replace(
        winner,
        seen=sum(seen_in.values()),
        confirmed=max(winner.confirmed, again.confirmed),
        detail={**winner.detail, ALSO: together(winner.detail.get(ALSO), more), "seen_in": seen_in},
    )
    told = replace(again, detail={**again.detail, TOLD: evidence_of(again)})
    return MemoryChange("confirm", f"{again.id} was seen again", changed=((winner, after), (again, told)))
