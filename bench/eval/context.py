"""Measure what the block in front of each prompt is worth and costs, against what other tools would inject."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from bench.eval.datasets import Question
from bench.eval.metrics import mean, rounded
from bench.eval.scratch import Scratch
from foreword.errors import ForewordError
from foreword.layout import LayerRule, TriggerLayout
from foreword.models import Memory, NoContext, Ranked
from foreword.recall import render
from foreword.recall.budget import Layer, Line, fit
from foreword.recall.tokens import count

if TYPE_CHECKING:
    from foreword.recall.rank import Searchable

BUDGETS = (100, 200, 300, 500, 800, 1200, 2000)  # a line is some 25 tokens: from three lines to all that a prompt gets
CACHED = 10_000  # lines whose tokens are known: the newest are the same for many questions
FOREWORD, RECENCY, FTS5 = METHODS = ("foreword", "recency", "fts5")


@dataclass(frozen=True)
class Block:
    """What was put in front of one prompt; nothing at all has no tokens."""

    question: Question
    memories: tuple[Memory, ...]
    text: str
    tokens: int

    def useful(self) -> set[str]:
        """Return the relevant memories that it names."""
        return {memory.uid for memory in self.memories if memory.uid in self.question.relevant}

    def files(self) -> set[str]:
        """Return the files that were really changed and that one of its memories names."""
        return {file for memory in self.memories for file in memory.files}.intersection(self.question.files)


Blocks = Mapping[tuple[str, int], Sequence[Block]]


def build_blocks(scratch: Scratch, *, budgets: Sequence[int]) -> Blocks:
    """Return the blocks of all questions of a set, by method and budget."""
    blocks: dict[tuple[str, int], list[Block]] = {(method, budget): [] for budget in budgets for method in METHODS}
    counted = lru_cache(CACHED)(lambda text: count(text, family=scratch.options.family))
    for question in scratch.questions():
        store: Any = _Memoized(scratch.store.search)
        most = _index(scratch.options.layout).limit * 3 // 2  # some more than wanted: the longest may not fit
        found = scratch.search_plain(question.prompt, at=question.at)[:most]
        newest = _lines(islice(reversed(scratch.by_uid.values()), most), now=question.at)
        plain = _lines((scratch.by_uid[uid] for uid in found), now=question.at)
        for budget in budgets:
            layout = scaled(scratch.options.layout, budget)
            blocks[FOREWORD, budget].append(_recall(scratch, question, layout, store))
            blocks[RECENCY, budget].append(_fill(question, newest, layout, counted))
            blocks[FTS5, budget].append(_fill(question, plain, layout, counted))
    return blocks


def summarize(sets: Sequence[tuple[str, str, Blocks]], *, budget: int) -> dict[str, Any]:
    """Return the worth of each set (its name, group and blocks) at *budget*, means, and the curve over budgets."""
    rows = [
        {"name": name, "group": group, "queries": len(blocks[FOREWORD, budget]), **_worth_at(blocks, budget)}
        for name, group, blocks in sets
    ]
    groups = {row["group"]: [each for each in rows if each["group"] == row["group"]] for row in rows}
    sizes = dict.fromkeys(size for _, size in sets[0][2])
    return {
        "budget": budget,
        "sets": rows,
        "groups": {name: _mean(members) for name, members in groups.items()},
        "mean": _mean(rows),
        "curve": [{"budget": size, **_mean([_worth_at(blocks, size) for *_, blocks in sets])} for size in sizes],
    }


def scaled(layout: TriggerLayout, budget: int) -> TriggerLayout:
    """Return *layout* with another budget, its caps scaled with it, as the settings do it."""
    layers = tuple(layer._replace(cap=layer.cap * budget // layout.budget) for layer in layout.layers)
    return layout._replace(budget=budget, layers=layers)


def _index(layout: TriggerLayout) -> LayerRule:
    """Return the layer of one-line entries, which other tools inject."""
    return next(layer for layer in layout.layers if layer.name == "index")


class _Memoized:
    """A store that looks up the same query once: it is asked again with every budget."""

    def __init__(self, store: object) -> None:
        self._store = store
        self._answers: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def answer(*args: Any, **kwargs: Any) -> Any:
            key = repr((name, args, kwargs))  # votes are a dictionary, which is no key
            if key not in self._answers:
                self._answers[key] = getattr(self._store, name)(*args, **kwargs)
            return self._answers[key]

        return answer


def _recall(scratch: Scratch, question: Question, layout: TriggerLayout, store: Searchable) -> Block:
    got = scratch.recall(question.prompt, at=question.at, layout=layout, store=store)
    if got.problems:
        raise ForewordError(f"{scratch.dataset.name} cannot be asked {question.prompt!r}: {'; '.join(got.problems)}")
    if isinstance(got, NoContext):
        return Block(question=question, memories=(), text="", tokens=0)
    memories = tuple(scratch.by_id[item.memory] for item in got.items)
    return Block(question=question, memories=memories, text=got.text, tokens=got.tokens)


def _lines(memories: Iterable[Memory], *, now: float) -> tuple[Line, ...]:
    """Return *memories* in their order as the product's compact lines."""
    # The fitter takes the highest score first.
    ranked = [Ranked(memory=memory, score=1 - place / 1000, why={}) for place, memory in enumerate(memories)]
    return tuple(Line(text=render.compact(each, now=now), ranked=each) for each in ranked)


def _fill(question: Question, lines: tuple[Line, ...], layout: TriggerLayout, counted: Callable[[str], int]) -> Block:
    """Return a block of as many *lines* as fit, in the product's own frame."""
    rule = _index(layout)
    fitted = fit(
        (Layer(name=rule.name, lines=lines, cap=rule.cap, limit=rule.limit),),
        limit=layout.budget,
        render=lambda layers: render.block(layers, trigger="prompt", project=""),
        count=counted,
    )
    chosen = tuple(line.ranked.memory for layer in fitted.layers for line in layer.lines if line.ranked)
    return Block(question=question, memories=chosen, text=fitted.text, tokens=fitted.tokens)


def _worth_at(blocks: Blocks, budget: int) -> dict[str, Any]:
    return _with_baselines({method: _worth(blocks[method, budget]) for method in METHODS})


def _worth(blocks: Sequence[Block]) -> dict[str, float | None]:
    """Return what the blocks of a set are worth on average."""
    nonempty = [block for block in blocks if block.text]
    answerable = [block for block in blocks if block.question.relevant]
    with_files = [block for block in blocks if block.question.files]
    return {
        "useful": mean(len(block.useful()) for block in blocks),
        "relevant": mean(len(block.useful()) for block in answerable),
        "relevant_share": mean(len(block.useful()) / len(block.question.relevant) for block in answerable),
        "precision": mean(len(block.useful()) / len(block.memories) for block in nonempty if block.memories),
        "files": mean(len(block.files()) for block in with_files),
        "files_share": mean(len(block.files()) / len(set(block.question.files)) for block in with_files),
        "files_shown_share": mean(
            sum(file in block.text for file in set(block.question.files)) / len(set(block.question.files))
            for block in with_files
        ),
        "items": mean(len(block.memories) for block in nonempty),
        "tokens": mean(block.tokens for block in blocks),
        "tokens_of_a_block": mean(block.tokens for block in nonempty),
        "tokens_per_useful": _divided(
            sum(block.tokens for block in blocks), sum(len(block.useful()) for block in blocks)
        ),
        "silent": mean(float(not block.text) for block in blocks),
    }  # fmt: skip


def _mean(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the unweighted mean over sets; tokens for a useful memory over all of them, for some sets have none."""

    def over(sets: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
        means = {name: mean(each[name] for each in sets) for name in _worth([])}
        return {**means, "tokens_per_useful": _divided(means["tokens"], means["useful"])}

    baselines = {method: over([row["baseline"][method] for row in rows]) for method in (RECENCY, FTS5)}
    return _with_baselines({FOREWORD: over(rows), **baselines})


def _with_baselines(worth: Mapping[str, dict[str, float | None]]) -> dict[str, Any]:
    baselines = {method: rounded(worth[method], 4) for method in (RECENCY, FTS5)}
    return {**rounded(worth[FOREWORD], 4), "baseline": baselines}


def _divided(tokens: float | None, useful: float | None) -> float | None:
    return tokens / useful if tokens is not None and useful else None
