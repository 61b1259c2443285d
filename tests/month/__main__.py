"""`make month`: play the month twice, with an agent that uses what it is given and with one that does not; figures."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.month.figures import figures
from tests.month.golden import page
from tests.month.play import play


def main() -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fw-") as folder:
        month = play(Path(folder) / "a")
        seconds = time.monotonic() - began
        ignoring = play(Path(folder) / "b", attentive=False)
    if "--page" in sys.argv:
        print(page(month))
    for line in figures(month, ignoring=ignoring):
        print(line)
    print(f"seconds for one play     {seconds:.0f}")


if __name__ == "__main__":
    main()
