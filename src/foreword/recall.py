"""Moment -> query -> candidates -> rank -> fit -> render: the text in front of the prompt, or nothing. Light."""

from __future__ import annotations

from time import perf_counter

from foreword import render
from foreword.errors import ForewordError
from foreword.fit import Layer, Line, fit
from foreword.query import query_of
from foreword.rank import CERTAIN, rank
from foreword.search import search
from foreword.tokens import count, family_of
from foreword.types import EMPTY, POSTINGS, Item, Recalled, Skipped
from foreword.values import replace
from foreword.words import terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from foreword.recipes import LayerRule, Recipe
    from foreword.search import Searchable
    from foreword.types import Moment, Query, Ranked

CANDIDATES = 2  # times as many as a layer shows are weighed
MOST_CANDIDATES = 400
STANDS_OUT = 1.5  # the best is shown in full when it has so many times the score of the second
GOAL_WORDS = frozenset(("goal", "goals", "mission", "milestone", "milestones", "objective", "objectives", "roadmap"))


def recall(
    store: Searchable,
    moment: Moment,
    *,
    recipe: Recipe,
    threshold: float,
    now: float,
    shown: Callable[[], frozenset[str]] = frozenset,
    synonyms: Mapping[str, Sequence[str]] = EMPTY,
    expired: Callable[[], bool] = lambda: False,
    most_terms: int = 10,
    postings: int = POSTINGS,
    family: str = "auto",
    away: bool = False,
) -> Recalled | Skipped:
    """What is worth saying at *moment*, within its budget; one failing layer costs only itself."""
    started = perf_counter()
    budget = moment.budget or recipe.budget
    asked = replace(query_of(moment, synonyms=synonyms), most_terms=most_terms, postings=postings)
    known = shown() if _goes_on(moment) else frozenset()
    layers: list[Layer] = []
    skipped: dict[str, str] = {}
    problems: list[str] = []
    taken: set[str] = set()
    for written in recipe.layers:
        rule = replace(written, limit=written.limit_away) if away and written.limit_away else written
        if expired():
            skipped[rule.name] = "deadline"
            continue
        try:
            ranked = _candidates(store, moment, asked, rule, threshold=threshold, now=now, shown=known)
            fresh = [each for each in ranked if each.memory.id not in taken]
            layers.append(_layer(moment, rule, fresh, now=now, budget=budget))
            taken.update(each.memory.id for each in ranked)
        except ForewordError as exc:
            skipped[rule.name] = str(exc)
            problems.append(f"{rule.name}: {exc}; {exc.hint}")
    family = family_of(moment.model) if family == "auto" else family
    fitted = fit(
        layers,
        limit=budget,
        render=lambda chosen: render.block(chosen, moment=moment.name, project=moment.project.name, form=moment.form),
        count=lambda text: count(text, family=family),
    )
    skipped.update(fitted.skipped)
    spent = (perf_counter() - started) * 1000
    if not fitted.text:
        return Skipped(
            why="nothing fits the moment", budget=budget, build_ms=spent, skipped=skipped, problems=tuple(problems)
        )
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
    )


def look(store: Searchable, query: Query, *, now: float, moment: str) -> tuple[tuple[Ranked, ...], tuple[str, ...]]:
    """Everything the query finds, best first, and what went wrong on the way; the threshold is the caller's."""
    found, wrong = search(store, query)
    return rank(found, now=now, moment=moment), wrong


def _goes_on(moment: Moment) -> bool:
    """Whether the context window holds what was shown before: a start, a clear and a compaction empty it."""
    return moment.name in ("prompt", "question") or moment.source in ("resume", "fork")


def _candidates(
    store: Searchable,
    moment: Moment,
    asked: Query,
    rule: LayerRule,
    *,
    threshold: float,
    now: float,
    shown: frozenset[str],
) -> list[Ranked]:
    with_words = moment.name in ("prompt", "question")
    if with_words and not asked.terms:
        return []  # a prompt without a topic is answered with silence
    query = replace(
        asked, terms=asked.terms if with_words else (), kinds=_kinds(rule, moment), limit=_enough(rule, shown)
    )
    ranked, wrong = look(store, query, now=now, moment=moment.name)
    if wrong and not ranked:
        raise ForewordError("; ".join(wrong), hint="run `foreword doctor`")
    return [
        each
        for each in ranked
        if each.score >= threshold
        and each.memory.id not in shown
        and not (each.memory.kind == "learning" and each.memory.confidence < CERTAIN)
        and not (rule.name == "session" and (not moment.session or each.memory.session != moment.session))
    ]


def _enough(rule: LayerRule, shown: frozenset[str]) -> int:
    """So many candidates that those which were shown already do not crowd out the others."""
    return min(rule.limit * CANDIDATES + len(shown), MOST_CANDIDATES)


def _kinds(rule: LayerRule, moment: Moment) -> tuple[str, ...]:
    """The layer's kinds; goals come only where the prompt speaks of goals."""
    spoken = GOAL_WORDS.intersection(terms(moment.prompt)) if moment.prompt else ()
    return (*rule.kinds, "goal") if spoken and "goal" not in rule.kinds else rule.kinds


def _layer(moment: Moment, rule: LayerRule, ranked: Sequence[Ranked], *, now: float, budget: int) -> Layer:
    least = {"index": render.holds(budget, form=moment.form), "continuity": 1}.get(rule.name, 0)
    lines = []
    for place, each in enumerate(ranked[: rule.limit * 3 // 2]):  # some more than wanted: the longest may not fit
        text, *shorter = render.versions(
            each,
            moment=moment.name,
            layer=rule.name,
            now=now,
            form=moment.form,
            alone=place == 0 and (len(ranked) == 1 or each.score >= STANDS_OUT * ranked[1].score),
            widths=render.INDEX_TITLES if place < least else render.INDEX_TITLES[:1],
        )
        group = each.memory.scope.partition(":")[0]
        lines.append(Line(text=text, ranked=each, group=group, shorter=tuple(shorter)))
    return Layer(name=rule.name, lines=tuple(lines), cap=rule.cap, limit=rule.limit, groups=rule.groups, least=least)
