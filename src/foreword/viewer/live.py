"""What is committed to the store -> a line for every page that listens: look again."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

from foreword.errors import StoreError
from foreword.store import Store
from foreword.viewer.files import stamp
from foreword.worker.http import Response, Stream

BEAT = 15.0  # seconds of silence before a line says that we are still here
TURN = 1.0  # seconds after which it is looked whether we ourselves are still there
GAP = 0.5  # seconds between two lines: a page that reads itself anew twice a second looks alive
MOST = 48  # pages that listen at once, each a connection; the tabs of one browser share one
AGAIN = 2000  # milliseconds after which a browser that lost us asks again
STREAM = "text/event-stream"


class Live:
    """The pages that listen, for as long as the viewer is open; one thread speaks to all of them."""

    def __init__(self, *, store: Callable[[], Store]) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._number = -1  # of the commit that pages were told of; -1: nobody has looked yet
        self._pages: list[Stream] = []  # who listens, the latest last
        self._said = time.monotonic()
        self._closed = threading.Event()
        threading.Thread(target=self._wait, name="live", daemon=True).start()

    def close(self, why: str = "") -> None:
        """End every stream at once, with the reason where it is the end; a page that hears none asks again."""
        self._closed.set()
        last = _line("closed", {"why": why}) if why else b""
        with self._lock:
            for page in self._pages:
                page.say(last, last=True)

    def stream(self) -> Response:
        """Lines until we close, or until so many came later that this page must ask again."""
        page = Stream()
        with self._lock:
            ready = _line("ready", {"number": self._number, "page": stamp()})
            page.say(b"retry: %d\n\n" % AGAIN + ready, last=self._closed.is_set())
            self._pages = [*(each for each in self._pages if not each.left), page]
            for each in self._pages[:-MOST]:
                each.say(b"", last=True)
            self._pages = self._pages[-MOST:]
        return Response(status=200, body=page, kind=STREAM)

    def _wait(self) -> None:
        """Pass on what the store has to say, at most twice a second."""
        while not self._closed.is_set():
            try:
                number = self._store().wait_for_commit(self._number, seconds=TURN)
            except StoreError:
                number = self._number
                self._closed.wait(TURN)  # it may open again
            if number != self._number:
                self._tell(_line("stirred", {"number": number}), number)
                self._closed.wait(GAP)
            elif time.monotonic() - self._said > BEAT:
                self._tell(b": here\n\n", number)

    def _tell(self, line: bytes, number: int) -> None:
        self._said = time.monotonic()
        with self._lock:
            self._number = number
            self._pages = [each for each in self._pages if not each.left]
            for page in self._pages:
                page.say(line)


def _line(event: str, told: dict[str, object]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event.encode(), json.dumps(told).encode())
