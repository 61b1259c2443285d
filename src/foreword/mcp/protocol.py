"""One JSON-RPC message of an MCP client -> its answer, a call for the worker, or silence. Pure.

Two eras of the protocol are spoken, each message judged by itself: up to 2025-11-25 a client greets with `initialize`;
from 2026-07-28 on every request brings its version and its client along, and `server/discover` tells who we are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foreword.agents import host_of, text_of
from foreword.encoding import decoded, loads
from foreword.errors import BadPayload
from foreword.mcp.tools import BY_NAME, INSTRUCTIONS, SERVER, TOOLS, unknown

Message = Mapping[str, Any]

GREETED = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # versions that begin with `initialize`
STATELESS = ("2026-07-28",)  # versions that every request names itself
STRUCTURED_SINCE = "2025-06-18"  # titles, output schemas and structured content; dates compare as texts

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
UNSUPPORTED_VERSION = -32022

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
TOOL_USE_KEY = "claudecode/toolUseId"  # Claude Code's own id of a call, which its hooks tell too
CODEX_KEY = "x-codex-turn-metadata"  # Codex tells with every call whose it is; a thread of its own is a sub-agent's

CAPABILITIES: Message = {"tools": {"listChanged": False}}
LISTS = {"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}
FRESH_MS = 3_600_000  # the list of tools changes with an upgrade, and that is another process


@dataclass(frozen=True)
class Peer:
    """Who speaks, as far as it has said: its version of the protocol, and what it calls itself."""

    version: str = GREETED[-1]
    client: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def takes_data(self) -> bool:
        """Whether answers come as data too. Not to agents: Claude Code and Codex show their model the data instead of
        the text, and with it lose the frame that says what it is; Copilot shows both, at twice the price."""
        return self.version >= STRUCTURED_SINCE and not host_of(self.client.get("name", ""))


@dataclass(frozen=True)
class Call:
    """A tool that is called: what the worker must be asked, and what its answer needs to find its way back."""

    id: str | int
    tool: str
    arguments: Mapping[str, Any]
    peer: Peer
    tool_use: str = ""
    session: str = ""  # where the call itself tells it
    inner: bool = False  # a sub-agent of that session calls


@dataclass(frozen=True)
class Cancelled:
    """The client no longer wants the answer to this request."""

    id: str | int


def heard(line: bytes) -> Any:
    """What a line says; a line that is no JSON raises BadPayload. What is not UTF-8 becomes U+FFFD."""
    return loads(decoded(line))


def answered(message: Any, peer: Peer) -> tuple[Message | Call | Cancelled | None, Peer]:
    """What becomes of a message, and who speaks from now on."""
    if not isinstance(message, dict):
        return error(None, INVALID_REQUEST, "a message is a JSON object"), peer
    method, id = message.get("method"), message.get("id")
    if "method" not in message and ("result" in message or "error" in message):
        return None, peer  # an answer; we asked nothing
    named = isinstance(id, (str, int)) and not isinstance(id, bool)
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str) or ("id" in message and not named):
        said = "a request needs jsonrpc 2.0, a method, and an id that is a text or a whole number"
        return error(id if named else None, INVALID_REQUEST, said), peer
    params = message.get("params")
    if "id" not in message:
        return _noted(method, params), peer
    assert isinstance(id, (str, int))
    if params is not None and not isinstance(params, dict):
        return error(id, INVALID_PARAMS, "params must be an object"), peer
    return _asked(id, method, params or {}, peer)


def result(call: Call, *, text: str, structured: Message | None, failed: bool) -> Message:
    """The answer to a call; what went wrong in a tool is told to the model, which can do better."""
    told: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": failed}
    if structured is not None and not failed and call.peer.takes_data:
        told["structuredContent"] = structured
    return _result(call.id, told, version=call.peer.version)


def error(id: str | int | None, code: int, message: str, data: Message | None = None) -> Message:
    about = {"code": code, "message": message, **({"data": data} if data else {})}
    return {"jsonrpc": "2.0", "id": id, "error": about}


def _noted(method: str, params: Any) -> Cancelled | None:
    """A notification is never answered, whatever it says."""
    if method == "notifications/cancelled" and isinstance(params, dict):
        id = params.get("requestId")
        if isinstance(id, (str, int)) and not isinstance(id, bool):
            return Cancelled(id=id)
    return None


def _asked(id: str | int, method: str, params: Message, peer: Peer) -> tuple[Message | Call | None, Peer]:
    if method == "initialize":
        return _greeted(id, params)
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    if VERSION_KEY in meta:
        version = meta[VERSION_KEY]
        if not isinstance(version, str) or not isinstance(meta.get(CAPABILITIES_KEY), dict):
            said = f"params._meta needs {VERSION_KEY} (a text) and {CAPABILITIES_KEY} (an object)"
            return error(id, INVALID_PARAMS, said), peer
        if version not in STATELESS:
            about = {"supported": [*STATELESS, *GREETED], "requested": version}
            return error(id, UNSUPPORTED_VERSION, f"unsupported protocol version {version[:40]}", about), peer
        # Of this request alone: another one says for itself what it is.
        speaker = Peer(version=version, client=_client(meta.get(CLIENT_KEY)))
    else:
        speaker = peer
    if method == "tools/call":
        return _called(id, params, meta, speaker), peer
    return _told(id, method, speaker), peer


def _greeted(id: str | int, params: Message) -> tuple[Message, Peer]:
    """The version that both know: the client's, else our newest of those that greet."""
    wanted = params.get("protocolVersion")
    if not isinstance(wanted, str):
        return error(id, INVALID_PARAMS, "initialize needs a protocolVersion"), Peer()
    peer = Peer(version=wanted if wanted in GREETED else GREETED[-1], client=_client(params.get("clientInfo")))
    told = {
        "protocolVersion": peer.version,
        "capabilities": CAPABILITIES,
        "serverInfo": SERVER,
        "instructions": INSTRUCTIONS,
    }
    return _result(id, told, version=peer.version), peer


def _told(id: str | int, method: str, speaker: Peer) -> Message:
    version = speaker.version
    if method == "tools/list":
        return _result(id, {"tools": _tools(speaker)}, version=version, lasting=True)
    if method == "server/discover":
        told = {"supportedVersions": list(STATELESS), "capabilities": CAPABILITIES, "instructions": INSTRUCTIONS}
        return _result(id, told, version=STATELESS[-1], lasting=True)
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
    return call if name in BY_NAME else result(call, text=unknown(name), structured=None, failed=True)


def _tools(speaker: Peer) -> list[Message]:
    without: tuple[str, ...] = () if speaker.takes_data else ("outputSchema",)
    if speaker.version < STRUCTURED_SINCE:
        without = ("title", "outputSchema", "_meta")
    return [{name: told for name, told in tool.items() if name not in without} for tool in TOOLS]


def _result(id: str | int, told: Message, *, version: str, lasting: bool = False) -> Message:
    if version in STATELESS:
        kept = {"ttlMs": FRESH_MS, "cacheScope": "private"} if lasting else {}
        told = {"resultType": "complete", **told, **kept, "_meta": {SERVER_KEY: SERVER}}
    return {"jsonrpc": "2.0", "id": id, "result": told}


def _client(given: Any) -> Message:
    """What a client calls itself: name and version, and nothing else that it may say."""
    told = given if isinstance(given, dict) else {}
    return {name: text[:80] for name in ("name", "version") if isinstance(text := told.get(name), str)}


def refused(exc: BadPayload) -> Message:
    return error(None, PARSE_ERROR, str(exc))
