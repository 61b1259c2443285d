"""What tests of imports share: to wait for the job."""

from __future__ import annotations

import time
from typing import Any

from foreword.worker.jobs.imports import ImportJob


def wait(importing: ImportJob, *, seconds: float = 30) -> dict[str, Any]:
    """Return the status of the last import when it has ended."""
    until = time.monotonic() + seconds
    while importing.is_busy() and time.monotonic() < until:
        time.sleep(0.01)
    reported: dict[str, Any] = importing.status()["imports"][0]
    return reported
