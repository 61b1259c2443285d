"""The JavaScript and CSS that we ship -> laid out as Biome does it, and nothing wrong in it; biome.json has the rules.

    python tests/clients/biome.py [--write]

Biome comes from npm, once, as the clients do. Where it cannot be had that is said, and nothing is looked at; with
FOREWORD_VIEWER=required it ends with 1 instead.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.clients.install import Missing, clients, installed
from tests.clients.versions import BIOME

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    found = installed(BIOME.binary, BIOME, folder=clients(os.environ), environ=os.environ)
    if isinstance(found, Missing):
        print(f"MISSING to look at JavaScript: {BIOME.spec}: {found.why}", file=sys.stderr)
        return int(os.environ.get("FOREWORD_VIEWER") == "required")
    how = sys.argv[1:] or ["--error-on-warnings"]
    return subprocess.run([found.binary, "check", *how, "src", "tests"], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
