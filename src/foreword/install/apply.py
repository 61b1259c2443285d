"""Apply a plan, all of it or nothing, recorded in the manifest before the first byte; or undo one."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from foreword.agents.setup import Setup
from foreword.errors import ForewordError
from foreword.install import files, manifest, ownership
from foreword.install.manifest import FileRecord, Manifest
from foreword.install.plan import Plan, Planned, undo_plan
from foreword.paths import Home


def apply(plan: Plan, *, home: Home) -> tuple[str, ...]:
    """Apply *plan*; return what the user should know. After an error all is as it was, or can still be undone."""
    with manifest.alone(home):
        _refuse(plan.files)
        before = manifest.load(home, plan.agent)
        known = before or Manifest(plan.agent)
        made = [each.file for each in plan.files if each.changed]
        made += [each.file for each in plan.residue if each not in known.residue]  # by the agent, later
        folders = (str(folder) for file in made for folder in files.missing_folders(file))
        begun = Manifest(
            plan.agent,
            {**known.files, **{str(each.file): _remembered(each, home=home) for each in plan.files}},
            tuple(dict.fromkeys((*known.folders, *folders))),
            plan.residue,
            plan.preexisting,
            plugin=plan.plugin,
        )
        manifest.save(home, begun)
        notes = _keep_copies(plan, home=home)
        work = _Work()
        try:
            work.write(plan.files)
            gone = {str(each.file) for each in plan.files if each.record is None}
            done = {path: record for path, record in begun.files.items() if path not in gone}
            manifest.save(home, replace(begun, files=done))
        except BaseException:
            if work.roll_back():
                _restore(home, plan.agent, before)
            raise
        for path in plan.gone:
            _remove(path)
        manifest.tidy(home)
    return notes


def undo(agent: str, *, home: Home, setup: Setup | None = None) -> tuple[str, ...]:
    """Leave an agent as it was; return what the user should know. After an error its files are as they were."""
    with manifest.alone(home):
        plan = undo_plan(setup, agent=agent, home=home)
        _refuse(plan.files)
        known = manifest.load(home, agent)
        work = _Work()
        try:
            notes = _keep_copies(plan, home=home)
            work.write(plan.files[::-1])
        except BaseException:
            work.roll_back()
            raise
        for path in plan.gone:
            _remove(path)
        for folder in reversed(known.folders) if known is not None else _named_like_us(plan.files):
            with suppress(OSError):
                os.rmdir(folder)  # only where nothing of the user's came into it
        if known is not None:
            manifest.drop(home, agent)
        manifest.tidy(home)
    return notes


def _named_like_us(planned: tuple[Planned, ...]) -> list[str]:
    gone = [each.file.parent for each in planned if each.new is None]
    return [str(folder) for folder in dict.fromkeys(gone) if "foreword" in folder.name.lower()]


class _Work:
    """What was written so far, so that it can be rolled back."""

    def __init__(self) -> None:
        self.written: list[Planned] = []
        self.made: list[Path] = []

    def write(self, planned: tuple[Planned, ...]) -> None:
        for each in planned:
            files.sweep(each.file)
            if not each.changed:
                continue
            for folder in files.missing_folders(each.file) if each.new is not None else ():
                with suppress(FileExistsError):
                    os.mkdir(folder, files.OUR_FOLDER)
                    self.made.append(folder)
            self.written.append(each)
            files.write(each.file, each.new, mode=files.OUR_PROGRAM if each.executable else files.OUR_FILE)

    def roll_back(self) -> bool:
        """Restore every file; False where one could not be: then the manifest stays for `uninstall`."""
        whole = True
        for each in reversed(self.written):
            try:
                if files.read(each.file) != each.old:
                    files.write(each.file, each.old)
            except (ForewordError, OSError):  # a disk that is full takes back no byte either
                whole = False
        for folder in reversed(self.made):
            with suppress(OSError):
                os.rmdir(folder)
        return whole


def _remembered(planned: Planned, *, home: Home) -> FileRecord:
    """Return what the manifest needs to restore a file, whichever of its states it is found in."""
    states = (planned.old, planned.new, planned.base)
    return replace(
        planned.record or FileRecord(),
        existed=planned.base is not None,
        original="" if planned.base is None else manifest.keep(home, planned.base),
        known=tuple(dict.fromkeys(manifest.digest(data) for data in states if data is not None)),
    )


def _refuse(planned: tuple[Planned, ...]) -> None:
    for each in planned:
        if files.read(each.file) != each.old:
            raise ForewordError(f"{each.file} was changed in this moment", hint="run the command again")
        if each.changed:
            files.check_writable(each.file)


def _keep_copies(plan: Plan, *, home: Home) -> tuple[str, ...]:
    """Keep what somebody made of a file of ours where no agent reads it; return a note for each."""
    notes = []
    for each in plan.files:
        if each.keep_copy and each.changed and each.old is not None:
            home.prepare()
            folder = home.installed / "kept" / plan.agent
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            there = folder / f"{manifest.digest(each.old)[:8]}-{each.file.name}"
            files.write(there, each.old)
            notes.append(f"{each.file} was changed since we wrote it; that version is kept as {there}")
    return tuple(notes)


def _restore(home: Home, agent: str, before: Manifest | None) -> None:
    with suppress(OSError):
        if before is None:
            manifest.drop(home, agent)
        else:
            manifest.save(home, before)
        manifest.tidy(home)


def _remove(path: Path) -> None:
    """Remove a file or folder; one that is not named after us only where it is empty."""
    with suppress(OSError):
        if path.is_symlink() or not path.is_dir():
            os.unlink(path)
        elif ownership.names_us(path.name):
            shutil.rmtree(path)
        else:
            os.rmdir(path)
