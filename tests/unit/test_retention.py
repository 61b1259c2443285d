"""What makes something old: days that came and brought something, and never a clock alone."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from foreword.config import SETTINGS as KNOWN
from foreword.retention import BORNE_OUT, BY_SIZE, CLASSES, SETTINGS, WHAT, Day, Limits, excess, horizon

START = date(2026, 1, 1)


def noted(offsets: list[int], *, idle: frozenset[int] = frozenset()) -> list[Day]:
    """Days in the order in which they came, each so many days after the start; on *idle* ones nothing was recorded."""
    days, activity = [], 0
    for place, offset in enumerate(offsets):
        name = (START + timedelta(days=offset)).isoformat()
        days.append(Day(place + 1, name, activity, {"events": place * 10}))
        activity += place not in idle
    return days


def test_with_a_day_every_day_what_is_as_old_as_its_limit_goes():
    days = noted(list(range(200)))  # the last is today
    assert horizon(days, keep=180) == days[19]
    assert horizon(days, keep=199) == days[0]
    assert horizon(days, keep=200) is None


def test_for_ever_is_for_ever():
    assert horizon(noted(list(range(5000))), keep=0) is None


def test_nothing_is_old_in_a_store_that_was_never_used_or_only_today():
    assert horizon([], keep=1) is None
    assert horizon(noted([0]), keep=1) is None


def test_a_clock_that_jumps_ten_years_ahead_makes_nothing_old():
    assert horizon(noted([*range(179), 179 + 3650]), keep=180) is None
    assert horizon(noted([*range(170), 170 + 3650, 171, 172]), keep=180) is None  # and is put right


def test_a_clock_that_jumps_back_makes_nothing_old():
    assert horizon(noted([*range(177), -20_000, -19_999, 177]), keep=180) is None


def test_a_long_holiday_makes_nothing_old():
    assert horizon(noted([*range(10), 400, 401]), keep=180) is None


def test_days_without_anything_to_record_bear_out_nothing():
    assert horizon(noted(list(range(400)), idle=frozenset(range(400))), keep=180) is None


def test_weekends_count_and_who_works_on_mondays_only_keeps_longer():
    weekdays = noted([day for day in range(365) if day % 7 < 5])
    found = horizon(weekdays, keep=180)
    assert found is not None
    assert date.fromisoformat(weekdays[-1].name) - date.fromisoformat(found.name) == timedelta(days=180)
    mondays = noted([7 * week for week in range(200)])
    assert horizon(mondays, keep=180) == mondays[199 - 180]


@given(st.lists(st.integers(-4000, 4000), unique=True, max_size=80), st.integers(1, 200))
def test_whatever_clocks_do_a_limit_needs_a_third_as_many_days(offsets, keep):
    days = noted(offsets)
    found = horizon(days, keep=keep)
    if found is not None:
        later = len(days) - 1 - days.index(found)
        assert later * BORNE_OUT >= keep


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(1, 10**9))
def test_what_goes_by_size_brings_a_store_below_its_cap_and_only_one_that_passed_it(used, going, most):
    more = excess(used, going=going, limits=Limits({}, most))
    assert (more == 0) == (used - going <= most)
    assert used - going - more <= most
    assert excess(used, going=going, limits=Limits({}, 0)) == 0


def test_every_class_has_its_setting_and_its_words():
    names = {setting.name for setting in KNOWN}
    assert set(CLASSES) == set(SETTINGS) == set(WHAT)
    assert set(SETTINGS.values()) <= names
    assert set(BY_SIZE) <= set(CLASSES)
