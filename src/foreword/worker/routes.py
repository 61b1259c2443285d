"""Serve the worker's API: every route and its handler, how queries and bodies are read, and how errors are answered."""

from __future__ import annotations

import json
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from inspect import Parameter, signature
from typing import Any

from foreword.capture.payload import HookCall
from foreword.encoding import dumps
from foreword.errors import BadPayload, BadRequest, Conflict, ForewordError, NotFound, StoreError
from foreword.worker import edits, injections, mcp_tools, memories, preview, projects, sessions, upkeep
from foreword.worker.app import App
from foreword.worker.forget import forget
from foreword.worker.health import health
from foreword.worker.http import Request, Response, Server
from foreword.worker.lifecycle import WorkerLock
from foreword.worker.services import Services

log = logging.getLogger("foreword")

THREADS = 64  # each waits for its commit; many waiting together share one
TICK_EVERY = 1.0  # seconds
UPGRADE_CHECK_EVERY = 5.0  # seconds
# An agent waits for these: background jobs give way.
LATENCY_CRITICAL = ("/api/hook", "/api/events", "/api/context", "/api/search", "/api/mcp")
LOW_PRIORITY = ("/api/live", "/api/timeline", "/api/memories", "/api/facets")  # a reader can wait for a hook's answer
NOT_ACTIVITY = ("/api/changes",)  # a viewer that nobody uses keeps no worker from leaving
STATUS = {BadRequest: 400, BadPayload: 400, NotFound: 404, Conflict: 409, StoreError: 503}
MOST = {"limit": 1000, "budget": 100_000, "days": 36_500}  # of whole numbers in a query

Handler = Callable[[Request], Any]
Routes = Mapping[str, Mapping[str, Handler]]


def serve(worker_lock: WorkerLock, leaving: threading.Event) -> bool:
    """Serve until the worker is *leaving*, idle, or a new build should take over; return whether one should."""
    app = App(worker_lock.home)
    server = Server(worker_lock.listener, handler(app), threads=THREADS)
    log.info("worker %s serves %s", os.getpid(), worker_lock.home.socket)
    try:
        return _tick_until_left(app, worker_lock, leaving)
    finally:
        app.runner.begin_close()  # what a request does in many commits ends at the next one
        server.close()
        app.close()
        log.info("worker %s leaves", os.getpid())


def _tick_until_left(app: App, worker_lock: WorkerLock, leaving: threading.Event) -> bool:
    """Tick every second until the worker is idle, upgraded or has lost its home; return whether it was upgraded."""
    checked = time.monotonic()
    while True:
        try:
            if app.is_idle() or not worker_lock.is_ours():
                return False
            app.tick()
            if time.monotonic() - checked > UPGRADE_CHECK_EVERY:
                checked = time.monotonic()
                if app.upgraded():
                    log.info("the package was upgraded")
                    return True
        except Exception:
            log.exception("a tick failed")
        if leaving.wait(TICK_EVERY):
            return False


# Path -> method -> handler. A path that ends in a slash is a prefix: an id follows it.
ROUTES: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "/api/hook": {"POST": lambda app, call: app.hooks.answer(call)},
    "/api/events": {"POST": lambda app, body: app.capture.add_events(body)},
    "/api/context": {"GET": injections.show_context},
    "/api/mcp": {"POST": mcp_tools.answer},
    "/api/memories": {"GET": memories.browse, "POST": memories.add_memories},
    "/api/memories/": {"GET": memories.show_memory, "POST": edits.revise},
    "/api/search": {"GET": memories.search_memories},
    "/api/export": {"GET": memories.export_rows},
    "/api/facets": {"GET": memories.facets},
    "/api/pin": {"POST": edits.pin},
    "/api/supersede": {"POST": edits.supersede},
    "/api/review": {"GET": edits.list_review, "POST": edits.decide_review},
    "/api/undo": {"POST": edits.undo},
    "/api/log": {"GET": edits.show_log},
    "/api/sessions": {"GET": sessions.list_sessions},
    "/api/sessions/": {"GET": sessions.story},
    "/api/timeline": {"GET": sessions.timeline},
    "/api/live": {"GET": sessions.live},
    "/api/changes": {"GET": upkeep.changes},
    "/api/preview": {"GET": preview.choices, "POST": preview.preview},
    "/api/resume": {"GET": sessions.show_resume},
    "/api/line": {"GET": injections.status_line},
    "/api/injections": {"GET": injections.list_injections},
    "/api/injections/": {"GET": injections.show_injection},
    "/api/stats": {"GET": upkeep.show_stats},
    "/api/goals": {"GET": memories.list_goals},
    "/api/goals/": {"POST": memories.finish_goal},
    "/api/projects": {"GET": projects.list_projects},
    "/api/project": {"GET": projects.show_project},
    "/api/project/merge": {"POST": projects.merge_project},
    "/api/imports": {"GET": upkeep.show_imports, "POST": lambda app, body: {"import": app.imports.start(body)}},
    "/api/tidy": {"POST": upkeep.tidy},
    "/api/prune": {"POST": upkeep.prune},
    "/api/backup": {"POST": lambda app, body: app.backup.copy(body)},
    "/api/restore": {"POST": lambda app, body: app.backup.restore(body)},
    "/api/verify": {"POST": lambda app, body: app.backup.verify(body)},
    "/api/scrub": {"POST": upkeep.scrub_store},
    "/api/forget": {"POST": forget},
    "/api/index": {"POST": upkeep.index},
    "/api/model": {"GET": lambda app: app.refine.status(), "POST": lambda app: app.refine.attempt()},
    "/api/health": {"GET": health},
}


def bound(handle: Callable[..., Any], app: App) -> Handler:
    """Return what answers a request by *handle*, with those parts of the request that its parameters name.

    Its keyword-only parameters are values of the query, each of the type of its default.
    """
    parameters = signature(handle).parameters.values()
    parts = {each.name: PARTS[each.name] for each in parameters if each.name in PARTS}
    query = {each.name: each.default for each in parameters if each.kind is Parameter.KEYWORD_ONLY}

    def answer(request: Request) -> Any:
        values = {name: read(request) for name, read in parts.items()}
        return handle(app, **values, **{name: _value(request, name, default) for name, default in query.items()})

    return answer


def handler(app: App) -> Callable[[Request], Response]:
    """Return what answers any request on the socket."""
    routes = {path: {name: bound(each, app) for name, each in methods.items()} for path, methods in ROUTES.items()}

    def answer(request: Request) -> Response:
        if request.path not in NOT_ACTIVITY:
            app.last_request = time.monotonic()
        if request.method == "GET" and request.path in LOW_PRIORITY:
            app.runner.give_way()
        with app.runner if request.path in LATENCY_CRITICAL else nullcontext():
            return respond(routes, request, services=app)

    return answer


def respond(routes: Routes, request: Request, *, services: Services) -> Response:
    """Return the answer of a request's route: a mapping as JSON with its time, bytes as text."""
    started, path = time.perf_counter(), request.path
    methods = routes.get(route_of(routes, path), {})
    if request.method not in methods:
        error = {"error": f"no {request.method} {path} here", "hint": "docs/api.md lists the routes"}
        return _json(error, 405 if methods else 404)
    try:
        answer = methods[request.method](request)
    except ForewordError as exc:
        status = next((code for kind, code in STATUS.items() if isinstance(exc, kind)), 500)
        if status >= 500:
            services.report("store", f"{exc}; {exc.hint}")
        return _json({"error": str(exc), "hint": exc.hint}, status)
    except Exception:
        log.exception("%s %s failed", request.method, path)
        hint = "see logs/worker.log, and please report it"
        return _json({"error": "the worker failed; nothing was lost", "hint": hint}, 500)
    if isinstance(answer, bytes):
        return Response(200, answer, kind="text/plain; charset=utf-8")
    return _json({**answer, "ms": round((time.perf_counter() - started) * 1000, 3)}, 200)


def route_of(routes: Collection[str], path: str) -> str:
    """Return the route of a path; the path itself where there is none."""
    if path in routes:
        return path
    return next((each for each in routes if each != "/" and each.endswith("/") and path.startswith(each)), path)


def _json(values: Mapping[str, Any], status: int) -> Response:
    """Return a JSON response; what is no number in JSON, such as infinity, is null."""
    return Response(status, dumps(values).encode())


# ---- what a request holds


def _hook_call(request: Request) -> HookCall:
    query = request.query
    return HookCall(
        host=query.get("host", ""),
        event=query.get("event", ""),
        at=_value(request, "at", 0.0) or time.time(),
        raw=request.body,
        head=_value(request, "head", -1),
        total=_value(request, "total", -1),
    )


def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object in a request's body."""
    try:
        found = json.loads(request.body)
    except (ValueError, RecursionError) as exc:
        raise BadRequest("the body is not JSON", hint="send one JSON object") from exc
    if not isinstance(found, dict):
        raise BadRequest("the body is not a JSON object", hint="send one JSON object")
    return found


def _id(request: Request) -> str:
    """Return the id at the end of a path such as /api/memories/ID."""
    return "/".join(request.path.split("/")[3:])


# What a handler's parameter of this name gets.
PARTS: Mapping[str, Callable[[Request], Any]] = {
    "call": _hook_call,
    "body": _body,
    "id": _id,
    "query": lambda request: request.query,
}


def _value(request: Request, name: str, default: Any) -> Any:
    """Return a value of the query as the type of its default; BadRequest for what is no number where one is wanted."""
    text = request.query.get(name, "")
    if isinstance(default, bool):
        return text.lower() in ("1", "true", "yes")
    if isinstance(default, tuple):
        return tuple(filter(None, text.split(",")))
    if not isinstance(default, (int, float)):
        return text
    try:
        value = float(text) if text else default
    except ValueError:
        value = math.nan
    whole, most = isinstance(default, int), MOST.get(name, 1 << 62)
    if not math.isfinite(value) or (whole and not (min(0, default) <= value <= most and value == int(value))):
        kind = f"whole number from 0 to {most}" if whole else "number"
        raise BadRequest(f"`{name}` must be a {kind}, not {text[:40]!r}", hint="leave it out for the default")
    return int(value) if whole else value
