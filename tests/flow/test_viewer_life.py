"""Run `foreword view` as a process: it serves the viewer and closes it, whatever its worker does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from foreword.cli.worker import show
from foreword.paths import Home
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import CLEAN, wait_for
from tests.flow.test_viewer_gate import Open, redeemed


class Command:
    """`foreword view`, as somebody runs it."""

    def __init__(self, home: Home, *words: str, **environ: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "foreword", "view", *words],
            env={**CLEAN, "HOME": str(home.root), "FOREWORD_HOME": str(home.root), **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def url(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def says(self, words: str) -> None:
        """Wait for a line with these words."""
        assert self.process.stderr
        assert any(words in line for line in self.process.stderr), f"it ended without a word of {words!r}"

    def ends(self, *, with_: int = 0) -> tuple[int, str]:
        if with_:
            self.process.send_signal(with_)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out + err


@pytest.fixture
def view(home: Home, start: Callable[[], Client]) -> Iterator[Callable[..., Command]]:
    start()
    made: list[Command] = []

    def begun(*words: str, **environ: str) -> Command:
        made.append(Command(home, *(words or ("--no-browser",)), **environ))
        return made[-1]

    yield begun
    for each in made:
        if each.process.poll() is None:
            each.process.kill()
        each.process.communicate()


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2].partition("/")[0])


def is_open(url: str) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port_of(url)), timeout=2).close()
    except OSError:
        return False
    return True


def test_it_closes_with_its_command(view: Callable[..., Command]) -> None:
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        command = view()
        url = command.url()
        assert is_open(url)
        code, output = command.ends(with_=how)
        assert not is_open(url)
        assert (code, "the viewer is closed" in output) == (0, True)


def test_each_command_has_a_viewer_of_its_own(view: Callable[..., Command]) -> None:
    one, two = view(), view()
    urls = one.url(), two.url()
    assert port_of(urls[0]) != port_of(urls[1])
    one.ends(with_=signal.SIGINT)
    assert not is_open(urls[0])
    assert is_open(urls[1])


def page_of(url: str, home: Home) -> Open:
    """An open page of a command's viewer."""
    server = SimpleNamespace(port=port_of(url))
    return Open(home, Client(home), server, redeemed(url, port_of(url)), "x")  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["killed", "stopped", "replaced"])
def test_a_page_goes_on_when_its_worker_was(view: Callable[..., Command], home: Home, how: str) -> None:
    command = view()
    here = page_of(command.url(), home)
    request = here.asks("/api/projects").raw
    assert here.send(request).status == 200
    before = lifecycle.pid_of(home)
    if how == "killed":
        os.kill(before, signal.SIGKILL)
        wait_for(lambda: lifecycle.pid_of(home) != before)
    else:
        lifecycle.stop(home)
    if how == "replaced":
        lifecycle.start(home)
    assert here.send(request).status == 200
    assert lifecycle.pid_of(home) not in (0, before)
    assert command.ends(with_=signal.SIGINT)[0] == 0


def test_an_agents_shell_opens_no_viewer(view: Callable[..., Command], home: Home) -> None:
    code, output = view(CLAUDECODE="1").ends()
    assert code != 0
    assert "http" not in output


def test_a_port_that_is_taken_is_told(view: Callable[..., Command]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, output = view("--no-browser", "--port", str(taken.getsockname()[1])).ends()
    assert (code, "is not available" in output) == (1, True)


def test_a_page_that_listens_is_told_why_it_ends(view: Callable[..., Command], home: Home) -> None:
    command = view()
    here = page_of(command.url(), home)
    with socket.create_connection(("127.0.0.1", here.port), timeout=10) as line:
        line.sendall(here.asks("/api/changes").raw)
        got = b""
        while b"event: ready" not in got:
            got += line.recv(1 << 16)
        command.process.send_signal(signal.SIGINT)
        assert b"its command ended" in b"".join(iter(lambda: line.recv(1 << 16), b""))


def test_it_closes_when_nobody_looks_who_is_let_in(view: Callable[..., Command], home: Home) -> None:
    home.config.write_text("viewer_idle_minutes = 0.05\n")
    began = time.monotonic()
    command = view()
    here = page_of(command.url(), home)
    forged = here.asks("/api/projects").but(cookie=None).raw
    while command.process.poll() is None:
        with suppress(OSError, ValueError):
            here.send(forged)
        assert time.monotonic() - began < 60
    assert time.monotonic() - began > 2.5
    assert "it was not used for a while" in command.ends()[1]


def test_the_worker_loads_no_web_framework() -> None:
    heavy = (
        "import sys, foreword.worker.routes; print([n for n in ('starlette', 'uvicorn', 'anyio') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- the browser that it starts --------------------------------------------------------------------------------------


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the browser was started with; it does not come back before it is closed."""
    answer = tmp_path / "told"
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$@" > {answer}.new\nmv {answer}.new {answer}\nexec sleep 60 >/dev/null 2>&1\n')
    script.chmod(0o700)
    monkeypatch.setenv("BROWSER", str(script))
    monkeypatch.setattr("webbrowser._tryorder", None)  # it looks at the environment once
    return answer


def test_where_others_could_use_a_link_it_is_not_in_the_list_of_processes(browser: Path, tmp_path: Path) -> None:
    page = tmp_path / "view.html"
    page.write_text("of a command that was killed")
    show("http://127.0.0.1:8000/?token=abc", page=page)
    wait_for(browser.exists)
    assert browser.read_text().strip() == page.as_uri()
    assert page.stat().st_mode & 0o777 == 0o600
    assert 'content="0;url=http://127.0.0.1:8000/?token=abc"' in page.read_text()


def test_the_command_holds_the_viewer_while_its_browser_is_not_back(browser: Path, home: Home, start) -> None:
    start()
    command = subprocess.Popen(
        [sys.executable, "-m", "foreword", "view"],
        env={**CLEAN, "HOME": str(home.root), "FOREWORD_HOME": str(home.root), "BROWSER": os.environ["BROWSER"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_for(browser.exists)
        assert browser.read_text().strip() == (home.run / "view.html").as_uri()
        command.send_signal(signal.SIGINT)
        assert "the viewer is closed" in command.communicate(timeout=20)[1]
        assert not (home.run / "view.html").exists()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGKILL)
        command.wait()
