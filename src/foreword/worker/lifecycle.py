"""Keep exactly one worker in a home: its lock and socket, how it is started, stopped and replaced."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from foreword.errors import WorkerError
from foreword.paths import ARENAS, Home, home, socket_problem, worker_command

BACKLOG = 512  # hooks that may wait while the worker is still importing
PATIENCE = 10.0  # seconds that a command waits for a worker to come or go


class LockTaken(Exception):
    """Another worker runs in this home."""


class WorkerLock:
    """The lock and the socket of a home's only worker."""

    def __init__(self, home: Home, listener: socket.socket) -> None:
        self.home = home
        self.listener = listener
        self._socket = _identity(home.socket)

    def is_ours(self) -> bool:
        """Return whether the socket at our path is ours: a home may be removed and made again."""
        return _identity(self.home.socket) == self._socket

    @classmethod
    @contextmanager
    def taken(cls) -> Iterator[WorkerLock]:
        """Take the lock, or raise LockTaken; at the end the socket is removed before the lock is released."""
        where = home(os.environ)
        where.prepare()
        if problem := socket_problem(where):
            raise WorkerError(problem, hint="set FOREWORD_HOME to a short path in a folder of your own")
        lock = os.open(where.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _locked(lock):
            os.close(lock)
            raise LockTaken
        os.truncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        os.umask(0o077)
        os.chdir(where.root)
        where.socket.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # Under its own name only when it listens: between the two, whoever finds it would be refused.
            unready = where.socket.with_name("new")
            unready.unlink(missing_ok=True)
            listener.bind(str(unready))
            unready.chmod(0o600)
            listener.listen(BACKLOG)
            unready.rename(where.socket)
            worker_lock = cls(where, listener)
            try:
                yield worker_lock
            finally:
                if worker_lock.is_ours():
                    where.socket.unlink()
        finally:
            listener.close()
            os.close(lock)

    def replace_process(self) -> None:
        """Run the package as it is installed now, in this process."""
        command = worker_command()
        os.execv(command[0], command)  # noqa: S606 - our own command


def _identity(path: Path) -> tuple[int, int]:
    try:
        here = path.stat()
    except OSError:
        return 0, 0
    return here.st_dev, here.st_ino


def pid_of(home: Home) -> int:
    """Return the process id of the worker of *home*; 0 where none runs."""
    try:
        lock = os.open(home.lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.pread(lock, 20, 0).strip() or 0)
    finally:
        os.close(lock)
    return 0


def start(home: Home) -> None:
    """Start a worker if none runs, and return when it listens."""
    if problem := socket_problem(home):
        raise WorkerError(problem, hint="set FOREWORD_HOME to a short path in a folder of your own")
    home.prepare()
    command, errors, child = worker_command(), home.start_log, 0
    streams = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, str(errors), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ]
    environ = {**ARENAS, **os.environ, "FOREWORD_HOME": str(home.root)}
    for _ in _tries():
        if pid_of(home) and _listens(home.socket):
            return
        if not child:  # in a process session of its own
            child = os.posix_spawn(command[0], command, environ, file_actions=streams, setsid=True)
            continue
        try:
            ended, status = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:
            ended, status = child, 0
        if ended and status:
            last = errors.read_text(errors="replace").strip().splitlines()
            raise WorkerError(f"the worker could not start: {last[-1] if last else status}", hint=f"see {errors}")
    raise WorkerError("the worker did not start in time", hint=f"see {home.log}")


def _listens(path: Path) -> bool:
    """Return whether a socket has a listener; one that a killed worker left refuses."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:
            return True  # so many wait there already
    return True


def stop(home: Home) -> bool:
    """Stop the worker, and return whether there was one."""
    pid = pid_of(home)
    if not pid:
        return False
    with suppress(ProcessLookupError):  # it left by itself
        os.kill(pid, signal.SIGTERM)
    for _ in _tries():
        if pid_of(home) != pid:
            return True
    raise WorkerError(f"the worker (process {pid}) does not leave", hint=f"end it: kill -9 {pid}; nothing is lost")


def _locked(lock: int) -> bool:
    """Return whether the lock is ours; tried for a moment, because `pid_of` holds it for microseconds."""
    for _ in range(5):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return True
    return False


def _tries() -> Iterator[None]:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        yield
        time.sleep(0.02)
