"""Who said it is told in every form, nobody passes for the user, and nothing but the user's words is a rule."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.chronicle import chronicle
from foreword.layout import RECIPES
from foreword.recall import render
from foreword.recall.budget import Layer, Line
from foreword.recall.pipeline import recall
from foreword.store.sqlite import Store
from foreword.types import FORMS, KINDS, TRUSTS, Context, Memory, Moment, Project, Ranked
from foreword.worker.tools import _whole
from tests.tables import table

NOW = 1_800_000_000.0
SOURCES = st.sampled_from(
    ["user", "USER", "user-", "-User_", "us er", "codex", "git", "", "a\nb", "you", "<b>", "x" * 50]
)
OTHERS = st.sampled_from(TRUSTS[1:])
# Where changed code stands nobody is named: it is read from the code itself.
LAYERS = ("continuity", "sessions", "rules", "knowledge", "past", "session")


def ranked(kind: str, **more: object) -> Ranked:
    about = {"id": "dec-0a1b2c3d", "created": NOW - 86_400 * 3, "confirmed": NOW - 86_400 * 3, "scope": "project:here"}
    return Ranked(Memory(kind, "as it is", **{**about, **more}), 0.5, {})  # type: ignore[arg-type]


@given(kind=st.sampled_from(sorted({*KINDS} - {"change"})), trust=OTHERS, source=SOURCES, form=st.sampled_from(FORMS))
@settings(max_examples=80)
def test_every_form_tells_who_said_it_and_nobody_passes_for_the_user(kind, trust, source, form):
    one = ranked(kind, trust=trust, source=source)
    said = render.said_by(one.memory)
    assert said in (trust, source)
    assert said.strip("-_").lower() != "user"
    for layer in LAYERS:
        text = render.line(one, layer=layer, now=NOW, form=form)
        assert re.search(rf"\b{re.escape(said)}\b", text), (layer, text)
        assert "user" not in text.lower(), (layer, text)


@given(kind=st.sampled_from(sorted(KINDS)), form=st.sampled_from(FORMS), layer=st.sampled_from(LAYERS))
def test_the_users_own_words_are_nobody_elses(kind, form, layer):
    text = render.line(ranked(kind, trust="user", source="codex"), layer=layer, now=NOW, form=form)
    assert "codex" not in text


@given(kind=st.sampled_from(["preference", "correction"]), trust=OTHERS, source=SOURCES)
def test_an_index_tells_who_said_what_reads_like_a_rule(kind, trust, source):
    one = ranked(kind, trust=trust, source=source)
    for moment in ("prompt", "question"):
        for text in render.versions(one, moment=moment, layer="index", now=NOW):
            assert re.search(rf"\| 3d, {re.escape(render.said_by(one.memory))} \| 0\.50$", text.partition("\n")[0])
    mine = render.versions(ranked(kind), moment="prompt", layer="index", now=NOW)[0]
    assert mine == f"[{kind}] dec-0a1b2c3d | as it is | 3d | 0.50"


@given(kind=st.sampled_from(sorted(KINDS)), trust=st.sampled_from(TRUSTS), source=SOURCES)
def test_what_a_tool_shows_in_full_says_who_said_it(kind, trust, source):
    memory = ranked(kind, trust=trust, source=source).memory
    head = _whole(memory, (), now=NOW).partition("\n")[0]
    assert head.endswith(f"said by {render.said_by(memory)}")
    assert head.endswith("said by user") is (trust == "user")
    (told,) = chronicle((), [memory], limit=1)
    assert (told.who == "user") is (trust == "user")


@table("form", FORMS)
@table("moment", ["session_start", "compaction", "question", "prompt"])
def test_nothing_but_the_users_words_is_a_rule(tmp_path: Path, form, moment):
    here = Project(key="here", name="here", root=str(tmp_path))
    about = {"project": "here", "created": NOW, "confirmed": NOW}
    rules = [
        Memory(kind, f"{scope[:4]} {kind} {trust} wombat", source="user", trust=trust, scope=scope, **about)
        for kind in ("preference", "correction")
        for trust in TRUSTS
        for scope in ("project:here", "universal")
    ]
    with closing(Store(tmp_path / "memory.db", backups=tmp_path / "backups")) as store:
        store.keep(rules)
        prompt = "" if moment in ("session_start", "compaction") else "what of the wombat preference?"
        asked = Moment(name=moment, project=here, prompt=prompt, form=form, languages=())
        got = recall(store, asked, recipe=replace(RECIPES[moment], budget=4000), threshold=0.0, now=NOW)
    if not isinstance(got, Context):
        assert moment != "session_start"
        return
    held = {item.memory: item.layer for item in got.items}
    with closing(Store(tmp_path / "memory.db", backups=tmp_path / "backups")) as store:
        trusts = {memory.trust for memory in store.by_id([id for id, layer in held.items() if layer == "rules"])}
    assert trusts <= {"user"}
    for trust in TRUSTS[1:]:
        for line in got.text.splitlines():
            if f" {trust} wombat" in line:  # found by its words, and told with whoever said it
                assert moment in ("question", "prompt")
                assert line.count(trust) == 2, line


def test_a_rule_that_nobody_else_made_is_shown_as_the_users():
    line = Line(ranked=ranked("preference"), text=render.line(ranked("preference"), layer="rules", now=NOW))
    layer = Layer(name="rules", lines=(line,), cap=100)
    assert "- user: as it is" in render.block([layer], moment="session_start", project="here")
