"""Serve MCP on stdin and stdout: answer each JSON-RPC line of a client, and let the worker run the tools.

Greetings and lists are answered at once, without a worker. Each tool call has a thread of its own, so that a slow one
keeps nobody waiting; lines never mix. Nothing else is ever written to stdout.

Two eras of the protocol are served, each message by itself: up to 2025-11-25 a client begins with `initialize`;
from 2026-07-28 on every request carries its version and its client, and `server/discover` describes the server.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any

from foreword.agents import FILES, agent_of_client, find, text_of
from foreword.encoding import decoded, dumps, loads
from foreword.errors import BadPayload, ForewordError, WorkerError
from foreword.hook import client
from foreword.paths import Home, home
from foreword.worker.mcp_schema import BY_NAME, INSTRUCTIONS, SERVER, TOOLS, unknown

Message = Mapping[str, Any]
Id = str | int

GREETED = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # versions that begin with `initialize`
STATELESS = "2026-07-28"  # the version that every request names itself
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
UNSUPPORTED_VERSION = -32022
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
TOOL_USE_KEY = "claudecode/toolUseId"  # Claude Code's own id of a call, which its hooks carry too
CODEX_KEY = "x-codex-turn-metadata"  # in every call of Codex; a thread of its own is a sub-agent's
CAPABILITIES: Message = {"tools": {"listChanged": False}}
FRESH_MS = 3_600_000  # the list of tools changes with an upgrade, and that is another process
LISTED: dict[str, Message] = {
    "tools/list": {"tools": list(TOOLS)},
    "server/discover": {"supportedVersions": [STATELESS], "capabilities": CAPABILITIES, "instructions": INSTRUCTIONS},
    "prompts/list": {"prompts": []},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
}

MOST_LINE = 32 * 1024 * 1024  # bytes; the worker takes half of that
AT_ONCE = 16  # calls; one more waits, and so does every message after it
ANSWER_SECONDS = 8.0  # for a call, with a worker that must be started: long before any client gives up
START_SECONDS = 6.0  # of these, for a worker to come
CLOSED_SECONDS = ANSWER_SECONDS + 1  # that running calls have after the client has closed stdin


@dataclass(frozen=True)
class Peer:
    """The client: its version of the protocol, and what it calls itself."""

    version: str = GREETED[-1]
    client: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Call:
    """A tool call: what the worker needs to run it, and what its answer needs to find its way back."""

    id: Id
    tool: str
    arguments: Mapping[str, Any]
    peer: Peer
    tool_use: str = ""
    session: str = ""  # where the call itself names it
    inner: bool = False  # a sub-agent of that session calls


# ---- the protocol


def reply_to(message: Any, peer: Peer) -> tuple[Message | Call | None, Peer]:
    """Return the reply to a message, and the client as it is known from now on."""
    if not isinstance(message, dict):
        return error(None, INVALID_REQUEST, "a message is a JSON object"), peer
    method, params = message.get("method"), message.get("params")
    id: Any = message.get("id")
    if "method" not in message and ("result" in message or "error" in message):
        return None, peer  # an answer to a request that we never sent
    named = is_id(id)
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str) or ("id" in message and not named):
        problem = "a request needs jsonrpc 2.0, a method, and an id that is a text or a whole number"
        return error(id if named else None, INVALID_REQUEST, problem), peer
    if "id" not in message:
        return None, peer
    if params is not None and not isinstance(params, dict):
        return error(id, INVALID_PARAMS, "params must be an object"), peer
    params = params or {}
    if method == "initialize":
        return _initialized(id, params)
    meta = params["_meta"] if isinstance(params.get("_meta"), dict) else {}
    speaker = peer
    if VERSION_KEY in meta:  # of this request alone: another one carries its own
        version = meta[VERSION_KEY]
        if not isinstance(version, str) or not isinstance(meta.get(CAPABILITIES_KEY), dict):
            problem = f"params._meta needs {VERSION_KEY} (a text) and {CAPABILITIES_KEY} (an object)"
            return error(id, INVALID_PARAMS, problem), peer
        if version != STATELESS:
            about = {"supported": [STATELESS, *GREETED], "requested": version}
            return error(id, UNSUPPORTED_VERSION, f"unsupported protocol version {version[:40]}", about), peer
        speaker = Peer(version=version, client=_client(meta.get(CLIENT_KEY)))
    if method == "tools/call":
        return _called(id, params, meta, speaker), peer
    if method in LISTED:
        version = STATELESS if method == "server/discover" else speaker.version
        return _result(id, LISTED[method], version=version, lasting=True), peer
    if method == "ping":
        return _result(id, {}, version=speaker.version), peer
    return error(id, NO_METHOD, f"no method {method[:80]} here"), peer


def result(call: Call, text: str, *, failed: bool) -> Message:
    """Return the answer to a call; the model sees what went wrong in a tool, and can do better.

    As text alone: Claude Code and Codex show their model structured content instead of the text, and so lose the frame
    that says what it is; Copilot shows both, at twice the price.
    """
    return _result(call.id, {"content": [{"type": "text", "text": text}], "isError": failed}, version=call.peer.version)


def error(id: Any, code: int, message: str, data: Message | None = None) -> Message:
    about = {"code": code, "message": message, **({"data": data} if data else {})}
    return {"jsonrpc": "2.0", "id": id, "error": about}


def is_id(id: Any) -> bool:
    return isinstance(id, (str, int)) and not isinstance(id, bool)


def _initialized(id: Id, params: Message) -> tuple[Message, Peer]:
    """Agree on a version that both know: the client's, else our newest of those with `initialize`."""
    wanted = params.get("protocolVersion")
    if not isinstance(wanted, str):
        return error(id, INVALID_PARAMS, "initialize needs a protocolVersion"), Peer()
    peer = Peer(version=wanted if wanted in GREETED else GREETED[-1], client=_client(params.get("clientInfo")))
    content = {"protocolVersion": peer.version, "capabilities": CAPABILITIES, "serverInfo": SERVER}
    return _result(id, {**content, "instructions": INSTRUCTIONS}, version=peer.version), peer


def _called(id: Id, params: Message, meta: Message, speaker: Peer) -> Message | Call:
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return error(id, INVALID_PARAMS, "tools/call needs the name of a tool, and arguments as an object")
    codex = meta[CODEX_KEY] if isinstance(meta.get(CODEX_KEY), dict) else {}
    session = text_of(codex, "session_id")
    inner = text_of(codex, "thread_id") not in ("", session)
    call = Call(id, name, arguments, speaker, tool_use=text_of(meta, TOOL_USE_KEY), session=session, inner=inner)
    return call if name in BY_NAME else result(call, unknown(name), failed=True)


def _result(id: Id, content: Message, *, version: str, lasting: bool = False) -> Message:
    if version == STATELESS:
        kept = {"ttlMs": FRESH_MS, "cacheScope": "private"} if lasting else {}
        content = {"resultType": "complete", **content, **kept, "_meta": {SERVER_KEY: SERVER}}
    return {"jsonrpc": "2.0", "id": id, "result": content}


def _client(info: Any) -> Message:
    """Return name and version of a client, and nothing else of what it sends."""
    fields = info if isinstance(info, dict) else {}
    return {name: text[:80] for name in ("name", "version") if isinstance(text := fields.get(name), str)}


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
        self._peer = Peer()
        self._writing = threading.Lock()
        self._counting = threading.Lock()
        self._wanted: dict[Id, Call] = {}  # running calls that were not cancelled
        self._running = 0

    def serve(self, fd: int) -> None:
        for line in _lines(fd):
            self._receive(line)
        until = monotonic() + CLOSED_SECONDS
        while self._running and monotonic() < until:
            sleep(0.01)

    def _receive(self, line: bytes | None) -> None:
        if line is None:
            self._send(error(None, PARSE_ERROR, f"a line has at most {MOST_LINE} bytes"))
            return
        try:
            message = loads(decoded(line))
        except BadPayload as exc:
            self._send(error(None, PARSE_ERROR, str(exc)))
            return
        if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            params = message.get("params")
            if isinstance(params, dict) and is_id(params.get("requestId")):
                self._wanted.pop(params["requestId"], None)
        reply, self._peer = reply_to(message, self._peer)
        if isinstance(reply, Call):
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
        answer = _call_worker(call)
        return result(call, str(answer.get("text", "")), failed=bool(answer.get("failed")))
    except ForewordError as exc:
        return result(call, f"{exc}; {exc.hint}", failed=True)
    except Exception as exc:  # noqa: BLE001 - a server that dies takes every tool with it
        return error(call.id, INTERNAL, f"the memory server failed: {type(exc).__name__}: {exc}"[:500])


def _call_worker(call: Call) -> Mapping[str, Any]:
    """Return the worker's answer to a call, within ANSWER_SECONDS; a worker that is away is started."""
    if os.environ.get("FOREWORD_OFF", "") not in ("", "0"):
        raise ForewordError("memory is switched off here (FOREWORD_OFF)", hint="go on without it")
    from foreword.worker.client import Client  # 20 ms that the start of a session need not pay

    until, start_until = monotonic() + ANSWER_SECONDS, monotonic() + START_SECONDS
    here = home(os.environ)
    arguments = loads(decoded(client.without_values(dumps(call.arguments).encode(), client.secret_values())))
    body = {"tool": call.tool, "arguments": arguments, "caller": _caller(call)}
    started = False
    while True:
        try:
            return Client(here, seconds=max(0.01, until - monotonic())).post("/api/mcp", body)
        except WorkerError as exc:
            away = isinstance(exc.__cause__, FileNotFoundError | ConnectionRefusedError)
            if isinstance(exc.__cause__, TimeoutError) or (away and monotonic() > start_until):
                problem = f"the memory worker did not answer within {ANSWER_SECONDS:.0f} seconds"
                raise ForewordError(problem, hint="go on without it; the user can run `foreword doctor`") from exc
            if not away:
                raise ForewordError(f"the memory worker failed: {exc}", hint="call the tool again") from exc
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


def _caller(call: Call) -> dict[str, Any]:
    """Return who calls, as far as that is known; of the environment only what names a session or a folder."""
    variables = [(agent, name) for agent in FILES for name in find(agent).session_variables]
    return {
        "cwd": _folder(agent_of_client(call.peer.client.get("name", ""))),
        "tool_use": call.tool_use,
        "session": call.session,
        "inner": call.inner,
        "sessions": [{"host": agent, "id": os.environ[name]} for agent, name in variables if os.environ.get(name)],
        "client": dict(call.peer.client),
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
