"""An agent is asked for its own notes: once a session, after substantial work, never while it waits for the user."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foreword.worker.hints import FILES, REQUEST, TOOLS
from tests.flow.conftest import HookRunner


@pytest.fixture
def agent(host: HookRunner, start, project: str, monkeypatch: pytest.MonkeyPatch):
    """Sends hook calls of one session, and returns what the agent would read of each answer."""
    monkeypatch.setenv("FOREWORD_AGENT_NOTES", "1")
    start()
    host.write_hook()

    def send(event: str, *, session: str = "s1", **fields: Any) -> Any:
        payload = {"session_id": session, "cwd": project, "hook_event_name": event, **fields}
        ended = host.tell(event, payload)
        assert (ended.returncode, ended.stderr) == (0, b"")
        return json.loads(ended.stdout) if ended.stdout.strip() else None

    def work(session: str = "s1", *, files: int = FILES, tools: int = TOOLS) -> None:
        send("UserPromptSubmit", session=session, prompt="rework the price table")
        for number in range(tools):
            path = f"{project}/prices/part{number % files}.py"
            tool = {"file_path": path, "old_string": "a", "new_string": f"b{number}"}
            use = {"tool_name": "Edit", "tool_input": tool, "tool_response": {}, "tool_use_id": f"{session}-{number}"}
            send("PostToolUse", session=session, **use)

    return send, work


def test_asks_once_after_substantial_work(agent) -> None:
    send, work = agent
    work()
    first = send("Stop", last_assistant_message="The price table reads cents now.", stop_hook_active=False)
    assert first == {"decision": "block", "reason": REQUEST}
    assert send("Stop", last_assistant_message="Noted.", stop_hook_active=True) is None
    work()
    assert send("Stop", last_assistant_message="More of it is done.", stop_hook_active=False) is None


@pytest.mark.parametrize(
    ("files", "tools", "message", "active"),
    [
        (1, TOOLS, "Done.", False),  # one file is no substantial work
        (FILES, TOOLS - 4, "Done.", False),
        (FILES, TOOLS, "Two ways are open. Which one do you want?", False),  # it waits for the user
        (FILES, TOOLS, "Done. Want me to commit it?", False),
        (FILES, TOOLS, "Done.", True),  # another hook made it go on: no loops
    ],
)
def test_leaves_the_agent_alone_otherwise(agent, files: int, tools: int, message: str, active: bool) -> None:
    send, work = agent
    work(files=files, tools=tools)
    assert send("Stop", last_assistant_message=message, stop_hook_active=active) is None


def test_is_off_until_it_is_switched_on(host: HookRunner, start, project: str) -> None:
    start()
    host.write_hook()
    for number in range(TOOLS):
        tool = {"file_path": f"{project}/a{number}.py", "old_string": "a", "new_string": "b"}
        call = {"session_id": "s1", "cwd": project, "tool_name": "Edit", "tool_input": tool, "tool_use_id": str(number)}
        host.tell("PostToolUse", call)
    stop = {"session_id": "s1", "cwd": project, "last_assistant_message": "Done.", "stop_hook_active": False}
    assert host.tell("Stop", stop).stdout == b""
