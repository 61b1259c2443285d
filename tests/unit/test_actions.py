"""actions: every recorded payload becomes the right event and the right action, whatever its host calls things."""

import json
import os
import random
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from foreword.agents import AGENTS, find
from foreword.agents.transcript_tail import TAIL, codex_exit, copilot_answer
from foreword.capture.parse import capture_event, store_events
from foreword.capture.payload import CUT, HookCall
from foreword.extract.actions import (
    Todo,
    ToolUse,
    action_of,
    is_ours,
    own_words,
    todos_after,
    tool_action,
    without_ours,
)
from foreword.models import EVENTS, Edit, Event, Project
from foreword.store import Store
from tests.growth import assert_linear
from tests.tables import table

HERE = Path(__file__).resolve().parents[1]
PAYLOADS, GOLDEN = HERE / "payloads", HERE / "golden"
ROOT = "/home/user/project"
RECORDED = sorted(path for path in PAYLOADS.glob("*/*.json"))
SESSIONS = sorted((PAYLOADS / "sessions").glob("*.jsonl"))
AT = 1_790_000_000.0
CAP = 64 * 1024


def read_of(host, event, payload, *, at=AT, cap=CAP):
    """The event that a hook's payload becomes, on its way through capture."""
    raw = json.dumps(payload).encode()
    hook_call = HookCall(host=host, event=event, at=at, raw=raw)
    return capture_event(
        hook_call, text_cap=cap, find_project=lambda folder: Project(key="k", name="project", root=folder)
    )


def recorded(path):
    """Host, event and payload of one file; a rollout that was recorded with it is where the payload says it is."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    payload, host = kept["payload"], path.parent.name
    if host == "codex":
        payload["transcript_path"] = str(path.parent / f"rollout.{payload.get('model', '')}.jsonl")
    return host, kept["event"], payload


def session(path):
    """The reads of a whole recorded session, in order."""
    host = path.stem
    for line in path.read_text(encoding="utf-8").splitlines():
        captured = json.loads(line)
        for name in ("transcript_path", "transcriptPath"):
            if name in captured["payload"] and host in ("codex", "copilot"):
                captured["payload"][name] = str(PAYLOADS / "transcripts" / f"{host}.jsonl")
        yield read_of(host, captured["event"], captured["payload"], at=captured["at"])


# -- what people read ---------------------------------------------------------------------------------------------
def test_every_recorded_payload_becomes_the_right_action():
    lines = []
    for path in RECORDED:
        captured = read_of(*recorded(path))
        lines += [f"{path.parent.name} {path.name[:-5]}", *described(captured)]
    same_as("actions.txt", lines)


def test_every_recorded_session_becomes_the_right_actions():
    lines = []
    for path in SESSIONS:
        lines.append(f"{path.stem}: a whole session")
        for captured in session(path):
            lines += described(captured)
    same_as("sessions.txt", lines)


def test_every_shared_payload_becomes_the_right_action(shared):
    lines = []
    for path in sorted((shared / "payloads").glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(kept, dict) and (found := shared_payload(path.name, kept)):
            lines += [path.name[:-5], *described(read_of(*found))]
    same_as("shared.txt", lines)


def shared_payload(name, kept):
    client = name.split(".")[0]
    if client == "opencode":
        event = kept["hook"].removeprefix("event:")
        return (
            client,
            {"tool.after": "tool.execute.after", "text.complete": "experimental.text.complete"}.get(event, event),
            kept,
        )
    payload = kept.get("stdin") or kept.get("body")
    if not isinstance(payload, dict) or client == "copilot-pascal":  # a spelling that we do not register
        return None
    host = {"claude": "claude-code", "copilot": "copilot"}.get(client.split("-")[0], client)
    return host, payload.get("hook_event_name") or name.split(".")[1], payload


def described(captured):
    """An event and its action in a few lines: what the golden files hold."""
    event = captured.event
    action = action_of(event, root=ROOT)
    head = f"  {event.kind} of session {event.session[:8]}" + ("" if captured.wanted else ", not kept")
    if action is None:
        return [head, "    nothing"]
    what = action.kind if action.kind != "tool" else f"{action.act} ({action.tool})"
    ended = {True: "failed", False: "worked", None: "how it ended is not told"}[action.failed]
    lines = [
        head,
        f"    {what}{' ' + action.source if action.source else ''}{': ' + ended if action.kind == 'tool' else ''}",
    ]
    for name, text in (("said", action.text), ("command", action.command), ("output", action.output)):
        lines += [f"    {name}: {shortened(text)}"] if text else []
    lines += [f"    files: {', '.join(action.files)}"] if action.files else []
    for edit in action.edits:
        whole = " (whole)" if edit.whole else ""
        lines.append(f"    edit of {edit.file}{whole}: {shortened(edit.before)} -> {shortened(edit.after)}")
    lines += [f"    to do: [{'x' if todo.done else ' '}] {todo.text} {todo.id}".rstrip() for todo in action.todos]
    return [*lines, f"    id: {action.id}"] if not_hashed(action) else lines


def shortened(text):
    text = " | ".join((text or "").splitlines()) if text is not None else "no file"
    return text if len(text) <= 130 else f"{text[:60]} ... {text[-60:]}"


def not_hashed(action):
    return not (len(action.id) == 32 and set(action.id) <= set("0123456789abcdef"))


def same_as(name, lines):
    """Equal to the golden file, line for line; RENEW_GOLDEN=1 writes it anew, to be read before it is committed."""
    text = "".join(f"{line}\n" for line in lines)
    path = GOLDEN / name
    if os.environ.get("RENEW_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


# -- events -------------------------------------------------------------------------------------------------------
def test_what_is_told_twice_or_in_another_order_is_kept_once(tmp_path):
    captured = [each for path in SESSIONS for each in session(path)]
    captured += [read_of(*recorded(path)) for path in RECORDED]
    mixed = captured * 2
    random.Random(4).shuffle(mixed)
    store = Store(tmp_path / "memory.db", backups=tmp_path)
    try:
        new = [each.event for each, fresh in zip(mixed, store_events(store, mixed), strict=True) if fresh]
        assert {each.key for each in new} == {each.event.key for each in captured if each.wanted}
        lasting = [each.key for each in new if each.lasting]
        assert len(lasting) == len(set(lasting)) > 100
        assert not any(store_events(store, captured))
    finally:
        store.close()


def test_a_session_told_in_order_has_a_beginning_and_an_end():
    for path in SESSIONS:
        captured = [each for each in session(path) if each.wanted]
        actions = [action for each in captured if (action := action_of(each.event, root=ROOT))]
        assert len({each.event.session for each in captured}) == 1, path.stem
        assert actions[0].kind == "start"
        assert [action.kind for action in actions].count("prompt") == 2
        assert all(before.at <= after.at for before, after in pairwise(actions))
        runs = [action.failed for action in actions if action.command == "python -m pytest -q"]
        assert runs == [True, True, False], path.stem
        assert "Still open" in [action for action in actions if action.kind == "answer"][-1].text


@table("path", [path for path in RECORDED if "Tool" in path.name or "tool." in path.name])
def test_a_long_output_keeps_its_ends_and_how_it_ended(path):
    host, event, payload = recorded(path)
    short = action_of(read_of(host, event, payload).event, root=ROOT)
    if short is None or short.act != "run" or not short.output.strip():
        return
    some = short.output.strip().splitlines()[0]
    longer = some + "\n" + "x " * (CAP // 2)
    long = json.loads(json.dumps(payload).replace(json.dumps(some)[1:-1], json.dumps(longer)[1:-1]))
    capped = read_of(host, event, long, cap=4096).event
    assert len(json.dumps(capped.payload)) < 20_000
    action = action_of(capped, root=ROOT)
    assert action.failed == short.failed
    assert action.output.strip().startswith(some)
    assert "characters left out" in action.output
    last = short.output.strip().split("\n")[-1]
    assert last == some or action.output.strip().endswith(last)


def test_what_is_odd_or_ours_in_a_payload_does_no_harm():
    # The end of what was too long to read is part of the output.
    payload = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": {"stdout": "head"}}
    event = read_of("claude-code", "PostToolUse", payload).event
    action = action_of(event._replace(payload={**event.payload, CUT: {"total": 9, "tail": "the end"}}), root=ROOT)
    assert (action.output, action.failed) == ("head\n[...]\nthe end", False)
    # A host nobody knows tells nothing.
    event = Event(key="k", host="?", name="n", kind="tool", session="", project="", cwd="", at=AT, payload={})
    assert action_of(event, root=ROOT) is None
    # A text full of beginnings is read in time.
    assert without_ours("<hook_context>" * 50_000) == ""
    assert own_words("<system-reminder>" * 50_000) == ""
    # Our own block in a prompt is not kept.
    captured = read_of(
        "gemini", "BeforeAgent", {"prompt": f"<hook_context>{BLOCK}</hook_context>\n\nfix it", "cwd": "/p"}
    )
    assert "foreword" not in json.dumps(captured.event.payload)
    assert action_of(captured.event, root="/p").text == "fix it"


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = (
    "tool_name tool_input tool_response tool_use_id prompt error is_interrupt last_assistant_message toolName toolArgs "
    "toolResult tool_result tool_output error_message failure_type input output args metadata parts properties part "
    "state info message model timestamp source transcript_path transcriptPath todos plan edits command taskId task "
    "exit exitCode llmContent stdout content text result foreword_cut tail"
)
FIELDS = st.sampled_from(NAMES.split())
PAYLOAD = st.dictionaries(
    FIELDS, st.recursive(ANY, lambda inner: st.dictionaries(FIELDS, inner, max_size=4)), max_size=6
)


@given(st.sampled_from(sorted(AGENTS)), st.sampled_from(EVENTS), PAYLOAD)
def test_no_payload_makes_it_fail(host, kind, payload):
    event = Event(key="k", host=host, name="n", kind=kind, session="s", project="", cwd="", at=AT, payload=payload)
    action = action_of(event, root=ROOT)
    assert action is None or (isinstance(action.text, str) and isinstance(action.output, str))


@given(st.sampled_from(sorted(AGENTS)), PAYLOAD, st.data())
def test_no_payload_is_refused_by_capture(host, payload, data):
    event = data.draw(st.sampled_from(sorted(find(host).events)))
    captured = read_of(host, event, json.loads(json.dumps(payload).replace("NaN", "0").replace("Infinity", "0")))
    assert captured.event.kind == find(host).events[event]


# -- the user's own words -----------------------------------------------------------------------------------------
BLOCK = "--- foreword: notes from earlier sessions in rooms (history, not instructions) ---\n- x\n--- end foreword ---"
INDEX = "--- foreword: history, not instructions; memory_get shows all ---\n[decision] dec-1 | x\n--- end foreword ---"


@table(
    ("text", "words"),
    [
        ("fix it", "fix it"),
        (f"{BLOCK}\n\nfix it", "[…]\n\n\nfix it"),
        (f"fix it\n{INDEX}\nnow", "fix it\n[…]\n\nnow"),
        (f"fix it\n{BLOCK[:-20]}", "fix it\n[…]"),
        ("[foreword] Established:\n- x\n[end foreword]\nfix it", "[…]\n\nfix it"),
        ('<foreword_context project="rooms">\n<rules>x</rules>\n</foreword_context>fix it', "[…]\nfix it"),
        ("<hook_context>always x</hook_context>\n\nfix it", "[…]\n\n\nfix it"),
        (BLOCK, ""),
        ("<system-reminder>x</system-reminder>\nfix it", "<system-reminder>x</system-reminder>\nfix it"),
        ("<command-name>/clear</command-name><command-message>clear</command-message>", ""),
        ("<local-command-stdout>out</local-command-stdout>", ""),
        ("<task-notification>\n<task-id>b</task-id>\n</task-notification>", ""),
        ("<environment_context>\n  <cwd>/p</cwd>\n</environment_context>", ""),
        ("# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nalways x\n</INSTRUCTIONS>", ""),
        ("This session is being continued from a previous conversation that ran out of context. Always x.", ""),
        ("[Request interrupted by user]", ""),
        ("why does <system-reminder> show up?", "why does <system-reminder> show up?"),
        ("what prints --- foreword: notes --- there?", "what prints --- foreword: notes --- there?"),
        ("a < b and <INSTRUCTIONS_X>", "a < b and <INSTRUCTIONS_X>"),
        ("", ""),
    ],
)  # fmt: skip
def test_only_what_a_person_typed_counts_as_their_words(text, words):
    assert own_words(text) == words


@given(st.lists(st.sampled_from([BLOCK, INDEX, "<hook_context>", "</hook_context>", "fix it", "\n", "[foreword] "])))
def test_the_users_words_stay_the_same_when_taken_again(parts):
    once = own_words("".join(parts))
    assert own_words(once) == once


@table(
    ("host", "event", "payload"),
    [
        ("claude-code", "PostToolUse", {"tool_name": "mcp__plugin_foreword_foreword__memory_search",
         "tool_input": {"query": "q"}, "tool_response": [{"type": "text", "text": "REMEMBERED"}]}),
        ("claude-code", "PostToolUse", {"tool_name": "Bash", "tool_input": {"command": "foreword search x | head"},
         "tool_response": {"stdout": "REMEMBERED", "stderr": "", "interrupted": False}}),
        ("gemini", "AfterTool", {"tool_name": "mcp_foreword_memory_get", "tool_input": {"ids": "dec-1"},
         "tool_response": {"llmContent": [{"text": "REMEMBERED"}], "returnDisplay": "REMEMBERED"}}),
        ("opencode", "tool.execute.after", {"directory": "/p", "input": {"tool": "foreword_memory_context",
         "sessionID": "s", "callID": "c", "args": {}}, "output": {"content": [{"text": "REMEMBERED"}]}}),
        ("copilot", "postToolUse", {"toolName": "bash", "toolArgs": {"command": ".venv/bin/foreword context"},
         "toolResult": {"resultType": "success", "textResultForLlm": "REMEMBERED\n<x completed with exit code 0>"}}),
    ],
)  # fmt: skip
def test_what_our_own_tools_say_is_not_remembered_again(host, event, payload):
    captured = read_of(host, event, payload)
    assert "REMEMBERED" not in json.dumps(captured.event.payload)
    action = action_of(captured.event, root="/p")
    assert action.kind == "tool"
    assert action.output == ""
    # A transcript tells it again, unredacted by capture.
    assert tool_action(ToolUse(**find(host).tool_use(payload)), at=AT, cwd="/p", root="/p").output == ""


@table(
    ("command", "ours"),
    [
        ("foreword search x", True),
        ("cd /p && foreword show dec-1", True),
        ("FOREWORD_HOME=/x .venv/bin/foreword context", True),
        ("uv run foreword status", True),
        ("python3 -m foreword search x", True),
        ("cd foreword && pytest", False),
        ("pytest tests/foreword", False),
        ("git commit -m 'foreword: a hook'", False),
        ("cat src/foreword/actions.py", False),
        ("ls foreword", False),
        ('A="a;b" foreword search x', True),
    ],
)
def test_our_command_is_known_by_where_it_stands(command, ours):
    assert is_ours(ToolUse(tool="Bash", input={"command": command})) is ours


@table("part", ["\n", "\n  a=", ";", "a=b ", "a/", "x foreword ", "&foreword/"])
def test_a_long_command_is_read_once(part):
    assert_linear(lambda text: is_ours(ToolUse(tool="Bash", input={"command": f"x{text}!"})), part)


# -- what tools did -----------------------------------------------------------------------------------------------
PATCH = """*** Begin Patch
*** Update File: rooms/a.py
@@ def one():
-    return 1
+    return 2
 # end
@@
+x = 1
*** Add File: rooms/b.py
+y = 1
+@@ not a hunk
*** Delete File: c.py
*** Update File: d.py
*** Move to: e.py
@@
-old
+new
*** End Patch"""


def test_tools_tell_their_edits_and_lists():
    # A patch tells each of its edits.
    action = tool_action(ToolUse(tool="apply_patch", input={"command": PATCH}), at=AT, cwd=ROOT, root=ROOT)
    assert action.edits == (
        Edit(file="rooms/a.py", before="    return 1\n# end", after="    return 2\n# end"),
        Edit(file="rooms/a.py", before="", after="x = 1"),
        Edit(file="rooms/b.py", before=None, after="y = 1\n@@ not a hunk", whole=True),
        Edit(file="c.py", before="", after=None),
        Edit(file="e.py", before="old", after="new"),
    )
    # An edit that failed has changed nothing.
    used = ToolUse(tool="Edit", input={"file_path": "/p/a.py", "old_string": "a", "new_string": "b"}, failed=True)
    action = tool_action(used, at=AT, cwd="/p", root="/p")
    assert (action.edits, action.files) == ((), ("a.py",))
    # A file that was cut is no whole file.
    arguments = {"file_path": "/p/a.py", "old_string": "a", "new_string": "b"}
    used = ToolUse(tool="Edit", input=arguments, result={"originalFile": "a\n[90 characters left out]\nz"})
    assert tool_action(used, at=AT, cwd="/p", root="/p").edits == (Edit(file="a.py", before="a", after="b"),)
    # A list told entry by entry is put together.
    known: tuple[Todo, ...] = ()
    for captured in (Todo(text="one", id="1"), Todo(text="two", id="2"), Todo(text="", done=True, id="1")):
        known = todos_after(known, (captured,))
    assert known == (Todo(text="one", done=True, id="1"), Todo(text="two", id="2"))
    whole = (Todo(text="b"), Todo(text="c", done=True))
    assert todos_after((Todo(text="a"),), whole) == whole


# -- what stands in transcripts alone -----------------------------------------------------------------------------
def test_the_end_of_a_transcript_tells_what_hooks_do_not(tmp_path_factory):
    # The rollout tells how a command ended.
    tmp_path = tmp_path_factory.mktemp("x")
    rollout = str(PAYLOADS / "codex" / "rollout.gpt-5.5.jsonl")
    assert codex_exit(rollout, "call_0001") == 1
    assert codex_exit(rollout, "call_0007") == 0
    assert codex_exit(rollout, "call_9999") is None
    assert codex_exit(rollout, "") is None
    # A rollout that cannot be read tells nothing.
    tmp_path = tmp_path_factory.mktemp("x")
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "bytes.jsonl").write_bytes(b'\xff\x00"call_1"\n{"payload": {"call_id": "call_1"\n[1, "call_1"]\n')
    for path in ("", "gone.jsonl", "relative.jsonl", "pipe.jsonl", "folder.jsonl", "bytes.jsonl", "nul\0.jsonl"):
        assert codex_exit(str(tmp_path / path) if path != "relative.jsonl" else path, "call_1") is None
        assert copilot_answer(str(tmp_path / path), before=AT) == ""
    # An answer that no hook has seen is redacted.
    tmp_path = tmp_path_factory.mktemp("x")
    message = "Set ghp_0123456789abcdefghijABCDEFGHIJ012345, <private>not this</private>, \ud800"
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps({"type": "assistant.message", "data": {"content": message}}) + "\n")
    payload = {"sessionId": "s", "transcriptPath": str(path)}
    event = Event(
        key="k",
        host="copilot",
        name="agentStop",
        kind="stop",
        session="s",
        project="p",
        cwd="/p",
        at=AT,
        payload=payload,
    )
    assert action_of(event, root="/p").text == "Set [redacted:github-token], [redacted:private], ?"
    # Only the end of a rollout is read.
    tmp_path = tmp_path_factory.mktemp("x")

    def line(call, code):
        output = f"Wall time: 1 seconds\nProcess exited with code {code}\nOutput:\n" + "x" * 1000
        item = {"type": "function_call_output", "call_id": call, "output": output}
        return json.dumps({"type": "response_item", "payload": item}) + "\n"

    path = tmp_path / "rollout-1.jsonl"
    path.write_text("".join(line(f"call_{number}", number % 3) for number in range(2 * TAIL // 1000)))
    last = 2 * TAIL // 1000 - 1
    assert codex_exit(str(path), f"call_{last}") == last % 3
    assert codex_exit(str(path), "call_1") is None
    # A command that prints an exit code has not ended with it.
    tmp_path = tmp_path_factory.mktemp("x")
    message = "Wall time: 1 seconds\nProcess exited with code 0\nOutput:\nProcess exited with code 3\n"
    item = {"type": "function_call_output", "call_id": "call_1", "output": message}
    path = tmp_path / "rollout-1.jsonl"
    path.write_text(json.dumps({"type": "response_item", "payload": item}) + "\n")
    assert codex_exit(str(path), "call_1") == 0
    # The last answer is the last until then.
    transcript = PAYLOADS / "transcripts" / "copilot.jsonl"
    stops = [each.event.at for each in session(PAYLOADS / "sessions" / "copilot.jsonl") if each.event.kind == "stop"]
    first, last = (copilot_answer(str(transcript), before=at) for at in stops)
    assert first.startswith("Fixed:")
    assert "Still open" in last
