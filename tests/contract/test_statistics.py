"""What the figures of every store promise: they are what a naive recount finds, whatever clocks did."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables import table

from foreword.models import KINDS, TRIGGERS, Injection, Item, Memory

NOW = datetime(2026, 11, 16, 12).timestamp()
DAY = 86_400
numbers = count()
USED = (True, False, None)

given_injections = st.lists(
    st.tuples(
        st.sampled_from(TRIGGERS),
        st.integers(-3, 20),  # days back; below 0 a clock was ahead
        st.integers(0, 900),  # tokens; 0 is kept so that a later answer stays the same
        st.floats(0.01, 4000),
        st.booleans(),  # away
        st.lists(st.tuples(st.sampled_from(tuple(KINDS)), st.sampled_from(USED))),
    ),
    max_size=25,
)


def figures(store, *, project, days, now=NOW):
    first = datetime.fromtimestamp(now).replace(hour=0, minute=0) - timedelta(days=days - 1)
    since, until = (first + timedelta(days=n) for n in (0, days))
    return store.stats.figures(project=project, since=since.timestamp(), until=until.timestamp())


@settings(max_examples=12, deadline=None)
@given(rows=given_injections, days=st.integers(1, 25))
def test_figures_are_what_a_naive_recount_finds(shared_store, rows, days):
    store, number = shared_store, next(numbers)
    here = f"dir:{number}"
    ids = {kind: store.memories.put([Memory(kind, kind, project=here, created=NOW)])[0].id for kind in KINDS}
    for place, (trigger, back, tokens, ms, away, items) in enumerate(rows):
        held = tuple(Item(ids[kind], "past", 0.5, 10, {}) for kind, _ in items) if tokens else ()
        id, at = f"inj-{number}-{place}", NOW - back * DAY
        store.injections.record(
            Injection(id, trigger, "", here, "codex", at, tokens, 500, ms, {}, {}, held, away=away), at_once=True
        )
        sql = "UPDATE injection_items SET used = ? WHERE injection = ? AND number = ?"
        marks = [(used, id, number) for number, (_, used) in enumerate(items)]
        store.database.write(store.database.execute_many, sql, marks)
    got = figures(store, project=here, days=days)
    inside = [each for each in rows if each[2] and 0 <= each[1] < days]
    assert got["injections"] == {
        "total": len(inside),
        "away": sum(each[4] for each in inside),
        "by_trigger": Counter(each[0] for each in inside),
    }
    assert got["tokens"]["given"] == sum(each[2] for each in inside)
    items = [item for each in inside for item in each[5]]
    for name, each in got["items"]["by_kind"].items():
        mine = Counter(used for kind, used in items if kind == name)
        assert (each["used"], each["ignored"], each["unjudged"]) == (mine[True], mine[False], mine[None])
        decided = mine[True] + mine[False]
        assert each["hit_rate"] == (round(mine[True] / decided, 4) if decided else None)
    assert sum(each["shown"] for each in got["items"]["by_kind"].values()) == len(items) == got["items"]["shown"]
    for trigger, times in got["build_ms"].items():
        taken = sorted(each[3] for each in inside if each[0] == trigger)
        assert (times["count"], times["max"]) == (len(taken), round(taken[-1], 3))
        assert sum(each <= times["median"] + 0.001 for each in taken) * 2 >= len(taken)
        assert sum(each <= times["p95"] + 0.001 for each in taken) * 100 >= 95 * len(taken)
    assert got["memories"]["by_kind"] == dict.fromkeys(KINDS, 1)


def test_counts_are_of_their_project_and_an_empty_store_has_figures(make_store):
    store = make_store()
    store.memories.put([Memory("decision", "of there", project="there", created=NOW)])
    item = Item("fai-0abcdefg", "past", 1.0, 5, {})  # the kind of a memory that is gone is known by its id
    store.injections.record(Injection("inj-1", "prompt", "s", "there", "codex", NOW, 50, 500, 2.0, {}, {}, (item,)))
    store.injections.record(Injection("q", "prompt", "s", "there", "codex", NOW, 0, 0, 0.0, {}, {}, (), why="below"))
    here, there = figures(store, project="here", days=3), figures(store, project="there", days=3)
    assert (here["injections"]["total"], here["memories"]["total"], here["no_context"]) == (0, 0, {})
    assert (there["injections"]["total"], there["memories"]["total"]) == (1, 1)
    assert list(there["items"]["by_kind"]) == ["failure"]
    assert there["no_context"] == {"prompt": {"below": 1}}
    got = figures(make_store(), project="", days=7)
    assert got["tokens"] == {"given": 0, "per_injection": None, "per_used_item": None}
    assert got["items"]["hit_rate"] is None
    assert got["store"]["bytes"] > 0


@table("now", [0.0, 1.0, 4e9, 2e11])
def test_clocks_that_jumped_do_not_matter(store, now):
    store.injections.record(
        Injection("inj-1", "prompt", "s", "here", "codex", NOW, 50, 500, 2.0, {}, {}, ()), at_once=True
    )
    assert figures(store, project="here", days=30, now=now)["injections"]["total"] == 0


def test_days_are_noted_in_the_order_in_which_they_came(store):
    today = datetime.fromtimestamp(NOW).date()
    for day in (0, 0, 1, 1, 3, -2, 3):
        store.stats.start_day((today + timedelta(days=day)).isoformat())
    assert store.stats.days() == tuple((today + timedelta(days=n)).isoformat() for n in (0, 1, -2, 3))
