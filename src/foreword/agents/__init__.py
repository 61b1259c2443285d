"""Host payload -> what it told; context -> exactly the bytes that host accepts. One host a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from foreword.encoding import dumps, loads
from foreword.errors import BadPayload
from foreword.models import Cap

if TYPE_CHECKING:  # 5 ms that only `install` needs
    from foreword.agents.setup import Place, Setup


@dataclass(frozen=True)
class HookInput:
    """What a payload says, in our words; empty where the host does not tell."""

    session: str = ""
    cwd: str = ""
    prompt: str = ""
    answer: str = ""  # the agent's last message, where its stop tells it
    source: str = ""
    model: str = ""
    id: str = ""  # the host's own id of this event
    inner: bool = False  # from a sub-agent: neither captured nor answered
    files: tuple[str, ...] = ()  # that a tool was told to read or write, as the host writes them


@dataclass(frozen=True)
class AgentAdapter:
    """What we know of one host."""

    name: str
    events: Mapping[str, str]  # the host's event -> ours
    triggers: Mapping[str, str]  # the host's event -> the moment that may be answered there
    read: Callable[[Mapping[str, Any]], HookInput]
    answer: Callable[[str, str], Mapping[str, Any]]  # event, text -> the object on stdout
    used: Callable[[Mapping[str, Any]], dict[str, Any]] = (
        lambda _: {}
    )  # a tool's use -> the fields of `actions.ToolUse`
    ask: Callable[[str], Mapping[str, Any]] | None = None  # a request -> what makes it go on after it stopped
    setup: Callable[[Place], Setup | None] = lambda _: None  # how it is found on a machine, and wired to us
    form: str = "markdown"  # of what it is given
    cap: Cap | None = None  # what it takes whole in one output; None where it takes all
    second_chance: bool = False  # its start may be lost: what it said comes again with the first prompt
    variables: tuple[str, ...] = ()  # of the environment, in which it tells its session to a tool's process
    project_variable: str = ""  # and the one in which it tells which project it works for

    def spoken(self, event: str, text: str) -> bytes:
        """The bytes for stdout: one JSON object, or nothing at all."""
        return dumps(self.answer(event, text)).encode() if text else b""


# Each agent's name with the module beside this one.
FILES = {
    "claude-code": "claude_code",
    "codex": "codex",
    "copilot": "copilot",
    "cursor": "cursor",
    "gemini": "gemini",
    "opencode": "opencode",
}


def find(name: str) -> AgentAdapter:
    """The host of that name; an unknown one is told so."""
    file = name.replace("-", "_") if name.replace("-", "").isalnum() else "-"  # it becomes part of a module's name
    try:
        host: AgentAdapter = import_module(f"foreword.agents.{file}").ADAPTER
    except ModuleNotFoundError:
        raise BadPayload(f"unknown host {name!r}", hint=f"known hosts: {', '.join(FILES)}") from None
    return host


def cap_of(name: str, *, raised: Mapping[str, int]) -> Cap | None:
    """What a host takes whole in one output, or so much as its user has *raised* that to; None where nothing is cut."""
    cap = find(name).cap if name else None
    return replace(cap, most=raised[name]) if cap and name in raised else cap


def agent_of_client(client: str) -> str:
    """The host that an MCP client of this name is; empty for one that we have no hooks for."""
    return next((host for host in FILES if client.lower().startswith(host)), "")


# Where tools are told their file, over all hosts; `path` is also where a search begins, which is a folder.
_FILE_FIELDS = ("file_path", "filePath", "notebook_path", "absolute_path", "target_file", "path")
_SEARCHES = ("pattern", "query", "regex", "dir_path")
_PATCH_FIELDS = ("command", "input", "patch", "patchText")
_PATCH_HEADS = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
_MOST_FILES = 50


def files_of(given: Any) -> tuple[str, ...]:
    """The files that the input of a tool names: in a field, in a list of edits, or in the headers of a patch."""
    if not isinstance(given, dict):
        return _patched(given) if isinstance(given, str) else ()
    found = [] if any(name in given for name in _SEARCHES) else [text_of(given, *_FILE_FIELDS)]
    for several in (given.get("files"), given.get("paths"), given.get("edits")):
        for each in several[:_MOST_FILES] if isinstance(several, list) else ():
            found.append(
                each if isinstance(each, str) else text_of(each, *_FILE_FIELDS) if isinstance(each, dict) else ""
            )
    found += _patched(text_of(given, *_PATCH_FIELDS))
    return tuple(dict.fromkeys(each for each in found if each))[:_MOST_FILES]


def _patched(text: str) -> tuple[str, ...]:
    if "*** Begin Patch" not in text:
        return ()
    heads = (line.strip() for line in text.split("\n") if line.startswith("*** "))
    return tuple(line.partition(": ")[2] for line in heads if line.startswith(_PATCH_HEADS))[:_MOST_FILES]


def exit_of(text: str, mark: str) -> int | None:
    """The number behind the last *mark* in a text."""
    said = text.rpartition(mark)[2][:12].replace(">", " ").split() if mark in text else []
    return int(said[0]) if said and said[0].lstrip("-").isdecimal() else None


def dict_of(item: Any) -> Mapping[str, Any]:
    """An object, also one that was sent as JSON text; else an empty one."""
    if isinstance(item, str) and item[:1] == "{":
        try:
            item = loads(item)
        except BadPayload:
            return {}
    return item if isinstance(item, dict) else {}


def text_of(payload: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that holds text."""
    for name in names:
        if isinstance(found := payload.get(name), str) and found:
            return found
    return ""
