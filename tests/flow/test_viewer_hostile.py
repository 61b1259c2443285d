"""The viewer under attack: heads that two readers would read differently, floods, races for a link, odd content.

The shapes of `test_viewer_gate` change what is said; those here change how it is said, or how often.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from foreword.cli.view import _has_browser, show
from foreword.client import Client
from foreword.errors import Conflict
from foreword.http import Request, Response, Server
from foreword.paths import Home
from foreword.routing import answered
from foreword.web.gate import Gate, Refused
from foreword.web.hall import MOST_LINES
from foreword.worker import life
from tests.flow.conftest import CLEAN, end_worker, wait_for
from tests.flow.test_viewer_gate import EVERY, Answer, Open, held, holding, open_, refused, stored


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    with held(str(tmp_path_factory.mktemp("shop"))) as here:
        yield here


# -- heads -----------------------------------------------------------------------------------------------------------

Shape = Callable[[bytes, int], bytes]


def told(old: bytes, new: bytes) -> Shape:
    return lambda raw, _: raw.replace(old, new, 1)


def hosted(host: str) -> Shape:
    return lambda raw, port: raw.replace(f"Host: 127.0.0.1:{port}".encode(), b"Host: " + host.format(port).encode())


HEADS: dict[str, Shape] = {
    "a space before a colon": told(b"Cookie:", b"Cookie :"),
    "a tab before a colon": told(b"Cookie:", b"Cookie\t:"),
    "a folded field": told(b"Sec-Fetch-Site: ", b"Sec-Fetch-Site:\r\n "),
    "a line that begins with a space": told(b"\r\nCookie:", b"\r\n Cookie:"),
    "a line without a colon": told(b"\r\nCookie:", b"\r\nCookie\r\nCookie:"),
    "a field without a name": told(b"\r\nCookie:", b"\r\n: x\r\nCookie:"),
    "a bare line feed in a field": told(b"\r\nCookie:", b"\r\nX: a\nCookie:"),
    "a bare return in a field": told(b"\r\nCookie:", b"\r\nX: a\rCookie:"),
    "a zero byte in a field": told(b"\r\nCookie: ", b"\r\nCookie: \0"),
    "a zero byte in a name": told(b"\r\nCookie:", b"\r\nCookie\0:"),
    "a name of other letters": told(b"\r\nCookie:", b"\r\nCookie\xad:"),
    "two spaces": told(b" HTTP/1.1", b"  HTTP/1.1"),
    "a tab for a space": told(b" HTTP/1.1", b"\tHTTP/1.1"),
    "a version that is none": told(b" HTTP/1.1", b" HTTP/1.12"),
    "the oldest version": told(b" HTTP/1.1", b""),
    "the same length twice": lambda raw, _: raw.replace(
        b"\r\nHost:", b"\r\nContent-Length: 2\r\nContent-Length: 2\r\nHost:"
    ),
    "chunks and a length": told(b"\r\nHost:", b"\r\nTransfer-Encoding: chunked\r\nHost:"),
    "chunks in odd letters": told(b"\r\nHost:", b"\r\ntRANSFER-eNCODING: xchunked\r\nHost:"),
    "chunks folded": told(b"\r\nHost:", b"\r\nTransfer-Encoding:\r\n chunked\r\nHost:"),
    "two sites": told(b"\r\nHost:", b"\r\nsec-fetch-site: cross-site\r\nHost:"),
    "two destinations": told(b"\r\nHost:", b"\r\nsec-fetch-dest: iframe\r\nHost:"),
    "a name behind ours": hosted("127.0.0.1:{}@evil.example"),
    "a user before ours": hosted("evil@127.0.0.1:{}"),
    "a dot behind it": hosted("127.0.0.1.:{}"),
    "a port with zeros": hosted("127.0.0.1:0{}"),
    "a short address": hosted("127.1:{}"),
    "an address as a number": hosted("2130706433:{}"),
    "an escaped address": hosted("%3127.0.0.1:{}"),
    "an address in wide digits": hosted("１２７.0.0.1:{}"),
    "two addresses": hosted("127.0.0.1:{}, evil.example"),
    "a path in the host": hosted("127.0.0.1:{}/"),
    "a name in capitals": hosted("LOCALHOST:{}"),
    "a quoted cookie": lambda raw, port: raw.replace(b"Cookie: foreword-%d=" % port, b'Cookie: foreword-%d="' % port),
    "a prefixed cookie": told(b"Cookie: foreword-", b"Cookie: __Host-foreword-"),
    "a cookie in capitals": told(b"Cookie: foreword-", b"Cookie: FOREWORD-"),
    "a cookie of another path first": lambda raw, port: raw.replace(
        b"Cookie: ", b"Cookie: foreword-%d=someone; " % port
    ),
    "a cookie behind a comma": told(b"Cookie: foreword-", b"Cookie: a=b, foreword-"),
    "an overlong cookie": told(b"Cookie: foreword-", b"Cookie: \xc0\xaf foreword-"),
}


# What one reader understands well enough: a name or a key that is not ours, which the gate refuses.
READ = list(HEADS)[list(HEADS).index("a name behind ours") :]


@pytest.mark.parametrize("name", HEADS)
def test_what_two_readers_would_read_differently_is_refused(opened: Open, name: str) -> None:
    before = stored(opened.home)
    for path, method in EVERY:
        raw = opened.asks(path, method).raw
        changed = HEADS[name](raw, opened.port)
        assert changed != raw
        got = sent(opened, changed)
        assert int(got.split()[1]) == (403 if name in READ else 400), (path, method, got)
        assert b"Set-Cookie" not in got
    assert stored(opened.home) == before


def test_a_head_whose_lines_end_otherwise_has_no_end(opened: Open) -> None:
    before = stored(opened.home)
    for path, method in EVERY:
        assert sent(opened, opened.asks(path, method).raw.replace(b"\r\n", b"\n"), ends=True) == b""
    assert stored(opened.home) == before


@pytest.mark.parametrize("target", ["127.0.0.1:{port}", "//evil.example/now", "http:/now", "\\now", "/now#x", "now"])
def test_a_target_that_is_no_path_of_ours_finds_nothing(opened: Open, target: str) -> None:
    asked = replace(opened.asks("/now"), target=target.format(port=opened.port))
    assert 400 <= opened.send(asked.raw).status < 500


def test_what_comes_behind_a_request_is_never_a_request(opened: Open) -> None:
    before = stored(opened.home)
    change = opened.asks("/api/pin", "POST").raw
    asked = opened.asks("/api/projects")
    for raw in (
        asked.raw + change,
        replace(asked.but(content_length=str(len(change))), body=change).raw,
        replace(asked.but(cookie=None, content_length=str(len(change))), body=change).raw,
        b"\r\n\r\n" + change,
        asked.but(cookie=None).raw + change,
    ):
        assert sent(opened, raw).count(b"HTTP/1.1 ") == 1
    assert stored(opened.home) == before


def sent(here: Open, raw: bytes, *, ends: bool = False) -> bytes:
    """All that is answered until the other end closes; who *ends* what he sends is gone, and hears little."""
    got = b""
    with socket.create_connection(("127.0.0.1", here.port), timeout=20) as line, contextlib.suppress(ConnectionError):
        line.sendall(raw)
        if ends:
            line.shutdown(socket.SHUT_WR)
        while b"text/event-stream" not in got and (part := line.recv(1 << 16)):  # of a stream the beginning is enough
            got += part
    return got


# -- floods ----------------------------------------------------------------------------------------------------------


def test_nobody_without_the_key_makes_the_worker_hold_a_body(opened: Open) -> None:
    size = 12 << 20
    asked = replace(opened.asks("/api/forget", "POST").but(cookie=None, content_length=str(size)), body=b"")

    def flooded(_: int) -> int:
        with socket.create_connection(("127.0.0.1", opened.port), timeout=20) as line:
            taken = 0
            with contextlib.suppress(OSError):
                line.sendall(asked.raw)
                while taken < size:
                    taken += line.send(b"x" * 65_536)
            return taken

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(flooded, range(8)))
    assert max(taken) < size, "the line is closed long before"
    assert opened.send(opened.asks("/api/projects").raw).status == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_token_that_nobody_gave_makes_nobody_take_a_body(opened: Open, method: str) -> None:
    """Who awaits `100 Continue` is told no at once."""
    asked = opened.asks("/").but(cookie=None, content_length="2000000")
    asked = replace(asked, method=method, target="/?token=x")
    refused(opened.send(asked.but(expect="100-continue").raw), method)


def test_a_link_that_was_used_leads_in_whoever_has_the_key_and_nobody_else(opened: Open) -> None:
    asked = replace(opened.asks("/"), target=f"/?token={opened.token()}")
    assert opened.send(asked.but(cookie=None).raw).status == 200
    again = opened.send(asked.raw)
    assert (again.status, "Set-Cookie" in again.fields) == (200, False)
    for shape in (asked.but(cookie=None), asked.but(sec_fetch_site="cross-site"), asked.but(sec_fetch_dest="iframe")):
        refused(opened.send(shape.raw), shape)


def test_a_refused_change_with_a_body_on_its_way_hears_why(opened: Open) -> None:
    body = b"{" + b" " * 300_000 + b"}"
    asked = replace(opened.asks("/api/forget", "POST").but(cookie=None, content_length=str(len(body))), body=body)
    for _ in range(10):
        refused(opened.send(asked.raw), "a body behind a refused head")


MANY = 1000
SLOW: dict[str, Callable[[Open], bytes]] = {
    "say nothing": lambda _: b"",
    "drip their head": lambda _: b"GET /now HTTP/1.1\r\n",
    "announce a body that does not come": lambda here: replace(here.asks("/api/pin", "POST"), body=b"").raw,
    "are refused and stay": lambda here: here.asks("/api/pin", "POST").but(cookie=None).raw[:-5],
    "never take their answer": lambda here: replace(here.asks("/static/"), target="/static/style.css").raw,
}


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Enough for a thousand connections of our own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * MANY)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("descriptors")
@pytest.mark.parametrize("how", SLOW.values(), ids=list(SLOW))
def test_a_thousand_who_are_slow_keep_neither_page_nor_hooks(opened: Open, how: Callable[[Open], bytes]) -> None:
    said = how(opened)
    with contextlib.ExitStack() as stack:
        for _ in range(MANY):
            line = stack.enter_context(socket.socket())
            line.settimeout(10)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.connect(("127.0.0.1", opened.port))
            with contextlib.suppress(OSError):  # it gave way already
                line.sendall(said)
        for _ in range(20):
            assert opened.send(opened.asks("/api/projects").raw).status == 200
        assert Client(opened.home, seconds=5).get("/api/projects")
        assert lines_of(opened) <= MOST_LINES + 1, "and there is a bound to what they cost"


def lines_of(here: Open) -> int:
    """The open ends of connections to the viewer's port, ours and those that the worker holds for them."""
    table = Path("/proc/net/tcp")
    if not table.exists():
        return 0
    rows = [row.split() for row in table.read_text().splitlines()[1:]]
    return sum(1 for row in rows if row[1].endswith(f":{here.port:04X}") and row[3] == "01")


def test_a_thousand_requests_one_behind_the_other_leave_nothing_open(opened: Open) -> None:
    asked = opened.asks("/static/").raw
    assert opened.send(asked).status == 200
    before = held_open(opened)
    for _ in range(MANY):
        assert opened.send(asked).status == 200
    wait_for(lambda: held_open(opened) <= before)


def held_open(here: Open) -> int:
    folder = Path(f"/proc/{life.pid_of(here.home)}/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def test_a_body_that_is_too_long_is_refused_in_words(opened: Open) -> None:
    body = b'{"prompt": "' + b"x" * (10 << 20) + b'"}'
    asked = replace(opened.asks("/api/try", "POST").but(content_length=str(len(body))), body=body)
    got = opened.send(asked.raw)
    assert got.status == 400
    assert b"at most" in got.body


def test_a_listener_that_nothing_wakes_is_closed_all_the_same(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        server = Server(listener, lambda _: Response(status=200, body=b"{}"), threads=3, wakes=False)
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(tmp_path / "s"))
            line.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert b"200 OK" in _until(line, b"{}")
        server.close()
        assert not [each for each in threading.enumerate() if each.name.startswith("http-")]


def test_however_many_pages_listen_the_viewer_still_answers_and_their_threads_come_free(opened: Open) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", opened.port), timeout=10))
            line.sendall(opened.asks("/api/live").raw)
        assert opened.send(opened.asks("/api/projects").raw).status == 200
        line = stack.enter_context(socket.create_connection(("127.0.0.1", opened.port), timeout=10))
        line.sendall(opened.asks("/api/live").raw)
        assert b"event: ready" in _until(line, b"event: ready"), "the latest listens"
    began = threads(opened)
    for _ in range(30):  # more than there are threads, one behind the other
        assert opened.send(opened.asks("/api/projects").raw).status == 200
    wait_for(lambda: threads(opened) <= began)  # the worker has others, which come and go


def _until(line: socket.socket, word: bytes) -> bytes:
    got = b""
    while word not in got and (part := line.recv(1 << 16)):
        got += part
    return got


def threads(here: Open) -> int:
    tasks = Path(f"/proc/{life.pid_of(here.home)}/task")
    return len(list(tasks.iterdir())) if tasks.exists() else 0


def test_a_viewer_that_was_open_leaves_no_thread(home: Home, start) -> None:
    client = start()

    def looked() -> Open:
        here = open_(home)
        for path, method in EVERY:
            if method == "GET" and path != "/api/live":
                here.send(here.asks(path).raw)
        with socket.create_connection(("127.0.0.1", here.port), timeout=10) as line:
            line.sendall(here.asks("/api/live").raw)
            _until(line, b"event: ready")
            client.post("/api/view", {"do": "close"})
        return here

    here = looked()
    time.sleep(2)  # who waits for a commit looks up every second
    first = threads(here)
    for _ in range(3):
        looked()
        wait_for(lambda: threads(here) <= first + 1)  # some are made when they are first needed; a viewer has eighteen


# -- links -----------------------------------------------------------------------------------------------------------


def test_of_all_who_race_for_a_link_one_gets_in_while_new_ones_are_made() -> None:
    gate = Gate(8000)
    fields = {"host": "127.0.0.1:8000"}
    stop = threading.Event()

    def making() -> None:
        while not stop.is_set():
            gate.link()

    maker = threading.Thread(target=making)
    maker.start()
    try:
        for _ in range(60):
            token = gate.link().partition("token=")[2]
            ready = threading.Barrier(8)

            def tried(_: int, token: str = token, ready: threading.Barrier = ready) -> bool:
                ready.wait()
                try:
                    return bool(gate.opened(Request("GET", "/", {"token": token}, b"", fields)))
                except Refused:
                    return False

            with ThreadPoolExecutor(8) as pool:
                assert sum(pool.map(tried, range(8))) == 1
    finally:
        stop.set()
        maker.join()


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the browser was started with; it is not back before it is closed."""
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


def test_the_command_holds_the_viewer_while_its_browser_is_not_back(browser: Path, home: Home, start) -> None:
    client = start()
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
        with contextlib.suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGKILL)
        command.wait()


def test_without_a_screen_no_browser_of_the_terminal_takes_the_link() -> None:
    assert not _has_browser({}, platform="linux")
    assert _has_browser({"DISPLAY": ":0"}, platform="linux")
    assert _has_browser({}, platform="darwin")


# -- content ---------------------------------------------------------------------------------------------------------

ODD = (
    "a/b",
    "a?b#c",
    "%2e%2e",
    "a%2fb",
    "\u202eid",
    "z\u200bw",
    "a&b=c+d",
    " a ",
    "é" * 40,
    "'\"<b>",
    "-",
    "a,b",
    "..",
)


def test_every_odd_name_leads_to_its_own(opened: Open, tmp_path: Path) -> None:
    project = tmp_path / "a b?#%&+é\u202ex"
    project.mkdir()
    (project / "pyproject.toml").write_text("")
    for each in ODD:
        told = {"kind": "note", "title": f"of {each}", "tags": [each], "files": [each], "project_path": str(project)}
        opened.client.post("/api/memories", told)
        payload = {"session_id": each, "cwd": str(project), "prompt": f"do {each}"}
        opened.client.post("/api/events", {"host": "claude-code", "event": "UserPromptSubmit", "payload": payload})
    for each in ODD:
        assert asked(opened, "/api/sessions/" + quote(each, safe=""))["session"]["id"] == each
        shown = asked(opened, "/api/memories?" + urlencode({"q": f"of {each}", "project": f"dir:{project}"}))[
            "memories"
        ]
        assert all(asked(opened, "/api/memories/" + one["id"])["memory"]["id"] == one["id"] for one in shown)


def test_what_cannot_be_told_as_json_is_an_answer_all_the_same() -> None:
    routes = {
        "/nan": {"GET": lambda _: {"at": float("inf"), "in": [float("nan"), 1]}},
        "/x": {"GET": lambda _: {"a": b""}},
    }
    got = [answered(routes, Request("GET", path, {}, b""), tell=print, hint="") for path in ("/nan", "/x")]
    assert [each.status for each in got] == [200, 500]
    told = json.loads(got[0].body, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (told["at"], told["in"]) == (None, [None, 1])


def asked(here: Open, target: str) -> dict[str, Any]:
    got = here.send(replace(here.asks("/api/projects"), target=target).raw)
    assert got.status == 200, (target, got.body)
    return json.loads(got.body)


# -- a store in trouble ----------------------------------------------------------------------------------------------

SAID = "zqxjkwvb whispers"


def test_a_locked_store_is_looked_at_and_refuses_changes_in_words(opened: Open) -> None:
    lock = sqlite3.connect(opened.home.database, isolation_level=None)
    with contextlib.closing(lock):
        lock.execute("BEGIN EXCLUSIVE")
        for path, method in EVERY:
            if (
                method == "GET"
                and path.startswith("/api/")
                and path not in ("/api/live", "/api/try")
                and path[-1] != "/"
            ):
                got = opened.send(opened.asks(path).raw)
                assert got.status == 200, (path, got)
        got = opened.send(opened.asks("/api/pin", "POST").raw)
        assert got.status == 503
        assert b"locked" in got.body
        lock.execute("ROLLBACK")
    assert opened.send(opened.asks("/api/pin", "POST").raw).status == 200


@pytest.fixture
def small() -> Iterator[Home]:
    """A home on a disk of its own, which can be filled."""
    root = Path(tempfile.mkdtemp(prefix="fw-"))
    home = Home(root=root / "h")
    home.root.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(home.root)], check=False)
    if mounted.returncode:
        shutil.rmtree(root)
        pytest.skip("cannot mount a tmpfs here")
    home.prepare()
    yield home
    end_worker(home)
    subprocess.run(["umount", str(home.root)], check=True)
    shutil.rmtree(root)


def test_a_full_disk_is_looked_at_and_changes_are_refused_whole_until_there_is_room(small: Home, monkeypatch) -> None:
    monkeypatch.setenv("FOREWORD_HOME", str(small.root))
    life.start(small)
    here = open_(small)
    with holding(here):
        is_looked_at_and_refuses_changes(here)


def is_looked_at_and_refuses_changes(here: Open) -> None:
    small = here.home
    done = here.client.post(f"/api/memories/{here.id}", {"title": "before"})
    changes: dict[str, dict[str, Any]] = {
        f"/api/memories/{here.id}": {"title": "in other words", "body": "w" * 9000},
        "/api/pin": {"id": here.id},
        "/api/supersede": {"old": here.id, "title": "instead " + "w" * 9000, "kind": "note"},
        "/api/undo": {"entry": done["entry"]["number"]},
        "/api/review": {"do": "promote", "id": here.id, "as": "decision"},
        "/api/forget": {"ids": [here.id], "yes": True},
    }

    def change(path: str) -> Answer:
        body = json.dumps(changes[path]).encode()
        asked = replace(here.asks("/api/pin", "POST").but(content_length=str(len(body))), target=path, body=body)
        return here.send(asked.raw)

    before = stored(small)
    ballast = small.root / "ballast"
    with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    for path in ("/api/projects", "/api/memories", "/api/facets", "/api/timeline", "/api/now", "/api/health", "/now"):
        assert here.send(here.asks(path).raw).status == 200, path
    for path in changes:
        got = change(path)
        assert got.status == 503, (path, got.body)
        assert b"free some space" in got.body, path
    assert stored(small) == before
    ballast.unlink()
    for path in ("/api/pin", "/api/undo", "/api/forget"):
        assert change(path).status == 200, path


def test_a_trial_leaves_no_byte_of_its_prompt_anywhere_also_when_it_fails(opened: Open) -> None:
    key = asked(opened, "/api/projects")["projects"][0]["key"]
    for told in (
        {"project": key},
        {"project": "nowhere"},
        {"project": key, "budget": -1},
        {"project": key, "moment": SAID},
    ):
        body = json.dumps({"prompt": f"{SAID} of checkout.py and {SAID}", **told}).encode()
        tried = replace(opened.asks("/api/try", "POST").but(content_length=str(len(body))), body=body)
        assert opened.send(tried.raw).status in (200, 400, 404)
    searched = opened.asks("/api/projects")
    opened.send(replace(searched, target="/api/memories?q=" + quote(SAID)).raw)
    held = [path for path in opened.home.root.rglob("*") if path.is_file() and SAID[:8].encode() in path.read_bytes()]
    assert held == []


def test_a_home_that_is_taken_away_closes_the_viewer(home: Home, start) -> None:
    start()
    here = open_(home)
    pid = life.pid_of(home)
    shutil.rmtree(home.root)
    wait_for(lambda: not _listens(here.port), seconds=30)
    wait_for(lambda: not Path(f"/proc/{pid}").exists() or _gone(pid), seconds=30)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False


def _gone(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return not Path(f"/proc/{pid}").exists()


def test_a_port_that_somebody_has_is_told_and_the_next_one_opens(home: Home, start) -> None:
    client = start()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Conflict, match="cannot be had"):
            client.post("/api/view", {"do": "open", "port": taken.getsockname()[1]})
    assert client.get("/api/view")["open"] is False
    assert client.post("/api/view", {"do": "open"})["port"]
