"""A context window as installed, over a real store that records what it gave: what comes when, and what not again."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from foreword.config import load_synonyms
from foreword.models import KINDS, TRIGGERS, Context, NoContext, Project, Trigger
from foreword.paths import Home
from foreword.recall.pipeline import Window, injection_of, options_of, recall, requested_trigger
from foreword.recall.tokens import count, family_of
from foreword.store import Store
from tests.unit.recalling import DAY, HERE, HOUR, NOW, SETTINGS, a_memory

THERE = Project(key="there", name="there", root="/nowhere")
PROMPT = "the confirmation mail shows the wrong hour for Lisbon"


class Installed:
    """A store, asked with the settings of an installation whose user has changed nothing; it records what it gave."""

    def __init__(self, folder):
        self.synonyms, wrong = load_synonyms(Home(root=folder))
        assert not wrong
        self.store = Store(folder / "memory.db", backups=folder / "backups")
        self.numbers = itertools.count(1)

    def keep(self, *memories):
        return [each.id for each in self.store.memories.put(memories)]

    def ask(self, name="prompt", prompt="", *, project=HERE, now=NOW, session="s", **more):
        trigger = requested_trigger(
            Trigger(name=name, project=project, prompt=prompt, session=session, **{"languages": (), **more})
        )
        window = Window(
            shown=lambda: self.store.injections.shown(session),
            spent=lambda: self.store.injections.window_tokens(session),
            began=lambda: self.store.injections.last_start_at(session),
        )
        got = recall(
            self.store.search,
            trigger,
            options=options_of(SETTINGS, trigger.name, synonyms=self.synonyms),
            now=now,
            window=window,
        )
        assert got.problems == ()
        if isinstance(got, Context):
            limit = trigger.budget or SETTINGS.layout[trigger.name].budget
            assert count(got.text, family=family_of("")) == got.tokens <= got.budget * 95 // 100 <= limit * 95 // 100
            assert sum(got.layers.values()) < got.tokens, "the frame costs something too"
            self.store.injections.record(
                injection_of(trigger, got, id=f"inj-{next(self.numbers)}", at=now), at_once=True
            )
        return got


@pytest.fixture
def installed(tmp_path):
    made = Installed(tmp_path)
    yield made
    made.store.close()


def ids(got):
    return [item.memory for item in got.items] if isinstance(got, Context) else []


def past(project=HERE, prefix=""):
    """A week of work on mails and other things."""
    about = {"project": project.key, "trust": "agent", "source": "claude-code"}
    mail = "Slots are in UTC and confirm.txt formats the hour itself, so Lisbon members saw the wrong hour in the mail."
    return [
        a_memory(
            "Confirmation mail in the venue's zone",
            kind="summary",
            uid=f"{prefix}sum1",
            session="s1",
            age=9 * DAY,
            body="The confirmation mail shows the hour of the venue.",
            files=("rooms/mail.py",),
            **about,
        ),
        a_memory(
            "Confirmation mail for Lisbon",
            kind="turn",
            uid=f"{prefix}trn1",
            session="s1",
            age=9 * DAY,
            body=mail,
            detail={"user": "the mail must show the venue's time", "outcome": mail},
            files=("rooms/mail.py",),
            **about,
        ),
        a_memory(
            "Double bookings answer 409",
            kind="summary",
            uid=f"{prefix}sum2",
            session="s2",
            age=3 * DAY,
            body="book() inserts at once.",
            files=("rooms/bookings.py",),
            detail={"next": ["send the offer by mail when a booking is cancelled"]},
            **about,
        ),
        a_memory(
            "Prices are whole cents, never floats",
            kind="preference",
            uid=f"{prefix}pre1",
            age=2 * DAY,
            seen=3,
            **{**about, "trust": "user"},
        ),
        *(
            a_memory(f"Cleaned up chart number {n}", kind="observation", uid=f"{prefix}obs{n}", age=n * HOUR, **about)
            for n in range(20)
        ),
    ]


def test_a_window_from_start_to_clear(installed):
    mail, turn, bookings, rule, *_ = installed.keep(*past())
    start = installed.ask("session_start", source="startup")
    assert [item.layer for item in start.items][:1] == ["standing"]
    assert {mail, bookings, rule} <= set(ids(start))
    assert (
        start.text.index("## Where things stand")
        < start.text.index("## Recent sessions")
        < start.text.index("## Rules")
    )
    assert start.tokens < 900
    # A prompt on this very thing brings what came of it, once.
    assert turn in ids(installed.ask("prompt", PROMPT))
    again = installed.ask("prompt", PROMPT)
    assert (type(again), again.reason) == (NoContext, "repeated")
    assert isinstance(installed.ask("prompt", "yes", first=False), NoContext)
    # Resumed, nothing is new; then what is.
    assert isinstance(installed.ask("session_start", source="resume", now=NOW + HOUR), NoContext)
    (new,) = installed.keep(a_memory("Answer in German", kind="preference", age=-HOUR - 60))
    assert ids(installed.ask("session_start", source="resume", now=NOW + 2 * HOUR)) == [new]
    # A new window is told everything again.
    assert turn in ids(installed.ask("prompt", PROMPT, session="another"))
    cleared = installed.ask("session_start", source="clear", now=NOW + 2 * HOUR)
    assert {mail, bookings, rule, new} <= set(ids(cleared))


def test_no_project_is_told_anything_of_another(installed):
    installed.keep(*past(THERE, "there-"))
    installed.keep(*(a_memory(f"{PROMPT} {kind}", kind=kind, project=THERE.key, uid=f"x{kind}") for kind in KINDS))
    for name in TRIGGERS:
        assert isinstance(installed.ask(name, PROMPT, session=f"first {name}"), NoContext), name
    mine = installed.keep(*past())
    for name in TRIGGERS:
        assert set(ids(installed.ask(name, PROMPT, session=f"second {name}"))) <= set(mine), name


def test_rules_come_by_scope_and_a_language_that_is_not_spoken_brings_none(installed):
    kept = {
        scope: installed.keep(
            *(
                a_memory(f"Rule {n} of {scope or 'here'}: say what you do before it", kind="preference", scope=scope)
                for n in range(many)
            )
        )
        for scope, many in (("universal", 9), ("language:go", 9), ("", 9), ("language:rust", 3))
    }
    got = installed.ask("session_start", languages=("go",))
    rules = [item.memory for item in got.items if item.layer == "rules"]
    assert not set(rules) & set(kept["language:rust"])
    for scope in ("", "language:go", "universal"):
        assert set(rules) & set(kept[scope]), scope
    assert got.layers["rules"] <= 350
    assert len(rules) <= SETTINGS.layout["session_start"].layers[4].limit


def test_an_empty_store_says_nothing_at_any_trigger(installed):
    for name in TRIGGERS:
        got = installed.ask(name, PROMPT)
        assert isinstance(got, NoContext)
        assert got.reason in ("nothing", "below")


def test_more_than_fits_leaves_the_best_and_nothing_old_hides_it(installed):
    first = a_memory("x", kind="summary")
    long = [
        replace(
            first,
            title=f"Session {n}",
            body="a long story " * 40,
            uid=f"s{n}",
            session=f"s{n}",
            created=NOW - n * DAY,
            files=tuple(f"src/very/long/path/of/file{n}{m}.py" for m in range(20)),
        )
        for n in range(1, 60)
    ]
    kept = installed.keep(*long, a_memory("Prices are whole cents", kind="preference", age=300 * DAY))
    for budget in (0, 300, 600):
        got = installed.ask("session_start", source="startup", budget=budget, session=f"b{budget}")
        sessions = [item.memory for item in got.items if item.layer == "sessions"]
        assert sessions == kept[: len(sessions)], "the newest"
        assert kept[-1] in ids(got) or budget == 300


def test_a_compaction_keeps_this_sessions_own_first(installed):
    own = installed.keep(
        *(
            a_memory(f"Decided that thing{n} has part{n} and colour{n} of kind{n}", session="s", uid=f"d{n}", age=n)
            for n in range(40)
        )
    )
    installed.keep(*past())
    got = installed.ask("compaction")
    many = {layer: [item.memory for item in got.items if item.layer == layer] for layer in got.layers}
    assert set(many["session"]) <= set(own)
    assert len(many["session"]) >= 5
    assert 0 < len(many["sessions"]) <= 3
    assert got.text.startswith("[foreword] Established in this session")
    assert got.tokens <= 950
