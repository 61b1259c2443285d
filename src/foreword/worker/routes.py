"""Serve the worker's API: every route and its handler, and how a request's query and body are read."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

from foreword.capture.payload import HookCall
from foreword.errors import BadPayload, BadRequest, Conflict, ForewordError, NotFound, StoreError
from foreword.worker import edits, handlers, mcp_tools, projects
from foreword.worker.app import App
from foreword.worker.http import Request, Response, Server
from foreword.worker.lifecycle import WorkerLock
from foreword.worker.pages import health as health_page
from foreword.worker.pages import live as live_page
from foreword.worker.pages import memories as memory_pages
from foreword.worker.pages import preview as preview_page
from foreword.worker.pages.story import story
from foreword.worker.pages.timeline import timeline
from foreword.worker.requests import arguments, body, flag, last, number, word
from foreword.worker.services import Services

log = logging.getLogger("foreword")

THREADS = 64  # each waits for its commit; many waiting together share one
TICK_EVERY = 1.0  # seconds
UPGRADE_CHECK_EVERY = 5.0  # seconds
# An agent waits for these: background jobs give way.
AWAITED = ("/api/hook", "/api/events", "/api/context", "/api/search", "/api/mcp")
YIELDING = ("/api/live", "/api/timeline", "/api/memories", "/api/facets")  # a reader can wait for a hook's answer
UNCOUNTED = ("/api/changes",)  # a viewer that nobody uses keeps no worker from leaving
CHANGE_SECONDS = 1.0  # that a request for changes is held; a worker that leaves waits for it
STATUS = {BadRequest: 400, BadPayload: 400, NotFound: 404, Conflict: 409, StoreError: 503}

Handler = Callable[[Request], Any]
# Path -> method -> handler. A path that ends in a slash is a prefix: an id follows it.
Routes = Mapping[str, Mapping[str, Handler]]


def serve(worker_lock: WorkerLock) -> bool:
    """Serve until asked to leave, idle, or replaced; return whether a new build should take over."""
    app = App(worker_lock.home)
    leaving = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: leaving.set())
    server = Server(worker_lock.listener, handler(app, leave=leaving.set), threads=THREADS)
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


def routes_of(app: App, *, leave: Callable[[], None]) -> Routes:
    """Return every route with its handler.

    A handler of GET gets the query's values as the parameters that it declares; one of POST gets the JSON body.
    """

    def stop(_: Request) -> dict[str, Any]:
        leave()
        return {"leaving": True}

    def get(handle: Callable[..., Any]) -> Handler:
        return lambda request: handle(app, **arguments(handle, request))

    def get_one(handle: Callable[..., Any]) -> Handler:
        return lambda request: handle(app, last(request), **arguments(handle, request))

    def post(handle: Callable[[App, Mapping[str, Any]], Any]) -> Handler:
        return lambda request: handle(app, body(request))

    def full(page: Handler, handle: Handler) -> Handler:
        return lambda request: page(request) if flag(request, "full") else handle(request)

    return {
        "/api/hook": {"POST": lambda r: app.hooks.answer(_hook_call(r))},
        "/api/events": {"POST": lambda r: app.capture.add_events(body(r))},
        "/api/context": {"GET": get(handlers.show_context)},
        "/api/mcp": {"POST": post(mcp_tools.answer)},
        "/api/memories": {"GET": lambda r: memory_pages.browse(app, r), "POST": post(handlers.add_memories)},
        "/api/memories/": {
            "GET": full(get_one(memory_pages.details), get_one(handlers.show_memory)),
            "POST": lambda r: edits.revise(app, last(r), body(r)),
        },
        "/api/search": {"GET": get(handlers.search_memories)},
        "/api/export": {"GET": get(handlers.export_rows)},
        "/api/ids": {"GET": get(handlers.ids_with_prefix)},
        "/api/facets": {"GET": lambda r: memory_pages.facets(app, r)},
        "/api/discard": {"POST": post(edits.discard)},
        "/api/pin": {"POST": post(edits.pin)},
        "/api/supersede": {"POST": post(edits.supersede)},
        "/api/review": {
            "GET": full(get(memory_pages.waiting), get(edits.list_review)),
            "POST": post(edits.decide_review),
        },
        "/api/undo": {"POST": post(edits.undo)},
        "/api/log": {"GET": get(edits.show_log)},
        "/api/sessions": {"GET": get(handlers.list_sessions)},
        "/api/sessions/": {"GET": full(get_one(story), get_one(handlers.show_session))},
        "/api/timeline": {"GET": get(timeline)},
        "/api/live": {"GET": get(live_page.live)},
        "/api/changes": {"GET": get(_changes)},
        "/api/preview": {"GET": get(preview_page.choices), "POST": post(preview_page.preview)},
        "/api/resume": {"GET": get(handlers.show_resume)},
        "/api/injections": {"GET": get(handlers.list_injections)},
        "/api/injections/": {"GET": get_one(handlers.show_injection)},
        "/api/no-context": {"GET": get(handlers.list_no_context)},
        "/api/use": {"GET": get(handlers.count_usage)},
        "/api/line": {"GET": get(handlers.status_line)},
        "/api/stats": {"GET": get(handlers.show_stats)},
        "/api/goals": {"GET": get(handlers.list_goals)},
        "/api/goals/": {"POST": lambda r: handlers.finish_goal(app, last(r), body(r))},
        "/api/projects": {"GET": get(memory_pages.projects)},
        "/api/project": {"GET": get(projects.show_project), "POST": post(projects.rename_project)},
        "/api/project/alias": {"POST": post(projects.alias_project)},
        "/api/project/merge": {"POST": post(projects.merge_project)},
        "/api/imports": {"GET": get(handlers.list_imports), "POST": post(handlers.start_import)},
        "/api/tidy": {"POST": post(handlers.tidy)},
        "/api/prune": {"POST": post(handlers.prune)},
        "/api/scrub": {"POST": post(handlers.scrub_store)},
        "/api/forget": {"POST": post(handlers.forget_memories)},
        "/api/index": {"POST": lambda _: {"indexed": app.store.reindex()}},
        "/api/model": {"GET": lambda _: app.refine.status(), "POST": lambda _: app.refine.attempt()},
        "/api/hosts": {"GET": get(handlers.list_agents)},
        "/api/health": {"GET": full(get(health_page.health), get(handlers.health))},
        "/api/stop": {"POST": stop},
    }


def handler(app: App, *, leave: Callable[[], None]) -> Callable[[Request], Response]:
    """Return what answers any request on the socket."""
    routes = routes_of(app, leave=leave)

    def answer(request: Request) -> Response:
        if request.path not in UNCOUNTED:
            app.services.last_request = time.monotonic()
        if request.method == "GET" and request.path in YIELDING:
            app.runner.give_way()
        with app.runner if request.path in AWAITED else nullcontext():
            return respond(routes, request, services=app.services)

    return answer


def respond(routes: Routes, request: Request, *, services: Services) -> Response:
    """Return the answer of a request's route: a mapping as JSON with its time, bytes as text."""
    started = time.perf_counter()
    methods = routes.get(route_of(routes, request.path), {})
    if request.method not in methods:
        error = {"error": f"no {request.method} {request.path} here", "hint": "docs/api.md lists the routes"}
        return as_json(error, 405 if methods else 404)
    opened = services.opened
    try:
        try:
            answer = methods[request.method](request)
        except StoreError:
            if services.opened == opened:
                raise
            answer = methods[request.method](request)  # the store was replaced meanwhile: once more, on the new one
    except ForewordError as exc:
        status = next((code for kind, code in STATUS.items() if isinstance(exc, kind)), 500)
        if status >= 500:
            services.report("store", f"{exc}; {exc.hint}")
        return as_json({"error": str(exc), "hint": exc.hint}, status)
    except Exception:
        log.exception("%s %s failed", request.method, request.path)
        hint = "see logs/worker.log, and please report it"
        return as_json({"error": "the worker failed; nothing was lost", "hint": hint}, 500)
    if isinstance(answer, bytes):
        return Response(200, answer, kind="text/plain; charset=utf-8")
    return as_json({**answer, "ms": round((time.perf_counter() - started) * 1000, 3)}, 200)


def route_of(routes: Routes, path: str) -> str:
    """Return the route of a path; the path itself where there is none."""
    if path in routes:
        return path
    return next((each for each in routes if each != "/" and each[-1] == "/" and path.startswith(each)), path)


def as_json(values: Mapping[str, Any], status: int) -> Response:
    """Return a JSON response; what is no number in JSON, such as infinity, is null."""
    try:
        text = json.dumps(values, allow_nan=False)
    except ValueError:
        text = json.dumps(json.loads(json.dumps(values), parse_constant=lambda _: None))
    return Response(status=status, body=text.encode())


def _changes(app: App, *, after: int = -1) -> dict[str, Any]:
    """Return the number of the last commit, as soon as it differs from *after*, or after a second."""
    return {"number": app.store.wait_for_commit(after, seconds=CHANGE_SECONDS)}


def _hook_call(request: Request) -> HookCall:
    return HookCall(
        host=word(request, "host"),
        event=word(request, "event"),
        at=number(request, "at") or time.time(),
        raw=request.body,
        head=int(number(request, "head", -1.0)),
        total=int(number(request, "total", -1.0)),
    )
