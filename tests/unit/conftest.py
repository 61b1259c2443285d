"""What several tests of single modules need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from foreword.store import Store


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One store for all tests of a module: each uses projects of its own."""
    folder = tmp_path_factory.mktemp("store")
    made = Store(folder / "memory.db", backups=folder / "backups")
    yield made
    made.close()
