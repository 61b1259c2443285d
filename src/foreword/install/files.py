"""Read and atomically replace the user's files, also behind a link; rights and owner stay."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from foreword.errors import ForewordError

UNFINISHED = ".foreword-new"  # a fixed name: what a crash left is found and removed
OUR_FILE, OUR_FOLDER = 0o600, 0o700
LARGEST = 32 * 1024 * 1024  # bytes; a settings file that is larger is something else


def target(path: Path) -> Path:
    """Return the file behind any links: a settings file may live in a folder of dotfiles."""
    return Path(os.path.realpath(path))


def read(path: Path) -> bytes | None:
    """Return the bytes of a file; None where there is none."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:  # a pipe would wait for ever
            raise ForewordError(f"{path} is not a file of settings", hint="move it away, then try again")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as exc:
        hint = "make it readable for you, then try again"
        raise ForewordError(f"cannot read {path}: {exc.strerror}", hint=hint) from exc


def check_writable(path: Path) -> None:
    """Raise ForewordError where a file cannot be changed, before anything is."""
    real = target(path)
    folder = next(each for each in real.parents if each.exists())
    may_write = real.stat().st_mode & stat.S_IWUSR and os.access(real, os.W_OK) if real.exists() else True
    if not may_write or not os.access(folder, os.W_OK | os.X_OK):
        raise ForewordError(f"{real} is read-only for you", hint="make it and its folder writable, then try again")


def missing_folders(path: Path) -> tuple[Path, ...]:
    """Return the folders that must be made for a file, outermost first."""
    missing: list[Path] = []
    folder = target(path).parent
    while not folder.exists() and folder != folder.parent:
        missing.insert(0, folder)
        folder = folder.parent
    return tuple(missing)


def write(path: Path, data: bytes | None) -> None:
    """Replace a file, whole or not at all; None removes it."""
    real, beside = target(path), sweep(path)
    if data is None:
        with suppress(FileNotFoundError):
            os.unlink(real)
        _sync(real.parent)
        return
    try:
        before: os.stat_result | None = os.stat(real)
    except FileNotFoundError:
        before = None
    opened = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OUR_FILE)
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(data)
            file.flush()
            if before is not None:
                with suppress(PermissionError):  # a group that we are not in any more
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            os.fsync(file.fileno())
        os.replace(beside, real)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    _sync(real.parent)


def sweep(path: Path) -> Path:
    """Remove what a crash left beside a file, and return its name."""
    real = target(path)
    beside = real.with_name(f".{real.name}{UNFINISHED}")
    with suppress(FileNotFoundError):
        os.unlink(beside)
    return beside


def _sync(folder: Path) -> None:
    """Write a folder to the disk: only then a new name in it lasts."""
    with suppress(FileNotFoundError):
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
