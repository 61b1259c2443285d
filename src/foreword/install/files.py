"""Read and atomically replace the user's files, also behind a link; rights and owner stay."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from foreword.errors import ForewordError

UNFINISHED = ".foreword-new"  # a fixed name: what a crash left is found and removed
OUR_FILE, OUR_PROGRAM, OUR_FOLDER = 0o600, 0o700, 0o700
LARGEST = 32 * 1024 * 1024  # bytes; a settings file that is larger is something else


def target(path: Path) -> Path:
    """Return the file behind any links: a settings file may live in a folder of dotfiles."""
    return Path(os.path.realpath(path))


def read(path: Path) -> bytes | None:
    """Return the bytes of a file; None where there is none."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise ForewordError(f"{path} is not a file", hint="move it away, then try again")
        if found.st_size > LARGEST:
            raise ForewordError(f"{path} has {found.st_size:,} bytes: no settings file", hint="look what it is")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise ForewordError(
            f"cannot read {path}: {exc.strerror}", hint="make it readable for you, then try again"
        ) from exc


def check_writable(path: Path) -> None:
    """Raise ForewordError where a file cannot be changed, before anything is."""
    real = target(path)
    behind = f" (behind the link {path})" if real != path else ""
    folder = real.parent
    with suppress(FileNotFoundError):
        found = os.stat(real)
        if found.st_uid != os.geteuid() and os.geteuid() != 0:
            raise ForewordError(
                f"{real}{behind} belongs to another user (uid {found.st_uid})", hint="make it yours, then try again"
            )
        if not found.st_mode & stat.S_IWUSR or not os.access(real, os.W_OK):
            raise ForewordError(
                f"{real}{behind} is read-only", hint="make it writable, or change it where it is made; then try again"
            )
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise ForewordError(f"{folder} is not a folder, and {real} should lie there", hint="move it away")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ForewordError(f"you cannot write in {folder}, where {real.name} lies", hint="make it writable for you")


def missing_folders(path: Path) -> tuple[Path, ...]:
    """Return the folders that must be made for a file, outermost first."""
    missing: list[Path] = []
    folder = target(path).parent
    while not folder.exists() and folder != folder.parent:
        missing.insert(0, folder)
        folder = folder.parent
    return tuple(missing)


def write(path: Path, data: bytes | None, *, mode: int = OUR_FILE) -> None:
    """Replace a file, whole or not at all; None removes it. *mode* is for a file that was not there."""
    real = target(path)
    beside = real.with_name(f".{real.name}{UNFINISHED}")
    if data is None:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        with suppress(FileNotFoundError):
            os.unlink(real)
        _sync(real.parent)
        return
    try:
        before: os.stat_result | None = os.stat(real)
    except FileNotFoundError:
        before = None
    with suppress(FileNotFoundError):
        os.unlink(beside)
    opened = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(data)
            file.flush()
            if before is not None and (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):  # a group that we are not in any more
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode) if before is not None else mode)
            os.fsync(file.fileno())
        os.replace(beside, real)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    _sync(real.parent)


def sweep(path: Path) -> None:
    """Remove what a crash left beside a file."""
    real = target(path)
    with suppress(OSError):
        os.unlink(real.with_name(f".{real.name}{UNFINISHED}"))


def _sync(folder: Path) -> None:
    """Write a folder to the disk: only then a new name in it lasts."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
