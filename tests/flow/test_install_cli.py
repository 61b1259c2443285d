"""`foreword install` and `uninstall` as people use them: a process, a terminal or none, a scratch home."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SECRET = "ghp_" + "a1B2" * 9
# Two hosts whose wiring is ours to choose, and no others: what real ones are told has tests of its own.
SCRIPT = """
import sys
from pathlib import Path
import foreword.agents as hosts
from foreword.agents.setup import Block, Entry, OwnedFile, Setup

def claude(place):
    folder = place.user / ".claude"
    hook = {"hooks": [{"type": "command", "command": place.command("claude-code", "Stop")}]}
    return Setup("claude", folder, (
        Entry(folder / "settings.json", ("hooks", "Stop"), hook, append=True),
        OwnedFile(folder / "skills" / "foreword.md", f"foreword {place.version} {place.plugin}"),
    ), after=("Start Claude Code anew.",))

def codex(place):
    folder = place.user / ".codex"
    return Setup("codex", folder, (Block(folder / "config.toml", f'[mcp_servers.foreword]\\ncommand = "{place.mcp}"'),))

setups = {"claude-code": claude, "codex": codex}
real = hosts.find
hosts.find = lambda name: real(name)._replace(setup=setups[name])
hosts.AGENTS = tuple(setups)
from foreword.cli.main import main
main()
"""
SETTINGS = f'{{\n  "env": {{\n    "GITHUB_TOKEN": "{SECRET}"\n  }},\n  "model": "opus"\n}}\n'


class Shell:
    """A person with one agent installed, and a folder of another."""

    def __init__(self, root: Path) -> None:
        self.user, self.home = root / "user", root / "h"
        self.settings = self.user / ".claude" / "settings.json"
        self.settings.parent.mkdir(parents=True)
        self.settings.write_text(SETTINGS)
        bin_ = root / "bin"
        bin_.mkdir()
        (bin_ / "claude").write_text("#!/bin/sh\necho 2.1.3\n")
        (bin_ / "claude").chmod(0o755)
        self.environ = {
            "PATH": f"{bin_}:/usr/bin:/bin",
            "HOME": str(self.user),
            "LANG": "C.UTF-8",
            "FOREWORD_HOME": str(self.home),
        }

    def run(self, *words: str, code: int = 0, **more: Any) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(
            [sys.executable, "-c", SCRIPT, *words],
            check=False,
            cwd=self.user,
            stdin=more.pop("stdin", subprocess.DEVNULL),
            capture_output=True,
            text=True,
            timeout=60,
            env=self.environ,
        )
        assert "Traceback" not in ended.stderr, ended.stderr
        assert ended.returncode == code, (words, ended.stdout, ended.stderr)
        return ended

    def typed(self, text: str, *words: str, code: int = 0) -> str:
        """With a terminal on stdin, at which somebody types."""
        ours, theirs = pty.openpty()
        os.write(ours, text.encode())
        try:
            ended = self.run(*words, code=code, stdin=theirs)
        finally:
            os.close(ours)
            os.close(theirs)
        return ended.stdout + ended.stderr

    def tree(self) -> dict[str, bytes | None]:
        return {
            str(path.relative_to(self.user)): path.read_bytes() if path.is_file() else None
            for path in sorted(self.user.rglob("*"))
        }


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_it_shows_does_and_undoes_and_the_home_is_as_before(shell: Shell) -> None:
    before = shell.tree()
    ended = shell.run("install", "--yes")
    assert "claude-code  2.1.3" in ended.stdout
    assert "codex" not in ended.stdout  # it is not here
    assert f"change  {shell.settings}" in ended.stdout
    assert f"create  {shell.user}/.claude/skills/foreword.md" in ended.stdout
    assert "claude-code: done" in ended.stdout
    assert "Start Claude Code anew." in ended.stdout
    hook = json.loads(shell.settings.read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert f"{shell.home}/bin/foreword-hook --host claude-code Stop" in hook
    assert os.access(shell.home / "bin" / "foreword-hook", os.X_OK)
    assert (shell.home / "hook.py").exists()
    again = shell.run("install", "--yes").stdout
    assert "nothing to change" in again
    assert "claude-code: nothing to do" in again
    out = shell.run("uninstall", "--yes").stdout
    assert "claude-code: done" in out
    assert f"Your memories stay in {shell.home}." in out
    assert "rm -r" in out
    assert shell.tree() == before
    assert "nothing is installed" in shell.run("uninstall", "--yes").stdout


def test_secrets_near_a_change_are_not_shown(shell: Shell) -> None:
    shown = shell.run("install", "--dry-run").stdout
    assert '"model": "opus"' in shown
    assert SECRET not in shown


def test_a_dry_run_writes_nothing_at_all(shell: Shell) -> None:
    before = shell.tree()
    shell.run("install", "--dry-run")
    shell.run("uninstall", "--dry-run")
    assert shell.tree() == before
    assert not shell.home.exists()


def test_it_asks_and_takes_no_for_an_answer(shell: Shell) -> None:
    before = shell.tree()
    assert "nothing was changed" in shell.typed("n\n", "install", code=1)
    assert "nothing was changed" in shell.typed("\n", "install", code=1)
    assert shell.tree() == before
    assert "claude-code: done" in shell.typed("y\n", "install")
    assert "claude-code: done" in shell.typed("y\n", "uninstall")
    assert shell.tree() == before


def test_with_nobody_there_it_wants_a_yes(shell: Shell) -> None:
    before = shell.tree()
    ended = shell.run("install", code=1)
    assert "hint: pass --yes" in ended.stderr
    assert shell.tree() == before


def test_an_unknown_host_is_told_with_those_that_are_known(shell: Shell) -> None:
    for command in ("install", "uninstall"):
        ended = shell.run(command, "emacs", code=2)
        assert "unknown agent 'emacs'" in ended.stderr
        assert "claude-code, codex" in ended.stderr


def test_a_host_that_is_not_here_is_set_up_when_it_is_named(shell: Shell) -> None:
    before = shell.tree()
    assert "not found here; set up anyway" in shell.run("install", "codex", "--yes").stdout
    assert "mcp_servers.foreword" in (shell.user / ".codex" / "config.toml").read_text()
    shell.run("uninstall", "codex", "--yes")
    assert shell.tree() == before


def test_with_no_agent_here_it_says_which_are_known(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "bin" / "claude").unlink()
    shell.settings.unlink()
    shell.settings.parent.rmdir()
    ended = shell.run("install", "--yes", code=1)
    assert "no known agent" in ended.stderr
    assert "claude-code, codex" in ended.stderr


def test_one_host_in_the_way_does_not_keep_the_others(shell: Shell) -> None:
    shell.settings.write_text("{ oops")
    ended = shell.run("install", "claude-code", "codex", "--yes", code=1)
    assert f"claude-code: {shell.settings}: it is not JSON" in ended.stderr
    assert "hint: correct that line" in ended.stderr
    assert "codex: done" in ended.stdout
    assert shell.settings.read_text() == "{ oops"


def test_without_our_home_the_way_to_take_everything_out_is_told(shell: Shell) -> None:
    import shutil

    shell.run("install", "--yes")
    shutil.rmtree(shell.home)
    assert "run `foreword install`" in shell.run("uninstall", "--yes").stdout
    shell.run("install", "--yes")
    assert "claude-code: done" in shell.run("uninstall", "--yes").stdout
    assert not any("foreword" in name for name in shell.tree())


def test_a_plugin_stays_one_until_it_is_told_otherwise(shell: Shell) -> None:
    assert "+foreword 2.1.3 True" in shell.run("install", "--yes", "--plugin").stdout
    assert "nothing to change" in shell.run("install", "--yes").stdout
    assert "+foreword 2.1.3 False" in shell.run("install", "--dry-run", "--no-plugin").stdout


def test_the_version_seen_at_install_counts_where_the_agent_is_gone_from_the_path(shell: Shell) -> None:
    shell.run("install", "--yes")
    before = shell.tree()
    (shell.user.parent / "bin" / "claude").write_text("#!/bin/sh\nexit 1\n")  # it is there, and tells no version
    assert "nothing to change" in shell.run("install", "--yes").stdout
    shell.environ["PATH"] = "/usr/bin:/bin"
    assert "nothing to change" in shell.run("install", "--yes").stdout
    assert shell.tree() == before
