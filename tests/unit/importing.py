"""What tests of imports share: default settings, and to wait for the thread."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from foreword.config import Settings, load
from foreword.paths import Home
from foreword.worker.jobs.imports import Importing


def settings() -> Settings:
    return load(Home(Path("/nowhere")), {}).settings


def wait(importing: Importing, *, seconds: float = 30) -> dict[str, Any]:
    """What is told of the last import when it has ended."""
    until = time.monotonic() + seconds
    while importing.busy() and time.monotonic() < until:
        time.sleep(0.01)
    told: dict[str, Any] = importing.told()["imports"][0]
    return told
