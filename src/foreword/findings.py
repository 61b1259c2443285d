"""Something that was looked at -> a finding: how it stands and, where it does not stand well, the way out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foreword.values import value

OK, NOTE, WRONG = "ok", "note", "wrong"
LATELY = 7 * 86_400.0  # seconds; what was untold before last week is history
SETTLE = 10.0  # seconds; a worker takes the spool in within its first second, a big one needs a few
BACKLOG = 60.0  # seconds; what waits longer beside a running worker is stuck
# What is told of a host that never told anything.
UNHEARD: Mapping[str, Any] = {"last_event": None, "last_injection": None, "sessions": 0, "events": 0, "died": []}


@value
class Finding:
    """One check: its state is OK, NOTE or WRONG, and `way_out` tells what to do."""

    check: str
    state: str
    says: str
    way_out: str = ""
