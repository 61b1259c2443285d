"""What every store promises to those who wait for an agent's sake, while others only look."""

from __future__ import annotations

import threading
from contextlib import nullcontext

from foreword.models import Memory
from foreword.store.database import ASIDE, READERS
from foreword.store.turns import Turns, aside

LONG = 30.0  # seconds: what never happens is told, and nothing waits so long


def held(turns, how, *, threads):
    """So many threads that try to have a turn, how many got one, and what ends it."""
    inside, over = threading.Semaphore(0), threading.Event()

    def hold():
        with how(), turns.taken():
            inside.release()
            over.wait(LONG)

    every = [threading.Thread(target=hold, daemon=True) for _ in range(threads)]
    for each in every:
        each.start()
    return every, inside, over


def test_those_who_look_aside_take_no_turn_of_the_others():
    turns = Turns(READERS, most_aside=ASIDE)
    looking, got, over = held(turns, aside, threads=ASIDE + 3)
    for _ in range(ASIDE):
        assert got.acquire(timeout=LONG)
    assert not got.acquire(timeout=0.05)  # more than these wait for each other
    hooks, served, done = held(turns, nullcontext, threads=READERS)
    for _ in range(READERS):
        assert served.acquire(timeout=LONG)
    over.set()
    done.set()
    for each in (*looking, *hooks):
        each.join(LONG)


def test_who_has_a_turn_takes_no_second_one():
    turns = Turns(1, most_aside=1)
    for how in (aside, nullcontext):
        with how(), turns.taken(), turns.taken():
            pass
        with turns.taken():  # and gave it back
            pass


def test_many_who_look_at_once_are_all_answered(store):
    [kept] = store.memories.put([Memory("note", "walrus", project="p")])
    found = []

    def look():
        with aside():
            found.extend(store.memories.get([kept.id]))

    every = [threading.Thread(target=look) for _ in range(5 * ASIDE)]
    for each in every:
        each.start()
    for each in every:
        each.join(LONG)
    assert found == [kept] * len(every)
