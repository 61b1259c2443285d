"""caps: what a host takes in one output is never passed, whatever is known and however high the budgets are set."""

import itertools
import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.agents import AGENTS, find
from foreword.layout import LAYOUT, MOST_TOKENS, merge_layout
from foreword.models import KINDS, Cap, Context, Memory, Trigger
from foreword.recall import render
from foreword.recall.budget import Layer, fit
from foreword.recall.pipeline import recall
from foreword.recall.tokens import count
from tests.tables import table
from tests.unit.recalling import HERE, NOW, SCRIPTS, InMemory, any_memory, options
from tests.unit.test_budget import a_layer, a_line, chosen, is_part, words

COUNTS = ("characters", "utf-16", "utf-8")
ENDS = {
    "markdown": ("--- foreword", render.END),
    "codes": ("--- foreword", render.END),
    "xml": (render.XML_BEGIN, render.XML_END),
    "plain": (render.PLAIN_BEGIN, render.PLAIN_END),
}
GENEROUS = merge_layout(
    {
        name: {"budget": MOST_TOKENS, **{layer.name: {"limit": 200} for layer in recipe.layers}}
        for name, recipe in LAYOUT.items()
    }
)[0]


@table("text", ["", "plain", "é", "日本語", "👩‍👩‍👧 family", "lone \ud83d half", "mixed é 日 👍\n"])
def test_a_cap_counts_what_its_host_counts(text):
    assert Cap(1).size(text) == len(text)
    assert Cap(1, "utf-16").size(text) == len(text.encode("utf-16-le", "surrogatepass")) // 2  # as JavaScript does
    assert Cap(1, "utf-8").size(text) == len(text.encode("utf-8", "surrogatepass"))


def test_hosts_say_what_they_take():
    assert {name: find(name).cap for name in AGENTS} == {
        "claude-code": Cap(10_000, "utf-16"),
        "codex": Cap(10_000, "utf-8"),
        "cursor": Cap(10_000),
        "copilot": None,
        "gemini": None,
        "opencode": None,
    }


def recalled(memories, *, trigger, form, budget, cap, style="notes"):
    wanted = Trigger(trigger, HERE, prompt="walrus pool opening hours", budget=budget, form=form, languages=())
    chosen_options = options(trigger, layout=GENEROUS[trigger], cap=cap, style=style, threshold=0.0)
    return recall(InMemory(memories), wanted, options=chosen_options, now=NOW)


def assert_whole(got, *, trigger, form, budget, cap):
    """Within cap and budget, in its frame, and every memory in lines that its renderer wrote."""
    assert cap.size(got.text) <= cap.most
    assert count(got.text) == got.tokens <= (budget or GENEROUS[trigger].budget) * 95 // 100
    begin, end = ENDS["plain" if trigger == "compaction" else form]
    assert got.text.startswith(begin)
    assert got.text.endswith(end)
    assert got.items
    assert got.problems == ()


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 10_000),
    st.integers(1, 260),
    st.sampled_from(("session_start", "prompt", "compaction", "question")),
    st.sampled_from(tuple(ENDS)),
    st.sampled_from((0, 500, 2000, 10_000, 30_000, 100_000)),
    st.sampled_from(COUNTS),
    st.sampled_from((700, 3000, 10_000, 10_240)),
)
def test_no_store_and_no_budget_ever_passes_the_cap(seed, many, trigger, form, budget, counts, most):
    rand, cap = random.Random(seed), Cap(most, counts)
    memories = [any_memory(rand) for _ in range(many)]
    got = recalled(memories, trigger=trigger, form=form, budget=budget, cap=cap)
    free = recalled(memories, trigger=trigger, form=form, budget=budget, cap=None)
    if not isinstance(free, Context):
        assert not isinstance(got, Context)
    elif cap.size(free.text) <= most:
        assert isinstance(got, Context)
        assert got.text == free.text  # byte for byte
    elif isinstance(got, Context):
        assert_whole(got, trigger=trigger, form=form, budget=budget, cap=cap)


@table(
    "host, script",
    [*itertools.product(("claude-code", "codex", "cursor"), ("English", "Japanese", "emoji")), ("codex", "paths")],
)
def test_a_host_that_takes_ten_thousand_gets_nearly_as_much_whatever_the_script(host, script):
    rand, cap = random.Random(7), find(host).cap
    kinds = [kind for kind in KINDS if kind != "goal"]
    memories = [
        replace(any_memory(rand), kind=kinds[at % len(kinds)], title=SCRIPTS[script](rand), confidence=1.0, detail={})
        for at in range(400)
    ]
    got = recalled(memories, trigger="question", form="markdown", budget=100_000, cap=cap)
    assert_whole(got, trigger="question", form="markdown", budget=100_000, cap=cap)
    assert cap.size(got.text) > 0.9 * cap.most


LINES = st.builds(
    lambda text, score: a_line(text, score=score),
    st.text(max_size=120) | st.integers(1, 60).map(lambda many: "日👍 " * many),
    st.floats(0, 1),
)
LAYERS = st.lists(
    st.builds(
        Layer,
        name=st.sampled_from(["standing", "changes", "rules", "knowledge", "else"]),
        lines=st.lists(LINES, max_size=12).map(tuple),
        cap=st.integers(-1, 2000),
        limit=st.integers(0, 12),
    ),
    max_size=5,
)


def real(layers):
    return render.block(layers, trigger="session_start", project="rooms")


@settings(deadline=None)
@given(LAYERS, st.integers(0, 5000), st.builds(Cap, st.integers(1, 1200), st.sampled_from(COUNTS)))
def test_only_whole_lines_are_shown_and_never_more_than_the_cap(layers, limit, cap):
    got = fit(layers, limit=limit, render=real, count=count, cap=cap)
    free = fit(layers, limit=limit, render=real, count=count)
    assert cap.size(got.text) <= cap.most
    assert count(got.text) == got.tokens <= limit * 95 // 100
    assert got.text == (free.text if cap.size(free.text) <= cap.most else real(got.layers))
    left = iter(layers)
    for layer in got.layers:
        source = next(each for each in left if each.name == layer.name and is_part(layer.lines, each.lines))
        assert 0 < len(layer.lines) <= source.limit
        assert source.cap > 0


def framed(layers):
    return "begin\n" + "\n".join(line.text for layer in layers for line in layer.lines) + "\nend" if layers else ""


def fitted(layers, *, cap, limit=10_000):
    return fit(layers, limit=limit, render=framed, count=words, cap=Cap(cap))


def test_lines_share_a_cap():
    # Layers share a cap as they share a budget.
    layers = [a_layer(name, *(["many words " * 5] * 40), cap=2000) for name in ("one", "two", "three")]
    got = chosen(fitted(layers, cap=1200))
    assert set(got) == {"one", "two", "three"}
    assert max(map(len, got.values())) - min(map(len, got.values())) <= 1
    # Nothing is said where not even the frame is taken.
    assert fitted([a_layer("past", "short")], cap=5).text == ""
    # A memory of a megabyte is no danger.
    memories = [
        Memory("decision", "walrus " * 200_000, id=f"dec-{at:08}", scope=HERE.scope, created=NOW) for at in range(9)
    ]
    cap = Cap(900, "utf-16")
    got = recalled(memories, trigger="session_start", form="markdown", budget=100_000, cap=cap)
    assert_whole(got, trigger="session_start", form="markdown", budget=100_000, cap=cap)
