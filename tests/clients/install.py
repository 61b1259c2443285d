"""Pinned versions -> each client installed once by npm, in a folder outside the checkout that later runs use again.

    python tests/clients/install.py [claude-code opencode codex gemini copilot]

The folder is FOREWORD_CLIENTS, else `~/.cache/foreword/clients`. Ends with 1 when one could not be installed that npm
serves, with 2 when npm serves nothing here (there is none, or no network).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.clients.versions import VERSIONS, Pinned

AT_ONCE = 2  # npm unpacks some hundred megabytes for each
SECONDS = 600  # for one of them, with a cold cache
# What npm needs to find its registry and its cache; nothing else of the environment concerns it or install scripts.
NPM_NEEDS = ("PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")
NPM_BEGINS = ("npm_config_", "xdg_")
NPM_ENDS = ("_proxy",)


@dataclass(frozen=True)
class Installed:
    """A client that can be started."""

    host: str
    binary: Path
    seconds: float = 0.0  # that npm took just now


@dataclass(frozen=True)
class Missing:
    """A client that cannot; `served` is whether npm would have had it."""

    host: str
    why: str
    served: bool


def main() -> int:
    found = install(sys.argv[1:] or list(VERSIONS), folder=clients(os.environ), environ=os.environ)
    print("\n".join(map(line, found)))
    missing = [each for each in found if isinstance(each, Missing)]
    return 0 if not missing else 1 if any(each.served for each in missing) else 2


def line(found: Installed | Missing) -> str:
    """What became of one, for a person."""
    spec = VERSIONS[found.host].spec
    if isinstance(found, Missing):
        return f"{spec:34} MISSING: {found.why}"
    took = f"installed in {found.seconds:.0f} s" if found.seconds else "there"
    return f"{spec:34} {took}: {found.binary}"


def clients(environ: Mapping[str, str]) -> Path:
    """The folder that holds them."""
    cache = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "/")) / ".cache"
    return Path(environ.get("FOREWORD_CLIENTS") or Path(cache) / "foreword" / "clients")


def binary(pinned: Pinned, folder: Path) -> Path:
    """Its program, or its script, once it is installed."""
    return folder / pinned.folder / _within(pinned)


def _within(pinned: Pinned) -> Path:
    return Path("node_modules") / (pinned.script or Path(".bin") / pinned.binary)


def install(hosts: Sequence[str], *, folder: Path, environ: Mapping[str, str]) -> list[Installed | Missing]:
    """Leave each installed, or say why it is not; what is there already is not touched."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda host: installed(host, VERSIONS[host], folder=folder, environ=environ), hosts))


def installed(host: str, pinned: Pinned, *, folder: Path, environ: Mapping[str, str]) -> Installed | Missing:
    """Leave one installed, or say why it is not."""
    there = binary(pinned, folder)
    if there.exists():
        return Installed(host, there)
    began = time.monotonic()
    if not shutil.which("npm", path=environ.get("PATH")):
        return Missing(host, "there is no npm on the PATH (Node 20 or newer brings it)", served=False)
    why = _npm_install(pinned, folder, environ)
    if why and _is_served(pinned, environ):
        print(f"{pinned.spec} could not be installed, trying once more: {why}", file=sys.stderr)
        why = _npm_install(pinned, folder, environ)
        if why:
            return Missing(host, why, served=True)
    if why:
        return Missing(host, f"npm does not serve it here: {why}", served=False)
    return Installed(host, there, time.monotonic() - began)


def _npm_install(pinned: Pinned, folder: Path, environ: Mapping[str, str]) -> str:
    """Install it beside its place and move it there when it runs; why not, or nothing.

    Node 20 is older than Claude Code's `engines` ask for, which npm only warns of, and npm 11 runs no install scripts:
    the programs that the clients need come in packages of their own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    unready = Path(tempfile.mkdtemp(prefix=f".{pinned.folder}-", dir=folder))
    try:
        # Not by --prefix, which would also move where npm looks for the machine's own settings (proxies, authorities).
        (unready / "package.json").write_text('{"private": true}\n')
        why = _npm(["install", "--no-audit", "--no-fund", "--no-package-lock", pinned.spec], environ, folder=unready)
        why = why or _does_not_run(unready / _within(pinned), pinned)
        if not why and not (folder / pinned.folder).exists():
            unready.rename(folder / pinned.folder)
        return why
    finally:
        shutil.rmtree(unready, ignore_errors=True)


def _does_not_run(program: Path, pinned: Pinned) -> str:
    """Why this is not the program in this version, asked in a home of its own; a script is only looked for."""
    if pinned.script:
        return "" if program.exists() else f"it has no {pinned.script}"
    with tempfile.TemporaryDirectory(prefix="client-") as home:
        environ = {"PATH": os.environ.get("PATH", ""), "HOME": home, "LANG": "C.UTF-8"}
        try:
            result = subprocess.run(
                [program, "--version"], env=environ, cwd=home, capture_output=True, text=True, timeout=120, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as exc:
            return f"it does not start: {exc}"
    right = pinned.version in result.stdout
    return "" if right else f"it says {(result.stdout + result.stderr)[:200]!r}, not {pinned.version}"


def _is_served(pinned: Pinned, environ: Mapping[str, str]) -> bool:
    return not _npm(["view", pinned.spec, "version"], environ)


def _npm(args: Sequence[str], environ: Mapping[str, str], *, folder: Path | None = None) -> str:
    """What npm complained of, or nothing."""
    passed = {name: value for name, value in environ.items() if _is_npms(name)}
    try:
        ended = subprocess.run(
            ["npm", *args], env=passed, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return str(exc)
    return "" if ended.returncode == 0 else (ended.stderr.strip() or f"npm left with {ended.returncode}")[-400:]


def _is_npms(name: str) -> bool:
    small = name.lower()
    return name in NPM_NEEDS or small.startswith(NPM_BEGINS) or small.endswith(NPM_ENDS)


if __name__ == "__main__":
    sys.exit(main())
