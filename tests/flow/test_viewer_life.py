"""Run `foreword view` as a process: it opens the viewer, holds it and closes it, whatever its worker does."""

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

import pytest

from foreword.cli.view import _has_browser, show
from foreword.errors import Conflict
from foreword.paths import Home
from foreword.worker import lifecycle
from foreword.worker.client import Client
from tests.flow.conftest import CLEAN, end_worker, wait_for
from tests.flow.test_viewer_gate import Open, open_, redeemed


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
        code, said = command.ends(with_=how)
        assert not is_open(url)
        assert (code, "the viewer is closed" in said) == (0, True)


def test_two_commands_hold_one_viewer_and_it_closes_with_the_last_or_by_a_third(view: Callable[..., Command]) -> None:
    one, two = view(), view()
    urls = one.url(), two.url()
    assert urls[0] != urls[1]
    assert redeemed(urls[0], port_of(urls[0])) == redeemed(urls[1], port_of(urls[0]))
    one.ends(with_=signal.SIGINT)
    assert is_open(urls[1])
    assert "closed" in view("--close").ends()[1]
    assert not is_open(urls[1])
    code, said = two.ends()
    assert (code, "asked to close" in said) == (0, True)
    assert "no viewer is open" in view("--close").ends()[1]


@pytest.mark.parametrize("how", ["killed", pytest.param("killed twice", marks=pytest.mark.long), "replaced"])
def test_a_page_goes_on_when_its_worker_was(view: Callable[..., Command], home: Home, how: str) -> None:
    command = view()
    url = command.url()
    here = Open(home, Client(home), port_of(url), redeemed(url, port_of(url)), "", "x")
    asked = here.asks("/api/projects").raw
    assert here.send(asked).status == 200
    before = lifecycle.pid_of(home)
    if how.startswith("killed"):  # this one: the command starts the next at once
        os.kill(before, signal.SIGKILL)
    if how == "killed twice":
        seen = [0]
        wait_for(lambda: seen.append(lifecycle.pid_of(home)) or seen[-1] not in (0, before))
        os.kill(seen[-1], signal.SIGKILL)
    if how == "replaced":  # as any command does it that finds a worker of an older build
        lifecycle.stop(home)
        lifecycle.start(home)
    command.says("a page that is open goes on")
    assert here.send(asked).status == 200
    assert lifecycle.pid_of(home) != before
    assert command.ends(with_=signal.SIGINT)[0] == 0
    assert not is_open(url)


def test_an_agents_shell_opens_no_viewer(view: Callable[..., Command], home: Home) -> None:
    code, said = view(CLAUDECODE="1").ends()
    assert code != 0
    assert "http" not in said
    assert Client(home).get("/api/view")["open"] is False


def test_a_worker_that_leaves_takes_its_viewer_along_and_the_command_says_so(view, home: Home) -> None:
    command = view()
    url = command.url()
    lifecycle.stop(home)
    assert not is_open(url)
    code, said = command.ends()
    assert code != 0
    assert "foreword view" in said


def test_where_the_port_is_taken_meanwhile_the_command_prints_another_link(view, home: Home) -> None:
    command = view()
    port = port_of(command.url())
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        command.process.send_signal(signal.SIGSTOP)  # until the port is taken
        end_worker(home)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        command.process.send_signal(signal.SIGCONT)
        command.says("a page that is open is at its end")
        assert port_of(command.url()) != port
        with pytest.raises(Conflict, match=r"cannot be had|is open"):
            Client(home).post("/api/view", {"do": "open", "port": port})


@pytest.mark.long
def test_it_closes_some_seconds_after_a_command_that_was_killed(view: Callable[..., Command], home: Home) -> None:
    command = view()
    url = command.url()
    command.ends(with_=signal.SIGKILL)
    wait_for(lambda: not is_open(url), seconds=30)
    assert "its command ended" in home.log.read_text()


def test_who_may_open_it_again_is_told_so(home: Home, start: Callable[[], Client]) -> None:
    client = start()
    holder = client.post("/api/view", {"do": "open"})["holder"]
    held, leave = ({"do": what, "holder": holder} for what in ("hold", "leave"))
    client.post("/api/view", leave)
    told = client.post("/api/view", held)
    assert (told["open"], told["again"]) == (False, True), "a command that was only suspended"
    client.post("/api/view", {"do": "open"})
    client.post("/api/view", {"do": "close"})
    told = client.post("/api/view", held)
    assert (told["open"], told["again"], told["why"]) == (False, False, "it was asked to close")
    assert client.post("/api/view", leave)["open"] is False


def test_a_page_that_listens_is_told_why_it_ends_unless_the_worker_is_replaced(home: Home, start) -> None:
    client: Client = start()
    told = {}
    for how in ("close", "leave", "stop"):
        here = open_(home)
        with socket.create_connection(("127.0.0.1", here.port), timeout=10) as line:
            line.sendall(here.asks("/api/live").raw)
            got = b""
            while b"event: ready" not in got:
                got += line.recv(1 << 16)
            if how == "stop":
                lifecycle.stop(home)
            else:
                client.post("/api/view", {"do": how, "holder": here.holder})
            told[how] = b"".join(iter(lambda: line.recv(1 << 16), b""))
    assert b"it was asked to close" in told["close"]
    assert b"its command ended" in told["leave"]
    assert b"closed" not in told["stop"]


@pytest.mark.long
def test_it_closes_when_nobody_looks_who_is_let_in_and_only_then_the_worker_leaves(home: Home, start) -> None:
    home.config.write_text("viewer_idle_minutes = 0.05\nworker_idle_minutes = 0.01\n")
    client: Client = start()
    began = time.monotonic()
    here = open_(home)
    forged = here.asks("/api/projects").but(cookie=None).raw

    def closed() -> bool:
        with suppress(OSError, ValueError):
            here.send(forged)
        return not client.post("/api/view", {"do": "hold", "holder": here.holder})["open"]

    wait_for(closed, seconds=30)
    assert time.monotonic() - began > 2.5, "three seconds, in which the worker had nothing else to do"
    wait_for(lambda: not lifecycle.pid_of(home))


# -- the browser that it starts --------------------------------------------------------------------------------------


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the browser was started with; it does not come back before it is closed."""
    told = tmp_path / "told"
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$@" > {told}.new\nmv {told}.new {told}\nexec sleep 60 >/dev/null 2>&1\n')
    script.chmod(0o700)
    monkeypatch.setenv("BROWSER", str(script))
    monkeypatch.setattr("webbrowser._tryorder", None)  # it looks at the environment once
    return told


def test_where_others_could_use_a_link_it_is_not_in_the_list_of_processes(browser: Path, tmp_path: Path) -> None:
    page = tmp_path / "view.html"
    page.write_text("of a command that was killed")
    show("http://127.0.0.1:8000/?token=abc", page=page)
    wait_for(browser.exists)
    assert browser.read_text().strip() == page.as_uri()
    assert page.stat().st_mode & 0o777 == 0o600
    assert 'content="0;url=http://127.0.0.1:8000/?token=abc"' in page.read_text()
    assert not _has_browser({}, platform="linux"), "without a screen no browser of the terminal takes the link"
    assert _has_browser({"DISPLAY": ":0"}, platform="linux")


def test_the_command_holds_the_viewer_while_its_browser_is_not_back(browser: Path, home: Home, start) -> None:
    client: Client = start()
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
        assert "?token=" in browser.read_text()
        command.send_signal(signal.SIGINT)
        assert "the viewer is closed" in command.communicate(timeout=20)[1]
        assert client.get("/api/view")["open"] is False
    finally:
        with suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGKILL)
        command.wait()
