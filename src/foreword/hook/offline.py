"""Serve a hook call without a worker: spool the event, start a worker for the next one, ask `context.py` for context.

Ordinary Python, but the standard library alone: the client runs with `-I -S`, so no site-packages are on the path.
Of many hooks at once on a busy machine each gets little of a core, so the event is written first, and this module
imports only what that needs: redaction, the agent's adapter and the spool. Settings and context come behind it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from foreword import policy
from foreword.capture.parse import ParsedHook, parse_hook, trigger_for
from foreword.capture.payload import HookCall
from foreword.encoding import dumps
from foreword.hook import spool
from foreword.models import TOOL_BEGIN
from foreword.redact import redact

START_EVERY = 10.0  # seconds between two tries to start a worker: a crash loop makes six a minute at most
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER")  # of the agent's environment, for the worker


# Those that decide whether and how an event is kept.
SETTINGS = (*policy.CHOICES, "deny_paths", "event_text_kb", "spool_max_mb")


class Offline:
    """One hook call without a worker: the config that install wrote, and the agent that called."""

    def __init__(self, config: Mapping[str, Any], *, agent: str) -> None:
        self.config = config
        self.agent = agent

    def log(self, where: str, exc: object) -> None:
        """Append a swallowed failure to the log that `doctor` reads."""
        from foreword import problems

        what = f"{type(exc).__name__}: {exc}" if isinstance(exc, Exception) else str(exc)
        where = f"hook of {self.agent}: {where}"
        problems.note(self.config["problems"], problems.Problem(at=time.time(), where=where, what=redact(what)))


def answer(
    config: Mapping[str, Any],
    call: tuple[str, str, float, bytes, int, int],
    *,
    until: float,
    why: str,
    secrets: Sequence[bytes] = (),
) -> bytes:
    """Keep the event, start a worker, build the context: each failure costs only itself and is logged."""
    hook_call = HookCall(*call)
    here = Offline(config, agent=hook_call.host)
    parsed = None
    off = policy.Policy(capture="nothing to keep", inject="nothing to answer")
    if hook_call.raw.strip():
        settings = capture_settings(config)
        try:
            parsed = parse_hook(
                hook_call,
                deny=settings["deny_paths"],
                hide=_hider(secrets, hook_call.raw),
                text_cap=int(settings["event_text_kb"]) * 1024,
            )
            off = policy.off(parsed.project, settings)
        except Exception as exc:  # noqa: BLE001 - the hook's own rule: memory must never break the agent
            here.log("redact", exc)  # what cannot be redacted is neither kept nor looked at
    writer = None
    try:
        if parsed and not off.capture and not parsed.input.inner and parsed.kind != TOOL_BEGIN:
            writer = _spool(config, settings)
            writer.write(_record(hook_call, parsed))
    except Exception as exc:  # noqa: BLE001
        here.log("spool", exc)
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

            reply, record = context_for(here, hook_call, trigger, until=until, worker_asked=bool(why))
            if record is not None:
                writer = writer or _spool(config, settings)
                writer.write(record)
    except Exception as exc:  # noqa: BLE001
        here.log("context", exc)
    try:
        if writer is not None:
            writer.close()
    except Exception as exc:  # noqa: BLE001
        here.log("spool", exc)
    return reply


def _spool(config: Mapping[str, Any], settings: Mapping[str, Any]) -> spool.SpoolWriter:
    return spool.SpoolWriter(config["spool"], most=int(settings["spool_max_mb"]) * 1024 * 1024)


def capture_settings(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the SETTINGS, as they were when the hook was written if nothing has changed: to read them takes 9 ms."""
    stamp, values = config["settings"]
    unchanged = set(SETTINGS) <= dict(values).keys() and list(stamp) == file_stamp(f"{config['home']}/config.toml")
    if unchanged and not any(f"FOREWORD_{name.upper()}" in os.environ for name in SETTINGS):
        return dict(values)
    from pathlib import Path

    from foreword.config import load
    from foreword.paths import Home

    found = load(Home(Path(config["home"])), os.environ).settings
    return {name: getattr(found, name) for name in SETTINGS}


def file_stamp(path: str) -> list[int]:
    """Return what changes with the file's content; nothing where there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return []
    return [found.st_ino, found.st_size, found.st_mtime_ns]


def _record(hook_call: HookCall, parsed: ParsedHook) -> HookCall:
    """Return the redacted event as the spool keeps it."""
    return HookCall(
        host=redact(hook_call.host),
        event=redact(hook_call.event),
        at=hook_call.at,
        raw=dumps(parsed.payload).encode(),
        project=parsed.project.key if parsed.project else "",
    )


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
    environ["FOREWORD_HOME"] = home
    try:
        os.posix_spawn(command[0], command, environ, file_actions=streams, setsid=True)
    except NotImplementedError:  # an old macOS
        os.posix_spawn(command[0], command, environ, file_actions=streams)


def _just_started(stamp: str) -> bool:
    """Tell whether somebody started a worker a moment ago: one that is late then is no problem."""
    try:
        return time.time() - os.stat(stamp).st_mtime < START_EVERY
    except OSError:
        return False


def _may_start(stamp: str) -> bool:
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
