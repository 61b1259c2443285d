"""Find the coding agents on this machine, and their versions."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from foreword import agents
from foreword.agents.setup import InstallTarget, Setup
from foreword.config import load
from foreword.install import manifest
from foreword.paths import Home, expand

VERSION_SECONDS = 10.0  # a client that unpacks itself at its first start may need some
UP = 4  # folders between a program and the package.json of its npm package
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


def detect(
    names: Iterable[str] = agents.FILES, *, home: Home, environ: Mapping[str, str], plugin: bool | None = None
) -> tuple[Found, ...]:
    """Return every agent that can be set up, in our order; with *plugin* None, as it was installed before.

    One is started only where its version is in no file; where it is gone, the version seen at the last install counts.
    """
    found = []
    for name in names:
        known = manifest.load(home, name)
        as_plugin = plugin if plugin is not None else known is not None and known.plugin
        setup = setup_of(name, home=home, environ=environ, plugin=as_plugin)
        if setup is None:
            continue
        binary = shutil.which(setup.binary, path=environ.get("PATH")) or ""
        version = version_of(binary, environ=environ) if binary else known.version if known else ""
        setup = setup_of(name, home=home, environ=environ, plugin=as_plugin, version=version) or setup
        found.append(Found(name, setup, binary, version, as_plugin))
    return tuple(found)


def setup_of(
    agent: str, *, home: Home, environ: Mapping[str, str], plugin: bool = False, version: str = ""
) -> Setup | None:
    """Return how an agent is found here and what install writes for it; None where it cannot be set up."""
    return agents.find(agent).setup(replace(install_target(home, environ), plugin=plugin, version=version))


def install_target(home: Home, environ: Mapping[str, str]) -> InstallTarget:
    """Return this user's machine, as an agent's adapter needs to know it."""
    limits = {"codex": load(home, environ).settings.codex_context_tokens}
    user = Path(expand("~", environ) or "/")
    return InstallTarget(user, environ, hook=home.launcher, mcp=home.mcp, socket=home.socket, limits=limits)


def version_of(binary: str, *, environ: Mapping[str, str]) -> str:
    """Return the version of a program: from its npm package, from its path, else from `--version`."""
    real = Path(os.path.realpath(binary))
    for folder in list(real.parents)[:UP]:
        try:
            package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
            programs = package.get("bin", {})
            if isinstance(programs, str) or Path(binary).name in programs:
                return str(package["version"])
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            continue
    for part in (real.name, real.parent.name, real.parent.parent.name):  # installers that keep several name them so
        if found := _VERSION.fullmatch(part.removeprefix("v")):
            return found[0]
    return _version_of_program(binary, environ)


def _version_of_program(binary: str, environ: Mapping[str, str]) -> str:
    # In a home that is gone afterwards: some agents write settings as soon as they start. And without the user's keys.
    with tempfile.TemporaryDirectory(prefix="foreword-") as scratch:
        clean = {"PATH": environ.get("PATH", os.defpath), "HOME": scratch, "LANG": "C.UTF-8", "NO_COLOR": "1"}
        try:
            ended = subprocess.run(  # noqa: S603 - the agent that the user has on the PATH
                [binary, "--version"],
                check=False,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=VERSION_SECONDS,
                env=clean,
                cwd=scratch,
            )
        except (OSError, subprocess.SubprocessError):
            return ""
        found = _VERSION.search(ended.stdout.decode(errors="replace"))
        return found[0] if found and not ended.returncode else ""
