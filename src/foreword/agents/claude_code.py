"""Claude Code: nested `hookSpecificOutput`; an agent_id marks a sub-agent; compaction's own has an empty type."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foreword import __version__
from foreword.agents import HookInput, dict_of, parse_claude_shape, read_tool_use, text_of
from foreword.agents.setup import AgentResidue, Change, Entry, InstallTarget, OwnedFile, Setup, json_file, read_asset


def parse(payload: Mapping[str, Any]) -> HookInput:
    return parse_claude_shape(payload, id="tool_use_id prompt_id")


def tool_use(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Read a tool use: a failure is an event of its own; how a stopped or background call ends is not known."""
    fields = dict_of(payload.get("tool_response"))
    failed: bool | None = "error" in payload or fields.get("interrupted") is True
    if payload.get("is_interrupt") is True or "backgroundTaskId" in fields:
        failed = None
    error = text_of(payload, "error")
    head, _, rest = error.partition("\n")
    return read_tool_use(payload, output=rest if rest and head.startswith("Exit code ") else error, failed=failed)


def follow_up(text: str) -> Mapping[str, Any]:
    return {"decision": "block", "reason": text}  # it becomes a message, and one more turn follows


WITH_SUMMARY = (2, 1, 325)  # the oldest version that was seen to send the summary of a compaction
NEW = (2, 1, 197)  # the first version that has plugins of our kind, hooks in the background and hints before a tool
COMMANDS = ("remember", "search", "handoff")
HINTED = ("Bash", "PowerShell", "Edit", "MultiEdit", "Write", "NotebookEdit")  # tools that a hint may precede
OUR_TOOLS = ("mcp__foreword__.*", "mcp__plugin_foreword_foreword__.*")
MANAGED = ("/etc/claude-code/managed-settings.json", "/Library/Application Support/ClaudeCode/managed-settings.json")
SWITCHES = (
    *((file, "disableAllHooks", True) for file in ("settings.json", "settings.local.json", *MANAGED)),
    *((file, "allowManagedHooksOnly", True) for file in ("settings.json", *MANAGED)),
)
ABOUT = "Memory for coding agents: what mattered in earlier sessions, in front of the next prompt."


def setup(target: InstallTarget) -> Setup:
    """Set it up by entries of its settings, or by a plugin in a marketplace of our own."""
    folder = target.folder("CLAUDE_CONFIG_DIR", ".claude")
    too_old = bool(target.version) and not _at_least(target.version, NEW)
    after: tuple[str, ...] = ()
    if target.plugin and too_old:
        after = (f"Claude Code {target.version} is too old for our plugin: its settings are used instead.",)
    elif target.plugin and not _at_least(target.version, WITH_SUMMARY):
        after = ("Start Claude Code twice: before 2.1.325 it loads the hooks of a new plugin at its second start.",)
    # Inside a folder that was moved, beside one that was not.
    state = target.folder("CLAUDE_CONFIG_DIR") / ".claude.json"
    changes = _plugin if target.plugin and not too_old else _settings
    # Its counts of how often our skill and commands were used; the skill has two names, one in each form.
    names = ("foreword", "foreword:foreword", *(f"foreword:{name}" for name in COMMANDS))
    counts = tuple(AgentResidue(state, ("skillUsage", name)) for name in names)
    return Setup(
        binary="claude",
        folder=folder,
        changes=(*changes(target, folder, state), *counts),
        after=after,
        switches=SWITCHES,
        transcripts=("projects/*/*.jsonl",),
    )


def _settings(target: InstallTarget, folder: Path, state: Path) -> tuple[Change, ...]:
    hooks = _hooks(target).items()
    return (
        *(Entry(folder / "settings.json", ("hooks", event), each, append=True) for event, each in hooks),
        Entry(state, ("mcpServers", "foreword"), _server(target)),
        *_assets(folder / "skills" / "foreword", folder / "commands" / "foreword"),
    )


def _plugin(target: InstallTarget, folder: Path, state: Path) -> tuple[Change, ...]:
    """List the files of a marketplace, two entries of the settings, and what Claude Code writes down of a plugin.

    Its own `plugin install` would rewrite the user's settings in its own form, and copy the plugin: a new one of the
    same version would never be seen. Two entries do the same, and the plugin is read where it lies. Nor is its
    `plugin uninstall` run: any start of it writes into the home, and may look for a network.
    """
    settings, lists = folder / "settings.json", folder / "plugins"
    market = target.hook.parent.parent / "claude"
    root = market / "plugins" / "foreword"
    owner, source = {"name": "Foreword"}, {"source": "directory", "path": str(market)}
    listed = {"name": "foreword", "source": "./plugins/foreword", "description": ABOUT}
    manifest = {"name": "foreword", "version": __version__, "description": ABOUT, "author": owner, "license": "MIT"}
    marketplace = {"name": "foreword", "owner": owner, "metadata": {"description": ABOUT}, "plugins": [listed]}
    hooks = {"description": ABOUT, "hooks": {event: [each] for event, each in _hooks(target).items()}}
    return (
        OwnedFile(market / ".claude-plugin" / "marketplace.json", json_file(marketplace)),
        OwnedFile(root / ".claude-plugin" / "plugin.json", json_file(manifest)),
        OwnedFile(root / "hooks" / "hooks.json", json_file(hooks)),
        OwnedFile(root / ".mcp.json", json_file({"mcpServers": {"foreword": _server(target)}})),
        *_assets(root / "skills" / "foreword", root / "commands"),
        AgentResidue(lists / "known_marketplaces.json", ("foreword",)),
        AgentResidue(lists / "installed_plugins.json", ("plugins", "foreword@foreword")),
        AgentResidue(lists / "cache" / "foreword"),
        AgentResidue(lists / "data" / "foreword-foreword"),
        AgentResidue(lists / "marketplaces"),
        AgentResidue(state, ("pluginUsage", "foreword@foreword")),
        Entry(settings, ("extraKnownMarketplaces", "foreword"), {"source": source}),
        Entry(settings, ("enabledPlugins", "foreword@foreword"), True),
    )


def _assets(skill: Path, commands: Path) -> tuple[Change, ...]:
    return (
        OwnedFile(skill / "SKILL.md", read_asset("claude/SKILL.md")),
        *(OwnedFile(commands / f"{name}.md", read_asset(f"claude/commands/{name}.md")) for name in COMMANDS),
    )


def _server(target: InstallTarget) -> dict[str, Any]:
    return {"type": "stdio", "command": str(target.mcp), "args": [], "env": {}}


def _hooks(target: InstallTarget) -> dict[str, dict[str, Any]]:
    """Return each event with what is run then; old versions drop a whole file that names an unknown event."""
    is_new = _at_least(target.version, NEW)
    # Before our own tools, because the id of the call shows the worker whose session it is; before commands and edits
    # for a hint. Claude Code searches a name for a pattern: without the anchors `Write` would find `TodoWrite`.
    matchers = {
        "PreToolUse": f"^(?:{'|'.join((*(HINTED if is_new else ()), *OUR_TOOLS))})$",
        "PostToolUse": "*",
        "PostToolUseFailure": "*",
    }
    # Not waited for by the agent. At its exit Claude Code ends what still runs so: what comes last stays as it is.
    in_background = ("PostToolUse", "SubagentStop", "PreCompact", "PostCompact") if is_new else ()
    events = ["SessionStart", "UserPromptSubmit", *matchers, "Stop", "SubagentStop", "PreCompact", "SessionEnd"]
    if not is_new:
        events.remove("PostToolUseFailure")
    if _at_least(target.version, WITH_SUMMARY):
        events.insert(-1, "PostCompact")
    hooks: dict[str, dict[str, Any]] = {}
    for event in events:
        hook: dict[str, Any] = {"type": "command", "command": target.command("claude-code", event), "timeout": 5}
        hook |= {"async": True} if event in in_background else {}
        hooks[event] = {**({"matcher": matchers[event]} if event in matchers else {}), "hooks": [hook]}
    return hooks


def _at_least(version: str, wanted: tuple[int, ...]) -> bool:
    """Return whether a version is known and that new; the client writes `2.1.325 (Claude Code)`."""
    numbers = version.partition(" ")[0].split(".")
    return all(each.isdecimal() for each in numbers) and tuple(int(each) for each in numbers) >= wanted
