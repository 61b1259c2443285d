"""wiring: what each host is told, file by file; what was seen to work with the real clients stands in docs/agents/."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from foreword.agents import AGENTS, find
from foreword.agents.setup import AgentResidue, Block, Change, Entry, InstallTarget, OwnedFile, Setup, json_string
from tests.tables import table

USER = Path("/home/ada")
OURS = USER / ".foreword"
PLACE = InstallTarget(
    user=USER,
    environ={},
    hook=OURS / "bin" / "foreword-hook",
    mcp=OURS / "bin" / "foreword-mcp",
    socket=OURS / "run" / "worker.sock",
)
MCP = "/home/ada/.foreword/bin/foreword-mcp"
DOCS = Path(__file__).resolve().parents[2] / "docs" / "agents"
TOOLS = ("memory_search", "memory_get", "memory_timeline", "memory_context", "memory_remember", "memory_handoff")


def setup(host: str, **changed: object) -> Setup:
    found = find(host).setup(PLACE._replace(**changed))
    assert isinstance(found, Setup)
    return found


def files(found: Setup) -> dict[str, object]:
    """Each file as it would be where nothing was before: JSON as its value, other texts as they are."""
    made: dict[str, object] = {}
    for change in found.changes:
        if isinstance(change, AgentResidue):
            continue
        name = str(change.file)
        if isinstance(change, Entry):
            inside = made.setdefault(name, {})
            for key in change.keys[:-1]:
                inside = inside.setdefault(key, {})
            if change.append:
                inside.setdefault(change.keys[-1], []).append(change.value)
            else:
                inside[change.keys[-1]] = change.value
        else:
            assert name not in made, "a whole file is written once"
            made[name] = json.loads(change.text) if name.endswith(".json") else change.text
    return made


def run(host: str, event: str) -> str:
    hook = "/home/ada/.foreword/bin/foreword-hook"
    return f"[ ! -x {hook} ] || exec {hook} --host {host} {event}"


def test_codex_is_told_in_hooks_json_and_config_toml():
    def hook(event, seconds=5):
        return {"type": "command", "command": run("codex", event), "timeout": seconds}

    found = setup("codex")
    assert files(found) == {
        "/home/ada/.codex/hooks.json": {
            "hooks": {
                "SessionStart": [{"matcher": "*", "hooks": [hook("SessionStart")]}],
                "UserPromptSubmit": [{"hooks": [hook("UserPromptSubmit")]}],
                "PostToolUse": [{"matcher": "*", "hooks": [hook("PostToolUse")]}],
                "Stop": [{"hooks": [hook("Stop")]}],
                "PreCompact": [{"hooks": [hook("PreCompact")]}],
                "SessionEnd": [{"hooks": [hook("SessionEnd", 3)]}],
            }
        },
        "/home/ada/.codex/config.toml": f'[mcp_servers.foreword]\ncommand = "{MCP}"\n',
    }
    assert "/hooks" in found.after[0]


def test_gemini_is_told_in_its_settings_and_in_milliseconds():
    def hook(event):
        name = {"name": "foreword", "type": "command"}
        return [{"matcher": "*", "hooks": [{**name, "command": run("gemini", event), "timeout": 5000}]}]

    events = ("SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd")
    assert files(setup("gemini")) == {
        "/home/ada/.gemini/settings.json": {
            "hooks": {event: hook(event) for event in events},
            "mcpServers": {"foreword": {"command": MCP, "args": []}},
        }
    }


def test_copilot_is_told_in_a_file_of_ours_and_each_event_in_one_spelling():
    events = "sessionStart userPromptSubmitted postToolUse postToolUseFailure agentStop preCompact sessionEnd"
    hooks = {event: [{"type": "command", "bash": run("copilot", event), "timeoutSec": 5}] for event in events.split()}
    assert files(setup("copilot")) == {
        "/home/ada/.copilot/hooks/foreword.json": {"version": 1, "hooks": hooks},
        "/home/ada/.copilot/mcp-config.json": {
            "mcpServers": {"foreword": {"type": "local", "command": MCP, "args": [], "tools": ["*"]}}
        },
    }


def test_cursor_is_told_in_hooks_json_and_its_own_version_stays():
    found = setup("cursor")
    events = (
        "sessionStart beforeSubmitPrompt postToolUse postToolUseFailure afterAgentResponse stop preCompact sessionEnd"
    )
    assert files(found) == {
        "/home/ada/.cursor/hooks.json": {
            "version": 1,
            "hooks": {event: [{"command": run("cursor", event), "timeout": 5}] for event in events.split()},
        },
        "/home/ada/.cursor/mcp.json": {"mcpServers": {"foreword": {"command": MCP, "args": []}}},
    }
    assert [each.keys for each in found.changes if isinstance(each, Entry) and each.default] == [("version",)]


def test_opencode_is_given_a_plugin_and_the_server_in_the_settings_that_are_there(tmp_path):
    plugin, settings = files(setup("opencode")).items()
    assert settings == (
        "/home/ada/.config/opencode/opencode.json",
        {"mcp": {"foreword": {"type": "local", "command": [MCP], "enabled": True}}},
    )
    assert plugin[0] == "/home/ada/.config/opencode/plugins/foreword.js"
    assert '"/home/ada/.foreword/run/worker.sock"' in plugin[1]
    assert '"/home/ada/.foreword/bin/foreword-hook"' in plugin[1]
    assert "__" not in plugin[1].replace("__proto__", "")
    there = tmp_path / ".config" / "opencode" / "opencode.jsonc"
    there.parent.mkdir(parents=True)
    there.touch()
    assert str(there) in files(setup("opencode", user=tmp_path))


CLAUDE = "SessionStart UserPromptSubmit PreToolUse PostToolUse Stop SubagentStop PreCompact SessionEnd"


def claude_hooks(found: Setup) -> dict[str, dict[str, object]]:
    """Each event's one hook, with its matcher beside it."""
    answer = files(found)["/home/ada/.claude/settings.json"]["hooks"]
    assert all(len(groups) == 1 and len(groups[0]["hooks"]) == 1 for groups in answer.values())
    return {event: {**groups[0]["hooks"][0], "matcher": groups[0].get("matcher")} for event, groups in answer.items()}


@table("name", ["__HOOK__", "__SOCKET__"])
def test_opencodes_plugin_knows_both_paths_whatever_they_are_called(name):
    hook, socket = Path(f"/{name}/bin/foreword-hook"), Path(f"/{name}/run/worker.sock")
    [plugin] = [each for each in setup("opencode", hook=hook, socket=socket).changes if isinstance(each, OwnedFile)]
    assert f'const SOCKET = "{socket}";\nconst HOOK = "{hook}";\n' in plugin.text


@table("version", ["", "1.0.98 (Claude Code)", "2.0.75", "nightly"])
def test_a_claude_of_unknown_or_old_version_is_told_only_of_old_events(version):
    hooks = claude_hooks(setup("claude-code", version=version))
    assert list(hooks) == CLAUDE.split()
    for event, hook in hooks.items():
        assert hook["command"] == run("claude-code", event)
        assert (hook["type"], hook["timeout"], set(hook)) == ("command", 5, {"type", "command", "timeout", "matcher"})


def test_claude_is_told_of_the_events_it_knows_and_given_its_files():
    # A claude that knows failures is told of them.
    assert set(claude_hooks(setup("claude-code", version="2.1.197"))) == {*CLAUDE.split(), "PostToolUseFailure"}
    # Claude runs us before commands, edits and our own tools, by whole names; an old one before our own tools alone.
    hooks = claude_hooks(setup("claude-code", version="2.1.325"))
    matcher = str(hooks["PreToolUse"]["matcher"])
    old = str(claude_hooks(setup("claude-code", version="2.0.76"))["PreToolUse"]["matcher"])
    ours = {"mcp__foreword__memory_search", "mcp__plugin_foreword_foreword__memory_get"}
    hinted = {"Bash", "PowerShell", "Edit", "MultiEdit", "Write", "NotebookEdit"}
    others = {"Read", "Grep", "TodoWrite", "BashOutput", "mcp__other__foreword__x"}
    assert {name for name in ours | hinted | others if re.search(matcher, name)} == ours | hinted
    assert {name for name in ours | hinted | others if re.search(old, name)} == ours
    assert {event: hook["matcher"] for event, hook in hooks.items() if hook["matcher"]} == {
        "PreToolUse": hooks["PreToolUse"]["matcher"],
        "PostToolUse": "*",
        "PostToolUseFailure": "*",
    }
    # Claude has a server a skill and three commands.
    made = files(setup("claude-code"))
    server = {"type": "stdio", "command": MCP, "args": [], "env": {}}
    assert made["/home/ada/.claude.json"] == {"mcpServers": {"foreword": server}}
    assert set(made) == {
        "/home/ada/.claude.json",
        "/home/ada/.claude/settings.json",
        "/home/ada/.claude/skills/foreword/SKILL.md",
        "/home/ada/.claude/commands/foreword/remember.md",
        "/home/ada/.claude/commands/foreword/search.md",
        "/home/ada/.claude/commands/foreword/handoff.md",
    }


@table("version", ["2.1.197", "2.1.325 (Claude Code)", "2.2.0", "3.0.1"])
def test_a_new_claude_does_not_wait_for_what_is_only_captured(version):
    hooks = claude_hooks(setup("claude-code", version=version))
    background = {event for event, hook in hooks.items() if hook.get("async") is True}
    only_captured = {"PostToolUse", "SubagentStop", "PreCompact"}  # what is said after a failure must arrive
    assert background - {"PostCompact"} == only_captured
    assert {event for event, hook in hooks.items() if "async" in hook} == background


def test_claudes_plugin_says_what_its_settings_would():
    as_plugin = setup("claude-code", version="2.1.325", plugin=True)
    as_settings = files(setup("claude-code", version="2.1.325"))
    made, root = files(as_plugin), "/home/ada/.foreword/claude/plugins/foreword"
    assert made[f"{root}/hooks/hooks.json"]["hooks"] == as_settings["/home/ada/.claude/settings.json"]["hooks"]
    assert made[f"{root}/.mcp.json"] == as_settings["/home/ada/.claude.json"]
    for name in ("remember", "search", "handoff"):
        answer = as_settings[f"/home/ada/.claude/commands/foreword/{name}.md"]
        assert made[f"{root}/commands/{name}.md"] == answer
    assert made[f"{root}/skills/foreword/SKILL.md"] == as_settings["/home/ada/.claude/skills/foreword/SKILL.md"]
    market = made["/home/ada/.foreword/claude/.claude-plugin/marketplace.json"]
    assert made[f"{root}/.claude-plugin/plugin.json"]["name"] == market["name"] == "foreword"
    assert [each["source"] for each in market["plugins"]] == ["./plugins/foreword"]
    assert made["/home/ada/.claude/settings.json"] == {
        "extraKnownMarketplaces": {
            "foreword": {"source": {"source": "directory", "path": "/home/ada/.foreword/claude"}}
        },
        "enabledPlugins": {"foreword@foreword": True},
    }
    assert as_plugin.after == ()


def test_claudes_plugin_is_undone_in_order_and_not_given_to_the_old():
    # Undone last first claudes settings name no plugin that is gone.
    changes = setup("claude-code", version="2.1.325", plugin=True).changes
    kinds = [type(each) for each in changes if not isinstance(each, AgentResidue)]
    assert kinds == sorted(kinds, key=[OwnedFile, Entry].index)
    # A claude too old for the plugin is told by its settings.
    found = setup("claude-code", version="2.0.76", plugin=True)
    assert found.changes == setup("claude-code", version="2.0.76").changes
    assert "2.0.76" in found.after[0]
    # A claude that loads a plugin late says so.
    for version in ("2.1.197", ""):
        assert "twice" in setup("claude-code", version=version, plugin=True).after[0]


@table("plugin", [False, True])
def test_what_claude_writes_of_us_by_itself_is_known(plugin):
    found = setup("claude-code", version="2.1.325", plugin=plugin)
    left = {(str(each.file.relative_to(USER)), *each.keys) for each in found.changes if isinstance(each, AgentResidue)}
    used = {"foreword", "foreword:foreword", "foreword:remember", "foreword:search", "foreword:handoff"}
    counted = {(".claude.json", "skillUsage", name) for name in used}
    lists = {
        (".claude/plugins/known_marketplaces.json", "foreword"),
        (".claude/plugins/installed_plugins.json", "plugins", "foreword@foreword"),
        (".claude/plugins/cache/foreword",),
        (".claude/plugins/data/foreword-foreword",),
        (".claude/plugins/marketplaces",),
        (".claude.json", "pluginUsage", "foreword@foreword"),
    }
    assert left == (counted | lists if plugin else counted)


@table(
    ("host", "variable", "folder"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "/moved"),
        ("codex", "CODEX_HOME", "/moved"),
        ("gemini", "GEMINI_CLI_HOME", "/moved/.gemini"),
        ("copilot", "COPILOT_HOME", "/moved"),
        ("opencode", "XDG_CONFIG_HOME", "/moved/opencode"),
    ],
)
def test_a_host_that_was_moved_is_found_there_and_nothing_is_written_elsewhere(host, variable, folder):
    found = setup(host, environ={variable: "/moved"})
    assert str(found.folder) == folder
    assert all(name.startswith(f"{folder}/") for name in files(found))
    for nowhere in ("", "relative/path"):  # as the client would see it depends on where it is started
        assert setup(host, environ={variable: nowhere}) == setup(host)


ANYWHERE = (
    {},
    {"plugin": True},
    {"version": "2.1.325"},
    {"version": "2.1.325", "plugin": True},
    {"user": Path("/home/a 'b"), "hook": Path("/home/a 'b/x/bin/h"), "mcp": Path('/home/a "b/x/bin/m')},
)


@table("changed", ANYWHERE)
@table("host", sorted(AGENTS))
def test_every_change_can_be_written_down_and_lies_in_the_hosts_folder_or_ours(host, changed):
    found = setup(host, **changed)
    user, ours = changed.get("user", USER), changed.get("hook", PLACE.hook).parent.parent
    assert found.binary
    assert found.folder.is_relative_to(user)
    for change in found.changes:
        assert isinstance(change, get_args(Change))
        if isinstance(change, Entry):
            assert json.loads(json.dumps(change.value)) == change.value
            assert change.keys
            assert all(isinstance(key, str) for key in change.keys)
        inside = change.file.is_relative_to(found.folder) or change.file.is_relative_to(ours)
        assert inside or change.file == user / ".claude.json"


@table("host", sorted(set(AGENTS) - {"opencode"}))
def test_every_event_we_read_is_asked_for_once(host):
    made = json.dumps([files(setup(host, version="2.1.325"))])
    answer = [each.partition('"')[0] for each in made.split(f"--host {host} ")[1:]]
    read = {event for event in find(host).events if host != "copilot" or event[0].islower()}
    # Told to the worker for its own sake, or heard and left out.
    beside = {"PreToolUse", "SubagentStop"} if host == "claude-code" else set()
    assert sorted(answer) == sorted(read | beside)


@table("shell", ["sh", "bash"])
def test_a_shell_runs_the_hook_wherever_our_home_lies_and_nothing_once_it_is_gone(tmp_path, shell):
    hook = tmp_path / "a 'json_string' \"home\" $HOME `x`" / "bin" / "foreword-hook"
    command = PLACE._replace(hook=hook).command("codex", "Stop")
    gone = subprocess.run([shell, "-c", command], capture_output=True, check=False)
    assert (gone.returncode, gone.stdout, gone.stderr) == (0, b"", b"")
    hook.parent.mkdir(parents=True)
    hook.write_text('#!/bin/sh\nprintf "%s|" "$@"; cat\n')
    hook.chmod(0o755)
    there = subprocess.run([shell, "-c", command], input=b"{}", capture_output=True, check=False)
    assert (there.returncode, there.stdout) == (0, b"--host|codex|Stop|{}")


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_any_path_is_read_back_from_toml_and_json(path):
    assert tomllib.loads(f"command = {json_string(path)}\n") == {"command": path}
    assert json.loads(json_string(path)) == path


@table("host", sorted(AGENTS))
def test_the_page_of_a_host_names_every_file_and_variable(host):
    page = (DOCS / f"{host}.md").read_text(encoding="utf-8")
    found = setup(host, version="2.1.325")
    names = [change.file for change in found.changes if not isinstance(change, AgentResidue)]
    answer = [f"~/{name.relative_to(USER)}" for name in names if "commands" not in name.parts]
    answer += [f"~/{found.folder.relative_to(USER)}/{pattern}" for pattern in found.transcripts]
    assert [name for name in [*answer, *find(host).session_variables] if f"`{name}`" not in page] == []
    assert "## How it is installed" in page
    assert "## What it cannot do" in page


def parted(text: str) -> tuple[dict[str, str], str]:
    _, head, body = text.split("---\n", 2)
    return dict(line.split(": ", 1) for line in head.splitlines()), body


def test_skills_and_blocks_are_well_formed():
    # The skill teaches every tool in few words.
    head, body = parted(files(setup("claude-code"))["/home/ada/.claude/skills/foreword/SKILL.md"])
    assert head["name"] == "foreword"
    assert len(head["description"]) < 500  # it is part of every request; all of the rest is read when it is wanted
    assert [tool for tool in TOOLS if f"`{tool}`" not in body] == []
    assert len(body.split()) < 400
    # Blocks end their lines.
    for host in AGENTS:
        assert all(each.text.endswith("\n") for each in setup(host).changes if isinstance(each, Block | OwnedFile))


@table("name", ["remember", "search", "handoff"])
def test_a_command_passes_on_what_was_typed_and_names_its_tool(name):
    head, body = parted(files(setup("claude-code"))[f"/home/ada/.claude/commands/foreword/{name}.md"])
    assert body.count("$ARGUMENTS") == 1
    assert f"`memory_{name}`" in body
    assert f"mcp__foreword__memory_{name}" in head["allowed-tools"].split(", ")
    assert f"mcp__plugin_foreword_foreword__memory_{name}" in head["allowed-tools"].split(", ")
    assert all(": " not in value for value in head.values()), "YAML would read a second field"
