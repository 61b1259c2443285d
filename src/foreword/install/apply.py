"""A plan -> done, all of it or nothing, and told in the manifest before the first byte; or undone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from foreword.errors import ForewordError
from foreword.install import files, manifest
from foreword.install.manifest import Filed, Manifest, Ran
from foreword.install.plan import Plan, Planned, undo_plan
from foreword.paths import Home
from foreword.redact import redact
from foreword.values import replace
from foreword.wiring import Run, Setup

RUN_SECONDS = 120.0  # a host's own command; Claude's take under one, and a first start unpacks much
SHOWN = 2000  # characters of what a command said when it failed


def apply(plan: Plan, *, home: Home, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Do it; what the user should know of it. After an error everything is as it was."""
    with manifest.alone(home):
        _refuse(plan.files)
        before = manifest.load(home, plan.host)
        known = before or Manifest(plan.host)
        folders = tuple(
            str(folder) for each in plan.files if each.changed for folder in files.missing_folders(each.file)
        )
        begun = Manifest(
            plan.host,
            {**known.files, **{str(each.file): _remembered(each, home=home) for each in plan.files}},
            tuple(dict.fromkeys((*known.folders, *folders))),
            known.runs,
            plugin=plan.plugin,
        )
        manifest.save(home, begun)
        words = _kept_aside(plan, home=home)
        work = _Work(home, environ, begun)
        try:
            for ran in reversed(plan.undone):
                words += work.unrun(ran)
            work.write(plan.files)
            for run in plan.runs:
                work.run(run)
            gone = {str(each.file) for each in plan.files if each.filed is None}
            done = {path: filed for path, filed in work.manifest.files.items() if path not in gone}
            manifest.save(home, replace(work.manifest, files=done))
        except BaseException:
            work.back()
            _restore(home, plan.host, before and replace(before, runs=work.manifest.runs))
            raise
        manifest.tidy(home)
    return words


def undo(host: str, *, home: Home, environ: Mapping[str, str], setup: Setup | None = None) -> tuple[str, ...]:
    """Leave a host as it was; what the user should know of it. After an error its files are as they were."""
    with manifest.alone(home):
        first = undo_plan(setup, host=host, home=home)
        _refuse(first.files)
        known = manifest.load(home, host)
        work = _Work(home, environ, known or Manifest(host))
        words: tuple[str, ...] = ()
        plan = first
        try:
            if first.undone:
                # Out of the user's files first: a host's command that finds us in them writes them in its own form.
                work.write(tuple(each for each in first.files if each.new is not None))
                for ran in reversed(first.undone):
                    words += work.unrun(ran)
                # Again: it may have changed the same files all the same.
                plan = undo_plan(setup, host=host, home=home)
            words += _kept_aside(plan, home=home)
            work.write(plan.files)
        except BaseException:
            work.back()
            raise
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

    def __init__(self, home: Home, environ: Mapping[str, str], begun: Manifest) -> None:
        self.home, self.environ, self.manifest = home, environ, begun
        self.written: list[Planned] = []
        self.made: list[Path] = []
        self.ran: list[Ran] = []

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

    def run(self, run: Run) -> None:
        absent = tuple(str(path) for path in run.makes if not path.exists())
        touched = {str(path): (manifest.keep(self.home, path.read_bytes()), "") for path in run.makes if path.is_file()}
        ran = Ran(run.command, run.undo, absent, touched)
        self._note((*self.manifest.runs, ran))
        self.ran.append(ran)
        _execute(run.command, environ=self.environ)
        after = {path: (touched.get(path, ("", ""))[0], _digest(path)) for path in (*absent, *touched)}
        done = replace(ran, touched=after, done=True)
        self.ran[-1] = done
        self._note((*self.manifest.runs[:-1], done))

    def unrun(self, ran: Ran) -> tuple[str, ...]:
        words: tuple[str, ...] = ()
        alone = {path: _digest(path) == after for path, (_, after) in ran.touched.items() if after}
        try:
            _execute(ran.undo, environ=self.environ)
        except ForewordError as exc:
            words = (f"{exc} ({exc.hint})",)
        for path, (before, _) in ran.touched.items():
            if alone.get(path) and (data := manifest.kept(self.home, before)) is not None:
                files.write(Path(path), data)
        for path in ran.absent:
            _take_away(Path(path), wholly=alone.get(path, False))
        self._note(tuple(each for each in self.manifest.runs if each != ran))
        return words

    def back(self) -> None:
        """Everything as it was before; what cannot be, is left to `uninstall`, which has the manifest."""
        for ran in reversed(self.ran):
            with suppress(ForewordError, OSError):
                self.unrun(ran)
        for each in reversed(self.written):
            with suppress(OSError):
                files.write(each.file, each.old)
        for folder in reversed(self.made):
            with suppress(OSError):
                os.rmdir(folder)

    def _note(self, runs: tuple[Ran, ...]) -> None:
        self.manifest = replace(self.manifest, runs=runs)
        if self.home.installed.is_dir():
            manifest.save(self.home, self.manifest)


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


def _execute(command: tuple[str, ...], *, environ: Mapping[str, str]) -> None:
    if not command:
        return
    shown = " ".join(command)
    program = shutil.which(command[0], path=environ.get("PATH"))
    if program is None:
        raise ForewordError(
            f"cannot run `{shown}`: {command[0]} is not on the PATH", hint=f"install {command[0]} first"
        )
    try:
        ended = subprocess.run(  # noqa: S603 - a command out of our own host files
            [program, *command[1:]],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=RUN_SECONDS,
            env=dict(environ),
            cwd=environ.get("HOME") or "/",
        )
    except subprocess.TimeoutExpired as exc:
        raise ForewordError(f"`{shown}` did not end within {RUN_SECONDS:.0f} s", hint="run it by hand") from exc
    except OSError as exc:
        raise ForewordError(f"cannot run `{shown}`: {exc.strerror}", hint="run it by hand") from exc
    if ended.returncode:
        said = redact((ended.stdout + ended.stderr).decode(errors="replace").strip())[-SHOWN:]
        raise ForewordError(f"`{shown}` failed with code {ended.returncode}: {said}", hint="run it by hand")


def _digest(path: str) -> str:
    try:
        return manifest.digest(Path(path).read_bytes())
    except OSError:
        return ""


def _take_away(path: Path, *, wholly: bool) -> None:
    """Take away what a command made where nothing was; what others put there since stays."""
    with suppress(OSError):
        if path.is_symlink() or not path.is_dir():
            if wholly or "foreword" in path.name.lower() or _is_hollow(path):
                path.unlink(missing_ok=True)
        elif "foreword" in path.name.lower():
            shutil.rmtree(path)
        else:
            for each in path.iterdir():
                _take_away(each, wholly=False)
            path.rmdir()


def _is_hollow(path: Path) -> bool:
    """Whether a file says nothing: it is empty, or JSON whose lists and objects all are."""
    try:
        text = path.read_text(encoding="utf-8")
        return not text.strip() or _says_nothing(json.loads(text))
    except (OSError, ValueError):
        return False


def _says_nothing(document: Any) -> bool:
    inner = document.values() if isinstance(document, dict) else document if isinstance(document, list) else None
    return inner is not None and all(
        _says_nothing(each) if isinstance(each, dict | list) else not isinstance(document, list) for each in inner
    )
