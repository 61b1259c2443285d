"""Requests on the worker's socket -> the keeper -> JSON. The routes, and what their words mean."""

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

from foreword.errors import BadPayload, BadRequest, Conflict, ForewordError, NotFound, StoreError
from foreword.payloads import Delivery
from foreword.worker import tools
from foreword.worker.graph import MOST_HOPS
from foreword.worker.http import Request, Response, Server
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
STATUS = {BadRequest: 400, BadPayload: 400, NotFound: 404, Conflict: 409, StoreError: 503}


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


def routes_of(keeper: Keeper, *, leave: Callable[[], None]) -> Mapping[str, Mapping[str, Callable[[Request], Any]]]:
    """Every route, each a line: its path (with an id behind it where that ends in a slash) -> method -> answer."""

    def stop(_: Request) -> dict[str, Any]:
        leave()
        return {"leaving": True}

    return {
        "/api/hook": {"POST": lambda asked: keeper.hook(_delivery(asked))},
        "/api/events": {"POST": lambda asked: keeper.events(_object(asked))},
        "/api/memories": {"POST": lambda asked: keeper.add(_object(asked))},
        "/api/memories/": {
            "GET": lambda asked: keeper.memory(_last(asked), explain=_flag(asked, "explain")),
            "POST": lambda asked: keeper.governing.revise(_last(asked), _object(asked)),
        },
        "/api/pin": {"POST": lambda asked: keeper.governing.pin(_object(asked))},
        "/api/supersede": {"POST": lambda asked: keeper.governing.supersede(_object(asked))},
        "/api/undo": {"POST": lambda asked: keeper.governing.undo(_object(asked))},
        "/api/log": {"GET": lambda asked: keeper.governing.log(**_log_query(asked))},
        "/api/mcp": {"POST": lambda asked: tools.answer(keeper, _object(asked))},
        "/api/review": {
            "GET": lambda asked: keeper.review(project_path=_word(asked, "project_path")),
            "POST": lambda asked: keeper.decide(_object(asked)),
        },
        "/api/imports": {
            "GET": lambda asked: keeper.imports(project_path=_word(asked, "project_path")),
            "POST": lambda asked: keeper.import_(_object(asked)),
        },
        "/api/export": {"GET": lambda asked: keeper.export(**_export_query(asked))},
        "/api/context": {"GET": lambda asked: keeper.context(**_context_query(asked))},
        "/api/search": {"GET": lambda asked: keeper.search(**_search_query(asked))},
        "/api/sessions": {"GET": lambda asked: keeper.sessions(**_list_query(asked))},
        "/api/sessions/": {"GET": lambda asked: keeper.session(_last(asked))},
        "/api/injections": {"GET": lambda asked: keeper.injections(**_injections_query(asked))},
        "/api/injections/": {"GET": lambda asked: keeper.injection(_last(asked))},
        "/api/use": {
            "GET": lambda asked: keeper.use(
                project_path=_word(asked, "project_path"), days=_whole(asked, "days", most=36_500)
            )
        },
        "/api/line": {
            "GET": lambda asked: keeper.line(**{name: _word(asked, name) for name in ("session_id", "project_path")})
        },
        "/api/goals": {
            "GET": lambda asked: keeper.goals.every(
                project_path=_word(asked, "project_path"), done=_flag(asked, "all")
            ),
            "POST": lambda asked: keeper.goals.add(_object(asked)),
        },
        "/api/goals/": {"POST": lambda asked: keeper.goals.reach(_last(asked), _object(asked))},
        "/api/graph/": {"GET": lambda asked: keeper.graph.of(_last(asked), hops=_whole(asked, "hops", most=MOST_HOPS))},
        "/api/links": {"POST": lambda asked: keeper.graph.link(_object(asked))},
        "/api/projects": {"GET": lambda _: keeper.projects.every()},
        "/api/project": {
            "GET": lambda asked: keeper.projects.show(**{name: _word(asked, name) for name in ("of", "project_path")}),
            "POST": lambda asked: keeper.projects.say(_object(asked)),
        },
        "/api/project/alias": {"POST": lambda asked: keeper.projects.alias(_object(asked))},
        "/api/project/unalias": {"POST": lambda asked: keeper.projects.unalias(_object(asked))},
        "/api/project/merge": {"POST": lambda asked: keeper.projects.merge(_object(asked))},
        "/api/resume": {"GET": lambda asked: keeper.resume(**_list_query(asked, 10))},
        "/api/hosts": {"GET": lambda _: keeper.hosts()},
        "/api/health": {"GET": lambda _: keeper.health()},
        "/api/stats": {
            "GET": lambda asked: keeper.stats(
                project_path=_word(asked, "project_path"), days=_whole(asked, "days", 30, most=MOST_DAYS)
            )
        },
        "/api/metrics": {"GET": lambda asked: keeper.metrics(project_path=_word(asked, "project_path")).encode()},
        "/api/model": {
            "GET": lambda asked: keeper.model(ledger=_whole(asked, "ledger", most=10_000)),
            "POST": lambda _: keeper.try_model(),
        },
        "/api/index": {"POST": lambda _: keeper.index()},
        "/api/tidy": {"GET": lambda _: keeper.tidying(), "POST": lambda asked: keeper.tidy(_object(asked))},
        "/api/scrub": {"POST": lambda asked: keeper.scrub(_object(asked))},
        "/api/forget": {"POST": lambda asked: keeper.forget(_object(asked))},
        "/api/prune": {"POST": lambda asked: keeper.prune(_object(asked))},
        "/api/stop": {"POST": stop},
    }


def handler(keeper: Keeper, *, leave: Callable[[], None]) -> Callable[[Request], Response]:
    """What answers any request: by its route, and a failure in words that tell the way out."""
    routes = routes_of(keeper, leave=leave)

    def answer(asked: Request) -> Response:
        started = time.perf_counter()
        keeper.asked = time.monotonic()
        under = next((path for path in routes if path.endswith("/") and asked.path.startswith(path)), asked.path)
        methods = routes.get(under, {})
        if asked.method not in methods:
            hint = "docs/api.md lists the routes"
            return _json({"error": f"no {asked.method} {asked.path} here", "hint": hint}, 405 if methods else 404)
        try:
            with keeper.courtesy if asked.path in AWAITED else nullcontext():
                got = methods[asked.method](asked)
        except ForewordError as exc:
            status = next((code for kind, code in STATUS.items() if isinstance(exc, kind)), 500)
            if status >= 500:
                keeper.tell("store", f"{exc}; {exc.hint}")
            return _json({"error": str(exc), "hint": exc.hint}, status)
        except Exception:
            log.exception("%s %s failed", asked.method, asked.path)
            hint = "see logs/worker.log, and please report it"
            return _json({"error": "the worker failed; nothing was lost", "hint": hint}, 500)
        if isinstance(got, bytes):
            return Response(status=200, body=got, kind="text/plain; charset=utf-8")
        return _json({**got, "ms": round((time.perf_counter() - started) * 1000, 3)}, 200)

    return answer


def _json(told: Mapping[str, Any], status: int) -> Response:
    return Response(status=status, body=json.dumps(told).encode())


def _object(asked: Request) -> dict[str, Any]:
    try:
        told = json.loads(asked.body)
    except (ValueError, RecursionError) as exc:
        raise BadRequest("the body is not JSON", hint="send one JSON object") from exc
    if not isinstance(told, dict):
        raise BadRequest("the body is no JSON object", hint="send one JSON object")
    return told


def _delivery(asked: Request) -> Delivery:
    return Delivery(
        host=_word(asked, "host"),
        event=_word(asked, "event"),
        at=_number(asked, "at") or time.time(),
        raw=asked.body,
        head=int(_number(asked, "head", -1.0)),
        total=int(_number(asked, "total", -1.0)),
        hidden=_word(asked, "hidden"),
    )


def _context_query(asked: Request) -> dict[str, Any]:
    return {
        "project_path": _word(asked, "project_path"),
        "session_id": _word(asked, "session_id"),
        "moment": _word(asked, "moment"),
        "prompt": _word(asked, "prompt"),
        "model": _word(asked, "model"),
        "budget": _whole(asked, "budget", most=100_000),
        "form": _word(asked, "form"),
        "host": _word(asked, "host"),
        "source": _word(asked, "source"),
        "stable": _flag(asked, "stable"),
        "preview": _flag(asked, "preview"),
    }


def _list_query(asked: Request, default: int = 20) -> dict[str, Any]:
    return {"project_path": _word(asked, "project_path"), "limit": _whole(asked, "limit", default, most=1000)}


def _export_query(asked: Request) -> dict[str, Any]:
    named = {name: _word(asked, name) for name in ("part", "project_path", "of")}
    return {**named, "everything": _flag(asked, "all"), "after": _whole(asked, "after", most=1 << 62)}


def _injections_query(asked: Request) -> dict[str, Any]:
    named = {name: _word(asked, name) for name in ("session_id", "memory")}
    return {**named, "text": _flag(asked, "text"), **_list_query(asked)}


def _log_query(asked: Request) -> dict[str, Any]:
    named = {name: _word(asked, name) for name in ("memory", "project_path", "project")}
    return {**named, "since": _number(asked, "since"), "limit": _whole(asked, "limit", 50, most=10_000)}


def _search_query(asked: Request) -> dict[str, Any]:
    return {
        "q": _word(asked, "q"),
        "project_path": _word(asked, "project_path"),
        "kinds": tuple(kind for kind in _word(asked, "kinds").split(",") if kind),
        "since": _number(asked, "since"),
        "at": _number(asked, "at"),
        "limit": _whole(asked, "limit", most=MOST_RESULTS),
        "compact": _flag(asked, "compact"),
        "explain": _flag(asked, "explain"),
    }


def _last(asked: Request) -> str:
    """The id at the end of a path such as /api/memories/ID."""
    return "/".join(asked.path.split("/")[3:])


def _word(asked: Request, name: str) -> str:
    return asked.query.get(name, "")


def _flag(asked: Request, name: str) -> bool:
    return _word(asked, name).lower() in ("1", "true", "yes")


def _number(asked: Request, name: str, default: float = 0.0) -> float:
    given = _word(asked, name)
    try:
        number = float(given) if given else default
    except ValueError as exc:
        raise BadRequest(f"`{name}` must be a number, not {given[:40]!r}", hint="leave it out for the default") from exc
    if number != number or abs(number) == float("inf"):  # noqa: PLR0124 - NaN is the one number that is not itself
        raise BadRequest(f"`{name}` must be a number, not {given[:40]!r}", hint="leave it out for the default")
    return number


def _whole(asked: Request, name: str, default: int = 0, *, most: int) -> int:
    number = _number(asked, name, default)
    if not 0 <= number <= most or number != int(number):
        raise BadRequest(f"`{name}` must be a whole number from 0 to {most}", hint="leave it out for the default")
    return int(number)


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
