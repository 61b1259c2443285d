"""Copy the database once a day, check it, and restore a copy while hooks go on."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from foreword.errors import BadRequest, NotFound, StoreError
from foreword.store import backup
from foreword.store.database import NewestEvent
from foreword.worker.jobs import Job, JobRunner
from foreword.worker.jobs.extract import ExtractionJob
from foreword.worker.jobs.maintenance import QUIET
from foreword.worker.services import Services

RETRY = 3600.0  # seconds until a copy that failed is tried again
RESTORED = "restored"  # the checkpoint that names the database whose newer events are still to be taken over


class BackupJob:
    """Makes, checks and restores copies, one at a time, and never while something is forgotten or extracted."""

    def __init__(self, services: Services, runner: JobRunner, extraction: ExtractionJob) -> None:
        self._services, self._runner, self._extraction = services, runner, extraction
        self._day = ""  # the last one of which there is a copy
        problem = "no copy of the database could be made"
        runner.add(Job("backup", self._daily, due=self._is_due, lane="extract", problem=problem, retry=RETRY))

    # -- once a day ---------------------------------------------------------------------------------------------
    def _is_due(self) -> bool:
        quiet = min(QUIET, self._services.settings.worker_idle_minutes * 60 / 2)  # before the worker leaves
        today = time.strftime("%Y%m%d")
        if not self._services.settings.backups_keep or self._day == today or self._services.idle_seconds < quiet:
            return False
        self._day = today if any(self._services.home.backups.glob(f"{backup.COPY}{today}-*.db")) else ""
        return not self._day and any(self._services.store.stats.row_counts().values())

    def _daily(self) -> None:
        """Check the database, copy it, and remove old copies."""
        services = self._services
        report = self._check()
        if report.damage:
            services.note_loss(f"{services.home.database} is damaged: {report.damage[0]}; {report.way_out}")
            raise StoreError(report.damage[0], hint=report.way_out)
        self._copy(backup.new_path(services.home.backups, backup.COPY))
        backup.rotate(services.home.backups, daily=services.settings.backups_keep)

    def _check(self) -> backup.Report:
        database = self._services.store.database
        return database.copy(lambda db: backup.check(db, database.path, interrupted=lambda: self._runner.closing))

    def _copy(self, target: Path) -> backup.Report:
        database, closing = self._services.store.database, self._runner
        backup.remove_unfinished(self._services.home.backups)
        return database.copy(lambda db: backup.copy(db, target, interrupted=lambda: closing.closing))

    # -- on request ---------------------------------------------------------------------------------------------
    def copy(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Copy the database to a file, or into the backups folder."""
        target = _path(request) or backup.new_path(self._services.home.backups, backup.COPY)
        if os.path.lexists(target) or not target.parent.is_dir():
            raise BadRequest(f"cannot write {target}", hint="give the path of a new file in a folder that exists")
        return asdict(self._extraction.apart(lambda: self._copy(target)).result())

    def verify(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Check the database, or a file; say what was lost, and forget that where the caller acknowledges it."""
        services, home, file = self._services, self._services.home, _path(request)
        lost = [vars(each) for each in services.losses]
        if request.get("acknowledge"):
            services.save_losses(())
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
        return {**asdict(report), "losses": lost, "copies": copies}

    def restore(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Put a copy, or what can be read of a damaged file, in the place of the database; events since then stay."""
        file, salvage = _path(request), bool(request.get("salvage"))
        return self._extraction.apart(lambda: self._restore(file, salvage=salvage)).result()

    def _restore(self, file: Path | None, *, salvage: bool) -> dict[str, Any]:
        services, home, unreadable = self._services, self._services.home, dict[str, int]()
        new, replaced = home.backups / f"new{backup.UNFINISHED}", backup.new_path(home.backups, backup.REPLACED)
        backup.remove_unfinished(home.backups)
        opened = services.store if services.has_store else None
        wanted = 0 if opened else NewestEvent(home.database).number
        before = opened.stats.row_counts()["memories"] if opened else None
        if not salvage:
            file = file or next(iter(backup.copies(home.backups)), None)
            if file is None:
                hint = "`foreword restore --salvage` takes what can be read of the database itself"
                raise NotFound(f"there is no copy in {home.backups}", hint=hint)
            report = backup.prepare(file, new, live=opened)
        with services.closed_store():
            if salvage:
                report, unreadable = backup.salvage(file or home.database, new)
            backup.put_in_place(new, home.database, replaced=replaced, resume=file is not None)
        if salvage:
            services.store.maintenance.reindex()
        taken, missing = self.resume()
        newest = report.rows["newest"]
        found = [each for each in services.losses if each.events and (not each.newest or each.newest > newest)]
        services.save_losses(
            [
                replace(each, events=min(each.events, each.newest - newest if each.newest else each.events))
                for each in found
            ]
        )
        lost = max(sum(number > newest for number in missing), wanted - newest - taken, unreadable.get("events", 0), 0)
        if lost:
            services.note_loss(
                f"they could not be read in {replaced}, which was replaced by {file or 'what was salvaged'}",
                events=lost,
            )
        return {
            **{
                "file": str(file or home.database),
                "replaced": str(replaced),
                "rows": report.rows,
                "memories_before": before,
            },
            **{"unreadable": unreadable, "taken_over": taken, "losses": [vars(each) for each in services.losses]},
        }

    def resume(self) -> tuple[int, list[int]]:
        """Take over the events that the replaced database has and the restored one lacks."""
        store = self._services.store
        return backup.take_over(store) if store.checkpoint(backup.RESTORED) else (0, [])


def _path(request: Mapping[str, Any]) -> Path | None:
    """Return the file that a request names; None for none."""
    file = str(request.get("file") or "")
    if file and not os.path.isabs(file):
        raise BadRequest("`file` must be an absolute path", hint="give the full path of the file")
    return Path(file) if file else None
