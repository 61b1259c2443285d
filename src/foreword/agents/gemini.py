"""Gemini CLI: nested JSON only; the first prompt carries our own session-start text, which is not the user's.

PreCompress comes before every model call, whether or not anything is compressed: it is no sign of a compaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foreword.agents import HookInput, dict_of, exit_of, find, read_input, read_tool_use, text_of
from foreword.agents.setup import Entry, InstallTarget, Setup


def parse(payload: Mapping[str, Any]) -> HookInput:
    """Read a payload; before a prompt Gemini puts `<hook_context>`, in which it escapes every `<`."""
    names = {"session": "session_id", "answer": "prompt_response", "id": "timestamp"}
    found = read_input(payload, payload.get("tool_input"), **names)
    prompt = found.prompt
    while prompt.startswith("<hook_context>"):
        prompt = prompt.partition("</hook_context>")[2].lstrip()  # none of it where the end was cut off
    return found._replace(prompt=prompt)


def tool_use(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Read a tool use: an error is a field; a failed command has a line `Exit Code: N`, one that worked has none."""
    result = dict_of(payload.get("tool_response"))
    content = result.get("llmContent")
    parts = [
        part if isinstance(part, str) else text_of(dict_of(part), "text")
        for part in (content if isinstance(content, list) else [content])
    ]
    output = "\n".join(parts).removeprefix("<untrusted_context>\n").removesuffix("\n</untrusted_context>")
    failed = bool(result.get("error")) or bool(exit_of(output, "\nExit Code: ")) or "\nSignal: " in output
    return read_tool_use(payload, output=_own_output(output), result={**result, "llmContent": ""}, failed=failed)


def _own_output(text: str) -> str:
    """Return what a command wrote, without what Gemini writes around it."""
    if not text.startswith("Output: "):
        return text
    for mark in ("\nProcess Group PGID: ", "\nExit Code: "):
        head, found, tail = text.rpartition(mark)
        text = head if found and "\n" not in tail else text
    return text[8:].removeprefix("(empty)").lstrip("\n")


def setup(target: InstallTarget) -> Setup:
    """Set up hooks and the MCP server, both in settings.json; its timeouts are milliseconds."""
    folder = target.folder("GEMINI_CLI_HOME") / ".gemini"
    settings = folder / "settings.json"
    return Setup(
        binary="gemini",
        folder=folder,
        changes=(
            *(Entry(settings, ("hooks", event), _hook(target, event), append=True) for event in find("gemini").events),
            Entry(settings, ("mcpServers", "foreword"), {"command": str(target.mcp), "args": []}),
        ),
        switches=tuple(
            (file, "hooksConfig.enabled", False) for file in ("settings.json", "/etc/gemini-cli/settings.json")
        ),
        transcripts=("tmp/*/chats/*.json*",),
    )


def _hook(target: InstallTarget, event: str) -> dict[str, Any]:
    run = {"name": "foreword", "type": "command", "command": target.command("gemini", event), "timeout": 5000}
    return {"matcher": "*", "hooks": [run]}
