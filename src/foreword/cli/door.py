"""A command -> the worker of this home, started where it is away and replaced where it is older than the package."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from foreword.errors import BadRequest, StoreError, WorkerError

if TYPE_CHECKING:
    from foreword.paths import Home
    from foreword.worker.client import Client

ANSWER_SECONDS = 30.0  # an old database is brought up to date before the first answer
TRIES = 3  # to find a worker that does not leave in the same moment
LONG = 3600.0  # seconds; a million memories are indexed in minutes, and a person can always press Ctrl-C


def here() -> Home:
    """The home that the environment names."""
    from foreword.paths import home

    return home(os.environ)


def worker(home: Home, *, seconds: float = 60.0, patience: float = ANSWER_SECONDS) -> Client:
    """A line to a worker of the package as it is installed now, which has *patience* seconds for its first answer."""
    from foreword.hook.build import fingerprint
    from foreword.worker.client import Client
    from foreword.worker.lifecycle import start, stop

    if _build(home, patience) not in ("", fingerprint()):
        stop(home)
        start(home)
    return Client(home, seconds=seconds)


def folder(path: str) -> str:
    """The folder a command speaks of, absolute; the one we are in where none is named."""
    try:
        return os.path.abspath(os.path.expanduser(path or os.getcwd()))
    except FileNotFoundError as exc:
        raise BadRequest("the folder you are in no longer exists", hint="go to another one, or use --project") from exc


def path(route: str, id: str) -> str:
    """The path of one thing behind a route, whatever its id is made of."""
    from urllib.parse import quote

    return f"{route}/{quote(id, safe='')}"


def project(named: str) -> dict[str, str]:
    """The project that is meant, as the worker is asked for it: a key as it is, anything else as a folder."""
    is_key = named.startswith(("git:", "dir:"))
    return {"project": named} if is_key else {"project_path": folder(named)}


def _build(home: Home, patience: float) -> str:
    """The build of the worker that answers, started if need be; empty where its store is too broken to tell."""
    from foreword.worker.client import Client
    from foreword.worker.lifecycle import pid_of, start

    for _ in range(TRIES):
        start(home)
        pid = pid_of(home)
        try:
            return str(Client(home, seconds=patience).get("/api/health")["build"])
        except StoreError:
            return ""
        except WorkerError as exc:
            if pid and pid == pid_of(home):
                raise WorkerError(f"the worker, process {pid}, does not answer", hint="run `foreword doctor`") from exc
            # It left between two of our steps, being idle or replaced.
    raise WorkerError("the worker leaves as soon as it is started", hint=f"see {home.logs}, and run `foreword doctor`")
