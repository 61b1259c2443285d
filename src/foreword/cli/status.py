"""A home -> what is in it, what it did last, and what went wrong since the user last looked."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from foreword.cli import checks, door, hosts, screen, troubles
from foreword.cli.memories import Json
from foreword.errors import ForewordError
from foreword.values import fields

if TYPE_CHECKING:
    from pathlib import Path

    from foreword.paths import Home

COUNTED = ("memories", "sessions", "events", "injections")


def status(json: Json = False) -> None:
    """Show what is remembered and what went wrong.

    What went wrong since you last asked is shown once; `foreword doctor` keeps showing it.
    A worker that is away is started.

    \b
    Example:
      foreword status
    """
    home = door.here()
    about = _about(home)
    new = troubles.untold(home)
    about["troubles"] = [fields(group) for group in troubles.grouped(new)]
    if json:
        screen.as_json(about)
        return
    screen.rows(_lines(about))
    if about["troubles"]:
        screen.say("\nwent wrong since you last asked (told once; `foreword doctor` has the way out):")
    for each in about["troubles"]:
        screen.say(f"  {_when(each['last'])}, {each['count']}x, {each['where']}: {each['what']}")
    troubles.told(home, new)


def waiting(home: Home) -> int:
    """The bytes that hooks have spooled and no worker has taken in."""
    return _size(home.spool)


def _about(home: Home) -> dict[str, Any]:
    """All that can be told; where the worker cannot be asked, why."""
    about: dict[str, Any] = {
        "worker": {"running": False},
        "home": str(home.root),
        "home_exists": os.path.isdir(home.root),
        "counts": {},
        "database_bytes": _size(home.root, start="memory.db"),
        "spool_bytes": waiting(home),
        "last_event": None,
        "last_injection": None,
        "hosts": {},
        "problems": [],
    }
    if not about["home_exists"]:
        found = checks.folder(home)
        wrong = found.state == checks.WRONG
        return {**about, "problems": [f"{found.says}; {found.way_out}"] if wrong else []}
    try:
        client = door.worker(home)
        health = client.get("/api/health")
        about["worker"] = {"running": True, **{name: health[name] for name in ("pid", "version", "uptime_s")}}
        about |= {"counts": health["counts"], "problems": health["problems"]}
        about["last_event"] = next(iter(client.get("/api/sessions", limit=1)["sessions"]), None)
        about["last_injection"] = next(iter(client.get("/api/injections", limit=1)["injections"]), None)
        about["hosts"] = client.get("/api/hosts")["hosts"]
    except ForewordError as exc:
        about["problems"] = list(dict.fromkeys([*about["problems"], f"{exc}; {exc.hint}"]))
    return {**about, "database_bytes": _size(home.root, start="memory.db"), "spool_bytes": waiting(home)}


def _lines(about: dict[str, Any]) -> list[tuple[str, str]]:
    worker, event, injection = about["worker"], about["last_event"], about["last_injection"]
    running = "not running"
    if worker["running"]:
        running = (
            f"running, process {worker['pid']}, version {worker['version']}, up {screen.lasting(worker['uptime_s'])}"
        )
    counts = ", ".join(f"{about['counts'][name]:,} {name}" for name in COUNTED if name in about["counts"])
    given = "nothing yet"
    if injection:
        given = (
            f"{_when(injection['at'])}, {injection['moment']}, {injection['tokens']} of {injection['budget']} tokens, "
            f"{len(injection['items'])} shown, {injection['project']}"
        )
    return [
        ("worker", running),
        ("home", about["home"] + ("" if about["home_exists"] else ", not there yet: the first memory makes it")),
        ("holds", counts or ("unknown" if about["home_exists"] else "nothing yet")),
        ("database", screen.sized(about["database_bytes"]) if about["database_bytes"] else "none yet"),
        ("waiting", f"{screen.sized(about['spool_bytes'])} in the spool" if about["spool_bytes"] else "nothing"),
        ("last event", f"{_when(event['last'])}, {event['host']}, {event['project']}" if event else "none yet"),
        ("last given", given),
        *((name, hosts.line_of(seen, now=time.time())) for name, seen in about["hosts"].items()),
        *(("problem", problem) for problem in about["problems"]),
    ]


def _size(folder: Path, *, start: str = "") -> int:
    """The bytes of the files there whose name begins with *start*; what goes away meanwhile counts nothing."""
    total = 0
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(start):
                with suppress(OSError):
                    total += entry.stat().st_size
    return total


def _when(at: float) -> str:
    from foreword.render import ago

    return ago(time.time() - at)
