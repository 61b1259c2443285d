"""Every call of a model is written down, and none is made that the day has no room for, whoever lies or crashes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables import table

from foreword.endpoint import PAUSE, Pause
from foreword.errors import StoreError
from foreword.llm import UNTOLD, Completed, NoAnswer
from foreword.llm.schema import Text
from foreword.llm.spending import DAY, Ledger, Metered, ModelPaused, OverCap
from foreword.models import PENDING_CALL, ModelCall
from foreword.recall.tokens import count

PROMPT, SYSTEM = "walrus " * 50, "be brief"
EXPECTED = count(f"{SYSTEM}\n{PROMPT}")
MOST = 100
ROOM = EXPECTED + MOST  # what one call is taken to cost before it is made


class Clock:
    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        return self.at


class Fake:
    """A model that answers as it is told to; what is paid and random is the one thing that tests make up."""

    provider, name, where = "fake", "f-1", "nowhere"

    def __init__(self, *, used=(10, 5), failure=None) -> None:
        self.used, self.failure, self.calls = used, failure, 0

    def complete(self, prompt, **asked):
        self.calls += 1
        if self.failure:
            raise self.failure
        return Completed("x", "x", *self.used, ms=1.0)

    def close(self) -> None:
        pass


def ledger(store, *, daily=1_000_000, clock=None):
    clock = clock or Clock()
    return Ledger(store=lambda: store, daily=daily, now=clock, pause=Pause(now=clock))


def ask(model, book, *, anyway=False, session="s"):
    metered = Metered(model, ledger=book, purpose="refine", session=session, anyway=anyway)
    return metered.complete(PROMPT, system=SYSTEM, schema=Text(9), most_tokens=MOST, seconds=1)


def outcomes(store):
    return [(each.outcome, each.tokens_in, each.tokens_out) for each in store.stats.model_calls(0.0, 100)][::-1]


# ---- the store


def test_a_call_is_written_down_and_changed_by_its_number(make_store):
    # What is written is read newest first.
    store = make_store()
    kept = [
        store.stats.record_model_call(ModelCall(float(n), "p", "m", "refine", f"s{n}", n, 2 * n, 1.5, "ok"))
        for n in range(5)
    ]
    assert [each.number for each in kept] == [1, 2, 3, 4, 5]
    assert store.stats.model_calls(0.0, 3) == tuple(kept[:1:-1])
    assert store.stats.model_calls(3.0, 10) == tuple(kept[:2:-1])
    assert store.stats.model_tokens(3.0) == 3 * (3 + 4)
    assert (store.stats.model_calls(99.0), store.stats.model_tokens(99.0)) == ((), 0)
    # A call is changed by its number.
    store = make_store()
    entry = store.stats.record_model_call(ModelCall(1.0, "p", "m", "refine", tokens_in=50, tokens_out=50))
    assert store.stats.record_model_call(replace(entry, tokens_in=1, tokens_out=2, outcome="ok")).number == entry.number
    assert outcomes(store) == [("ok", 1, 2)]
    assert store.stats.row_counts()["ledger"] == 1


# ---- what counts


def test_a_call_counts_what_it_told_or_what_was_expected(make_store):
    # A call counts what it told.
    store = make_store()
    book = ledger(store)
    assert ask(Fake(used=(EXPECTED, 7)), book).data == "x"
    assert outcomes(store) == [("ok", EXPECTED, 7)]
    (entry,) = store.stats.model_calls()
    assert (entry.provider, entry.model, entry.purpose, entry.session) == ("fake", "f-1", "refine", "s")
    assert entry.ms >= 0
    # Who tells nothing is counted as expected and who tells too little is not believed.
    store = make_store()
    book = ledger(store)
    ask(Fake(used=(UNTOLD, UNTOLD)), book)
    ask(Fake(used=(0, 0)), book)
    assert outcomes(store) == [("ok", EXPECTED, MOST), ("ok", EXPECTED // 10, 0)]
    # A crash in the middle counts all that was expected.
    store = make_store()
    with pytest.raises(ZeroDivisionError):
        ask(Fake(failure=ZeroDivisionError()), ledger(store))
    assert outcomes(store) == [(PENDING_CALL, EXPECTED, MOST)]


@table(
    ("failure", "counted"),
    [
        (NoAnswer("no", why="late", worked=True), (EXPECTED, MOST)),
        (NoAnswer("no", why="schema", worked=True, used=(EXPECTED, 9)), (EXPECTED, 9)),
        (NoAnswer("no", why="http-429"), (0, 0)),
    ],
)
def test_a_failure_counts_what_it_may_have_cost(store, failure, counted):
    with pytest.raises(NoAnswer):
        ask(Fake(failure=failure), ledger(store))
    assert outcomes(store) == [(f"failed:{failure.why}", *counted)]


# ---- the cap


def test_no_call_is_made_that_the_day_has_no_room_for(make_store):
    # A call that does not fit is not made.
    store = make_store()
    model, book = Fake(), ledger(store, daily=ROOM - 1)
    with pytest.raises(OverCap) as refused:
        ask(model, book)
    assert model.calls == 0
    assert "model_daily_tokens" in refused.value.hint
    assert outcomes(store) == [("refused:cap", 0, 0)]
    assert ask(model, ledger(store, daily=ROOM)).data == "x"
    # Nothing is the most of a cap of zero.
    store = make_store()
    with pytest.raises(OverCap):
        ask(Fake(), ledger(store, daily=0))
    # The cap is of any 24 hours.
    store = make_store()
    clock = Clock()
    model, book = Fake(used=(ROOM, 0)), ledger(store, daily=ROOM, clock=clock)
    ask(model, book)
    clock.at += DAY - 1
    with pytest.raises(OverCap):
        ask(model, book)
    clock.at += 2
    ask(model, book)
    clock.at -= 10 * DAY  # a clock that jumps back gives nothing back
    with pytest.raises(OverCap):
        ask(model, book)
    assert model.calls == 2


def test_the_cap_holds_over_a_restart(make_store, tmp_path):
    clock, model = Clock(), Fake(used=(ROOM, 0))
    first = make_store(tmp_path)
    ask(model, ledger(first, daily=2 * ROOM, clock=clock))
    first.close()
    second = make_store(tmp_path)
    ask(model, ledger(second, daily=2 * ROOM, clock=clock))
    with pytest.raises(OverCap):
        ask(model, ledger(second, daily=2 * ROOM, clock=clock))
    assert model.calls == 2


CRASH = """
import sys, time
from pathlib import Path
from foreword.llm.spending import Ledger, Metered
from foreword.llm.schema import Text
from foreword.store import Store

class Hangs:
    provider, name, where = "fake", "f-1", "nowhere"
    def complete(self, prompt, **asked):
        print("asked", flush=True)
        time.sleep(600)

folder = Path(sys.argv[1])
store = Store(folder / "memory.db", backups=folder / "backups")
book = Ledger(store=lambda: store, daily=10**6)
Metered(Hangs(), ledger=book, purpose="refine").complete("walrus", system="", schema=Text(9), most_tokens=77, seconds=1)
"""


def test_a_worker_that_is_killed_while_it_asks_has_counted_it(make_store, tmp_path):
    worker = subprocess.Popen([sys.executable, "-c", CRASH, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    with worker:
        assert worker.stdout.readline() == "asked\n"
        os.kill(worker.pid, signal.SIGKILL)
    store = make_store(tmp_path)
    ((outcome, _, tokens_out),) = outcomes(store)
    assert (outcome, tokens_out) == (PENDING_CALL, 77)
    assert store.stats.model_tokens(0.0) > 77


def test_many_at_once_do_not_share_the_last_tokens(store):
    model, book = Fake(used=(UNTOLD, UNTOLD)), ledger(store, daily=3 * ROOM)
    refused: list[OverCap] = []

    def try_it() -> None:
        try:
            ask(model, book)
        except OverCap as exc:
            refused.append(exc)

    threads = [threading.Thread(target=try_it) for _ in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (model.calls, len(refused)) == (3, 9)
    assert book.spent() == 3 * ROOM


TOLD = st.integers(0, ROOM) | st.just(UNTOLD)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(TOLD, TOLD, st.floats(0, DAY / 2), st.booleans()), max_size=12), st.integers(0, 6 * ROOM))
def test_no_day_costs_more_than_its_cap_by_more_than_one_call_told_late(shared_store, calls, daily):
    """A call is made only where its estimate fits; only what is told afterwards can pass it, and then none follows."""
    clock = Clock()
    start = clock.at = float(shared_store.stats.row_counts()["ledger"] + 1) * 1e9  # days of its own
    book = ledger(shared_store, daily=daily, clock=clock)
    for text_in, told_out, later, fails in calls:
        before = book.spent()
        model = Fake(used=(text_in, told_out))
        if fails:
            model.failure = NoAnswer("no", why="schema", worked=True, used=(text_in, told_out))
        try:
            ask(model, book, anyway=True)
        except OverCap:
            assert before + ROOM > daily
            assert model.calls == 0
        except NoAnswer:
            assert before + ROOM <= daily
        else:
            assert before + ROOM <= daily
        clock.at += later
    assert all(each.at >= start for each in shared_store.stats.model_calls(start, 100))


def test_what_cannot_be_written_down_is_not_asked(make_store):
    closed = make_store()
    closed.close()
    model = Fake()
    with pytest.raises(StoreError):
        ask(model, ledger(closed))
    assert model.calls == 0


# ---- the pause after a failure


def test_one_that_fails_is_left_alone_for_a_while(make_store):
    store, clock = make_store(), Clock()
    model, book = Fake(failure=NoAnswer("no", why="http-500")), ledger(store, clock=clock)
    with pytest.raises(NoAnswer):
        ask(model, book)
    with pytest.raises(ModelPaused):
        ask(model, book)
    assert model.calls == 1
    assert outcomes(store)[-1] == ("paused", 0, 0)
    model.failure = None
    assert ask(model, book, anyway=True).data == "x"  # the user asked
    assert not book.pause.seconds
    # An endpoint that asks for five minutes gets them.
    model.failure = NoAnswer("no", why="http-429", after=300.0)
    with pytest.raises(NoAnswer):
        ask(model, book)
    clock.at += 299
    with pytest.raises(ModelPaused):
        ask(model, book)
    clock.at += 2
    model.failure = None
    assert ask(model, book).data == "x"
    assert PAUSE < 299
    # A cap says nothing about the model.
    book = ledger(make_store(), daily=0)
    with pytest.raises(OverCap):
        ask(Fake(), book)
    assert not book.pause.seconds
