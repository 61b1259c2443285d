"""`foreword view`: the worker serves its page while this command runs, and closes it with it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli import door, screen
from foreword.cli.memories import Json
from foreword.errors import ForewordError

if TYPE_CHECKING:
    from foreword.client import Client

PAGE = "view.html"  # of our own user alone, in the folder of the socket; it leads to the link
HOLD_EVERY = 2.0  # seconds; the worker waits for five of these


def view(
    port: Annotated[int, typer.Option("--port", help="Serve it on this port, such as one that ssh forwards.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in your browser.")] = True,
    close: Annotated[bool, typer.Option("--close", help="Close the viewer, whoever opened it.")] = False,
    json: Json = False,
) -> None:
    """Look into the memory in your browser: what is kept, what was injected when and why, and what came of it.

    The worker serves the page on a port of this machine alone, for as long as this command runs (Ctrl-C ends it), or
    until nobody looked for half an hour. The link opens it once; after that the browser has a cookie.

    \b
    Examples:
      foreword view
      foreword view --no-browser --port 8123
      foreword view --close
    """
    from foreword.cli.speaker import refuse_agents

    refuse_agents(os.environ)
    home = door.here()
    client = door.worker(home)
    if close:
        closed = client.post("/api/view", {"do": "close"})["closed"]
        screen.as_json({"closed": closed}) if json else screen.say("closed" if closed else "no viewer is open")
        return
    opened = client.post("/api/view", {"do": "open", "port": port})
    screen.as_json({"url": opened["url"], "port": opened["port"]}) if json else screen.say(opened["url"])
    if not json:
        screen.aside("the link works once, on this machine; Ctrl-C closes the viewer")
    # Linux tells the worker whose a connection is; elsewhere other users could be quicker than the browser.
    page = None if sys.platform == "linux" else home.run / PAGE
    if browser and _has_browser(os.environ, platform=sys.platform):
        show(opened["url"], page=page)
    try:
        _hold(client, opened["holder"])
    finally:
        if page:
            page.unlink(missing_ok=True)


def show(url: str, *, page: Path | None) -> threading.Thread:
    """Open *url* in a browser, by way of *page* where others could read it in the list of processes."""
    opened = url
    if page:
        page.unlink(missing_ok=True)
        with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as out:
            out.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={url}"><title>Foreword</title>')
        opened = page.as_uri()
    # Some browsers are not back before they are closed; the worker must hear from us meanwhile.
    shown = threading.Thread(target=_open, args=(opened,), daemon=True)
    shown.start()
    return shown


def _open(url: str) -> None:
    import webbrowser

    try:
        webbrowser.open(url)
    except (webbrowser.Error, OSError) as exc:
        screen.aside(f"no browser could be opened: {exc}")


def _has_browser(environ: Mapping[str, str], *, platform: str) -> bool:
    """Whether there is a screen for one; those of a terminal run no script and would take it from the link."""
    return platform != "linux" or any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _hold(client: Client, holder: str) -> None:
    """Stay until Ctrl-C, or until the viewer is closed, and say why it was."""
    import signal

    for name in (signal.SIGTERM, signal.SIGHUP):  # a terminal that is closed closes the viewer too, nohup's does not
        if signal.getsignal(name) is signal.SIG_DFL:
            signal.signal(name, signal.default_int_handler)
    try:
        while (told := client.post("/api/view", {"do": "hold", "holder": holder}))["open"]:
            time.sleep(HOLD_EVERY)
    except KeyboardInterrupt:
        with suppress(ForewordError):  # a worker that left took the viewer along
            client.post("/api/view", {"do": "leave", "holder": holder})
        screen.aside("the viewer is closed")
    except ForewordError as exc:
        raise ForewordError("the viewer is closed: the worker left", hint="run `foreword view` again") from exc
    else:
        screen.aside(f"the viewer is closed: {told['why']}")
