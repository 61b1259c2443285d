"""Sessions whose capture died are noticed when the next one begins, told once, and nothing else is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foreword.config import load
from foreword.install.wired import Wired
from foreword.paths import Home
from foreword.store.sqlite import SqliteStore
from foreword.types import Event, Project
from foreword.wiring import Setup
from foreword.worker.watch import Watching, bring_in, died, silent, untold
from tests import retimed

NOW = time.time()
LAST = NOW - 7000  # when hooks told something last
DEFAULT = load(Home(Path("/nowhere")), {}).settings
PATHS = {"claude-code": "transcript_path", "codex": "transcript_path", "copilot": "transcriptPath"}


class Watch:
    """A watch over a real store and real files; what it tells is kept in a list."""

    def __init__(self, store: SqliteStore, folder: Path) -> None:
        self.store, self.folder = store, folder
        self.settings = DEFAULT
        self.hosts: dict[str, Wired] = {}
        self.told: list[str] = []
        self.watching = self.again()

    def again(self) -> Watching:
        """As another worker would."""
        self.watching = Watching(
            store=lambda: self.store,
            settings=lambda: self.settings,
            project_of=lambda folder: Project(key=f"dir:{folder}", name="", root=folder),
            hosts=lambda: self.hosts,
            tell=lambda where, what: self.told.append(f"{where}: {what}"),
        )
        return self.watching

    def event(
        self, kind: str, *, session: str = "one", host: str = "claude-code", at: float = LAST, **more: Any
    ) -> None:
        self.store.append(
            [
                Event(
                    key=f"{session}-{kind}-{at}",
                    host=host,
                    name=kind,
                    kind=kind,
                    session=session,
                    project="dir:/p",
                    cwd="/p",
                    at=at,
                    payload={PATHS[host]: self.path(session), **more},
                )
            ]
        )

    def path(self, session: str) -> str:
        return str(self.folder / "projects" / "p" / f"{session}.jsonl")

    def transcript(self, *, session: str = "one", host: str = "claude-code", until: float = NOW - 600) -> None:
        retimed.write(
            Path(self.path(session)), host, first=NOW - 7200, last=until, more=(retimed.prompt(host),) if until else ()
        )

    def begins(self, *, session: str = "two", host: str = "claude-code") -> list[str]:
        """Another session begins, and what was told by then."""
        self.event("session_start", session=session, host=host, at=NOW)
        self.watching.saw("session_start", host=host, session=session)
        self.watching.look()
        self.watching._working.submit(lambda: None).result(20)
        return self.told


@pytest.fixture
def watch(store: SqliteStore, tmp_path: Path) -> Iterator[Watch]:
    made = Watch(store, tmp_path)
    yield made
    made.watching.close()


@pytest.mark.parametrize("host", PATHS)
def test_a_session_that_went_on_untold_is_noticed_when_the_next_begins(watch, host):
    watch.event("prompt", host=host)
    watch.transcript(host=host)
    (told,) = watch.begins(host=host)
    assert told.startswith(f"capture: session one of {host} (dir:/p) told nothing after ")
    assert "foreword doctor" in told
    (one,) = died(watch.store, host)
    assert (one.session, one.since) == ("one", LAST)
    assert one.until == pytest.approx(NOW - 600, abs=1)


def test_it_is_told_once_also_by_another_worker(watch):
    watch.event("prompt")
    watch.transcript()
    assert len(watch.begins()) == 1
    assert len(watch.begins(session="three")) == 1
    watch.again()
    assert len(watch.begins(session="four")) == 1


def test_one_that_came_back_and_died_again_is_told_again(watch):
    watch.event("prompt")
    watch.transcript()
    watch.begins()
    watch.event("stop", at=NOW - 550)
    watch.transcript(until=NOW - 300)
    assert len(watch.begins(session="three")) == 2
    assert len(died(watch.store, "claude-code")) == 1


def test_a_start_and_no_word_after_it_is_noticed_however_soon_the_prompt_came(watch):
    began = NOW - 7200.5
    watch.event("session_start", at=began)
    watch.transcript(until=0.0)  # the recorded prompts alone, seconds after the start
    assert len(watch.begins()) == 1


def test_a_session_that_told_everything_is_not_noticed(watch):
    watch.event("prompt", at=NOW - 7190)
    watch.event("session_end", at=NOW - 7100)
    watch.transcript(until=0.0)
    assert watch.begins() == []


def test_what_hosts_append_after_the_end_is_no_sign(watch):
    watch.event("session_end", at=NOW - 7100)
    note = {"type": "cost-state", "timestamp": "", "totalCostUSD": 1}
    retimed.write(Path(watch.path("one")), "claude-code", first=NOW - 7200, last=NOW - 600, more=(note,) * 5)
    assert watch.begins() == []


def test_one_that_ended_and_was_resumed_without_hooks_is_noticed(watch):
    watch.event("session_end", at=NOW - 7100)
    watch.transcript()
    assert len(watch.begins()) == 1


def test_the_session_that_begins_is_not_judged_by_what_comes_now(watch):
    watch.transcript(session="two", until=NOW - 2)
    assert watch.begins(session="two") == []


def test_one_that_is_resumed_is_judged_up_to_where_it_begins_again(watch):
    watch.event("prompt")
    watch.transcript()
    assert len(watch.begins(session="one")) == 1
    (one,) = died(watch.store, "claude-code")
    assert one.since == LAST


def test_one_that_was_brought_in_is_settled_and_not_told_again(watch):
    watch.event("prompt")
    watch.transcript()
    watch.begins()
    assert [each.session for each in untold(watch.store, "claude-code")] == ["one"]
    bring_in(watch.store, "claude-code", "one", at=NOW)
    assert untold(watch.store, "claude-code") == ()
    assert len(watch.begins(session="three")) == 1


def test_one_that_is_resumed_and_told_everything_is_not_noticed(watch):
    watch.event("prompt", at=NOW - 7190)
    watch.event("session_end", at=NOW - 7100)
    watch.transcript(until=NOW - 5)  # the prompt that comes with its new start
    assert watch.begins(session="one") == []


def test_a_transcript_that_moved_or_is_gone_tells_nothing(watch):
    watch.event("prompt")
    assert watch.begins() == []


def test_sessions_of_another_host_wait_for_its_own_start(watch):
    watch.event("prompt", host="codex")
    watch.transcript(host="codex")
    assert watch.begins(host="claude-code") == []


def test_a_path_that_was_never_told_is_found_by_that_of_another_session(watch):
    watch.event("stop", session="zero", host="copilot", at=NOW - 9000)
    watch.event("prompt", host="copilot", transcriptPath="")
    watch.transcript(host="copilot")
    assert len(watch.begins(host="copilot")) == 1


def test_what_the_user_switched_off_is_not_missed(watch):
    watch.event("prompt")
    watch.transcript()
    watch.settings = replace(watch.settings, capture=False)
    assert watch.begins() == []
    watch.settings = DEFAULT
    assert watch.begins(session="three") == []  # it was off while that session went on
    watch.settings = replace(DEFAULT, off_projects=("/p",))
    assert watch.begins(session="four") == []


def test_a_hook_never_waits_for_a_look(watch):
    watch.event("prompt")
    watch.watching.saw("session_start", host="claude-code", session="two")
    assert watch.told == []  # until somebody looks, which tending does aside


def test_what_fails_is_told_once_and_not_every_second(watch):
    watch.watching._looked = NOW - 2 * 86_400  # of a worker that has run for days
    watch.store, kept = None, watch.store
    for _ in range(3):
        watch.watching.look()
        watch.watching._working.submit(lambda: None).result(20)
    assert len(watch.told) == 1
    watch.store = kept


# ---- hosts that fell silent altogether


def wired(folder: Path, **more: Any) -> Wired:
    setup = Setup(binary="claude", folder=folder, changes=(), transcripts=("projects/*/*.jsonl",))
    return Wired(setup=setup, there=1, **more)


def test_a_host_that_works_and_tells_nothing_is_noticed_within_a_day(watch):
    watch.event("session_end", session="zero", at=NOW - 5 * 86_400)
    watch.transcript(session="unknown", until=NOW - 3 * 3600)
    watch.hosts = {"claude-code": wired(watch.folder)}
    watch.watching.look()
    watch.watching._working.submit(lambda: None).result(20)
    (told,) = watch.told
    assert told.startswith("capture: claude-code went on until ")
    watch.again().look()
    watch.watching._working.submit(lambda: None).result(20)
    assert len(watch.told) == 1


def test_one_that_never_told_anything_is_judged_from_when_it_was_wired(watch):
    watch.transcript(until=NOW - 3600)
    for since, noticed in ((0.0, False), (NOW - 600, False), (NOW - 86_400, True)):
        made = wired(watch.folder, since=since)
        after = made.since
        assert bool(after and silent("claude-code", made, after=after, now=NOW)) is noticed


def test_projects_that_are_off_are_not_missed(watch):
    watch.transcript(until=NOW - 3600)
    is_off = {"/home/user/project": True}
    assert silent("claude-code", wired(watch.folder), after=NOW - 86_400, now=NOW)
    assert not silent(
        "claude-code", wired(watch.folder), after=NOW - 86_400, now=NOW, is_off=lambda folder: is_off.get(folder, False)
    )
