"""A request of the viewer -> let in, or refused and why: where it was sent, by whose page, and with which key.

A page of a foreign site can make a browser send requests to a loopback port; it cannot change what the browser says of
them. So the names that a rebound DNS entry, a form, a frame or a script of another origin leave are looked for first,
and the key last: nobody learns from the answer whether a key was right.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable

from foreword.errors import ForewordError
from foreword.worker.http import Request

COOKIE = "foreword"  # with the port behind it: cookies know no ports, and another viewer may be open
LASTS = 600.0  # seconds that a link waits for its browser; the command makes a new one whenever it is asked
JSON = "application/json"
AGAIN = "run `foreword view`, and open the link that it prints"
LOADED = ("empty", "script", "style", "image")  # what our page loads; a document or a frame is none of it


class Refused(ForewordError):
    """A request that the viewer does not answer."""


class Gate:
    """The keys of one viewer, and who gets past it."""

    def __init__(self, port: int, *, key: str = "", now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._host = f"127.0.0.1:{port}"
        self._origin = f"http://{self._host}"
        self._name = f"{COOKIE}-{port}"
        self.key = key or secrets.token_urlsafe(32)  # for the command that holds it, and for the browser's cookie
        self._links: dict[str, float] = {}  # token -> until when it opens
        self._lock = threading.Lock()  # two browsers may come with one token at once

    def link(self) -> str:
        """An address that opens the viewer, once."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._links = {each: until for each, until in self._links.items() if until > self._now()}
            self._links[token] = self._now() + LASTS
        return f"{self._origin}/?token={token}"

    def opened(self, asked: Request) -> str:
        """What turns the token of a link into a cookie: a field of the answer. The token opens nothing again."""
        self.follow(asked)
        given = asked.query.get("token", "").encode(errors="surrogatepass")  # whatever bytes were sent
        with self._lock:
            token = next((each for each in self._links if hmac.compare_digest(each.encode(), given)), "")
            until = self._links.pop(token, 0.0)
        if until <= self._now():
            raise Refused("this link was used, or is too old", hint=AGAIN)
        return f"{self._name}={self.key}; HttpOnly; SameSite=Strict; Path=/"

    def follow(self, asked: Request) -> None:
        """Let somebody in who opens a link as a person does, or raise Refused; whether it is a good one is not said."""
        self._placed(asked)
        if asked.method != "GET" or asked.path != "/" or asked.fields.get("sec-purpose"):
            raise Refused("a link is opened, not sent or fetched ahead", hint=AGAIN)
        if asked.fields.get("content-length", "0") != "0":
            raise Refused("who opens a link sends nothing along", hint=AGAIN)
        if asked.fields.get("sec-fetch-dest", "document") != "document":
            raise Refused("the viewer stands in no frame and in no page", hint=AGAIN)

    def pass_(self, asked: Request, *, page: bool) -> None:
        """Let a request in, or raise Refused; a *page* is what somebody may type into the browser's address line."""
        self._placed(asked)
        fields = asked.fields
        site = fields.get("sec-fetch-site", "")
        if page:
            if site not in ("same-origin", "none") or fields.get("sec-fetch-dest") != "document":
                raise Refused("the viewer stands in no frame and in no page", hint=AGAIN)
        elif site != "same-origin" or fields.get("sec-fetch-dest", "empty") not in LOADED:
            raise Refused("only the viewer's own page may ask this", hint=AGAIN)
        if "upgrade" in fields or fields.get("sec-fetch-mode") == "websocket":
            raise Refused("there is nothing to upgrade to", hint=AGAIN)
        if asked.method == "POST":
            if fields.get("origin") != self._origin:
                raise Refused("a change must say which page it comes from", hint=AGAIN)
            if fields.get("content-type", "").partition(";")[0].strip().lower() != JSON:
                raise Refused("a change is sent as JSON, which no form can", hint=AGAIN)
        elif asked.method != "GET":
            raise Refused(f"{asked.method[:20]} is not spoken here", hint=AGAIN)
        if not hmac.compare_digest(_cookie(fields.get("cookie", ""), self._name).encode(), self.key.encode()):
            raise Refused("this browser has no key", hint=AGAIN)

    def _placed(self, asked: Request) -> None:
        """Whether it was sent to us by the name we go by, and by no other page."""
        if asked.fields.get("host") != self._host:
            raise Refused("the viewer goes by another name", hint=AGAIN)
        if asked.fields.get("origin", self._origin) != self._origin:
            raise Refused("another page asked for this", hint=AGAIN)


def _cookie(said: str, name: str) -> str:
    found = [
        value.strip() for each, _, value in (pair.partition("=") for pair in said.split(";")) if each.strip() == name
    ]
    return found[0] if len(found) == 1 else ""  # twice the same name: somebody else set one
