"""A transcript's last lines -> when somebody said something, and when tools came back: what hooks must have told too.

Bookkeeping says nothing: hosts append it for hours. No text is kept, and of a file only its end is read.
"""

from __future__ import annotations

import fnmatch
import heapq
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.deeds import UNSAID, own_words
from foreword.hosts import text_of
from foreword.rollouts import at, last_lines

GRACE = 60.0  # seconds: a hook tells within five, what was spooled is taken in within one, and clocks differ a little
ENOUGH = 3  # tools that came back untold: one or two may be of a kind that its host tells nobody of
FOLDERS = 20  # newest ones that are looked into, at each level
ENTRIES = 20_000  # of one folder that are looked at: a bound, not a promise
PROMPTS = 10  # of a transcript that are enough
FILES = 5  # newest ones that are read


@dataclass(frozen=True)
class Tail:
    """The times at the end of a transcript at which its host must have told something."""

    prompts: tuple[float, ...] = ()
    tools: tuple[float, ...] = ()
    cwd: str = ""  # where the last of it happened, if it tells
    written: float = 0.0  # the file itself, by the clock of this machine


def read(path: str, *, host: str, after: float = 0.0) -> Tail:
    """The end of a host's transcript; an empty one where the file is gone, moved, or of no kind that we know.

    Only what was written *after* then is looked at, and of many prompts the last: to tell what was typed takes a while.
    """
    try:
        written = os.stat(path).st_mtime
    except (OSError, ValueError):
        return Tail()
    telling = TELLING.get(host)
    if telling is None:
        return Tail(written=written)
    prompts: list[float] = []
    tools: list[float] = []
    cwd = ""
    for line in last_lines(path):
        when = at(line)
        if when > after and len(prompts) < PROMPTS:
            what = telling(line)
            if what:
                (prompts if what == "prompt" else tools).append(when)
        cwd = cwd or text_of(line, "cwd")
    return Tail(prompts=tuple(prompts), tools=tuple(tools), cwd=cwd, written=written)


def went_on(tail: Tail, *, after: float, now: float, grace: float = GRACE) -> float:
    """Until when a session went on that told nothing *after* then; 0 where nothing shows that it did.

    What was written a moment ago may still be told, and what is of tomorrow comes from another clock.
    """
    if tail.written < after + grace:
        return 0.0
    prompts = [each for each in tail.prompts if after + grace < each < now - GRACE]
    tools = [each for each in tail.tools if after + grace < each < now - GRACE]
    return max(*prompts, *tools, 0.0) if prompts or len(tools) >= ENOUGH else 0.0


def newest(folder: str, patterns: Sequence[str], *, files: int = FILES) -> tuple[str, ...]:
    """The files below *folder* that were written last; of many folders the newest are looked into, never all."""
    found = (each for pattern in patterns for each in _matching(folder, tuple(pattern.split("/"))))
    return tuple(path for _, path in heapq.nlargest(files, found))


def _matching(folder: str, parts: tuple[str, ...]) -> Iterator[tuple[float, str]]:
    """Files of a pattern, each behind the time it was written; `**` stands for any number of folders."""
    here, below = parts[0], parts[1:]
    if here == "**":
        yield from _matching(folder, below)
        for _, path in _inside(folder, "*", folders=True):
            yield from _matching(path, parts)
    elif below:
        for _, path in _inside(folder, here, folders=True):
            yield from _matching(path, below)
    else:
        yield from _inside(folder, here, folders=False)


def _inside(folder: str, pattern: str, *, folders: bool) -> list[tuple[float, str]]:
    found = []
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(ENTRIES), entries, strict=False):
                if fnmatch.fnmatchcase(entry.name, pattern):
                    about = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(about.st_mode) if folders else stat.S_ISREG(about.st_mode):
                        found.append((about.st_mtime, entry.path))
    except OSError:
        return []  # gone, or not ours to read
    return heapq.nlargest(FOLDERS, found)


# ---- what a line of each host tells: a prompt, a tool that came back, or nothing

# No settings of the user's, and so no hooks of ours, in what programs start on their own.
_PROGRAMS = ("sdk-py", "sdk-ts")


def _claude(line: Mapping[str, Any]) -> str:
    message = line.get("message")
    if line.get("type") != "user" or not isinstance(message, dict) or line.get("entrypoint") in _PROGRAMS:
        return ""
    if line.get("isSidechain") or line.get("isMeta") or line.get("isCompactSummary"):
        return ""
    content = message.get("content")
    blocks = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    if any(block.get("type") == "tool_result" for block in blocks):
        return "tool"
    if line.get("promptSource") in (*UNSAID, "queued"):  # one that waited behind others may be told with them
        return ""
    return _typed(content if isinstance(content, str) else "\n".join(text_of(block, "text") for block in blocks))


def _codex(line: Mapping[str, Any]) -> str:
    payload = line.get("payload")
    if line.get("type") != "response_item" or not isinstance(payload, dict):
        return ""
    if payload.get("type") in ("function_call_output", "custom_tool_call_output"):
        return "tool"
    content = payload.get("content")
    if payload.get("type") != "message" or payload.get("role") != "user" or not isinstance(content, list):
        return ""
    return _typed("\n".join(text_of(block, "text") for block in content if isinstance(block, dict)))


def _gemini(line: Mapping[str, Any]) -> str:
    content = line.get("content")
    if line.get("type") != "user":
        return ""
    if isinstance(content, list):
        content = "\n".join(text_of(part, "text") for part in content if isinstance(part, dict))
    return _typed(content if isinstance(content, str) else "")


def _copilot(line: Mapping[str, Any]) -> str:
    data = line.get("data")
    # The tools of its sub-agents stand in the same file, and are not captured: only prompts are telling.
    return _typed(text_of(data, "content")) if line.get("type") == "user.message" and isinstance(data, dict) else ""


def _typed(text: str) -> str:
    own = own_words(text)
    return "prompt" if own and not own.startswith(("<", "/")) else ""  # a host's own tag, or a command of its own


TELLING: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "copilot": _copilot,
}
