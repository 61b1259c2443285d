"""Read shell command lines: their single commands, what kind each is, its shape, and the folder it runs in."""

# ruff: noqa: E501 - a pattern reads better whole
from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import dropwhile, pairwise, takewhile

MOST = 4_000  # characters of a command line that are read; what follows is a here-document or a script
MOST_PARTS = 40  # commands of a line; a line with more is a script
SHORT = 120  # characters of a command that is shown
CHECKS = ("test", "lint", "build")  # kinds of commands that find something


@dataclass(frozen=True)
class Command:
    """One command of a line."""

    program: str  # the tool that matters: pytest, cargo test, npm run build
    targets: tuple[str, ...]  # what it works on
    kind: str  # test, build, lint, git, install, migrate, deploy, look or other
    text: str  # as a person would type it again
    words: tuple[str, ...] = ()  # without variables and what only limits it: sudo, timeout 60
    tells: bool = True  # whether the line fails where this fails: in `pytest | tail` and `pytest || true` it does not
    filters: bool = False  # whether it stands behind a pipe
    lines: bool = False  # whether it is a script of several lines: `python -c '...'`
    inner: bool = False  # whether it runs in a shell of its own: `(cd docs && make)`


# What is put before a command without changing what it does.
_LIMITS = ("sudo", "time", "env", "nice", "timeout", "xvfb-run", "stdbuf", "command", "exec", "nohup")
_FETCHERS = ("npx", "bunx", "pnpx", "uvx")
_PREFIXES = (*_LIMITS, *_FETCHERS)
_RUNNERS = {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run"), ("bundle", "exec"), ("pnpm", "exec"),
            ("yarn", "exec"), ("npm", "exec"), ("docker", "compose"), ("rye", "run"), ("pdm", "run")}  # fmt: skip
_WITH_VERB = {
    "cargo", "go", "npm", "yarn", "pnpm", "bun", "make", "just", "mvn", "./mvnw", "gradle", "./gradlew", "dotnet", "git", "docker",
    "kubectl", "terraform", "pip", "pip3", "poetry", "uv", "bundle", "rails", "rake", "composer", "artisan", "mix", "deno", "alembic",
    "aerich", "django-admin", "manage.py", "helm", "swift", "apt", "apt-get", "brew", "gem", "conda", "tox", "nox", "gh", "prisma",
}  # fmt: skip
_WITH_TWO_VERBS = {("gh", each) for each in ("pr", "api", "issue", "repo", "run", "release")} | {
    ("git", each) for each in ("remote", "stash", "worktree", "submodule", "bisect")
} | {(each, "run") for each in ("npm", "yarn", "pnpm", "bun", "deno")} | _RUNNERS | {("uv", "pip")}  # fmt: skip
_KINDS = {
    "test": r"^(?:py\.?test|unittest|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest|go test|cargo (?:test|nextest)|\S+ (?:run )?test\S*|make (?:test|check)\S*|(?:mvn|gradle|\./mvnw|\./gradlew) (?:\w*test\w*|verify|check)|terraform (?:plan|validate)|dotnet test|playwright|cypress|behave|manage\.py test|bats)\b",
    "lint": r"^(?:ruff|flake8|mypy|pyright|prettier|black|isort|clippy|cargo (?:clippy|fmt|check)|tsc|rubocop|shellcheck|biome|vale|\S*lint\S*|\S+ (?:run )?(?:\S*lint|typecheck|fmt|format)\S*|go vet|gofmt)\b",
    "build": r"^(?:make|gcc|g\+\+|clang|cmake|ninja|cargo (?:build|run)|go (?:build|run|generate)|npm run build|\S+ (?:run )?build|javac|mvn \S+|gradle \S+|docker (?:build|compose build)|webpack|vite|rustc|dotnet build)\b",
    "install": r"^(?:(?:pip3?|uv|poetry|npm|yarn|pnpm|bun|cargo|gem|bundle|composer|brew|apt(?:-get)?|conda|go|mix|dotnet) (?:install|add|i|ci|sync|get|remove|uninstall|rm|update|upgrade)|uv pip)\b",
    "migrate": r"^(?:alembic|aerich|prisma|flyway|liquibase|\S+ (?:db:)?migrate\S*|manage\.py migrate|knex|sqlx)\b",
    "deploy": r"^(?:kubectl|helm|terraform|ansible\S*|fly|vercel|netlify|serverless|\S+ (?:run )?deploy\S*|gcloud|aws)\b",
    "git": r"^(?:git|gh)\b",
    "look": r"^(?:ls|cat|head|tail|grep|rg|egrep|find|fd|which|type|file|stat|wc|du|df|tree|pwd|cd|echo|printf|test|\[|diff|cmp|sed|awk|jq|less|more|sort|uniq|cut|tr|xxd|od|hexdump|ps|top|env|printenv|date|whoami|id|uname|curl|wget|ping|sleep|true|false|touch|mkdir|cp|mv|rm|ln|chmod|read|history|man|kill|pkill|pgrep|git (?:status|diff|log|show|blame|grep|ls-files|branch|rev-parse)|gh (?:pr (?:view|checks|list|diff)|run \S+|issue (?:view|list)))(?![\w-])",
}  # fmt: skip
_KIND_OF = {kind: re.compile(pattern, re.I) for kind, pattern in _KINDS.items()}
_ORDER = ("look", "test", "lint", "install", "migrate", "deploy", "build", "git")
_VALUE_FLAGS = {"-k", "-m", "-p", "-n", "-o", "-c", "--filter", "--grep", "-t", "-run", "--test", "--package", "--project",
                "-f", "-C", "--config", "--cwd", "--dir", "--prefix", "--repo", "-R", "--context", "--profile", "-am"}  # fmt: skip


@lru_cache(512)
def commands_of(line: str) -> tuple[Command, ...]:
    """Return the commands of a line in their order, those behind pipes included."""
    found = (_command(*part) for part in _parts(line[:MOST])[:MOST_PARTS])
    return tuple(command for command in found if command.words)


def command_of(line: str) -> Command:
    """Return the command that matters in *line*: of several the first that does more than look around, or the last."""
    parts = [part for part in commands_of(line) if not part.filters]
    telling = [part for part in parts if part.kind not in ("look", "other")]
    doing = [part for part in parts if part.kind != "look"]
    return next(iter(telling or doing or parts), Command(program="", targets=(), kind="other", text=""))


def alters(command: Command) -> bool:
    """Return whether a command changes something: it installs a package, moves a file, starts a service."""
    if command.kind == "look":
        return bool(_ALTERS.match(command.text))
    return command.kind in ("install", "migrate", "build", "deploy", "other") or bool(_GIT_ALTERS.match(command.text))


_ALTERS = re.compile(r"(?:sudo )?(?:mv|cp|rm|ln|mkdir|touch|chmod|kill|pkill|sed -i|(?:curl|wget)\b.* -[oO])\b")
_GIT_ALTERS = re.compile(
    r"git (?:mv|rm|checkout|switch|restore|stash|pull|merge|rebase|reset|revert|submodule|config|lfs)\b"
)


def shape_of(command: Command, *, narrow: bool = False) -> str:
    """Return how a command is run, whatever it is run on: `uv run pytest -n` of any test and however loud it is.

    With *narrow*, the flags that choose a part of the work are in it too, and whether their value is joined to them:
    behind `--`, `--pattern=x` is one word and `--pattern x` are two.
    """
    words = command.words
    if not words:
        return ""
    if inner := _wrapped_command(words):
        return f"{' '.join(words[: -len(inner)])} {shape_of(replace(command, words=inner), narrow=narrow)}"
    head = [program_name(words[0])]
    rest = list(words[1:])
    while rest and head[-1] in _FETCHERS and rest[0].startswith("-"):
        rest.pop(0)
    for _ in range(_verbs(words)):
        if rest and _VERB.fullmatch(rest[0]):
            head.append(rest.pop(0))
    if head[-1] == "python" and rest[:1] == ["-m"]:
        head, rest = [*head, *rest[:2]], rest[2:]
    elif len(head) == 1 and rest and _INTERPRETER.fullmatch(words[0]) and _is_script(rest[0]):
        head.append(rest.pop(0))
        head += rest[: _verbs(words[1:])]
    flags: list[str] = []
    # What stands behind `--` is for another program, and by its flags alone nobody could type it again.
    words_left = iter(rest if narrow else takewhile("--".__ne__, rest))
    for word in words_left:
        name = word.partition("=")[0]
        chooses = name in _NARROWING and not narrow
        if _FLAG.fullmatch(name) and not chooses and not _LOUD.match(word) and name not in flags:
            flags.append(f"{name}=" if name in _NARROWING and "=" in word else name)
        if word in _VALUE_FLAGS or (word.startswith("--") and word in _NARROWING):
            next(words_left, "")  # its value
        elif len(head) == 1 and head[0] in _WITH_VERB and _VERB.fullmatch(word):  # `git -C x add`
            head.append(word)
    rest = [*head[1:], *flags[:4], *(("(multi-line)",) if command.lines else ())]
    return " ".join((head[0], *rest)) if rest else words[0].rpartition("/")[2]


def has_shape(command: Command, shape: str) -> bool:
    """Return whether a command is of this shape: the same program, and all of its words."""
    wanted = shape.split()
    if not wanted:
        return False
    if len(wanted) == 1:  # a program by its exact name: where `python` is not found, `python3` may be
        return wanted[0] in (command.words[0].rpartition("/")[2], command.text.split()[0])
    if program_name(command.words[0]) != wanted[0]:
        return False
    if _VERB.fullmatch(wanted[1]) and next(_bare(command.words[1:]), "") != wanted[1]:
        return False  # `run x test` is not `run test`
    own = {*command.words[1:], *(("(multi-line)",) if command.lines else ())}
    joined = [word.partition("=")[0] for word in own if word.startswith("-") and "=" in word]
    return own.union(joined, (f"{name}=" for name in joined)).issuperset(wanted[1:])


def starts_same(command: Command, others: Sequence[Command]) -> bool:
    """Return whether a command starts a program of *others*, such as `.venv/bin/pytest` and `uv run pytest` for `pytest`."""
    words, programs = command.words, {each.words[0] for each in others}
    return (
        _own_name(words[0]) in {_own_name(word) for each in others for word in each.words}
        or "-".join(words[:2]) in programs  # `docker compose` for `docker-compose`
        or (words[0] in ("pnpm", "yarn") and not programs.isdisjoint(words[1:2]))
        or (
            (words[:2] in _RUNNERS or bool(_wrapped_command(words)))
            and command.program in {each.program for each in others}
        )
    )


def _wrapped_command(words: Sequence[str]) -> tuple[str, ...]:
    """Return the command that is run in a container or an environment: `pytest` of `docker compose exec web pytest`."""
    found = _CONTAINER.match(" ".join(words))
    return tuple(words[len(found[0].split()) :]) if found else ()


_FLAGS = r"(?>(?: (?:-[eunwpc]|--(?:env|user|name|workdir|container|prefix)) [^-\s]\S*| -\S*)*)"
_CONTAINER = re.compile(
    rf"(?:(?:(?:docker|podman)(?:[ -]compose)?|kubectl) exec|docker[ -]compose run){_FLAGS} [^-\s]\S*{_FLAGS} (?=\S)"
    rf"|(?:conda|mamba) run{_FLAGS} (?=\S)"
)


def _own_name(word: str) -> str:
    """Return the name of a program; one that lies elsewhere than in the project or on the path is another program."""
    return word if word.startswith(("/", "~", "..")) else program_name(word.removeprefix("./"))


def _bare(words: Sequence[str]) -> Iterator[str]:
    """Yield the words that are neither flags nor the values of flags that choose where or how."""
    words_left = iter(words)
    for word in words_left:
        if word in _VALUE_FLAGS:
            next(words_left, "")
        elif not word.startswith("-"):
            yield word


def word_set(line: str) -> frozenset[str]:
    """Return the words that tell a line from others, without the folder that it goes to first."""
    return frozenset(re.findall(r"[\w./:@-]{2,}", _CD.sub("", line.strip())[:MOST]))


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of words that two lines have in common."""
    return len(one & other) / len(one | other) if one or other else 0.0


def shown(line: str, *, most: int = SHORT) -> str:
    """Return a command line as it is shown: one line, without folders that it goes to and where its output goes."""
    head = line.split('"$(cat <<', 1)[0] + '"…"' if '"$(cat <<' in line else line
    every = [each for each in commands_of(head) if each.words[0] != "cd"]
    doing = [each for each in every if each.words[0] not in ("echo", "printf")] or every  # what only separates outputs
    kept = [each for each in doing if not (each.filters and _DISPLAYS.match(each.text))]
    text = "".join((" | " if each.filters else " && ") + each.text for each in kept).removeprefix(" && ").strip()
    text = text.replace("`", "'")
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0].rstrip(" ;|&") + "…"


def folder_of(cwd: str, *, root: str) -> str | None:
    """Return a folder as the project knows it: '' is its root; None where it is not known."""
    if not cwd:
        return None
    path = posixpath.normpath(cwd.replace("\\", "/"))
    top = posixpath.normpath(root.replace("\\", "/")) if root else ""
    if top and (path == top or path.startswith(f"{top}/")):
        return path[len(top) :].strip("/")
    return path


def folders_of(commands: tuple[Command, ...], cwd: str, *, root: str) -> tuple[str | None, ...]:
    """Return the folder in which each command of a line runs, as far as `cd` and `-C` tell."""
    found: list[str | None] = []
    here, outside = cwd, cwd
    for command in commands:
        program, *words = command.words
        here = here if command.inner else outside
        found.append(folder_of(_joined(here, words[1]) if words[:1] == ["-C"] and words[1:] else here, root=root))
        if program == "cd":
            here = _joined(here, words[0] if words else "~")
        outside = outside if command.inner else here
    return tuple(found)


def _joined(here: str, to: str) -> str:
    """Return where `cd` leads; empty where that is not known."""
    to = to.replace("\\", "/")
    if to == "-" or re.search(r"[$`~*]", to) or not (here or to.startswith("/")):
        return ""
    return posixpath.join(here, to)


_CD = re.compile(r"^(?:cd [^\s;&|]+\s*(?:&&|;)\s*)+")
_DISPLAYS = re.compile(r"(?:tail|head|less|more|tee|grep|Select-Object)\b|cat$")
_KEYWORD = re.compile(
    r"^(?:(?:do|then|else|elif|if|while|until|!)\s+)+|^(?:do|done|then|else|fi|for|case|esac)\b.*", re.DOTALL
)
_VERB = re.compile(r"[A-Za-z@][\w:@-]*")
_FLAG = re.compile(r"--?[A-Za-z][\w.-]{0,30}")
_NARROWING = ("-k", "--tests", "--filter", "--grep", "-t", "-run", "--run", "--test", "-p", "--package", "--durations", "--maxfail",
              "-j", "-m", "-am", "-count", "-n", "-F", "--testPathPattern")  # fmt: skip
_LOUD = re.compile(
    r"-[qvxsl]+$|-r\w*$|-j\d+$|--(?:tb|lf|ff|last-failed|failed-first|maxfail|durations|no-header|no-summary|color|verbose|quiet|pdb|sw|nocapture|show-output|capture|watch)\b"
)


def _verbs(words: tuple[str, ...]) -> int:
    """Return how many words after the first say what is done, and not what it is done to."""
    first = program_name(words[0])
    if len(words) < 2:
        return 0
    if (first, words[1]) in _WITH_TWO_VERBS:
        return 2
    if first in _WITH_VERB or first in _FETCHERS:
        return 1
    if words[1] in _WITH_VERB:  # a wrapper around a tool
        return 1 + _verbs(words[1:])
    if _KIND_OF["look"].match(first) or "." in first:
        return 0
    # `tool verb` of a tool that nobody knows.
    return 1 if _VERB.fullmatch(words[1]) and len(words[1]) <= 20 else 0


def program_name(word: str) -> str:
    """Return the name of a program without the folder where it lies; what is run from the project's folder keeps `./`."""
    name = word.rpartition("/")[2] if "/" in word and not word.startswith("./") else word
    return {"python3": "python", "pip3": "pip"}.get(name, name)


def _parts(text: str) -> list[tuple[str, bool, bool, bool]]:
    """Split a line where the shell does: each part with `tells`, `filters` and `inner` of its command."""
    text = re.sub(r"<<-?\s*['\"]?(\w+)['\"]?.*?(?:^\1$|\Z)", "", text, flags=re.DOTALL | re.MULTILINE)
    text = text.replace("\\\n", " ")
    whole_pipes = "pipefail" in text
    parts: list[tuple[str, str, bool]] = []  # each with the sign after it, and whether it is in brackets
    start, depth, deepest = 0, 0, 0
    for found in _SIGN.finditer(text):
        sign = found[0]
        if sign in ("(", ")"):
            depth = max(0, depth + (1 if sign == "(" else -1))
            deepest = max(deepest, depth)
        elif sign[0] not in "'\"\\":
            parts.append((text[start : found.start()], sign, deepest > 0))
            start, deepest = found.end(), depth
    parts.append((text[start:], "", deepest > 0))
    parts = [each for each in parts if each[0].strip()]
    lasts = max((place for place, each in enumerate(parts[:-1]) if each[1] in (";", "\n", "||")), default=-1)
    read: list[tuple[str, bool, bool, bool]] = []
    before = ""
    for place, (part, sign, inner) in enumerate(parts):
        hidden = place <= lasts or (sign == "|" and not whole_pipes) or part.rstrip().endswith("&")
        read.append((part, not hidden, before == "|", inner))
        before = sign
    return read


# What is quoted or escaped, and the signs between commands.
_SIGN = re.compile(r"'[^']*'?|\"(?:\\.|[^\"\\])*\"?|\\.|&&|\|\||[;\n|()]", re.DOTALL)


def _command(text: str, tells: bool, filters: bool, inner: bool) -> Command:
    part = re.sub(r"^\s*\w+=\"?\$\(", "", text)
    part = re.sub(r"\s*\d?>{1,2}\s*(?:&\d|\S+)|\s*<\s*\S+|\s&\s*$", "", part).strip().lstrip("({ ").rstrip(")} ")
    part = "" if part.startswith("#") else _KEYWORD.sub("", part)
    try:
        words = shlex.split(part, posix=True)
    except ValueError:
        words = part.split()
    scripts = [word for flag, word in pairwise(words) if flag in ("-c", "-e", "-lc")]
    while words and (words[0] in _LIMITS or _SETS.fullmatch(words[0])):
        words = words[1:]
    lines = any("\n" in script.strip() for script in scripts)
    return Command(*_meaning(words), " ".join(part.split()), tuple(words), tells, filters, lines, inner)


_SETS = re.compile(r"\w+=.*|[\d.]+[smh]?", re.DOTALL)  # a variable, or the seconds of a `timeout`


def _meaning(words: list[str]) -> tuple[str, tuple[str, ...], str]:
    """Return the tool that matters in a command, what it works on, and its kind."""
    while words:
        words = list(_wrapped_command(words)) or words
        runs = len(words) > 2 and (words[0], words[1]) in _RUNNERS and words[1] != "compose"
        if not runs and words[0] not in _PREFIXES:
            break
        words = list(dropwhile(lambda word: word.startswith("-"), words[2 if runs else 1 :]))
    if len(words) > 1 and _INTERPRETER.fullmatch(words[0]):
        if words[1] == "-m" and len(words) > 2:
            words = words[2:]
        elif _is_script(words[1]):
            words = words[1:]
    if not words:
        return "", (), "other"
    name, rest = program_name(words[0]), words[1:]
    known = name in _WITH_VERB or any(pattern.match(name) for pattern in _KIND_OF.values())
    if len(rest) > 1 and rest[0] in _WITH_VERB and not known:  # the tool after it does the work: `direnv git commit`
        name, rest = program_name(rest[0]), rest[1:]
    if name in _WITH_VERB:
        while len(rest) > 1 and rest[0].startswith("-"):  # `git -C x add`, `pnpm --filter web test`, `mvn -q test`
            rest = rest[2 if rest[0] in _VALUE_FLAGS else 1 :]
        if rest and not rest[0].startswith("-"):
            verbs = rest[:2] if (name, rest[0]) in _WITH_TWO_VERBS and len(rest) > 1 else rest[:1]
            name, rest = " ".join((name, *verbs)), rest[len(verbs) :]
    kind = next((kind for kind in _ORDER if _KIND_OF[kind].match(name)), "other")
    return name, tuple(sorted(word.removeprefix("./") for word in rest if not word.startswith("-"))), kind


_INTERPRETER = re.compile(r"(?:.*/)?(?:python[\d.]*|node|ruby|php|bash|sh)")


def _is_script(word: str) -> bool:
    """Return whether an interpreter is given a file to run."""
    return word.endswith((".py", ".js", ".rb", ".php", ".sh", ".ts", ".mjs", "artisan"))
