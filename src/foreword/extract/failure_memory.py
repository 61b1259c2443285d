"""Write a failure down as a memory: its detail, how two of them merge, what later sessions confirm, how it reads."""

# ruff: noqa: E501 - a line reads better whole
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from foreword.extract.commands import commands_of, has_shape, shape_of
from foreword.extract.failures import Failure, Run, calls, failure_key, is_path_shape
from foreword.extract.merge import EARLIER
from foreword.models import named, text, texts

MOST_SESSIONS = 100  # that a memory names, the last ones; those before are a number; with 50, a third of the sessions that saw one failure did not list it
CHECKS = "checks"  # in a detail that is only read: the shapes of tests, linters and builds that passed, by session
MOST_FILES = 3  # that the error names
MOST_WORKED = 5  # commands that worked which a memory names


def failure_detail(failure: Failure, session: str) -> dict[str, Any]:
    """Return what a memory of this failure keeps as its detail."""
    same = ("error", "cause", "folder", "fix", "script", "last", "open")
    return {
        **{name: getattr(failure, name) for name in same},
        "command": failure.shape,
        "text": failure.command,
        "key": failure_key(failure),
        "error_key": failure.key,
        "blamed": list(failure.blamed),
        "worked": {failure.worked: [session]} if failure.worked else {},
        "worked_in": {failure.worked: failure.worked_in} if failure.worked_in is not None else {},
        "used_in": {},  # what worked, in sessions that did not see the failure
        "fixes": {failure.fix: [session]} if failure.fix else {},
        "files": list(failure.files)[:MOST_FILES],
        "fixed_files": list(failure.fixed_files),
        "explained": {failure.explained: [session]} if failure.explained else {},
        "at_once": [session] if failure.at_once else [],  # sessions whose very next command worked
        "seen_in": {session: failure.times},
        "succeeded_in": {session: 1} if failure.passed else {},  # the same call, later and in sessions since then
    }


_TEXTS = ("command", "text", "error", "key", "error_key", "cause", "fix", "script")
_LISTS = ("files", "fixed_files", "at_once", "blamed")
_BY_TEXT = ("worked", "used_in", "fixes", "explained")  # each text with the sessions that saw it
_COUNTS = ("seen_in", "succeeded_in")  # how often each session saw it
_END_OF_TIME = 1e11  # seconds; the year 5138, which every calendar has


def checked_detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return a failure's detail with all its names, and only what makes sense under each: an import may say anything."""
    folder, last = detail.get("folder"), detail.get("last")
    objects = {name: named(detail, name).items() for name in (*_BY_TEXT, *_COUNTS, "worked_in")}
    return {
        **detail,
        **{name: text(detail, name) for name in _TEXTS},
        **{name: list(texts(detail, name)) for name in _LISTS},
        **{name: {each: list(texts({each: some}, each)) for each, some in objects[name]} for name in _BY_TEXT},
        **{name: {each: times for each, times in objects[name] if type(times) is int} for name in _COUNTS},
        "worked_in": {each: place for each, place in objects["worked_in"] if isinstance(place, str)},
        "folder": folder if isinstance(folder, str) else None,
        "last": float(last) if isinstance(last, int | float) and 0 <= last < _END_OF_TIME else 0.0,
        "open": bool(detail.get("open")),
    }


def merge_failure_detail(known: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merged evidence of two failures; the fix seen most often stays, and a later guess does not replace it."""
    known, fresh = checked_detail(known), checked_detail(fresh)
    newer = fresh if fresh["last"] >= known["last"] else known
    merged = {**fresh, **known, "text": newer["text"], "open": newer["open"], "last": newer["last"]}
    for name in _BY_TEXT:
        merged[name] = _most_seen(known[name], fresh[name])
    worked, places = merged["worked"], {**fresh["worked_in"], **known["worked_in"]}
    merged["used_in"] = {each: some for each, some in merged["used_in"].items() if each in worked}
    merged["worked_in"] = {each: place for each, place in places.items() if each in worked}
    merged["fix"] = next(iter(merged["fixes"]), "")
    merged["fixed_files"] = list(dict.fromkeys((*known["fixed_files"], *fresh["fixed_files"])))[:10]
    merged["at_once"] = list(dict.fromkeys((*known["at_once"], *fresh["at_once"])))[-MOST_SESSIONS:]
    for name in _COUNTS:
        merged[name] = _capped({**known[name], **fresh[name]})
    return merged


def confirm_failure_detail(known: Mapping[str, Any], runs: Sequence[Run], session: str) -> dict[str, Any]:
    """Return a known failure with what a later session ran: the same call that succeeded, what worked used again."""
    if not text(known, "command"):
        return dict(known)  # written by hand: no command to compare with
    detail = checked_detail(known)
    fine = [run for run in runs if run.succeeded]
    alike = [run for run in fine if all(word in run.line for word in detail["blamed"])]
    hits = sum(calls(detail["command"], detail["folder"], run.commands, run.folders) for run in alike)
    if hits:
        detail["succeeded_in"] = _capped({**detail["succeeded_in"], session: hits})
    for command, sessions in detail["worked"].items():
        used, place = detail["used_in"].get(command, []), detail["worked_in"].get(command)
        there = [run for run in fine if place in (None, *run.folders)]
        if session not in (*sessions, *used) and any(_does(run, command) for run in there):
            detail["used_in"][command] = [*used, session][-MOST_SESSIONS:]
    return detail


def sessions_in(counts: Mapping[str, int]) -> int:
    """Return how many sessions are counted, those that are no longer named included."""
    return len(counts) - (EARLIER in counts) + counts.get(EARLIER, 0)


def sessions_worked(detail: Mapping[str, Any], command: str) -> int:
    """Return in how many sessions an alternative succeeded, after the failure or on its own, whatever it worked on.

    Checks that passed count before the failure too, where the caller knows them.
    """
    wanted = _shapes_of(command)
    every = (*detail["worked"].items(), *detail["used_in"].items())
    alike = (some for other, some in every if other == command or (wanted and _shapes_of(other) == wanted))
    sessions = {session for some in alike for session in some}
    if wanted and command not in detail["worked_in"]:
        sessions |= {session for session, shapes in named(detail, CHECKS).items() if wanted <= set(shapes)}
    return len(sessions)


# -- how it reads --------------------------------------------------------------------------------------------------
def failure_title(detail: Mapping[str, Any]) -> str:
    """Return the title of a failure's memory: the call and its error."""
    call = call_of(text(detail, "command"), detail.get("folder"))
    return f"{call[:1].upper()}{call[1:]} fails: {text(detail, 'error')}"


def failure_body(detail: Mapping[str, Any]) -> str:
    """Return the body of a failure's memory: as it was run, and what worked or fixed it."""
    detail = checked_detail(detail)
    lines = [f"Run as `{detail['text']}`."] if detail["text"] else []
    if detail["script"] and not detail["error"].startswith("script '"):
        lines.append(f"The script `{detail['script']}` failed.")
    lines += [f"The output names {', '.join(detail['files'])}."] if detail["files"] else []
    for command in list(detail["worked"])[:2]:
        place = where(detail["worked_in"].get(command))
        lines.append(f"Worked instead{place}: `{command}` ({counted(sessions_worked(detail, command))}).")
    for fix in list(detail["fixes"])[:2]:
        without = ": leave it out" if fix.startswith("worked without") else ""
        lines.append(f"Fixed: {fix}." if fix.startswith("edited") else f"It {fix}{without}.")
    lines += [f"The agent said then: {each}" for each in list(detail["explained"])[:2]]
    if advice := advice_for(detail):
        lines.append(f"{advice}.")
    return "\n".join(lines)


def advice_for(detail: Mapping[str, Any]) -> str:
    """Return what helps against a failure whose cause is the shell's, whatever was run; empty where that is not known."""
    shape = detail["command"]
    if is_path_shape(shape):
        return f"the shell is still there: leave `{shape}` out or use absolute paths"
    misread = "(multi-line)" in shape and re.search(r"IndentationError|SyntaxError|unexpected", detail["error"])
    if misread and sessions_in(detail["seen_in"]) > 1:
        return "write the script to a file, or pass it as a here-document (EOF)"
    if ": no matches found: " in detail["error"]:  # zsh
        return f"the shell stops before `{shape}` runs where a pattern matches no file: list the directory, or quote the pattern"
    return ""


def call_of(shape: str, folder: Any) -> str:
    """Return what fails, with the folder where that matters."""
    return f"{'a path that begins with ' if is_path_shape(shape) else ''}`{shape}`{where(folder)}"


def where(folder: Any) -> str:
    """Return a folder as the end of a phrase: ' in src/'; empty where none is known."""
    if not isinstance(folder, str):
        return ""
    return f" in {folder}/" if folder else " in the project's root"


def counted(sessions: int) -> str:
    """Return a number of sessions in words."""
    return "1 session" if sessions == 1 else f"{sessions} sessions"


def _does(run: Run, line: str) -> bool:
    """Return whether a run called what *line* calls, whatever it was called on."""
    kinds = [each.kind for each in commands_of(line) if not each.filters]
    if kinds == ["look"]:  # its flags are all that tells it from other looking around
        return any(has_shape(each, line) for each in run.commands)
    wanted = _shapes_of(line)
    return bool(wanted) and wanted <= run.shapes


def _shapes_of(line: str) -> set[str]:
    """Return the shapes of a line's commands that do more than look around; of all where none does."""
    commands = [each for each in commands_of(line) if not each.filters]
    doing = [each for each in commands if each.kind != "look"]
    return set(filter(None, map(shape_of, doing or commands)))


def _most_seen(known: Mapping[str, list[str]], fresh: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return by which sessions each was seen, the most seen first; of equals the one that was known first."""
    both = dict(known)
    for name, some in fresh.items():
        both[name] = list(dict.fromkeys((*both.get(name, ()), *some)))[-MOST_SESSIONS:]
    ranked = sorted(both.items(), key=lambda each: -len(each[1]))
    if len(ranked) > MOST_WORKED:  # the newest has a chance to become the one seen most often
        ranked = [*ranked[: MOST_WORKED - 1], ranked[-1]]
    return dict(ranked)


def _capped(counts: dict[str, int]) -> dict[str, int]:
    """Return the last sessions by name, and the number of those before."""
    names = [name for name in counts if name != EARLIER]
    gone = len(names[:-MOST_SESSIONS])
    return {EARLIER: counts.get(EARLIER, 0) + gone, **{name: counts[name] for name in names[gone:]}} if gone else counts
