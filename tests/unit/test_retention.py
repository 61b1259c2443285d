"""When ages count: after a steady week, and never right after the clock jumped."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.config import Settings
from foreword.store.maintenance import LONGEST_GAP, PRUNABLE, STEADY_DAYS, trusted_since

START = date(2026, 1, 1)
BEGAN = datetime(2026, 1, 1).timestamp()


def since(*offsets: int, today: int) -> float | None:
    """Ask on the day that is *today* days after the start, after days that came in the order of *offsets*."""
    days = [(START + timedelta(days=offset)).isoformat() for offset in offsets]
    now = datetime.combine(START, datetime.min.time()) + timedelta(days=today, hours=12)
    return trusted_since(days, now=now.timestamp())


@pytest.mark.parametrize(
    ("offsets", "today"),
    [
        (range(STEADY_DAYS), STEADY_DAYS - 1),
        (range(STEADY_DAYS), STEADY_DAYS),  # a day that begins is noted a moment later
        (range(0, 200, LONGEST_GAP), 196),  # who works once in two weeks
        ((0, *range(400, 400 + STEADY_DAYS)), 400 + STEADY_DAYS),  # a week after a long holiday
    ],
)
def test_after_a_steady_week_ages_count_from_the_first_day_of_the_store(offsets, today):
    assert since(*offsets, today=today) == BEGAN


@pytest.mark.parametrize(
    ("offsets", "today"),
    [
        ((), 0),
        (range(STEADY_DAYS - 1), STEADY_DAYS - 2),  # a new store
        (range(300), 299 + 3650),  # ahead, and not noted yet
        ((*range(300), 3950), 3950),
        ((*range(300), 3950, 300, 301), 301),  # ahead, and put right
        (range(300), -20_000),
        ((*range(300), -20_000, -19_999), -19_999),
        ((*range(300), -20_000, 300, 301), 301),  # back, and put right
        ((*range(300), 400), 400),  # a long holiday
    ],
)
def test_after_a_jump_of_the_clock_nothing_is_old(offsets, today):
    assert since(*offsets, today=today) is None


@given(st.lists(st.integers(-4000, 4000), unique=True, max_size=80), st.integers(LONGEST_GAP + 1, 10_000))
def test_whatever_came_before_a_jump_makes_nothing_old(offsets, jump):
    last = offsets[-1] if offsets else 0
    assert since(*offsets, last + jump, today=last + jump) is None
    assert since(*offsets, today=last + jump) is None


@pytest.mark.parametrize("now", [-1e13, 1e13, 4e11])
def test_a_clock_beyond_all_calendars_makes_nothing_old(now):
    assert trusted_since(["12345-01-01"] * 9, now=now) is None


def test_every_class_has_its_setting():
    assert all(getattr(Settings, each.setting) > 0 for each in PRUNABLE)
