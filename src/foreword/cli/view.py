"""`foreword view`: serve the viewer while this command runs."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json

if TYPE_CHECKING:
    from foreword.paths import Home
    from foreword.viewer.app import ViewerServer

STATE = "viewer-{}.json"  # one for each running viewer, by its process id; a viewer whose file is gone closes
LINK_PAGE = "view.html"  # leads to the link, which other users could read in the list of processes
CHECK_EVERY = 0.5  # seconds
UPGRADE_CHECKS = 10  # checks between two looks whether the package was replaced
CLOSE_SECONDS = 10.0  # that `--close` waits for a viewer
CLOSED, IDLE, UPGRADED = (
    "it was closed by `foreword view --close`",
    "it was not used for a while",
    "Foreword was upgraded",
)
INTERRUPTED, FAILED = "its command ended", "its server failed"


def view(
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Serve it on this port, such as one that ssh forwards.")
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in your browser.")] = True,
    close: Annotated[bool, typer.Option("--close", help="Close every open viewer.")] = False,
    json: Json = False,
) -> None:
    """Look into the memory in your browser: what is kept, what was injected when and why, and what came of it.

    The pages are served on a port of this machine alone, for as long as this command runs (Ctrl-C ends it), or until
    they were not used for half an hour. The link opens them once; after that the browser has a cookie.

    \b
    Examples:
      foreword view
      foreword view --no-browser --port 8123
      foreword view --close
    """
    from foreword.cli.speaker import refuse_agents

    refuse_agents(os.environ)
    home = door.here()
    if close:
        closed = _close_all(home)
        screen.as_json({"closed": closed}) if json else screen.say("closed" if closed else "no viewer is open")
        return
    door.worker(home)
    from foreword.config import load
    from foreword.viewer.app import ViewerServer

    server = ViewerServer(home, port=port)
    page = home.run / LINK_PAGE
    reason = INTERRUPTED
    with _signals_as_interrupts(), _state_file(home, server.port) as state:
        server.start()
        try:
            url = server.auth.link()
            screen.as_json({"url": url, "port": server.port}) if json else screen.say(url)
            if not json:
                screen.aside("the link works once, on this machine; Ctrl-C closes the viewer")
            if browser and _has_browser(os.environ, platform=sys.platform):
                show(url, page=page)
            reason = _wait(server, state, idle_seconds=load(home, os.environ).settings.viewer_idle_minutes * 60)
        except KeyboardInterrupt:
            pass
        finally:
            server.close(reason)
            page.unlink(missing_ok=True)
    again = "" if reason == INTERRUPTED else f": {reason}; run `foreword view` to open it again"
    screen.aside(f"the viewer is closed{again}")


def _wait(server: ViewerServer, state: Path, *, idle_seconds: float) -> str:
    """Wait until the viewer must close, and return why."""
    from foreword.hook.build import fingerprint

    build, checks = fingerprint(), 0
    while True:
        time.sleep(CHECK_EVERY)
        checks += 1
        if not state.exists():
            return CLOSED
        if not server.is_running():
            return FAILED
        if server.idle_seconds() > idle_seconds:
            return IDLE
        try:
            if checks % UPGRADE_CHECKS == 0 and fingerprint() != build:
                return UPGRADED
        except OSError:
            continue  # in the middle of an upgrade; the next check decides


@contextmanager
def _state_file(home: Home, port: int) -> Iterator[Path]:
    """Keep a file that tells of this viewer while it is open."""
    import json

    path = home.run / STATE.format(os.getpid())
    path.unlink(missing_ok=True)
    _write_private(path, json.dumps({"pid": os.getpid(), "port": port}))
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _close_all(home: Home) -> bool:
    """Close every viewer by removing its file, wait until they ended, and return whether there was any."""
    pids = []
    for path in home.run.glob(STATE.format("*")):
        pid = int(path.stem.rpartition("-")[2])
        path.unlink(missing_ok=True)
        if _is_alive(pid):  # one that was killed left its file
            pids.append(pid)
    until = time.monotonic() + CLOSE_SECONDS
    while any(map(_is_alive, pids)) and time.monotonic() < until:
        time.sleep(0.1)
    return bool(pids)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Let a closed terminal or a `kill` end the command as Ctrl-C does; under nohup a closed terminal does not."""
    import signal

    for name in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(name) is signal.SIG_DFL:
            signal.signal(name, signal.default_int_handler)
    yield


def show(url: str, *, page: Path) -> threading.Thread:
    """Open *url* in a browser by way of *page*, a file that only our user can read."""
    page.unlink(missing_ok=True)
    _write_private(page, f'<!doctype html><meta http-equiv="refresh" content="0;url={url}"><title>Foreword</title>')
    # Some browsers do not return before they are closed.
    thread = threading.Thread(target=_open, args=(page.as_uri(),), daemon=True)
    thread.start()
    return thread


def _open(url: str) -> None:
    import webbrowser

    try:
        webbrowser.open(url)
    except (webbrowser.Error, OSError) as exc:
        screen.aside(f"no browser could be opened: {exc}")


def _has_browser(environ: Mapping[str, str], *, platform: str) -> bool:
    """Return whether there is a screen; a text browser runs no script and would use up the link."""
    return platform != "linux" or any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _write_private(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as out:
        out.write(text)
