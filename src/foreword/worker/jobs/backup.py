"""Copy the database once a day, check it, and restore a copy while hooks go on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from foreword.errors import BadRequest, NotFound, StoreError
from foreword.store import Store, backup
from foreword.store.database import KnownEvents
from foreword.worker.jobs import Job, JobRunner
from foreword.worker.jobs.extract import ExtractionJob
from foreword.worker.jobs.maintenance import QUIET
from foreword.worker.services import UNREADABLE, Services

RETRY = 3600.0  # seconds until a copy that failed is tried again
LANE = "backup"


class BackupJob:
    """Makes, checks and restores copies, one at a time; `ExtractionJob.apart` keeps `forget` and restores away."""

    def __init__(self, services: Services, runner: JobRunner, extraction: ExtractionJob) -> None:
        self._services, self._runner, self._extraction = services, runner, extraction
        self._day = ""  # the last one of which there is a copy
        problem = "no copy of the database could be made"
        runner.add(Job("backup", self._daily, due=self._is_due, lane=LANE, problem=problem, retry=RETRY))

    # -- once a day ---------------------------------------------------------------------------------------------
    def _is_due(self) -> bool:
        quiet = min(QUIET, self._services.settings.worker_idle_minutes * 60 / 2)  # before the worker leaves
        today = time.strftime("%Y%m%d")
        if not self._services.settings.backups_keep or self._day == today or self._services.idle_seconds < quiet:
            return False
        self._day = today if any(self._services.home.backups.glob(f"{backup.COPY}{today}-*.db")) else ""
        return not self._day and any(self._services.store.stats.row_counts().values())

    def _daily(self) -> None:
        """Check the database, copy it, and remove old copies; later where somebody wants to change it just now."""
        services, hurry = self._services, self._extraction.hurry
        with self._extraction.copying:
            try:
                report = self._check(lambda: self._runner.closing or hurry.is_set())
                if not report.damage:
                    target = backup.new_path(services.home.backups, backup.COPY)
                    self._copy(target, lambda: self._runner.closing or hurry.is_set())
            except StoreError:
                if hurry.is_set():
                    return
                raise
        if report.damage:
            raise StoreError(report.damage[0], hint=report.way_out)
        if not services.losses:
            backup.rotate(services.home.backups, daily=services.settings.backups_keep)

    def _check(self, stop: Callable[[], bool] | None = None) -> backup.Report:
        database = self._services.store.database
        report = database.copy(lambda db: backup.check(db, database.path, interrupted=stop or self._is_closing))
        if report.damage:
            self._services.note_loss(f"{database.path} is damaged: {report.damage[0]}; {report.way_out}")
        return report

    def _copy(self, target: Path, stop: Callable[[], bool] | None = None) -> backup.Report:
        backup.remove_unfinished(self._services.home.backups)
        database = self._services.store.database
        return database.copy(lambda db: backup.copy(db, target, interrupted=stop or self._is_closing))

    def _is_closing(self) -> bool:
        return self._runner.closing

    # -- on request ---------------------------------------------------------------------------------------------
    def copy(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Copy the database to a file, or into the backups folder."""
        target = _path(request) or backup.new_path(self._services.home.backups, backup.COPY)
        if os.path.lexists(target) or not target.parent.is_dir():
            raise BadRequest(f"cannot write {target}", hint="give the path of a new file in a folder that exists")
        with self._extraction.copying:
            return asdict(self._copy(target))

    def verify(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Check the database, or a file; say what was lost, and forget that where the caller acknowledges it."""
        services, home, file = self._services, self._services.home, _path(request)
        if file and not (file.exists() and home.database.exists() and file.samefile(home.database)):
            report = backup.check_file(file, scratch=home.backups)
        elif services.has_store:
            report = self._check()
        else:
            report = backup.check_file(home.database, scratch=home.backups)
        copies = [
            {"file": str(path), "bytes": path.stat().st_size, "at": path.stat().st_mtime}
            for path in backup.copies(home.backups)
        ]
        lost = [vars(each) for each in services.losses]
        if request.get("acknowledge"):
            services.save_losses(())
        return {**asdict(report), "losses": lost, "copies": copies}

    def restore(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Put a copy, or what can be read of a damaged file, in the place of the database; events since then stay."""
        file, salvage = _path(request), bool(request.get("salvage"))
        return self._extraction.apart(lambda: self._restore(file, salvage=salvage)).result()

    def _restore(self, file: Path | None, *, salvage: bool) -> dict[str, Any]:
        services, home, unreadable, taken, lost = self._services, self._services.home, dict[str, int](), 0, 0
        backup.remove_unfinished(home.backups)
        opened = services.store if services.has_store else None
        before: int | None = None
        with suppress(StoreError):  # it may be damaged
            before = opened.stats.row_counts().get("memories") if opened else None
        good = next((Path(each.copy) for each in services.losses if each.copy and os.path.exists(each.copy)), None)
        good = good or next(iter(backup.copies(home.backups)), None)
        if not salvage and not (file := file or good):
            hint = "`foreword restore --salvage` takes what can be read of the database itself"
            raise NotFound(f"there is no copy in {home.backups}", hint=hint)
        replaced = backup.new_path(home.backups, backup.REPLACED)
        live = opened.database.query if opened else None
        with (
            closing(backup.forgotten(home.backups, database=home.database, live=live)) as forgotten,
            backup.scratch(home.backups) as made,
        ):
            new = made / "new.db"
            if file:
                take = backup.salvage if salvage else backup.prepare
                report, unreadable = take(file, new, forgotten)
            with services.closed_store():
                known = KnownEvents(home.database)
                known.close()
                if not file:
                    report, unreadable = backup.salvage(home.database, new, forgotten, copy=good)
                # A database that began after a loss counts its events anew.
                since = 0 if any(each.copy and each.newest for each in services.losses) else report.rows["newest"]
                if file:
                    with closing(Store(new, backups=made)) as store:
                        counted = {"newest": known.number, "events": known.count}
                        taken, lost = backup.take_over(home.database, store, made, since=since, **counted)
                backup.put_in_place(new, home.database, replaced=replaced)
        if salvage:
            services.store.maintenance.reindex()
        self._settle_losses(report.rows["newest"])
        lost += unreadable.get("events", 0) if file else known.count - report.rows["events"]
        if lost > 0:
            services.note_loss(UNREADABLE, events=lost)
        return {
            **{"file": str(file or home.database), "replaced": str(replaced), "rows": report.rows},
            **{"memories_before": before, "unreadable": unreadable, "taken_over": taken},
            "losses": [vars(each) for each in services.losses],
        }

    def _settle_losses(self, newest: int) -> None:
        """Drop what a restored database, whose newest event has this number, makes good."""
        left = [
            replace(each, copy="", events=min(each.events, each.newest - newest if each.newest else each.events))
            for each in self._services.losses
            if each.events and (not each.newest or each.newest > newest)
        ]
        self._services.save_losses(left)


def _path(request: Mapping[str, Any]) -> Path | None:
    """Return the file that a request names; None for none."""
    file = str(request.get("file") or "")
    if file and not os.path.isabs(file):
        raise BadRequest("`file` must be an absolute path", hint="give the full path of the file")
    return Path(file) if file else None
