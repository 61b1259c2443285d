"""`python -m foreword.worker` -> the one worker of this home; a second one leaves at once.

The socket is bound before anything heavy is imported, so that a hook that comes too early waits instead of failing.
"""

from __future__ import annotations

import sys


def main() -> int:
    from foreword.worker.life import LockTaken, Seat

    try:
        with Seat.taken() as seat:
            from foreword.worker.server import serve

            again = serve(seat)
    except LockTaken:
        return 0
    if again:
        seat.replace_process()
    return 0


if __name__ == "__main__":
    sys.exit(main())
