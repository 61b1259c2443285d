"""Fitting lines into a budget: never over it, best first, and nothing is wasted while something still fits."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.models import EMPTY, Context, Memory, Ranked
from foreword.recall import render, tokens
from foreword.recall.budget import SHARE, Layer, Line, fit
from tests.tables import table
from tests.unit.recalling import NOW, SCRIPTS, InMemory, a_memory, ask


def words(text):
    """A count that is easy to do in the head: one token a word."""
    return len(text.split())


def framed(layers):
    """Two words of frame, one word of heading a layer."""
    body = "\n".join(f"#{layer.name}\n" + "\n".join(line.text for line in layer.lines) for layer in layers)
    return f"begin\n{body}\nend" if layers else ""


def a_line(text, *, score=1.0, group=""):
    return Line(text=text, ranked=Ranked(Memory("note", text), score, EMPTY), group=group)


def a_layer(name, *texts, cap=1000, **more):
    """Lines in the order of their scores, best first."""
    lines = (a_line(text, score=1 - place / 100) for place, text in enumerate(texts))
    return Layer(name=name, lines=tuple(lines), cap=cap, **more)


def chosen(fitted):
    return {layer.name: [line.text for line in layer.lines] for layer in fitted.layers}


def fitted(layers, *, limit, render=framed, count=words):
    return fit(layers, limit=limit, render=render, count=count)


def limit_for(budget):
    """The limit whose 95 percent are *budget*."""
    return -(-budget * 100 // SHARE)


TEXTS = st.text(max_size=80) | st.integers(1, 60).map(lambda many: "word " * many)
LINES = st.builds(
    lambda text, score, group: a_line(text, score=score, group=group),
    TEXTS,
    st.floats(0, 1),
    st.sampled_from(["", "universal", "project"]),
)
LAYERS = st.lists(
    st.builds(
        Layer,
        name=st.sampled_from(["standing", "changes", "rules", "knowledge", "else"]),
        lines=st.lists(LINES, max_size=8).map(tuple),
        cap=st.integers(-1, 200),
        limit=st.integers(0, 8),
        groups=st.sampled_from([EMPTY, {"universal": 10}, {"universal": 20, "project": 30}]),
    ),
    max_size=5,
)


@settings(deadline=None)
@given(LAYERS, st.integers(-10, 600))
def test_never_spends_more_than_95_percent_of_the_limit(layers, limit):
    got = fitted(layers, limit=limit, render=real, count=tokens.count)
    assert tokens.count(got.text) == got.tokens <= max(0, limit * 95 // 100)
    assert bool(got.layers) == bool(got.text)
    assert got.text == real(got.layers)


def real(layers):
    return render.block(layers, trigger="session_start", project="rooms")


@settings(deadline=None)
@given(LAYERS, st.integers(0, 300), st.integers(0, 9), st.integers(0, 9))
def test_never_spends_more_however_strange_the_rendering_and_the_count(layers, limit, odd, odder):
    def strange(some):
        return "x " * sum(len(line.text) * odd % 7 for layer in some for line in layer.lines)

    def stranger(text):
        return len(text) * odder % 11 * 10 - odder

    assert words(fitted(layers, limit=limit, render=strange).text) <= limit * 95 // 100
    got = fitted(layers, limit=limit, render=strange, count=stranger)
    assert not got.text or stranger(got.text) == got.tokens <= limit * 95 // 100


@settings(deadline=None)
@given(LAYERS, st.integers(0, 600))
def test_shows_only_what_it_was_given_in_its_order_and_within_limits(layers, limit):
    got = fitted(layers, limit=limit, render=real, count=tokens.count)
    left = iter(layers)
    for layer in got.layers:
        source = next(each for each in left if each.name == layer.name and is_part(layer.lines, each.lines))
        assert 0 < len(layer.lines) <= source.limit
        assert source.cap > 0


def is_part(some, every):
    rest = iter(every)
    return all(any(line.ranked is each.ranked and line.text == each.text for each in rest) for line in some)


@settings(deadline=None)
@given(st.integers(1, 100), st.lists(st.integers(1, 30), min_size=1, max_size=12))
def test_leaves_no_line_out_that_would_still_fit(budget, lengths):
    layers = [a_layer(name, *("w " * many for many in lengths)) for name in ("one", "two")]
    got = fitted(layers, limit=limit_for(budget))
    shown = {layer.name: layer.lines for layer in got.layers}
    for layer in layers:
        mine = shown.get(layer.name, ())
        heading = 0 if mine else 1
        frame = 0 if got.text else 2
        out = [line for line in layer.lines if not any(line is each for each in mine)]
        assert all(got.tokens + words(line.text) + heading + frame > budget for line in out)


def test_the_best_come_first_and_each_layer_has_its_cap():
    # One long memory does not hide ten short ones.
    layer = a_layer("past", "long " * 500, *(f"short {place}" for place in range(10)))
    assert chosen(fitted([layer], limit=100)) == {"past": [f"short {place}" for place in range(10)]}
    # The best are taken first and keep their order.
    lines = tuple(a_line(f"{score} b c d", score=score) for score in (0.2, 0.9, 0.1, 0.8))
    assert chosen(fitted([Layer(name="past", lines=lines, cap=50)], limit=limit_for(11))) == {
        "past": ["0.9 b c d", "0.8 b c d"]
    }
    # Each layer gets its cap before any gets more.
    greedy = a_layer("one", *("a b c d" for _ in range(10)), cap=9)
    modest = a_layer("two", "e f g h", "i j k l", cap=9)
    got = chosen(fitted([greedy, modest], limit=limit_for(20)))
    assert got == {"one": ["a b c d"] * 2, "two": ["e f g h", "i j k l"]}
    # The cap covers the heading.
    first, second = (a_layer(name, *("a b c d" for _ in range(10)), cap=8) for name in ("one", "two"))
    got = chosen(fitted([first, second], limit=limit_for(12)))
    assert got == {"one": ["a b c d"], "two": ["a b c d"]}
    # Unused caps flow to the layers that still wait in order.
    small = a_layer("one", "a", cap=50)
    waiting = a_layer("two", *("a b c d" for _ in range(10)), cap=5)
    also = a_layer("three", *("a b c d" for _ in range(10)), cap=5)
    got = chosen(fitted([small, waiting, also], limit=limit_for(30)))
    assert {name: len(lines) for name, lines in got.items()} == {"one": 1, "two": 5, "three": 1}


def grouped(*groups, cap=100, **caps):
    """Four words a line, the groups in the order of their scores, best first."""
    lines = tuple(a_line("a b c d", score=1 - at / 100, group=group) for at, group in enumerate(groups))
    return Layer(name="rules", lines=lines, cap=cap, groups=caps)


def test_groups_share_the_cap_of_their_layer():
    # Each group gets its cap before any gets more.
    layer = grouped(*["project"] * 9, "universal", "universal", "universal", universal=8, project=12)
    got = fitted([layer], limit=limit_for(2 + 1 + 20))
    assert [line.group for line in got.layers[0].lines] == ["project"] * 3 + ["universal"] * 2
    # What a group leaves unused flows on to the best.
    layer = grouped("project", "other", "project", "other", "project", universal=20, project=4, other=4)
    got = fitted([layer], limit=limit_for(2 + 1 + 16))
    assert [line.group for line in got.layers[0].lines] == ["project", "other", "project", "other"]
    # One group alone may have the whole budget.
    layer = grouped(*["project"] * 10, universal=15, language=15, project=20, cap=50)
    assert fitted([layer], limit=limit_for(2 + 1 + 36)).tokens == 2 + 1 + 36
    # What groups leave stays in the layers cap before others have it.
    rules = grouped(*["project"] * 5, cap=21, universal=10, project=10)
    waiting = a_layer("past", *("a b c d" for _ in range(10)), cap=5)
    got = chosen(fitted([waiting, rules], limit=limit_for(2 + 5 + 21)))
    assert {name: len(lines) for name, lines in got.items()} == {"past": 1, "rules": 5}
    # Many short lines of one group do not take the places of the others.
    lines = [a_line(f"own {n}", score=1 - n / 100, group="project") for n in range(9)]
    far = a_line("for all", score=0.1, group="universal")
    layer = Layer(name="rules", lines=(*lines, far), cap=20, limit=5, groups={"project": 8, "universal": 5})
    got = chosen(fitted([layer], limit=1000))
    assert got == {"rules": ["own 0", "own 1", "own 2", "own 3", "for all"]}


def test_a_layer_shows_at_most_its_limit_of_lines():
    assert chosen(fitted([a_layer("sessions", "a", "b", "c", limit=2)], limit=1000)) == {"sessions": ["a", "b"]}


def test_what_is_missing_is_told_and_few_renderings_are_enough():
    # Says why a layer is missing.
    layers = [a_layer("one"), a_layer("two", "w " * 300), a_layer("three", "x", cap=0), a_layer("four", "x")]
    assert fitted(layers, limit=100).skipped == {"one": "empty", "two": "does not fit", "three": "off"}
    # Nothing in nothing out.
    for layers in ([], [a_layer("past")], [a_layer("past", "w " * 300)]):
        got = fitted(layers, limit=100)
        assert (got.layers, got.text, got.tokens) == ((), "", 0)
    # Few renderings are enough.
    calls = []

    def counted(layers):
        calls.append(1)
        return real(layers)

    names = ("standing", "sessions", "failures", "rules", "knowledge", "changes")
    few = [a_layer(name, "- one line about what happened", cap=300) for name in names]
    fitted(few, limit=2000, render=counted, count=tokens.count)
    assert len(calls) == 1
    many = [a_layer(name, *(f"- line {at} about what happened" * 3 for at in range(30)), cap=300) for name in names]
    got = fitted(many, limit=2000, render=counted, count=tokens.count)
    assert len(calls) < 1 + 3 * len(names)
    assert got.tokens > 1800  # and little is left unused


# -- an index of twelve ------------------------------------------------------------------------------------------------
@table("script", SCRIPTS)
def test_an_index_holds_twelve_whatever_their_titles_are(script):
    rand = random.Random(script)
    for many in (12, 20, 40):
        memories = [
            a_memory(SCRIPTS[script](rand), kind="observation", id=f"obs-{rand.randrange(10**8):08}", body="long " * 90)
            for _ in range(many)
        ]
        got = ask(InMemory(memories), "prompt", "walrus pool opening hours", overrides={"style": "index"}, now=NOW)
        assert isinstance(got, Context)
        rows = got.text.split("\n")[1:-1]
        assert len(got.items) == len(rows) >= 12, script
        assert got.tokens <= 475
        assert all(1 <= len(row.split(" | ")[1]) <= 60 for row in rows)
