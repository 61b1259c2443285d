"""A prompt -> the answer of the `claude` command: no tools, no hooks, one turn, and nothing of it outlives the call."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from foreword.endpoint import LATE
from foreword.errors import ModelError
from foreword.models import MOST_ANSWER, PASSES, Completed, NoAnswer, total, understood, whole
from foreword.models.leash import GONE, TIME_IS_UP
from foreword.models.schema import Schema

LEASH = Path(__file__).with_name("leash.py")
GRACE = 10.0  # seconds for the leash to end everything; then it is ended itself
# Where the installers put it; the worker may have been started with a short PATH.
PLACES = ("~/.local/bin", "~/.claude/local", "/usr/local/bin", "/opt/homebrew/bin")
# Of a session that started the worker, and not for another one.
SESSION = ("CLAUDECODE", "CLAUDE_PID", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE", "CLAUDE_EFFORT", "AI_AGENT")
SESSION_STARTS = ("CLAUDE_CODE_SESSION", "CLAUDE_CODE_CHILD", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_MESSAGING")
QUIET = {
    "FOREWORD_OFF": "1",  # should a hook of ours run all the same, it does nothing
    "CLAUDE_CODE_SAFE_MODE": "1",  # no CLAUDE.md, plugins or skills; versions that do not know it pay their tokens
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "MAX_THINKING_TOKENS": "0",
}
# --bare would be shorter and reads no login but a key (measured with 2.1.325), so hooks go by the setting.
FLAGS = (
    *("--output-format", "json", "--max-turns", "1", "--tools", "", "--strict-mcp-config"),
    *("--no-session-persistence", "--disable-slash-commands", "--settings", '{"disableAllHooks": true}'),
)


class Claude:
    """The command, with the login that it has itself."""

    provider = "claude"

    def __init__(self, *, model: str = "", environ: Mapping[str, str]) -> None:
        self._model = model
        self.name = model or "default"
        self._environ = _environ(environ)
        home = environ.get("HOME", "")
        places = [environ.get("PATH", ""), *(each.replace("~", home) for each in PLACES if home or "~" not in each)]
        found = shutil.which("claude", path=os.pathsep.join(places))
        if found is None:
            raise ModelError(
                "`model_provider = claude` needs the command `claude`, which is not found",
                hint="install Claude Code, or put it on the PATH and `foreword worker stop`: the next worker knows it",
            )
        self.where = found
        self._running: set[_Lifeline] = set()
        self._closed = False

    def complete(self, prompt: str, *, system: str, schema: Schema, most_tokens: int, seconds: float) -> Completed:
        began = time.perf_counter()
        chosen = ("--model", self._model) if self._model else ()
        command = [self.where, "-p", *FLAGS, *chosen, "--system-prompt", system]
        environ = {**self._environ, "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(most_tokens)}
        with tempfile.TemporaryDirectory(prefix="foreword-") as folder:
            raw = self._run(command, told=prompt.encode(), environ=environ, folder=folder, seconds=seconds)
        answer = _answer(raw)
        used = _used(answer)
        text = _text(answer, used=used)
        data = understood(text, schema, who=WHO, used=used)
        return Completed(data, text, *used, ms=(time.perf_counter() - began) * 1000)

    def close(self) -> None:
        self._closed = True
        for each in tuple(self._running):
            each.cut()

    def _run(
        self, command: list[str], *, told: bytes, environ: Mapping[str, str], folder: str, seconds: float
    ) -> bytes:
        """What the command prints; at the deadline, at our end and at its own, everything it started is ended."""
        ends, held = os.pipe()
        lifeline = _Lifeline(held)
        self._running.add(lifeline)
        try:
            if self._closed:
                raise NoAnswer(f"{WHO} was not started: the worker leaves", why="ended")
            process = _started(command, ends=ends, environ=environ, folder=folder, seconds=seconds)
            try:
                data = _talk(process, told, until=time.monotonic() + seconds + GRACE)
            finally:
                lifeline.cut()
                code = _ended(process)
        finally:
            lifeline.cut()
            os.close(ends)
            self._running.discard(lifeline)
        if len(data) > MOST_ANSWER:
            raise NoAnswer(f"{WHO} answered with more than anyone would", why="huge", worked=True)
        if code == TIME_IS_UP:
            raise NoAnswer(f"{WHO} {LATE}", why="late", worked=True)
        if code == GONE:
            raise NoAnswer(f"{WHO} was ended", why="ended", worked=True)
        if code and not data.strip():
            raise NoAnswer(f"{WHO} ended with {code}", why=f"exit-{code}", hint=LOGIN)
        return data


WHO = "the command `claude`"
LOGIN = "try `claude -p hello` yourself; it may want a login, an update, or another `model_name`"


def _started(
    command: list[str], *, ends: int, environ: Mapping[str, str], folder: str, seconds: float
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - the command of the user's choice, without a shell
            [sys.executable, "-I", "-S", str(LEASH), str(ends), str(seconds), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environ,
            pass_fds=(ends,),
            start_new_session=True,
        )
    except OSError as exc:
        raise NoAnswer(f"{WHO} cannot be started ({type(exc).__name__})", why="away") from exc


class _Lifeline:
    """Our end of a pipe, closed once."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._lock = threading.Lock()

    def cut(self) -> None:
        with self._lock:
            if self._handle >= 0:
                os.close(self._handle)
            self._handle = -1


def _talk(process: subprocess.Popen[bytes], told: bytes, *, until: float) -> bytes:
    """Give it *told* and take what it prints, to its end or to more than anyone would say, in any order."""
    assert process.stdin is not None
    assert process.stdout is not None
    got = bytearray()
    with selectors.DefaultSelector() as waits, process.stdin, process.stdout:
        for stream, event in ((process.stdin, selectors.EVENT_WRITE), (process.stdout, selectors.EVENT_READ)):
            os.set_blocking(stream.fileno(), False)
            waits.register(stream, event)
        left = memoryview(told)
        while len(got) <= MOST_ANSWER:
            ready = waits.select(max(0.0, until - time.monotonic()))
            if not ready:
                break
            for key, _ in ready:
                if key.fileobj is process.stdout:
                    some = os.read(key.fd, 65536)
                    if not some:
                        return bytes(got)
                    got += some
                else:
                    try:
                        left = left[os.write(key.fd, left) :]
                    except BrokenPipeError:
                        left = left[:0]  # it does not want to know more
                    if not left:
                        waits.unregister(process.stdin)
                        with suppress(BrokenPipeError):
                            process.stdin.close()
    return bytes(got)


def _ended(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(GRACE)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return TIME_IS_UP


def _environ(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {name: text for name, text in environ.items() if name not in SESSION and not name.startswith(SESSION_STARTS)}
    return {**kept, **QUIET}


def _answer(raw: bytes) -> dict[str, Any]:
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise NoAnswer(f"{WHO} printed something that is no JSON", why="garbage", worked=True, hint=LOGIN) from exc
    last = told[-1] if isinstance(told, list) and told else told  # with `verbose` set, every message
    if not isinstance(last, dict):
        raise NoAnswer(f"{WHO} printed no result", why="garbage", worked=True, hint=LOGIN)
    return last


def _used(answer: Mapping[str, Any]) -> tuple[int, int]:
    usage = answer.get("usage")
    told = usage if isinstance(usage, dict) else {}
    cached = (told.get("cache_creation_input_tokens"), told.get("cache_read_input_tokens"))
    return total(told.get("input_tokens"), *cached), whole(told.get("output_tokens"))


def _text(answer: Mapping[str, Any], *, used: tuple[int, int]) -> str:
    text = answer.get("result")
    if answer.get("is_error") or not isinstance(text, str):
        hint = LOGIN if answer.get("is_error") else PASSES
        raise NoAnswer(f"{WHO} tells an error", why="error", worked=True, used=used, hint=hint)
    return text
