"""What tidying promises on every store: all of it logged and undone together, nothing twice, nothing lost."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.services import OneProject, Reports
from tests.tables import table

from foreword.audit import MemoryChange
from foreword.extract.merge import evidence_of
from foreword.models import TRUSTS, Link, Memory, Project, Query, Session
from foreword.paths import Home
from foreword.worker.jobs import JobRunner
from foreword.worker.jobs.maintenance import TidyJob, settle_choices

DAY = 86_400.0
NUMBERS = itertools.count()


class Clock:
    def __init__(self) -> None:
        self.now = 1_000 * DAY

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def tidying_of(store, project: Project, *, clock=lambda: 1_000 * DAY, tmp: Path = Path("/nowhere")) -> TidyJob:
    services = Reports(store, Home(root=tmp), now=clock)
    return TidyJob(services, JobRunner(services), OneProject(services, project))


def new_project(root: str = "") -> Project:
    return Project(key=f"p{next(NUMBERS)}", name="p", root=root)


def kept(store, project: Project, kind: str, title: str, **more) -> Memory:
    memory = Memory(kind, title, scope=project.scope, project=project.key, created=1.0, confirmed=1.0)
    (one,) = store.memories.put([replace(memory, **more)])
    return one


def everything(store, project: Project) -> dict[str, Memory]:
    return {memory.id: memory for _, memory in store.memories.page(scopes=(project.scope,), limit=5000)}


def links(store, memories) -> set[tuple[str, str, str]]:
    return {tuple(vars(link).values()) for id in memories for link in store.memories.links(id)}


# ---- any memory of a project
WORDS = ("use", "redis", "for", "the", "cache", "valkey", "instead", "of", "never", "tests", "run", "100")
TITLES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
SEEN = ({"seen_in": {"s1": 2}}, {"seen_in": {"s2": 1, "s3": 1}})
DETAILS = ({}, {}, *SEEN, {"why": "so"}, {"instead_of": "redis"})
ANY = st.builds(
    dict,
    kind=st.sampled_from(("decision", "preference", "failure", "learning", "observation", "summary")),
    title=TITLES,
    body=st.sampled_from(("", "", "because it is there")),
    trust=st.sampled_from(TRUSTS),
    seen=st.integers(1, 4),
    confirmed=st.integers(1, 9).map(float),
    created=st.integers(1, 9).map(float),
    session=st.sampled_from(("", "s1", "s2")),
    pinned=st.booleans(),
    files=st.sampled_from(((), ("a.py",), ("b.py",))),
    detail=st.sampled_from(DETAILS),
)  # fmt: skip


PLAIN = {"body": "", "trust": "user", "seen": 1, "confirmed": 1.0, "session": "", "pinned": False, "files": ()}
CONFIRMED_APART = [
    {**PLAIN, "kind": "learning", "title": "use", "created": 1.0, "detail": SEEN[1]},
    {**PLAIN, "kind": "learning", "title": "use", "created": 2.0, "detail": {}},
    {**PLAIN, "kind": "summary", "title": "use", "created": 1.0, "session": "s2", "detail": {}},
]


@given(st.lists(ANY, max_size=14))
@example(CONFIRMED_APART)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_memory_tidied_twice_loses_nothing_and_is_undone_to_the_last_field(shared_store, memories):
    store, project = shared_store, new_project()
    first = {}
    for each in memories:
        one = kept(store, project, **{name: value for name, value in each.items() if name != "pinned"})
        if each["pinned"]:
            store.audit.apply([MemoryChange("pin", changed=((one, replace(one, pinned=True)),))], who="user", at=1.0)
        first[one.id] = store.memories.get([one.id])[0]
    tidy = tidying_of(store, project)
    planned = tidy.run([project], dry_run=True)
    assert everything(store, project) == first, "a dry run changes nothing"
    done = tidy.run([project])
    assert done["by"] == planned["by"], "what is done is what was shown"
    after = everything(store, project)
    assert tidy.run([project])["by"] == {}, "the second run has nothing to do"
    assert everything(store, project) == after

    assert set(after) == set(first), "nothing is deleted"
    for id, one in after.items():
        before = first[id]
        assert (one.kind, one.scope, one.project, one.trust, one.title) == (
            *(before.kind, before.scope, before.project, before.trust, before.title),
        )
        assert one.status == "active" or not before.pinned, "what is pinned stays"
        if one.superseded_by:
            by = after[one.superseded_by]
            assert by.project == one.project
            assert by.kind == one.kind or "same_as" not in one.detail
            assert TRUSTS.index(by.trust) <= TRUSTS.index(one.trust), "never to a lower trust"
            assert "same_as" not in one.detail or "same_as" not in by.detail, "no chain of merges"
    for kind in {each["kind"] for each in memories}:
        of_kind = [id for id in first if first[id].kind == kind]
        saw = sum((Counter(evidence_of(first[id])) for id in of_kind), Counter())
        see = sum((Counter(evidence_of(after[id])) for id in of_kind if "same_as" not in after[id].detail), Counter())
        assert see == saw, "each session saw it as often as before"

    if done["run"]:
        undone = store.audit.undo(store.audit.list(run=done["run"], limit=1000), who="user", at=2.0)
        assert not undone.refused
        assert everything(store, project) == first
        assert not links(store, first)
        again = tidy.run([project])
        assert again["by"] == {}, "what was taken back is not done again"


def test_what_was_done_is_logged_under_one_run_and_taken_back(make_store):
    # Each amendment is logged as tidy under one run.
    store = make_store()
    project = new_project()
    for title in ("Use Redis", "use redis", "Use uv", "use uv"):
        kept(store, project, "decision", title)
    done = tidying_of(store, project).run([project])
    entries = store.audit.list(run=done["run"])
    assert [(each.who, each.what) for each in entries] == [("tidy", "merge")] * 2
    assert done["by"] == {"merge": 2}


def test_a_run_that_is_raced_ended_or_failing_loses_nothing(make_store, monkeypatch):
    # A memory that changes while it is tidied is left for the next run.
    store = make_store()
    project = new_project()
    one, two = kept(store, project, "decision", "Use Redis"), kept(store, project, "decision", "use redis")
    amend = store.audit.apply

    def raced(memory_changes, **more):
        superseded = {after.id for _, after in memory_changes[0].changed if after.status == "superseded"}
        (loser,) = [each for each in (one, two) if each.id in superseded]
        monkeypatch.setattr(store.audit, "apply", amend)
        amend([MemoryChange("revise", changed=((loser, replace(loser, status="stale")),))], who="user", at=1.0)
        return amend(memory_changes, **more)

    monkeypatch.setattr(store.audit, "apply", raced)
    assert tidying_of(store, project).run([project])["by"] == {}
    assert sorted(each.status for each in everything(store, project).values()) == ["active", "stale"]
    # What a run that was ended in the middle left is done by the next.
    store = make_store()
    project = new_project()
    for number in range(6):
        kept(store, project, "decision", f"Use thing number {number // 2}")
    amend, calls = store.audit.apply, []

    def dies(memory_changes, **more):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(1)
        return amend(memory_changes, **more)

    monkeypatch.setattr(store.audit, "apply", dies)
    with pytest.raises(KeyboardInterrupt):
        tidying_of(store, project).run([project])
    monkeypatch.setattr(store.audit, "apply", amend)
    done = tidying_of(store, project).run([project])
    assert done["by"] == {"merge": 1}
    assert len(store.audit.list()) == 3
    # A store that fails is told and the run is not finished.
    store = make_store()
    project = new_project()
    kept(store, project, "decision", "Use Redis")
    kept(store, project, "decision", "use redis")
    monkeypatch.setattr(store.audit, "apply", lambda *_, **__: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        tidying_of(store, project).run([project])
    assert not store.checkpoint(f"tidied: {project.key}")


def test_a_later_choice_supersedes_at_once_unless_it_is_less_trusted(make_store):
    # A later choice supersedes at once and is logged.
    store = make_store()
    project = new_project()
    old = kept(store, project, "decision", "Use Redis for the cache")
    new = kept(store, project, "decision", "Use Valkey for the cache instead of Redis", confirmed=2.0)
    settle_choices(store, [new], at=3.0)
    query = Query(scopes=(project.scope,), kinds=("decision",))
    assert [hit.memory.id for hit in store.search.by_recency(query)] == [new.id]
    (entry,) = store.audit.list(memory=old.id)
    assert (entry.who, entry.what, set(entry.memories)) == ("tidy", "supersede", {old.id, new.id})
    store.audit.undo([entry], who="user", at=4.0)
    settle_choices(store, [new], at=5.0)
    assert store.memories.get([old.id]) == (old,), "what was taken back is not done again"
    # An agents choice leaves the users.
    store = make_store()
    project = new_project()
    old = kept(store, project, "decision", "Use Redis for the cache")
    new = kept(store, project, "decision", "Use Valkey instead of Redis", confirmed=2.0, trust="agent")
    settle_choices(store, [new], at=3.0)
    assert store.memories.get([old.id]) == (old,)


def test_a_summary_of_what_was_replaced_says_until_when_and_what_holds_now(store):
    project = new_project()
    summary = kept(store, project, "summary", "Use Redis for the cache")
    old = kept(store, project, "decision", "Use Redis for the cache")
    store.memories.put([old], links=[Link(old.id, "part-of", summary.id)])
    new = kept(store, project, "decision", "Use Valkey for the cache instead of Redis", confirmed=2.0)
    settle_choices(store, [new], at=86_400.0)
    (after,) = store.memories.get([summary.id])
    assert after.title == "Until 1970-01-02: Use Redis for the cache; now: Use Valkey for the cache instead of Redis"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "a.py").write_text("def load(path):\n    return 1\n")
    (root / "b.py").write_text("def other():\n    return 1\n")
    return root


def of_session(store, project: Project) -> None:
    store.save(Session("s", "codex", project.key, project.root, 1.0, 2.0, ended=2.0))


def test_what_was_gone_at_two_looks_days_apart_sinks_and_comes_back(store, checkout, clock):
    project = new_project(str(checkout))
    of_session(store, project)
    one = kept(store, project, "observation", "Wrote a.py", files=("a.py",), trust="tool")
    tidy = tidying_of(store, project, clock=clock)
    text = (checkout / "a.py").read_text()
    (checkout / "a.py").unlink()
    assert tidy.run([project])["by"] == {}
    clock.now += DAY
    assert tidy.run([project])["by"] == {}, "another branch may be checked out for a day"
    clock.now += 3 * DAY
    assert tidy.run([project])["by"] == {"stale": 1}
    assert store.memories.get([one.id])[0].status == "stale"
    (checkout / "a.py").write_text(text)
    assert tidy.run([project])["by"] == {"restore": 1}
    assert store.memories.get([one.id]) == (one,)


def test_what_came_back_between_two_looks_was_never_gone(store, checkout, clock):
    project = new_project(str(checkout))
    of_session(store, project)
    kept(store, project, "observation", "Wrote a.py", files=("a.py",), trust="tool")
    tidy = tidying_of(store, project, clock=clock)
    text = (checkout / "a.py").read_text()
    for there in (False, True, False):
        (checkout / "a.py").write_text(text) if there else (checkout / "a.py").unlink()
        assert tidy.run([project])["by"] == {}
        clock.now += 4 * DAY


@table("why", ["unmounted", "empty", "another project"])
def test_nothing_sinks_where_the_folder_is_not_the_whole_project(store, checkout, clock, why):
    project = new_project(str(checkout))
    of_session(store, project)
    for number in range(12):
        kept(store, project, "observation", f"Wrote {number}", files=(f"gone{number}.py",), trust="tool")
    tidy = tidying_of(store, project, clock=clock)
    if why == "unmounted":
        checkout.rename(checkout.with_name("elsewhere"))
    if why == "another project":
        tidy = tidying_of(store, replace(project, key="another"), clock=clock)
    for _ in range(3):
        assert tidy.run([project])["by"] == {}
        clock.now += 30 * DAY


def test_duplicates_of_a_generated_project_go_below_two_in_a_hundred(store):
    project = new_project()
    titles = [f"{verb} {thing} for the {part}" for verb in ("Use", "use", "Use the")
            for thing in ("Redis", "uv", "Kafka") for part in ("cache", "queue", "build")]  # fmt: skip
    for title in titles:
        kept(store, project, "decision", title)
    assert duplicates(everything(store, project).values()) > 0.5
    tidying_of(store, project).run([project])
    assert duplicates(everything(store, project).values()) <= 0.02


def duplicates(memories) -> float:
    active = [each for each in memories if each.status == "active"]
    distinct = {each.title.lower().replace("the ", "") for each in active}
    return 1 - len(distinct) / max(1, len(active))


def test_an_idle_worker_tidies_each_project_once_a_day(store, clock, tmp_path):
    project = new_project(str(tmp_path))
    of_session(store, project)
    kept(store, project, "decision", "Use Redis")
    kept(store, project, "decision", "use redis")
    tidy = tidying_of(store, project, clock=clock, tmp=tmp_path)

    def looked() -> int:
        tidy._tidy_next()
        return sum(each.what == "merge" for each in store.audit.list(limit=1000))

    assert looked() == 1
    kept(store, project, "decision", "USE redis")
    assert looked() == 1, "not twice a day"
    clock.now += DAY
    assert looked() == 2
