"""Parse times such as `7d` or `2026-01-31`, and format sizes."""

from __future__ import annotations

import re
from datetime import datetime

from foreword.errors import BadRequest

SPANS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def since(text: str, *, now: float) -> float:
    """Return the time that *text* names, seen from *now*, in seconds since 1970; else raise BadRequest."""
    if found := re.fullmatch(r"(\d{1,6})([mhdw])", text.strip().lower()):
        return max(now - int(found[1]) * SPANS[found[2]], 1.0)
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError) as exc:
        raise BadRequest(f"{text[:40]!r} is not a time", hint="use 30m, 12h, 7d, 2w or 2026-01-31") from exc


STORE = "the database file; its log, backups and the spool lie beside it and are not counted"


def sized(amount: float) -> str:
    """Return a number of bytes with its unit: `812 bytes`, `1.4 MB`."""
    for unit in ("bytes", "KB", "MB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GB"
