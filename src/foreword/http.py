"""A listening socket -> requests -> a handler in threads -> responses: just enough HTTP/1.1 for our own sockets.

Measured against Starlette on uvicorn (httptools, uvloop) in one run: 0.16 ms a request against 0.54, 43 ms to start
against 256, 11 MB of memory against 33, and 20 MB less to install. Threads wait in `accept` themselves, so a request
meets no event loop and no hand-over. One request a connection; only peers that are admitted are answered: on the
worker's socket our own user.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from urllib.parse import unquote, unquote_plus

from foreword.errors import BadRequest
from foreword.types import EMPTY
from foreword.values import replace, value

log = logging.getLogger("foreword")

MOST_HEAD = 2 * 1024 * 1024  # a long prompt in a URL: nine bytes a character
MOST_BODY = 16 * 1024 * 1024  # a hook sends 1.25 MB at most, an import a batch of memories
PATIENCE = 10.0  # seconds for a peer to say its request, and to take the answer
WARN_EVERY = 60.0  # seconds: whoever knocks a thousand times does not wash the rest out of the log
TAKEN = 1 << 20  # bytes of a refused body that are taken, so that its sender hears why
# Where two readers could differ on what was said, nothing was: folded lines, spaces before a colon, bare line ends.
NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
RAW = "surrogateescape"  # a folder's name need not be UTF-8
REASONS = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
}


@value
class Request:
    """What was asked."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    fields: Mapping[str, str] = EMPTY  # of its head, names in small letters


@value
class Response:
    """What is answered; a body in parts has no end that is known, and each is sent as it comes.

    An empty part says nothing, and ends the answer where the peer has hung up.
    """

    status: int
    body: bytes | Generator[bytes]
    kind: str = "application/json"
    fields: Mapping[str, str] = EMPTY


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
        look: Callable[[Request], Response | None] = lambda _: None,
        most_head: int = MOST_HEAD,
        patience: float = PATIENCE,
        fields: Mapping[str, str] = EMPTY,
    ) -> None:
        self._listener = listener
        self._fields = fields  # of every answer, also to what is no request
        self._handle = handle
        self._admit = admit
        self._look = look  # at the head alone: whom it refuses sends no body
        self._patience = patience
        self._most_head = most_head
        self._warned = -WARN_EVERY
        self._closed = threading.Event()
        self._threads = [threading.Thread(target=self._serve, name=f"http-{n}", daemon=True) for n in range(threads)]
        for thread in self._threads:
            thread.start()

    def close(self, *, seconds: float = 3.0) -> None:
        """Take no more requests, and give those under way a moment to end."""
        self._closed.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes every thread that waits in accept
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(timeout=max(0.0, until - time.monotonic()))

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                line, _ = self._listener.accept()
            except OSError as exc:
                if self._closed.is_set():
                    return
                log.warning("a connection could not be accepted: %s", exc)
                self._closed.wait(0.1)  # out of descriptors: others must end first
                continue
            with line:
                try:
                    line.settimeout(PATIENCE)
                    self._answer(line)
                except OSError as exc:
                    log.debug("a peer left: %s", exc)
                except Exception:
                    log.exception("a request failed")

    def _answer(self, line: socket.socket) -> None:
        if not self._admit(line):
            if time.monotonic() - self._warned > WARN_EVERY:
                self._warned = time.monotonic()
                log.warning("somebody was refused: another user, or one who left at once")
            return
        until = time.monotonic() + self._patience
        try:
            got = _head(line, most=self._most_head, until=until)
            if got is None:
                return
            asked, begun = got
            refused = self._look(asked)
            body = begun if refused else _body(line, asked, begun, until=until)
        except BadRequest as exc:
            told = b'{"error": "%s", "hint": "%s"}' % (str(exc).encode(), exc.hint.encode())
            refused = Response(status=400, body=told)
        line.settimeout(PATIENCE)  # however long it was asked, an answer has its own time
        if refused:
            self._send(line, refused)
            _take(line)
        elif body is not None:
            self._send(line, self._handle(replace(asked, body=body)))

    def _send(self, line: socket.socket, response: Response) -> None:
        fields = {"Content-Type": response.kind, **self._fields, **response.fields, "Connection": "close"}
        if isinstance(response.body, bytes):
            fields["Content-Length"] = str(len(response.body))
        told = "".join(f"{name}: {text}\r\n" for name, text in fields.items())
        head = f"HTTP/1.1 {response.status} {REASONS.get(response.status, 'Error')}\r\n{told}\r\n".encode()
        if isinstance(response.body, bytes):
            line.sendall(head + response.body)
            return
        line.sendall(head)
        with closing(response.body) as parts:
            for part in parts:
                if _hung_up(line):
                    return
                line.sendall(part)


def _hung_up(line: socket.socket) -> bool:
    """Whether nobody listens any more: what is sent to such a one is taken once by the system, and told as sent."""
    line.setblocking(False)
    try:
        return not line.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    finally:
        line.settimeout(PATIENCE)


def peer_of(line: socket.socket) -> int:
    """The user at the other end of a Unix socket."""
    if hasattr(socket, "SO_PEERCRED"):
        raw = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", raw)[1])
    raw = line.getsockopt(0, 0x001, 76)  # SOL_LOCAL, LOCAL_PEERCRED of macOS: version, uid, groups
    return int(struct.unpack_from("2I", raw)[1])


def _head(line: socket.socket, *, most: int, until: float) -> tuple[Request, bytes] | None:
    """What is asked, and what came behind it; None where the peer hung up first."""
    got = b""
    while b"\r\n\r\n" not in got:
        part = _part(line, 1 << 18, until)
        if not part:
            return None
        got += part
        if len(got) > most and b"\r\n\r\n" not in got[: most + 4]:
            raise BadRequest("the head of the request is too long", hint="send texts in the body")
    head, _, begun = got.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.1", "HTTP/1.0") or CONTROL.search(first):
        raise BadRequest("this is not HTTP", hint="docs/api.md lists the routes")
    path, _, told = words[1].partition("?")
    pairs = (pair.partition("=") for pair in told.split("&") if pair)
    query = {unquote_plus(name): unquote_plus(given, errors=RAW) for name, _, given in pairs}
    asked = Request(method=words[0], path=unquote(path, errors=RAW), query=query, body=b"", fields=_fields(lines))
    return asked, begun


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
    if not (length.isascii() and length.isdigit() and len(length) < 12) or int(length) > MOST_BODY:
        raise BadRequest(f"a body must have a length of at most {MOST_BODY} bytes", hint="send it in parts")
    return fields


def _body(line: socket.socket, asked: Request, begun: bytes, *, until: float) -> bytes | None:
    """All of the body, of which some came with the head; None where the peer hung up first."""
    length = int(asked.fields.get("content-length", "0"))
    if asked.fields.get("expect", "").lower() == "100-continue":
        line.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    parts, size = [begun], len(begun)
    while size < length:
        part = _part(line, min(1 << 20, length - size), until)
        if not part:
            return None
        parts.append(part)
        size += len(part)
    return b"".join(parts)[:length]


def _take(line: socket.socket) -> None:
    """Read away some of what is still sent: a line that is closed on unread bytes loses the answer too."""
    line.shutdown(socket.SHUT_WR)
    until, left = time.monotonic() + 1.0, TAKEN
    while left > 0 and (part := _part(line, 1 << 16, until)):
        left -= len(part)


def _part(line: socket.socket, most: int, until: float) -> bytes:
    """What comes next; a peer that drips has no more time than one that is silent."""
    line.settimeout(max(0.001, until - time.monotonic()))
    return line.recv(most)
