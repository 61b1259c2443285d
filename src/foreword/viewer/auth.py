"""Decide whether a request to the viewer is let in: where it was sent, by whose page, and with which session cookie.

A page of a foreign site can make a browser send requests to a loopback port; it cannot change what the browser says
about them. So Host, Origin and the Sec-Fetch fields are checked first and the cookie last: nobody learns from the
answer whether a cookie was right.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.requests import Request

from foreword.errors import BadRequest, ForewordError

COOKIE = "foreword"  # with the port behind it: cookies know no ports, and another viewer may be open
LINK_SECONDS = 600.0  # that a one-time link waits for its browser
JSON = "application/json"
HINT = "run `foreword view`, and open the link that it prints"
LOADED = ("empty", "script", "style", "image")  # destinations that our pages load; no document, no frame


class Forbidden(ForewordError):
    """A request that the viewer refuses."""


def is_page(path: str) -> bool:
    """Return whether a person opens it: anything but our files and what scripts ask for."""
    return not path.startswith(("/api/", "/static/"))


def token_of(request: Request) -> str:
    """Return the token of a one-time link; empty where the request is none."""
    return request.query_params.get("token", "") if request.scope["path"] == "/" else ""


def check_fields(headers: Headers) -> None:
    """Raise BadRequest for a field that two readers could understand differently."""
    names = [name.decode("latin-1").lower() for name, _ in headers.raw]
    for name in names:
        if names.count(name) > 1 or name == "transfer-encoding":
            raise BadRequest(f"invalid header {name[:40]}", hint="send each header once, and a Content-Length")


class Auth:
    """The one-time links and the session cookie of one viewer."""

    def __init__(self, port: int, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._host = f"127.0.0.1:{port}"
        self._origin = f"http://{self._host}"
        self._cookie = f"{COOKIE}-{port}"
        self._key = secrets.token_urlsafe(32)
        self._links: dict[str, float] = {}  # token -> until when it is valid
        self._lock = threading.Lock()  # the command makes links while browsers redeem them

    def link(self) -> str:
        """Return an address that opens the viewer once."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._links = {each: until for each, until in self._links.items() if until > self._now()}
            self._links[token] = self._now() + LINK_SECONDS
        return f"{self._origin}/?token={token}"

    def redeem(self, request: Request) -> dict[str, str]:
        """Return the Set-Cookie field for a valid link, which is used up by it; raise Forbidden for any other.

        A browser that has the cookie may open its link again.
        """
        fields = request.headers
        self._check_origin(fields)
        if request.method != "GET" or fields.get("sec-purpose"):
            raise Forbidden("a link must be opened, not prefetched", hint=HINT)
        if fields.get("content-length", "0") != "0":
            raise Forbidden("unexpected body", hint=HINT)
        if fields.get("sec-fetch-dest", "document") != "document":
            raise Forbidden("the viewer cannot be embedded", hint=HINT)
        sent = token_of(request).encode(errors="surrogatepass")
        with self._lock:
            token = next((each for each in self._links if hmac.compare_digest(each.encode(), sent)), "")
            until = self._links.pop(token, 0.0)
        if until > self._now():
            return {"Set-Cookie": f"{self._cookie}={self._key}; HttpOnly; SameSite=Strict; Path=/"}
        if not self._has_cookie(fields):
            raise Forbidden("this link was used, or is too old", hint=HINT)
        return {}

    def check(self, request: Request) -> None:
        """Raise Forbidden unless our own page, or a person at the address bar, sent this with our session cookie."""
        fields = request.headers
        self._check_origin(fields)
        site = fields.get("sec-fetch-site", "")
        if is_page(request.scope["path"]):
            if site not in ("same-origin", "none") or fields.get("sec-fetch-dest") != "document":
                raise Forbidden("the viewer cannot be embedded", hint=HINT)
        elif site != "same-origin" or fields.get("sec-fetch-dest", "empty") not in LOADED:
            raise Forbidden("only the viewer's own pages may send this", hint=HINT)
        if "upgrade" in fields or fields.get("sec-fetch-mode") == "websocket":
            raise Forbidden("upgrades are not supported", hint=HINT)
        if request.method == "POST":
            if fields.get("origin") != self._origin:
                raise Forbidden("missing Origin header", hint=HINT)
            if fields.get("content-type", "").partition(";")[0].strip().lower() != JSON:  # which no form can send
                raise Forbidden("a change must be sent as JSON", hint=HINT)
        elif request.method != "GET":
            raise Forbidden(f"method {request.method[:20]} is not supported", hint=HINT)
        if not self._has_cookie(fields):
            raise Forbidden("missing session cookie", hint=HINT)

    def _has_cookie(self, fields: Headers) -> bool:
        pairs = (pair.partition("=") for pair in fields.get("cookie", "").split(";"))
        values = [value.strip() for name, _, value in pairs if name.strip() == self._cookie]
        # The same name twice: another server set one.
        return len(values) == 1 and hmac.compare_digest(values[0].encode(), self._key.encode())

    def _check_origin(self, fields: Headers) -> None:
        if fields.get("host") != self._host:  # also a name that was rebound to this address
            raise Forbidden("invalid Host header", hint=HINT)
        if fields.get("origin", self._origin) != self._origin:
            raise Forbidden("invalid Origin header", hint=HINT)
