"""Write the line around a tool use: before a command that is known to fail, after a failure that was solved before,
and before the first edit of a file that the user laid something down about.

A hint is never a way to smuggle a command in: an alternative is named only if it worked in two sessions, starts the same
program or a script of the project, and does nothing that `is_safe` refuses. Errors are quoted up to their advice.
"""

# ruff: noqa: E501 - a pattern reads better whole
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from foreword.extract import failures
from foreword.extract.actions import Action
from foreword.extract.commands import commands_of, folders_of, likeness, starts_same, word_set
from foreword.extract.failure_memory import (
    advice_for,
    call_of,
    checked_detail,
    counted,
    sessions_in,
    sessions_worked,
    where,
)
from foreword.models import Memory
from foreword.recall.notes import id_of, is_about_process
from foreword.recall.relevance import content_words, memory_words
from foreword.recall.sanitize import ago, neutral, shown_path

MOST_CHARACTERS = 245  # of a hint: 70 tokens at 3.5 characters each
QUOTE = 100  # characters of an error
EXPLANATION = 170  # characters of how an agent explained a failure
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

    @cached_property
    def kinds(self) -> frozenset[str]:
        """Return the kinds of the commands that fail."""
        return frozenset(part.kind for part in commands_of(self.detail["command"]))


class Hint(NamedTuple):
    """One line around a tool use, and the memory that it comes from."""

    text: str
    memory: str


def hint_before(
    command: str, known: Sequence[KnownFailure], *, now: float, cwd: str = "", root: str = ""
) -> Hint | None:
    """Return what to tell before *command*: that this call failed each time, and what worked instead."""
    commands = commands_of(command)
    folders = folders_of(commands, cwd, root=root)
    succeeding = {each.detail["command"] for each in known if each.detail["succeeded_in"]}
    reliable = [each for each in known if is_reliable(each.detail)]
    reliable.sort(key=lambda each: (sessions_in(each.detail["seen_in"]), each.detail["last"]), reverse=True)
    for each in reliable:
        detail = each.detail
        if not failures.calls(detail["command"], detail["folder"], commands, folders):
            continue
        if not _has_what_failed(each, command) or _has_what_worked(detail, command):
            continue
        # A call whose content was wrong must be the same each time: no script in its words, nothing that also succeeds.
        inline = not {"-c", "-e"}.isdisjoint(detail["command"].split()) and not advice_for(detail)
        if detail["cause"] == "content" and (inline or detail["command"] in succeeding):
            continue
        instead = _instead(detail, command)
        # A check is run to find something: only another way to run it is worth telling.
        checks = not each.kinds.isdisjoint(("test", "lint")) or detail["error"].startswith("script '")
        if detail["cause"] == "content" and checks and (not instead or _has_own_fixer(detail)):
            continue
        begin = f"{_call(detail)} failed in {counted(sessions_in(detail['seen_in']))}, last {ago(now - detail['last'])}"
        if not failures.is_path_shape(detail["command"]):  # of any program that is given such a path
            begin += f": {quote(detail['error'])}"
        return _hint([begin, *instead], each)
    return None


def hint_after(
    command: str, output: str, known: Sequence[KnownFailure], *, now: float, cwd: str = "", root: str = ""
) -> Hint | None:
    """Return what to tell after *command* failed with *output*: what worked, what an agent found, what fixed it then."""
    action = Action("tool", now, act="run", command=command, output=output, failed=True)
    run = failures.run_of(action, root=root, cwd=cwd)
    failure = failures.failure_of(run)
    if failure is None:
        return None
    same = [each for each in _same(failure, run, known) if _has_what_failed(each, command)]
    same = [each for each in same if not _is_found_at_once(each.detail, output)]
    for each in same:
        if instead := [] if _has_own_fixer(each.detail) else _instead(each.detail, command):
            return _solved(each, failure, instead, now=now)
    if hint := _explained(failure, run, known, now=now):
        return hint
    for each in same:
        edited = each.detail["fixed_files"]  # an edit may help where this error names the file too
        names_one = any(failures.names_file(failure.files, one) for one in edited)
        applies = not edited or names_one or each.detail["error"] == failure.error
        if applies and (fix := _fix(each.detail, failure.files)):
            return _solved(each, failure, fix, now=now)
    return None


def failure_line(detail: Mapping[str, Any], *, now: float) -> str:
    """Return the line for what comes back at a session's start: the call, its error, and what works."""
    detail = checked_detail(detail)
    often = f"{counted(sessions_in(detail['seen_in']))}, last {ago(now - detail['last'])}"
    error = _PLACE.sub("", detail["error"]) if sessions_in(detail["seen_in"]) > 1 else detail["error"]
    findings = [text for sentence in list(detail["explained"])[:1] if (text := _finding(sentence))]
    known = _instead(detail, detail["text"]) or findings or _fix(detail)
    return "; ".join((f"{_call(detail)} fails ({often}): {quote(error)}", *known))


def has_remedy(detail: Mapping[str, Any]) -> bool:
    """Return whether a command or a fix is known that may be named; what an agent found out is often only a result."""
    detail = checked_detail(detail)
    return bool(_instead(detail, detail["text"]) or _fix(detail))


_PLACE = re.compile(r"^[\w./\\-]+\.\w+:\d+(?::\d+)?:? +")  # of one session's error: the next one is elsewhere


def is_reliable(detail: Mapping[str, Any]) -> bool:
    """Return whether a call fails each time: after two sessions without success, and a call that no edit can set right
    after one, if its words say enough: readers called hints on `git add` or `cd` of one session noise.
    """
    failed, succeeded = sessions_in(detail["seen_in"]), sessions_in(detail["succeeded_in"])
    if detail["cause"] not in ("usage", "folder"):
        return failed >= ENOUGH and not succeeded
    words = detail["command"].split()
    specific = bool(detail["worked"]) or failures.is_path_shape(detail["command"])
    if detail["cause"] == "usage":
        specific = len(words) >= SPECIFIC or any(word.startswith("-") for word in words[1:])
    return failed >= (1 if specific else ENOUGH) and succeeded * RELIABLE <= failed - 1


# -- which failure it is -------------------------------------------------------------------------------------------
def _same(failure: failures.Failure, run: failures.Run, known: Sequence[KnownFailure]) -> list[KnownFailure]:
    """Return the known failures that are this one, the surest first: by call and error, by error."""
    key, program = failures.failure_key(failure), failure.shape.split()[0]
    commits = run.commands[run.place].program == "git commit"  # what its hook ran may be known by itself
    found = []
    for each in known:
        same_call = each.detail["key"] == key
        same_error = each.detail["error_key"] == failure.key and len(failure.key.split()) >= 3
        if same_call or (same_error and (commits or each.detail["command"].split()[:1] == [program])):
            found.append((same_call, each.detail["last"], each))
    return [each for *_, each in sorted(found, key=lambda one: one[:2], reverse=True)]


def _has_what_failed(known: KnownFailure, command: str) -> bool:
    """Return whether a command has what made the call fail: `gh api` with another query is another matter.

    What only looks around costs nothing where it fails, and readers called hints on it neutral.
    """
    left_out = _LEFT_OUT.fullmatch(known.detail["fix"])
    words = (*known.detail["blamed"], *(left_out[1].split() if left_out else ()))
    return known.kinds != {"look"} and all(word in command for word in words)


def _has_what_worked(detail: Mapping[str, Any], command: str) -> bool:
    """Return whether a command already has the word or the variable with which the call worked."""
    words = set(command.split())
    return any(words.issuperset(found[1].split()) for found in map(_WITH.match, detail["fixes"]) if found)


def _is_found_at_once(detail: Mapping[str, Any], output: str) -> bool:
    """Return whether agents find what works by themselves: the error says it, or most sessions ran it next.

    Readers called a hint after such a failure neutral: the agent did the same without it.
    """
    left_out = _LEFT_OUT.fullmatch(detail["fix"])
    if left_out and (left_out[1].rpartition("/")[0] or left_out[1]) in output:
        return True
    at_once = len(detail["at_once"])
    lists = (*detail["worked"].values(), *detail["fixes"].values())
    return at_once > ENOUGH and 2 * at_once > len({session for sessions in lists for session in sessions})


def _has_own_fixer(detail: Mapping[str, Any]) -> bool:
    """Return whether what works is the check's own way to set things right, `lint:fix` for `lint`: agents know that."""
    names = [word for word in detail["command"].split() if not word.startswith("-")][-1:]
    names += re.findall(r"^script '(.+)' failed$", detail["error"])
    words = {word for line in detail["worked"] for each in commands_of(line) for word in each.words}
    fixers = (word[len(name) :] for word in words for name in names if word.startswith(name))
    checks = bool(failures.ONLY_CHECKS.intersection(detail["command"].split()))
    return checks or any(map(failures.FIXER.search, fixers)) or any(map(_FIX_FLAG.fullmatch, words))


_WITH = re.compile(r"worked with `([^`]+)`")
_LEFT_OUT = re.compile(r"worked without `(.+)`")
_FIX_FLAG = re.compile(r"--(?:fix|write|apply)\b.*|-w")


# -- the text of a hint ---------------------------------------------------------------------------------------------
def _solved(known: KnownFailure, failure: failures.Failure, ends: Sequence[str], *, now: float) -> Hint:
    """Return the hint after a failure that was solved before."""
    detail, when = known.detail, ago(now - known.detail["last"])
    begin = f"{when} the same with {_call(detail)}: {quote(detail['error'])}"
    if detail["error_key"] != failure.key:
        begin = f"{_call(detail)} failed in {counted(sessions_in(detail['seen_in']))} before, last {when}"
    return _hint([begin, *ends], known)


def _explained(
    failure: failures.Failure, run: failures.Run, known: Sequence[KnownFailure], *, now: float
) -> Hint | None:
    """Return how an agent explained such a failure, where this output names the files of that sentence."""
    output = run.text.lower().replace("\\", "/")
    tests = run.commands[run.place].kind == "test"  # the key holds the test's name
    kinds = {run.commands[run.place].kind, "test", "lint", "build", "git"}  # a commit fails as its hook's checks do
    found = []
    for each in known:
        same = failures.failure_key(failure) == each.detail["key"]
        for sentence in each.detail["explained"] if same or each.kinds & kinds else ():
            named = any("/" in name and name in output for name in failures.code_names(sentence))
            if ((same and tests) or named) and (text := _finding(sentence)):
                found.append((same, "…" not in text, each.detail["last"], text, each))
    if not found:
        return None
    *_, text, each = max(found, key=lambda one: one[:3])
    return _hint([f"{ago(now - each.detail['last'])} of such a failure {text}"], each)


def _finding(sentence: str) -> str:
    """Return an explanation as the end of a line; empty where it holds what may not be named."""
    text = plain(sentence.replace("`", ""), most=EXPLANATION)
    return f'an agent found: "{text}"' if is_safe(text) else ""


def _instead(detail: Mapping[str, Any], command: str) -> list[str]:
    """Return what worked instead, as the end of a line: how it differs, and the alternative that is most like *command*."""
    if advice := advice_for(detail):
        return [advice]
    found = []
    for each in detail["worked"]:
        parts, count = commands_of(each), sessions_worked(detail, each)
        if not parts or count < ENOUGH or not is_safe(each) or len(each) > ALTERNATIVE or each.endswith("…"):
            continue
        if starts_same(parts[0], commands_of(command)) or _SCRIPT.match(each):
            other = len(detail["worked"][each]) < ENOUGH or _PATH.search(command)  # what another session worked on
            text = _without_paths(each, kept=f"{command} {parts[0].words[0]}") if other else each
            text = f"`{text}`{where(detail['worked_in'].get(each))}"
            found.append((likeness(word_set(command), word_set(each)), count, text))
    form = next(iter(_fix(detail)), "") if detail["fix"].startswith(("worked with ", "worked without ")) else ""
    if found:
        _, count, text = max(found)
        return [f"{form}, as in {text} ({counted(count)})" if form else f"{text} worked in {count}"]
    return [form] if form else []


def _without_paths(line: str, *, kept: str) -> str:
    """Return a command line with dots in the place of the paths that *kept* does not hold."""
    text = _PATH.sub(lambda path: path[0] if path[0] in kept else "…", line)
    return re.sub("…(?: …)+", "…", text)


def _fix(detail: Mapping[str, Any], named: Sequence[str] = ()) -> list[str]:
    """Return what fixed it, as the end of a line; nothing where it may not be named or says nothing to a reader.

    Leaving a check out is a way to skip it, and a variable is an alternative like a flag: it needs two sessions.
    """
    fix = detail["fix"]
    once = len(detail["fixes"].get(fix, ())) < ENOUGH
    if not fix or (fix.startswith("worked without") and _CHECK.search(fix)):
        return []
    if fix.startswith("worked with `") and (once or not is_safe(fix.replace("`", " "))):
        return []
    text = plain(_without_advice(plain(fix, most=400)), most=110)
    if not text.startswith("edited"):
        return [f"it {text}"]
    # An edit tells something where the error names its file.
    file = text.removeprefix("edited ").partition(": ")[0]
    is_named = file.rpartition("/")[2] in detail["error"] or failures.names_file(named, file)
    return [f"fixed then: {text}"] if is_named else []


def _call(detail: Mapping[str, Any]) -> str:
    return call_of(plain(detail["command"], most=70), detail["folder"])


def _hint(parts: Sequence[str], known: KnownFailure) -> Hint:
    begin, end = "[foreword, history] ", f" [{known.id}]"
    text = "; ".join(parts)
    room = MOST_CHARACTERS - len(begin) - len(end)
    if len(text) > room and len(parts) > 1:  # the error gives way to what worked
        tail = "; " + "; ".join(parts[1:])
        text = parts[0][: max(40, room - len(tail) - 2)].rstrip(' "') + '…"' + tail
    text = text if len(text) <= room else text[: room - 2].rstrip() + '…"'
    return Hint(f"{begin}{text}{end}", known.id)


# -- what may be quoted --------------------------------------------------------------------------------------------
def quote(error: str) -> str:
    """Return an error as a quotation: one line, no mark-up, nothing that could end the quotation."""
    text = _without_advice(plain(error, most=4 * QUOTE))
    return f'"{plain(text, most=QUOTE) or "…"}"'


def plain(text: str, *, most: int) -> str:
    """Return a text in one line, without back-ticks, tags and control characters, cut at a word."""
    line = " ".join(re.sub(r"[\x00-\x1f\x7f`<>]|\x1b\[[0-9;]*m", " ", text).split()).replace('"', "'")
    line = re.sub(r"-{3,}|\[(?=/?foreword)", " ", line, flags=re.IGNORECASE)
    return line if len(line) <= most else line[: most - 1].rsplit(" ", 1)[0] + "…"


def _without_advice(text: str) -> str:
    """Return a text up to where it tells to run what may not be named: whoever wrote an output must not choose a command."""
    ends = (each.start() for each in _ADVICE.finditer(text) if not is_safe(text[each.start() :]))
    end = next(ends, None)
    return text if end is None else text[:end].rstrip(" ,;:('\"") + "…"


def is_safe(command: str) -> bool:
    """Return whether a command may be named: it skips no check, forces, escalates, downloads and deletes nothing."""
    return not _UNSAFE.search(command)


_ADVICE = re.compile(
    r"\b(?:run|use|using|try|type|execute|invoke|enter|paste|install)\b"
    r"|\b(?:curl|wget|sudo|doas)\s+[^\s:]|\b(?:rm|chmod|chown|ssh|scp)\s+[-+~/.\d]",
    re.IGNORECASE,
)
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
_CHECK = re.compile(
    r"(?<![\w./-])[\w-]*(?:check|verif|strict|lint|test|frozen|locked|warning|audit|sign|secur|safe)[\w-]*(?![\w./])",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?<![\w./@-])(?:[\w.@~-]*/)+[\w.@-]*\w|(?<![\w./@-])[\w-]+\.[a-z]{1,4}(?![\w.])")


# -- before the first edit of a file ---------------------------------------------------------------------------
LAID_DOWN = ("preference", "correction", "decision", "learning")
STATEMENT = 240  # characters of the user's words that are quoted
# Words that a statement shares with the text of an edit; one is often the name of what the whole file is about.
SHARED_WORDS = 2
FEW_FILES = 3  # files of its turn, tests not counted, up to which a statement is about each of them
_TEST_NAME = re.compile(r"^tests?[_-]|[_-](?:tests?|spec)$", re.IGNORECASE)
SURE = 0.7  # confidence; a statement that was made once and not very clearly is not shown


def hint_for_edit(file: str, memories: Sequence[Memory], *, now: float, changed: str = "") -> Hint | None:
    """Return what the user laid down about *file*, the newest of it; None where nothing was.

    A turn may edit ten files: a statement counts for a file that it names, or where its turn edited hardly any other.
    It forbids or obliges, or shares words with the *changed* text: all other quotations at an edit helped no reader.
    """
    rules = [each for each in memories if each.trust == "user" and each.kind in LAID_DOWN and each.confidence >= SURE]
    # Readers called a question with its chosen option, and a word on branches, noise at an edit: it settled that moment.
    lasting = [each for each in rules if not _IS_ANSWER.search(each.title) and not is_about_process(each.title)]
    about = [each for each in lasting if _is_about(each, file)]
    words = content_words(changed) - memory_words(_stem(file)) if about else frozenset()
    relevant = (
        each for each in about if _OBLIGES.search(each.title) or len(words & memory_words(each.title)) >= SHARED_WORDS
    )
    chosen = max(relevant, key=lambda each: each.created, default=None)
    if chosen is None:
        return None
    when = ago(now - max(chosen.created, chosen.confirmed))
    quoted = neutral(chosen.title, width=STATEMENT).replace('"', "'")
    name = shown_path(file).replace('"', "'")
    text = f'[foreword, history] {name}: the user, {when}: "{quoted}" [{id_of(chosen)}]'
    return Hint(text, chosen.id)


def _is_about(memory: Memory, file: str) -> bool:
    if memory_words(_stem(file)) & memory_words(memory.title):
        return True
    named = {_stem(each) for each in memory.files}
    return len(named) <= (1 if memory.kind == "decision" else FEW_FILES)  # most decisions are about one task


def _stem(file: str) -> str:
    """Return the name of a file without its ending; that of a test is the name of what it tests."""
    return _TEST_NAME.sub("", file.rpartition("/")[2].partition(".")[0])


_IS_ANSWER = re.compile(r"\?['\"”’)]*\s+\S|^Chosen: ")
_OBLIGES = re.compile(
    r"\b(?:never|always|must|not|no longer|only|avoid|stop|without|instead of|rather than|every|everywhere|\w+n['’]t"
    r"|(?:do|does|did|ca|wo|should|must|is|are|was|were|has|have|could|would|need)nt)\b"
    r"|\b(?:nie|immer|nur|keine?|jamais|toujours|nunca|siempre)\b|ください|ないで|禁止|必ず",
    re.IGNORECASE,
)
