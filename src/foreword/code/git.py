"""Run git safely: read what it prints in pieces, and its blobs; nothing is fetched, and no hook is run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import IO

from foreword.errors import BadRequest

PATIENCE = 30.0  # seconds without a byte from git; a cold disk and a huge tree need a few
CHUNK = 1 << 16
LONGEST = 1 << 20  # bytes of a message or a name that are kept

# In front of every command: nothing that the repository names may be run.
SAFELY = (
    "--no-pager",
    "-c", "core.fsmonitor=false",  # it may name a program of the repository's choice
    "-c", "core.hooksPath=/dev/null",
)  # fmt: skip
ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "none",  # a partial clone would fetch what it lacks, and nothing leaves the machine
    "LC_ALL": "C",  # we read git's complaints
}
NO_COMMITS = ("does not have any commits yet", "bad default revision 'HEAD'")


def environment() -> dict[str, str]:
    """Return this process's environment, without what would lead git to another repository."""
    # A GIT_DIR of somebody's hook would lead to another repository.
    return {name: text for name, text in os.environ.items() if _may_pass(name)} | ENVIRONMENT


def text(raw: bytes) -> str:
    """Return what git printed as text; old names and messages may be in any encoding, and stores take UTF-8 only."""
    return raw.decode("utf-8", "replace")


def seconds(raw: bytes) -> float:
    """Return a time as git prints it; 0 for a commit that some tool wrote without a date."""
    try:
        return float(int(raw))
    except (ValueError, OverflowError):
        return 0.0


@contextlib.contextmanager
def output(folder: str, words: Sequence[str], *, patience: float = PATIENCE) -> Iterator[Iterator[bytes]]:
    """Yield what `git *words*` prints in *folder*; the process is gone when the block is left, however it is left.

    A failure, and a silence of more than *patience* seconds, is a BadRequest; a repository without commits prints
    nothing.
    """
    with _process(folder, words) as (process, complaints):
        yield _pieces(process, complaints=complaints, folder=folder, patience=patience)


def fields(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield each field that ends with NUL; of one that is too long, its beginning."""
    rest = bytearray()
    for piece in pieces:
        first, *others = piece.split(b"\0")
        rest += first[: max(0, LONGEST - len(rest))]
        for each in others:
            yield bytes(rest)
            rest = bytearray(each)


class Blobs:
    """The contents of a repository's blobs, through one `git cat-file` that lives as long as the block."""

    def __init__(self, folder: str, *, largest: int, patience: float = PATIENCE) -> None:
        self.folder, self.largest, self.patience = folder, largest, patience
        self._left = contextlib.ExitStack()

    def __enter__(self) -> Blobs:
        opened = _process(self.folder, (*SAFELY, "cat-file", "--batch"), stdin=subprocess.PIPE)
        self._process, self._complaints = self._left.enter_context(opened)
        self._watch = self._left.enter_context(_Watch(self._process, patience=self.patience))
        return self

    def __exit__(self, *_: object) -> None:
        self._left.close()

    def read(self, names: Sequence[str]) -> list[bytes | None]:
        """Return the contents in the order of *names*, at most some hundred; None for too large, missing, no blob."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        try:
            with self._watch.waiting():
                requests.write("".join(f"{name}\n" for name in names).encode())
                requests.flush()
                return [self._one(answers) for _ in names]
        except BrokenPipeError:
            raise self._failure() from None

    def _one(self, answers: IO[bytes]) -> bytes | None:
        head = answers.readline()
        if not head.endswith(b"\n"):
            raise self._failure()
        kind, _, size = head.rstrip().partition(b" ")[2].partition(b" ")
        if not size.isdigit():  # `NAME missing`
            return None
        left, kept = int(size) + 1, int(size) <= self.largest and kind == b"blob"
        if kept:
            return answers.read(left)[:-1]
        while left > 0 and (piece := answers.read(min(left, CHUNK))):
            left -= len(piece)
        return None

    def _failure(self) -> Exception:
        code = self._process.wait()
        self._complaints.seek(0)
        complaint = text(self._complaints.read())
        return failure(complaint, code=code, folder=self.folder, patience=self.patience)


def failure(complaint: str, *, code: int, folder: str, patience: float = PATIENCE) -> BadRequest:
    """Return the error for what git complained about."""
    if code == -signal.SIGKILL:
        return BadRequest(
            f"git said nothing about {folder!r} for {patience:g} seconds",
            hint=f"try `git -C {folder!r} log -n 1`; a disk that is away, or a damaged repository, can cause it",
        )
    if "not a git repository" in complaint:
        return BadRequest(
            f"no git repository at {folder!r}", hint="give the path of a git repository, or `git init` it"
        )
    if "dubious ownership" in complaint:
        return BadRequest(
            f"git does not trust {folder!r}, which belongs to another user",
            hint=f"if you do: `git config --global --add safe.directory {folder}`",
        )
    if "promisor" in complaint:
        return BadRequest(
            f"{folder!r} is a partial clone that lacks a part of its history, and Foreword fetches nothing",
            hint="fetch it with `git fetch --refetch --filter=blob:none`, then try again",
        )
    last = complaint.strip().rpartition("\n")[2] or f"exit code {code}"
    return BadRequest(f"git cannot read the history of {folder!r}: {last}", hint=f"try `git -C {folder!r} log -n 1`")


@contextlib.contextmanager
def _process(
    folder: str, words: Sequence[str], *, stdin: int = subprocess.DEVNULL
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    with tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell, and the folder is absolute: it cannot be an option
                ["git", "-C", folder, *words],  # noqa: S607 - the git that the user uses
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env=environment(),
            )
        except OSError as exc:
            raise BadRequest(
                f"cannot start git: {exc.strerror}", hint="install git, or see that PATH leads to it"
            ) from exc
        except ValueError as exc:
            raise BadRequest(f"not a folder: {folder!r}", hint="give the path of a git repository") from exc
        try:
            yield process, complaints
        finally:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()


class _Watch:
    """A thread that ends a process which keeps us waiting for too long; a reader may take its time."""

    def __init__(self, process: subprocess.Popen[bytes], *, patience: float) -> None:
        self.process, self.patience = process, patience
        self.since = 0.0
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._thread.join()

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        self.since = monotonic()
        try:
            yield
        finally:
            self.since = 0.0

    def _look(self) -> None:
        while not self._left.wait(min(1.0, self.patience / 4)):
            since = self.since
            if since and monotonic() - since > self.patience:
                self.process.kill()
                return


def _pieces(
    process: subprocess.Popen[bytes], *, complaints: IO[bytes], folder: str, patience: float
) -> Iterator[bytes]:
    assert process.stdout is not None
    with _Watch(process, patience=patience) as watch:
        while True:
            with watch.waiting():
                piece = os.read(process.stdout.fileno(), CHUNK)
            if not piece:
                break
            yield piece
    code = process.wait()
    if code:
        complaints.seek(0)
        complaint = text(complaints.read())
        if not any(words in complaint for words in NO_COMMITS):
            raise failure(complaint, code=code, folder=folder, patience=patience)


def _may_pass(name: str) -> bool:
    return not name.startswith("GIT_") or name.startswith(("GIT_CONFIG", "GIT_EXEC_PATH"))
