"""Recorded transcripts of real clients -> the same lines as if they were written at another time."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "payloads" / "transcripts"


def lines(host: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDED / f"{host}.jsonl").read_text().splitlines()]


def at(line: dict[str, Any]) -> float:
    return datetime.fromisoformat(line["timestamp"]).timestamp() if line.get("timestamp") else 0.0


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def write(path: Path, host: str, *, first: float, last: float = 0.0, more: tuple[dict[str, Any], ...] = ()) -> None:
    """A transcript that begins at *first*; where *last* is given, its last line and what follows are of then."""
    told = lines(host)
    began = min(at(line) for line in told if at(line))
    shifted = [{**line, "timestamp": stamp(first + at(line) - began)} if at(line) else line for line in told]
    shifted += [{**line, "timestamp": stamp(last or first)} if "timestamp" in line else line for line in more]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in shifted))
    end = last or max(at(line) for line in shifted)
    os.utime(path, (end, end))


def prompt(host: str) -> dict[str, Any]:
    """The line of a prompt, as this host writes it."""
    from foreword.tails import TELLING

    return next(line for line in lines(host) if TELLING[host](line) == "prompt")


def tool(host: str) -> dict[str, Any]:
    from foreword.tails import TELLING

    return next(line for line in lines(host) if TELLING[host](line) == "tool")
