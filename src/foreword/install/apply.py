"""A plan -> done, all of it or nothing, and told in the manifest before the first byte; or undone."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from foreword.agents.setup import Setup
from foreword.errors import ForewordError
from foreword.install import files, left, manifest
from foreword.install.manifest import Filed, Manifest
from foreword.install.plan import Plan, Planned, undo_plan
from foreword.paths import Home


def apply(plan: Plan, *, home: Home) -> tuple[str, ...]:
    """Do it; what the user should know of it. After an error everything is as it was, or can still be undone."""
    with manifest.alone(home):
        _refuse(plan.files)
        before = manifest.load(home, plan.host)
        known = before or Manifest(plan.host)
        made = [each.file for each in plan.files if each.changed]
        made += [each.file for each in plan.left if each not in known.left]  # by the host, when it comes to it
        folders = (str(folder) for file in made for folder in files.missing_folders(file))
        begun = Manifest(
            plan.host,
            {**known.files, **{str(each.file): _remembered(each, home=home) for each in plan.files}},
            tuple(dict.fromkeys((*known.folders, *folders))),
            plan.left,
            plan.theirs,
            plugin=plan.plugin,
        )
        manifest.save(home, begun)
        words = _kept_aside(plan, home=home)
        work = _Work()
        try:
            work.write(plan.files)
            gone = {str(each.file) for each in plan.files if each.filed is None}
            done = {path: filed for path, filed in begun.files.items() if path not in gone}
            manifest.save(home, replace(begun, files=done))
        except BaseException:
            if work.back():
                _restore(home, plan.host, before)
            raise
        for path in plan.gone:
            left.take_away(path)
        manifest.tidy(home)
    return words


def undo(host: str, *, home: Home, setup: Setup | None = None) -> tuple[str, ...]:
    """Leave a host as it was; what the user should know of it. After an error its files are as they were."""
    with manifest.alone(home):
        plan = undo_plan(setup, host=host, home=home)
        _refuse(plan.files)
        known = manifest.load(home, host)
        work = _Work()
        try:
            words = _kept_aside(plan, home=home)
            work.write(plan.files[::-1])
        except BaseException:
            work.back()
            raise
        for path in plan.gone:
            left.take_away(path)
        for folder in reversed(known.folders) if known is not None else _named_like_us(plan.files):
            with suppress(OSError):
                os.rmdir(folder)  # only where nothing of the user's came into it
        if known is not None:
            manifest.drop(home, host)
        manifest.tidy(home)
    return words


def _named_like_us(planned: tuple[Planned, ...]) -> list[str]:
    gone = [each.file.parent for each in planned if each.new is None]
    return [str(folder) for folder in dict.fromkeys(gone) if "foreword" in folder.name.lower()]


class _Work:
    """What was done so far, so that it can be taken back."""

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

    def back(self) -> bool:
        """Every file as it was before, or False: the manifest must stay, for `uninstall` to do it on a better day."""
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


def _remembered(planned: Planned, *, home: Home) -> Filed:
    """What the manifest must know to give back a file as it is without us, whichever of its states it is found in."""
    states = (planned.old, planned.new, planned.base)
    return replace(
        planned.filed or Filed(),
        existed=planned.base is not None,
        original="" if planned.base is None else manifest.keep(home, planned.base),
        known=tuple(dict.fromkeys(manifest.digest(data) for data in states if data is not None)),
    )


def _refuse(planned: tuple[Planned, ...]) -> None:
    for each in planned:
        if files.read(each.file) != each.old:
            raise ForewordError(f"{each.file} was changed in this moment", hint="run it again")
        if each.changed:
            files.refuse_where_closed(each.file)


def _kept_aside(plan: Plan, *, home: Home) -> tuple[str, ...]:
    """What somebody made of a file of ours is theirs: it is kept where no host reads it."""
    words = []
    for each in plan.files:
        if each.aside and each.changed and each.old is not None:
            home.prepare()
            folder = home.installed / "kept" / plan.host
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            there = folder / f"{manifest.digest(each.old)[:8]}-{each.file.name}"
            files.write(there, each.old)
            words.append(f"{each.file} was changed since we wrote it; that version is kept as {there}")
    return tuple(words)


def _restore(home: Home, host: str, before: Manifest | None) -> None:
    with suppress(OSError):
        if before is None:
            manifest.drop(home, host)
        else:
            manifest.save(home, before)
        manifest.tidy(home)
