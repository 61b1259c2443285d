"""What every kind of test may need: short homes, and where the shared samples are."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from foreword.paths import Home
from foreword.store.sqlite import Store

settings.register_profile("foreword", deadline=None)  # what is promised holds on a busy machine too
settings.load_profile("foreword")

# Hundreds of workers are started here: without bytecode each compiles the package, 2.5 s of a core instead of 0.7.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Who is started in the background of a script, or by nohup, is told to ignore these, and with him all whom he starts.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


@pytest.fixture
def home() -> Iterator[Home]:
    """A home whose socket path is short enough, gone afterwards."""
    root = Path(tempfile.mkdtemp(prefix="fw-"))
    made = Home(root=root / "h")
    made.prepare()
    yield made
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The samples beside the checkout; without them a test says so and is passed over."""
    if not SHARED.is_dir():
        pytest.skip(f"no samples: {SHARED.name}/ is not beside this checkout")
    return SHARED


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store of its own, closed at the end."""
    made = Store(tmp_path / "memory.db", backups=tmp_path / "backups")
    yield made
    made.close()
