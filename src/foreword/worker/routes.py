"""Requests on the worker's socket -> the keeper -> JSON. The routes, and what their words mean."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from foreword.capture.payload import HookCall
from foreword.worker import mcp_tools
from foreword.worker.app import App
from foreword.worker.context import MOST_RESULTS
from foreword.worker.graph import MOST_HOPS
from foreword.worker.http import Request, Response, Server
from foreword.worker.lifecycle import WorkerLock
from foreword.worker.pages import memories as memory_pages
from foreword.worker.pages import preview as preview_page
from foreword.worker.pages.health import health
from foreword.worker.pages.live import LAYERS, MOST, TEXTS, live
from foreword.worker.pages.story import story
from foreword.worker.pages.timeline import timeline
from foreword.worker.routing import Routes, answered, flag, last, number, object_in, whole, word, words
from foreword.worker.stats import MOST_DAYS

log = logging.getLogger("foreword")

THREADS = 64  # each waits for its commit; many waiting together share one
TEND_EVERY = 1.0
LOOK_FOR_UPGRADE_EVERY = 5.0
AWAITED = (
    "/api/hook",
    "/api/events",
    "/api/context",
    "/api/search",
    "/api/mcp",
)  # somebody waits: what works aside gives way
YIELDING = ("/api/live", "/api/timeline", "/api/memories", "/api/facets")  # a reader can wait while a hook is answered
UNHEARD = ("/api/changes",)  # a viewer that nobody touches keeps no worker from leaving
CHANGE_SECONDS = 1.0  # that a question for changes is held; a worker that leaves waits for it


def serve(worker_lock: WorkerLock) -> bool:
    """Serve until asked to leave, idle, or replaced; whether a new build should take over."""
    app = App(worker_lock.home)
    leaving = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: leaving.set())
    server = Server(worker_lock.listener, handler(app, leave=leaving.set), threads=THREADS)
    log.info("worker %s serves %s", os.getpid(), worker_lock.home.socket)
    try:
        return _tend(app, worker_lock, leaving)
    finally:
        server.close()
        app.close()
        log.info("worker %s leaves", os.getpid())


def routes_of(app: App, *, leave: Callable[[], None]) -> Routes:
    """Every route, each a line: its path (with an id behind it where that ends in a slash) -> method -> answer."""

    def stop(_: Request) -> dict[str, Any]:
        leave()
        return {"leaving": True}

    return {
        "/api/hook": {"POST": lambda asked: app.hook(_delivery(asked))},
        "/api/events": {"POST": lambda asked: app.events(object_in(asked))},
        "/api/memories": {
            "GET": lambda asked: memory_pages.browse(app, asked),
            "POST": lambda asked: app.add(object_in(asked)),
        },
        "/api/memories/": {
            "GET": lambda asked: (
                memory_pages.details(app, last(asked))
                if flag(asked, "full")
                else app.memory(last(asked), explain=flag(asked, "explain"))
            ),
            "POST": lambda asked: app.governing.revise(last(asked), object_in(asked)),
        },
        "/api/ids": {"GET": lambda asked: {"ids": app.ids_like(word(asked, "prefix"))}},
        "/api/facets": {"GET": lambda asked: memory_pages.facets(app, asked)},
        "/api/discard": {"POST": lambda asked: app.governing.put_aside(object_in(asked))},
        "/api/tags": {"POST": lambda asked: app.governing.tag(object_in(asked))},
        "/api/pin": {"POST": lambda asked: app.governing.pin(object_in(asked))},
        "/api/supersede": {"POST": lambda asked: app.governing.supersede(object_in(asked))},
        "/api/undo": {"POST": lambda asked: app.governing.undo(object_in(asked))},
        "/api/log": {"GET": lambda asked: app.governing.log(**_log_query(asked))},
        "/api/mcp": {"POST": lambda asked: mcp_tools.answer(app, object_in(asked))},
        "/api/review": {
            "GET": lambda asked: (
                memory_pages.waiting(
                    app,
                    project=word(asked, "project"),
                    limit=whole(asked, "limit", memory_pages.MAX_WAITING, most=memory_pages.MAX_WAITING),
                )
                if flag(asked, "full")
                else app.review(project_path=word(asked, "project_path"))
            ),
            "POST": lambda asked: app.decide(object_in(asked)),
        },
        "/api/imports": {
            "GET": lambda asked: app.imports(project_path=word(asked, "project_path")),
            "POST": lambda asked: app.import_(object_in(asked)),
        },
        "/api/export": {"GET": lambda asked: app.export(**_export_query(asked))},
        "/api/context": {"GET": lambda asked: app.context(**_context_query(asked))},
        "/api/search": {"GET": lambda asked: app.search(**_search_query(asked))},
        "/api/sessions": {"GET": lambda asked: app.sessions(**_list_query(asked))},
        "/api/sessions/": {
            "GET": lambda asked: story(app, last(asked)) if flag(asked, "full") else app.session(last(asked))
        },
        "/api/timeline": {
            "GET": lambda asked: timeline(
                app,
                project=word(asked, "project"),
                before=word(asked, "before"),
                limit=whole(asked, "limit", 30, most=200),
            )
        },
        "/api/live": {
            "GET": lambda asked: live(
                app, session=word(asked, "session"), limit=whole(asked, "limit", TEXTS, most=MOST)
            )
        },
        "/api/changes": {"GET": lambda asked: _changes(app, after=int(number(asked, "after", -1.0)))},
        "/api/preview": {
            "GET": lambda asked: preview_page.choices(
                app, project=word(asked, "project"), session=word(asked, "session")
            ),
            "POST": lambda asked: preview_page.preview(app, object_in(asked)),
        },
        "/api/injections": {"GET": lambda asked: app.injections(**_injections_query(asked))},
        "/api/injections/": {"GET": lambda asked: app.injection(last(asked))},
        "/api/silences": {
            "GET": lambda asked: app.silences(session_id=word(asked, "session_id"), **_list_query(asked))
        },
        "/api/use": {
            "GET": lambda asked: app.use(
                project_path=word(asked, "project_path"), days=whole(asked, "days", most=36_500)
            )
        },
        "/api/line": {
            "GET": lambda asked: app.line(**{name: word(asked, name) for name in ("session_id", "project_path")})
        },
        "/api/goals": {
            "GET": lambda asked: app.goals.every(project_path=word(asked, "project_path"), done=flag(asked, "all")),
            "POST": lambda asked: app.goals.add(object_in(asked)),
        },
        "/api/goals/": {"POST": lambda asked: app.goals.reach(last(asked), object_in(asked))},
        "/api/graph/": {"GET": lambda asked: app.graph.of(last(asked), hops=whole(asked, "hops", most=MOST_HOPS))},
        "/api/links": {"POST": lambda asked: app.graph.link(object_in(asked))},
        "/api/projects": {"GET": lambda _: memory_pages.projects(app)},
        "/api/project": {
            "GET": lambda asked: app.projects.show(**{name: word(asked, name) for name in ("of", "project_path")}),
            "POST": lambda asked: app.projects.say(object_in(asked)),
        },
        "/api/project/alias": {"POST": lambda asked: app.projects.alias(object_in(asked))},
        "/api/project/unalias": {"POST": lambda asked: app.projects.unalias(object_in(asked))},
        "/api/project/merge": {"POST": lambda asked: app.projects.merge(object_in(asked))},
        "/api/resume": {"GET": lambda asked: app.resume(**_list_query(asked, 10))},
        "/api/hosts": {"GET": lambda _: app.hosts()},
        "/api/health": {"GET": lambda asked: health(app) if flag(asked, "full") else app.health()},
        "/api/stats": {
            "GET": lambda asked: {
                **app.stats(
                    project_path=word(asked, "project_path"),
                    project_key=word(asked, "project"),
                    days=whole(asked, "days", 30, most=MOST_DAYS),
                ),
                "layer_names": LAYERS,
            }
        },
        "/api/model": {
            "GET": lambda asked: app.model(ledger=whole(asked, "ledger", most=10_000)),
            "POST": lambda _: app.try_model(),
        },
        "/api/index": {"POST": lambda _: app.index()},
        "/api/tidy": {"GET": lambda _: app.tidying(), "POST": lambda asked: app.tidy(object_in(asked))},
        "/api/scrub": {"POST": lambda asked: app.scrub(object_in(asked))},
        "/api/forget": {"POST": lambda asked: app.forget(object_in(asked))},
        "/api/prune": {"POST": lambda asked: app.prune(object_in(asked))},
        "/api/stop": {"POST": stop},
    }


def handler(app: App, *, leave: Callable[[], None]) -> Callable[[Request], Response]:
    """What answers any request on the socket."""
    routes = routes_of(app, leave=leave)

    def answer(asked: Request) -> Response:
        if asked.path not in UNHEARD:
            app.asked = time.monotonic()
        if asked.method == "GET" and asked.path in YIELDING:
            app.backpressure.give_way()
        with app.backpressure if asked.path in AWAITED else nullcontext():
            return answered(routes, asked, tell=app.tell, hint="docs/api.md lists the routes")

    return answer


def _changes(app: App, *, after: int) -> dict[str, Any]:
    """Return the number of the last commit, as soon as it differs from *after*, or after a second."""
    return {"number": app.store.wait_for_commit(after, seconds=CHANGE_SECONDS)}


def _delivery(asked: Request) -> HookCall:
    return HookCall(
        host=word(asked, "host"),
        event=word(asked, "event"),
        at=number(asked, "at") or time.time(),
        raw=asked.body,
        head=int(number(asked, "head", -1.0)),
        total=int(number(asked, "total", -1.0)),
        hidden=word(asked, "hidden"),
    )


def _context_query(asked: Request) -> dict[str, Any]:
    return {
        "project_path": word(asked, "project_path"),
        "session_id": word(asked, "session_id"),
        "trigger": word(asked, "trigger"),
        "prompt": word(asked, "prompt"),
        "model": word(asked, "model"),
        "budget": whole(asked, "budget", most=100_000),
        "form": word(asked, "form"),
        "host": word(asked, "host"),
        "source": word(asked, "source"),
        "stable": flag(asked, "stable"),
        "preview": flag(asked, "preview"),
    }


def _list_query(asked: Request, default: int = 20) -> dict[str, Any]:
    return {"project_path": word(asked, "project_path"), "limit": whole(asked, "limit", default, most=1000)}


def _export_query(asked: Request) -> dict[str, Any]:
    named = {name: word(asked, name) for name in ("part", "project_path", "of")}
    return {**named, "everything": flag(asked, "all"), "after": whole(asked, "after", most=1 << 62)}


def _injections_query(asked: Request) -> dict[str, Any]:
    named = {name: word(asked, name) for name in ("session_id", "memory")}
    return {**named, "text": flag(asked, "text"), **_list_query(asked)}


def _log_query(asked: Request) -> dict[str, Any]:
    named = {name: word(asked, name) for name in ("memory", "project_path", "project")}
    return {**named, "since": number(asked, "since"), "limit": whole(asked, "limit", 50, most=10_000)}


def _search_query(asked: Request) -> dict[str, Any]:
    return {
        "q": word(asked, "q"),
        "project_path": word(asked, "project_path"),
        "kinds": words(asked, "kinds"),
        "since": number(asked, "since"),
        "at": number(asked, "at"),
        "limit": whole(asked, "limit", most=MOST_RESULTS),
        "compact": flag(asked, "compact"),
        "explain": flag(asked, "explain"),
    }


def _tend(app: App, worker_lock: WorkerLock, leaving: threading.Event) -> bool:
    """Every second: what waits is taken in; an idle, upgraded or homeless worker leaves. Whether it was upgraded."""
    looked = time.monotonic()
    while True:
        try:
            if app.idle() or not worker_lock.is_ours():
                return False
            app.tend()
            if time.monotonic() - looked > LOOK_FOR_UPGRADE_EVERY:
                looked = time.monotonic()
                if app.upgraded():
                    log.info("the package was upgraded")
                    return True
        except Exception:
            log.exception("tending failed; it goes on")
        if leaving.wait(TEND_EVERY):
            return False
