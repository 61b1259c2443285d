"""values: frozen, equal by what they hold, and refusing what does not fit."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.types import Item, Link, Memory, Recalled
from foreword.values import fields, replace, value


@value
class Point:
    x: int
    y: int = 2
    about: dict = {}  # noqa: RUF012 - a default that nobody may change


def test_values_are_made_by_place_by_name_and_by_default():
    assert Point(1) == Point(1, 2) == Point(x=1) == Point(y=2, x=1) == Point(1, 2, {})
    assert Point(1) != Point(2)
    assert Point(1) != (1, 2, {})


@pytest.mark.parametrize(
    "wrong",
    [Point, lambda: Point(1, 2, {}, 4), lambda: Point(1, z=3), lambda: Point(1, x=1), lambda: Point(y=1)],
)
def test_what_does_not_fit_is_refused_by_name(wrong):
    with pytest.raises(TypeError, match="Point does not fit its fields"):
        wrong()


def test_values_cannot_be_changed():
    point = Point(1)
    with pytest.raises(AttributeError, match=r"Point\.x cannot be changed"):
        point.x = 2
    with pytest.raises(AttributeError):
        del point.x
    with pytest.raises(AttributeError):
        point.z = 2
    assert point == Point(1)


def test_replace_makes_another_one():
    point = Point(1)
    assert replace(point, y=5) == Point(1, 5)
    assert point == Point(1)
    with pytest.raises(TypeError):
        replace(point, z=1)


def test_fields_come_in_their_order_however_the_value_was_made():
    for point in (Point(1), Point(about={}, y=2, x=1), replace(Point(1), x=1)):
        assert list(fields(point).items()) == [("x", 1), ("y", 2), ("about", {})]
    fields(Point(1))["x"] = 9
    assert tuple(fields(Link("a", "b", "c")).values()) == ("a", "b", "c")


ANYTHING = st.integers(-2, 2) | st.floats(-2, 2) | st.booleans() | st.sampled_from(["", "a", None, (1,), (True,)])
POINTS = st.builds(Point, ANYTHING, ANYTHING, st.dictionaries(st.sampled_from("ab"), ANYTHING))


@given(POINTS, POINTS)
def test_equal_values_have_equal_hashes(one, other):
    assert one == copy.copy(one)
    assert hash(one) == hash(copy.copy(one))
    if one == other:
        assert hash(one) == hash(other)


def test_the_order_of_a_dict_and_the_kind_of_a_number_make_no_other_hash():
    assert hash(Point(1, 2, {"a": 1, "b": 2})) == hash(Point(1.0, True + 1, {"b": 2, "a": 1}))
    assert len({Point(1, 2, {"a": 1, "b": 2}), Point(1.0, 2, {"b": 2, "a": 1})}) == 1


def test_values_that_hold_values_can_be_hashed():
    item = Item("not-1", "index", 1.0, 2, {"match": 1.0})
    assert hash(Recalled("text", 1, 2, {}, {}, (item,), 0.5)) == hash(Recalled("text", 1, 2, {}, {}, (item,), 0.5))


def test_values_show_what_they_hold_and_match_by_place():
    assert repr(Point(1)) == "Point(x=1, y=2, about={})"
    match Point(7):
        case Point(x, y):
            assert (x, y) == (7, 2)


def test_values_survive_pickling_and_copying():
    memory = Memory("note", "t", tags=("a",), detail={"a": [1]})
    assert pickle.loads(pickle.dumps(memory)) == copy.deepcopy(memory) == memory
