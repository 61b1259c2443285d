"""Sessions wait for a model in the background, and whatever goes wrong, the summary stays as it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from foreword.config import load
from foreword.models import Memory
from foreword.worker.jobs import JobRunner
from foreword.worker.jobs.refine import RefineJob
from tests import endpoint
from tests.endpoint import says, silent, status
from tests.services import Reports, model_calls
from tests.tables import table
from tests.talking import FULL, data, sent_texts

PATIENCE = 20.0
DRAFT = "A waiting list for full evenings"


@pytest.fixture
def server():
    with endpoint.listening() as here:
        here.answer = data()
        yield here


@pytest.fixture
def services(home, store):
    return Reports(store, home)


@pytest.fixture
def choose(home, server, services):
    """Make a RefineJob with these settings, on the test's server."""
    made: list[RefineJob] = []

    def chosen(refining: RefineJob | None = None, **variables: str) -> RefineJob:
        if refining is None:
            refining = RefineJob(services, JobRunner(services))
            made.append(refining)
        usual = {"model_provider": "openai", "model_name": "m", "model_url": server.url, "model_seconds": "20"}
        environ = {f"FOREWORD_{name.upper()}": text for name, text in {**usual, **variables}.items()}
        services.loaded = load(home, environ)
        return refining

    yield chosen
    for each in made:
        leave(each)


def leave(refining: RefineJob) -> None:
    """Close a job as a worker that leaves does."""
    refining._runner.close()


def is_busy(refining: RefineJob) -> bool:
    return refining._runner.is_busy("refine")


def until(what: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def submit(refining, *sessions, excerpts=()):
    """Let the summary of each session wait for the model."""
    for session in sessions:
        summary = Memory(
            "summary", DRAFT, uid=session, session=session, trust="tool", detail={"done": ["offer_slot()"]}
        )
        refining.submit(session, [summary, Memory("decision", "Mail, not push", trust="user")], excerpts=excerpts)


def finish(refining):
    until(lambda: not is_busy(refining))


def refined(store):
    """The summaries in the model's words, oldest first."""
    return [memory for _, memory in store.memories.page() if memory.kind == "summary"]


def test_a_summary_is_refined_and_kept(choose, server, store):
    refining = choose()
    submit(refining, "s", excerpts=["we kept one writer in SQLite", "October, mail"])
    finish(refining)
    (got,) = refined(store)
    assert (got.session, got.title, got.trust, got.source) == ("s", FULL["title"], "tool", "model:m")
    assert got.detail["without_model"]["title"] == DRAFT
    (entry,) = model_calls(store)
    assert (entry.session, entry.purpose, entry.outcome) == ("s", "refine", "ok")
    assert (entry.tokens_out, len(server.requests)) == (50, 1)
    assert "one writer in SQLite" in sent_texts(server)


def test_while_it_is_off_nothing_is_taken_or_sent(choose, server, store):
    refining = choose(model_provider="off")
    submit(refining, "s")
    assert refining.status()["waiting"] == 0
    leave(refining)
    assert (server.requests, model_calls(store)) == ([], ())


@table("wrong", [status(500), status(400), says(b"garbage"), data("no")])
def test_whatever_fails_the_summary_stays_and_is_reported_once(choose, server, services, wrong):
    services.reports.clear()
    server.answer = wrong
    refining = choose()
    submit(refining, "one", "two")
    finish(refining)
    assert refined(services.store) == []
    assert len(services.reports) == 1
    assert "without a model" in services.problems[0]
    assert {each.outcome.partition(":")[0] for each in model_calls(services.store)} == {"failed"}


def test_a_cap_that_is_reached_is_told_once_and_nothing_is_sent(choose, server, store, services):
    refining = choose(model_daily_tokens="100")
    submit(refining, "one", "two", "three")
    finish(refining)
    assert refined(store) == []
    assert (server.requests, len(services.reports)) == ([], 1)
    assert {each.outcome for each in model_calls(store)} == {"refused:cap"}
    assert "model_daily_tokens" in services.problems[0]


def test_the_same_session_again_is_asked_once(choose, server, store):
    released = threading.Event()

    def slow(request):
        released.wait(PATIENCE)
        data()(request)

    server.answer = slow
    refining = choose()
    submit(refining, "first")
    until(lambda: server.requests)
    for word in ("old", "new"):
        submit(refining, "again", excerpts=[f"the {word} excerpt"])
    released.set()
    finish(refining)
    assert [memory.session for memory in refined(store)] == ["first", "again"]
    assert len(server.requests) == 2
    assert "the new excerpt" in sent_texts(server)
    assert "the old excerpt" not in sent_texts(server)


def test_closing_does_not_wait_for_a_model(choose, server, store, services):
    server.answer = silent
    refining = choose(model_seconds="600")
    submit(refining, "one", "two")
    until(lambda: server.requests)
    leave(refining)
    submit(refining, "late")
    assert (refined(store), services.reports) == ([], [])
    assert model_calls(store)[0].tokens_in > 0  # it may have been worked on


def test_a_wrong_setting_is_told_and_seen_to_be_right_again(choose, tmp_path, services):
    key = tmp_path / "key"
    refining = choose(model_provider="anthropic", model_key_env=str(key))
    assert "cannot be read" in refining.status()["problem"]
    submit(refining, "s")
    finish(refining)
    assert "cannot be read" in services.problems[0]
    assert not refining.attempt()["ok"]
    key.write_text("k-1")
    key.chmod(0o600)
    assert refining.attempt()["ok"]


def test_a_try_tells_what_it_took_and_counts(choose, server, store):
    server.answer = data({"word": "walrus"}, usage=(31, 9))
    refining = choose()
    got = refining.attempt()
    assert (got["ok"], got["tokens_in"], got["tokens_out"], got["model"]) == (True, 31, 9, "m")
    (entry,) = model_calls(store)
    assert (entry.purpose, entry.tokens_in) == ("try", 31)
    assert refining.status()["spent_tokens"] == 40
    server.answer = status(401)
    assert "401" in refining.attempt()["error"]
    assert choose(model_provider="off").attempt()["ok"] is False


def test_a_store_that_cannot_write_means_that_nothing_is_asked(choose, server, store, services):
    refining = choose()
    store.close()
    submit(refining, "s")
    finish(refining)
    assert server.requests == []
    assert "without a model" in services.problems[0]
