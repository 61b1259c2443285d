"""Write a failure down as a memory: its detail, how two of them merge, what later sessions confirm, how it reads."""

# ruff: noqa: E501 - a line reads better whole
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foreword.extract.commands import commands_of, has_shape, shape_of
from foreword.extract.failures import Failure, Run, calls, failure_key, is_glob_error, is_path_shape
from foreword.models import named, texts
from foreword.models import text as text_under

MOST_SESSIONS = 100  # that a memory names, the last ones; those before are a number; with 50, a third of the sessions that saw one failure did not list it
EARLIER = "earlier"  # the name of that number
CHECKS = "checks"  # in a detail that is only read: the shapes of tests, linters and builds that passed, by session
MOST_FILES = 3  # that the error names
MOST_WORKED = 5  # commands that worked which a memory names


def failure_detail(failure: Failure, session: str) -> dict[str, Any]:
    """Return what a memory of this failure keeps as its detail."""
    return {
        "command": failure.shape,
        "text": failure.command,
        "error": failure.error,
        "key": failure_key(failure),
        "error_key": failure.key,
        "blamed": list(failure.blamed),
        "cause": failure.cause,
        "folder": failure.folder,
        "worked": {failure.worked: [session]} if failure.worked else {},
        "worked_in": {failure.worked: failure.worked_in} if failure.worked_in is not None else {},
        "used_in": {},  # what worked, in sessions that did not see the failure
        "fix": failure.fix,
        "fixes": {failure.fix: [session]} if failure.fix else {},
        "files": list(failure.files)[:MOST_FILES],
        "fixed_files": list(failure.fixed_files),
        "explained": {failure.explained: [session]} if failure.explained else {},
        "at_once": [session] if failure.at_once else [],  # sessions whose very next command worked
        "seen_in": {session: failure.times},
        "succeeded_in": {session: 1} if failure.passed else {},  # the same call, later and in sessions since then
        "last": failure.last,
        "last_success": 0.0,
        "open": failure.open,
        "minor": failure.minor,
    }


_TEXTS = ("command", "text", "error", "key", "error_key", "cause", "fix")
_LISTS = ("worked", "used_in", "fixes", "explained")  # each text with the sessions that saw it
_COUNTS = ("seen_in", "succeeded_in")  # how often each session saw it


def checked_detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return a failure's detail with only what makes sense under each name: an import may say anything."""
    checked = dict(detail)
    for name in _TEXTS:
        checked[name] = text_under(detail, name)
    for name in _LISTS:
        found = named(detail, name)
        checked[name] = {text: _strings(some) for text, some in found.items() if isinstance(some, list | tuple)}
    for name in _COUNTS:
        checked[name] = {session: times for session, times in named(detail, name).items() if type(times) is int}
    checked["worked_in"] = {text: place for text, place in named(detail, "worked_in").items() if isinstance(place, str)}
    for name in ("files", "fixed_files", "at_once", "blamed"):
        checked[name] = list(texts(detail, name))
    checked["folder"] = detail.get("folder") if isinstance(detail.get("folder"), str) else None
    for name in ("last", "last_success"):
        at = detail.get(name)
        checked[name] = float(at) if isinstance(at, int | float) and 0 <= at < _END_OF_TIME else 0.0
    return checked


_END_OF_TIME = 1e11  # seconds; the year 5138, which every calendar has


def _strings(some: Sequence[Any]) -> list[str]:
    return [each for each in some if isinstance(each, str)]


def merge_failure_detail(known: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """Return the evidence of both; the fix seen most often stays, and a later guess does not replace it."""
    known, fresh = checked_detail(known), checked_detail(fresh)
    newer = fresh if float(fresh.get("last") or 0.0) >= float(known.get("last") or 0.0) else known
    merged = {**fresh, **known, "text": newer.get("text", ""), "open": bool(newer.get("open"))}
    merged["worked"] = _most_seen(known.get("worked"), fresh.get("worked"))
    used = _most_seen(known.get("used_in"), fresh.get("used_in"))
    merged["used_in"] = {command: some for command, some in used.items() if command in merged["worked"]}
    folders = {**(fresh.get("worked_in") or {}), **(known.get("worked_in") or {})}
    merged["worked_in"] = {command: folders[command] for command in merged["worked"] if command in folders}
    merged["fixes"] = _most_seen(known.get("fixes"), fresh.get("fixes"))
    merged["fix"] = next(iter(merged["fixes"]), "")
    merged["explained"] = _most_seen(known["explained"], fresh["explained"])
    files = (*(known.get("fixed_files") or ()), *(fresh.get("fixed_files") or ()))
    merged["fixed_files"] = list(dict.fromkeys(files))[:10]
    merged["at_once"] = list(dict.fromkeys((*known["at_once"], *fresh["at_once"])))[-MOST_SESSIONS:]
    for name in ("seen_in", "succeeded_in"):
        merged[name] = _capped({**(known.get(name) or {}), **(fresh.get(name) or {})})
    for name in ("last", "last_success"):
        merged[name] = max(float(known.get(name) or 0.0), float(fresh.get(name) or 0.0))
    merged["minor"] = bool(known.get("minor")) and bool(fresh.get("minor"))
    return merged


def confirm_failure_detail(known: Mapping[str, Any], runs: Sequence[Run], session: str) -> dict[str, Any]:
    """Return a known failure with what a later session ran: the same call that succeeded, what worked used again."""
    if not text_under(known, "command"):
        return dict(known)  # written by hand: no command to compare with
    known = checked_detail(known)
    shape, folder, worked = str(known.get("command", "")), known.get("folder"), known.get("worked") or {}
    places = known.get("worked_in") or {}
    fine = [run for run in runs if run.succeeded]
    merged = dict(known)
    hits = [run.action.at for run in fine if calls(shape, folder, run.commands, run.folders)]
    if hits:
        merged["succeeded_in"] = _capped({**(known.get("succeeded_in") or {}), session: len(hits)})
        merged["last_success"] = max(float(known.get("last_success") or 0.0), *hits)
    used = {command: list(some) for command, some in (known.get("used_in") or {}).items()}
    for command in worked:
        place = places.get(command)
        if session in worked[command] or session in used.get(command, ()):
            continue
        if any(_does(run, command) and place in (None, *run.folders) for run in fine):
            used[command] = [*used.get(command, ()), session][-MOST_SESSIONS:]
    merged["used_in"] = used
    return merged


def sessions_seen(detail: Mapping[str, Any]) -> int:
    """Return in how many sessions a failure was seen, those that are no longer named included."""
    return _sessions_in(detail.get("seen_in"))


def sessions_succeeded(detail: Mapping[str, Any]) -> int:
    """Return in how many sessions the same call succeeded since."""
    return _sessions_in(detail.get("succeeded_in"))


def sessions_worked(detail: Mapping[str, Any], command: str) -> int:
    """Return in how many sessions an alternative succeeded, after the failure or on its own, whatever it worked on.

    Checks that passed count before the failure too, where the caller knows them.
    """
    wanted = shapes_of(command)
    sessions = {
        session
        for name in ("worked", "used_in")
        for other, some in (detail.get(name) or {}).items()
        if other == command or (wanted and shapes_of(other) == wanted)
        for session in some
    }
    if wanted and command not in (detail.get("worked_in") or {}):
        passed = detail.get(CHECKS) or {}
        sessions |= {session for session, shapes in passed.items() if wanted <= set(shapes)}
    return len(sessions)


def failure_title(detail: Mapping[str, Any]) -> str:
    """Return the title of a failure's memory: the call and its error."""
    return f"{_call(detail)} fails: {detail.get('error', '')}"


def failure_body(detail: Mapping[str, Any]) -> str:
    """Return the body of a failure's memory: as it was run, and what worked or fixed it."""
    detail = checked_detail(detail)
    lines = [f"Run as `{detail['text']}`."] if detail.get("text") else []
    lines += [f"The output names {', '.join(detail['files'])}."] if detail["files"] else []
    for command in list(detail.get("worked") or ())[:2]:
        place = where((detail.get("worked_in") or {}).get(command))
        lines.append(f"Worked instead{place}: `{command}` ({counted(sessions_worked(detail, command))}).")
    for fix in list(detail.get("fixes") or ())[:2]:
        without = ": leave it out" if fix.startswith("worked without") else ""
        lines.append(f"Fixed: {fix}." if fix.startswith("edited") else f"It {fix}{without}.")
    lines += [f"The agent said then: {each}" for each in list(detail["explained"])[:2]]
    if advice := advice_for(detail):
        lines.append(f"{advice}.")
    return "\n".join(lines)


def advice_for(detail: Mapping[str, Any]) -> str:
    """Return what helps against a failure whose cause is the shell's, whatever was run; empty where that is not known."""
    shape = str(detail.get("command", ""))
    if is_path_shape(shape):
        return f"the shell is still there: leave `{shape}` out or use absolute paths"
    if "(multi-line)" in shape and sessions_seen(detail) > 1:
        return "write the script to a file, or pass it as a here-document (EOF)"
    if is_glob_error(str(detail.get("error", ""))):
        return f"the shell stops before `{shape}` runs where a pattern matches no file: list the directory, or quote the pattern"
    return ""


def _call(detail: Mapping[str, Any]) -> str:
    """Return what fails, with the folder where that matters."""
    shape, folder = str(detail.get("command", "")), detail.get("folder")
    if is_path_shape(shape):
        return f"A path that begins with `{shape}`{where(folder)}"
    return f"`{shape}`{where(folder)}"


def where(folder: Any) -> str:
    """Return a folder as the end of a phrase: ' in src/'; empty where none is known."""
    if not isinstance(folder, str):
        return ""
    return f" in {folder}/" if folder else " in the project's root"


def counted(sessions: int) -> str:
    """Return a number of sessions in words."""
    return "1 session" if sessions == 1 else f"{sessions} sessions"


def _does(run: Run, line: str) -> bool:
    """Whether a run called what *line* calls, whatever it was called on."""
    commands = [each for each in commands_of(line) if not each.filters]
    if len(commands) == 1 and commands[0].kind == "look":  # its flags are all that tells it from other looking around
        return any(has_shape(each, line) for each in run.commands)
    wanted = shapes_of(line)
    return bool(wanted) and wanted <= run.shapes


def shapes_of(line: str) -> set[str]:
    """Return the shapes of a line's commands that do more than look around; of all where none does."""
    commands = [each for each in commands_of(line) if not each.filters]
    doing = [each for each in commands if each.kind != "look"]
    return {shape for each in doing or commands if (shape := shape_of(each))}


def _most_seen(known: Any, fresh: Any) -> dict[str, list[str]]:
    """Return by which sessions each was seen, the most seen first; of equals the one that was known first."""
    both = {name: list(some) for name, some in (known or {}).items()}
    for name, some in (fresh or {}).items():
        both[name] = list(dict.fromkeys((*both.get(name, ()), *some)))[-MOST_SESSIONS:]
    ranked = sorted(both.items(), key=lambda each: -len(each[1]))
    if len(ranked) > MOST_WORKED:  # the newest has a chance to become the one seen most often
        ranked = [*ranked[: MOST_WORKED - 1], ranked[-1]]
    return dict(ranked)


def _capped(counts: dict[str, int]) -> dict[str, int]:
    """Return the last fifty sessions by name, and the number of those before."""
    names = [name for name in counts if name != EARLIER]
    gone = names[:-MOST_SESSIONS]
    if not gone:
        return counts
    return {EARLIER: counts.get(EARLIER, 0) + len(gone), **{name: counts[name] for name in names[len(gone) :]}}


def _sessions_in(counts: Any) -> int:
    if not isinstance(counts, Mapping):
        return 0
    earlier = counts.get(EARLIER, 0)
    return len(counts) - (EARLIER in counts) + (earlier if isinstance(earlier, int) else 0)
