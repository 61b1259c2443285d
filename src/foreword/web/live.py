"""What is committed to the store -> a line for every page that listens: look again."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator

from foreword.http import Response
from foreword.store import Store

BEAT = 15.0  # seconds of silence before a line says that we are still here
STREAM = "text/event-stream"


class Live:
    """The pages that listen, for as long as the viewer is open."""

    def __init__(self, *, store: Callable[[], Store]) -> None:
        self._store = store
        self._closed = threading.Event()

    def close(self) -> None:
        self._closed.set()

    def stream(self) -> Response:
        return Response(status=200, body=self._lines(), kind=STREAM)

    def _lines(self) -> Generator[bytes]:
        yield b"retry: 2000\n\n"
        yield b"event: ready\ndata: %s\n\n" % json.dumps({}).encode()
        while not self._closed.wait(BEAT):
            yield b": here\n\n"
