"""Codex: Claude's shape, but an unknown key fails the hook; every turn has an id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foreword.agents import HookInput, exit_of, find, parse_claude_shape, read_tool_use
from foreword.agents.setup import Block, Entry, InstallTarget, Setup, json_string


def parse(payload: Mapping[str, Any]) -> HookInput:
    return parse_claude_shape(payload, id="tool_use_id turn_id")


def tool_use(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Read a tool use: a patch says how it ended, a command only in the rollout."""
    result = payload.get("tool_response")
    text = result if isinstance(result, str) and result.startswith("Exit code: ") else ""
    code = exit_of(text.partition("\n")[0], "Exit code: ")
    return read_tool_use(payload, output=text.partition("\nOutput:\n")[2], failed=None if code is None else code != 0)


def setup(target: InstallTarget) -> Setup:
    """Set up hooks in a file of their own, the MCP server in config.toml; an unknown key would fail a hook."""
    folder = target.folder("CODEX_HOME", ".codex")
    hooks = folder / "hooks.json"
    return Setup(
        binary="codex",
        folder=folder,
        changes=(
            *(Entry(hooks, ("hooks", event), _hook(target, event), append=True) for event in find("codex").events),
            Block(folder / "config.toml", f"[mcp_servers.foreword]\ncommand = {json_string(str(target.mcp))}\n"),
        ),
        after=("In Codex, open /hooks and trust Foreword's: until then Codex skips them silently.",),
        switches=(("config.toml", "features.hooks", False),),
        transcripts=("sessions/**/*.jsonl",),
    )


def _hook(target: InstallTarget, event: str) -> dict[str, Any]:
    # Codex gives the end of a session three seconds, whatever the timeout says.
    seconds = 3 if event == "SessionEnd" else 5
    run = {"type": "command", "command": target.command("codex", event), "timeout": seconds}
    return {**({"matcher": "*"} if event in ("SessionStart", "PostToolUse") else {}), "hooks": [run]}
