"""What happens in a session -> the deliveries that Claude Code's hooks would make of it, in the recorded shapes."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable
from typing import Any

from foreword.capture.payload import HookCall
from tests.month.product import Product

ADAPTER = "claude-code"
Deliver = Callable[[HookCall], bytes]


class Claude:
    """One session; every method tells what its hook would, some simulated seconds after the last."""

    def __init__(self, name: str, product: Product, *, deliver: Deliver, clock: Clock) -> None:
        self.session = str(uuid.uuid5(uuid.NAMESPACE_URL, f"havn/{name}"))
        self._product = product
        self._deliver = deliver
        self._clock = clock
        self._uses = 0
        self._prompts = 0

    # -- the session and its turns ------------------------------------------------------------------------------
    def start(self, source: str = "startup") -> str:
        return self._tell("SessionStart", source=source)

    def prompt(self, text: str) -> str:
        self._prompts += 1
        return self._tell("UserPromptSubmit", prompt=text, permission_mode="default")

    def stop(self, text: str) -> None:
        fields = {
            "stop_hook_active": False,
            "last_assistant_message": text,
            "background_tasks": [],
            "session_crons": [],
        }
        self._tell("Stop", permission_mode="default", **fields)

    def compaction(self) -> None:
        self._tell("PreCompact", trigger="auto", custom_instructions="")

    def end(self) -> None:
        self._tell("SessionEnd", reason="other")

    # -- tools --------------------------------------------------------------------------------------------------
    def read(self, file: str) -> None:
        text = self._product.read(file)
        lines = text.count("\n") + 1
        about = {"filePath": self._product.path(file), "content": text, "numLines": lines, "startLine": 1}
        tool_input = {"file_path": self._product.path(file)}
        self.tool("Read", tool_input, {"type": "text", "file": {**about, "totalLines": lines}})

    def edit(self, file: str, old: str, new: str) -> None:
        before = self._product.read(file)
        assert old in before, f"{file} does not hold {old!r}"
        self._product.write(file, before.replace(old, new))
        path = self._product.path(file)
        everywhere = before.count(old) > 1
        tool_input = {"file_path": path, "old_string": old, "new_string": new, "replace_all": everywhere}
        gave = {"filePath": path, "oldString": old, "newString": new, "originalFile": before}
        self.tool("Edit", tool_input, {**gave, "structuredPatch": [], "userModified": False, "replaceAll": everywhere})

    def write(self, file: str, text: str) -> None:
        before = self._product.read(file) if self._product.has(file) else None
        self._product.write(file, text)
        path = self._product.path(file)
        gave = {"type": "update" if before else "create", "filePath": path, "content": text, "structuredPatch": []}
        tool_input = {"file_path": path, "content": text}
        self.tool("Write", tool_input, {**gave, "originalFile": before, "userModified": False})

    def run(self, command: str, output: str = "", *, fails: bool = False) -> None:
        tool_input = {"command": command, "description": "Run it"}
        if fails:
            self._use("PostToolUseFailure", "Bash", tool_input, error=f"Exit code 1\n{output}", is_interrupt=False)
            return
        gave = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
        self.tool("Bash", tool_input, gave)

    def task(self, number: int, subject: str) -> None:
        about = {"id": str(number), "subject": subject, "description": subject}
        self.tool("TaskCreate", {"subject": subject, "description": subject}, {"task": about})

    def task_done(self, number: int) -> None:
        change = {"updatedFields": ["status"], "statusChange": {"from": "pending", "to": "completed"}}
        tool_input = {"taskId": str(number), "status": "completed"}
        self.tool("TaskUpdate", tool_input, {"success": True, "taskId": str(number), **change})

    def memory(self, tool: str, arguments: dict[str, Any], *, call: Callable[..., dict[str, Any]]) -> dict[str, Any]:
        """A call of a memory tool: the hook tells of it first, the MCP server asks, the hook tells what came back."""
        name = f"mcp__foreword__{tool}"
        self._uses += 1
        id = self._id()
        self._tell("PreToolUse", tool_name=name, tool_input=arguments, tool_use_id=id)
        client = {"client": {"name": "claude-code"}, "cwd": str(self._product.root), "tool_use": id}
        got = call({"tool": tool, "arguments": arguments, "caller": client})
        gave = [{"type": "text", "text": got["text"]}]
        self._tell("PostToolUse", tool_name=name, tool_input=arguments, tool_response=gave, tool_use_id=id)
        return got

    def tool(self, name: str, tool_input: dict[str, Any], gave: Any) -> None:
        self._use("PostToolUse", name, tool_input, tool_response=gave)

    def _use(self, event: str, name: str, tool_input: dict[str, Any], **more: Any) -> None:
        self._uses += 1
        fields = {
            "permission_mode": "default",
            "effort": {"level": "medium"},
            "tool_name": name,
            "tool_input": tool_input,
        }
        self._tell(event, **fields, **more, tool_use_id=self._id(), duration_ms=40)

    def _tell(self, event: str, **more: Any) -> str:
        self._clock.on(20.0)
        known = {
            "session_id": self.session,
            "transcript_path": f"/home/user/.claude/projects/havn/{self.session}.jsonl",
            "cwd": str(self._product.root),
            "hook_event_name": event,
        }
        turn = {"prompt_id": self._digest(f"prompt {self._prompts}")} if self._prompts else {}
        raw = json.dumps({**known, **turn, **more}).encode()
        answer = self._deliver(HookCall(ADAPTER, event, self._clock(), raw))
        return json.loads(answer)["hookSpecificOutput"]["additionalContext"] if answer else ""

    def _id(self) -> str:
        return f"toolu_{self._digest(f'use {self._uses}')[:16]}"

    def _digest(self, text: str) -> str:
        return hashlib.blake2b(f"{self.session} {text}".encode(), digest_size=16).hexdigest()


class Clock:
    """The time of the month; it stands still until somebody moves it."""

    def __init__(self, at: float) -> None:
        self._at = at

    def __call__(self) -> float:
        return self._at

    def on(self, seconds: float) -> None:
        self._at += seconds

    def to(self, at: float) -> None:
        assert at >= self._at, "the month does not go back"
        self._at = at
