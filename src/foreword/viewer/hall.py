"""A listening socket -> whole requests -> threads that answer -> what they say, sent: who is slow holds no thread.

One thread hears and speaks for every connection and waits for none of them: a browser keeps lines open that say nothing
yet, a page listens for hours, and somebody may drip his request or never read the answer. Threads only think. There
may be so many connections and no more: then the oldest of those that have come least far gives way.
"""

from __future__ import annotations

import logging
import queue
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from enum import IntEnum

from foreword.errors import BadRequest
from foreword.models import EMPTY
from foreword.worker.http import (
    END,
    GO_ON,
    REFUSED,
    Request,
    Response,
    Seldom,
    Stream,
    awaits,
    length_of,
    parsed,
    refusal,
    rendered,
)

log = logging.getLogger("foreword")

THREADS = 16  # a browser asks six things at once, and a change waits for its commit
MOST_LINES = 128  # connections at once; some systems give a process 256 descriptors, and hooks need theirs
MOST_HEAD = 64 * 1024  # a long prompt to try is sent in the body
MOST_BODY = 2 * 1024 * 1024  # a hook sends 1.25 MB at most, and whoever tries its prompt no more
MOST_UNHEARD = 64 * 1024  # bytes that a page which listens may be behind; a line of a stream has some fifty
TO_ASK = 20.0  # seconds for a request; browsers let go of a line that they made ahead after ten
TO_TAKE = 20.0  # seconds for a peer to take its answer
TO_LEAVE = 1.0  # seconds for a peer to stop sending what nobody reads
TAKEN = 1 << 20  # bytes of a refused body that are taken, so that its sender hears why
AT_ONCE = 32  # connections that are let in before those that are there are heard


class At(IntEnum):
    """How far a connection is; where there is no room, the least gives way."""

    HEAD = 0  # it has not said what it asks
    LEAVING = 1  # all was said; what it still sends is thrown away
    BODY = 2
    SAYING = 3  # it takes its answer
    LISTENING = 4
    THINKING = 5  # a thread has it


class Hall:
    """Answers those whom it admits on *listener* with *handle*, until closed."""

    def __init__(
        self,
        listener: socket.socket,
        handle: Callable[[Request], Response],
        *,
        admit: Callable[[socket.socket], bool],
        look: Callable[[Request], Response | None] = lambda _: None,
        fields: Mapping[str, str] = EMPTY,
        threads: int = THREADS,
    ) -> None:
        self._listener = listener
        self._handle = handle
        self._admit = admit
        self._look = look  # at the head alone: whom it refuses sends no body
        self._fields = fields  # of every answer, also to what is no request
        self._warn = Seldom()
        self._lines: dict[socket.socket, _Line] = {}  # the oldest first
        self._asked: queue.SimpleQueue[_Line | None] = queue.SimpleQueue()
        self._answered: deque[tuple[_Line, Response]] = deque()
        self._until = float("inf")  # when all is over
        self._selector = selectors.DefaultSelector()
        self._bell, self._rope = socket.socketpair()
        for each in (listener, self._bell, self._rope):
            each.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._bell, selectors.EVENT_READ)
        thinking = [threading.Thread(target=self._think, name=f"view-{n}", daemon=True) for n in range(threads)]
        self._threads = [threading.Thread(target=self._run, name="view", daemon=True), *thinking]
        for thread in self._threads:
            thread.start()

    def close(self, *, seconds: float = 1.0) -> None:
        """Take no more requests, and give those under way a moment to end."""
        self._until = time.monotonic() + seconds
        self._ring()
        for _ in self._threads[1:]:
            self._asked.put(None)
        for thread in self._threads:
            thread.join(timeout=max(0.0, self._until + 0.5 - time.monotonic()))

    # -- threads that think ------------------------------------------------------------------------------------
    def _think(self) -> None:
        while (line := self._asked.get()) is not None:
            try:
                answer = self._handle(line.asked)
            except Exception:
                log.exception("a request failed")
                answer = Response(status=500, body=b'{"error": "the viewer failed", "hint": "see logs/worker.log"}')
            self._answered.append((line, answer))
            self._ring()

    def _ring(self) -> None:
        with suppress(OSError):  # it rings already, or all is over
            self._rope.send(b"!")

    # -- the one that hears and speaks -------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            while time.monotonic() < self._until and (self._until == float("inf") or self._is_busy()):
                try:
                    self._round()
                except OSError as exc:  # the system has no room to wait for one more: others must end first
                    self._warn("the viewer could not go on for a moment: %s", exc)
                    time.sleep(0.05)
        finally:
            for line in [*self._lines.values()]:
                if line.stream:
                    self._turn(line)  # the last word
                self._drop(line)
            self._selector.close()
            self._bell.close()
            self._rope.close()

    def _round(self) -> None:
        for key, _ in self._selector.select(self._rest()):
            if key.fileobj is self._listener:
                self._let_in()
            elif key.fileobj is self._bell:
                self._bell.recv(4096)
            else:
                self._turn(key.data)
        while self._answered:
            line, answer = self._answered.popleft()
            self._turn(line, answer)
        self._tend()

    def _is_busy(self) -> bool:
        return any(each.at in (At.THINKING, At.SAYING) or each.unsaid for each in self._lines.values())

    def _rest(self) -> float | None:
        """Seconds until somebody has had his time."""
        until = min((each.until for each in self._lines.values()), default=float("inf"))
        until = min(until, self._until)
        return None if until == float("inf") else max(0.0, until - time.monotonic())

    def _tend(self) -> None:
        now = time.monotonic()
        for line in [*self._lines.values()]:
            if line.stream and line.at == At.LISTENING:
                self._turn(line)
            if line.until <= now:
                self._drop(line)
        self._listen(len(self._lines) < MOST_LINES or self._least() is not None)

    def _listen(self, is_room: bool) -> None:
        """Let in whoever knocks while there is room; else they wait outside, where the system holds them."""
        if self._until < float("inf"):
            is_room = False
        listens = self._listener in self._selector.get_map()
        if is_room and not listens:
            self._selector.register(self._listener, selectors.EVENT_READ)
        elif listens and not is_room:
            self._selector.unregister(self._listener)

    def _let_in(self) -> None:
        for _ in range(AT_ONCE):
            least, is_full = self._least(), len(self._lines) >= MOST_LINES
            if is_full and least is None:
                return
            try:
                came, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as exc:
                self._warn("a connection could not be accepted: %s", exc)
                if least is not None:
                    self._drop(least)  # out of descriptors: others must end first
                time.sleep(0.05)
                return
            if is_full and least is not None:  # not before somebody is there for whom to give way
                self._drop(least)
            self._meet(came)

    def _meet(self, came: socket.socket) -> None:
        try:
            admitted = self._admit(came)
            came.setblocking(False)
        except OSError:
            admitted = False
        except Exception:
            log.exception("nobody can tell who came")
            admitted = False
        if not admitted:
            self._warn(REFUSED)
            came.close()
            return
        line = self._lines[came] = _Line(came, until=time.monotonic() + TO_ASK)
        try:
            self._wait(line, selectors.EVENT_READ)
        except OSError as exc:
            self._warn("a connection could not be waited for: %s", exc)
            self._drop(line)
            return
        self._turn(line)  # most have said all by now

    def _least(self) -> _Line | None:
        """Who gives way first: the oldest of those that have come least far."""
        least = min(self._lines.values(), key=lambda each: each.at, default=None)
        return least if least is not None and least.at < At.LISTENING else None

    def _turn(self, line: _Line, answer: Response | None = None) -> None:
        """Go on with one connection as far as it goes without waiting."""
        try:
            if answer is not None:
                self._say(line, answer)
            if line.at == At.HEAD:
                self._hear_head(line)
            if line.at == At.BODY:
                self._hear_body(line)
            if line.at == At.LISTENING:
                self._pass_on(line)
            if line.at == At.SAYING:
                self._go_on_saying(line)
            if line.at == At.LEAVING:
                self._take(line)
        except BlockingIOError:
            pass
        except BadRequest as exc:
            self._turn(line, refusal(exc))
        except OSError as exc:
            log.debug("a peer left: %s", exc)
            self._drop(line)
        except Exception:
            log.exception("a connection failed")
            self._drop(line)

    def _hear_head(self, line: _Line) -> None:
        while END not in line.got:
            line.hear()
            if len(line.got) > MOST_HEAD and END not in line.got[: MOST_HEAD + len(END)]:
                line.still = TAKEN
                raise BadRequest("the head of the request is too long", hint="send texts in the body")
        head, _, line.got = line.got.partition(END)
        line.still = TAKEN  # of whatever comes behind what is refused
        line.asked = parsed(bytes(head))
        if (refused := self._look(line.asked)) is not None:
            self._say(line, refused)
            return
        announced = int(line.asked.fields.get("content-length", "0"))
        line.still = announced  # whoever may ask hears why it is too long, however long it is
        line.length = length_of(line.asked, most=MOST_BODY)
        if awaits(line.asked):
            line.socket.send(GO_ON)
        line.at = At.BODY

    def _hear_body(self, line: _Line) -> None:
        while len(line.got) < line.length:
            line.hear()
        line.still = TAKEN if len(line.got) > line.length else 0
        line.asked = replace(line.asked, body=bytes(line.got[: line.length]))
        line.got = bytearray()
        line.at, line.until = At.THINKING, float("inf")
        self._wait(line, 0)
        self._asked.put(line)

    def _say(self, line: _Line, answer: Response) -> None:
        line.unsaid = memoryview(rendered(answer, fields=self._fields))
        line.at, line.until = At.SAYING, time.monotonic() + TO_TAKE
        if isinstance(answer.body, Stream):
            line.stream, line.at, line.until = answer.body, At.LISTENING, float("inf")
            line.stream.to(self._ring)
        self._wait(line, selectors.EVENT_WRITE if line.at == At.SAYING else selectors.EVENT_READ)

    def _go_on_saying(self, line: _Line) -> None:
        line.speak()
        if not line.still:
            self._drop(line)
            return
        # A line that is closed on unread bytes loses the answer too.
        line.socket.shutdown(socket.SHUT_WR)
        line.at, line.until = At.LEAVING, time.monotonic() + TO_LEAVE
        self._wait(line, selectors.EVENT_READ)

    def _pass_on(self, line: _Line) -> None:
        """What a stream has said, to whoever still listens."""
        assert line.stream
        over = line.stream.over  # before what was said is taken: the last word comes with it
        if said := line.stream.taken():
            line.unsaid = memoryview(bytes(line.unsaid) + said)
        try:
            line.speak()
        except BlockingIOError:
            if len(line.unsaid) > MOST_UNHEARD:
                raise ConnectionError("a page that listens does not read") from None
            self._wait(line, selectors.EVENT_READ | selectors.EVENT_WRITE)
        else:
            if over:
                self._drop(line)
                return
            self._wait(line, selectors.EVENT_READ)
        line.hear()
        line.got = bytearray()  # it has nothing more to ask

    def _take(self, line: _Line) -> None:
        line.got = bytearray()
        line.hear()  # once a turn: whoever sends without an end has a second, and keeps nobody waiting
        line.still -= len(line.got)
        if line.still <= 0:
            self._drop(line)

    def _wait(self, line: _Line, events: int) -> None:
        if line.events == events:
            return
        if not events:
            self._selector.unregister(line.socket)
        elif not line.events:
            self._selector.register(line.socket, events, line)
        else:
            self._selector.modify(line.socket, events, line)
        line.events = events

    def _drop(self, line: _Line) -> None:
        if self._lines.pop(line.socket, None) is None:
            return
        self._wait(line, 0)
        line.socket.close()
        if line.stream:
            line.stream.left = True


class _Line:
    """One connection: what it said, what it was not told yet, and until when it may take its time."""

    def __init__(self, line: socket.socket, *, until: float) -> None:
        self.socket = line
        self.until = until
        self.at = At.HEAD
        self.events = 0  # that are waited for
        self.got = bytearray()
        self.asked = Request(method="", path="", query={}, body=b"")
        self.length = 0  # of its body
        self.still = 0  # bytes that it may still send when all was said
        self.unsaid = memoryview(b"")
        self.stream: Stream | None = None

    def hear(self) -> None:
        """Take what has come; raises BlockingIOError where nothing has, and ConnectionError at the end."""
        part = self.socket.recv(1 << 18)
        if not part:
            raise ConnectionError("it hung up")
        self.got += part

    def speak(self) -> None:
        """Say what is unsaid; raises BlockingIOError where the peer does not take more."""
        while self.unsaid:
            self.unsaid = self.unsaid[self.socket.send(self.unsaid) :]
