"""Routes and a request -> its answer, and a failure in words that tell the way out; what a request's words mean."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from foreword.errors import BadPayload, BadRequest, Conflict, ForewordError, NotFound, StoreError
from foreword.worker.http import Request, Response

log = logging.getLogger("foreword")

# Path -> method -> what answers it. A path that ends in a slash stands for all that begin so: an id comes behind it.
Routes = Mapping[str, Mapping[str, Callable[[Request], Any]]]

STATUS = {BadRequest: 400, BadPayload: 400, NotFound: 404, Conflict: 409, StoreError: 503}


def answered(routes: Routes, asked: Request, *, tell: Callable[[str, str], None], hint: str) -> Response:
    """The answer of the request's route: a mapping as JSON with its time, bytes as text, a response as it is."""
    started = time.perf_counter()
    methods = routes.get(route_of(routes, asked.path), {})
    if asked.method not in methods:
        return as_json({"error": f"no {asked.method} {asked.path} here", "hint": hint}, 405 if methods else 404)
    try:
        got = methods[asked.method](asked)
        if not isinstance(got, Response | bytes):
            return as_json({**got, "ms": round((time.perf_counter() - started) * 1000, 3)}, 200)
    except ForewordError as exc:
        status = next((code for kind, code in STATUS.items() if isinstance(exc, kind)), 500)
        if status >= 500:
            tell("store", f"{exc}; {exc.hint}")
        return as_json({"error": str(exc), "hint": exc.hint}, status)
    except Exception:
        log.exception("%s %s failed", asked.method, asked.path)
        hint = "see logs/worker.log, and please report it"
        return as_json({"error": "the worker failed; nothing was lost", "hint": hint}, 500)
    return got if isinstance(got, Response) else Response(status=200, body=got, kind="text/plain; charset=utf-8")


def route_of(routes: Routes, path: str) -> str:
    """The route that a path is of; itself where it is of none."""
    if path in routes:
        return path
    return next((each for each in routes if each != "/" and each[-1] == "/" and path.startswith(each)), path)


def as_json(told: Mapping[str, Any], status: int) -> Response:
    """An answer that every reader of JSON takes; what is no number to it, such as infinity, is null."""
    try:
        body = json.dumps(told, allow_nan=False)
    except ValueError:
        body = json.dumps(json.loads(json.dumps(told), parse_constant=lambda _: None))
    return Response(status=status, body=body.encode())


def object_in(asked: Request) -> dict[str, Any]:
    """The JSON object in its body."""
    try:
        told = json.loads(asked.body)
    except (ValueError, RecursionError) as exc:
        raise BadRequest("the body is not JSON", hint="send one JSON object") from exc
    if not isinstance(told, dict):
        raise BadRequest("the body is no JSON object", hint="send one JSON object")
    return told


def last(asked: Request) -> str:
    """The id at the end of a path such as /api/memories/ID."""
    return "/".join(asked.path.split("/")[3:])


def word(asked: Request, name: str) -> str:
    return asked.query.get(name, "")


def words(asked: Request, name: str) -> tuple[str, ...]:
    """Words with commas between them."""
    return tuple(each for each in word(asked, name).split(",") if each)


def flag(asked: Request, name: str) -> bool:
    return word(asked, name).lower() in ("1", "true", "yes")


def number(asked: Request, name: str, default: float = 0.0) -> float:
    given = word(asked, name)
    try:
        told = float(given) if given else default
    except ValueError as exc:
        raise BadRequest(f"`{name}` must be a number, not {given[:40]!r}", hint="leave it out for the default") from exc
    if told != told or abs(told) == float("inf"):  # noqa: PLR0124 - NaN is the one number that is not itself
        raise BadRequest(f"`{name}` must be a number, not {given[:40]!r}", hint="leave it out for the default")
    return told


def whole(asked: Request, name: str, default: int = 0, *, most: int) -> int:
    told = number(asked, name, default)
    if not 0 <= told <= most or told != int(told):
        raise BadRequest(f"`{name}` must be a whole number from 0 to {most}", hint="leave it out for the default")
    return int(told)
