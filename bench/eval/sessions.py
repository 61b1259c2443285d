"""Find the recorded sessions of ../shared/bench/sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

SESSIONS = Path(__file__).parents[2].parent / "shared" / "bench" / "sessions"


def projects(folder: Path = SESSIONS) -> Sequence[str]:
    """Return the names of the recorded projects; none where ../shared is not there."""
    return sorted(path.name for path in folder.iterdir() if (path / "gold.json").exists()) if folder.is_dir() else []
