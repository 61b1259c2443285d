"""A failure that was swallowed -> a line where `status` and `doctor` find it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from foreword.encoding import dumps, loads, storable

MOST_BYTES = 256 * 1024  # then the file becomes `.1`, and a new one begins


@dataclass(frozen=True)
class Trouble:
    """One thing that went wrong: when, where in the product, and what."""

    at: float
    where: str
    what: str


def note(path: str, trouble: Trouble) -> bool:
    """Append *trouble*, and say whether there was room for it; if not, that is no further failure."""
    line = dumps({"at": trouble.at, "where": trouble.where, "what": trouble.what[:2000]})
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        try:
            written = os.write(fd, f"\n{line}\n".encode())  # the newline in front: the last one may have been torn
            full = os.fstat(fd).st_size > MOST_BYTES
        finally:
            os.close(fd)
        if full:
            os.rename(path, f"{path}.1")
    except OSError:
        return False
    return written > 0


def noted(path: str) -> tuple[Trouble, ...]:
    """Every trouble on file, oldest first; lines that cannot be read are passed over."""
    found = []
    for name in (f"{path}.1", path):
        try:
            with open(name, encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            try:
                told = loads(line)
                found.append(Trouble(float(told["at"]), where=storable(told["where"]), what=storable(told["what"])))
            except Exception:  # noqa: BLE001, S112 - a torn line of a log is no trouble of its own
                continue
    return tuple(found)
