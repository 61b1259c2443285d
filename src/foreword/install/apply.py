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


def apply(plan: Plan, *, home: Home) -> tuple[str, ...]:
    """Apply *plan*; return what the user should know. After an error all is as it was, or can still be undone."""
    with manifest.lock(home):
        _check(plan.files)
        before = manifest.load(home, plan.agent)
        known = before or Manifest(plan.agent)
        made = [each.file for each in plan.files if each.changed]
        made += [each.file for each in plan.residue if each not in known.residue]  # by the agent, later
        folders = (str(folder) for file in made for folder in files.missing_folders(file))
        begun = Manifest(
            plan.agent,
            {**known.files, **{str(each.file): _record(each, home=home) for each in plan.files}},
            tuple(dict.fromkeys((*known.folders, *folders))),
            plan.residue,
            plan.preexisting,
            plan.plugin,
            plan.version,
        )
        manifest.save(home, begun)
        notes = _keep_edited(plan, home=home)
        gone = {str(each.file) for each in plan.files if each.record is None}
        left = {path: record for path, record in begun.files.items() if path not in gone}
        try:
            _write(plan.files)
            manifest.save(home, replace(begun, files=left))
        except BaseException:
            if _roll_back(plan.files, folders=begun.folders[len(known.folders) :]):
                with suppress(OSError):
                    manifest.save(home, before) if before else manifest.drop(home, plan.agent)
                    manifest.tidy(home)
            raise
        _remove(plan.gone)
        manifest.tidy(home)
    return notes


def undo(agent: str, *, home: Home, setup: Setup | None = None) -> tuple[str, ...]:
    """Leave an agent as it was; return what the user should know. After an error its files are as they were."""
    with manifest.lock(home):
        plan = undo_plan(setup, agent=agent, home=home)
        _check(plan.files)
        known = manifest.load(home, agent)
        notes = _keep_edited(plan, home=home)
        try:
            _write(plan.files[::-1])
        except BaseException:
            _roll_back(plan.files)
            raise
        _remove(plan.gone)
        _remove_folders(known.folders if known else (str(each.file.parent) for each in plan.files if each.new is None))
        manifest.drop(home, agent)
        manifest.tidy(home)
    return notes


def _check(planned: Sequence[PlannedFile]) -> None:
    for each in planned:
        if files.read(each.file) != each.old:
            raise ForewordError(f"{each.file} was changed in this moment", hint="run the command again")
        if each.changed:
            files.check_writable(each.file)


def _record(planned: PlannedFile, *, home: Home) -> FileRecord:
    """Return what the manifest needs to restore a file, whichever of its states it is found in."""
    states = (planned.old, planned.new, planned.base)
    return replace(
        planned.record or FileRecord(),
        existed=planned.base is not None,
        original="" if planned.base is None else manifest.keep(home, planned.base),
        known=tuple(dict.fromkeys(manifest.digest(data) for data in states if data is not None)),
    )


def _keep_edited(plan: Plan, *, home: Home) -> tuple[str, ...]:
    """Keep what somebody made of a file of ours where no agent reads it; return a note for each."""
    notes = []
    for each in plan.files:
        if each.edited and each.changed and each.old is not None:
            home.prepare()
            folder = home.installed / "kept" / plan.agent
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            there = folder / f"{manifest.digest(each.old)[:8]}-{each.file.name}"
            files.write(there, each.old)
            notes.append(f"{each.file} was changed since we wrote it; that version is kept as {there}")
    return tuple(notes)


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
    """Remove what an agent made because of us; what is not named after us only where it is an empty folder."""
    for path in paths:
        with suppress(OSError):
            if path.is_symlink() or not path.is_dir():
                os.unlink(path)
            elif "foreword" in path.name.lower():
                shutil.rmtree(path)
            else:
                os.rmdir(path)


def _remove_folders(folders: Iterable[str]) -> None:
    for folder in reversed(list(folders)):
        with suppress(OSError):
            os.rmdir(folder)  # only where nothing of the user's came into it
