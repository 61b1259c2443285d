"""HTTP on the worker's socket -> the keeper, in threads -> JSON. The only place that knows of HTTP."""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from foreword.errors import BadPayload, BadRequest, ForewordError, NotFound, StoreError
from foreword.payloads import Delivery
from foreword.worker.keeper import Keeper
from foreword.worker.life import Seat

log = logging.getLogger("foreword")

THREADS = 64  # each waits for its commit; many waiting together share one
MOST_BODY = 16 * 1024 * 1024  # a hook sends 1.25 MB at most, an import a batch of memories
TEND_EVERY = 1.0
LOOK_FOR_UPGRADE_EVERY = 5.0
Work = Callable[[Request, bytes], Any]
STATUS = {BadRequest: 400, BadPayload: 400, NotFound: 404, StoreError: 503}


def serve(seat: Seat) -> bool:
    """Serve until asked to leave, idle, or replaced; whether a new build should take over."""
    keeper = Keeper(seat.home)
    _log_to(seat, keeper)
    replaced, leaving = threading.Event(), threading.Event()

    def leave() -> None:
        leaving.set()
        server.should_exit = True

    server = uvicorn.Server(
        uvicorn.Config(
            application(keeper, leave=leave),
            http=_OnlyUs,
            loop="uvloop" if sys.platform != "win32" else "asyncio",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=3,
        )
    )
    tending = threading.Thread(target=_tend, args=(keeper, server, replaced, leaving), name="tend", daemon=True)
    tending.start()
    log.info("worker %s serves %s", os.getpid(), seat.home.socket)
    server.run(sockets=[seat.listener])
    asked_to = leaving.is_set()
    leaving.set()
    tending.join(timeout=5)
    keeper.close()
    log.info("worker %s leaves", os.getpid())
    return replaced.is_set() and not asked_to


def application(keeper: Keeper, *, leave: Callable[[], None]) -> Starlette:
    """Every route, each a line."""

    def get(path: str, work: Work, **given: bool) -> Route:
        return Route(path, _endpoint(keeper, work, **given), methods=["GET"])

    def post(path: str, work: Work, **given: bool) -> Route:
        return Route(path, _endpoint(keeper, work, **given), methods=["POST"])

    def stop(_request: Request, _body: bytes) -> dict[str, Any]:
        leave()
        return {"leaving": True}

    routes = [
        post("/api/hook", lambda request, body: keeper.hook(_delivery(request, body)), raw=True),
        post("/api/events", lambda _, body: keeper.events(_object(body))),
        post("/api/memories", lambda _, body: keeper.add(_object(body))),
        get("/api/memories/{id}", lambda request, _: keeper.memory(request.path_params["id"])),
        get("/api/context", lambda request, _: keeper.context(**_context_query(request))),
        get("/api/search", lambda request, _: keeper.search(**_search_query(request))),
        get("/api/sessions", lambda request, _: keeper.sessions(**_list_query(request))),
        get("/api/injections", lambda request, _: keeper.injections(**_injections_query(request))),
        get("/api/health", lambda _, __: keeper.health()),
        get("/api/metrics", lambda _, __: keeper.metrics().encode(), raw=True),
        post("/api/index", lambda _, __: keeper.index()),
        post("/api/stop", stop),
    ]

    async def not_here(request: Request, exc: Exception) -> Response:
        return JSONResponse(
            {"error": f"no {request.method} {request.url.path} here", "hint": "docs/api.md lists the routes"},
            status_code=exc.status_code if isinstance(exc, HTTPException) else 404,
        )

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        yield

    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: not_here, 405: not_here})


def _endpoint(keeper: Keeper, work: Work, *, raw: bool = False) -> Callable[[Request], Awaitable[Response]]:
    """*work* in a thread; what it raises becomes a JSON error with its hint, what it returns says how long it took."""

    async def endpoint(request: Request) -> Response:
        started = time.perf_counter()
        keeper.asked = time.monotonic()
        try:
            answer = await anyio.to_thread.run_sync(work, request, await _body(request))
        except ForewordError as exc:
            status = next((code for kind, code in STATUS.items() if isinstance(exc, kind)), 500)
            return JSONResponse({"error": str(exc), "hint": exc.hint}, status_code=status)
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return JSONResponse(
                {"error": "the worker failed; nothing was lost", "hint": "see logs/worker.log, and please report it"},
                status_code=500,
            )
        if raw:
            return Response(answer, media_type="text/plain")
        return JSONResponse({**answer, "ms": round((time.perf_counter() - started) * 1000, 3)})

    return endpoint


async def _body(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BODY:
            raise BadRequest(f"the body is longer than {MOST_BODY} bytes", hint="send it in parts")
        parts.append(part)
    return b"".join(parts)


def _object(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise BadRequest("the body is not JSON", hint="send one JSON object") from exc
    if not isinstance(told, dict):
        raise BadRequest("the body is no JSON object", hint="send one JSON object")
    return told


def _delivery(request: Request, body: bytes) -> Delivery:
    return Delivery(
        host=_word(request, "host"),
        event=_word(request, "event"),
        at=_number(request, "at") or time.time(),
        raw=body,
        head=int(_number(request, "head", -1.0)),
        total=int(_number(request, "total", -1.0)),
    )


def _context_query(request: Request) -> dict[str, Any]:
    return {
        "project_path": _word(request, "project_path"),
        "session_id": _word(request, "session_id"),
        "moment": _word(request, "moment"),
        "prompt": _word(request, "prompt"),
        "model": _word(request, "model"),
        "budget": _whole(request, "budget", most=100_000),
    }


def _list_query(request: Request) -> dict[str, Any]:
    return {"project_path": _word(request, "project_path"), "limit": _whole(request, "limit", 20, most=1000)}


def _injections_query(request: Request) -> dict[str, Any]:
    return {"session_id": _word(request, "session_id"), **_list_query(request)}


def _search_query(request: Request) -> dict[str, Any]:
    return {
        "q": _word(request, "q"),
        "project_path": _word(request, "project_path"),
        "kinds": tuple(kind for kind in _word(request, "kinds").split(",") if kind),
        "since": _number(request, "since"),
        "at": _number(request, "at"),
        "limit": _whole(request, "limit", most=1000),
        "compact": _flag(request, "compact"),
        "explain": _flag(request, "explain"),
    }


def _word(request: Request, name: str) -> str:
    return request.query_params.get(name, "")


def _flag(request: Request, name: str) -> bool:
    return _word(request, name).lower() in ("1", "true", "yes")


def _number(request: Request, name: str, default: float = 0.0) -> float:
    given = _word(request, name)
    try:
        number = float(given) if given else default
    except ValueError as exc:
        raise BadRequest(f"`{name}` must be a number, not {given[:40]!r}", hint="leave it out for the default") from exc
    if number != number or abs(number) == float("inf"):  # noqa: PLR0124 - NaN is the one number that is not itself
        raise BadRequest(f"`{name}` must be a number, not {given[:40]!r}", hint="leave it out for the default")
    return number


def _whole(request: Request, name: str, default: int = 0, *, most: int) -> int:
    number = _number(request, name, default)
    if not 0 <= number <= most:
        raise BadRequest(f"`{name}` must be a number from 0 to {most}", hint="leave it out for the default")
    return int(number)


class _OnlyUs(HttpToolsProtocol):
    """Hangs up on a peer that is another user, before reading a byte."""

    def connection_made(self, transport: Any) -> None:
        line = transport.get_extra_info("socket")
        if _peer(line) != os.getuid():
            log.warning("another user was refused")
            transport.abort()
            return
        super().connection_made(transport)


def _peer(line: socket.socket) -> int:
    """The user at the other end of a Unix socket."""
    if hasattr(socket, "SO_PEERCRED"):
        raw = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", raw)[1])
    raw = line.getsockopt(0, 0x001, 76)  # SOL_LOCAL, LOCAL_PEERCRED of macOS: version, uid, groups
    return int(struct.unpack_from("2I", raw)[1])


def _tend(keeper: Keeper, server: uvicorn.Server, replaced: threading.Event, leaving: threading.Event) -> None:
    """Every second: what waits is taken in; an idle, upgraded or homeless worker leaves."""
    looked = time.monotonic()
    while not leaving.wait(TEND_EVERY if server.started else 0.05):
        try:
            keeper.tend()
            if time.monotonic() - looked > LOOK_FOR_UPGRADE_EVERY:
                looked = time.monotonic()
                if keeper.upgraded():
                    log.info("the package was upgraded")
                    replaced.set()
            if replaced.is_set() or keeper.idle() or not keeper.home.socket.exists():
                server.should_exit = True
                return
        except Exception:
            log.exception("tending failed; it goes on")


def _log_to(seat: Seat, keeper: Keeper) -> None:
    handler = logging.handlers.RotatingFileHandler(
        seat.home.log, maxBytes=keeper.settings.worker_log_kb * 1024, backupCount=2, encoding="utf-8"
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=keeper.settings.log_level.upper(), handlers=[handler], force=True)
