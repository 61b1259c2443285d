"""Take the contents of files that hold secrets out of a payload: what tools read from them or wrote there.

A tool's call is a part of a payload that holds a tool's input. Where one names such a file, or runs a command that
prints secrets, every text in that part becomes a mark but for names, ids and the path: an unknown field is hidden.
A search over a folder names no file; there the output tells, line by line, where it was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from foreword.redact.keywords import is_telling

MARK = "[redacted:path]"
# Patterns, in which `*` stands for any part of a name, and at the end of a folder for all that lies in it.
_FILES = """
    .env *.env .env.* .env-* .env_* .envrc .flaskenv .dev.vars .dev.vars.* .netrc _netrc .pgpass .my.cnf .mylogin.cnf
    .npmrc .pypirc pip.conf pip.ini .git-credentials .htpasswd .dockercfg .s3cfg .boto .databrickscfg .terraformrc
    .vault-token .vault_pass* .vault-pass* vault_pass* vault-pass* credentials.json *.credentials.json
    credentials.tfrc.json rclone.conf secrets.* *.pem *.key *.ppk *.p12 *.pfx *.jks *.keystore *.kdbx *.tfvars
    *.tfvars.json *.tfstate *.tfstate.* *.ovpn kubeconfig *.kubeconfig id_rsa* id_dsa* id_ecdsa*
    id_ed25519* .ssh/* .gnupg/* .azure/* .oci/* .snowsql/config .config/gcloud/* .password-store/* .aws/credentials
    .aws/sso/* .kube/config .docker/config.json .gem/credentials .cargo/credentials* .config/gh/hosts.yml
    .config/hub .config/glab-cli/* .config/doctl/* .config/op/* .fly/config.yml .m2/settings*.xml
    .gradle/gradle.properties .codex/auth.json .composer/auth.json .gemini/oauth_creds.json .gemini/*accounts.json
    opencode/auth.json github-copilot/* .cursor/auth.json cursor/auth.json .*_history fish_history .history
    etc/shadow etc/shadow- etc/gshadow proc/*/environ service-account*.json service_account*.json
    *-service-account.json client_secret*.json
""".split()  # noqa: SIM905 - data, read as text
_SAMPLES = (
    ".example",
    ".sample",
    ".template",
    ".dist",
    ".schema",
    ".pub",
    "known_hosts",
    "process.env",
    "meta.env",
)  # made to be shown, and code
# Commands that print secrets, each as the words it begins with.
_PRINTS = tuple(
    """printenv, export -p, declare -x, declare -p, typeset -x, aws configure, aws sts, aws secretsmanager,
    aws ssm get-parameter, gcloud auth print, gcloud secrets versions access, az account get-access-token,
    az keyvault secret, az storage account keys, gh auth token, gh auth status --show-token, glab auth status,
    kubectl get secret, kubectl describe secret, kubectl config view --raw, oc whoami -t, vault read, vault kv get,
    vault print token, vault token, op read, op item get, pass show, security find-, heroku config, doppler secrets,
    git credential, gpg --export-secret, docker compose config, helm get, npm config get, secret-tool lookup,
    terraform output, terraform show, stripe config, bw get, sops -d, docker inspect, get-childitem env:, gci env:,
    dir env:, ls env:""".replace("\n   ", "").split(", ")
)
_DUMPS = (
    "env",
    "env -0",
    "set",
    "export",
    "declare",
    "typeset",
    "compgen -v",
    "history",
)  # these alone print all variables
_WRAPPERS = frozenset(  # programs that run the command behind their own arguments
    """sudo doas su docker podman nerdctl docker-compose podman-compose kubectl oc crictl ssh xargs nsenter chroot
    lxc vagrant heroku fly flyctl railway gcloud az time nohup watch devcontainer wsl distrobox sh bash zsh
    cmd powershell pwsh uv poetry pipenv npx bundle direnv dotenv""".split()  # noqa: SIM905
)
_SEARCHES = ("grep", "egrep", "fgrep", "rg", "ag", "ack", "git grep", "sed", "awk")  # they look for words in sources
# A program's whole environment, or one variable by its name.
_ENVIRONMENT = re.compile(
    r"os\.environb?(?!\w)(?!\s*[\[.])|os\.environ\.(?:items|values|copy)|process\.env(?![\w.\[])"
    r"|Deno\.env\.toObject|\b(?:p|puts|print|pp) ENV\b(?!\[)|\bENV\.(?:to_h|to_a|each|inspect|map|sort)"
    r"|%ENV|\$_ENV\b(?!\[)|System\.getenv\(\)"
    r"|(?<![\w.])getenv\(\)|GetEnvironmentVariables|os\.Environ\(\)"
    r"|(?:environ(?:\.get)?|getenv|process\.env|ENV|_ENV)\s*[\[(.]\s*[\"']?(?P<name>\w{3,64})"
)
_INPUTS = ("tool_input", "toolInput", "toolArgs", "args", "arguments", "input", "parameters")
_COMMANDS = ("command", "cmd", "script", "shell_command", "code")
# What says who, when and which, and never what a file holds.
_KEPT = frozenset(
    """session_id sessionId sessionID conversation_id generation_id transcript_path cwd directory workspace_roots
    prompt_id turn_id tool_use_id callID messageID id timestamp permission_mode hook_event_name tool_name toolName tool
    name model type resultType level effort agent_id agent_type hook duration_ms description""".split()  # noqa: SIM905
)
# The fields in which tools get their file, over all agents; other names (originalFile) may hold what is in it.
_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "target_file", "path", "paths", "uri", "filename")
_MOST = 1024  # characters of a path
_MAX_COMMAND_CHARS = 65_536
_MOST_GLOBS = 256  # words with a wildcard in a command
_DEEPEST = 20


def without_denied(item: Any, *, more: Sequence[str] = (), room: int = _DEEPEST) -> Any:
    """Return the payload with a mark for every text from or for a denied file; *more* are paths too."""
    return _without(item, tuple(each.lower() for each in more), room=room)


def _without(item: Any, more: tuple[str, ...], *, room: int) -> Any:
    if not room:
        return item
    if isinstance(item, dict):
        if any(name in item for name in _INPUTS):
            if _touches_secrets(item, more):
                return _hidden(item, more, room=room)
            unnamed = any(_UNNAMED.search(command) for command in _commands(item))
            return {
                name: inner if name in _INPUTS else _each_output(inner, more, unnamed=unnamed, room=room - 1)
                for name, inner in ((name, _without(inner, more, room=room - 1)) for name, inner in item.items())
            }
        return {name: _without(inner, more, room=room - 1) for name, inner in item.items()}
    if isinstance(item, list):
        return [_without(inner, more, room=room - 1) for inner in item]
    if isinstance(item, str) and "+++ " in item:
        return _without_patches(item, more)
    return item


def denied(path: str, more: Sequence[str] = ()) -> bool:
    """Tell whether the file's contents are not to be kept; *more* patterns are lower case."""
    low = path.strip().replace("\\", "/").lower().rstrip("/")
    if not low or len(path) > _MOST or "\n" in path or low.endswith(_SAMPLES):
        return False
    low = re.sub("/{2,}", "/", low)[-256:]  # a name and its folders
    return bool(_DENIED.search(low) or (more and _compile(tuple(more)).search(low)))


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


_DENIED = _compile(tuple(_FILES))


def _touches_secrets(call: dict[str, Any], more: tuple[str, ...]) -> bool:
    """Tell whether a tool's call names a denied file, or runs a command that prints secrets."""
    return any(_may_name(path, more) for path in _paths(call)) or any(
        _prints(command) or _names_denied(command, more) for command in _commands(call)
    )


def _names_denied(command: str, more: tuple[str, ...]) -> bool:
    words = [word for word in _words(command) if word]
    globs = [word for word in (*command.split(), *words) if any(sign in word for sign in "*?[{")]
    # Nobody types so many patterns: what is not looked at counts as denied.
    return (
        len(globs) > _MOST_GLOBS
        or any(denied(word, more) for word in words)
        or any(_may_name(glob.strip("\"'"), more) for glob in dict.fromkeys(globs))
    )


def _may_name(path: str, more: tuple[str, ...]) -> bool:
    """Tell whether a path, or a pattern such as `.env*` or `**/*.{pem,key}`, stands for a denied file."""
    if denied(path, more):
        return True
    if not any(sign in path for sign in "*?[{") or len(path) > _MOST:
        return False
    patterns = _without_braces(path.lower())
    return any(
        denied(each, more) or any(fnmatchcase(name, each.rpartition("/")[2]) for name in _names(more))
        for each in patterns
        if not any(fnmatchcase(name, each.rpartition("/")[2]) for name in _ORDINARY)
    )


# A glob that matches one of these too is too broad to mean files of secrets.
_ORDINARY = ("readme.md", "main.py", "package.json", "config.yaml", "x.xml", "x.txt", "x.properties")


def _without_braces(pattern: str) -> list[str]:
    """Return what the shell makes of `{a,b}`, up to 64 patterns."""
    patterns = [pattern]
    for _ in range(6):
        found = [re.search(r"\{([^{}]*)\}", each) for each in patterns]
        if not any(found) or len(patterns) >= 64:
            break
        patterns = [
            f"{each[: braces.start()]}{part}{each[braces.end() :]}" if braces else each
            for each, braces in zip(patterns, found, strict=True)
            for part in (braces[1].split(",") if braces else ("",))
        ][:64]
    return patterns


@lru_cache(maxsize=8)
def _names(more: tuple[str, ...]) -> tuple[str, ...]:
    """Return a name for each pattern of denied files; a glob that fits one of them may find such a file."""
    return tuple(each.rpartition("/")[2].replace("*", "x") for each in (*_FILES, ".env", *more) if each[-2:] != "/*")


def _paths(item: Any, name: str = "", room: int = _DEEPEST) -> Iterator[str]:
    """Yield every text under a name that speaks of a file, and the files of patches."""
    if isinstance(item, str):
        if _is_path(name, item):
            yield item
        if "*** Begin Patch" in item:
            heads = (line for line in item.split("\n") if line.startswith("*** ") and ": " in line)
            yield from (line.partition(": ")[2] for line in heads)
    elif isinstance(item, dict) and room:
        for key, inner in item.items():
            yield from _paths(inner, str(key), room - 1)
    elif isinstance(item, list) and room:
        for inner in item:
            yield from _paths(inner, name, room - 1)


def _is_path(name: str, text: str) -> bool:
    low = name.lower()
    named = any(word in low for word in ("path", "file", "uri", "glob", "include"))
    return named and len(text) <= _MOST and "\n" not in text


def _commands(item: Any, room: int = _DEEPEST) -> Iterator[str]:
    if isinstance(item, dict) and room:
        for name, inner in item.items():
            if name in _COMMANDS and isinstance(inner, str):
                yield inner
            elif name in _COMMANDS and isinstance(inner, list):
                yield " ".join(each for each in inner if isinstance(each, str))
            else:
                yield from _commands(inner, room - 1)
    elif isinstance(item, list) and room:
        for inner in item:
            yield from _commands(inner, room - 1)


def _words(command: str) -> list[str]:
    return re.split(r"[\s\"'`;|&()<>={},:@]+", command)


def _prints(command: str) -> bool:
    """Tell whether a command prints variables or secrets, also in a container, on another machine or by a script."""
    for part in re.split(r"&&|[|;\n`(){}&\"']", command[:_MAX_COMMAND_CHARS]):
        words = _PREFIX.sub("", re.split(r"\d?>", part)[0].strip(), count=1).split()
        if not words:
            continue
        words[0] = words[0].rpartition("/")[2]
        # A wrapper's own arguments are not known here, so what it runs may begin with any word.
        starts = range(min(len(words), 24)) if words[0] in _WRAPPERS else range(1)
        for at in starts:
            run = " ".join(words[at : at + 5]).lower()
            plain = " ".join(_FLAG.sub("", " ".join(words[at : at + 12])).split()).lower()
            if run.startswith(_PRINTS) or plain.startswith(_PRINTS) or (run in _DUMPS and (at == 0 or run != "set")):
                return True
    parts = re.split(r"&&|[|;\n]", command[:_MAX_COMMAND_CHARS])
    scripts = "\n".join(part for part in parts if not _SEARCH.match(part))
    return any(not found["name"] or is_telling(found["name"]) for found in _ENVIRONMENT.finditer(scripts))


# What may stand before a command: `then`, `FOO=1`, `timeout 5`, `command`.
_PREFIX = re.compile(
    r"\A(?>(?:(?:then|do|else|if|while|!|command|exec|builtin|nice|stdbuf|timeout(?: -\S+)*(?: \d\S*)?"
    r"|[A-Za-z_]\w*=\S*)\s+)*)"
)
_FLAG = re.compile(r"(?<=\s)(?:--?[A-Za-z][\w-]*(?:=\S+| (?!-)\S+)?)(?=\s)")
_SEARCH = re.compile(rf"\s*(?:{'|'.join(_SEARCHES)})\s")


def _hidden(item: Any, more: tuple[str, ...], *, room: int, name: str = "") -> Any:
    if isinstance(item, dict) and room:
        return {key: _hidden(inner, more, room=room - 1, name=str(key)) for key, inner in item.items()}
    if isinstance(item, list) and room:
        return [_hidden(inner, more, room=room - 1, name=name) for inner in item]
    if not isinstance(item, str):
        return item if isinstance(item, int | float) or item is None else MARK
    if not item or name in _KEPT or (_is_path(name, item) and (name in _PATHS or denied(item, more))):
        return item
    if name in _COMMANDS:
        return _shown(item, more)
    files = dict.fromkeys(path for path in _paths(item) if path)
    return " ".join((MARK, *files))  # a patch keeps the names of its files


def _shown(command: str, more: tuple[str, ...]) -> str:
    """Return a command that reads as it is; of one that writes, only the paths."""
    if not any(sign in command for sign in (">", "<<", "tee ", "sed ", "\n")):
        return command
    return " ".join((MARK, *dict.fromkeys(word for word in _words(command) if denied(word, more))))


# Commands that read files which they do not name; then lines that look like those of a .env file lose their values.
_UNNAMED = re.compile(r"\bxargs\b|\s-exec\b|\bwhile\s+read\b|\bfor\s+\w+\s+in\b")
_VARIABLE = re.compile(r"(?m)^(\s*+(?:export\s++)?[A-Za-z_]\w{2,}\s*+=\s*+)(?!\[redacted:)\S.*$")


def _each_output(item: Any, more: tuple[str, ...], *, unnamed: bool, room: int) -> Any:
    if isinstance(item, str):
        text = _without_lines(item, more)
        return _VARIABLE.sub(rf"\1{MARK}", text) if unnamed else text
    if isinstance(item, dict) and room:
        return {name: _each_output(inner, more, unnamed=unnamed, room=room - 1) for name, inner in item.items()}
    if isinstance(item, list) and room:
        return [_each_output(inner, more, unnamed=unnamed, room=room - 1) for inner in item]
    return item


# Above the lines of a file; a bare path is one where a numbered line follows.
_HEADING = re.compile(r"==> (?P<tail>.+) <==$|File: (?P<file>.+)|(?P<colon>.*/.*):$|(?!\d+[:-])(?P<bare>\S.*)")
_NUMBERED = re.compile(r"\d+[:-](?!\d\d\b)")  # and no time of day
_CONTEXT = re.compile(r"-\d+-")


def _without_lines(text: str, more: tuple[str, ...]) -> str:
    """Return a tool's output with a mark in place of the lines that it says are from a denied file.

    A search names the file before each line (`path:12:text`, `path-12-text`, `HEAD:path:text`), others above them all.
    """
    lines = text.split("\n")
    kept: list[str] = []
    hiding = ""  # the form of the heading, which ends at the next of its form
    for line, following in zip(lines, (*lines[1:], ""), strict=True):
        if not line and not hiding:
            kept.append(line)
            continue
        path = "" if hiding else _named_before(line, more)
        if path:
            kept.append(f"{path}: {MARK}")
            continue
        heading = _HEADING.match(line) if len(line) <= _MOST else None
        form = (heading.lastgroup or "") if heading else ""
        if form == "bare" and not _NUMBERED.match(following):
            form = ""
        if heading and form and hiding in ("", form):
            hiding = form if denied(heading[form], more) else ""
            kept.append(line)
        elif not hiding:
            kept.append(line)
        elif kept[-1] != MARK:
            kept.append(MARK)
    return "\n".join(kept)


def _named_before(line: str, more: tuple[str, ...]) -> str:
    """Return the denied file that a line of a search begins with, if any."""
    plain = _COLOUR.sub("", line[: 2 * _MOST]).replace("\0", ":")
    places = plain.split(":", 2)[:-1] if plain[:-1].count(":") or plain[-1:] != ":" else []  # `path:` is a heading
    places += [plain[: context.start()] for context in _CONTEXT.finditer(plain)]
    return next((each for each in places if not _PROSE.search(each) and denied(each, more)), "")


_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
_PROSE = re.compile(r"^\s|\s[^/]*$")  # a space, and no folder behind it: "cannot load .env"


def _without_patches(text: str, more: tuple[str, ...]) -> str:
    """Return a diff with a mark in place of the lines of denied files."""
    kept: list[str] = []
    hiding = False
    for line in text.split("\n"):
        if line.startswith("diff ") or (line.startswith("--- ") and not line.startswith("--- /dev/null")):
            hiding = False
        if line.startswith(("diff ", "--- ", "+++ ")):
            kept.append(line)
            if any(denied(word[2:] if word[:2] in ("a/", "b/") else word, more) for word in line.split()[1:]):
                hiding = True
        elif not hiding:
            kept.append(line)
        elif kept[-1] != MARK:
            kept.append(MARK)
    return "\n".join(kept)
