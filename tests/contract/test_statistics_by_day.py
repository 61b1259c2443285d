"""What the counts of every store promise: they are what a naive recount finds, whatever clocks did."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.services import Reports
from tests.tables import table

from foreword.models import KINDS, TRIGGERS, Event, Injection, Item, Memory, ModelCall, Session
from foreword.worker.projects import ProjectRegistry
from foreword.worker.stats import StatsRecorder, figures, span

NOW = datetime(2026, 11, 16, 12).timestamp()
DAY = 86_400
numbers = count()
LAYERS = ("rules", "past", "index")
USED = (True, False, None)

given_injections = st.lists(
    st.tuples(
        st.sampled_from(TRIGGERS),
        st.integers(-3, 20),  # days back; below 0 a clock was ahead
        st.integers(0, 900),  # tokens; 0 is a silence that is kept to stay one
        st.floats(0.01, 4000),
        st.booleans(),  # away
        st.lists(st.tuples(st.sampled_from(tuple(KINDS)), st.sampled_from(LAYERS), st.sampled_from(USED))),
    ),
    max_size=25,
)


def asked(store, *, project, days, now=NOW):
    over = span(now, days=days)
    counted = store.stats.statistics(
        project=project, since=over.since, until=over.until, first=over.days[0], last=over.days[-1]
    )
    return figures(counted, over)


def judged(store, injection, items):
    """What the judge of use writes, without the judge."""
    store.database.write(
        lambda: [
            store.database.connection.execute(
                "UPDATE injection_items SET used = ? WHERE injection = ? AND number = ?", (used, injection, number)
            )
            for number, (_, _, used) in enumerate(items)
        ]
    )


@settings(max_examples=12, deadline=None)
@given(told=given_injections, days=st.integers(1, 25))
def test_figures_are_what_a_naive_recount_finds(shared_store, told, days):
    store, number = shared_store, next(numbers)
    here = f"dir:{number}"
    ids = {kind: store.memories.put([Memory(kind, kind, project=here, created=NOW)])[0].id for kind in KINDS}
    for place, (trigger, back, tokens, ms, away, items) in enumerate(told):
        held = tuple(Item(ids[kind], layer, 0.5, 10, {}) for kind, layer, _ in items) if tokens else ()
        id, at = f"inj-{number}-{place}", NOW - back * DAY
        store.injections.record(
            Injection(id, trigger, "", here, "codex", at, tokens, 500, ms, {}, {}, held, away=away), at_once=True
        )
        judged(store, id, items if tokens else [])
    got = asked(store, project=here, days=days)
    inside = [each for each in told if each[2] and 0 <= each[1] < days]
    assert got["injections"]["total"] == len(inside)
    assert got["injections"]["by_trigger"] == Counter(each[0] for each in inside)
    assert got["injections"]["away"] == sum(each[4] for each in inside)
    assert got["injections"]["dated_ahead"] == sum(each[1] < 0 and each[2] > 0 for each in told)
    assert sum(each["injections"] for each in got["injections"]["by_day"]) == len(inside)
    assert len(got["injections"]["by_day"]) == got["days"] == days
    assert got["tokens"]["given"] == sum(each[2] for each in inside)
    for place, day in enumerate(reversed(got["injections"]["by_day"])):
        then = [each for each in inside if each[1] == place]
        assert day["tokens"] == sum(day["tokens_by_trigger"].values()) == sum(each[2] for each in then)
        assert set(day["tokens_by_trigger"]) == {each[0] for each in then}
        of_day = Counter(item[2] for each in then for item in each[5])
        shown = got["items"]["by_day"][days - 1 - place]
        assert (shown["used"], shown["ignored"], shown["unjudged"]) == (of_day[True], of_day[False], of_day[None])
        taken = sorted(each[3] for each in then)
        (times,) = [each for each in got["build_ms_by_day"] if each["day"] == day["day"]] or [{"count": 0}]
        assert times["count"] == len(taken)
        assert not taken or times["max"] == round(taken[-1], 3)
    items = [item for each in inside for item in each[5]]
    for group, place in (("by_kind", 0), ("by_layer", 1)):
        for name, told_of in got["items"][group].items():
            mine = Counter(item[2] for item in items if item[place] == name)
            assert (told_of["used"], told_of["ignored"], told_of["unjudged"]) == (mine[True], mine[False], mine[None])
            judged_of = mine[True] + mine[False]
            assert told_of["hit_rate"] == (round(mine[True] / judged_of, 4) if judged_of else None)
        assert sum(each["shown"] for each in got["items"][group].values()) == len(items) == got["items"]["shown"]
    for trigger, times in got["build_ms"].items():
        taken = sorted(each[3] for each in inside if each[0] == trigger)
        assert times["count"] == len(taken)
        assert times["max"] == round(taken[-1], 3)
        assert sum(each <= times["median"] + 0.001 for each in taken) * 2 >= len(taken)
        assert sum(each <= times["p95"] + 0.001 for each in taken) * 100 >= 95 * len(taken)
    assert got["memories"]["by_kind"] == dict.fromkeys(KINDS, 1)


def test_counts_are_of_their_project_and_an_empty_store_has_figures(make_store):
    # Another project is not counted.
    store = make_store()
    store.memories.put([Memory("decision", "of there", project="there", created=NOW)])
    item = Item("dec-00000000", "past", 1.0, 5, {})
    store.injections.record(Injection("inj-1", "prompt", "s", "there", "codex", NOW, 50, 500, 2.0, {}, {}, (item,)))
    store.sessions.save_extraction(Session("s", "codex", "there", "/there", NOW, NOW))
    store.stats.record_model_call(ModelCall(NOW, "openai", "m", "summary", "s", 10, 5, 1.0, "ok"))
    store.stats.add({("2026-11-16", "there", "recalls:prompt"): 1})
    here, there = asked(store, project="here", days=3), asked(store, project="there", days=3)
    assert not any(each["total"] for each in (here["injections"], here["memories"], here["sessions"]))
    assert here["model"]["calls"] == here["items"]["shown"] == 0
    assert here["silence"] == {}
    assert [there[name]["total"] for name in ("injections", "memories", "sessions")] == [1, 1, 1]
    assert (there["model"]["calls"], there["model"]["tokens_in"], there["items"]["shown"]) == (1, 10, 1)
    assert there["silence"]["prompt"]["recalls"] == 1
    # The kind of a memory that is gone is told by its id.
    store = make_store()
    item = Item("fai-0abcdefg", "past", 1.0, 5, {})
    store.injections.record(Injection("inj-1", "prompt", "s", "here", "codex", NOW, 50, 500, 2.0, {}, {}, (item,)))
    assert list(asked(store, project="here", days=1)["items"]["by_kind"]) == ["failure"]
    # An empty store has figures and no rates.
    store = make_store()
    got = asked(store, project="", days=7)
    assert got["injections"]["total"] == 0
    assert got["tokens"] == {"given": 0, "per_injection": None, "per_used_item": None}
    assert got["items"]["hit_rate"] is None
    assert [each["injections"] for each in got["injections"]["by_day"]] == [0] * 7


@table("now", [0.0, 1.0, 4e9, 2e11])
def test_clocks_that_jumped_do_not_matter(store, now):
    store.injections.record(
        Injection("inj-1", "prompt", "s", "here", "codex", NOW, 50, 500, 2.0, {}, {}, ()), at_once=True
    )
    got = asked(store, project="here", days=30, now=now)
    assert got["injections"]["total"] + got["injections"]["dated_ahead"] == (1 if now < NOW else 0)


def recorder(store, now):
    services = Reports(store, now=now)
    return StatsRecorder(services, ProjectRegistry(services))


def test_recalls_and_silences_are_kept_over_a_restart(make_store, tmp_path):
    store = make_store(tmp_path)
    measuring = recorder(store, lambda: NOW)
    for silent in (True, False, True, True):
        measuring.recalled("here", "prompt", silent=silent)
    measuring.close()
    store.close()
    store = make_store(tmp_path)
    measuring = recorder(store, lambda: NOW)
    measuring.recalled("here", "prompt", silent=False)
    got = measuring.stats(project="here", name="", days=1)
    assert got["silence"] == {"prompt": {"recalls": 5, "silences": 3, "rate": 0.6}}


def test_sizes_growth_and_statuses_are_counted_by_day(make_store):
    # The size of the store is noted once a day.
    store = make_store()
    clock = [NOW]
    measuring = recorder(store, lambda: clock[0])
    for hours in (0, 1, 24, 25, 26, 72):
        clock[0] = NOW + hours * 3600
        measuring.flush()
        store.memories.put([Memory("note", f"{hours}", project="here", body="x" * 9000)])
    sizes = measuring.stats(project="", name="", days=5)["store"]["bytes_by_day"]
    today = date.fromtimestamp(NOW)
    assert [each["day"] for each in sizes] == [(today + timedelta(days=n)).isoformat() for n in (0, 1, 3)]
    assert [each["bytes"] for each in sizes] == sorted(each["bytes"] for each in sizes)
    # Growth is what was noted and what is there by the day it is of.
    store = make_store()
    clock = [NOW]
    measuring = recorder(store, lambda: clock[0])
    arrived = {0: 3, 1: 0, 3: 5}  # a day without a worker lies between
    for days, events in arrived.items():
        clock[0] = NOW + days * DAY
        measuring.flush()
        told = [Event(f"{days}-{n}", "codex", "Stop", "stop", "s", "here", "/", clock[0], {}) for n in range(events)]
        store.events.append(told)
        store.memories.put([Memory("note", f"of day {days}", project="here", created=clock[0])])
    got = measuring.stats(project="", name="", days=6)["growth"]
    assert [each["events"] for each in got] == [None, None, 3, 0, None, 5]
    assert [each["memories"] for each in got] == [0, 0, 1, 2, 2, 3]
    assert [each["bytes"] is not None for each in got] == [False, False, True, True, False, True]
    assert measuring.stats(project="elsewhere", name="", days=1)["growth"][0]["memories"] == 0
    # Memories are counted by status.
    store = make_store()
    statuses = ("active", "active", "superseded", "stale", "stale", "stale", "proposed")
    store.memories.put(
        [
            Memory("decision", f"{n}", project="here", created=NOW, status=status, uid=f"u-{n}")
            for n, status in enumerate(statuses)
        ]
    )
    store.memories.put([Memory("decision", "of there", project="there", created=NOW, status="stale")])
    assert asked(store, project="here", days=1)["memories"]["by_status"] == Counter(statuses)
    assert asked(store, project="", days=1)["memories"]["by_status"]["stale"] == 4
    assert asked(store, project="nowhere", days=1)["memories"]["by_status"] == {"active": 0}


def test_local_days_are_the_users(store, monkeypatch):
    at = datetime(2026, 11, 15, 23, 30).timestamp()
    try:
        for zone, day in (("UTC", "2026-11-15"), ("Etc/GMT-3", "2026-11-16")):
            monkeypatch.setenv("TZ", "UTC")
            time.tzset()
            at = datetime(2026, 11, 15, 23, 30).timestamp()
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            one = Injection(f"inj-{zone}", "prompt", "s", zone, "codex", at, 50, 500, 2.0, {}, {}, ())
            store.injections.record(replace(one, at=at), at_once=True)
            days = asked(store, project=zone, days=2, now=at + DAY)["injections"]["by_day"]
            assert [each["day"] for each in days if each["injections"]] == [day]
    finally:
        monkeypatch.undo()
        time.tzset()
