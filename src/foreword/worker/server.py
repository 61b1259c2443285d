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

from foreword.http import Request, Response, Server
from foreword.payloads import Delivery
from foreword.routing import Routes, answered, flag, last, number, object_in, whole, word, words
from foreword.worker import tools
from foreword.worker.graph import MOST_HOPS
from foreword.worker.keeper import Keeper
from foreword.worker.life import Seat
from foreword.worker.measuring import MOST_DAYS
from foreword.worker.recalling import MOST_RESULTS

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
UNHEARD = ("/api/view",)  # says every few seconds that a command still runs: nobody asks for anything


def serve(seat: Seat) -> bool:
    """Serve until asked to leave, idle, or replaced; whether a new build should take over."""
    keeper = Keeper(seat.home)
    leaving = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: leaving.set())
    server = Server(seat.listener, handler(keeper, leave=leaving.set), threads=THREADS)
    log.info("worker %s serves %s", os.getpid(), seat.home.socket)
    try:
        return _tend(keeper, seat, leaving)
    finally:
        server.close()
        keeper.close()
        log.info("worker %s leaves", os.getpid())


def routes_of(keeper: Keeper, *, leave: Callable[[], None]) -> Routes:
    """Every route, each a line: its path (with an id behind it where that ends in a slash) -> method -> answer."""

    def stop(_: Request) -> dict[str, Any]:
        leave()
        return {"leaving": True}

    return {
        "/api/hook": {"POST": lambda asked: keeper.hook(_delivery(asked))},
        "/api/events": {"POST": lambda asked: keeper.events(object_in(asked))},
        "/api/memories": {"POST": lambda asked: keeper.add(object_in(asked))},
        "/api/memories/": {
            "GET": lambda asked: keeper.memory(last(asked), explain=flag(asked, "explain")),
            "POST": lambda asked: keeper.governing.revise(last(asked), object_in(asked)),
        },
        "/api/pin": {"POST": lambda asked: keeper.governing.pin(object_in(asked))},
        "/api/supersede": {"POST": lambda asked: keeper.governing.supersede(object_in(asked))},
        "/api/undo": {"POST": lambda asked: keeper.governing.undo(object_in(asked))},
        "/api/log": {"GET": lambda asked: keeper.governing.log(**_log_query(asked))},
        "/api/mcp": {"POST": lambda asked: tools.answer(keeper, object_in(asked))},
        "/api/review": {
            "GET": lambda asked: keeper.review(project_path=word(asked, "project_path")),
            "POST": lambda asked: keeper.decide(object_in(asked)),
        },
        "/api/imports": {
            "GET": lambda asked: keeper.imports(project_path=word(asked, "project_path")),
            "POST": lambda asked: keeper.import_(object_in(asked)),
        },
        "/api/export": {"GET": lambda asked: keeper.export(**_export_query(asked))},
        "/api/context": {"GET": lambda asked: keeper.context(**_context_query(asked))},
        "/api/search": {"GET": lambda asked: keeper.search(**_search_query(asked))},
        "/api/sessions": {"GET": lambda asked: keeper.sessions(**_list_query(asked))},
        "/api/sessions/": {"GET": lambda asked: keeper.session(last(asked))},
        "/api/injections": {"GET": lambda asked: keeper.injections(**_injections_query(asked))},
        "/api/injections/": {"GET": lambda asked: keeper.injection(last(asked))},
        "/api/silences": {
            "GET": lambda asked: keeper.silences(session_id=word(asked, "session_id"), **_list_query(asked))
        },
        "/api/use": {
            "GET": lambda asked: keeper.use(
                project_path=word(asked, "project_path"), days=whole(asked, "days", most=36_500)
            )
        },
        "/api/line": {
            "GET": lambda asked: keeper.line(**{name: word(asked, name) for name in ("session_id", "project_path")})
        },
        "/api/goals": {
            "GET": lambda asked: keeper.goals.every(project_path=word(asked, "project_path"), done=flag(asked, "all")),
            "POST": lambda asked: keeper.goals.add(object_in(asked)),
        },
        "/api/goals/": {"POST": lambda asked: keeper.goals.reach(last(asked), object_in(asked))},
        "/api/graph/": {"GET": lambda asked: keeper.graph.of(last(asked), hops=whole(asked, "hops", most=MOST_HOPS))},
        "/api/links": {"POST": lambda asked: keeper.graph.link(object_in(asked))},
        "/api/projects": {"GET": lambda _: keeper.projects.every()},
        "/api/project": {
            "GET": lambda asked: keeper.projects.show(**{name: word(asked, name) for name in ("of", "project_path")}),
            "POST": lambda asked: keeper.projects.say(object_in(asked)),
        },
        "/api/project/alias": {"POST": lambda asked: keeper.projects.alias(object_in(asked))},
        "/api/project/unalias": {"POST": lambda asked: keeper.projects.unalias(object_in(asked))},
        "/api/project/merge": {"POST": lambda asked: keeper.projects.merge(object_in(asked))},
        "/api/resume": {"GET": lambda asked: keeper.resume(**_list_query(asked, 10))},
        "/api/hosts": {"GET": lambda _: keeper.hosts()},
        "/api/health": {"GET": lambda _: keeper.health()},
        "/api/stats": {
            "GET": lambda asked: keeper.stats(
                project_path=word(asked, "project_path"), days=whole(asked, "days", 30, most=MOST_DAYS)
            )
        },
        "/api/model": {
            "GET": lambda asked: keeper.model(ledger=whole(asked, "ledger", most=10_000)),
            "POST": lambda _: keeper.try_model(),
        },
        "/api/index": {"POST": lambda _: keeper.index()},
        "/api/tidy": {"GET": lambda _: keeper.tidying(), "POST": lambda asked: keeper.tidy(object_in(asked))},
        "/api/scrub": {"POST": lambda asked: keeper.scrub(object_in(asked))},
        "/api/forget": {"POST": lambda asked: keeper.forget(object_in(asked))},
        "/api/prune": {"POST": lambda asked: keeper.prune(object_in(asked))},
        "/api/view": {
            "GET": lambda _: keeper.viewer.about(),
            "POST": lambda asked: keeper.viewer.say(object_in(asked)),
        },
        "/api/stop": {"POST": stop},
    }


def handler(keeper: Keeper, *, leave: Callable[[], None]) -> Callable[[Request], Response]:
    """What answers any request on the socket."""
    routes = routes_of(keeper, leave=leave)

    def answer(asked: Request) -> Response:
        if asked.path not in UNHEARD:
            keeper.asked = time.monotonic()
        with keeper.courtesy if asked.path in AWAITED else nullcontext():
            return answered(routes, asked, tell=keeper.tell, hint="docs/api.md lists the routes")

    return answer


def _delivery(asked: Request) -> Delivery:
    return Delivery(
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
        "moment": word(asked, "moment"),
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


def _tend(keeper: Keeper, seat: Seat, leaving: threading.Event) -> bool:
    """Every second: what waits is taken in; an idle, upgraded or homeless worker leaves. Whether it was upgraded."""
    looked = time.monotonic()
    while True:
        try:
            if keeper.idle() or not seat.is_ours():
                return False
            keeper.tend()
            if time.monotonic() - looked > LOOK_FOR_UPGRADE_EVERY:
                looked = time.monotonic()
                if keeper.upgraded():
                    log.info("the package was upgraded")
                    return True
        except Exception:
            log.exception("tending failed; it goes on")
        if leaving.wait(TEND_EVERY):
            return False
