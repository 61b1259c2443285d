"""The seed of a run, the figures that it prints, and faults that strace injects into system calls."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.flow.conftest import host, project, start

__all__ = ["fault", "host", "project", "start"]

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed: no faults injected")
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root to mount a small or read-only disk")


def counts(share: int, all_of_it: int) -> pytest.MarkDecorator:
    """Try *share* of a suite in `make test`, and *all_of_it* in `make prove`."""
    return pytest.mark.parametrize("count", [share, pytest.param(all_of_it, marks=pytest.mark.prove)])


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Random choices of one run; what fails prints the seed that repeats them."""
    seed = os.environ.get("FOREWORD_SEED", "7")
    print(f"to repeat this: FOREWORD_SEED={seed} make prove ARGS='-k {request.node.originalname}'")
    return random.Random(f"{seed} {request.node.nodeid}")


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Callable[[str, object], None]:
    """Print a figure at the end of the run: `figure("killed workers", 500)`."""
    return lambda name, value: record_property("figure", f"{name}: {value}")


@contextmanager
def fault(pid: int, calls: str, what: str) -> Iterator[subprocess.Popen[str]]:
    """Make system *calls* of a running process fail or kill it, such as `fault(pid, "fdatasync", "error=EIO")`."""
    command = ["strace", "-f", "-qq", "-p", str(pid), "-o", os.devnull, "-e", f"trace={calls}"]
    tracer = subprocess.Popen([*command, "-e", f"inject={calls}:{what}"], stderr=subprocess.PIPE, text=True)
    try:
        for name in os.listdir(f"/proc/{pid}/task"):
            while tracer.poll() is None and not _traced(f"/proc/{pid}/task/{name}/status"):
                pass
        yield tracer
    finally:
        tracer.terminate()
        try:
            tracer.communicate(timeout=10)
        except subprocess.TimeoutExpired:  # it waits for a process that it has killed
            tracer.kill()
            tracer.communicate()


def _traced(status: str) -> bool:
    try:
        with open(status) as file:
            return "TracerPid:\t0\n" not in file.read()
    except FileNotFoundError:
        return True  # this thread has ended
