"""Run git safely and return what it prints; nothing is fetched, and no hook is run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from foreword.errors import BadRequest

PATIENCE = 60.0  # seconds; a cold disk and a huge tree need a few
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
# Commits by their hashes on stdin, in that order; whatever the user's settings say.
LOG = (
    "-c", "diff.relative=false",
    "-c", "log.showRoot=true",
    "log", "--no-walk=unsorted", "--stdin",
    "-z", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature", "--encoding=UTF-8",
)  # fmt: skip
NO_COMMITS = ("does not have any commits yet", "bad revision 'HEAD'", "ambiguous argument 'HEAD'")


class NoRepository(BadRequest):
    """The folder is no git repository, or no work tree of one."""


def run(
    folder: str, words: Sequence[str], *, stdin: bytes = b"", patience: float = PATIENCE, ceiling: str = ""
) -> bytes:
    """Return what `git *words*` prints in *folder*; BadRequest where it fails or takes longer than *patience* seconds.

    A repository without commits prints nothing.
    """
    try:
        ended = subprocess.run(  # noqa: S603 - no shell, and the folder is absolute: it cannot be an option
            ["git", "-C", folder, *SAFELY, *words],  # noqa: S607 - the git that the user uses
            check=False,
            input=stdin,
            capture_output=True,
            timeout=patience,
            env=_environment() | ({"GIT_CEILING_DIRECTORIES": ceiling} if ceiling else {}),
        )
    except subprocess.TimeoutExpired as exc:
        hint = f"try `git -C {folder!r} status`; a disk that is away, or a damaged repository, can cause it"
        raise BadRequest(f"git takes longer than {patience:g} seconds in {folder!r}", hint=hint) from exc
    except OSError as exc:
        hint = "install git, or see that PATH leads to it"
        raise BadRequest(f"cannot start git: {exc.strerror}", hint=hint) from exc
    except ValueError as exc:
        raise BadRequest(f"not a folder: {folder!r}", hint="give the path of a git repository") from exc
    if ended.returncode:
        complaint = text(ended.stderr)
        if not any(each in complaint for each in NO_COMMITS):
            raise _failure(complaint.strip() or f"exit code {ended.returncode}", folder)
    return ended.stdout


def text(raw: bytes) -> str:
    """Return what git printed as text; old names and messages may be in any encoding, and stores take UTF-8 only."""
    return raw.decode("utf-8", "replace")


def seconds(raw: bytes) -> float:
    """Return a time as git prints it; 0 for a commit that some tool wrote without a date."""
    try:
        return float(int(raw))
    except (ValueError, OverflowError):
        return 0.0


def _environment() -> dict[str, str]:
    # A GIT_DIR of somebody's hook would lead to another repository.
    kept = {name: each for name, each in os.environ.items() if not name.startswith("GIT_")}
    config = {name: each for name, each in os.environ.items() if name.startswith(("GIT_CONFIG", "GIT_EXEC_PATH"))}
    return kept | config | ENVIRONMENT


def _failure(complaint: str, folder: str) -> BadRequest:
    if "not a git repository" in complaint or "must be run in a work tree" in complaint:
        hint = "give the path of a git repository, or `git init` it"
        return NoRepository(f"no git repository at {folder!r}", hint=hint)
    if "dubious ownership" in complaint:
        hint = f"if you do: `git config --global --add safe.directory {folder}`"
        return BadRequest(f"git does not trust {folder!r}, which belongs to another user", hint=hint)
    if "promisor" in complaint:
        message = f"{folder!r} is a partial clone that lacks a part of its history, and Foreword fetches nothing"
        hint = "fetch it with `git fetch --refetch --filter=blob:none`, then try again"
        return BadRequest(message, hint=hint)
    last = complaint.rpartition("\n")[2][-200:]
    return BadRequest(f"git cannot read {folder!r}: {last}", hint=f"try `git -C {folder!r} log -n 1`")
