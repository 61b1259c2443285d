"""The output of something that failed -> the error: its type, its message, where it was, and what tells it from others."""

from __future__ import annotations

import hashlib
import re

from foreword.distill.commands import Command
from foreword.distill.sentences import cut
from foreword.values import value

MOST_OUTPUT = 40_000  # characters; of more, the beginning and the end are read
MESSAGE = 160
MOST_COMPARED = 2_000  # characters of a message that tell it from others; a longer one is a file in one line


@value
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
        fingerprint=hashlib.blake2b(mark.encode("utf-8", "replace"), digest_size=8).hexdigest(),
        files=files,
        tests=tests,
    )


def failure_uid(fingerprint: str, *, project: str) -> str:
    """What a failure is known by: the same error in a project is the same failure."""
    return f"fai:{project}:{fingerprint}"


def outcome(output: str, command: Command, *, failed: bool | None) -> tuple[bool, Problem | None]:
    """Whether a command failed, and with which error; where nobody tells, only what says so itself has failed."""
    # Of `pytest | tail` the host tells how `tail` ended.
    failed = None if failed is False and not command.tells else failed
    if failed is False:
        return False, None
    problem = problem_of(output, program=command.program)
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


def _plain(output: str) -> str:
    if len(output) > MOST_OUTPUT:
        half = MOST_OUTPUT // 2
        output = f"{output[:half]}\n{output[-half:]}"
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", output)


# In this order: what is more telling first. Each names the type, the message, or both.
_ERRORS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^E[ \t]{2,}(?P<type>[\w.]*(?:Error|Exception|Failure|Interrupt|Exit|Warning))\b:?\s*(?P<message>[^\n]*)",  # pytest
        r"^E[ \t]{2,}(?P<message>assert [^\n]+)",
        r"^(?P<type>error\[E\d+\]): (?P<message>[^\n]+)",  # rustc
        r"\berror (?P<type>TS\d+): (?P<message>[^\n]+)",  # TypeScript
        r"^[^\s:][^:\n]*:\d+(?::\d+)?: (?P<type>(?:fatal )?error): (?P<message>[^\n]+)",  # C, C++, Java, mypy
        r"^thread '[^']*'(?: \(\d+\))? panicked at [^\n]+:\d+:\n(?P<message>[^\n]+)",  # Rust
        r"^thread '[^']*' panicked at (?P<message>[^\n]+)",  # Rust before 1.73
        r"^(?P<type>panic): (?P<message>[^\n]+)",  # Go
        r"^[ \t]*(?:Uncaught |Unhandled )?(?P<type>(?:[A-Z]\w*\.)*[A-Z]\w*(?:Error|Exception)): (?P<message>[^\n]+)",  # JavaScript, Java
        r"^(?:[\w.]+\.)?(?P<type>[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning))(?::\s*(?P<message>[^\n]*))?$",  # Python
        r"^[^\s:][^:\n]*:\d+:\d+: (?P<type>[A-Z]{1,4}\d{2,4}) (?:\[\*\] )?(?P<message>[^\n]+)",  # ruff, flake8
        r"^(?P<type>[A-Z]{1,4}\d{3,4}) (?:\[\*\] )?(?P<message>[^\n]+)\n[ \t]*--> ",  # ruff in full
        r"^[ \t]+\d+:\d+[ \t]+(?P<type>error)[ \t]+(?P<message>\S[^\n]*?)(?:[ \t]{2,20}[\w@/-]{1,60})?$",  # eslint
        r"^[ \t]+(?P<message>\w+_test\.go:\d+: [^\n]+)",
        r"^(?P<type>--- FAIL): (?P<message>\S+)",
        r"^FAILED (?P<message>[^\n]+)",
        r"^[ \t]*●[ \t]+(?P<message>[^\n]+)",  # jest
        r"^(?P<type>npm ERR!|npm error) (?P<message>(?!code|errno|A complete|path|command)[^\n]+)",
        r"^(?P<type>fatal|ERROR|Error|error|FATAL|CRITICAL|E): (?P<message>[^\n]+)",
        r"^(?:[\w/.-]+: )?(?:line \d+: )?(?P<message>[\w./-]+: (?:command not found|not found|No such file or directory|Permission denied))",
        r"^(?P<message>make(?:\[\d+\])?: \*\*\* [^\n]+)",
        r"^(?P<message>[^\n]*\b(?:error|failed|failure|cannot|could not|unable to|refused|denied|invalid|unknown|missing)\b[^\n]*)",
    )
)  # fmt: skip
_LAST_WINS = 9  # of a Python traceback the last line names the error; of compilers the first
_FILE = re.compile(
    r"(?<![\w/.-])((?:[\w.-]+/)*[\w-]+\.(?:py|js|jsx|ts|tsx|go|rs|java|c|cc|cpp|h|hpp|rb|php|cs|kt|swift|sh|sql|toml|json|ya?ml))(?=[:\s\",)(]|$)"
)
_TESTS = (
    re.compile(r"^(?:FAILED|ERROR) (\S+::\S+)", re.MULTILINE),
    re.compile(r"^--- FAIL: (\S+)", re.MULTILINE),
    re.compile(r"^test (\S+) \.\.\. FAILED", re.MULTILINE),
    re.compile(r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))", re.MULTILINE),
    re.compile(r"^[ \t]*(?:✕|✗|×)[ \t]+([^\n(]{3,80})", re.MULTILINE),
)


# How checks sum up; what they print on the way says little.
_FAILS = re.compile(
    r"\b[1-9]\d* (?:tests? |suites? )?(?:failed|failing|failures?|errors?|problems?)\b|\btest result: FAILED|\bBUILD FAILED\b"
    r"|^(?:--- )?FAIL(?:ED)?\b|^error(?:\[E\d+\])?: |\berror TS\d+|^make(?:\[\d+\])?: \*\*\*|^npm (?:ERR!|error) ",
    re.MULTILINE,
)
_PASSES = re.compile(
    r"\b\d+ (?:tests? )?(?:passed|passing)\b|\btest result: ok|\bBUILD SUCCESS|^ok\s|^OK\b|\bAll checks passed|\bno issues found"
    r"|^[ \t]*Finished |\b0 errors\b",
    re.MULTILINE,
)


def _error(text: str) -> tuple[str, str]:
    for at, pattern in enumerate(_ERRORS):
        found = list(pattern.finditer(text))
        if found:
            one = (found[-1] if at == _LAST_WINS else found[0]).groupdict()
            return (one.get("type") or "").strip(), (one.get("message") or "").strip()
    lines = [line.strip() for line in text.split("\n") if line.strip() and not _EXIT.match(line.strip())]
    return "", lines[-1] if lines else ""


_EXIT = re.compile(r"^(?:<[^>]*>|Exit [Cc]ode:? \d+|.*exited with code \d+.*)$")


def _tests(text: str) -> list[str]:
    return [name.strip() for pattern in _TESTS for name in pattern.findall(text)]
