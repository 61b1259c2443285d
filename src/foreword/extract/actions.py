"""Convert events to actions, which are the same for every agent, and group actions into turns.

A turn is one human prompt and everything until the next one. Transcripts are read into actions too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from foreword.agents import ACTS, dict_of, files_of, find, text_of
from foreword.agents.transcript_tail import codex_exit, copilot_answer
from foreword.capture.payload import CUT
from foreword.encoding import storable
from foreword.errors import BadPayload
from foreword.extract.authorship import Authorship, authorship_of
from foreword.extract.commands import commands_of
from foreword.models import Edit, Event
from foreword.redact import redact


@dataclass(frozen=True)
class Todo:
    """One entry of the agent's own list."""

    text: str
    done: bool = False
    id: str = ""  # of an entry that is updated alone; without ids, entries are the whole list


@dataclass(frozen=True)
class Choice:
    """A question of the agent that the user answered."""

    question: str
    answer: str  # the label of the chosen option, or the user's own words
    options: tuple[str, ...] = ()  # the labels that were offered
    about: str = ""  # what the agent wrote beside the chosen option


@dataclass(frozen=True)
class Action:
    """One thing that happened in a session."""

    kind: str  # start, prompt, answer, tool, compaction or end
    at: float
    text: str = ""  # a prompt as submitted, without our own blocks; an answer; the summary of a compaction
    source: str = ""  # of a start: startup, resume, clear, compact or fork
    act: str = ""  # of a tool: run, edit, read, search, fetch, plan, ask, propose, delegate or other
    tool: str = ""  # as the host calls it
    command: str = ""  # that was run
    files: tuple[str, ...] = ()  # relative to the project's root where they lie in it
    output: str = ""  # what came back, of whatever stream
    failed: bool | None = None  # None: the host does not tell
    edits: tuple[Edit, ...] = ()
    todos: tuple[Todo, ...] = ()  # as this tool reports them; `todos_after` returns the list after it
    choices: tuple[Choice, ...] = ()  # of `ask`: the questions that the user answered
    plan: str = ""  # of `propose`: the plan that the user accepted
    cwd: str = ""  # the shell's folder, as the agent reports it after the action
    id: str = ""  # the same for the same action, also when a transcript tells it again


@dataclass(frozen=True)
class ToolUse:
    """A tool that was used, as its host or its transcript tells it."""

    tool: str
    input: Mapping[str, Any] = field(default_factory=dict, hash=False)  # its arguments
    output: str = ""  # what came back, as text
    result: Any = None  # what came back, where it says more than the text
    failed: bool | None = None


@dataclass(frozen=True)
class Turn:
    """One human prompt and everything until the next one."""

    number: int  # from 0, in its session
    prompt: Action | None  # None before the first prompt of a session
    author: Authorship  # who wrote the prompt
    actions: tuple[Action, ...] = field(repr=False)  # after the prompt, in their order
    began: float = 0.0
    ended: float = 0.0

    @property
    def text(self) -> str:
        """Return the prompt as submitted."""
        return self.prompt.text if self.prompt else ""

    @property
    def typed(self) -> str:
        """Return the words that a person typed; empty where somebody or something else wrote the prompt."""
        return self.author.typed

    @property
    def answer(self) -> str:
        """Return the agent's final message."""
        return next((each.text for each in reversed(self.actions) if each.kind == "answer"), "")

    @property
    def summaries(self) -> tuple[str, ...]:
        """Return what the agent wrote when its context was compacted."""
        return tuple(each.text for each in self.actions if each.kind == "compaction" and each.text)

    @property
    def runs(self) -> tuple[Action, ...]:
        """Return the commands that were run."""
        return tuple(each for each in self.actions if each.kind == "tool" and each.act == "run")

    @property
    def edited(self) -> tuple[str, ...]:
        """Return the files that were edited, each once, in order."""
        return self._files("edit")

    @property
    def read(self) -> tuple[str, ...]:
        """Return the files that were read, each once, in order."""
        return self._files("read")

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Return the agent's questions that the user answered."""
        return tuple(choice for each in self.actions for choice in each.choices)

    def _files(self, act: str) -> tuple[str, ...]:
        done = (each for each in self.actions if each.act == act and not each.failed)
        return tuple(dict.fromkeys(file for each in done for file in each.files))


def action_of(event: Event, *, root: str) -> Action | None:
    """Return the action of an event; None for events without one and for those of sub-agents."""
    kind = KINDS.get(event.kind)
    try:
        host = find(event.host)
    except BadPayload:
        return None
    call = host.parse(event.payload)
    if kind is None or call.inner:
        return None
    # Times are ids for some hosts, and two actions may share one.
    id = call.id if call.id and kind in ("prompt", "tool") and event.host not in TIMED else event.key
    if kind == "tool":
        return _used(event, ToolUse(**host.tool_use(event.payload)), root=root, id=id)
    text = source = ""
    if kind == "prompt":
        text = without_ours(call.prompt, mark=LEFT_OUT).rstrip().lstrip("\r\n")
    elif kind == "answer":
        text = (call.answer or _elsewhere(event)).strip()
    elif kind == "compaction":
        summary = text_of(event.payload, "compact_summary").rpartition("<summary>")[2]
        text = summary.partition("</summary>")[0].strip()
    elif kind == "start":
        source = call.source if call.source in STARTS else STARTS[0]
    says_nothing = kind in ("prompt", "answer") and not text
    return None if says_nothing else Action(kind, event.at, text=text, source=source, id=id, cwd=event.cwd)


def turns_of(actions: Iterable[Action]) -> tuple[Turn, ...]:
    """Split the actions of one session at its prompts."""
    groups: list[tuple[Action | None, list[Action]]] = [(None, [])]
    for action in actions:
        if action.kind == "prompt":
            groups.append((action, []))
        else:
            groups[-1][1].append(action)
    if not any(each.kind in ("tool", "answer") for each in groups[0][1]):
        del groups[0]
    turns: list[Turn] = []
    earlier: list[str] = []
    for number, (prompt, some) in enumerate(groups):
        author = authorship_of(prompt.text if prompt else "", earlier=earlier[-EARLIER:])
        times = [each.at for each in (*([prompt] if prompt else []), *some)] or [0.0]
        turns.append(Turn(number, prompt, author, tuple(some), began=min(times), ended=max(times)))
        earlier += [text for each in some if (text := each.text or each.output)]
    return tuple(turns)


def tool_action(used: ToolUse, *, at: float, cwd: str, root: str, id: str = "") -> Action:
    """Return the action of a tool use, whatever the agent calls the tool."""
    act = _act(used)
    return Action(
        kind="tool",
        at=at,
        act=act,
        tool=used.tool,
        command=_command(used.input) if act == "run" else "",
        files=tuple(relative(file, cwd=cwd, root=root) for file in files_of(used.input)) if act in TOUCHING else (),
        output="" if is_ours(used) else _output(used, act),
        failed=used.failed,
        edits=_edits(used, cwd=cwd, root=root) if act == "edit" and not used.failed else (),
        todos=_todos(used) if act == "plan" and not used.failed else (),
        choices=_choices(used) if act == "ask" and not used.failed else (),
        plan=text_of(used.input, "plan") if act == "propose" and not used.failed else "",
        cwd=cwd,
        id=id,
    )


def without_our_words(payload: Mapping[str, Any], *, host: str, kind: str) -> Mapping[str, Any]:
    """Return a payload as it is kept: without our own text, in a prompt or from a tool of ours."""
    if kind in ("tool", "tool_failure"):
        if not is_ours(ToolUse(**find(host).tool_use(payload))):
            return payload
        return {name: _mapped(each, lambda _: "") if name in RESULTS else each for name, each in payload.items()}
    if kind not in ("prompt", "stop", "compaction"):
        return payload
    # Gemini escapes what it puts into such a block, so that there it ends where it seems to.
    mark = LEFT_OUT if kind == "prompt" and host != "gemini" else ""
    ours: Mapping[str, Any] = _mapped(payload, lambda text: without_ours(text, mark=mark))
    return ours


def todos_after(known: tuple[Todo, ...], update: tuple[Todo, ...]) -> tuple[Todo, ...]:
    """Return the agent's list after an *update* of what was *known*: the whole list, or single entries by their ids."""
    if not any(todo.id for todo in update):
        return update
    listed = {todo.id: todo for todo in known}
    for todo in update:
        before = listed.get(todo.id)
        listed[todo.id] = replace(todo, text=todo.text or before.text) if before else todo
    return tuple(todo for todo in listed.values() if todo.text)


def own_words(text: str) -> str:
    """Return a prompt of a transcript without our own blocks; empty where the client wrote it."""
    text = without_ours(text, mark=LEFT_OUT)
    return "" if authorship_of(text).author == "machine" else text.strip()


def without_ours(text: str, *, mark: str = "") -> str:
    """Return a text without the blocks that we or other hooks put there; one that does not end goes to the end.

    In a prompt a *mark* stays in their place: anybody can paste such a block, and what stands beside it makes no rule.
    """
    whole, blocks = _OURS.subn(mark, text)
    return whole if not blocks or whole.replace(mark, "").strip() else ""


def is_ours(used: ToolUse) -> bool:
    """Return whether a tool is ours: its output, remembered again, would confirm itself."""
    if OUR_TOOL.search(used.tool):
        return True
    command = _command(used.input) if _act(used) == "run" else ""
    ours = "foreword" in command and (each.program for each in commands_of(command))
    return any(os.path.basename(program) == "foreword" for program in ours or ())


def text_of_result(result: Any) -> str:
    """Return the text in the result of a tool, whatever its shape."""
    if isinstance(result, str):
        return result
    if isinstance(result, list):
        return "\n".join(filter(None, map(text_of_result, result[:MOST_PARTS])))
    if not isinstance(result, dict):
        return ""
    streams = "\n".join(filter(None, (text_of(result, "stdout"), text_of(result, "stderr"))))
    names = ("output", "content", "text", "result", "llmContent", "file", "error", "message")
    return streams or next(filter(None, (text_of_result(result.get(name)) for name in names)), "")


def relative(file: str, *, cwd: str, root: str) -> str:
    """Return a path as the project knows it; one that lies elsewhere stays whole."""
    path = os.path.normpath(os.path.join(cwd or root or "/", file))
    top = root.rstrip("/") + "/"
    return path[len(top) :] if root and path.startswith(top) else path


EARLIER = 40  # texts of the agent and of tools that a prompt is compared with, to tell what was pasted
KINDS = {
    "session_start": "start", "prompt": "prompt", "tool": "tool", "tool_failure": "tool", "stop": "answer",
    "compaction": "compaction", "session_end": "end",
}  # fmt: skip
STARTS = ("startup", "resume", "clear", "compact", "fork")
TIMED = ("gemini", "copilot")
TOUCHING = ("edit", "read")
# Where hosts put what a tool gave back.
RESULTS = ("tool_response", "toolResult", "tool_result", "tool_output", "output", "error", "error_message", CUT)
MOST_PARTS = 200  # of a result that comes in parts

_OURS = re.compile(
    r"(?:^[ \t]*|(?<=[->\]]))(?:--- foreword: .*?(?:--- end foreword ---|\Z)|\[foreword\] .*?(?:\[end foreword\]|\Z)"
    r"|\[foreword, history\] [^\n]*\n?)"  # a hint, beside what a tool gave back
    r"|<foreword_context\b.*?(?:</foreword_context>|\Z)"
    r"|<hook_context>.*?(?:</hook_context>|\Z)",  # Gemini's, around what any hook said
    re.MULTILINE | re.DOTALL,
)
LEFT_OUT = "[…]\n"
NON_USER_SOURCES = ("system", "loop_wakeup", "schedule_wakeup", "poll_event")  # sources of prompts that no user wrote
OUR_TOOL = re.compile(
    r"(?:^|[^a-z])(?:foreword|memory_(?:search|get|timeline|context|remember|revise|forget|handoff)$)", re.IGNORECASE
)


def _used(event: Event, used: ToolUse, *, root: str, id: str) -> Action:
    """Return the action of a tool event; what the payload lacks is read from the agent's transcript."""
    failed = used.failed
    if event.kind == "tool" and failed is None and event.host == "codex":
        ended = codex_exit(text_of(event.payload, "transcript_path"), text_of(event.payload, "tool_use_id"))
        failed = bool(ended) if ended is not None else None
    action = tool_action(replace(used, failed=failed), at=event.at, cwd=event.cwd, root=root, id=id)
    if isinstance(cut := event.payload.get(CUT), dict) and not is_ours(used):
        # The end of what was too long to be read whole.
        action = replace(action, output=f"{action.output}\n[...]\n{text_of(cut, 'tail')}")
    return action


def _elsewhere(event: Event) -> str:
    """Return the agent's last answer from its transcript, where the payload only names that file; not redacted."""
    if event.host != "copilot":
        return ""
    answer = copilot_answer(text_of(event.payload, "transcriptPath", "transcript_path"), before=event.at)
    return without_ours(redact(storable(answer)))


def _mapped(item: Any, change: Callable[[str], str]) -> Any:
    """Return *item* with *change* applied to every text in it; keys and numbers stay."""
    if isinstance(item, str):
        return change(item)
    if isinstance(item, dict):
        return {name: _mapped(each, change) for name, each in item.items()}
    return [_mapped(each, change) for each in item] if isinstance(item, list) else item


def _output(used: ToolUse, act: str) -> str:
    """Return the output of a tool; empty for an edit or a plan that succeeded, whose input says it already."""
    if act in ("edit", "plan") and not used.failed:
        return ""
    output = used.output or text_of_result(used.result)
    return without_ours(output) if "[foreword, history] " in output else output


def _act(used: ToolUse) -> str:
    name = "".join(letter for letter in used.tool.lower() if letter.isalnum())
    act = ACTS.get(name, "other")
    return "edit" if act == "run" and "*** Begin Patch" in _command(used.input) else act


def _command(arguments: Mapping[str, Any]) -> str:
    for name in ("command", "cmd", "script", "input"):
        command = arguments.get(name)
        if isinstance(command, str) and command.strip():
            return command.strip()
        if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
            # Codex runs ["bash", "-lc", "what was meant"].
            return command[2] if len(command) == 3 and command[1] in ("-c", "-lc") else " ".join(command)
    return ""


def _edits(used: ToolUse, *, cwd: str, root: str) -> tuple[Edit, ...]:
    """Return the edits of a tool use, from its input and its structured result."""
    arguments = used.input
    patch = text_of(arguments, "command", "input", "patch", "patchText", "patch_text")
    if "*** Begin Patch" in patch:
        return tuple(_patched(patch, name=lambda file: relative(file, cwd=cwd, root=root)))
    names = [relative(file, cwd=cwd, root=root) for file in files_of(arguments)]
    if not names:
        return ()
    whole = _whole(used)
    if whole is not None:
        return (Edit(file=names[0], before=whole[0], after=whole[1], whole=True),)
    several = arguments.get("edits")
    pieces = several if isinstance(several, list) else [arguments]
    sides = [(text_of(each, *_OLD), text_of(each, *_NEW)) for each in pieces if isinstance(each, dict)]
    found = tuple(Edit(names[0], old, new) for old, new in sides if old or new)
    return found or tuple(Edit(name, "", "") for name in names)


def _whole(used: ToolUse) -> tuple[str | None, str] | None:
    """Return the whole file before and after an edit; None where the agent does not send both."""
    arguments, result = used.input, dict_of(used.result)
    places = [result, *(dict_of(result.get(name)) for name in ("returnDisplay", "filediff"))]
    places.append(dict_of(dict_of(result.get("metadata")).get("filediff")))
    before = next((text for each in places if (text := text_of(each, *_BEFORE))), None)
    after = next((text for each in places if (text := text_of(each, *_AFTER))), "")
    content = text_of(arguments, "content", "contents", "file_text", "new_contents")
    old, new = text_of(arguments, "old_string", "oldString"), arguments.get("new_string", arguments.get("newString"))
    if not after and not content and before and old and isinstance(new, str):
        after = before.replace(old, new, -1 if arguments.get("replace_all") or arguments.get("replaceAll") else 1)
    after = after or content
    if not after or any(WAS_CUT.search(text) for text in (before or "", after)):
        return (before, content) if content and not WAS_CUT.search(before or "") else None
    return before, after


_OLD = ("old_string", "oldString", "old_str", "old_text")
_NEW = ("new_string", "newString", "new_str", "new_text", "insert_text")
_BEFORE = ("originalFile", "originalContent", "before")
_AFTER = ("newContent", "after")
WAS_CUT = re.compile(r"\n\[\d+ characters left out\]\n")  # as `remember` caps a text


def _patched(patch: str, *, name: Callable[[str], str]) -> Iterator[Edit]:
    """Yield the edits of a patch in the form that Codex, OpenCode and Copilot take: one for a file or a hunk."""
    parts = PATCHED_FILE.split(patch.partition("\n*** End Patch")[0] + "\n")
    for what, file, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        moved = PATCH_MOVED.search(body)
        into = name((moved[1] if moved else file).strip())
        if what == "Delete":
            yield Edit(file=into, before="", after=None)
        elif what == "Add":
            yield Edit(file=into, before=None, after=_side(body, "+"), whole=True)
        else:
            for hunk in PATCH_HUNK.split(body):
                before, after = _side(hunk, "- "), _side(hunk, "+ ")
                if before or after:
                    yield Edit(file=into, before=before, after=after)


def _side(hunk: str, signs: str) -> str:
    return "\n".join(line[1:] for line in hunk.split("\n") if line and line[0] in signs)


PATCHED_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)\n", re.MULTILINE)
PATCH_MOVED = re.compile(r"^\*\*\* Move to: (.+)", re.MULTILINE)
PATCH_HUNK = re.compile(r"^@@.*", re.MULTILINE)


def _todos(used: ToolUse) -> tuple[Todo, ...]:
    result = dict_of(used.result)
    task, id = result.get("task"), text_of(used.input, "taskId")
    if isinstance(task, dict):  # Claude Code's TaskCreate
        return _listed([task])
    if id:  # and its TaskUpdate, which tells what it changed
        state, text = text_of(used.input, "status"), text_of(used.input, "subject")
        return (Todo(text=text, done=state in DONE, id=id),) if state else ()
    fields = [(name, source.get(name)) for source in (used.input, result) for name in _TODO_LISTS]
    return next((_listed(each, ids=name == "tasks") for name, each in fields if isinstance(each, list)), ())


def _choices(used: ToolUse) -> tuple[Choice, ...]:
    """Return the agent's questions with the user's answers, where the result holds both."""
    result = dict_of(used.result)
    questions, answers = result.get("questions") or used.input.get("questions"), dict_of(result.get("answers"))
    found = []
    for each in map(dict_of, questions if isinstance(questions, list) else ()):
        question = text_of(each, "question")
        answer = text_of(answers, question).rstrip().lstrip("\r\n") if question else ""
        options = [option for option in each.get("options") or () if isinstance(option, dict)]
        labels = {text_of(one, "label"): text_of(one, "description") for one in options}
        if answer.strip():
            found.append(Choice(question, answer, tuple(labels), labels.get(answer, "")))
    return tuple(found)


def _listed(several: list[Any], *, ids: bool = True) -> tuple[Todo, ...]:
    entries = [(text_of(each, *_TODO_FIELDS), each) for each in several if isinstance(each, dict)]
    return tuple(
        Todo(text, done=text_of(each, "status", "state") in DONE, id=text_of(each, "id") if ids else "")
        for text, each in entries
        if text
    )


_TODO_LISTS = ("todos", "plan", "items", "todoList", "tasks")
_TODO_FIELDS = ("content", "step", "text", "title", "subject", "description")
DONE = ("completed", "done", "cancelled", "canceled", "deleted")
