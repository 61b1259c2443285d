"""A shell command -> what kind of thing it is, and when another one is the same again."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import lru_cache

MOST = 2_000  # characters of a command that are read; the rest is a here-document


@dataclass(frozen=True)
class Command:
    """What a command does, in the words that tell it from others."""

    program: str  # the tool that matters: pytest, cargo test, npm run build
    targets: tuple[str, ...]  # what it was told to work on
    kind: str  # test, build, lint, git, install, migrate, deploy, look or other
    text: str  # as a person would type it again
    tells: bool = True  # whether its line cannot end well where this did not: `pytest | tail` and `pytest || true` can


# What is put before a command without changing what it does.
_PREFIXES = (
    "sudo",
    "time",
    "env",
    "nice",
    "timeout",
    "xvfb-run",
    "stdbuf",
    "command",
    "exec",
    "nohup",
    "npx",
    "bunx",
    "pnpx",
    "uvx",
)
_RUNNERS = {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run"), ("bundle", "exec"), ("pnpm", "exec"),
            ("yarn", "exec"), ("npm", "exec"), ("docker", "compose"), ("rye", "run"), ("pdm", "run")}  # fmt: skip
_WITH_VERB = {
    "cargo", "go", "npm", "yarn", "pnpm", "bun", "make", "just", "mvn", "gradle", "./gradlew", "gradlew", "dotnet", "git", "docker",
    "kubectl", "terraform", "pip", "pip3", "poetry", "uv", "bundle", "rails", "rake", "composer", "php", "mix", "deno", "alembic",
    "aerich", "django-admin", "manage.py", "helm", "swift", "apt", "apt-get", "brew", "gem", "conda", "tox", "nox", "gh", "prisma",
}  # fmt: skip
_KINDS = {
    "test": r"^(?:py\.?test|unittest|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest|go test|cargo (?:test|nextest)|\S+ (?:run )?test\S*|make (?:test|check)\S*|(?:mvn|gradle|gradlew|\./gradlew) (?:test|verify|check)|dotnet test|playwright|cypress|behave|manage\.py test|bats)\b",
    "lint": r"^(?:ruff|flake8|pylint|mypy|pyright|eslint|prettier|black|isort|golangci-lint|clippy|cargo (?:clippy|fmt|check)|tsc|rubocop|shellcheck|\S+ (?:run )?(?:lint|typecheck|fmt|format)\S*|go vet|gofmt)\b",
    "build": r"^(?:make|gcc|g\+\+|clang|cmake|ninja|cargo (?:build|run)|go (?:build|run|generate)|npm run build|\S+ (?:run )?build|javac|mvn \S+|gradle \S+|docker (?:build|compose)|webpack|vite|rustc|dotnet build)\b",
    "install": r"^(?:(?:pip3?|uv|poetry|npm|yarn|pnpm|bun|cargo|gem|bundle|composer|brew|apt(?:-get)?|conda|go|mix|dotnet) (?:install|add|i|ci|sync|get|remove|uninstall|rm|update|upgrade)|uv pip)\b",
    "migrate": r"^(?:alembic|aerich|prisma|flyway|liquibase|\S+ (?:db:)?migrate\S*|manage\.py migrate|knex|sqlx)\b",
    "deploy": r"^(?:kubectl|helm|terraform|ansible\S*|fly|vercel|netlify|serverless|\S+ (?:run )?deploy\S*|gcloud|aws)\b",
    "git": r"^(?:git|gh)\b",
    "look": r"^(?:ls|cat|head|tail|grep|rg|egrep|find|fd|which|type|file|stat|wc|du|df|tree|pwd|cd|echo|printf|test|\[|diff|cmp|sed|awk|jq|less|more|sort|uniq|cut|tr|xxd|hexdump|ps|top|env|printenv|date|whoami|id|uname|curl|wget|ping|sleep|true|false|touch|mkdir|cp|mv|rm|ln|chmod|read|history|man|kill|pkill|pgrep|git (?:status|diff|log|show|blame|grep|ls-files|branch))\b",
}  # fmt: skip
_KIND_OF = {kind: re.compile(pattern, re.I) for kind, pattern in _KINDS.items()}
_ORDER = ("look", "test", "lint", "install", "migrate", "deploy", "build", "git")
_VALUE_FLAGS = {
    "-k",
    "-m",
    "-p",
    "-n",
    "-o",
    "-c",
    "--filter",
    "--grep",
    "-t",
    "-run",
    "--test",
    "--package",
    "--project",
    "-f",
}


@lru_cache(512)
def commands_of(text: str) -> tuple[Command, ...]:
    """The commands of a line in their order."""
    return tuple(_one(part, tells=tells) for part, tells in _parts(text[:MOST]) if part.strip())


def command_of(text: str) -> Command:
    """The command that matters in *text*: of several the first that does more than look around, or the last."""
    parts = commands_of(text)
    if not parts:
        return Command(program="", targets=(), kind="other", text="")
    telling = [part for part in parts if part.kind not in ("look", "other")]
    doing = [part for part in parts if part.kind != "look"]
    return (telling or doing or parts)[0]


def does(command: Command) -> bool:
    """Whether a command leaves something other than it was: an installed package, a moved file, a started service."""
    if command.kind == "look":
        return bool(_ALTERS.match(command.text))
    return command.kind in ("install", "migrate", "build", "deploy", "other") or bool(_GIT_ALTERS.match(command.text))


_ALTERS = re.compile(r"(?:sudo )?(?:mv|cp|rm|ln|mkdir|touch|chmod|kill|pkill|sed -i|(?:curl|wget)\b.* -[oO])\b")
_GIT_ALTERS = re.compile(
    r"git (?:mv|rm|checkout|switch|restore|stash|pull|merge|rebase|reset|revert|submodule|config|lfs)\b"
)


def message_of(text: str) -> str:
    """The first line of what a commit or a pull request in *text* is called; nothing where it names nothing."""
    told = _MESSAGE.search(text[:MOST])
    if told is None:
        return ""
    document = re.match(r"\$\(cat <<-?\s*['\"]?(\w+)['\"]?\n(.*)", told["said"], re.DOTALL)
    lines = (document[2] if document else told["said"]).strip().split("\n")
    return "" if lines[0].startswith("$(") else " ".join(lines[0].split())


_MESSAGE = re.compile(
    r"\b(?:git\b[^\n;|&]*?\bcommit|gh pr create)\b[^;|&]*?\s(?:-[a-zA-Z]*m|--message|-t|--title)[ =]?\s*"
    r"(?P<quote>[\"'])(?P<said>(?:\\.|(?!(?P=quote)).)+|\$\(cat <<.*)",
    re.DOTALL,
)


def same(failed: Command, later: Command, *, tests: tuple[str, ...] = ()) -> bool:
    """Whether *later* tries again what *failed*: the same program, on all of it, on the same of it, or on its *tests*."""
    if not failed.program or _core(failed.program) != _core(later.program):
        return False
    if not later.targets or set(failed.targets) == set(later.targets):
        return True
    return _covers(later.targets, failed.targets) or _covers(later.targets, tests)


def shape_of(command: Command) -> str:
    """How a command is run, whatever it is run on: `uv run pytest -n auto` of any test and however loud it is."""
    words = [word for word in command.text.split() if word not in _PASSING]
    named = command.program.split()
    ends = (at + len(named) for at in range(len(words)) if _is_at(words, at, named))
    end = next(ends, 0)
    if not end or any(sign in command.text for sign in "$`'\"(){}<>*"):
        return ""  # put together for one occasion
    head = [word for word in words[:end] if not _LIMIT.fullmatch(word)]
    kept: list[str] = []
    takes, drops = False, False
    for word in words[end:]:
        if word == "--":
            break
        if drops:
            drops = False
        elif takes or word in _EVERYTHING or (word in _VERBS and not kept):
            kept.append(word)
            takes = False
        elif word in _NARROWING:
            drops = True
        elif word.startswith("-") and not _LOUDNESS.match(word):
            kept.append(word)
            takes = word in _VALUE_FLAGS
    return " ".join((*head, *kept))


_PASSING = ("sudo", "time", "nice", "timeout", "command", "exec", "nohup", "stdbuf")
_LIMIT = re.compile(r"[\d.]+[smh]?")  # of `timeout 60`
_EVERYTHING = (".", "./...", "...")
_VERBS = ("build", "check", "format", "lint", "run", "test")
_NARROWING = (
    "-k",
    "--tests",
    "--filter",
    "--grep",
    "-t",
    "-run",
    "--test",
    "-p",
    "--package",
    "--durations",
    "--maxfail",
    "-j",
)
_LOUDNESS = re.compile(
    r"-[qvxsl]+$|-r\w*$|--(?:tb|lf|ff|last-failed|failed-first|maxfail|durations|no-header|no-summary|color|verbose|quiet|pdb|sw|nocapture|show-output|capture|watch)\b"
)


def _is_at(words: list[str], at: int, named: list[str]) -> bool:
    there = words[at : at + len(named)]
    return (
        bool(there)
        and there[1:] == named[1:]
        and there[0].rpartition("/")[2] in (named[0], named[0].rpartition("/")[2])
    )


def _covers(wide: tuple[str, ...], narrow: tuple[str, ...]) -> bool:
    """Whether everything in *narrow* lies in something of *wide*: tests/ covers tests/test_a.py::test_b."""
    return bool(narrow) and all(any(each.startswith(top.rstrip("/")) for top in wide) for each in narrow)


def _core(program: str) -> str:
    return program.rpartition("/")[2].replace("py.test", "pytest").replace("pip3", "pip")


def _parts(text: str) -> list[tuple[str, bool]]:
    """The commands of a line, apart where the shell parts them, and whether the line's end tells how each ended."""
    text = re.sub(r"<<-?\s*['\"]?(\w+)['\"]?.*?(?:^\1$|\Z)", "", text, flags=re.DOTALL | re.MULTILINE)
    text = text.replace("\\\n", " ")
    whole_pipes = "pipefail" in text
    strict = bool(re.match(r"\s*set -\w*e", text))
    parts: list[tuple[str, str]] = []  # each with the sign after it
    quote, start = "", 0
    at = 0
    while at < len(text):
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in ";\n" or text[at : at + 2] in ("&&", "||"):
            sign = char if char in ";\n" else text[at : at + 2]
            parts.append((text[start:at], sign))
            at += len(sign)
            start = at
            continue
        elif char == "|":
            end, sign = min(
                ((found, sign) for sign in (";", "\n", "&&", "||") if (found := text.find(sign, at + 1)) >= 0),
                default=(len(text), ""),
            )
            # What follows only shapes the output, but its end is the end of the line.
            parts.append((text[start:at], sign if whole_pipes else "|"))
            at = start = end + len(sign)
            continue
        at += 1
    parts.append((text[start:], ""))
    told: list[tuple[str, bool]] = []
    tells = True
    for part, sign in reversed([each for each in parts if each[0].strip()]):
        if sign in (";", "\n") and not told:
            tells = True  # nothing comes after it
        elif sign in (";", "\n", "||"):
            tells = strict and sign != "||"
        told.append((part, tells and sign != "|" and not part.rstrip().endswith("&")))
    return told[::-1]


def _one(part: str, *, tells: bool) -> Command:
    part = re.sub(r"\s*\d?>{1,2}\s*(?:&\d|\S+)|\s*<\s*\S+|\s&\s*$", "", part).strip().lstrip("({ ").rstrip(")} ")
    try:
        words = shlex.split(part, posix=True)
    except ValueError:
        words = part.split()
    while words and (
        re.fullmatch(r"\w+=.*", words[0], re.DOTALL) or words[0] in _PREFIXES or re.fullmatch(r"[\d.]+[smh]?", words[0])
    ):
        words = words[1:]
    while len(words) > 2 and (words[0], words[1]) in _RUNNERS and words[1] != "compose":
        words = words[2:]
        while words and words[0].startswith("-"):
            words = words[1:]
    if len(words) > 2 and re.fullmatch(r"(?:.*/)?python[\d.]*", words[0]) and words[1] == "-m":
        words = words[2:]
    if (
        len(words) > 1
        and re.fullmatch(r"(?:.*/)?(?:python[\d.]*|node|ruby|php|bash|sh)", words[0])
        and words[1].endswith((".py", ".js", ".rb", ".php", ".sh", ".ts", ".mjs"))
    ):
        words = words[1:]
    if not words:
        return Command(program="", targets=(), kind="other", text=part, tells=tells)
    name = words[0].rpartition("/")[2] if "/" in words[0] and not words[0].startswith("./") else words[0]
    rest = words[1:]
    if name in _WITH_VERB and rest and not rest[0].startswith("-"):
        verb = [rest[0]] if rest[0] != "run" or len(rest) < 2 else rest[:2]
        name, rest = " ".join((name, *verb)), rest[len(verb) :]
    kind = next((kind for kind in _ORDER if _KIND_OF[kind].match(name)), "other")
    return Command(program=name, targets=_targets(rest), kind=kind, text=" ".join(part.split()), tells=tells)


def _targets(words: list[str]) -> tuple[str, ...]:
    found, takes = [], False
    for word in words:
        if takes or not word.startswith("-"):
            found.append(word.removeprefix("./"))
            takes = False
        elif word in _VALUE_FLAGS:
            takes = True
    return tuple(sorted(found))
