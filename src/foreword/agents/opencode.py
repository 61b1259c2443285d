"""OpenCode: a plugin inside the agent calls the worker; its answer is plain text in a field.

A payload is what OpenCode gave the plugin's hook, and what only the plugin knows beside it:
`{"directory": ..., "parentID"?: ..., "input": {...}, "output": {...}}`. The `input` of a bus event is the event itself.
`parentID` is the session's, which OpenCode sends once, when it is created: a session with a parent is a sub-agent's.
Where there is no `input`, the same fields are read from the payload itself. A tool that failed has no hook in OpenCode:
the plugin sends its `message.part.updated` with status `error` as `tool.execute.error`. A session that the plugin did
not see begin is sent once, at its first request, as `experimental.chat.system.transform` with the source `resume`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foreword.agents import HookInput, dict_of, files_of, text_of
from foreword.agents.setup import Entry, InstallTarget, OwnedFile, Setup, json_string, read_asset
from foreword.encoding import loads
from foreword.errors import BadPayload


def parse(payload: Mapping[str, Any]) -> HookInput:
    received, output = _ends(payload)
    event = dict_of(received.get("properties")) or received
    info = dict_of(event.get("info"))
    message = dict_of(output.get("message"))
    model = message.get("model", received.get("model"))
    return HookInput(
        session=text_of(event, "sessionID", "session_id") or text_of(info, "id"),
        cwd=text_of(payload, "directory", "cwd") or text_of(info, "directory"),
        prompt=_typed(output.get("parts")) or text_of(payload, "prompt"),
        answer=text_of(output, "text"),
        source=text_of(payload, "source"),
        model=text_of(dict_of(model), "modelID", "id") or text_of({"": model}, ""),
        id=text_of(received, "callID", "partID", "messageID")
        or text_of(_part(received), "callID")
        or text_of(message, "id")
        or text_of(received, "id"),
        files=files_of(received.get("args") or dict_of(_part(received).get("state")).get("input")),
        inner=bool(text_of(payload, "parentID") or text_of(info, "parentID")),
    )


def tool_use(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Read a tool use: a command has its exit code, none where it took too long; another failed tool is an error."""
    received, result = _ends(payload)
    if part := _part(received):
        state = dict_of(part.get("state"))
        failed = {"output": text_of(state, "error"), "failed": True}
        return {"tool": text_of(part, "tool"), "input": dict_of(state.get("input")), **failed}
    output = text_of(result, "output")
    exit = dict_of(result.get("metadata")).get("exit", 0)
    late = exit is None and "exceeding timeout" in output
    return {
        "tool": text_of(received, "tool"),
        "input": dict_of(received.get("args")),
        "output": output,
        "result": result,
        "failed": exit != 0 if isinstance(exit, int) else late or None,
    }


def _part(received: Mapping[str, Any]) -> Mapping[str, Any]:
    return dict_of(dict_of(received.get("properties")).get("part"))


def _ends(payload: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the input of OpenCode's hook, and the output that the hook may change."""
    received, output = payload.get("input"), payload.get("output")
    return received if isinstance(received, dict) else payload, output if isinstance(output, dict) else payload


def _typed(parts: Any) -> str:
    """Return what the user typed; what plugins and the agent put beside it is synthetic."""
    texts = [
        text_of(part, "text")
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict) and part.get("type") == "text" and not part.get("synthetic")
    ]
    prompt = "\n".join(filter(None, texts))
    try:  # `opencode run` puts words with spaces in quotes
        return str(loads(prompt)) if prompt[:1] == prompt[-1:] == '"' else prompt
    except BadPayload:
        return prompt


def answer(_event: str, text: str) -> Mapping[str, Any]:
    return {"context": text}


def setup(target: InstallTarget) -> Setup:
    """Set up one plugin file, which calls the worker itself, and the MCP server in the settings file that is there."""
    folder = target.folder("XDG_CONFIG_HOME", ".config") / "opencode"
    # The later one first, and each once: a path may be called like the target of the other.
    plugin = read_asset("opencode.js").replace("__HOOK__", json_string(str(target.hook)), 1)
    plugin = plugin.replace("__SOCKET__", json_string(str(target.socket)), 1)
    with_comments = folder / "opencode.jsonc"
    settings = with_comments if with_comments.exists() else folder / "opencode.json"
    server = {"type": "local", "command": [str(target.mcp)], "enabled": True}
    return Setup(
        binary="opencode",
        folder=folder,
        changes=(
            OwnedFile(folder / "plugins" / "foreword.js", plugin),
            Entry(settings, ("mcp", "foreword"), server),
        ),
    )
