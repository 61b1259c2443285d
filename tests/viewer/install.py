"""What the tests of the viewer need besides Python's packages -> installed: Debian's Chromium, and axe-core from npm.

    python tests/viewer/install.py

What cannot be had (not root, no apt-get, no npm, no network) is said, and the tests that need it are passed over; with
FOREWORD_VIEWER=required it ends with 1 instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.clients.install import Installed, clients, installed
from tests.clients.versions import AXE

PACKAGES = ("chromium", "fonts-dejavu-core")  # a font: Chromium alone draws boxes
SECONDS = 900


def main() -> int:
    missing = [why for why in (_chromium(os.environ), _axe(os.environ)) if why]
    print("".join(f"MISSING for the tests of the viewer: {why}\n" for why in missing), end="", file=sys.stderr)
    return 1 if missing and os.environ.get("FOREWORD_VIEWER") == "required" else 0


def chromium(environ: Mapping[str, str]) -> Path | None:
    """The browser: what CHROMIUM names, else Debian's."""
    found = shutil.which(environ.get("CHROMIUM") or "chromium", path=f"{environ.get('PATH', '')}:/usr/bin")
    return Path(found) if found else None


def _chromium(environ: Mapping[str, str]) -> str:
    """Leave a browser installed; why there is none, or nothing."""
    if chromium(environ):
        return ""
    if environ.get("CHROMIUM"):
        return f"CHROMIUM names {environ['CHROMIUM']}, which is not there"
    if os.geteuid() or not shutil.which("apt-get"):
        return "chromium; only root can install it here: apt-get install chromium"
    print(f"installing {' '.join(PACKAGES)} ...")
    for words in (("update",), ("install", "-y", "--no-install-recommends", *PACKAGES)):
        ended = subprocess.run(
            ["apt-get", "-q", *words],
            env={**environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    return "" if chromium(environ) else f"chromium: {ended.stderr.strip()[-300:] or 'apt-get does not have it'}"


def _axe(environ: Mapping[str, str]) -> str:
    """Leave axe-core installed; why it is not, or nothing."""
    found = installed(AXE.package, AXE, folder=clients(environ), environ=environ)
    return "" if isinstance(found, Installed) else f"{AXE.spec}: {found.why}"


if __name__ == "__main__":
    sys.exit(main())
