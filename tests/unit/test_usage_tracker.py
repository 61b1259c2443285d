"""Usage is decided beside extraction: sessions without an end get one, and its failures are nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from foreword.extract.usage import Activity
from foreword.models import UNDECIDABLE, Event, Injection, Item, Memory, Project
from foreword.store import Store
from foreword.worker.jobs import JobRunner, extract
from foreword.worker.jobs.extract import SESSION_TIMEOUT, ExtractionJob, UsageTracker
from foreword.worker.jobs.refine import RefineJob
from tests.services import OneProject, Reports
from tests.tables import table

NOW = 1_800_000_000.0
PROJECT = Project(key="p", name="p", root="/p")


class Stand:
    """A store, a clock, and what extracts and decides by it."""

    def __init__(self, folder: Path, closing_at_end: ExitStack) -> None:
        self.now = NOW
        self.store = Store(folder / "a.db", backups=folder / "backups")
        self.services = Reports(self.store, now=lambda: self.now)
        closing_at_end.callback(self.store.close)
        self._closing = closing_at_end
        (self.memory,) = self.store.memories.put(
            [Memory("failure", "It broke", files=("ledger.py",), project="p", created=1.0)]
        )
        self.number = 0

    def extraction(self) -> ExtractionJob:
        runner = self._closing.enter_context(closing(JobRunner(self.services)))
        return ExtractionJob(
            self.services, runner, OneProject(self.services, PROJECT), RefineJob(self.services, runner)
        )

    def happens(self, name: str, kind: str, **payload: object) -> None:
        self.now += 1
        self.number += 1
        fields = {"session_id": "s", "cwd": "/p", **payload}
        key = str(self.number)
        self.store.events.append(
            [Event(key, "claude-code", name, kind, "s", "p", "/p", self.now, fields, lasting=True)]
        )

    def works(self) -> None:
        self.happens("UserPromptSubmit", "prompt", prompt="why?")
        items = (Item(self.memory.id, "index", 0.5, 10, {}),)
        injection = Injection(
            "inj-1", "prompt", "s", "p", "claude-code", self.now, 60, 500, 1.0, {}, {}, items, text="x"
        )
        self.store.injections.record(injection)
        self.reads("b.py")

    def reads(self, file: str) -> None:
        self.happens("PostToolUse", "tool", tool_name="Read", tool_input={"file_path": f"/p/{file}"}, tool_response={})

    def answers(self) -> None:
        self.happens("Stop", "stop", last_assistant_message="Because.")

    def verdict(self) -> tuple[bool | None, str]:
        injection = self.store.injections.get("inj-1")
        assert injection is not None
        return injection.items[0].used, injection.items[0].how

    def counts(self) -> tuple[int, int]:
        (memory,) = self.store.memories.get([self.memory.id])
        return memory.used, memory.ignored


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    with ExitStack() as stack:
        yield Stand(tmp_path, stack)


def runs(extraction: ExtractionJob) -> None:
    extraction._runner.tick()
    extraction.settle("p", seconds=20)  # one thread: when this is done, so is the run


def test_a_session_without_an_end_is_settled_after_an_hour(stand, monkeypatch):
    monkeypatch.setattr(extract, "OVERDUE_EVERY", 0.0)
    stand.works()
    stand.answers()
    extraction = stand.extraction()
    runs(extraction)
    stand.now += SESSION_TIMEOUT - 10
    runs(extraction)
    assert (stand.verdict(), stand.counts()) == ((None, ""), (0, 0))
    stand.now += 20
    runs(extraction)
    assert (stand.verdict(), stand.counts()) == ((False, ""), (0, 1))


def test_a_worker_that_was_away_for_that_hour_settles_it_when_it_comes_back(stand):
    stand.works()
    stand.answers()
    runs(stand.extraction())
    stand.now += SESSION_TIMEOUT + 10
    runs(stand.extraction())
    assert (stand.verdict(), stand.counts()) == ((False, ""), (0, 1))


def test_a_session_that_goes_on_after_all_takes_the_verdict_back(stand):
    stand.works()
    stand.happens("SessionEnd", "session_end", reason="exit")
    extraction = stand.extraction()
    runs(extraction)
    assert stand.counts() == (0, 1)
    stand.happens("SessionStart", "session_start", source="resume")
    stand.reads("ledger.py")
    stand.answers()
    runs(extraction)
    assert (stand.verdict(), stand.counts()) == ((True, "file"), (1, 0))
    stand.happens("SessionEnd", "session_end", reason="exit")
    runs(extraction)
    assert (stand.verdict(), stand.counts()) == ((True, "file"), (1, 0))


def test_what_an_agent_fetched_by_its_id_was_used(stand):
    stand.works()
    stand.store.memories.record_access([stand.memory.id], how="get", at=stand.now + 0.5, session="s")
    stand.answers()
    runs(stand.extraction())
    assert (stand.verdict(), stand.counts()) == ((True, "fetched"), (1, 0))


def test_what_cannot_be_told_is_looked_at_once(stand):
    stand.works()
    stand.happens("UserPromptSubmit", "prompt", prompt="leave the ledger alone")
    stand.happens("SessionEnd", "session_end", reason="exit")
    runs(stand.extraction())
    assert stand.verdict() == (None, UNDECIDABLE)
    assert stand.store.sessions.list(undecided=True, since=0.0, before=(stand.now + 1, "")) == ()


@table("broken", ["add", "usage_of"])
def test_what_goes_wrong_with_usage_breaks_no_extraction(stand, monkeypatch, broken):
    def fails(*_: object, **__: object) -> None:
        raise ValueError("no")

    if broken == "add":
        monkeypatch.setattr(Activity, "add", fails)
    else:
        monkeypatch.setattr(extract, "usage_of", fails)
    stand.works()
    stand.answers()
    runs(stand.extraction())
    session = stand.store.sessions.get("s")
    assert session is not None
    assert session.extracted == session.newest
    assert {where for where, _ in stand.services.reports} == {"use"}


def test_a_look_for_silent_sessions_is_rare(stand, monkeypatch):
    monkeypatch.setattr(extract, "OVERDUE_EVERY", 1e9)
    searches = []
    monkeypatch.setattr(stand.store.sessions, "list", lambda **_: searches.append(1) or ())
    tracker = UsageTracker(stand.services)
    for _ in range(50):
        tracker.overdue()
    assert len(searches) == 1
