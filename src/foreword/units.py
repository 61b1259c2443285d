"""`7d` or `2026-01-31` -> seconds since 1970."""

from __future__ import annotations

import re
from datetime import datetime

from foreword.errors import BadRequest

SPANS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def since(told: str, *, now: float) -> float:
    """When that was, at *now*; what is no time is a BadRequest."""
    if found := re.fullmatch(r"(\d{1,6})([mhdw])", told.strip().lower()):
        return max(now - int(found[1]) * SPANS[found[2]], 1.0)
    try:
        return datetime.fromisoformat(told.strip()).timestamp()
    except (ValueError, OverflowError, OSError) as exc:
        raise BadRequest(f"{told[:40]!r} is no time", hint="say 30m, 12h, 7d, 2w or 2026-01-31") from exc


STORE = "the database file; its log, backups and the spool lie beside it and are not counted"  # `Size.total` of a store


def sized(amount: float) -> str:
    """A number of bytes with its unit: `812 bytes`, `1.4 MB`."""
    for unit in ("bytes", "KB", "MB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GB"
