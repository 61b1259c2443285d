"""Why nothing is said, over a real store: recall says what it always says, and every silence has its reason."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.errors import StoreError
from foreword.layout import RECIPES
from foreword.recall.pipeline import injection_of, recall
from foreword.recall.silences import REASONS, heard, of_hook, says
from foreword.store.silences import Silence
from foreword.store.sqlite import Store
from foreword.types import Memory, Moment, Project, Context, NoContext
from tests.tables import table

NOW = 1_000_000.0
HERE = Project(key="here", name="here", root="/nowhere")


def a_moment(name="prompt", *, prompt="the walrus pool", session="s", **more):
    return Moment(name=name, project=HERE, prompt=prompt, session=session, **more)


def a_memory(title="The walrus pool is heated", *, kind="decision", **more):
    return Memory(kind, title, **{"project": "here", "created": NOW - 60, **more})


def ask(store, moment, *, threshold=0.0, recipe=None, **more):
    return heard(store, moment, recipe=recipe or RECIPES[moment.name], threshold=threshold, now=NOW, **more)


def why(store, moment, **more):
    got, silence = ask(store, moment, **more)
    assert isinstance(got, NoContext), got
    return silence.why


@pytest.fixture
def store(tmp_path):
    opened = Store(tmp_path / "memory.db", backups=tmp_path / "backups")
    yield opened
    opened.close()


def test_every_silence_has_its_reason(make_store):
    # What is said is no silence and is what recall says.
    store = make_store()
    store.keep([a_memory()])
    got, silence = ask(store, a_moment())
    plain = recall(store, a_moment(), recipe=RECIPES["prompt"], threshold=0.0, now=NOW)
    assert silence is None
    assert isinstance(got, Context)
    assert replace(got, build_ms=0.0) == replace(plain, build_ms=0.0)
    # The nearest below the line is named with its score and what it needed.
    store = make_store()
    best, _ = store.keep([a_memory(), a_memory("A pool of threads")])
    _, silence = ask(store, a_moment(), threshold=0.99)
    assert (silence.why, silence.nearest, silence.needed) == ("below", best.id, 0.99)
    assert 0 < silence.score < 0.99
    assert (silence.moment, silence.session, silence.project) == ("prompt", "s", "here")
    # Nothing that has to do with it is told from what is too far away.
    store = make_store()
    store.keep([a_memory()])
    _, silence = ask(store, a_moment(prompt="zebra crossings"))
    assert (silence.why, silence.nearest) == ("nothing", "")
    assert why(store, a_moment("session_start", prompt=""), recipe=replace(RECIPES["session_start"], layers=())) == (
        "nothing"
    )
    # Every other reason has its word.
    store = make_store()
    (known,) = store.keep([a_memory()])
    assert why(store, a_moment(prompt="ok, do it")) == "wordless"
    assert why(store, a_moment(), shown=lambda: frozenset([known.id])) == "told"
    assert why(store, a_moment(), expired=lambda: True) == "late"
    assert why(store, a_moment(budget=3)) == "room"
    begun = a_moment("session_start", prompt="", source="question")
    assert why(store, begun, spent=lambda: {"session_start": 9}) == "given"
    assert why(store, a_moment("session_start", prompt="", source="resume"), begun=lambda: NOW) == "old"
    store.keep([replace(known, kind="learning", confidence=0.2)])
    assert why(store, a_moment()) == "unsure"
    # A budget that is used up is told with both numbers.
    store = make_store()
    store.keep([a_memory()])
    recipe = replace(RECIPES["prompt"], total=300)
    _, silence = ask(store, a_moment(), recipe=recipe, spent=lambda: {"prompt": 300})
    assert (silence.why, silence.spent, silence.allowed) == ("used", 300, 300)
    assert says(silence) == "this context window's budget for prompts is used up (300 of 300 tokens)"
    _, almost = ask(store, a_moment(), recipe=recipe, spent=lambda: {"prompt": 297})
    assert (almost.why, almost.spent) == ("used", 297)
    together = {"session_start": 2000, "question": 1000}
    _, silence = ask(store, a_moment("question"), spent=lambda: together)
    assert (silence.spent, silence.allowed) == (1000, 1000)
    # What failed is not told as if nothing fitted.
    store = make_store()
    store.keep([a_memory()])
    store._trouble["index"] = "the words index cannot be read"
    got, silence = ask(store, a_moment())
    assert silence.why == "failed"
    assert got.problems
    # A failing ledger breaks nothing.
    store = make_store()

    def broken():
        raise StoreError("no ledger")

    store.keep([a_memory()])
    assert why(store, a_moment(prompt="zebra crossings"), spent=broken) == "failed"


@table(
    ("told", "word"),
    [
        ({"terms": ()}, "wordless"),
        ({"skipped": {}}, "used"),
        ({"skipped": {"index": "deadline"}}, "late"),
        ({"skipped": {"index": "does not fit"}}, "room"),
        ({"skipped": {"index": "empty"}}, "unclear"),
    ],
)
def test_of_a_hook_that_was_alone_as_much_is_told_as_its_record_tells(told, word):
    got = NoContext(reason="", terms=("walrus",), budget=500)
    given = replace(injection_of(a_moment(host="codex"), got, id="inj-1", at=5.0, away=True), **told)
    kept = of_hook(given)
    assert (kept.why, kept.away, kept.id, kept.at, kept.host) == (word, True, "inj-1", 5.0, "codex")
    assert says(kept)


@given(
    word=st.sampled_from([*REASONS, "a word of a later version"]),
    moment=st.sampled_from(list(RECIPES)),
    numbers=st.tuples(*[st.integers(0, 10**6)] * 3),
)
@settings(max_examples=60)
def test_every_reason_is_a_sentence_for_every_moment(word, moment, numbers):
    budget, spent, allowed = numbers
    told = Silence("i", moment, "", "s", "p", "h", 1.0, word, budget=budget, spent=spent, allowed=allowed)
    said = says(told)
    assert bool(said) == (word in REASONS)
    assert "{" not in said
    assert said[:1].islower() or not said
