"""What the suites of the store share: a new store of every kind we have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from foreword.store import Store

MakeStore = Callable[..., Store]

# A second kind of store is one more line here: name -> a folder in, an open store out.
BACKENDS: dict[str, Callable[[Path], Store]] = {
    "sqlite": lambda folder: Store(folder / "memory.db", backups=folder / "backups"),
}


@pytest.fixture(scope="module", params=BACKENDS)
def make_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeStore]:
    """`make_store()` opens a new store, `make_store(folder)` the one that lies there; all are closed at the end."""
    opened: list[Store] = []

    def make(folder: Path | None = None) -> Store:
        opened.append(BACKENDS[request.param](folder or tmp_path_factory.mktemp("store")))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture(scope="module")
def shared_store(make_store: MakeStore) -> Store:
    """One store for the properties that hypothesis tries a thousand times; each example has a project of its own."""
    return make_store()


@pytest.fixture
def store(make_store: MakeStore) -> Iterator[Store]:
    """An empty store of its own for each test."""
    made = make_store()
    yield made
    made.close()
