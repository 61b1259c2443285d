"""A listening socket -> requests -> a handler in threads -> responses: just enough HTTP/1.1 for our own sockets.

Measured against Starlette on uvicorn (httptools, uvloop) in one run: 0.16 ms a request against 0.54, 43 ms to start
against 256, 11 MB of memory against 33, and 20 MB less to install. Threads wait in `accept` themselves, so a request
meets no event loop and no hand-over; whoever is slow holds one, so only our own user is answered. (Browsers are slow:
`web/hall.py`.) One request a connection.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from urllib.parse import unquote, unquote_plus

from foreword.errors import BadRequest
from foreword.models import EMPTY

log = logging.getLogger("foreword")

MOST_HEAD = 2 * 1024 * 1024  # a long prompt in a URL: nine bytes a character
MOST_BODY = 16 * 1024 * 1024  # a hook sends 1.25 MB at most, an import a batch of memories
PATIENCE = 10.0  # seconds for a peer to say its request, and to take the answer
WARN_EVERY = 60.0  # seconds: whoever knocks a thousand times does not wash the rest out of the log
REFUSED = "somebody was refused: another user, or one who left at once"
# On Linux a listening socket that is shut down wakes who waits in accept; elsewhere they look up now and then.
WAKES = sys.platform == "linux"
LOOK_UP = 0.5  # seconds
# Where two readers could differ on what was said, nothing was: folded lines, spaces before a colon, bare line ends.
NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
END = b"\r\n\r\n"  # of a head
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
RAW = "surrogateescape"  # a folder's name need not be UTF-8
REASONS = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
}


@dataclass(frozen=True)
class Request:
    """What was asked."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)  # of its head, names in small letters


class Stream:
    """An answer without an end: whoever listens hears each part as it is said, until they leave or it is over."""

    def __init__(self) -> None:
        self.left = False  # nobody listens any more
        self.over = False
        self._parts: deque[bytes] = deque()
        self._heard: Callable[[], None] = lambda: None

    def say(self, part: bytes, *, last: bool = False) -> None:
        self._parts.append(part)
        self.over = self.over or last
        self._heard()

    def taken(self) -> bytes:
        """What was said since this was asked last."""
        return b"".join(self._parts.popleft() for _ in range(len(self._parts)))

    def to(self, heard: Callable[[], None]) -> None:
        """Call *heard* whenever something is said."""
        self._heard = heard


@dataclass(frozen=True)
class Response:
    """What is answered."""

    status: int
    body: bytes | Stream
    kind: str = "application/json"
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)


class Seldom:
    """Warns of what may come a thousand times, once in a while."""

    def __init__(self) -> None:
        self._last = -WARN_EVERY

    def __call__(self, words: str, *more: object) -> None:
        if time.monotonic() - self._last > WARN_EVERY:
            self._last = time.monotonic()
            log.warning(words, *more)


def ours(line: socket.socket) -> bool:
    """Whether our own user is at the other end of a Unix socket."""
    return peer_of(line) == os.getuid()


class Server:
    """Answers those whom it admits on *listener*, with *handle*, until closed."""

    def __init__(
        self,
        listener: socket.socket,
        handle: Callable[[Request], Response],
        *,
        threads: int,
        admit: Callable[[socket.socket], bool] = ours,
        wakes: bool = WAKES,
    ) -> None:
        self._listener = listener
        self._handle = handle
        self._admit = admit
        self._warn = Seldom()
        self._closed = threading.Event()
        if not wakes:
            listener.settimeout(LOOK_UP)
        self._threads = [threading.Thread(target=self._serve, name=f"http-{n}", daemon=True) for n in range(threads)]
        for thread in self._threads:
            thread.start()

    def close(self, *, seconds: float = 3.0) -> None:
        """Take no more requests, and give those under way a moment to end."""
        self._closed.set()
        with suppress(OSError):  # not connected, say other systems
            self._listener.shutdown(socket.SHUT_RDWR)
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(timeout=max(0.0, until - time.monotonic()))

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                line, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError as exc:
                if self._closed.is_set():
                    return
                log.warning("a connection could not be accepted: %s", exc)
                self._closed.wait(0.1)  # out of descriptors: others must end first
                continue
            with line:
                try:
                    self._answer(line)
                except OSError as exc:
                    log.debug("a peer left: %s", exc)
                except Exception:
                    log.exception("a request failed")

    def _answer(self, line: socket.socket) -> None:
        if not self._admit(line):
            self._warn(REFUSED)
            return
        until = time.monotonic() + PATIENCE
        try:
            got = _asked(line, until=until)
            if got is None:
                return
            answer = self._handle(got)
        except BadRequest as exc:
            answer = refusal(exc)
        line.settimeout(PATIENCE)  # however long it was asked, an answer has its own time
        line.sendall(rendered(answer))


def rendered(answer: Response, *, fields: Mapping[str, str] = EMPTY) -> bytes:
    """An answer as it is sent, with *fields* that all have; of a stream its head."""
    told = {"Content-Type": answer.kind, **fields, **answer.fields, "Connection": "close"}
    body = answer.body if isinstance(answer.body, bytes) else b""
    if isinstance(answer.body, bytes):
        told["Content-Length"] = str(len(body))
    lines = "".join(f"{name}: {text}\r\n" for name, text in told.items())
    return f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Error')}\r\n{lines}\r\n".encode() + body


def refusal(why: BadRequest) -> Response:
    """What somebody hears who asked for nothing that could be read."""
    return Response(status=400, body=b'{"error": "%s", "hint": "%s"}' % (str(why).encode(), why.hint.encode()))


def peer_of(line: socket.socket) -> int:
    """The user at the other end of a Unix socket."""
    if hasattr(socket, "SO_PEERCRED"):
        raw = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", raw)[1])
    raw = line.getsockopt(0, 0x001, 76)  # SOL_LOCAL, LOCAL_PEERCRED of macOS: version, uid, groups
    return int(struct.unpack_from("2I", raw)[1])


def _asked(line: socket.socket, *, until: float) -> Request | None:
    """All that is asked; None where the peer hung up first."""
    got = b""
    while END not in got:
        part = _part(line, 1 << 18, until)
        if not part:
            return None
        got += part
        if len(got) > MOST_HEAD and END not in got[: MOST_HEAD + len(END)]:
            raise BadRequest("the head of the request is too long", hint="send texts in the body")
    head, _, begun = got.partition(END)
    asked = parsed(head)
    length = length_of(asked)
    if awaits(asked):
        line.sendall(GO_ON)
    parts, size = [begun], len(begun)
    while size < length:
        part = _part(line, min(1 << 20, length - size), until)
        if not part:
            return None
        parts.append(part)
        size += len(part)
    return replace(asked, body=b"".join(parts)[:length])


def parsed(head: bytes) -> Request:
    """What the head of a request says, where everybody who reads it would read the same."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.1", "HTTP/1.0") or CONTROL.search(first):
        raise BadRequest("this is not HTTP", hint="docs/api.md lists the routes")
    path, _, told = words[1].partition("?")
    pairs = (pair.partition("=") for pair in told.split("&") if pair)
    query = {unquote_plus(name): unquote_plus(given, errors=RAW) for name, _, given in pairs}
    return Request(method=words[0], path=unquote(path, errors=RAW), query=query, body=b"", fields=_fields(lines))


def length_of(asked: Request, *, most: int = MOST_BODY) -> int:
    """How long its body is, which is at most so long."""
    length = int(asked.fields.get("content-length", "0"))
    if length > most:
        raise BadRequest(f"a body must have a length of at most {most} bytes", hint="send it in parts")
    return length


def awaits(asked: Request) -> bool:
    """Whether somebody sends the body only when told to."""
    return asked.fields.get("expect", "").lower() == "100-continue"


def _fields(lines: list[str]) -> dict[str, str]:
    """Name -> text, where everybody who reads the head would read the same."""
    fields: dict[str, str] = {}
    for each in lines:
        name, colon, text = each.partition(":")
        if not colon or not NAME.fullmatch(name) or CONTROL.search(text):
            raise BadRequest("a field of the head is not well formed", hint="say `Name: text`, a line each")
        if name.lower() in fields:
            raise BadRequest("a field of the head is said twice", hint="say it once")
        fields[name.lower()] = text.strip(" \t")
    if "transfer-encoding" in fields:
        raise BadRequest("a body in chunks is not taken", hint="send a Content-Length")
    length = fields.get("content-length", "0")
    if not (length.isascii() and length.isdigit() and len(length) < 12):
        raise BadRequest("a body must have a length", hint="send a Content-Length")
    return fields


def _part(line: socket.socket, most: int, until: float) -> bytes:
    """What comes next; a peer that drips has no more time than one that is silent."""
    line.settimeout(max(0.001, until - time.monotonic()))
    return line.recv(most)
