"""What pruning promises of any store: what is protected stays, and no clock removes anything."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.tables import table

from foreword.audit import MemoryChange
from foreword.errors import DamagedIndex
from foreword.models import KINDS, Change, Event, Injection, Item, Link, Memory, Query
from foreword.store.maintenance import PRUNABLE

DAY = 86_400
FIRST = datetime(2026, 1, 1, 12)
KEEP = 10
SOON = {each.setting: KEEP for each in PRUNABLE}
NONE = {each.name: 0 for each in PRUNABLE}
NOISE = "lorem ipsum " * 300


def at(day: int) -> float:
    return (FIRST + timedelta(days=day)).timestamp()


def name(day: int) -> str:
    return (FIRST + timedelta(days=day)).date().isoformat()


def live(store, day: int, *, label: int | None = None, project: str = "here") -> None:
    """One day: it begins, something happens, and the session is distilled and over."""
    label = day if label is None else label
    store.stats.start_day(name(label))
    now, session = at(label), f"s{day}"
    payload = {"prompt": NOISE}
    events = [
        Event(f"k{day}-{n}", "codex", "Prompt", "prompt", session, project, "/here", now + n, payload) for n in range(3)
    ]
    store.events.append(events)
    about = {"project": project, "created": now, "confirmed": now, "session": session}
    memories = [
        Memory("observation", f"observed {day}", body=NOISE, files=(f"f{day}.py", "all.py"), **about),
        Memory("change", f"changed {day}", functions=(f"fn{day}",), **about),
        Memory("summary", f"summed up {day}", **about),
        Memory("note", f"noted {day}", status="discarded", detail={"seen_in": {"before": 1}}, **about),
    ]
    known = store.sessions.get(session)
    kept = store.save(
        known,
        upto=known.newest,
        memories=memories,
        changes=[Change(project, "all.py", f"fn{day}", "NEW", session=session, at=now)],
    )
    store.memories.put([], links=[Link(kept[0].id, "relates-to", kept[1].id)])
    item = Item(kept[0].id, "past", 0.5, 10, {})
    store.injections.record(
        Injection(f"inj-{day}", "prompt", session, project, "codex", now, 9, 99, 1.0, {}, {}, (item,), text=NOISE),
        at_once=True,
    )
    store.memories.record_access([kept[0].id], how="get", at=now)
    store.injections.record(
        Injection(f"hush-{day}", "prompt", session, project, "codex", now, 0, 0, 0.0, {}, {}, (), why="given")
    )
    store.audit.apply(
        [MemoryChange("revise", changed=((kept[2], replace(kept[2], body="revised")),))], who="user", at=now
    )


def pruned(store, *, now, days=SOON, most=0, stop: int = 10**9) -> dict[str, int]:
    """Prune, up to so many transactions; return how many rows of each class went."""
    rows = dict(NONE)
    for number, (name, count) in enumerate(store.maintenance.prune(days, most_bytes=most, now=now), start=1):
        rows[name] += count
        if number >= stop:
            break
    return rows


def old(store, *, now) -> dict[str, int]:
    return dict(store.maintenance.prune(SOON, most_bytes=0, now=now, dry_run=True))


def all_of(store):
    return [memory for _, memory in store.memories.page(limit=10_000)]


def used(store) -> int:
    return store.stats.size().used


@pytest.fixture
def month(store):
    """Thirty days; the last is today."""
    for day in range(30):
        live(store, day)
    return store


def test_what_is_counted_is_what_goes_and_the_second_time_nothing_does(month):
    now = at(29)
    before = month.stats.row_counts()
    expected = dict.fromkeys(NONE, 19) | {"events": 57, "observations": 38}
    assert old(month, now=now) == expected
    assert month.stats.row_counts() == before
    assert pruned(month, now=now) == expected | {"access": 0}  # these went with their memories
    after = month.stats.row_counts()
    assert before["events"] - after["events"] == 57
    assert before["memories"] - after["memories"] == 3 * 19
    assert before["access"] - after["access"] == 19
    assert old(month, now=now) == NONE
    assert month.maintenance.reindex() == after["memories"]
    assert month.database.problems() == ()


def test_what_is_removed_leaves_nothing_behind_that_points_to_it(month):
    gone = next(each for each in all_of(month) if each.title == "observed 3")
    pruned(month, now=at(29))
    assert month.memories.get([gone.id]) == ()
    assert month.memories.links(gone.id) == ()
    assert month.stats.row_counts()["sightings"] == len(month.memories.of_session("before")) == 11
    query = Query(scopes=("project:here",), terms=("observed",), files=("f3.py",))
    assert gone.id not in [hit.memory.id for hit in month.search.by_words(query)]
    assert month.search.by_code(query, {"f3.py": 1.0, "fn3": 1.0}) == ()
    assert month.search.by_code(query, {"f25.py": 1.0})  # what others name is still found
    (shown,) = month.injections.list(memory=gone.id)  # that it was given is still counted
    assert month.injections.get(shown.id).text == ""


def test_the_log_tells_counts_alone_and_cannot_undo_it(month):
    gone = {"pruned": pruned(month, now=at(29))}
    month.audit.note("prune", "old", gone, who="worker", at=at(29), project="", ids=())
    entries = [entry for entry in month.audit.list(limit=1000) if entry.what == "prune"]
    assert [(entry.who, entry.memories) for entry in entries] == [("worker", ())]
    assert entries[0].patch["pruned"]["events"] == 57
    assert "lorem" not in json.dumps(entries[0].patch)
    undone = month.audit.undo(entries, who="user", at=at(29))
    assert not undone.entries
    old = [entry for entry in month.audit.list(limit=1000) if entry.what == "revise"][-1]
    assert month.audit.undo([old], who="user", at=at(29)).refused
    new = next(entry for entry in month.audit.list(limit=1000) if entry.what == "revise")
    assert month.audit.undo([new], who="user", at=at(29)).entries


def test_a_damaged_words_index_stops_the_deletion_and_not_the_preview(month):
    month.database.trouble["index"] = "damaged"
    assert sum(old(month, now=at(29)).values()) > 0
    with pytest.raises(DamagedIndex):
        pruned(month, now=at(29))


@table("limits", [(SOON, 0), ({}, 1)])
def test_what_is_protected_stays(month, limits):
    statuses = ("active", "superseded", "stale", "discarded")
    rules = ("preference", "correction", "decision", "pattern", "goal", "learning")
    old = {"project": "here", "created": at(0), "confirmed": at(0)}
    kept = [Memory(kind, f"{kind} {status}", status=status, **old) for kind in rules for status in statuses]
    kept += [Memory(kind, f"{kind} active", **old) for kind in set(KINDS) - {"observation", "change"}]
    pinned = month.memories.put([Memory(kind, f"{kind} pinned", **old) for kind in KINDS])
    pins = [MemoryChange("pin", changed=((each, replace(each, pinned=True)),)) for each in pinned]
    month.audit.apply(pins, who="user", at=at(0))
    kept = [*month.memories.put(kept), *pinned]
    waiting = Event("k", "codex", "Prompt", "prompt", "waiting", "here", "/here", at(0), {"prompt": "not distilled"})
    month.events.append([waiting])
    for day in range(30, 60):
        month.stats.start_day(name(day))
        month.events.append([waiting._replace(key=f"k{day}", session="later", at=at(day))])
    now = at(60)
    pruned(month, now=now, days=limits[0], most=limits[1])
    present = {memory.id for memory in all_of(month)}
    assert {memory.id for memory in kept} <= present
    assert [event.key for event in month.events.list("waiting")] == ["k"]
    assert len(month.events.list("later")) == 30
    assert month.events.list("s0") == ()


def test_by_size_the_oldest_goes_first_and_raw_events_before_memories(month):
    month.maintenance.vacuum()
    now = at(40)
    most = used(month) - 100_000
    gone = pruned(month, now=now, days={}, most=most)
    assert gone["events"] > 0
    assert sum(gone.values()) == gone["events"]
    left = [day for day in range(30) if month.events.list(f"s{day}")]
    assert left == list(range(left[0], 30))
    assert used(month) <= most
    assert pruned(month, now=now, days={}, most=most) == NONE


def test_a_cap_that_cannot_be_reached_takes_what_may_go(month):
    gone = pruned(month, now=at(40), days={}, most=1)
    assert gone["events"] == 3 * 30 - 1  # the highest number is not given again
    assert month.stats.row_counts()["events"] == 1
    assert all(memory.kind == "summary" for memory in all_of(month))


def test_a_session_that_may_go_on_keeps_its_events_and_texts_whatever_the_size(month):
    pruned(month, now=at(29), days={}, most=1)
    assert [day for day in range(30) if month.events.list(f"s{day}")] == list(range(22, 30))
    assert [day for day in range(30) if month.injections.get(f"inj-{day}").text] == list(range(22, 30))


@table("jump", [3650, -3650])
def test_a_clock_that_jumps_removes_nothing(store, jump):
    for day in range(9):
        live(store, day)
    live(store, 9, label=9 + jump)
    live(store, 10, label=10 + jump)
    for now in (at(10), at(10 + jump), at(11 + jump), at(20_000)):
        assert pruned(store, now=now) == old(store, now=now) == NONE


def test_what_is_imported_does_not_go_by_age(month):
    before = month.stats.row_counts()
    for created in (at(-2000), at(5)):  # before the store began, and since
        about = {"project": "here", "created": created, "confirmed": created, "source": "git", "trust": "imported"}
        month.save(
            imported=True,
            memories=[
                Memory("observation", f"commit {created}", **about),
                Memory("note", f"{created}", status="stale", **about),
            ],
            changes=[Change("here", "old.py", f"f{created}", "NEW", at=created)],
        )
    gone = pruned(month, now=at(29))
    assert (gone["observations"], gone["inactive"], gone["functions"]) == (38, 19, 19)
    assert month.stats.row_counts()["memories"] == before["memories"] - 3 * 19 + 4
    assert len([each for each in month.sessions.changes("here", limit=100) if each.file == "old.py"]) == 2


def test_what_was_put_aside_lately_stays_however_old_it_is(month):
    (old,) = [each for each in all_of(month) if each.title == "summed up 2"]
    month.audit.apply([MemoryChange("stale", changed=((old, replace(old, status="stale")),))], who="tidy", at=at(28))
    pruned(month, now=at(29))
    assert month.memories.get([old.id])[0].status == "stale"


@table("stop", (1, 3, 6))
def test_stopped_anywhere_it_is_whole_and_the_next_run_does_the_rest(make_store, tmp_path, stop):
    store = make_store(tmp_path)
    for day in range(30):
        live(store, day)
    expected = old(store, now=at(29))
    first = pruned(store, now=at(29), stop=stop)
    store.close()
    store = make_store(tmp_path)
    rest = pruned(store, now=at(29))
    assert {each: first[each] + rest[each] for each in NONE} == expected | {"access": 0}
    assert old(store, now=at(29)) == NONE
    assert store.maintenance.reindex() == store.stats.row_counts()["memories"]
    store.close()
