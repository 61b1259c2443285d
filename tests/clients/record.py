"""Real clients, a model that follows a script, a tiny project -> the payloads their hooks were given, as test fixtures.

    python tests/clients/record.py CLIENTS [claude-code codex gemini copilot opencode] [--only pieces|session]

CLIENTS holds one npm folder a client (`npm i --prefix CLIENTS/codex @openai/codex@0.166.0`, ...). Everything runs in a
scratch home with an environment of its own, no account and no key, and speaks to loopback alone; where `unshare -n` is
allowed there is nothing else to speak to. Paths and ids are made the same for every machine before they are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.clients import scripts
from tests.clients.fake_model import FakeModel

PAYLOADS = Path(__file__).resolve().parents[1] / "payloads"
VERSIONS = {
    "claude-code": ("@anthropic-ai/claude-code", "2.1.325"),
    "codex": ("@openai/codex", "0.166.0"),
    "gemini": ("@google/gemini-cli", "0.61.0"),
    "copilot": ("@github/copilot", "1.0.102"),
    "opencode": ("opencode-ai", "1.18.33"),
}
FOLDERS = {"claude-code": "claude"}  # in CLIENTS, where it is not the host's own name
SECONDS = 240  # for one run of a client; OpenCode takes a minute on a busy machine

HOOK = """import json, sys, time
at, raw = time.time(), sys.stdin.read()
line = json.dumps({"event": sys.argv[1], "at": at, "payload": json.loads(raw)})
open(sys.argv[2], "a").write(line + "\\n")
"""


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("clients", type=Path)
    asked.add_argument("hosts", nargs="*", default=[])
    asked.add_argument("--only", choices=("pieces", "session"), default="")
    asked.add_argument("--keep", action="store_true", help="leave the scratch folder, and say where it is")
    given = asked.parse_args()
    be_alone()
    for host in given.hosts or VERSIONS:
        if given.only != "session":
            shutil.rmtree(PAYLOADS / host, ignore_errors=True)
            for script in scripts.PIECES[host]:
                keep_pieces(host, record(host, given.clients, script, keep=given.keep), script)
        if given.only != "pieces" and host in scripts.SESSIONS:
            script = scripts.SESSIONS[host]
            keep_session(host, record(host, given.clients, script, keep=given.keep))


class Recorded:
    """What one run told: its events in order, scrubbed, and the transcript that its client wrote."""

    def __init__(self, events: list[dict[str, Any]], transcript: list[dict[str, Any]]) -> None:
        self.events, self.transcript = events, transcript


def record(host: str, clients: Path, script: scripts.Script, *, keep: bool) -> Recorded:
    """Run a client through what the user says, while the model does what the script says."""
    scratch = Path(tempfile.mkdtemp(prefix=f"record-{host}-"))
    home, project = scratch / "home", scratch / "home" / "project"
    scripts.make_project(project)
    told = scratch / "told.jsonl"
    (scratch / "hook.py").write_text(HOOK)
    binary = clients / FOLDERS.get(host, host) / "node_modules" / ".bin" / FOLDERS.get(host, host)
    steps = scripts.placed(script.steps, str(project))
    with FakeModel(steps) as model:
        client = Client(host, binary, home=home, project=project, scratch=scratch, told=told, url=model.url)
        client.model = script.model or client.model
        client.run(script.prompts)
        print(f"{host}: {model.at} of {len(steps)} steps; offered: {', '.join(sorted(model.offered))}")
    lines = [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []
    scrub = Scrub(scratch=scratch, home=home, project=project, clients=clients)
    events = [scrub(line) for line in sorted(lines, key=lambda line: line["at"])]
    transcript = [scrub(line) for line in client.transcript()]
    if keep:
        print(f"kept: {scratch}")
    else:
        shutil.rmtree(scratch, ignore_errors=True)
    return Recorded(events, transcript)


def keep_pieces(host: str, told: Recorded, script: scripts.Script) -> None:
    """One file for each tool use that its script names, and for each other event; Codex's with its rollout."""
    folder = PAYLOADS / host
    folder.mkdir(parents=True, exist_ok=True)
    for line in told.events:
        name = scripts.shown(line["payload"], script.steps)
        kept = {"client": " ".join(VERSIONS[host]), "event": line["event"], "payload": line["payload"]}
        if (prompt := line["payload"].get("prompt", "")).startswith("<"):  # the host's own, in the user's name
            name = prompt[1:].partition(">")[0]
        if not name and ("parentID" in line["payload"] or "parentAgentId" in line["payload"]):
            name = "inner"
        file = folder / f"{'.'.join(filter(None, (line['event'], name)))}.json"
        if not file.exists():  # the first script shows it
            file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
            print("  ", file.relative_to(PAYLOADS))
    if host == "codex":
        lines = [line for line in told.transcript if "call_id" in line["payload"] or "item" in line["payload"]]
        (folder / f"rollout.{script.model}.jsonl").write_text(jsonl(lines))


def keep_session(host: str, told: Recorded) -> None:
    for kind, lines in (("sessions", told.events), ("transcripts", told.transcript)):
        if lines:
            file = PAYLOADS / kind / f"{host}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(jsonl(lines))
            print("  ", file.relative_to(PAYLOADS), len(lines), "lines")


def jsonl(lines: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


class Scrub:
    """Makes what differs from run to run the same: folders, ids, process numbers."""

    def __init__(self, *, scratch: Path, home: Path, project: Path, clients: Path) -> None:
        slug = re.sub(r"[^A-Za-z0-9]", "-", str(project))
        self.words = {
            str(project): "/home/user/project",
            slug: "-home-user-project",
            str(home): "/home/user",
            str(scratch): "/home/user",
            str(clients.resolve()): "/opt/client",
            str(Path(sys.prefix)): "/usr",
            os.uname().nodename: "machine",
        }
        self.ids: dict[str, str] = {}

    def __call__(self, item: Any) -> Any:
        if isinstance(item, dict):
            return {self(name): self(each) for name, each in item.items() if name not in SECRET}
        if isinstance(item, list):
            return [self(each) for each in item]
        if not isinstance(item, str):
            return item
        for word, other in self.words.items():
            item = item.replace(word, other)
        item = UUID.sub(lambda found: self._id(found[0], f"{len(self.ids) + 1:08}-0000-4000-8000-000000000000"), item)
        item = OPENCODE_ID.sub(lambda found: self._id(found[0], f"{found[1]}_{len(self.ids) + 1:06}"), item)
        return UID.sub("/tmp/claude-1000/", PGID.sub("PGID: 4242", item))

    def _id(self, found: str, other: str) -> str:
        return self.ids.setdefault(found, other)


UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
OPENCODE_ID = re.compile(r"\b(ses|msg|prt|evt)_[0-9a-f]{10,}\w*")
PGID = re.compile(r"PGID: \d+")
UID = re.compile(r"/tmp/claude-\d+/")
SECRET = ("CLAUDE_CODE_MESSAGING_TOKEN", "CLAUDE_CODE_MESSAGING_SOCKET")


class Client:
    """One real client with its hooks registered: how each is told its model, its hooks and a prompt."""

    def __init__(
        self, host: str, binary: Path, *, home: Path, project: Path, scratch: Path, told: Path, url: str
    ) -> None:
        self.host, self.binary, self.home, self.project, self.url = host, str(binary), home, project, url
        self.model = "gpt-5.5"  # Codex's tools differ by the model's name
        self.hook, self.told = f"{sys.executable} -I -S {scratch / 'hook.py'}", told
        tools = scratch / "bin"
        tools.mkdir()
        for name in ("python", "python3"):  # with pytest, and without a word of where it lies
            (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
            (tools / name).chmod(0o755)
        (home / ".bash_profile").write_text(f"PATH={tools}:$PATH\n")  # Codex starts a login shell
        self.env = {
            "PATH": f"{tools}:{os.path.dirname(shutil.which('node') or '/usr/bin/node')}:/usr/bin:/bin",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self, prompts: Sequence[str]) -> None:
        getattr(self, f"_{self.host.replace('-', '_')}")(prompts)

    def transcript(self) -> Iterator[dict[str, Any]]:
        """What the client wrote itself; of what it was told by its maker, only how long it was."""
        pattern = TRANSCRIPTS.get(self.host)
        for file in sorted(self.home.glob(pattern)) if pattern else ():
            for line in file.read_text().splitlines():
                found = json.loads(line)
                if not str(found.get("type", "")).startswith("api-request"):
                    yield found if _said_or_done(found) else _shortened(found)

    def _start(self, args: Sequence[str], **more: Any) -> subprocess.Popen[str]:
        return subprocess.Popen([self.binary, *args], env=self.env, cwd=self.project, text=True, **more)

    def _once(self, args: Sequence[str]) -> str:
        with self._start(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            try:
                out, _ = process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                out, _ = process.communicate()
        if process.returncode:
            print(f"{self.host} left with {process.returncode}:\n{out[-2000:]}")
        return out

    def _hooks(self, *events: str, **more: Any) -> dict[str, Any]:
        """Claude's shape, which Codex and Gemini take too."""
        return {
            event: [
                {"matcher": "*", "hooks": [{"type": "command", "command": f"{self.hook} {event} {self.told}", **more}]}
            ]
            for event in events
        }

    def _write(self, name: str, item: Any) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(item if isinstance(item, str) else json.dumps(item))

    def _claude_code(self, prompts: Sequence[str]) -> None:
        events = (
            "SessionStart UserPromptSubmit PostToolUse PostToolUseFailure Stop SubagentStart SubagentStop PreCompact "
            "SessionEnd"
        )
        hooks = self._hooks(*events.split())
        for event in ("SessionEnd",):
            hooks[event][0]["hooks"][0]["timeout"] = 10  # else a short budget, on a busy machine
        self._write(".claude/settings.json", {"hooks": hooks})
        self.env |= {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "sk-fake",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ENABLE_TOOL_SEARCH": "false",  # else some tools wait behind a search for them
        }
        # One process for all prompts, one at a time: several lines at once are merged.
        form = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        tools = ["Bash", "Edit", "Write", "Read", "TaskCreate", "TaskUpdate", "TaskList", "Agent"]
        process = self._start(
            ["-p", *form, "--allowedTools", *tools], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr
        )
        assert process.stdin
        assert process.stdout
        with process:
            for prompt in prompts:
                said = {"type": "user", "message": {"role": "user", "content": prompt}}
                process.stdin.write(json.dumps(said) + "\n")
                process.stdin.flush()
                for line in process.stdout:
                    if '"type":"result"' in line:
                        break
                time.sleep(1.0)  # Stop is told behind the result
            process.stdin.close()
            process.wait(timeout=SECONDS)

    def _codex(self, prompts: Sequence[str]) -> None:
        events = "SessionStart UserPromptSubmit PostToolUse Stop SubagentStart SubagentStop PreCompact SessionEnd"
        self._write(".codex/hooks.json", {"hooks": self._hooks(*events.split())})
        self._write(
            ".codex/config.toml",
            f"""model = "{self.model}"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.fake]
name = "fake"
base_url = "{self.url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0
""",
        )
        self.env |= {"CODEX_HOME": str(self.home / ".codex"), "FAKE_KEY": "sk-fake"}
        for number, prompt in enumerate(prompts):
            again = ["resume", "--last"] if number else []
            self._once(["exec", "--dangerously-bypass-hook-trust", *again, prompt])

    def _gemini(self, prompts: Sequence[str]) -> None:
        events = "SessionStart BeforeAgent AfterTool AfterAgent SessionEnd"
        self._write(
            ".gemini/settings.json",
            {
                "hooks": self._hooks(*events.split(), name="record", timeout=10_000),
                "hooksConfig": {"enabled": True},
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "privacy": {"usageStatisticsEnabled": False},
                "general": {"enableAutoUpdate": False},
            },
        )
        self.env |= {
            "GEMINI_API_KEY": "sk-fake",
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }
        for number, prompt in enumerate(prompts):
            again = ["--resume", "latest"] if number else []
            self._once(["-m", "gemini-2.5-flash", "--approval-mode", "yolo", *again, "-p", prompt])

    def _copilot(self, prompts: Sequence[str]) -> None:
        events = "sessionStart userPromptSubmitted postToolUse postToolUseFailure agentStop subagentStop sessionEnd"
        hooks = {
            event: [{"type": "command", "bash": f"{self.hook} {event} {self.told}", "timeoutSec": 10}]
            for event in events.split()
        }
        self._write(".copilot/hooks/record.json", {"version": 1, "hooks": hooks})
        self.env |= {
            "COPILOT_PROVIDER_BASE_URL": f"{self.url}/v1",
            "COPILOT_PROVIDER_API_KEY": "sk-fake",
            "COPILOT_MODEL": "fake-model",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        }
        for number, prompt in enumerate(prompts):
            again = ["--continue"] if number else []
            self._once(["--allow-all-tools", *again, "-p", prompt])

    def _opencode(self, prompts: Sequence[str]) -> None:
        plugin = PLUGIN.replace("TOLD", json.dumps(str(self.told)))
        self._write("project/.opencode/plugins/record.js", plugin)
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Fake",
            "options": {"baseURL": f"{self.url}/v1", "apiKey": "sk-fake"},
            "models": {
                "fake-model": {"name": "Fake", "limit": {"context": 100_000, "output": 8000}, "tool_call": True}
            },
        }
        self._write(
            "project/opencode.json",
            {
                "model": "fake/fake-model",
                "small_model": "fake/fake-model",
                "share": "disabled",
                "autoupdate": False,
                "enabled_providers": ["fake"],
                "permission": {"bash": "allow", "edit": "allow"},
                "provider": {"fake": provider},
            },
        )
        self.env |= {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            # It would look for its plugin package for 70 seconds, and works without.
            "npm_config_registry": f"{self.url}/",
            "npm_config_fetch_retries": "0",
        }
        for number, prompt in enumerate(prompts):
            self._once(["run", *(["--continue"] if number else []), prompt])


def be_alone() -> None:
    """Start again in a network that has only loopback, where one can be made."""
    allowed = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode == 0
    if allowed and "RECORD_ALONE" not in os.environ:
        command = ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", sys.executable, *sys.argv]
        os.execvpe("unshare", command, {**os.environ, "RECORD_ALONE": "1"})


TRANSCRIPTS = {
    "claude-code": ".claude/projects/*/*.jsonl",
    "codex": ".codex/sessions/**/*.jsonl",
    "copilot": ".copilot/session-state/*/events.jsonl",
}


def _said_or_done(line: dict[str, Any]) -> bool:
    """Whether a line of a transcript tells what a person, an agent or a tool said."""
    inside = line.get("payload", {})
    if line["type"] in ("user", "assistant", "user.message", "assistant.message") or "tool" in line["type"]:
        return True
    return "call_id" in inside or "item" in inside or inside.get("role") in ("user", "assistant")


def _shortened(item: Any) -> Any:
    if isinstance(item, dict):
        return {name: _shortened(each) for name, each in item.items()}
    if isinstance(item, list):
        return [_shortened(each) for each in item[:3]]
    return f"[{len(item)} characters]" if isinstance(item, str) and len(item) > 200 else item


# What OpenCode gives a plugin's hooks, written down as our own plugin sends it.
PLUGIN = """
import { appendFileSync } from "node:fs"
export const Record = async ({ directory }) => {
  const parents = {}
  const tell = (event, sessionID, input, output) => {
    const parentID = parents[sessionID]
    const payload = { directory, ...(parentID ? { parentID } : {}), input, ...(output ? { output } : {}) }
    appendFileSync(TOLD, JSON.stringify({ event, at: Date.now() / 1000, payload }) + "\\n")
  }
  const wanted = ["session.created", "session.idle", "session.compacted", "session.deleted"]
  return {
    event: async ({ event }) => {
      const info = event.properties?.info
      if (event.type === "session.created" && info?.parentID) parents[info.id] = info.parentID
      if (wanted.includes(event.type)) tell(event.type, event.properties?.sessionID, event)
      const part = event.properties?.part
      if (event.type === "message.part.updated" && part?.type === "tool" && part.state?.status === "error")
        tell("tool.execute.error", part.sessionID, event)
    },
    "chat.message": async (i, o) => tell("chat.message", i.sessionID, i, o),
    "tool.execute.after": async (i, o) => tell("tool.execute.after", i.sessionID, i, o),
    "experimental.text.complete": async (i, o) => tell("experimental.text.complete", i.sessionID, i, o),
  }
}
"""

if __name__ == "__main__":
    main()
