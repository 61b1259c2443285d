"""A memory's detail, which anybody may have written -> what it says under a name, as far as that makes sense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def text(detail: Mapping[str, Any], name: str) -> str:
    """The text under *name*; empty where there is none."""
    told = detail.get(name)
    return told if isinstance(told, str) else ""


def texts(detail: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The texts of the list under *name*; none where there is no list."""
    told = detail.get(name)
    return tuple(each for each in told if isinstance(each, str)) if isinstance(told, list | tuple) else ()


def named(detail: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What the object under *name* holds, such as one thing for each session; nothing where there is none."""
    told = detail.get(name)
    return dict(told) if isinstance(told, Mapping) else {}
