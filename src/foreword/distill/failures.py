"""The output of something that failed -> the error: its type, its message, where it was, and what tells it from others."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from foreword.distill.commands import Command
from foreword.distill.sentences import cut

MOST_OUTPUT = 40_000  # characters; of more, the beginning and the end are read
MESSAGE = 160
NAME = 60  # characters of a test's name
NAMED = 100  # ... of a command that stands for what it would not say
MOST_COMPARED = 2_000  # characters of a message that tell it from others; a longer one is a file in one line


@dataclass(frozen=True)
class Problem:
    """What went wrong."""

    type: str  # AssertionError, error TS2322, exit code 2
    message: str
    fingerprint: str  # the same for the same error with other numbers, paths and addresses
    files: tuple[str, ...] = ()  # as the output names them
    tests: tuple[str, ...] = ()  # that failed


def problem_of(output: str, *, program: str) -> Problem | None:
    """The error that *output* ends in or names first; None where it names none."""
    text = _plain(output)
    type, message = _error(text)
    if not type and not message:
        return None
    tests = tuple(dict.fromkeys(_tests(text)))[:10]
    files = tuple(dict.fromkeys(_FILE.findall(text)))[:20]
    told = message if message and type and type.lower() in message.lower() else ": ".join(filter(None, (type, message)))
    # "assert not True" alone would be the same error in every test.
    mark = "\n".join((program, *tests[:1], normal(told[:MOST_COMPARED])))
    return Problem(
        type=type,
        message=cut(told, MESSAGE),
        fingerprint=_digest(mark),
        files=files,
        tests=tests,
    )


def failure_uid(fingerprint: str, *, project: str) -> str:
    """What a failure is known by: the same error in a project is the same failure."""
    return f"fai:{project}:{fingerprint}"


def name_of_test(test: str) -> str:
    """What a test is called where it is known which file or class it is in."""
    name = re.split(r"::| › | > |#", test)[-1]
    return cut(re.sub(r" \([\w.]+\)$", "", name), NAME)


def outcome(output: str, command: Command, *, failed: bool | None) -> tuple[bool, Problem | None]:
    """Whether a command failed, and with which error; where nobody tells, only what says so itself has failed."""
    # Of `pytest | tail` the host tells how `tail` ended.
    failed = None if failed is False and not command.tells else failed
    if failed is False:
        return False, None
    problem = problem_of(output, program=command.program)
    if problem is not None and _only_counts(problem):
        problem = _named(problem, command)
    if failed is None:
        checks = command.kind in ("test", "lint", "build")
        said_so = ended_badly(output) if checks else None
        told = problem is not None and bool(problem.type or problem.tests)
        failed = checks and told if said_so is None else said_so
    return failed, problem


def ended_badly(output: str) -> bool | None:
    """How a check ended by its own words, where its exit code is not known; None where it says neither."""
    text = _plain(output)
    if _FAILS.search(text):
        return True
    return False if _PASSES.search(text) else None


def normal(text: str) -> str:
    """*text* without what differs from run to run: numbers, addresses, paths' folders, times and quoted values."""
    text = text.lower()
    text = re.sub(r"0x[0-9a-f]+|\b[0-9a-f]{7,64}\b(?=.*\d)", "#", text)
    text = re.sub(r"(?:[\w.~-]*/)+([\w.-]+)", r"\1", text)
    text = re.sub(r"\d+(?:\.\d+)*", "#", text)
    return " ".join(text.split())


def _only_counts(problem: Problem) -> bool:
    """Whether it says how many failed, and not what: `1 failed, 2 passed in 3.68s`."""
    words = re.findall(r"[^\W\d_]+", problem.message.lower())
    return not problem.type and not problem.tests and bool(words) and _COUNTED.issuperset(words)


def _named(problem: Problem, command: Command) -> Problem:
    """The same by what was run: the sums of two test files are not one failure."""
    mark = "\n".join((command.program, *sorted(command.targets)))
    message = f"{cut(command.text, NAMED)}: {problem.message.strip('= ')}"
    return replace(problem, message=cut(message, MESSAGE), fingerprint=_digest(mark))


def _digest(mark: str) -> str:
    return hashlib.blake2b(mark.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _plain(output: str) -> str:
    if len(output) > MOST_OUTPUT:
        half = MOST_OUTPUT // 2
        output = f"{output[:half]}\n{output[-half:]}"
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", output)


# What Python calls an exception: by its last part, of the few that are called otherwise, or with the module it is from.
_NAMED = r"(?:[\w.]|<locals>)*(?:Error|Exception|Failure|Interrupt|Exit|Warning|Stop(?:Async)?Iteration|ExceptionGroup|Failed)\b"
_DOTTED = r"(?:\w+\.)(?:\w+\.|<locals>\.)*[A-Z]\w*(?=:|[ \t]*$)"
_MESSAGE = r"(?::[ \t]*(?P<message>[^\n]*))?"
# Of a traceback its first line that is not indented; of several the last names the error, as of compilers the first does.
_TRACEBACK = (
    rf"^Traceback \(most recent call last\):\n(?:[ \t][^\n]*\n|\n)*(?:[\w.<>]+\.)?(?P<type>[A-Za-z_]\w*){_MESSAGE}$"
)
_PYTHON = rf"^(?:[\w.]+\.)?(?P<type>[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning)){_MESSAGE}$"
_LAST_WINS = (_TRACEBACK, _PYTHON)
# In this order: what is more telling first. Each names the type, the message, or both. A name that only looks like a class
# (`Note: ...`) counts where a runner puts an error, or with the stack below it.
_ERRORS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"^E[ \t]{{2,}}(?P<type>{_NAMED}|{_DOTTED}):?[ \t]*(?P<message>[^\n]*)",  # pytest
        r"^E[ \t]{2,}(?P<message>assert [^\n]+)",
        r"^E[ \t]{2,}(?P<message>fixture '[^'\n]+' not found)",
        rf"^(?:FAILED|ERROR) [^\n]+? - (?P<type>{_NAMED}|{_DOTTED}):?[ \t]*(?P<message>[^\n]*)",  # pytest's summary
        rf"^(?:ERROR|FAIL): \w+ \([\w.]+\)[^\n]*\n(?:[^\n]+\n)?-{{30,}}\nTraceback[^\n]*\n(?:[ \t][^\n]*\n|\n)*(?:[\w.<>]+\.)?(?P<type>[A-Za-z_]\w*){_MESSAGE}$",  # unittest
        r"^(?P<type>error\[E\d+\]): (?P<message>[^\n]+)",  # rustc
        r"\berror (?P<type>(?:TS|CS|FS|VB|BC|NU|NETSDK|MSB)\d+): (?P<message>[^\n]+?)(?: \[[^\]\n]{1,300}proj\])?$",  # TypeScript, .NET
        r"^[^\s:][^:\n]*:\d+(?::\d+)?: (?P<type>(?:fatal )?error): (?P<message>[^\n]+)",  # C, C++, Java, Swift, mypy
        r"^\[ERROR\] \S+\.\w+:\[\d+,\d+\] (?:error: )?(?P<message>[^\n]+)",  # Maven's compilers
        r"^e: (?:file://)?\S+\.kts?:\d+:\d+:? (?P<message>[^\n]+)",  # Kotlin
        r"^(?:\./)?[\w./-]+\.go:\d+:\d+: (?P<message>[^\n]+)",  # go build, go vet
        r"^thread '[^']*'(?: \(\d+\))? panicked at [^\n]+:\d+:\n(?P<message>[^\n]+)",  # Rust
        r"^thread '[^']*' panicked at (?P<message>[^\n]+)",  # Rust before 1.73
        r"^(?P<type>panic): (?P<message>[^\n]+)",  # Go
        r"^[ \t]+\w+_test\.go:\d+:[ \t]*\n(?:[ \t]+[^\n]*\n){0,6}?[ \t]+Error:[ \t]+(?P<message>[^\n]+(?:\n[ \t]+expected: [^\n]+\n[ \t]+actual *: [^\n]+)?)",  # testify
        r"^[ \t]+(?P<message>(?:\w+_test|testing)\.go:\d+: [^\n]+)",
        r"^[ \t]*●[ \t]+[^\n]+\n[ \t]*\n[ \t]+(?P<type>[A-Z][\w$]*(?:\.\w+)*): (?P<message>[^\n]+)",  # jest
        r"^[ \t]*●[ \t]+Test suite failed to run\n[ \t]*\n[ \t]+(?P<message>[^\n]+)",
        r"^[ \t]+Failure/Error:(?:[^\n]*\n){1,8}?[ \t]+(?P<type>(?:[A-Z]\w*::)*[A-Z]\w*):\n[ \t]+(?P<message>\S[^\n]*)",  # rspec
        r"^[ \t]+Failure/Error:\s+(?P<message>\S[^\n]*)",
        r"^[^\s:][^:\n]*:\d+:in [`'][^'\n]*': (?P<message>[^\n]+) \((?P<type>(?:[A-Z]\w*::)*[A-Z]\w*)\)$",  # Ruby
        r"^[ \t]*(?:\d+\) )?Error:\n[\w:]+#\w+:\n(?P<type>[A-Z][\w:]*): (?P<message>[^\n]+)",  # minitest
        r"^[ \t]*(?:\d+\) )?Failure:\n[\w:]+#\w+ \[[^\]\n]+\]:\n(?P<message>[^\n]+(?:\n[ \t]+Actual: [^\n]+)?)",
        r"^\d+\) [\w\\]+::\w+[^\n]*\n(?:(?P<type>[A-Z][\w\\]*): )?(?P<message>[^\n]+)",  # PHPUnit
        r"^[ \t]+FAILED[ \t]+[\w\\]+ > [^\n]+\n[ \t]+(?P<message>\S[^\n]*)",  # Pest
        r"^(?:PHP )?Fatal error:[ \t]+Uncaught (?P<type>[\w\\]+): (?P<message>[^\n]+?)(?: in \S+:\d+)?$",
        r"^(?:PHP )?(?P<type>(?:Fatal|Parse) error):[ \t]+(?P<message>[^\n]+?)(?: in \S+ on line \d+)?$",
        r"^[ \t]+Error Message:\n[ \t]+(?:(?P<type>(?:\w+\.)*[A-Z]\w*) : )?(?P<message>[^\n]+)",  # dotnet test
        r"^[ \t]*\*\* \((?P<type>[A-Z][\w.]*)\) (?P<message>[^\n]+)",  # Elixir
        _TRACEBACK,
        r"""^[ \t]*(?:Uncaught |Unhandled exception\. |Exception in thread "[^"\n]*" )?(?P<type>(?!Warning|Trace|Note|Hint)(?:[\w$]+\.)*[A-Z][\w$]*)(?: \[\w+\])?(?:: (?P<message>[^\n]*))?\n[ \t]+(?:at |❯ )\S""",  # with its stack: JavaScript, Java, C#
        r"^[ \t]*(?:Uncaught |Unhandled )?(?P<type>(?:[A-Z]\w*\.)*[A-Z]\w*(?:Error|Exception))(?: \[\w+\])?: (?P<message>[^\n]+)",  # JavaScript, Java
        _PYTHON,
        r"^[^\s:][^:\n]*:\d+:\d+: (?P<type>[A-Z]{1,4}\d{2,4}) (?:\[\*\] )?(?P<message>[^\n]+)",  # ruff, flake8
        r"^(?P<type>[A-Z]{1,4}\d{3,4}) (?:\[\*\] )?(?P<message>[^\n]+)\n[ \t]*--> ",  # ruff in full
        r"^[ \t]+\d+:\d+[ \t]+(?P<type>error)[ \t]+(?P<message>\S[^\n]*?)(?:[ \t]{2,20}[\w@/-]{1,60})?$",  # eslint
        r"^(?P<type>--- FAIL): (?P<message>\S+)",
        r"^\S+:\d+: Failure\n(?P<message>[^\n]+)",  # GoogleTest
        r"^FAILED (?P<message>[^\n]+)",
        r"^[ \t]*●[ \t]+(?!Console$)(?P<message>[^\n]+)",  # jest
        r"^(?P<type>npm ERR!|npm error) (?P<message>(?!code|errno|A complete|path|command)[^\n]+)",
        r"^(?P<type>fatal|ERROR|Error|error|FATAL|CRITICAL|E): (?P<message>[^\n]+)",
        r"^(?:[\w/.-]+: )?(?:line \d+: )?(?P<message>[\w./-]+: (?:command not found|not found|No such file or directory|Permission denied))",
        r"^(?P<message>make(?:\[\d+\])?: \*\*\* [^\n]+)",
        r"^E[ \t]{2,}(?P<type>[A-Z]\w+): (?P<message>\S[^\n]*)",  # pytest, of an exception that is called neither Error nor by its module
        r"^(?P<message>[^\n]*\b(?:error|failed|failure|cannot|could not|unable to|refused|denied|invalid|unknown|missing)\b[^\n]*)",
    )
)  # fmt: skip
_FILE = re.compile(
    r"(?<![\w/.-])((?:[\w.-]+/)*[\w-]+\.(?:py|js|jsx|ts|tsx|go|rs|java|c|cc|cpp|h|hpp|rb|php|cs|kt|swift|sh|sql|toml|json|ya?ml))(?=[:\s\",)(]|$)"
)
_TESTS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^(?:FAILED|ERROR) (\S+::\S+)",  # pytest
        r"^--- FAIL: (\S+)",  # Go
        r"^test (\S+) \.\.\. FAILED",  # Rust
        r"^[ \t]+FAIL \[[ \d.]+s\] (?:\([^)\n]*\) )?\S+ (\S+)",  # nextest
        r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))",  # unittest
        r"^[ \t]*(?:✕|✗|×|✖)[ \t]+([^\n(]{3,80})",  # jest, vitest, node
        r"^[ \t]*FAIL[ \t]+(\S+ > [^\n]+)",  # vitest
        r"^[ \t]*●[ \t]+([^\n]+ › [^\n]+)",  # jest
        r"^(\w[\w.$]* > [^\n]+?)(?:\(\))? FAILED$",  # Gradle
        r"^\[ERROR\] ([\w.$]+)(?:\([\w.$]*\))?[ \t]+(?:--[ \t]+)?Time elapsed",  # Maven
        r"^rspec (\S+:\d+) # ",
        r"^([\w:]+#test_\w+)(?: \[[^\]\n]+\])?:$",  # minitest
        r"^\d+\) ([\w\\]+::\w+)",  # PHPUnit
        r"^[ \t]+FAILED[ \t]+([\w\\]+ > [^\n]+)",  # Pest
        r"^[ \t]+Failed ([\w.]+)[^\n]* \[[^\]\n]+\]$",  # dotnet test
        r"^\[  FAILED  \] (\w+\.\w+)",  # GoogleTest
    )
)


# How checks sum up; what they print on the way says little.
_FAILS = re.compile(
    r"\b[1-9]\d* (?:tests? |suites? )?(?:failed|failing|failures?|errors?|problems?)\b|\btest result: FAILED|\b(?:BUILD|Build) FAIL(?:ED|URE)\b"
    r"|^(?:--- )?FAIL(?:ED)?\b|^error(?:\[E\d+\])?: |\berror (?:TS|CS)\d+|^make(?:\[\d+\])?: \*\*\*|^npm (?:ERR!|error) "
    r"|^Failed!  - |^(?:ℹ|#) fail [1-9]|^\[  FAILED  \]",
    re.MULTILINE,
)
_PASSES = re.compile(
    r"\b\d+ (?:tests? )?(?:passed|passing)\b|\btest result: ok|\bBUILD SUCCESS|^ok\s|^OK\b|\bAll checks passed|\bno issues found"
    r"|^[ \t]*Finished |\b0 (?:errors|failures)\b|^Passed!  - |^(?:ℹ|#) fail 0$|^\[  PASSED  \]",
    re.MULTILINE,
)
# What a sum is made of, in the words of pytest, jest, vitest, mocha, cargo, rspec, PHPUnit, mypy, ruff, eslint.
_COUNTED = frozenset((
    "fail", "failed", "failing", "failure", "failures", "error", "errors", "problem", "problems", "warning",
    "warnings", "pass", "passed", "passing", "ok", "skipped", "pending", "todo", "total", "test", "tests", "suite",
    "suites", "example", "examples", "assertion", "assertions", "result", "found", "file", "files", "in", "and", "of",
    "s", "ms", "ignored", "measured", "filtered", "out", "finished", "xfailed", "xpassed", "deselected", "rerun",
    "time",
))  # fmt: skip


def _error(text: str) -> tuple[str, str]:
    for pattern in _ERRORS:
        found = list(pattern.finditer(text))
        if found:
            one = (found[-1] if pattern.pattern in _LAST_WINS else _raised(found, text)).groupdict()
            return (one.get("type") or "").strip(), (one.get("message") or "").strip()
    lines = [line.strip() for line in text.split("\n") if line.strip() and not _EXIT.match(line.strip())]
    return "", lines[-1] if lines else ""


def _raised(found: Sequence[re.Match[str]], text: str) -> re.Match[str]:
    """The first of them that was not handled by what raised the next."""
    for one, after in pairwise(found):
        if not _HANDLED.search(text, one.end(), after.start()):
            return one
    return found[-1]


_HANDLED = re.compile(r"^(?:During handling of the above|The above) exception", re.MULTILINE)
_EXIT = re.compile(r"^(?:<[^>]*>|Exit [Cc]ode:? \d+|.*exited with code \d+.*)$")


def _tests(text: str) -> list[str]:
    return [name.strip() for pattern in _TESTS for name in pattern.findall(text)]
