"""A client -> a home with its user's own settings; two looks at a home -> what differs, and whose it is."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.clients.run import Client, write

CLOCK = Path(__file__).with_name("clock.py")
RANG = "own-hook.log"  # what the user's own hook writes, a line each time
PATIENT = """# Mine: this machine is slow.
deadline_prompt_ms = 3000
deadline_start_ms = 4000   # it really is
deadline_huge_ms = 4000
"""


def furnish(client: Client, *, patient: bool) -> None:
    """Write what a user has already: a hook, an MCP server, comments where they are allowed, odd spaces."""
    client.settle()
    ring = f"cat >/dev/null; echo rang >> {client.home / RANG}"
    server = {"command": sys.executable, "args": ["-I", "-S", str(CLOCK)]}
    for name, text in OWN[client.host](client, ring, server).items():
        write(client.home / name, text)
    if patient:
        write(client.home / ".foreword" / "config.toml", PATIENT)
        (client.home / ".foreword").chmod(0o700)


def _claude_code(client: Client, ring: str, server: Mapping[str, Any]) -> dict[str, str]:
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": ring}]}]}
    return {
        ".claude/settings.json": json.dumps({"hooks": hooks, "cleanupPeriodDays": 99}, indent="\t") + "\n\n",
        ".claude.json": json.dumps({"mcpServers": {"clock": {"type": "stdio", **server}}}, indent=3),
        ".claude/CLAUDE.md": "I like short answers.\n",
        ".claude/commands/mine.md": "Say hello.\n",
    }


def _codex(client: Client, ring: str, server: Mapping[str, Any]) -> dict[str, str]:
    run = f"command = {json.dumps(server['command'])}\nargs = {json.dumps(server['args'])}"
    mine = f"\n[mcp_servers.clock]   # mine\n{run}"
    hooks = {"SessionStart": [{"matcher": "*", "hooks": [{"type": "command", "command": ring}]}]}
    return {
        # No newline at the end, as some editors leave it.
        ".codex/config.toml": "# Mine.\n" + client.files()[".codex/config.toml"] + mine,
        ".codex/hooks.json": json.dumps({"hooks": hooks}, indent=1),
    }


def _gemini(client: Client, ring: str, server: Mapping[str, Any]) -> dict[str, str]:
    base = client.files()[".gemini/settings.json"]
    hooks = {"SessionStart": [{"matcher": "*", "hooks": [{"name": "mine", "type": "command", "command": ring}]}]}
    text = json.dumps({**base, "hooks": hooks, "mcpServers": {"clock": server}}, indent=3)
    return {".gemini/settings.json": "// Mine.\n" + text.replace('   "security"', '   /* never change */ "security"')}


def _copilot(client: Client, ring: str, server: Mapping[str, Any]) -> dict[str, str]:
    hooks = {"version": 1, "hooks": {"sessionStart": [{"type": "command", "bash": ring}]}}
    servers = {"mcpServers": {"clock": {"type": "local", **server, "tools": ["*"]}}}
    return {
        ".copilot/hooks/mine.json": json.dumps(hooks, indent=4),
        ".copilot/mcp-config.json": json.dumps(servers, indent="\t") + "\n",
    }


def _opencode(client: Client, ring: str, server: Mapping[str, Any]) -> dict[str, str]:
    base = client.files()[".config/opencode/opencode.json"]
    clock = {"type": "local", "command": [server["command"], *server["args"]], "enabled": True}
    text = json.dumps({**base, "mcp": {"clock": clock}}, indent=3)
    rings = f'"chat.message": async () => appendFileSync({json.dumps(str(client.home / RANG))}, "rang\\n")'
    plugin = f'import {{ appendFileSync }} from "node:fs"\nexport const Mine = async () => ({{ {rings} }})\n'
    return {
        ".config/opencode/opencode.json": "// Mine.\n" + text.replace('   "share"', '   // nobody else\n   "share"'),
        ".config/opencode/plugins/mine.js": plugin,
    }


OWN = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini": _gemini,
    "copilot": _copilot,
    "opencode": _opencode,
}

# What may differ behind an uninstall, and why; everything else is as it was.
EVERYWHERE = {
    "project/*": "what the agent was asked to work on",
    ".foreword/*": "the memory itself, which is the user's",
    RANG: "what the user's own hook wrote",
    ".cache/*": "caches of the client",
    ".npm/*": "npm's, which clients start",
}
STATE: dict[str, dict[str, str]] = {
    "claude-code": {
        ".claude.json": "Claude Code counts its starts there; the user's servers in it are compared apart",
        ".claude.json.backup*": "its own copies of that file",
        ".claude/backups/*": "its own copies of that file",
        ".claude/projects/*": "transcripts",
        ".claude/todos/*": "lists of to-dos",
        ".claude/tasks/*": "lists of tasks",
        ".claude/statsig/*": "its switches",
        ".claude/shell-snapshots/*": "its shells",
        ".claude/session-env/*": "its shells",
        ".claude/sessions/*": "which sessions run",
        ".claude/file-history/*": "what files were before it edited them",
        ".claude/plugins/store/*": "what its built-in plugins keep",
        ".claude/debug/*": "its logs",
        ".claude/telemetry/*": "its logs",
        ".claude/.last-cleanup": "when it last tidied up",
        ".claude/policy-limits.json": "its switches",
        ".claude/history.jsonl": "prompts that were typed",
        ".claude/stats-cache.json": "its statistics",
    },
    "codex": {
        ".codex/*.sqlite*": "its database",
        ".codex/sqlite/*": "its database",
        ".codex/sessions/*": "transcripts",
        ".codex/history.jsonl": "prompts that were typed",
        ".codex/log/*": "its logs",
        ".codex/shell_snapshots/*": "its shells",
        ".codex/skills/.system/*": "skills that it unpacks itself",
        ".codex/memories/*": "its own memory",
        ".codex/tmp/*": "its own",
        ".codex/.tmp/*": "its own",
        ".codex/cache/*": "its own",
        ".codex/models_cache.json": "its own",
        ".codex/version.json": "its own",
        ".codex/installation_id": "its own",
        ".codex/.personality_migration": "its own",
    },
    "gemini": {
        ".gemini/tmp/*": "transcripts and logs",
        ".gemini/history/*": "what files were before it edited them",
        ".gemini/projects.json": "the projects that it has seen",
        ".gemini/state.json": "its own",
        ".gemini/installation_id": "its own",
        ".gemini/extensions/*": "its own",
        ".gemini/trustedFolders.json": "its own",
        ".gemini/trusted_hooks.json": "the hooks of projects that it has seen",
    },
    "copilot": {
        ".copilot/session-state/*": "transcripts",
        ".copilot/session-store.db*": "its database",
        ".copilot/logs/*": "its logs",
        ".copilot/pkg/*": "itself, unpacked",
        ".copilot/command-history-state.json": "its own",
        ".copilot/config.json": "its own",
    },
    "opencode": {
        ".local/share/opencode/*": "its database and logs",
        ".local/state/opencode/*": "its own",
        ".config/opencode/package.json": "its plugin package, which it looks for at every start",
        ".config/opencode/package-lock.json": "its plugin package",
        ".config/opencode/bun.lock": "its plugin package",
        ".config/opencode/node_modules/*": "its plugin package",
        ".config/opencode/.gitignore": "its own",
    },
}


def looked_at(home: Path) -> dict[str, str]:
    """Every file below a home, by its place, with what it holds, its rights and where a link leads."""
    found = {}
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = f"{path.stat().st_mode & 0o777:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        elif path.is_dir() and not any(path.iterdir()):
            found[f"{name}/"] = "an empty folder"
    return found


def differences(before: Mapping[str, str], after: Mapping[str, str], *, host: str) -> list[str]:
    """What is not as it was and is not the client's own, a line each."""
    whose = {**EVERYWHERE, **STATE[host]}
    lines = []
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) == after.get(name) or any(fnmatch.fnmatch(name, pattern) for pattern in whose):
            continue
        how = "new" if name not in before else "gone" if name not in after else "changed"
        lines.append(f"{how}: {name}")
    return lines


def servers(client: Client) -> Any:
    """The MCP servers in a file that the client itself writes to, so that its bytes tell nothing."""
    if client.host != "claude-code":
        return None
    return json.loads((client.home / ".claude.json").read_text()).get("mcpServers")
