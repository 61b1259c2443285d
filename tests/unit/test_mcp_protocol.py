"""Every message of an MCP client gets what the protocol promises; what is offered is whole and says what it is for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

import foreword
from foreword.encoding import dumps
from foreword.mcp import __main__ as protocol
from foreword.mcp.__main__ import VERSIONS, Call, reply_to
from foreword.models import KINDS
from foreword.worker.mcp_schema import INSTRUCTIONS, MOST_INSTRUCTIONS, TOOLS, WRITTEN
from foreword.worker.mcp_tools import TOOLS as DONE
from tests.tables import table

CLIENT = {"name": "somebody", "version": "1"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
METHODS = (
    "initialize",
    "tools/list",
    "tools/call",
    "ping",
    "prompts/list",
    "notifications/cancelled",
    "notifications/initialized",
    "nonsense",
)


def ask(method: str, params: Any = None, *, id: Any = 7) -> Any:
    message = {"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params is not None else {})}
    return reply_to(message, CLIENT)[0]


@table("version", [*VERSIONS, "1.0", "2030-01-01", "2026-07-28", ""])
def test_a_version_that_is_known_is_spoken_and_else_the_newest(version: str):
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
    reply, client = reply_to({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}, {})
    assert client == CLIENT
    assert reply["result"]["protocolVersion"] == (version if version in VERSIONS else VERSIONS[-1])
    assert reply["result"]["instructions"] == INSTRUCTIONS
    assert reply["result"]["serverInfo"]["name"] == "foreword"


@table(
    ("message", "code"),
    [
        ("text", protocol.INVALID_REQUEST),
        (3, protocol.INVALID_REQUEST),
        ({}, protocol.INVALID_REQUEST),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, protocol.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, protocol.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, protocol.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, protocol.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 1, "method": 3}, protocol.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, protocol.INVALID_PARAMS),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, protocol.INVALID_PARAMS),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 1}}, protocol.INVALID_PARAMS),
        (
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "memory_search", "arguments": [1]},
            },
            protocol.INVALID_PARAMS,
        ),
        ({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}, protocol.INVALID_PARAMS),
        ({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {}}, protocol.NO_METHOD),
        ({"jsonrpc": "2.0", "id": 1, "method": "nonsense"}, protocol.NO_METHOD),
        ({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}, protocol.NO_METHOD),
    ],
)
def test_what_is_no_request_is_told_so_by_its_code(message: Any, code: int):
    reply, _ = reply_to(message, {})
    assert reply["error"]["code"] == code
    id = message.get("id") if isinstance(message, dict) else None
    assert reply["id"] == (id if isinstance(id, int) and not isinstance(id, bool) else None)


@table("method", ["prompts/list", "resources/list", "resources/templates/list"])
def test_what_we_have_none_of_is_an_empty_list(method: str):
    assert [] in ask(method)["result"].values()


def test_calls_tools_and_instructions_are_what_they_say():
    # A ping is answered.
    assert ask("ping") == {"jsonrpc": "2.0", "id": 7, "result": {}}
    # A call knows whose it is as far as its client tells.
    meta = {
        protocol.TOOL_USE_KEY: "toolu_1",
        protocol.CODEX_KEY: {"session_id": "s1", "thread_id": "t2"},
        "progressToken": 3,
    }
    call = ask("tools/call", {"name": "memory_search", "arguments": {"query": "x"}, "_meta": meta})
    assert (call.tool_use, call.session, call.inner) == ("toolu_1", "s1", True)
    assert not ask("tools/call", {"name": "memory_context"}).inner
    # An unknown tool is an error that the model reads.
    reply = ask("tools/call", {"name": "memory_erase", "arguments": {}})["result"]
    assert reply["isError"]
    assert "memory_search" in reply["content"][0]["text"]
    # Instructions fit what claude code takes.
    assert len(INSTRUCTIONS) <= MOST_INSTRUCTIONS
    for tool in TOOLS:
        assert tool["name"] in INSTRUCTIONS
    # What is offered is what there is.
    assert [tool["name"] for tool in TOOLS] == list(DONE)
    assert set(WRITTEN) < set(KINDS)
    directly = [tool["name"] for tool in TOOLS if tool.get("_meta", {}).get("anthropic/alwaysLoad")]
    assert directly == ["memory_search", "memory_get"]


@given(JSON, st.sampled_from(METHODS))
def test_a_notification_is_never_answered(params: Any, method: str):
    reply, _ = reply_to({"jsonrpc": "2.0", "method": method, "params": params}, CLIENT)
    assert reply is None


@given(JSON | st.fixed_dictionaries({}, optional={"id": JSON, "result": JSON, "error": JSON}))
def test_any_value_is_answered_at_most_once_and_never_raises(message: Any):
    reply, after = reply_to(message, CLIENT)
    assert after == CLIENT
    if isinstance(reply, dict):
        assert json.loads(dumps(reply)) == json.loads(json.dumps(reply))


@given(JSON, st.sampled_from(METHODS), st.integers() | st.text())
def test_any_request_gets_one_answer_with_its_id_or_becomes_a_call(params: Any, method: str, id: Any):
    reply, _ = reply_to({"jsonrpc": "2.0", "id": id, "method": method, "params": params}, CLIENT)
    if isinstance(reply, Call):
        assert reply.id == id
    else:
        assert reply["id"] == id
        assert ("result" in reply) != ("error" in reply)


@table("tool", TOOLS)
def test_every_tool_has_a_whole_schema_and_says_when_to_use_it(tool: dict[str, Any]):
    jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
    assert tool["inputSchema"]["additionalProperties"] is False
    assert all("description" in field for field in tool["inputSchema"]["properties"].values())
    assert "Example: {" in tool["description"]
    example = tool["description"].rpartition("Example: ")[2].partition(" or ")[0]
    jsonschema.validate(json.loads(example), tool["inputSchema"])


def test_starting_imports_nothing_heavy():
    """The server's start is its cost: a client waits for it at the start of every session."""
    heavy = {"apsw", "typer", "rich", "tree_sitter", "sqlite3", "http", "asyncio"}
    code = (
        "import sys; sys.path.append(sys.argv[1]); before = set(sys.modules); import foreword.mcp.__main__;"
        "print(*sorted(set(sys.modules) - before))"
    )
    package = str(Path(foreword.__file__).parent.parent)
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, package], check=True, capture_output=True, text=True, timeout=30
    )
    assert not set(ran.stdout.split()) & heavy
