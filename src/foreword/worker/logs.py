"""What the worker has to say -> a file that begins again when it is full, without secrets."""

from __future__ import annotations

import logging
import logging.handlers

from foreword.config import Settings
from foreword.paths import Home
from foreword.redact import redact


def log_to(home: Home, settings: Settings) -> None:
    """Write the log as these settings have it, from now on."""
    kept = logging.handlers.RotatingFileHandler(
        home.log, maxBytes=settings.worker_log_kb * 1024, backupCount=2, encoding="utf-8", errors="replace"
    )
    kept.setFormatter(_Clean("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[kept], force=True)


class _Clean(logging.Formatter):
    """An exception's text may hold what somebody sent."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))
