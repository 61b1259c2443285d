"""Run the one worker of this home: `python -m foreword.worker`; a second one leaves at once.

The socket is bound before anything heavy is imported, so that a hook that comes too early waits instead of failing.
"""

from __future__ import annotations

import signal
import sys
import threading


def main() -> int:
    from foreword.worker.lifecycle import LockTaken, WorkerLock

    leaving = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):  # before anybody can find us by the lock
        signal.signal(name, lambda *_: leaving.set())
    try:
        with WorkerLock.taken() as worker_lock:
            from foreword.worker.routes import serve

            again = serve(worker_lock, leaving)
    except LockTaken:
        return 0
    if again:
        worker_lock.replace_process()
    return 0


if __name__ == "__main__":
    sys.exit(main())
