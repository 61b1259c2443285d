"""Create scratch homes, and end every process that lives in one before it is removed."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from foreword.paths import Home
from foreword.worker import lifecycle

GOES = 20.0  # seconds in which a killed process is gone, on a machine that swaps
LEAVES = 5.0  # and in which one that was asked to leave has left; only a test that fails waits for so long


@dataclass(frozen=True)
class Process:
    """A running process, with the command that started it."""

    pid: int
    command: str


@contextmanager
def scratch_home() -> Iterator[Home]:
    """Yield a prepared home whose socket path is short enough; fail when something still runs in it at the end."""
    with scratch_folder() as root:
        made = Home(root / "h")
        made.prepare()
        yield made


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a folder with a short path; at the end nothing may run in it any more, and it is removed."""
    root = Path(tempfile.mkdtemp(prefix="fw-"))
    try:
        yield root
    finally:
        for _ in until(LEAVES):
            if not processes_in(root):
                break
        left = end_processes(root)
        shutil.rmtree(root)
    assert not left, "the test left processes in its home: " + "; ".join(f"{p.pid} {p.command}" for p in left)


def end_worker(home: Home, *, how: int = signal.SIGKILL) -> None:
    """End the worker of *home*, also one that is just starting, by its id, and return when it is gone."""

    def is_worker(each: Process) -> bool:
        return "foreword.worker" in each.command or each.pid == lifecycle.pid_of(home)

    end_processes(home.root, how=how, which=is_worker)
    # A killed process has no command any more while the kernel still closes its files: its socket would take a
    # connection, and reset it.
    wait_for(lambda: not lifecycle.pid_of(home), seconds=GOES)


def end_processes(
    folder: Path, *, how: int = signal.SIGKILL, which: Callable[[Process], bool] = lambda _: True
) -> list[Process]:
    """End what lives in *folder* (workers, MCP servers, importers), by id, and return it when it is gone."""
    ended: dict[int, Process] = {}

    def none_left() -> bool:
        living = [each for each in processes_in(folder) if which(each)]
        for each in living:
            ended[each.pid] = each
            with suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGCONT)  # a stopped one hears no SIGTERM
                os.kill(each.pid, how)
            with suppress(ChildProcessError):  # our own child stays a zombie until it is waited for
                os.waitpid(each.pid, os.WNOHANG)
        return not living

    wait_for(none_left, seconds=GOES)
    return list(ended.values())


def processes_in(folder: Path) -> list[Process]:
    """Return the processes that live in *folder*: by their environment, their command, or their working folder.

    The lock of a home knows a worker only when it has taken its seat, and the hook that starts it returns long before.
    """
    if not Path("/proc/self/environ").exists():  # macOS: what holds the lock, and no more
        homes = (Home(root) for root in (folder, folder / "h"))
        return [Process(pid, "foreword.worker") for each in homes if (pid := lifecycle.pid_of(each))]
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with suppress(OSError):  # it has ended, or is another user's
            command = _command(pid)
            if pid != os.getpid() and (os.fsencode(folder) in command or _lives_in(folder, pid)):
                found.append(Process(pid, command.replace(b"\0", b" ").decode(errors="replace").strip()))
    return found


def _command(pid: int) -> bytes:
    """Return the command line of a process. In the middle of exec it has none, and who spawned it goes on already."""
    command = b""
    for _ in until(LEAVES):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if command or not Path(f"/proc/{pid}/exe").readlink():  # a zombie and a kernel thread have no program
            break
    return command


def _lives_in(folder: Path, pid: int) -> bool:
    if Path(f"/proc/{pid}/cwd").readlink().is_relative_to(folder):
        return True
    named = b"FOREWORD_HOME=" + os.fsencode(folder)
    lines = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return any(line == named or line.startswith(named + b"/") for line in lines)


def until(seconds: float) -> Iterator[None]:
    """Yield every 20 ms until the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.02)


def wait_for(what: Callable[[], object], *, seconds: float = 20) -> None:
    """Return as soon as *what* is true; fail when it is not in time."""
    for _ in until(seconds):
        if what():
            return
    raise AssertionError(f"it did not happen within {seconds:g} s")


def fact(thing: str) -> str:
    """What a memory may say of *thing*: specific enough to be told with a prompt that asks for it."""
    return f"the {thing} sings in the cellar at night while the miners sleep upstairs"


def asking(thing: str) -> str:
    """A prompt about just that."""
    return f"when does the {thing} sing in the cellar at night?"


def suspend(pid: int) -> None:
    """Stop a process, and return when all of its threads stand still: until then one of them may still answer."""
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")
    until = time.monotonic() + GOES
    while time.monotonic() < until:
        states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks.iterdir()]
        if set(states) == {"T"}:
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} does not stop: {states}")
