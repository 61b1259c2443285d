"""Cursor: flat snake_case JSON; the conversation is the session, the first workspace root the folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foreword.agents import HookInput, dict_of, find, read_input, read_tool_use, text_of
from foreword.agents.setup import Entry, InstallTarget, Setup


def parse(payload: Mapping[str, Any]) -> HookInput:
    roots = payload.get("workspace_roots")
    first = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""
    names = {"session": "conversation_id session_id", "answer": "text", "id": "tool_use_id generation_id", "source": ""}
    found = read_input(payload, payload.get("tool_input"), **names)
    return found._replace(cwd=first) if first else found


def tool_use(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Read a tool use: the result is JSON text, with the exit code of a command; a failure is an event of its own."""
    result = dict_of(payload.get("tool_output"))
    error, code = text_of(payload, "error_message"), result.get("exitCode")
    failed: bool | None = "error_message" in payload or "failure_type" in payload or (code or 0) != 0
    if payload.get("is_interrupt") is True or payload.get("failure_type") == "permission_denied":
        failed = None
    return read_tool_use(payload, output=error, result=result or payload.get("tool_output"), failed=failed)


def answer(event: str, text: str) -> Mapping[str, Any]:
    # Without this an answer might count as a refusal, and the prompt would be lost.
    goes_on = {"continue": True} if event == "beforeSubmitPrompt" else {}
    return {**goes_on, "additional_context": text}


def setup(target: InstallTarget) -> Setup:
    """Set up hooks and the MCP server, each in its file; Cursor wants a version in the first."""
    folder = target.user / ".cursor"
    hooks = folder / "hooks.json"
    return Setup(
        binary="cursor",
        folder=folder,
        changes=(
            Entry(hooks, ("version",), 1, default=True),
            *(
                Entry(hooks, ("hooks", event), {"command": target.command("cursor", event), "timeout": 5}, append=True)
                for event in find("cursor").events
            ),
            Entry(folder / "mcp.json", ("mcpServers", "foreword"), {"command": str(target.mcp), "args": []}),
        ),
        after=("Restart Cursor, then look at Settings > Hooks and Settings > MCP: both should name foreword.",),
    )
