"""Read the transcripts of Claude Code and Codex that are this project's as actions, and extract their sessions.

Only a line's own text tells whose it is: what happened in folders of other projects, in sub-agents and in the client's
own remarks is left out. Every line is redacted before anything is made of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from foreword.agents import text_of
from foreword.code.diff import changes
from foreword.encoding import plural, storable
from foreword.extract.actions import NON_USER_SOURCES, Action, ToolUse, own_words, tool_action
from foreword.extract.session import extract_session
from foreword.importers import Batch, Source, timestamp
from foreword.models import Project, Session
from foreword.redact import redact, redact_all, shorten
from foreword.redact.files import denied

QUIET = 300.0  # seconds without a new line after which a session may be taken for finished; an agent thinks for minutes
LABELS = {"claude-code": "Claude Code", "codex": "Codex"}
FILES = {  # the folder that each agent writes them to, and the variable that moves it
    "claude-code": ("CLAUDE_CONFIG_DIR", ".claude", "projects/*/*.jsonl"),
    "codex": ("CODEX_HOME", ".codex", "*sessions/**/rollout-*.jsonl"),
}
TEXT = 64 * 1024  # characters kept of a message or an output, head and tail; a live event keeps as many
MOST_LINE = 32 * 1024 * 1024  # bytes; a longer line is left out
HEAD_BYTES = 2_000_000  # of a file, in which its session and its folder must be named


class Transcript(NamedTuple):
    """One session's file; they sort by the time of their last line."""

    written: float
    path: str
    session: str
    cwd: str


class Transcripts(Source):
    """The sessions of one agent."""

    def offer(self, project: Project) -> str:
        count = len(self._files(project))
        return f"{plural(count, 'sessions')} of {LABELS[self.name]}" if count else ""

    def read(self, project: Project) -> Iterator[Batch]:
        """Yield one batch a session, without those that are still being written."""
        files = self._files(project)
        todo = [each for each in files if abs(time.time() - each.written) >= QUIET]
        if waiting := len(files) - len(todo):
            problem = f"{plural(waiting, 'sessions')} still running; import again when it has ended"
            yield Batch(total=len(todo), problems=(problem,))
        seen: set[str] = set()
        for done, file in enumerate(todo, 1):
            try:
                batch = self._batch(file, project, seen=seen)
            except OSError as exc:
                batch = Batch(problems=(f"{file.path} cannot be read: {exc.strerror or exc}",))
            if done < len(todo):  # what older sessions left open, the newest knows better
                batch = replace(batch, memories=tuple(each for each in batch.memories if each.kind != "handoff"))
            yield replace(batch, done=done, total=len(todo))

    def _batch(self, file: Transcript, project: Project, *, seen: set[str]) -> Batch:
        """Return what comes of one session; its actions are not held all at once."""
        times: list[float] = []
        bad: list[int] = []
        is_here = cache(lambda cwd: cwd == file.cwd or self.key_of(cwd) == project.key)

        def timed() -> Iterator[Action]:
            for action in actions(file.path, host=self.name, root=project.root, here=is_here, seen=seen, bad=bad):
                times.append(action.at)
                yield action

        session = Session(file.session, self.name, project.key, redact(file.cwd), started=0.0, last=0.0)
        extraction = extract_session(
            timed(),
            session=session,
            project=project,
            # By the session's own record alone: the files of today say nothing about an old session.
            changes_of=lambda edit: () if denied(edit.file) else changes([edit]),
        )
        problems = (f"{plural(len(bad), 'lines')} of {file.path} could not be read",) if bad else ()
        if not times:
            return Batch(problems=problems)
        return Batch(
            memories=tuple(extraction.memories),
            links=tuple(extraction.links),
            changes=tuple(extraction.changes),
            session=replace(session, started=times[0], last=times[-1], ended=times[-1], events=len(times)),
            problems=problems,
        )

    def _files(self, project: Project) -> list[Transcript]:
        """Return the project's files, the one that was written first at the beginning."""
        variable, folder, pattern = FILES[self.name]
        paths = Path(self.environ.get(variable) or Path(self.environ.get("HOME", "/")) / folder).glob(pattern)
        key_of = cache(self.key_of)
        found = []
        for path in paths:
            with suppress(OSError):  # gone since it was listed
                session, cwd = peek(str(path), host=self.name)
                # Older versions wrote a file for each sub-agent.
                if cwd and not path.name.startswith("agent-") and key_of(cwd) == project.key:
                    found.append(Transcript(path.stat().st_mtime, str(path), session, cwd))
        return sorted(found)


def peek(path: str, *, host: str) -> tuple[str, str]:
    """Return the id and the folder of a file's session, from its first lines; no folder for a sub-agent's."""
    session = os.path.basename(path).removesuffix(".jsonl")
    for line in _lines(path, most=HEAD_BYTES):
        payload = line.get("payload")
        if host == "codex" and isinstance(payload, dict) and line.get("type") == "session_meta":
            source = payload.get("source")
            is_inner = isinstance(source, dict) and "subagent" in source
            cwd = "" if is_inner else text_of(payload, "cwd")
            return text_of(payload, "id", "session_id") or session, cwd
        if host != "codex" and (cwd := text_of(line, "cwd")):
            return session, cwd
    return session, ""


def actions(
    path: str,
    *,
    host: str,
    root: str,
    here: Callable[[str], bool] = lambda _cwd: True,
    seen: set[str] | None = None,
    bad: list[int] | None = None,
) -> Iterator[Action]:
    """Yield the actions of a session between a start and an end; nothing where there are none.

    Actions in folders that are not *here*, and those *seen* in another file (a fork repeats its origin), are left out.
    *bad* gets the places of lines that cannot be read.
    """
    seen, last = set() if seen is None else seen, -1.0
    for action in _read(_Claude(root) if host == "claude-code" else _Codex(root), path, here=here, bad=bad):
        key = _digest(action.kind, action.id, action.text, action.command)
        if action.id and key in seen:
            continue
        seen.add(key)
        if last < 0:
            yield Action(kind="start", at=action.at, source="startup")
        last = max(last, action.at)
        yield action
    if last >= 0:
        yield Action(kind="end", at=last)


def _read(
    reader: _Claude | _Codex, path: str, *, here: Callable[[str], bool], bad: list[int] | None
) -> Iterator[Action]:
    for line in _lines(path, bad=bad):
        found = list(reader.read(line))  # also of a line from elsewhere: its call may have been made here
        if not reader.cwd or here(reader.cwd):
            yield from found
    if not reader.cwd or here(reader.cwd):
        yield from [reader.tool_use(id, output="", failed=None) for id in list(reader.calls)]  # without a result


def _lines(path: str, *, most: int = 0, bad: list[int] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file, line by line, no further than *most* bytes."""
    with open(path, "rb") as file:
        while (not most or file.tell() < most) and (raw := file.readline(MOST_LINE)):
            found = None
            if len(raw) < MOST_LINE:
                with suppress(ValueError, RecursionError):
                    found = _loads(raw.decode("utf-8", "replace"))
            else:
                while (rest := file.readline(TEXT)) and not rest.endswith(b"\n"):
                    pass
            if isinstance(found, dict):
                yield found
            elif raw.strip() and bad is not None:
                bad.append(file.tell())


def _loads(text: str) -> Any:
    """Parse JSON; half of a surrogate pair, which JSON can spell and no file can hold, is replaced."""
    found = json.loads(text, strict=False)
    if "\\ud" in text.lower():
        found = json.loads(storable(json.dumps(found, ensure_ascii=False)), strict=False)
    return found


class _Reader:
    """What lines have told so far: the folder, the time, and the calls that wait for their result."""

    def __init__(self, root: str) -> None:
        self.root, self.cwd, self.at = root, "", 0.0
        self.calls: dict[str, tuple[str, dict[str, Any], str]] = {}  # id -> tool, arguments, folder
        self._times: Counter[str] = Counter()

    def nth(self, id: str) -> str:
        """Return an id that is new: some local models count calls from one in every answer."""
        self._times[id] += 1
        return id if self._times[id] == 1 else f"{id}/{self._times[id]}"

    def tool_use(self, id: str, *, output: str, failed: bool | None, result: Any = None) -> Action:
        tool, arguments, cwd = self.calls.pop(id)
        used = ToolUse(tool=tool, input=arguments, output=shorten(output, max_chars=TEXT), result=result, failed=failed)
        return tool_action(used, at=self.at, cwd=cwd, root=self.root, id=self.nth(id))


# ---- Claude Code: a line for each block of a message; results are lines of the user

REJECTED = "The user doesn't want to proceed with this tool use"
_HEAVY = ("file", "stdout", "content", "base64")  # of a structured result: what the text of the result says as well


class _Claude(_Reader):
    def read(self, line: Mapping[str, Any]) -> Iterator[Action]:
        kind, message, uuid = line.get("type"), line.get("message"), text_of(line, "uuid")
        if line.get("isSidechain") or line.get("isMeta") or line.get("isApiErrorMessage"):
            return
        is_boundary = kind == "system" and line.get("subtype") == "compact_boundary"
        is_message = kind in ("user", "assistant") and isinstance(message, dict) and not line.get("isCompactSummary")
        if not (is_boundary or is_message) or (uuid and self._times[f"line {uuid}"]):
            return
        self._times[f"line {uuid}"] += 1
        self.cwd = text_of(line, "cwd") or self.cwd
        self.at = timestamp(line.get("timestamp"), default=self.at)
        if is_boundary:
            yield Action(kind="compaction", at=self.at, id=uuid)
        elif isinstance(message, dict) and message.get("model") != "<synthetic>":
            result = line.get("toolUseResult")
            if isinstance(result, dict):
                result = {name: each for name, each in result.items() if name not in _HEAVY}
            clean = redact_all({"content": _blocks(message.get("content")), "result": result})
            if kind == "assistant":
                yield from self._assistant(clean["content"], uuid)
            else:
                is_typed = line.get("promptSource") not in NON_USER_SOURCES
                yield from self._user(clean, uuid, prompt=text_of(line, "promptId"), is_typed=is_typed)

    def _assistant(self, blocks: list[dict[str, Any]], uuid: str) -> Iterator[Action]:
        for number, block in enumerate(blocks):
            if block.get("type") == "tool_use":
                arguments = block.get("input")
                arguments = arguments if isinstance(arguments, dict) else {}
                self.calls[text_of(block, "id")] = (text_of(block, "name"), arguments, self.cwd)
            elif text := text_of(block, "text").strip():
                yield Action(
                    kind="answer",
                    at=self.at,
                    text=shorten(text, max_chars=TEXT),
                    id=f"{uuid}/{number}" if number else uuid,
                )

    def _user(self, clean: Mapping[str, Any], uuid: str, *, prompt: str, is_typed: bool) -> Iterator[Action]:
        texts = []
        for block in clean["content"]:
            id = text_of(block, "tool_use_id")
            if block.get("type") == "text":
                texts.append(text_of(block, "text"))
            elif id in self.calls:
                output = "\n".join(_texts(block.get("content")))
                if block.get("is_error") and REJECTED in output:
                    del self.calls[id]  # it was not done
                    continue
                code = re.match(r"Exit code:? (-?[0-9]+)", output)
                failed: bool | None = bool(block.get("is_error")) or bool(code and code[1] != "0")
                if not failed and isinstance(clean["result"], dict) and clean["result"].get("interrupted"):
                    failed = None
                yield self.tool_use(id, output=output, failed=failed, result=clean["result"])
        if text := own_words("\n".join(texts)) if is_typed else "":
            # Hooks know a prompt by its own id; a second line of the same prompt needs another.
            id = uuid if not prompt or self._times[f"prompt {prompt}"] else prompt
            self._times[f"prompt {prompt}"] += 1
            yield Action(kind="prompt", at=self.at, text=shorten(text, max_chars=TEXT), id=id)


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Return the blocks of a message, without thoughts and pictures."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    return [
        block | {"content": _texts(block.get("content"))} if block.get("type") == "tool_result" else block
        for block in blocks
        if block.get("type") in ("text", "tool_use", "tool_result")
    ]


# ---- Codex: items of the model's conversation; the events beside them say the same again

_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_EXITED = r"^(?:Process exited with code|Exit code:|exit_code[:=]) ?(-?[0-9]+)"
HEADER = 300  # characters before the output itself: a chunk's id, the wall time, the exit code


class _Codex(_Reader):
    def read(self, line: Mapping[str, Any]) -> Iterator[Action]:
        kind, payload = line.get("type"), line.get("payload")
        if not isinstance(payload, dict):
            return
        self.at = timestamp(line.get("timestamp"), default=self.at)
        if kind in ("session_meta", "turn_context"):  # a command may run elsewhere
            self.cwd = text_of(payload, "cwd") or self.cwd
        elif kind == "compacted":
            yield Action(kind="compaction", at=self.at, id=self.nth("compaction"))
        elif kind == "response_item" and payload.get("type") in ("message", *_CALLS, *_OUTPUTS):
            names = ("type", "role", "call_id", "id", "name", "action", "arguments", "input", "output", "content")
            kept = {name: payload.get(name) for name in names}
            for name, value in kept.items():
                if isinstance(value, str) and value.startswith("{"):  # JSON in a text: each of its texts is redacted
                    with suppress(ValueError, RecursionError):
                        kept[name] = _loads(value)
                elif name in ("content", "output") and isinstance(value, list):  # without pictures
                    kept[name] = [{"text": text} for text in _texts(value)]
            yield from self._item(redact_all(kept))

    def _item(self, item: Mapping[str, Any]) -> Iterator[Action]:
        kind, id = item["type"], text_of(item, "call_id", "id")
        if kind == "message":
            who = {"user": "prompt", "assistant": "answer"}.get(text_of(item, "role"), "")
            # Instructions and surroundings come as blocks of their own beside the message.
            parts = [own_words(text) if who == "prompt" else text for text in _texts(item["content"])]
            text = "\n".join(part for part in parts if part).strip()
            if who and text:
                # By its text and how often it came: a fork repeats the same with other times, and not all have ids.
                yield Action(kind=who, at=self.at, text=shorten(text, max_chars=TEXT), id=self.nth(_digest(who, text)))
        elif kind in _CALLS:
            text = text_of(item, "input", "arguments")
            objects = [item[name] for name in ("action", "arguments") if isinstance(item[name], dict)]
            arguments = next(iter(objects), {"input": text} if text else {})
            tool = "local_shell" if kind == "local_shell_call" else text_of(item, "name")
            folder = text_of(arguments, "workdir", "working_directory")
            self.calls[id] = (tool, arguments, os.path.join(self.cwd, folder) if folder else self.cwd)
        elif id in self.calls:
            output, code = _outcome(item["output"])
            yield self.tool_use(id, output=output, failed=None if code is None else code != 0)


def _outcome(output: Any) -> tuple[str, int | None]:
    """Return the output of a call, and its exit code where there is one."""
    if isinstance(output, dict):
        text = "\n".join(_texts(output.get("content"))) or text_of(output, "output")
        about = output.get("metadata")
        code = about.get("exit_code") if isinstance(about, dict) else None
        return text, code if isinstance(code, int) else None
    text = "\n".join(_texts(output))
    head, mark, body = text.partition("Output:\n")
    is_head = bool(mark) and len(head) < HEADER
    found = re.search(_EXITED, head if is_head else text[:HEADER], re.MULTILINE)
    return (body if is_head and found else text), int(found[1]) if found else None


# ---- texts


def _texts(content: Any) -> list[str]:
    """Return the texts of a message, which is a text or a list of blocks."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    found = [block.get("text") if isinstance(block, dict) else block for block in blocks]
    return [text for text in found if isinstance(text, str)]


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()
