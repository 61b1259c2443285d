"""arrived: whether a transcript shows that our block is in it, whatever the path leads to."""

import os

from foreword.agents.transcript_tail import TAIL
from foreword.models import Memory, Ranked
from foreword.recall import render
from foreword.recall.budget import Layer, Line
from foreword.worker.context import holds_context
from tests.tables import table


@table("form", ["markdown", "xml"])
def test_a_block_as_it_is_rendered_is_found_in_the_end_of_a_transcript(tmp_path, form):
    line = Line(text="- x", ranked=Ranked(memory=Memory("note", "x"), score=1.0, why={}), group="")
    text = render.block(
        [Layer(name="rules", lines=(line,), cap=9, limit=9)], trigger="session_start", project="shop", form=form
    )
    file = tmp_path / "t.jsonl"
    file.write_text("y" * TAIL + text + "\n")
    assert holds_context(str(file))
    file.write_text(text + "y" * TAIL)
    assert not holds_context(str(file))


def test_what_cannot_be_read_shows_nothing(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("", "\0", str(tmp_path), str(tmp_path / "none"), str(tmp_path / "pipe")):
        assert not holds_context(path)
