"""Sets of questions with known answers -> how good the product is, beside a baseline, as a table, JSON or a plot."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import screen
from foreword.cli.memories import Json

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
def retrieval(sets: Sets, *, json: Json = False) -> None:
    """Measure how well memories are found, against plain SQLite full-text search.

    \b
    Examples:
      foreword eval retrieval bench/replay bench/locomo bench/devmem
      foreword eval retrieval bench/replay/datasette --json
    """
    from foreword.evaluate.retrieval import retrieval as measure
    from foreword.evaluate.sets import read

    given = read(sets)
    with _progress("asking", total=sum(len(each.questions) for each in given)) as tick:
        answer = measure(given, product=_product(), tick=tick)
    if json:
        screen.as_json(answer)
        return
    _print_retrieval(answer)


def _print_retrieval(answer: dict[str, Any]) -> None:
    names = ("ndcg_at_10", "r_at_5", "r_at_10", "r_at_20", "mrr", "silent")
    lines = []
    for name, row in _rows(answer):
        lines.append(
            [
                name,
                str(row["queries"]),
                *(_shares(row[measure], row["baseline"][measure]) for measure in names),
                _number(row["ratio_ndcg_at_10"], digits=2),
            ]
        )
    screen.table(
        lines,
        headings=("set", "queries", "nDCG@10", "R@5", "R@10", "R@20", "MRR", "silent", "ratio"),
        bold=range(len(answer["sets"]), len(lines)),
    )
    screen.aside("each: Foreword / plain FTS5 (porter, OR of words, bm25) in the same run; ratio: of nDCG@10")


def _rows(answer: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The sets, the groups where there are several, and the mean of all."""
    yield from ((row["name"], row) for row in answer["sets"])
    if len(answer["groups"]) > 1:
        yield from ((f"mean of {name}", row) for name, row in answer["groups"].items())
    yield "mean", answer["mean"]


def _shares(ours: float | None, plain: float | None) -> str:
    return f"{_number(ours)} / {_number(plain)}"


def _number(given: float | None, *, digits: int = 3) -> str:
    return "-" if given is None else f"{given:.{digits}f}"


def _product(*, family: str = "auto") -> Product:
    """The default settings, with what the environment says: figures of two machines must be comparable."""
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
