"""A real session of Claude Code while the worker is killed, hangs or crashes -> it answers, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.clients.fake_model import Say, Use
from tests.clients.run import PipedConversation
from tests.e2e.steps import install
from tests.e2e.trial import Trial, until, wait_for
from tests.scratch import suspend

PROMPTS = 3
CRASHES = 4.0  # seconds between prompts of a session that goes on for longer than hooks wait for a next start
MOST_STARTS = 6  # a minute, of a worker that dies every time


def away(trial: Trial) -> str:
    """Killed before every prompt: whatever comes to take its place is killed too."""
    install(trial)
    return _session(trial, "killed", trial.end_worker)


def hung(trial: Trial) -> str:
    """Stopped before every prompt: it holds its socket, and never answers."""

    def stop() -> None:
        pid = wait_for(trial.worker)
        suspend(pid)

    try:
        return _session(trial, "hung", stop, before_end=lambda: _go_on(trial))
    finally:
        _go_on(trial)


def crashing(trial: Trial) -> str:
    """Dies at every start, which hooks try again and again, but not too often."""
    trial.end_worker()
    in_the_way = trial.memory.run / "new"  # where it would make its socket
    in_the_way.mkdir()
    with _counting(trial) as starts:
        what = _session(trial, "crashed", trial.end_worker, pause=CRASHES, before_end=in_the_way.rmdir)
    most = max(sum(0 <= other - each < 60 for other in starts.values()) for each in starts.values())
    assert 1 < most <= MOST_STARTS, f"{most} starts in a minute"
    return f"{what}; {most} starts in a minute"


@contextmanager
def _counting(trial: Trial) -> Iterator[dict[str, float]]:
    """The workers that were started meanwhile, each with its time: every one writes its id into the lock."""
    starts: dict[str, float] = {}
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            with suppress(OSError):
                if pid := trial.memory.lock.read_text().strip():
                    starts.setdefault(pid, time.monotonic())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield starts
    finally:
        over.set()
        looking.join()


STEPS: dict[str, Callable[[Trial], str]] = {"worker killed": away, "worker hung": hung, "worker crashing": crashing}


def _session(
    trial: Trial,
    word: str,
    hurt: Callable[[], None],
    *,
    pause: float = 0.0,
    before_end: Callable[[], object] = lambda: None,
) -> str:
    """A session in which the worker is hurt before each prompt; all that was said is there in the end."""
    prompts = [f"Please remember sentence {number} of the {word} worker." for number in range(1, PROMPTS + 1)]
    trial.end_worker()
    if word == "hung":
        trial.foreword("worker", "start")
    hurt()
    conversation = trial.talk()
    assert isinstance(conversation, PipedConversation)
    began = time.monotonic()
    for prompt in prompts:
        hurt()
        time.sleep(pause)
        trial.say(prompt, Use("Bash", {"command": f"echo {word}"}), Say(f"Done: {prompt}"))
        messages = [json.loads(line) for line in conversation.answers[-1].out.splitlines()]
        results = [line for line in messages if line["type"] == "result"]
        assert [line["is_error"] for line in results] == [False], f"no answer, or an error: {results}"
    took = time.monotonic() - began
    session = conversation.session
    last = conversation.close()
    trial.log("(the end)", last)
    trial.conversation = None
    assert last.code == 0, f"Claude Code left with {last.code}: {last.err[-300:]!r}"
    assert not last.err.strip(), f"it wrote to stderr: {last.err[-300:]!r}"
    spooled = _spooled(trial.memory.spool)
    before_end()
    trial.foreword("worker", "start")  # which stores what waits
    missing, uses = prompts, 0
    for _ in until(30):  # hooks of tool uses may still run when their prompt is answered
        kept = trial.stored_payloads(session)
        missing = [prompt for prompt in prompts if prompt not in kept or f"Done: {prompt}" not in kept]
        uses = sum(f"echo {word}" in json.dumps(event) for event in json.loads(kept))
        if not missing and uses >= PROMPTS:
            break
    assert not missing, f"lost: {missing}"
    assert uses >= PROMPTS, f"{PROMPTS - uses} uses of a tool are lost"
    # The end of the session may be told a moment later, to a worker that looks every second.
    assert wait_for(lambda: not _spooled(trial.memory.spool)), "the spool was not taken in"
    return f"{PROMPTS} prompts answered in {took:.1f} s, {spooled} bytes waited in the spool, all kept"


def _spooled(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def _go_on(trial: Trial) -> None:
    if pid := trial.worker():
        os.kill(pid, signal.SIGCONT)
