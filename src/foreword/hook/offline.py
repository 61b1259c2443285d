"""Serve a hook call without a worker: spool the event, start a worker for the next one, ask `context.py` for context.

Ordinary Python, but the standard library alone: the client runs with `-I -S`, so no site-packages are on the path.
Of many hooks at once on a busy machine each gets little of a core, so the event is written first, and this module
imports only what that needs: settings, redaction, the agent's adapter and the spool. Context comes behind it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from foreword import policy
from foreword.capture.parse import ParsedHook, parse_hook, trigger_for
from foreword.capture.payload import HookCall
from foreword.config import Settings, load
from foreword.encoding import dumps
from foreword.hook import spool
from foreword.models import TOOL_BEGIN
from foreword.paths import ARENAS, Home
from foreword.redact import redact

START_EVERY = 10.0  # seconds between two tries to start a worker: a crash loop makes six a minute at most
# Of the agent's environment, for the worker: its health page looks into the agents' folders.
KEPT_VARIABLES = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER"),
    *("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"),
)


class Offline:
    """One hook call without a worker: the config that install wrote, the settings, and the agent that called."""

    def __init__(self, config: Mapping[str, Any], *, agent: str) -> None:
        self.config, self.agent = config, agent
        self.home = Home(Path(config["home"]))

    @cached_property
    def settings(self) -> Settings:
        return load(self.home, os.environ).settings

    def open_spool(self) -> spool.SpoolWriter:
        return spool.SpoolWriter(self.config["spool"], most=self.settings.spool_max_mb * 1024 * 1024)

    def log_lost(self, exc: Exception) -> None:
        """Log that an event could not be spooled, and count it for the worker."""
        self.log("spool", exc)
        with suppress(OSError, ValueError, ImportError):
            spool.lost(self.config["spool"], 1)

    def log(self, where: str, exc: object) -> None:
        """Append a swallowed failure to the log that `doctor` reads."""
        from foreword import problems

        what = f"{type(exc).__name__}: {exc}" if isinstance(exc, Exception) else str(exc)
        where = f"hook of {self.agent}: {where}"
        problems.note(self.config["problems"], problems.Problem(at=time.time(), where=where, what=redact(what)))


def answer(
    config: Mapping[str, Any], call: tuple[str, str, float, bytes, int, int], *, until: float, why: str
) -> bytes:
    """Keep the event, start a worker, build the context: each failure costs only itself and is logged."""
    hook_call = HookCall(*call)
    here = Offline(config, agent=hook_call.host)
    parsed = None
    off = policy.Policy(capture="nothing to keep", inject="nothing to answer")
    if hook_call.raw.strip():
        try:
            parsed = parse_hook(hook_call, deny=here.settings.deny_paths)
            off = policy.off(parsed.project, policy.chosen(here.settings))
        except Exception as exc:  # noqa: BLE001 - the hook's own rule: memory must never break the agent
            here.log("redact", exc)  # what cannot be redacted is neither kept nor looked at
    writer = None
    try:
        if parsed and not off.capture and not parsed.input.inner and parsed.kind != TOOL_BEGIN:
            writer = here.open_spool()
            writer.write(_record(hook_call, parsed))
    except Exception as exc:  # noqa: BLE001
        here.log_lost(exc)
    if why and not _just_started(config["stamp"]):
        here.log("worker", why)
    try:
        start_worker(config["home"], config["worker"], stamp=config["stamp"], log=config["start_log"])
    except Exception as exc:  # noqa: BLE001
        here.log("start", exc)
    reply = b""
    try:
        trigger = trigger_for(hook_call, parsed) if parsed else None
        hinted = trigger is not None and trigger.name == "tool"  # hints come from the worker alone
        if trigger is not None and not hinted and not off.inject and time.monotonic() < until:
            from foreword.hook.context import context_for

            reply, record = context_for(here, hook_call, trigger, until=until, worker_tried=bool(why))
            if record is not None:
                writer = writer or here.open_spool()
                writer.write(record)
    except Exception as exc:  # noqa: BLE001
        here.log("context", exc)
    try:
        if writer is not None:
            writer.close()
    except Exception as exc:  # noqa: BLE001
        here.log_lost(exc)
    return reply


def _record(hook_call: HookCall, parsed: ParsedHook) -> HookCall:
    """Return the redacted event as the spool keeps it."""
    return HookCall(
        host=redact(hook_call.host),
        event=redact(hook_call.event),
        at=hook_call.at,
        raw=dumps(parsed.payload).encode(),
        project=parsed.project.key if parsed.project else "",
        redacted=True,
    )


def start_worker(home: str, command: list[str], *, stamp: str, log: str) -> None:
    """Start a worker, detached, unless somebody just did; nobody waits for it."""
    if not command or not _may_start(stamp):
        return
    streams = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ]
    # The agent's environment holds its tokens; a worker that lives for hours needs none of them.
    environ = {
        name: text for name, text in os.environ.items() if name in KEPT_VARIABLES or name.startswith("FOREWORD_")
    }
    environ |= {"FOREWORD_HOME": home, **ARENAS}
    try:
        os.posix_spawn(command[0], command, environ, file_actions=streams, setsid=True)
    except NotImplementedError:  # an old macOS
        os.posix_spawn(command[0], command, environ, file_actions=streams)


def _just_started(stamp: str) -> bool:
    """Return whether somebody started a worker a moment ago: one that is late then is no problem."""
    try:
        return time.time() - os.stat(stamp).st_mtime < START_EVERY
    except OSError:
        return False


def _may_start(stamp: str) -> bool:
    """Return whether nobody has started a worker for a while; of many hooks at once, one is first."""
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
