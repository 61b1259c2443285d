"""Run a command without a network, loopback up, with a fresh seed: `python tests/prove/offline.py COMMAND`."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import socket
import struct
import subprocess
import sys

MARK = "FOREWORD_OFFLINE"
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def main() -> None:
    os.environ.setdefault("FOREWORD_SEED", secrets.token_hex(4))
    if MARK not in os.environ:
        os.environ[MARK] = "1"
        for way in (["-n"], ["-rn"]):  # as root, or as the root of a namespace of users
            if shutil.which("unshare") and not subprocess.run(["unshare", *way, "true"], check=False).returncode:
                os.execvp("unshare", ["unshare", *way, sys.executable, *sys.argv])
        print("THE NETWORK IS NOT OFF: `unshare -n` is not allowed here", file=sys.stderr)
    else:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            fcntl.ioctl(line, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP))
    print(f"FOREWORD_SEED={os.environ['FOREWORD_SEED']}", flush=True)
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
