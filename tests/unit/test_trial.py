"""A trial, over a real store: exactly what recall says, and of everything else that was weighed the reason in words."""

import itertools
import random
from contextlib import closing
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.layout import RECIPES, LayerRule, merged
from foreword.recall.pipeline import look, recall
from foreword.recall.query import query_of
from foreword.recall.rank import CERTAIN
from foreword.recall.trial import MOST_LEFT, REASONS, SHORTER, tried
from foreword.store.sqlite import Store
from foreword.types import FORMS, GOING_ON, KINDS, MOMENTS, Cap, Memory, Moment, Project, Context, NoContext

NOW = 1_000_000.0
HERE = Project(key="here", name="here", root="/nowhere")
fresh = map("p{}".format, itertools.count())


def a_memory(title, *, kind="decision", **more):
    return Memory(kind, title, **{"project": "here", "created": NOW - 60, **more})


def a_moment(name="prompt", *, prompt="walrus", **more):
    return Moment(name=name, project=HERE, prompt=prompt, **more)


def a_trial(store, moment, *, threshold=0.0, recipe=None, **more):
    return tried(store, moment, recipe=recipe or RECIPES[moment.name], threshold=threshold, now=NOW, **more)


def ids(entries):
    return [each.memory.id for each in entries]


def reasons(trial):
    return {each.memory.id: each.reason for each in trial.left}


MEMORIES = st.lists(
    st.builds(
        a_memory,
        st.text(max_size=60) | st.sampled_from(["walrus pool", "walrus " * 60, "版本 walrus", "## walrus\n- walrus"]),
        kind=st.sampled_from(list(KINDS)),
        body=st.text(max_size=100) | st.sampled_from(["", "walrus " * 200, "x" * 2000]),
        scope=st.sampled_from(["", "universal"]),
        trust=st.sampled_from(["user", "agent"]),
        confidence=st.floats(0, 1),
        detail=st.sampled_from([{}, {"next": ["do walrus"] * 5}, {"why": "because " * 90}, {"signature": "f(x) -> y"}]),
        files=st.sampled_from([(), ("src/walrus.py",)]),
        session=st.sampled_from(["", "s"]),
        created=st.sampled_from([NOW - 60, NOW - 9e6]),
    ),
    max_size=14,
)


@settings(deadline=None, max_examples=40)
@given(
    memories=MEMORIES,
    name=st.sampled_from(MOMENTS),
    budget=st.integers(0, 900),
    threshold=st.sampled_from([0.0, 0.03, 0.12, 0.6]),
    prompt=st.sampled_from(["walrus", "the walrus goals 版本", "src/walrus.py", ""]),
    form=st.sampled_from(FORMS),
    source=st.sampled_from(["", "startup", *GOING_ON]),
    some=st.integers(0, 14),
    cap=st.sampled_from([None, Cap(most=400), Cap(most=900, counts="utf-8")]),
)
def test_a_trial_says_what_recall_says_byte_for_byte_and_why_the_rest_is_not_said(
    shared_store, memories, name, budget, threshold, prompt, form, source, some, cap
):
    project = Project(key=next(fresh), name="here", root="/nowhere")
    kept = shared_store.keep([replace(each, project=project.key) for each in memories])
    moment = Moment(
        name=name, project=project, prompt=prompt, budget=budget, form=form, source=source, session="s", languages=()
    )
    given = {
        "recipe": RECIPES[name],
        "threshold": threshold,
        "now": NOW,
        "shown": lambda: frozenset(each.id for each in kept[:some]),
        "begun": lambda: NOW - 600,
        "cap": cap,
    }
    said, trial = recall(shared_store, moment, **given), tried(shared_store, moment, **given)
    assert replace(trial.got, build_ms=0.0) == replace(said, build_ms=0.0)
    items = said.items if isinstance(said, Context) else ()
    assert [(e.memory.id, e.layer, e.score, e.tokens, e.why) for e in trial.items] == [
        (item.memory, item.layer, item.score, item.tokens, item.why) for item in items
    ]
    text = said.text if isinstance(said, Context) else ""
    assert all(each.line in text for each in trial.items)
    assert {part.name: part.spent for part in trial.layers if part.items} == (
        dict(said.layers) if isinstance(said, Context) else {}
    )
    assert all(each.reason in REASONS and each.says and each.line for each in trial.left)
    assert len(trial.left) <= MOST_LEFT
    told = [*ids(trial.left), *{*ids(trial.items)}]
    assert len(told) == len(set(told))  # one memory, one row
    assert {each.layer for each in trial.left} <= {layer.name for layer in RECIPES[name].layers}


@settings(deadline=None, max_examples=20)
@given(memories=MEMORIES, budget=st.integers(40, 900))
def test_everything_that_was_found_for_a_prompt_is_either_said_or_told_with_a_reason(shared_store, memories, budget):
    project = Project(key=next(fresh), name="here", root="/nowhere")
    shared_store.keep([replace(each, project=project.key) for each in memories])
    moment = Moment(name="prompt", project=project, prompt="walrus", budget=budget)
    trial = a_trial(shared_store, moment, threshold=0.093)
    query = replace(query_of(moment), kinds=RECIPES["prompt"].layers[0].kinds)
    found, _ = look(shared_store, query, now=NOW, moment="prompt")
    told = {*ids(trial.items), *ids(trial.left)}
    assert sum(each.memory.id not in told for each in found) <= trial.more


def test_a_trial_keeps_nothing_and_changes_no_ranking(store):
    store.keep([a_memory(f"walrus pool {at}", session="s") for at in range(30)])

    def everything():
        kept = [memory for _, memory in store.page(after=0, scopes=(HERE.scope,))]
        return store.counts(), kept, store.injections(limit=9), store.shown("s"), store.spent("s")

    before = everything()
    for name in MOMENTS:
        assert a_trial(store, a_moment(name, session="s")).left
    assert everything() == before


def test_what_is_left_out_is_told_with_its_threshold_room_or_limit(make_store):
    # What is below the threshold is told with its score and the threshold.
    store = make_store()
    [kept] = store.keep([a_memory("walrus pool")])
    trial = a_trial(store, a_moment(), threshold=0.99)
    assert isinstance(trial.got, NoContext)
    assert ids(trial.left) == [kept.id]
    assert trial.left[0].reason == "threshold"
    assert f"{trial.left[0].score:.3f}" in trial.left[0].says
    assert "0.990, the threshold" in trial.left[0].says
    assert trial.left[0].why["match"] > 0
    assert trial.layers[0].least == 0.99
    # What is far below the best is told so.
    store = make_store()
    best, far = store.keep(
        [
            a_memory("walrus pool of the zebra", kind="pattern"),
            a_memory("x" * 50, body="long " * 400 + "walrus", kind="note", confidence=0.1),
        ]
    )
    trial = a_trial(store, a_moment(prompt="walrus pool zebra"), threshold=0.001)
    assert ids(trial.items) == [best.id]
    assert reasons(trial) == {far.id: "threshold"}
    assert "25% of the best" in trial.left[0].says
    # What finds no room in the budget comes when there is more.
    store = make_store()
    store.keep([a_memory(f"walrus pool number {at}", files=(f"{at}.py",)) for at in range(12)])
    little, more = (a_trial(store, a_moment(budget=budget)) for budget in (120, 1000))
    assert little.items
    assert {each.reason for each in little.left} == {"room"}
    assert all("no room in the budget" in each.says and "of 120" in each.says for each in little.left)
    assert set(ids(more.items)) == {*ids(little.items), *ids(little.left)}
    assert more.left == ()
    # More than a layer shows is told by its limit.
    store = make_store()
    store.keep([a_memory(f"walrus {at}") for at in range(40)])
    recipe = replace(RECIPES["prompt"], layers=(replace(RECIPES["prompt"].layers[0], limit=4),))
    trial = a_trial(store, a_moment(budget=2000), recipe=recipe)
    assert len(trial.items) == 4
    assert {each.reason for each in trial.left} == {"limit"}
    assert all(each.says == "this part shows at most 4" for each in trial.left)
    assert (len(trial.left), trial.more) == (MOST_LEFT, 40 - 4 - MOST_LEFT)
    # A layer with a cap of nothing is told to be off.
    store = make_store()
    [kept] = store.keep([a_memory("walrus")])
    recipe = replace(RECIPES["prompt"], layers=(replace(RECIPES["prompt"].layers[0], cap=0),))
    assert reasons(a_trial(store, a_moment(), recipe=recipe)) == {kept.id: "off"}


def test_a_full_layer_between_others_is_told_by_its_cap(tmp_path):
    # Ids break ties and cost tokens: the same ones make the same layers full.
    with closing(Store(tmp_path / "m.db", backups=tmp_path, choose=random.Random(7).choice)) as store:
        store.keep([a_memory(f"walrus pool number {at}", body="walrus " * 30) for at in range(12)])
        store.keep([a_memory("do " * 30, kind="change", functions=(f"f{at}",), files=("a.py",)) for at in range(60)])
        trial = a_trial(store, a_moment("session_start", budget=500))
    assert "cap" in {each.reason for each in trial.left}
    [one, *_] = [each for each in trial.left if each.reason == "cap"]
    assert f"of its {next(part.cap for part in trial.layers if part.name == one.layer)}" in one.says


def test_what_is_left_out_is_told_with_its_cap_host_or_window(make_store):
    # A full scope is told by its own cap.
    store = make_store()
    rules = [a_memory(f"always use the walrus of {'many words ' * 9} {at}", kind="preference") for at in range(40)]
    store.keep([*rules, *(replace(each, title=f"{each.title} too", scope="universal") for each in rules)])
    layer = LayerRule("rules", 350, ("preference",), limit=60, groups={"universal": 100, "project": 250})
    trial = a_trial(
        store, a_moment("session_start", budget=420), recipe=replace(RECIPES["session_start"], layers=(layer,))
    )
    [one, *_] = [each for each in trial.left if each.reason == "group"]
    assert one.memory.scope.partition(":")[0] in one.says
    # What a host does not take is told so.
    store = make_store()
    store.keep([a_memory(f"walrus pool number {at}") for at in range(20)])
    trial = a_trial(store, a_moment(), cap=Cap(most=300))
    assert trial.items
    assert {each.reason for each in trial.left} == {"host"}
    assert "at most 300 characters" in trial.left[0].says
    # What the window holds is told so.
    store = make_store()
    first, second = store.keep([a_memory("walrus pool one"), a_memory("walrus pool two")])
    trial = a_trial(store, a_moment(), shown=lambda: frozenset({first.id}))
    assert ids(trial.items) == [second.id]
    assert reasons(trial) == {first.id: "shown"}
    # What came up in the session itself is not said to have been shown.
    store = make_store()
    given, own = (each.id for each in store.keep([a_memory("walrus pool"), a_memory("walrus bay", session="s")]))
    trial = a_trial(store, a_moment(session="s"), shown=lambda: frozenset([given, own]))
    says = {each.memory.id: each.says for each in trial.left}
    assert says == {given: "already shown in this context window", own: "it came up in this session itself"}
    # What was there when a resumed window began is told so.
    store = make_store()
    [old] = store.keep([a_memory("walrus old")])
    trial = a_trial(store, a_moment("session_start", source="resume", session="s"), begun=lambda: NOW - 10)
    assert reasons(trial) == {old.id: "older"}


def test_what_is_left_out_is_told_with_who_or_what_stands_for_it(make_store):
    # A learning that is not sure enough is told so.
    store = make_store()
    _, unsure = store.keep(
        [a_memory("walrus a", kind="learning"), a_memory("walrus b", kind="learning", confidence=0.49)]
    )
    trial = a_trial(store, a_moment())
    assert reasons(trial) == {unsure.id: "unsure"}
    assert "0.49" in trial.left[0].says
    assert str(CERTAIN) in trial.left[0].says
    # Of a failure and its pattern the one that is not said names the other.
    store = make_store()
    failed, fix = {"fixed_by": "ran `make down`"}, {"solution": "ran `make down`, " * 20, "from": ["f1"]}
    failure, pattern = store.keep(
        [a_memory("walrus", kind="failure", uid="f1", detail=failed), a_memory("walrus", kind="pattern", detail=fix)]
    )
    for budget, said, left in ((2000, pattern, failure), (150, failure, pattern)):
        trial = a_trial(store, a_moment("session_start", budget=budget))
        assert (ids(trial.items), reasons(trial)) == ([said.id], {left.id: "retold"})
        assert said.id in trial.left[0].says
    # A rule that the user did not say is told so.
    store = make_store()
    [kept] = store.keep([a_memory("always walrus", kind="preference", trust="agent")])
    assert reasons(a_trial(store, a_moment("session_start"))) == {kept.id: "trust"}
    # A handoff that a later one replaced is told so.
    store = make_store()
    old, new = store.keep(
        [
            a_memory("old", kind="handoff", trust="agent", created=NOW - 500),
            a_memory("new", kind="handoff", detail={"next": ["walrus"]}),
        ]
    )
    trial = a_trial(store, a_moment("session_start"))
    assert ids(trial.items) == [new.id]
    assert reasons(trial) == {old.id: "closed"}
    # What is said in fewer words is said so with what it would cost.
    store = make_store()
    store.keep([a_memory(f"walrus {'版本' * 20} {at}") for at in range(14)])
    trial = a_trial(store, a_moment(budget=500))
    shorter = [each for each in trial.items if each.reason == SHORTER]
    assert shorter
    assert all(int(each.says.split()[-2]) > each.tokens for each in shorter)
    # A summary that is told among the sessions is not told as left out.
    store = make_store()
    [kept] = store.keep([a_memory("walrus done", kind="summary")])
    trial = a_trial(store, a_moment("session_start"))
    assert (ids(trial.items), trial.left) == ([kept.id], ())


def test_every_layer_and_window_has_its_share_in_a_trial(make_store):
    # Every layer has its share of what is told as left out.
    store = make_store()
    kinds = ("summary", "change", "preference", "learning", "decision")
    store.keep([a_memory(f"walrus {kind} {at}", kind=kind) for kind in kinds for at in range(40)])
    trial = a_trial(store, a_moment("session_start", budget=150))
    assert len(trial.left) == MOST_LEFT
    assert {each.layer for each in trial.left} == {"sessions", "changes", "rules", "knowledge", "past"}
    order = [layer.name for layer in RECIPES["session_start"].layers]
    assert [order.index(each.layer) for each in trial.left] == sorted(order.index(each.layer) for each in trial.left)
    # What a window has left is the budget of a trial too.
    store = make_store()
    store.keep([a_memory(f"walrus pool {at}") for at in range(9)])
    trial = a_trial(store, a_moment(session="s"), spent=lambda: {"prompt": RECIPES["prompt"].total - 60})
    assert trial.got.budget == 60
    spent = a_trial(store, a_moment(session="s"), spent=lambda: {"prompt": RECIPES["prompt"].total})
    assert isinstance(spent.got, NoContext)
    assert "is used" in spent.got.why
    assert (spent.items, spent.left) == ((), ())


def test_no_two_layers_of_a_moment_hold_the_same_kinds():
    """By its kinds a trial knows for which layer something was looked for."""
    for recipe in merged({})[0].values():
        assert len({layer.kinds for layer in recipe.layers}) == len(recipe.layers)
