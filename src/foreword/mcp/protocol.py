"""Answer one JSON-RPC message of an MCP client, or turn it into a call for the worker. Pure functions.

Two eras of the protocol are served, each message by itself: up to 2025-11-25 a client begins with `initialize`;
from 2026-07-28 on every request carries its version and its client, and `server/discover` describes the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foreword.agents import text_of
from foreword.encoding import decoded, loads
from foreword.worker.mcp_schema import BY_NAME, INSTRUCTIONS, SERVER, TOOLS, unknown

Message = Mapping[str, Any]

GREETED = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # versions that begin with `initialize`
STATELESS = ("2026-07-28",)  # versions that every request names itself

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
UNSUPPORTED_VERSION = -32022

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
TOOL_USE_KEY = "claudecode/toolUseId"  # Claude Code's own id of a call, which its hooks carry too
CODEX_KEY = "x-codex-turn-metadata"  # in every call of Codex; a thread of its own is a sub-agent's

CAPABILITIES: Message = {"tools": {"listChanged": False}}
LISTS = {"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}
FRESH_MS = 3_600_000  # the list of tools changes with an upgrade, and that is another process


@dataclass(frozen=True)
class Peer:
    """The client: its version of the protocol, and what it calls itself."""

    version: str = GREETED[-1]
    client: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Call:
    """A tool call: what the worker needs to run it, and what its answer needs to find its way back."""

    id: str | int
    tool: str
    arguments: Mapping[str, Any]
    peer: Peer
    tool_use: str = ""
    session: str = ""  # where the call itself names it
    inner: bool = False  # a sub-agent of that session calls


@dataclass(frozen=True)
class Cancelled:
    """The client no longer wants the answer to this request."""

    id: str | int


def parse(line: bytes) -> Any:
    """Return the message of a line; one that is no JSON raises BadPayload. What is not UTF-8 becomes U+FFFD."""
    return loads(decoded(line))


def reply_to(message: Any, peer: Peer) -> tuple[Message | Call | Cancelled | None, Peer]:
    """Return the reply to a message, and the client as it is known from now on."""
    if not isinstance(message, dict):
        return error(None, INVALID_REQUEST, "a message is a JSON object"), peer
    method, id = message.get("method"), message.get("id")
    if "method" not in message and ("result" in message or "error" in message):
        return None, peer  # an answer to a request that we never sent
    named = isinstance(id, (str, int)) and not isinstance(id, bool)
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str) or ("id" in message and not named):
        problem = "a request needs jsonrpc 2.0, a method, and an id that is a text or a whole number"
        return error(id if named else None, INVALID_REQUEST, problem), peer
    params = message.get("params")
    if "id" not in message:
        return _notified(method, params), peer
    assert isinstance(id, (str, int))
    if params is not None and not isinstance(params, dict):
        return error(id, INVALID_PARAMS, "params must be an object"), peer
    return _reply_to_request(id, method, params or {}, peer)


def result(call: Call, text: str, *, failed: bool) -> Message:
    """Return the answer to a call; the model sees what went wrong in a tool, and can do better.

    As text alone: Claude Code and Codex show their model structured content instead of the text, and so lose the frame
    that says what it is; Copilot shows both, at twice the price.
    """
    return _result(call.id, {"content": [{"type": "text", "text": text}], "isError": failed}, version=call.peer.version)


def error(id: str | int | None, code: int, message: str, data: Message | None = None) -> Message:
    about = {"code": code, "message": message, **({"data": data} if data else {})}
    return {"jsonrpc": "2.0", "id": id, "error": about}


def _notified(method: str, params: Any) -> Cancelled | None:
    """Return what a notification cancels; it is never answered."""
    if method == "notifications/cancelled" and isinstance(params, dict):
        id = params.get("requestId")
        if isinstance(id, (str, int)) and not isinstance(id, bool):
            return Cancelled(id=id)
    return None


def _reply_to_request(id: str | int, method: str, params: Message, peer: Peer) -> tuple[Message | Call | None, Peer]:
    if method == "initialize":
        return _initialized(id, params)
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    if VERSION_KEY in meta:
        version = meta[VERSION_KEY]
        if not isinstance(version, str) or not isinstance(meta.get(CAPABILITIES_KEY), dict):
            problem = f"params._meta needs {VERSION_KEY} (a text) and {CAPABILITIES_KEY} (an object)"
            return error(id, INVALID_PARAMS, problem), peer
        if version not in STATELESS:
            about = {"supported": [*STATELESS, *GREETED], "requested": version}
            return error(id, UNSUPPORTED_VERSION, f"unsupported protocol version {version[:40]}", about), peer
        # Of this request alone: another one carries its own.
        speaker = Peer(version=version, client=_client(meta.get(CLIENT_KEY)))
    else:
        speaker = peer
    if method == "tools/call":
        return _called(id, params, meta, speaker), peer
    return _listed(id, method, speaker.version), peer


def _initialized(id: str | int, params: Message) -> tuple[Message, Peer]:
    """Agree on a version that both know: the client's, else our newest of those with `initialize`."""
    wanted = params.get("protocolVersion")
    if not isinstance(wanted, str):
        return error(id, INVALID_PARAMS, "initialize needs a protocolVersion"), Peer()
    peer = Peer(version=wanted if wanted in GREETED else GREETED[-1], client=_client(params.get("clientInfo")))
    content = {
        "protocolVersion": peer.version,
        "capabilities": CAPABILITIES,
        "serverInfo": SERVER,
        "instructions": INSTRUCTIONS,
    }
    return _result(id, content, version=peer.version), peer


def _listed(id: str | int, method: str, version: str) -> Message:
    if method == "tools/list":
        return _result(id, {"tools": list(TOOLS)}, version=version, lasting=True)
    if method == "server/discover":
        content = {"supportedVersions": list(STATELESS), "capabilities": CAPABILITIES, "instructions": INSTRUCTIONS}
        return _result(id, content, version=STATELESS[-1], lasting=True)
    if method in LISTS:
        return _result(id, {LISTS[method]: []}, version=version, lasting=True)
    if method == "ping":
        return _result(id, {}, version=version)
    return error(id, NO_METHOD, f"no method {method[:80]} here")


def _called(id: str | int, params: Message, meta: Message, speaker: Peer) -> Message | Call:
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        return error(id, INVALID_PARAMS, "tools/call needs the name of a tool")
    if arguments is not None and not isinstance(arguments, dict):
        return error(id, INVALID_PARAMS, "arguments must be an object")
    codex = meta.get(CODEX_KEY)
    codex = codex if isinstance(codex, dict) else {}
    session = text_of(codex, "session_id")
    call = Call(
        id=id,
        tool=name,
        arguments=arguments or {},
        peer=speaker,
        tool_use=text_of(meta, TOOL_USE_KEY),
        session=session,
        inner=text_of(codex, "thread_id") not in ("", session),
    )
    return call if name in BY_NAME else result(call, unknown(name), failed=True)


def _result(id: str | int, content: Message, *, version: str, lasting: bool = False) -> Message:
    if version in STATELESS:
        kept = {"ttlMs": FRESH_MS, "cacheScope": "private"} if lasting else {}
        content = {"resultType": "complete", **content, **kept, "_meta": {SERVER_KEY: SERVER}}
    return {"jsonrpc": "2.0", "id": id, "result": content}


def _client(info: Any) -> Message:
    """Return name and version of a client, and nothing else of what it sends."""
    fields = info if isinstance(info, dict) else {}
    return {name: text[:80] for name in ("name", "version") if isinstance(text := fields.get(name), str)}
