"""Read the output of a command: the line that names the cause, the test that failed, whether a check passed."""

# ruff: noqa: E501 - a pattern reads better whole
from __future__ import annotations

import re

MOST_OUTPUT = 40_000  # characters of an output; of more, the beginning and the end are read
MESSAGE = 160  # characters of an error


def error_line(output: str) -> str:
    """Return the line that names the cause, of an output that tells of a failure; empty where no line does."""
    text = plain_output(output)
    if found := SHELL_ERROR.search(text) or TIMED_OUT.match(text):
        return " ".join(found[0].split())[:MESSAGE]
    type, message = _error(_HANDLED.split(text)[-1])
    if type and type.lower() in message.lower():
        type = ""
    line = " ".join(": ".join(filter(None, (type, message))).split())
    words = re.findall(r"[^\W\d_]+", line.lower())
    if NO_CAUSE.search(line) or _COUNTED.issuperset(words):  # it says how many failed: `1 failed, 2 passed in 3.68s`
        return ""
    return line if len(line) <= MESSAGE else line[: MESSAGE - 1].rsplit(" ", 1)[0] + "…"


def failed_script(text: str) -> str:
    """Return the script that a runner says failed, the innermost: it says so first; empty where none does."""
    found = _SCRIPT.search(text)
    return next(filter(None, found.groups())) if found else ""


_SCRIPT = re.compile(
    r"^error: script \"([\w:.-]+)\" exited with code|^npm (?:ERR!|error) Lifecycle script `([\w:.-]+)` failed"
    r"|^make(?:\[\d+\])?: \*\*\* \[(?:[^\]\n]*:\d+: )?([\w.-]+)\] Error|^error: Recipe `([\w.-]+)` failed"
    r"|^husky - ([\w-]+) (?:script|hook) (?:failed|exited)",
    re.MULTILINE,
)


def failed_test(output: str) -> str:
    """Return the first test that an output says failed; empty where it names none."""
    text = plain_output(output)
    names = (found[1] for pattern in _TESTS if (found := pattern.search(text)))
    return next((" ".join(name.split())[:MESSAGE] for name in names), "")


def error_key(error: str) -> str:
    """Return an error without what differs from time to time: numbers, hashes, the folders of paths."""
    text = re.sub(r"^(?:< )?[^\s:]+:\d+(?::\d+)?:? (?:error )?", "", error)  # where it was
    text = re.sub(r"0x[0-9a-f]+|\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b", "#", text.lower())
    text = re.sub(r"(?:[\w.~@-]*/)+([\w.-]*)", r"\1", text)
    return " ".join(re.sub(r"\d+(?:\.\d+)*", "#", text).split())


def ended_badly(output: str) -> bool | None:
    """Return how a check ended by its own words, where its exit code is not known; None where it says neither."""
    text = plain_output(output)
    if _NO_FAILURES.search(text) and not re.search(r"\b[1-9]\d* (?:fail|error)", text):
        return False
    if _FAILS.search(text):
        return True
    return False if _PASSES.search(text) else None


NO_CAUSE = re.compile(
    r"^(?:[×✖!✗❌⚠]\ufe0f?\s*)?(?:exit (?:code|status)|command failed with exit code|process exited|elifecycle|\$ |husky - |(?:error: )?script \""
    r"|\[redacted|hint: |(?:error: )?usage: |failed to compile|ran \d+ tests|ok\s|some (?:errors|warnings) were emitted|\(this error)"
    r"|\b(?:pass|passed|ok)\b[^a-z]*$|^\[[a-z ]+\] warning|\twarning\b|\b0 (?:errors|failed)\b|\t(?:pass|pending)\t|^> task |\.{9,}(?:failed|skipped)",
    re.IGNORECASE,
)
# A check that did nothing, and says so.
NOTHING = re.compile(
    r"^.*\bno tests? (?:found|ran|files?\b.*found)\b.*$|^.*\bcollected 0 items\b.*$|^.*\b0 tests? (?:ran|found)\b.*$"
    r"|^linting: 0 file.*$|^.*\bnone of the selected packages has an? .*$|^.*\bno projects matched\b.*$",
    re.IGNORECASE | re.MULTILINE,
)
# A call that no edit of the project's files can make right.
SHELL_ERROR = re.compile(
    r"^(?:\(eval\)|[\w/.-]{0,40}(?:bash|zsh|sh)):(?: ?line)? ?\d*:? ?(?:[^\n]*command not found[^\n]*|no matches found: [^\n]+|cd: [^\n]+)$",
    re.MULTILINE,
)
TIMED_OUT = re.compile(r"(?:Exit code \d+\n)?Command timed out after [^\n]+")


def plain_output(output: str) -> str:
    if len(output) > MOST_OUTPUT:
        half = MOST_OUTPUT // 2
        output = f"{output[:half]}\n{output[-half:]}"
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r|^│ ?", "", output, flags=re.MULTILINE)


def _error(text: str) -> tuple[str, str]:
    for pattern in (*_ERRORS, _VAGUE):
        if pattern is _VAGUE and (script := failed_script(text)):
            return "", f"script '{script}' failed"
        found = [each for each in pattern.finditer(text) if not NO_CAUSE.search(each[0].strip())]
        if found:
            one = found[-1 if pattern.pattern in _LAST_WINS else 0].groupdict()
            return (one.get("type") or "").strip(), (one.get("message") or "").strip()
    lines = [line.strip() for line in text.split("\n") if line.strip() and not _EXIT.match(line.strip())]
    return "", lines[-1] if 0 < len(lines) <= 3 and len(lines[-1].split()) >= 3 else ""


# What was raised before it was handled by what raised the next.
_HANDLED = re.compile(r"^(?:During handling of the above|The above) exception", re.MULTILINE)
_EXIT = re.compile(r"^(?:<[^>]*>|Exit [Cc]ode:? \d+|.*exited with code \d+.*)$")
# What Python calls an exception: by its last part, of the few that are called otherwise, or with the module it is from.
_NAMED = r"(?:[\w.]|<locals>)*(?:Error|Exception|Failure|Interrupt|Exit|Warning|Stop(?:Async)?Iteration|ExceptionGroup|Failed)\b"
_DOTTED = r"(?:\w+\.)(?:\w+\.|<locals>\.)*[A-Z]\w*(?=:|[ \t]*$)"
_MESSAGE = r"(?::[ \t]*(?P<message>[^\n]*))?"
# Of a traceback its first line that is not indented; of several the last names the error, as of compilers the first does.
_TRACEBACK = (
    rf"^Traceback \(most recent call last\):\n(?:[ \t][^\n]*\n|\n)*(?:[\w.<>]+\.)?(?P<type>[A-Za-z_]\w*){_MESSAGE}$"
)
_PYTHON = rf"^(?:[\w.:]+[.:])?(?P<type>[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning)){_MESSAGE}$"
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
        r"^(?P<type>error\[[\w:-]+\]): (?P<message>[^\n]+)",  # rustc, cargo deny
        r"\berror (?P<type>(?:TS|CS|FS|VB|BC|NU|NETSDK|MSB)\d+): (?P<message>[^\n]+?)(?: \[[^\]\n]{1,300}proj\])?$",  # TypeScript, .NET
        r"^[^\s:][^:\n]*:\d+(?::\d+)?: (?P<type>(?:fatal )?error): (?P<message>[^\n]+)",  # C, C++, Java, Swift, mypy
        r"^==\d+==(?P<type>ERROR): (?P<message>[^\n]+)",  # sanitizers
        r"^[^\n]*: (?P<message>undefined reference to [^\n]+)",  # ld
        r"^\[ERROR\] \S+\.\w+:\[\d+,\d+\] (?:error: )?(?P<message>[^\n]+)",  # Maven's compilers
        r"^e: (?:file://)?\S+\.kts?:\d+:\d+:? (?P<message>[^\n]+)",  # Kotlin
        r"^(?:vet(?:\.exe)?: )?(?:\.[/\\])?[\w./\\-]+\.go:\d+:\d+: (?P<message>[^\n]+)",  # go build, go vet
        r"^thread '[^']*'(?: \(\d+\))? panicked at [^\n]+:\d+:\n(?P<message>[^\n]+)",  # Rust
        r"^thread '[^']*' panicked at (?P<message>[^\n]+)",  # Rust before 1.73
        r"^(?P<type>panic): (?P<message>[^\n]+)",  # Go
        r"^[ \t]+\w+_test\.go:\d+:[ \t]*\n(?:[ \t]+[^\n]*\n){0,6}?[ \t]+Error:[ \t]+(?P<message>[^\n]+(?:\n[ \t]+expected: [^\n]+\n[ \t]+actual *: [^\n]+)?)",  # testify
        r"^[ \t]+(?P<message>(?:\w+_test|testing)\.go:\d+: [^\n]+)",
        r"^[ \t]*●[ \t]+[^\n]+\n[ \t]*\n[ \t]+(?P<type>[A-Z][\w$]*(?:\.\w+)*): (?P<message>[^\n]+)",  # jest
        r"^[ \t]*●[ \t]+(?:Test suite failed to run|[^\n›]+:)\n[ \t]*\n[ \t]+(?P<message>[^\n]+)",
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
        r"^(?P<type>npm ERR!|npm error) (?P<message>(?!code|errno|syscall|A complete|path|command)[^\n]+)",
        r"^\(fail\) (?P<message>[^\n]+?)(?: \[[\d.]+ ?m?s\])?$",  # bun
        r"^(?P<message>[^\s:][^:\n]*:\d+(?::\d+)? (?:error )?MD\d{3}/\S+ [^\n]+)",  # markdownlint
        r"^- hook id: (?P<type>\S+)\n(?:- [^\n]+\n)*?- (?P<message>files were modified by this hook)",  # pre-commit
        r"^[\w./-]+\.\w+:\d+:\d+:? (?P<message>[^\n]+ \([\w:-]+\))$",  # ktlint, tflint
        r"^\* What went wrong:\n(?:Execution failed for [^\n]+\n> )?(?P<message>[^\n]+)",  # Gradle
        r"^[ \t]*[×✖!✗❌⚠]\ufe0f?[ \t]{1,3}(?P<message>\S[^\n]*)",  # biome, hooks
        r"^(?P<message>[\w.-]{1,40}: (?:illegal|invalid|unrecognized|unknown) option[^\n]*)",
        r"^(?P<message>The following paths are ignored by [^\n]*)",
        r"\"message\": ?\"(?P<message>[^\"\n]{8,300})\"",
        r"^(?P<type>fatal|ERROR|Error|error|FATAL|CRITICAL|E): (?P<message>[^\n]+)",
        r"^(?:[\w/.-]+: )?(?:line \d+: )?(?P<message>[\w./-]+: (?:command not found|not found|No such file or directory|Permission denied))",
        r"^(?P<message>make(?:\[\d+\])?: \*\*\* [^\n]+)",
        r"^E[ \t]{2,}(?P<type>[A-Z]\w+): (?P<message>\S[^\n]*)",  # pytest, of an exception that is called neither Error nor by its module
    )
)  # fmt: skip
# A line that speaks of an error somehow; a program that logs what it handles prints many.
_VAGUE = re.compile(
    r"^(?![^\n]*\bwarning:)(?P<message>[^\n]*\b(?:error|failed|failure|cannot|could not|unable to|refused|denied|invalid|unknown|missing|not found)\b[^\n]*)",
    re.MULTILINE | re.IGNORECASE,
)
FILE = re.compile(
    r"(?<![\w/.-])/?((?:[\w.-]+/)*[\w.-]+\.(?:md|mdx|css|scss|html|vue|svelte|py|js|jsx|ts|tsx|go|rs|java|c|cc|cpp|h|hpp|rb|php|cs|kt|swift|sh|sql|toml|json|ya?ml))(?=[:\s\",)(]|$)"
)
_TESTS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^(?:FAILED|ERROR) (\S+::\S+)",  # pytest
        r"^--- FAIL: (\S+)",  # Go
        r"^test (\S+) \.\.\. FAILED",  # Rust
        r"^[ \t]+FAIL \[[ \d.]+s\] (?:\([^)\n]*\) )?\S+ (\S+)",  # nextest
        r"^(?:FAIL|ERROR): (\w+ \([\w.]+\)|[\w./-]+$)",  # unittest, automake
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
_NO_FAILURES = re.compile(r"^[ \t]*0 fail(?:ed|ures|ing)?\b", re.MULTILINE)
_PASSES = re.compile(
    r"\b\d+ (?:tests? )?(?:passed|passing)\b|\btest result: ok|\bBUILD SUCCESS|^ok\s|^OK\b|\bAll checks passed|\bno issues found"
    r"|^[ \t]*Finished |\b0 (?:errors|failures)\b|^Passed!  - |^(?:ℹ|#) fail 0$|^\[  PASSED  \]",
    re.MULTILINE,
)
_COUNTED = frozenset((
    "fail", "failed", "failing", "failure", "failures", "error", "errors", "problem", "problems", "warning",
    "warnings", "pass", "passed", "passing", "ok", "skipped", "pending", "todo", "total", "test", "tests", "suite",
    "suites", "example", "examples", "assertion", "assertions", "result", "found", "file", "files", "in", "and", "of",
    "s", "ms", "ignored", "measured", "filtered", "out", "finished", "xfailed", "xpassed", "deselected", "rerun",
    "time",
))  # fmt: skip
