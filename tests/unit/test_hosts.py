"""hosts: the files that a tool was told to read or write, as each host tells them."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from foreword.agents import AGENTS, files_of, find
from tests.tables import table

PATCH = """*** Begin Patch
*** Update File: src/shop/views.py
@@ def checkout
-    total = 1
+    total = 2
*** Add File: src/shop/rounding.py
+*** Update File: not/a/header.py
*** Delete File: old.py
*** Update File: a b.py
*** Move to: b c.py
*** End Patch"""
PATCHED = ("src/shop/views.py", "src/shop/rounding.py", "old.py", "a b.py", "b c.py")


@table(
    ("tool_input", "files"),
    [
        ({"file_path": "/p/a.py", "content": "x"}, ("/p/a.py",)),
        ({"notebook_path": "/p/a.ipynb"}, ("/p/a.ipynb",)),
        ({"filePath": "/p/b.ts", "oldString": "path"}, ("/p/b.ts",)),
        ({"absolute_path": "/p/c.go"}, ("/p/c.go",)),
        ({"target_file": "d.rs", "instructions": "x"}, ("d.rs",)),
        ({"command": "str_replace", "path": "/p/e.py", "file_text": "x"}, ("/p/e.py",)),
        ({"paths": ["a.py", "b.py", 3]}, ("a.py", "b.py")),
        ({"file_path": "a.py", "edits": [{"old_string": "x"}, {"file_path": "b.py"}]}, ("a.py", "b.py")),
        ({"command": PATCH}, PATCHED),
        ({"input": PATCH}, PATCHED),
        ({"patchText": PATCH}, PATCHED),
        (PATCH, PATCHED),
        ({"pattern": "*.py", "path": "/p/src"}, ()),
        ({"command": "echo '*** Update File: x.py'"}, ()),
        ({"file_path": "", "path": 7}, ()),
        ({"query": "q"}, ()),
        (None, ()),
    ],
)
def test_a_tools_input_names_its_files(tool_input, files):
    assert files_of(tool_input) == files


@table(
    ("recorded", "host", "files"),
    [
        ("claude.PostToolUse.Edit", "claude-code", ("/home/user/project/b.txt",)),
        ("claude.PostToolUse.Write", "claude-code", ("/home/user/project/a.txt",)),
        ("claude.PostToolUse.Read", "claude-code", ("/home/user/project/a.txt",)),
        ("claude.PostToolUse.Bash", "claude-code", ()),
        ("claude.UserPromptSubmit", "claude-code", ()),
        ("codex.PostToolUse.Bash", "codex", ()),
        ("gemini.AfterTool.run_shell_command", "gemini", ()),
        ("copilot.postToolUse.bash", "copilot", ()),
    ],
)
def test_recorded_tool_uses_name_their_files(shared, recorded, host, files):
    payload = json.loads((shared / "payloads" / f"{recorded}.json").read_text(encoding="utf-8"))["stdin"]
    assert find(host).parse(payload).files == files


@table(
    ("host", "payload"),
    [
        ("codex", {"tool_name": "apply_patch", "tool_input": {"command": PATCH}}),
        ("copilot", {"toolName": "edit", "toolArgs": {"path": "/p/a.py"}}),
        ("gemini", {"tool_name": "replace", "tool_input": {"file_path": "/p/a.py"}}),
        ("cursor", {"tool_name": "Write", "tool_input": {"file_path": "/p/a.py"}}),
        ("opencode", {"tool": "edit", "args": {"filePath": "/p/a.py"}}),
    ],
)
def test_every_host_tells_the_files_of_its_tools(host, payload):
    assert find(host).parse(payload).files in (("/p/a.py",), PATCHED)


ANY = st.recursive(
    st.none() | st.integers() | st.text(max_size=20) | st.just(PATCH),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["file_path", "path", "edits", "files", "paths", "command", "x"]), inner)
    ),
    max_leaves=8,
)


@given(ANY)
def test_any_input_names_some_texts(value):
    assert all(isinstance(each, str) and each for each in files_of(value))
    for host in AGENTS:
        for field in ("tool_input", "toolArgs", "args"):
            assert isinstance(find(host).parse({field: value}).files, tuple)


@table("host", sorted(AGENTS))
def test_the_page_of_a_host_names_every_event_we_listen_to(host):
    page = (Path(__file__).resolve().parents[2] / "docs" / "agents" / f"{host}.md").read_text(encoding="utf-8")
    assert [event for event in find(host).events if f"`{event}`" not in page] == []
