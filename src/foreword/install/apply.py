"""Apply a plan, all of it or nothing, recorded in the manifest before the first byte; or undo one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from foreword.agents.setup import Setup
from foreword.errors import ForewordError
from foreword.install import files, manifest
from foreword.install.manifest import FileRecord, Manifest
from foreword.install.plan import Plan, PlannedFile, undo_plan
from foreword.paths import Home


def apply(plan: Plan, *, home: Home) -> None:
    """Apply *plan*. After an error all is as it was, or can still be undone."""
    _check(plan.files)
    before = manifest.load(home, plan.agent)
    known = before or Manifest(plan.agent)
    made = [each.file for each in plan.files if each.changed]
    # By the agent, later; a folder that is not named after us goes again where it is empty.
    made += [each.file if each.keys else each.file / "any" for each in plan.residue if each not in known.residue]
    folders = [str(folder) for file in made for folder in files.missing_folders(file)]
    records = {str(each.file): each.record for each in plan.files if each.record is not None}
    done = Manifest(
        plan.agent,
        records,
        tuple(dict.fromkeys((*known.folders, *folders))),
        plan.residue,
        plan.plugin,
        plan.version,
    )
    either = {path: _both(record, known.files.get(path, FileRecord())) for path, record in records.items()}
    manifest.save(home, replace(done, files={**known.files, **either}))
    try:
        _write(plan.files)
        manifest.save(home, done)
    except BaseException:
        if _roll_back(plan.files, folders=folders):
            with suppress(OSError):
                manifest.save(home, before) if before else manifest.drop(home, plan.agent)
        raise
    _remove(plan.gone)


def _both(new: FileRecord, old: FileRecord) -> FileRecord:
    """Return a record by which a file can be undone that is still as the old one says, or already as the new one."""
    entries = (*new.entries, *(each for each in old.entries if each not in new.entries))
    return replace(new, entries=entries, made=(*old.made, *new.made), was={**new.was, **old.was})


def undo(agent: str, *, home: Home, setup: Setup | None = None) -> None:
    """Leave an agent as it was. After an error its files are as they were."""
    plan = undo_plan(setup, agent=agent, home=home)
    _check(plan.files)
    known = manifest.load(home, agent)
    try:
        _write(plan.files[::-1])
    except BaseException:
        _roll_back(plan.files)
        raise
    _remove(plan.gone)
    _remove_folders(known.folders if known else (str(each.file.parent) for each in plan.files if each.new is None))
    manifest.drop(home, agent)


def _check(planned: Sequence[PlannedFile]) -> None:
    for each in planned:
        if files.read(each.file) != each.old:
            raise ForewordError(f"{each.file} was changed in this moment", hint="run the command again")
        if each.changed:
            files.check_writable(each.file)


def _write(planned: Sequence[PlannedFile]) -> None:
    for each in planned:
        files.sweep(each.file)
        if each.changed:
            for folder in files.missing_folders(each.file) if each.new is not None else ():
                os.mkdir(folder, files.OUR_FOLDER)
            files.write(each.file, each.new)


def _roll_back(planned: Sequence[PlannedFile], *, folders: Sequence[str] = ()) -> bool:
    """Restore every file; False where one could not be: then the manifest stays for `uninstall`."""
    whole = True
    for each in reversed(planned):
        try:
            if files.read(each.file) != each.old:
                files.write(each.file, each.old)
        except (ForewordError, OSError):  # a disk that is full takes back no byte either
            whole = False
    _remove_folders(folders)
    return whole


def _remove(paths: Iterable[Path]) -> None:
    """Remove files and folders that an agent made because of us."""
    for path in paths:
        with suppress(OSError):
            if path.is_symlink() or not path.is_dir():
                os.unlink(path)
            else:
                shutil.rmtree(path)


def _remove_folders(folders: Iterable[str]) -> None:
    for folder in reversed(list(folders)):
        with suppress(OSError):
            os.rmdir(folder)  # only where nothing of the user's came into it
