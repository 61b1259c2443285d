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
from foreword.errors import BadPayload, BadRequest, Conflict, ForewordError, NotFound, StoreError
from foreword.worker import (
    edits,
    handlers,
    health,
    injection_pages,
    mcp_tools,
    memory_pages,
    projects,
    serialize,
    session_pages,
)
from foreword.worker.app import App
from foreword.worker.forget import forget
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
CHANGE_SECONDS = 1.0  # that a request for changes is held; a worker that leaves waits for it
STATUS = {BadRequest: 400, BadPayload: 400, NotFound: 404, Conflict: 409, StoreError: 503}
MOST = {"limit": 1000, "budget": 100_000, "days": 36_500}  # of whole numbers in a query

Handler = Callable[[Request], Any]
# Path -> method -> handler. A path that ends in a slash is a prefix: an id follows it.
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


def routes_of(app: App) -> Routes:
    """Return every route with its handler.

    A handler of GET gets the query's values as the parameters that it declares; one of POST gets the JSON body.
    """

    def get(handle: Callable[..., Any]) -> Handler:
        return lambda request: handle(app, **_arguments(handle, request))

    def get_one(handle: Callable[..., Any]) -> Handler:
        return lambda request: handle(app, _id(request), **_arguments(handle, request))

    def post(handle: Callable[[App, Mapping[str, Any]], Any]) -> Handler:
        return lambda request: handle(app, _body(request))

    def post_one(handle: Callable[[App, str, Mapping[str, Any]], Any]) -> Handler:
        return lambda request: handle(app, _id(request), _body(request))

    def filtered(handle: Callable[..., Any]) -> Handler:
        wanted = memory_pages.filter_of
        return lambda request: handle(app, wanted(**_arguments(wanted, request)), **_arguments(handle, request))

    def full(page: Handler, handle: Handler) -> Handler:
        return lambda request: page(request) if _value(request, "full", False) else handle(request)

    def prune(request: Request) -> Any:
        return app.prune.preview() if _body(request).get("dry_run") else app.prune.run(who="user")

    return {
        "/api/hook": {"POST": lambda r: app.hooks.answer(_hook_call(r))},
        "/api/events": {"POST": lambda r: app.capture.add_events(_body(r))},
        "/api/context": {"GET": get(handlers.show_context)},
        "/api/mcp": {"POST": post(mcp_tools.answer)},
        "/api/memories": {"GET": filtered(memory_pages.browse), "POST": post(handlers.add_memories)},
        "/api/memories/": {
            "GET": full(get_one(memory_pages.details), get_one(handlers.show_memory)),
            "POST": post_one(edits.revise),
        },
        "/api/search": {"GET": get(handlers.search_memories)},
        "/api/export": {"GET": get(handlers.export_rows)},
        "/api/ids": {"GET": get(handlers.ids_with_prefix)},
        "/api/facets": {"GET": filtered(memory_pages.facets)},
        "/api/pin": {"POST": post(edits.pin)},
        "/api/supersede": {"POST": post(edits.supersede)},
        "/api/review": {"GET": get(edits.list_review), "POST": post(edits.decide_review)},
        "/api/undo": {"POST": post(edits.undo)},
        "/api/log": {"GET": get(edits.show_log)},
        "/api/sessions": {"GET": get(handlers.list_sessions)},
        "/api/sessions/": {"GET": get_one(session_pages.story)},
        "/api/timeline": {"GET": get(session_pages.timeline)},
        "/api/live": {"GET": get(injection_pages.live)},
        "/api/changes": {"GET": get(_changes)},
        "/api/preview": {"GET": get(injection_pages.choices), "POST": post(injection_pages.preview)},
        "/api/resume": {"GET": get(handlers.show_resume)},
        "/api/injections": {"GET": get(handlers.list_injections)},
        "/api/injections/": {"GET": get_one(handlers.show_injection)},
        "/api/no-context": {"GET": get(handlers.list_no_context)},
        "/api/line": {"GET": get(handlers.status_line)},
        "/api/stats": {"GET": get(handlers.show_stats)},
        "/api/goals": {"GET": get(handlers.list_goals)},
        "/api/goals/": {"POST": post_one(handlers.finish_goal)},
        "/api/projects": {"GET": get(projects.list_projects)},
        "/api/project": {"GET": get(projects.show_project)},
        "/api/project/merge": {"POST": post(projects.merge_project)},
        "/api/imports": {
            "GET": lambda r: app.imports.status(handlers.project_key(app, r.query.get("project_path", ""))),
            "POST": lambda r: {"import": app.imports.start(serialize.read_import(_body(r)))},
        },
        "/api/tidy": {"POST": post(handlers.tidy)},
        "/api/prune": {"POST": prune},
        "/api/scrub": {"POST": post(handlers.scrub_store)},
        "/api/forget": {"POST": lambda r: forget(app, _body(r), who="user")},
        "/api/index": {"POST": lambda _: {"indexed": app.store.maintenance.reindex()}},
        "/api/model": {"GET": lambda _: app.refine.status(), "POST": lambda _: app.refine.attempt()},
        "/api/health": {"GET": full(get(health.health_page), get(health.health))},
    }


def handler(app: App) -> Callable[[Request], Response]:
    """Return what answers any request on the socket."""
    routes = routes_of(app)

    def answer(request: Request) -> Response:
        if request.path not in NOT_ACTIVITY:
            app.services.last_request = time.monotonic()
        if request.method == "GET" and request.path in LOW_PRIORITY:
            app.runner.give_way()
        with app.runner if request.path in LATENCY_CRITICAL else nullcontext():
            return respond(routes, request, services=app.services)

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
    try:
        text = json.dumps(values, allow_nan=False)
    except ValueError:
        text = json.dumps(json.loads(json.dumps(values), parse_constant=lambda _: None))
    return Response(status=status, body=text.encode())


def _changes(app: App, *, after: int = -1) -> dict[str, Any]:
    """Return the number of the last commit, as soon as it differs from *after*, or after a second."""
    return {"number": app.store.database.wait_for_commit(after, seconds=CHANGE_SECONDS)}


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


def _arguments(handle: Callable[..., object], request: Request) -> dict[str, Any]:
    """Return the query's values for the keyword parameters of *handle*, each of the type of its default."""
    parameters = signature(handle).parameters.items()
    wanted = {name: each.default for name, each in parameters if each.kind is Parameter.KEYWORD_ONLY}
    return {name: _value(request, name, default) for name, default in wanted.items()}


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
