"""Serve a hook call without a worker: spool the event, ask `context.py` for context, start a worker for the next event.

Ordinary Python, but the standard library alone: the client runs with `-I -S`, so no site-packages are on the path.
What only a context needs is imported when there is one to build: most events are only kept.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foreword import spool, switches, trouble
from foreword.capture import Captured, capture, moment_of
from foreword.config import Settings, load
from foreword.encoding import dumps
from foreword.paths import Home
from foreword.payloads import Delivery
from foreword.redact import redact
from foreword.types import TOOL_BEGIN

START_EVERY = 10.0  # seconds between two tries to start a worker: a crash loop makes six a minute at most
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER")  # of the agent's environment, for the worker


@dataclass(frozen=True)
class Offline:
    """What one call of a hook knows: where things are, the settings, and how a worker is started."""

    home: Home
    settings: Settings
    worker: list[str]
    host: str

    def log(self, where: str, exc: object) -> None:
        """Append a swallowed failure to the log that `doctor` reads."""
        what = f"{type(exc).__name__}: {exc}" if isinstance(exc, Exception) else str(exc)
        where = f"hook of {self.host}: {where}"
        trouble.note(str(self.home.trouble), trouble.Trouble(at=time.time(), where=where, what=redact(what)))


def answer(
    config: Mapping[str, Any],
    call: tuple[str, str, float, bytes, int, int],
    *,
    until: float,
    why: str,
    secrets: Sequence[bytes] = (),
) -> bytes:
    """Keep the event, build the context, start a worker: each failure costs only itself and is logged."""
    delivery = Delivery(*call)
    home = Home(Path(config["home"]))
    settings = load(home, os.environ).settings
    here = Offline(home=home, settings=settings, worker=config["worker"], host=delivery.host)
    if why and not _just_started(home.stamp):
        here.log("worker", why)
    reply = b""
    if delivery.raw.strip():
        try:
            captured = capture(delivery, deny=settings.deny_paths, hide=_hider(secrets, delivery.raw))
        except Exception as exc:  # noqa: BLE001 - the hook's own rule: memory must never break the agent
            here.log("redact", exc)
            return b""  # what cannot be redacted is neither kept nor looked at
        off = switches.off(captured.project, switches.chosen(settings))
        if not (off.capture and off.inject):
            reply = _reply(here, delivery, captured, off=off, until=until, worker_asked=bool(why))
    try:
        start_worker(home, here.worker)
    except Exception as exc:  # noqa: BLE001
        here.log("start", exc)
    return reply


def _hider(secrets: Sequence[bytes], raw: bytes) -> Callable[[str], str] | None:
    """Return what takes the values of secret variables out of a text; None where the payload holds none of them."""
    held: list[str] = []
    for value in sorted(secrets, key=len, reverse=True):
        text = value.decode("utf-8", "surrogateescape")
        escaped = dumps(text)[1:-1]
        if value in raw or escaped.encode() in raw:
            held += (text, escaped)
    if not held:
        return None

    def hide(text: str) -> str:
        for each in held:
            text = text.replace(each, "[redacted:env]")
        return text

    return hide


def _reply(
    here: Offline, delivery: Delivery, captured: Captured, *, off: switches.Off, until: float, worker_asked: bool
) -> bytes:
    """Return the agent's answer; the event is written before it is built, its record behind it, both synced at once."""
    replies: list[bytes] = []

    def build() -> Delivery | None:
        if replies:
            return None  # the spool tries again; there is one answer
        replies.append(b"")
        try:
            moment = moment_of(delivery, captured)
            if moment is not None and not off.inject and time.monotonic() < until:
                from foreword.hook.context import context_for

                replies[0], record = context_for(here, delivery, moment, until=until, worker_asked=worker_asked)
                return record
        except Exception as exc:  # noqa: BLE001
            here.log("context", exc)
        return None

    try:
        keep(here, delivery, captured, wanted=not off.capture, then=build)
    except Exception as exc:  # noqa: BLE001
        here.log("spool", exc)
    build()  # where the spool failed before it came to that
    return replies[0]


def keep(
    here: Offline, delivery: Delivery, captured: Captured, *, wanted: bool, then: Callable[[], Delivery | None]
) -> None:
    """Append the redacted event to the spool, and what *then* returns behind it."""
    folder, most = str(here.home.spool), here.settings.spool_max_mb * 1024 * 1024
    if not wanted or captured.told.inner or captured.kind == TOOL_BEGIN:
        record = then()
        if record is not None:
            spool.append(folder, record, most=most)
        return
    kept = Delivery(
        host=redact(delivery.host),
        event=redact(delivery.event),
        at=delivery.at,
        raw=dumps(captured.payload).encode(),
        project=captured.project.key if captured.project else "",
    )
    spool.append(folder, kept, most=most, then=then)


def start_worker(home: Home, command: list[str]) -> None:
    """Start a worker, detached, unless somebody just did; nobody waits for it."""
    if not command or not _may_start(home.stamp):
        return
    streams = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, str(home.start_log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ]
    # The agent's environment holds its tokens; a worker that lives for hours needs none of them.
    environ = {
        name: text for name, text in os.environ.items() if name in KEPT_VARIABLES or name.startswith("FOREWORD_")
    }
    environ["FOREWORD_HOME"] = str(home.root)
    try:
        os.posix_spawn(command[0], command, environ, file_actions=streams, setsid=True)
    except NotImplementedError:  # an old macOS
        os.posix_spawn(command[0], command, environ, file_actions=streams)


def _just_started(stamp: Path) -> bool:
    """Tell whether somebody started a worker a moment ago: one that is late then is no problem."""
    try:
        return time.time() - stamp.stat().st_mtime < START_EVERY
    except OSError:
        return False


def _may_start(stamp: Path) -> bool:
    """Tell whether nobody has started a worker for a while; of many hooks at once, one is first."""
    import fcntl  # not on Windows

    fd = os.open(stamp, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        seen = os.fstat(fd)
        # A clock that jumped back must not keep the worker from starting.
        if seen.st_size and 0 <= time.time() - seen.st_mtime < START_EVERY:
            return False
        os.pwrite(fd, b"x", 0)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True
