"""Imports run in the background: one for a project, its sources in turn, never against the user's will, never twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foreword import importers
from foreword.capture.parse import project_at
from foreword.errors import BadRequest, StoreError
from foreword.importers import Batch, Source, offers
from foreword.models import Change, Memory, Project, Session
from foreword.store import Store
from foreword.worker import jobs
from foreword.worker.jobs import JobRunner
from foreword.worker.jobs import imports as module
from foreword.worker.jobs.imports import ImportJob
from foreword.worker.projects import ProjectRegistry
from tests.services import Reports
from tests.tables import table
from tests.unit.importing import wait

SECRET = "ghp_" + "a1B2" * 9


class Made(Source):
    """A source that gives what it was made with."""

    def __init__(self, name: str, batches: list[Batch], *, gate: threading.Event | None = None) -> None:
        super().__init__(name)
        self.batches, self.gate = batches, gate
        self.reads = 0

    def offer(self, project: Project) -> str:
        return "made"

    def read(self, project: Project) -> Iterator[Batch]:
        self.reads += 1
        for batch in self.batches:
            if self.gate:
                assert self.gate.wait(20)
            yield batch


def batch(*titles: str, **more: Any) -> Batch:
    memories = [
        Memory(kind="note", title=title, uid=f"u:{title}", source="made", trust="imported", created=1.0, confirmed=1.0)
        for title in titles
    ]
    return Batch(tuple(replace(memory, **more) for memory in memories))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "a.db", backups=tmp_path / "backups")) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "pyproject.toml").write_text("")
    return str(tmp_path / "shop")


class Bench:
    """An ImportJob whose sources are made up."""

    def __init__(self, store: Store, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.folder = store, folder
        self.services = Reports(store)
        self.sources: dict[str, Made] = {}
        self.runner = JobRunner(self.services)
        self.importing = ImportJob(self.services, self.runner, ProjectRegistry(self.services))
        monkeypatch.setattr(module, "find", lambda name, *_: self.sources[name])

    def close(self) -> None:
        self.runner.close()

    def give(self, name: str, *batches: Batch, gate: threading.Event | None = None) -> None:
        self.sources[name] = Made(name, list(batches), gate=gate)

    def start(self, *names: str, **environ: str) -> dict[str, Any]:
        return self.importing.start({"project_path": self.folder, "sources": [*names], "environ": environ})

    def run(self, *names: str) -> dict[str, Any]:
        self.start(*names)
        return wait(self.importing)

    def titles(self) -> list[str]:
        return [memory.title for _, memory in self.store.memories.page(limit=999)]


@pytest.fixture
def bench(store: Store, folder: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(store, folder, monkeypatch)
    yield made
    made.close()


def test_sources_are_read_one_after_another(bench: Bench):
    bench.give("a", batch("a1"), batch("a2"), batch("a3"))
    bench.give("b", batch("b1"))
    status = bench.run("a", "b")
    assert bench.titles() == ["a1", "a2", "a3", "b1"]
    assert [source["kinds"] for source in status["sources"]] == [{"note": 3}, {"note": 1}]


def test_everything_belongs_to_the_named_project_whatever_a_source_says(bench: Bench):
    other = {"project": "dir:/other", "scope": "project:dir:/other"}
    change = Change(project="dir:/other", file="x", function="f", what="NEW")
    session = Session(id="s", host="h", project="dir:/other", cwd="/", started=1.0, last=1.0)
    bench.give("a", replace(batch("x", **other), changes=(change,), session=session))
    bench.run("a")
    key = project_at(bench.folder).key
    assert {memory.scope for _, memory in bench.store.memories.page()} == {f"project:{key}"}
    assert bench.store.sessions.changes("dir:/other", limit=9) == ()
    assert [each.project for each in bench.store.sessions.list()] == [key]


def test_secrets_are_gone_before_anything_is_written(bench: Bench, tmp_path: Path):
    change = Change(project="", file="x", function="f", what="NEW", signature=f"f({SECRET})")
    reported = batch(f"title {SECRET}", body=f"<private>{SECRET}</private>", tags=(SECRET,), detail={"why": [SECRET]})
    bench.give("a", replace(reported, changes=(change,)))
    bench.run("a")
    bench.store.close()
    for path in tmp_path.glob("a.db*"):
        assert SECRET.encode() not in path.read_bytes()


def test_twice_is_once_and_rows_that_are_equal_are_left_alone(bench: Bench):
    bench.give("a", batch("x", "y", detail={"why": ("tuples", "become lists")}))
    first, second = bench.run("a"), bench.run("a")
    assert (first["sources"][0]["kept"], second["sources"][0]["kept"]) == (2, 0)
    assert second["sources"][0]["known"] == 2


def test_what_changed_is_the_same_memory_with_the_same_id(bench: Bench):
    bench.give("a", batch("x"))
    bench.run("a")
    before = bench.store.memories.get_by_uid(["u:x"])[0]
    bench.give("a", batch("x", body="more", confirmed=2.0))
    bench.run("a")
    after = bench.store.memories.get_by_uid(["u:x"])[0]
    assert (after.id, after.body) == (before.id, "more")


@table("status", ["forgotten", "superseded", "stale"])
def test_what_somebody_put_away_does_not_come_back(bench: Bench, status: Any):
    bench.give("a", batch("x"))
    bench.run("a")
    bench.store.memories.put([replace(bench.store.memories.get_by_uid(["u:x"])[0], status=status)])
    bench.run("a")
    assert bench.store.memories.get_by_uid(["u:x"])[0].status == status


def test_what_belongs_to_another_scope_by_now_is_not_taken_from_there(bench: Bench):
    bench.give("a", batch("x"))
    bench.run("a")
    bench.store.memories.put([replace(bench.store.memories.get_by_uid(["u:x"])[0], scope="universal")])
    bench.run("a")
    assert bench.store.memories.get_by_uid(["u:x"])[0].scope == "universal"


def test_a_second_wish_joins_the_one_that_runs(bench: Bench):
    gate = threading.Event()
    bench.give("a", batch("x"), gate=gate)
    bench.give("b", batch("y"))
    bench.start("a")
    bench.start("a")
    joined = bench.start("b")
    assert [source["source"] for source in joined["sources"]] == ["a", "b"]
    gate.set()
    wait(bench.importing)
    assert len(bench.importing.status()["imports"]) == 1
    assert sorted(bench.titles()) == ["x", "y"]
    assert bench.sources["a"].reads == 1


def test_nothing_is_imported_where_the_user_does_not_want_it(bench: Bench):
    bench.give("a", batch("x"))
    with pytest.raises(BadRequest, match="FOREWORD_OFF"):
        bench.start("a", FOREWORD_OFF="1")
    for switched in ({"capture": False}, {"off_projects": (bench.folder,)}):
        bench.services.set(**{"capture": True, "off_projects": (), **switched})
        with pytest.raises(BadRequest, match="off"):
            bench.start("a")
    assert bench.titles() == []


def test_capture_that_is_switched_off_meanwhile_stops_it_and_says_so(bench: Bench):
    gate = threading.Event()
    bench.give("a", batch("x"), batch("y"), gate=gate)
    bench.give("b", *[batch(f"z{number}") for number in range(3)])
    bench.start("a")
    bench.services.set(capture=False)
    gate.set()
    reported = wait(bench.importing)
    assert reported["state"] == "failed"
    assert "capture is switched off" in reported["sources"][0]["problems"][0]
    assert "y" not in bench.titles()


def test_a_source_that_fails_does_not_keep_the_others(bench: Bench):
    class Broken(Made):
        def read(self, *_: Any, **__: Any) -> Iterator[Batch]:
            raise BadRequest("no such thing", hint="make one")
            yield

    bench.sources["a"] = Broken("a", [])
    bench.give("b", batch("y"))
    reported = bench.run("a", "b")
    assert {source["source"]: source["state"] for source in reported["sources"]} == {"a": "failed", "b": "done"}
    assert bench.titles() == ["y"]
    assert "no such thing" in bench.services.problems[0]


def test_a_store_that_cannot_be_written_ends_the_import_and_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    def fails(*_: Any, **__: Any) -> Any:
        raise StoreError("the disk is full", hint="make room")

    monkeypatch.setattr(bench.store, "save", fails)
    bench.give("a", batch("x"))
    status = bench.run("a")
    assert status["state"] == "failed"
    assert "disk is full" in status["sources"][0]["problems"][0]
    assert "disk is full" in bench.services.problems[0]


def test_it_waits_while_somebody_is_answered_but_not_for_ever(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jobs, "GIVE_WAY", 0.05)
    assert not bench.runner.give_way()
    with bench.runner:
        assert bench.runner.give_way()
        bench.give("a", batch("x"))
        assert bench.run("a")["state"] == "done"
    assert bench.runner.give_way()  # somebody was there a moment ago


def test_a_job_that_lets_some_answers_pass_waits_for_a_storm_of_them(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jobs, "GIVE_WAY", 600.0)
    with bench.runner, bench.runner:
        assert bench.runner.give_way(most=2)
        with bench.runner:
            waiting = threading.Thread(target=bench.runner.give_way, kwargs={"most": 2})
            waiting.start()
            waiting.join(0.05)
            assert waiting.is_alive()
        waiting.join(60.0)
        assert not waiting.is_alive()


def test_a_source_that_cannot_be_looked_at_offers_nothing(folder: str, monkeypatch: pytest.MonkeyPatch):
    class Broken(Made):
        def offer(self, *_: Any) -> str:
            raise OSError("no")

    monkeypatch.setattr(importers, "find", lambda name, **_: Broken(name, []) if name == "git" else Made(name, []))
    found = offers(project_at(folder), {})
    assert "git" not in found
    assert "files" in found


def test_unknown_sources_are_told(bench: Bench):
    with pytest.raises(BadRequest, match="unknown source"):
        importers.find("nonsense")
