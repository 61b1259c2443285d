"""A call and this process's surroundings -> who calls, as far as they tell: its folder, its session, its client."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from foreword.agents import FILES, find, host_of
from foreword.errors import ForewordError
from foreword.hook import client
from foreword.mcp.protocol import Call
from foreword.paths import Home


def caller(call: Call, home: Home) -> dict[str, Any]:
    """What the worker is told of whoever calls; of the environment only what names a session or a folder."""
    return {
        "cwd": _folder(host_of(call.peer.client.get("name", ""))),
        "tool_use": call.tool_use,
        "session": call.session,
        "inner": call.inner,
        "sessions": [
            {"host": host, "id": os.environ[name]}
            for host in FILES
            for name in find(host).variables
            if os.environ.get(name)
        ],
        "client": dict(call.peer.client),
        "hidden": _hidden(home),
    }


def start_worker(home: Home) -> None:
    """Start the worker as a hook does: once, apart from us, and with nothing of the agent's environment."""
    from foreword.config import load
    from foreword.hook import offline
    from foreword.paths import worker_command

    with suppress(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)  # one that we started before, and that has left
    home.prepare()
    if not load(home, os.environ).settings.worker_autostart:
        raise ForewordError("the memory worker is away, and is not to be started", hint="run `foreword worker start`")
    offline.start_worker(str(home.root), worker_command(), stamp=str(home.stamp), log=str(home.start_log))


def _folder(host: str) -> str:
    # Ours first, for whoever must say it himself. Another host's is inherited, and may name another project.
    for name in ("FOREWORD_PROJECT", find(host).project_variable if host else ""):
        if os.path.isabs(told := os.environ.get(name, "")):
            return told
    try:
        return os.getcwd()
    except OSError:
        return ""  # it was taken away


def _hidden(home: Home) -> str:
    """Digests of secret variables, as a hook tells them, so that their values are not written down."""
    try:
        key = int(home.hook_key.read_text(encoding="ascii"), 16)
    except (OSError, ValueError):
        return ""
    return client.digests(client.secret_values(), key=key)
