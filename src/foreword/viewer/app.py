"""Serve the viewer: its files, the requests of its pages passed on to the worker's API, and a stream of changes.

An ASGI app on uvicorn, in the process of `foreword view`. The worker's API is reached through its Unix socket, and
only by the routes listed here.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import anyio
import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from foreword.errors import BadRequest, Conflict, ForewordError, WorkerError
from foreword.paths import Home
from foreword.viewer.auth import Auth, Forbidden, check_fields, is_page, token_of
from foreword.worker.client import Client
from foreword.worker.lifecycle import pid_of, start

STATIC = Path(__file__).with_name("static")
# What a person opens; which page it is, the script reads from the address.
PAGES = ("/", "/now", "/now/", "/timeline", "/timeline/", "/memories", "/memories/", "/try", "/health")
# What is passed on to the worker; an id follows a path that ends in a slash.
READ = ("live", "timeline", "sessions/", "health", "stats", "projects", "memories", "facets")
BOTH = ("memories/", "review", "preview")
CHANGED = ("pin", "undo", "forget")
METHODS = {("GET",): READ, ("GET", "POST"): BOTH, ("POST",): CHANGED}
FORWARDED = {f"/api/{name}": methods for methods, names in METHODS.items() for name in names}
ROUTES = {**dict.fromkeys((*PAGES, "/static/", "/api/changes"), ("GET",)), **FORWARDED}
# Nothing but our own files and answers; no text can become a script, an element or a request.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
    "Connection": "close",
}
# Not a redirect: after a link in another site's page, a browser would not send the strict cookie along.
WELCOME = (
    '<!doctype html><html lang="en"><meta http-equiv="refresh" content="0;url=/now"><title>Foreword</title>'
    '<link rel="icon" href="/static/mark.svg" type="image/svg+xml">'  # else the browser asks for /favicon.ico
)
HTML = "text/html; charset=utf-8"
MEDIA_TYPES = {"html": HTML, "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
MAX_HEAD = 64 * 1024
MAX_BODY = 2 * 1024 * 1024  # a hook sends 1.25 MB at most, and a preview of its prompt no more
WORKER_REQUESTS = 4  # at once: the worker has eight read connections, and hooks need theirs
WORKER_TRIES = 15  # over three seconds, which a worker may take to leave
CHANGE_PAUSE = 0.5  # seconds between two events: a page that refreshes twice a second looks live
RECONNECT = 2000  # milliseconds after which a browser that lost the stream asks again
GRACE = 2  # seconds for requests under way when the viewer closes


class ViewerServer:
    """The viewer on a loopback port, in a thread of its own, until it is closed."""

    def __init__(self, home: Home, *, port: int = 0) -> None:
        try:
            self._socket = socket.create_server(("127.0.0.1", port))
        except OSError as exc:
            raise Conflict(f"port {port} is not available: {exc.strerror}", hint="leave out --port") from exc
        self.port: int = self._socket.getsockname()[1]
        self.auth = Auth(self.port)
        self._app = _ViewerApp(home, self.auth)
        config = uvicorn.Config(
            self._app,
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            headers=list(HEADERS.items()),
            h11_max_incomplete_event_size=MAX_HEAD,
            timeout_graceful_shutdown=GRACE,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    def start(self) -> None:
        """Begin to answer; connections made before wait in the socket's backlog."""
        self._thread.start()

    def idle_seconds(self) -> float:
        """Return how long no request was let in; a page that only listens for changes does not count."""
        return time.monotonic() - self._app.last_request

    def is_running(self) -> bool:
        return self._thread.is_alive()

    def close(self, reason: str) -> None:
        """Tell the pages why, and stop answering."""
        self._app.closing = reason
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


class _ViewerApp:
    """The ASGI app: checks every request before it is answered."""

    def __init__(self, home: Home, auth: Auth) -> None:
        self.last_request = time.monotonic()
        self.closing = ""  # the reason, once the viewer closes
        self._home, self._auth = home, auth
        # Read once: the files are of one build, and no path leads out of the folder.
        paths = [path for path in STATIC.rglob("*") if path.suffix[1:] in MEDIA_TYPES]
        self._files = {path.relative_to(STATIC).as_posix(): path.read_bytes() for path in paths}
        self._worker_slots = anyio.CapacityLimiter(WORKER_REQUESTS)
        self._stream_slots = anyio.CapacityLimiter(64)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            check_fields(request.headers)
            if token_of(request):
                response = Response(WELCOME, media_type=HTML, headers=self._auth.redeem(request))
            else:
                self._auth.check(request)
                response = await self._answer(request)
        except BadRequest as exc:
            response = _error(exc, 400)
        except Forbidden as exc:
            is_opened = is_page(scope["path"])
            response = PlainTextResponse(f"{exc}: {exc.hint}\n", 403) if is_opened else _error(exc, 403)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        path = request.scope["path"]
        if path != "/api/changes":
            self.last_request = time.monotonic()
        prefixes = (each for each in ROUTES if each.endswith("/") and each != "/" and path.startswith(each))
        route = path if path in ROUTES else next(prefixes, "")
        if route in PAGES:
            return self._file("index.html")
        name = path.removeprefix("/static/")
        if route == "/static/" and name in self._files:
            return self._file(name)
        if route == "/api/changes":
            return StreamingResponse(self._change_events(), media_type="text/event-stream")
        if request.method in FORWARDED.get(route, ()):
            return await self._forward(request)
        if is_page(path) and "text/html" in request.headers.get("accept", ""):
            return self._file("index.html", 404)  # a person mistyped an address
        error = BadRequest(f"no {request.method} {path[:80]} here", hint="/ is the first page")
        return _error(error, 405 if route in FORWARDED else 404)

    def _file(self, name: str, status: int = 200) -> Response:
        return Response(self._files[name], status, media_type=MEDIA_TYPES[name.rpartition(".")[2]])

    async def _forward(self, request: Request) -> Response:
        """Pass a request on to the worker, and its answer back."""
        if int(request.headers.get("content-length", "0")) > MAX_BODY:
            return _error(BadRequest("the request is too large"), 413)
        query = request.scope["query_string"].decode("latin-1")
        target = request.scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        ask = partial(self._ask_worker, request.method, target, await request.body())
        try:
            status, answer = await anyio.to_thread.run_sync(ask, limiter=self._worker_slots)
        except ForewordError as exc:
            return _error(exc, 502)  # which tells the page to ask again by itself
        return Response(answer, status, media_type="application/json")

    def _ask_worker(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        """Send a request to the worker, started where there is none; try again while one leaves."""
        tries = WORKER_TRIES
        while True:
            if not pid_of(self._home):
                start(self._home)
            try:
                return Client(self._home).send(method, target, body if method == "POST" else None)
            except WorkerError as exc:
                # A change is sent again only where nobody was there to read it.
                unread = isinstance(exc.__cause__, FileNotFoundError | ConnectionRefusedError)
                tries -= 1
                if not tries or not (unread or method == "GET"):
                    raise
                time.sleep(0.2)

    async def _change_events(self) -> AsyncIterator[str]:
        """Yield an event whenever the worker has committed something, until the viewer closes."""
        yield f"retry: {RECONNECT}\n\n"
        number = await self._commit_number(-1)
        yield _event("ready", {"number": number})
        while not self.closing:
            before, number = number, await self._commit_number(number)
            if number != before:
                yield _event("changed", {"number": number})
                await asyncio.sleep(CHANGE_PAUSE)
        yield _event("closed", {"why": self.closing})

    async def _commit_number(self, after: int) -> int:
        """Return the number of the worker's last commit; *after* a second where there is none or no worker."""

        def ask() -> int:
            try:
                return int(Client(self._home, seconds=10).get("/api/changes", after=after)["number"])
            except ForewordError:
                return after

        began = time.monotonic()
        number = await anyio.to_thread.run_sync(ask, limiter=self._stream_slots)
        if number == after and time.monotonic() - began < 0.5:  # no worker: a page's next request starts one
            await asyncio.sleep(0.5)
        return number


def _error(exc: ForewordError, status: int) -> Response:
    return JSONResponse({"error": str(exc), "hint": exc.hint}, status)


def _event(name: str, data: dict[str, object]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
