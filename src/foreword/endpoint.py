"""Send JSON to an endpoint of the user's choice, for models and embeddings; fail in time and with a reason.

No redirects, no proxies: texts go to the address that the user wrote, and nowhere else.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

from foreword import __version__

RETRY_AFTER = 0.5  # seconds between the two tries
REFUSED = (400, 413, 422)  # this request is wrong, the endpoint is well
MOST_COMPLAINT = 2_000  # bytes of a refusal that are read; never shown, because they may repeat what was sent


class Failed(Exception):
    """A request that failed: why, in a word, and whether it may have been worked on (and paid)."""

    def __init__(self, what: str, *, why: str, worked: bool = False, status: int = 0, complaint: str = "") -> None:
        super().__init__(what)
        self.why, self.worked = why, worked
        self.status, self.complaint = status, complaint

    @property
    def passing(self) -> bool:
        """Return whether the same request may succeed later."""
        return self.why in ("late", "away") or self.status == 429 or self.status >= 500


class BadAddress(ValueError):
    """The address cannot be used; the message says why."""


class Endpoint:
    """One address and its running requests."""

    def __init__(self, url: str, *, key: str = "") -> None:
        self._where = _address(url, key=key)
        self.host, self.path = self._where.netloc, self._where.path.rstrip("/")
        self._open: set[socket.socket] = set()
        self._closed = False

    def post(
        self, path: str, request: object, *, headers: Mapping[str, str], seconds: float, most: int, tries: int = 1
    ) -> Any:
        """Send *request* and return the JSON of an answer of at most *most* bytes, within *seconds* a try."""
        body = json.dumps(request).encode()
        try:
            return self._post(path, body, headers, seconds, most)
        except Failed as failed:
            if tries < 2 or not failed.passing or self._closed:
                raise
        time.sleep(RETRY_AFTER)
        return self._post(path, body, headers, seconds, most)

    def close(self) -> None:
        """End the running requests; they fail at once."""
        self._closed = True
        for each in tuple(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _post(self, path: str, body: bytes, headers: Mapping[str, str], seconds: float, most: int) -> Any:
        end = time.monotonic() + seconds
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
                raise Failed("did not answer in time", why="late", worked=sent) from exc
            raise Failed(f"cannot be reached ({type(exc).__name__})", why="away", worked=sent) from exc
        finally:
            connection.close()
        if late.is_set():
            raise Failed("did not answer in time", why="late", worked=True)
        if answer.status != 200:
            complaint = data.decode("utf-8", "replace")
            why = f"http-{answer.status}"
            raise Failed(f"answers {answer.status}", why=why, status=answer.status, complaint=complaint)
        try:
            if len(data) <= most:
                return json.loads(data)
        except (ValueError, RecursionError) as exc:
            raise Failed("answered with something that is no JSON", why="garbage", worked=True) from exc
        raise Failed(f"answered with more than {most:,} bytes", why="huge", worked=True)


def _cut(connected: socket.socket, late: threading.Event) -> None:
    late.set()
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


def _address(url: str, *, key: str) -> SplitResult:
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
