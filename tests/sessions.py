"""Transcripts as Claude Code and Codex write them, line by line; the shapes are those of recorded sessions."""

from __future__ import annotations

import json
import os
import uuid as uuids
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

START = 1_794_764_805.0  # 2026-11-15, 17:46:45


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Claude:
    """A session of Claude Code: each method adds what the client writes for it, a second later than the last."""

    def __init__(self, cwd: str, *, session: str = "", at: float = START, version: str = "2.1.325") -> None:
        self.cwd = cwd
        self.session = session or str(uuids.uuid5(uuids.NAMESPACE_URL, f"{cwd}{at}"))
        self.at = at
        self.version = version
        self.lines: list[Any] = []
        self.number = 0

    def prompt(self, text: Any, **more: Any) -> Claude:
        self.number += 1
        return self.line(
            "user", {"message": {"role": "user", "content": text}, "promptId": f"prompt-{self.number}"} | more
        )

    def answer(self, text: str, **more: Any) -> Claude:
        return self.blocks([{"type": "text", "text": text}], **more)

    def blocks(self, blocks: list[dict[str, Any]], **more: Any) -> Claude:
        message = {
            "id": f"msg_{len(self.lines)}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "content": blocks,
            "usage": {"input_tokens": 1000, "output_tokens": 25},
        }
        return self.line("assistant", {"message": message} | more)

    def tool(self, name: str, tool_input: dict[str, Any], output: Any = "", result: Any = None, **more: Any) -> Claude:
        id = f"toolu_{self.session[:4]}{len(self.lines):06}"
        self.blocks([{"type": "tool_use", "id": id, "name": name, "input": tool_input}])
        return self.result(id, output, result, **more)

    def result(self, id: str, output: Any, result: Any = None, *, is_error: bool | None = None) -> Claude:
        block = {"tool_use_id": id, "type": "tool_result", "content": output}
        if is_error is not None:
            block["is_error"] = is_error
        fields = {"message": {"role": "user", "content": [block]}, "promptId": f"prompt-{self.number}"}
        return self.line("user", fields | ({"toolUseResult": result} if result is not None else {}))

    def compacted(self, summary: str = "This session is being continued from a previous conversation.") -> Claude:
        about = {"trigger": "auto", "preTokens": 155_000}
        self.line(
            "system", {"subtype": "compact_boundary", "content": "Conversation compacted", "compactMetadata": about}
        )
        message = {"role": "user", "content": summary}
        return self.line("user", {"message": message, "isCompactSummary": True, "isVisibleInTranscriptOnly": True})

    def line(self, kind: str, more: dict[str, Any]) -> Claude:
        self.at += 1
        common = {
            "parentUuid": None,
            "isSidechain": False,
            "type": kind,
            "uuid": str(uuids.uuid5(uuids.NAMESPACE_URL, f"{self.session}{len(self.lines)}")),
            "timestamp": stamp(self.at),
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": self.version,
            "gitBranch": "main",
        }
        self.lines.append(common | more)
        return self

    def raw(self, line: Any) -> Claude:
        self.lines.append(line)
        return self

    def into(self, config: Path) -> Path:
        """Write it where Claude Code would."""
        folder = "".join(char if char.isascii() and char.isalnum() else "-" for char in self.cwd)
        return self.write(config / "projects" / folder / f"{self.session}.jsonl")

    def write(self, path: Path) -> Path:
        return written(path, self.lines, at=self.at)


class Codex:
    """A session of Codex."""

    def __init__(self, cwd: str, *, session: str = "", at: float = START, **meta: Any) -> None:
        self.cwd = cwd
        self.session = session or str(uuids.uuid5(uuids.NAMESPACE_URL, f"codex{cwd}{at}"))
        self.at = at
        self.lines: list[Any] = []
        about = {"id": self.session, "timestamp": stamp(at), "instructions": "be kind"}
        self.line("session_meta", about | {"cwd": cwd, "originator": "codex_cli_rs", "source": "cli"} | meta)
        self.line("turn_context", {"cwd": cwd, "model": "gpt-5.1-codex", "summary": "none"})
        agents = f"# AGENTS.md instructions for {cwd}\n\n<INSTRUCTIONS>\nuse tabs\n</INSTRUCTIONS>"
        around = f"<environment_context>\n  <cwd>{cwd}</cwd>\n  <shell>bash</shell>\n</environment_context>"
        self.message("user", agents, around)

    def prompt(self, text: str, *, forms: tuple[str, ...] = ("item", "event")) -> Codex:
        if "item" in forms:
            self.message("user", text)
        if "event" in forms:
            self.event("user_message", message=text, images=[])
        if "completed" in forms:
            item = {"type": "UserMessage", "id": "item-1", "content": [{"type": "text", "text": text}]}
            self.event("item_completed", item=item)
        return self

    def answer(self, text: str) -> Codex:
        self.event("agent_message", message=text)
        self.message("assistant", text)
        return self.event("task_complete", last_agent_message=text)

    def tool(self, name: str, tool_input: dict[str, Any], output: Any) -> Codex:
        id = f"call_{len(self.lines)}"
        self.item("function_call", name=name, arguments=json.dumps(tool_input), call_id=id)
        return self.item("function_call_output", call_id=id, output=output)

    def patch(self, text: str, output: str = '{"output":"Success","metadata":{"exit_code":0}}') -> Codex:
        id = f"call_{len(self.lines)}"
        self.item("custom_tool_call", name="apply_patch", input=text, call_id=id, status="completed")
        return self.item("custom_tool_call_output", call_id=id, output=output)

    def message(self, role: str, *texts: str) -> Codex:
        kind = "output_text" if role == "assistant" else "input_text"
        return self.item("message", role=role, content=[{"type": kind, "text": text} for text in texts])

    def item(self, kind: str, **more: Any) -> Codex:
        return self.line("response_item", {"type": kind} | more)

    def event(self, kind: str, **more: Any) -> Codex:
        return self.line("event_msg", {"type": kind} | more)

    def line(self, kind: str, payload: dict[str, Any]) -> Codex:
        self.at += 1
        line = {"timestamp": stamp(self.at), "ordinal": len(self.lines), "type": kind, "payload": payload}
        self.lines.append(line)
        return self

    def into(self, home: Path) -> Path:
        day = datetime.fromtimestamp(self.at, UTC)
        name = f"rollout-{day:%Y-%m-%dT%H-%M-%S}-{self.session}.jsonl"
        return self.write(home / "sessions" / f"{day:%Y/%m/%d}" / name)

    def write(self, path: Path) -> Path:
        return written(path, self.lines, at=self.at)


def written(path: Path, lines: list[Any], *, at: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts))
    os.utime(path, (at, at))
    return path
