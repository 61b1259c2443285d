"""JSON for an address of the user's own choice -> the bytes of its answer: in time, or a failure that says why.

No redirects, no proxies: texts go to the address that the user wrote, and nowhere else.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from foreword import __version__

PAUSE, LONGEST_PAUSE = 60.0, 3600.0  # seconds after a failure, and if the endpoint itself asks for more
LATE = "did not answer in time"
OWN_FAULT = (400, 413, 422)  # it does not like what it was sent
WRONG_SETTING = (401, 403, 404, 405)  # asking again will not help
MOST_COMPLAINT = 2_000  # bytes of a refusal that are looked at; never shown, for they may repeat what was sent


class Failed(Exception):
    """A try that failed: whether another may do better, after how many seconds, and whether it was worked on."""

    def __init__(
        self, what: str, *, why: str = "", passing: bool = True, after: float = 0.0, worked: bool = False
    ) -> None:
        super().__init__(what)
        self.why = why  # in a word
        self.passing = passing
        self.after = after
        self.worked = worked  # it may have been done, and paid, though we have nothing of it


class Refused(Failed):
    """It will not take what it was sent; the endpoint itself is well."""

    def __init__(self, status: int, complaint: str) -> None:
        super().__init__(f"answers {status}", why=f"http-{status}", passing=False)
        self.status = status
        self.complaint = complaint


class Paused(Exception):
    """It failed a short time ago and is not asked for a while."""


class BadAddress(ValueError):
    """The address cannot be used; the message says why."""


class Endpoint:
    """One address: where it is, and what is being asked of it now."""

    def __init__(self, url: str, *, key: str = "") -> None:
        self._where = _address(url, key=key)
        self._asked: set[socket.socket] = set()
        self._closed = False

    @property
    def host(self) -> str:
        return str(self._where.netloc)

    @property
    def path(self) -> str:
        return str(self._where.path.rstrip("/"))

    def post(self, path: str, told: object, *, headers: Mapping[str, str], seconds: float, most: int) -> bytes:
        """The answer to *told* as JSON, of at most *most* bytes and within *seconds*; anything else raises Failed."""
        end = time.monotonic() + seconds
        body = json.dumps(told).encode()
        make = http.client.HTTPSConnection if self._where.scheme == "https" else http.client.HTTPConnection
        connection = make(str(self._where.hostname), self._where.port, timeout=seconds)
        late = threading.Event()
        sent = False
        try:
            connection.connect()
            # The timeout above is for each read; a server that drips must not hold us longer than all of it.
            cut = threading.Timer(max(0.0, end - time.monotonic()), _cut, (connection.sock, late))
            cut.daemon = True
            self._asked.add(connection.sock)
            cut.start()
            try:
                if self._closed:
                    raise ConnectionAbortedError
                about = {"Content-Type": "application/json", "User-Agent": f"foreword/{__version__}"}
                connection.request("POST", path, body, {**about, **headers})
                sent = True
                with connection.getresponse() as answer:
                    data = answer.read(most + 1 if answer.status == 200 else MOST_COMPLAINT)
            finally:
                cut.cancel()
                self._asked.discard(connection.sock)
        except (OSError, http.client.HTTPException) as exc:
            if late.is_set() or isinstance(exc, TimeoutError):
                raise Failed(LATE, why="late", worked=sent) from exc
            raise Failed(f"cannot be asked ({type(exc).__name__})", why="away", worked=sent) from exc
        finally:
            connection.close()
        if late.is_set():
            raise Failed(LATE, why="late", worked=True)
        _check(answer.status, data, answer.getheader("Retry-After", ""))
        if len(data) > most:
            raise Failed("answered with more than anyone would", why="huge", worked=True)
        return data

    def close(self) -> None:
        """End what is being asked; it fails at once."""
        self._closed = True
        for each in tuple(self._asked):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Pause:
    """Leave something that failed alone for a while, so that nobody waits for it and one report is enough."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic, longest: float = LONGEST_PAUSE) -> None:
        self._now = now
        self._longest = longest
        self._until = 0.0

    @property
    def seconds(self) -> float:
        """How long it is still left alone."""
        return max(0.0, self._until - self._now())

    @contextmanager
    def asking(self, *, anyway: bool = False) -> Iterator[None]:
        """Ask within this: Paused is raised during a pause, and Failed begins one."""
        if self.seconds and not anyway:
            raise Paused
        try:
            yield
        except Refused:
            self._until = 0.0
            raise
        except Failed as failed:
            self._until = self._now() + min(max(PAUSE, failed.after), self._longest)
            raise
        self._until = 0.0


def _check(status: int, data: bytes, retry_after: str) -> None:
    if status == 200:
        return
    if status in OWN_FAULT:
        raise Refused(status, data.decode("utf-8", "replace"))
    passing = status == 429 or status >= 500
    raise Failed(f"answers {status}", why=f"http-{status}", passing=passing, after=_seconds(retry_after))


def _seconds(retry_after: str) -> float:
    """What a Retry-After asks for: seconds, or a date; nothing where it is neither."""
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:9])
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0


def _cut(connected: socket.socket, late: threading.Event) -> None:
    late.set()
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


def _address(url: str, *, key: str) -> Any:
    """The parts of an address; one that is unusable, or would carry the key in the open, is refused."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise BadAddress(f"is no address: {url}")
    if key and parts.scheme == "http" and not _is_here(str(parts.hostname)):
        raise BadAddress(f"would carry the key to {parts.hostname} in the open; use an https address, or no key")
    return parts


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
