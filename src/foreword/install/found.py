"""Environment -> the hosts that we know, which of them are on this machine, and in which version."""

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
from foreword.agents.setup import Place, Setup
from foreword.config import load
from foreword.install import manifest
from foreword.paths import Home, expand

VERSION_SECONDS = 10.0  # a client that unpacks itself at its first start may need some
UP = 4  # folders between a program and the package.json of its npm package
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:-[0-9A-Za-z.]+)?")


@dataclass(frozen=True)
class Found:
    """A host, how it is wired here, and whether it is on this machine."""

    host: str
    setup: Setup
    binary: str = ""  # its path; empty where it is not on the PATH
    version: str = ""
    plugin: bool = False

    @property
    def is_here(self) -> bool:
        return bool(self.binary) or self.setup.folder.is_dir()


def look(
    names: Iterable[str] = agents.FILES, *, home: Home, environ: Mapping[str, str], plugin: bool | None = None
) -> tuple[Found, ...]:
    """Every host that can be wired, in our order; nothing of it is started where its version can be read.

    Whether as a plugin: None leaves it as it is.
    """
    found = (one(name, home=home, environ=environ, plugin=plugin) for name in names)
    return tuple(each for each in found if each is not None)


def one(name: str, *, home: Home, environ: Mapping[str, str], plugin: bool | None = None) -> Found | None:
    """One host; None where it cannot be wired."""
    host = agents.find(name)
    if plugin is None:
        known = manifest.load(home, name)
        plugin = known is not None and known.plugin
    place = place_of(home, environ, plugin=plugin)
    setup = host.setup(place)
    if setup is None:
        return None
    binary = shutil.which(setup.binary, path=environ.get("PATH")) or ""
    version = version_of(binary, environ=environ) if binary else ""
    if version:
        setup = host.setup(replace(place, version=version)) or setup
    return Found(name, setup, binary, version, plugin)


def place_of(home: Home, environ: Mapping[str, str], *, plugin: bool = False) -> Place:
    """This user's machine, as a host file needs to know it."""
    user = Path(expand("~", environ) or "/")
    return Place(
        user,
        environ,
        hook=home.launcher,
        mcp=home.mcp,
        socket=home.socket,
        plugin=plugin,
        limits={"codex": load(home, environ).settings.codex_context_tokens},
    )


def version_of(binary: str, *, environ: Mapping[str, str]) -> str:
    """The version of a program: out of its npm package, out of its path, else as it tells it itself."""
    real = Path(os.path.realpath(binary))
    name = Path(binary).name
    return _from_package(real, name) or _from_path(real) or _from_itself(binary, environ)


def _from_package(real: Path, name: str) -> str:
    for folder in list(real.parents)[:UP]:
        try:
            told = json.loads((folder / "package.json").read_text(encoding="utf-8"))
            programs = told.get("bin", {})
            if isinstance(programs, str) or name in programs:
                return str(told["version"])
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            continue
    return ""


def _from_path(real: Path) -> str:
    """Installers that keep versions side by side name the file or its folder by it."""
    for part in (real.name, real.parent.name, real.parent.parent.name):
        if found := _VERSION.fullmatch(part.removeprefix("v")):
            return found[0]
    return ""


def _from_itself(binary: str, environ: Mapping[str, str]) -> str:
    # In a home that is gone afterwards: some clients write settings at their first breath. And without the user's keys.
    with tempfile.TemporaryDirectory(prefix="foreword-") as scratch:
        clean = {"PATH": environ.get("PATH", os.defpath), "HOME": scratch, "LANG": "C.UTF-8", "NO_COLOR": "1"}
        try:
            ended = subprocess.run(  # noqa: S603 - the host that the user has on the PATH
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
