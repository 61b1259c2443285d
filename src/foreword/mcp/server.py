"""Read JSON-RPC lines from an MCP client, answer each on stdout, and let the worker run the tools.

Greetings and lists are answered at once, without a worker. Each tool call has a thread of its own, so that a slow one
keeps nobody waiting; lines never mix. Nothing else is ever written to stdout.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from foreword.agents import FILES, agent_of_client, find
from foreword.encoding import dumps
from foreword.errors import BadPayload, ForewordError, WorkerError
from foreword.hook import client
from foreword.mcp import protocol
from foreword.mcp.protocol import INTERNAL, PARSE_ERROR, Call, Cancelled, Message, Peer
from foreword.paths import Home, home

MOST_LINE = 32 * 1024 * 1024  # bytes; the worker takes half of that
AT_ONCE = 16  # calls; one more waits, and so does every message after it
ANSWER_SECONDS = 8.0  # for a call, with a worker that must be started: long before any client gives up
START_SECONDS = 6.0  # of these, for a worker to come
CLOSED_SECONDS = ANSWER_SECONDS + 1  # that running calls have after the client has closed stdin


def main() -> int:
    """Serve until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an agent that ends us so, or a user's Ctrl-C: no traceback
    out = _redirect_stdout()
    with suppress(BrokenPipeError):  # the client is gone
        Server(out).serve(0)
    return 0


def _redirect_stdout() -> int:
    """Return where answers go; whatever else is printed by whomever ends up on stderr."""
    out = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError:  # no stderr
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
    for fd in (0, out):
        os.set_blocking(fd, True)
    return out


class Server:
    """One client on a pair of pipes."""

    def __init__(self, out: int) -> None:
        self._out = out
        self._peer = Peer()
        self._writing = threading.Lock()
        self._counting = threading.Lock()
        self._wanted: dict[str | int, Call] = {}  # running calls that were not cancelled
        self._running = 0

    def serve(self, fd: int) -> None:
        for line in _lines(fd):
            self._receive(line)
        until = monotonic() + CLOSED_SECONDS
        while self._running and monotonic() < until:
            sleep(0.01)

    def _receive(self, line: bytes | None) -> None:
        if line is None:
            self._send(protocol.error(None, PARSE_ERROR, f"a line has at most {MOST_LINE} bytes"))
            return
        try:
            message = protocol.parse(line)
        except BadPayload as exc:
            self._send(protocol.error(None, PARSE_ERROR, str(exc)))
            return
        reply, self._peer = protocol.reply_to(message, self._peer)
        if isinstance(reply, Cancelled):
            self._wanted.pop(reply.id, None)
        elif isinstance(reply, Call):
            self._begin(reply)
        elif reply is not None:
            self._send(reply)

    def _begin(self, call: Call) -> None:
        with self._counting:
            self._running += 1
            self._wanted[call.id] = call
        if self._running > AT_ONCE:
            self._run(call)
            return
        try:
            threading.Thread(target=self._run, args=(call,), daemon=True).start()
        except RuntimeError:  # no more threads on this machine
            self._run(call)

    def _run(self, call: Call) -> None:
        try:
            answer = _answer(call)
            if self._wanted.pop(call.id, None) is not None:
                self._send(answer)
        except OSError:
            pass  # the client is gone
        finally:
            with self._counting:
                self._running -= 1

    def _send(self, message: Message) -> None:
        data = (dumps(message) + "\n").encode()
        with self._writing:
            while data:
                data = data[os.write(self._out, data) :]


def _lines(fd: int) -> Iterator[bytes | None]:
    """Yield the lines that arrive, also a last one without its end; None for one that is too long."""
    held, scanned, spoiled = bytearray(), 0, False
    while part := os.read(fd, 1 << 18):
        held += part
        while (end := held.find(b"\n", scanned)) >= 0:
            line = bytes(held[:end])
            del held[: end + 1]
            scanned = 0
            if spoiled or line.strip():
                yield None if spoiled else line
            spoiled = False
        scanned = len(held)
        if scanned > MOST_LINE:
            held, scanned, spoiled = bytearray(), 0, True
    if held.strip() and not spoiled:
        yield bytes(held)


# ---- the worker


def _answer(call: Call) -> Message:
    """Return the answer to a call; whatever happens, there is one."""
    try:
        answer = call_worker(call)
        return protocol.result(call, str(answer.get("text", "")), failed=bool(answer.get("failed")))
    except ForewordError as exc:
        return protocol.result(call, f"{exc}; {exc.hint}", failed=True)
    except Exception as exc:  # noqa: BLE001 - a server that dies takes every tool with it
        return protocol.error(call.id, INTERNAL, f"the memory server failed: {type(exc).__name__}: {exc}"[:500])


def call_worker(call: Call) -> Mapping[str, Any]:
    """Return the worker's answer to a call, within ANSWER_SECONDS; a worker that is away is started."""
    if os.environ.get("FOREWORD_OFF", "") not in ("", "0"):
        raise ForewordError("memory is switched off here (FOREWORD_OFF)", hint="go on without it")
    from foreword.worker.client import Client  # 20 ms that the start of a session need not pay

    until = monotonic() + ANSWER_SECONDS
    start_until = monotonic() + START_SECONDS
    here = home(os.environ)
    body = {"tool": call.tool, "arguments": call.arguments, "caller": _caller(call, here)}
    started = False
    while True:
        try:
            return Client(here, seconds=max(0.01, until - monotonic())).post("/api/mcp", body)
        except WorkerError as exc:
            if isinstance(exc.__cause__, TimeoutError):
                raise ForewordError(
                    f"the memory worker did not answer within {ANSWER_SECONDS:.0f} seconds",
                    hint="go on without it; the user can run `foreword doctor`",
                ) from exc
            if not isinstance(exc.__cause__, FileNotFoundError | ConnectionRefusedError):
                raise ForewordError(f"the memory worker failed: {exc}", hint="call the tool again") from exc
            if monotonic() > start_until:
                raise ForewordError(
                    "the memory worker is away and did not start in time",
                    hint="go on without it, and call the tool again later; the user can run `foreword doctor`",
                ) from exc
        if not started:
            _start_worker(here)
            started = True
        sleep(0.02)


def _start_worker(home: Home) -> None:
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


def _caller(call: Call, home: Home) -> dict[str, Any]:
    """Return who calls, as far as that is known; of the environment only what names a session or a folder."""
    return {
        "cwd": _folder(agent_of_client(call.peer.client.get("name", ""))),
        "tool_use": call.tool_use,
        "session": call.session,
        "inner": call.inner,
        "sessions": [
            {"host": agent, "id": os.environ[name]}
            for agent in FILES
            for name in find(agent).session_variables
            if os.environ.get(name)
        ],
        "client": dict(call.peer.client),
        "hidden": _digests(home),
    }


def _folder(agent: str) -> str:
    # Ours first, for a client that cannot set its folder. Another agent's is inherited, and may name another project.
    for name in ("FOREWORD_PROJECT", find(agent).project_variable if agent else ""):
        if os.path.isabs(folder := os.environ.get(name, "")):
            return folder
    try:
        return os.getcwd()
    except OSError:
        return ""  # it was removed


def _digests(home: Home) -> str:
    """Return digests of secret variables, as a hook sends them, so that their values are not written down."""
    try:
        key = int(home.hook_key.read_text(encoding="ascii"), 16)
    except (OSError, ValueError):
        return ""
    return client.digests(client.secret_values(), key=key)
