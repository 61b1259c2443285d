"""Find the commands that failed in a session: the error that names the cause, and what worked instead or fixed it."""

# ruff: noqa: E501 - a pattern reads better whole
from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import takewhile

from foreword.extract import outputs
from foreword.extract.actions import Action, Turn
from foreword.extract.commands import (
    CHECKS,
    Command,
    alters,
    commands_of,
    folders_of,
    has_shape,
    likeness,
    program_name,
    shape_of,
    shown,
    word_set,
)
from foreword.extract.text import sentences
from foreword.models import Edit

LAST_LINES = 4  # of an output, in which a runner says how it ended
MAX_FOLLOWING = 10  # commands after a failure among which the one that worked is looked for
MIN_SIMILAR = 0.3  # share of words that a similar command has in common
MIN_SAME_CALL = 0.6  # of two calls that differ in a word or two
FEW = 3  # words or variables in which two calls differ


@dataclass(frozen=True)
class Failure:
    """A command that failed in a session, once or several times, and what came of it."""

    shape: str  # the program and the words that made it fail, without what it worked on
    command: str  # as it was run, shortened
    error: str  # the line that names the cause
    key: str  # the error without what differs from time to time
    cause: str  # usage: this call never works; folder: not in this folder; content: what it worked on was wrong
    blamed: tuple[str, ...] = ()  # values of the call that the error names and its shape does not
    folder: str | None = None  # where it ran, relative to the project's root; None where that does not matter
    files: tuple[str, ...] = ()  # that the error names
    script: str = ""  # that a runner or a commit's hook says failed
    times: int = 1
    last: float = 0.0
    worked: str = ""  # the similar command that succeeded next
    worked_in: str | None = None  # the folder where that ran, for a failure that depends on it
    fix: str = ""  # the edit after which it worked, or the words without which it did
    fixed_files: tuple[str, ...] = ()  # that the edit changed
    explained: str = ""  # the sentence of the agent's final message that says why it failed
    at_once: bool = False  # whether what worked was the very next command
    passed: bool = False  # whether the same call succeeded later, so that it does not fail each time
    open: bool = False  # whether it still failed when the session ended


@dataclass(frozen=True)
class Run:
    """A command line that was run: whether it failed, which of its commands did, and why."""

    action: Action
    commands: tuple[Command, ...]
    folders: tuple[str | None, ...]
    line: str = ""  # as it was run, with the project's paths relative to its root
    text: str = ""  # its output, in plain characters, likewise
    failed: bool = False
    skipped: bool = False  # whether the client did not run it: the user refused, another call failed first
    error: str = ""
    place: int = 0  # of the command that failed

    @property
    def succeeded(self) -> bool:
        """Return whether it ran and did what it was to do."""
        return not self.failed and not self.skipped

    @property
    def culprit(self) -> Command:
        """Return the command that failed."""
        return self.commands[self.place]

    @cached_property
    def words(self) -> frozenset[str]:
        """Return its words, without folders that it goes to and filters of its output."""
        return word_set("\n".join(each.text for each in self.commands if not each.filters and each.words[0] != "cd"))

    @cached_property
    def shapes(self) -> frozenset[str]:
        """Return the shapes of its commands."""
        return frozenset(shape_of(each) for each in self.commands)


def failures_of(turns: Sequence[Turn], *, root: str = "") -> tuple[Failure, ...]:
    """Return the failures of one session, each once, with what worked after its last time and what was said of it."""
    steps = [(turn, action) for turn in turns for action in turn.actions if action.kind == "tool"]
    actions = [action for _, action in steps]
    ran = iter(runs_of(turns, root=root))
    runs = {place: next(ran) for place, action in enumerate(actions) if action.act == "run"}
    found: dict[str, Failure] = {}
    for place, (turn, action) in enumerate(steps):
        failure = failure_of(runs[place]) if place in runs else _tool_failure(action)
        if failure is None:
            continue
        failure = _with_fix(failure, place, actions, runs)
        if place in runs:
            failure = replace(failure, explained=explanation(failure, runs[place].text, turn.answer))
        known = found.get(failure_key(failure))
        found[failure_key(failure)] = _again(known, failure) if known else failure
    return tuple(found.values())


def failure_key(failure: Failure) -> str:
    """Return what a failure is known by in its project: the same call with the same error."""
    folder = failure.folder if failure.cause == "folder" else ""
    return hashlib.blake2b(f"{failure.shape}\n{folder}\n{failure.key}".encode(), digest_size=8).hexdigest()


def runs_of(turns: Sequence[Turn], *, root: str = "") -> tuple[Run, ...]:
    """Return the command lines of a session with how each ended.

    A host tells the folder after a command has run; where it began is where the one before it ended.
    """
    found: list[Run] = []
    here = ""
    for turn in turns:
        for action in (*((turn.prompt,) if turn.prompt else ()), *turn.actions):
            if action.kind == "tool" and action.act == "run":
                found.append(run_of(action, root=root, cwd=here or action.cwd))
            here = action.cwd or here
    return tuple(found)


def run_of(action: Action, *, root: str = "", cwd: str = "") -> Run:
    """Return how a command line ended, by what its host tells and by what its output says.

    *cwd* is the folder in which it began; where it is not known, no failure depends on its folder.
    """
    commands = commands_of(action.command)
    text = _relative(outputs.plain_output(action.output), root)
    folders = folders_of(commands, cwd, root=root)
    run = Run(action, commands, folders, line=_relative(action.command, root).strip(), text=text)
    if not commands or _CLIENT.search(action.output[:400]):
        return replace(run, skipped=True)
    error = _error_of(action, commands, text)
    if not error and not action.failed:
        return run
    return replace(run, failed=True, error=error, place=_failing(commands, error, tells=bool(action.failed)))


def _error_of(action: Action, commands: Sequence[Command], text: str) -> str:
    """Return the line that names the cause of a failure; empty where none does, or nothing failed."""
    if any(each.kind in CHECKS for each in commands) and (nothing := outputs.NOTHING.search(text)):
        return nothing[0].strip()
    if action.failed:
        # Where none of its lines looks like an error, git says first what is wrong.
        line = next((line.strip() for line in text.split("\n") if line.strip()), "")[: outputs.MESSAGE]
        is_git = commands[0].program.startswith("git ") and commands[0].kind == "git" and len(line.split()) >= 3
        first = line if is_git and not outputs.NO_CAUSE.search(line) else ""
        return outputs.error_line(text) or outputs.failed_test(text) or first
    # The last lines may say that a script failed, and a wrapper around it ended well all the same.
    ends = "\n".join(text.rstrip().split("\n")[-LAST_LINES:])
    if any(each.kind != "look" for each in commands) and outputs.failed_script(ends):
        return outputs.error_line(text) or outputs.failed_test(text)
    # Some hosts do not tell how a command ended, and pipes hide it.
    hidden = [each for each in commands if action.failed is None or not each.tells]
    return _hidden_error(hidden, text) if hidden else ""


def _relative(text: str, root: str) -> str:
    """Return a text with the project's own paths relative to its root, and marked so: `./src/a.py`.

    Where a project lies differs between people and machines, and a long path pushes the cause out of the line.
    """
    return text.replace(f"{root.rstrip('/')}/", "./") if root.strip("/") else text


# -- what failed ---------------------------------------------------------------------------------------------------
# What a client says of itself, whatever the command was.
_CLIENT = re.compile(
    r"^(?:<\w+>)?(?:sibling tool call|the user (?:doesn't|rejected|declined|wants)|user (?:rejected|declined)|request interrupted"
    r"|\[request interrupted|interrupted by|permission to use|this command requires approval|file has (?:not been|been)"
    r"|inputvalidationerror|hook|command running|[^\n]{0,80}temporarily unavailable in background|tool permission|blocked:|cancelled:)",
    re.IGNORECASE,
)
_USAGE = re.compile(
    r"(?:unrecogni[sz]ed|unknown|unexpected|illegal|invalid|unsupported|bad|no such)(?: json)? (?:sub-?)?(?:command|option|argument|flag|switch|script|task|target|skill|field)"
    r"|command not found|(?:script|task)(?: \'\S+\')? not found|missing script|couldn't find a script|no such (?:command|service)|not recognized as"
    r"|is not a \w+ command|executable file not found|has an? \S+ script|no rule to make target|doesn't accept argument"
    r"|doesn't exist on type|could not resolve to a|was replaced by|don't know how to|cannot be found that matches|unrecognized|unexpected argument|flag provided but not defined|requires an argument",
    re.IGNORECASE,
)
# A call that works in another folder.
_FOLDER = re.compile(
    r"(?<!\.h: )(?<!\.hpp: )no such file or directory|can't open|can't read|can't cd|script not found|missing script|couldn't find a script|main module|go\.mod file not found"
    r"|could not find `?cargo\.toml|did not match any file|not a git repository|no rule to make target|no makefile|could not read package\.json"
    r"|no package\.json|no such file(?! or)|cannot find path|enoent|no configuration file|find a mix\.project",
    re.IGNORECASE,
)
_MISSING = re.compile(r"command not found: (\S+)|([^\s:]+): (?:command )?not found$")
_INLINE = frozenset(("-c", "-e", "-lc"))  # a script in the command looks for files of its own
_QUOTED = re.compile(
    r"(?<!\w)['\"`‘“]([^'\"`’”\n]{1,60})['\"`’”]|(?:option|flag|switch|argument)s?:? (?:-- )?(\S+)|not found: (\S+)|^(\S+): |cd: (\S+):|^pattern (\S+):"
)


def failure_of(run: Run) -> Failure | None:
    """Return what failed in a run; None where nothing did, and where no line says why."""
    if not run.failed or not run.error:
        return None
    command, folder = run.culprit, run.folders[run.place]
    name = command.words[0]
    doubled = _doubled_folder(run.error, folder)
    culprits = _culprits(run.error, command)
    cause, shape = "content", shape_of(command)
    blamed_shape = _shape_up_to(command, culprits) if culprits else ""
    if doubled:
        cause, shape = "folder", f"{doubled}/"
    elif _INLINE.intersection(command.words):
        pass  # the error is about the script
    elif _FOLDER.search(run.error):
        cause, shape = "content" if folder is None else "folder", blamed_shape or shape
    elif outputs.NOTHING.search(run.error):
        narrow = shape_of(command, narrow=True)
        cause = "usage" if narrow != shape or "script" in run.error else "content"
        shape = blamed_shape or narrow
    elif missing := _MISSING.search(run.error):  # the program, or what was put before it: `timeout 60 make`
        cause, shape = "usage", (missing[1] or missing[2]).rpartition("/")[2]
    elif _USAGE.search(run.error):
        cause, shape = "usage", blamed_shape or shape
    if not shape or name.startswith(("$", "[", "^", "*")):
        return None
    only_reads = command.kind == "look" and name != "cd" and not doubled and not outputs.SHELL_ERROR.match(run.error)
    if only_reads and (cause != "usage" or name in ("grep", "rg", "find", "ls")):
        return None  # a file that is not there
    parts = {part for word in _tokens(command) for part in (word, word.partition(":")[0])}
    own = parts - set(shape.split())
    return Failure(
        shape=shape,
        command=shown(run.line),
        error=run.error,
        key="not found" if doubled else _key(run, cause),
        cause=cause,
        blamed=tuple(sorted(_parts_of_values(run.error) & own))[:4] if cause == "usage" else (),
        folder=folder if cause == "folder" else None,
        files=tuple(dict.fromkeys(outputs.FILE.findall(run.text.replace("\\", "/"))))[:20],
        script=outputs.failed_script(run.text),
        last=run.action.at,
    )


def _key(run: Run, cause: str) -> str:
    """Return what tells an error from others; of a test with its name: `assert not True` is one error in each.

    Of a call that is wrong by itself the values that the error names are left out: its shape has those that matter.
    """
    command = run.culprit
    test = outputs.failed_test(run.text) if command.kind == "test" else ""
    error = run.error if cause == "content" else _VALUE.sub("''", run.error.removeprefix(f"{command.words[0]}: "))
    return " ".join(dict.fromkeys(filter(None, (outputs.error_key(test), outputs.error_key(error)))))


def _tool_failure(action: Action) -> Failure | None:
    """Return a failure of another tool that is about the project: a skill, a task or a script that it does not have."""
    if not action.failed or action.act != "other" or _CLIENT.search(action.output[:400]):
        return None
    found = re.search(r"\b(?:unknown|no such) (\w+)[: ]+['\"]?([\w:-]{1,40})", action.output[:400], re.IGNORECASE)
    if found is None:
        return None
    error = " ".join(found[0].split())
    shape = f"{action.tool} {found[2]}"
    return Failure(shape, shape, error, outputs.error_key(error), "usage", last=action.at)


def _hidden_error(hidden: Sequence[Command], text: str) -> str:
    """Return the error in the output of commands whose line does not tell of it: `pytest | tail`, `a; b`."""
    if found := outputs.SHELL_ERROR.search(text):
        return " ".join(found[0].split())[: outputs.MESSAGE]
    checks = [each for each in hidden if each.kind in CHECKS]
    ended = outputs.ended_badly(text) if checks else False
    lints = any(each.kind == "lint" for each in checks)
    if ended or (ended is None and lints and _FINDING.search(text)):  # some linters only list what they find
        return outputs.error_line(text)
    names = {each.words[0].rpartition("/")[2] for each in hidden}
    words = {word for each in hidden for word in each.words[1:]}
    running = any(each.kind not in ("look", "git") for each in hidden)
    for line in text.split("\n", FIRST_LINES)[:FIRST_LINES]:
        found = _REFUSED.match(line)
        if found and (found["name"] in names or found["flag"] in words or (running and not found["name"])):
            return line.strip()[: outputs.MESSAGE]
    if any(_INTERPRETER.match(name) for name in names) and _SCRIPT_ERROR.search(text):
        return outputs.error_line(text)
    return ""


FIRST_LINES = 5  # of an output, in which a program says that it was called in a wrong way
_FINDING = re.compile(r"^(?:vet: )?[\w./\\-]+\.\w+:\d+:\d+: \S", re.MULTILINE)
_REFUSED = re.compile(
    r"(?P<name>[\w.-]{1,40}): (?:(?:illegal|invalid|unrecognized|unknown) option\b|.{0,200}: No such file or directory$)"
    r"|(?:error|fatal|usage error): (?:unrecognized|unexpected|unknown|invalid) (?:argument|option|flag):? ['\"`]?(?P<flag>-[\w-]+)"
    r"|(?:npm )?(?:error|fatal|usage error):? (?:unrecognized|unexpected|unknown|invalid|missing script|script not found|could not find .cargo\.toml)"
    r"|pattern \S+: directory prefix |go: cannot find main module",
    re.IGNORECASE,
)
_GIT_ERROR = re.compile(
    r"fatal: |The following paths|error: (?:pathspec|the following|unknown|your local)", re.IGNORECASE
)
_INTERPRETER = re.compile(r"python|node|ruby|deno\b")
_SCRIPT_ERROR = re.compile(r'^  File "<(?:string|stdin)>", line \d', re.MULTILINE)


def _failing(commands: Sequence[Command], error: str, *, tells: bool) -> int:
    """Return which command of a line it was that failed: the one that the error names, else the first that matters."""
    names = [each.words[0].rpartition("/")[2] for each in commands]
    for found in re.finditer(r"(?:(?<=[\s:])|^)([\w.-]+)(?=: )|not found: ([\w./-]+)", error[:200]):
        name = found[1] or found[2]
        if name in names:
            return names.index(name)
    interpreters = [place for place, name in enumerate(names) if _INTERPRETER.match(name)]
    if interpreters and re.match(r"\w*(?:Error|Exception): ", error):
        return interpreters[0]
    tokens = {word.strip("'\"`,:;()") for word in error.split()}
    named = [sum(len(word) for word in tokens.intersection(each.words[1:]) if len(word) > 1) for each in commands]
    if any(named):
        return named.index(max(named))
    able = [place for place, each in enumerate(commands) if each.tells == tells and not each.filters]
    able = able or [place for place, each in enumerate(commands) if not each.filters] or [0]
    commits = [place for place in able if commands[place].program == "git commit"]
    if commits and not _GIT_ERROR.match(error):  # what its hooks say
        return commits[-1]
    checks = [place for place in able if commands[place].kind in CHECKS]
    doing = [place for place in able if commands[place].kind != "look"]
    return (checks or doing or able[-1:])[0]


def _culprits(error: str, command: Command) -> tuple[str, ...]:
    """Return the words of a command, after its first, that the error names."""
    named = {word for found in _QUOTED.finditer(error) for word in found.groups() if word}
    named |= {word.strip("'\"`,.:;()") for word in named}
    named |= {f"-{letter}" for letter in re.findall(r"option -- '?(\w)\b", error)}
    words = command.words[1:]
    named |= {f"--{word}" for word in named}
    found = [word for word in words if word in named and len(word) > 1 and not re.search(r"\w/|/\w", word)]
    return tuple(dict.fromkeys(found))


def _shape_up_to(command: Command, culprits: tuple[str, ...]) -> str:
    """Return the words of a command up to the last that is to blame, without paths and what was worked on."""
    words = command.words
    ends = [place for place, word in enumerate(words) if word in culprits]
    kept: Sequence[str] = culprits
    if ends and any(re.search(r"\w", each) for each in culprits):  # not `go build ./...`: whatever it does to it
        plain = re.compile(r"-?-?[A-Za-z@][\w:@-]*")
        kept = [word for word in words[1 : ends[-1] + 1] if word in culprits or plain.fullmatch(word)][-6:]
    return " ".join((program_name(words[0]), *kept))


def _doubled_folder(error: str, folder: str | None) -> str:
    """Return the folder that a path begins with although the command already ran in it; empty where it is not that."""
    if not folder or folder.startswith("/") or not _FOLDER.search(error):
        return ""
    firsts = re.findall(r"([\w.@-]+)(?:/[\w.@*-]+)*", error[:300])
    return next((first for first in firsts if first in folder.split("/")), "")


# -- what worked ---------------------------------------------------------------------------------------------------
FIXER = re.compile(
    r"(?:^|[:_-])(?:fix|format|fmt|write|generate|codegen|install|sync|tidy|clean|start|up|login|setup|lock|init|restore|deps|autoload)(?:$|[.:_-])"
)


def _with_fix(failure: Failure, place: int, steps: Sequence[Action], runs: Mapping[int, Run]) -> Failure:
    """Return the failure with what worked afterwards: a similar command, else the edit of a file that the error names."""
    later = {at: run for at, run in runs.items() if at > place}
    following = list(later.items())[:MAX_FOLLOWING]
    if place not in runs:
        return _with_steps(failure, [run for _, run in following])
    own, next_run = runs[place], following[0][1] if following else None
    passed = next((at for at, run in later.items() if run.succeeded and _is_hit(failure, run)), 0)
    until = passed or (following[-1][0] if following else place)
    differs = (run for _, run in following if run.words != own.words or failure.cause == "folder")
    near = [run for run in differs if run.succeeded]
    if failure.cause != "content":
        return _with_alternative(failure, own, near, next_run=next_run, again=passed > 0)
    tools = [run for at, run in later.items() if at < until and run.succeeded and _is_simple_command(run)]
    fixer = next((run for run in tools if _is_fixer(own, run)), None)
    edits = [each for step in steps[place + 1 : until + 1] if not step.failed for each in step.edits]
    named = [each for each in edits if names_file(failure.files, each.file)]
    own_edits = [each for each in edits if not each.file.startswith("/")]
    if passed and len({each.file for each in own_edits}) == 1:
        named = own_edits  # nothing else of the project changed until it passed
    elif outputs.NOTHING.search(failure.error):
        named = []
    failure = replace(failure, passed=passed > 0)
    other = next((run for run in near if not edits and _is_called_otherwise(own, run)), None)
    repeated = later[passed] if passed else other
    if repeated is None:
        return replace(_with_edits(failure, named), worked=shown(fixer.line) if fixer else "", open=True)
    if not edits:
        if own.culprit.kind != "look":  # what is not there comes with other work
            fixer = fixer or next((run for run in reversed(tools) if any(_fixes(each) for each in run.commands)), None)
        if fix := _difference(failure, own, repeated):
            return replace(failure, fix=fix, at_once=next_run is repeated, passed=False)
        if fixer is None and not repeated.words <= own.words and _is_simple_command(repeated):
            fixer = repeated
    worked = shown(fixer.line) if fixer else ""
    return replace(_with_edits(failure, named), worked=worked, at_once=bool(fixer and next_run is fixer))


def _with_steps(failure: Failure, near: Sequence[Run]) -> Failure:
    """Return a skill or task that does not exist with how it was done instead: the commands up to one of its name."""
    name = failure.shape.rpartition(" ")[2]
    programs: dict[str, None] = {}
    for command in (each for run in near if run.succeeded for each in run.commands):
        if command.kind in ("git", "look", *CHECKS) and " " in command.program:
            programs[command.program] = None
        if programs and name in command.words[1:3]:
            return replace(failure, fix=f"worked with `{'`, `'.join(list(programs)[-5:])}`")
    return failure


def _with_alternative(failure: Failure, own: Run, near: Sequence[Run], *, next_run: Run | None, again: bool) -> Failure:
    """Return a failure of the call itself with the call that worked instead: of those that are alike, the most alike."""
    alike = {run: _difference(failure, own, run) for run in near if _is_alike(own, run)}
    fix = next(filter(None, alike.values()), "")
    at_once = next_run is not None and next(iter(alike), None) is next_run
    found = [run for run in alike if _is_simple_command(run) and (alike[run] or not _is_hit(failure, run))]
    if not found:
        return replace(failure, fix=fix, at_once=at_once, open=not again and not fix)
    run = max(found, key=lambda each: likeness(own.words, each.words))
    folder = None
    if failure.cause == "folder" and not fix.startswith("worked with `-"):  # where the same program ran instead
        name = own.culprit.words[0]
        places = [place for each, place in zip(run.commands, run.folders, strict=True) if each.words[0] == name]
        folder = (places or run.folders)[-1]
        folder = folder if folder != failure.folder else None
    return replace(failure, fix=fix, worked=shown(run.line), worked_in=folder, at_once=at_once)


def _is_called_otherwise(failed: Run, later: Run) -> bool:
    """Return whether a later line runs the same tool on no less, by another program: `pytest`, then `uv run pytest`."""
    one = failed.culprit
    return any(
        each.program == one.program.rpartition("/")[2]
        and each.words[0] != one.words[0]
        and set(each.targets) <= set(one.targets)
        for each in later.commands
    )


def _difference(failure: Failure, failed: Run, later: Run) -> str:
    """Return what made the later call work, where it is little: words left out or replaced, a variable that is set."""
    one = failed.culprit
    before, blamed = _tokens(one), _parts_of_values(failure.error) | set(_culprits(failure.error, one))
    for command in later.commands:
        after = _tokens(command)
        compared = SequenceMatcher(None, before, after, autojunk=False)
        if before == after or compared.ratio() < MIN_SAME_CALL:
            continue
        changes = compared.get_opcodes()
        gone = [word for kind, begin, end, _, _ in changes if kind == "delete" for word in before[begin:end]]
        new = [word for kind, _, _, begin, end in changes if kind in ("insert", "replace") for word in after[begin:end]]
        named = [name for word in gone for name in (word, word.partition(":")[0]) if name in blamed]
        if failure.cause == "usage" and named and not any(word.startswith("-") for word in new):
            return f"worked without `{named[-1]}`"
        target = failure.cause == "content" and one.kind in CHECKS  # to check less is no fix
        if failure.cause == "folder" and not gone and 0 < len(new) < FEW and new[0].startswith("-"):
            return f"worked with `{' '.join(new)}`"
        if not new and not target and len(gone) <= FEW and FEW * len(gone) < len(before):
            return f"worked without `{' '.join(gone)}`"
        for kind, begin, end, to_begin, to_end in changes:
            replaces = kind == "replace" and end - begin == to_end - to_begin
            if replaces and failure.cause == "usage" and blamed.intersection(before[begin:end]):
                return f"worked with `{after[to_begin]}`"
    for command in later.commands:
        added = _variables(command) - _variables(one)
        if command.words[0] == one.words[0] and 0 < len(added) <= FEW:
            return f"worked with `{' '.join(sorted(added))}` before it"
    return ""


def _variables(command: Command) -> set[str]:
    """Return the variables that are set for a command alone: `CI=1 make test`."""
    found = re.match(r"(?:env )?((?:[A-Z_][A-Z0-9_]*=[\w./:@,+-]{1,40}\s+)+)", command.text)
    return set(found[1].split()) if found else set()


def _tokens(command: Command) -> list[str]:
    """Return the words of a command, those inside of quotation marks and brackets too."""
    return [word.strip(":") for word in _TOKEN.findall(" ".join(command.words))]


def _parts_of_values(error: str) -> set[str]:
    """Return what an error puts in quotation marks, and the parts of paths among it."""
    return {word for found in _VALUE.finditer(error) for word in (found[1], *found[1].split("/"))}


_VALUE = re.compile(r"(?<!\w)['\"`‘“]([^'\"`’”\s]{2,60})['\"`’”]")


def _with_edits(failure: Failure, edits: Sequence[Edit]) -> Failure:
    """Return the failure with the edits that fixed it."""
    fix = "; ".join(dict.fromkeys(map(_edit_text, edits[:2])))
    return replace(failure, fix=fix, fixed_files=tuple(dict.fromkeys(each.file for each in edits))[:5])


def explanation(failure: Failure, output: str, answer: str) -> str:
    """Return the sentence of an answer that says why this failed; empty where none speaks of just this."""
    text = _spelled(f"{failure.error} {output}")
    best, most = "", 0
    for sentence in sentences(answer):
        if not SHORTEST < len(sentence) <= LONGEST or not _FAILED.search(sentence) or not _WHY.search(sentence):
            continue
        named = [name for name in code_names(sentence) if name in text]
        words = {word for word in re.findall(r"[a-z]{5,}", sentence.lower()) if word in failure.error.lower()}
        if (named or len(words) > 1) and len(named) * 2 + len(words) > most:
            best, most = sentence, len(named) * 2 + len(words)
    return best


def code_names(sentence: str) -> tuple[str, ...]:
    """Return the files, folders and names of code in a sentence, spelled as in an output that is compared with it."""
    found = (each.strip("`./ ") for each in _CODE.findall(_spelled(sentence)))
    return tuple(dict.fromkeys(each for each in found if len(each) > 4))


def _spelled(text: str) -> str:
    return text.lower().replace("\\", "/")


SHORTEST, LONGEST = 30, 240  # characters of a sentence that explains
_FAILED = re.compile(
    r"\b(?:fail\w*|errors?|broke\w*|block(?:ed|ing)|unblock\w*|refus\w*|reject\w*|crash\w*|hook|warnings?|findings?|notes?)\b",
    re.IGNORECASE,
)
_WHY = re.compile(
    r"\b(?:because|caus(?:e|ed|es|ing)|due to|(?:are|is|was|were|comes?|came)(?: all)? from|since|pre-existing|unrelated|stale|leftover"
    r"|not (?:our|my|part|related|caused)|the fix (?:is|was)|fixed by|expects?|requires?|misleading|falsely)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"`[^`\n]{3,60}`|[\w.@-]+(?:/[\w.@*-]+)+/?|\b\w+[_.]\w+\b")


def calls(shape: str, folder: str | None, commands: Sequence[Command], folders: Sequence[str | None]) -> bool:
    """Return whether one of *commands* is of this shape; with a *folder*, only where it runs there."""
    there = [each for each, place in zip(commands, folders, strict=True) if folder is None or place == folder]
    if not is_path_shape(shape):
        return any(has_shape(each, shape) for each in there)
    # `git diff -- x` says nothing where x is not there.
    looking = (takewhile("--".__ne__, each.words[1:]) if each.kind == "look" else each.words[1:] for each in there)
    return any(word == shape[:-1] or word.startswith(shape) for words in looking for word in words)


def _is_hit(failure: Failure, run: Run) -> bool:
    called = calls(failure.shape, failure.folder, run.commands, run.folders)
    return called and all(word in run.line for word in failure.blamed)


def _is_alike(failed: Run, later: Run) -> bool:
    """Return whether a later line does what the failed one was to do: much the same words, or the same program."""
    one = failed.culprit
    same = one.kind != "look" and any((each.words[0], each.kind) == (one.words[0], one.kind) for each in later.commands)
    return same or likeness(failed.words, later.words) >= MIN_SIMILAR


_TOKEN = re.compile(r"[^\s(){},;|&\"']+")


def _is_simple_command(run: Run) -> bool:
    """Return whether a line makes sense in another session: no script, no variable, nothing from a scratch folder."""
    return len(run.line) <= MOST_LINE and "\n" not in run.line and not _OWN.search(run.line)


_OWN = re.compile(r"\$|<<|(?:^|\s|=)/tmp/|[Tt]emp/|scratch|[0-9a-f]{8}-[0-9a-f]{4}-")
MOST_LINE = 300  # characters of a command line that another session can make use of


def _is_fixer(failed: Run, later: Run) -> bool:
    """Return whether a later line is the same linter or generator, called to fix what it or a commit's hook found."""
    one = failed.culprit
    linters = [each for each in later.commands if each.kind == "lint"]
    if one.program != "git commit":
        same_program = [each for each in linters if each.words[0] == one.words[0] and each.words != one.words]
        linters = same_program if one.kind == "lint" else []
    checked = not ONLY_CHECKS.isdisjoint(one.words)
    return any(_fixes(each) or (checked and ONLY_CHECKS.isdisjoint(each.words)) for each in linters)


ONLY_CHECKS = frozenset(("--check", "-check", "--check-only"))


def _fixes(command: Command) -> bool:
    if any(FIXER.search(word) for word in command.words):
        return True
    return command.kind in ("install", "migrate", "look", "git") and alters(command)


def names_file(files: Sequence[str], edited: str) -> bool:
    """Return whether one of *files*, as an error names them, is the *edited* one."""
    return any(edited == file or edited.endswith(f"/{file}") or file.endswith(f"/{edited}") for file in files)


def _edit_text(edit: Edit) -> str:
    """Return an edit in a line: its file, and what it added or took away."""
    before, after = (edit.before or "").split("\n"), (edit.after or "").split("\n")
    added = [line.strip() for line in after if line.strip() and line not in before]
    removed = [line.strip() for line in before if line.strip() and line not in after]
    lines = [] if edit.whole and not edit.before else added or removed
    what = " ".join(" ".join(lines[:3]).replace("`", "'").split())
    if not what:
        return f"edited {edit.file}"
    what = what if len(what) <= 100 else what[:99].rsplit(" ", 1)[0] + "…"
    return f"edited {edit.file}: {'' if added else 'removed '}`{what}`"


def _again(known: Failure, fresh: Failure) -> Failure:
    """Return one failure of two times it was seen in a session; what worked the last time stands, unless nothing did."""
    return replace(
        known,
        **{name: getattr(fresh, name) for name in ("last", "fixed_files", "passed", "open")},
        times=known.times + 1,
        files=tuple(dict.fromkeys((*known.files, *fresh.files)))[:20],
        worked=fresh.worked or known.worked,
        worked_in=fresh.worked_in if fresh.worked else known.worked_in,
        # An edit after which the same error came again did not fix it.
        fix=fresh.fix or ("" if known.fixed_files else known.fix),
        explained=fresh.explained or known.explained,
        at_once=fresh.at_once if fresh.worked or fresh.fix else known.at_once,
    )


def is_path_shape(shape: str) -> bool:
    """Return whether a shape stands for paths that begin with a folder, whatever the program."""
    return shape.endswith("/") and " " not in shape
