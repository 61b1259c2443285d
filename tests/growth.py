"""Check that work grows with the size of its input and no faster, on a machine of any speed."""

from __future__ import annotations

import time
from collections.abc import Callable

TIMES = 4  # between the two sizes: work that grows with the square takes 16 times as long
SLACK = 0.2  # seconds, for what has nothing to do with the size; a shorter time is no trouble to anybody


def assert_linear(read: Callable[[str], object], piece: str, *, size: int = 16_000) -> None:
    """Fail where four times as much of *piece* takes more than eight times the processor time."""
    small, large = (_fastest(read, piece * (length // len(piece) + 1)) for length in (size, TIMES * size))
    assert large <= 2 * TIMES * small + SLACK, f"{piece!r}: {small:.3f} s, then {large:.3f} s for {TIMES} times as much"


def _fastest(read: Callable[[str], object], text: str) -> float:
    """Return the shortest of three times: other work on the machine only ever makes one longer."""
    times = []
    for _ in range(3):
        began = time.process_time()
        read(text)
        times.append(time.process_time() - began)
        if times[-1] < SLACK:
            break
    return min(times)
