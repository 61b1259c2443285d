"""What `foreword eval` measures, on sets so small that a person can count along."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from math import log2
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.errors import BadRequest
from foreword.evaluate import context, estimates, measures, retrieval, silence
from foreword.evaluate.scratch import Product, Scratch, scratch
from foreword.evaluate.sets import Set, read
from foreword.recipes import RECIPES
from foreword.store.baseline import PlainIndex, plain_words
from foreword.tokens import count

DAY = 86_400
SHARED = Path(__file__).parents[2].parent / "shared"
PRODUCT = Product(
    recipe=RECIPES["prompt"], threshold=0.06, synonyms={}, most_terms=10, postings=5000, family="claude-4.7"
)

Write = Callable[..., Path]


def memory(id: str, title: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "kind": "decision", "at": DAY, "title": title, "body": "", "files": [], "functions": [], **more}


def query(id: str, prompt: str, relevant: dict[str, int], **more: Any) -> dict[str, Any]:
    return {"id": id, "at": 3 * DAY, "prompt": prompt, "files": [], "relevant": relevant, **more}


SHOP = [memory("a", "Prices are whole cents"), memory("b", "Invoices carry the price"), memory("c", "Use pytest")]
ZOO = [memory("x", "Giraffes sleep standing"), memory("y", "Lions sleep all day")]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a set as two files, and gives its folder; a text is a line as it is."""

    def written(name: str, memories: Sequence[Any] = SHOP, queries: Sequence[Any] = ()) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        given = queries or [query("q", "which cents?", {"a": 1})]
        for file, rows in (("memories.jsonl", memories), ("queries.jsonl", given)):
            lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
            (folder / file).write_text("\n".join(lines), encoding="utf-8")
        return folder

    return written


def asked(given: Set) -> retrieval.Result:
    with scratch(given, product=PRODUCT) as opened:
        return retrieval.ask(opened)


# ---- the measures


def test_ndcg_is_the_gain_by_hand() -> None:
    found, relevant = ["x", "a", "y", "b"], {"a": 1, "b": 2, "c": 1}
    # grade 1 gains 1 and grade 2 gains 3; places 2 and 4 are divided by log2 of 3 and 5.
    gained = 1 / log2(3) + 3 / log2(5)
    possible = 3 / log2(2) + 1 / log2(3) + 1 / log2(4)
    assert measures.ndcg(found, relevant, most=10) == pytest.approx(gained / possible)
    assert measures.ndcg(found, relevant, most=2) == pytest.approx((1 / log2(3)) / (3 + 1 / log2(3)))
    assert measures.ndcg(["b", "a", "c"], relevant, most=10) == 1.0


def test_the_other_measures_by_hand() -> None:
    found = [f"no-{place}" for place in range(5)] + ["a"] + [f"no-{place}" for place in range(5, 10)] + ["b"]
    told = measures.measured(found, {"a": 1, "b": 1, "c": 1, "d": 1})
    assert (told["r_at_5"], told["r_at_10"], told["r_at_20"]) == (0.0, 0.25, 0.5)
    assert (told["hit_at_10"], told["mrr"]) == (1.0, pytest.approx(1 / 6))
    nothing = measures.measured([], {"a": 1})
    assert set(nothing.values()) == {0.0}
    assert tuple(nothing) == measures.NAMES


def test_the_area_under_the_curve_counts_a_tie_as_half() -> None:
    assert measures.auc([3.0, 2.0], [1.0, 2.0]) == (1 + 1 + 1 + 0.5) / 4
    assert measures.auc([], [1.0]) is None


@given(
    st.permutations(["a", "b", "c", "d", "e"]),
    st.dictionaries(st.sampled_from("abcdefg"), st.integers(1, 3), min_size=1),
)
def test_every_measure_is_a_share(found: list[str], relevant: dict[str, int]) -> None:
    assert all(0 <= number <= 1 for number in measures.measured(found, relevant).values())


# ---- reading sets


def test_sets_are_found_however_deep_and_named_once(write: Write, tmp_path: Path) -> None:
    for name in ("bench/replay/aider", "bench/replay/httpx", "bench/alone", "other/aider"):
        write(name)
    found = read([tmp_path / "bench", tmp_path / "other", tmp_path / "bench" / "alone"])
    assert [each.name for each in found] == ["alone", "replay/aider", "httpx", "other/aider"]
    assert [each.group for each in found] == ["alone", "replay", "replay", "aider"]


def test_memories_and_questions_come_in_the_order_of_time(write: Write) -> None:
    (found,) = read(
        [
            write(
                "s",
                [memory("late", "x", at=2 * DAY), memory("early", "y")],
                [query("q2", "x", {}, at=9 * DAY), query("q1", "y", {"early": 0}, at=5 * DAY)],
            )
        ]
    )
    assert [each.uid for each in found.memories] == ["early", "late"]
    assert [each.id for each in found.questions] == ["q1", "q2"]
    assert found.questions[0].relevant == {}  # a grade of 0 says that it does not help


@pytest.mark.parametrize(
    ("memories", "queries", "says"),
    [
        ([memory("a", "x"), "{broken"], None, r"memories.jsonl, line 2 is not JSON"),
        ([memory("a", "x"), "", "[1]"], None, r"memories.jsonl, line 3 is not an object"),
        ([memory("a", " ")], None, r"line 1: `title` must be a text that is not empty"),
        ([{"id": "a", "kind": "note", "at": 1}], None, r"line 1: `title`"),
        ([memory("a", "x", kind="rumour")], None, r"line 1: unknown kind 'rumour'"),
        ([memory("a", "x", at=1.7e12)], None, r"line 1: `at` must be a time in Unix seconds"),
        ([memory("a", "x", files="app.py")], None, r"line 1: `files` must be a list of texts"),
        ([memory("a", "x"), memory("a", "y")], None, r"has the id 'a' twice"),
        ([""], None, r"memories.jsonl is empty"),
        (SHOP, [query("q", "x", {"zz": 1})], r"queries.jsonl, line 1: `relevant` names 'zz'"),
        (SHOP, [query("q", "x", {"a": "much"})], r"`relevant` must give each memory's id a grade"),  # type: ignore[dict-item]
        (SHOP, [{"id": "q", "at": 1, "prompt": "x"}], r"`relevant` must give"),
        (SHOP, [query("q", "", {})], r"`prompt` must be a text that is not empty"),
        (SHOP, ["", " "], r"queries.jsonl is empty"),
    ],
)
def test_a_broken_set_is_told_with_its_line_and_the_way_out(
    write: Write, memories: list[Any], queries: list[Any] | None, says: str
) -> None:
    folder = write("s", memories, queries or ())
    with pytest.raises(BadRequest, match=says) as told:
        read([folder])
    assert told.value.hint


def test_a_missing_file_or_folder_is_told(write: Write, tmp_path: Path) -> None:
    folder = write("s")
    (folder / "queries.jsonl").unlink()
    with pytest.raises(BadRequest, match=r"queries.jsonl is missing"):
        read([folder])
    with pytest.raises(BadRequest, match="is not a folder"):
        read([tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadRequest, match="there is no set in"):
        read([tmp_path / "empty"])


# ---- the baseline


def test_plain_search_ors_the_words_that_say_something() -> None:
    assert plain_words("How do I use the Prices of prices?") == ("prices",)
    index = PlainIndex()
    index.add(read_memories(SHOP))
    assert index.best(plain_words("price of an invoice"), at=DAY, limit=9) == ("b", "a")  # stems; b holds both words
    assert index.best(("pytest",), at=DAY - 1, limit=9) == ()  # younger than the question
    assert index.best((), at=DAY, limit=9) == ()
    assert (index.coverage("b", ("price", "invoice", "zebra", "cents")), index.coverage("b", ())) == (0.5, 0.0)
    index.close()


def read_memories(rows: Sequence[dict[str, Any]]) -> list[Any]:
    from foreword.types import Memory

    return [Memory(kind=row["kind"], title=row["title"], uid=row["id"], created=row["at"]) for row in rows]


@pytest.mark.skipif(not (SHARED / "bench").is_dir(), reason="the public benchmarks are not beside this repository")
def test_the_baseline_has_the_figures_that_are_known_of_it() -> None:
    told: dict[str, list[dict[str, float]]] = {}
    for each in read([SHARED / "bench"]):
        index = PlainIndex()
        index.add(each.memories)
        of_set = [
            measures.measured(index.best(plain_words(one.prompt), at=one.at, limit=50), one.relevant)
            for one in each.questions
            if one.relevant
        ]
        index.close()
        means = {name: measures.mean(one[name] for one in of_set) or 0.0 for name in measures.NAMES}
        told.setdefault(each.group, []).append(means)
    # Published beside the sets: 0.17, 0.61 and 0.88, each with a stop list of its own.
    assert measures.mean(one["ndcg_at_10"] for one in told["replay"]) == pytest.approx(0.17, abs=0.01)
    assert measures.mean(one["r_at_10"] for one in told["locomo"]) == pytest.approx(0.61, abs=0.015)
    assert measures.mean(one["mrr"] for one in told["devmem"]) == pytest.approx(0.88, abs=0.015)


# ---- retrieval


def test_a_set_is_measured_beside_the_baseline(write: Write) -> None:
    queries = [
        query("found", "which cents?", {"a": 1}),
        query("half", "invoices", {"b": 1, "c": 1}),
        query("unanswerable", "zebra crossing", {}),
    ]
    (row,) = retrieval.summary([asked(*read([write("s", SHOP, queries)]))])["sets"]
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
    write("alone")
    answer = retrieval.summary([asked(each) for each in read([tmp_path])])
    assert {name: each["r_at_10"] for name, each in answer["groups"].items()} == {"alone": 1.0, "g": 0.5}
    assert answer["mean"]["r_at_10"] == pytest.approx(2 / 3, abs=1e-6)
    assert (answer["mean"]["queries"], answer["mean"]["sets"]) == (11, 3)
    keys = {"ndcg_at_10", "r_at_5", "r_at_10", "r_at_20", "mrr", "silent"}
    for row in (*answer["sets"], answer["mean"], *answer["groups"].values()):
        assert keys <= row.keys()
        assert keys <= row["baseline"].keys()
        assert "ratio_ndcg_at_10" in row


def test_a_set_without_any_answer_has_no_measures_but_silence(write: Write) -> None:
    answer = retrieval.summary([asked(*read([write("s", SHOP, [query("q", "zebra", {})])]))])
    assert (answer["mean"]["ndcg_at_10"], answer["mean"]["ratio_ndcg_at_10"]) == (None, None)
    assert answer["mean"]["silent"] == 1.0


def test_no_question_sees_the_future(write: Write) -> None:
    memories = [memory("old", "cents"), memory("new", "cents again", at=5 * DAY)]
    queries = [query("before", "cents?", {"old": 1}, at=4 * DAY), query("after", "cents?", {"new": 1}, at=6 * DAY)]
    (given_set,) = read([write("s", memories, queries)])
    before, after = asked(given_set).asked
    assert ([hit.uid for hit in before.found], before.plain) == (["old"], ("old",))
    assert {hit.uid for hit in after.found} == {"old", "new"}
    with scratch(given_set, product=PRODUCT) as opened:
        told = context.blocks(opened, budgets=(500,))
    assert [[one.uid for one in block.memories] for block in told["recency", 500]] == [["old"], ["new", "old"]]


def test_a_prompt_without_a_topic_finds_nothing(write: Write) -> None:
    (one,) = asked(*read([write("s", SHOP, [query("q", "and what about this?", {"a": 1})])])).asked
    assert one.found == ()


def test_the_same_sets_give_the_same_result(write: Write) -> None:
    memories = [memory(f"m{number}", "the very same words") for number in range(40)]
    (given_set,) = read([write("s", memories, [query("q", "same words", {"m3": 1})])])
    assert asked(given_set).asked == asked(given_set).asked


# ---- silence


def curves(folders: Sequence[Path]) -> dict[str, Any]:
    with ExitStack() as stack:
        opened: list[Scratch] = [stack.enter_context(scratch(each, product=PRODUCT)) for each in read(folders)]
        results = [retrieval.ask(each) for each in opened]
        told = silence.silence(opened, results)
        assert told["prompts"] == silence.pairs(opened)
        return told


def test_strange_prompts_are_silenced_at_the_price_of_own_ones(write: Write) -> None:
    shop = [query("cents", "which cents?", {"a": 1}), query("sleep", "do prices sleep?", {"a": 1})]
    zoo = [query("lions", "lions sleep?", {"y": 1}), query("none", "zebra", {})]
    told = curves([write("shop", SHOP, shop), write("zoo", ZOO, zoo)])
    assert told["prompts"] == 4
    # Of the four only "do prices sleep?" finds anything in the zoo.
    first, last = told["curve"][0], told["curve"][-1]
    assert (first["threshold"], first["silent"], first["r_at_10_kept"]) == (0.0, 0.75, 1.0)
    assert (last["silent"], last["silent_unanswerable"]) == (1.0, 1.0)
    assert [point["threshold"] for point in told["curve"] if "product" in point] == [PRODUCT.threshold]
    for curve in (told["curve"], told["baseline"]["curve"]):
        assert [point["silent"] for point in curve] == sorted(point["silent"] for point in curve)
        kept = [point["r_at_10_kept"] for point in curve]
        assert kept == sorted(kept, reverse=True)
    assert 0 <= told["kept_at_90_silent"] <= 1
    assert [point["threshold"] for point in told["groups"].values()] == [PRODUCT.threshold]


def test_no_more_strangers_are_asked_than_the_sample_has(write: Write) -> None:
    many = [query(f"q{number}", f"cents {number}", {"a": 1}) for number in range(60)]
    told = curves([write("one", SHOP, many), write("two", SHOP, many[:10])])
    assert told["prompts"] == silence.PROMPTS // 2 + 10 if silence.PROMPTS < 120 else 70


# ---- context


def worth(folder: Path, *, budget: int = 500) -> dict[str, Any]:
    (given_set,) = read([folder])
    with scratch(given_set, product=PRODUCT) as opened:
        told = context.blocks(opened, budgets=sorted({100, budget}))
    return context.summary([(given_set.name, given_set.group)], [told], budget=budget)


def test_a_block_is_worth_what_it_names(write: Write) -> None:
    memories = [
        memory("a", "Prices are whole cents", files=["shop/price.py"]),
        memory("b", "Releases go out on Mondays", files=["Makefile"], at=2 * DAY),
    ]
    queries = [
        query("q", "how many cents?", {"a": 1}, files=["shop/price.py", "shop/cart.py"]),
        query("none", "zebra", {}),
    ]
    answer = worth(write("s", memories, queries))
    (row,) = answer["sets"]
    assert (row["relevant"], row["relevant_share"], row["files"], row["files_share"]) == (1, 1, 1, 0.5)
    assert (row["items"], row["precision"], row["silent"], row["useful"]) == (1, 1, 0.5, 0.5)
    assert row["tokens_of_a_block"] == 2 * row["tokens"] == row["tokens_per_useful"] > 0
    newest, plain = row["baseline"]["recency"], row["baseline"]["fts5"]
    assert (newest["relevant"], newest["items"], newest["silent"], newest["precision"]) == (1, 2, 0, 0.25)
    assert (plain["relevant"], plain["items"], plain["silent"]) == (1, 1, 0.5)
    assert answer["mean"]["relevant"] == 1


@settings(max_examples=10, deadline=None)
@given(st.integers(60, 1500))
def test_no_block_of_any_method_passes_its_budget(budget: int) -> None:
    with scratch(THIRTY, product=PRODUCT) as opened:
        told = context.blocks(opened, budgets=(budget,))
    for blocks in told.values():
        for block in blocks:
            assert count(block.text) <= budget
            assert len(block.memories) <= RECIPES["prompt"].layers[0].limit


THIRTY = Set(
    name="thirty",
    group="thirty",
    memories=tuple(read_memories([memory(f"m{number}", f"cents of price {number}") for number in range(30)])),
    questions=(context.Question(id="q", prompt="cents of a price", at=2.0 * DAY, files=(), relevant={"m1": 1}),),
)


def test_the_curve_has_every_budget(write: Write) -> None:
    curve = worth(write("s"))["curve"]
    assert [point["budget"] for point in curve] == [100, 500]
    assert all(set(context.NAMES) <= point.keys() for point in curve)


# ---- tokens


def test_errors_of_the_estimator_by_hand(tmp_path: Path) -> None:
    text = "def price(cents: int) -> str: ..."
    ours = count(text, family="claude-3")
    path = tmp_path / "samples.jsonl"
    rows = [
        {"category": "code", "text": text, "claude_3": ours * 2, "claude_4_7": count(text)},
        {"category": "code", "text": text, "claude_3": ours},
        {"category": "prose", "text": text, "claude_3": ours},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    newer, older = estimates.estimates(estimates.read(path))["families"]
    assert (newer["family"], newer["samples"], newer["error"], newer["passes"]) == ("claude-4.7", 1, 0.0, True)
    assert (older["error"], older["signed"]) == (pytest.approx(0.5 / 3, abs=1e-5), pytest.approx(-0.5 / 3, abs=1e-5))
    code, prose = older["categories"]
    assert (code["error"], code["signed"], code["worst_under"], code["passes"]) == (0.25, -0.25, -0.5, False)
    assert (prose["category"], prose["passes"], older["passes"]) == ("prose", True, False)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"category": "x", "text": "y"}, "has none of claude_4_7"),
        ({"category": "x", "text": "y", "claude_3": 0}, "`claude_3` must be a count of at least 1"),
        ({"text": "y", "claude_3": 1}, "`category` must be"),
    ],
)
def test_a_broken_sample_is_told(tmp_path: Path, line: dict[str, Any], says: str) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps(line))
    with pytest.raises(BadRequest, match=f"line 1: {says}"):
        estimates.read(path)
    path.write_text("")
    with pytest.raises(BadRequest, match="is empty"):
        estimates.read(path)


@pytest.mark.skipif(not (SHARED / "tokens").is_dir(), reason="the token samples are not beside this repository")
def test_the_estimator_passes_on_the_samples_beside_the_repository() -> None:
    answer = estimates.estimates(estimates.read(SHARED / "tokens" / "samples.jsonl"))
    assert [each["family"] for each in answer["families"] if not each["passes"]] == []
