"""Two versions, or what a tool reported of an edit, tell which functions are new, modified and deleted."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foreword.code import languages
from foreword.code.diff import changes, changes_of
from foreword.models import Change, Edit
from tests.tables import table

SAMPLES = {
    path.name.removesuffix(".txt"): path.read_text(encoding="utf-8")
    for path in (Path(__file__).parent / "code_samples").iterdir()
}

BEFORE = '''\
"""Rooms."""

import os


def free(room):
    return True


class Store:
    """Keeps.

    Everything.
    """

    limit = 10

    def first(self):
        return 1

    def second(self, a):
        return 2


def last():
    def inner():
        return 1

    return inner
'''
AFTER = (
    BEFORE.replace("return 2", "return 3")
    .replace("return True", "return True  # a remark")
    .replace("def last():", "def added(a: int) -> int:\n    return a\n\n\ndef last():")
    .replace("    def first(self):\n        return 1\n\n", "")
)


def reported(found: tuple[Change, ...]) -> list[tuple[str, str]]:
    return [(each.what, each.function) for each in found]


def test_new_modified_and_deleted_functions_are_told_with_signature_and_lines():
    assert changes_of("rooms.py", before=BEFORE, after=AFTER) == (
        Change("", "rooms.py", "Store.second", "MODIFIED", "Store.second(self, a)", 18, 19),
        Change("", "rooms.py", "added", "NEW", "added(a: int) -> int", 22, 23),
        Change("", "rooms.py", "Store.first", "DELETED", "Store.first(self)", 18, 19),
    )


@table(
    ("old", "new", "expected"),
    [
        ("return True", "return False", [("MODIFIED", "free")]),
        ("limit = 10", "limit = 11", [("MODIFIED", "Store")]),
        ("        return 1\n\n    return inner", "        return 5\n\n    return inner", [("MODIFIED", "last")]),
        ("def free(room)", "def free(room, at)", [("MODIFIED", "free")]),
        ("def free(room)", "def is_free(room)", [("NEW", "is_free"), ("DELETED", "free")]),
        ("class Store", "class Shelf", None),
        ("    return True\n", "    # so\n\n    return   True\n", []),
        ("import os", "import sys", []),
        ("def last", "@cached\ndef last", [("MODIFIED", "last")]),
    ],
)
def test_an_edit_tells_of_the_functions_it_is_in(old: str, new: str, expected: list[tuple[str, str]] | None):
    after = BEFORE.replace(old, new)
    assert after != BEFORE
    if expected is None:
        names = ["Store", "Store.first", "Store.second"]
        shelves = [name.replace("Store", "Shelf") for name in names]
        expected = [("NEW", name) for name in shelves] + [("DELETED", name) for name in names]
    assert reported(changes_of("rooms.py", before=BEFORE, after=after)) == expected


def test_new_deleted_and_equal_names_are_told():
    # A new file is new and a deleted one deleted.
    names = ["free", "Store", "Store.first", "Store.second", "last"]
    assert reported(changes_of("a.py", before=None, after=BEFORE)) == [("NEW", name) for name in names]
    assert reported(changes_of("a.py", before=BEFORE, after=None)) == [("DELETED", name) for name in names]
    assert changes_of("a.py", before=BEFORE, after=BEFORE) == ()
    assert changes_of("a.txt", before="", after=BEFORE) == ()
    # Of several with one name the one that differs is reported.
    before = "@property\ndef a(self): return 1\n\n@a.setter\ndef a(self, to): pass\n"
    assert reported(changes_of("a.py", before=before, after=before.replace("pass", "self.b = to"))) == [
        ("MODIFIED", "a")
    ]
    assert reported(changes_of("a.py", before=before, after=before[: before.index("@a.setter")])) == [("MODIFIED", "a")]


@table("name", sorted(SAMPLES))
def test_every_language_tells_new_modified_and_deleted(name: str):
    text = SAMPLES[name]
    everything = changes_of(name, before=None, after=text)
    assert everything
    assert {each.what for each in everything} == {"NEW"}
    assert {each.function for each in changes_of(name, before=text, after="")} == {each.function for each in everything}
    remark = {"py": "#", "rb": "#", "sh": "#", "ex": "#", "tf": "#", "lua": "--", "sql": "--"}.get(
        name.rsplit(".", maxsplit=1)[-1], "//"
    )
    if name != "sample.php":
        assert changes_of(name, before=text, after=f"{text}\n{remark} a remark\n") == ()


def test_what_takes_too_long_to_parse_is_not_taken_for_deleted(monkeypatch):
    monkeypatch.setattr(languages, "PARSE_MS", 0.05)
    few, many = "def first():\n    pass\n", "def second():\n    pass\n" * 5_000
    assert changes_of("a.py", before=few, after=many) == ()
    assert changes_of("a.py", before=many, after=few) == ()


# ---- what a tool reports


def changes_of_piece(file, *, old, new, text_after=None, everywhere=False):
    edit = Edit(file=file, before=old, after=new, whole=False, everywhere=everywhere)
    return changes([edit], present=lambda _: text_after)


def test_pieces_are_put_back_to_find_out_what_changed():
    # A piece is put back in the file to find out what changed.
    (change,) = changes_of_piece(
        "rooms.py", old="return 2", new="return 3", text_after=BEFORE.replace("return 2", "return 3")
    )
    assert (change.what, change.function, change.line, change.end_line) == ("MODIFIED", "Store.second", 21, 22)
    # Several pieces of a file count as one change.
    pieces = [
        Edit(file="rooms.py", before="return True", after="return False", whole=False),
        Edit(file="rooms.py", before="return False", after="return None", whole=False),
        Edit(file="rooms.py", before="    return inner\n", after="    return inner\n\n\ndef z(): pass\n", whole=False),
    ]
    after = BEFORE.replace("return True", "return None") + "\n\ndef z(): pass\n"
    assert reported(changes(pieces, present={"rooms.py": after}.get)) == [("MODIFIED", "free"), ("NEW", "z")]
    # A piece that stands in several places blames none of them.
    after = BEFORE.replace("return True", "return 1")
    assert changes_of_piece("rooms.py", old="return True", new="return 1", text_after=after) == ()
    # What was replaced everywhere is put back everywhere.
    found = changes_of_piece(
        "rooms.py",
        old="return 1",
        new="return one",
        text_after=BEFORE.replace("return 1", "return one"),
        everywhere=True,
    )
    assert reported(found) == [("MODIFIED", "Store.first"), ("MODIFIED", "last")]
    # A piece alone tells of what is defined in it.
    old = "    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n"
    new = "    def one(self):\n        return 5\n\n    def three(self, a):\n        return 3\n"
    found = changes_of_piece("a.py", old=old, new=new)
    assert reported(found) == [("MODIFIED", "one"), ("NEW", "three"), ("DELETED", "two")]
    assert {each.line for each in found} == {0}
    assert changes_of_piece("a.py", old="x = 1", new="x = 2") == ()
    # A deleted piece that the file still defines was not deleted.
    after = "class A:\n    def one(self):\n        return 1\n"
    found = changes_of_piece("a.py", old="def one(self):\n    return 2\n", new="", text_after=after)
    assert reported(found) == [("MODIFIED", "one")]
    # Whole texts need no file at hand.
    edits = [
        Edit(file="a.py", before=None, after="def f(): pass\n", whole=True),
        Edit(file="a.py", before="def f(): pass\n", after="def f(): pass\n\ndef g(): pass\n", whole=True),
        Edit(file="b.py", before="def h(): pass\n", after=None, whole=True),
    ]
    assert reported(changes(edits)) == [("NEW", "f"), ("NEW", "g"), ("DELETED", "h")]


PIECE = (
    st.none() | st.text(max_size=60) | st.sampled_from(["def f(): pass\n", "class A:\n    def g(self): pass\n", BEFORE])
)
NAME = st.sampled_from(["a.py", "a.js", "a.rs", "a.sql", "a.md", ""])


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(
        st.builds(
            Edit,
            file=NAME,
            before=PIECE,
            after=PIECE,
            whole=st.booleans(),
            everywhere=st.booleans(),
        ),
        max_size=4,
    ),
    PIECE,
)
def test_no_edit_raises(edits: list[Edit], present: str | None):
    for change in changes(edits, present=lambda _: present):
        assert change.what in ("NEW", "MODIFIED", "DELETED")
        assert 0 <= change.line <= change.end_line
