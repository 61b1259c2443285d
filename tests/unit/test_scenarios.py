"""The specification's scenarios over a real store, as installed: which memories come, in which order, at what cost."""

from __future__ import annotations

import itertools

import pytest

from foreword.config import load, load_synonyms
from foreword.paths import Home
from foreword.recall.pipeline import injection_of, meant, recall, thresholds
from foreword.store.sqlite import Store
from foreword.tokens import count, family_of
from foreword.types import KINDS, MOMENTS, Context, Memory, Moment, NoContext, Project
from tests.tables import table

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
        if isinstance(got, Context):
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
def install(tmp_path_factory):
    """`install()` is an installation with an empty store; all are closed at the end."""
    made = []

    def anew():
        made.append(Installed(tmp_path_factory.mktemp("home")))
        return made[-1]

    yield anew
    for each in made:
        each.store.close()


@pytest.fixture
def installed(install):
    return install()


def a_memory(kind, title, *, project=HERE, age=HOUR, **more):
    return Memory(kind, title, **{"project": project.key, "created": NOW - age, **more})


def rule(title, *, scope="", kind="preference", **more):
    return a_memory(kind, title, scope=scope, **more)


def ids(got):
    return [item.memory for item in got.items] if isinstance(got, Context) else []


def texts(got):
    """The lines between the markers."""
    return got.text.splitlines()[1:-1]


def test_rules_come_by_scope_and_keep_their_caps(install, tmp_path):
    # The counted tokens are those of the dearest family where no model is known.
    installed = install()
    installed.keep(rule("Answer in German", scope="universal"))
    got = installed.ask("session_start")
    assert got.tokens == max(count(got.text, family=family_of(model)) for model in ("", "gpt-5", "claude-3-opus"))
    # Where nothing but universal rules is known they come best first and alone.
    installed = install()
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
    # A go project gets its own rules then those of go then the universal ones.
    installed = install()
    kept = go_rules(installed, each=4)
    got = installed.ask("session_start", languages=("go",))
    groups = [set(ids(got)[at : at + 4]) for at in (0, 4, 8)]
    assert groups == [set(kept[""]), set(kept["language:go"]), set(kept["universal"])]
    assert len(ids(got)) == 12
    scores = [item.score for item in got.items]
    assert scores == sorted(scores, reverse=True)
    assert [round(item.why["scope"], 2) for item in got.items] == [1.0] * 4 + [0.7] * 4 + [0.4] * 4
    # A go project with too many of everything keeps every cap.
    installed = install()
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
    # Rules of a language that is not spoken here never come.
    installed = install()
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
    # What is known of one project is never shown in another.
    installed = install()
    installed.keep(*(a_memory(kind, f"walrus {kind} of there", project=THERE, session="s") for kind in KINDS))
    for name in MOMENTS:
        assert isinstance(installed.ask(name, "walrus goal of there", session="s"), NoContext), name
    (mine,) = installed.keep(a_memory("decision", "walrus decided here"))
    for name in MOMENTS:
        got = installed.ask(name, "walrus goal of there", session=f"only {name}")
        assert ids(got) == [mine], name
        assert "of there" not in got.text


# -- scopes -----------------------------------------------------------------------------------------------------------


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


# -- more than fits ---------------------------------------------------------------------------------------------------


def test_of_too_much_the_best_comes_and_nothing_old_is_hidden(install):
    # Of fifty rules the best thirty come.
    installed = install()
    kept = installed.keep(*(rule(f"Rule {n + 10}: {'always ' * 15}", confidence=1 - n / 100) for n in range(50)))
    got = installed.ask("session_start")
    assert ids(got) == kept[:30]
    assert got.tokens > 1000
    # One long memory does not hide ten short ones.
    installed = install()
    long, *short = installed.keep(
        a_memory("decision", "the walrus decision " + "and why it is so " * 9, detail={"why": "so it was said " * 90}),
        *(rule(f"Walrus rule {n}", confidence=0.9) for n in range(5)),
    )
    got = installed.ask("session_start", budget=140)
    assert long not in ids(got)
    assert set(ids(got)) == set(short)
    # Yesterdays observations do not hide the decision of last month.
    installed = install()
    decided, pattern = installed.keep(
        a_memory("decision", "Money is stored as cents", age=40 * DAY),
        a_memory("pattern", "Freeze the clock in slot tests", age=60 * DAY),
    )
    installed.keep(*(a_memory("observation", f"Edited file {n}", age=HOUR + n) for n in range(100)))
    got = installed.ask("session_start")
    assert set(ids(got)[:2]) == {decided, pattern}
    assert len(ids(got)) == 10
    # A universal rule is not hidden by a project that is corrected all day.
    installed = install()
    (german,) = installed.keep(rule("Answer in German", scope="universal", age=300 * DAY))
    installed.keep(*(rule(f"Rule {n + 10}: {'so it is ' * 9}", kind="correction") for n in range(90)))
    for budget in (0, 500):
        got = installed.ask("session_start", budget=budget)
        assert german in ids(got)
        assert len(ids(got)) <= 30


@table("budget", [200, 500, 1000])
def test_of_fifty_rules_over_the_budget_the_best_are_kept_and_no_more_would_fit(install, budget):
    installed = install()
    kept = installed.keep(*(rule(f"Rule {n + 10}: {'always ' * 15}", confidence=1 - n / 100, age=0) for n in range(50)))
    got = installed.ask("session_start", budget=budget)
    many = len(ids(got))
    assert 0 < many < 30
    assert ids(got) == kept[:many]
    assert got.tokens + max(item.tokens for item in got.items) + 2 > budget * 95 // 100


@table("name", MOMENTS)
def test_with_a_hundred_tokens_the_best_comes_or_nothing(install, name):
    installed = install()
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


@table("name", MOMENTS)
def test_an_empty_store_says_nothing(installed, name):
    got = installed.ask(name, "why does the checkout fail?", session="s")
    assert isinstance(got, NoContext)
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


def test_a_question_is_answered_in_full_and_within_its_ledger(install):
    # Questions are answered up to the end of the ledger and then told that searching is free.
    installed = install()
    installed.keep(*(a_memory("decision", f"walrus {n + 10}", body="a walrus swims " * 12) for n in range(60)))
    start = installed.ask("session_start", source="startup", session="s")
    answers = []
    while isinstance(got := installed.ask("question", "the walrus swims", session="s", budget=300), Context):
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
    assert isinstance(installed.ask("question", "the walrus swims", session="another"), Context)
    # A question is answered in full text the projects own first.
    installed = install()
    body = "because the bank counts it, and because of the audit"
    own, go, everywhere = installed.keep(
        a_memory("decision", "Cents are integers here", body=body),
        a_memory("decision", "Cents are integers in Go", body=body, scope="language:go"),
        a_memory("decision", "Cents are integers everywhere", body=body, scope="universal"),
    )
    got = installed.ask("question", "why are cents integers?", languages=("go",))
    assert set(ids(got)) == {own, go, everywhere}
    assert got.text.count(f"\n  {body}") == 3
    # A question shows a long title whole where there is no more to show.
    installed = install()
    title = "The label printer in hall B speaks its own dialect of ZPL since the spring"
    (kept,) = installed.keep(a_memory("observation", title))
    for form in ("markdown", "xml"):
        got = installed.ask("question", "which dialect does the label printer speak?", form=form)
        assert ids(got) == [kept]
        assert title in got.text


# -- prompts ----------------------------------------------------------------------------------------------------------


def test_a_prompt_gets_what_is_relevant_once(install):
    # Goals come with words about goals and with no others.
    installed = install()
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
    # The same memory does not come twice in a window and a new one does.
    installed = install()
    (old,) = installed.keep(a_memory("decision", "The label printer speaks ZPL"))
    prompt = "what does the label printer speak?"
    assert ids(installed.ask("prompt", prompt, session="s")) == [old]
    assert isinstance(installed.ask("prompt", prompt, session="s"), NoContext)
    (new,) = installed.keep(a_memory("failure", "The label printer garbles umlauts", age=0))
    assert ids(installed.ask("prompt", prompt, session="s")) == [new]
    assert isinstance(installed.ask("question", prompt, session="s"), NoContext)
    assert set(ids(installed.ask("prompt", prompt, session="another"))) == {old, new}
    # A prompt with many relevant memories gets twelve lines or more.
    installed = install()
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


def test_the_best_comes_in_full_and_the_uncertain_not_at_all(install):
    # The best one comes in full where it clearly stands out.
    installed = install()
    best, *_ = installed.keep(
        a_memory("failure", "502 from nginx after each deploy", body="keepalive of gunicorn was shorter"),
        a_memory("decision", "Rate limiting happens in nginx", body="the bots cost us a worker each"),
        a_memory("observation", "Bumped gunicorn workers from 4 to 9", body="for Sunday evenings"),
    )
    got = installed.ask("prompt", "nginx answers 502 after a deploy")
    assert ids(got)[0] == best
    assert texts(got)[1] == "  keepalive of gunicorn was shorter"
    assert "the bots" not in got.text
    # Where two are equally good neither comes in full.
    installed = install()
    installed.keep(
        a_memory("decision", "Sessions live in signed cookies", body="one moving part less"),
        a_memory("decision", "Sessions live for seven days", body="as the law wants it"),
    )
    got = installed.ask("prompt", "where do sessions live?")
    assert len(ids(got)) == len(texts(got)) == 2
    # Uncertain learnings never come by themselves.
    installed = install()
    sure, _ = installed.keep(
        a_memory("learning", "The label printer may need CP850", confidence=0.5, session="s"),
        a_memory("learning", "The label printer may hate umlauts", confidence=0.49, session="s"),
    )
    for name in ("prompt", "session_start", "compaction"):
        got = installed.ask(name, "what may the label printer hate?", session="s", source="startup")
        assert set(ids(got)) <= {sure}, name
    assert ids(installed.ask("session_start", source="startup")) == [sure]


# -- windows ----------------------------------------------------------------------------------------------------------


def test_windows_and_compactions_are_told_what_is_new_to_them(install):
    # A resumed window gets only what is new and ages alone are not new.
    installed = install()
    old = installed.keep(*(a_memory(kind, f"{kind} of the walrus") for kind in ("handoff", "summary", "decision")))
    assert ids(installed.ask("session_start", source="startup", session="s")) == old
    for later in (HOUR, DAY, 30 * DAY):
        got = installed.ask("session_start", source="resume", session="s", now=NOW + later)
        assert (type(got), set(got.skipped.values())) == (NoContext, {"empty"})
    (new,) = installed.keep(rule("Answer in German", age=0))
    assert ids(installed.ask("session_start", source="resume", session="s")) == [new]
    for source in ("startup", "clear", "compact"):
        got = installed.ask("session_start", source=source, session="s")
        assert ids(got) == [*old[:2], new, old[2]], "a new window is told everything, in the order of the layers"
    # A year old project still says where things stood.
    installed = install()
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
    # A compaction is told in plain text what this session established and then the rest.
    installed = install()
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
    # A compaction of a long session keeps within half the budget and shows three sessions.
    installed = install()
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
