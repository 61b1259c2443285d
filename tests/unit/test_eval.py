"""What `make eval` measures, on sets so small that a person can count along."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from math import log2
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.eval import context, metrics, retrieval
from bench.eval.baseline import PlainIndex, plain_words
from bench.eval.compare import print_comparison
from bench.eval.datasets import Dataset, read_samples, read_sets
from bench.eval.scratch import open_scratch
from bench.eval.silence import measure_silence
from bench.eval.tokens import measure_estimates
from foreword.errors import BadRequest
from foreword.layout import LAYOUT
from foreword.recall.pipeline import Options
from foreword.recall.tokens import count

DAY = 86_400
OPTIONS = Options(layout=LAYOUT["prompt"], threshold=0.06, family="claude-4.7")

Write = Callable[..., Path]


def memory(id: str, title: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "kind": "decision", "at": DAY, "title": title, "body": "", "files": [], "functions": [], **more}


def query(id: str, prompt: str, relevant: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": id, "at": 3 * DAY, "prompt": prompt, "files": [], "relevant": relevant, **more}


SHOP = [memory("a", "Prices are whole cents"), memory("b", "Invoices carry the price"), memory("c", "Use pytest")]
ZOO = [memory("x", "Giraffes sleep standing"), memory("y", "Lions sleep all day")]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a set as two files and return its folder; a text is a line as it is."""

    def written(name: str, memories: Sequence[Any] = SHOP, queries: Sequence[Any] = ()) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        questions = queries or [query("q", "which cents?", {"a": 1})]
        for file, rows in (("memories.jsonl", memories), ("queries.jsonl", questions)):
            lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
            (folder / file).write_text("\n".join(lines), encoding="utf-8")
        return folder

    return written


def ask(dataset: Dataset) -> retrieval.Result:
    with open_scratch(dataset, options=OPTIONS) as scratch:
        return retrieval.ask(scratch)


# ---- the measures


def test_measures_are_as_counted_by_hand() -> None:
    found, relevant = ["x", "a", "y", "b"], {"a": 1, "b": 2, "c": 1}
    # grade 1 gains 1 and grade 2 gains 3; places 2 and 4 are divided by log2 of 3 and 5.
    gained = 1 / log2(3) + 3 / log2(5)
    possible = 3 / log2(2) + 1 / log2(3) + 1 / log2(4)
    assert metrics.ndcg(found, relevant, k=10) == pytest.approx(gained / possible)
    assert metrics.ndcg(found, relevant, k=2) == pytest.approx((1 / log2(3)) / (3 + 1 / log2(3)))
    assert metrics.ndcg(["b", "a", "c"], relevant, k=10) == 1.0

    found = [f"no-{place}" for place in range(5)] + ["a"] + [f"no-{place}" for place in range(5, 10)] + ["b"]
    measured = metrics.measure(found, {"a": 1, "b": 1, "c": 1, "d": 1})
    assert (measured["r_at_5"], measured["r_at_10"], measured["r_at_20"]) == (0.0, 0.25, 0.5)
    assert (measured["hit_at_10"], measured["mrr"]) == (1.0, pytest.approx(1 / 6))

    assert metrics.auc([3.0, 2.0], [1.0, 2.0]) == (1 + 1 + 1 + 0.5) / 4  # a tie counts half
    assert metrics.auc([], [1.0]) is None
    assert (metrics.mean([1.0, None, 2.0]), metrics.mean([])) == (1.5, None)


@given(
    st.permutations(["a", "b", "c", "d", "e"]),
    st.dictionaries(st.sampled_from("abcdefg"), st.integers(1, 3), min_size=1),
)
def test_every_measure_is_a_share(found: list[str], relevant: dict[str, int]) -> None:
    measured = metrics.measure(found, relevant)
    assert tuple(measured) == metrics.NAMES
    assert all(0 <= number <= 1 for number in measured.values())


# ---- reading sets


def test_sets_are_found_however_deep_and_named_once(write: Write, tmp_path: Path) -> None:
    for name in ("bench/replay/aider", "bench/replay/httpx", "bench/alone", "other/aider"):
        write(name)
    found = read_sets([tmp_path / "bench", tmp_path / "other", tmp_path / "bench" / "alone"])
    assert [each.name for each in found] == ["alone", "replay/aider", "httpx", "other/aider"]
    assert [each.group for each in found] == ["alone", "replay", "replay", "aider"]


@pytest.mark.parametrize(
    ("memories", "queries", "says"),
    [
        ([memory("a", "x"), "{broken"], None, "memories.jsonl, line 2 is not JSON"),
        ([memory("a", "x"), "", "[1]"], None, "memories.jsonl, line 3 is not an object"),
        ([memory("a", " ")], None, "line 1: `title` must be a text that is not empty"),
        ([memory("a", "x", kind="rumour")], None, "line 1: unknown kind 'rumour'"),
        ([memory("a", "x", at=1.7e12)], None, "line 1: `at` must be a time in Unix seconds"),
        ([memory("a", "x", files="app.py")], None, "line 1: `files` must be a list of texts"),
        ([memory("a", "x"), memory("a", "y")], None, "has the id 'a' twice"),
        (SHOP, [query("q", "x", {"zz": 1})], "queries.jsonl, line 1: `relevant` names 'zz'"),
        (SHOP, [query("q", "x", {"a": "much"})], "`relevant` must give each memory's id a grade"),
        (SHOP, ["", " "], "queries.jsonl is empty"),
    ],
)
def test_a_broken_set_is_an_error_with_its_line(
    write: Write, memories: list[Any], queries: list[Any] | None, says: str
) -> None:
    with pytest.raises(BadRequest, match=says) as error:
        read_sets([write("s", memories, queries or ())])
    assert error.value.hint


# ---- the baseline


def test_the_baseline_finds_any_of_the_words_that_say_something(write: Write) -> None:
    assert plain_words("How do I use the Prices of prices?") == ("prices",)
    index = PlainIndex()
    index.add(read_sets([write("s")])[0].memories)
    assert index.search(plain_words("price of an invoice"), at=DAY, limit=9) == ("b", "a")  # stems; b holds both words
    assert index.search(("pytest",), at=DAY - 1, limit=9) == ()  # younger than the question
    assert index.search((), at=DAY, limit=9) == ()
    assert (index.coverage("b", ("price", "invoice", "zebra", "cents")), index.coverage("b", ())) == (0.5, 0.0)
    index.close()


# ---- retrieval and silence


def test_a_set_is_measured_beside_the_baseline(write: Write) -> None:
    queries = [
        query("found", "which cents?", {"a": 1}),
        query("half", "invoices", {"b": 1, "c": 1}),
        query("unanswerable", "zebra crossing", {}),
    ]
    (row,) = retrieval.summarize([ask(*read_sets([write("s", SHOP, queries)]))])["sets"]
    assert (row["name"], row["queries"], row["answerable"], row["memories"]) == ("s", 3, 2, 3)
    assert (row["r_at_10"], row["mrr"], row["hit_at_10"]) == (0.75, 1.0, 1.0)
    half = 1 / (1 + 1 / log2(3))
    assert row["ndcg_at_10"] == pytest.approx((1 + half) / 2, abs=1e-6)
    assert row["silent"] == pytest.approx(1 / 3, abs=1e-6)  # of all questions, also those without an answer
    assert row["auc_unanswerable"] == 1.0
    assert row["baseline"]["r_at_10"] == 0.75
    assert row["ratio_ndcg_at_10"] == 1.0


def test_means_are_over_sets_and_by_group(write: Write, tmp_path: Path) -> None:
    write("g/good")
    write("g/bad", queries=[query(f"q{number}", "zebra", {"a": 1}) for number in range(9)])
    write("alone/s")
    write("unanswerable/s", queries=[query("q", "zebra", {})])
    result = retrieval.summarize([ask(each) for each in read_sets([tmp_path])])
    assert {name: each["r_at_10"] for name, each in result["groups"].items()} == {"s": 1.0, "g": 0.5}
    assert result["mean"]["r_at_10"] == pytest.approx(2 / 3, abs=1e-6)  # what has no answer has no recall
    assert (result["mean"]["queries"], result["mean"]["sets"]) == (12, 4)


def test_no_question_sees_the_future(write: Write) -> None:
    memories = [memory("new", "cents again", at=5 * DAY), memory("old", "cents")]
    queries = [query("after", "cents?", {"new": 1}, at=6 * DAY), query("before", "cents?", {"old": 1}, at=4 * DAY)]
    (dataset,) = read_sets([write("s", memories, queries)])
    before, after = ask(dataset).answers
    assert ([hit.uid for hit in before.found], before.plain) == (["old"], ("old",))
    assert {hit.uid for hit in after.found} == {"old", "new"}
    with open_scratch(dataset, options=OPTIONS) as scratch:
        blocks = context.build_blocks(scratch, budgets=(500,))
    assert [[one.uid for one in block.memories] for block in blocks["recency", 500]] == [["old"], ["new", "old"]]


def test_the_same_set_gives_the_same_result(write: Write) -> None:
    memories = [memory(f"m{number}", "the very same words") for number in range(40)]
    (dataset,) = read_sets([write("s", memories, [query("q", "same words", {"m3": 1})])])
    assert ask(dataset) == ask(dataset)


def test_strange_prompts_are_silenced_at_the_price_of_own_ones(write: Write) -> None:
    shop = [query("cents", "which cents?", {"a": 1}), query("sleep", "do prices sleep?", {"a": 1})]
    zoo = [query("lions", "lions sleep?", {"y": 1}), query("none", "zebra", {})]
    with ExitStack() as stack:
        sets = read_sets([write("shop", SHOP, shop), write("zoo", ZOO, zoo)])
        scratches = [stack.enter_context(open_scratch(each, options=OPTIONS)) for each in sets]
        silence = measure_silence(scratches, [retrieval.ask(each) for each in scratches])
    assert silence["prompts"] == 4
    # Of the four only "do prices sleep?" finds anything in the zoo.
    first, last = silence["curve"][0], silence["curve"][-1]
    assert (first["threshold"], first["silent"], first["r_at_10_kept"]) == (0.0, 0.75, 1.0)
    assert (last["silent"], last["silent_unanswerable"]) == (1.0, 1.0)
    assert [point["threshold"] for point in silence["curve"] if "product" in point] == [OPTIONS.threshold]
    for curve in (silence["curve"], silence["baseline"]["curve"]):
        assert [point["silent"] for point in curve] == sorted(point["silent"] for point in curve)
        kept = [point["r_at_10_kept"] for point in curve]
        assert kept == sorted(kept, reverse=True)


# ---- context


def test_a_block_is_worth_what_it_names(write: Write) -> None:
    memories = [
        memory("a", "Prices are whole cents", files=["shop/price.py"]),
        memory("b", "Releases go out on Mondays", files=["Makefile"], at=2 * DAY),
    ]
    queries = [
        query("q", "which prices are whole cents?", {"a": 1}, files=["shop/price.py", "shop/cart.py"]),
        query("none", "zebra", {}),
    ]
    (dataset,) = read_sets([write("s", memories, queries)])
    with open_scratch(dataset, options=OPTIONS) as scratch:
        blocks = context.build_blocks(scratch, budgets=(100, 500))
    result = context.summarize([(dataset.name, dataset.group, blocks)], budget=500)
    (row,) = result["sets"]
    assert (row["relevant"], row["relevant_share"], row["files"], row["files_share"]) == (1, 1, 1, 0.5)
    assert (row["items"], row["precision"], row["silent"], row["useful"]) == (1, 1, 0.5, 0.5)
    assert row["tokens_of_a_block"] == 2 * row["tokens"] == row["tokens_per_useful"] > 0
    newest, plain = row["baseline"]["recency"], row["baseline"]["fts5"]
    assert (newest["relevant"], newest["items"], newest["silent"], newest["precision"]) == (1, 2, 0, 0.25)
    assert (plain["relevant"], plain["items"], plain["silent"]) == (1, 1, 0.5)
    assert [point["budget"] for point in result["curve"]] == [100, 500]


def test_no_block_of_any_method_exceeds_its_budget(write: Write) -> None:
    memories = [memory(f"m{number}", f"cents of price {number}") for number in range(30)]
    (dataset,) = read_sets([write("s", memories, [query("q", "cents of a price", {"m1": 1})])])
    with open_scratch(dataset, options=OPTIONS) as scratch:
        blocks = context.build_blocks(scratch, budgets=(60, 77, 100, 333, 500, 1500))
    for (_, budget), given_blocks in blocks.items():
        for block in given_blocks:
            assert count(block.text) <= budget
            assert len(block.memories) <= LAYOUT["prompt"].layers[-1].limit


# ---- tokens, and the comparison of two runs


def test_errors_of_the_estimator_are_as_counted_by_hand(tmp_path: Path) -> None:
    text = "def price(cents: int) -> str: ..."
    ours = count(text, family="claude-3")
    path = tmp_path / "samples.jsonl"
    rows = [
        {"category": "code", "text": text, "claude_3": ours * 2, "claude_4_7": count(text)},
        {"category": "code", "text": text, "claude_3": ours},
        {"category": "prose", "text": text, "claude_3": ours},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    newer, older = measure_estimates(read_samples(path))["families"]
    assert (newer["family"], newer["samples"], newer["error"], newer["passes"]) == ("claude-4.7", 1, 0.0, True)
    assert (older["error"], older["signed"]) == (pytest.approx(0.5 / 3, abs=1e-5), pytest.approx(-0.5 / 3, abs=1e-5))
    code, prose = older["categories"]
    assert (code["error"], code["signed"], code["worst_under"], code["passes"]) == (0.25, -0.25, -0.5, False)
    assert (prose["category"], prose["passes"], older["passes"]) == ("prose", True, False)
    path.write_text('{"category": "x", "text": "y", "claude_3": 0}')
    with pytest.raises(BadRequest, match="line 1: needs a count"):
        read_samples(path)


def test_the_estimator_passes_on_the_samples_beside_the_repository(shared: Path) -> None:
    result = measure_estimates(read_samples(shared / "tokens" / "samples.jsonl"))
    assert [each["family"] for each in result["families"] if not each["passes"]] == []


def test_a_comparison_shows_what_differs_largest_first(capsys: pytest.CaptureFixture[str]) -> None:
    old = {"sets": [{"name": "a", "mrr": 0.5, "r": 1.0}, {"name": "b", "mrr": 0.5}], "mean": {"mrr": 0.5, "gone": 1}}
    new = {"sets": [{"name": "b", "mrr": 0.25}, {"name": "a", "mrr": 0.51, "r": 1.0}], "mean": {"mrr": 0.5}}
    print_comparison(old, new)
    heading, first, second = capsys.readouterr().out.strip().splitlines()
    assert heading == "Compared: 4 figures, 2 differ; 1 are in one run only"
    assert first.split() == ["-50.00%", "0.5", "->", "0.25", "sets.b.mrr"]
    assert second.split()[0] == "+2.00%"
