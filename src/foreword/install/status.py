"""Find the agents on this machine, what install writes for each, and whether it is still in their files. Read-only."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foreword import agents
from foreword.agents.setup import InstallTarget, Setup
from foreword.errors import ForewordError
from foreword.install import jsonc, manifest, toml_block
from foreword.install.manifest import FileRecord
from foreword.install.plan import has_entry
from foreword.paths import Home, expand
from foreword.problems import WRONG, Finding

VERSION_SECONDS = 10.0  # a client that unpacks itself at its first start may need some
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:-[0-9A-Za-z.]+)?")


@dataclass(frozen=True)
class Found:
    """An agent, what installing it would write, and where it is on this machine."""

    agent: str
    setup: Setup
    binary: str = ""  # its path; empty where it is not on the PATH
    version: str = ""
    plugin: bool = False

    @property
    def is_here(self) -> bool:
        return bool(self.binary) or self.setup.folder.is_dir()


@dataclass(frozen=True)
class InstallStatus:
    """How an agent is set up, and what is wrong with it."""

    setup: Setup
    files: tuple[str, ...] = ()  # that hold something of ours, or should; none where it is not installed
    findings: tuple[Finding, ...] = ()
    installed_at: float = 0.0


def detect(
    names: Iterable[str] = agents.AGENTS, *, home: Home, environ: Mapping[str, str], plugin: bool | None = None
) -> list[Found]:
    """Return these agents with what install writes for each; with *plugin* None, as it was installed before.

    Each is started for its version; where it is gone or tells none, the version seen at the last install counts.
    """
    detected = []
    for name in names:
        known = manifest.load(home, name) or manifest.Manifest(name)
        as_plugin = known.plugin if plugin is None else plugin
        binary = shutil.which(setup_of(name, home=home, environ=environ).binary, path=environ.get("PATH")) or ""
        version = (version_of(binary, environ=environ) if binary else "") or known.version
        setup = setup_of(name, home=home, environ=environ, plugin=as_plugin, version=version)
        detected.append(Found(name, setup, binary, version, as_plugin))
    return detected


def setup_of(agent: str, *, home: Home, environ: Mapping[str, str], plugin: bool = False, version: str = "") -> Setup:
    """Return how an agent is found here and what install writes for it."""
    return agents.find(agent).setup(install_target(home, environ)._replace(plugin=plugin, version=version))


def install_target(home: Home, environ: Mapping[str, str]) -> InstallTarget:
    """Return this user's machine, as an agent's adapter needs to know it."""
    user = Path(expand("~", environ) or "/")
    return InstallTarget(user, environ, hook=home.launcher, mcp=home.mcp, socket=home.socket)


def version_of(binary: str, *, environ: Mapping[str, str]) -> str:
    """Return the version that a program prints; empty where it prints none.

    In a home that is gone afterwards: some agents write settings as soon as they start. And without the user's keys.
    """
    with tempfile.TemporaryDirectory(prefix="foreword-") as scratch:
        clean = {"PATH": environ.get("PATH", os.defpath), "HOME": scratch, "LANG": "C.UTF-8", "NO_COLOR": "1"}
        try:
            ended = subprocess.run(  # noqa: S603 - the agent that the user has on the PATH
                [binary, "--version"],
                check=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=VERSION_SECONDS,
                env=clean,
                cwd=scratch,
            )
        except (OSError, subprocess.SubprocessError):
            return ""
    found = _VERSION.search(ended.stdout.decode(errors="replace"))
    return found[0] if found else ""


def install_status(home: Home, environ: Mapping[str, str]) -> dict[str, InstallStatus]:
    """Return the status of every agent."""
    return {agent: check(agent, setup_of(agent, home=home, environ=environ), home=home) for agent in agents.AGENTS}


def check(agent: str, setup: Setup, *, home: Home) -> InstallStatus:
    """Compare what the manifest says was written with the agent's files."""
    known = manifest.load(home, agent)
    if known is None:
        return InstallStatus(setup)
    install = f"foreword install {agent}"
    wrong = []
    for path, record in known.files.items():
        try:
            lacking = _lacking(Path(path), record)
        except (ForewordError, UnicodeDecodeError, RecursionError) as exc:
            fix = f"correct the file, then run `{install}`"
            wrong.append(Finding(agent, WRONG, f"{path} cannot be read: {exc}", fix))
            continue
        if lacking:
            says = f"{path} lacks what install wrote, or differs from it: {', '.join(dict.fromkeys(lacking))}"
            wrong.append(Finding(agent, WRONG, says, f"run `{install}`: it restores only that"))
    if switch := _switched_off(setup):
        wrong.append(Finding(agent, WRONG, f"it runs no hooks: {switch}", "remove that setting, or ask who manages it"))
    if agent == "codex" and (untrusted := _untrusted_by_codex(setup, known.files)):
        says = f"it silently skips hooks that are not trusted: {', '.join(untrusted)}"
        wrong.append(Finding(agent, WRONG, says, "start codex, open /hooks, and trust those that name foreword-hook"))
    return InstallStatus(setup, tuple(known.files), tuple(wrong), manifest.installed_at(home, agent))


def _lacking(file: Path, record: FileRecord) -> list[str]:
    """Return what of a record is not in its file."""
    data = manifest.read(file)
    if record.own:
        return [] if data is not None and manifest.digest(data) == record.own else [file.name]
    text = (data or b"").decode()
    if record.block:
        return [] if toml_block.holds(text, record.block) else ["our tables"]
    return [".".join(entry.keys) for entry in record.entries if not entry.default and not has_entry(text, entry)]


def _switched_off(setup: Setup) -> str:
    """Return the agent's own setting that keeps every hook from running, with its file."""
    for file, keys, off in setup.switches:
        path = setup.folder / file
        if _setting(path, keys) is off:
            return f"{keys} is {str(off).lower()} in {path}"
    return ""


def _untrusted_by_codex(setup: Setup, records: Mapping[str, FileRecord]) -> list[str]:
    """Return our hooks that Codex's settings do not say it trusts; whether a trusted one changed since is not known."""
    state = _setting(setup.folder / "config.toml", "hooks.state")
    trusted = [key for key, hook in agents.dict_of(state).items() if agents.dict_of(hook).get("trusted_hash")]
    entries = (entry for record in records.values() for entry in record.entries)
    events = {entry.keys[-1]: entry.file for entry in entries if entry.keys[0] == "hooks"}
    keys = {event: f"{file}:{re.sub('(?<!^)(?=[A-Z])', '_', event).lower()}:" for event, file in events.items()}
    return [event for event, key in keys.items() if not any(each.startswith(key) for each in trusted)]


def _setting(path: Path, name: str) -> Any:
    """Return a value of a settings file by its dotted name; None where it cannot be read."""
    try:
        text = (manifest.read(path) or b"").decode("utf-8-sig")
        value = tomllib.loads(text) if path.suffix == ".toml" else jsonc.read(text)
    except (ForewordError, ValueError, RecursionError):
        return None
    for key in name.split("."):
        value = agents.dict_of(value).get(key)
    return value
