"""A real endpoint on loopback that behaves, or misbehaves, as a test tells it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Request"], None]


class Request(BaseHTTPRequestHandler):
    """One request; `server.endpoint` says what is done with it."""

    server: Any

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.endpoint.requests.append((self.path, dict(self.headers), self.body))
        with suppress(BrokenPipeError, ConnectionResetError):  # the one who request has left
            self.server.endpoint.answer(self)

    def send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Endpoint:
    """Where it listens, what it was request, and how it answers from now on."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.answer: Answer = says(b"{}")
        self.closing = threading.Event()


@contextmanager
def listening() -> Iterator[Endpoint]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Request)
    server.daemon_threads = True
    server.block_on_close = False
    server.endpoint = Endpoint(server.server_address[1])  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield server.endpoint  # type: ignore[attr-defined]
    finally:
        server.endpoint.closing.set()  # type: ignore[attr-defined]
        server.shutdown()
        server.server_close()


def status(code: int, **headers: str) -> Answer:
    return lambda request: request.send(code, b'{"error": {"message": "no"}}', **headers)


def says(body: bytes) -> Answer:
    return lambda request: request.send(200, body)


def silent(request: Request) -> None:
    """Takes the request and says nothing to the end of the test."""
    request.server.endpoint.closing.wait()


def hangs_up(request: Request) -> None:
    request.connection.close()


def drips(request: Request) -> None:
    """A byte now and then: no single read takes long, and all of it takes for ever."""
    request.send_response(200)
    request.send_header("Content-Length", "100000")
    request.end_headers()
    while not request.server.endpoint.closing.wait(0.05):
        request.wfile.write(b" ")
