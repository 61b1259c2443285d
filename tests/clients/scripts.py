"""What the recorded clients are asked and what the model then does: a tiny project with a bug, host by host."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.clients.fake_model import Say, Step, Use

BOOKINGS = '''"""Bookings of rehearsal rooms, by the hour."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Booking:
    room: str
    starts: datetime
    ends: datetime


def overlaps(a: Booking, b: Booking) -> bool:
    """Whether two bookings want the same room at the same time."""
    return a.room == b.room and a.starts <= b.ends and b.starts <= a.ends


def is_free(wanted: Booking, booked: list[Booking]) -> bool:
    return not any(overlaps(wanted, each) for each in booked)
'''
TESTS = """from datetime import datetime

from rooms.bookings import Booking, is_free, overlaps


def booking(room, start, end):
    return Booking(room, datetime(2026, 11, 14, start), datetime(2026, 11, 14, end))


def test_the_same_hour_overlaps():
    assert overlaps(booking("A", 18, 20), booking("A", 19, 21))


def test_another_room_is_free():
    assert is_free(booking("B", 18, 20), [booking("A", 18, 20)])


def test_back_to_back_is_free():
    assert is_free(booking("A", 20, 22), [booking("A", 18, 20)])
"""
WRONG = "a.starts <= b.ends and b.starts <= a.ends"
RIGHT = "a.starts < b.ends and b.starts < a.ends"
HALF = "a.starts <= b.ends and b.starts < a.ends"
NOWHERE = "return a.room == b.room and a.begins < b.ends"
RUN_TESTS = "python -m pytest -q"
WRONG_CALL = "python -m pytest --quick"  # which never works: pytest has no such option
PROJECT = "{project}"  # stands for the project's folder in a step

NOTES = "# Rooms\n\nBookings end where the next may begin.\n"


def make_project(folder: Path) -> None:
    """A Python package with a test that fails, in git."""
    files = {
        "rooms/__init__.py": "",
        "rooms/bookings.py": BOOKINGS,
        "tests/test_bookings.py": TESTS,
        "pyproject.toml": '[project]\nname = "rooms"\nversion = "0.1"\n\n[tool.pytest.ini_options]\n'
        'pythonpath = ["."]\naddopts = "-p no:cacheprovider"\n',
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    as_somebody = ["git", "-c", "user.name=A User", "-c", "user.email=user@example.com"]
    for args in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "Bookings"]):
        subprocess.run([*as_somebody, *args], cwd=folder, check=True)


@dataclass(frozen=True)
class Script:
    """What the user says, and what the model does; a `Say` ends a turn."""

    prompts: tuple[str, ...]
    steps: tuple[Step, ...]
    model: str = ""  # where a client behaves by its model


def placed(steps: Sequence[Step], project: str) -> list[Step]:
    """The steps with the project's folder in the place of its name."""

    def put(item: Any) -> Any:
        if isinstance(item, dict):
            return {name: put(each) for name, each in item.items()}
        if isinstance(item, list):
            return [put(each) for each in item]
        return item.replace(PROJECT, project) if isinstance(item, str) else item

    return [replace(step, with_=put(step.with_)) if isinstance(step, Use) else step for step in steps]


def shown(payload: dict[str, Any], steps: Sequence[Step]) -> str:
    """The name of the step that a payload tells of: the one whose input stands in it."""
    tool_input = next((payload[name] for name in ("tool_input", "toolArgs") if name in payload), None)
    inside = payload.get("input", {})
    if tool_input is None:
        part = inside.get("properties", {}).get("part", {})
        tool_input = inside.get("args", part.get("state", {}).get("input"))
    if isinstance(tool_input, str) and tool_input.startswith("{"):
        tool_input = json.loads(tool_input)
    if tool_input is None:
        return ""
    found = [
        step
        for step in placed(steps, "/home/user/project")
        if isinstance(step, Use) and step.name and _same(step.with_, tool_input)
    ]
    if found:
        step = max(found, key=lambda step: len(json.dumps(step.with_)))  # a longer command holds the shorter one
        return f"{step.tool}.{step.name}"
    return str(payload.get("tool_name") or payload.get("toolName") or inside.get("tool") or "")


def _same(with_: Any, tool_input: Any) -> bool:
    """Whether a tool was given this; hosts add fields of their own, and rename some."""
    text = json.dumps(tool_input, sort_keys=True)
    if isinstance(with_, str) and isinstance(tool_input, dict) and json.dumps(tool_input.get("command")) in with_:
        return True  # in a script that uses the tool
    values = [with_] if isinstance(with_, str) else list(with_.values())
    return all(json.dumps(each, sort_keys=True)[1:-1] in text for each in values if isinstance(each, (str, list)))


PROMPT = "The booking tests are red since this morning, can you have a look?"
FILE = f"{PROJECT}/rooms/bookings.py"
DONE = "Back-to-back bookings no longer clash: overlaps() compares with < on both sides now. All three tests pass."
LEFT = "tell the front desk about double bookings"


def _code(tool: str, tool_input: Any) -> str:
    """JavaScript that uses a tool, which is how Codex's newer models use any."""
    return f"const got = await tools.{tool}({json.dumps(tool_input)});\ntext(got);"


def _patch(old: str, new: str) -> str:
    line = "    return a.room == b.room and "
    return f"*** Begin Patch\n*** Update File: rooms/bookings.py\n@@\n-{line}{old}\n+{line}{new}\n*** End Patch"


def _new(file: str, text: str) -> str:
    added = "".join(f"+{line}\n" for line in text.splitlines())
    return f"*** Begin Patch\n*** Add File: {file}\n{added}*** End Patch"


_PLAN = [
    {"step": "find out why the test fails", "status": "completed"},
    {"step": "fix overlaps()", "status": "in_progress"},
    {"step": LEFT, "status": "pending"},
]

PIECES: dict[str, tuple[Script, ...]] = {
    "claude-code": (
        Script(
            (PROMPT,),
            (
                Use("Bash", {"command": RUN_TESTS, "description": "Run the tests"}, "failing-test"),
                Use("Bash", {"command": "cat rooms/prices.py"}, "missing-file"),
                Use("Bash", {"command": "sleep 20", "timeout": 1000}, "timeout"),
                Use("Bash", {"command": "sleep 3; echo up", "run_in_background": True}, "background"),
                Use("Read", {"file_path": FILE}, "file"),
                Use("Read", {"file_path": f"{PROJECT}/rooms/prices.py"}, "missing-file"),
                Use("Edit", {"file_path": FILE, "old_string": NOWHERE, "new_string": RIGHT}, "not-found"),
                Use("Edit", {"file_path": FILE, "old_string": WRONG, "new_string": RIGHT}, "worked"),
                Use("Write", {"file_path": f"{PROJECT}/NOTES.md", "content": NOTES}, "new-file"),
                Use("TaskCreate", {"subject": "fix overlaps()", "description": "compare with <"}, "one"),
                Use("TaskCreate", {"subject": LEFT, "description": "they ask for it"}, "two"),
                Use("TaskUpdate", {"taskId": "1", "status": "completed"}, "done"),
                Use("TaskList", {}, "all"),
                Use("Bash", {"command": f"{RUN_TESTS} tests"}, "passing-test"),
                Say(DONE),
            ),
        ),
    ),
    "codex": (
        Script(
            (PROMPT,),
            (
                Use("exec_command", {"cmd": RUN_TESTS}, "failing-test"),
                Use("exec_command", {"cmd": "cat rooms/prices.py"}, "missing-file"),
                Use("exec_command", {"cmd": "sleep 4; echo up", "yield_time_ms": 500}, "still-running"),
                Use("apply_patch", _patch("nowhere", RIGHT), "not-found"),
                Use("apply_patch", _patch(WRONG, RIGHT), "worked"),
                Use("apply_patch", _new("NOTES.md", NOTES), "new-file"),
                Use("exec_command", {"cmd": f"{RUN_TESTS} tests"}, "passing-test"),
                Say(DONE),
            ),
            model="gpt-5.5",
        ),
        Script(
            (PROMPT,),
            (
                Use("exec", _code("exec_command", {"cmd": f"{RUN_TESTS} -x"}), "failing-test"),
                Use("exec", _code("apply_patch", _patch("nowhere", RIGHT)), "not-found"),
                Use("exec", _code("apply_patch", _patch(WRONG, RIGHT)), "worked"),
                Use("exec", _code("exec_command", {"cmd": f"{RUN_TESTS} tests -x"}), "passing-test"),
                Say(DONE),
            ),
            model="gpt-6-sol",
        ),
    ),
    "gemini": (
        Script(
            (PROMPT,),
            (
                Use("run_shell_command", {"command": RUN_TESTS}, "failing-test"),
                Use("run_shell_command", {"command": "cat rooms/prices.py"}, "missing-file"),
                Use("run_shell_command", {"command": "kill -9 $$"}, "killed"),
                Use("read_file", {"file_path": "rooms/bookings.py"}, "file"),
                Use("read_file", {"file_path": "rooms/prices.py"}, "missing-file"),
                Use(
                    "replace",
                    {"file_path": FILE, "instruction": "compare", "old_string": NOWHERE, "new_string": RIGHT},
                    "not-found",
                ),
                Use(
                    "replace",
                    {"file_path": FILE, "instruction": "compare", "old_string": WRONG, "new_string": RIGHT},
                    "worked",
                ),
                Use("write_file", {"file_path": f"{PROJECT}/NOTES.md", "content": NOTES}, "new-file"),
                Use(
                    "write_todos",
                    {"todos": [{"description": each["step"], "status": each["status"]} for each in _PLAN]},
                    "list",
                ),
                Use("run_shell_command", {"command": f"{RUN_TESTS} tests"}, "passing-test"),
                Say(DONE),
            ),
        ),
    ),
    "copilot": (
        Script(
            (PROMPT,),
            (
                Use("bash", {"command": RUN_TESTS, "description": "Run the tests"}, "failing-test"),
                Use("bash", {"command": "cat rooms/prices.py", "description": "Prices"}, "missing-file"),
                Use("view", {"path": FILE}, "file"),
                Use("view", {"path": f"{PROJECT}/rooms/prices.py"}, "missing-file"),
                Use("edit", {"path": FILE, "old_str": NOWHERE, "new_str": RIGHT}, "not-found"),
                Use("edit", {"path": FILE, "old_str": WRONG, "new_str": RIGHT}, "worked"),
                Use("create", {"path": f"{PROJECT}/NOTES.md", "file_text": NOTES}, "new-file"),
                Use(
                    "sql",
                    {"description": "Plan", "query": f"INSERT INTO todos (id, title) VALUES ('desk', '{LEFT}')"},
                    "list",
                ),
                Use("bash", {"command": f"{RUN_TESTS} tests", "description": "Run them again"}, "passing-test"),
                Say(DONE),
            ),
        ),
    ),
    "opencode": (
        Script(
            (PROMPT,),
            (
                Use("bash", {"command": RUN_TESTS, "description": "Run the tests"}, "failing-test"),
                Use("bash", {"command": "cat rooms/prices.py", "description": "Prices"}, "missing-file"),
                Use("bash", {"command": "sleep 20", "description": "Wait", "timeout": 1000}, "timeout"),
                Use("read", {"filePath": FILE}, "file"),
                Use("read", {"filePath": f"{PROJECT}/rooms/prices.py"}, "missing-file"),
                Use("edit", {"filePath": FILE, "oldString": NOWHERE, "newString": RIGHT}, "not-found"),
                Use("edit", {"filePath": FILE, "oldString": WRONG, "newString": RIGHT}, "worked"),
                Use("write", {"filePath": f"{PROJECT}/NOTES.md", "content": NOTES}, "new-file"),
                Use(
                    "todowrite",
                    {
                        "todos": [
                            {"content": each["step"], "status": each["status"], "priority": "high", "id": str(number)}
                            for number, each in enumerate(_PLAN, 1)
                        ]
                    },
                    "list",
                ),
                Use("bash", {"command": f"{RUN_TESTS} tests", "description": "Run them again"}, "passing-test"),
                Say(DONE),
            ),
        ),
    ),
}

# A whole session: two prompts, a first fix that is half of one, a decision of the user's, a list with an open end.
FIRST = (
    "Members complain that they can't book the hour right after somebody else. There is a red test for it already, "
    "tests/test_bookings.py. Please fix it."
)
SECOND = (
    "Great. One more thing: let's use integer cents for prices instead of floats, because the rounding of 17.50 / 3 "
    "bit us last month. Add a rooms/prices.py with a price_of(hours) at 1750 cents an hour. And never touch "
    "tests/conftest.py, the front desk generates it."
)
PRICES = '''"""Prices in whole cents."""

CENTS_AN_HOUR = 1750


def price_of(hours: int) -> int:
    """What so many hours cost."""
    return hours * CENTS_AN_HOUR
'''
FIXED = (
    "Fixed: `overlaps()` compared with `<=`, so a booking that starts when another ends counted as a clash. It "
    "compares with `<` on both sides now, and all three tests pass."
)
ENDED = (
    "`rooms/prices.py` has `price_of()` in integer cents. I left `tests/conftest.py` alone. Still open: show the price "
    "in the booking form."
)
OPEN, SHUT = "show the price in the booking form", "add price_of() in cents"

TRY_IT = "python -c 'from rooms.prices import price_of; print(price_of(3))'"


def _session(
    *, before: tuple[Step, ...], run: Callable[[str], Use], half: Use, right: Use, after: tuple[Step, ...]
) -> Script:
    fixing = (*before, run(RUN_TESTS), half, run(RUN_TESTS), right, run(RUN_TESTS), Say(FIXED))
    return Script((FIRST, SECOND), (*fixing, *after, run(TRY_IT), Say(ENDED)))


# How each client's model runs a command.
RUNS: dict[str, Callable[[str], Use]] = {
    "claude-code": lambda command: Use("Bash", {"command": command, "description": "Run it"}),
    "codex": lambda command: Use("exec_command", {"cmd": command}),
    "gemini": lambda command: Use("run_shell_command", {"command": command}),
    "copilot": lambda command: Use("bash", {"command": command, "description": "Run it"}),
    "opencode": lambda command: Use("bash", {"command": command, "description": "Run it"}),
}
# A name that is not there, whose error names the file, and how each client's model puts it right.
IMPORTED, MISSING = "from datetime import datetime\n", "from datetime import datetimes as datetime\n"
_OLD, _NEW = MISSING.strip(), IMPORTED.strip()
REPAIRS: dict[str, tuple[Use, ...]] = {
    "claude-code": (
        Use("Read", {"file_path": FILE}),
        Use("Edit", {"file_path": FILE, "old_string": _OLD, "new_string": _NEW}),
    ),
    "codex": (
        Use(
            "apply_patch",
            f"*** Begin Patch\n*** Update File: rooms/bookings.py\n@@\n-{_OLD}\n+{_NEW}\n*** End Patch",
        ),
    ),
    "gemini": (
        Use("replace", {"file_path": FILE, "instruction": "import it", "old_string": _OLD, "new_string": _NEW}),
    ),
    "copilot": (Use("edit", {"path": FILE, "old_str": _OLD, "new_str": _NEW}),),
    "opencode": (
        Use("read", {"filePath": FILE}),
        Use("edit", {"filePath": FILE, "oldString": _OLD, "newString": _NEW}),
    ),
}
_TODOS = [
    {"content": SHUT, "status": "completed", "priority": "high", "id": "1"},
    {"content": OPEN, "status": "pending", "priority": "low", "id": "2"},
]
_PRICES = f"{PROJECT}/rooms/prices.py"

SESSIONS: dict[str, Script] = {
    "claude-code": _session(
        before=(Use("Read", {"file_path": FILE}),),
        run=RUNS["claude-code"],
        half=Use("Edit", {"file_path": FILE, "old_string": WRONG, "new_string": HALF}),
        right=Use("Edit", {"file_path": FILE, "old_string": HALF, "new_string": RIGHT}),
        after=(
            Use("TaskCreate", {"subject": SHUT, "description": "1750 cents an hour"}),
            Use("TaskCreate", {"subject": OPEN, "description": "as euros"}),
            Use("Write", {"file_path": _PRICES, "content": PRICES}),
            Use("TaskUpdate", {"taskId": "1", "status": "completed"}),
        ),
    ),
    "codex": _session(
        before=(),
        run=RUNS["codex"],
        half=Use("apply_patch", _patch(WRONG, HALF)),
        right=Use("apply_patch", _patch(HALF, RIGHT)),
        after=(Use("apply_patch", _new("rooms/prices.py", PRICES)),),
    ),
    "gemini": _session(
        before=(Use("read_file", {"file_path": "rooms/bookings.py"}),),
        run=RUNS["gemini"],
        half=Use("replace", {"file_path": FILE, "instruction": "compare", "old_string": WRONG, "new_string": HALF}),
        right=Use("replace", {"file_path": FILE, "instruction": "compare", "old_string": HALF, "new_string": RIGHT}),
        after=(
            Use("write_file", {"file_path": _PRICES, "content": PRICES}),
            Use(
                "write_todos",
                {"todos": [{"description": each["content"], "status": each["status"]} for each in _TODOS]},
            ),
        ),
    ),
    "copilot": _session(
        before=(Use("view", {"path": FILE}),),
        run=RUNS["copilot"],
        half=Use("edit", {"path": FILE, "old_str": WRONG, "new_str": HALF}),
        right=Use("edit", {"path": FILE, "old_str": HALF, "new_str": RIGHT}),
        after=(Use("create", {"path": _PRICES, "file_text": PRICES}),),
    ),
    "opencode": _session(
        before=(Use("read", {"filePath": FILE}),),
        run=RUNS["opencode"],
        half=Use("edit", {"filePath": FILE, "oldString": WRONG, "newString": HALF}),
        right=Use("edit", {"filePath": FILE, "oldString": HALF, "newString": RIGHT}),
        after=(Use("write", {"filePath": _PRICES, "content": PRICES}), Use("todowrite", {"todos": _TODOS})),
    ),
}

# A sub-agent's own tool use and answer, in the middle of its parent's.
_INNER = "ls rooms/__init__.py"


def _delegated(tool: str, tool_input: dict[str, Any], inner: Use, *, ended: Step | None = None) -> Script:
    return Script(
        (PROMPT,),
        (Use(tool, tool_input, "delegated"), inner, ended or Say("It is there."), Say("Done by a sub-agent.")),
    )


PIECES["claude-code"] += (
    _delegated(
        "Agent",
        {
            "description": "Look",
            "prompt": "Is it there?",
            "subagent_type": "general-purpose",
            "run_in_background": False,
        },
        Use("Bash", {"command": _INNER}, "inner"),
    ),
)
PIECES["opencode"] += (
    _delegated(
        "task",
        {"description": "Look", "prompt": "Is it there?", "subagent_type": "general"},
        Use("bash", {"command": _INNER, "description": "Look"}, "inner"),
    ),
)
# A window that is full, as the model claims: the client shortens its conversation.
PIECES["opencode"] += (
    Script(
        (PROMPT, "Where were we?"),
        (
            Use("bash", {"command": "ls rooms", "description": "Look"}, "window-full", read=110_000),
            Say("Two."),
            Say("At the prices."),
        ),
    ),
)
PIECES["copilot"] += (
    _delegated(
        "task",
        {
            "name": "look",
            "description": "Look",
            "prompt": "Is it there?",
            "agent_type": "general-purpose",
            "mode": "sync",
        },
        Use("bash", {"command": _INNER, "description": "Look"}, "inner"),
    ),
)
PIECES["gemini"] += (
    _delegated(
        "invoke_agent",
        {"agent_name": "generalist", "prompt": "Is it there?"},
        Use("run_shell_command", {"command": _INNER}, "inner"),
        ended=Use("complete_task", {"result": "It is there.", "response": "It is there."}),
    ),
)
