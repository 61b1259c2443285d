"""Every call of a model is recorded with its cost, and none is made that the daily cap has no room for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from tests.services import model_calls
from tests.tables import table

from foreword.errors import ModelError, StoreError
from foreword.llm import client
from foreword.llm.client import DAY, Answer, NoAnswer, call
from foreword.models import PENDING_CALL, ModelCall
from foreword.recall.tokens import count

PROMPT, SYSTEM = "walrus " * 50, "be brief"
EXPECTED = count(f"{SYSTEM}\n{PROMPT}")
MOST = 100
ROOM = EXPECTED + MOST  # what one call is taken to cost before it is made


class Fake:
    """A model that answers with this usage, or fails."""

    provider, name, where = "fake", "f-1", "nowhere"

    def __init__(self, *, used=(10, 5), failure=None) -> None:
        self.used, self.failure, self.calls = used, failure, 0

    def complete(self, prompt, **more):
        self.calls += 1
        if self.failure:
            raise self.failure
        return Answer({}, *self.used)


def ask(model, store, *, daily=1_000_000):
    limits = {"most_tokens": MOST, "seconds": 1, "daily": daily}
    return call(model, PROMPT, system=SYSTEM, store=store, purpose="refine", session="s", **limits)


def outcomes(store):
    return [(each.outcome, each.tokens_in, each.tokens_out) for each in model_calls(store)][::-1]


def test_calls_are_listed_newest_first_and_changed_by_their_number(store):
    kept = [
        store.stats.record_model_call(ModelCall(float(n), "p", "m", "refine", f"s{n}", n, 2 * n, 1.5, "ok"))
        for n in range(5)
    ]
    assert [each.number for each in kept] == [1, 2, 3, 4, 5]
    assert model_calls(store)[:3] == tuple(kept[:1:-1])
    assert store.stats.model_tokens(3.0) == 3 * (3 + 4)
    store.stats.record_model_call(kept[4]._replace(tokens_in=1, tokens_out=2, outcome="failed:late"))
    assert outcomes(store)[-1] == ("failed:late", 1, 2)


@table(
    ("model", "row"),
    [
        (Fake(), ("ok", 10, 5)),
        (Fake(used=(None, None)), ("ok", EXPECTED, MOST)),
        (Fake(failure=NoAnswer("no", why="late", used=(None, None))), ("failed:late", EXPECTED, MOST)),
        (Fake(failure=NoAnswer("no", why="not-json", used=(7, 9))), ("failed:not-json", 7, 9)),
        (Fake(failure=NoAnswer("no", why="http-429", used=(0, 0))), ("failed:http-429", 0, 0)),
        (Fake(failure=ZeroDivisionError()), (PENDING_CALL, EXPECTED, MOST)),
    ],
)
def test_a_call_counts_its_own_figures_or_the_estimate(store, model, row):
    try:
        ask(model, store)
    except (NoAnswer, ZeroDivisionError):
        assert model.failure
    assert outcomes(store) == [row]


def test_no_call_is_made_that_the_day_has_no_room_for(store, monkeypatch):
    model = Fake(used=(ROOM, 0))
    with pytest.raises(ModelError, match="24 hours") as refused:
        ask(model, store, daily=ROOM - 1)
    assert "model_daily_tokens" in refused.value.hint
    assert (model.calls, outcomes(store)) == (0, [("refused:cap", 0, 0)])
    ask(model, store, daily=ROOM)
    with pytest.raises(ModelError, match="24 hours"):
        ask(model, store, daily=ROOM)
    now = time.time()
    monkeypatch.setattr(client.time, "time", lambda: now + DAY + 60)
    ask(model, store, daily=ROOM)
    monkeypatch.setattr(client.time, "time", lambda: now - 10 * DAY)  # a clock that jumps back gives nothing back
    with pytest.raises(ModelError, match="24 hours"):
        ask(model, store, daily=ROOM)
    assert model.calls == 2


def test_a_call_that_cannot_be_recorded_is_not_made(make_store):
    store = make_store()
    store.close()
    model = Fake()
    with pytest.raises(StoreError):
        ask(model, store)
    assert model.calls == 0


CRASH = """
import sys, time
from pathlib import Path
from foreword.llm.client import call
from foreword.store import Store

class Hangs:
    provider, name, where = "fake", "f-1", "nowhere"
    def complete(self, prompt, **more):
        print("called", flush=True)
        time.sleep(600)

folder = Path(sys.argv[1])
store = Store(folder / "memory.db", backups=folder / "backups")
call(Hangs(), "walrus", system="", most_tokens=77, seconds=1, store=store, daily=10**6, purpose="refine")
"""


def test_a_call_in_a_killed_worker_counts(make_store, tmp_path):
    worker = subprocess.Popen([sys.executable, "-c", CRASH, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    with worker:
        assert worker.stdout.readline() == "called\n"
        os.kill(worker.pid, signal.SIGKILL)
    store = make_store(tmp_path)
    ((outcome, _, tokens_out),) = outcomes(store)
    assert (outcome, tokens_out) == (PENDING_CALL, 77)
    assert store.stats.model_tokens(0.0) > 77
