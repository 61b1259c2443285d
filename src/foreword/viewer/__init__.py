"""The viewer: off until asked, served by the worker on a loopback port, and closed with its command or when idle."""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from foreword.errors import BadRequest, Conflict
from foreword.store.turns import aside
from foreword.viewer.auth import Gate, Refused
from foreword.viewer.peers import owner_of
from foreword.worker.http import Request, Response
from foreword.worker.routing import Routes, answered, as_json, route_of

if TYPE_CHECKING:
    from foreword.worker.app import App

log = logging.getLogger("foreword")

LET_GO = 10.0  # seconds without a word of the command before it counts as gone; it says one every two
AWAY = 5.0  # seconds between two looks (there is one a second) that say that we ourselves were stopped or asleep
KEY = re.compile(r"[A-Za-z0-9_-]{40,100}")
ASKED, IDLE, GONE = "it was asked to close", "nobody looked at it for a while", "its command ended"
LEAVES = "the worker leaves"  # pages are not told so: the next worker may open it again, and they go on
# Nothing but our own files and our own answers; no text can become a script, an element or a request.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
FIELDS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}
# Not a redirect: behind a link that another site's page held, a browser would not send the strict cookie along.
WELCOME = (
    b'<!doctype html><html lang="en"><meta http-equiv="refresh" content="0;url=/now"><title>Foreword</title>'
    b'<link rel="icon" href="/static/mark.svg" type="image/svg+xml">'  # else the browser asks for one that is not ours
)
HTML = "text/html; charset=utf-8"


class Viewer:
    """Opens and closes the page for one keeper."""

    def __init__(self, app: App) -> None:
        self._keeper = app
        self._lock = threading.Lock()
        self._open: _Open | None = None
        self._why = ""  # it closed last
        self._tended = time.monotonic()

    def about(self) -> dict[str, Any]:
        """Whether it is open, and where; never with a key."""
        now = self._open
        return {"open": now is not None, "port": now.port if now else 0, "idle_s": round(now.idle(), 1) if now else 0.0}

    def say(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """What a command says: open (a link, and a name for the command), hold or leave by that name, or close.

        With the `key` of an earlier opening, the browsers of that one get in: a worker that was replaced goes on.
        """
        what = told.get("do", "open")
        with self._lock:
            if what == "open":
                return self._opened(_port(told), _key(told))
            if what == "hold":
                name = str(told.get("holder") or "")
                if self._open is None or name not in self._open.holders:
                    return {"open": False, "why": self._why, "again": self._why not in (ASKED, IDLE)}
                self._open.holders[name] = time.monotonic()
                return self.about()
            if what == "leave":  # it may be closed already: then there is nothing to leave
                if self._open is not None:
                    self._open.holders.pop(str(told.get("holder") or ""), None)
                    if not self._open.holders:
                        self._close(GONE)
                return self.about()
            if what == "close":
                was = self._open is not None
                self._close(ASKED)
                return {**self.about(), "closed": was}
        raise BadRequest(f"the viewer does not know {str(what)[:40]!r}", hint="`do` is open, hold, leave or close")

    def busy(self) -> bool:
        """Whether it is open: the worker stays while somebody looks."""
        return self._open is not None

    def tend(self) -> None:
        """Close it when its commands are gone, or when nobody looked for a while."""
        with self._lock:
            now, away = self._open, time.monotonic() - self._tended
            self._tended += away
            if now is None:
                return
            if away > AWAY:  # nobody could be heard meanwhile
                now.looked += away
                now.holders = {name: heard + away for name, heard in now.holders.items()}
            gone = time.monotonic() - LET_GO
            now.holders = {name: heard for name, heard in now.holders.items() if heard > gone}
            if not now.holders:
                self._close(GONE)
            elif now.idle() > self._keeper.settings.viewer_idle_minutes * 60:
                self._close(IDLE)

    def close(self) -> None:
        with self._lock:
            self._close(LEAVES)

    def _opened(self, port: int, key: str) -> dict[str, Any]:
        if self._open is not None and port not in (0, self._open.port):
            raise Conflict(
                f"the viewer is open on port {self._open.port}",
                hint="close it with `foreword view --close`, or leave out --port",
            )
        if self._open is None:
            self._open = _Open(self._keeper, port, key)
            log.info("the viewer is open on 127.0.0.1:%s", self._open.port)
        holder = secrets.token_hex(8)
        self._open.holders[holder] = self._open.looked = time.monotonic()
        gate = self._open.gate
        return {"url": gate.link(), "holder": holder, "port": self._open.port, "key": gate.key}

    def _close(self, why: str) -> None:
        if self._open is not None:
            log.info("the viewer closes: %s", why)
            self._why, closing, self._open = why, self._open, None
            closing.close("" if why == LEAVES else why)


class _Open:
    """The port, its threads, its keys and its routes, while somebody looks."""

    def __init__(self, app: App, port: int, key: str) -> None:
        from foreword.viewer.hall import Hall
        from foreword.viewer.live import Live
        from foreword.viewer.routes import routes_of

        self._keeper = app
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen(512)  # who knocks while nobody looks waits, and does not come again a second later
        except OSError as exc:
            listener.close()
            raise Conflict(
                f"port {port} cannot be had: {exc.strerror}", hint="leave out --port for a free one"
            ) from exc
        self.port: int = listener.getsockname()[1]
        self.gate = Gate(self.port, key=key)
        self.holders: dict[str, float] = {}  # command -> when it was heard last
        self.looked = time.monotonic()
        self._live = Live(store=lambda: app.store)
        self._routes = routes_of(app, self._live)
        self._hall = Hall(listener, self._answer, admit=self._admits, look=self._refusal, fields=FIELDS)
        self._listener = listener

    def idle(self) -> float:
        return time.monotonic() - self.looked

    def close(self, why: str) -> None:
        self._live.close(why)
        self._hall.close()
        self._listener.close()

    def _admits(self, line: socket.socket) -> bool:
        """Our own user, or root, who may be a relay from outside; where the system does not tell, the keys decide."""
        host, port = line.getpeername()
        owner = owner_of(port, self.port) if host == "127.0.0.1" else -1
        return owner in (None, 0, os.getuid())

    def _refusal(self, asked: Request) -> Response | None:
        """What somebody hears who may not ask this; the body of such a one is not even read."""
        try:
            if _is_link(asked):
                self.gate.follow(asked)
            else:
                self.gate.pass_(asked, page=is_page(self._routes, asked.path))
        except Refused as exc:
            return self._refused(asked, exc)
        return None

    def _answer(self, asked: Request) -> Response:
        if _is_link(asked):
            return self._welcomed(asked)
        if asked.path.startswith("/api/"):
            self._keeper.backpressure.give_way()  # a hook waits for its answer; a reader can wait
        with aside():  # and takes no reader of a hook's
            answer = answered(self._routes, asked, tell=self._keeper.tell, hint="/ is where the viewer begins")
        if answer.status == 404 and self._is_read(asked):
            answer = Response(status=404, body=self._routes["/"]["GET"](asked).body, kind=HTML)
        if isinstance(answer.body, bytes):  # a page that only listens looks at nothing
            self.looked = self._keeper.asked = time.monotonic()
        return answer

    def _welcomed(self, asked: Request) -> Response:
        """Who opens a link for the first time, or has the key already and opens a used one again."""
        try:
            fields = {"Set-Cookie": self.gate.opened(asked)}
        except Refused as exc:
            try:
                self.gate.pass_(asked, page=True)
            except Refused:
                return self._refused(asked, exc)
            fields = {}
        return Response(status=200, body=WELCOME, kind=HTML, fields=fields)

    def _is_read(self, asked: Request) -> bool:
        """Whether a person opened it, who is told in a page what a script is told in JSON."""
        return is_page(self._routes, asked.path) and "text/html" in asked.fields.get("accept", "")

    def _refused(self, asked: Request, why: Refused) -> Response:
        if is_page(self._routes, asked.path):  # a person reads it
            return Response(status=403, body=f"{why}: {why.hint}\n".encode(), kind="text/plain; charset=utf-8")
        return as_json({"error": str(why), "hint": why.hint}, 403)


def _is_link(asked: Request) -> bool:
    return "token" in asked.query and asked.path == "/"


def is_page(routes: Routes, path: str) -> bool:
    """Whether this is what a person opens: anything but files of ours and what scripts ask for."""
    return not route_of(routes, path).startswith(("/api/", "/static/"))


def _key(told: Mapping[str, Any]) -> str:
    key = told.get("key") or ""
    if key and not (isinstance(key, str) and KEY.fullmatch(key)):
        raise BadRequest("`key` must be one that an earlier opening gave", hint="leave it out for a new one")
    return key


def _port(told: Mapping[str, Any]) -> int:
    port = told.get("port") or 0
    if not isinstance(port, int) or isinstance(port, bool) or not (port == 0 or 1024 <= port <= 65535):
        raise BadRequest("`port` must be a whole number from 1024 to 65535", hint="leave it out for a free one")
    return port
