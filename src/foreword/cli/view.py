"""`foreword view`: the worker serves its page while this command runs, and closes it with it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli import output
from foreword.cli.connection import connect, refuse_agents, this_home
from foreword.cli.options import Json
from foreword.errors import Conflict, ForewordError, WorkerError

if TYPE_CHECKING:
    from foreword.paths import Home
    from foreword.worker.client import Client

PAGE = "view.html"  # of our own user alone, in the folder of the socket; it leads to the link
HOLD_EVERY = 2.0  # seconds; the worker waits for five of these
ANSWERS = 10.0  # seconds for the worker to answer; one that is stopped or very busy is asked again
COMES_BACK = 5.0  # seconds for a worker that left to be replaced; a new one listens in well under one
START_EVERY = 10.0  # seconds: a worker that dies as soon as it lives is started six times a minute, as hooks do it
BYE = 2.0  # seconds that a goodbye may take: somebody pressed Ctrl-C


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
    refuse_agents()
    home = this_home()
    client = connect(home)
    if close:
        closed = client.post("/api/view", {"do": "close"})["closed"]
        output.write_json({"closed": closed}) if json else output.write("closed" if closed else "no viewer is open")
        return
    # Linux tells the worker whose a connection is; elsewhere other users could be quicker than the browser.
    page = None if sys.platform == "linux" else home.run / PAGE
    opened = client.post("/api/view", {"do": "open", "port": port})

    def link(told: Mapping[str, Any]) -> None:
        output.write_json({"url": told["url"], "port": told["port"]}) if json else output.write(told["url"])

    def tell() -> None:
        link(opened)
        if not json:
            output.remark("the link works once, on this machine; Ctrl-C closes the viewer")
        if browser and _has_browser(os.environ, platform=sys.platform):
            show(opened["url"], page=page)

    try:
        _hold(home, opened, tell=tell, again=link)
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
        output.remark(f"no browser could be opened: {exc}")


def _has_browser(environ: Mapping[str, str], *, platform: str) -> bool:
    """Whether there is a screen for one; those of a terminal run no script and would take it from the link."""
    return platform != "linux" or any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _hold(
    home: Home, opened: dict[str, Any], *, tell: Callable[[], None], again: Callable[[Mapping[str, Any]], None]
) -> None:
    """Tell of it, and *again* where it was opened anew; stay until Ctrl-C, or until it is closed for good, and why."""
    import signal

    from foreword.worker.client import Client

    for name in (signal.SIGTERM, signal.SIGHUP):  # a terminal that is closed closes the viewer too, nohup's does not
        if signal.getsignal(name) is signal.SIG_DFL:
            signal.signal(name, signal.default_int_handler)
    client = Client(home, seconds=ANSWERS)
    try:
        tell()  # not before: whoever knows the link may end the command, and the viewer closes with it
        while True:
            told = _held(client, home, opened["holder"])
            if not told["open"]:
                if not told.get("again"):
                    break
                _anew(client, opened, tell=again)
            time.sleep(HOLD_EVERY)
    except KeyboardInterrupt:
        with suppress(ForewordError):  # a worker that left took the viewer along
            Client(home, seconds=BYE).post("/api/view", {"do": "leave", "holder": opened["holder"]})
        output.remark("the viewer is closed")
    else:
        output.remark(f"the viewer is closed: {told['why']}; run `foreword view` to open it again")


def _held(client: Client, home: Home, holder: str) -> dict[str, Any]:
    """What the worker says of the viewer; one that was killed is started, one that is replaced waited for."""
    from foreword.worker.lifecycle import pid_of, start

    left = 0.0  # when it was first seen that nobody is there
    begun = -START_EVERY
    while True:
        try:
            return client.post("/api/view", {"do": "hold", "holder": holder})
        except WorkerError as exc:
            if pid_of(home):
                left = 0.0  # it comes, goes, or does not get to answer
            elif begun > 0 or home.socket.exists():  # it was killed: whoever leaves takes the socket along
                if time.monotonic() - begun > START_EVERY:
                    begun = time.monotonic()
                    try:
                        start(home)
                    except WorkerError as died:  # also one that is killed as it comes
                        output.remark(f"{died}; it is started again in {START_EVERY:.0f} s")
            elif not left:
                left = time.monotonic()
            elif time.monotonic() - left > COMES_BACK:
                why = "the viewer is closed: the worker was stopped"
                raise WorkerError(why, hint="run `foreword view` again") from exc
        time.sleep(0.2)


def _anew(client: Client, opened: dict[str, Any], *, tell: Callable[[Mapping[str, Any]], None]) -> None:
    """Open it in a new worker, where the old one was: a page that is open gets in with the key that it has."""
    try:
        try:
            again = client.post("/api/view", {"do": "open", "port": opened["port"], "key": opened["key"]})
        except Conflict:  # somebody else has the port by now
            again = client.post("/api/view", {"do": "open"})
    except WorkerError:  # it left too: who holds next finds it so
        return
    same = (again["port"], again["key"]) == (opened["port"], opened["key"])
    opened.update(again)  # before anything is said: who presses Ctrl-C meanwhile closes the new one
    goes_on = "a page that is open goes on" if same else "a page that is open is at its end"
    output.remark(f"the viewer was opened again; {goes_on}; a new link was printed")
    with suppress(OSError):  # whoever read the first one may have left
        tell(opened)
