"""Transcripts of Claude Code and Codex become actions: in order, once, without secrets, in bounded memory."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.extract.actions import Action, own_words
from foreword.importers import transcripts
from foreword.importers.transcripts import actions, peek
from tests.sessions import START, Claude, Codex
from tests.tables import table

ROOT = "/home/user/rooms"
KEY = "ghp_" + "a1B2" * 9  # of the format that is redacted


def read(path: Path, *, agent: str = "claude-code", **more: Any) -> list[Action]:
    return list(actions(str(path), agent=agent, root=ROOT, **more))


def inner(path: Path, *, agent: str = "claude-code", **more: Any) -> list[Action]:
    """What lies between start and end."""
    return read(path, agent=agent, **more)[1:-1]


def described(found: list[Action]) -> list[str]:
    """Actions as a person would note them down."""
    lines = []
    for action in found:
        how = {True: " FAILED", False: "", None: " ?"}[action.failed] if action.kind == "tool" else ""
        what = action.command or " ".join(action.files) or action.text or action.source
        edits = "".join(f" [{edit.before!r} -> {edit.after!r}]" for edit in action.edits)
        todos = "".join(f" ({'x' if todo.done else ' '}) {todo.text}" for todo in action.todos)
        lines.append(
            f"{action.kind} {action.act}{how}: {what}{edits}{todos}".replace(" :", ":").replace(":  ", ": ").strip()
        )
    return lines


# ---- Claude Code


def test_a_session_reads_like_a_story(tmp_path: Path) -> None:
    session = (
        Claude(ROOT)
        .raw({"type": "queue-operation", "operation": "enqueue", "content": "fix the booking test"})
        .line("attachment", {"attachment": {"type": "hook_additional_context", "content": ["what we injected"]}})
        .prompt("fix the booking test")
        .raw(
            {
                "type": "api-request-blob",
                "message": {"role": "user", "content": [{"type": "text", "text": "all of it"}]},
            }
        )
        .blocks([{"type": "thinking", "thinking": "hm, where is it", "signature": "abc"}])
        .answer("I will run it first.")
        .tool("Bash", {"command": "pytest -q"}, "Exit code 1\n1 failed", "Error: Exit code 1\n1 failed", is_error=True)
        .tool(
            "TodoWrite",
            {"todos": [{"content": "fix it", "status": "in_progress"}, {"content": "run", "status": "pending"}]},
        )
        .tool(
            "Read",
            {"file_path": f"{ROOT}/rooms/slots.py"},
            "1\tdef free",
            {"type": "text", "file": {"content": "def free"}},
        )
        .tool(
            "Edit",
            {"file_path": f"{ROOT}/rooms/slots.py", "old_string": "<", "new_string": "<="},
            "The file has been updated.",
            {"filePath": f"{ROOT}/rooms/slots.py", "originalFile": "a < b", "structuredPatch": []},
        )
        .tool("Bash", {"command": "pytest -q"}, "3 passed", {"stdout": "3 passed", "stderr": "", "interrupted": False})
        .compacted()
        .prompt("now commit")
        .answer("Done.")
    )
    assert described(read(session.write(tmp_path / "s.jsonl"))) == [
        "start: startup",
        "prompt: fix the booking test",
        "answer: I will run it first.",
        "tool run FAILED: pytest -q",
        "tool plan: ( ) fix it ( ) run",
        "tool read: rooms/slots.py",
        "tool edit: rooms/slots.py ['a < b' -> 'a <= b']",
        "tool run: pytest -q",
        "compaction:",
        "prompt: now commit",
        "answer: Done.",
        "end:",
    ]


def test_real_lines_become_a_prompt_and_a_command(shared: Path, tmp_path: Path) -> None:
    recorded = json.loads((shared / "payloads" / "claude.transcript-lines.json").read_text())
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in recorded))
    found = list(actions(str(path), agent="claude-code", root="/home/user/project"))
    assert [action.kind for action in found] == ["start", "prompt", "tool", "end"]
    assert found[2].command == "echo hi-from-bash"
    assert (found[2].output, found[2].failed, found[2].id) == ("hi-from-bash", False, "toolu_fake000001")
    assert "INJECT" not in repr(found)


def test_only_what_people_said_counts_and_once(tmp_path_factory):
    # What the client says of itself is nobodys word.
    tmp_path = tmp_path_factory.mktemp("x")
    session = Claude(ROOT)
    session.prompt("hidden", isMeta=True).prompt("of a sub-agent", isSidechain=True)
    session.answer("API Error: overloaded", isApiErrorMessage=True)
    session.prompt("[Request interrupted by user for tool use]")
    session.prompt("<local-command-stdout>Set model to opus</local-command-stdout>")
    session.prompt(
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>"
    )
    session.prompt("wake up", promptSource="loop_wakeup")
    session.raw({"type": "summary", "summary": "Fixing rooms", "leafUuid": "x"})
    session.prompt("<system-reminder>\nToday is Sunday.\n</system-reminder>").prompt("add a test")
    assert described(inner(session.write(tmp_path / "s.jsonl"))) == ["prompt: add a test"]
    # Ours that was cut hides all that follows.
    assert own_words("--- foreword: 4 notes that may matter\n[failure] fai-1 | x") == ""
    # Lines that are reported twice count once.
    tmp_path = tmp_path_factory.mktemp("x")
    session = Claude(ROOT).prompt("one").answer("two")
    session.lines += session.lines
    assert described(inner(session.write(tmp_path / "s.jsonl"))) == ["prompt: one", "answer: two"]
    # A fork tells only what its origin does not.
    tmp_path = tmp_path_factory.mktemp("x")
    origin = Claude(ROOT).prompt("one").tool("Bash", {"command": "ls"}, "a").answer("two")
    fork = Claude(ROOT, session="fork", at=START + 100)
    fork.lines = [line | {"sessionId": "fork"} for line in origin.lines]
    fork.prompt("three")
    seen: set[str] = set()
    read(origin.write(tmp_path / "o.jsonl"), seen=seen)
    assert described(read(fork.write(tmp_path / "fork.jsonl"), seen=seen)) == [
        "start: startup",
        "prompt: three",
        "end:",
    ]
    # What the user rejected was not done.
    tmp_path = tmp_path_factory.mktemp("x")
    rejected = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected. "
        "To tell you how to proceed, the user lines:\nuse slots instead"
    )
    session = Claude(ROOT).prompt("go")
    session.tool("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, rejected, is_error=True)
    assert described(inner(session.write(tmp_path / "s.jsonl"))) == ["prompt: go"]


@table(
    "injected",
    [
        "--- foreword: notes from earlier sessions in rooms ---\n- x\n--- end foreword ---\n",
        "<foreword_context project='rooms'>\n<rule>x</rule>\n</foreword_context>",
        "<hook_context>whatever</hook_context>",
    ],
)
def test_what_we_injected_never_comes_back_as_the_users_words(injected: str) -> None:
    assert own_words(f"{injected}\nrename it").split() == ["[…]", "rename", "it"]
    assert own_words(injected) == ""


def test_tools_find_their_results_and_tasks_their_list(tmp_path_factory):
    # A call that nobody answered is reported at the end.
    tmp_path = tmp_path_factory.mktemp("x")
    session = (
        Claude(ROOT).prompt("go").blocks([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}])
    )
    assert described(inner(session.write(tmp_path / "s.jsonl"))) == ["prompt: go", "tool run ?: ls"]
    # Parallel calls find their own results.
    tmp_path = tmp_path_factory.mktemp("x")
    calls = [{"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": {"command": f"echo {n}"}} for n in range(3)]
    session = Claude(ROOT).blocks(calls)
    for n in (2, 0, 1):
        session.result(f"t{n}", str(n), is_error=n == 1)
    found = inner(session.write(tmp_path / "s.jsonl"))
    assert [(action.command, action.output, action.failed) for action in found] == [
        ("echo 2", "2", False),
        ("echo 0", "0", False),
        ("echo 1", "1", True),
    ]
    # Calls that a model gives the same id are two.
    tmp_path = tmp_path_factory.mktemp("x")
    session, codex = Claude(ROOT), Codex(ROOT)
    for n in (1, 2):
        session.blocks([{"type": "tool_use", "id": "call_0", "name": "Bash", "input": {"command": f"echo {n}"}}])
        session.result("call_0", str(n))
        codex.item("function_call", name="shell", arguments=json.dumps({"command": [f"echo{n}"]}), call_id="call_0")
        codex.item("function_call_output", call_id="call_0", output=str(n))
    found = inner(session.write(tmp_path / "s.jsonl"))
    assert [(action.command, action.id) for action in found] == [("echo 1", "call_0"), ("echo 2", "call_0/2")]
    assert [action.command for action in inner(codex.write(tmp_path / "r.jsonl"), agent="codex")] == ["echo1", "echo2"]


def test_other_folders_and_broken_lines_are_left_out_and_old_versions_read(tmp_path_factory):
    # What was done in another folder is left out.
    tmp_path = tmp_path_factory.mktemp("x")
    session = Claude(ROOT).prompt("here")
    session.cwd = "/home/user/secret-project"
    session.tool("Bash", {"command": "make secret"}, "secret")
    session.cwd = ROOT
    session.answer("back")
    found = read(session.write(tmp_path / "s.jsonl"), here=lambda cwd: cwd == ROOT)
    assert described(found) == ["start: startup", "prompt: here", "answer: back", "end:"]
    # Older sessions are read as well.
    tmp_path = tmp_path_factory.mktemp("x")
    session = Claude(ROOT, version="2.0.76").prompt([{"type": "text", "text": "go"}], promptId=None)
    session.tool(
        "Bash", {"command": "ls"}, [{"type": "text", "text": "a.py"}, {"type": "image", "source": {"data": "x" * 99}}]
    )
    found = inner(session.write(tmp_path / "s.jsonl"))
    assert described(found) == ["prompt: go", "tool run: ls"]
    assert found[1].output == "a.py"
    # Broken lines are skipped and counted.
    tmp_path = tmp_path_factory.mktemp("x")
    bad: list[int] = []
    session = Claude(ROOT).prompt("one").raw('{"type": "user", "mess').raw("[1, 2]").raw("\0\0\0").raw("")
    session.raw({"type": "user", "message": None}).raw({"type": "user", "message": {"content": [1, None, {"type": 3}]}})
    session.raw({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": [1], "input": "x"}]}}).answer(
        "two"
    )
    found = inner(session.write(tmp_path / "s.jsonl"), bad=bad)
    assert [action.text for action in found if action.text] == ["one", "two"]
    assert len(bad) == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
WORDS = ["type", "message", "content", "role", "payload", "timestamp", "user", "assistant", "tool_use", "tool_result"]
WORDS += ["id", "input", "response_item", "function_call", "event_msg", "item_completed", "function_call_output"]
FIELDS = st.dictionaries(st.sampled_from(WORDS), JSON | st.sampled_from(WORDS), max_size=8)
SHAPES = st.recursive(
    FIELDS, lambda inner: st.dictionaries(st.sampled_from(WORDS), inner | st.lists(inner), max_size=4)
)


@given(st.lists(SHAPES, max_size=6), st.sampled_from(["claude-code", "codex"]))
@settings(max_examples=12, deadline=None)
def test_no_line_whatever_it_says_breaks_the_reading(tmp_path_factory: Any, some: list[Any], agent: str) -> None:
    path = tmp_path_factory.mktemp("t") / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in some))
    for action in read(path, agent=agent):
        assert action.kind in ("start", "prompt", "answer", "tool", "compaction", "end")
    peek(str(path), agent=agent)


# ---- Codex


def test_a_rollout_reads_like_a_story(tmp_path: Path) -> None:
    session = (
        Codex(ROOT)
        .prompt("fix the booking test")
        .item("reasoning", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="gAAA")
        .tool("exec_command", {"cmd": "pytest -q"}, "Chunk ID: 3\nProcess exited with code 1\nOutput:\n1 failed\n")
        .tool("update_plan", {"plan": [{"step": "fix it", "status": "in_progress"}]}, "Plan updated")
        .patch("*** Begin Patch\n*** Update File: rooms/slots.py\n@@\n-a < b\n+a <= b\n*** End Patch")
        .tool("shell", {"command": ["bash", "-lc", "pytest -q"]}, '{"output":"3 passed","metadata":{"exit_code":0}}')
        .tool("shell_command", {"command": "make", "workdir": "docs"}, "Exit code: 2\nOutput:\nstopped")
        .event("turn_aborted", reason="interrupted")
        .line("compacted", {"message": "so far"})
        .answer("Done.")
    )
    found = read(session.write(tmp_path / "r.jsonl"), agent="codex")
    assert [line.split(" [")[0] for line in described(found)] == [
        "start: startup",
        "prompt: fix the booking test",
        "tool run FAILED: pytest -q",
        "tool plan ?: ( ) fix it",
        "tool edit: rooms/slots.py",
        "tool run: pytest -q",
        "tool run FAILED: make",
        "compaction:",
        "answer: Done.",
        "end:",
    ]
    assert [action.output for action in found if action.act == "run"] == ["1 failed\n", "3 passed", "stopped"]


def test_a_real_rollout_becomes_prompts_commands_edits_and_answers() -> None:
    path = Path(__file__).parents[1] / "payloads" / "transcripts" / "codex.jsonl"
    found = list(actions(str(path), agent="codex", root="/home/user/project"))
    assert [action.act or action.kind for action in found] == [
        *("start", "prompt", "run", "edit", "run", "edit", "run", "answer"),
        *("prompt", "edit", "run", "answer", "end"),
    ]
    assert [action.failed for action in found if action.kind == "tool"] == [
        True,
        False,
        True,
        False,
        False,
        False,
        False,
    ]
    assert found[1].text.startswith("Members complain")


def test_a_prompt_counts_once_whatever_events_repeat_it(tmp_path: Path) -> None:
    forms = ("item", "event", "completed")
    session = Codex(ROOT).prompt("continue", forms=forms).answer("ok").prompt("continue", forms=forms).answer("ok")
    found = inner(session.write(tmp_path / "r.jsonl"), agent="codex")
    assert described(found) == ["prompt: continue", "answer: ok"] * 2


# ---- a look


def test_the_first_lines_tell_whose_session_it_is(tmp_path: Path) -> None:
    session = Claude(ROOT, session="s-1").raw({"type": "summary", "summary": "x"}).prompt("fix it")
    path = session.write(tmp_path / "s-1.jsonl")
    with open(path, "ab") as file:
        file.truncate(3_000_000_000)  # a hole: reading all of it takes a minute
    assert peek(str(path), agent="claude-code") == ("s-1", ROOT)
    path = Codex(ROOT, session="c-1").prompt("fix it").write(tmp_path / "rollout.jsonl")
    assert peek(str(path), agent="codex") == ("c-1", ROOT)
    # A file without a folder is nobody's.
    path = tmp_path / "s.jsonl"
    path.write_text('{"type":"summary","summary":"x","leafUuid":"y"}\n' * 10)
    assert peek(str(path), agent="claude-code") == ("s", "")


# ---- secrets


def test_half_a_character_is_replaced_wherever_it_stands(tmp_path: Path) -> None:
    """JSON can spell half of a surrogate pair; no file can hold it."""
    half = "x\ud83d"
    session = Claude(ROOT).prompt(half).tool("Bash", {"command": half}, f"Exit code 1\n{half}", is_error=True)
    codex = Codex(ROOT).prompt(half).tool("exec_command", {"cmd": half}, half)
    found = read(session.write(tmp_path / "s.jsonl")) + read(codex.write(tmp_path / "r.jsonl"), agent="codex")
    assert {action.command or action.text for action in found} >= {"x?"}
    assert "\\ud83d" not in repr(found)


def test_no_secret_leaves_a_transcript(tmp_path: Path) -> None:
    session = Claude(ROOT).prompt(f"use {KEY}, <private>my birthday</private> ok").answer(f"I used {KEY}")
    session.tool("Bash", {"command": f"curl -H {KEY}"}, f"got {KEY}", {"stdout": KEY, "structuredPatch": [KEY]})
    session.tool("Write", {"file_path": "a.env", "content": f"KEY={KEY}"}, "ok", {"originalFile": f"OLD={KEY}"})
    codex = (
        Codex(ROOT)
        .prompt(f"use {KEY}")
        .tool("exec_command", {"cmd": f"curl {KEY} <private>x"}, f'{{"output":"{KEY}"}}')
    )
    found = read(session.write(tmp_path / "s.jsonl")) + read(codex.write(tmp_path / "r.jsonl"), agent="codex")
    assert KEY not in repr(found)
    assert "birthday" not in repr(found)
    assert "[redacted:github-token]" in repr(found)


def test_long_texts_keep_their_ends_and_secrets_at_a_cut_are_gone(tmp_path: Path) -> None:
    half = transcripts.TEXT // 2
    for shift in range(0, 44, 4):
        text = "a " * ((half - shift) // 2) + KEY + " b" * 100_000 + " " + KEY + "c " * ((half - 40 + shift) // 2)
        (action,) = inner(Claude(ROOT).answer(text).write(tmp_path / "s.jsonl"))
        assert len(action.text) < transcripts.TEXT + 100
        assert not any(KEY[:n] in action.text for n in range(9, len(KEY)))
    (action,) = inner(Claude(ROOT).answer("see " * 20_000 + "<private>the plan " * 20_000).write(tmp_path / "s.jsonl"))
    assert action.text.startswith("see see")
    assert "plan" not in action.text


def test_a_long_message_of_codex_is_known_by_all_of_its_text(tmp_path: Path) -> None:
    text = "see " * 20_000 + "the plan"
    (action,) = inner(Codex(ROOT).prompt(text, forms=("item",)).write(tmp_path / "r.jsonl"), agent="codex")
    assert len(action.text) < len(text)
    assert action.id == hashlib.blake2b(f"prompt\0{text}".encode(), digest_size=8).hexdigest()


def test_a_line_that_is_too_long_is_left_out_and_the_next_one_is_read(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(transcripts, "MOST_LINE", 10_000)
    bad: list[int] = []
    session = Claude(ROOT).prompt("one").prompt("x" * 20_000).prompt("two")
    assert described(inner(session.write(tmp_path / "s.jsonl"), bad=bad)) == ["prompt: one", "prompt: two"]
    assert len(bad) == 1


# ---- memory

GROWTH = """
import os, resource, sys
from foreword.importers.transcripts import actions
def peak():  # MB; Linux counts the parent's into what `resource` tells
    if not os.path.exists("/proc/self/status"):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
count = sum(1 for _ in actions(sys.argv[1], agent="claude-code", root="/home/user/rooms"))
print(count, peak() - before)
"""


def test_ten_megabytes_are_read_in_few(tmp_path: Path) -> None:
    session = Claude(ROOT).prompt("go")
    for n in range(300):
        session.tool("Bash", {"command": f"make {n}"}, "some output\n" * 1_000, {"stdout": "some output\n" * 1_000})
    session.tool("Bash", {"command": "cat all"}, "a long line of a log\n" * 150_000)
    session.prompt(
        [{"type": "image", "source": {"type": "base64", "data": "iVBOR" * 400_000}}, {"type": "text", "text": "see"}]
    )
    path = session.write(tmp_path / "s.jsonl")
    assert path.stat().st_size > 10_000_000
    done = subprocess.run([sys.executable, "-c", GROWTH, str(path)], capture_output=True, text=True, check=True)
    count, growth = done.stdout.split()
    assert int(count) == 305
    assert float(growth) < 30  # MB; the goal for 100 MB is 60
