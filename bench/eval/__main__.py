"""Print how good Foreword is on sets of questions with known answers.

    python -m bench.eval [DIR ...] [--only MEASURE] [--json FILE] [--compare FILE]

Everything happens in scratch stores with the default settings, which FOREWORD_... in the environment may change.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.eval import context, extract, retrieval
from bench.eval.compare import print_comparison
from bench.eval.datasets import Dataset, read_samples, read_sets
from bench.eval.scratch import load_options, open_scratch
from bench.eval.silence import measure_silence
from bench.eval.tokens import measure_estimates
from foreword.errors import ForewordError
from foreword.recall.tokens import FAMILIES

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
MEASURES = ("retrieval", "context", "extract", "tokens")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what was asked for, print it, and return the exit status."""
    args = parse(argv)
    try:
        results = measure(args)
        if args.json:
            args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        if args.compare:
            print_comparison(json.loads(args.compare.read_text(encoding="utf-8")), results)
    except ForewordError as exc:
        print(f"error: {exc}", *([f"hint: {exc.hint}"] if exc.hint else []), sep="\n", file=sys.stderr)
        return 1
    except (OSError, ValueError) as exc:  # of --json or --compare
        print(f"error: {exc}", file=sys.stderr)
        return 1
    return 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(prog="python -m bench.eval", description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("sets", nargs="*", type=Path, metavar="DIR", help="Sets, or folders of sets (default ../shared/bench).")
    add("--only", action="append", choices=MEASURES, help="Measure only this; may be repeated.")
    add("--samples", type=Path, metavar="FILE", help="Texts with token counts (default ../shared/tokens).")
    add("--budget", type=int, default=500, metavar="N", help="Tokens of a context block (default 500).")
    add("--family", choices=FAMILIES, default="claude-4.7", help="Tokenizer family of a context block.")
    add("--show", action="store_true", help="Print the extracted memories, to be judged by reading.")
    add("--json", type=Path, metavar="FILE", help="Write all figures to FILE.")
    add("--compare", type=Path, metavar="FILE", help="Print what differs from FILE, written by --json before.")
    return parser.parse_args(argv)


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Run and print the measures, one after the other; say which were skipped and why."""
    wanted = args.only or MEASURES
    results: dict[str, Any] = {}
    folders = args.sets or [SHARED / "bench"]
    if args.sets or folders[0].is_dir():
        sets = read_sets(folders) if set(wanted) - {"tokens"} else []
        for name in wanted:
            if name == "retrieval":
                results[name] = measure_retrieval(sets)
            elif name == "context":
                results[name] = measure_context(sets, budget=args.budget, family=args.family)
            elif name == "extract":
                results[name] = measure_extract(sets, show=args.show)
    elif set(wanted) - {"tokens"}:
        print(f"skipped: {', '.join(each for each in wanted if each != 'tokens')} (no sets in {folders[0]})")
    if "tokens" in wanted:
        samples = args.samples or SHARED / "tokens" / "samples.jsonl"
        if args.samples or samples.is_file():
            results["tokens"] = measure_tokens(samples)
        else:
            print(f"skipped: tokens (no {samples})")
    return results


def measure_retrieval(sets: Sequence[Dataset]) -> dict[str, Any]:
    """Measure what is found, and what is silenced where there are several sets."""
    options = load_options()
    with ExitStack() as stack:
        scratches = [stack.enter_context(open_scratch(each, options=options)) for each in sets]
        answers = [retrieval.ask(each) for each in scratches]
        result = retrieval.summarize(answers)
        result["silence"] = measure_silence(scratches, answers) if len(sets) > 1 else None
    print_retrieval(result)
    return result


def measure_context(sets: Sequence[Dataset], *, budget: int, family: str) -> dict[str, Any]:
    """Measure what the block in front of a prompt is worth, and what it costs."""
    options, budgets = load_options(family=family), sorted({*context.BUDGETS, budget})
    blocks = []
    for each in sets:
        with open_scratch(each, options=options) as scratch:
            blocks.append((each.name, each.group, context.build_blocks(scratch, budgets=budgets)))
    result = {"family": family, **context.summarize(blocks, budget=budget)}
    print_context(result)
    return result


def measure_extract(sets: Sequence[Dataset], *, show: bool) -> dict[str, Any]:
    """Measure what is left of conversations when memories are extracted from them."""
    options, rows = load_options(), []
    for each in sets:
        conversations = extract.conversations_of(each)
        if conversations:
            memories = extract.extract(each, conversations)
            rows.append(extract.measure_extraction(each, conversations, memories, options=options))
            if show:
                print(extract.describe(memories))
    print_extract(rows)
    return {"sets": rows}


def measure_tokens(path: Path) -> dict[str, Any]:
    """Measure how near the token estimator comes to true counts."""
    result = measure_estimates(read_samples(path))
    print_tokens(result)
    return result


# ---- tables


def print_retrieval(result: dict[str, Any]) -> None:
    """Print what is found, set by set, and what the threshold silences."""
    names = ("ndcg_at_10", "r_at_5", "r_at_10", "r_at_20", "mrr", "silent")
    print("\nRetrieval: Foreword / plain FTS5 (porter, OR of words, bm25); ratio of nDCG@10")
    lines = [
        [name, row["queries"], *(_pair(row, row["baseline"], each) for each in names), _n(row["ratio_ndcg_at_10"], 2)]
        for name, row in _rows(result)
    ]
    print_table(["set", "queries", "nDCG@10", "R@5", "R@10", "R@20", "MRR", "silent", "ratio"], lines)
    for row in result["sets"]:
        if row["auc_unanswerable"] is not None:
            print(
                f"{row['name']}: AUC of the best score, {row['answerable']} questions with an answer against"
                f" {row['queries'] - row['answerable']} without: {_pair(row, row['baseline'], 'auc_unanswerable')}"
            )
    silence = result["silence"]
    if silence is None:
        print("skipped: silence (needs two sets or more: it asks each the prompts of the others)")
        return
    print(f"\nSilence: {silence['prompts']} prompts asked of other projects; Foreword / share of words")
    for name, key in (
        ("silent at 95 % of R@10 kept", "silent_at_95_kept"),
        ("R@10 kept at 90 % silence", "kept_at_90_silent"),
        ("AUC, own prompts against strange ones", "auc_cross"),
    ):
        print(f"  {name}: {_pair(silence, silence['baseline'], key)}")
    print(f"\nAt the prompt's threshold of {silence['threshold']:g}")
    points = {**silence["groups"], "all": next(point for point in silence["curve"] if "product" in point)}
    lines = [
        [name, *(_n(point[each]) for each in ("silent", "silent_answerable", "r_at_10_kept"))]
        for name, point in points.items()
    ]
    print_table(["group", "silent to strangers", "silent at home", "R@10 kept"], lines)


def print_context(result: dict[str, Any]) -> None:
    """Print the worth of a block, set by set and budget by budget."""
    columns = {
        "relevant": ("relevant", 2),
        "relevant_share": ("share", 2),
        "files_share": ("files", 2),
        "items": ("items", 1),
        "tokens": ("tokens", 0),
        "tokens_per_useful": ("per useful", 0),
        "silent": ("silent", 2),
    }

    def cells(row: dict[str, Any]) -> list[str]:
        methods = (row, *row["baseline"].values())
        return [" / ".join(_n(each[name], digits) for each in methods) for name, (_, digits) in columns.items()]

    print(f"\nContext of {result['budget']} tokens ({result['family']}): Foreword / newest / plain FTS5")
    headings = [heading for heading, _ in columns.values()]
    print_table(["set", *headings], [[name, *cells(row)] for name, row in _rows(result)])
    print("\nContext by budget, mean of all sets")
    print_table(["budget", *headings], [[row["budget"], *cells(row)] for row in result["curve"]])


def print_extract(rows: Sequence[dict[str, Any]]) -> None:
    """Print what is answered from extracted memories."""
    if not rows:
        print("skipped: extract (no set holds conversations, with lines that begin `user: ` or `assistant: `)")
        return
    print(f"\nExtract: extracted / raw messages; answered: the session is among the first {extract.FIRST}")
    lines = [
        [
            row["name"],
            row["raw"]["questions"],
            _pair(row["extracted"], row["raw"], "answered"),
            _n(row["ratio"]),
            _pair(row["extracted"], row["raw"], "tokens", 0),
            f"{row['tokens']:.1%}",
            _pair(row["extracted"], row["raw"], "memories", 0),
        ]
        for row in rows
    ]
    print_table(["set", "questions", "answered", "ratio", "tokens", "share", "memories"], lines)


def print_tokens(result: dict[str, Any]) -> None:
    """Print the errors of the token estimator."""
    lines = []
    for family in result["families"]:
        for row in (family, *family["categories"]):
            errors = (f"{row['error']:.1%}", f"{row['signed']:+.1%}", f"{row['worst_under']:+.1%}")
            verdict = "passes" if row["passes"] else "FAILS"
            lines.append([family["family"], row.get("category", "all"), row["samples"], *errors, verdict])
    print(
        f"\nTokens: passes with a mean error of at most {result['most_error']:.0%}"
        f" and no category on average below {result['most_under']:.0%}"
    )
    print_table(["family", "category", "samples", "error", "signed", "worst low", ""], lines)


def print_table(headings: Sequence[str], lines: Sequence[Sequence[object]]) -> None:
    """Print columns."""
    cells = [[str(cell) for cell in line] for line in (headings, *lines)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())


def _rows(result: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the sets, the groups where there are several, and the mean of all."""
    yield from ((row["name"], row) for row in result["sets"])
    if len(result["groups"]) > 1:
        yield from ((f"mean of {name}", row) for name, row in result["groups"].items())
    yield "mean", result["mean"]


def _pair(ours: dict[str, Any], baseline: dict[str, Any], name: str, digits: int = 3) -> str:
    return f"{_n(ours[name], digits)} / {_n(baseline[name], digits)}"


def _n(number: float | None, digits: int = 3) -> str:
    return "-" if number is None else f"{number:.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
