"""Write the line around a command: before one that is known to fail, and after a failure that was solved before."""

# ruff: noqa: E501 - a pattern reads better whole
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foreword.extract.actions import Action
from foreword.extract.commands import commands_of, folders_of, likeness, starts_same, word_set
from foreword.extract.failure_memory import (
    advice_for,
    checked_detail,
    counted,
    sessions_seen,
    sessions_succeeded,
    sessions_worked,
    where,
)
from foreword.extract.failures import (
    FIXER,
    Failure,
    Run,
    calls,
    code_names,
    failure_key,
    failure_of,
    is_path_shape,
    names_file,
    run_of,
)
from foreword.recall.sanitize import ago

MOST_CHARACTERS = 245  # of a hint: 70 tokens at 3.5 characters each
QUOTE = 100  # characters of an error
EXPLANATION = 170  # characters of what an agent said of a failure
ALTERNATIVE = 100  # characters of a command that worked
ENOUGH = 2  # sessions in which an alternative must have succeeded, so that one odd session cannot choose it
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
    hits.sort(key=lambda each: (sessions_seen(each.detail), float(each.detail.get("last") or 0.0)), reverse=True)
    for each in hits:
        detail = each.detail
        shape = str(detail.get("command", ""))
        if _only_looks(detail) or not _has_what_failed(detail, command):
            continue
        instead = _instead(detail, command)
        if detail.get("cause") == "content" and _is_check(detail) and (not instead or _has_own_fixer(detail)):
            continue  # it is run to find something; another way to run it is worth telling
        often = f"failed in {counted(sessions_seen(detail))}"
        begin = f"{_call(detail)} {often}, last {_when(detail, now)}"
        if not is_path_shape(shape):  # of any program that is given such a path
            begin += f": {quote(detail.get('error'))}"
        return _hint([begin, *instead], each, reason=often)
    return None


def hint_after(
    command: str, output: str, known: Sequence[KnownFailure], *, now: float, cwd: str = "", root: str = ""
) -> Hint | None:
    """Return what to tell after *command* failed with *output*: what worked, what an agent found, what fixed it then."""
    action = Action("tool", now, act="run", command=command, output=output, failed=True)
    run = run_of(action, root=root, cwd=cwd)
    failure = failure_of(run)
    if failure is None:
        return None
    same = [each for each in _same(failure, run, known) if _is_worth_telling(each.detail, command, output)]
    for each in same:
        if instead := [] if _has_own_fixer(each.detail) else _instead(each.detail, command):
            return _solved(each, failure, instead, now=now)
    if hint := _explained(failure, run, known, now=now):
        return hint
    for each in same:
        if _fix_applies(each.detail, failure) and (fix := _fix(each.detail, failure.files)):
            return _solved(each, failure, fix, now=now)
    return None


def _solved(known: KnownFailure, failure: Failure, ends: Sequence[str], *, now: float) -> Hint:
    """Return the hint after a failure that was solved before."""
    detail = known.detail
    when = _when(detail, now)
    begins = f"{when} the same with {_call(detail)}: {quote(detail.get('error'))}"
    if detail.get("error_key") != failure.key:
        begins = f"{_call(detail)} failed in {counted(sessions_seen(detail))} before, last {when}"
    return _hint([begins, *ends], known, reason="the same error was solved before")


def _explained(failure: Failure, run: Run, known: Sequence[KnownFailure], *, now: float) -> Hint | None:
    """Return what an agent said of a failure of this kind, where this output names the very files it spoke of."""
    output = run.text.lower().replace("\\", "/")
    kinds = (run.commands[run.place].kind, "test", "lint", "build", "git")  # a commit fails as its hook's checks do
    found = []
    for each in known:
        same = failure_key(failure) == each.detail.get("key")
        if not same and all(part.kind not in kinds for part in commands_of(str(each.detail.get("command", "")))):
            continue
        for sentence in each.detail.get("explained") or ():
            if any("/" in name and name in output for name in code_names(sentence)) and (text := _finding(sentence)):
                found.append((same, "…" not in text, float(each.detail.get("last") or 0.0), text, each))
    if not found:
        return None
    *_, text, each = max(found, key=lambda one: one[:3])
    return _hint([f"{_when(each.detail, now)} of such a failure {text}"], each, reason="an agent said why")


def _finding(sentence: str) -> str:
    """Return what an agent said as the end of a line; nothing where it holds what may not be named."""
    text = plain(sentence.replace("`", ""), most=EXPLANATION)
    return f'an agent found: "{text}"' if is_safe(text) else ""


def _same(failure: Failure, run: Run, known: Sequence[KnownFailure]) -> list[KnownFailure]:
    """Return the known failures that are this one, the surest first: by call and error, by error."""
    key, program = failure_key(failure), failure.shape.split()[0]
    commits = run.commands[run.place].program == "git commit"
    ranks: list[tuple[int, float, KnownFailure]] = []
    for each in known:
        command = str(each.detail.get("command", "")).split()
        same_error = each.detail.get("error_key") == failure.key and len(failure.key.split()) >= 3
        if each.detail.get("key") == key:
            rank = 2
        elif same_error and (commits or command[:1] == [program]):
            rank = 1  # the same program, called in another way; or the check itself that a hook ran
        else:
            continue
        ranks.append((rank, float(each.detail.get("last") or 0.0), each))
    return [each for _, _, each in sorted(ranks, key=lambda each: each[:2], reverse=True)]


def _is_worth_telling(detail: Mapping[str, Any], command: str, output: str) -> bool:
    """Whether an agent may lack what is known of this failure."""
    if _only_looks(detail) or not _has_what_failed(detail, command):
        return False
    return not _is_found_at_once(detail, output)


def _only_looks(detail: Mapping[str, Any]) -> bool:
    """Whether a call only looks around: its failure costs nothing, and readers called hints on it neutral."""
    parts = commands_of(str(detail.get("command", "")))
    return bool(parts) and all(part.kind == "look" for part in parts)


def _is_check(detail: Mapping[str, Any]) -> bool:
    """Whether a call is there to find something, so that its failure is no surprise."""
    checks = any(part.kind in ("test", "lint") for part in commands_of(str(detail.get("command", ""))))
    return checks or str(detail.get("error", "")).startswith("script '")


def _has_own_fixer(detail: Mapping[str, Any]) -> bool:
    """Whether what works is the check's own way to set things right, `lint:fix` for `lint`: agents know that."""
    names = [word for word in str(detail.get("command", "")).split() if not word.startswith("-")][-1:]
    names += re.findall(r"^script '(.+)' failed$", str(detail.get("error", "")))
    words = {word for line in detail.get("worked") or () for each in commands_of(line) for word in each.words}
    fixers = (word[len(name) :] for word in words for name in names if word.startswith(name))
    return any(map(FIXER.search, fixers)) or any(map(_FIX_FLAG.fullmatch, words))


_FIX_FLAG = re.compile(r"--(?:fix|write|apply)\b.*|-w")


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
    often = f"{counted(sessions_seen(detail))}, last {_when(detail, now)}"
    line = f"{_call(detail)} fails ({often}): {quote(detail.get('error'))}"
    instead = _instead(detail, str(detail.get("text", "")))
    findings = [text for sentence in list(detail["explained"])[:1] if (text := _finding(sentence))]
    return "; ".join((line, *(instead or findings or _fix(detail))))


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
    r"|(?:^|\s)-[a-zA-Z]{0,2}[fy][a-zA-Z]{0,2}(?=\s|$)|\bcommit\b[^|;&]* -n\b|\b\w*(?:SKIP|HUSKY|VERIFY|TLS|SSL|INSECURE|PRELOAD|UNAUTHORIZED|FORCE)\w*="
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
    """Return what worked instead, as the end of a line: how it differs, and the alternative that is most like *command*."""
    if advice := advice_for(detail):
        return [advice]
    own = word_set(command)
    found = []
    for each in detail.get("worked") or ():
        parts, count = commands_of(each), sessions_worked(detail, each)
        if not parts or count < ENOUGH or not is_safe(each) or len(each) > ALTERNATIVE or each.endswith("…"):
            continue
        if starts_same(parts[0], commands_of(command)) or _SCRIPT.match(each):
            place = where((detail.get("worked_in") or {}).get(each))
            found.append((likeness(own, word_set(each)), count, f"`{_without_paths(each, command)}`{place}"))
    form = (
        next(iter(_fix(detail)), "") if str(detail.get("fix")).startswith(("worked with ", "worked without ")) else ""
    )
    if found:
        _, count, each = max(found)
        return [f"{form}, as in {each} ({counted(count)})" if form else f"{each} worked in {count}"]
    return [form] if form else []


def _has_what_failed(detail: Mapping[str, Any], command: str) -> bool:
    """Whether a command has what made the call fail: `gh api` with another query is another matter."""
    found = re.fullmatch(r"worked without `(.+)`", str(detail.get("fix") or ""))
    words = (*(detail.get("blamed") or ()), *(found[1].split() if found else ()))
    return all(word in command for word in words)


def _is_found_at_once(detail: Mapping[str, Any], output: str) -> bool:
    """Whether agents find what works by themselves: the error says it, or their next command was it in most sessions.

    Readers called a hint after such a failure neutral: the agent did the same without it.
    """
    found = re.fullmatch(r"worked without `(.+)`", str(detail.get("fix") or ""))
    if found and (found[1].rpartition("/")[0] or found[1]) in output:
        return True
    at_once = len(detail.get("at_once") or ())
    lists = (*(detail.get("worked") or {}).values(), *(detail.get("fixes") or {}).values())
    solved = {session for sessions in lists for session in sessions}
    return at_once > ENOUGH and 2 * at_once > len(solved)


def _fix_applies(detail: Mapping[str, Any], failure: Failure) -> bool:
    """Whether what fixed it then may fix it now: words left out, or an edit of a file that this error names too."""
    if not detail.get("fix"):
        return False
    edited = detail.get("fixed_files") or ()
    return not edited or detail.get("error") == failure.error or any(names_file(failure.files, file) for file in edited)


def _fix(detail: Mapping[str, Any], named: Sequence[str] = ()) -> list[str]:
    """Return what fixed it, as the end of a line; nothing where it may not be named or says nothing to a reader.

    Leaving a check out is a way to skip it, and a variable is an alternative like a flag: it needs two sessions.
    """
    fix = str(detail.get("fix") or "")
    once = len((detail.get("fixes") or {}).get(fix) or ()) < ENOUGH
    if not fix or (fix.startswith("worked without") and _CHECK.search(fix)):
        return []
    if fix.startswith("worked with `") and (once or not is_safe(fix.replace("`", " "))):
        return []
    text = plain(_without_advice(plain(fix, most=400)), most=110)
    if not text.startswith("edited"):
        return [f"it {text}"]
    # An edit tells something where the error names its file, or where it is whole and has a name of the error.
    error = str(detail.get("error", ""))
    file, _, changed = text.removeprefix("edited ").partition(": ")
    whole = "…" not in changed and not set(_NAME.findall(changed)).isdisjoint(_NAME.findall(error))
    return [f"fixed then: {text}"] if whole or file.rpartition("/")[2] in error or names_file(named, file) else []


_NAME = re.compile(r"\b[A-Za-z_]\w{3,}")


_CHECK = re.compile(
    r"(?<![\w./-])[\w-]*(?:check|verif|strict|lint|test|frozen|locked|warning|audit|sign|secur|safe)[\w-]*(?![\w./])",
    re.IGNORECASE,
)


def _without_paths(alternative: str, command: str) -> str:
    """Return an alternative without the paths that another session worked on."""
    shortened = _PATH.sub(lambda found: found[0] if found[0] in command else "…", alternative)
    return re.sub(r"…(?: …)+", "…", shortened)


_PATH = re.compile(r"(?<![\w./@-])(?:[\w.@~-]*/)+[\w.@-]*\w|(?<![\w./@-])[\w-]+\.[a-z]{1,4}(?![\w.])")


def _when(detail: Mapping[str, Any], now: float) -> str:
    return ago(now - float(detail.get("last") or 0.0))


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
