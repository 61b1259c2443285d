"""`foreword view`: serve the viewer while this command runs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli import output
from foreword.cli.connection import connect, refuse_agents, this_home

if TYPE_CHECKING:
    from collections.abc import Mapping

LINK_PAGE = "view.html"  # leads to the link, which other users could read in the list of processes
CHECK_EVERY = 0.5  # seconds


def view(
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Serve it on this port, such as one that ssh forwards.")
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in your browser.")] = True,
) -> None:
    """Look into the memory in your browser: what is kept, what was injected when and why, and what came of it.

    The pages are served on a port of this machine alone, for as long as this command runs (Ctrl-C ends it), or until
    they were not used for half an hour. The link opens them once; after that the browser has a cookie.

    \b
    Examples:
      foreword view
      foreword view --no-browser --port 8123
    """
    refuse_agents()
    home = this_home()
    connect(home)
    from foreword.config import load
    from foreword.viewer.app import ViewerServer

    # A closed terminal or a `kill` ends the command as Ctrl-C does; under nohup a closed terminal does not.
    for name in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(name) is signal.SIG_DFL:
            signal.signal(name, signal.default_int_handler)
    idle_seconds = load(home, os.environ).settings.viewer_idle_minutes * 60
    server = ViewerServer(home, port=port)
    page = home.run / LINK_PAGE
    reason = "its command ended"
    server.start()
    try:
        url = server.auth.link()
        output.write(url)
        output.remark("the link works once, on this machine; Ctrl-C closes the viewer")
        if browser and _has_browser(os.environ, platform=sys.platform):
            show(url, page=page)
        while server.is_running() and server.idle_seconds() <= idle_seconds:
            time.sleep(CHECK_EVERY)
        reason = "it was not used for a while" if server.is_running() else "its server failed"
    except KeyboardInterrupt:
        pass
    finally:
        server.close(reason)
        page.unlink(missing_ok=True)
    output.remark(f"the viewer is closed: {reason}")


def show(url: str, *, page: Path) -> None:
    """Open *url* in a browser by way of *page*, a file that only our user can read."""
    page.unlink(missing_ok=True)
    with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as out:
        out.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={url}"><title>Foreword</title>')
    # Some browsers do not return before they are closed.
    threading.Thread(target=_open, args=(page.as_uri(),), daemon=True).start()


def _open(url: str) -> None:
    import webbrowser

    try:
        webbrowser.open(url)
    except (webbrowser.Error, OSError) as exc:
        output.remark(f"no browser could be opened: {exc}")


def _has_browser(environ: Mapping[str, str], *, platform: str) -> bool:
    """Return whether there is a screen; a text browser runs no script and would use up the link."""
    return platform != "linux" or any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
