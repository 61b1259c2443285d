"""Open a viewer over a worker, and ask it as a script of its pages asks."""

from __future__ import annotations

import json
import os
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from foreword.viewer.app import ViewerServer
from foreword.worker.client import Client

NAVIGATES = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
FETCHES = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}


def is_gone(pid: int) -> bool:
    """Whether a process has ended, also one whose parent has yet to take notice."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not Path(f"/proc/{pid}").exists()


class Refused(Exception):
    """What a page is told instead of an answer."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(body["error"])
        self.status, self.body = status, body


class Page:
    """A page of a viewer of its own: opened by its link, it asks with its cookie."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.server = ViewerServer(client._home)
        self.server.start()
        self.at = urlsplit(self.server.auth.link())
        _, cookie, _ = self._sent("GET", f"/?{self.at.query}", NAVIGATES)
        self.fields = {**FETCHES, "Cookie": cookie.partition(";")[0]}

    def get(self, path: str, **query: object) -> dict[str, Any]:
        """The answer; whatever else it is told raises Refused."""
        return self._request("GET", f"{path}?{urlencode(query)}" if query else path, {})

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        own = {"Origin": f"http://{self.at.netloc}", "Content-Type": "application/json"}
        return self._request("POST", path, own, json.dumps(body).encode())

    def ask(self, path: str, *, status: int = 200, **query: object) -> dict[str, Any]:
        """The answer, which must have this status."""
        try:
            got, answer = 200, self.get(path, **query)
        except Refused as exc:
            got, answer = exc.status, exc.body
        assert got == status, answer
        return answer

    def _request(self, method: str, path: str, fields: dict[str, str], body: bytes | None = None) -> dict[str, Any]:
        status, _, raw = self._sent(method, path, {**self.fields, **fields}, body)
        answer: dict[str, Any] = json.loads(raw)
        if status != 200:
            raise Refused(status, answer)
        return answer

    def _sent(
        self, method: str, path: str, fields: dict[str, str], body: bytes | None = None
    ) -> tuple[int, str, bytes]:
        line = HTTPConnection(self.at.hostname or "", self.at.port, timeout=20)
        try:
            line.request(method, path, body=body, headers=fields)
            answer = line.getresponse()
            return answer.status, answer.getheader("Set-Cookie") or "", answer.read()
        finally:
            line.close()
