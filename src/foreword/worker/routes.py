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
from foreword.worker.context import MOST_RESULTS
from foreword.worker.handlers import MOST_HOPS
from foreword.worker.http import Request, Response, Server
from foreword.worker.lifecycle import WorkerLock
from foreword.worker.pages import health as health_page
from foreword.worker.pages import live as live_page
from foreword.worker.pages import memories as memory_pages
from foreword.worker.pages import preview as preview_page
from foreword.worker.pages.story import story
from foreword.worker.pages.timeline import timeline
from foreword.worker.query import body, flag, items, last, number, whole, word, words
from foreword.worker.stats import MOST_DAYS

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
    """Return every route with its handler."""

    def stop(_: Request) -> dict[str, Any]:
        leave()
        return {"leaving": True}

    def with_body(handle: Callable[[App, Mapping[str, Any]], Any]) -> Handler:
        return lambda request: handle(app, body(request))

    return {
        "/api/hook": {"POST": lambda r: app.hooks.answer(_hook_call(r))},
        "/api/events": {"POST": lambda r: app.capture.add_events(body(r))},
        "/api/context": {"GET": lambda r: handlers.show_context(app, **_context_query(r))},
        "/api/mcp": {"POST": with_body(mcp_tools.answer)},
        "/api/memories": {
            "GET": lambda r: memory_pages.browse(app, r),
            "POST": with_body(handlers.add_memories),
        },
        "/api/memories/": {
            "GET": lambda r: (
                memory_pages.details(app, last(r))
                if flag(r, "full")
                else handlers.show_memory(app, last(r), explain=flag(r, "explain"))
            ),
            "POST": lambda r: edits.revise(app, last(r), body(r)),
        },
        "/api/search": {"GET": lambda r: handlers.search_memories(app, **_search_query(r))},
        "/api/export": {"GET": lambda r: handlers.export_rows(app, **_export_query(r))},
        "/api/ids": {"GET": lambda r: {"ids": handlers.ids_with_prefix(app, word(r, "prefix"))}},
        "/api/facets": {"GET": lambda r: memory_pages.facets(app, r)},
        "/api/discard": {"POST": with_body(edits.discard)},
        "/api/pin": {"POST": with_body(edits.pin)},
        "/api/supersede": {"POST": with_body(edits.supersede)},
        "/api/review": {
            "GET": lambda r: (
                memory_pages.waiting(app, project=word(r, "project"), limit=_waiting_limit(r))
                if flag(r, "full")
                else edits.list_review(app, **words(r, "project_path"))
            ),
            "POST": with_body(edits.decide_review),
        },
        "/api/undo": {"POST": with_body(edits.undo)},
        "/api/log": {"GET": lambda r: edits.show_log(app, **_log_query(r))},
        "/api/sessions": {"GET": lambda r: handlers.list_sessions(app, **_list_query(r))},
        "/api/sessions/": {
            "GET": lambda r: story(app, last(r)) if flag(r, "full") else handlers.show_session(app, last(r))
        },
        "/api/timeline": {
            "GET": lambda r: timeline(app, **words(r, "project", "before"), limit=whole(r, "limit", 30, most=200))
        },
        "/api/live": {"GET": lambda r: live_page.live(app, **words(r, "session"), limit=_live_limit(r))},
        "/api/changes": {"GET": lambda r: _changes(app, after=int(number(r, "after", -1.0)))},
        "/api/preview": {
            "GET": lambda r: preview_page.choices(app, **words(r, "project", "session")),
            "POST": with_body(preview_page.preview),
        },
        "/api/resume": {"GET": lambda r: handlers.show_resume(app, **_list_query(r, 10))},
        "/api/injections": {"GET": lambda r: handlers.list_injections(app, **_injections_query(r))},
        "/api/injections/": {"GET": lambda r: handlers.show_injection(app, last(r))},
        "/api/no-context": {"GET": lambda r: handlers.list_no_context(app, **words(r, "session_id"), **_list_query(r))},
        "/api/use": {"GET": lambda r: handlers.count_usage(app, **_days_query(r, 0, most=36_500))},
        "/api/line": {"GET": lambda r: handlers.status_line(app, **words(r, "session_id", "project_path"))},
        "/api/stats": {
            "GET": lambda r: {
                **handlers.show_stats(app, project_key=word(r, "project"), **_days_query(r, 30, most=MOST_DAYS)),
                "layer_names": live_page.LAYERS,
            }
        },
        "/api/goals": {
            "GET": lambda r: handlers.list_goals(app, word(r, "project_path"), done=flag(r, "all")),
            "POST": with_body(handlers.add_goal),
        },
        "/api/goals/": {"POST": lambda r: handlers.finish_goal(app, last(r), body(r))},
        "/api/graph/": {"GET": lambda r: handlers.show_graph(app, last(r), hops=whole(r, "hops", most=MOST_HOPS))},
        "/api/projects": {"GET": lambda _: memory_pages.projects(app)},
        "/api/project": {
            "GET": lambda r: projects.show_project(app, **words(r, "of", "project_path")),
            "POST": with_body(projects.describe_project),
        },
        "/api/project/alias": {"POST": with_body(projects.alias_project)},
        "/api/project/merge": {"POST": with_body(projects.merge_project)},
        "/api/imports": {
            "GET": lambda r: handlers.list_imports(app, **words(r, "project_path")),
            "POST": with_body(handlers.start_import),
        },
        "/api/tidy": {"GET": lambda _: app.tidy.status(), "POST": with_body(handlers.tidy)},
        "/api/prune": {"POST": with_body(handlers.prune)},
        "/api/scrub": {"POST": with_body(handlers.scrub_store)},
        "/api/forget": {"POST": with_body(handlers.forget_memories)},
        "/api/index": {"POST": lambda _: handlers.rebuild_index(app)},
        "/api/model": {
            "GET": lambda r: handlers.show_model(app, ledger=whole(r, "ledger", most=10_000)),
            "POST": lambda _: app.refine.attempt(),
        },
        "/api/hosts": {"GET": lambda _: handlers.list_agents(app)},
        "/api/health": {"GET": lambda r: health_page.health(app) if flag(r, "full") else handlers.health(app)},
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
            return respond(routes, request, report=app.services.report, hint="docs/api.md lists the routes")

    return answer


def respond(routes: Routes, request: Request, *, report: Callable[[str, str], None], hint: str) -> Response:
    """Return the answer of a request's route: a mapping as JSON with its time, bytes as text, a response as it is."""
    started = time.perf_counter()
    methods = routes.get(route_of(routes, request.path), {})
    if request.method not in methods:
        return as_json({"error": f"no {request.method} {request.path} here", "hint": hint}, 405 if methods else 404)
    try:
        answer = methods[request.method](request)
        if not isinstance(answer, Response | bytes):
            return as_json({**answer, "ms": round((time.perf_counter() - started) * 1000, 3)}, 200)
    except ForewordError as exc:
        status = next((code for kind, code in STATUS.items() if isinstance(exc, kind)), 500)
        if status >= 500:
            report("store", f"{exc}; {exc.hint}")
        return as_json({"error": str(exc), "hint": exc.hint}, status)
    except Exception:
        log.exception("%s %s failed", request.method, request.path)
        hint = "see logs/worker.log, and please report it"
        return as_json({"error": "the worker failed; nothing was lost", "hint": hint}, 500)
    return answer if isinstance(answer, Response) else Response(200, answer, kind="text/plain; charset=utf-8")


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


def _changes(app: App, *, after: int) -> dict[str, Any]:
    """Return the number of the last commit, as soon as it differs from *after*, or after a second."""
    return {"number": app.store.wait_for_commit(after, seconds=CHANGE_SECONDS)}


def _waiting_limit(request: Request) -> int:
    return whole(request, "limit", memory_pages.MAX_WAITING, most=memory_pages.MAX_WAITING)


def _live_limit(request: Request) -> int:
    return whole(request, "limit", live_page.TEXTS, most=live_page.MOST)


def _hook_call(request: Request) -> HookCall:
    return HookCall(
        **words(request, "host", "event", "hidden"),
        at=number(request, "at") or time.time(),
        raw=request.body,
        head=int(number(request, "head", -1.0)),
        total=int(number(request, "total", -1.0)),
    )


def _context_query(request: Request) -> dict[str, Any]:
    return {
        **words(request, "project_path", "session_id", "trigger", "prompt", "model", "form", "host", "source"),
        "budget": whole(request, "budget", most=100_000),
        "stable": flag(request, "stable"),
        "preview": flag(request, "preview"),
    }


def _list_query(request: Request, default: int = 20) -> dict[str, Any]:
    return {**words(request, "project_path"), "limit": whole(request, "limit", default, most=1000)}


def _days_query(request: Request, default: int, *, most: int) -> dict[str, Any]:
    return {**words(request, "project_path"), "days": whole(request, "days", default, most=most)}


def _export_query(request: Request) -> dict[str, Any]:
    named = words(request, "part", "project_path", "of")
    return {**named, "everything": flag(request, "all"), "after": whole(request, "after", most=1 << 62)}


def _injections_query(request: Request) -> dict[str, Any]:
    return {**words(request, "session_id", "memory"), "text": flag(request, "text"), **_list_query(request)}


def _log_query(request: Request) -> dict[str, Any]:
    named = words(request, "memory", "project_path", "project")
    return {**named, "since": number(request, "since"), "limit": whole(request, "limit", 50, most=10_000)}


def _search_query(request: Request) -> dict[str, Any]:
    return {
        **words(request, "q", "project_path"),
        "kinds": items(request, "kinds"),
        "since": number(request, "since"),
        "at": number(request, "at"),
        "limit": whole(request, "limit", most=MOST_RESULTS),
        "compact": flag(request, "compact"),
        "explain": flag(request, "explain"),
    }
