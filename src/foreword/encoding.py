"""Read and write JSON and UTF-8 so that no input of an agent fails us; read our tables, parse times, format sizes."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable
from typing import Any

from foreword.errors import BadPayload, BadRequest

_MOST_DIGITS = 4000  # int() refuses more than 4,300


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


# What is not finite becomes null, as JSON has no word for it: an event read again must have the same key.
_DECODER = json.JSONDecoder(
    strict=False,  # control characters inside strings are let through
    parse_float=_finite,
    parse_int=lambda digits: int(digits) if len(digits) < _MOST_DIGITS else None,
    parse_constant=lambda _word: None,
)


def loads(text: str) -> Any:
    """Return the value that *text* holds; anything that is not exactly one JSON value raises BadPayload."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError, MemoryError) as exc:
        hint = "an agent sends one JSON object on stdin"
        raise BadPayload(f"not JSON: {type(exc).__name__}", hint=hint) from exc


def dumps(item: Any) -> str:
    """Return *item* as compact ASCII JSON; what JSON has no type for becomes its text, or null."""
    try:
        return json.dumps(item, separators=(",", ":"), default=str, allow_nan=False)
    except ValueError:  # NaN or infinity, which `loads` turns into null
        return json.dumps(loads(json.dumps(item, default=str)), separators=(",", ":"))


def decoded(raw: bytes) -> str:
    """Return the text of *raw*: UTF-8 with or without a BOM, invalid bytes replaced by U+FFFD."""
    return raw.decode("utf-8-sig", "replace")


def storable(text: str) -> str:
    """Return *text* without lone surrogates, which JSON can spell and no file can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def read_table(beside: str, name: str) -> list[str]:
    """Return the lines of a table of ours *beside* a module, without comments and empty ones."""
    with open(os.path.join(os.path.dirname(beside), name), encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if line[0] not in "#\n"]


def read_words(beside: str, name: str) -> dict[str, list[str]]:
    """Return the words of a table of ours by what stands before the colon; several lines may begin alike."""
    found: dict[str, list[str]] = {}
    for line in read_table(beside, name):
        use, _, words = line.partition(": ")
        found.setdefault(use, []).extend(words.split())
    return found


SPANS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
STORE = "the database file; its log, backups and the spool lie beside it and are not counted"


def since(text: str, *, now: float) -> float:
    """Return the time that *text* names, such as `7d` or `2026-01-31`, in seconds since 1970; else raise BadRequest."""
    if found := re.fullmatch(r"(\d{1,6})([mhdw])", text.strip().lower()):
        return max(now - int(found[1]) * SPANS[found[2]], 1.0)
    from datetime import datetime  # late: a hook without a worker pays for every import

    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError) as exc:
        raise BadRequest(f"{text[:40]!r} is not a time", hint="use 30m, 12h, 7d, 2w or 2026-01-31") from exc


def timestamp(value: Any, *, default: float = 0.0) -> float:
    """Return seconds from milliseconds, seconds or an ISO date; *default* where it is none of them."""
    from datetime import UTC, datetime  # late: a hook without a worker pays for every import

    try:
        if isinstance(value, str) and not value.isdigit():
            date = datetime.fromisoformat(value)
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return default
    return number / 1000 if number > 1e11 else max(0.0, number)


def did_you_mean(name: str, names: Iterable[str], *, otherwise: str) -> str:
    """Return a hint with the name that a mistyped or incomplete *name* means, or *otherwise*."""
    from difflib import get_close_matches  # late: a hook without a worker pays for every import

    word, known = name.strip().lower(), list(names)
    longer = [each for each in known if len(word) > 2 and word in each][:3]
    close = get_close_matches(word, known, n=1) or longer
    return f"did you mean {' or '.join(f'`{each}`' for each in close)}?" if close else otherwise


def plural(number: int, things: str) -> str:
    """Return `1 session`, `3 memories`."""
    one = f"{things[:-3]}y" if things.endswith("ies") else things[:-1]
    return f"{number:,} {one if number == 1 else things}"


def sized(amount: float) -> str:
    """Return a number of bytes with its unit: `812 bytes`, `1.4 MB`."""
    for unit in ("bytes", "KB", "MB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GB"
