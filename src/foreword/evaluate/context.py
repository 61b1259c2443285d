"""Sets -> what the block in front of each prompt is worth, and what it costs, beside what other tools would inject."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from foreword import render
from foreword.errors import ForewordError
from foreword.evaluate.measures import mean
from foreword.evaluate.scratch import Scratch
from foreword.evaluate.sets import Question
from foreword.fit import Layer, Line, fit
from foreword.recipes import Recipe
from foreword.tokens import count
from foreword.types import Memory, Ranked, Skipped

if TYPE_CHECKING:
    from foreword.search import Searchable

BUDGETS = (100, 200, 300, 500, 800, 1200, 2000)  # a line is some 25 tokens: from three lines to all that a prompt gets
CACHED = 10_000  # lines whose tokens are known: the newest are the same for many questions
FOREWORD, RECENCY, FTS5 = "foreword", "recency", "fts5"
METHODS = (FOREWORD, RECENCY, FTS5)
NAMES = (
    "useful",
    "relevant",
    "relevant_share",
    "precision",
    "files",
    "files_share",
    "files_shown_share",
    "items",
    "tokens",
    "tokens_of_a_block",
    "tokens_per_useful",
    "silent",
)


@dataclass(frozen=True)
class Block:
    """What was put in front of one prompt; nothing at all has no tokens."""

    question: Question
    memories: tuple[Memory, ...]
    text: str
    tokens: int


def blocks(
    opened: Scratch, *, budgets: Sequence[int], tick: Callable[[], object] = bool
) -> Mapping[tuple[str, int], list[Block]]:
    """For each method and budget, the blocks of all questions of a set."""
    given: dict[tuple[str, int], list[Block]] = {}
    counted = lru_cache(CACHED)(lambda text: count(text, family=opened.product.family))
    for question in opened.questions():
        store = _Remembering(opened.store)
        most = opened.product.recipe.layers[0].limit * 3 // 2  # some more than wanted: the longest may not fit
        found = opened.plainly(question.prompt, at=question.at)[:most]
        newest = _lines(islice(reversed(opened.by_uid.values()), most), now=question.at)
        plain = _lines((opened.by_uid[uid] for uid in found), now=question.at)
        for budget in budgets:
            recipe = sized(opened.product.recipe, budget)
            for method, block in (
                (FOREWORD, _recalled(opened, question, recipe, store)),
                (RECENCY, _listed(question, newest, recipe, counted)),
                (FTS5, _listed(question, plain, recipe, counted)),
            ):
                given.setdefault((method, budget), []).append(block)
        tick()
    return given


def summary(
    names: Sequence[tuple[str, str]], given: Sequence[Mapping[tuple[str, int], list[Block]]], *, budget: int
) -> dict[str, Any]:
    """What `--json` prints: each set (*names* are its name and its group) at *budget*, means, and the curve."""
    rows = [
        {
            "name": name,
            "group": group,
            "queries": len(each[FOREWORD, budget]),
            **_with_baselines({method: _worth(each[method, budget]) for method in METHODS}),
        }
        for (name, group), each in zip(names, given, strict=True)
    ]
    groups = {row["group"]: [each for each in rows if each["group"] == row["group"]] for row in rows}
    curve = []
    for size in dict.fromkeys(size for _, size in given[0]):
        sets = [_with_baselines({method: _worth(each[method, size]) for method in METHODS}) for each in given]
        curve.append({"budget": size, **_mean(sets)})
    return {
        "budget": budget,
        "sets": rows,
        "groups": {name: _mean(members) for name, members in groups.items()},
        "mean": _mean(rows),
        "curve": curve,
    }


def sized(recipe: Recipe, budget: int) -> Recipe:
    """*recipe* with another budget, its caps grown or shrunk with it, as the settings do it."""
    layers = tuple(replace(layer, cap=layer.cap * budget // recipe.budget) for layer in recipe.layers)
    return replace(recipe, budget=budget, layers=layers)


class _Remembering:
    """A store that looks up the same question once, for it is asked again with every budget."""

    def __init__(self, store: object) -> None:
        self._store = store
        self._answers: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *given, **named: self._answer(name, given, named)

    def _answer(self, name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        asked = repr((name, given, named))  # votes are a dictionary, which is no key
        if asked not in self._answers:
            self._answers[asked] = getattr(self._store, name)(*given, **named)
        return self._answers[asked]


def _recalled(opened: Scratch, question: Question, recipe: Recipe, store: Searchable) -> Block:
    got = opened.recalled(question.prompt, at=question.at, recipe=recipe, store=store)
    if got.problems:
        raise ForewordError(f"{opened.given.name} cannot be asked {question.prompt!r}: {'; '.join(got.problems)}")
    if isinstance(got, Skipped):
        return Block(question=question, memories=(), text="", tokens=0)
    memories = tuple(opened.by_id[item.memory] for item in got.items)
    return Block(question=question, memories=memories, text=got.text, tokens=got.tokens)


def _lines(memories: Iterable[Memory], *, now: float) -> tuple[Line, ...]:
    """*memories* in their order, as the product's compact lines."""
    # The fitter takes the highest score first, and a line shows two digits of it.
    ranked = [Ranked(memory=memory, score=1 - place / 1000, why={}) for place, memory in enumerate(memories)]
    return tuple(Line(text=render.compact(each, now=now), ranked=each) for each in ranked)


def _listed(question: Question, lines: tuple[Line, ...], recipe: Recipe, counted: Callable[[str], int]) -> Block:
    """As many of *lines* as fit, in the product's own frame."""
    rule = recipe.layers[0]
    fitted = fit(
        (Layer(name=rule.name, lines=lines, cap=rule.cap, limit=rule.limit),),
        limit=recipe.budget,
        render=lambda layers: render.block(layers, moment="prompt", project=""),
        count=counted,
    )
    chosen = tuple(line.ranked.memory for layer in fitted.layers for line in layer.lines)
    return Block(question=question, memories=chosen, text=fitted.text, tokens=fitted.tokens)


def _worth(given: Sequence[Block]) -> dict[str, float | None]:
    """What the blocks of a set are worth on average."""
    told = [block for block in given if block.text]
    answerable = [block for block in given if block.question.relevant]
    with_files = [block for block in given if block.question.files]
    return {
        "useful": mean(len(_useful(block)) for block in given),
        "relevant": mean(len(_useful(block)) for block in answerable),
        "relevant_share": mean(
            len(_useful(block)) / len(block.question.relevant) for block in answerable
        ),
        "precision": mean(len(_useful(block)) / len(block.memories) for block in told if block.memories),
        "files": mean(len(_files(block)) for block in with_files),
        "files_share": mean(len(_files(block)) / len(set(block.question.files)) for block in with_files),
        "files_shown_share": mean(
            sum(file in block.text for file in set(block.question.files)) / len(set(block.question.files))
            for block in with_files
        ),
        "items": mean(len(block.memories) for block in told),
        "tokens": mean(block.tokens for block in given),
        "tokens_of_a_block": mean(block.tokens for block in told),
        "tokens_per_useful": _each(
            sum(block.tokens for block in given), sum(len(_useful(block)) for block in given)
        ),
        "silent": mean(float(not block.text) for block in given),
    }  # fmt: skip


def _useful(block: Block) -> set[str]:
    return {memory.uid for memory in block.memories if memory.uid in block.question.relevant}


def _files(block: Block) -> set[str]:
    """The files that were really changed and that a memory of the block names."""
    return {file for memory in block.memories for file in memory.files}.intersection(block.question.files)


def _mean(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The unweighted mean over sets; what an item costs is taken over all of them, for in some nothing is useful."""

    def over(values: Iterable[Mapping[str, Any]]) -> dict[str, float | None]:
        each = list(values)
        means = {name: mean(one[name] for one in each) for name in NAMES}
        return {**means, "tokens_per_useful": _each(means["tokens"], means["useful"])}

    return _with_baselines(
        {
            FOREWORD: over(rows),
            **{method: over(row["baseline"][method] for row in rows) for method in (RECENCY, FTS5)},
        }
    )


def _with_baselines(worth: Mapping[str, dict[str, float | None]]) -> dict[str, Any]:
    return {
        **_rounded(worth[FOREWORD]),
        "baseline": {method: _rounded(worth[method]) for method in (RECENCY, FTS5)},
    }


def _each(tokens: float | None, useful: float | None) -> float | None:
    return tokens / useful if tokens is not None and useful else None


def _rounded(numbers: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if number is None else round(number, 4) for name, number in numbers.items()}
