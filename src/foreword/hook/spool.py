"""Append hook calls that found no worker to one file, each on the disk before its hook returns, and read them later.

Hooks append under a shared lock; the worker takes the whole file away under an exclusive one. A record that was torn
by a crash was never acknowledged and is passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from foreword.capture.payload import HookCall
from foreword.encoding import decoded, dumps, loads
from foreword.errors import BadPayload
from foreword.paths import sync_path

RESERVE = ".reserve"  # beside the folder: nothing in it waits for a worker
RESERVED = 1 << 20
LOST = ".lost"  # beside the folder: the number of events that found no room
_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
_BEGIN = b"\nFW1 "  # on a line of its own even behind a record that was torn
_NEWEST = 1 << 16
_REOPEN = 100  # times that the file may be taken from under a hook before it gives up


def append(folder: str, hook_call: HookCall, *, most: int) -> None:
    """Put a *redacted* hook call on the disk; when this returns, it survives a crash."""
    with SpoolWriter(folder, most=most) as writer:
        writer.write(hook_call)


class SpoolWriter:
    """Append redacted hook calls under one shared lock; they are synced once, when the writer is closed.

    So a hook can write its event first, then build its answer, then write the record of that, and pay for one sync.
    """

    def __init__(self, folder: str, *, most: int) -> None:
        self._folder, self._most = folder, most
        try:
            self._fd = _open(folder)
        except FileNotFoundError:
            os.mkdir(folder, 0o700)
            self._fd = _open(folder)
        except OSError:
            self._use_reserve()
            self._fd = _open(folder)
        self._size = os.fstat(self._fd).st_size
        self._new = not self._size

    def __enter__(self) -> SpoolWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, hook_call: HookCall) -> None:
        record = _record(hook_call)
        if self._size + len(record) > self._most:
            raise OSError(f"the spool is full: it holds {self._size} bytes")
        try:
            _write(self._fd, record)
        except OSError:
            self._use_reserve()
            _write(self._fd, record)  # behind a torn record, which readers pass over
        self._size += len(record)

    def close(self) -> None:
        """Put what was written on the disk; when this returns, it survives a crash."""
        sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync
        try:
            try:
                sync(self._fd)
            except OSError:
                self._use_reserve()
                sync(self._fd)
            if self._new:
                sync_path(self._folder)
        finally:
            os.close(self._fd)

    def _use_reserve(self) -> None:
        os.unlink(self._folder + RESERVE)  # the disk is full: this is what the reserve is for


def _open(folder: str) -> int:
    """Open the current file under a shared lock; a worker may have taken it away in between."""
    import fcntl

    for _ in range(_REOPEN):
        fd = os.open(f"{folder}/current", _APPENDING, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)
            if _is_current(folder, os.fstat(fd)):
                return fd
        except OSError:
            os.close(fd)
            raise
        os.close(fd)
    raise OSError("the spool was taken away again and again")


def _write(fd: int, record: bytes) -> None:
    written = os.write(fd, record)
    if written != len(record):
        raise OSError(f"only {written} of {len(record)} bytes were written: is the disk full?")


def reserve(folder: str) -> None:
    """Reserve some space for the day the disk is full; where there is too little, reserve none."""
    path = folder + RESERVE
    try:
        if os.stat(path).st_size == RESERVED:
            return
    except FileNotFoundError:
        pass
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        if os.write(fd, b"\0" * RESERVED) != RESERVED:  # written, not promised: a sparse file holds no space
            os.unlink(path)
    except OSError:
        os.unlink(path)
    finally:
        os.close(fd)


def lost(folder: str, more: int = 0) -> int:
    """Return how many events found no room since the worker last looked, and add *more*.

    The number is written in place, which needs no room on a full disk.
    """
    import fcntl

    fd = os.open(folder + LOST, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # who cannot have it gives up: a stopped hook may hold it
        known = os.pread(fd, 20, 0)
        number = int(known) if known.strip().lstrip(b"-").isdigit() else 0
        if more or not number:
            os.pwrite(fd, b"%-20d" % (number + more), 0)
        return number
    finally:
        os.close(fd)


def take(folder: str, name: str) -> str:
    """Take what hooks have appended so far under the file name *name*; empty when there is nothing."""
    import fcntl

    try:
        fd = os.open(f"{folder}/current", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return ""  # a hook is writing, or was stopped while it did: the next call finds it
        here = os.fstat(fd)
        if not here.st_size or not _is_current(folder, here):
            return ""
        os.rename(f"{folder}/current", f"{folder}/{name}")
        sync_path(folder)
        return f"{folder}/{name}"
    finally:
        os.close(fd)


def naming(folder: str, word: str) -> Iterator[HookCall]:
    """Yield the newest records that hold *word*, read without a lock: the last minutes of a session."""
    try:
        fd = os.open(f"{folder}/current", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    try:
        data = os.pread(fd, _NEWEST, max(0, os.fstat(fd).st_size - _NEWEST))
    finally:
        os.close(fd)
    sought = dumps(word)[1:-1].encode()
    at = data.find(sought)
    while at >= 0:
        record, end = _parsed(data, max(0, data.rfind(_BEGIN, 0, at)))
        if record is not None:
            yield record
        at = data.find(sought, max(end, at + 1))


def hook_calls(data: bytes) -> Iterator[HookCall | bytes]:
    """Yield every whole record of a spool file, and what lies between them as bytes."""
    at = 0
    while at < len(data):
        record, end = _parsed(data, at)
        if record is not None:
            yield record
        else:
            end = data.find(_BEGIN, at + 1)
            end = end if end >= 0 else len(data)
            yield data[at:end]
        at = end


def _record(hook_call: HookCall) -> bytes:
    about = {name: getattr(hook_call, name) for name in ("host", "event", "at", "project", "redacted", "injection")}
    body = dumps(about).encode() + b"\n" + hook_call.raw
    return b"%s%d\n%s\nEND %d." % (_BEGIN, len(body), body, len(body))


def _parsed(data: bytes, at: int) -> tuple[HookCall | None, int]:
    line_end = data.find(b"\n", at + len(_BEGIN))
    size = data[at + len(_BEGIN) : line_end]
    if not data.startswith(_BEGIN, at) or line_end < 0 or not size.isdigit() or len(size) > 12:
        return None, at
    body_end = line_end + 1 + int(size)
    last = b"\nEND %s." % size
    if not data.startswith(last, body_end):
        return None, at
    about, _, raw = data[line_end + 1 : body_end].partition(b"\n")
    try:
        return HookCall(**loads(decoded(about)), raw=raw), body_end + len(last)
    except (BadPayload, TypeError):
        return None, at  # text inside a torn record that looks like one of ours


def _is_current(folder: str, here: os.stat_result) -> bool:
    try:
        there = os.stat(f"{folder}/current")
    except FileNotFoundError:
        return False
    return (here.st_ino, here.st_dev) == (there.st_ino, there.st_dev)
