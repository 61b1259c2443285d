"""Write the line around a command: before one that is known to fail, and after a failure that was solved before."""

# ruff: noqa: E501 - a pattern reads better whole
from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.extract.actions import Action
from foreword.extract.commands import commands_of, folders_of, likeness, word_set
from foreword.extract.failures import (
    Failure,
    calls,
    checked_detail,
    counted,
    failure_key,
    failure_of,
    folder_advice,
    is_path_shape,
    names_file,
    run_of,
    sessions_seen,
    sessions_succeeded,
    sessions_worked,
    where,
)

MOST_CHARACTERS = 245  # of a hint: 70 tokens at 3.5 characters each
QUOTE = 100  # characters of an error
ALTERNATIVE = 100  # characters of a command that worked
ENOUGH = 2  # sessions in which an alternative must have succeeded, so that one odd session cannot choose it
ALIKE = 0.3  # share of words that an alternative has in common with the command, to be named beside an advice
SPECIFIC = 3  # words of a call that one failing session is enough to warn of
RELIABLE = 4  # failing sessions for each one in which the same call succeeded


@dataclass(frozen=True)
class KnownFailure:
    """A failure that is remembered: the memory's id and its detail."""

    id: str
    detail: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "detail", checked_detail(self.detail))


@dataclass(frozen=True)
class Hint:
    """One line around a command, and the memory that it comes from."""

    text: str
    memory: str
    reason: str


def hint_before(
    command: str, known: Sequence[KnownFailure], *, now: float, cwd: str = "", root: str = ""
) -> Hint | None:
    """Return what to tell before *command*: that this call failed each time, and what worked instead."""
    commands = commands_of(command)
    folders = folders_of(commands, cwd, root=root)
    succeeding = {each.detail.get("command") for each in known if each.detail.get("succeeded_in")}
    hits = [
        each
        for each in known
        if is_reliable(each.detail)
        and (each.detail.get("cause") != "content" or each.detail.get("command") not in succeeding)
        and calls(str(each.detail.get("command", "")), _folder(each.detail), commands, folders)
    ]
    if not hits:
        return None
    best = max(hits, key=lambda each: (sessions_seen(each.detail), float(each.detail.get("last") or 0.0)))
    detail = best.detail
    often = f"failed in {counted(sessions_seen(detail))}"
    begin = f"{_call(detail)} {often}, last {age(detail.get('last'), now=now)}: {quote(detail.get('error'))}"
    return _hint([begin, *_instead(detail, command)], best, reason=often)


def hint_after(
    command: str, output: str, known: Sequence[KnownFailure], *, now: float, cwd: str = "", root: str = ""
) -> Hint | None:
    """Return what to tell after *command* failed with *output*: what worked or fixed it when it failed so before."""
    action = Action("tool", now, act="run", command=command, output=output, failed=True)
    run = run_of(action, root=root, cwd=cwd)
    failure = failure_of(run)
    if failure is None:
        return None
    key, program = failure_key(failure), failure.shape.split()[0]
    same = [each for each in known if each.detail.get("key") == key]
    # The same error of the same program, called in another way.
    same = same or [
        each
        for each in known
        if each.detail.get("error_key") == failure.key
        and str(each.detail.get("command", "")).split()[:1] == [program]
        and len(failure.key.split()) >= 3
    ]
    for each in sorted(same, key=lambda each: -float(each.detail.get("last") or 0.0)):
        detail = each.detail
        instead = _instead(detail, command)
        if not instead and _fix_applies(detail, failure):
            instead = [_fix(detail)]
        if instead:
            begins = f"{age(detail.get('last'), now=now)} the same with {_call(detail)}: {quote(detail.get('error'))}"
            return _hint([begins, *instead], each, reason="the same error was solved before")
    return None


def is_reliable(detail: Mapping[str, Any]) -> bool:
    """Return whether a call fails each time: all else after two sessions without success, what no edit can set right
    sooner, provided that its words say enough: readers called hints on `git add` or `cd` of one session noise.
    """
    failed, succeeded = sessions_seen(detail), sessions_succeeded(detail)
    if detail.get("cause") in ("usage", "folder") and not detail.get("minor"):
        words = str(detail.get("command", "")).split()
        flagged = len(words) >= SPECIFIC or any(word.startswith("-") for word in words[1:])
        advised = bool(detail.get("worked") or is_path_shape(str(detail.get("command", ""))))
        specific = flagged if detail["cause"] == "usage" else advised
        return failed >= (1 if specific else ENOUGH) and succeeded * RELIABLE <= failed - 1
    return failed >= ENOUGH and not succeeded


def failure_line(detail: Mapping[str, Any], *, now: float) -> str:
    """Return the line for what comes back at a session's start: the call, its error, and what works."""
    detail = checked_detail(detail)
    often = f"{counted(sessions_seen(detail))}, last {age(detail['last'], now=now)}"
    line = f"{_call(detail)} fails ({often}): {quote(detail.get('error'))}"
    instead = _instead(detail, str(detail.get("text", "")))
    if not instead and detail.get("fix"):
        instead = [_fix(detail)]
    return "; ".join((line, *instead))


def age(at: Any, *, now: float) -> str:
    """Return how long ago something was, in words."""
    seconds = max(0.0, now - float(at or 0.0))
    days = int(seconds // 86_400)
    if seconds < 3_600:
        minutes = int(seconds // 60)
        return f"{minutes} min ago" if minutes else "just now"
    if days == 0:
        return f"{int(seconds // 3_600)} h ago"
    if days == 1:
        return "yesterday"
    if days < 14:
        return f"{days} days ago"
    return f"{days // 7} weeks ago" if days < 60 else f"on {time.strftime('%Y-%m-%d', time.gmtime(float(at or 0.0)))}"


def quote(error: Any) -> str:
    """Return an error as a quotation: one line, no mark-up, nothing that could end the quotation."""
    text = _without_advice(plain(error, most=4 * QUOTE))
    return f'"{plain(text, most=QUOTE) or "…"}"'


def plain(text: Any, *, most: int) -> str:
    """Return a text in one line, without back-ticks, tags and control characters, cut at a word."""
    line = " ".join(re.sub(r"[\x00-\x1f\x7f`<>]|\x1b\[[0-9;]*m", " ", str(text or "")).split()).replace('"', "'")
    line = re.sub(r"-{3,}|\[(?=/?foreword)", " ", line, flags=re.IGNORECASE)
    return line if len(line) <= most else line[: most - 1].rsplit(" ", 1)[0] + "…"


def _without_advice(text: str) -> str:
    """Return a text up to where it tells to run what may not be named: whoever wrote an output must not choose a command."""
    ends = (each.start() for each in _ADVICE.finditer(text) if not is_safe(text[each.start() :]))
    end = next(ends, None)
    return text if end is None else text[:end].rstrip(" ,;:('\"") + "…"


_ADVICE = re.compile(
    r"\b(?:run|use|using|try|type|execute|invoke|enter|paste|install)\b"
    r"|\b(?:curl|wget|sudo|doas)\s+[^\s:]|\b(?:rm|chmod|chown|ssh|scp)\s+[-+~/.\d]",
    re.IGNORECASE,
)


def is_safe(command: str) -> bool:
    """Whether a command may be named: it skips no check, forces, escalates, downloads and deletes nothing."""
    return not _UNSAFE.search(command)


_UNSAFE = re.compile(
    # skips checks or forces
    r"--(?:no-verify|force\S*|yes|assume-yes|skip\S*|no-check\S*|ignore\S*|insecure|allow\S*|unsafe\S*|privileged|hard|delete)\b"
    r"|--(?:no-edit|disable\S*|dangerously\S*|break-system-packages|trusted-host|passWithNoTests|no-frozen-lockfile)\b"
    r"|(?:^|\s)-[a-zA-Z]{0,2}[fy][a-zA-Z]{0,2}(?=\s|$)|\bcommit\b[^|;&]* -n\b|\b(?:SKIP|HUSKY|NO_VERIFY)\w*="
    # escalates, downloads, deletes, reaches other machines
    r"|\b(?:sudo|su|doas|curl|wget|chmod|chown|eval|dd|mkfs|kill|pkill|killall|ssh|scp|nc|rm|rmdir|shred)\b|https?://"
    r"|\bgit (?:push|reset|clean|stash|rebase|config)\b|--(?:extra-)?index-url\b|--registry\b"
    r"|\b(?:pip3?|npm|pnpm|yarn|bun|gem|cargo|go|brew|apt|apt-get|uv) (?:pip |global )?(?:install|add|get|i|dlx) (?!-r |-e |--path )[-\w@]"
    # hands text to an interpreter
    r"|\|\s*(?:\S*/)?(?:sh|bash|zsh|python\d?|node|perl|ruby)\b|[>`]|\$\(",
    re.IGNORECASE,
)
_SCRIPT = re.compile(r"^(?:\./|scripts?/|bin/|make\b|just\b|(?:npm|yarn|pnpm|bun|deno)(?: run)? [\w:-]+$)")


def _instead(detail: Mapping[str, Any], command: str) -> list[str]:
    """Return what worked instead, as the end of a line: the alternative that is most like *command*."""
    shape = str(detail.get("command", ""))
    own = word_set(command)
    programs = {word for each in commands_of(command) for word in each.words}
    found = []
    for each in detail.get("worked") or ():
        parts, count = commands_of(each), sessions_worked(detail, each)
        if not parts or count < ENOUGH or not is_safe(each) or len(each) > ALTERNATIVE or each.endswith("…"):
            continue
        if parts[0].words[0] in programs or _SCRIPT.match(each):
            place = where((detail.get("worked_in") or {}).get(each))
            found.append((likeness(own, word_set(each)), count, f"`{_without_paths(each, command)}`{place}"))
    if is_path_shape(shape):
        alike = [f"{each} worked in {count}" for share, count, each in sorted(found)[-1:] if share >= ALIKE]
        return [folder_advice(shape), *alike]
    if found:
        _, count, each = max(found)
        return [f"{each} worked in {count}"]
    places = [where(each) for each in (detail.get("worked_in") or {}).values()]
    return [f"it worked{places[0]}"] if places else []


def _fix_applies(detail: Mapping[str, Any], failure: Failure) -> bool:
    """Whether what fixed it then may fix it now: words left out, or an edit of a file that this error names too."""
    if not detail.get("fix"):
        return False
    edited = detail.get("fixed_files") or ()
    return not edited or detail.get("error") == failure.error or any(names_file(failure.files, file) for file in edited)


def _fix(detail: Mapping[str, Any]) -> str:
    fix = plain(_without_advice(plain(detail.get("fix"), most=400)), most=110)
    return f"fixed then: {fix}" if fix.startswith("edited") else f"it {fix}"


def _without_paths(alternative: str, command: str) -> str:
    """Return an alternative without the paths that another session worked on."""
    shortened = _PATH.sub(lambda found: found[0] if found[0] in command else "…", alternative)
    return re.sub(r"…(?: …)+", "…", shortened)


_PATH = re.compile(r"(?<![\w./@-])(?:[\w.@~-]*/)+[\w.@-]*\w|(?<![\w./@-])[\w-]+\.[a-z]{1,4}(?![\w.])")


def _hint(parts: Sequence[str], known: KnownFailure, *, reason: str) -> Hint:
    end = f" [{known.id}]"
    begin = "[foreword, history] "
    text = "; ".join(parts)
    room = MOST_CHARACTERS - len(begin) - len(end)
    if len(text) > room and len(parts) > 1:  # the error gives way to what worked
        tail = "; " + "; ".join(parts[1:])
        text = parts[0][: max(40, room - len(tail) - 2)].rstrip(' "') + '…"' + tail
    text = text if len(text) <= room else text[: room - 2].rstrip() + '…"'
    return Hint(f"{begin}{text}{end}", known.id, reason)


def _call(detail: Mapping[str, Any]) -> str:
    shape = plain(detail.get("command"), most=70)
    folder = where(detail.get("folder"))
    return f"a path that begins with `{shape}`{folder}" if is_path_shape(shape) else f"`{shape}`{folder}"


def _folder(detail: Mapping[str, Any]) -> str | None:
    folder = detail.get("folder")
    return folder if isinstance(folder, str) else None
