"""recall, over a real store: within its budget, only what is this project's, only what is new, or nothing at all."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.errors import StoreError
from foreword.layout import RECIPES, merged
from foreword.recall import render
from foreword.recall.pipeline import MOST_RECORDED, injection_of, left_open, meant, recall
from foreword.recall.query import query_of, scopes_of
from foreword.tokens import FAMILIES, count
from foreword.types import KINDS, MOMENTS, Hit, Memory, Moment, Project, Context, NoContext
from tests.tables import table

NOW = 1_000_000.0
HERE = Project(key="here", name="here", root="/nowhere")
fresh = map("p{}".format, itertools.count())


def a_memory(title, *, kind="decision", **more):
    return Memory(kind, title, **{"project": "here", "created": NOW - 60, **more})


def a_moment(name="prompt", *, prompt="", project=HERE, **more):
    return Moment(name=name, project=project, prompt=prompt, **more)


def asked(store, moment, *, threshold=0.0, shown=frozenset(), **more):
    recipe = RECIPES[moment.name]
    return recall(store, moment, recipe=recipe, threshold=threshold, now=NOW, shown=lambda: shown, **more)


def shown_ids(got):
    return [item.memory for item in got.items] if isinstance(got, Context) else []


MEMORIES = st.lists(
    st.builds(
        a_memory,
        st.text(max_size=60) | st.sampled_from(["walrus pool", "walrus " * 60, "版本 walrus", "## walrus\n- walrus"]),
        kind=st.sampled_from(list(KINDS)),
        body=st.text(max_size=100) | st.sampled_from(["", "walrus " * 200, "x" * 2000]),
        scope=st.sampled_from(["", "universal"]),
        confidence=st.floats(0, 1),
        detail=st.sampled_from([{}, {"next": ["do walrus"] * 5}, {"why": "because " * 90}, {"signature": "f(x) -> y"}]),
        files=st.sampled_from([(), ("src/walrus.py",)]),
        session=st.sampled_from(["", "s"]),
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=30)
@given(
    memories=MEMORIES,
    name=st.sampled_from(MOMENTS),
    budget=st.integers(0, 700),
    family=st.sampled_from(FAMILIES),
    prompt=st.sampled_from(["walrus", "the walrus goals 版本", "src/walrus.py", ""]),
)
def test_no_store_and_no_moment_ever_spends_more_than_the_budget(shared_store, memories, name, budget, family, prompt):
    project = Project(key=next(fresh), name="here", root="/nowhere")
    shared_store.keep([replace(each, project=project.key) for each in memories])
    moment = a_moment(name, prompt=prompt, project=project, budget=budget, session="s")
    got = asked(shared_store, moment, family=family)
    limit = budget or RECIPES[name].budget
    if isinstance(got, Context):
        assert got.budget == limit
        assert count(got.text, family=family) == got.tokens <= limit
        assert got.text
        assert got.items
        assert sum(got.layers.values()) == sum(item.tokens for item in got.items)
        kept = {memory.id: memory for memory in shared_store.by_id(shown_ids(got))}
        assert {memory.scope for memory in kept.values()} <= {project.scope, "universal"}
        assert all(memory.confidence >= 0.5 for memory in kept.values() if memory.kind == "learning")
    else:
        assert got.why
        assert got.problems == ()


@table("prompt", ["unheard of", "", "the and of it", "😀", "?!"])
def test_nothing_relevant_is_silence(store, prompt):
    store.keep([a_memory("walrus pool")])
    for name in ("prompt", "question"):
        got = asked(store, a_moment(name, prompt=prompt))
        assert isinstance(got, NoContext)
        assert got.why


def test_only_what_is_relevant_new_and_sure_is_shown(make_store):
    # What is below the threshold is not shown.
    store = make_store()
    store.keep([a_memory("walrus pool")])
    moment = a_moment(prompt="walrus")
    assert isinstance(asked(store, moment, threshold=0.99), NoContext)
    assert isinstance(asked(store, moment, threshold=0.1), Context)
    # A hundred tokens are enough for a prompt and never passed.
    store = make_store()
    store.keep([a_memory(f"walrus pool number {n}", body="long " * 300) for n in range(20)])
    for name in MOMENTS:
        got = asked(store, a_moment(name, prompt="walrus", budget=100, session="s"))
        assert isinstance(got, Context) or name != "prompt"
        assert isinstance(got, NoContext) or got.tokens <= 100


FAILED = {"message": "Port 8080 is taken"}
FIXED = {**FAILED, "fixed_by": "ran `make down`"}
PATTERN = {"problem": "Port 8080 is taken", "solution": "ran `make down`", "from": ["f1", "f2"]}
TRAP = {"category": "gotcha", "by": "failure", "failure": "f1"}


def a_failure(uid="f1", **more):
    return a_memory("Port 8080 is taken", kind="failure", uid=uid, **{"detail": FIXED, **more})


def a_pattern(**more):
    return a_memory("Port 8080 is taken", kind="pattern", **{"detail": PATTERN, "confidence": 0.75, **more})


def a_trap(**more):
    return a_memory('"Port 8080 is taken" comes back, and no fix is known', kind="learning", detail=TRAP, **more)


@table("name", ["session_start", "compaction"])
def test_a_failure_and_what_was_promoted_from_it_are_told_once(store, name):
    _, _, pattern, other = store.keep([a_failure(), a_failure("f2"), a_pattern(), a_failure("f3")])
    assert set(shown_ids(asked(store, a_moment(name)))) == {pattern.id, other.id}


def test_a_failure_and_its_pattern_are_told_once(make_store):
    # A trap that nothing fixed is told once and the fix is told as soon as there is one.
    store = make_store()
    failure, trap = store.keep([a_failure(detail=FAILED), a_trap(confidence=0.67)])
    assert shown_ids(asked(store, a_moment("session_start"))) == [trap.id]
    store.keep([replace(failure, detail=FIXED)])
    assert set(shown_ids(asked(store, a_moment("session_start")))) == {failure.id, trap.id}
    # A trap that is not sure leaves its failure told.
    store = make_store()
    failure, _ = store.keep([a_failure(detail=FAILED), a_trap(confidence=0.4)])
    assert shown_ids(asked(store, a_moment("session_start"))) == [failure.id]
    # Where a pattern does not fit its failure has the place.
    store = make_store()
    long = {**PATTERN, "solution": "ran the whole of it again, " * 12}
    failure, pattern = store.keep([a_failure(), a_pattern(detail=long)])
    assert shown_ids(asked(store, a_moment("session_start"))) == [pattern.id]
    assert shown_ids(asked(store, a_moment("session_start", budget=150))) == [failure.id]
    # The place of a failure that is retold goes to the next memory.
    store = make_store()
    store.keep([a_failure(f"f{number}") for number in (1, 2)])
    store.keep([a_pattern(), *(a_memory(f"note {number}", kind="note") for number in range(12))])
    got = asked(store, a_moment("session_start"))
    assert len(got.items) == RECIPES["session_start"].layers[-1].limit
    assert got.text.count("Port 8080 is taken") == 1
    # Who asks in words is told of the failure too.
    store = make_store()
    kept = store.keep([a_failure(), a_pattern()])
    assert set(shown_ids(asked(store, a_moment(prompt="Port 8080 is taken")))) == {each.id for each in kept}
    # A compaction tells what failed in its own session.
    store = make_store()
    failure, pattern = store.keep([a_failure(session="s"), a_pattern()])
    assert set(shown_ids(asked(store, a_moment("compaction", session="s")))) == {failure.id, pattern.id}


@table("aside", [{"status": "superseded"}, {"status": "discarded"}, {"project": "elsewhere"}])
def test_a_failure_whose_pattern_is_not_told_is_told_itself(store, aside):
    failure, _ = store.keep([a_failure(), a_pattern(**aside)])
    assert shown_ids(asked(store, a_moment("session_start"))) == [failure.id]


@table("odd", [{"from": "f1"}, {"from": 7}, {"from": {"f1": 1}}, {"from": [None, ["f1"], 1]}])
def test_a_pattern_that_names_nothing_sensible_hides_no_failure(store, odd):
    failure, pattern = store.keep([a_failure(), a_pattern(detail={**PATTERN, **odd})])
    assert set(shown_ids(asked(store, a_moment("session_start")))) == {failure.id, pattern.id}


@table(
    ("source", "repeats"), [("startup", True), ("clear", True), ("compact", True), ("resume", False), ("fork", False)]
)
def test_a_new_window_is_told_everything_and_a_resumed_one_what_is_new(store, source, repeats):
    old, new = store.keep([a_memory("walrus old"), a_memory("walrus new")])
    got = asked(store, a_moment("session_start", source=source), shown=frozenset({old.id}))
    assert set(shown_ids(got)) == ({old.id, new.id} if repeats else {new.id})


class OneKindFails:
    """A real store whose recency list fails for some kinds."""

    def __init__(self, store, kind):
        self.store, self.kind = store, kind

    def by_words(self, query):
        return self.store.by_words(query)

    def by_code(self, query, votes, *, known):
        return self.store.by_code(query, votes, known=known)

    def by_recency(self, query):
        if self.kind in query.kinds:
            raise StoreError("a page cannot be read", hint="run `foreword doctor`")
        return self.store.by_recency(query)


def test_what_fails_costs_only_itself_and_is_told(make_store, monkeypatch):
    # A broken words index is silence that tells why.
    store = make_store()
    store.keep([a_memory("walrus")])
    store._write(lambda: store._db.execute("DROP TABLE words"))
    got = asked(store, a_moment(prompt="walrus"))
    assert isinstance(got, NoContext)
    assert "foreword index" in " ".join(got.problems)
    assert isinstance(asked(store, a_moment("session_start")), Context)
    # A memory whose line cannot be built costs only its layer.
    store = make_store()
    (good,) = store.keep([a_memory("walrus", kind="preference")])

    class Odd(OneKindFails):
        def by_recency(self, query):
            hits = self.store.by_recency(query)
            if "handoff" in query.kinds:
                odd = a_memory("odd", kind="handoff", id="han-x", scope="project:here", created="long ago")
                return (Hit(memory=odd, source="recency"),)
            return hits

    got = asked(Odd(store, ""), a_moment("session_start"))
    assert shown_ids(got) == [good.id]
    assert len(got.problems) == 1
    # A window that cannot be read is no reason for silence.
    store = make_store()
    store.keep([a_memory("walrus")])

    def broken():
        raise StoreError("a page cannot be read")

    moment = a_moment(prompt="walrus", session="s")
    got = recall(store, moment, recipe=RECIPES["prompt"], threshold=0.0, now=NOW, shown=broken, spent=broken)
    assert isinstance(got, Context)
    assert len(got.problems) == 2
    # A source that fails is told also where another answers.
    store = make_store()
    store.keep([a_memory("walrus pool", files=("a.py",))])

    class NoCode(OneKindFails):
        def by_code(self, query, votes, **more):
            raise StoreError("a page cannot be read")

    got = asked(NoCode(store, ""), a_moment(prompt="walrus pool"))
    assert isinstance(got, Context)
    assert any("a page cannot be read" in problem for problem in got.problems)
    # A layer that cannot be put into the block is left out.
    store = make_store()
    (good, _) = store.keep([a_memory("walrus", kind="preference"), a_memory("f", kind="change", files=("a.py",))])
    whole = render.block

    def fails_for_changes(layers, **more):
        if any(layer.name == "changes" for layer in layers):
            raise ValueError("a line that nobody has seen before")
        return whole(layers, **more)

    monkeypatch.setattr(render, "block", fails_for_changes)
    got = asked(store, a_moment("session_start"))
    assert shown_ids(got) == [good.id]
    assert "changes" in got.skipped
    assert any(problem.startswith("changes: ") for problem in got.problems)


@table("layers", range(7))
def test_a_deadline_brings_what_is_ready(store, layers):
    store.keep([a_memory("walrus", kind=kind) for kind in KINDS])
    left = iter([False] * layers + [True] * 10)
    got = asked(store, a_moment("session_start"), expired=lambda: next(left))
    late = [layer.name for layer in RECIPES["session_start"].layers][layers:]
    assert [name for name, why in got.skipped.items() if why == "deadline"] == late
    assert isinstance(got, Context) == (layers > 0)
    if layers:
        assert not set(got.layers) & set(late)


def test_a_compaction_keeps_what_this_session_established(make_store):
    # A compaction finds what this session established however much came later.
    store = make_store()
    (mine,) = store.keep([a_memory("walrus mine", kind="note", session="s", created=NOW - 900)])
    store.keep([a_memory(f"walrus {n}", kind="note", session="t") for n in range(500)])
    got = asked(store, a_moment("compaction", session="s", form="plain"))
    assert [item.memory for item in got.items if item.layer == "session"] == [mine.id]


def test_a_moment_looks_into_its_project_its_languages_and_what_is_universal(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "go.mod").touch()
    project = Project(key="here", name="here", root=str(tmp_path))
    assert scopes_of(a_moment(project=project)) == ("project:here", "language:python", "language:go", "universal")


def test_layers_find_what_their_moment_wants(make_store):
    # Synonyms are looked for too.
    store = make_store()
    (kept,) = store.keep([a_memory("the pipeline is slow")])
    moment = a_moment(prompt="deploy")
    assert isinstance(asked(store, moment), NoContext)
    assert shown_ids(asked(store, moment, synonyms={"deploy": ("ci", "pipeline")})) == [kept.id]
    query = query_of(moment, synonyms={"deploy": ("ci", "deploy")})
    assert (query.terms, query.synonyms) == (("deploy",), {"ci": "deploy"})
    # The worker away shows fewer sessions.
    store = make_store()
    store.keep([a_memory(f"walrus {n}", kind="summary") for n in range(12)])
    moment = a_moment("session_start")
    assert len(shown_ids(asked(store, moment))) == 10
    assert len(shown_ids(asked(store, moment, away=True))) == 5
    # Recent sessions come by date however sure or useful they are.
    store = make_store()
    made = [a_memory(f"session {n}", kind="summary", created=NOW - n * 60, confidence=n / 5) for n in (3, 1, 5, 2, 4)]
    kept = {memory.title: memory.id for memory in store.keep(made)}
    assert shown_ids(asked(store, a_moment("session_start"))) == [kept[f"session {n}"] for n in (1, 2, 3, 4, 5)]
    # The same store and moment give the same text.
    store = make_store()
    store.keep([a_memory(f"walrus {n % 3}", kind=kind) for n, kind in enumerate(list(KINDS) * 3)])
    for name in MOMENTS:
        moment = a_moment(name, prompt="walrus", session="s")
        assert asked(store, moment).text == asked(store, moment).text
    # Goals do not keep the best from being shown in full.
    store = make_store()
    store.keep(
        [a_memory("Ship by March", kind="goal"), a_memory("Walrus pool", kind="decision", body="the whole story")]
    )
    assert "the whole story" in asked(store, a_moment(prompt="does the walrus pool hurt our goal?")).text
    # A leftover of what was shown does not stand out.
    store = make_store()
    best, *_ = store.keep([a_memory("walrus walrus", body="the whole story " * 9) for _ in range(3)])
    assert "the whole story" not in asked(store, a_moment(prompt="walrus")).text
    others = frozenset(hit.memory.id for hit in store.by_recency(query_of(a_moment()))) - {best.id}
    left = asked(store, a_moment(prompt="walrus"), shown=others)
    assert shown_ids(left) == [best.id]
    assert "the whole story" not in left.text


# -- the ledger of a context window -----------------------------------------------------------------------------------


class Window:
    """One context window: what it was given so far, as a store would tell."""

    def __init__(self, store, *, recipes=RECIPES):
        self.store, self.recipes = store, recipes
        self.seen, self.spent = frozenset(), {}

    def ask(self, moment):
        moment = meant(replace(moment, session="s"))
        got = recall(
            self.store,
            moment,
            recipe=self.recipes[moment.name],
            threshold=0.0,
            now=NOW,
            shown=lambda: self.seen,
            spent=lambda: self.spent,
        )
        if isinstance(got, Context) and moment.name != "compaction":  # that one goes to the summariser
            again = self.seen.intersection(shown_ids(got))
            assert not again, "nothing is given twice"
            self.seen |= frozenset(shown_ids(got))
            self.spent = {**self.spent, moment.name: self.spent.get(moment.name, 0) + got.tokens}
        return got


@pytest.fixture(scope="module")
def rich_store(shared_store):
    """So many memories that every budget is spent before they are."""
    shared_store.keep(
        [
            a_memory(f"walrus {kind} {n} {'pool ' * 12}", kind=kind, body="sea " * 60, project="rich")
            for kind in KINDS
            for n in range(40)
        ]
    )
    return shared_store


RICH = Project(key="rich", name="rich", root="/nowhere")


@settings(deadline=None, max_examples=12)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(MOMENTS),
            st.sampled_from(["walrus pool", "walrus sea", ""]),
            st.sampled_from(["", "resume", "fork"]),
            st.sampled_from([0, 50, 300, 5000]),
        ),
        max_size=14,
    ),
    table=st.dictionaries(
        st.sampled_from(["session_start", "question", "together", "prompt"]), st.integers(0, 4000), max_size=3
    ),
)
def test_no_window_is_ever_given_more_than_its_ledger(rich_store, steps, table):
    recipes, wrong = merged({"ledger": table})
    assert wrong == ()
    window = Window(rich_store, recipes=recipes)
    for name, prompt, source, budget in steps:
        start = {"source": source} if name == "session_start" else {}
        got = window.ask(a_moment(name, prompt=prompt, project=RICH, budget=budget, **start))
        assert isinstance(got, Context) or got.why
        spent = {moment: window.spent.get(moment, 0) for moment in MOMENTS}
        for moment in ("session_start", "question", "prompt"):
            assert spent[moment] <= recipes[moment].total
        assert spent["session_start"] + spent["question"] <= recipes["question"].together


def test_questions_share_the_ledger_of_their_window(rich_store):
    # A question is cut to what is left and then told that searching is free.
    window = Window(rich_store)
    costs = []
    for _ in range(20):
        got = window.ask(a_moment("question", prompt="walrus pool", project=RICH))
        if isinstance(got, NoContext):
            break
        costs.append(got.tokens)
    assert len(costs) >= 2
    assert 700 < sum(costs) <= 1000
    assert "budget of this context window is used" in got.why
    assert "memory_search is free" in got.why
    assert isinstance(window.ask(a_moment(prompt="walrus", project=RICH)), Context), "prompts have their own allowance"
    # Session start and questions share what they have together.
    recipes, _ = merged({"ledger": {"together": 600}})
    window = Window(rich_store, recipes=recipes)
    start = window.ask(a_moment("session_start", source="startup", project=RICH))
    assert 300 < start.tokens <= 600
    for _ in range(9):
        window.ask(a_moment("question", prompt="walrus pool", project=RICH))
    assert sum(window.spent.values()) <= 600
    # A question without words gives the start once where nobody gave it.
    window = Window(rich_store)
    got = window.ask(a_moment("question", project=RICH))
    assert "continuity" in got.layers
    assert window.spent.keys() == {"session_start"}
    again = window.ask(a_moment("question", prompt="  ", project=RICH))
    assert isinstance(again, NoContext)
    assert "given already" in again.why
    assert isinstance(window.ask(a_moment("question", prompt="walrus", project=RICH)), Context)


def test_a_window_is_given_what_is_new_and_counts_it(make_store):
    # A new window has its whole ledger.
    store = make_store()
    store.keep([a_memory("walrus")])
    full = {"session_start": 2000, "question": 1000, "prompt": 3000}
    for source, silent in (("startup", False), ("clear", False), ("compact", False), ("resume", True), ("fork", True)):
        moment = a_moment("session_start", source=source, session="s")
        got = asked(store, moment, spent=lambda: full)
        assert isinstance(got, NoContext) == silent, source
    # Without a session nothing is counted.
    store = make_store()
    store.keep([a_memory("walrus")])
    for name in ("prompt", "question"):
        assert isinstance(asked(store, a_moment(name, prompt="walrus"), spent=lambda: 1 / 0), Context)
    # What did not fit the beginning is not new when a session is resumed.
    store = make_store()
    store.keep([a_memory(f"walrus {n}", kind="observation", created=NOW - 60) for n in range(60)])
    start = asked(store, a_moment("session_start", session="s", source="startup"))
    assert len(start.items) == 10

    def resumed():
        return recall(
            store,
            a_moment("session_start", session="s", source="resume"),
            recipe=RECIPES["session_start"],
            threshold=0.0,
            now=NOW,
            shown=lambda: frozenset(shown_ids(start)),
            begun=lambda: NOW - 10,
        )

    assert isinstance(resumed(), NoContext)
    (new,) = store.keep([a_memory("walrus news", kind="observation", created=NOW - 5)])
    assert shown_ids(resumed()) == [new.id]


# -- what goes wrong --------------------------------------------------------------------------------------------------


@table("error", [ValueError("odd"), KeyError("x"), MemoryError(), RecursionError("deep")])
def test_whatever_a_layer_raises_costs_only_itself_and_is_told(store, error):
    kept = store.keep([a_memory("walrus", kind=kind) for kind in ("handoff", "summary", "preference", "decision")])

    class OneKindRaises(OneKindFails):
        def by_recency(self, query):
            if self.kind in query.kinds:
                raise error
            return self.store.by_recency(query)

    got = asked(OneKindRaises(store, "preference"), a_moment("session_start"))
    assert set(shown_ids(got)) == {memory.id for memory in kept if memory.kind != "preference"}
    assert type(error).__name__ in got.skipped["rules"]
    (problem,) = got.problems
    assert problem.startswith("rules: ")


# -- what is recorded -------------------------------------------------------------------------------------------------


def test_what_is_recorded_and_coded_tells_the_session(make_store):
    # What is recorded tells the moment the words and the text and never the prompt.
    store = make_store()
    (kept,) = store.keep([a_memory("walrus pool")])
    prompt = "why is the walrus in pool " + " ".join(f"word{n}" for n in range(100))
    moment = a_moment(prompt=prompt, session="s", host="codex", form="markdown")
    got = asked(store, moment)
    given = injection_of(moment, got, id="inj-1", at=5.0)
    assert (given.text, given.tokens, given.host, given.at) == (got.text, got.tokens, "codex", 5.0)
    assert [item.memory for item in given.items] == [kept.id]
    assert set(given.items[0].why) >= {"match", "recency", "importance", "reinforcement", "scope", "task"}
    assert {"walrus", "pool"} <= set(given.terms)
    assert len(given.terms) <= MOST_RECORDED
    assert prompt not in repr(given)
    silence = injection_of(moment, asked(store, replace(moment, prompt="unheard")), id="inj-2", at=6.0)
    assert (silence.text, silence.tokens, silence.items) == ("", 0, ())
    # A sessions codes say where things stand and its line what it was about.
    store = make_store()
    told = {"next": ["write the migration"], "done": "the table is designed"}
    coded, plain = store.keep(
        [
            a_memory("Waiting list designed", kind="summary", detail=told, created=NOW - 1),
            a_memory("Read the docs", kind="summary", created=NOW - 2),
        ]
    )
    got = asked(store, a_moment("session_start"))
    assert [(item.layer, item.memory) for item in got.items] == [
        ("continuity", coded.id),
        ("sessions", coded.id),
        ("sessions", plain.id),
    ]
    assert "- next: write the migration (" in got.text


def test_what_a_person_hands_over_closes_what_sessions_handed_over_by_themselves():
    by_itself = a_memory("call offer_slot()", kind="handoff", trust="agent", created=10.0, detail={"next": ["x"]})
    later = replace(by_itself, title="write the docs", created=30.0)
    by_hand = a_memory("mail works", kind="handoff", trust="user", created=20.0)
    assert left_open([by_itself, later]) == [by_itself, later]
    assert left_open([by_itself, by_hand, later]) == [by_hand, later]
