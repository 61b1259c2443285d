"""Who asks -> when it is their turn: what is only looked at leaves readers to those who wait for an agent's sake."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_asking = threading.local()


@contextmanager
def aside() -> Iterator[None]:
    """What this thread asks meanwhile takes its turns among a few readers, whatever the store."""
    before, _asking.aside = getattr(_asking, "aside", False), True
    try:
        yield
    finally:
        _asking.aside = before


class Turns:
    """So many at a time, and besides them so many of those who ask aside; who has a turn takes no second."""

    def __init__(self, most: int, *, most_aside: int) -> None:
        self._first = threading.BoundedSemaphore(most)
        self._aside = threading.BoundedSemaphore(most_aside)
        self._mine = threading.local()

    @contextmanager
    def taken(self) -> Iterator[None]:
        if getattr(self._mine, "held", False):
            yield
            return
        with self._aside if getattr(_asking, "aside", False) else self._first:
            self._mine.held = True
            try:
                yield
            finally:
                self._mine.held = False
