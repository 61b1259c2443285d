"""What every kind of test may need: homes of their own, the shared samples; and the summary of a run."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from foreword.paths import Home
from foreword.store import Store
from tests.scratch import scratch_home

# `make test` runs the same examples every time, so that it passes every time; `make test-all` looks for new ones.
settings.register_profile("same", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=200)
settings.load_profile("same")

# Hundreds of workers are started here: without bytecode each compiles the package, 2.5 s of a core instead of 0.7.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Who is started in the background of a script, or by nohup, is told to ignore these, and with him all whom he starts.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


@pytest.fixture
def home() -> Iterator[Home]:
    """A home of the test's own; a worker that it leaves there fails it."""
    with scratch_home() as made:
        yield made


@pytest.fixture(scope="session")
def shared() -> Path:
    """The samples beside the checkout; without them a test says so and is passed over."""
    if not SHARED.is_dir():
        pytest.skip(f"no samples: {SHARED.name}/ is not beside this checkout")
    return SHARED


@pytest.fixture
def make_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Store]]:
    """`make_store()` opens an empty store; all are closed at the end."""
    opened: list[Store] = []

    def make() -> Store:
        folder = tmp_path_factory.mktemp("store")
        opened.append(Store(folder / "memory.db", backups=folder / "backups"))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store of its own, closed at the end."""
    made = Store(tmp_path / "memory.db", backups=tmp_path / "backups")
    yield made
    made.close()


# -- the run -----------------------------------------------------------------------------------------------------------

BEGAN = pytest.StashKey[float]()
STATUS = pytest.StashKey[int]()
SUMMARY = ("passed", "failed", "error", "skipped", "xfailed")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[BEGAN] = time.monotonic()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, or one core waits for the other at the end."""
    items.sort(key=lambda item: not item.get_closest_marker("first"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out on purpose, beside what pytest says was skipped."""
    if terminalreporter.config.option.markexpr.startswith("not long"):
        terminalreporter.line(
            "NOT RUN: tests marked `long`, and the real agents (`make test-all`); `prove` (`make prove`)"
        )
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "figure":
                terminalreporter.line(f"  {value}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[STATUS] = exitstatus


def pytest_unconfigure(config: pytest.Config) -> None:
    """Print one line, the last of all: how many passed, or that something failed."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or STATUS not in config.stash:
        return  # a process of pytest-xdist, whose controller tells
    counts = {name: len(reporter.stats.get(name, ())) for name in SUMMARY}
    words = ", ".join(f"{count} {name}" for name, count in counts.items() if count or name == "passed")
    failed = "FAILED: " if config.stash[STATUS] else ""
    reporter.line(f"{failed}{words} in {time.monotonic() - config.stash[BEGAN]:.0f} s")
