"""Recall over a real store: within its budget, only what is this project's and new, or a reason for nothing."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from time import gmtime, strftime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.errors import StoreError
from foreword.layout import LAYOUT
from foreword.models import FORMS, KINDS, TRIGGERS, Context, Hit, Memory, NoContext, Project, Trigger
from foreword.recall import render
from foreword.recall.pipeline import (
    MOST_RECORDED,
    REASONS,
    Window,
    explain_nothing,
    injection_of,
)
from foreword.recall.query import query_of, scopes_of
from foreword.recall.relevance import content_words
from foreword.recall.tokens import FAMILIES, count
from tests.tables import table
from tests.unit.recalling import (
    DAY,
    HERE,
    HOUR,
    NOW,
    TOPIC,
    InMemory,
    a_memory,
    any_memory,
    ask,
    assert_whole,
    shown,
)

STORY = (
    "The walrus pool opens at nine because the keepers feed the seals first. Opening hours of the pool are stored in "
    "hours.toml, and `open_pool()` reads them once at the start."
)


def a_turn(title="Walrus pool opening hours are read from hours.toml", **more):
    question = "where do the opening hours of the walrus pool come from?"
    about = {
        "session": "earlier",
        "trust": "agent",
        "source": "claude-code",
        "files": ("pool/hours.py",),
        "body": STORY.replace(". ", ".\n"),
    }
    detail = {"user": question, "outcome": STORY, **more.pop("detail", {})}
    return a_memory(title, kind="turn", detail=detail, **{**about, **more})


def noise(many=30):
    """Other memories, so that the words of the topic are rare."""
    topics = ("invoices", "printer", "mail", "search", "login", "backup", "charts", "exports", "themes", "queues")
    return [a_memory(f"The {topics[n % 10]} module {n} was cleaned up", kind="observation") for n in range(many)]


# -- what is true of every store, trigger, form and style --------------------------------------------------------------
@settings(deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(0, 30),
    st.sampled_from(TRIGGERS),
    st.sampled_from(FORMS),
    st.sampled_from(("notes", "index")),
    st.sampled_from((0, 0, 0, 60, 100, 250, 900, 5000)),
    st.sampled_from(FAMILIES),
    st.sampled_from((TOPIC, "what are the goals of the walrus pool?", "commit", "src/walrus.py opening hours", "")),
)
def test_no_stored_text_leaves_the_budget_or_the_frame(seed, many, trigger, form, style, budget, family, prompt):
    rand = random.Random(seed)
    store = InMemory([any_memory(rand) for _ in range(many)])
    got = ask(
        store,
        trigger,
        prompt,
        form=form,
        budget=budget,
        session="s",
        overrides={"family": family, "style": style},
        parallel=((NOW - 9e9, (any_memory(rand).title,)),),
        touched=("src/walrus.py",),
    )
    if isinstance(got, NoContext):
        assert got.reason in REASONS
        assert got.problems == (), got.problems
        return
    name = "session_start" if trigger == "question" and not prompt else trigger
    limit = min(budget or LAYOUT[name].budget, LAYOUT[name].total)
    assert count(got.text, family=family) == got.tokens <= limit * 95 // 100
    assert got.budget == limit
    assert got.problems == (), got.problems
    assert_whole(got.text, trigger=name, form=form)
    # What is told is told once in a part, and each part within what it may have.
    assert len({(item.layer, item.memory) for item in got.items}) <= len(got.items)
    assert all(item.layer in got.layers for item in got.items)


def test_random_stores_are_told_at_every_trigger_and_in_every_form():
    """The property above is worth something only where something is told."""
    answered = {
        (trigger, form, style): isinstance(
            ask(
                InMemory([any_memory(random.Random(seed)) for seed in range(60)]),
                trigger,
                TOPIC,
                form=form,
                session="s",
                overrides={"style": style},
            ),
            Context,
        )
        for trigger, form, style in itertools.product(TRIGGERS, FORMS, ("notes", "index"))
    }
    assert all(answered.values()), answered


# -- prompts -----------------------------------------------------------------------------------------------------------
def test_a_prompt_is_told_what_came_of_it_with_its_age_and_id(store):
    turn, *_ = store.memories.put([a_turn(), *noise()])
    got = ask(store, "prompt", "the walrus pool shows the wrong opening hours")
    assert shown(got) == [turn.id]
    head, *lines, end = got.text.split("\n")
    assert (head, end) == (f"{render.BEGIN}: from earlier sessions ({render.HISTORY}) ---", render.END)
    assert lines[-1].startswith("- yesterday: ")
    assert lines[-1].endswith(f"[{turn.id}]")
    assert "opens at nine because" in lines[-1] or "hours.toml" in lines[-1]
    assert got.tokens < 200


def test_the_users_words_are_quoted_where_they_hold_more_of_the_topic(store):
    words = "the walrus pool mail must tell opening hours in the zone of the venue, never of the member"
    detail = {"user": words, "outcome": "Changed format_slot() and confirm.txt, three tests pass."}
    store.memories.put([a_turn("Fixed it", detail=detail, body=""), *noise()])
    got = ask(store, "prompt", "walrus pool mail has wrong opening hours")
    assert isinstance(got, Context)
    assert f'- you, yesterday: "{words}": Changed format_slot()' in got.text


@table(
    ("prompt", "reason"),
    [
        ("yes", "reply"),
        ("go on", "reply"),
        ("commit", "reply"),
        ("unheard of things about the narwhal", "nothing"),
        ("the login module of the narwhal looks hungry", "below"),
        ("<task-notification>walrus pool opening hours</task-notification>", "machine"),
        ("Background task b12 completed: walrus pool opening hours", "machine"),
        ("You are an expert review agent for the walrus pool opening hours", "machine"),
        ("Implement the following plan:\n\n# Plan: walrus pool\n\n## Steps\n" + "- change hours.py\n" * 40, "plan"),
    ],
)
def test_most_prompts_are_told_nothing_for_a_reason(store, prompt, reason):
    store.memories.put([a_turn(), *noise()])
    got = ask(store, "prompt", prompt)
    assert isinstance(got, NoContext)
    assert (got.reason, got.problems) == (reason, ())


def test_every_reason_for_nothing_is_told(make_store):
    store = make_store()
    turn, *_ = store.memories.put([a_turn(), *noise()])
    about = "the walrus pool shows the wrong opening hours"
    outcomes = {
        "nothing": ask(make_store(), "session_start"),
        "reply": ask(store, "prompt", "yes"),
        "topic": ask(
            store, "prompt", "the login of the charts", first=False, session_words=content_words("login charts")
        ),
        "repeated": ask(store, "prompt", about, session="s", window=Window(shown=lambda: frozenset({turn.id}))),
        "given": ask(store, "question", session="s", window=Window(spent=lambda: {"session_start": 900})),
        "old": ask(store, "session_start", source="resume", session="s", window=Window(began=lambda: NOW)),
        "room": ask(store, "prompt", about, budget=30),
        "used": ask(store, "prompt", about, session="s", window=Window(spent=lambda: {"prompt": 3000})),
        "late": ask(store, "prompt", about, expired=lambda: True),
        "wordless": ask(store, "question", "and the of it"),
        "below": ask(store, "prompt", "the narwhal swims to the login of the aquarium"),
    }
    assert {name: got.reason for name, got in outcomes.items() if isinstance(got, NoContext)} == {
        name: name for name in outcomes
    }
    assert (outcomes["used"].spent, outcomes["used"].allowed) == (3000, 3000)
    for reason, trigger in itertools.product(REASONS, TRIGGERS):
        sentence = explain_nothing(trigger, reason, budget=500, spent=10, allowed=20)
        assert sentence
        assert "{" not in sentence
        assert sentence[0].islower() or sentence.startswith("`")


def test_what_was_told_in_full_is_not_told_again_and_a_mention_does_not_bar_it(make_store):
    store = make_store()
    turn, *_ = store.memories.put([a_turn(), *noise()])
    about = {"session": "s", "prompt": "the walrus pool shows the wrong opening hours"}
    first = ask(store, "prompt", **about)
    assert shown(first) == [turn.id]
    store.injections.record(injection_of(Trigger("prompt", HERE, session="s"), first, id="inj-1", at=NOW), at_once=True)
    window = Window(shown=lambda: store.injections.shown("s"), spent=lambda: store.injections.window_tokens("s"))
    again = ask(store, "prompt", **about, window=window)
    assert (type(again), again.reason) == (NoContext, "repeated")
    # A line at session start names the session; what came of it may still be told at a prompt.
    store = make_store()
    summary, *_ = store.memories.put(
        [
            a_memory("Walrus pool opening hours", kind="summary", body=STORY, session="earlier", trust="agent"),
            *noise(),
        ]
    )
    start = ask(store, "session_start", session="s")
    assert summary.id in shown(start)
    store.injections.record(
        injection_of(Trigger("session_start", HERE, session="s"), start, id="inj-2", at=NOW), at_once=True
    )
    window = Window(shown=lambda: store.injections.shown("s"), spent=lambda: store.injections.window_tokens("s"))
    assert summary.id in shown(ask(store, "prompt", **about, window=window))


def test_what_is_superseded_unsure_or_anothers_is_never_told(make_store):
    store = make_store()
    kept = store.memories.put(
        [
            a_turn(),
            a_turn("other", project="elsewhere", uid="x"),
            a_memory("The walrus pool opening hours are in hours.toml", kind="learning", confidence=0.3, trust="agent"),
            a_memory(
                "The walrus pool opening hours are in pool.ini because of Bob", status="superseded", superseded_by="x"
            ),
            a_memory(
                "The walrus pool opening hours are in red.ini because of Bob", status="discarded", kind="preference"
            ),
            *noise(),
        ]
    )
    for trigger, style in itertools.product(TRIGGERS, ("notes", "index")):
        got = ask(store, trigger, TOPIC, session="s", overrides={"style": style})
        assert set(shown(got)) <= {kept[0].id, *(each.id for each in kept[5:])}, trigger
    # Its own session has it already; only a compaction brings that back.
    store = make_store()
    (own, *_) = store.memories.put([a_turn(session="s"), *noise()])
    assert shown(ask(store, "prompt", TOPIC, session="s")) == []
    assert own.id in shown(ask(store, "compaction", session="s"))


def test_an_index_is_one_line_an_entry_and_holds_many(store):
    store.memories.put(
        [
            a_memory(
                f"walrus pool opening hours, part {n}",
                age=n * DAY,
                trust="agent",
                source="codex",
                kind="correction" if n % 2 else "note",
            )
            for n in range(30)
        ]
    )
    got = ask(store, "prompt", "walrus pool opening hours", overrides={"style": "index"})
    rows = got.text.split("\n")[1:-1]
    assert len(rows) == len(got.items) >= 12
    assert got.tokens <= 475
    for row in rows:
        kind, title, when = row.split(" | ")
        assert title
        # What reads like a rule says who said it.
        assert when.endswith(", codex") == kind.startswith("[correction]")


def test_a_note_without_files_names_those_of_its_session_that_the_prompt_calls_by_name(store):
    files = ("pool/tickets.py", "pool/walrus_hours.py")
    edited = a_turn("Sold tickets", uid="e", session="one", age=3 * DAY, files=files, body="", detail={})
    store.memories.put([a_turn(uid="a", session="one", files=(), detail={"commits": ["x"]}), edited, *noise()])
    line = ask(store, "prompt", "the walrus pool shows the wrong opening hours").text.split("\n")[1]
    assert "pool/walrus_hours.py" in line
    assert "tickets.py" not in line


def test_a_note_names_no_file_that_is_gone(store, tmp_path):
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool/hours.py").touch()
    store.memories.put([a_turn(files=("pool/hours.py", "pool/gone.py")), *noise()])
    project = replace(HERE, root=str(tmp_path))
    for asks in (
        "the opening hours of the walrus pool are wrong",
        "where did we read the walrus pool's opening hours?",
    ):
        got = ask(store, prompt=asks, first=True, project=project)
        assert "pool/hours.py" in got.text
        assert "gone" not in got.text


def test_what_changes_together_with_a_file_that_the_prompt_names_is_told(store):
    both = ("pool/hours.py", "pool/walrus.py")
    turns = [a_turn(f"Step {n}", uid=f"t{n}", session=f"s{n}", age=n * HOUR, files=both) for n in range(6)]
    store.memories.put([*turns, *noise()])
    got = ask(store, "prompt", "pool/hours.py shows the wrong opening hours of the walrus")
    assert got.text.split("\n")[1] == "Changed together with pool/hours.py: pool/walrus.py (6 of 6 times)"
    assert "Changed together" not in str(ask(store, "prompt", "the walrus pool shows the wrong opening hours"))


def test_a_plan_is_told_of_the_test_that_it_leaves_out(store):
    both = ("pool/hours.py", "tests/test_hours.py")
    turns = [a_turn(f"Step {n}", uid=f"t{n}", session=f"s{n}", age=n * HOUR, files=both) for n in range(4)]
    store.memories.put([*turns, *noise()])
    plan = "Implement the following plan: in pool/hours.py, close the walrus pool at noon"
    line = "Not in this plan, but changed together with its files: tests/test_hours.py (4 of 4 times)"
    assert ask(store, "prompt", plan).text.split("\n")[1:-1] == [line]
    assert ask(store, "prompt", f"{plan}; extend test_hours.py").reason == "plan"


def test_a_routine_is_told_of_the_files_that_its_last_runs_edited(store):
    def run(number: int, request: str, *files: str) -> Memory:
        about = {"user": request, "outcome": "Published it."}
        return a_turn(
            "Published it", uid=f"t{number}", session=f"s{number}", age=DAY * number, files=files, detail=about
        )

    runs = [
        run(1, "bump the version and push", "rooms/version.py", "HISTORY.md"),
        run(2, "push the branch", "rooms/slots.py"),
        run(3, "Please bump the version, then push", "rooms/version.py", "HISTORY.md", "rooms/mail.py"),
    ]
    store.memories.put([*runs, *noise()])
    line = "Edited when you asked for this before: HISTORY.md (2 of 2 times), rooms/version.py (2 of 2 times)"
    got = ask(store, "prompt", "bump the version and push", first=False, session="s")
    assert got.text.split("\n")[1:-1] == [line]
    # Nothing that the prompt names, or that this session had in its hands.
    named = ask(
        store, "prompt", "bump the version in version.py, push", first=False, session="s", touched=("HISTORY.md",)
    )
    assert isinstance(named, NoContext)
    assert isinstance(ask(store, "prompt", "push", first=False, session="s"), NoContext)


def test_a_reply_that_picks_an_entry_of_a_list_is_about_that_entry(store):
    store.memories.put([a_turn(uid="t"), *noise()])
    menu = (
        "| # | to do | since |\n|---|---|---|\n| 3 | Print invoices | 2d |\n"
        "| 4 | Where do the opening hours of the walrus pool come from | 5d |\n\nReply with a number."
    )
    running = {"first": False, "session": "s", "session_words": content_words(menu)}
    for reply in ("4", "4 looks right", "the last one"):
        assert "hours.toml" in ask(store, "prompt", reply, answer=menu, **running).text
    for reply in ("3", "yes", "4 of them fail", "9"):
        assert isinstance(ask(store, "prompt", reply, answer=menu, **running), NoContext)


def test_a_note_is_silent_when_a_name_in_it_was_spelled_otherwise_since(store):
    prompt = "where do exports of the walrus pool go, and who cleans the walrus exports?"
    text = "Exports of the walrus pool go to `data/export/walrus`, cleaned at night because the pool is closed then"
    note = a_memory(text, uid="n", age=2 * DAY, session="first", files=("pool/walrus.py",))
    store.memories.put([note, *noise()])
    (known,) = shown(ask(store, "prompt", prompt))
    later = {"outcome": "Renamed the folder.", "respelled": ["data/export/walrus"]}
    store.memories.put([a_turn("Rename the folder", uid="t", session="second", age=DAY, detail=later)])
    assert known not in shown(ask(store, "prompt", prompt))
    assert known in shown(ask(store, "question", prompt))  # who asks gets what was
    store.memories.put([replace(note, confirmed=NOW - HOUR)])
    assert known in shown(ask(store, "prompt", prompt))  # said again since


def test_a_pull_request_that_is_meant_and_not_named_is_named(store):
    work = {"branch": "waiting-list", "pull_request": "#41", "repository": "band/rooms"}
    about = {"kind": "summary", "trust": "agent", "session": "earlier", "files": ("rooms/waiting.py",)}
    store.memories.put([*noise(), a_memory("Offer waiting slots", age=HOUR, detail=work, **about)])
    prompt = "there are some valid comments from the reviewer on that pr"
    got = ask(store, prompt=prompt, session="s", first=True)
    line = "last worked on 1h ago: Pull request #41, branch waiting-list, repository band/rooms: Offer waiting slots"
    assert f"- {line}. rooms/waiting.py [" in got.text
    # A later session on the same branch did not ask for its number.
    later = a_memory("Round prices", age=60.0, detail={"branch": "waiting-list"}, **{**about, "session": "later"})
    store.memories.put([later])
    assert "ago: Pull request #41, branch waiting-list" in ask(store, prompt=prompt, session="s", first=True).text
    # The running conversation has one, or it is over.
    assert isinstance(ask(store, prompt=prompt, session="s", session_words=frozenset(("#44",))), NoContext)
    assert isinstance(ask(store, prompt=prompt, session="s", first=True, now=NOW + 9 * DAY), NoContext)
    merged = a_memory("Offer more slots", age=30.0, detail={**work, "fate": "merged"}, **{**about, "session": "last"})
    store.memories.put([merged])
    assert isinstance(ask(store, prompt=prompt, session="s", first=True), NoContext)


def test_who_commits_is_told_what_sessions_at_work_have_not_committed(store):
    left = {"uncommitted": ["rooms/prices.py", "rooms/old.py"]}
    store.memories.put([*noise(), a_memory("Round prices", kind="summary", session="other", age=60.0, detail=left)])
    work = {"session": "s", "parallel": ((NOW - 600, ("rooms/prices.py", "rooms/done.py")),)}
    line = "- Another session works in this folder since 10m and has not committed: rooms/prices.py"
    for prompt in ("commit this", "Commit and push, then update the changelog"):
        assert ask(store, "prompt", prompt, **work).text.split("\n")[1:-1] == [line]
    # What git calls changed decides, where it knows.
    changed = frozenset(("rooms/done.py",))
    assert "committed: rooms/done.py\n" in ask(store, "prompt", "commit this", changed=changed, **work).text
    both = "committed: rooms/prices.py, rooms/done.py\n"  # git names a folder of nothing but new files
    assert both in ask(store, "prompt", "commit this", changed=frozenset(("rooms/",)), **work).text
    assert isinstance(ask(store, "prompt", "commit this", session="s"), NoContext)
    # So is who speaks of such a file in the middle of a session; its start has told it already.
    warning = "wait, somebody else edits rooms/prices.py"
    assert line in ask(store, "prompt", warning, first=False, **work).text
    assert line not in str(ask(store, "prompt", warning, first=True, **work))
    assert isinstance(ask(store, "prompt", "yes, go on", first=False, **work), NoContext)


def test_answers_name_the_day_and_an_id_only_where_there_is_more(store):
    whole = a_memory("Walrus pool", body="The walrus pool opens at noon.", kind="note", age=40 * DAY)
    more = a_memory("Walrus hours", body="The walrus pool closes at five. " * 30, kind="note", age=2 * DAY)
    store.memories.put([whole, more, *noise()])
    lines = ask(store, "question", "when is the walrus pool open, what are its hours?").text.split("\n")
    opens, closes = (next(line for line in lines if word in line) for word in ("noon", "five"))
    assert strftime("%d %B %Y", gmtime(NOW - 40 * DAY)).lstrip("0") in opens
    assert "[not-" not in opens
    assert "2 days ago" in closes
    assert "[not-" in closes


def test_a_question_about_what_was_never_spoken_of_is_not_answered(store):
    store.memories.put([a_turn(), *noise()])
    assert isinstance(ask(store, prompt="where did we read the opening hours of the walrus pool?"), Context)
    assert isinstance(ask(store, prompt="where did we sell the dolphin opera tickets of the walrus?"), NoContext)


def test_a_question_about_the_past_is_answered_once_and_not_by_a_word_in_passing(store):
    asks = "where did we read the opening hours of the walrus pool?"
    session = a_memory("Walrus hours", kind="summary", body=STORY, session="earlier", files=("pool/hours.py",))
    passing = a_memory(
        "Printed the walrus", kind="turn", session="b", files=("zoo/print.py",), detail={"outcome": "It is printed."}
    )
    store.memories.put([a_turn(), session, passing, *noise()])
    got = ask(store, prompt=asks)
    assert isinstance(got, Context)
    assert sum("hours.toml" in line for line in got.text.split("\n")) == 1
    assert "printed" not in got.text


def test_what_is_not_sure_does_not_push_out_what_is(make_store):
    other_store = make_store()
    unsure = a_memory(
        f"{TOPIC} walrus pool opening hours", kind="learning", trust="agent", confidence=0.6, session="earlier"
    )
    other_store.memories.put([*noise(), a_turn(), unsure])
    got = ask(other_store, prompt="the opening hours of the walrus pool are wrong", first=True)
    assert "hours.toml" in got.text


def test_goals_come_where_the_words_speak_of_goals(store):
    goal, done, *_ = store.memories.put(
        [
            a_memory("Members book by themselves", kind="goal"),
            a_memory("Pay by card", kind="goal", detail={"status": "done"}),
            *noise(),
        ]
    )
    for name in ("prompt", "question"):
        assert goal.id in shown(ask(store, name, "what are the goals of this quarter for bookings?"))
        assert done.id not in shown(ask(store, name, "what are the goals of this quarter for bookings?"))
        assert goal.id not in shown(ask(store, name, "members book rooms twice"))


# -- session starts, resumed windows, compactions ----------------------------------------------------------------------
def summaries(many=3):
    return [
        a_memory(
            f"Session {n} moved the walrus{n}",
            kind="summary",
            body=f"Moved walrus{n} to the pool.",
            age=(n + 1) * DAY,
            uid=f"sum{n}",
            session=f"s{n}",
        )
        for n in range(many)
    ]


@table(("source", "whole"), [("startup", True), ("clear", True), ("compact", True), ("resume", False), ("fork", False)])
def test_a_new_window_is_told_everything_and_a_resumed_one_what_is_new(store, source, whole):
    old, new = store.memories.put(
        [
            *summaries(1),
            a_memory("Moved the seals too", kind="summary", body="They swim.", age=5.0, uid="n", session="n"),
        ]
    )
    window = Window(shown=lambda: frozenset({old.id}), began=lambda: NOW - 60)
    got = ask(store, "session_start", source=source, session="s", window=window)
    assert set(shown(got)) == ({old.id, new.id} if whole else {new.id})


def test_a_compaction_keeps_what_this_session_established(store):
    (mine,) = store.memories.put([a_turn(session="s", age=900.0)])
    store.memories.put([a_memory(f"walrus decided {n}", session="t", body="so") for n in range(300)])
    got = ask(store, "compaction", session="s", form="plain")
    assert [item.memory for item in got.items if item.layer == "session"] == [mine.id]
    rows = got.text.split("\n")
    assert rows[0].startswith("[foreword] Established in this session")
    assert "Earlier:" in rows
    assert not any("memory_get" in row for row in rows)  # a summariser can fetch nothing


# -- budgets of a context window ---------------------------------------------------------------------------------------
class Spending:
    """One context window, which counts what it was given."""

    def __init__(self, store):
        self.store, self.spent, self.had = store, {}, set()

    def ask(self, name, prompt="", **more):
        window = Window(shown=lambda: frozenset(self.had), spent=lambda: self.spent)
        got = ask(self.store, name, prompt, session="s", window=window, **more)
        if isinstance(got, Context):
            trigger = "session_start" if name == "question" and not prompt else name
            self.spent[trigger] = self.spent.get(trigger, 0) + got.tokens
            self.had |= set(shown(got))
        return got


def test_a_window_never_gets_more_than_its_budgets(store):
    store.memories.put(
        [
            *(
                a_memory(f"walrus pool opening hours {n}", body="the walrus swims in the pool " * 6, uid=f"m{n}")
                for n in range(90)
            ),
            *(
                a_memory(
                    f"walrus pool opening hours at {n}", kind="summary", body="a long story of it " * 6, uid=f"s{n}"
                )
                for n in range(20)
            ),
        ]
    )
    window = Spending(store)
    assert isinstance(window.ask("session_start", source="startup"), Context)
    answers = [window.ask("question", f"walrus pool opening hours {n}") for n in range(20)]
    assert isinstance(answers[0], Context)
    assert (type(answers[-1]), answers[-1].reason) == (NoContext, "used")
    for _ in range(40):
        window.ask("prompt", "walrus pool opening hours", overrides={"style": "index"})
    assert window.spent["session_start"] <= 2000
    assert 700 < window.spent["question"] <= 1000
    assert window.spent["prompt"] <= 3000
    # A new window has everything again; a question without words is given the start, once.
    assert isinstance(
        ask(store, "session_start", source="clear", session="s", window=Window(spent=lambda: window.spent)), Context
    )
    other = Spending(store)
    assert isinstance(other.ask("question"), Context)
    assert set(other.spent) == {"session_start"}
    assert other.ask("question", "  ").reason == "given"
    # Without a session nothing is counted.
    assert isinstance(ask(store, "question", "walrus pool", window=Window(spent=lambda: 1 / 0)), Context)


def test_a_question_is_answered_by_scope_and_one_scope_may_have_it_all(make_store):
    store = make_store()
    scopes = {"project": "", "language": "language:python", "universal": "universal"}
    kept = {
        name: store.memories.put(
            [
                a_memory(
                    f"walrus pool opening hours {name} {n}", body="the walrus swims " * 9, scope=scope, uid=f"{name}{n}"
                )
                for n in range(20)
            ]
        )
        for name, scope in scopes.items()
    }
    got = ask(store, "question", "walrus pool opening hours", languages=("python",))
    spent = {
        name: sum(item.tokens for item in got.items if item.memory in {each.id for each in some})
        for name, some in kept.items()
    }
    assert spent["project"] > spent["language"] > 0
    alone = ask(store, "question", "walrus pool opening hours", scope="universal")
    assert set(shown(alone)) <= {each.id for each in kept["universal"]}
    assert alone.tokens > 350


# -- what goes wrong ---------------------------------------------------------------------------------------------------
class Failing:
    """A real store, in which reading memories of one kind fails."""

    def __init__(self, store, kind, error):
        self.store, self.kind, self.error = store, kind, error

    def __getattr__(self, name):
        def read(query, *more, **named):
            if self.kind in getattr(query, "kinds", ()) and len(query.kinds) < 5:
                raise self.error
            return getattr(self.store, name)(query, *more, **named)

        return read


@table(
    "error",
    [StoreError("a page cannot be read"), ValueError("odd"), KeyError("x"), MemoryError(), RecursionError("deep")],
)
def test_a_layer_that_fails_costs_only_itself_and_is_told(store, error):
    store.memories.put(
        [
            *summaries(2),
            a_memory("Answer in German", kind="preference"),
            a_memory(
                "`make x` fails",
                kind="failure",
                trust="tool",
                detail={
                    "command": "make x",
                    "error": "no rule",
                    "worked": {"make y": ["a", "b"]},
                    "seen_in": {"a": 1, "b": 1},
                },
            ),
        ]
    )
    whole = ask(store, "session_start")
    assert {"sessions", "rules", "failures"} <= set(whole.layers)
    for kind, layer in (("preference", "rules"), ("failure", "failures")):
        got = ask(Failing(store.search, kind, error), "session_start")
        assert set(got.layers) == set(whole.layers) - {layer}
        assert layer in got.skipped
        (problem,) = got.problems
        assert problem.startswith(f"{layer}: ")


def test_what_fails_elsewhere_is_told_too_and_never_raised(make_store, monkeypatch):
    # A broken words index costs the words.
    store = make_store()
    store.memories.put([a_turn(), *summaries(1)])
    store.database.write(lambda: store.database.connection.execute("DROP TABLE words"))
    got = ask(store, "prompt", TOPIC)
    assert (type(got), got.reason) == (NoContext, "failed")
    assert "foreword index" in " ".join(got.problems)
    assert isinstance(ask(store, "session_start"), Context)
    # A window that cannot be read is no reason for silence.
    store = make_store()
    store.memories.put([a_turn(), *noise()])

    def broken():
        raise StoreError("a page cannot be read")

    got = ask(store, "prompt", TOPIC, session="s", window=Window(shown=broken, spent=broken))
    assert isinstance(got, Context)
    assert got.problems
    # A block that cannot be rendered is no block.
    store = make_store()
    store.memories.put(summaries(2))

    def fails(layers, **more):
        raise ValueError("a line that nobody has seen before")

    monkeypatch.setattr(render, "block", fails)
    got = ask(store, "session_start")
    assert (type(got), got.reason) == (NoContext, "failed")
    assert any(problem.startswith("block: ") for problem in got.problems)


@table("layers", range(8))
def test_a_deadline_brings_what_is_ready(store, layers):
    store.memories.put([*summaries(3), a_memory("Answer in German", kind="preference")])
    left = iter([False] * layers + [True] * 99)
    got = ask(store, "session_start", expired=lambda: next(left))
    late = [layer.name for layer in LAYOUT["session_start"].layers][layers:]
    assert [name for name, why in got.skipped.items() if why == "deadline"] == late
    assert isinstance(got, Context) or layers < 2
    assert got.problems == ()


# -- scopes, synonyms, what is recorded --------------------------------------------------------------------------------
def test_a_trigger_looks_into_its_project_its_languages_and_what_is_universal(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "go.mod").touch()
    project = Project(key="here", name="here", root=str(tmp_path))
    trigger = Trigger("prompt", project)
    assert scopes_of(trigger) == ("project:here", "language:python", "language:go", "universal")
    assert scopes_of(trigger._replace(scope="language")) == ("language:python", "language:go")
    query = query_of(Trigger("prompt", HERE, prompt="deploy"), synonyms={"deploy": ("ci", "deploy")})
    assert (query.terms, query.synonyms) == (("deploy",), {"ci": "deploy"})


def test_what_is_recorded_tells_the_words_and_the_text_and_never_the_prompt(store):
    turn, *_ = store.memories.put([a_turn(), *noise()])
    prompt = "why are the walrus pool opening hours wrong " + " ".join(f"word{n}" for n in range(60))
    trigger = Trigger("question", HERE, session="s", prompt=prompt, host="codex", languages=())
    got = ask(store, "question", prompt)
    record = injection_of(trigger, got, id="inj-1", at=5.0)
    assert (record.text, record.tokens, record.host, record.at) == (got.text, got.tokens, "codex", 5.0)
    assert turn.id in [item.memory for item in record.items]
    assert set(record.items[0].why) >= {"match", "recency", "importance", "reinforcement", "scope", "task"}
    assert {"walrus", "pool"} <= set(record.terms)
    assert len(record.terms) <= MOST_RECORDED
    assert prompt not in repr(record)
    silent = injection_of(trigger, ask(store, "prompt", "yes"), id="inj-2", at=6.0)
    assert (silent.text, silent.tokens, silent.items) == ("", 0, ())


def test_the_same_store_and_trigger_give_the_same_text(make_store):
    store = make_store()
    store.memories.put(
        [a_memory(f"walrus pool hours {n % 3}", kind=kind, body="so") for n, kind in enumerate(list(KINDS) * 3)]
    )
    for trigger, form in itertools.product(TRIGGERS, FORMS):
        one, other = (ask(store, trigger, TOPIC, session="s", form=form) for _ in range(2))
        assert getattr(one, "text", one.reason if isinstance(one, NoContext) else "") == getattr(
            other, "text", other.reason if isinstance(other, NoContext) else ""
        )


def test_what_is_not_told_is_told_with_its_reason(make_store):
    store = make_store()
    turn, *_ = store.memories.put(
        [a_turn(), a_turn("Feeding walruses", body="", detail={"outcome": ""}, uid="u2"), *noise()]
    )
    got = ask(store, "prompt", "the walrus pool shows the wrong opening hours")
    assert shown(got) == [turn.id]
    for each in got.rejected:
        assert each.layer
        assert each.reason
        assert each.text
    # What has no room says how much it needs.
    store = make_store()
    store.memories.put(
        [a_memory(f"walrus pool hours {n}", body="a long story of the pool " * 20, uid=f"m{n}") for n in range(20)]
    )
    got = ask(store, "question", "walrus pool hours", budget=200)
    assert any(each.reason == "room" and "tokens" in each.text for each in got.rejected)


@pytest.mark.parametrize("odd", [float("inf"), float("nan"), -1e300])
def test_odd_times_break_nothing(odd):
    store = InMemory([any_memory(random.Random(n), created=odd, confirmed=odd) for n in range(20)])
    for trigger in TRIGGERS:
        got = ask(store, trigger, TOPIC, session="s")
        assert got.problems == (), got.problems


def test_hits_without_a_title_or_of_an_unknown_kind_break_nothing():
    class Odd(InMemory):
        def by_words(self, query):
            return [
                hit._replace(memory=replace(hit.memory, kind="rumour", title="")) for hit in super().by_words(query)
            ]

    got = ask(Odd([a_memory("x", id="dec-00000001", body=STORY)]), "question", TOPIC)
    assert isinstance(got, Context)
    assert isinstance(Hit(a_memory("x"), "words"), Hit)
