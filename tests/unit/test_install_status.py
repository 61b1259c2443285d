"""Whether an agent is connected is read from its files: whole, missing, changed, unreadable, switched off, trusted."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from foreword.agents.setup import AgentResidue, Block, Entry, OwnedFile, Setup
from foreword.install.plan import apply, plan
from foreword.install.status import InstallStatus, check, setup_of
from foreword.paths import Home
from foreword.problems import WRONG
from tests.tables import table

HOOK = {"hooks": [{"type": "command", "command": "/h/bin/foreword-hook --host codex Stop"}]}
NOW = time.time()
SEEN: dict[str, Any] = {
    "last_event": {"at": NOW - 7200, "name": "Stop", "session": "s", "project": "p"},
    "last_injection": {"at": NOW - 7300, "trigger": "prompt", "tokens": 412},
    "sessions": 12,
}


@pytest.fixture
def setup(home: Home, tmp_path: Path) -> Setup:
    """A setup of each kind of change, installed beside what the user has."""
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "hooks.json").write_text('{"hooks": {"Stop": ["mine"]}}')
    made = Setup(
        binary="gemini",
        folder=folder,
        changes=(
            Entry(folder / "hooks.json", ("version",), 1, default=True),
            Entry(folder / "hooks.json", ("hooks", "Stop"), HOOK, append=True),
            Entry(folder / "hooks.json", ("servers", "foreword"), {"command": "x"}),
            Block(folder / "config.toml", "[mcp_servers.foreword]\ncommand = 'x'\n"),
            OwnedFile(folder / "plugin.js", "export {}  // foreword\n"),
            AgentResidue(folder / "known.json", ("foreword",)),
        ),
    )
    home.prepare()
    apply(plan(made, agent="gemini", home=home), home=home)
    return made


def wrong(setup: Setup, home: Home) -> list[str]:
    found = check("gemini", setup, home=home)
    assert all(each.state == WRONG and each.way_out for each in found.findings)
    return [each.says for each in found.findings]


def test_what_install_wrote_is_compared_with_the_files(setup: Setup, home: Home) -> None:
    hooks, toml, plugin = (setup.folder / name for name in ("hooks.json", "config.toml", "plugin.js"))
    whole = {path: path.read_text() for path in (hooks, toml, plugin)}
    assert wrong(setup, home) == []
    assert check("gemini", setup, home=home).installed_at > NOW - 60
    assert set(check("gemini", setup, home=home).files) == {str(hooks), str(toml), str(plugin)}
    assert check("codex", setup, home=home) == InstallStatus(setup)
    # An agent that writes its settings in its own way keeps what install wrote.
    toml.write_text('[mcp_servers]\n[mcp_servers.foreword]\nenabled = true\ncommand = "x"\n')
    hooks.write_text("// mine\n" + json.dumps(json.loads(whole[hooks]))[:-1] + ", /* more */ }\n")
    assert wrong(setup, home) == []
    # What is missing or changed is named, with its file.
    hooks.write_text('{"version": 1, "hooks": {"Stop": []}, "servers": {"foreword": {"command": "y"}}}')
    toml.unlink()
    plugin.write_text("export default 1\n")
    says = wrong(setup, home)
    assert len(says) == 3
    assert any(str(hooks) in each and each.endswith("hooks.Stop, servers.foreword") for each in says)
    # What cannot be read is a finding, and a pipe keeps nobody waiting.
    hooks.write_text('{"hooks": ')
    assert f"{hooks} cannot be read" in wrong(setup, home)[0]
    hooks.unlink()
    os.mkfifo(hooks)
    assert f"{hooks} cannot be read" in wrong(setup, home)[0]


@table(
    ("agent", "file", "text"),
    [
        ("claude-code", "settings.json", '{"disableAllHooks": true}'),
        ("claude-code", "settings.json", '{"allowManagedHooksOnly": true}'),
        ("codex", "config.toml", "[features]\nhooks = false\n"),
        ("gemini", "settings.json", '{"hooksConfig": {"enabled": false}} // mine'),
    ],
)
def test_a_switch_of_the_agent_is_named_with_its_file(home: Home, tmp_path: Path, agent, file, text) -> None:
    found = setup_of(agent, home=home, environ={"HOME": str(tmp_path)})
    assert found is not None
    setup = found._replace(folder=tmp_path, changes=())
    home.prepare()
    apply(plan(setup, agent=agent, home=home), home=home)
    assert check(agent, setup, home=home).findings == ()
    (tmp_path / file).write_text(text)
    (finding,) = check(agent, setup, home=home).findings
    assert str(tmp_path / file) in finding.says


def test_hooks_that_codex_does_not_trust_are_named(home: Home, tmp_path: Path) -> None:
    setup = setup_of("codex", home=home, environ={"HOME": str(tmp_path)})
    assert setup is not None
    home.prepare()
    apply(plan(setup, agent="codex", home=home), home=home)
    (finding,) = check("codex", setup, home=home).findings
    assert "not trusted: SessionStart, UserPromptSubmit" in finding.says
    config = setup.folder / "config.toml"
    events = ("session_start", "user_prompt_submit", "post_tool_use", "stop", "pre_compact")
    keys = [f'[hooks.state."{setup.folder}/hooks.json:{event}:0:0"]\ntrusted_hash = "sha256:1"\n' for event in events]
    config.write_text(config.read_text() + "".join(keys))
    (finding,) = check("codex", setup, home=home).findings
    assert finding.says.endswith("not trusted: SessionEnd")
