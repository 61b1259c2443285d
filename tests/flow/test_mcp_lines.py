"""Whatever arrives on stdin, the server lives, and stdout holds whole lines of JSON-RPC and nothing else."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from foreword.hook import build
from foreword.paths import Home
from foreword.worker.mcp_schema import INSTRUCTIONS, TOOLS
from tests.flow.conftest import CLEAN, PATIENT

PING = b'{"jsonrpc":"2.0","id":"alive","method":"ping"}\n'


def served(home: Home, project: str, *lines: bytes, **environ: str) -> list[Any]:
    """What the launcher says to these lines, until it leaves by itself."""
    with launched(home, project, **environ) as process:
        out, err = process.communicate(b"".join(lines), timeout=60)
    assert process.returncode == 0
    assert b"Traceback" not in err
    assert out.endswith(b"\n") or not out
    return [json.loads(line) for line in out.splitlines()]


@contextmanager
def launched(home: Home, project: str, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    home.mcp.write_text(build.launchers(home)[home.mcp])
    home.mcp.chmod(0o700)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    env = {**CLEAN, **PATIENT, **environ}
    with subprocess.Popen([str(home.mcp)], cwd=project, env=env, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def request(id: Any, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


def call(id: Any, tool: str, **arguments: Any) -> bytes:
    return request(id, "tools/call", name=tool, arguments=arguments)


def test_nothing_is_answered_to_nothing(home: Home, project: str):
    assert served(home, project) == []
    assert served(home, project, b"\n \r\n\n") == []


def test_garbage_is_refused_and_what_follows_is_heard(home: Home, project: str):
    answer = served(
        home, project, b"nonsense\n", b'{"half":\n', b"\xff\xfe\x00\n", b"[]\n", b"[" * 100_000 + b"\n", PING
    )
    assert [each.get("error", {}).get("code") for each in answer] == [-32700, -32700, -32700, -32600, -32700, None]
    assert answer[-1]["id"] == "alive"


def test_invalid_utf_8_inside_a_request_does_not_cost_the_answer(home: Home, project: str):
    answer = served(home, project, b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}\n', PING)
    assert [each["id"] for each in answer] == ["\ufffd", "alive"]


def test_a_last_line_without_its_end_is_heard(home: Home, project: str):
    assert [each["id"] for each in served(home, project, PING, PING.rstrip())] == ["alive", "alive"]


def test_a_line_that_comes_in_pieces_is_one_line(home: Home, project: str):
    with launched(home, project) as process:
        for byte in PING:
            process.stdin.write(bytes([byte]))
            process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == "alive"


def test_a_line_of_ten_megabytes_is_answered_and_one_that_never_ends_is_refused(home: Home, project: str, start):
    start()
    long = call(1, "memory_search", query="x" * 10_000_000)
    first, alive = sorted(served(home, project, long, PING), key=lambda each: str(each["id"]))
    assert "at most 2000 characters" in first["result"]["content"][0]["text"]
    assert alive["id"] == "alive"
    endless = served(home, project, b'"' + b"x" * (40 << 20) + b"\n", PING)
    assert [each["id"] for each in endless] == [None, "alive"]


def test_many_calls_at_once_are_each_answered_once_in_whole_lines(home: Home, project: str, start):
    start()
    lines = [call(number, "memory_search", query=f"zebra {number}") for number in range(100)]
    lines += [request(f"ping {number}", "ping") for number in range(100)]
    random.Random(7).shuffle(lines)
    answer = served(home, project, *lines)
    assert sorted(str(each["id"]) for each in answer) == sorted(
        [*map(str, range(100)), *(f"ping {number}" for number in range(100))]
    )
    assert all("result" in each for each in answer)


def test_a_client_that_is_gone_ends_it_without_a_word(home: Home, project: str):
    with launched(home, project) as process:
        process.stdout.close()
        process.stdin.write(PING * 100)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=30) == 0


def test_no_stored_text_is_in_what_it_says_of_itself(home: Home, project: str, start):
    client = start()
    for kind in ("decision", "preference", "project", "goal"):
        client.post("/api/memories", {"kind": kind, "title": "zebra canary", "project_path": project})
    answer = served(home, project, request(1, "initialize", protocolVersion="2025-11-25"), request(2, "tools/list"))
    assert "canary" not in json.dumps(answer)
    assert answer[0]["result"]["instructions"] == INSTRUCTIONS
    assert [tool["name"] for tool in answer[1]["result"]["tools"]] == [tool["name"] for tool in TOOLS]


def test_the_launcher_serves_also_where_its_package_has_moved(home: Home, project: str):
    text = build.launchers(home)[home.mcp]
    assert build.START_MCP in text
    moved = text.replace(str(build.PACKAGE.parent), "/nowhere/at/all")
    home.mcp.write_text(moved)
    home.mcp.chmod(0o700)
    ran = subprocess.run(
        [str(home.mcp)], input=PING, capture_output=True, cwd=project, env=CLEAN, check=True, timeout=30
    )
    assert json.loads(ran.stdout)["id"] == "alive"


def test_a_folder_full_of_modules_with_our_names_is_not_where_it_looks(home: Home, project: str):
    for name in ("json.py", "posix.py", "foreword.py", "_json.py", "os.py", "time.py"):
        with open(os.path.join(project, name), "w") as file:
            file.write("raise SystemExit('taken over')\n")
    assert [each["id"] for each in served(home, project, PING, PYTHONPATH=project)] == ["alive"]


def test_an_end_of_stdin_waits_for_what_was_asked(home: Home, project: str, start):
    start()
    answer = served(home, project, call(1, "memory_context"))
    assert "result" in answer[0]
