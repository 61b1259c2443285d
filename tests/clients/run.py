"""A real client, a scratch home, the address of a model -> conversations with it, in an environment of its own.

One class a client: what it must find in its home, its variables, and how it is told a prompt. The recorder and the
end-to-end suite both start clients here. No account, no key, nothing of the environment that they are started from.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 240  # for one answer of a client; OpenCode takes a minute on a busy machine
STOP_SECONDS = 1.0  # Claude tells `Stop` behind its result; a prompt sent before that would wait in a queue
KEY = "sk-fake"


@dataclass(frozen=True)
class Answer:
    """What came of one prompt: all that the client printed, and how it ended (0 while it goes on)."""

    out: str
    err: str
    code: int
    seconds: float


class Client:
    """One installed client in one scratch home; what it needs is written by `settle`."""

    host = ""
    transcripts = ""  # a pattern below the home of the files that it writes while it works

    def __init__(self, binary: Path, *, home: Path, project: Path, url: str) -> None:
        self.binary, self.home, self.project, self.url = binary, home, project, url
        self.env = {**_clean(home), **self.variables()}

    def variables(self) -> dict[str, str]:
        """What it is told by its environment."""
        return {}

    def files(self) -> dict[str, Any]:
        """What it must find to know its model, by its place below the home: text, or what becomes JSON."""
        return {}

    def settle(self, more: Mapping[str, Any] = {}) -> None:
        """Leave the home so that the client can be started; *more* goes on top, key by key."""
        files = self.files()
        for name, item in more.items():
            files[name] = {**files[name], **item} if isinstance(files.get(name), dict) else item
        for name, item in files.items():
            write(self.home / name, item if isinstance(item, str) else json.dumps(item))

    def talk(self, *, again: bool = False, more: Sequence[str] = ()) -> Conversation:
        """A conversation; *again* goes on with the last one. *more* are options of the client's own."""
        return Conversation(self, again=again, more=more)

    def args(self, prompt: str, *, again: bool) -> list[str]:
        """How it is told one prompt, without a terminal."""
        raise NotImplementedError

    def start(self, args: Sequence[str], **streams: Any) -> subprocess.Popen[str]:
        """The client as a process of a group of its own, so that it can be ended with its children."""
        command = [str(self.binary), *args]
        return subprocess.Popen(command, env=self.env, cwd=self.project, text=True, start_new_session=True, **streams)


class Conversation:
    """One process for each prompt, the later ones going on where the first one ended."""

    def __init__(self, client: Client, *, again: bool, more: Sequence[str]) -> None:
        self.client, self.again, self.more = client, again, more
        self.answers: list[Answer] = []

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def say(self, prompt: str) -> Answer:
        """Tell the client a prompt, and return when it has answered."""
        began = time.monotonic()
        args = self.client.args(prompt, again=self.again)
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = self.client.start([*args[:1], *self.more, *args[1:]], **streams)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            end(process)
            out, err = process.communicate()
            err += f"\nended after {SECONDS} s"
        self.again = True
        return self.keep(Answer(out, err, process.returncode, time.monotonic() - began))

    def keep(self, answer: Answer) -> Answer:
        self.answers.append(answer)
        return answer

    def close(self) -> None:
        """End the conversation; nothing is left running."""


class PipedConversation(Conversation):
    """One process for all prompts of Claude Code, one at a time: several lines at once are merged."""

    def __init__(self, client: Client, *, again: bool, more: Sequence[str]) -> None:
        super().__init__(client, again=again, more=more)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = client.start([*client.args("", again=again), *more], **pipes)
        self.session = ""

    def say(self, prompt: str) -> Answer:
        assert self.process.stdin
        assert self.process.stdout
        began, lines = time.monotonic(), []
        message = {"type": "user", "message": {"role": "user", "content": prompt}}
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return self.close()
        for line in self.process.stdout:
            lines.append(line)
            if '"type":"result"' in line:
                self.session = json.loads(line).get("session_id", "")
                break
        time.sleep(STOP_SECONDS)
        return self.keep(Answer("".join(lines), "", self.process.poll() or 0, time.monotonic() - began))

    def close(self) -> Answer:
        """Let the client end; all that it still said."""
        began = time.monotonic()
        if self.process.stdout and self.process.stdout.closed:
            return self.answers[-1]
        try:
            out, err = self.process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            end(self.process)
            out, err = self.process.communicate()
            err += f"\nended after {SECONDS} s"
        return self.keep(Answer(out, err, self.process.returncode, time.monotonic() - began))


class ClaudeCode(Client):
    host = "claude-code"
    transcripts = ".claude/projects/*/*.jsonl"
    tools = ("Bash", "Edit", "Write", "Read", "TaskCreate", "TaskUpdate", "TaskList", "Agent")
    servers = ("mcp__foreword", "mcp__plugin_foreword_foreword")

    def variables(self) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": KEY,
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ENABLE_TOOL_SEARCH": "false",  # else some tools wait behind a search for them
        }

    def talk(self, *, again: bool = False, more: Sequence[str] = ()) -> PipedConversation:
        return PipedConversation(self, again=again, more=more)

    def args(self, prompt: str, *, again: bool) -> list[str]:
        form = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        form += ["--include-hook-events"]  # how each hook ended
        # As root it refuses to skip its permissions, so that each tool and server is allowed by its name.
        return [*form, *(["--continue"] if again else []), "--allowedTools", *self.tools, *self.servers]


class Codex(Client):
    host = "codex"
    transcripts = ".codex/sessions/**/*.jsonl"
    model = "gpt-5.5"  # its tools differ by the model's name
    trusting = ("--dangerously-bypass-hook-trust",)

    def variables(self) -> dict[str, str]:
        return {"CODEX_HOME": str(self.home / ".codex"), "FAKE_KEY": KEY}

    def files(self) -> dict[str, Any]:
        return {
            ".codex/config.toml": f"""model = "{self.model}"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
model_auto_compact_token_limit = {COMPACTS_AT}

[analytics]
enabled = false

[model_providers.fake]
name = "fake"
base_url = "{self.url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0
"""
        }

    def args(self, prompt: str, *, again: bool) -> list[str]:
        return ["exec", *self.trusting, *(["resume", "--last"] if again else []), prompt]


class Gemini(Client):
    host = "gemini"

    def variables(self) -> dict[str, str]:
        return {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": self.url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def files(self) -> dict[str, Any]:
        return {
            ".gemini/settings.json": {
                "hooksConfig": {"enabled": True},
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "privacy": {"usageStatisticsEnabled": False},
                "general": {"enableAutoUpdate": False},
            }
        }

    def args(self, prompt: str, *, again: bool) -> list[str]:
        mode = ["-m", "gemini-2.5-flash", "--approval-mode", "yolo"]
        return [*mode, *(["--resume", "latest"] if again else []), "-p", prompt]


class Copilot(Client):
    host = "copilot"
    transcripts = ".copilot/session-state/*/events.jsonl"

    def variables(self) -> dict[str, str]:
        return {
            "COPILOT_PROVIDER_BASE_URL": f"{self.url}/v1",
            "COPILOT_PROVIDER_API_KEY": KEY,
            "COPILOT_MODEL": "fake-model",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        }

    def args(self, prompt: str, *, again: bool) -> list[str]:
        return ["--allow-all-tools", *(["--continue"] if again else []), "-p", prompt]


class OpenCode(Client):
    host = "opencode"

    def variables(self) -> dict[str, str]:
        return {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            # It would look for its plugin package for 70 seconds, and works without.
            "npm_config_registry": f"{self.url}/",
            "npm_config_fetch_retries": "0",
        }

    def files(self) -> dict[str, Any]:
        limit = {"context": COMPACTS_AT, "output": 8000}
        return {
            ".config/opencode/opencode.json": {
                "model": "fake/fake-model",
                "small_model": "fake/fake-model",
                "share": "disabled",
                "autoupdate": False,
                "enabled_providers": ["fake"],
                "permission": {"bash": "allow", "edit": "allow"},
                "provider": {
                    "fake": {
                        "npm": "@ai-sdk/openai-compatible",
                        "name": "Fake",
                        "options": {"baseURL": f"{self.url}/v1", "apiKey": KEY},
                        "models": {"fake-model": {"name": "Fake", "limit": limit, "tool_call": True}},
                    }
                },
            }
        }

    def args(self, prompt: str, *, again: bool) -> list[str]:
        return ["run", *(["--continue"] if again else []), prompt]


COMPACTS_AT = 100_000  # tokens: far more than any request of ours, unless the model claims to have read so many
CLIENTS: dict[str, type[Client]] = {each.host: each for each in (ClaudeCode, OpenCode, Codex, Gemini, Copilot)}


def write(path: Path, text: str, *, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def end(process: subprocess.Popen[str]) -> None:
    """End a client that we started, and what it started in its group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def is_alone() -> bool:
    """Whether this process sees loopback alone."""
    return sorted(name for _, name in socket.if_nameindex()) == ["lo"]


def be_alone(mark: str) -> bool:
    """Start this program again in a network that has only loopback, where one can be made; whether it has."""
    if mark in os.environ:
        _raise_loopback()
        return is_alone()
    for way in (["-n"], ["-rn"]):  # the second one for whom is not root, where the kernel allows it
        tried = subprocess.run(["unshare", *way, "true"], capture_output=True, check=False) if _unshare() else None
        if tried and tried.returncode == 0:
            command = ["unshare", *way, sys.executable, *sys.argv]
            os.execvpe("unshare", command, {**os.environ, mark: "1"})
    return False


def _unshare() -> bool:
    return shutil.which("unshare") is not None


def _raise_loopback() -> None:
    """`ip link set lo up`, where there is no `ip`."""
    get_flags, set_flags, up = 0x8913, 0x8914, 0x1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP of linux/sockios.h
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14s", b"lo", 0, b"")
        _, flags, _ = struct.unpack("16sH14s", fcntl.ioctl(any_socket, get_flags, request))
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sH14s", b"lo", flags | up, b""))


def _clean(home: Path) -> dict[str, str]:
    """An environment with nothing of ours but Node; Python as tools find it is this one, which has pytest."""
    tools = home / ".local" / "bin"
    for name in ("python", "python3"):  # without a word of where it lies
        write(tools / name, f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', mode=0o755)
    write(home / ".bash_profile", f"PATH={tools}:$PATH\n")  # Codex starts a login shell
    return {
        "PATH": f"{tools}:{os.path.dirname(shutil.which('node') or '/usr/bin/node')}:/usr/bin:/bin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
