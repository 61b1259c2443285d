"""Search each source for a query and merge the hits into one list, best first. All weights live here.

score = match x recency x importance x reinforcement x scope x task
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from foreword.errors import ForewordError
from foreword.models import Hit, Memory, Near, Query, Ranked
from foreword.terms import GENERIC, STOP_WORDS, TAIL, plain, root, text_in

DAY = 86_400.0

# By kind: how much a memory matters when everything else is equal, and the days after which it counts half.
_KINDS = {
    "pattern": (1.0, 730.0),
    "preference": (1.0, 1460.0),
    "correction": (0.95, 730.0),
    "decision": (0.9, 1095.0),
    "failure": (0.8, 120.0),
    "learning": (0.8, 365.0),
    "handoff": (0.7, 14.0),
    "turn": (0.7, 60.0),
    "goal": (0.7, 180.0),
    "summary": (0.6, 60.0),
    "project": (0.6, 730.0),
    "change": (0.5, 30.0),
    "observation": (0.5, 42.0),
    "note": (0.3, 60.0),
}
IMPORTANCE = {kind: importance for kind, (importance, _) in _KINDS.items()}
HALF_LIFE = {kind: days for kind, (_, days) in _KINDS.items()}

SCOPE_AT_START = {"project": 1.0, "language": 0.7, "universal": 0.4}
WORDED = ("prompt", "question")  # the moments that have words
CERTAIN = 0.5  # learnings below this confidence never come by themselves

# By task, what is worth more or less than usual: a small factor.
TASKS = {
    "debugging": {"failure": 1.2, "pattern": 1.1, "observation": 1.05, "goal": 0.9},
    "architecture": {"decision": 1.2, "pattern": 1.1, "learning": 1.1, "project": 1.1, "failure": 0.9},
    "documentation": {"decision": 1.1, "summary": 1.1, "change": 1.05, "failure": 0.85},
    "coding": {"change": 1.1, "pattern": 1.1, "preference": 1.05, "correction": 1.05},
}

# With terms the topic decides: there age and kind count by a root of themselves.
RECENCY_FOR_WORDS, RECENCY_OF_VOTERS = 0.08, 0.3  # code moves on, so old hits have less of a vote about it
IMPORTANCE_FOR_WORDS = 0.5
# Of the best score: what is further below is not worth its tokens. 0.4 would save a fifth of them, and lose 2 % of what
# is relevant.
FAR = 0.25

# ---- reinforcement: from 1 - REINFORCED to 1 + REINFORCED
REINFORCED = 0.4  # 2.3 times from never to always used; a decision weighs 1.5 times a summary, a rule 3.3 times a note
IGNORED = 0.25  # one use outweighs four times for nothing: most of what is shown is for another day
DOUBT = 2.0  # uses that are as good as none: one alone gives a third of the way

# ---- match: how well a memory matches the query
IN_TITLE, IN_BODY, IN_CODE = 1.3, 0.6, 1.0  # what one occurrence counts
HELD = 0.5  # the index found it, but only as a part of another word
ENOUGH = 1.5  # occurrences; twice as many do not count twice
LONG, LONGER = 240, 0.1  # in a text of so many times these characters, so much more is enough
WHOLE_TITLE, SHORT = 1.2, 4  # the question names the whole of a title of so many words
PAIR = 0.3  # two words side by side, beside what each of them counts
SYNONYM, SYNONYM_ALONE = 0.1, 0.8  # a synonym; and where nothing holds the word itself
# ... what stood around it in its session
BESIDE, NEARBY = 0.25, 0.2  # a term of the memory next to it, and of one further
AFTER_QUESTION = 0.64  # the one before asked a question: this is the answer
QUESTION_FACTOR, FOLLOWS_QUESTION = 0.91, 0.7  # a question is no answer, and what follows it does not ask the same
NEIGHBOURS = 3.0  # how slowly its own and its neighbours' words add up
SESSION = 0.15  # of the best match, to the session that holds most of the query; LoCoMo answers 0.02 more
MEANING = 0.15  # share of the vectors, where there are any: by themselves they never make anything sure
# ... and the code it is about
STRUCTURE = 2.0  # weight of the votes beside the words
VOTERS = 60  # hits whose files and functions vote
UNITS = 32  # files and functions that are looked up; 24 lose 1 % of nDCG, 40 win nothing
FUNCTION = 0.5  # its vote beside a file's: many changes touch a big function in passing
NAMED, TOUCHED = 1.0, 0.1  # the vote of a file that the prompt names, and of one that was touched a moment ago

# ---- how sure: none of it changes the order of one question's answers, only whether there are any
MORE = 16.0  # added to a full match, as if three rare words more were in it: a short question is soon met
TOPICS, EVERYDAY = (0.15, 0.6, 0.9, 1.0), 0.05  # by how many words the best hit holds; every project's count this much
COHERENT = 0.5  # what is lost where the best hits have no code in common
CHANCE, SMALL = 9.0, 150  # of many memories one always matches: by the logarithm of their number, from this on
SURELY_NAMED = 0.5  # at least, where the prompt names code that is remembered


class Searchable(Protocol):
    def by_words(self, query: Query) -> Sequence[Hit]: ...
    def by_code(self, query: Query, votes: Mapping[str, float]) -> Sequence[Hit]: ...
    def holders(self, terms: Sequence[str], scopes: Sequence[str]) -> tuple[Mapping[str, int], int]: ...
    def by_recency(self, query: Query) -> Sequence[Hit]: ...
    def by_vector(self, query: Query) -> Sequence[Hit]: ...


def ranked_search(
    store: Searchable, query: Query, *, now: float, trigger: str, expired: Callable[[], bool] = lambda: False
) -> tuple[tuple[Ranked, ...], tuple[str, ...]]:
    """Return everything the query finds, best first, and what went wrong on the way; the threshold is the caller's.

    Words come first; the files and functions of their hits vote, and what else names those follows. Meaning is asked
    where the question has a vector. Without terms recency answers. A source that fails costs only itself.
    """
    found: dict[str, Sequence[Hit]] = {}
    wrong: list[str] = []

    def ask(source: str, question: Callable[[], Sequence[Hit]]) -> None:
        try:
            found[source] = question()
        except ForewordError as exc:
            wrong.append(f"{source}: {exc}; {exc.hint}")

    if query.terms:
        ask("words", lambda: weighed(store.by_words(query), query))
        if query.vector is not None:
            ask("meaning", lambda: store.by_vector(query))
        late = query.plain or expired()  # then the words alone are an answer
        if not late and (weights := votes(found.get("words", ()), query, now=now)):
            ask("structure", lambda: store.by_code(query, weights))
    else:
        ask("recency", lambda: store.by_recency(query))
    return rank(found, query=query, now=now, trigger=trigger), tuple(wrong)


def rank(found: Mapping[str, Sequence[Hit]], *, query: Query, now: float, trigger: str) -> tuple[Ranked, ...]:
    """Return one list out of all sources, best first."""
    matches = _matches(found, query)
    memories = {hit.memory.id: hit.memory for hits in found.values() for hit in hits}.values()
    ranked = (_weigh(each, matches.get(each.id, 1.0), task=query.task, now=now, trigger=trigger) for each in memories)
    return tuple(sorted(ranked, key=lambda each: (-each.score, -each.memory.created, each.memory.id)))


def min_score(best: float, *, threshold: float) -> float:
    """Return the lowest score that is shown for words: what is not far below the *best*, if that is good enough."""
    return FAR * best if best >= threshold else threshold


def weighed(hits: Sequence[Hit], query: Query) -> tuple[Hit, ...]:
    """Return the hits of words with what each is worth, from what it says, what stood around it, and its session."""
    rarities = {term: rarity for hit in hits for term, rarity in hit.held.items()}
    roots = {term: root(term) for term in rarities if " " not in term}
    meant = {other: SYNONYM if term in rarities else SYNONYM_ALONE for other, term in query.synonyms.items()}
    per_hit = [_term_strengths(hit, roots, meant) for hit in hits]
    scores = _with_sessions(hits, _with_neighbours(hits, per_hit, rarities))
    return tuple(
        hit._replace(score=score, strength=sum(strengths.values()))
        for hit, score, strengths in zip(hits, scores, per_hit, strict=True)
    )


def votes(hits: Sequence[Hit], query: Query, *, now: float) -> dict[str, float]:
    """Return the files and functions that a question is about: of the best hits, named, and touched a moment ago."""
    weights = {**dict.fromkeys(query.touched, TOUCHED), **dict.fromkeys((*query.files, *query.functions), NAMED)}
    aged = [(hit.score * _recency(hit.memory, now) ** RECENCY_OF_VOTERS, hit.memory) for hit in hits]
    aged = sorted(aged, key=lambda each: -each[0])[:VOTERS]
    for score, memory in aged if aged and aged[0][0] > 0 else ():
        named = {**dict.fromkeys(memory.functions, FUNCTION), **dict.fromkeys(memory.files, 1.0)}
        voice = (score / aged[0][0]) ** 2 / max(1, len(named))
        for name, weight in named.items():
            weights[name] = weights.get(name, 0.0) + voice * weight
    chosen = sorted(weights, key=lambda name: (-weights[name], name))[:UNITS]
    return {name: weights[name] for name in chosen}


def _matches(found: Mapping[str, Sequence[Hit]], query: Query) -> dict[str, float]:
    """Return the match of each memory by id, from 0 to 1; empty without terms."""
    words = {hit.memory.id: hit.score for hit in found.get("words", ())}
    near = {hit.memory.id: hit.score for hit in found.get("meaning", ())}
    low, high = min(near.values(), default=0.0), max(near.values(), default=0.0)
    # From 0 for the last to 1 for the best.
    meant = {id: (score - low) / (high - low) if high > low else 1.0 for id, score in near.items()}
    structure = {hit.memory.id: hit.score for hit in found.get("structure", ())}
    most, most_votes = max(words.values(), default=0.0), max(structure.values(), default=0.0)
    surely = _confidence(found["words"], query) if most > 0 else 0.0
    named = frozenset((*query.files, *query.functions))
    if any(not named.isdisjoint(hit.held) for hit in found.get("structure", ())):
        surely = max(surely, SURELY_NAMED)
    # Votes say little where most memories are about the same code.
    alike = sum(1 for votes in structure.values() if votes > most_votes / 2)
    weight = STRUCTURE * (1 - alike / max([alike, 1, *(hit.size for hit in found.get("structure", ()))]))
    matches = {}
    searched_for = (hit for source, hits in found.items() if source != "recency" for hit in hits)
    for memory in {hit.memory.id: hit.memory for hit in searched_for}.values():
        match = words.get(memory.id, 0.0) / most if most > 0 else 0.0
        if meant:
            match = (1 - MEANING) * match + MEANING * meant.get(memory.id, 0.0)
        if most_votes > 0 and (memory.files or memory.functions):  # what names no code is judged by its words alone
            match = (match + weight * structure.get(memory.id, 0.0) / most_votes) / (1 + weight)
        matches[memory.id] = surely * match
    return matches


def _confidence(hits: Sequence[Hit], query: Query) -> float:
    """Return how surely the question is about what is remembered here, from 0 to 1, by the best hits."""
    best = max(hits, key=lambda hit: (hit.score, hit.memory.id))
    topics = sum(EVERYDAY if query.synonyms.get(term, term) in GENERIC else 1 for term in best.held if " " not in term)
    certainty = max(hit.strength for hit in hits) / (best.full + MORE)
    steps = (*TOPICS, TOPICS[-1])
    low = min(int(topics), len(TOPICS) - 1)  # everyday words make a part of a step
    certainty *= steps[low] + (topics - low) * (steps[low + 1] - steps[low])
    certainty *= 1 - COHERENT + COHERENT * _coherence(hits)
    certainty *= CHANCE / math.log(max(SMALL, best.size))
    return min(1.0, certainty)


def _coherence(hits: Sequence[Hit]) -> float:
    """Return the share of the ten best hits about the same code as another; a half where fewer than two name code."""
    coded = [
        (hit.score, {*hit.memory.files, *hit.memory.functions})
        for hit in sorted(hits, key=lambda hit: -hit.score)[:10]
        if hit.memory.files or hit.memory.functions
    ]
    if len(coded) < 2:
        return 0.5
    named = Counter(name for _, names in coded for name in names)
    shared = sum(score for score, names in coded if any(named[name] > 1 for name in names))
    return shared / (sum(score for score, _ in coded) or 1)


def _term_strengths(hit: Hit, roots: Mapping[str, str], meant: Mapping[str, float]) -> dict[str, float]:
    """Return for each term that a memory holds its rarity, by how often and where the memory says it."""
    memory = hit.memory
    title = plain(memory.title)
    body = plain(f"{memory.body} {text_in(memory.detail)}" if memory.detail else memory.body)
    code = plain(" ".join((*memory.files, *memory.functions)))
    enough = ENOUGH * (1 - LONGER + LONGER * (len(title) + len(body) + len(code)) / LONG)
    titled = [word for word in title.split() if word not in STOP_WORDS]
    whole = WHOLE_TITLE if 0 < len(titled) <= SHORT and all(word in hit.held for word in titled) else 1.0
    strengths = {term: PAIR * rarity * whole for term, rarity in hit.held.items()}
    for term in hit.held.keys() & roots.keys():
        form = roots[term]
        often = IN_TITLE * title.count(form) + IN_BODY * body.count(form) + IN_CODE * code.count(form)
        often = max(HELD, often)
        frequency = often * (1 + ENOUGH) / (often + enough)
        strengths[term] = hit.held[term] * frequency * whole * meant.get(term, 1.0)
    return strengths


def _with_neighbours(
    hits: Sequence[Hit], per_hit: Sequence[Mapping[str, float]], rarities: Mapping[str, float]
) -> list[float]:
    """Return what each hit holds, together with what stood around it in its session."""
    scores = []
    for hit, strengths in zip(hits, per_hit, strict=True):
        if not hit.memory.session:
            scores.append(sum(strengths.values()))
            continue
        asks = "?" in hit.memory.body[-TAIL:]
        around = _around(hit.near, asks=asks)
        total = 0.0
        for term, rarity in rarities.items():
            if term in strengths or term in around:
                share = strengths.get(term, 0.0) / rarity + around.get(term, 0.0)
                total += rarity * share * (1 + NEIGHBOURS) / (share + NEIGHBOURS)
        scores.append(total * (QUESTION_FACTOR if asks else 1))
    return scores


def _around(near: Sequence[Near], *, asks: bool) -> dict[str, float]:
    """Return for each term that the neighbours of a memory hold what it counts for the memory."""
    around: dict[str, float] = {}
    for each in near:
        if each.gap == -1 and each.asks:
            weight = AFTER_QUESTION
        elif each.gap == 1 and asks:
            weight = FOLLOWS_QUESTION * BESIDE
        else:
            weight = BESIDE if abs(each.gap) == 1 else NEARBY
        for term in each.held:
            around[term] = around.get(term, 0.0) + weight * (PAIR if " " in term else 1)
    return around


def _with_sessions(hits: Sequence[Hit], scores: list[float]) -> list[float]:
    """Add a share of the best score to the hits of a session, by how much of the query the session holds."""
    sessions: dict[str, dict[str, float]] = {}
    for hit in hits:
        if hit.memory.session:
            sessions.setdefault(hit.memory.session, {}).update(hit.held)
    full = {session: sum(held.values()) for session, held in sessions.items()}
    share = SESSION * max(scores, default=0.0) / (max(full.values(), default=0.0) or 1.0)
    return [own + share * full.get(hit.memory.session, 0.0) for hit, own in zip(hits, scores, strict=True)]


def _weigh(memory: Memory, match: float, *, task: str, now: float, trigger: str) -> Ranked:
    worded = trigger in WORDED
    recency = _recency(memory, now) ** (RECENCY_FOR_WORDS if worded else 1)
    importance = (IMPORTANCE.get(memory.kind, 0.3) ** (IMPORTANCE_FOR_WORDS if worded else 1)) * memory.confidence
    # It grows with use and sinks with being shown for nothing.
    for_nothing = IGNORED * memory.ignored
    used = 1.0 if memory.pinned else (memory.used - for_nothing) / (memory.used + for_nothing + DOUBT)
    # Recent sessions are the last ones, whatever was made of them.
    reinforcement = 1.0 if memory.kind == "summary" and not worded else round(1 + REINFORCED * used, 4)
    # A scope that was lost is nobody's.
    scope = SCOPE_AT_START.get(memory.scope.partition(":")[0], 1.0) if trigger == "session_start" else 1.0
    by_task = TASKS.get(task, {}).get(memory.kind, 1.0)
    why = {"match": round(match, 4), "recency": round(recency, 4), "importance": round(importance, 4)}
    why |= {"reinforcement": reinforcement, "scope": scope, "task": by_task}
    score = match * recency * importance * reinforcement * scope * by_task
    return Ranked(memory, round(score, 6), why)


def _recency(memory: Memory, now: float) -> float:
    if memory.pinned:
        return 1.0  # what somebody pinned does not fade
    # A clock that jumped back must not make a memory count more than a fresh one.
    age = max(0.0, now - max(memory.created, memory.confirmed))
    return 1 / (1 + age / (HALF_LIFE.get(memory.kind, 60.0) * DAY))
