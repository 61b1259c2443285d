"""Answer requests for upkeep and statistics: tidy, prune, scrub, index, imports, and what changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, time, timedelta
from typing import Any

from foreword.errors import BadRequest
from foreword.hook.client import without_values
from foreword.maintenance.rescan import Cleaner, scrub
from foreword.worker.app import App
from foreword.worker.services import log_to

MOST_DAYS = 3650  # of statistics
CHANGE_SECONDS = 1.0  # that a request for changes is held; a worker that leaves waits for it


def tidy(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Merge, supersede and sink memories in a project or in all; with `dry_run` only list the changes."""
    app.capture.drain()
    folder = str(body.get("project_path") or "")
    projects = app.tidy.projects() if body.get("all") else (app.projects.at(folder),)
    return app.tidy.run(projects, dry_run=bool(body.get("dry_run")))


def prune(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Delete what is too old or too much; with `dry_run` only count it."""
    return app.prune.preview() if body.get("dry_run") else app.prune.run(who="user")


def index(app: App) -> dict[str, int]:
    """Derive all indexes again, and make the file as small as what it holds."""
    count = app.store.maintenance.reindex()
    app.store.maintenance.vacuum()
    return {"indexed": count}


def show_imports(app: App, *, project_path: str) -> dict[str, Any]:
    """Return the last import of a project, or of every project."""
    return app.imports.status(app.projects.key_at(project_path))


def changes(app: App, *, after: int = -1) -> dict[str, Any]:
    """Return the number of the last commit, as soon as it differs from *after*, or after a second."""
    return {"number": app.store.database.wait_for_commit(after, seconds=CHANGE_SECONDS)}


def scrub_store(app: App, body: Mapping[str, Any]) -> dict[str, Any]:
    """Remove from all files what is now known to be secret; with `dry_run` only count it."""
    app.capture.drain()
    values = [os.fsencode(each) for each in body.get("values", ()) if isinstance(each, str)]

    def hide(text: str) -> str:
        return without_values(text.encode("utf-8", "surrogatepass"), values).decode("utf-8", "surrogatepass")

    cleaner = Cleaner(deny=app.settings.deny_paths, hide=hide)
    answer = scrub(app.store, app.home, cleaner=cleaner, dry_run=bool(body.get("dry_run")))
    if not body.get("dry_run"):
        log_to(app.home, app.settings)  # the log may be another file now
    return answer


def show_stats(app: App, *, project_path: str = "", project: str = "", days: int = 30) -> dict[str, Any]:
    """Return what was injected, whether it was used and what it cost; without a path or key, of all projects."""
    named = app.projects.at(project_path) if project_path else app.projects.named(project)
    if not 1 <= days <= MOST_DAYS:
        raise BadRequest(f"`days` must be from 1 to {MOST_DAYS}", hint="leave it out for 30")
    last = datetime.fromtimestamp(app.now()).date()
    first = last - timedelta(days=days - 1)
    since, until = (datetime.combine(day, time()).timestamp() for day in (first, last + timedelta(days=1)))
    figures = app.store.stats.figures(project=named.key, since=since, until=until)
    span = {"from": first.isoformat(), "to": last.isoformat(), "days": days}
    return {"project": named.key, "name": named.name, **span, **figures}
