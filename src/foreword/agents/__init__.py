"""One adapter per coding agent: read its hook payloads, write its answers, and say what `install` writes for it.

An agent is its lines in `agents.txt` and a module of its name with the functions `parse`, `tool_use`, `setup`, and
`answer` where it does not accept what Claude Code does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from foreword.agents.setup import InstallTarget, Setup
from foreword.encoding import dumps, loads, read_words
from foreword.errors import BadPayload
from foreword.models import Cap


class HookInput(NamedTuple):
    """The content of a hook payload, the same for every agent; fields that an agent does not send are empty."""

    session: str = ""
    cwd: str = ""
    prompt: str = ""
    answer: str = ""  # the agent's last message, in a `stop` event
    source: str = ""  # of a session's start: startup, resume, clear, compact or fork
    model: str = ""
    id: str = ""  # the agent's own id of this event
    inner: bool = False  # from a sub-agent: neither captured nor answered
    files: tuple[str, ...] = ()  # that a tool reads or writes, as the agent writes them


class AgentAdapter(NamedTuple):
    """One coding agent: what its hooks send, what they accept, and what `install` writes."""

    name: str
    events: Mapping[str, str]  # the agent's event -> ours, one of `models.EVENTS`
    triggers: Mapping[str, str]  # the agent's event -> the trigger that may be answered there
    parse: Callable[[Mapping[str, Any]], HookInput]
    answer: Callable[[str, str], Mapping[str, Any]]  # event, context -> the object on stdout
    tool_use: Callable[[Mapping[str, Any]], dict[str, Any]]  # the fields of a `ToolUse`
    setup: Callable[[InstallTarget], Setup]  # how it is found on a machine, and what install writes
    follow_up: Callable[[str], Mapping[str, Any]] | None = None  # a request -> what lets it go on after it stopped
    form: str = "markdown"  # of its context, one of `models.FORMS`
    cap: Cap | None = None  # the longest answer that it takes whole; None where it takes all
    second_chance: bool = False  # its start may get lost: the block of the start comes again with the first prompt
    session_variables: tuple[str, ...] = ()  # of the environment, that hold its session in a tool's process
    project_variable: str = ""  # the one that holds the project's folder
    shell_variables: tuple[str, ...] = ()  # that it sets for the commands it runs, which then have its trust

    def encode_answer(self, event: str, context: str) -> bytes:
        """Return the bytes for stdout: one JSON object, or nothing at all."""
        return dumps(self.answer(event, context)).encode() if context else b""


FACTS = read_words(__file__, "agents.txt")
AGENTS = tuple(dict.fromkeys(fact.partition(".")[0] for fact in FACTS))
# What a tool does, by its name in lower case without dashes and underscores.
ACTS = {name: act for act, names in read_words(__file__, "tools.txt").items() for name in names}


@cache
def find(name: str) -> AgentAdapter:
    """Return the adapter of the agent called *name*; an unknown one raises BadPayload."""
    if name not in AGENTS:
        raise BadPayload(f"unknown agent {name!r}", hint=f"known agents: {', '.join(AGENTS)}")
    module = import_module(f"foreword.agents.{name.replace('-', '_')}")
    facts = {fact.partition(".")[2]: words for fact, words in FACTS.items() if fact.startswith(f"{name}.")}
    events, triggers = (dict(each.split("=") for each in facts[part]) for part in ("events", "triggers"))
    return AgentAdapter(
        name,
        events=events,
        triggers=triggers,
        parse=module.parse,
        answer=getattr(module, "answer", answer_claude_shape),
        tool_use=module.tool_use,
        setup=module.setup,
        follow_up=getattr(module, "follow_up", None),
        form=facts.get("form", ["markdown"])[0],
        cap=Cap(int(facts["cap"][0]), facts["cap"][1]) if "cap" in facts else None,
        second_chance="second_chance" in facts,
        session_variables=tuple(facts.get("session_variables", ())),
        project_variable=facts.get("project_variable", [""])[0],
        shell_variables=tuple(facts.get("shell_variables", ())),
    )


def calling_agent(environ: Mapping[str, str]) -> str:
    """Return the agent in whose shell a command runs; empty for a person."""
    named = (name for name in AGENTS if any(map(environ.get, find(name).shell_variables)))
    return next(named, "agent" if environ.get("AI_AGENT") else "")


def agent_of_client(client: str) -> str:
    """Return the agent behind an MCP client of this name; empty for one that we have no hooks for."""
    return next((agent for agent in AGENTS if client.lower().startswith(agent)), "")


# The fields in which tools get their file, over all agents; `path` is also where a search begins, which is a folder.
_FILE_FIELDS = ("file_path", "filePath", "notebook_path", "absolute_path", "target_file", "path")
_SEARCHES = ("pattern", "query", "regex", "dir_path")
_PATCH_FIELDS = ("command", "input", "patch", "patchText")
_PATCH_HEADS = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
_MOST_FILES = 50


def files_of(tool_input: Any) -> tuple[str, ...]:
    """Return the files that a tool's input names: in a field, in a list of edits, or in the headers of a patch."""
    if not isinstance(tool_input, dict):
        return _patched(tool_input) if isinstance(tool_input, str) else ()
    found = [] if any(name in tool_input for name in _SEARCHES) else [text_of(tool_input, *_FILE_FIELDS)]
    for name in ("files", "paths", "edits"):
        several = tool_input.get(name)
        for each in several[:_MOST_FILES] if isinstance(several, list) else ():
            found.append(each if isinstance(each, str) else text_of(dict_of(each), *_FILE_FIELDS))
    found += _patched(text_of(tool_input, *_PATCH_FIELDS))
    return tuple(dict.fromkeys(each for each in found if each))[:_MOST_FILES]


def _patched(text: str) -> tuple[str, ...]:
    if "*** Begin Patch" not in text:
        return ()
    heads = (line.strip() for line in text.split("\n") if line.startswith("*** "))
    return tuple(line.partition(": ")[2] for line in heads if line.startswith(_PATCH_HEADS))[:_MOST_FILES]


def exit_of(text: str, mark: str) -> int | None:
    """Return the number behind the last *mark* in a text."""
    words = text.rpartition(mark)[2][:12].replace(">", " ").split() if mark in text else []
    return int(words[0]) if words and words[0].lstrip("-").isdecimal() else None


def dict_of(item: Any) -> Mapping[str, Any]:
    """Return an object, also one that was sent as JSON text; else an empty one."""
    if isinstance(item, str) and item[:1] == "{":
        try:
            item = loads(item)
        except BadPayload:
            return {}
    return item if isinstance(item, dict) else {}


def text_of(payload: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that holds text; empty where none does."""
    for name in names:
        if isinstance(found := payload.get(name), str) and found:
            return found
    return ""


def read_tool_use(payload: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the fields of a `ToolUse` in the shape of Claude Code, which most agents share; *more* replaces some."""
    return {
        "tool": text_of(payload, "tool_name"),
        "input": dict_of(payload.get("tool_input")),
        "result": payload.get("tool_response"),
        **more,
    }


def read_input(payload: Mapping[str, Any], tool_input: Any, **names: str) -> HookInput:
    """Read a payload by the *names* of its fields, several with spaces between; the usual ones need not be named."""
    names = {"cwd": "cwd", "prompt": "prompt", "source": "source", "model": "model", **names}
    texts: dict[str, Any] = {field: text_of(payload, *name.split()) for field, name in names.items()}
    return HookInput(**texts, files=files_of(tool_input))


def parse_claude_shape(payload: Mapping[str, Any], *, id: str) -> HookInput:
    """Read a payload in the shape of Claude Code, which Codex shares; an event's id is in the first of these fields."""
    names = {"session": "session_id", "answer": "last_assistant_message", "id": id}
    inner = "agent_id" in payload or payload.get("hook_event_name") in ("SubagentStart", "SubagentStop")
    return read_input(payload, payload.get("tool_input"), **names)._replace(inner=inner)


def answer_claude_shape(event: str, text: str) -> Mapping[str, Any]:
    """Return what Claude Code accepts; without its hookEventName it drops the whole context silently."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
