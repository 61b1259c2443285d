"""The two ports of a loopback connection -> the user at its other end, where the system tells it."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

HERE = bytes((127, 0, 0, 1))
OPEN = 1  # the state of a connection of which neither end was closed
NOBODY = -1
# Linux: asking for one connection takes microseconds, its whole table some 10 ms, in which rows can be missed.
DIAG, BY_FAMILY, REQUEST, ERROR = 4, 20, 1, 2
ID = struct.Struct("!HH16s16s12s")  # ports and addresses of the end that we ask for, any interface, any cookie
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def owner_of(port: int, to: int) -> int | None:
    """The user whose end of an open loopback connection has *port*; -1 for nobody, None where the system does not tell.

    An end that was closed already belongs to nobody: the system would say root.
    """
    try:
        return _asked(port, to)
    except (AttributeError, OSError, struct.error):
        return _looked_up(port, to)  # another system, or one that does not let us ask


def _asked(port: int, to: int) -> int:
    """As the kernel answers a question for this one connection."""
    about = ID.pack(port, to, HERE, HERE, bytes(4) + b"\xff" * 8)
    asked = struct.pack("BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + about
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, DIAG) as line:
        line.settimeout(1.0)
        line.send(struct.pack("=IHHII", 16 + len(asked), BY_FAMILY, REQUEST, 1, 0) + asked)
        got = line.recv(8192)
    kind = struct.unpack_from("=IH", got)[1]
    if kind == ERROR:
        code = -struct.unpack_from("=i", got, 16)[0]
        if code == 2:  # there is no such connection
            return NOBODY
        raise OSError(code, "the kernel tells nothing of connections")
    state = got[17]
    return int(struct.unpack_from("=I", got, 16 + 4 + ID.size + 12)[0]) if state == OPEN else NOBODY


def _looked_up(port: int, to: int) -> int | None:
    """As the table of all connections tells it."""
    near, far = f"{struct.unpack('=I', HERE)[0]:08X}:{port:04X}", f":{to:04X}"
    told = False
    for table in TABLES:
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        told = True
        for row in rows:
            _, local, remote, state, *rest = row.split()
            if int(state, 16) == OPEN and local.endswith(near) and remote.endswith(far):
                return int(rest[3])
    return NOBODY if told else None
