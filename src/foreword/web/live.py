"""What is committed to the store -> a line for every page that listens: look again."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator

from foreword.errors import StoreError
from foreword.http import Response
from foreword.store import Store

BEAT = 15.0  # seconds of silence before a line says that we are still here
TURN = 1.0  # seconds after which it is looked whether a page, or we ourselves, are still there
GAP = 0.5  # seconds between two lines: a page that reads itself anew twice a second looks alive
MOST = 16  # pages that listen at once; each holds a thread, and the page needs some to be answered at all
AGAIN = 2000  # milliseconds after which a browser that lost us asks again
STREAM = "text/event-stream"


class Live:
    """The pages that listen, for as long as the viewer is open; one thread waits for all of them."""

    def __init__(self, *, store: Callable[[], Store]) -> None:
        self._store = store
        self._news = threading.Condition()
        self._number = -1  # of the commit that pages were told of; -1: nobody has looked yet
        self._pages: list[object] = []  # who listens, the latest last
        self._closed = threading.Event()
        threading.Thread(target=self._wait, name="live", daemon=True).start()

    def close(self) -> None:
        """End every stream at once."""
        self._closed.set()
        with self._news:
            self._news.notify_all()

    def stream(self) -> Response:
        return Response(status=200, body=self._lines(), kind=STREAM)

    def _wait(self) -> None:
        """Pass on what the store has to say, at most twice a second."""
        while not self._closed.is_set():
            try:
                number = self._store().stirred(self._number, seconds=TURN)
            except StoreError:
                self._closed.wait(TURN)  # it may open again
                continue
            if number != self._number:
                with self._news:
                    self._number = number
                    self._news.notify_all()
                self._closed.wait(GAP)

    def _lines(self) -> Generator[bytes]:
        me = object()
        with self._news:
            self._pages.append(me)
        try:
            yield from self._until(lambda: self._closed.is_set() or me not in self._pages[-MOST:])
        finally:
            with self._news:
                self._pages.remove(me)

    def _until(self, over: Callable[[], bool]) -> Generator[bytes]:
        """Lines until it is over: we close, or so many came later that this page must ask again."""
        number, said = self._number, time.monotonic()
        yield b"retry: %d\n\n" % AGAIN + _line("ready", number)
        while True:
            with self._news:
                if self._number == number and not self._closed.is_set():
                    self._news.wait(TURN)
            if over():
                return
            if self._number != number:
                number, said = self._number, time.monotonic()
                yield _line("stirred", number)
            elif time.monotonic() - said > BEAT:
                said = time.monotonic()
                yield b": here\n\n"
            else:
                yield b""  # nothing to say; a page that went away lets its thread go


def _line(event: str, number: int) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event.encode(), json.dumps({"number": number}).encode())
