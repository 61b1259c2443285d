"""Tell whether all is well and, where it is not, what to do: worker, agents, store, settings, model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from foreword import __version__
from foreword.config import load_synonyms
from foreword.encoding import STORE, plural, sized
from foreword.errors import ForewordError
from foreword.install.status import InstallStatus, install_status
from foreword.models import Project
from foreword.policy import chosen, findings, off
from foreword.problems import BACKLOG, NEVER_SEEN, NOTE, SETTLE, WRONG, Finding, Spooled, grouped, noted, spooled
from foreword.projects import git_directory
from foreword.recall.render import ago

if TYPE_CHECKING:
    from foreword.worker.app import App

MOST_TROUBLES = 50
LOST = "`foreword restore` may bring them back; `foreword verify --acknowledge` ends this message"
SILENT_SECONDS = 86_400.0  # agents append to transcripts for hours after a session has ended
SWITCHES = {"capture": "capture is off: sessions are not kept", "inject": "inject is off: agents are given nothing"}


def health(app: App, *, full: bool = False) -> dict[str, Any]:
    """Return whether the worker is well, and what its store holds; with *full* the state of every part."""
    if full:
        return _health_page(app)
    problems, opened = app.store_problems(), app.has_store
    return {
        **_worker(app),
        "build": app.build,
        "home": str(app.home.root),
        "ok": not problems,
        "problems": problems,
        "counts": app.store.stats.row_counts() if opened else {},
        "database_bytes": app.store.stats.size().total if opened else None,
    }


def _worker(app: App) -> dict[str, Any]:
    uptime = max(0.0, app.now() - app.started)  # a clock may be set back
    return {"version": __version__, "pid": os.getpid(), "uptime_s": round(uptime, 1)}


def _health_page(app: App) -> dict[str, Any]:
    """Return the state of every part; what a broken store cannot tell is left out, with the reason in the findings."""
    app.follow_settings()  # a command or a hand may have changed them a moment ago
    found = [*_store_findings(app)]
    counts: dict[str, int] = {}
    seen: dict[str, dict[str, Any]] = {}
    size = 0
    try:
        app.capture.catch_up()
        size, seen, counts = app.store.stats.size().total, app.store.stats.agents(), app.store.stats.row_counts()
        model = app.refine.status()
        if model["problem"]:
            way_out = "docs/model.md explains how to set it up or turn it off"
            found.append(Finding("model", WRONG, model["problem"], way_out))
    except ForewordError as exc:
        found.append(Finding("store", WRONG, str(exc), exc.hint))
    waiting = Spooled(0, 0.0)
    with suppress(OSError):
        waiting = spooled(app.home.spool)
    if waiting.bytes and app.now() - waiting.oldest > BACKLOG and app.now() - app.started > SETTLE:
        says = f"{sized(waiting.bytes)} of hook payloads wait in the spool, though a worker runs"
        found.append(Finding("spool", WRONG, says, "see logs/worker.log, and run `foreword doctor`"))
    agents = []
    for name, status in install_status(app.home, os.environ).items():
        activity = {**NEVER_SEEN, **seen.get(name, {})}
        found += [Finding(name, each.state, f"{name}: {each.says}", each.way_out) for each in status.findings]
        if app.settings.capture and (at := _silent_since(status, activity["last_event"])):
            says = f"{name} wrote a transcript {ago(app.now() - at)}, long after its last event: its hooks may not run"
            found.append(Finding(name, NOTE, says, f"run `foreword install {name}`, and restart it"))
        if status.files or name in seen or status.setup.folder.is_dir():
            agents.append({"host": name, "connected": bool(status.files), **activity})
    if counts and not any(each["connected"] or each["last_event"] for each in agents):
        found.append(Finding("hosts", NOTE, "no agent is connected: nothing is captured", "run `foreword install`"))
    found += [*_switched(app), *_shared(app)]
    found = list({each.says: each for each in found}.values())  # a broken store is found by several ways
    wrong = [each.says for each in found if each.state == WRONG]
    memories = counts.get("memories", 0)
    says = f"All is well: {plural(memories, 'memories') if memories else 'no memories'}, {sized(size)}"
    if wrong:
        says = f"Not all is well: {wrong[0]}" + (f", and {len(wrong) - 1} more" if wrong[1:] else "")
    troubles = sorted(grouped(noted(str(app.home.trouble))), key=lambda group: -group.last)[:MOST_TROUBLES]
    limit = app.settings.store_max_mb * 1024 * 1024
    return {
        "at": app.now(),
        "ok": not wrong,
        "says": says,
        "findings": [vars(each) for each in found],
        "worker": _worker(app),
        "home": str(app.home.root),
        "spool_bytes": waiting.bytes,
        "hosts": sorted(agents, key=lambda each: (not each["last_event"], each["host"])),
        "troubles": [
            {"at": each.last, "where": each.where, "what": each.what, "count": each.count} for each in troubles
        ],
        "store": {"bytes": size, "limit": limit, "counts": counts, "counted": STORE},
    }


def _store_findings(app: App) -> Iterator[Finding]:
    """Yield what is wrong with the store, and what it lost."""
    for each in app.store_problems():
        says, _, way_out = each.partition("; ")
        yield Finding("store", WRONG, says, way_out or "run `foreword index`; the memories themselves are safe")
    for loss in app.losses:
        yield Finding(
            "lost", WRONG, f"{plural(loss.events, 'events')} were lost: {loss.what}" if loss.events else loss.what, LOST
        )


def _silent_since(status: InstallStatus, event: Mapping[str, Any] | None) -> float:
    """Return when a connected agent last wrote a transcript, if that is long after its last event; else 0."""
    after, newest = max(event["at"] if event else 0.0, status.installed_at), 0.0
    for pattern in status.setup.transcripts if status.files else ():
        for file in status.setup.folder.glob(pattern):
            with suppress(OSError):
                newest = max(newest, file.stat().st_mtime)
    return newest if newest > after + SILENT_SECONDS else 0.0


def _shared(app: App) -> Iterator[Finding]:
    """Yield folders whose `.git` leads to one git directory, so that they share a memory: work trees have their own."""
    for known in app.projects.known().values():
        by_git: dict[str, list[str]] = {}
        for root in known.roots:
            if os.path.isdir(root) and (git := git_directory(root)):
                by_git.setdefault(git, []).append(root)
        for git, roots in by_git.items():
            if len(roots) > 1:
                says = f"{' and '.join(sorted(roots))} are one project: the .git of each leads to {git}"
                yield Finding("folders", NOTE, says, "if that is not meant, remove the .git file of the copy")


def _switched(app: App) -> Iterator[Finding]:
    """Yield what the user switched off, for all projects and for single ones, and settings that are wrong."""
    for name, sentence in SWITCHES.items():
        if not getattr(app.settings, name):
            yield Finding("settings", NOTE, sentence, f"foreword config set {name} on")
    home, way_out = app.home, "correct it; until then the default applies"
    for path, problems in ((home.config, app.loaded.problems), (home.synonyms, load_synonyms(home)[1])):
        for problem in problems:
            yield Finding(path.name, WRONG, problem, way_out)
    choices = {**chosen(app.settings), "capture": True, "inject": True}
    for key, known in app.projects.known().items():
        project = Project(key, known.name, known.root)
        if not known.alias_of:
            for says, hint in findings(off(project, choices), project):
                yield Finding("project", NOTE, says, hint)
