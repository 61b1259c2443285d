"""Sets of questions with known answers -> how good the product is, beside a baseline, as a table or JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import screen
from foreword.cli.memories import Json
from foreword.errors import BadRequest

if TYPE_CHECKING:
    from foreword.evaluate.scratch import Product

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="""Measure how well Foreword finds, keeps silent and spends its tokens.

    Each is compared with a baseline in the same run. Nothing of your own memory is read or changed: everything happens
    in scratch stores with the default settings, which FOREWORD_... in the environment may change.

    \b
    Example:
      foreword eval retrieval bench/replay bench/locomo
    """,
)
Sets = Annotated[
    list[Path],
    typer.Argument(metavar="DIR…", help="Folders with memories.jsonl and queries.jsonl, or folders of such folders."),
]


@app.command()
def retrieval(
    sets: Sets,
    *,
    silence: Annotated[bool, typer.Option("--silence", help="Also ask each set the prompts of the others.")] = False,
    json: Json = False,
) -> None:
    """Measure how well memories are found, against plain SQLite full-text search.

    Every question is asked at its own time, and only of what is older. `silent` is the share of all questions that the
    threshold leaves without an answer. With --silence, the prompts of each set are asked of every other set's memory,
    where silence is right: the curve tells what each threshold would silence there, and what it would lose at home.

    \b
    Examples:
      foreword eval retrieval bench/replay bench/locomo bench/devmem
      foreword eval retrieval bench/replay/datasette --json
      foreword eval retrieval bench --silence
    """
    from foreword.evaluate import retrieval as asking
    from foreword.evaluate import silence as keeping
    from foreword.evaluate.scratch import scratch
    from foreword.evaluate.sets import read

    given, product = read(sets), _product()
    if silence and len(given) < 2:
        raise BadRequest("--silence needs two sets or more", hint="name another folder: its prompts are the strangers")
    with ExitStack() as stack:
        opened = [stack.enter_context(scratch(each, product=product)) for each in given]
        with _progress("asking", total=sum(len(each.questions) for each in given)) as tick:
            results = [asking.ask(each, tick=tick) for each in opened]
        answer = asking.summary(results)
        if silence:
            with _progress("asking strangers", total=keeping.pairs(opened)) as tick:
                answer["silence"] = keeping.silence(opened, results, tick=tick)
    if json:
        screen.as_json(answer)
    else:
        _print_retrieval(answer)


@app.command()
def context(
    sets: Sets,
    *,
    budget: Annotated[int, typer.Option(metavar="N", min=50, max=10_000, help="Tokens of a block.")] = 500,
    family: Annotated[
        str, typer.Option(metavar="F", help="The tokenizer that counts: claude-4.7, claude-3 or o200k.")
    ] = "claude-4.7",
    json: Json = False,
) -> None:
    """Measure what the block in front of a prompt is worth, and what it costs.

    How many relevant memories it names, how many of the files that were really changed then, tokens for each useful
    memory, and how often it is silent; against the newest memories and plain full-text search in the same form. The
    curve over budgets from 100 to 2,000 tokens shows where more tokens stop to help.

    \b
    Examples:
      foreword eval context bench/replay
      foreword eval context bench/replay --budget 300
    """
    from foreword.evaluate import context as worth
    from foreword.evaluate.scratch import scratch
    from foreword.evaluate.sets import read
    from foreword.tokens import FAMILIES

    if family not in FAMILIES:
        raise BadRequest(f"unknown tokenizer family {family!r}", hint=f"one of {', '.join(FAMILIES)}")
    given, product = read(sets), _product(family=family)
    budgets = sorted({*worth.BUDGETS, budget})
    blocks = []
    with _progress("recalling", total=sum(len(each.questions) for each in given)) as tick:
        for each in given:
            with scratch(each, product=product) as opened:
                blocks.append(worth.blocks(opened, budgets=budgets, tick=tick))
    answer = worth.summary([(each.name, each.group) for each in given], blocks, budget=budget)
    answer = {"family": family, **answer}
    if json:
        screen.as_json(answer)
    else:
        _print_context(answer)


@app.command()
def tokens(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSONL: category, text, and a count for each family.")],
    *,
    json: Json = False,
) -> None:
    """Measure how near the token estimator comes to true counts.

    By tokenizer family and category: the mean error, and the mean error with its sign, where minus is a count too low.

    \b
    Example:
      foreword eval tokens samples.jsonl
    """
    from foreword.evaluate.estimates import estimates, read

    answer = estimates(read(file))
    if json:
        screen.as_json(answer)
    else:
        _print_tokens(answer)


@app.command()
def distil(
    sets: Sets,
    *,
    show: Annotated[bool, typer.Option("--show", help="Print what was distilled, to be judged by reading.")] = False,
    json: Json = False,
) -> None:
    """Measure what is left of conversations when they are distilled.

    The conversations of each set are replayed as sessions, messages in order. A question counts as answered where a
    session that answers it is among the first five that are found: from the distilled memories alone, and from the raw
    messages. A message begins at a line starting `user: ` or `assistant: `.

    \b
    Examples:
      foreword eval distil bench/devmem
      foreword eval distil bench/devmem --show
    """
    from foreword.evaluate import distil as distilling
    from foreword.evaluate.sets import read

    given, product = read(sets), _product()
    answer = []
    with _progress("asking", total=2 * sum(len(each.questions) for each in given)) as tick:
        for each in given:
            memories = distilling.distilled(each)
            both = [distilling.answered(one, product=product, tick=tick) for one in (distilling.raw(each), memories)]
            answer.append(distilling.compared(each.name, *both))
            if show:
                screen.say(distilling.readable(memories.memories))
    if json:
        screen.as_json({"sets": answer})
    else:
        _print_distilled(answer)


# ---- tables


def _print_distilled(answer: list[dict[str, Any]]) -> None:
    lines = [
        [
            row["name"],
            str(row["raw"]["questions"]),
            _both(row["distilled"]["answered"], row["raw"]["answered"]),
            _number(row["ratio"]),
            f"{row['distilled']['tokens']} / {row['raw']['tokens']}",
            f"{row['tokens']:.1%}",
            f"{row['distilled']['memories']} / {row['raw']['memories']}",
        ]
        for row in answer
    ]
    screen.table(lines, headings=("set", "questions", "answered", "ratio", "tokens", "share", "memories"))
    screen.aside("each: distilled / raw messages in the same run; answered: the session among the first five")


def _print_retrieval(answer: dict[str, Any]) -> None:
    names = ("ndcg_at_10", "r_at_5", "r_at_10", "r_at_20", "mrr", "silent")
    lines = [
        [
            name,
            str(row["queries"]),
            *(_both(row[measure], row["baseline"][measure]) for measure in names),
            _number(row["ratio_ndcg_at_10"], digits=2),
        ]
        for name, row in _rows(answer)
    ]
    headings = ("set", "queries", "nDCG@10", "R@5", "R@10", "R@20", "MRR", "silent", "ratio")
    screen.table(lines, headings=headings, bold=range(len(answer["sets"]), len(lines)))
    screen.aside("each: Foreword / plain FTS5 (porter, OR of words, bm25) in the same run; ratio: of nDCG@10")
    for row in answer["sets"]:
        if row["auc_unanswerable"] is not None:
            screen.say(
                f"{row['name']}: the best score tells {row['queries'] - row['answerable']} questions without an answer"
                f" from {row['answerable']} with one: AUC {_number(row['auc_unanswerable'])}"
                f" (share of words: {_number(row['baseline']['auc_unanswerable'])})"
            )
    if "silence" in answer:
        _print_silence(answer["silence"])


def _print_silence(told: dict[str, Any]) -> None:
    screen.say(f"\nSilence: {told['prompts']} prompts asked of projects that know nothing about them")
    for name, curve in (("Foreword", told["curve"]), ("plain share of words", told["baseline"]["curve"])):
        lines = [
            [
                _number(point["threshold"], digits=4),
                _number(point["silent"]),
                _number(point["silent_unanswerable"]),
                _number(point["r_at_10_kept"]),
                "<- the product's threshold" if "product" in point else "",
            ]
            for point in curve
        ]
        marked = [number for number, point in enumerate(curve) if "product" in point]
        screen.say("")
        headings = (f"{name}: threshold", "silent to strangers", "to unanswerable", "R@10 kept", "")
        screen.table(lines, headings=headings, bold=marked)
    screen.say("\nR@10 kept: of what is found without a threshold, what is left where the best one must reach it\n")
    lines = [
        [name, _number(curve["auc_cross"]), _number(curve["silent_at_95_kept"]), _number(curve["kept_at_90_silent"])]
        for name, curve in (("Foreword", told), ("plain share of words", told["baseline"]))
    ]
    screen.table(lines, headings=("", "AUC own / strange", "silent at 95 % of R@10", "R@10 kept at 90 % silence"))
    screen.say("")
    lines = [
        [name, *(_number(point[each]) for each in ("silent", "silent_answerable", "r_at_10_kept"))]
        for name, point in told["groups"].items()
    ]
    screen.table(lines, headings=("at the threshold", "silent to strangers", "silent at home", "R@10 kept"))


def _print_context(answer: dict[str, Any]) -> None:
    lines = [[name, *_worth(row)] for name, row in _rows(answer)]
    screen.say(f"At {answer['budget']} tokens ({answer['family']}): Foreword / newest / plain FTS5")
    screen.table(lines, headings=("set", *_WORTH.values()), bold=range(len(answer["sets"]), len(lines)))
    screen.say("\nBy budget, mean of all sets")
    lines = [[str(row["budget"]), *_worth(row)] for row in answer["curve"]]
    screen.table(lines, headings=("budget", *_WORTH.values()))


_WORTH = {
    "relevant": "relevant",
    "relevant_share": "share",
    "files_share": "files",
    "items": "items",
    "tokens": "tokens",
    "tokens_per_useful": "per useful",
    "silent": "silent",
}


def _worth(row: dict[str, Any]) -> list[str]:
    told = []
    for name in _WORTH:
        digits = {"tokens": 0, "tokens_per_useful": 0, "items": 1}.get(name, 2)
        told.append(" / ".join(_number(each[name], digits=digits) for each in (row, *row["baseline"].values())))
    return told


def _print_tokens(answer: dict[str, Any]) -> None:
    lines: list[list[str]] = []
    bold = []
    for family in answer["families"]:
        bold.append(len(lines))
        lines.append([family["family"], "all", *_errors(family)])
        lines += [["", row["category"], *_errors(row)] for row in family["categories"]]
    screen.table(lines, headings=("family", "category", "samples", "error", "signed", "worst low", ""), bold=bold)
    low, high = answer["most_under"], answer["most_error"]
    screen.aside(f"passes: a mean error of at most {high:.0%}, and no category on average below {low:.0%}")


def _errors(row: dict[str, Any]) -> list[str]:
    return [
        str(row["samples"]),
        f"{row['error']:.1%}",
        f"{row['signed']:+.1%}",
        f"{row['worst_under']:+.1%}",
        "passes" if row["passes"] else "FAILS",
    ]


def _rows(answer: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The sets, the groups where there are several, and the mean of all."""
    yield from ((row["name"], row) for row in answer["sets"])
    if len(answer["groups"]) > 1:
        yield from ((f"mean of {name}", row) for name, row in answer["groups"].items())
    yield "mean", answer["mean"]


def _both(ours: float | None, plain: float | None) -> str:
    return f"{_number(ours)} / {_number(plain)}"


def _number(given: float | None, *, digits: int = 3) -> str:
    return "-" if given is None else f"{given:.{digits}f}"


# ---- what is set, and how it goes


def _product(*, family: str = "auto") -> Product:
    """The default settings, with what the environment says: figures of two machines must be comparable."""
    import tempfile

    from foreword.config import load, load_synonyms
    from foreword.evaluate.scratch import Product
    from foreword.hook.build import thresholds
    from foreword.paths import Home

    with tempfile.TemporaryDirectory() as empty:
        home = Home(Path(empty))
        loaded = load(home, os.environ)
        synonyms, _ = load_synonyms(home)
    screen.warn(loaded.problems)
    settings = loaded.settings
    return Product(
        recipe=settings.recipes["prompt"],
        threshold=thresholds(settings)["prompt"],
        synonyms=synonyms,
        most_terms=settings.terms_max,
        postings=settings.postings_budget,
        family=family,
    )


@contextmanager
def _progress(what: str, *, total: int) -> Iterator[Callable[[], object]]:
    """A bar on stderr, in a terminal only; what it gives is called once for each step."""
    from rich.progress import Progress

    beside = screen.console(stderr=True)
    with Progress(console=beside, transient=True, disable=not beside.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
