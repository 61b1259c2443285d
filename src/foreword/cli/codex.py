"""Codex's own program -> whether it trusts our hooks: as it says itself, in bounded time."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreword.agents.setup import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.install.status import InstallStatus

TRUST_SECONDS = 6.0  # Codex answers in 0.9 to 2.5 seconds here
LEAVE_SECONDS = 2.0  # until it is ended
# What a host is told of our surroundings when it is started: where things lie, and none of the keys.
KEPT = ("PATH", "HOME", "LANG", "USER", "TMPDIR")


def codex_trust(program: str, environ: Mapping[str, str], *, wired: InstallStatus) -> dict[str, str]:
    """Each of our hooks and whether Codex trusts it, as it says itself; else as far as its settings tell."""
    on_file = _trust_on_file(wired)
    if "trusted" not in on_file.values():
        return on_file  # to ask Codex would make its databases, where it was never used
    ours = {str(file) for file in wired.files}
    try:
        listed = _hooks_of(program, environ, folder=wired.setup.folder)
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError):
        listed = None
    if listed is None:
        return on_file
    return {
        str(hook.get("eventName")): str(hook.get("trustStatus")) if hook.get("enabled", True) else "disabled"
        for hook in listed
        if isinstance(hook, dict)
        and str(hook.get("sourcePath")) in ours
        and "foreword-hook" in str(hook.get("command"))
    }


def _hooks_of(program: str, environ: Mapping[str, str], *, folder: Path) -> list[Any] | None:
    """What Codex's own server answers to `hooks/list`; None where it does not in time."""
    until = time.monotonic() + TRUST_SECONDS
    env = {**{name: environ[name] for name in KEPT if name in environ}, "CODEX_HOME": str(folder)}
    us = {"clientInfo": {"name": "foreword", "title": "Foreword", "version": "0"}}
    with subprocess.Popen(  # noqa: S603 - the user's own client
        [program, "app-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
        cwd=folder,
        start_new_session=True,  # what npm installs starts the program itself as a child
    ) as server:
        assert server.stdin
        try:
            for number, (method, params) in enumerate((("initialize", us), ("hooks/list", {"cwds": [str(folder)]}))):
                server.stdin.write(json.dumps({"id": number, "method": method, "params": params}).encode() + b"\n")
                server.stdin.flush()
                answer = _answer(server.stdout, number, until=until)
                if answer is None:
                    return None
            return [hook for each in answer["data"] for hook in each["hooks"]]
        finally:
            with suppress(OSError):
                server.stdin.close()  # then it leaves by itself, and its databases are whole
            try:
                server.wait(LEAVE_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)


def _answer(stream: Any, number: int, *, until: float) -> Any:
    """The result of a call, among the lines that come; None where it is late or the server left."""
    held = b""
    while (left := until - time.monotonic()) > 0:
        if not select.select([stream], [], [], left)[0]:
            return None
        part = os.read(stream.fileno(), 1 << 16)
        if not part:
            return None
        *lines, held = (held + part).split(b"\n")
        for line in lines:
            told = json.loads(line)
            if isinstance(told, dict) and told.get("id") == number:
                return told["result"]
    return None


def _trust_on_file(wired: InstallStatus) -> dict[str, str]:
    """What Codex wrote down: a hook it was never told to trust has no entry; one that changed since cannot be told."""
    from foreword.install.status import settings_of

    try:
        state = settings_of(wired.setup.folder / "config.toml").get("hooks", {}).get("state", {})
        written = {str(key) for key, told in state.items() if told.get("trusted_hash")}
    except (OSError, ValueError, AttributeError):
        written = set()
    lacking = [gap.what for gap in wired.gaps]
    found = {}
    for change in wired.setup.changes:
        if isinstance(change, Entry) and change.keys[0] == "hooks" and ".".join(change.keys) not in lacking:
            event = change.keys[-1]
            snake = re.sub(r"(?<!^)([A-Z])", r"_\1", event).lower()
            trusted = any(key.startswith(f"{change.file}:{snake}:") for key in written)
            found[event] = "trusted" if trusted else "untrusted"
    return found
