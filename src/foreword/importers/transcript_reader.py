"""Read a transcript of Claude Code or Codex as actions, line by line and in bounded memory; redact every line."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import IO, Any

from foreword.agents import text_of
from foreword.encoding import storable
from foreword.extract.actions import UNSAID, Action, Todo, ToolUse, own_words, tool_action
from foreword.importers.base import timestamp
from foreword.redact import each_text, leaves_open, redact, redact_all

TEXT = 64 * 1024  # characters kept of a message or an output, head and tail; a live event keeps as many
OPEN_CALLS = 500  # tool uses that wait for their result; parallel ones are a few, and those of a crash stay forever
HEAD_LINES, HEAD_BYTES = 200, 2_000_000  # what a look reads of the beginning; a first line may hold all instructions
TAIL = 64 * 1024  # bytes of the end that a look reads for the last time


LONG = 256 * 1024  # bytes of a line; the strings of a longer one are cut
MOST_LINE = 32 * 1024 * 1024  # bytes; a longer line is left out
HALF = 64 * 1024  # characters that stay of either end of a cut string: whole source files, frames of a long output
LEFT_OUT = " characters left out]\n"  # ends the note in the middle of a cut string


@dataclass(frozen=True)
class Line:
    """One line, redacted; `cwd` is its folder as it is named, by which a project is found."""

    entry: Mapping[str, Any]
    cwd: str = ""


@dataclass(frozen=True)
class Peek:
    """Whose session a transcript holds."""

    session: str
    cwd: str = ""  # as it is called
    started: float = 0.0
    last: float = 0.0
    prompt: str = ""  # the first
    parent: str = ""  # the session that it was forked from, whose lines it repeats
    first: str = ""  # the id of its first line; a copy has the same
    remote: str = ""  # of its git repository
    inner: bool = False  # a sub-agent's


def actions(
    path: str,
    *,
    host: str,
    root: str,
    here: Callable[[str], bool] = lambda _cwd: True,
    seen: Collection[str] = (),
    spoiled: Callable[[], None] = lambda: None,
) -> Iterator[Action]:
    """Yield the actions of a session between a start and an end; nothing where there are none.

    Actions in folders that are not *here*, and those *seen* in another file, are left out.
    """
    reader = _Claude(root) if host == "claude-code" else _Codex(root)
    known = set(seen)
    begun = False
    last = 0.0
    with open(path, "rb") as file:
        for action in _through(reader, read_lines(file, keep=reader.keep, spoiled=spoiled), here=here):
            if action.id and action.id in known:
                continue
            known.add(action.id)
            if not begun:
                yield Action(kind="start", at=action.at, source="fork" if seen else "startup")
            begun, last = True, max(last, action.at)
            yield action
    if begun:
        yield Action(kind="end", at=last)


def peek(path: str, *, host: str) -> Peek | None:
    """Return whose session a file holds, from a bounded part of it; None where no line names a folder."""
    reader = _Claude("") if host == "claude-code" else _Codex("")
    stem = os.path.basename(path).removesuffix(".jsonl")
    found = Peek(session=stem)
    with open(path, "rb") as file:
        for number, line in enumerate(read_lines(file, keep=reader.keep, most=HEAD_BYTES)):
            found = reader.peek_line(found, line)
            if (found.cwd and found.prompt and found.first) or number > HEAD_LINES:
                break
        last = _last_time(file)
        about = os.fstat(file.fileno())
    if not found.cwd:
        return None
    return replace(found, last=max(found.started, last or about.st_mtime), prompt=found.prompt[:TEXT])


def _through(reader: _Claude | _Codex, lines: Iterator[Line], *, here: Callable[[str], bool]) -> Iterator[Action]:
    for line in lines:
        actions = list(reader.actions(line))  # also of a line from elsewhere: its call may have been made here
        if not reader.cwd or here(reader.cwd):
            yield from actions
    if not reader.cwd or here(reader.cwd):
        yield from reader.unanswered()


def read_lines(
    file: IO[bytes],
    *,
    keep: Callable[[Any], dict[str, Any] | None],
    spoiled: Callable[[], None] = lambda: None,
    most: int = 0,
) -> Iterator[Line]:
    """Yield what *keep* leaves of each line, redacted; read no further than *most* bytes, where it is given.

    A line that is no JSON object, or longer than MOST_LINE, is *spoiled*.
    """
    while (not most or file.tell() < most) and (raw := file.readline(MOST_LINE)):
        if raw.isspace():
            continue
        if len(raw) == MOST_LINE and not raw.endswith(b"\n"):
            while (rest := file.readline(LONG)) and not rest.endswith(b"\n"):
                pass
            spoiled()
            continue
        try:
            found = json.loads(raw.decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            spoiled()
            continue
        kept = keep(found)
        if kept is not None:
            payload = found.get("payload")
            cwd = found.get("cwd") or (payload.get("cwd") if isinstance(payload, dict) else "")
            if len(raw) > LONG:
                kept = each_text(kept, _cut)
            if b"\\ud" in raw.lower():  # a lone surrogate cannot be stored
                kept = each_text(kept, storable)
            yield Line(entry=redact_all(kept), cwd=storable(cwd) if isinstance(cwd, str) else "")


def is_whole(text: str) -> bool:
    """Return whether nothing was cut out of *text*."""
    return LEFT_OUT not in text


def _cut(text: str) -> str:
    """Keep both ends of a long text, without half a secret at the edges or the rest of something private."""
    if len(text) <= 2 * HALF:
        return text
    hidden = leaves_open(text[:-HALF])
    tail = "<private>" if hidden else redact(text[-HALF:], cut="tail")
    return f"{redact(text[:HALF], cut='head')}\n[{len(text) - 2 * HALF}{LEFT_OUT}{tail}"


def _last_time(file: Any) -> float:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - TAIL))
    end = file.read(TAIL)
    # Inside of a string a quote has a backslash before it, so that this is a line's own field.
    found = re.findall(rb'(?<!\\)"timestamp":\s?"([0-9TZ:.+-]{10,40})"', end)
    return max((timestamp(each.decode(), default=0.0) for each in found), default=0.0)


def _capped(text: str) -> str:
    half = TEXT // 2
    if len(text) <= TEXT:
        return text
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


def _texts(content: Any) -> list[str]:
    """Return the texts of a message, which is a text or a list of blocks."""
    if isinstance(content, str):
        return [content]
    found = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            found.append(block)
        elif isinstance(block, dict) and isinstance(text := block.get("text"), str):
            found.append(text)
    return found


def _without_cuts(item: Any) -> Any:
    """Remove texts that were cut: half a file must not look like all of it."""
    if isinstance(item, dict):
        return {name: _without_cuts(each) for name, each in item.items() if _is_uncut(each)}
    if isinstance(item, list):
        return [_without_cuts(each) for each in item if _is_uncut(each)]
    return item


def _is_uncut(item: Any) -> bool:
    return not isinstance(item, str) or is_whole(item)


def _unique_id(id: str, ended: Counter[str]) -> str:
    """Return an id of a call that is new: some local models count from one in every answer."""
    ended[id] += 1
    return id if ended[id] == 1 else f"{id}/{ended[id]}"


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


# ---- Claude Code: a line for each block of a message; results are lines of the user

REJECTED = "The user doesn't want to proceed with this tool use"
_ADVICE = ("the user said:\n", "provided the following reason for the rejection:")
_EXIT = re.compile(r"Exit code:? (-?[0-9]+)")
_HEAVY = ("file", "stdout", "content", "base64")  # of a structured result: what the text of the result says as well


class _Claude:
    """Turn lines into actions; remember which calls wait for their result."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.cwd = ""
        self.at = 0.0
        self.uuids: set[str] = set()
        self.prompts: set[str] = set()
        self.calls: dict[str, tuple[str, dict[str, Any], str]] = {}  # id -> tool, arguments, folder
        self.ended: Counter[str] = Counter()
        self.tasks: dict[str, Todo] = {}
        self.compacted = False

    def keep(self, raw: dict[str, Any]) -> dict[str, Any] | None:
        """Return the parts of a line that matter; None for sub-agents, the client's own remarks and bookkeeping."""
        kind = raw.get("type")
        if raw.get("isSidechain") or raw.get("isMeta") or raw.get("isApiErrorMessage"):
            return None
        names = {name: raw.get(name) for name in ("type", "uuid", "timestamp", "sessionId")}
        if kind == "system" and raw.get("subtype") == "compact_boundary":
            return names | {"compacted": True}
        message = raw.get("message")
        if kind not in ("user", "assistant") or not isinstance(message, dict) or message.get("model") == "<synthetic>":
            return None
        if raw.get("isCompactSummary"):
            return names | {"compacted": True}
        result = raw.get("toolUseResult")
        fork = raw.get("forkedFrom")
        return names | {
            "content": _blocks(message.get("content")),
            "promptId": raw.get("promptId"),
            "source": raw.get("promptSource"),
            "fork": fork.get("sessionId") if isinstance(fork, dict) else None,
            "result": {name: each for name, each in result.items() if name not in _HEAVY}
            if isinstance(result, dict)
            else None,
        }

    def peek_line(self, found: Peek, line: Line) -> Peek:
        entry = line.entry
        at = timestamp(entry["timestamp"], default=0.0)
        prompt = "" if entry["type"] != "user" else own_words("\n".join(_texts(entry.get("content"))))
        wrote = text_of(entry, "fork") or text_of(entry, "sessionId")
        return replace(
            found,
            cwd=found.cwd or line.cwd,
            started=found.started or at,
            prompt=found.prompt or prompt,
            first=found.first or text_of(entry, "uuid"),
            parent=found.parent or (wrote if wrote != found.session else ""),
        )

    def actions(self, line: Line) -> Iterator[Action]:
        entry = line.entry
        uuid = text_of(entry, "uuid")
        if uuid and uuid in self.uuids:
            return
        self.uuids.add(uuid)
        self.cwd = line.cwd or self.cwd
        self.at = timestamp(entry["timestamp"], default=self.at)
        if "compacted" in entry:
            if not self.compacted:  # the boundary and its summary are two lines
                yield Action(kind="compaction", at=self.at, id=uuid)
            self.compacted = True
            return
        self.compacted = False
        yield from self._user_line(entry, uuid) if entry["type"] == "user" else self._assistant_line(entry, uuid)

    def unanswered(self) -> Iterator[Action]:
        """Yield the calls that have no result."""
        for id in list(self.calls):
            yield self._tool_use(id, output="", result=None, failed=None)

    def _assistant_line(self, entry: Mapping[str, Any], uuid: str) -> Iterator[Action]:
        for number, block in enumerate(entry["content"]):
            if block.get("type") == "tool_use":
                arguments = block.get("input")
                self.calls[text_of(block, "id")] = (
                    text_of(block, "name"),
                    arguments if isinstance(arguments, dict) else {},
                    self.cwd,
                )
                if len(self.calls) > OPEN_CALLS:
                    yield self._tool_use(next(iter(self.calls)), output="", result=None, failed=None)
            elif (text := text_of(block, "text").strip()) and block.get("type") == "text":
                yield Action(kind="answer", at=self.at, text=_capped(text), id=f"{uuid}/{number}" if number else uuid)

    def _user_line(self, entry: Mapping[str, Any], uuid: str) -> Iterator[Action]:
        texts = []
        for block in entry["content"]:
            if block.get("type") == "tool_result":
                yield from self._result(block, entry)
            else:
                texts.append(text_of(block, "text"))
        text = "" if entry.get("source") in UNSAID else own_words("\n".join(texts))
        if text:
            yield self._prompt(text, text_of(entry, "promptId"), uuid)

    def _prompt(self, text: str, prompt: str, uuid: str) -> Action:
        # Hooks know a prompt by its own id; a second line of the same prompt needs another.
        id = uuid if not prompt or prompt in self.prompts else prompt
        self.prompts.add(prompt)
        return Action(kind="prompt", at=self.at, text=_capped(text), id=id)

    def _result(self, block: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[Action]:
        id = text_of(block, "tool_use_id")
        if id not in self.calls:
            return
        output = "\n".join(_texts(block.get("content")))
        if block.get("is_error") and REJECTED in output:
            del self.calls[id]  # it was not done; what the user said instead counts
            for words in _ADVICE:
                _, found, advice = output.partition(words)
                if found and (advice := own_words(advice)):
                    yield Action(kind="prompt", at=self.at, text=_capped(advice), id=f"{id}/rejected")
                    break
            return
        code = _EXIT.match(output)
        failed = bool(block.get("is_error")) or bool(code and code[1] != "0")
        result = entry.get("result")
        stopped = isinstance(result, dict) and bool(result.get("interrupted"))
        yield self._tool_use(id, output=output, result=result, failed=None if stopped and not failed else failed)

    def _tool_use(self, id: str, *, output: str, result: Any, failed: bool | None) -> Action:
        tool, arguments, cwd = self.calls.pop(id)
        used = ToolUse(
            tool=tool,
            input=_without_cuts(arguments),
            output=_capped(output),
            result=_without_cuts(result),
            failed=failed,
        )
        action = tool_action(used, at=self.at, cwd=cwd, root=self.root, id=_unique_id(id, self.ended))
        if tool in ("TaskCreate", "TaskUpdate") and not failed:
            self._note_task(arguments, output, result)
            return replace(action, todos=tuple(self.tasks.values()))
        return action

    def _note_task(self, arguments: Mapping[str, Any], output: str, result: Any) -> None:
        """Update the list: tasks come one by one, each with a number that only its result tells."""
        made = result.get("task") if isinstance(result, dict) else None
        number = re.search(r"#([0-9]+)", output)
        id = str(
            arguments.get("taskId") or (made.get("id") if isinstance(made, dict) else "") or (number and number[1])
        )
        status = text_of(arguments, "status")
        if status == "deleted":
            self.tasks.pop(id, None)
            return
        old = self.tasks.get(id)
        text = text_of(arguments, "subject", "description") or (old.text if old else "")
        done = status == "completed" if status else bool(old and old.done)
        if text:
            self.tasks[id] = Todo(text=text, done=done)


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Return the blocks of a message, without thoughts and pictures."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    kept = []
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        if block.get("type") in ("text", "tool_use"):
            kept.append(block)
        elif block.get("type") == "tool_result":
            kept.append(block | {"content": _texts(block.get("content"))})
    return kept


# ---- Codex: one message comes in several forms; older rollouts have no envelope

_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_ITEMS = (*_CALLS, "message", "function_call_output", "custom_tool_call_output", "reasoning")
_EXITED = re.compile(r"^(?:Process exited with code|Exit code:|exit_code[:=]) ?(-?[0-9]+)", re.MULTILINE)
_FOLDER = re.compile(r"<cwd>([^<]+)</cwd>|^Current working directory: (.+)$", re.MULTILINE)
HEADER = 300  # characters before the output itself: a chunk's id, the wall time, the exit code
_FIELDS = frozenset(("type", "role", "id", "call_id", "session_id", "forked_from_id", "timestamp", "git", "name"))
_FIELDS |= frozenset(("content", "message", "item", "last_agent_message", "arguments", "input", "action", "command"))
_FIELDS |= frozenset(("output", "aggregated_output", "stdout", "stderr", "exit_code", "success"))


class _Codex:
    """Turn lines into actions; remember which messages came in which form, and which calls wait."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.cwd = ""
        self.at = 0.0
        self.session = ""
        self.forms: dict[tuple[str, str], Counter[str]] = {}  # who, what -> how often in each form
        self.calls: dict[str, tuple[str, dict[str, Any], str]] = {}
        self.codes: dict[str, int] = {}
        self.ended: Counter[str] = Counter()

    def keep(self, raw: dict[str, Any]) -> dict[str, Any] | None:
        """Return the parts of a line that matter, in an envelope or without; None for thoughts, counts and states."""
        kind, payload = raw.get("type"), raw.get("payload")
        if not isinstance(payload, dict):
            if kind in _ITEMS:
                kind, payload = "response_item", raw
            elif kind is None and "id" in raw and "timestamp" in raw:  # how a rollout began in 2025
                kind, payload = "session_meta", raw
            else:
                return None
        inner = payload.get("type")
        if kind == "response_item":
            wanted = inner in _ITEMS and inner != "reasoning" and payload.get("role") not in ("developer", "system")
        elif kind == "event_msg":
            wanted = inner in _Codex.EVENTS
        else:
            wanted = kind in ("session_meta", "turn_context", "compacted")
        if not wanted:
            return None
        kept = {name: each for name, each in payload.items() if name in _FIELDS}
        for name in ("arguments", "output"):  # JSON in a text: each of its own texts is redacted by itself
            kept[name] = _parsed(kept.get(name))
        for name in ("content", "output"):
            if isinstance(blocks := kept.get(name), list):  # without pictures
                kept[name] = [{"text": text} for text in _texts(blocks)]
        source = payload.get("source")
        kept["inner"] = isinstance(source, dict) and "subagent" in source
        return {"type": kind, "timestamp": raw.get("timestamp"), "payload": kept}

    EVENTS = (
        "user_message",
        "agent_message",
        "item_completed",
        "task_complete",
        "exec_command_end",
        "patch_apply_end",
        "context_compacted",
    )

    def peek_line(self, found: Peek, line: Line) -> Peek:
        payload, kind = line.entry["payload"], line.entry["type"]
        at = timestamp(line.entry["timestamp"], default=0.0)
        if kind == "session_meta" and not found.first:
            id = text_of(payload, "id", "session_id") or found.session
            git = payload.get("git")
            found = replace(
                found,
                session=id,
                first=id,
                parent=text_of(payload, "forked_from_id"),
                remote=text_of(git, "repository_url") if isinstance(git, dict) else "",
                inner=bool(payload.get("inner")),
                started=timestamp(payload.get("timestamp"), default=at),
            )
        folder = line.cwd if kind in ("session_meta", "turn_context") else _folder_in_message(payload)
        prompt = next((text for who, text, _ in self._messages(line) if who == "prompt"), "")
        return replace(
            found,
            cwd=found.cwd or folder,
            started=found.started or at,
            prompt=found.prompt or prompt,
        )

    def actions(self, line: Line) -> Iterator[Action]:
        payload, kind = line.entry["payload"], line.entry["type"]
        self.at = timestamp(line.entry["timestamp"], default=self.at)
        if kind == "session_meta":
            self.at = self.at or timestamp(payload.get("timestamp"), default=0.0)
            self.session = self.session or text_of(payload, "id", "session_id")
        if kind in ("session_meta", "turn_context"):  # a command may run elsewhere
            self.cwd = line.cwd or self.cwd
        self.cwd = self.cwd or _folder_in_message(payload)
        inner = payload.get("type")
        if kind == "compacted" or inner == "context_compacted":
            yield from self._compaction()
            return
        for who, text, form in self._messages(line):
            yield from self._if_new(who, text, form)
        if inner in _CALLS:
            yield from self._call(payload)
        elif inner in ("function_call_output", "custom_tool_call_output"):
            yield from self._result(payload)
        elif inner in ("exec_command_end", "patch_apply_end"):
            yield from self._command_end(payload)

    def unanswered(self) -> Iterator[Action]:
        for id in list(self.calls):
            yield self._tool_use(id, output="", failed=None)

    def _messages(self, line: Line) -> Iterator[tuple[str, str, str]]:
        """Yield role, text and form of a message: each comes as an item, as an event, or as both."""
        payload = line.entry["payload"]
        inner = str(payload.get("type"))
        if inner == "message":
            who = {"user": "prompt", "assistant": "answer"}.get(text_of(payload, "role"), "")
            texts = _texts(payload.get("content"))
        elif inner in ("user_message", "agent_message"):
            who, texts = "prompt" if inner == "user_message" else "answer", [text_of(payload, "message")]
        elif inner == "item_completed" and isinstance(item := payload.get("item"), dict):
            who = {"UserMessage": "prompt", "AgentMessage": "answer"}.get(text_of(item, "type"), "")
            texts = _texts(item.get("content"))
        elif inner == "task_complete":
            who, texts = "answer", [text_of(payload, "last_agent_message")]
        else:
            return
        # Instructions and surroundings come as blocks of their own beside the message.
        parts = [own_words(text) for text in texts] if who == "prompt" else texts
        text = "\n".join(part for part in parts if part).strip()
        if who and text:
            yield who, text, inner

    def _if_new(self, who: str, text: str, form: str) -> Iterator[Action]:
        forms = self.forms.setdefault((who, _digest(text)), Counter())
        before = max(forms.values(), default=0)
        forms[form] += 1
        if forms[form] > before:
            # By its text and how often it came: a fork repeats the same with other times, and not all have ids.
            yield Action(kind=who, at=self.at, text=_capped(text), id=_digest(who, text, str(forms[form])))

    def _compaction(self) -> Iterator[Action]:
        forms = self.forms.setdefault(("compaction", f"{self.at:.0f}"), Counter())  # a line and an event, at one time
        forms["any"] += 1
        if forms["any"] == 1:
            yield Action(kind="compaction", at=self.at)

    def _call(self, payload: Mapping[str, Any]) -> Iterator[Action]:
        kind, id = payload["type"], text_of(payload, "call_id", "id")
        if kind == "web_search_call":
            action = payload.get("action")
            self.calls[id] = ("web_search", action if isinstance(action, dict) else {}, self.cwd)
            yield self._tool_use(id, output="", failed=None)
            return
        tool, arguments = text_of(payload, "name"), _arguments(payload)
        if kind == "local_shell_call":
            tool = "local_shell"
        folder = text_of(arguments, "workdir", "working_directory")
        self.calls[id] = (tool, arguments, os.path.join(self.cwd, folder) if folder else self.cwd)
        if len(self.calls) > OPEN_CALLS:
            yield self._tool_use(next(iter(self.calls)), output="", failed=None)

    def _result(self, payload: Mapping[str, Any]) -> Iterator[Action]:
        id = text_of(payload, "call_id")
        if id in self.calls:
            output, code = _outcome(payload.get("output"))
            code = self.codes.get(id, code) if code is None else code
            yield self._tool_use(id, output=output, failed=None if code is None else code != 0)

    def _command_end(self, payload: Mapping[str, Any]) -> Iterator[Action]:
        """Note how a command ended: its result is another line, unless the user ran it or the rollout is old."""
        id, code = text_of(payload, "call_id"), payload.get("exit_code")
        if not isinstance(code, int):
            code = _success(payload.get("success"))
        if id in self.calls:
            if code is not None:
                self.codes[id] = code
        elif id not in self.ended and payload.get("type") == "exec_command_end":
            self.calls[id] = ("shell", {"command": payload.get("command")}, self.cwd)
            output = text_of(payload, "aggregated_output") or "\n".join(
                each for each in (text_of(payload, "stdout"), text_of(payload, "stderr")) if each
            )
            yield self._tool_use(id, output=output, failed=None if code is None else code != 0)

    def _tool_use(self, id: str, *, output: str, failed: bool | None) -> Action:
        tool, arguments, cwd = self.calls.pop(id)
        self.codes.pop(id, None)
        used = ToolUse(tool=tool, input=_without_cuts(arguments), output=_capped(output), failed=failed)
        return tool_action(used, at=self.at, cwd=cwd, root=self.root, id=_unique_id(id, self.ended))


def _parsed(text: Any) -> Any:
    """Return the JSON object in a text; else the text."""
    if not isinstance(text, str) or not text.startswith("{"):
        return text
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text


def _arguments(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call: an action, a patch as it is, or named arguments."""
    for name in ("action", "arguments"):
        if isinstance(found := payload.get(name), dict):
            return found
    text = text_of(payload, "input", "arguments")
    return {"input": text} if text else {}


def _outcome(output: Any) -> tuple[str, int | None]:
    """Return the output of a call, and its exit code where there is one."""
    if isinstance(output, dict):
        text = "\n".join(_texts(output.get("content"))) or text_of(output, "output")
        about = output.get("metadata")
        code = about.get("exit_code") if isinstance(about, dict) else None
        return text, code if isinstance(code, int) else _success(output.get("success"))
    text = "\n".join(_texts(output))
    head, mark, body = text.partition("Output:\n")
    is_head = bool(mark) and len(head) < HEADER
    found = _EXITED.search(head if is_head else text[:HEADER])
    return (body if is_head and found else text), int(found[1]) if found else None


def _success(value: Any) -> int | None:
    return None if not isinstance(value, bool) else 0 if value else 1


def _folder_in_message(payload: Mapping[str, Any]) -> str:
    """Return the folder that an old rollout names in its first message."""
    if payload.get("type") != "message" or payload.get("role") != "user":
        return ""
    found = _FOLDER.search("\n".join(_texts(payload.get("content"))))
    return storable((found[1] or found[2]).strip()) if found else ""
