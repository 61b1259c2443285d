"""Read the query and the body of a request."""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

from foreword.errors import BadRequest
from foreword.worker.http import Request

MOST = {"limit": 1000, "budget": 100_000, "days": 36_500}  # of whole numbers in a query


def body(request: Request) -> dict[str, Any]:
    """Return the JSON object in a request's body."""
    try:
        found = json.loads(request.body)
    except (ValueError, RecursionError) as exc:
        raise BadRequest("the body is not JSON", hint="send one JSON object") from exc
    if not isinstance(found, dict):
        raise BadRequest("the body is no JSON object", hint="send one JSON object")
    return found


def last(request: Request) -> str:
    """Return the id at the end of a path such as /api/memories/ID."""
    return "/".join(request.path.split("/")[3:])


def arguments(handle: Callable[..., object], request: Request) -> dict[str, Any]:
    """Return the query's values for the keyword parameters of *handle*, each of the type of its default."""
    found: dict[str, Any] = {}
    for name, parameter in signature(handle).parameters.items():
        default = parameter.default
        if parameter.kind is not Parameter.KEYWORD_ONLY:
            continue
        if isinstance(default, bool):
            found[name] = flag(request, name)
        elif isinstance(default, int):
            found[name] = whole(request, name, default, most=MOST.get(name, 1 << 62))
        elif isinstance(default, float):
            found[name] = number(request, name, default)
        elif isinstance(default, tuple):
            found[name] = items(request, name)
        else:
            found[name] = word(request, name)
    return found


def word(request: Request, name: str) -> str:
    return request.query.get(name, "")


def items(request: Request, name: str) -> tuple[str, ...]:
    """Return the words of a list with commas."""
    return tuple(each for each in word(request, name).split(",") if each)


def flag(request: Request, name: str) -> bool:
    return word(request, name).lower() in ("1", "true", "yes")


def number(request: Request, name: str, default: float = 0.0) -> float:
    text = word(request, name)
    try:
        value = float(text) if text else default
    except ValueError:
        value = float("nan")
    if value != value or abs(value) == float("inf"):  # noqa: PLR0124 - NaN is the one number that is not itself
        raise BadRequest(f"`{name}` must be a number, not {text[:40]!r}", hint="leave it out for the default")
    return value


def whole(request: Request, name: str, default: int = 0, *, most: int) -> int:
    value = number(request, name, default)
    if not min(0, default) <= value <= most or value != int(value):
        raise BadRequest(f"`{name}` must be a whole number from 0 to {most}", hint="leave it out for the default")
    return int(value)
