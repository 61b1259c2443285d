"""Event -> deed: what happened, in words that are the same for every host. Transcripts are read into deeds too."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from foreword.hosts import files_of, text_of
from foreword.types import EMPTY
from foreword.values import value


@value
class Edit:
    """What a tool put in the place of what: whole texts of a file, or a piece of it; None where there was no file."""

    file: str
    before: str | None
    after: str | None
    whole: bool = False


@value
class Todo:
    """One entry of the agent's own list."""

    text: str
    done: bool = False


@value
class Deed:
    """One thing that happened in a session."""

    kind: str  # start, prompt, answer, tool, compaction or end
    at: float
    text: str = ""  # what was said: by the user in a prompt, by the agent in an answer
    source: str = ""  # of a start: startup, resume, clear, compact or fork
    act: str = ""  # of a tool: run, edit, read, search, fetch, plan, delegate or other
    tool: str = ""  # as the host calls it
    command: str = ""  # that was run
    files: tuple[str, ...] = ()  # relative to the project's root where they lie in it
    output: str = ""  # what came back, of whatever stream
    failed: bool | None = None  # None: the host does not tell
    edits: tuple[Edit, ...] = ()
    todos: tuple[Todo, ...] = ()  # the whole list as it stands now
    id: str = ""  # the same for the same deed, also when a transcript tells it again


@value
class Used:
    """A tool that was used, as its host or its transcript tells it."""

    tool: str
    given: Mapping[str, Any] = EMPTY  # what it was told to do
    output: str = ""  # what came back, as text
    result: Any = None  # what came back, where it says more than the text
    failed: bool | None = None


def tool_deed(used: Used, *, at: float, cwd: str, root: str, id: str = "") -> Deed:
    """What the use of a tool was, whatever its host calls it."""
    act = _act(used)
    return Deed(
        kind="tool",
        at=at,
        act=act,
        tool=used.tool,
        command=_command(used.given) if act == "run" else "",
        files=tuple(relative(file, cwd=cwd, root=root) for file in files_of(used.given)) if act in TOUCHING else (),
        output=used.output,
        failed=used.failed,
        edits=_edits(used, cwd=cwd, root=root) if act == "edit" else (),
        todos=_todos(used.given) if act == "plan" else (),
        id=id,
    )


def relative(file: str, *, cwd: str, root: str) -> str:
    """A path as the project knows it; one that lies elsewhere stays whole."""
    path = os.path.normpath(os.path.join(cwd or root or "/", file))
    top = root.rstrip("/") + "/"
    return path[len(top) :] if root and path.startswith(top) else path


TOUCHING = ("edit", "read")

# What tools are called, over all hosts, without case and dashes; whatever comes with MCP is `other`.
ACTS = {
    "run": "bash shell localshell execcommand runshellcommand runterminalcmd runinterminal terminal unifiedexec "
    "powershell",
    "edit": "edit multiedit write create applypatch patch replace strreplace strreplaceeditor notebookedit writefile "
    "editfile searchreplace insertedit deletefile createfile",
    "read": "read view readfile readmanyfiles openfile notebookread viewimage",
    "search": "grep glob search searchfilecontent ls list listdirectory listdir codebasesearch filesearch grepsearch "
    "toolsearch findfiles rg",
    "fetch": "webfetch websearch fetch googlewebsearch webrun browse",
    "plan": "todowrite todo todoread updateplan writetodos updatetodo managetodolist taskcreate taskupdate",
    "delegate": "task agent spawnagent subagent delegate",
}
_ACT_OF = {name: act for act, names in ACTS.items() for name in names.split()}


def _act(used: Used) -> str:
    name = "".join(letter for letter in used.tool.lower() if letter.isalnum())
    act = _ACT_OF.get(name, "other")
    return "edit" if act == "run" and "*** Begin Patch" in _command(used.given) else act


def _command(given: Mapping[str, Any]) -> str:
    for name in ("command", "cmd", "script", "input"):
        told = given.get(name)
        if isinstance(told, str) and told.strip():
            return told.strip()
        if isinstance(told, list) and told and all(isinstance(word, str) for word in told):
            # Codex runs ["bash", "-lc", "what was meant"].
            return told[2] if len(told) == 3 and told[1] in ("-c", "-lc") else " ".join(told)
    return ""


def _edits(used: Used, *, cwd: str, root: str) -> tuple[Edit, ...]:
    """What was replaced by what, as far as the tool's input and its structured result tell."""
    given, result = used.given, used.result if isinstance(used.result, dict) else {}
    names = [relative(file, cwd=cwd, root=root) for file in files_of(given)]
    if not names:
        return ()
    content = text_of(given, "content", "contents", "file_text", "new_contents")
    if content:
        original = result.get("originalFile")
        before = original if isinstance(original, str) else None
        return (Edit(file=names[0], before=before, after=content, whole=True),)
    several = given.get("edits")
    pieces = several if isinstance(several, list) else [given]
    found = []
    for piece in pieces:
        if isinstance(piece, dict):
            old = text_of(piece, "old_string", "oldString", "old_str", "old_text")
            new = text_of(piece, "new_string", "newString", "new_str", "new_text")
            if old or new:
                found.append(Edit(file=names[0], before=old, after=new))
    return tuple(found) or tuple(Edit(file=name, before="", after="") for name in names)


def _todos(given: Mapping[str, Any]) -> tuple[Todo, ...]:
    for name in ("todos", "plan", "items", "todoList"):
        told = given.get(name)
        if isinstance(told, list):
            return tuple(
                Todo(text=text, done=text_of(each, "status", "state") in ("completed", "done", "cancelled"))
                for each in told
                if isinstance(each, dict) and (text := text_of(each, "content", "step", "text", "title", "description"))
            )
    return ()
