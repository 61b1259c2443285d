"""Real clients, a model that follows a script, a tiny project -> the payloads their hooks were given, as test fixtures.

    python tests/clients/record.py CLIENTS [claude-code codex gemini copilot opencode] [--only pieces|session]

CLIENTS is the folder that `make clients` installs them in. Everything runs in a scratch home with an environment of its
own, no account and no key, and speaks to loopback alone; where `unshare -n` is allowed there is nothing else. Paths and
ids are made the same for every machine before they are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.clients import scripts
from tests.clients.fake_model import FakeModel
from tests.clients.install import binary
from tests.clients.run import CLIENTS, Client, Codex, be_alone
from tests.clients.versions import VERSIONS

PAYLOADS = Path(__file__).resolve().parents[1] / "payloads"
HOOK = """import json, sys, time
at, raw = time.time(), sys.stdin.read()
line = json.dumps({"event": sys.argv[1], "at": at, "payload": json.loads(raw)})
open(sys.argv[2], "a").write(line + "\\n")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", type=Path)
    parser.add_argument("hosts", nargs="*", default=[])
    parser.add_argument("--only", choices=("pieces", "session"), default="")
    parser.add_argument("--keep", action="store_true", help="leave the scratch folder, and say where it is")
    options = parser.parse_args()
    be_alone("RECORD_ALONE")
    for host in options.hosts or VERSIONS:
        if options.only != "session":
            shutil.rmtree(PAYLOADS / host, ignore_errors=True)
            for script in scripts.PIECES[host]:
                keep_pieces(host, record(host, options.clients, script, keep=options.keep), script)
        if options.only != "pieces" and host in scripts.SESSIONS:
            script = scripts.SESSIONS[host]
            keep_session(host, record(host, options.clients, script, keep=options.keep))


class Recorded:
    """What one run told: its events in order, scrubbed, and the transcript that its client wrote."""

    def __init__(self, events: list[dict[str, Any]], transcript: list[dict[str, Any]]) -> None:
        self.events, self.transcript = events, transcript


def record(host: str, folder: Path, script: scripts.Script, *, keep: bool) -> Recorded:
    """Run a client through what the user says, while the model does what the script says."""
    scratch = Path(tempfile.mkdtemp(prefix=f"record-{host}-"))
    home, project = scratch / "home", scratch / "home" / "project"
    scripts.make_project(project)
    recording = scratch / "told.jsonl"
    (scratch / "hook.py").write_text(HOOK)
    steps = scripts.placed(script.steps, str(project))
    with FakeModel(steps) as model:
        client = CLIENTS[host](binary(VERSIONS[host], folder), home=home, project=project, url=model.url)
        if isinstance(client, Codex):
            client.model = script.model or client.model
        client.settle(hooked(client, hook=f"{sys.executable} -I -S {scratch / 'hook.py'}", recording=recording))
        with client.talk() as conversation:
            for prompt in script.prompts:
                conversation.say(prompt)
        for answer in conversation.answers:
            if answer.code:
                print(f"{host} left with {answer.code}:\n{(answer.out + answer.err)[-2000:]}")
        print(f"{host}: {model.at} of {len(steps)} steps; offered: {', '.join(sorted(model.offered))}")
    lines = [json.loads(line) for line in recording.read_text().splitlines()] if recording.exists() else []
    scrub = Scrub(scratch=scratch, home=home, project=project, clients=folder)
    events = [scrub(line) for line in sorted(lines, key=lambda line: line["at"])]
    written = [scrub(line) for line in transcript(client)]
    if keep:
        print(f"kept: {scratch}")
    else:
        shutil.rmtree(scratch, ignore_errors=True)
    return Recorded(events, written)


def keep_pieces(host: str, recorded: Recorded, script: scripts.Script) -> None:
    """One file for each tool use that its script names, and for each other event; Codex's with its rollout."""
    folder = PAYLOADS / host
    folder.mkdir(parents=True, exist_ok=True)
    for line in recorded.events:
        name = scripts.shown(line["payload"], script.steps)
        pinned = VERSIONS[host]
        kept = {"client": f"{pinned.package} {pinned.version}", "event": line["event"], "payload": line["payload"]}
        if (prompt := line["payload"].get("prompt", "")).startswith("<"):  # the host's own, in the user's name
            name = prompt[1:].partition(">")[0]
        if not name and ("parentID" in line["payload"] or "parentAgentId" in line["payload"]):
            name = "inner"
        file = folder / f"{'.'.join(filter(None, (line['event'], name)))}.json"
        if not file.exists():  # the first script shows it
            file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
            print("  ", file.relative_to(PAYLOADS))
    if host == "codex":
        lines = [line for line in recorded.transcript if "call_id" in line["payload"] or "item" in line["payload"]]
        (folder / f"rollout.{script.model}.jsonl").write_text(jsonl(lines))


def keep_session(host: str, recorded: Recorded) -> None:
    for kind, lines in (("sessions", recorded.events), ("transcripts", recorded.transcript)):
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


def hooked(client: Client, *, hook: str, recording: Path) -> dict[str, Any]:
    """What goes into a client's home beside its settings, so that it tells *hook* all that it can tell."""

    def claudes(events: str, **more: Any) -> dict[str, Any]:
        """Claude's shape, which Codex and Gemini take too."""
        return {
            event: [{"matcher": "*", "hooks": [{"type": "command", "command": f"{hook} {event} {recording}", **more}]}]
            for event in events.split()
        }

    if client.host == "claude-code":
        # SessionEnd has a short budget, on a busy machine.
        return {".claude/settings.json": {"hooks": claudes(EVENTS[client.host], timeout=10)}}
    if client.host == "codex":
        return {".codex/hooks.json": {"hooks": claudes(EVENTS[client.host])}}
    if client.host == "gemini":
        return {".gemini/settings.json": {"hooks": claudes(EVENTS[client.host], name="record", timeout=10_000)}}
    if client.host == "copilot":
        hooks = {
            event: [{"type": "command", "bash": f"{hook} {event} {recording}", "timeoutSec": 10}]
            for event in EVENTS[client.host].split()
        }
        return {".copilot/hooks/record.json": {"version": 1, "hooks": hooks}}
    return {".config/opencode/plugins/record.js": PLUGIN.replace("TOLD", json.dumps(str(recording)))}


EVENTS = {
    "claude-code": "SessionStart UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure Stop SubagentStart "
    "SubagentStop PreCompact SessionEnd",
    "codex": "SessionStart UserPromptSubmit PostToolUse Stop SubagentStart SubagentStop PreCompact SessionEnd",
    "gemini": "SessionStart BeforeAgent AfterTool AfterAgent SessionEnd",
    "copilot": "sessionStart userPromptSubmitted postToolUse postToolUseFailure agentStop subagentStop sessionEnd",
}


def transcript(client: Client) -> Iterator[dict[str, Any]]:
    """What the client wrote itself; of what it was told by its maker, only how long it was."""
    for file in sorted(client.home.glob(client.transcripts)) if client.transcripts else ():
        for line in file.read_text().splitlines():
            found = json.loads(line)
            if not str(found.get("type", "")).startswith("api-request"):
                yield found if _said_or_done(found) else _shortened(found)


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
    "experimental.chat.system.transform": async ({ sessionID, model }) =>
      sessionID && tell("experimental.chat.system.transform", sessionID, { sessionID, model: { modelID: model?.id } }),
    "experimental.session.compacting": async (i) => tell("experimental.session.compacting", i.sessionID, i),
  }
}
"""

if __name__ == "__main__":
    main()
