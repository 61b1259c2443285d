"""Who said it is told where it matters, nobody passes for the user, and nothing but the user's words is a rule."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from foreword.models import EMPTY, FORMS, KINDS, TRIGGERS, TRUSTS, Context, Memory, Ranked
from foreword.recall import render
from foreword.recall.notes import note_of, rule_note, session_note
from foreword.worker.mcp_tools import _head
from tests.tables import table
from tests.unit.recalling import DAY, HERE, NOW, a_memory, ask

SOURCES = st.sampled_from(
    ["user", "USER", "user-", "-User_", "us er", "codex", "git", "", "a\nb", "you", "<b>", "x" * 50]
)
OTHERS = st.sampled_from(TRUSTS[1:])
# What reads like a decision or a rule says who made it; what happened says when.
STATED = ("decision", "preference", "correction", "pattern", "note", "goal", "handoff", "project")


def a_note(kind: str, **more: object) -> Memory:
    return a_memory("as it is", kind=kind, id="dec-0a1b2c3d", scope=HERE.scope, age=3 * DAY, **more)


@given(kind=st.sampled_from(sorted(KINDS)), trust=OTHERS, source=SOURCES, form=st.sampled_from(FORMS))
def test_nobody_passes_for_the_user(kind, trust, source, form):
    memory = a_note(kind, trust=trust, source=source, detail={"user": "as it is", "outcome": "done as it is"})
    author_label = render.author_label(memory)
    assert author_label in (trust, source)
    assert author_label.strip("-_").lower() != "user"
    notes = {
        "notes": note_of(memory, now=NOW),
        "knowledge": note_of(memory, now=NOW),
        "sessions": session_note(memory, now=NOW),
        "rules": rule_note(memory, now=NOW),
    }
    for layer, note in notes.items():
        text = render.line(note, form=form, layer=layer)
        assert "user" not in text.lower().replace("as it is", ""), (layer, text)
        assert not re.search(r"\byou\b", text) or author_label == "you", (layer, text)
        if kind in STATED and layer in ("notes", "knowledge") and kind != "project":
            assert re.search(rf"\b{re.escape(author_label)}\b", text), (layer, text)
        if form == "xml":
            assert f'by="{author_label}"' in text


@given(kind=st.sampled_from(sorted(KINDS)), form=st.sampled_from(FORMS))
def test_the_users_own_words_are_nobody_elses(kind, form):
    memory = a_note(kind, trust="user", source="codex")
    for note in (note_of(memory, now=NOW), rule_note(memory, now=NOW), session_note(memory, now=NOW)):
        assert "codex" not in render.line(note, form=form, layer="notes")


@given(kind=st.sampled_from(["preference", "correction"]), trust=OTHERS, source=SOURCES)
def test_an_index_tells_who_said_what_reads_like_a_rule(kind, trust, source):
    memory = a_note(kind, trust=trust, source=source)
    text = render.compact(Ranked(memory, 0.5, EMPTY), now=NOW)
    assert text.endswith(f"| 3d, {render.author_label(memory)}")
    mine = render.compact(Ranked(replace(memory, trust="user"), 0.5, EMPTY), now=NOW)
    assert mine == f"[{kind}] dec-0a1b2c3d | as it is | 3d"


@given(kind=st.sampled_from(sorted(KINDS)), trust=st.sampled_from(TRUSTS), source=SOURCES)
def test_what_a_tool_shows_in_full_says_who_said_it(kind, trust, source):
    memory = a_note(kind, trust=trust, source=source)
    head = _head(memory, now=NOW)
    assert head.endswith(f"said by {render.author_label(memory)}")
    assert head.endswith("said by user") is (trust == "user")


@table("form", FORMS)
@table("trigger", TRIGGERS)
def test_nothing_but_the_users_words_is_a_rule(store, form, trigger):
    rules = [
        Memory(
            kind,
            f"{scope[:4]} {kind} {trust} wombat colours are stored in wombat.toml",
            source="user",
            trust=trust,
            scope=scope,
            project="here",
            created=NOW,
            confirmed=NOW,
        )
        for kind in ("preference", "correction")
        for trust in TRUSTS
        for scope in ("project:here", "universal")
    ]
    kept = store.memories.put(rules)
    for style in ("notes", "index"):
        prompt = "" if trigger in ("session_start", "compaction") else "what are the wombat colours stored in?"
        got = ask(store, trigger, prompt, form=form, budget=4000, overrides={"style": style})
        if not isinstance(got, Context):
            assert trigger != "session_start"
            continue
        trusts = {each.id: each.trust for each in kept}
        assert {trusts[item.memory] for item in got.items if item.layer == "rules"} <= {"user"}
        for line in got.text.splitlines():
            for trust in TRUSTS[1:]:
                if f" {trust} wombat" in line:  # found by its words, and told with whoever said it
                    assert trigger in ("question", "prompt")
                    assert line.count(trust) == 2, line


def test_a_rule_that_nobody_else_made_is_shown_as_the_users(store):
    store.memories.put([a_memory("Prices are whole cents", kind="preference")])
    got = ask(store, "session_start")
    assert isinstance(got, Context)
    assert "## Rules\n- Prices are whole cents (you, yesterday)\n" in got.text
