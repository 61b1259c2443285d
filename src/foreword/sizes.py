"""Bytes -> as people say them, and which bytes the size of the store counts."""

from __future__ import annotations

STORE = "the database file; its log, backups and the spool lie beside it and are not counted"  # `Size.total` of a store


def sized(amount: float) -> str:
    """A number of bytes with its unit: `812 bytes`, `1.4 MB`."""
    for unit in ("bytes", "KB", "MB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GB"
