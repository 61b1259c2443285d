"""work: what a session touched, what git calls changed and what just failed, newest first; nothing is waited for."""

import json
import os
import shutil
import subprocess
import time
from types import SimpleNamespace

import pytest

from foreword.capture.parse import capture_event, store_events
from foreword.capture.payload import HookCall
from foreword.errors import StoreError
from foreword.models import Trigger
from foreword.projects import resolve
from foreword.worker.working_set import MOST_SESSIONS, WorkingSet
from tests.services import Reports

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed: changed files untested")
NOW = time.time()


@pytest.fixture(autouse=True)
def _now(monkeypatch):
    """What was a moment ago when the tests were collected is long ago when the last of them runs."""
    monkeypatch.setitem(globals(), "NOW", time.time())


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "shop"
    made.mkdir()
    (made / "pyproject.toml").touch()
    return made


@pytest.fixture
def works():
    """Makes what the worker has in mind, without earlier events unless they are given."""
    made = []

    def make(*, earlier=lambda _: (), services=None):
        services = services or Reports(None)
        services._store = SimpleNamespace(events=SimpleNamespace(list=lambda id, **_: earlier(id)))
        made.append(WorkingSet(services))
        return made[-1]

    yield make
    for each in made:
        each.close()


def an_event(folder, *, file="", name="PostToolUse", session="s", at=None, **more):
    at = NOW if at is None else at
    tool = {"tool_name": "Edit", "tool_input": {"file_path": str(file)}} if file else {"tool_name": "Bash"}
    payload = {"session_id": session, "cwd": str(folder), "hook_event_name": name, **tool, **more}
    return capture_event(HookCall("claude-code", name, at, json.dumps(payload).encode()), text_cap=1000)


def a_moment(folder, *, session="s"):
    return Trigger(name="prompt", project=resolve(str(folder)), session=session)


def wait_for(ask, wanted):
    """Ask until the answer is there, because it is looked for in the background."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if ask() == wanted:
            return
        time.sleep(0.01)
    assert ask() == wanted


def test_what_a_session_touched_is_told_of_it_alone(folder, works, tmp_path):
    # What a session touched comes newest first and relative to the project.
    work = works()
    work.add(an_event(folder, file=folder / "a.py", at=NOW - 30))
    work.add(an_event(folder, file=folder / "src" / "b.py", at=NOW - 20))
    work.add(an_event(folder, file="c.py", at=NOW - 25))  # what was spooled comes later than it was
    work.add(an_event(folder / "src", file="../a.py", at=NOW - 10))
    work.add(an_event(folder, file="/etc/hosts", at=NOW))
    assert work.enrich(a_moment(folder)).touched == ("a.py", "src/b.py", "c.py")
    # Another session and another project see nothing of it.
    work = works()
    work.add(an_event(folder, file=folder / "a.py"))
    assert work.enrich(a_moment(folder, session="other")).touched == ()
    assert work.enrich(a_moment(folder, session="")).touched == ()
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "go.mod").touch()
    assert work.enrich(a_moment(tmp_path / "away")).touched == ()
    # A project behind a link is the same.
    (tmp_path / "link").symlink_to(folder)
    work = works()
    work.add(an_event(tmp_path / "link", file=tmp_path / "link" / "a.py"))
    assert work.enrich(a_moment(tmp_path / "link")).touched == ("a.py",)
    # The last tool uses are told for a while.
    work = works()
    work.add(an_event(folder, name="PostToolUseFailure", at=NOW - 5))
    work.add(an_event(folder, at=NOW - 3))
    work.add(an_event(folder, name="UserPromptSubmit", at=NOW))
    work.add(an_event(folder, name="PostToolUseFailure", at=NOW - 100_000))
    assert work.enrich(a_moment(folder)).recent == ("tool", "tool_failure")
    # No more is kept than is asked for.
    work = works()
    for n in range(300):
        work.add(an_event(folder, file=folder / f"f{n}.py", at=NOW + n))
    touched = work.enrich(a_moment(folder)).touched
    assert touched == tuple(f"f{n}.py" for n in range(299, 249, -1))
    for n in range(MOST_SESSIONS + 50):
        work.add(an_event(folder, session=f"many{n}"))
    assert len(work._sessions) == MOST_SESSIONS

    # A store that fails or hangs costs only what it knows.
    def broken(_):
        raise StoreError("gone")

    work = works(earlier=broken)
    work.add(an_event(folder, file=folder / "a.py"))
    assert work.enrich(a_moment(folder)).touched == ("a.py",)


def test_after_a_restart_the_session_is_read_from_the_store_once(folder, works, store):
    events = [an_event(folder, file=folder / f"{n}.py", at=NOW - 60 + n) for n in range(3)]
    store_events(store, [*events, an_event(folder, name="PostToolUseFailure", at=NOW - 50)])
    looked_up = []

    def earlier(session):
        looked_up.append(session)
        return store.events.list(session, limit=3, newest=True)

    work = works(earlier=earlier)
    work.add(an_event(folder, file=folder / "now.py", at=NOW))
    wait_for(lambda: work.enrich(a_moment(folder)).touched, ("now.py", "2.py", "1.py"))
    assert work.enrich(a_moment(folder)).recent[:2] == ("tool", "tool_failure")
    assert looked_up == ["s"]


def test_a_session_that_begins_is_not_looked_for_in_the_store(folder, works):
    looked_up = []
    work = works(earlier=lambda session: looked_up.append(session) or ())
    work.add(an_event(folder, name="SessionStart", source="startup"))
    work.enrich(a_moment(folder))
    assert looked_up == []
    work.add(an_event(folder, name="SessionStart", source="resume", session="r"))
    work.enrich(a_moment(folder, session="r"))
    wait_for(lambda: looked_up, ["r"])


def git(folder, *words):
    clean = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words], cwd=folder, env=clean, check=True, capture_output=True)


@needs_git
def test_changed_files_of_git_are_there_the_next_time(folder, works):
    git(folder, "init")
    git(folder, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--allow-empty", "-m", "first")
    for age, name in enumerate(("new.py", "older.py")):
        (folder / name).touch()
        os.utime(folder / name, (NOW - 100 - age, NOW - 100 - age))
    os.utime(folder / "pyproject.toml", (NOW - 500, NOW - 500))
    work = works()
    work.add(an_event(folder, file=folder / "older.py", at=NOW))
    wait_for(lambda: work.enrich(a_moment(folder)).touched, ("older.py", "new.py", "pyproject.toml"))


@needs_git
def test_a_failing_git_is_told_and_not_asked_at_every_prompt(folder, works):
    git(folder, "init")
    (folder / ".git" / "index").write_bytes(b"garbage")
    services = Reports(None)
    work = works(services=services)
    wait_for(lambda: (work.enrich(a_moment(folder)), len(services.reports))[1], 1)
    where, what = services.reports[0]
    assert where == "git"
    assert "git -C" in what
    for _ in range(50):
        work.enrich(a_moment(folder))
    assert len(services.reports) == 1


def test_a_folder_without_git_is_asked_nothing(folder, works, monkeypatch):
    monkeypatch.setenv("PATH", str(folder))
    services = Reports(None)
    work = works(services=services)
    work.enrich(a_moment(folder))
    work.close()
    assert services.reports == []
    assert work.enrich(a_moment(folder)).touched == ()  # closed, and no harm done


# -- the conversation --------------------------------------------------------------------------------------------------
def a_prompt(folder, text, *, session="s", **more):
    return an_event(folder, name="UserPromptSubmit", session=session, prompt=text, **more)


def an_answer(folder, text, *, session="s", **more):
    return an_event(folder, name="Stop", session=session, last_assistant_message=text, **more)


def test_the_words_of_a_conversation_are_known_without_the_newest_prompt(folder, works):
    work = works()
    work.add(an_event(folder, name="SessionStart", source="startup"))
    work.add(a_prompt(folder, "the walrus pool is closed"))
    first = work.enrich(a_moment(folder))
    assert first.first
    assert first.session_words == frozenset()
    work.add(an_answer(folder, "The keepers feed the seals first."))
    work.add(a_prompt(folder, "open the aquarium"))
    second = work.enrich(a_moment(folder))
    assert not second.first
    assert {"pool", "keeper", "seal"} <= second.session_words
    assert not any(word.startswith("aquari") for word in second.session_words)
    assert second.answer == "The keepers feed the seals first."
    # Of another session nothing is known, and a window that begins anew knows nothing either.
    assert work.enrich(a_moment(folder, session="other")).session_words == frozenset()
    for begins in ({"name": "SessionStart", "source": "clear"}, {"name": "PreCompact", "trigger": "auto"}):
        work.add(a_prompt(folder, "the walrus again"))
        work.add(an_event(folder, **begins))
        work.add(a_prompt(folder, "hello there"))
        enriched = work.enrich(a_moment(folder))
        assert (enriched.first, enriched.session_words, enriched.answer) == (True, frozenset(), ""), begins
    # One that is resumed goes on.
    work.add(an_answer(folder, "The gate is open."))
    work.add(an_event(folder, name="SessionStart", source="resume"))
    work.add(a_prompt(folder, "and now?"))
    resumed = work.enrich(a_moment(folder))
    assert not resumed.first
    assert "open" in resumed.session_words


def test_a_resumed_session_with_a_new_id_carries_on_the_conversation_before_it(folder, works):
    work = works()
    work.add(an_event(folder, name="SessionStart", source="startup", session="before", at=NOW - 90))
    work.add(an_event(folder, name="UserPromptSubmit", prompt="the walrus pool leaks", session="before", at=NOW - 80))
    work.add(an_event(folder, name="Stop", last_assistant_message="Fixed.", session="before", at=NOW - 70))
    for source, session in (("resume", "fork"), ("startup", "new")):
        work.add(an_event(folder, name="SessionStart", source=source, session=session, at=NOW - 60))
        work.add(an_event(folder, name="UserPromptSubmit", prompt="and the seal pool", session=session, at=NOW - 50))
    found = {id: work.enrich(Trigger("prompt", resolve(str(folder)), session=id)) for id in ("fork", "new")}
    assert {id: (each.first, "walru" in each.session_words) for id, each in found.items()} == {
        "fork": (False, True),
        "new": (True, False),
    }
    assert work.carried_over("fork") == ("before",)
    assert work.carried_over("new") == work.carried_over("unknown") == ()


def test_parallel_sessions_of_a_project_are_told_with_the_files_that_they_edited(folder, works, tmp_path):
    work = works()
    work.add(an_event(folder, file=folder / "a.py", session="other", at=NOW - 600))
    work.add(an_event(folder, file=folder / "b.py", session="other", at=NOW - 30))
    work.add(an_event(folder, file=folder / "read.py", session="other", at=NOW - 20, tool_name="Read"))
    work.add(an_event(folder, file=folder / "mine.py", at=NOW - 10))
    work.add(an_event(folder, session="talking", at=NOW - 5))  # it edited nothing
    ((since, files),) = work.enrich(a_moment(folder)).parallel
    assert (round(NOW - since), files) == (600, ("b.py", "a.py"))
    assert [each[1] for each in work.enrich(a_moment(folder, session="other")).parallel] == [("mine.py",)]
    work.add(an_event(folder, file=folder / "b.py", at=NOW - 5))  # what both edited is nobody else's
    assert [each[1] for each in work.enrich(a_moment(folder)).parallel] == [("a.py",)]
    # One that is over, one that is idle and one of another project are not at work here.
    work.add(an_event(folder, name="SessionEnd", session="other", at=NOW))
    assert work.enrich(a_moment(folder)).parallel == ()
    work.add(an_event(folder, file=folder / "old.py", session="idle", at=NOW - 7200))
    away = tmp_path / "away"
    away.mkdir()
    (away / "go.mod").touch()
    work.add(an_event(away, file=away / "x.go", session="away", at=NOW))
    assert work.enrich(a_moment(folder)).parallel == ()
    # Who is nobody's session is told of nobody.
    assert work.enrich(a_moment(folder, session="")).parallel == ()


def test_the_folder_of_a_shell_is_known_before_and_after_its_last_command(folder, works):
    work = works()
    assert work.folder("s", before_last=True) == ""
    work.add(an_event(folder))
    work.add(an_event(folder / "app"))
    assert work.folder("s", before_last=True) == str(folder)
    assert work.folder("s", before_last=False) == str(folder / "app")
    work.forget(["s"])
    assert work.folder("s", before_last=False) == ""
