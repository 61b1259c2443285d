"""`view`, `worker` and `mcp`: the processes that serve a browser, the commands and MCP clients."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Annotated

import typer

from foreword.cli import output
from foreword.cli.connection import connect, refuse_agents, this_home
from foreword.config import load
from foreword.errors import ForewordError
from foreword.worker import lifecycle

CHECK_EVERY = 0.5  # seconds
app = typer.Typer(name="worker", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def worker() -> None:
    """Start and stop the process that owns the database.

    You never have to: it starts when a hook or a command needs it, exits when idle, and is replaced after an upgrade.
    """


@app.command()
def start() -> None:
    """Start the worker, unless it runs already."""
    home = this_home()
    before = lifecycle.pid_of(home)
    connect(home)
    pid = lifecycle.pid_of(home)
    output.write(f"the worker {'already runs' if pid == before else 'runs'}, process {pid}, in {home.root}")


@app.command()
def stop() -> None:
    """Stop the worker; nothing is lost, and the next hook or command starts a new one."""
    output.write("the worker has stopped" if lifecycle.stop(this_home()) else "no worker runs")


@app.command()
def run() -> None:
    """Run the worker in this terminal, until Ctrl-C."""
    from foreword.worker.__main__ import main

    home = this_home()
    if pid := lifecycle.pid_of(home):
        raise ForewordError(f"a worker already runs, process {pid}", hint="run `foreword worker stop` first")
    output.remark(f"serving {home.root}, logging to {home.log}; Ctrl-C stops it")
    raise typer.Exit(main())


def mcp() -> None:
    """Serve this project's memory to an MCP client (stdio).

    Agents start it themselves; by hand it is useful for clients that want a command. FOREWORD_PROJECT names the
    project's folder where a client starts it elsewhere.
    """
    from foreword.mcp.__main__ import main

    raise typer.Exit(main())


def view(
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port (default: any).")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the pages in your browser.")] = True,
) -> None:
    """Look into the memory in your browser.

    Shows what is stored, what was injected when and why, and whether it was used. The pages are served on a port of
    this machine alone, for as long as this command runs (Ctrl-C ends it), or until they were not used for half an hour.
    The link opens them once; after that the browser has a cookie.
    """
    from foreword.viewer.app import ViewerServer

    refuse_agents()
    home = this_home()
    connect(home)
    # A closed terminal or a `kill` ends the command as Ctrl-C does; under nohup a closed terminal does not.
    for name in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(name) is signal.SIG_DFL:
            signal.signal(name, signal.default_int_handler)
    idle_seconds = load(home, os.environ).settings.viewer_idle_minutes * 60
    server, page = ViewerServer(home, port=port), home.run / "view.html"
    reason = "its command ended"
    server.start()
    try:
        url = server.auth.link()
        output.write(url)
        output.remark("the link works once, on this machine; Ctrl-C closes the viewer")
        # Without a screen there may still be a text browser, which runs no script and would use up the link.
        screen = sys.platform != "linux" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
        if browser and screen:
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
    """Open *url* by way of *page*, a file of ours, since others could see the link in the list of processes."""
    import webbrowser

    page.unlink(missing_ok=True)
    with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as out:
        out.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={url}"><title>Foreword</title>')
    # In a thread, because some browsers do not return before they are closed.
    threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
