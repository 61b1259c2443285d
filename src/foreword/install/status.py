"""Check whether what install wrote is still in an agent's files, and what keeps its hooks from running. Read-only."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foreword.agents import FILES
from foreword.agents.setup import Entry, Setup
from foreword.errors import ForewordError
from foreword.install import files, jsonc, manifest, toml_block
from foreword.install.detect import setup_of
from foreword.install.manifest import FileRecord
from foreword.paths import Home
from foreword.problems import WRONG, Finding


@dataclass(frozen=True)
class InstallStatus:
    """How an agent is set up, and what is wrong with it."""

    setup: Setup
    files: tuple[str, ...] = ()  # that hold something of ours, or should; none where it is not installed
    findings: tuple[Finding, ...] = ()
    installed_at: float = 0.0


def install_status(home: Home, environ: Mapping[str, str]) -> dict[str, InstallStatus]:
    """Return the status of every agent that can be set up."""
    found = {}
    for agent in FILES:
        setup = setup_of(agent, home=home, environ=environ)
        if setup is not None:
            found[agent] = check(agent, setup, home=home)
    return found


def check(agent: str, setup: Setup, *, home: Home) -> InstallStatus:
    """Compare what the manifest says was written with the agent's files."""
    known = manifest.load(home, agent)
    if known is None:
        return InstallStatus(setup)
    install = f"foreword install {agent}"
    found = []
    for path, record in known.files.items():
        try:
            lacking = _lacking(Path(path), record)
        except (ForewordError, UnicodeDecodeError, RecursionError) as exc:
            fix = f"correct the file, then run `{install}`"
            found.append(Finding(agent, WRONG, f"{path} cannot be read: {exc}", fix))
            continue
        if lacking:
            says = f"{path} lacks what install wrote, or differs from it: {', '.join(dict.fromkeys(lacking))}"
            found.append(Finding(agent, WRONG, says, f"run `{install}`: it restores only that"))
    if switch := _switched_off(setup):
        found.append(Finding(agent, WRONG, f"it runs no hooks: {switch}", "remove that setting, or ask who manages it"))
    if agent == "codex" and (untrusted := _untrusted_by_codex(setup, known.files)):
        says = f"it silently skips hooks that are not trusted: {', '.join(untrusted)}"
        found.append(Finding(agent, WRONG, says, "start codex, open /hooks, and trust those that name foreword-hook"))
    return InstallStatus(setup, tuple(known.files), tuple(found), manifest.installed_at(home, agent))


def _lacking(file: Path, record: FileRecord) -> list[str]:
    """Return what of a record is not in its file."""
    data = files.read(file)
    if record.own:
        return [] if data is not None and manifest.digest(data) == record.own else [file.name]
    text = (data or b"").decode()
    if record.block:
        return [] if toml_block.holds(text, record.block) else ["our tables"]
    return [".".join(entry.keys) for entry in record.entries if not entry.default and not _has(text, entry)]


def _has(text: str, entry: Entry) -> bool:
    there = jsonc.find(text, entry.keys)
    items = there if entry.append and isinstance(there, list) else [there]
    return any(jsonc.same(each, entry.value) for each in items if each is not jsonc.MISSING)


def _switched_off(setup: Setup) -> str:
    """Return the agent's own setting that keeps every hook from running, with its file."""
    for file, keys, off in setup.switches:
        path = setup.folder / file
        value = _settings(path)
        for key in keys.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value is off:
            return f"{keys} is {str(off).lower()} in {path}"
    return ""


def _untrusted_by_codex(setup: Setup, records: Mapping[str, FileRecord]) -> list[str]:
    """Return our hooks that Codex's settings do not say it trusts; whether a trusted one changed since is not known."""
    state = _settings(setup.folder / "config.toml")
    for key in ("hooks", "state"):
        state = state.get(key, {}) if isinstance(state, dict) else {}
    trusted = [key for key, each in state.items() if isinstance(each, dict) and each.get("trusted_hash")]
    entries: Iterator[Entry] = (entry for record in records.values() for entry in record.entries)
    events = {entry.keys[-1]: entry.file for entry in entries if entry.keys[0] == "hooks"}
    keys = {event: f"{file}:{re.sub('(?<!^)(?=[A-Z])', '_', event).lower()}:" for event, file in events.items()}
    return [event for event, key in keys.items() if not any(each.startswith(key) for each in trusted)]


def _settings(path: Path) -> Any:
    """Read a file of settings; empty where it cannot be read."""
    try:
        text = (files.read(path) or b"").decode("utf-8-sig")
        return tomllib.loads(text) if path.suffix == ".toml" else jsonc.read(text)
    except (ForewordError, ValueError, RecursionError):
        return {}
