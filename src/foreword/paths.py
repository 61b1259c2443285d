"""Locate everything of ours on this machine, in folders that only the user can enter."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from foreword.errors import BadConfig, ForewordError

PRIVATE = 0o700
OPEN_TO_OTHERS = 0o077
SOCKET_PATH_BYTES = 103  # macOS holds 104 with the closing NUL, Linux 108: the smaller one, so that a home can move
UNFINISHED = ".foreword-new-"  # how files begin that replace another when they are written
OUR_FILES = ("config.toml", "synonyms.toml", "memory.db", "hook.py")
OUR_FOLDERS = ("run", "spool", "backups", "logs", "bin", "lib", "installed")


class Home:
    """The one folder that holds all we keep (FOREWORD_HOME), and the files in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "config.toml"
        self.synonyms = root / "synonyms.toml"
        self.database = root / "memory.db"
        self.hook = root / "hook.py"
        self.hook_client = root / "lib" / "foreword_hook.py"
        self.launcher = root / "bin" / "foreword-hook"
        self.mcp = root / "bin" / "foreword-mcp"
        self.installed = root / "installed"
        self.run = root / "run"
        self.socket = self.run / "worker.sock"
        self.lock = self.run / "worker.lock"
        self.stamp = self.run / "starting"
        self.spool = root / "spool"
        self.backups = root / "backups"
        self.logs = root / "logs"
        self.log = self.logs / "worker.log"
        self.start_log = self.logs / "start.log"
        self.trouble = self.logs / "trouble.jsonl"
        self.losses = self.root / "losses.json"

    def prepare(self) -> None:
        """Create every folder, closed to others whatever the umask; ForewordError where that cannot be done."""
        _own(self.root, is_root=True)
        for name in OUR_FOLDERS:
            _own(self.root / name, is_root=False)


def home(environ: Mapping[str, str]) -> Home:
    """Return the home that FOREWORD_HOME names, else `~/.foreword`."""
    named = environ.get("FOREWORD_HOME", "")
    root = expand(named or "~/.foreword", environ)
    if not os.path.isabs(root) or "\0" in root:
        hint = "set FOREWORD_HOME to a path that begins with / or ~/, or unset it to use ~/.foreword"
        raise BadConfig(f"FOREWORD_HOME is {named!r}, which is not an absolute path", hint=hint)
    try:
        root.encode()
    except UnicodeEncodeError as exc:
        hint = "SQLite opens UTF-8 paths only; choose another folder"
        raise BadConfig(f"FOREWORD_HOME is {named!r}, which is not UTF-8", hint=hint) from exc
    return Home(Path(root))


@contextmanager
def replacing(path: str | Path, *, mode: int = 0o600) -> Iterator[IO[bytes]]:
    """Yield a file that replaces *path* as a whole when it is written, or not at all."""
    import tempfile  # 5 ms, which hooks do without

    handle, unfinished = tempfile.mkstemp(prefix=UNFINISHED, dir=os.path.dirname(path))
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fchmod(handle, mode)
            os.fsync(handle)
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


def sync_path(path: str | Path) -> None:
    """Put a file, or the names in a folder, on the disk."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


# Of a worker's environment. glibc gives each of 64 threads an arena, and what one frees another cannot use: 4 of 58 MB.
ARENAS = {"MALLOC_ARENA_MAX": "2"}


def worker_command() -> list[str]:
    """Return the command that starts the worker; -P: never with modules of the current folder."""
    return [sys.executable, "-P", "-m", "foreword.worker"]


def expand(path: str, environ: Mapping[str, str]) -> str:
    """Return the path with a leading `~` replaced by the user's own folder; other users' `~name` stays as it is."""
    if path != "~" and not path.startswith("~/"):
        return path
    folder = environ.get("HOME", "")
    if not os.path.isabs(folder):
        import pwd

        try:
            folder = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError as exc:
            message = "HOME is not set, and the system knows no home folder of this account"
            raise BadConfig(message, hint="set FOREWORD_HOME to the absolute path of a folder of yours") from exc
    return folder.rstrip("/") + path[1:]


def _own(folder: Path, *, is_root: bool) -> None:
    """Create a folder, or check that it is the user's own, and close it to others."""
    try:
        with suppress(FileExistsError):
            folder.mkdir(mode=PRIVATE)
            os.chmod(folder, PRIVATE)  # a umask such as 0777 takes even our own bits away
        # Somebody else's link in a shared folder would choose where our memory goes; the user's own link to a
        # bigger disk is fine for the whole home, and unneeded for one folder in it.
        status = os.lstat(folder)
        if stat.S_ISLNK(status.st_mode) and not (is_root and status.st_uid == os.geteuid()):
            what = "not one of yours" if is_root else "must be a plain folder"
            hint = "remove the link, or set FOREWORD_HOME to the folder itself"
            raise ForewordError(f"{folder} is a symbolic link, and {what}", hint=hint)
        _close_to_others(folder, is_root=is_root)
    except OSError as exc:
        why = "it, or a part of its path, is a file" if isinstance(exc, NotADirectoryError) else exc.strerror
        hint = f"make {folder.parent} a folder that you can write, or set FOREWORD_HOME to another one"
        raise ForewordError(f"cannot use the folder {folder}: {why}", hint=hint) from exc


def _close_to_others(folder: Path, *, is_root: bool) -> None:
    # One descriptor for the question and the change: nobody can swap the folder in between.
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status, names = os.fstat(opened), set(os.listdir(opened))
        if status.st_uid != os.geteuid():
            message = f"{folder} belongs to another user (uid {status.st_uid}, you are {os.geteuid()})"
            raise ForewordError(message, hint="set FOREWORD_HOME to a folder of your own")
        is_ours = not names or not names.isdisjoint(OUR_FILES) or names.issuperset(OUR_FOLDERS)
        if status.st_mode & OPEN_TO_OTHERS:
            if is_root and not is_ours:  # FOREWORD_HOME=/tmp must not end with that folder closed to everybody else
                hint = "set FOREWORD_HOME to a folder of its own, such as ~/.foreword"
                raise ForewordError(f"{folder} is open to others and holds files that are not Foreword's", hint=hint)
            os.fchmod(opened, PRIVATE)
        elif status.st_mode & PRIVATE != PRIVATE or not os.access(folder, os.W_OK):
            hint = (
                f"run `chmod 700 {shlex.quote(str(folder))}`; on a read-only disk set FOREWORD_HOME to another folder"
            )
            raise ForewordError(f"{folder} cannot be written, so nothing is captured", hint=hint)
    finally:
        os.close(opened)


def socket_problem(home: Home) -> str:
    """Return why the worker's socket cannot safely lie in this home; empty when it can."""
    length = len(os.fsencode(home.socket))
    if length > SOCKET_PATH_BYTES:
        too_long = f"the socket path {home.socket} has {length} bytes and may have {SOCKET_PATH_BYTES}"
        return f"{too_long}; set FOREWORD_HOME to a shorter path"
    try:
        for folder in home.root.resolve(strict=True).parents:
            if folder.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
                # Without the sticky bit anyone may rename our folder and put their own in its place.
                how = f"run `chmod +t {folder}` or set FOREWORD_HOME elsewhere"
                return f"anyone can replace what lies in {folder}; {how}"
    except FileNotFoundError:
        return ""  # prepare() makes what is missing, and closes all of it to others
    except OSError as exc:
        return f"cannot look at {exc.filename}: {exc.strerror}"
    return ""
