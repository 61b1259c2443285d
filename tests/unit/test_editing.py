"""A memory in an editor: what was left alone is not changed, and what was typed is what is meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.cli.connection import AGENT_VARIABLES, calling_agent
from foreword.cli.edit import form, read_form
from foreword.errors import BadRequest

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
LISTS = st.lists(TEXT, max_size=3)
MEMORY = {
    "id": "dec-1",
    "title": "Use Redis",
    "body": "",
    "detail": {"why": "speed"},
    "tags": ["cache"],
    "files": [],
    "functions": [],
    "kind": "decision",
    "scope": "project:here",
    "confidence": 1.0,
}


@given(title=TEXT, body=TEXT, why=TEXT, tags=LISTS, files=LISTS, confidence=st.sampled_from([0.0, 0.35, 1.0]))
def test_a_form_that_was_left_alone_changes_nothing(title, body, why, tags, files, confidence):
    told = {"title": title, "body": body, "detail": {"why": why}, "tags": tags, "files": files}
    memory = {**MEMORY, **told, "confidence": confidence}
    assert read_form(form(memory), memory=memory) == {}


def test_what_was_typed_is_what_is_meant():
    # What was typed is what is meant.
    saved = form(MEMORY).replace("Use Redis", "Use Valkey").replace("why: speed", "why:").replace("cache", "a,  b,")
    saved = saved.replace("confidence: 1", "confidence: .5") + "a body\n\n---\nwith a line\n"
    assert read_form(saved, memory=MEMORY) == {
        "title": "Use Valkey",
        "why": "",
        "tags": ["a", "b"],
        "confidence": 0.5,
        "body": "a body\n\n---\nwith a line",
    }
    # An emptied form changes nothing.
    assert read_form("", memory=MEMORY) == {}
    assert read_form("\n# nothing\n", memory=MEMORY) == {}
    # What is not a field of the form is told.
    with pytest.raises(BadRequest, match="not a field of the form"):
        read_form("title: x\nand so on\n", memory=MEMORY)
    with pytest.raises(BadRequest, match="must be a number"):
        read_form("confidence: quite\n", memory=MEMORY)
    # Whose shell it is is told by what agents set.
    assert calling_agent({"PATH": "/bin", "HOME": "/home/ada", "CLAUDECODE": ""}) == ""
    for name, agent in AGENT_VARIABLES.items():
        assert calling_agent({"PATH": "/bin", name: "1"}) == agent
