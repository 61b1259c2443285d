"""Call the worker's API over its socket; for everything but the hook, which has its own client."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from foreword.errors import BadRequest, Conflict, NotFound, StoreError, WorkerError
from foreword.paths import Home

SECONDS = 60.0  # a person waits; `index` over a million memories takes longer and asks for more


class Client:
    """Calls the worker of *home*, which must be running."""

    def __init__(self, home: Home, *, seconds: float = SECONDS) -> None:
        self._home = home
        self._seconds = seconds

    def get(self, path: str, **query: object) -> dict[str, Any]:
        values = {name: value for name, value in query.items() if value not in (None, "", ())}
        return self._call("GET", f"{path}?{urlencode(values, errors='surrogateescape')}" if values else path)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._call("POST", path, json.dumps(body).encode())

    def _call(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        status, raw = self.send(method, path, body)
        try:
            answer = json.loads(raw)
        except ValueError as exc:
            raise WorkerError(f"the worker answered {status} and no JSON") from exc
        if status == 200:
            return dict(answer)
        kind = {400: BadRequest, 404: NotFound, 409: Conflict, 503: StoreError}.get(status, WorkerError)
        raise kind(
            answer.get("error", f"the worker answered {status}"), hint=answer.get("hint", "run `foreword doctor`")
        )

    def send(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """Send a request as it is, and return the status and the body of the answer."""
        connection = UnixHTTPConnection(str(self._home.socket), timeout=self._seconds)
        try:
            connection.request(method, path, body=body)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as exc:
            raise WorkerError(f"the worker does not answer: {exc}", hint="run `foreword worker start`") from exc
        finally:
            connection.close()


class UnixHTTPConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, *, timeout: float) -> None:
        super().__init__("foreword", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
