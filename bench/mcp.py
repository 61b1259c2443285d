"""What our MCP server costs next to the official SDK's own: to the first answer, and for a call; one run, interleaved.

    python bench/mcp.py [--rounds 15] [--calls 200]

Both are asked the same: spawn, `initialize`, and `tools/call` of `memory_get`, which costs the
worker next to nothing. The SDK's server has the same as its one tool, and asks the same worker by the same socket. For
the variant "the SDK inside the worker, behind a thin bridge" the SDK's own share of a call is measured in one process,
where it hands a text through; a bridge's share is at least what our own process needs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from foreword.hook import build
from foreword.paths import Home
from foreword.worker import lifecycle
from foreword.worker.client import Client

GREET = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
SDK = '''
import json, sys
from mcp.server.mcpserver import MCPServer
from foreword.worker.client import Client
from foreword.paths import Home
from pathlib import Path
server = MCPServer("bench")
client = Client(Home(Path(sys.argv[1])))

@server.tool()
def memory_get(ids: list[str]) -> str:
    """Read memories in full."""
    caller = {"cwd": sys.argv[2], "client": {"name": "bench"}}
    asked = {"tool": "memory_get", "arguments": {"ids": ids}, "caller": caller}
    return client.post("/api/mcp", asked)["text"]

if __name__ == "__main__":
    server.run("stdio")
'''
IN_PROCESS = """
import sys, time, anyio, statistics
sys.argv = ["x", sys.argv[1], sys.argv[2], sys.argv[3]]
exec(open(sys.argv[3]).read().replace('return client.post("/api/mcp", asked)["text"]', 'return TEXT'))
from mcp.client import Client as McpClient
TEXT = "x" * 2000
async def main():
    async with McpClient(server) as client:
        took = []
        for _ in range(300):
            began = time.perf_counter()
            await client.call_tool("memory_get", {"ids": ["x"]})
            took.append(time.perf_counter() - began)
        print(statistics.median(took[50:]) * 1000)
anyio.run(main)
"""


class Server:
    """A process that speaks MCP on its stdin and stdout."""

    def __init__(self, command: list[str], *, cwd: Path, env: dict[str, str]) -> None:
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=cwd, env=env
        )
        assert self._process.stdin
        assert self._process.stdout
        self._in, self._out = self._process.stdin, self._process.stdout
        self._number = 0

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._in.write(json.dumps(request).encode() + b"\n")
        self._in.flush()
        while True:
            answer = json.loads(self._out.readline())
            if answer.get("id") == self._number:
                return answer["result"]

    def tell(self, method: str) -> None:
        self._in.write(json.dumps({"jsonrpc": "2.0", "method": method}).encode() + b"\n")
        self._in.flush()

    def memory(self) -> float:
        """Its resident memory in MB, where /proc tells."""
        try:
            text = Path(f"/proc/{self._process.pid}/status").read_text()
        except OSError:
            return 0.0
        return int(text.partition("VmRSS:")[2].split()[0]) / 1024

    def close(self) -> None:
        self._in.close()
        self._process.wait(timeout=20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="fw-"))
    home, project = Home(scratch / "h"), scratch / "rooms"
    project.mkdir()
    (project / "pyproject.toml").write_text("")
    env = {"PATH": os.environ["PATH"], "FOREWORD_HOME": str(home.root), "HOME": str(scratch)}
    os.environ["FOREWORD_HOME"] = str(home.root)
    lifecycle.start(home)
    try:
        id = kept(Client(home), str(project))
        (scratch / "sdk.py").write_text(SDK)
        servers = {
            "ours (launcher, -I -S)": [str(home.mcp)],
            "ours (python -m)": [sys.executable, "-P", "-m", "foreword.mcp"],
            "mcp SDK, MCPServer": [sys.executable, str(scratch / "sdk.py"), str(home.root), str(project)],
        }
        bare = [build.interpreter(), "-I", "-S", "-c", "pass"]
        measured = measure(servers, bare, id, options, cwd=project, env=env)
        inside = scratch / "inside.py"
        inside.write_text(IN_PROCESS)
        command = [sys.executable, str(inside), str(home.root), str(project), str(scratch / "sdk.py")]
        in_process = float(subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout)
        report(measured, in_process=in_process, rounds=options.rounds)
    finally:
        lifecycle.stop(home)
        shutil.rmtree(scratch, ignore_errors=True)


def kept(client: Client, project: str) -> str:
    """The id of a memory of ordinary size."""
    fields = {"kind": "decision", "title": "Slots are stored in UTC", "body": "two venues, one clock\n" * 20}
    return str(client.post("/api/memories", {**fields, "project_path": project})["memories"][0]["id"])


def measure(
    servers: dict[str, list[str]],
    bare: list[str],
    id: str,
    options: argparse.Namespace,
    *,
    cwd: Path,
    env: dict[str, str],
) -> dict[str, dict[str, list[float]]]:
    """Milliseconds by server and by what was asked, taken in turn so that a busy moment hits all of them."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in (*servers, "bare")}
    for number in range(options.rounds + 1):
        began = time.perf_counter()
        subprocess.run(bare, check=True)
        if number:
            found["bare"].setdefault("start", []).append((time.perf_counter() - began) * 1000)
        for name, command in servers.items():
            server = Server(command, cwd=cwd, env=env)
            server.ask("initialize", GREET)
            if number:  # the first round compiles, and warms the page cache
                found[name].setdefault("initialize", []).append((time.perf_counter() - server.began) * 1000)
            server.close()
    opened = {name: Server(command, cwd=cwd, env=env) for name, command in servers.items()}
    for server in opened.values():
        server.ask("initialize", GREET)
        server.tell("notifications/initialized")
    for number in range(options.calls + 10):
        for name, server in random.Random(number).sample(sorted(opened.items()), len(opened)):
            began = time.perf_counter()
            answer = server.ask("tools/call", {"name": "memory_get", "arguments": {"ids": [id]}})
            assert id in answer["content"][0]["text"], answer
            if number >= 10:
                found[name].setdefault("call", []).append((time.perf_counter() - began) * 1000)
    for name, server in opened.items():
        found[name]["MB"] = [server.memory()]
        server.close()
    return found


def report(measured: dict[str, dict[str, list[float]]], *, in_process: float, rounds: int) -> None:
    bare = statistics.median(measured["bare"]["start"])
    print(
        f"bare interpreter (-I -S -c pass): {bare:.1f} ms; medians of {rounds} rounds; in brackets multiples of ours\n"
    )
    print(f"{'':26}{'initialize':>20}{'a call':>20}{'MB':>8}")
    ours = measured["ours (launcher, -I -S)"]
    for name, times in measured.items():
        if name == "bare":
            continue
        columns = [statistics.median(times[what]) for what in ("initialize", "call")]
        base = [statistics.median(ours[what]) for what in ("initialize", "call")]
        cells = "".join(f"{ms:>11.2f} ({ms / first:>5.1f}x)" for ms, first in zip(columns, base, strict=True))
        print(f"{name:26}{cells}{times['MB'][0]:>8.0f}")
    call = statistics.median(ours["call"])
    print(
        "the fastest calls: "
        + ", ".join(f"{name} {min(times['call']):.2f} ms" for name, times in measured.items() if "call" in times)
    )
    print(
        "\nthe SDK inside the worker, behind a bridge: a call costs at least ours and what the SDK adds in one process:"
        f" {call:.2f} + {in_process:.2f} = {call + in_process:.2f} ms ({(call + in_process) / call:.1f}x)"
    )


if __name__ == "__main__":
    main()
