"""Tell whether all is well and, where it is not, what to do: worker, agents, store, settings, model."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from foreword import __version__
from foreword.config import SETTINGS
from foreword.encoding import STORE, sized
from foreword.errors import ForewordError
from foreword.install.status import install_status
from foreword.models import Project
from foreword.policy import chosen, findings, off
from foreword.problems import (
    BACKLOG,
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
from foreword.worker.handlers import health as worker_health
from foreword.worker.handlers import list_agents

if TYPE_CHECKING:
    from foreword.worker.app import App

T = TypeVar("T")

MOST_TROUBLES = 50
NEAR = 0.8  # share of the database's cap from which on a note says so


def health(app: App) -> dict[str, Any]:
    """Return the state of every part; what a broken store cannot tell is left out, with the reason in the findings."""
    now, found = app.now(), list[Finding]()
    silent = {"version": __version__, "pid": os.getpid(), "uptime_s": max(0.0, now - app.started), "problems": []}
    worker = _try(lambda: worker_health(app), found) or {**silent, "counts": {}, "database_bytes": None}
    for problem in worker["problems"]:
        says, _, way_out = problem.partition("; ")
        _add(found, Finding("store", WRONG, says, way_out))
    spool = Spooled(0, 0.0)
    with suppress(OSError):
        spool = spooled(app.home.spool)
    if spool.bytes and now - spool.oldest > BACKLOG and worker["uptime_s"] > SETTLE:
        says = f"{sized(spool.bytes)} of hook payloads wait in the spool, though a worker runs"
        found.append(Finding("spool", WRONG, says, "see logs/worker.log, and run `foreword doctor`"))
    hosts = _hosts(app, found)
    size, limit = worker["database_bytes"] or 0, app.settings.store_max_mb * 1024 * 1024
    if limit and size >= limit * NEAR:
        says = f"the store has {sized(size)} of the {sized(limit)} that `store_max_mb` allows"
        found.append(Finding("store", NOTE, says, "`foreword prune --dry-run` tells what would go"))
    found += [*_switched(app), *_of_model(app, found)]
    wrong = [each for each in found if each.state == WRONG]
    says = f"All is well: {_many(worker['counts'].get('memories', 0), 'memory', 'memories')}, {sized(size)}"
    if wrong:
        says = f"Not all is well: {wrong[0].says}" + (f", and {len(wrong) - 1} more" if wrong[1:] else "")
    troubles = sorted(grouped(noted(str(app.home.trouble))), key=lambda group: -group.last)[:MOST_TROUBLES]
    return {
        "at": now,
        "ok": not wrong,
        "says": says,
        "findings": [vars(each) for each in found],
        "worker": {name: worker[name] for name in ("version", "pid", "uptime_s")},
        "home": str(app.home.root),
        "spool_bytes": spool.bytes,
        "hosts": hosts,
        "troubles": [
            {"at": each.last, "where": each.where, "what": each.what, "count": each.count} for each in troubles
        ],
        "store": {"bytes": size, "limit": limit, "counts": worker["counts"], "counted": STORE},
        "settings": _changed_settings(app),
    }


def _try(question: Callable[[], T], found: list[Finding]) -> T | None:
    """Return the answer, or None and add a finding: the rest of the page does not depend on it."""
    try:
        return question()
    except ForewordError as exc:
        _add(found, Finding("store", WRONG, str(exc), exc.hint))
        return None


def _add(found: list[Finding], finding: Finding) -> None:
    """Add a finding once: a broken store fails every question alike."""
    if finding.says not in {each.says for each in found}:
        found.append(finding)


def _hosts(app: App, found: list[Finding]) -> list[dict[str, Any]]:
    """Return every agent that is connected, was seen or is on this machine, with what was seen of it."""
    hosts = _try(lambda: list_agents(app)["hosts"], found)
    seen = hosts or {}
    rows = []
    for name, status in install_status(app.home, os.environ).items():
        found += [Finding(name, each.state, f"{name}: {each.says}", each.way_out) for each in status.findings]
        connected = bool(status.files)
        if connected or name in seen or status.setup.folder.is_dir():
            rows.append({"host": name, "connected": connected, **NEVER_SEEN, **seen.get(name, {})})
    if hosts is not None and not any(row["connected"] or row["last_event"] for row in rows):
        found.append(Finding("hosts", NOTE, "no agent is connected: nothing is captured", "run `foreword install`"))
    return sorted(rows, key=lambda row: (not row["last_event"], row["host"]))


def _switched(app: App) -> list[Finding]:
    """Return what the user switched off, for all projects and for single ones, and settings that are wrong."""
    says = {"capture": "capture is off: sessions are not kept", "inject": "inject is off: agents are given nothing"}
    found = [
        Finding("settings", NOTE, sentence, f"`foreword config set {name} on`")
        for name, sentence in says.items()
        if not getattr(app.settings, name)
    ]
    found += [Finding("settings", WRONG, problem, "correct it") for problem in app.services.loaded.problems]
    choices = {**chosen(app.settings), "capture": True, "inject": True}
    for key, known in app.projects.known().items():
        if not known.alias_of:
            project = Project(key, known.name, known.root)
            found += [Finding("project", NOTE, says, hint) for says, hint in findings(off(project, choices), project)]
    return found


def _changed_settings(app: App) -> list[dict[str, Any]]:
    """Return the settings that differ from the defaults, and where they were set."""
    origin = app.services.loaded.origin
    return [
        {"name": each.name, "value": value, "default": each.default, "from": origin[each.name]}
        for each in SETTINGS
        if (value := getattr(app.settings, each.name)) != each.default
    ]


def _of_model(app: App, found: list[Finding]) -> list[Finding]:
    model = _try(app.refine.status, found)
    if not model or model["provider"] == "off":
        return []
    if model["problem"]:
        return [Finding("model", WRONG, model["problem"], "docs/model.md explains how to set it up or turn it off")]
    return []


def _many(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}" if number else f"no {more}"
