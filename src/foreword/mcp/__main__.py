"""Serve MCP on stdin and stdout (`python -m foreword.mcp`): answer JSON-RPC lines, let the worker run the tools.

Greetings and lists are answered at once, without a worker. Each tool call has a thread of its own, so that a slow one
keeps nobody waiting; lines never mix. Nothing else is ever written to stdout.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, NamedTuple

from foreword.agents import AGENTS, agent_of_client, dict_of, find, text_of
from foreword.encoding import decoded, dumps, loads
from foreword.errors import BadPayload, ForewordError, WorkerError
from foreword.hook import client
from foreword.models import EMPTY
from foreword.paths import Home, home
from foreword.worker.mcp_schema import BY_NAME, INSTRUCTIONS, SERVER, TOOLS, unknown

Message = Mapping[str, Any]
Id = str | int

# From 2026-07-28 on no client begins with `initialize`; those that we know try that version, and fall back to these.
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
TOOL_USE_KEY = "claudecode/toolUseId"  # Claude Code's own id of a call, which its hooks carry too
CODEX_KEY = "x-codex-turn-metadata"  # in every call of Codex; a thread of its own is a sub-agent's
LISTED: dict[str, Message] = {
    "ping": {},
    "tools/list": {"tools": list(TOOLS)},
    "prompts/list": {"prompts": []},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
}

MAX_CONCURRENT = 16  # calls; one more waits, and so does every message after it
ANSWER_SECONDS = 8.0  # for a call, with a worker that must be started: long before any client gives up
START_SECONDS = 6.0  # of these, for a worker to come
CLOSED_SECONDS = ANSWER_SECONDS + 1  # that a running call has after the client has closed stdin


class Call(NamedTuple):
    """A tool call: what the worker needs to run it, and what its answer needs to find its way back."""

    id: Id
    tool: str
    arguments: Message
    client: Message  # what the client calls itself
    tool_use: str = ""
    session: str = ""  # where the call itself names it
    inner: bool = False  # a sub-agent of that session calls


# ---- the protocol


def reply_to(message: Any, client: Message) -> tuple[Message | Call | None, Message]:
    """Return the reply to a message, and the client as it is known from now on."""
    if not isinstance(message, dict):
        return error(None, INVALID_REQUEST, "a message is a JSON object"), client
    if "method" not in message and ("result" in message or "error" in message):
        return None, client  # an answer to a request that we never sent
    id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    named = isinstance(id, (str, int)) and not isinstance(id, bool)
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str) or ("id" in message and not named):
        problem = "a request needs jsonrpc 2.0, a method, and an id that is a text or a whole number"
        return error(id if named else None, INVALID_REQUEST, problem), client
    if not isinstance(id, (str, int)):
        return None, client  # a notification
    if not isinstance(params, dict):
        return error(id, INVALID_PARAMS, "params must be an object"), client
    if method == "initialize":
        return _initialized(id, params)
    if method == "tools/call":
        return _called(id, params, client), client
    if method in LISTED:
        return {"jsonrpc": "2.0", "id": id, "result": LISTED[method]}, client
    return error(id, NO_METHOD, f"no method {method[:80]} here"), client


def _initialized(id: Id, params: Message) -> tuple[Message, Message]:
    """Agree on a version that both know: the client's, else our newest; keep the name of the client."""
    wanted, fields = params.get("protocolVersion"), dict_of(params.get("clientInfo"))
    if not isinstance(wanted, str):
        return error(id, INVALID_PARAMS, "initialize needs a protocolVersion"), EMPTY
    client = {name: text_of(fields, name)[:80] for name in ("name", "version") if text_of(fields, name)}
    content = {
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[-1],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": SERVER,
        "instructions": INSTRUCTIONS,
    }
    return {"jsonrpc": "2.0", "id": id, "result": content}, client


def _called(id: Id, params: Message, client: Message) -> Message | Call:
    name, arguments, meta = params.get("name"), params.get("arguments") or {}, dict_of(params.get("_meta"))
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return error(id, INVALID_PARAMS, "tools/call needs the name of a tool, and arguments as an object")
    codex = dict_of(meta.get(CODEX_KEY))
    session = text_of(codex, "session_id")
    inner = text_of(codex, "thread_id") not in ("", session)
    call = Call(id, name, arguments, client, tool_use=text_of(meta, TOOL_USE_KEY), session=session, inner=inner)
    return call if name in BY_NAME else result(call, unknown(name), failed=True)


def result(call: Call, text: str, *, failed: bool) -> Message:
    """Return the answer to a call; the model sees what went wrong in a tool, and can do better.

    As text alone: Claude Code and Codex show their model structured content instead of the text, and so lose the frame
    that says what it is; Copilot shows both, at twice the price.
    """
    content = {"content": [{"type": "text", "text": text}], "isError": failed}
    return {"jsonrpc": "2.0", "id": call.id, "result": content}


def error(id: Any, code: int, message: str) -> Message:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


# ---- the server


def main() -> int:
    """Serve until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an agent that ends us so, or a user's Ctrl-C: no traceback
    out = os.dup(1)  # where answers go; whatever else is printed by whomever ends up on stderr
    try:
        os.dup2(2, 1)
    except OSError:  # no stderr
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
    for fd in (0, out):
        os.set_blocking(fd, True)
    with suppress(BrokenPipeError):  # the client is gone
        Server(out).serve(0)
    return 0


class Server:
    """One client on a pair of pipes."""

    def __init__(self, out: int) -> None:
        self._out = out
        self._client: Message = EMPTY
        self._writing = threading.Lock()
        self._slots = threading.Semaphore(MAX_CONCURRENT)

    def serve(self, fd: int) -> None:
        with open(fd, "rb", closefd=False) as stream:
            for line in stream:
                if line.strip():
                    self._receive(line)
        for _ in range(MAX_CONCURRENT):  # until the running calls have ended
            self._slots.acquire(timeout=CLOSED_SECONDS)

    def _receive(self, line: bytes) -> None:
        try:
            message = loads(decoded(line))
        except BadPayload as exc:
            self._send(error(None, PARSE_ERROR, str(exc)))
            return
        reply, self._client = reply_to(message, self._client)
        if isinstance(reply, Call):
            self._slots.acquire()
            threading.Thread(target=self._run, args=(reply,), daemon=True).start()
        elif reply is not None:
            self._send(reply)

    def _run(self, call: Call) -> None:
        with suppress(OSError):  # the client is gone
            self._send(_answer(call))
        self._slots.release()

    def _send(self, message: Message) -> None:
        data = (dumps(message) + "\n").encode()
        with self._writing:
            while data:
                data = data[os.write(self._out, data) :]


# ---- the worker


def _answer(call: Call) -> Message:
    """Return the answer to a call; whatever happens, there is one."""
    try:
        answer = _call_worker(call)
        return result(call, str(answer.get("text", "")), failed=bool(answer.get("failed")))
    except ForewordError as exc:
        return result(call, f"{exc}; {exc.hint}", failed=True)
    except Exception as exc:  # noqa: BLE001 - a server that dies takes every tool with it
        return error(call.id, INTERNAL, f"the memory server failed: {type(exc).__name__}: {exc}"[:500])


def _call_worker(call: Call) -> Mapping[str, Any]:
    """Return the worker's answer to a call, within ANSWER_SECONDS; a worker that is away is started."""
    if os.environ.get("FOREWORD_OFF", "") not in ("", "0"):
        raise ForewordError("memory is switched off here (FOREWORD_OFF)", hint="continue without it")
    from foreword.worker.client import Client  # 20 ms that the start of a session need not pay

    until, start_until = monotonic() + ANSWER_SECONDS, monotonic() + START_SECONDS
    home_folder = home(os.environ)
    arguments = loads(decoded(client.without_values(dumps(call.arguments).encode(), client.secret_values())))
    body = {"tool": call.tool, "arguments": arguments, "caller": _caller(call)}
    started = False
    while True:
        try:
            return Client(home_folder, seconds=max(0.01, until - monotonic())).post("/api/mcp", body)
        except WorkerError as exc:
            away = isinstance(exc.__cause__, FileNotFoundError | ConnectionRefusedError)
            if isinstance(exc.__cause__, TimeoutError) or (away and monotonic() > start_until):
                problem = f"the memory worker did not answer within {ANSWER_SECONDS:.0f} seconds"
                raise ForewordError(problem, hint="continue without it; the user can run `foreword doctor`") from exc
            if not away:
                raise ForewordError(f"the memory worker failed: {exc}", hint="call the tool again") from exc
        if not started:
            _start_worker(home_folder)
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
        raise ForewordError("no worker is running, and autostart is off", hint="run `foreword worker start`")
    offline.start_worker(str(home.root), worker_command(), stamp=str(home.stamp), log=str(home.start_log))


def _caller(call: Call) -> dict[str, Any]:
    """Return who calls, as far as that is known; of the environment only what names a session or a folder."""
    variables = [(agent, name) for agent in AGENTS for name in find(agent).session_variables]
    return {
        "cwd": _folder(agent_of_client(call.client.get("name", ""))),
        "tool_use": call.tool_use,
        "session": call.session,
        "inner": call.inner,
        "sessions": [{"host": agent, "id": os.environ[name]} for agent, name in variables if os.environ.get(name)],
        "client": dict(call.client),
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


if __name__ == "__main__":
    sys.exit(main())
