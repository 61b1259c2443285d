"""The specification's scenarios over a real store, as installed: which memories come, in which order, at what cost."""

from __future__ import annotations

import itertools

import pytest

from foreword.config import load, load_synonyms
from foreword.paths import Home
from foreword.recall import injection_of, meant, recall, thresholds
from foreword.store.sqlite import Store
from foreword.tokens import count, family_of
from foreword.types import KINDS, MOMENTS, Memory, Moment, Project, Recalled, Skipped

NOW = 1_750_000_000.0
HOUR, DAY = 3_600.0, 86_400.0
HERE = Project(key="git:example.org/here", name="here", root="/nowhere")
THERE = Project(key="git:example.org/there", name="there", root="/nowhere")


class Installed:
    """A store, asked with the settings of an installation whose user has changed nothing; it records what it gave."""

    def __init__(self, folder):
        home = Home(root=folder)
        self.settings = load(home, {}).settings
        self.synonyms, wrong = load_synonyms(home)
        assert not wrong
        self.store = Store(folder / "memory.db", backups=folder / "backups")
        self.numbers = itertools.count(1)

    def keep(self, *memories):
        return [each.id for each in self.store.keep(memories)]

    def ask(self, name="prompt", prompt="", *, project=HERE, now=NOW, store=None, **more):
        moment = meant(Moment(name=name, project=project, prompt=prompt, **{"languages": (), **more}))
        got = recall(
            store or self.store,
            moment,
            recipe=self.settings.recipes[moment.name],
            threshold=thresholds(self.settings)[moment.name],
            now=now,
            shown=lambda: self.store.shown(moment.session) if moment.session else frozenset(),
            spent=lambda: self.store.spent(moment.session),
            synonyms=self.synonyms,
            family=self.settings.tokenizer,
        )
        if isinstance(got, Recalled):
            _counted(got, limit=moment.budget or self.settings.recipes[moment.name].budget)
            self.store.record(injection_of(moment, got, id=f"inj-{next(self.numbers)}", at=now), at_once=True)
        return got


def _counted(got, *, limit):
    """What it says to cost is what it costs, headings and markers included, and within 95 % of the limit."""
    family = family_of("")
    assert count(got.text, family=family) == got.tokens <= got.budget * 95 // 100 <= limit * 95 // 100
    assert got.layers == {
        name: sum(item.tokens for item in got.items if item.layer == name)
        for name in dict.fromkeys(item.layer for item in got.items)
    }
    assert sum(got.layers.values()) < got.tokens, "the frame costs something too"


@pytest.fixture
def installed(tmp_path):
    made = Installed(tmp_path)
    yield made
    made.store.close()


def a_memory(kind, title, *, project=HERE, age=HOUR, **more):
    return Memory(kind, title, **{"project": project.key, "created": NOW - age, **more})


def rule(title, *, scope="", kind="preference", **more):
    return a_memory(kind, title, scope=scope, **more)


def ids(got):
    return [item.memory for item in got.items] if isinstance(got, Recalled) else []


def texts(got):
    """The lines between the markers."""
    return got.text.splitlines()[1:-1]


def test_the_counted_tokens_are_those_of_the_dearest_family_where_no_model_is_known(installed):
    installed.keep(rule("Answer in German", scope="universal"))
    got = installed.ask("session_start")
    assert got.tokens == max(count(got.text, family=family_of(model)) for model in ("", "gpt-5", "claude-3-opus"))


# -- scopes -----------------------------------------------------------------------------------------------------------


def test_where_nothing_but_universal_rules_is_known_they_come_best_first_and_alone(installed):
    german, _, tabs, small = installed.keep(
        rule("Answer in German", scope="universal"),
        rule("Use gofmt", scope="language:go"),
        rule("No, use tabs instead of spaces", scope="universal", kind="correction", seen=3),
        rule("Prefer small commits", scope="universal", age=400 * DAY),
    )
    got = installed.ask("session_start")
    assert ids(got) == [german, tabs, small]
    assert list(got.layers) == ["rules"]
    assert texts(got) == [
        "## Rules",
        "- user: Answer in German",
        "- user, 3x, last 1h ago: No, use tabs instead of spaces",
        "- user: Prefer small commits",
        "",
        'More: memory_search("...") finds.',
    ]
    assert got.tokens <= 110


def go_rules(installed, *, each):
    """So many universal, Go and project rules, all of one hour ago."""
    said = {
        "universal": "say what you do before you do it",
        "language:go": "wrap an error with what was tried",
        "": "keep the handlers of requests thin",
    }
    return {
        scope: installed.keep(*(rule(f"Rule {n + 10} of {each}: {text}", scope=scope) for n in range(each)))
        for scope, text in said.items()
    }


def test_a_go_project_gets_its_own_rules_then_those_of_go_then_the_universal_ones(installed):
    kept = go_rules(installed, each=4)
    got = installed.ask("session_start", languages=("go",))
    groups = [set(ids(got)[at : at + 4]) for at in (0, 4, 8)]
    assert groups == [set(kept[""]), set(kept["language:go"]), set(kept["universal"])]
    assert len(ids(got)) == 12
    scores = [item.score for item in got.items]
    assert scores == sorted(scores, reverse=True)
    assert [round(item.why["scope"], 2) for item in got.items] == [1.0] * 4 + [0.7] * 4 + [0.4] * 4


def test_a_go_project_with_too_many_of_everything_keeps_every_cap(installed):
    kept = go_rules(installed, each=20)
    installed.keep(
        *(
            a_memory(kind, f"{kind} {n + 10} about the picking queue of the warehouse", files=(f"shop/{n}.py",))
            for kind in KINDS
            if kind not in ("preference", "correction")
            for n in range(40)
        )
    )
    got = installed.ask("session_start", languages=("go",))
    recipe = installed.settings.recipes["session_start"]
    left = recipe.budget - sum(layer.cap for layer in recipe.layers)  # for the frame, and then for whoever needs it
    for layer in recipe.layers:
        assert 0 < got.layers[layer.name] <= layer.cap + left, layer.name
    assert got.layers["rules"] <= 350
    one = max(item.tokens for item in got.items if item.layer == "rules") + 1
    for scope, cap in {"": 150, "language:go": 100, "universal": 100}.items():
        spent = sum(item.tokens for item in got.items if item.memory in kept[scope])
        assert cap - one <= spent, scope
    assert got.tokens > recipe.budget * 0.8


def test_rules_of_a_language_that_is_not_spoken_here_never_come(installed, tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "pyproject.toml").touch()
    here = Project(key=HERE.key, name="here", root=str(tmp_path / "code"))
    _, python, _ = installed.keep(
        rule("Wrap errors of the walrus", scope="language:go"),
        rule("Type hints for the walrus", scope="language:python"),
        rule("No unwrap of the walrus", scope="language:rust"),
    )
    for name in MOMENTS:
        got = installed.ask(name, "errors, hints and unwrap of the walrus", project=here, languages=None, session="")
        assert ids(got) == ([python] if name != "compaction" else []), name


def test_what_is_known_of_one_project_is_never_shown_in_another(installed):
    installed.keep(*(a_memory(kind, f"walrus {kind} of there", project=THERE, session="s") for kind in KINDS))
    for name in MOMENTS:
        assert isinstance(installed.ask(name, "walrus goal of there", session="s"), Skipped), name
    (mine,) = installed.keep(a_memory("decision", "walrus decided here"))
    for name in MOMENTS:
        got = installed.ask(name, "walrus goal of there", session=f"only {name}")
        assert ids(got) == [mine], name
        assert "of there" not in got.text


# -- more than fits ---------------------------------------------------------------------------------------------------


def test_of_fifty_rules_the_best_thirty_come(installed):
    kept = installed.keep(*(rule(f"Rule {n + 10}: {'always ' * 15}", confidence=1 - n / 100) for n in range(50)))
    got = installed.ask("session_start")
    assert ids(got) == kept[:30]
    assert got.tokens > 1000


@pytest.mark.parametrize("budget", [200, 500, 1000])
def test_of_fifty_rules_over_the_budget_the_best_are_kept_and_no_more_would_fit(installed, budget):
    kept = installed.keep(*(rule(f"Rule {n + 10}: {'always ' * 15}", confidence=1 - n / 100, age=0) for n in range(50)))
    got = installed.ask("session_start", budget=budget)
    many = len(ids(got))
    assert 0 < many < 30
    assert ids(got) == kept[:many]
    assert got.tokens + max(item.tokens for item in got.items) + 2 > budget * 95 // 100


def test_one_long_memory_does_not_hide_ten_short_ones(installed):
    long, *short = installed.keep(
        a_memory("decision", "the walrus decision " + "and why it is so " * 9, detail={"why": "so it was said " * 90}),
        *(rule(f"Walrus rule {n}", confidence=0.9) for n in range(5)),
    )
    got = installed.ask("session_start", budget=140)
    assert long not in ids(got)
    assert set(ids(got)) == set(short)


def test_yesterdays_observations_do_not_hide_the_decision_of_last_month(installed):
    decided, pattern = installed.keep(
        a_memory("decision", "Money is stored as cents", age=40 * DAY),
        a_memory("pattern", "Freeze the clock in slot tests", age=60 * DAY),
    )
    installed.keep(*(a_memory("observation", f"Edited file {n}", age=HOUR + n) for n in range(100)))
    got = installed.ask("session_start")
    assert set(ids(got)[:2]) == {decided, pattern}
    assert len(ids(got)) == 10


def test_a_universal_rule_is_not_hidden_by_a_project_that_is_corrected_all_day(installed):
    (german,) = installed.keep(rule("Answer in German", scope="universal", age=300 * DAY))
    installed.keep(*(rule(f"Rule {n + 10}: {'so it is ' * 9}", kind="correction") for n in range(90)))
    for budget in (0, 500):
        got = installed.ask("session_start", budget=budget)
        assert german in ids(got)
        assert len(ids(got)) <= 30


@pytest.mark.parametrize("name", MOMENTS)
def test_with_a_hundred_tokens_the_best_comes_or_nothing(installed, name):
    said = [a_memory(kind, f"{kind} {n} about the walrus pool", session="s") for kind in KINDS for n in range(3)]
    installed.keep(*said)
    # What a session came to itself is in its window already; only its compaction wants to hear it again.
    got = installed.ask(name, "walrus pool", budget=100, session="s" if name == "compaction" else "t")
    expected = {"session_start": ["handoff"], "prompt": ["pattern"], "compaction": ["preference"] * 2, "question": []}
    kinds = {memory.id: memory.kind for memory in installed.store.by_id(ids(got))}
    assert [kinds[id] for id in ids(got)] == expected[name]
    if name == "session_start":
        assert set(got.skipped.values()) == {"does not fit"}
        assert list(got.skipped) == ["sessions", "changes", "rules", "knowledge", "past"]


# -- nothing, and what goes wrong -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MOMENTS)
def test_an_empty_store_says_nothing(installed, name):
    got = installed.ask(name, "why does the checkout fail?", session="s")
    assert isinstance(got, Skipped)
    assert set(got.skipped.values()) == {"empty"}
    assert (got.why, got.problems) == ("nothing fits the moment", ())


class Raising:
    """A real store, which cannot answer for the layer that asks for a kind first."""

    def __init__(self, store, kind):
        self.store, self.kind = store, kind

    def __getattr__(self, name):
        def asked(query, *more):
            if self.kind == query.kinds[0]:
                raise ValueError("this row is none")
            return getattr(self.store, name)(query, *more)

        return asked


def test_a_layer_that_raises_costs_only_itself_and_is_told(installed):
    kept = dict(
        zip(
            ("handoff", "summary", "change", "preference", "learning", "decision"),
            installed.keep(
                a_memory("handoff", "Half done"),
                a_memory("summary", "Retries added"),
                a_memory("change", "f(x)", files=("a.py",)),
                rule("Answer in German"),
                a_memory("learning", "All times are UTC"),
                a_memory("decision", "Money is stored as cents"),
            ),
            strict=True,
        )
    )
    layers = ("continuity", "sessions", "changes", "rules", "knowledge", "past")
    for kind, layer in zip(kept, layers, strict=True):
        got = installed.ask("session_start", source="startup", store=Raising(installed.store, kind))
        assert ids(got) == [id for other, id in kept.items() if other != kind]
        assert got.skipped == {layer: "ValueError: this row is none"}
        assert got.problems == (f"{layer}: ValueError: this row is none",)


# -- questions --------------------------------------------------------------------------------------------------------


def test_questions_are_answered_up_to_the_end_of_the_ledger_and_then_told_that_searching_is_free(installed):
    installed.keep(*(a_memory("decision", f"walrus {n + 10}", body="a walrus swims " * 12) for n in range(60)))
    start = installed.ask("session_start", source="startup", session="s")
    answers = []
    while isinstance(got := installed.ask("question", "the walrus swims", session="s", budget=300), Recalled):
        answers.append(got)
    seen = [id for answer in answers for id in ids(answer)]
    assert len(seen) == len(set(seen)), "nothing twice"
    assert set(seen).isdisjoint(ids(start)), "nor what the start has said"
    spent = list(itertools.accumulate(answer.tokens for answer in answers))
    assert [answer.budget for answer in answers[:3]] == [300, 300, 300]
    assert answers[3].budget == 1000 - spent[2] < 300, "the next one is cut to what is left"
    assert 800 < spent[-1] <= 1000
    given = start.tokens + spent[-1]
    assert got.why == f"the budget of this context window is used ({given} tokens were given); memory_search is free"
    assert isinstance(installed.ask("question", "the walrus swims", session="another"), Recalled)


def test_a_question_is_answered_in_full_text_the_projects_own_first(installed):
    body = "because the bank counts it, and because of the audit"
    own, go, everywhere = installed.keep(
        a_memory("decision", "Cents are integers here", body=body),
        a_memory("decision", "Cents are integers in Go", body=body, scope="language:go"),
        a_memory("decision", "Cents are integers everywhere", body=body, scope="universal"),
    )
    got = installed.ask("question", "why are cents integers?", languages=("go",))
    assert set(ids(got)) == {own, go, everywhere}
    assert got.text.count(f"\n  {body}") == 3


def test_a_question_shows_a_long_title_whole_where_there_is_no_more_to_show(installed):
    title = "The label printer in hall B speaks its own dialect of ZPL since the spring"
    (kept,) = installed.keep(a_memory("observation", title))
    for form in ("markdown", "xml"):
        got = installed.ask("question", "which dialect does the label printer speak?", form=form)
        assert ids(got) == [kept]
        assert title in got.text


# -- prompts ----------------------------------------------------------------------------------------------------------


def test_goals_come_with_words_about_goals_and_with_no_others(installed):
    first, second = installed.keep(
        a_memory("goal", "Ship the label printer in October"),
        a_memory("goal", "Halve the time of a checkout", age=DAY),
    )
    (decided,) = installed.keep(a_memory("decision", "The label printer speaks ZPL"))
    assert ids(installed.ask("prompt", "what does the label printer speak?")) == [decided]
    assert ids(installed.ask("question", "what does the label printer speak?")) == [decided]
    for prompt in ("what are our goals?", "which milestone is next?", "is this in line with our mission?"):
        assert ids(installed.ask("prompt", prompt)) == [first, second], prompt
    for name in ("session_start", "compaction"):
        assert {first, second}.isdisjoint(ids(installed.ask(name, session="s", source="startup")))


def test_the_same_memory_does_not_come_twice_in_a_window_and_a_new_one_does(installed):
    (old,) = installed.keep(a_memory("decision", "The label printer speaks ZPL"))
    prompt = "what does the label printer speak?"
    assert ids(installed.ask("prompt", prompt, session="s")) == [old]
    assert isinstance(installed.ask("prompt", prompt, session="s"), Skipped)
    (new,) = installed.keep(a_memory("failure", "The label printer garbles umlauts", age=0))
    assert ids(installed.ask("prompt", prompt, session="s")) == [new]
    assert isinstance(installed.ask("question", prompt, session="s"), Skipped)
    assert set(ids(installed.ask("prompt", prompt, session="another"))) == {old, new}


def test_a_prompt_with_many_relevant_memories_gets_twelve_lines_or_more(installed):
    titles = [f"The label printer in hall {n} speaks its own dialect of ZPL since the spring" for n in range(40)]
    kept = installed.keep(
        *(a_memory("decision", title, body="long " * 200, age=n * DAY) for n, title in enumerate(titles))
    )
    got = installed.ask("prompt", "what does the label printer speak?")
    lines = texts(got)
    assert len(lines) == len(ids(got)) >= 12
    assert ids(got) == kept[: len(lines)], "equal but for their age: the newest first"
    assert 380 <= got.tokens <= 475
    for line, id in zip(lines, ids(got), strict=True):
        head, title, age, score = line.split(" | ")
        assert head == f"[decision] {id}"
        assert len(title) <= 40
        assert age == "now" or age[-1] in "hdwo"
        assert 0 < float(score) <= 1


def test_the_best_one_comes_in_full_where_it_clearly_stands_out(installed):
    best, *_ = installed.keep(
        a_memory("failure", "502 from nginx after each deploy", body="keepalive of gunicorn was shorter"),
        a_memory("decision", "Rate limiting happens in nginx", body="the bots cost us a worker each"),
        a_memory("observation", "Bumped gunicorn workers from 4 to 9", body="for Sunday evenings"),
    )
    got = installed.ask("prompt", "nginx answers 502 after a deploy")
    assert ids(got)[0] == best
    assert texts(got)[1] == "  keepalive of gunicorn was shorter"
    assert "the bots" not in got.text


def test_where_two_are_equally_good_neither_comes_in_full(installed):
    installed.keep(
        a_memory("decision", "Sessions live in signed cookies", body="one moving part less"),
        a_memory("decision", "Sessions live for seven days", body="as the law wants it"),
    )
    got = installed.ask("prompt", "where do sessions live?")
    assert len(ids(got)) == len(texts(got)) == 2


def test_uncertain_learnings_never_come_by_themselves(installed):
    sure, _ = installed.keep(
        a_memory("learning", "The label printer may need CP850", confidence=0.5, session="s"),
        a_memory("learning", "The label printer may hate umlauts", confidence=0.49, session="s"),
    )
    for name in ("prompt", "session_start", "compaction"):
        got = installed.ask(name, "what may the label printer hate?", session="s", source="startup")
        assert set(ids(got)) <= {sure}, name
    assert ids(installed.ask("session_start", source="startup")) == [sure]


# -- windows ----------------------------------------------------------------------------------------------------------


def test_a_resumed_window_gets_only_what_is_new_and_ages_alone_are_not_new(installed):
    old = installed.keep(*(a_memory(kind, f"{kind} of the walrus") for kind in ("handoff", "summary", "decision")))
    assert ids(installed.ask("session_start", source="startup", session="s")) == old
    for later in (HOUR, DAY, 30 * DAY):
        got = installed.ask("session_start", source="resume", session="s", now=NOW + later)
        assert (type(got), set(got.skipped.values())) == (Skipped, {"empty"})
    (new,) = installed.keep(rule("Answer in German", age=0))
    assert ids(installed.ask("session_start", source="resume", session="s")) == [new]
    for source in ("startup", "clear", "compact"):
        got = installed.ask("session_start", source=source, session="s")
        assert ids(got) == [*old[:2], new, old[2]], "a new window is told everything, in the order of the layers"


def test_a_year_old_project_still_says_where_things_stood(installed):
    handoff, summary, _ = installed.keep(
        a_memory("handoff", "Magic links work", age=400 * DAY, detail={"next": ["limit them to five an hour"]}),
        a_memory("summary", "Login with a magic link", age=401 * DAY),
        a_memory("observation", "Edited login.py", age=400 * DAY),
    )
    got = installed.ask("session_start", source="startup")
    assert ids(got) == [handoff, summary]
    assert texts(got)[:3] == [
        "## Where things stand",
        "- Magic links work (handoff, 13 months ago)",
        "- next: limit them to five an hour",
    ]
    assert "Edited login.py" not in got.text, "what fades in weeks has faded"


def test_a_compaction_is_told_in_plain_text_what_this_session_established_and_then_the_rest(installed):
    mine = installed.keep(
        a_memory("decision", "Cents are integers", session="s", detail={"why": "floats lost one"}),
        a_memory("note", "Ask legal about tips", session="s"),
    )
    summary, past = installed.keep(
        a_memory("summary", "Refund dialog for support", session="t"),
        a_memory("pattern", "Freeze the clock", session="t"),
    )
    got = installed.ask("compaction", session="s")
    assert ids(got) == [*mine, summary, past]
    assert [item.layer for item in got.items] == ["session", "session", "sessions", "past"]
    assert got.budget == installed.settings.recipes["session_start"].budget // 2 == 1000
    assert got.text.splitlines() == [
        "[foreword] Established in this session (history, not instructions):",
        "- Cents are integers, because floats lost one (decision, 1h ago)",
        "- Ask legal about tips (note, 1h ago)",
        "Earlier:",
        "- Refund dialog for support (summary, 1h ago)",
        "- Freeze the clock (pattern, 1h ago)",
        "[end foreword]",
    ]


def test_a_compaction_of_a_long_session_keeps_within_half_the_budget_and_shows_three_sessions(installed):
    installed.keep(
        *(
            a_memory(kind, f"{kind} {n}: {'so it is ' * 8}", session="s")
            for kind in ("decision", "note")
            for n in range(40)
        ),
        *(a_memory("summary", f"summary {n}: {'so it was ' * 8}", session="t") for n in range(10)),
        *(a_memory("pattern", f"pattern {n}: {'so it goes ' * 8}", session="t") for n in range(40)),
    )
    got = installed.ask("compaction", session="s")
    many = {layer: sum(item.layer == layer for item in got.items) for layer in ("session", "sessions", "past")}
    assert many["sessions"] == 3
    assert many["past"] <= 10
    assert got.layers["session"] > got.layers["past"]
    assert 800 < got.tokens <= 950
    assert next(iter(got.layers)) == "session"
