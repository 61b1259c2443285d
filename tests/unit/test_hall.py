"""The hall of the viewer on a loopback port of its own: who gives way, and that nobody ends it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator

import pytest

from foreword.http import Response
from foreword.web.hall import MOST_LINES, Hall

ASKED = b"GET / HTTP/1.1\r\n\r\n"


@contextlib.contextmanager
def hall(admit: Callable[[socket.socket], bool] = lambda _: True) -> Iterator[Callable[[], socket.socket]]:
    """Who knocks at it."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener, contextlib.ExitStack() as lines:
        port = listener.getsockname()[1]
        here = Hall(listener, lambda _: Response(status=200, body=b"{}"), admit=admit, threads=2)
        lines.callback(here.close)
        yield lambda: lines.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))


def answer(line: socket.socket) -> bytes:
    got = b""
    while part := line.recv(1 << 16):
        got += part
    return got


def test_nobody_gives_way_before_there_are_too_many_and_then_the_oldest_alone() -> None:
    with hall() as knock:
        silent = [knock() for _ in range(MOST_LINES - 1)]
        last = knock()
        last.sendall(ASKED)
        assert b"200 OK" in answer(last)
        silent.append(knock())
        asking = knock()
        asking.sendall(ASKED)
        assert b"200 OK" in answer(asking)
        assert silent[0].recv(1) == b"", "the oldest gave way"
        for line in silent[1:]:
            line.sendall(ASKED)
        assert [line for line in silent[1:] if b"200 OK" not in answer(line)] == []


@pytest.mark.parametrize("wrong", [OSError("gone"), IndexError("short")])
def test_one_who_cannot_be_looked_at_is_refused_and_the_next_is_answered(wrong: Exception) -> None:
    unseen = [wrong]

    def admit(_: socket.socket) -> bool:
        if unseen:
            raise unseen.pop()
        return True

    with hall(admit) as knock:
        assert answer(knock()) == b""
        line = knock()
        line.sendall(ASKED)
        assert b"200 OK" in answer(line)
