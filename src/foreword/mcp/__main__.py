"""stdin of an MCP client -> answers on stdout, a line each; tools are asked of the worker.

Greetings and lists are answered at once, with no worker about. Each call of a tool has a thread of its own, so that a
slow one keeps nobody waiting; lines never mix. Nothing else is ever written to stdout.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from foreword.encoding import decoded, dumps, loads
from foreword.errors import BadPayload, ForewordError
from foreword.mcp import protocol
from foreword.mcp.caller import caller, start_worker
from foreword.mcp.protocol import INTERNAL, PARSE_ERROR, Call, Cancelled, Message, Peer
from foreword.paths import Home, home

MOST_LINE = 32 * 1024 * 1024  # bytes; the worker takes half of that
AT_ONCE = 16  # calls; one more waits, and so does whatever is said after it
ANSWER_SECONDS = 8.0  # for a call, with a worker that must be started: long before any client gives up
START_SECONDS = 6.0  # of these, for a worker to come
CLOSED_SECONDS = ANSWER_SECONDS + 1  # that calls under way have when the client has gone silent for good


def main() -> int:
    """Serve until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a host that ends us so, or a user's Ctrl-C: no traceback
    out = _kept_apart()
    with suppress(BrokenPipeError):  # the client is gone
        Server(out).serve(0)
    return 0


def _kept_apart() -> int:
    """Where answers go; whatever else is printed by whomever, stdout is not where it ends up."""
    out = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError:  # no stderr
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
    for fd in (0, out):
        os.set_blocking(fd, True)
    return out


class Server:
    """One client on a pair of pipes."""

    def __init__(self, out: int) -> None:
        self._out = out
        self._peer = Peer()
        self._writing = threading.Lock()
        self._counting = threading.Lock()
        self._wanted: dict[str | int, Call] = {}  # calls under way whose answers somebody waits for
        self._running = 0

    def serve(self, fd: int) -> None:
        for line in _lines(fd):
            self._hear(line)
        until = monotonic() + CLOSED_SECONDS
        while self._running and monotonic() < until:
            sleep(0.01)

    def _hear(self, line: bytes | None) -> None:
        if line is None:
            self._say(protocol.error(None, PARSE_ERROR, f"a line has at most {MOST_LINE} bytes"))
            return
        try:
            message = protocol.heard(line)
        except BadPayload as exc:
            self._say(protocol.refused(exc))
            return
        if isinstance(message, list) and message:
            self._hear_batch(message)
            return
        told, self._peer = protocol.answered(message, self._peer)
        if isinstance(told, Cancelled):
            self._wanted.pop(told.id, None)
        elif isinstance(told, Call):
            self._begin(told)
        elif told is not None:
            self._say(told)

    def _hear_batch(self, messages: list[Any]) -> None:
        """A batch, as older versions have them: its answers come together, in one line."""
        answers = []
        for message in messages:
            told, self._peer = protocol.answered(message, self._peer)
            if isinstance(told, Call):
                answers.append(_outcome(told))
            elif told is not None and not isinstance(told, Cancelled):
                answers.append(told)
        if answers:
            self._say(answers)

    def _begin(self, call: Call) -> None:
        with self._counting:
            self._running += 1
            self._wanted[call.id] = call
        if self._running > AT_ONCE:
            self._run(call)
            return
        try:
            threading.Thread(target=self._run, args=(call,), daemon=True).start()
        except RuntimeError:  # no more threads on this machine
            self._run(call)

    def _run(self, call: Call) -> None:
        try:
            answer = _outcome(call)
            if self._wanted.pop(call.id, None) is not None:
                self._say(answer)
        except OSError:
            pass  # the client is gone
        finally:
            with self._counting:
                self._running -= 1

    def _say(self, told: Message | list[Message]) -> None:
        data = (dumps(told) + "\n").encode()
        with self._writing:
            while data:
                data = data[os.write(self._out, data) :]


def _lines(fd: int) -> Iterator[bytes | None]:
    """The lines that arrive; None for one that is too long. A last one without its end is heard too."""
    held, scanned, spoiled = bytearray(), 0, False
    while part := os.read(fd, 1 << 18):
        held += part
        while (end := held.find(b"\n", scanned)) >= 0:
            line = bytes(held[:end])
            del held[: end + 1]
            scanned = 0
            if spoiled or line.strip():
                yield None if spoiled else line
            spoiled = False
        scanned = len(held)
        if scanned > MOST_LINE:
            held, scanned, spoiled = bytearray(), 0, True
    if held.strip() and not spoiled:
        yield bytes(held)


# ---- what only the worker knows


def _outcome(call: Call) -> Message:
    """The answer to a call; whatever happens, there is one."""
    try:
        told = ask(call)
        return protocol.result(
            call,
            text=str(told.get("text", "")),
            structured=told.get("structured"),
            failed=bool(told.get("failed")),
        )
    except ForewordError as exc:
        return protocol.result(call, text=f"{exc}; {exc.hint}", structured=None, failed=True)
    except Exception as exc:  # noqa: BLE001 - a server that dies takes every tool with it
        return protocol.error(call.id, INTERNAL, f"the memory server failed: {type(exc).__name__}: {exc}"[:500])


def ask(call: Call) -> Mapping[str, Any]:
    """What the worker says to a call, within ANSWER_SECONDS; one that is away is started."""
    if os.environ.get("FOREWORD_OFF", "") not in ("", "0"):
        raise ForewordError("memory is switched off here (FOREWORD_OFF)", hint="go on without it")
    until = monotonic() + ANSWER_SECONDS
    here = home(os.environ)
    body = dumps({"tool": call.tool, "arguments": call.arguments, "caller": caller(call, here)}).encode()
    line = _line(here, until=until)
    try:
        status, raw = _exchanged(line, body, until=until)
    except TimeoutError as exc:
        raise ForewordError(
            f"the memory worker did not answer within {ANSWER_SECONDS:.0f} seconds",
            hint="go on without it; the user can run `foreword doctor`",
        ) from exc
    except OSError as exc:
        raise ForewordError(f"the memory worker left while it was asked: {exc}", hint="ask again") from exc
    told = _object(raw)
    if status != 200:
        raise ForewordError(
            str(told.get("error") or f"the memory worker answered {status}"), hint=str(told.get("hint") or "ask again")
        )
    return told


def _line(here: Home, *, until: float) -> socket.socket:
    """A connection to the worker; where nobody listens, one is started and waited for."""
    with_patience = min(until, monotonic() + START_SECONDS)
    started = False
    while True:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.settimeout(max(0.01, until - monotonic()))
        try:
            line.connect(str(here.socket))
        except (FileNotFoundError, ConnectionRefusedError) as exc:
            line.close()
            if not started:
                start_worker(here)
                started = True
            if monotonic() > with_patience:
                raise ForewordError(
                    "the memory worker is away and did not start in time",
                    hint="go on without it, and ask again later; the user can run `foreword doctor`",
                ) from exc
            sleep(0.02)
        except OSError as exc:
            line.close()
            raise ForewordError(
                f"the memory worker cannot be reached: {exc}", hint="the user can run `foreword doctor`"
            ) from exc
        else:
            return line


def _exchanged(line: socket.socket, body: bytes, *, until: float) -> tuple[int, bytes]:
    try:
        head = f"POST /api/mcp HTTP/1.1\r\nHost: foreword\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        line.sendall(head.encode() + body)
        got = []
        while True:
            line.settimeout(max(0.01, until - monotonic()))
            part = line.recv(1 << 18)
            if not part:
                break
            got.append(part)
    finally:
        line.close()
    top, _, raw = b"".join(got).partition(b"\r\n\r\n")
    words = top.split(b" ", 2)
    if len(words) < 2 or not words[1].isdigit():
        raise ConnectionResetError("it said nothing")
    return int(words[1]), raw


def _object(raw: bytes) -> dict[str, Any]:
    try:
        told = loads(decoded(raw))
    except BadPayload as exc:
        raise ForewordError("the memory worker answered no JSON", hint="ask again") from exc
    return told if isinstance(told, dict) else {}


if __name__ == "__main__":
    sys.exit(main())
