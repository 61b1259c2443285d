"""Connect a command to the worker, and find out which folder or project it is about and who runs it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from foreword.agents import calling_agent
from foreword.audit import OWN_TERMINAL, USER_ONLY
from foreword.cli import output
from foreword.errors import BadRequest, StoreError, WorkerError
from foreword.hook.build import fingerprint
from foreword.paths import Home, home
from foreword.worker.client import Client
from foreword.worker.lifecycle import pid_of, start, stop

FIRST_ANSWER_SECONDS = 30.0  # an old database is migrated before the first answer
TRIES = 3  # a worker may leave, being idle, while we connect
LONG = 3600.0  # seconds; for commands that work on the whole store


def this_home() -> Home:
    """Return the home that the environment names."""
    return home(os.environ)


def connect(home: Home | None = None, *, seconds: float = 60.0, patience: float = FIRST_ANSWER_SECONDS) -> Client:
    """Return a client of the worker, which is started if none runs and replaced if it is of another build.

    *seconds* is the time limit of each request, *patience* that of the first answer.
    """
    home = home or this_home()
    for _ in range(TRIES):
        start(home)
        pid = pid_of(home)
        try:
            if Client(home, seconds=patience).get("/api/health")["build"] != fingerprint():
                stop(home)
                start(home)
        except StoreError:
            pass  # the database is unusable, which the request itself will say
        except WorkerError as exc:
            if pid and pid == pid_of(home):
                raise WorkerError(f"the worker, process {pid}, does not answer", hint="run `foreword doctor`") from exc
            continue  # it left between two of our steps, being idle or replaced
        return Client(home, seconds=seconds)
    raise WorkerError("the worker exits as soon as it starts", hint=f"see {home.logs}, and run `foreword doctor`")


def post_long(route: str, request: Mapping[str, Any], *, doing: str) -> dict[str, Any]:
    """Post a request that may take long, with a spinner."""
    client = connect(seconds=LONG)
    with output.console().status(doing):
        return client.post(route, request)


def folder(path: str = "") -> str:
    """Return *path*, or the current folder, as an absolute path."""
    try:
        return os.path.abspath(os.path.expanduser(path or os.getcwd()))
    except FileNotFoundError as exc:
        hint = "change to another one, or pass --project"
        raise BadRequest("the current folder no longer exists", hint=hint) from exc


def route(path: str, id: str) -> str:
    """Return the path of one item behind a route."""
    return f"{path}/{quote(id, safe='')}"


def project_query(name: str) -> dict[str, str]:
    """Return the request fields for a project that was named by key or by folder."""
    return {"project": name} if name.startswith(("git:", "dir:")) else {"project_path": folder(name)}


def refuse_agents() -> None:
    """Raise BadRequest in an agent's shell, for commands that count as the user's own word."""
    if calling_agent(os.environ):
        raise BadRequest(USER_ONLY, hint=OWN_TERMINAL)
