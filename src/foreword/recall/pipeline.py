"""Moment -> query -> candidates -> rank -> fit -> render: the text in front of the prompt, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TypeVar

from foreword.config import Settings
from foreword.errors import ForewordError
from foreword.hosts import codex
from foreword.layout import LayerRule, Recipe
from foreword.recall import render
from foreword.recall.budget import Fitted, Layer, Line, fit
from foreword.recall.query import query_of
from foreword.recall.rank import CERTAIN, WORDED, rank, votes, weighed, worth_saying
from foreword.recall.search import Searchable, search
from foreword.tokens import count, family_of
from foreword.types import (
    EMPTY,
    GOING_ON,
    POSTINGS,
    Cap,
    Injection,
    Item,
    Memory,
    Moment,
    Query,
    Ranked,
    Recalled,
    Skipped,
    Vector,
)

T = TypeVar("T")
Looking = Callable[..., tuple[tuple[Ranked, ...], tuple[str, ...]]]
Fitting = Callable[..., Fitted]

CANDIDATES = 2  # times as many as a layer shows are weighed
FEW = 30  # candidates at least
POOL = 60  # where words are asked for and code votes; with 40, LoCoMo loses half a percent of R@10, and 90 win nothing
MOST_CANDIDATES = 400
MOST_RECORDED = 32  # terms of a long prompt that its record names: it must not become the prompt
QUESTION = "question"  # the source of a start that was asked for
GIVEN = "what a session begins with was given already in this context window; ask for something, or use memory_search"
NOTHING = "nothing fits the moment"
TOLD = "what fits was given already in this context window, or said in it; memory_search finds it again"
LATE = "the deadline came before anything was ready"
STANDS_OUT = 1.5  # the best is shown in full when it has so many times the score of the second
MOST_GOALS = 5
GOALS = 60  # that are looked through for so many open ones
MOST_FACTS = 2
# Where a project was left is worth knowing however long ago that was; no threshold hides these.
LASTING = ("continuity", "sessions")
FACT_WORDS = frozenset(("contract", "contracts", "dependency", "dependencies", "downstream", "upstream"))
GOAL_WORDS = frozenset(("goal", "goals", "mission", "milestone", "milestones", "objective", "objectives", "roadmap"))


def look(
    store: Searchable, query: Query, *, now: float, moment: str, expired: Callable[[], bool] = lambda: False
) -> tuple[tuple[Ranked, ...], tuple[str, ...]]:
    """Everything the query finds, best first, and what went wrong on the way; the threshold is the caller's."""
    found, wrong = search(
        store,
        query,
        weighed=lambda hits: weighed(hits, query),
        votes=lambda hits: {} if expired() else votes(hits, query, now=now),  # late: the words alone are an answer
    )
    return rank(found, query=query, now=now, moment=moment), wrong


def recall(
    store: Searchable,
    moment: Moment,
    *,
    recipe: Recipe,
    threshold: float,
    now: float,
    shown: Callable[[], frozenset[str]] = frozenset,
    begun: Callable[[], float] = lambda: 0.0,
    spent: Callable[[], Mapping[str, int]] = dict,
    synonyms: Mapping[str, Sequence[str]] = EMPTY,
    expired: Callable[[], bool] = lambda: False,
    most_terms: int = 10,
    postings: int = POSTINGS,
    family: str = "auto",
    vector: Vector | None = None,
    away: bool = False,
    cap: Cap | None = None,
    look: Looking = look,
    fit: Fitting = fit,
) -> Recalled | Skipped:
    """What is worth saying at *moment*, within its budget, its window's and *cap*; one failing layer costs itself.

    Whoever wants to know what was weighed and did not come hands in a *look* and a *fit* that listen.
    """
    started = perf_counter()
    problems: list[str] = []
    asked = replace(
        query_of(moment, synonyms=synonyms), most_terms=most_terms, postings=postings, vector=vector, plain=away
    )
    silence = Skipped(why=NOTHING, terms=asked.terms[:MOST_RECORDED], files=asked.files[:MOST_RECORDED])
    goes_on = _goes_on(moment)
    used = _or_nothing(spent, EMPTY, problems) if goes_on and moment.session else EMPTY
    if moment.source == QUESTION and used.get("session_start"):
        return replace(silence, why=GIVEN, problems=tuple(problems))
    wanted = moment.budget or recipe.budget
    budget = min(wanted, _left(moment, recipe, used)) if moment.session else wanted
    if budget < min(wanted, 1):
        return replace(silence, why=_used_up(moment, used), problems=tuple(problems))
    known: frozenset[str] = _or_nothing(shown, frozenset(), problems) if goes_on else frozenset()
    # What did not fit the beginning is not new when the session is resumed.
    since = _or_nothing(begun, 0.0, problems) if moment.session and moment.source in GOING_ON else 0.0
    layers: list[Layer] = []
    skipped: dict[str, str] = {}
    taken: set[str] = set()
    told = False  # whether something that fits is in the window already
    for written in recipe.layers:
        rule = replace(written, limit=written.limit_away) if away and written.limit_away else written
        if expired():
            skipped[rule.name] = "deadline"
            continue
        try:
            ranked, in_full, wrong = _candidates(
                store, moment, asked, rule, threshold=threshold, now=now, known=len(known), expired=expired, look=look
            )
            problems += [f"{rule.name}: {each}" for each in wrong]
            told = told or any(each.memory.id in known for each in ranked)
            fresh = [
                each
                for each in ranked
                if each.memory.id not in known
                and each.memory.id not in taken
                and max(each.memory.created, each.memory.confirmed) > since
            ]
            layers.append(_layer(moment, rule, fresh, now=now, budget=budget, in_full=in_full))
            # A session's codes say where things stand; its line among the sessions says what it was about.
            taken.update(
                each.memory.id for each in ranked if (rule.name, each.memory.kind) != ("continuity", "summary")
            )
        except Exception as exc:  # noqa: BLE001 - memory must never break the agent, nor one layer the others
            skipped[rule.name] = _traced(exc, rule.name, problems)
    family = family_of(moment.model) if family == "auto" else family
    fitted = _told_once(
        layers,
        lambda some: _fitted(
            some, moment, fit, limit=budget, family=family, cap=cap, skipped=skipped, problems=problems
        ),
        worded=moment.name in WORDED,
    )
    skipped.update(fitted.skipped)
    ms = (perf_counter() - started) * 1000
    if not fitted.text:
        cut = budget < wanted and "does not fit" in skipped.values()
        late = set(skipped.values()) == {"deadline"}
        why = _used_up(moment, used) if cut else LATE if late else TOLD if told else NOTHING
        return replace(silence, why=why, budget=budget, build_ms=ms, skipped=skipped, problems=tuple(problems))
    items = tuple(
        Item(
            memory=line.ranked.memory.id,
            layer=layer.name,
            score=line.ranked.score,
            tokens=count(line.text, family=family),
            why=line.ranked.why,
        )
        for layer in fitted.layers
        for line in layer.lines
    )
    cost = {layer.name: sum(item.tokens for item in items if item.layer == layer.name) for layer in fitted.layers}
    return Recalled(
        text=fitted.text,
        tokens=fitted.tokens,
        budget=budget,
        layers=cost,
        skipped=skipped,
        items=items,
        build_ms=(perf_counter() - started) * 1000,
        problems=tuple(problems),
        terms=silence.terms,
        files=silence.files,
    )


def meant(moment: Moment) -> Moment:
    """The moment that is answered: a question without words asks for what a session begins with."""
    asks_for_all = moment.name == "question" and not moment.prompt.strip()
    return replace(moment, name="session_start", source=QUESTION) if asks_for_all else moment


def injection_of(moment: Moment, got: Recalled | Skipped, *, id: str, at: float, away: bool = False) -> Injection:
    """What is recorded of an answer; a silence is one that cost nothing."""
    found = got if isinstance(got, Recalled) else None
    return Injection(
        id=id,
        moment=moment.name,
        session=moment.session,
        project=moment.project.key,
        host=moment.host,
        at=at,
        tokens=found.tokens if found else 0,
        budget=got.budget,
        build_ms=round(got.build_ms, 3),
        layers=found.layers if found else EMPTY,
        skipped=got.skipped,
        items=found.items if found else (),
        source=moment.source,
        form=moment.form,
        terms=got.terms,
        files=got.files,
        away=away,
        text=found.text if found else "",
    )


def left_open(memories: Sequence[Memory]) -> list[Memory]:
    """Handoffs, and of the sessions that came after the last of them those that left something open.

    What a person handed over closes what sessions before it handed over by themselves.
    """
    handoffs = [memory for memory in memories if memory.kind == "handoff"]
    handed_over = max((memory.created for memory in handoffs), default=0.0)
    by_hand = max((memory.created for memory in handoffs if memory.trust == "user"), default=0.0)
    return [
        memory
        for memory in memories
        if (memory.created >= handed_over and render.has_codes(memory))
        or (memory.kind == "handoff" and (memory.trust == "user" or memory.created >= by_hand))
    ]


def retells(memory: Memory, failure: Memory) -> bool:
    """Whether what was promoted from a failure says what that says; that no fix is known says nothing of a fix."""
    if memory.kind == "pattern":
        told = memory.detail.get("from")
        return isinstance(told, list | tuple) and failure.uid in told
    same = memory.kind == "learning" and memory.detail.get("failure") == failure.uid
    return same and not failure.detail.get("fixed_by")


def _goes_on(moment: Moment) -> bool:
    """Whether the context window holds what was shown before: a start, a clear and a compaction empty it."""
    goes_on = ("", QUESTION, *GOING_ON)  # no source: somebody asks in the middle of a window
    return moment.name in WORDED or (moment.name == "session_start" and moment.source in goes_on)


def _left(moment: Moment, recipe: Recipe, used: Mapping[str, int]) -> int:
    """What the ledger of the window leaves for this moment."""
    both = used.get("session_start", 0) + used.get("question", 0)
    return max(0, min(recipe.total - used.get(moment.name, 0), recipe.together - both))


def _used_up(moment: Moment, used: Mapping[str, int]) -> str:
    tokens = sum(
        used.get(name, 0) for name in (("prompt",) if moment.name == "prompt" else ("session_start", "question"))
    )
    return f"the budget of this context window is used ({tokens} tokens were given); memory_search is free"


def _or_nothing(ask: Callable[[], T], nothing: T, problems: list[str]) -> T:
    """What the store says of the window; where it cannot, something may be said twice, which is better than silence."""
    try:
        return ask()
    except Exception as exc:  # noqa: BLE001
        _traced(exc, "window", problems)
        return nothing


def _traced(exc: Exception, where: str, problems: list[str]) -> str:
    """What failed, in a line for the block's record and one for whoever must be told."""
    if isinstance(exc, ForewordError):
        problems.append(f"{where}: {exc}; {exc.hint}")
        return str(exc)
    problems.append(f"{where}: {type(exc).__name__}: {exc}")
    return f"{type(exc).__name__}: {exc}"


def _told_once(layers: Sequence[Layer], fitted: Callable[[Sequence[Layer]], Fitted], *, worded: bool) -> Fitted:
    """What fits of the layers, without the failures that something promoted from them tells there in the same words.

    Who asks in words may want the failure itself, and what its own session came to is told as such.
    """
    every = [line.ranked.memory for layer in layers for line in layer.lines]
    retold = {
        failure.id: each.id
        for layer in (() if worded else layers)
        for failure in (line.ranked.memory for line in layer.lines)
        if failure.kind == "failure" and layer.name != "session"
        for each in every
        if retells(each, failure)
    }
    out = set(retold)
    while True:
        got = fitted([replace(each, lines=tuple(_others(each, out))) for each in layers] if out else layers)
        said = {line.ranked.memory.id for layer in got.layers for line in layer.lines}
        lost = [id for id in out if id in retold and retold[id] not in said]
        if not lost:
            return got
        out = out.difference(lost).union(retold[id] for id in lost)  # what has no room leaves its failure the place


def _others(layer: Layer, out: set[str]) -> list[Line]:
    return [line for line in layer.lines if line.ranked.memory.id not in out]


def _fitted(
    layers: Sequence[Layer],
    moment: Moment,
    fit: Fitting,
    *,
    limit: int,
    family: str,
    cap: Cap | None,
    skipped: dict[str, str],
    problems: list[str],
) -> Fitted:
    """The layers that fit, as one text; where that fails, without those that fail alone."""

    def fit_all(some: Sequence[Layer]) -> Fitted:
        return fit(
            some,
            limit=limit,
            render=lambda chosen: render.block(
                chosen, moment=moment.name, project=moment.project.name, form=moment.form
            ),
            count=lambda text: count(text, family=family),
            cap=cap,
        )

    try:
        return fit_all(layers)
    except Exception as exc:  # noqa: BLE001
        _traced(exc, "block", problems)
    whole = []
    for layer in layers:
        try:
            fit_all([layer])
            whole.append(layer)
        except Exception as exc:  # noqa: BLE001
            skipped[layer.name] = _traced(exc, layer.name, problems)
    return fit_all(whole if len(whole) < len(layers) else ())


def _candidates(
    store: Searchable,
    moment: Moment,
    asked: Query,
    rule: LayerRule,
    *,
    threshold: float,
    now: float,
    known: int,
    expired: Callable[[], bool],
    look: Looking,
) -> tuple[list[Ranked], str, tuple[str, ...]]:
    """What a layer may say, best first; the id of the one that stands out; and what went wrong on the way."""
    worded = moment.name in WORDED
    if worded and not asked.terms:
        return [], "", ()  # a prompt without a topic is answered with silence
    own = rule.name == "session"  # what this session itself established
    if own and not moment.session:
        return [], "", ()
    query = replace(
        asked,
        terms=asked.terms if worded else (),
        kinds=rule.kinds,
        session=moment.session if own else "",
        limit=_enough(rule, voting=worded and not asked.plain, known=known),
    )
    ranked, wrong = look(store, query, now=now, moment=moment.name, expired=expired)
    if rule.name not in LASTING:
        ranked = tuple(worth_saying(ranked, threshold=threshold, moment=moment.name))
    in_full = _standing_out(ranked)
    if worded:
        asked_for, more_wrong = _asked_for(store, query, now=now, moment=moment.name)
        told = [each.memory.id for each in asked_for]
        ranked = (*asked_for, *(each for each in ranked if each.memory.id not in told))
        wrong = (*wrong, *more_wrong)
    if wrong and not ranked:
        raise ForewordError("; ".join(wrong), hint="run `foreword doctor`")
    if rule.name == "continuity":
        open_ones = left_open([each.memory for each in ranked])
        ranked = tuple(each for each in ranked if each.memory in open_ones)
    if rule.name == "sessions":  # the last ones, the last first, whatever was made of them
        ranked = tuple(sorted(ranked, key=lambda each: (-each.memory.created, each.memory.id)))
    if rule.name == "rules":
        ranked = tuple(each for each in ranked if each.memory.trust == "user")  # nobody else makes one
    said = [each for each in ranked if each.memory.kind != "learning" or each.memory.confidence >= CERTAIN]
    return said, in_full, wrong


def _asked_for(
    store: Searchable, query: Query, *, now: float, moment: str
) -> tuple[tuple[Ranked, ...], tuple[str, ...]]:
    """Open goals and the facts of the project where the prompt speaks of such, whatever words they are put in."""
    found: list[Ranked] = []
    wrong: tuple[str, ...] = ()
    for kind, words, pick in (("goal", GOAL_WORDS, _open_goals), ("project", FACT_WORDS, _facts)):
        if not words.isdisjoint(query.terms):
            named, more = look(store, replace(query, terms=(), kinds=(kind,), limit=GOALS), now=now, moment=moment)
            found += pick(named)
            wrong += more
    return tuple(found), wrong


def _open_goals(ranked: Sequence[Ranked]) -> list[Ranked]:
    """The best goals that are not done, each behind those that it is part of."""
    left = {each.memory.id: each for each in ranked if each.memory.detail.get("status") != "done"}
    ordered: list[Ranked] = []
    while left:
        way: list[Ranked] = []
        id = next(iter(left))
        while id in left:
            way.append(left.pop(id))
            id = str(way[-1].memory.detail.get("parent"))
        ordered += reversed(way)
    return ordered[:MOST_GOALS]


def _facts(ranked: Sequence[Ranked]) -> list[Ranked]:
    """What the user said the project is; what its files say of it is found by its words."""
    return [each for each in ranked if render.has_facts(each.memory)][:MOST_FACTS]


def _enough(rule: LayerRule, *, voting: bool, known: int) -> int:
    """So many candidates that neither the code they share nor what is known already is lost to the best words."""
    return min(max(POOL if voting else FEW, rule.limit * CANDIDATES) + known, MOST_CANDIDATES)


def _standing_out(ranked: Sequence[Ranked]) -> str:
    """The id of the best, where it clearly is; also what was shown already counts: a leftover does not stand out."""
    alone = ranked and (len(ranked) == 1 or ranked[0].score >= STANDS_OUT * ranked[1].score)
    return ranked[0].memory.id if alone else ""


def _layer(
    moment: Moment, rule: LayerRule, ranked: Sequence[Ranked], *, now: float, budget: int, in_full: str
) -> Layer:
    least = {"index": render.holds(budget, form=moment.form), "continuity": 1}.get(rule.name, 0)
    lines = []
    for place, each in enumerate(_best(rule, ranked)):
        text, *shorter = render.versions(
            each,
            moment=moment.name,
            layer=rule.name,
            now=now,
            form=moment.form,
            alone=each.memory.id == in_full,
            widths=render.INDEX_TITLES if place < least else render.INDEX_TITLES[:1],
        )
        lines.append(Line(text=text, ranked=each, group=_group(each), shorter=tuple(shorter)))
    return Layer(name=rule.name, lines=tuple(lines), cap=rule.cap, limit=rule.limit, groups=rule.groups, least=least)


def _best(rule: LayerRule, ranked: Sequence[Ranked]) -> list[Ranked]:
    """Some more than wanted, for the longest may not fit; of each scope with a cap of its own at least its share."""
    most = rule.limit * 3 // 2
    if not rule.groups:
        return list(ranked[:most])
    best = []
    many: dict[str, int] = {}
    for place, each in enumerate(ranked):
        group = _group(each)
        many[group] = many.get(group, 0) + 1
        if place < most or many[group] <= most // len(rule.groups):
            best.append(each)
    return best


def _group(ranked: Ranked) -> str:
    return ranked.memory.scope.partition(":")[0]


def thresholds(settings: Settings) -> dict[str, float]:
    """Return the score below which nothing is shown, by moment; a compaction keeps what a start would show."""
    return {
        "session_start": settings.threshold_session_start,
        "compaction": settings.threshold_session_start,
        "prompt": settings.threshold_prompt,
        "question": settings.threshold_question,
    }


def caps(settings: Settings) -> dict[str, int]:
    """Return what hosts take in one output, where the user raised it there: host -> what its cap counts."""
    return {"codex": settings.codex_context_tokens * codex.BYTES_A_TOKEN}
