"""Claude Code: nested `hookSpecificOutput`; an agent_id marks a sub-agent; compaction's own has an empty type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from foreword.agents import AgentAdapter, HookInput, dict_of, parse_claude_shape, text_of
from foreword.models import TOOL_BEGIN, Cap

if TYPE_CHECKING:  # 5 ms that only `install` needs
    from foreword.agents.setup import Change, Place, Setup


def parse(payload: Mapping[str, Any]) -> HookInput:
    return parse_claude_shape(payload, id_fields=("tool_use_id", "prompt_id"))


def tool_use(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Read a tool use: a failure is an event of its own; how a stopped or background call ends is not known."""
    result = payload.get("tool_response")
    fields = dict_of(result)
    failed: bool | None = "error" in payload or fields.get("interrupted") is True
    if payload.get("is_interrupt") is True or "backgroundTaskId" in fields:
        failed = None
    error = text_of(payload, "error")
    head, _, rest = error.partition("\n")
    return {
        "tool": text_of(payload, "tool_name"),
        "input": dict_of(payload.get("tool_input")),
        "output": rest if rest and head.startswith("Exit code ") else error,
        "result": result,
        "failed": failed,
    }


def answer(event: str, text: str) -> Mapping[str, Any]:
    # A missing or wrong hookEventName drops the whole context silently.
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def follow_up(text: str) -> Mapping[str, Any]:
    return {"decision": "block", "reason": text}  # it becomes a message, and one more turn follows


def setup(place: Place) -> Setup:
    """Set it up by entries of its settings, or by a plugin in a marketplace of our own."""
    from foreword.agents.setup import Setup

    folder = place.folder("CLAUDE_CONFIG_DIR", ".claude")
    too_old = bool(place.version) and not _at_least(place.version, (2, 1, 197))
    after: tuple[str, ...] = ()
    if place.plugin and too_old:
        after = (f"Claude Code {place.version} is too old for our plugin: its settings are used instead.",)
    elif place.plugin and not _at_least(place.version, (2, 1, 325)):
        after = ("Start Claude Code twice: before 2.1.325 it loads the hooks of a new plugin at its second start.",)
    return Setup(
        binary="claude",
        folder=folder,
        changes=_plugin(place, folder) if place.plugin and not too_old else _settings(place, folder),
        after=after,
        switches=_switches(),
        transcripts=("projects/*/*.jsonl",),
    )


def _settings(place: Place, folder: Any) -> tuple[Change, ...]:
    from foreword.agents.setup import Entry, OwnedFile, shipped

    hooks = (
        Entry(folder / "settings.json", ("hooks", event), each, append=True) for event, each in _hooks(place).items()
    )
    texts = {"skills/foreword/SKILL.md": "SKILL.md"}
    texts |= {f"commands/foreword/{name}.md": f"commands/{name}.md" for name in _commands()}
    return (
        *hooks,
        Entry(_state(place), ("mcpServers", "foreword"), _server(place)),
        *(OwnedFile(folder / name, shipped(f"claude/{text}")) for name, text in texts.items()),
        *_counted(place),
    )


def _plugin(place: Place, folder: Any) -> tuple[Change, ...]:
    from foreword import __version__
    from foreword.agents.setup import Entry, OwnedFile, shipped, written

    settings = folder / "settings.json"
    market = place.hook.parent.parent / "claude"
    root = market / "plugins" / "foreword"
    owner = {"name": "Foreword"}
    about = "Memory for coding agents: what mattered in earlier sessions, in front of the next prompt."
    listed = {"name": "foreword", "source": "./plugins/foreword", "description": about}
    manifest = {"name": "foreword", "version": __version__, "description": about, "author": owner, "license": "MIT"}
    marketplace = {"name": "foreword", "owner": owner, "metadata": {"description": about}, "plugins": [listed]}
    hooks = {"description": about, "hooks": {event: [each] for event, each in _hooks(place).items()}}
    declared = {"source": {"source": "directory", "path": str(market)}}
    return (
        OwnedFile(market / ".claude-plugin" / "marketplace.json", written(marketplace)),
        OwnedFile(root / ".claude-plugin" / "plugin.json", written(manifest)),
        OwnedFile(root / "hooks" / "hooks.json", written(hooks)),
        OwnedFile(root / ".mcp.json", written({"mcpServers": {"foreword": _server(place)}})),
        OwnedFile(root / "skills" / "foreword" / "SKILL.md", shipped("claude/SKILL.md")),
        *(OwnedFile(root / "commands" / f"{name}.md", shipped(f"claude/commands/{name}.md")) for name in _commands()),
        *_registered(place, folder),
        Entry(settings, ("extraKnownMarketplaces", "foreword"), declared),
        Entry(settings, ("enabledPlugins", "foreword@foreword"), True),
    )


def _registered(place: Place, folder: Any) -> tuple[Change, ...]:
    """List what Claude Code writes down of a plugin when it first loads it.

    Its own `plugin install` would rewrite the user's settings in its own form, and copy the plugin: a new one of the
    same version would never be seen. Two entries do the same, and the plugin is read where it lies. Nor is its
    `plugin uninstall` run: any start of it writes into the home, and may look for a network.
    """
    from foreword.agents.setup import AgentResidue

    lists = folder / "plugins"
    return (
        AgentResidue(lists / "known_marketplaces.json", ("foreword",)),
        AgentResidue(lists / "installed_plugins.json", ("plugins", "foreword@foreword")),
        AgentResidue(lists / "cache" / "foreword"),
        AgentResidue(lists / "data" / "foreword-foreword"),
        AgentResidue(lists / "marketplaces"),
        AgentResidue(_state(place), ("pluginUsage", "foreword@foreword")),
        *_counted(place),
    )


def _counted(place: Place) -> tuple[Change, ...]:
    """List its counts of how often our skill and commands were used; the skill has two names, one in each form."""
    from foreword.agents.setup import AgentResidue

    names = ("foreword", "foreword:foreword", *(f"foreword:{name}" for name in _commands()))
    return tuple(AgentResidue(_state(place), ("skillUsage", name)) for name in names)


def _state(place: Place) -> Any:
    # Inside a folder that was moved, beside one that was not.
    return place.folder("CLAUDE_CONFIG_DIR") / ".claude.json"


def _switches() -> tuple[tuple[str, str, bool], ...]:
    managed = (
        "/etc/claude-code/managed-settings.json",
        "/Library/Application Support/ClaudeCode/managed-settings.json",
    )
    return (
        *((file, "disableAllHooks", True) for file in ("settings.json", "settings.local.json", *managed)),
        *((file, "allowManagedHooksOnly", True) for file in ("settings.json", *managed)),
    )


def _commands() -> tuple[str, ...]:
    return "remember", "search", "handoff"


def _server(place: Place) -> dict[str, Any]:
    return {"type": "stdio", "command": str(place.mcp), "args": [], "env": {}}


def _hooks(place: Place) -> dict[str, dict[str, Any]]:
    """Return each event with what is run then; old versions drop a whole file that names an unknown event."""
    # Not waited for by the agent. At its exit Claude Code ends what still runs so: what comes last stays as it is.
    in_background = ("PostToolUse", "SubagentStop", "PreCompact", "PostCompact")
    behind = {"async": True} if _at_least(place.version, (2, 1, 197)) else {}
    # Before our own tools, because the id of the call shows the worker whose session it is; before commands and edits
    # for a hint. Versions that drop the answer are not made to wait for it.
    tools = (*(HINTED if _at_least(place.version, (2, 1, 197)) else ()), *OUR_TOOLS)
    # Claude Code searches a name for a pattern with such signs: without the anchors `Write` would find `TodoWrite`.
    before = {"matcher": f"^(?:{'|'.join(tools)})$"}
    matchers: dict[str, dict[str, Any]] = {
        "SessionStart": {},
        "UserPromptSubmit": {},
        "PreToolUse": before,
        "PostToolUse": {"matcher": "*"},
        **({"PostToolUseFailure": {"matcher": "*"}} if _at_least(place.version, (2, 0, 76)) else {}),
        "Stop": {},
        "SubagentStop": {},
        "PreCompact": {},
        # It brings the summary; the oldest version that was seen to have it.
        **({"PostCompact": {}} if _at_least(place.version, (2, 1, 325)) else {}),
        "SessionEnd": {},
    }
    hooks = {
        event: {"type": "command", "command": place.command("claude-code", event), "timeout": 5} for event in matchers
    }
    return {
        event: {**matcher, "hooks": [{**hooks[event], **(behind if event in in_background else {})}]}
        for event, matcher in matchers.items()
    }


HINTED = ("Bash", "PowerShell", "Edit", "MultiEdit", "Write", "NotebookEdit")  # tools that a hint may precede
OUR_TOOLS = ("mcp__foreword__.*", "mcp__plugin_foreword_foreword__.*")


def _at_least(version: str, wanted: tuple[int, ...]) -> bool:
    """Tell whether a version is known and that new; the client writes `2.1.325 (Claude Code)`."""
    numbers = version.partition(" ")[0].split(".")
    return all(each.isdecimal() for each in numbers) and tuple(int(each) for each in numbers) >= wanted


ADAPTER = AgentAdapter(
    name="claude-code",
    events={
        "SessionStart": "session_start",
        "UserPromptSubmit": "prompt",
        "PreToolUse": TOOL_BEGIN,
        "PostToolUse": "tool",
        "PostToolUseFailure": "tool_failure",
        "Stop": "stop",
        "PreCompact": "compaction",
        "PostCompact": "compaction",
        "SessionEnd": "session_end",
    },
    triggers={
        "SessionStart": "session_start",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "tool",
        "PostToolUseFailure": "tool",
    },
    parse=parse,
    answer=answer,
    follow_up=follow_up,
    tool_use=tool_use,
    setup=setup,
    session_variables=("CLAUDE_CODE_SESSION_ID",),
    project_variable="CLAUDE_PROJECT_DIR",
    cap=Cap(10_000, "utf-16"),  # of the text alone; one more, and the agent gets a preview and the name of a file
)
