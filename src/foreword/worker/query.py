"""Read the query and the body of a request."""

from __future__ import annotations

import json
from typing import Any

from foreword.errors import BadRequest
from foreword.worker.http import Request


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


def word(request: Request, name: str) -> str:
    return request.query.get(name, "")


def words(request: Request, *names: str) -> dict[str, Any]:
    return {name: word(request, name) for name in names}


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
    if not 0 <= value <= most or value != int(value):
        raise BadRequest(f"`{name}` must be a whole number from 0 to {most}", hint="leave it out for the default")
    return int(value)
