"""Vectors keep what a text means, the local table asks nobody, and what is missing is told with its install line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from foreword.hook.build import interpreter
from foreword.models import Memory, Vector
from foreword.worker.embeddings import BODY_CHARS, NAMES_CHARS, TITLE_CHARS, WordTable, quantize, text_of

SRC = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="module")
def local() -> WordTable:
    return WordTable()


def cosine(one: Vector, two: Vector) -> float:
    a, b = (np.frombuffer(each.data, dtype=np.int8).astype(np.float32) * each.scale for each in (one, two))
    return float(a @ b)


# -- whole numbers ----------------------------------------------------------------------------------------------------

FLOATS = arrays.arrays(
    np.float32, (2, 48), elements=st.floats(-1e6, 1e6, width=32).filter(lambda x: x == 0 or abs(x) > 1e-6)
)


@settings(deadline=None, max_examples=30)
@given(rows=FLOATS)
def test_whole_numbers_keep_the_angle_between_any_two_vectors(rows):
    one, two = quantize(rows, model="m")
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    if not lengths.all():
        assert any(each.data == b"" and each.scale == 0 for each in (one, two))
        return
    assert len(one.data) == rows.shape[1]
    assert cosine(one, one) == pytest.approx(1, abs=1e-5)
    assert cosine(one, two) == pytest.approx((rows[0].astype(np.float64) @ rows[1]) / lengths.prod(), abs=0.06)


# -- which text -------------------------------------------------------------------------------------------------------


def test_texts_are_bounded():
    # A memory is embedded with its words and the parts of its names.
    text = text_of(
        Memory(
            "note",
            "Retry on 429",
            body="with backoff",
            files=("src/httpClient.py",),
            functions=("resource_for_action",),
        )
    )
    assert text.startswith("Retry on 429\nwith backoff\n")
    assert {"http", "client"} <= set(text.split())
    # No text is longer than a model reads.
    huge = Memory("note", "t" * 10**6, body="b" * 10**6, files=tuple(f"a/b{n}.py" for n in range(10**4)))
    assert len(text_of(huge)) <= TITLE_CHARS + BODY_CHARS + NAMES_CHARS + 2


# -- the table on this disk -------------------------------------------------------------------------------------------


def test_the_local_table_knows_what_is_related(local):
    # The same text means the same and a related one is nearer than another.
    texts = ["the user cannot log in", "fix authentication failure at sign-in", "bake bread with rye flour"]
    prompt, related, other = local.embed(texts)
    assert local.embed(texts[:1]) == (prompt,)
    assert cosine(prompt, related) > cosine(prompt, other) + 0.1
    assert {len(each.data) for each in (prompt, related, other)} == {local.dim}
    # An empty text means nothing.
    empty, word = local.embed(["", "word"])
    assert (empty.data, len(word.data)) == (b"", local.dim)


@settings(deadline=None, max_examples=50)
@given(texts=st.lists(st.text(max_size=80) | st.text(alphabet="\ud800\udfff\0 a", max_size=5), max_size=4))
def test_any_text_gets_a_vector_or_none(local, texts):
    got = local.embed(texts)
    assert [each.model for each in got] == [local.name] * len(texts)
    assert all(len(each.data) in (0, local.dim) for each in got)


def test_the_table_asks_nobody():
    """Every audit event of the standard library that opens a connection or starts a process would end this one."""
    program = """
import sys
sys.addaudithook(lambda event, _: event.startswith(("socket.", "subprocess.", "os.posix_spawn")) and sys.exit(event))
from foreword.worker.embeddings import WordTable
assert WordTable().embed(["a prompt"])[0].data
assert "wordllama" not in sys.modules, "its own code looks for downloads"
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_without_the_extra_the_error_is_its_install_line():
    program = (
        f"import sys; sys.path.insert(0, {str(SRC)!r})\nfrom foreword.errors import EmbedError\n"
        "from foreword.worker.embeddings import WordTable\n"
        "try:\n    WordTable()\nexcept EmbedError as exc:\n    print(exc.hint)"
    )
    ended = subprocess.run([interpreter(), "-I", "-S", "-c", program], capture_output=True, check=False, timeout=60)
    assert (ended.stdout, ended.stderr) == (b"pip install 'foreword[embeddings]'\n", b"")
