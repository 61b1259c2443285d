"""The viewer under attack: heads that two readers would read differently, floods, races for a link, odd content.

The shapes of `test_viewer_gate` change what is said; those here change how it is said, or how often.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from foreword.client import Client
from foreword.http import Request
from foreword.paths import Home
from foreword.web.gate import Gate, Refused
from foreword.worker import life
from tests.flow.conftest import end_worker, wait_for
from tests.flow.test_viewer_gate import EVERY, Open, open_, refused, stored


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """One viewer for all that only try to get in."""
    root = Path(tempfile.mkdtemp(prefix="fw-"))
    home = Home(root=root / "h")
    home.prepare()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOREWORD_HOME", str(home.root))
        life.start(home)
    try:
        yield open_(home, str(tmp_path_factory.mktemp("shop")))
    finally:
        end_worker(home)
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def opened(kept: Open) -> Open:
    """That one, held as its command would."""
    kept.client.post("/api/view", {"do": "hold", "holder": kept.holder})
    return kept


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
    "line feeds alone": lambda raw, _: raw.replace(b"\r\n", b"\n"),
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


@pytest.mark.parametrize("shape", HEADS.values(), ids=list(HEADS))
def test_what_two_readers_would_read_differently_is_refused(opened: Open, shape: Shape) -> None:
    before = stored(opened.home)
    for path, method in EVERY:
        raw = opened.asks(path, method).raw
        changed = shape(raw, opened.port)
        assert changed != raw
        got = sent(opened, changed)
        assert not got or 400 <= int(got.split()[1]) < 500, (path, method, got)
        assert b"Set-Cookie" not in got
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
        assert sent(opened, raw).count(b"HTTP/1.1 ") <= 1
    assert stored(opened.home) == before


def sent(here: Open, raw: bytes) -> bytes:
    """All that is answered until the other end closes."""
    got = b""
    with socket.create_connection(("127.0.0.1", here.port), timeout=10) as line, contextlib.suppress(OSError):
        line.sendall(raw)
        line.shutdown(socket.SHUT_WR)
        while len(got) < 200 and (part := line.recv(1 << 16)):  # of a stream the beginning is enough
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


def test_a_refused_change_with_a_body_on_its_way_hears_why(opened: Open) -> None:
    body = b"{" + b" " * 300_000 + b"}"
    asked = replace(opened.asks("/api/forget", "POST").but(cookie=None, content_length=str(len(body))), body=body)
    for _ in range(10):
        refused(opened.send(asked.raw), "a body behind a refused head")


def test_who_drips_holds_neither_the_page_nor_the_hooks_for_long(opened: Open) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(30):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", opened.port), timeout=10))
            line.sendall(b"GET /now HTTP/1.1\r\n")
        assert Client(opened.home, seconds=5).get("/api/projects")
        assert opened.send(opened.asks("/api/projects").raw).status == 200


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
    assert threads(opened) == began


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

    def looked() -> int:
        here = open_(home)
        for path, method in EVERY:
            if method == "GET" and path != "/api/live":
                here.send(here.asks(path).raw)
        with socket.create_connection(("127.0.0.1", here.port), timeout=10) as line:
            line.sendall(here.asks("/api/live").raw)
            _until(line, b"event: ready")
            client.post("/api/view", {"do": "close"})
        wait_for(lambda: settled(here))
        return threads(here)

    first = looked()
    assert [looked() <= first for _ in range(2)] == [True, True]


def settled(here: Open) -> bool:
    """Whether the number of threads has come to rest."""
    began = threads(here)
    time.sleep(0.5)
    return threads(here) == began


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
