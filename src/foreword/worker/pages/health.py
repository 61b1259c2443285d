"""Tell whether all is well and, where it is not, what to do: worker, agents, store, settings, model."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from foreword import __version__
from foreword.config import SETTINGS
from foreword.errors import ForewordError
from foreword.install.status import install_status
from foreword.layout import LAYOUT
from foreword.models import Project
from foreword.policy import chosen, off
from foreword.problems import (
    BACKLOG,
    LATELY,
    NEVER_SEEN,
    NOTE,
    SETTLE,
    WRONG,
    Finding,
    Spooled,
    grouped,
    noted,
    spooled,
)
from foreword.store.projects import names
from foreword.units import STORE, sized
from foreword.worker.handlers import health as worker_health
from foreword.worker.handlers import list_agents, show_model

if TYPE_CHECKING:
    from foreword.install.status import InstallStatus
    from foreword.worker.app import App

T = TypeVar("T")

MOST_TROUBLES = 50
LEDGER = 20  # calls of a model that are shown
NEAR = 0.8  # share of the database's cap from which on a note says so
MOST_WAITING = 100  # sessions that are counted as waiting


def health(app: App) -> dict[str, Any]:
    """Return the state of every part; what a broken store cannot tell is null, with the reason among the findings."""
    now, found = app.now(), list[Finding]()
    worker = _worker(app, found, now=now)
    counts = worker.pop("counts")
    hosts = _hosts(app, found)
    size = _try(lambda: vars(app.store.stats.size()), found)
    store = _store(app, found, size=size, counts=counts) if size else None
    model = _try(lambda: show_model(app, ledger=LEDGER), found)
    findings = [*found, *_switched(app), *_of_model(model)]
    return {
        "at": now,
        "ok": not any(each.state == WRONG for each in findings),
        "says": _says(findings, hosts=hosts, store=store, now=now),
        "findings": [vars(each) for each in findings],
        "worker": worker,
        "hosts": hosts,
        "troubles": _troubles(app.home.trouble),
        "store": store,
        "switches": _switches(app),
        "settings": _settings(app),
        "model": {"on": app.settings.model_provider != "off", **(model or {"ledger": []})},
    }


def _try(question: Callable[[], T], found: list[Finding]) -> T | None:
    """Return the answer, or None and add a finding: the rest of the page does not depend on it."""
    try:
        return question()
    except ForewordError as exc:
        _find(found, Finding("store", WRONG, str(exc), exc.hint))
        return None


def _find(found: list[Finding], this: Finding) -> None:
    """Add a finding once: a broken store fails every question alike."""
    if this.says not in {each.says for each in found}:
        found.append(this)


def _worker(app: App, found: list[Finding], *, now: float) -> dict[str, Any]:
    silent = {"version": __version__, "pid": os.getpid(), "home": str(app.home.root), "ok": False, "counts": {}}
    uptime = {"uptime_s": round(max(0.0, now - app.started), 1), "problems": []}
    about = _try(lambda: worker_health(app), found) or {**silent, **uptime}
    for problem in about["problems"]:
        says, _, way_out = problem.partition("; ")
        _find(found, Finding("store", WRONG, says, way_out))
    waiting = _spooled(app.home.spool, now=now)
    if waiting["since_s"] > BACKLOG and about["uptime_s"] > SETTLE:
        says = f"{sized(waiting['bytes'])} of hook payloads wait in the spool, though a worker runs"
        found.append(Finding("spool", WRONG, says, "see logs/worker.log, and run `foreword doctor`"))
    fields = ("version", "pid", "home", "uptime_s", "ok", "problems", "counts")
    sessions = _try(lambda: len(app.store.sessions.pending(limit=MOST_WAITING + 1)), found)
    return {
        **{name: about[name] for name in fields},
        "threads": threading.active_count(),
        "spool": waiting,
        "sessions_waiting": None if sessions is None else min(sessions, MOST_WAITING),
        "more_sessions_wait": (sessions or 0) > MOST_WAITING,
    }


def _spooled(folder: Path, *, now: float) -> dict[str, float]:
    """Return how much waits in the spool, and for how long."""
    try:
        waits = spooled(folder)
    except OSError:
        waits = Spooled(0, 0.0)
    return {"bytes": waits.bytes, "since_s": round(max(0.0, now - waits.oldest), 1) if waits.bytes else 0.0}


def _store(app: App, found: list[Finding], *, size: Mapping[str, int], counts: Mapping[str, int]) -> Any:
    limit = app.settings.store_max_mb * 1024 * 1024
    if limit and size["total"] >= limit * NEAR:
        says = f"the store has {sized(size['total'])} of the {sized(limit)} that `store_max_mb` allows"
        found.append(Finding("store", NOTE, says, "`foreword prune --dry-run` tells what would go"))
    free = size["total"] - size["used"]
    held = {"bytes": size["total"], "used": size["used"], "free": free, "limit": limit}
    return {**held, "counts": dict(counts), "counted": STORE}


def _troubles(path: Path) -> list[dict[str, Any]]:
    """Return swallowed errors, newest first; the same one in the same place is one entry with its count."""
    groups = sorted(grouped(noted(str(path))), key=lambda group: -group.last)[:MOST_TROUBLES]
    return [{"at": each.last, "where": each.where, "what": each.what, "count": each.count} for each in groups]


# -- hosts --------------------------------------------------------------------------------------------------------
def _hosts(app: App, found: list[Finding]) -> list[dict[str, Any]]:
    """Return every agent that can be wired or had an event: its wiring, and what was seen of it."""
    hosts = _try(lambda: list_agents(app)["hosts"], found)
    seen = hosts or {}
    wired = install_status(app.home, os.environ)
    rows = []
    for name in sorted({*wired, *seen}, key=lambda each: (each not in seen, each)):
        row = {"host": name, **_wired(wired.get(name)), **NEVER_SEEN, **seen.get(name, {})}
        rows.append({**row, "here": row["here"] or name in seen})
        found += _of_host(row)
    if hosts is not None and not any(row["wired"] != "no" or row["last_event"] for row in rows):
        found.append(Finding("hosts", NOTE, "no agent is wired: nothing is captured", "run `foreword install`"))
    return rows


def _wired(wired: InstallStatus | None) -> dict[str, Any]:
    """Return how much of what install writes is in an agent's files: all of it, a part, or nothing."""
    if wired is None:
        return {"wired": "no", "there": 0, "lacks": [], "off": "", "files": [], "since": 0.0, "here": False}
    begun = wired.begun
    lacks = [f"{each.what} is {each.how} in {each.file}" for each in wired.gaps] if begun else []
    return {
        "wired": "partly" if lacks else "yes" if begun else "no",
        "there": wired.there,
        "lacks": lacks,
        "off": wired.off if begun else "",
        "files": [str(file) for file in wired.files] if begun else [],
        "since": wired.since,
        "here": begun or wired.setup.folder.is_dir(),
    }


def _of_host(row: Mapping[str, Any]) -> list[Finding]:
    name, found = row["host"], []
    if row["lacks"]:
        few = ", ".join(row["lacks"][:2]) + (f" and {len(row['lacks']) - 2} more" if len(row["lacks"]) > 2 else "")
        found.append(Finding(name, WRONG, f"{name}: {few}", f"run `foreword install {name}`, which writes what lacks"))
    if row["off"]:
        found.append(
            Finding(name, WRONG, f"{name} runs no hooks: {row['off']}", "take that setting out, or ask who manages it")
        )
    return found


# -- what the user chose --------------------------------------------------------------------------------------------
def _switched(app: App) -> list[Finding]:
    says = {"capture": "capture is off: sessions are not kept", "inject": "inject is off: agents are given nothing"}
    return [
        Finding("settings", NOTE, sentence, f"`foreword config set {name} on`")
        for name, sentence in says.items()
        if not getattr(app.settings, name)
    ] + [Finding("settings", WRONG, problem, "correct it") for problem in app.services.loaded.problems]


def _switches(app: App) -> list[dict[str, Any]]:
    """Return the projects in which something is switched off, and by what."""
    choices = {**chosen(app.settings), "capture": True, "inject": True}
    rows = []
    registry = app.projects.known()
    name = names(registry)
    for key, known in registry.items():
        its = off(Project(key, known.name, known.root), choices) if not known.alias_of else None
        if its and (its.capture or its.inject):
            how = "off" if its.capture and its.inject else "read-only" if its.capture else "silent"
            by = sorted({each for each in (its.capture, its.inject) if each})
            rows.append({"project": key, "name": name(key), "how": how, "by": ", ".join(by)})
    return sorted(rows, key=lambda row: (row["name"], row["project"]))


def _settings(app: App) -> list[dict[str, Any]]:
    """Return the settings that differ from the defaults, and where they were set."""
    settings, origin = app.settings, app.services.loaded.origin
    rows = [
        {"name": each.name, "value": here, "default": each.default, "from": origin[each.name]}
        for each in SETTINGS
        if (here := getattr(settings, each.name)) != each.default
    ]
    changed = [name for name, recipe in settings.layout.items() if recipe != LAYOUT.get(name)]
    layout = {"name": "layout", "value": changed, "default": [], "from": origin["layout"]}
    return rows + ([layout] if changed else [])


def _of_model(model: Mapping[str, Any] | None) -> list[Finding]:
    if not model or model["provider"] == "off":
        return []
    if model["problem"]:
        return [
            Finding("model", WRONG, model["problem"], "docs/model.md tells how to set it up, and how to turn it off")
        ]
    return []


# -- in one sentence ----------------------------------------------------------------------------------------------
def _says(findings: list[Finding], *, hosts: list[dict[str, Any]], store: Mapping[str, Any] | None, now: float) -> str:
    wrong = [each for each in findings if each.state == WRONG]
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        return f"Not all is well: {wrong[0].says}{more}"
    recent = sum(1 for each in hosts if each["last_event"] and now - each["last_event"]["at"] < LATELY)
    notes = sum(each.state == NOTE for each in findings)
    kept = store["counts"].get("memories", 0) if store else 0
    holds = f", {_many(kept, 'memory', 'memories')}, {sized(store['bytes'])}" if store else ""
    also = f", and {_many(notes, 'thing', 'things')} to know" if notes else ""
    well = "All is well" if recent else "Nothing is wrong"
    return f"{well}: {_many(recent, 'agent', 'agents')} heard this week{holds}{also}"


def _many(number: int, one: str, more: str) -> str:
    return f"{f'{number:,}' if number else 'no'} {one if number == 1 else more}"
