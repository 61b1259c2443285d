"""Take the contents of files that hold secrets out of a payload: what tools read from them or wrote there.

A tool's call is a part of a payload that holds a tool's input. Where one names such a file, or runs a command that
prints secrets, every text in that part becomes a mark but for names, ids and the path: an unknown field is hidden.
A search over a folder names no file; there the output tells, line by line, where it was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice
from posixpath import normpath
from typing import Any

from foreword.encoding import dumps, loads, read_table
from foreword.errors import BadPayload
from foreword.redact.keywords import is_secret, is_telling
from foreword.redact.patterns import WORDS
from foreword.terms import lazy_pattern

MARK = "[redacted:path]"


_FILES = " ".join(read_table(__file__, "secret_files.txt")).split()
_PRINTS = tuple(read_table(__file__, "secret_commands.txt"))
_WRAPPERS, _KEPT = frozenset(WORDS["wrapper"]), frozenset(WORDS["field"])
# Made to be shown, and code.
_SAMPLES = (".example", ".sample", ".template", ".dist", ".schema", ".pub", "known_hosts", "process.env", "meta.env")
# These alone print all variables.
_DUMPS = ("env", "env -0", "env --null", "set", "export", "declare", "typeset", "compgen -v", "history")
_SEARCHES = ("grep", "egrep", "fgrep", "rg", "ag", "ack", "git grep", "sed", "awk")  # they look for words in sources
# A program's whole environment, or one variable by its name.
_ENVIRONMENT = lazy_pattern("|".join(read_table(__file__, "environment.txt")))
_INPUTS = ("tool_input", "toolInput", "toolArgs", "args", "arguments", "input", "parameters")
_COMMANDS = ("command", "cmd", "script", "shell_command", "code")
_CALLS = (*_INPUTS, "command", "cmd")  # some agents put a command and its output side by side
# The fields in which tools get their file, over all agents; other names (originalFile) may hold what is in it.
_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "target_file", "path", "paths", "uri", "filename")
_MAX_PATH_CHARS = 1024
_MAX_COMMAND_CHARS = 16_384  # nobody types more; a longer one writes a file
_MAX_GLOBS = 64  # patterns in a command, as the shell expands their braces


def without_denied(item: Any, *, deny: Sequence[str] = ()) -> Any:
    """Return the payload with a mark for every text from or for a denied file; *deny* are patterns of paths too."""
    return _without(item, tuple(each.lower() for each in deny))


def _without(item: Any, deny: tuple[str, ...]) -> Any:
    if isinstance(item, dict):
        if not any(name in item for name in _CALLS):
            return {name: _without(inner, deny) for name, inner in item.items()}
        item = {name: _decoded(inner) if name in _INPUTS else inner for name, inner in item.items()}
        cwd = item.get("cwd")
        folder = cwd if isinstance(cwd, str) else ""
        paths = dict.fromkeys(path for path in _paths(item) if len(path) <= _MAX_PATH_CHARS)
        if _any_denied(list(paths), deny) or any(
            _prints(each) or _names_denied(each, deny, folder) for each in _commands(item)
        ):
            return _hidden(item, deny)  # it names a denied file, or runs a command that prints secrets
        unnamed = _unnamed_variables(item)
        return {
            name: _without(inner, deny)
            if name in _INPUTS or name in _COMMANDS
            else _output(_without(inner, deny), deny, unnamed)
            for name, inner in item.items()
        }
    if isinstance(item, list):
        return [_without(inner, deny) for inner in item]
    return _without_patches(item, deny) if isinstance(item, str) and "+++ " in item else item


def denied(path: str, deny: Sequence[str] = ()) -> bool:
    """Return whether the file's contents are not to be kept; the patterns of *deny* are lower case."""
    return len(path) <= _MAX_PATH_CHARS and _denied(path, tuple(deny))


@lru_cache(maxsize=4096)  # a search names the same file before each of its lines
def _denied(path: str, deny: tuple[str, ...]) -> bool:
    low = path.strip().replace("\\", "/").lower().rstrip("/")
    if not low or "\n" in path or low.endswith(_SAMPLES):
        return False
    low = re.sub("/{2,}", "/", normpath(low) if "/../" in low else low)[-256:]  # a name and its folders
    return bool(_compile(tuple(_FILES)).search(low) or (deny and _compile(deny).search(low)))


@lru_cache(maxsize=8)
def _compile(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return an expression that finds any of the patterns at the end of a path."""
    found = []
    for pattern in patterns:
        bare, folder = pattern.strip("/"), "/.*" if pattern.strip("/").endswith("/*") else ""
        first, *rest = map(re.escape, bare.removesuffix("/*").split("*"))
        # Atomic between two stars, so that a path is read once however many stars there are.
        middle = "".join(f"(?>[^/]*?{each})" for each in rest[:-1])
        found.append(first + middle + (f"[^/]*{rest[-1]}" if rest else "") + folder)
    return re.compile(rf"(?:^|/)(?:{'|'.join(found)})$")


# --- what a tool was called with ---


def _decoded(item: Any) -> Any:
    """Return a tool's input that is written as JSON in a text, as some agents send it."""
    if isinstance(item, str) and item[:1] in ("{", "["):
        with suppress(BadPayload, RecursionError):
            return loads(item)
    return item


_QUIET = lazy_pattern(rf"\s*(?:{'|'.join(WORDS['quiet'])}|git (?:rm|check-ignore|update-index))\s[^|\n]*\Z")
_MOST_FOLDERS = 4
_HIDDEN_FOLDER = lazy_pattern(r"(?:\A|/)\.\w")  # ~/.ssh: others hold few secrets by their place alone
_FOLDER = lazy_pattern(r"(?:\b(?:cd|pushd)|\s-C|--directory)[ =]+[\"']?([^\s\"';&|]{1,255})")


def _names_denied(command: str, deny: tuple[str, ...], cwd: str) -> bool:
    if not any(sign in command for sign in "<>$`") and all(map(_QUIET.match, re.split(r"&&|\|\||;", command))):
        return False  # it prints no file, and writes none
    words = dict.fromkeys(_words(command))
    words.update(dict.fromkeys(re.sub(r"[\\\"']", "", command).split()))  # .e"n"v
    folders = [cwd, *(each[1] for each in islice(_FOLDER.finditer(command), _MOST_FOLDERS))]
    hidden = [folder for folder in folders if _HIDDEN_FOLDER.search(folder)]
    words.update(dict.fromkeys(f"{folder}/{word}" for folder in hidden for word in tuple(words) if word))
    words.update((word.strip("\"'"), None) for word in command.split() if _is_glob(word))
    return _any_denied(list(words), deny)


def _any_denied(paths: list[str], deny: tuple[str, ...]) -> bool:
    """Return whether a path, or a pattern such as `.env*` or `**/*.{pem,key}`, stands for a denied file."""
    globs = [path.lower() for path in paths if _is_glob(path) and len(path) <= _MAX_PATH_CHARS]
    patterns = _without_braces(globs)
    if len(patterns) > _MAX_GLOBS:
        return True  # nobody types so many: what is not looked at counts as denied
    if any(denied(path, deny) for path in (*paths, *patterns)):
        return True
    names = (each.rpartition("/")[2] for each in patterns)
    return any(
        any(fnmatchcase(name, glob) for name in _names(deny)) and not any(fnmatchcase(name, glob) for name in _ORDINARY)
        for glob in names
    )


# A glob that matches one of these too is too broad to mean files of secrets.
_ORDINARY = ("readme.md", "main.py", "package.json", "config.yaml", "x.xml", "x.txt", "x.properties")


def _is_glob(word: str) -> bool:
    return any(sign in word for sign in "*?[{")


def _without_braces(patterns: list[str]) -> list[str]:
    """Return what the shell makes of `{a,b}`; it stops where there are more than _MAX_GLOBS."""
    for _ in range(6):
        found = [re.search(r"\{([^{}]*)\}", each) for each in patterns[: _MAX_GLOBS + 1]]
        if not any(found) or len(patterns) > _MAX_GLOBS:
            break
        patterns = [
            f"{each[: braces.start()]}{part}{each[braces.end() :]}" if braces else each
            for each, braces in zip(patterns, found, strict=True)
            for part in (braces[1].split(",") if braces else ("",))
        ]
    return patterns


@lru_cache(maxsize=8)
def _names(deny: tuple[str, ...]) -> tuple[str, ...]:
    """Return a name for each pattern of denied files; a glob that fits one of them may find such a file."""
    return tuple(each.rpartition("/")[2].replace("*", "x") for each in (*_FILES, ".env", *deny) if each[-2:] != "/*")


def _paths(item: Any, name: str = "") -> Iterator[str]:
    """Yield every text under a name that speaks of a file, and the files of patches."""
    if isinstance(item, str):
        if _is_path(name, item):
            yield item
        if "*** Begin Patch" in item:
            yield from re.findall(r"(?m)^\*\*\* [^\n:]{1,40}: ([^\n]{1,1024})$", item)
    elif isinstance(item, dict):
        for key, inner in item.items():
            yield from _paths(inner, str(key))
    elif isinstance(item, list):
        for inner in item:
            yield from _paths(inner, name)


def _is_path(name: str, text: str) -> bool:
    low = name.lower()
    named = any(word in low for word in ("path", "file", "uri", "glob", "include"))
    return named and len(text) <= _MAX_PATH_CHARS and "\n" not in text


def _commands(item: Any) -> Iterator[str]:
    if isinstance(item, dict):
        for name, inner in item.items():
            if name in _COMMANDS and isinstance(inner, str):
                yield _ends(inner)
            elif name in _COMMANDS and isinstance(inner, list):
                yield _ends(_SHELL.sub("", " ".join(each for each in inner if isinstance(each, str))))
            else:
                yield from _commands(inner)
    elif isinstance(item, list):
        for inner in item:
            yield from _commands(inner)


_SHELL = lazy_pattern(r"\A\S*sh -\w*c ")  # of a command as a list of words, its last one is what the shell runs


def _ends(command: str) -> str:
    half = _MAX_COMMAND_CHARS // 2
    command = command.replace("\\\n", " ")
    return command if len(command) <= 2 * half else f"{command[:half]}\n{command[-half:]}"


def _words(command: str) -> list[str]:
    return re.split(r"[\s\"'`;|&()<>={},:@]+", command)


def _prints(command: str) -> bool:
    """Return whether a command prints variables or secrets, also in a container, on another machine or by a script."""
    for part in dict.fromkeys(re.split(r"&&|[|;\n`(){}&\"']", command)):
        words = _PREFIX.sub("", re.split(r"\d?>", part)[0].strip(), count=1).split(None, 36)
        if not words:
            continue
        words[0] = words[0].rpartition("/")[2].removesuffix(".exe")
        # A wrapper's own arguments are not known here, so what it runs may begin with any word.
        for at in range(min(len(words), 24)) if words[0] in _WRAPPERS else (0,):
            run = " ".join(words[at : at + 5]).lower()
            plain = " ".join(_FLAG.sub("", " ".join(words[at : at + 12])).split()).lower()
            is_dump = bool(_ENV.match(" ".join(words[at : at + 12])))
            is_dump = is_dump or (run in _DUMPS and (at == 0 or run != "set"))
            if is_dump or run.startswith(_PRINTS) or plain.startswith(_PRINTS):
                return True
    bare = _without_quotes(command)
    for script in (bare, *(_without_quotes(found[2]) for found in _RUN_BY_SHELL.finditer(command))):
        for part in re.split(r"&&|[|;\n`(){}&]", script):
            words = _FLAG.sub("", f"{_PREFIX.sub('', part.strip(), count=1)} ").lower().split()
            asks = "--help" in part or "--version" in part
            if not asks and _reads_store(words[1:] if words[:1] == ["sudo"] else words):
                return True
    if _REVEALS.search(bare) or any(is_telling(name) and is_secret(name, _PROBE) for name in _PRINTED.findall(command)):
        return True
    scripts = "\n".join(part for part in re.split(r"&&|[|;\n]", command) if not _SEARCH.match(part))
    return any(not found["name"] or is_telling(found["name"]) for found in _ENVIRONMENT.finditer(scripts))


def _without_quotes(command: str) -> str:
    """Return a command without what is in quotes and in documents (`<<EOF`): no program begins there."""
    kept: list[str] = []
    document = ""
    for line in command.split("\n"):
        if not document:
            kept.append(line)
            document = found[1] if (found := _DOCUMENT.search(line)) else ""
        elif line.strip() == document:
            document = ""
    return _QUOTED.sub("''", "\n".join(kept))


_DOCUMENT, _QUOTED = lazy_pattern(r"<<-?\s*[\"']?(\w+)[\"']?"), lazy_pattern(r"'[^']*'|\"[^\"]*\"")
_RUN_BY_SHELL = lazy_pattern(r"(?s)sh -\w*c\s+(['\"])(.*?)\1")


def _reads_store(words: list[str]) -> bool:
    """Return whether a command reads secrets or variables where a program keeps them: `x secrets get`, `x env:list`."""
    if not words or words[0] in _TOOLS:
        return False
    words[0] = words[0].rpartition("/")[2]
    parts = {part for word in words[1:6] for part in re.split("[:/]", word)}
    if _KEEPER.match(words[0]) and not parts & _OTHERS:
        return True
    if parts & _SECRETS or (parts & _STORES and parts & _READS) or any(map(_FUSED.match, words[1:4])):
        return True
    return len(words) > 1 and words[-1] in ("env", "printenv", "setenv")


_TOOLS, _SECRETS, _STORES, _READS, _OTHERS = (
    frozenset(WORDS[use]) for use in ("tool", "secret", "store", "reading", "other")
)
_KEEPER = lazy_pattern(  # a program named after what it keeps
    r"[a-z0-9][\w.-]*(?:vault|-secrets?\b|secret-|cred(?!o)|passw|passbolt|keepass|keyring|keychain|keystore|warden|dashlane)"
    r"|vault|credstash|keywhiz|(?:go|l|1)?pass(?:\Z|-)"
)
_FUSED = lazy_pattern(  # get-secret-value, print-access-token, DescribeSecret
    r"(?:batch-)?(?:get|show|list|generate|create|export|print|extract|assume|describe)-?[\w-]*"
    r"(?:secret|password|token|credential|connection-string|access-key|api-key)s?(?:-?\w+)*\Z"
)
_REVEALS = lazy_pattern(  # flags that ask for secrets
    r"\s--(?:(?:show|export|reveal|print|dump|include|unmask)-(?:secret|token|password|credential|private)\S*"
    r"|reveal|decrypt|unmask|with-decryption)(?![\w-])"
)
# `echo "$NAME"`, `cat <<< $NAME`, `echo %NAME%`, `$env:NAME`: whether the name is telling decides.
_PRINTED = lazy_pattern(
    r"\b(?:(?:echo|printf|print|Write-\w+)\b|cat\s*<{2,3})(?:[^$|;&<>]|\$(?![{A-Za-z])){0,200}?[$%](?:\{!?|[Ee]nv:)?([A-Za-z_]\w{2,63})"
)
_PROBE = "q7Zk3Tq9Wx2Lm8Rv"  # a value that is a secret beside any telling name

_ENV = lazy_pattern(r"env(?:\s+(?:-[uC]\s*\S+|--?[a-z0][\w-]*(?:=\S*)?|[A-Za-z_]\w*=\S*))*\Z")
# What may stand before a command: `then`, `FOO=1`, `timeout 5`, `command`.
_PREFIX = lazy_pattern(
    r"\A(?>(?:(?:then|do|else|if|while|!|command|exec|builtin|nice|stdbuf|timeout(?: -\S+)*(?: \d\S*)?|\S*sh -\w*c"
    r"|busybox|toybox|[A-Za-z_]\w*=\S*)\s+)*)"
)
_FLAG = lazy_pattern(r"(?<=\s)(?:--?[A-Za-z][\w-]*(?:=\S+| (?!-)\S+)?)(?=\s)")
_SEARCH = lazy_pattern(rf"\s*(?:{'|'.join(_SEARCHES)})\s")


def _hidden(item: Any, deny: tuple[str, ...], name: str = "") -> Any:
    """Return what is kept of a call that touches secrets: numbers, names, ids, paths, and a command that only reads."""
    if isinstance(item, dict):
        return {key: _hidden(inner, deny, str(key)) for key, inner in item.items()}
    if isinstance(item, list):
        return [_hidden(inner, deny, name) for inner in item]
    if not isinstance(item, str) or not item or name in _KEPT:
        return item
    if _is_path(name, item) and (name in _PATHS or denied(item, deny)):
        return item
    if name in _COMMANDS:
        if not any(sign in item for sign in (">", "<<", "tee ", "sed ", "\n")):
            return item
        kept = [word for word in _words(_ends(item)) if denied(word, deny)]  # it may write secrets there
    else:
        kept = [path for path in _paths(item) if path]  # a patch keeps the names of its files
    return " ".join((MARK, *dict.fromkeys(kept)))


# --- what a tool printed ---

# Commands that read files which they do not name; then lines that look like those of a .env file lose their values.
_UNNAMED = lazy_pattern(
    r"\bxargs\b|\s-exec\b|\bfd(?:find)?\b[^|;\n]{0,200}\s(?:-x|-X|--exec)|\bwhile\s+read\b|\bfor\s+\w+\s+in\b"
)
_VARIABLE = lazy_pattern(r"(?m)^(\s*+(?:export\s++)?[A-Za-z_]\w{2,}\s*+=\s*+)(?!\[redacted:)\S.*$")
_BY_VARIABLE = lazy_pattern(r"\b(?:cat|head|tail|less|more|bat|nl|tac|strings|grep)\b[^|;&\n]{0,200}(?:\$|`)")
_CAPITALS = lazy_pattern(r"(?m)^(\s*+(?:export\s++)?[A-Z][A-Z0-9_]{2,}=)(?!\[redacted:)\S.*$")


def _unnamed_variables(call: dict[str, Any]) -> re.Pattern[str] | None:
    """Return what finds the variables in the output of a command that prints files without naming them."""
    command = "\n".join(_commands(call))
    return _VARIABLE if _UNNAMED.search(command) else _CAPITALS if _BY_VARIABLE.search(command) else None


def _output(item: Any, deny: tuple[str, ...], unnamed: re.Pattern[str] | None) -> Any:
    if isinstance(item, str):
        if not isinstance(held := _decoded(item), str):
            with suppress(RecursionError):  # no search nests its hits so deep
                clean = _output(held, deny, unnamed)
                return item if clean == held else dumps(clean)
        text = _without_lines(item, deny)
        text = _without_patches(text, deny) if "+++ " in text else text
        return unnamed.sub(rf"\1{MARK}", text) if unnamed else text
    if isinstance(item, dict):
        if any(denied(text, deny) for name, text in item.items() if name in _NAMES_A_FILE and isinstance(text, str)):
            return _hidden(item, deny)  # one hit of a search
        return {
            name: _hidden(inner, deny) if denied(name, deny) else _output(inner, deny, unnamed)
            for name, inner in item.items()
        }
    return [_output(inner, deny, unnamed) for inner in item] if isinstance(item, list) else item


_NAMES_A_FILE = (*_PATHS, "file")
FEW_LINES = 8  # that are read one by one sooner than searched for pieces of paths
_MAX_LINES = 4_000  # of an output, its first and last ones: no more fit into what is kept of a text
_NUMBERED = lazy_pattern(r"\d+[:-](?!\d\d\b)")  # and no time of day
_CONTEXT = lazy_pattern(r"-\d+-")
_JSON_HIT = lazy_pattern(r'\{"type":"\w+","data":\{"path":\{"(?:text":"(?P<path>[^"]*)"|bytes")')  # of rg --json
_COLOUR = lazy_pattern(r"\x1b\[[0-9;]*[mK]")
_BARE_PATH = lazy_pattern(r"[^\s=:\"'<>|]+\Z")
_PROSE = lazy_pattern(r"^\s|\s[^/]*$")  # a space, and no folder behind it: "cannot load .env"


def _without_lines(text: str, deny: tuple[str, ...]) -> str:
    """Return a tool's output with a mark in place of the lines that it says are from a denied file.

    A search names the file before each line (`path:12:text`, `path-12-text`, `HEAD:path:text`), others above them all.
    """
    plain = _COLOUR.sub("", text).replace("\0", ":")
    lines = plain.split("\n")
    changed = len(lines) > _MAX_LINES
    if changed:
        half = _MAX_LINES // 2
        lines = [*lines[:half], f"[{len(lines) - 2 * half} lines left out]", *lines[-half:]]
    low = plain.lower()
    if len(lines) > FEW_LINES and not any(piece in low for piece in _pieces(deny)):
        return "\n".join(lines) if changed else text
    kept: list[str] = []
    hiding = before = ""  # the form of the heading above, which ends at the next of its form; the line before
    for line, following in zip(lines, (*lines[1:], ""), strict=True):
        form, path = _heading(line, before, following) if 0 < len(line) <= _MAX_PATH_CHARS else ("", "")
        before = shown = line
        if not hiding and (named := _named_before(line, deny)):
            shown = f"{named}: {MARK}"
        elif form and hiding in ("", "cut", form):
            # A list of names is none of hits.
            hits = form != "bare" or _NUMBERED.match(following) or any(sign in following for sign in "=: ")
            hiding = form if hits and denied(path, deny) else ""
        elif hiding and line:
            shown = MARK
        if shown != MARK or not kept or kept[-1] != MARK:
            kept.append(shown)
        changed = changed or shown is not line
    return "\n".join(kept) if changed else text


@lru_cache(maxsize=8)
def _pieces(deny: tuple[str, ...]) -> frozenset[str]:
    """Return a piece of each denied path, without any of which no line names one, and the beginning of `rg --json`."""
    pieces = {max(re.split("[*/]", each), key=len) for each in (*_FILES, *deny, '{"type":"')}
    return frozenset(each for each in pieces if not any(other in each for other in pieces - {each}))


def _heading(line: str, before: str, following: str) -> tuple[str, str]:
    """Return the form of a heading above the lines of a file and the path that it names; nothing for other lines."""
    if line.startswith("==> ") and line.endswith(" <=="):
        return "cut" if before.endswith("characters left out]") else "head", line[4:-4]
    if "File: " in line[:12]:
        return "file", line.partition("File: ")[2]
    if line.startswith("diff ") and not line.startswith(("diff --git ", "diff --cc ")):
        return "diff", line.rpartition(" ")[2]
    if line.endswith(":") and "/" in line:
        return "colon", line[:-1]
    numbered = _NUMBERED.match(following) and not _NUMBERED.match(line) and not line.startswith((" ", "\t", "[cut]"))
    if numbered or (not before and following and ("/" in line or "." in line) and _BARE_PATH.match(line)):
        return "bare", line
    return "", ""


def _named_before(line: str, deny: tuple[str, ...]) -> str:
    """Return the denied file that a line of a search begins with, if any."""
    line = line[: 2 * _MAX_PATH_CHARS]
    if line.startswith('{"type":"') and (hit := _JSON_HIT.match(line)):
        return hit["path"] if hit["path"] and denied(hit["path"], deny) else "" if hit["path"] else "a file"
    first, colon, rest = line.partition(":")
    places = [first] if colon and rest else []  # `path:` alone is a heading
    second, colon, _ = rest.partition(":")
    places += [second] if colon else []
    places += [line[: context.start()] for context in _CONTEXT.finditer(line)] if "-" in line else []
    return next((each for each in places if denied(each, deny) and not _PROSE.search(each)), "")


def _without_patches(text: str, deny: tuple[str, ...]) -> str:
    """Return a diff with a mark in place of the lines of denied files."""
    kept: list[str] = []
    hiding = False
    for line in _COLOUR.sub("", text).split("\n"):
        if line.startswith("diff ") or (line.startswith("--- ") and not line.startswith("--- /dev/null")):
            hiding = False
        if line.startswith(("diff ", "--- ", "+++ ")):
            kept.append(line)
            words = line[:_MAX_PATH_CHARS].replace('"', "").split()[1:]
            hiding = hiding or any(denied(word[2:] if word[:2] in ("a/", "b/") else word, deny) for word in words)
        elif not hiding:
            kept.append(line)
        elif kept[-1] != MARK:
            kept.append(MARK)
    return "\n".join(kept)
