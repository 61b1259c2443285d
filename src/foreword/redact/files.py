"""Take the contents of files that hold secrets out of a payload: what tools read from them or wrote there.

A tool's call is a part of a payload that holds a tool's input. Where one names such a file, or runs a command that
prints secrets, every text in that part becomes a mark but for names, ids and the path: an unknown field is hidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

MARK = "[redacted:path]"
# Patterns, in which `*` stands for any part of a name, and at the end of a folder for all that lies in it.
_FILES = """
    .env *.env .env.* .envrc .netrc _netrc .pgpass .my.cnf .npmrc .pypirc .git-credentials .htpasswd .dockercfg
    .vault-token credentials.json *.credentials.json credentials.tfrc.json rclone.conf secrets.* *.pem *.key *.ppk *.p12
    *.pfx *.jks *.keystore *.kdbx *.tfstate *.ovpn id_rsa* id_dsa* id_ecdsa* id_ed25519* .ssh/* .gnupg/* .azure/*
    .config/gcloud/* .password-store/* .aws/credentials .aws/sso/* .kube/config .docker/config.json .gem/credentials
    .cargo/credentials* .config/gh/hosts.yml .codex/auth.json .composer/auth.json proc/*/environ service-account*.json
    service_account*.json *-service-account.json client_secret*.json
""".split()  # noqa: SIM905 - data, read as text
_SAMPLES = (".example", ".sample", ".template", ".dist", ".schema", ".pub", "known_hosts")  # made to be shown
# Commands that print secrets, each as the words it begins with.
_PRINTS = tuple(
    """printenv, export -p, declare -x, declare -p, typeset -x, aws configure, aws sts, aws secretsmanager,
    aws ssm get-parameter, gcloud auth print, gcloud secrets versions access, az account get-access-token,
    az keyvault secret, az storage account keys, gh auth token, gh auth status --show-token, glab auth status,
    kubectl get secret, kubectl describe secret, kubectl config view --raw, oc whoami -t, vault read, vault kv get,
    vault print token, vault token, op read, op item get, pass show, security find-, heroku config, doppler secrets,
    git credential, gpg --export-secret, docker compose config, helm get, npm config get, secret-tool lookup,
    terraform output, terraform show, stripe config, bw get, sops -d""".replace("\n   ", "").split(", ")
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
_DEEPEST = 20


def without_denied(item: Any, *, more: Sequence[str] = (), room: int = _DEEPEST) -> Any:
    """Return the payload with a mark for every text from or for a denied file; *more* are paths too."""
    return _without(item, tuple(each.lower() for each in more), room=room)


def _without(item: Any, more: tuple[str, ...], *, room: int) -> Any:
    if not room:
        return item
    if isinstance(item, dict):
        if any(name in item for name in _INPUTS) and _touches_secrets(item, more):
            return _hidden(item, more, room=room)
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
    return any(denied(path, more) for path in _paths(call)) or any(
        _prints(command) or any(denied(word, more) for word in _words(command)) for command in _commands(call)
    )


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
    return ("path" in low or "file" in low or "uri" in low) and len(text) <= _MOST and "\n" not in text


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
    for part in re.split(r"&&|[|;\n`(\"']", command):
        words = part.replace("sudo ", "").split(">")[0].split()
        start = " ".join(words[:5])
        if start in ("env", "set", "env -0") or start.startswith(_PRINTS) or "-lc env" in start:
            return True
    return False


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
