"""Run `foreword` commands and workers as processes that are forked from one which has imported them already.

Starting an interpreter and importing the command line takes 0.28 s of a core, the rest of a command 0.03; a worker 0.2
and 0.15. The flow tests run some 700 commands and 300 workers. What is forked has its own environment, folder and
streams, runs the same `main`, and ends as any interpreter does. The forking process has no threads and does nothing
else. Workers that hooks and commands start are started as ever.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from foreword.errors import WorkerError
from foreword.paths import Home
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.scratch import end_processes, scratch_folder

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 100.0  # that a command may take on a busy machine


def foreword(
    *words: str, cwd: str | Path, env: Mapping[str, str], typed: str = "", seconds: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run `foreword WORDS` and return its exit code and what it printed."""
    if "PYTHONPATH" in env:  # of another package than ours
        command = [sys.executable, "-m", "foreword", *words]
        return subprocess.run(
            command, cwd=cwd, env=env, input=typed, capture_output=True, text=True, timeout=seconds, check=False
        )
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(typed.encode())
        stdin.seek(0)
        streams = [each.fileno() for each in (stdin, stdout, stderr)]
        code = _fork({"words": words, "cwd": str(cwd), "env": dict(env)}, streams, seconds=seconds)
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(words, code, stdout.read().decode(), stderr.read().decode())


def start_worker(home: Home, env: Mapping[str, str]) -> None:
    """Start a worker of *home* if there is none, as `life.start` does, and return when it answers."""
    if lifecycle.pid_of(home) or "PYTHONPATH" in env:
        lifecycle.start(home)
        return
    home.prepare()
    with open(os.devnull, "r+b") as nothing, open(home.start_log, "wb") as log:
        streams = [nothing.fileno(), nothing.fileno(), log.fileno()]
        request = {"cwd": str(home.root), "env": {**env, "FOREWORD_HOME": str(home.root)}}
        assert _fork(request, streams, seconds=SECONDS) == 0, home.start_log.read_text()


def _fork(request: Mapping[str, Any], streams: Sequence[int], *, seconds: float) -> int:
    """Have a process forked; the exit code of a command, or 0 when a worker has taken its seat."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(seconds)
        line.connect(_forker())
        raw = json.dumps(request).encode()
        socket.send_fds(line, [len(raw).to_bytes(4, "big")], streams)
        line.sendall(raw)
        return int(line.recv(16) or b"-1")


class Shell:
    """A person at a prompt: a folder, a home, and nothing else in the environment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = Home(root / "h")
        self.folder = root / "shop"
        self.folder.mkdir()
        (self.folder / "pyproject.toml").write_text("")
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "LANG": "C.UTF-8",
            "FOREWORD_HOME": str(self.home.root),
        }

    def run(self, *words: str, typed: str = "", code: int = 0, **environ: str) -> subprocess.CompletedProcess[str]:
        ended = foreword(*words, cwd=self.folder, env={**self.environ, **environ}, typed=typed)
        assert "Traceback" not in ended.stderr
        assert ended.returncode == code, (words, ended.stdout, ended.stderr)
        return ended

    def says(self, *words: str, **more: Any) -> str:
        return self.run(*words, **more).stdout

    def json(self, *words: str, **more: Any) -> Any:
        return json.loads(self.says(*words, "--json", **more))

    def add(self, *words: str, **more: Any) -> str:
        return self.says("add", *words, **more).split()[0]


@contextmanager
def scratch_shell() -> Iterator[Shell]:
    """Yield a shell with a home of its own; whatever its commands started is ended."""
    with scratch_folder() as root:
        yield Shell(root)
        end_processes(root)


@cache
def _forker() -> str:
    """Start the process that forks, for all tests of this one, and return the path of its socket."""
    path = str(Path(tempfile.mkdtemp(prefix="fw-")) / "s")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, "-m", "tests.flow.forked", path]
    # Without our environment: each command is given its own.
    process = subprocess.Popen(command, cwd=ROOT, env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}, **pipes)
    assert process.stdin
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"

    def end() -> None:
        process.communicate()  # it leaves when its stdin is closed
        Path(path).unlink()
        Path(path).parent.rmdir()

    atexit.register(end)
    return path


def main(path: str) -> NoReturn:
    """Fork a command for each that asks, until our stdin is closed."""
    import select

    import typer.main

    from foreword.cli.main import app

    # All commands are imported, and the tree of their options is built, here and once instead of by each.
    typer.main.get_command = cache(typer.main.get_command)
    typer.main.get_command(app)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who answer
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        os.write(1, b"ready\n")
        while True:
            if sys.stdin in select.select([listener, sys.stdin], [], [])[0]:
                os._exit(0)
            line, _ = listener.accept()
            if os.fork():
                line.close()
                continue
            listener.close()
            _answer(line)


def _answer(line: socket.socket) -> NoReturn:
    """Run what is asked for in a child, and answer its exit code; a worker is answered for when it has its seat."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, fds, _, _ = socket.recv_fds(line, 4, 3)
    raw = b""
    while len(raw) < int.from_bytes(size, "big"):
        raw += line.recv(1 << 16)
    request = json.loads(raw)
    pid = os.fork()
    if pid:
        line.sendall(str(_seated(pid, request) if "words" not in request else _ended(pid)).encode())
        os._exit(0)
    line.close()
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    if "words" not in request:
        os.setsid()
        from foreword.worker.__main__ import main as work

        sys.exit(work())
    sys.argv = ["foreword", *request["words"]]
    from foreword.cli.main import main as run

    run()
    sys.exit(0)


def _ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _seated(pid: int, request: Mapping[str, Any]) -> int:
    """Wait until a worker answers in its home, or this one has ended because another was quicker."""
    client = Client(Home(Path(request["env"]["FOREWORD_HOME"])), seconds=SECONDS)
    while True:
        with suppress(WorkerError):  # nobody listens yet
            client.get("/api/health")
            return 0
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)


if __name__ == "__main__":
    main(sys.argv[1])
