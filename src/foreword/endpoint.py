"""Send JSON to an endpoint of the user's choice, for models and embeddings; fail in time and with a reason.

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
OWN_FAULT = (400, 413, 422)  # the request is wrong, the endpoint is well
WRONG_SETTING = (401, 403, 404, 405)  # trying again will not help
MOST_COMPLAINT = 2_000  # bytes of a refusal that are read; never shown, because they may repeat what was sent


class Failed(Exception):
    """A request that failed: whether another may do better, after how many seconds, and whether it was worked on."""

    def __init__(
        self, what: str, *, why: str = "", passing: bool = True, after: float = 0.0, worked: bool = False
    ) -> None:
        super().__init__(what)
        self.why = why  # in a word
        self.passing = passing
        self.after = after
        self.worked = worked  # it may have been done, and paid, though we have nothing of it


class Refused(Failed):
    """The endpoint rejects this request; the endpoint itself is well."""

    def __init__(self, status: int, complaint: str) -> None:
        super().__init__(f"answers {status}", why=f"http-{status}", passing=False)
        self.status = status
        self.complaint = complaint


class Paused(Exception):
    """The endpoint failed a short time ago and is left alone for a while."""


class BadAddress(ValueError):
    """The address cannot be used; the message says why."""


class Endpoint:
    """One address and its running requests."""

    def __init__(self, url: str, *, key: str = "") -> None:
        self._where = _address(url, key=key)
        self._open: set[socket.socket] = set()
        self._closed = False

    @property
    def host(self) -> str:
        return str(self._where.netloc)

    @property
    def path(self) -> str:
        return str(self._where.path.rstrip("/"))

    def post(self, path: str, request: object, *, headers: Mapping[str, str], seconds: float, most: int) -> bytes:
        """Send *request* as JSON and return an answer of at most *most* bytes within *seconds*; else raise Failed."""
        end = time.monotonic() + seconds
        body = json.dumps(request).encode()
        make = http.client.HTTPSConnection if self._where.scheme == "https" else http.client.HTTPConnection
        connection = make(str(self._where.hostname), self._where.port, timeout=seconds)
        late = threading.Event()
        sent = False
        try:
            connection.connect()
            # The timeout above is for each read; a server that drips must not hold us longer than all of it.
            cut = threading.Timer(max(0.0, end - time.monotonic()), _cut, (connection.sock, late))
            cut.daemon = True
            self._open.add(connection.sock)
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
                self._open.discard(connection.sock)
        except (OSError, http.client.HTTPException) as exc:
            if late.is_set() or isinstance(exc, TimeoutError):
                raise Failed(LATE, why="late", worked=sent) from exc
            raise Failed(f"cannot be reached ({type(exc).__name__})", why="away", worked=sent) from exc
        finally:
            connection.close()
        if late.is_set():
            raise Failed(LATE, why="late", worked=True)
        _check(answer.status, data, answer.getheader("Retry-After", ""))
        if len(data) > most:
            raise Failed(f"answered with more than {most:,} bytes", why="huge", worked=True)
        return data

    def close(self) -> None:
        """End the running requests; they fail at once."""
        self._closed = True
        for each in tuple(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Pause:
    """Leave an endpoint alone for a while after a failure, so that nobody waits for it and one report is enough."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic, longest: float = LONGEST_PAUSE) -> None:
        self._now = now
        self._longest = longest
        self._until = 0.0

    @property
    def seconds(self) -> float:
        """Return how long the pause still lasts."""
        return max(0.0, self._until - self._now())

    @contextmanager
    def asking(self, *, anyway: bool = False) -> Iterator[None]:
        """Guard a request: raise Paused during a pause; a Failed inside begins one."""
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
    """Return the seconds of a Retry-After header, which is a number or a date; 0 where it is neither."""
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
    """Parse an address; BadAddress where it is unusable, or would carry the key in the open."""
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
