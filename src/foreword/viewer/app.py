"""Serve the viewer: its files, the requests of its pages passed on to the worker's API, and a stream of changes.

A Starlette app on uvicorn, in the process of `foreword view`. The worker's API is reached through its Unix socket, and
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
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from foreword.errors import BadRequest, Conflict, ForewordError, WorkerError
from foreword.viewer.auth import Auth, Forbidden, Head, unique_fields
from foreword.worker.client import Client
from foreword.worker.lifecycle import pid_of, start

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from foreword.paths import Home

# What a person opens; which page it is, the script reads from the address.
PAGES = ("/", "/now", "/now/", "/timeline", "/timeline/", "/memories", "/memories/", "/try", "/health")
# What is passed on to the worker; an id follows a path that ends in a slash.
FORWARDED = {
    "/api/live": ("GET",),
    "/api/timeline": ("GET",),
    "/api/sessions/": ("GET",),
    "/api/health": ("GET",),
    "/api/stats": ("GET",),
    "/api/projects": ("GET",),
    "/api/memories": ("GET",),
    "/api/memories/": ("GET", "POST"),
    "/api/facets": ("GET",),
    "/api/pin": ("POST",),
    "/api/discard": ("POST",),
    "/api/supersede": ("POST",),
    "/api/undo": ("POST",),
    "/api/forget": ("POST",),
    "/api/review": ("GET", "POST"),
    "/api/preview": ("GET", "POST"),
}
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
MEDIA_TYPES = {
    "html": HTML,
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
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
        self._socket = _listen(port)
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
        self._socket.listen()
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
    """The ASGI app: checks every request before a route sees it."""

    def __init__(self, home: Home, auth: Auth) -> None:
        self.last_request = time.monotonic()
        self.closing = ""  # the reason, once the viewer closes
        self._home, self._auth = home, auth
        self._files = dict(
            _read_files(files("foreword.viewer") / "static")
        )  # of one build, whatever is installed later
        self._worker_slots = anyio.CapacityLimiter(WORKER_REQUESTS)
        self._stream_slots = anyio.CapacityLimiter(64)
        self._routes: ASGIApp = self._make_routes()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response: Response | None
        try:
            head = _head(scope)
            response = self._check(head)
        except BadRequest as exc:
            response = JSONResponse({"error": str(exc), "hint": exc.hint}, status_code=400)
        if response is not None:
            await response(scope, receive, send)
            return
        if head.path != "/api/changes":
            self.last_request = time.monotonic()
        await self._routes(scope, receive, send)

    def _check(self, head: Head) -> Response | None:
        """Return the answer to a link or to a request that is refused; None for one that a route answers."""
        try:
            if head.is_link:
                return self._welcome(head)
            self._auth.check(head)
        except Forbidden as exc:
            if head.is_page:
                return PlainTextResponse(f"{exc}: {exc.hint}\n", status_code=403)
            return JSONResponse({"error": str(exc), "hint": exc.hint}, status_code=403)
        return None

    def _welcome(self, head: Head) -> Response:
        """Let a link's browser in, and again a browser that has the cookie already."""
        try:
            return Response(WELCOME, media_type=HTML, headers={"Set-Cookie": self._auth.redeem(head)})
        except Forbidden as refused:
            try:
                self._auth.check(head)
            except Forbidden:
                raise refused from None
            return Response(WELCOME, media_type=HTML)

    def _make_routes(self) -> Starlette:
        handlers = {"/static/": self._file, "/api/changes": self._changes}
        routes = [
            Route(
                f"{path}{{id:path}}" if path.endswith("/") and path != "/" else path,
                self._page if path in PAGES else handlers.get(path, self._forward),
                methods=list(methods),
            )
            for path, methods in ROUTES.items()
        ]
        app = Starlette(routes=routes, exception_handlers={HTTPException: self._not_found, Exception: _failed})
        app.router.redirect_slashes = False
        return app

    async def _page(self, _: Request) -> Response:
        return self._static("index.html")

    async def _file(self, request: Request) -> Response:
        return self._static(request.path_params["id"])

    def _static(self, name: str, status: int = 200) -> Response:
        if name not in self._files:
            raise HTTPException(404)
        return Response(self._files[name], status, media_type=MEDIA_TYPES[name.rpartition(".")[2]])

    async def _not_found(self, request: Request, exc: Exception) -> Response:
        """Show a page to a person who mistyped an address; answer anything else in JSON."""
        status = exc.status_code if isinstance(exc, HTTPException) else 404
        if status == 404 and _head(request.scope).is_page and "text/html" in request.headers.get("accept", ""):
            return self._static("index.html", 404)
        error = f"no {request.method} {request.url.path[:80]} here"
        return JSONResponse({"error": error, "hint": "/ is the first page"}, status_code=status)

    async def _forward(self, request: Request) -> Response:
        """Pass a request on to the worker, and its answer back."""
        body = await _body(request)
        query = request.scope["query_string"].decode("latin-1")
        target = request.scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        ask = partial(self._ask_worker, request.method, target, body)
        try:
            status, answer = await anyio.to_thread.run_sync(ask, limiter=self._worker_slots)
        except ForewordError as exc:  # 502 tells the page to ask again by itself
            return JSONResponse({"error": str(exc), "hint": exc.hint}, status_code=502)
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

    async def _changes(self, _: Request) -> Response:
        return StreamingResponse(self._change_events(), media_type="text/event-stream")

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


def _head(scope: Scope) -> Head:
    token = Request(scope).query_params.get("token", "") if scope["path"] == "/" else ""
    return Head(scope["method"], scope["path"], token, unique_fields(scope["headers"]))


async def _body(request: Request) -> bytes:
    if int(request.headers.get("content-length", "0")) > MAX_BODY:
        raise HTTPException(413)
    return await request.body()


async def _failed(_: Request, __: Exception) -> Response:
    return JSONResponse({"error": "the viewer failed", "hint": "please report it"}, status_code=500)


def _event(name: str, data: dict[str, object]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
    except OSError as exc:
        listener.close()
        raise Conflict(f"port {port} is not available: {exc.strerror}", hint="leave out --port") from exc
    return listener


def _read_files(folder: Traversable, prefix: str = "") -> list[tuple[str, bytes]]:
    """Return the viewer's files by name; only these names are ever answered, so no path leads out of the folder."""
    found: list[tuple[str, bytes]] = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _read_files(each, f"{prefix}{each.name}/")
        elif each.name.rpartition(".")[2] in MEDIA_TYPES:
            found.append((f"{prefix}{each.name}", each.read_bytes()))
    return found
