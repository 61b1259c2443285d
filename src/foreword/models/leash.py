"""A command, its seconds and a lifeline -> its exit code; when one of the three ends, all that it started has ended.

A program of its own (`python -I -S leash.py LIFELINE SECONDS COMMAND...`), because a worker that is killed cannot end
what it started; this one sees its end of the pipe close. Nothing of the package is imported here.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

LOOK_EVERY = 0.02  # seconds
ROUNDS = 500  # of ending; what is forked meanwhile is met in the next one
TIME_IS_UP = 124  # as timeout(1) ends
GONE = 125
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: orphans of what we started become ours, also those that left the group


def main(lifeline: int, seconds: float, command: list[str]) -> int:
    end = time.monotonic() + seconds
    asked_to_leave: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked_to_leave.append(number))
    os.set_inheritable(lifeline, False)
    _adopt_orphans()
    started = os.fork()
    if not started:
        _become(command)
    code = GONE
    while not asked_to_leave:
        pid, status = os.waitpid(started, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status) & 0xFF
            break
        if time.monotonic() > end:
            code = TIME_IS_UP
            break
        if select.select([lifeline], [], [], LOOK_EVERY)[0]:  # nobody writes: it was closed
            break
    _end_all(started)
    return code


def _become(command: list[str]) -> None:
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 - the command of the user's choice, without a shell
    finally:
        os._exit(127)


def _end_all(group: int) -> None:
    for _ in range(ROUNDS):
        _kill(os.killpg, group)
        for child in _children():
            _kill(os.kill, child)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


def _kill(how: Callable[[int, int], None], target: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        how(target, signal.SIGKILL)


def _children() -> list[int]:
    """Our children as Linux tells them; elsewhere the group is all that can be ended."""
    ours, found = os.getpid(), []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if parent == ours:
                found.append(int(name))
    return found


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        try:
            import ctypes

            ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
        except (ImportError, OSError, AttributeError):
            pass


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
