"""Copilot CLI: flat `additionalContext`, camelCase fields; events in PascalCase send others, and are not registered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foreword.agents import HookInput, dict_of, exit_of, find, read_input, text_of
from foreword.agents.setup import Entry, InstallTarget, OwnedFile, Setup, json_file


def parse(payload: Mapping[str, Any]) -> HookInput:
    stamp = payload.get("timestamp")
    id = str(stamp) if isinstance(stamp, (int, str)) else ""
    found = read_input(payload, dict_of(payload.get("toolArgs")), session="sessionId")
    return found._replace(id=id, inner="parentAgentId" in payload)


def tool_use(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Read a tool use: the kind of a result says whether the tool worked, its last line how the command ended."""
    result = dict_of(payload.get("toolResult"))
    kind, error, output = text_of(result, "resultType"), text_of(payload, "error"), text_of(result, "textResultForLlm")
    ended = exit_of(output, " completed with exit code ")
    if ended is not None:
        output = output.rpartition("<")[0].rstrip()
    return {
        "tool": text_of(payload, "toolName"),
        "input": dict_of(payload.get("toolArgs")),
        "output": output or error,
        "result": result,
        "failed": bool(error or ended) or kind != "success" if error or kind or ended is not None else None,
    }


def answer(_event: str, text: str) -> Mapping[str, Any]:
    return {"additionalContext": text}


def setup(target: InstallTarget) -> Setup:
    """Set up hooks in a file of ours, beside those of others, and the MCP server in its list of them."""
    folder = target.folder("COPILOT_HOME", ".copilot")
    hooks = {
        event: [{"type": "command", "bash": target.command("copilot", event), "timeoutSec": 5}]
        for event in find("copilot").events
    }
    server = {"type": "local", "command": str(target.mcp), "args": [], "tools": ["*"]}
    return Setup(
        binary="copilot",
        folder=folder,
        changes=(
            OwnedFile(folder / "hooks" / "foreword.json", json_file({"version": 1, "hooks": hooks})),
            Entry(folder / "mcp-config.json", ("mcpServers", "foreword"), server),
        ),
        transcripts=("session-state/*/events.jsonl",),
    )
