"""`make test` says loudly that it has not run the real clients."""

from __future__ import annotations

import os

import pytest

from tests.clients.versions import VERSIONS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if os.environ.get("TESTS_CLIENTS"):
        return  # tests/run.py runs them beside this
    terminalreporter.section("REAL CLIENTS WERE NOT RUN HERE: `make e2e` runs them", sep="=", yellow=True, bold=True)
    terminalreporter.line(", ".join(pinned.spec for pinned in VERSIONS.values()))
